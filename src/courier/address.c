/* Addresses of machines: which are everybody's, and which stand in a network. Written as IPv6, as the kernel maps IPv4. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "courier/courier.h"

#define BYTES 16

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool bytes_of(const struct sockaddr *sa, unsigned char ret[BYTES])
{
    if (sa->sa_family == AF_INET) {
        memcpy(ret, mapped, sizeof mapped);
        memcpy(ret + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
        return true;
    }
    if (sa->sa_family != AF_INET6)
        return false;
    memcpy(ret, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, BYTES);
    return true;
}

static bool within(const unsigned char a[BYTES], const st_network *net)
{
    for (int i = 0; i < BYTES; i++) {
        int bits = net->bits - i * 8;
        unsigned mask = bits >= 8 ? 0xff : bits <= 0 ? 0 : (0xffu << (8 - bits)) & 0xff;

        if ((a[i] ^ net->bytes[i]) & mask)
            return false;
    }
    return true;
}

bool st_network_read(const char *text, st_network *ret)
{
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    char host[INET6_ADDRSTRLEN];
    st_network net = {.bits = 128};
    int64_t bits = 128;
    bool four;

    if (n >= sizeof host)
        return false;
    memcpy(host, text, n);
    host[n] = '\0';
    four = inet_pton(AF_INET, host, net.bytes + 12) == 1;
    if (four)
        memcpy(net.bytes, mapped, sizeof mapped);
    else if (inet_pton(AF_INET6, host, net.bytes) != 1)
        return false;
    if (slash) {
        if (!slash[1] || strspn(slash + 1, "0123456789") != strlen(slash + 1) ||
            strlen(slash + 1) > 3)
            return false;
        bits = strtol(slash + 1, NULL, 10) + (four ? 96 : 0);
    }
    if (bits > 128)
        return false;
    net.bits = (int)bits;
    *ret = net;
    return true;
}

bool st_network_has(const st_network *net, const struct sockaddr *sa)
{
    unsigned char a[BYTES];

    return bytes_of(sa, a) && within(a, net);
}

/* Of IPv4 everything but what is listed (RFC 6890 and what came since). */
static bool four_is_public(const unsigned char a[BYTES])
{
    static const char *const others[] = {
        "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(others); i++) {
        st_network net;

        if (!st_network_read(others[i], &net) || within(a, &net))
            return false;
    }
    return true;
}

/* Of IPv6 what is given out, less what stands for IPv4 or is for documents: an IPv4 address behind one would be reached. */
static bool six_is_public(const unsigned char a[BYTES])
{
    static const char *const others[] = {"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"};
    st_network net;

    if (!st_network_read("2000::/3", &net) || !within(a, &net))
        return false;
    for (size_t i = 0; i < ST_ARRAY_LEN(others); i++)
        if (!st_network_read(others[i], &net) || within(a, &net))
            return false;
    return true;
}

bool st_address_public(const struct sockaddr *sa)
{
    unsigned char a[BYTES];

    if (!bytes_of(sa, a))
        return false;
    return memcmp(a, mapped, sizeof mapped) == 0 ? four_is_public(a) : six_is_public(a);
}
