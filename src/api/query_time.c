/*
 * A moment in a query, as people type it: a date, a time in UTC, or how long ago.
 */
#include <string.h>
#include <time.h>

#include "api/state.h"
#include "base/num.h"
#include "base/quote.h"

int st_api_query_time(const st_api *api, const st_call *call, const char *key, int64_t *ret,
                      st_err *err)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%d"};
    const char *text = st_call_query(call, key);
    int64_t ago;
    char q[ST_QUOTE_MAX];

    *ret = 0;
    if (!text)
        return 0;
    for (size_t i = 0; i < ST_ARRAY_LEN(forms); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);

        if (end && !*end) {
            *ret = ST_MAX((int64_t)timegm(&tm) * 1000, 1);
            return 0;
        }
    }
    if (st_parse_duration_ms(text, &ago, NULL) < 0)
        return st_fail(err, ST_EINVAL,
                       "%s: %s is neither a time like 2026-11-15T08:30:00Z nor a duration like 2h",
                       key, st_quote(q, text));
    *ret = ST_MAX(api->options.clock(api->options.ctx) - ago, 1);
    return 0;
}
