/*
 * Entity tags in If-Match and If-None-Match: "*" or a list of "tag" and W/"tag".
 *
 * A tag of ours is VERSION-CONTENT, or CONTENT alone and weak, or VERSION alone. Content is of the bytes that were
 * sent; a version is of what can be edited, and never comes back.
 */
#include <string.h>

#include "http/http.h"

static bool same(const char *at, size_t len, const char *tag, st_etag_how how)
{
    size_t n = strlen(tag);

    if (how == ST_ETAG_VERSION && len > n && at[n] == '-')
        len = n;
    return len == n && memcmp(at, tag, n) == 0;
}

bool st_etag_listed(const char *header, const char *tag, st_etag_how how)
{
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
        if ((how == ST_ETAG_CONTENT || !is_weak) && same(at, (size_t)(end - at), tag, how))
            return true;
        at = end + 1;
    }
}
