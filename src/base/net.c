/*
 * Addresses (base/net.h).
 */
#include "base/net.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

bool st_net_loopback(const char *authority)
{
    size_t n = strcspn(authority, "/?#");
    struct in6_addr six;
    struct in_addr four;
    const char *colon;
    char host[64];

    if (n == 0 || n >= sizeof host)
        return false;
    memcpy(host, authority, n);
    host[n] = '\0';
    if (strchr(host, '@'))
        return false; /* what is before it is a user's name */
    if (host[0] == '[') {
        char *end = strchr(host, ']');

        if (!end || (end[1] != '\0' && end[1] != ':'))
            return false;
        *end = '\0';
        return inet_pton(AF_INET6, host + 1, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
    }
    colon = strchr(host, ':');
    if (colon)
        host[colon - host] = '\0';
    if (strcasecmp(host, "localhost") == 0)
        return true;
    return inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}
