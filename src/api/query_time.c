/*
 * A moment in a query, as people type it: a date, a time in UTC, or how long ago.
 */
#include <string.h>
#include <time.h>

#include "api/state.h"
#include "base/num.h"
#include "base/quote.h"

/* What may follow the seconds: ".125Z". */
static bool read_fraction(const char *at, int64_t *ret_ms)
{
    int64_t ms = 0;
    int n = 0;

    if (*at++ != '.')
        return false;
    for (; at[n] >= '0' && at[n] <= '9'; n++)
        ms = n < 3 ? ms * 10 + (at[n] - '0') : ms;
    for (int i = n; i < 3; i++)
        ms *= 10;
    *ret_ms = ms;
    return n > 0 && strcmp(at + n, "Z") == 0;
}

static bool read_moment(const char *text, int64_t *ret_ms)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ", "%Y-%m-%d",
                                        "%Y-%m-%dT%H:%M:%S"};

    for (size_t i = 0; i < ST_ARRAY_LEN(forms); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        bool last = i + 1 == ST_ARRAY_LEN(forms);
        int64_t ms = 0;

        if (end && (last ? read_fraction(end, &ms) : !*end)) {
            *ret_ms = ST_MAX((int64_t)timegm(&tm) * 1000 + ms, 1);
            return true;
        }
    }
    return false;
}

int st_api_query_time(const st_api *api, const st_call *call, const char *key, int64_t *ret,
                      st_err *err)
{
    const char *text = st_call_query(call, key);
    int64_t ago;
    char q[ST_QUOTE_MAX];

    *ret = 0;
    if (!text || read_moment(text, ret))
        return 0;
    if (st_parse_duration_ms(text, &ago, NULL) < 0)
        return st_fail(err, ST_EINVAL,
                       "%s: %s is neither a time like 2026-11-15T08:30:00Z nor a duration like 2h",
                       key, st_quote(q, text));
    *ret = ST_MAX(api->options.clock(api->options.ctx) - ago, 1);
    return 0;
}
