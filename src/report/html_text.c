/*
 * Text for pages; see the head.
 */
#include "report/html_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NBSP      "\u00A0"
#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

void st_json_text(st_strbuf *out, const char *s)
{
    st_strbuf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            st_strbuf_addf(out, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            st_strbuf_addf(out, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            st_strbuf_addc(out, *s);
    }
    st_strbuf_addc(out, '"');
}

/* ---- numbers ------------------------------------------------------------------------ */

const char *st_html_count(char buf[ST_HTML_MAX], int64_t n)
{
    char digits[ST_HTML_MAX];
    int len = snprintf(digits, sizeof(digits), "%" PRId64, n < 0 ? -n : n), at = 0;

    if (n < 0)
        buf[at++] = '-';
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

/* At most `decimals`, without zeros at the end. */
static void trimmed(char buf[ST_HTML_MAX], double x, int decimals, const char *unit)
{
    int n = snprintf(buf, ST_HTML_MAX, "%.*f", decimals, x);

    if (strchr(buf, '.'))
        while (buf[n - 1] == '0' || buf[n - 1] == '.')
            if (buf[--n] == '.')
                break;
    snprintf(buf + n, ST_HTML_MAX - (size_t)n, "%s", unit);
}

const char *st_html_short(char buf[ST_HTML_MAX], double x)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    size_t u = 0;

    while (fabs(x) >= (u == 0 ? 9999.5 : 999.5) && u + 1 < sizeof(units) / sizeof(units[0])) {
        x /= 1000;
        u++;
    }
    if (u == 0 && fabs(x) >= 1000)
        return st_html_count(buf, llround(x));
    trimmed(buf, x, fabs(x) >= 100 ? 0 : 1, units[u]);
    return buf;
}

const char *st_html_per_cent(char buf[ST_HTML_MAX], double part)
{
    snprintf(buf, ST_HTML_MAX, "%.1f" NBSP "%%", part * 100);
    return buf;
}

/* ---- time --------------------------------------------------------------------------- */

const char *st_html_duration(char buf[ST_HTML_MAX], int64_t ms)
{
    int64_t s = (ms + 500) / 1000;

    if (ms < 10000)
        trimmed(buf, (double)ms / 1000, 1, NBSP "s");
    else if (s < 60)
        snprintf(buf, ST_HTML_MAX, "%" PRId64 NBSP "s", s);
    else if (s < 3600)
        snprintf(buf, ST_HTML_MAX, "%" PRId64 NBSP "m" NBSP "%02" PRId64 NBSP "s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(buf, ST_HTML_MAX, "%" PRId64 NBSP "h" NBSP "%02" PRId64 NBSP "m", s / 3600,
                 s / 60 % 60);
    else
        snprintf(buf, ST_HTML_MAX, "%" PRId64 NBSP "d" NBSP "%02" PRId64 NBSP "h", s / 86400,
                 s / 3600 % 24);
    return buf;
}

typedef struct civil {
    int64_t year;
    int month, day; /* from 1 */
} civil;

/* The date so many days after 1970-01-01: years are counted from March, so that the leap day is
 * the last one of a year, in eras of 400. */
static civil civil_of(int64_t days)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    civil c = {.year = yoe + era * 400,
               .month = (int)(mp < 10 ? mp + 3 : mp - 9),
               .day = (int)(doy - (153 * mp + 2) / 5 + 1)};

    c.year += c.month <= 2;
    return c;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

const char *st_html_moment(char buf[ST_HTML_MAX], int64_t epoch_s, int64_t ms)
{
    int64_t min = floor_div(ms, MINUTE_MS) + floor_div(epoch_s, 60);
    int64_t day = floor_div(min, 24 * 60), of_day = min - day * 24 * 60;

    if (epoch_s == 0) {
        snprintf(buf, ST_HTML_MAX, "%" PRId64 "d %02d:%02d", day, (int)(of_day / 60),
                 (int)(of_day % 60));
    } else {
        civil c = civil_of(day);
        snprintf(buf, ST_HTML_MAX, "%04" PRId64 "-%02d-%02d %02d:%02d UTC", c.year, c.month, c.day,
                 (int)(of_day / 60), (int)(of_day % 60));
    }
    return buf;
}

const char *st_html_tick(char buf[ST_HTML_MAX], int64_t epoch_s, int64_t ms, int64_t step_ms)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t min = floor_div(ms, MINUTE_MS) + floor_div(epoch_s, 60);
    int64_t day = floor_div(min, 24 * 60), of_day = min - day * 24 * 60;
    civil c = civil_of(day);

    if (epoch_s == 0 && step_ms >= DAY_MS)
        snprintf(buf, ST_HTML_MAX, "%" PRId64 "d", day);
    else if (epoch_s == 0)
        snprintf(buf, ST_HTML_MAX, "%" PRId64 "d %02d:%02d", day, (int)(of_day / 60),
                 (int)(of_day % 60));
    else if (step_ms >= DAY_MS || of_day == 0)
        snprintf(buf, ST_HTML_MAX, "%d %s", c.day, months[c.month - 1]);
    else
        snprintf(buf, ST_HTML_MAX, "%02d:%02d", (int)(of_day / 60), (int)(of_day % 60));
    return buf;
}
