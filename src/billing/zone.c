/*
 * Months of a zone (billing/zone.h).
 */
#include "billing/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "calendar/calendar.h"
#include "zones/zones.h"

#define FIRST_YEAR 2015
#define LAST_YEAR  2200
#define MONTHS     ((LAST_YEAR - FIRST_YEAR) * 12)
#define DAY_S      INT64_C(86400)
#define DAY_MS     (DAY_S * 1000)
#define SHORT_MS   (20 * DAY_MS) /* no month is shorter */

struct st_zone {
    char name[64];
    int64_t month_ms;         /* made-up months, or 0 */
    int64_t edge[MONTHS + 1]; /* ms: where month i since FIRST_YEAR begins */
};

/* ---- calendar ------------------------------------------------------------------------------- */

static int64_t utc_edge_s(int i)
{
    const st_date first = {FIRST_YEAR + i / 12, i % 12 + 1, 1};

    return st_date_to_day(&first) * DAY_S;
}

/* ---- the system's zones --------------------------------------------------------------------- */

/* Where midnight happens twice the month begins with the first, where clocks skip it when they do. */
static int64_t local_edge_s(const st_tz *tz, int i)
{
    st_tz_moment m = st_tz_resolve(tz, utc_edge_s(i));

    return m.kind == ST_TZ_GAP ? m.second_s : m.first_s;
}

static int fill_local(st_zone *zone, st_err *err)
{
    ST_CLEANUP(st_zones_freep) st_zones *zones = st_zones_new(ST_ZONES_DIR);
    const st_tz *tz = NULL;
    char q[ST_QUOTE_MAX];

    if (st_zones_get(zones, zone->name, &tz, err) < 0)
        return st_fail(err, ST_EINVAL,
                       "billing_zone %s is not in " ST_ZONES_DIR
                       "; is the package tzdata installed?",
                       st_quote(q, zone->name));
    for (int i = 0; i <= MONTHS; i++)
        zone->edge[i] = local_edge_s(tz, i) * 1000;
    return 0;
}

int st_zone_new(const char *name, st_zone **ret, st_err *err)
{
    ST_CLEANUP(st_zone_freep) st_zone *zone = st_xcalloc(1, sizeof *zone);
    char q[ST_QUOTE_MAX];
    int r = 0;

    if (!st_tz_name_is_sane(name))
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
