/*
 * Entity tags in If-Match and If-None-Match: "*" or a list of "tag" and W/"tag".
 */
#include <string.h>

#include "http/http.h"

bool st_etag_listed(const char *header, const char *tag, bool weak)
{
    size_t n = strlen(tag);
    const char *at = header;

    for (;;) {
        bool is_weak;
        const char *end;

        at += strspn(at, " \t,");
        if (*at == '*')
            return true;
        is_weak = at[0] == 'W' && at[1] == '/';
        if (is_weak)
            at += 2;
        if (*at++ != '"' || !(end = strchr(at, '"')))
            return false;
        if ((weak || !is_weak) && (size_t)(end - at) == n && memcmp(at, tag, n) == 0)
            return true;
        at = end + 1;
    }
}
