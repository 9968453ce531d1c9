/*
 * Months of a zone (control/zone.h).
 */
#include "control/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"

#define FIRST_YEAR 2015
#define LAST_YEAR  2200
#define MONTHS     ((LAST_YEAR - FIRST_YEAR) * 12)
#define DAY_S      INT64_C(86400)
#define HOUR_S     INT64_C(3600)
#define DAY_MS     (DAY_S * 1000)
#define SHORT_MS   (20 * DAY_MS) /* no month is shorter */
#define EAST_S     (15 * HOUR_S) /* no zone is further from UTC */
#define ZONES      "/usr/share/zoneinfo"

struct st_zone {
    char name[64];
    int64_t month_ms;         /* made-up months, or 0 */
    int64_t edge[MONTHS + 1]; /* ms: where month i since FIRST_YEAR begins */
};

/* ---- calendar ------------------------------------------------------------------------------- */

/* Days since 1970-01-01 of the first of a month, in the Gregorian calendar; year from 1970. */
static int64_t first_day(int year, int month)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t y = year - 1;
    int64_t days = (year - 1970) * INT64_C(365) + (y / 4 - y / 100 + y / 400) -
                   (1969 / 4 - 1969 / 100 + 1969 / 400) + before[month - 1];
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days + (leap && month > 2);
}

static int64_t utc_edge_s(int i)
{
    return first_day(FIRST_YEAR + i / 12, i % 12 + 1) * DAY_S;
}

/* ---- the system's zones --------------------------------------------------------------------- */

/* Whether it is month i of the table, or later, there. */
static bool has_begun(int i, int64_t s)
{
    time_t t = (time_t)s;
    struct tm tm;

    localtime_r(&t, &tm);
    return (tm.tm_year + 1900 - FIRST_YEAR) * 12 + tm.tm_mon >= i;
}

/* From late to early by hours until it has not begun, then to the second. */
static int64_t local_edge_s(int i)
{
    int64_t utc = utc_edge_s(i), hi = utc + EAST_S, lo = hi - HOUR_S;

    while (lo > utc - 2 * EAST_S && has_begun(i, lo)) {
        hi = lo;
        lo -= HOUR_S;
    }
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;

        if (has_begun(i, mid))
            hi = mid;
        else
            lo = mid;
    }
    return hi;
}

static bool name_is_sane(const char *name)
{
    return name[0] && name[0] != '/' && !strstr(name, "..") && strlen(name) < 64 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") ==
               strlen(name);
}

/* The C library reads zones for whoever sets TZ; it is put back. */
static int fill_local(st_zone *zone, st_err *err)
{
    ST_CLEANUP(st_freep) char *before = NULL;
    const char *set = getenv("TZ");
    char path[200], text[72], q[ST_QUOTE_MAX];

    snprintf(path, sizeof path, ZONES "/%s", zone->name);
    if (access(path, R_OK) < 0)
        return st_fail(err, ST_EINVAL,
                       "billing_zone %s is not in " ZONES "; is the package tzdata installed?",
                       st_quote(q, zone->name));
    if (set)
        before = st_xstrdup(set);
    snprintf(text, sizeof text, ":%s", zone->name);
    setenv("TZ", text, 1);
    tzset();
    for (int i = 0; i <= MONTHS; i++)
        zone->edge[i] = local_edge_s(i) * 1000;
    if (before)
        setenv("TZ", before, 1);
    else
        unsetenv("TZ");
    tzset();
    return 0;
}

int st_zone_new(const char *name, st_zone **ret, st_err *err)
{
    ST_CLEANUP(st_zone_freep) st_zone *zone = st_xcalloc(1, sizeof *zone);
    char q[ST_QUOTE_MAX];
    int r = 0;

    if (!name_is_sane(name))
        return st_fail(err, ST_EINVAL, "billing_zone %s is no name of a time zone",
                       st_quote(q, name));
    snprintf(zone->name, sizeof zone->name, "%s", name);
    if (strncmp(name, "test-", 5) == 0) {
        r = st_parse_i64(name + 5, 1, 86400, &zone->month_ms, err);
        zone->month_ms *= 1000;
    } else if (strcmp(name, "UTC") != 0)
        r = fill_local(zone, err);
    else
        for (int i = 0; i <= MONTHS; i++)
            zone->edge[i] = utc_edge_s(i) * 1000;
    if (r < 0)
        return r;
    *ret = ST_TAKE(zone);
    return 0;
}

void st_zone_free(st_zone *zone)
{
    free(zone);
}

const char *st_zone_name(const st_zone *zone)
{
    return zone->name;
}

/* ---- asking --------------------------------------------------------------------------------- */

static void set_name(st_period *p, unsigned year, unsigned month0)
{
    snprintf(p->name, sizeof p->name, "%04u-%02u", year % 10000u, month0 % 12u + 1u);
}

/* Months of a test: numbered, and called as if they were real. */
static void made_up(const st_zone *zone, int64_t at_ms, st_period *ret)
{
    int64_t k = at_ms / zone->month_ms - (at_ms % zone->month_ms < 0);

    set_name(ret, 1000 + (unsigned)((k / 12 % 9000 + 9000) % 9000), (unsigned)((k % 12 + 12) % 12));
    ret->from_ms = k * zone->month_ms;
    ret->to_ms = ret->from_ms + zone->month_ms;
}

void st_zone_month(const st_zone *zone, int64_t at_ms, st_period *ret)
{
    int lo = 0, hi = MONTHS;

    if (zone->month_ms > 0) {
        made_up(zone, at_ms, ret);
        return;
    }
    /* Outside the table: clocks of tests, and of machines without a battery. */
    if (at_ms < zone->edge[0] || at_ms >= zone->edge[MONTHS]) {
        bool early = at_ms < zone->edge[0];

        snprintf(ret->name, sizeof ret->name, early ? "1970-01" : "9999-12");
        ret->from_ms = early ? ST_MIN(at_ms, 0) : zone->edge[MONTHS];
        ret->to_ms = early ? zone->edge[0] : INT64_MAX;
        return;
    }
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;

        if (zone->edge[mid] <= at_ms)
            lo = mid;
        else
            hi = mid;
    }
    set_name(ret, FIRST_YEAR + (unsigned)lo / 12, (unsigned)lo % 12);
    ret->from_ms = zone->edge[lo];
    ret->to_ms = zone->edge[lo + 1];
}

void st_zone_after(const st_zone *zone, int64_t from_ms, st_period *ret)
{
    st_zone_month(zone, from_ms, ret);
    if (zone->month_ms == 0 && ret->to_ms - from_ms < SHORT_MS && ret->to_ms < INT64_MAX)
        st_zone_month(zone, ret->to_ms, ret);
    ret->from_ms = from_ms;
}

int64_t st_zone_midnight(int64_t after_ms)
{
    int64_t day = after_ms / DAY_MS - (after_ms % DAY_MS < 0);

    return (day + 1) * DAY_MS;
}
