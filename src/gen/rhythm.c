/*
 * When people submit: weights for every hour of the week, and the rush before deadlines. Hour 0 is
 * Monday, midnight; everybody lives in one time zone.
 */
#include "gen/plan.h"

#define DEADLINE_EVERY_DAYS 9
#define RUSH_MS             (60 * ST_GEN_HOUR_MS)

/* Of working people, by the hour of the day. */
static const uint8_t day_curve[24] = {14, 10, 8,  6,   5,  6,  10, 22, 48, 80, 96, 100,
                                      84, 88, 98, 100, 95, 84, 66, 50, 42, 36, 28, 20};
/* Of the days of the week, in per cent. */
static const uint8_t week_curve[7] = {92, 100, 100, 98, 90, 34, 30};

static uint32_t weight(st_gen_rhythm rhythm, int64_t hour)
{
    uint32_t day = day_curve[hour % 24], week = week_curve[hour / 24 % 7];

    switch (rhythm) {
    case ST_GEN_OFFICE:
        return (day > 20 ? day - 18 : 2) * (week > 50 ? week : week / 3);
    case ST_GEN_WORKING:
        return (day + 25) * week;
    default:
        return (day / 4 + 75) * (week / 4 + 75);
    }
}

void st_gen_make_rhythm(st_gen_plan *p)
{
    for (int r = 0; r < ST_GEN_RHYTHM_COUNT; r++) {
        uint32_t sum = 0;

        st_vec_reserve(&p->hours[r], (size_t)p->o->days * 24);
        for (int64_t hour = 0; hour < p->o->days * 24; hour++) {
            sum += weight((st_gen_rhythm)r, hour);
            st_vec_push(&p->hours[r], sum);
        }
    }
    for (int64_t n = p->o->days / DEADLINE_EVERY_DAYS + 1; n > 0; n--) {
        /* On some day's last minute; the first days cannot have one. */
        int64_t day = st_rng_range(&p->rng, ST_MIN(3, p->o->days), p->o->days);

        st_vec_push(&p->deadlines_ms, day * ST_GEN_DAY_MS);
    }
}

int64_t st_gen_when(st_gen_plan *p, st_gen_rhythm rhythm)
{
    const uint32_t *sums = p->hours[rhythm].v;
    size_t lo = 0, hi = p->hours[rhythm].n - 1;
    uint64_t x = st_rng_below(&p->rng, sums[hi]);

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (sums[mid] > x)
            hi = mid;
        else
            lo = mid + 1;
    }
    return (int64_t)lo * ST_GEN_HOUR_MS +
           st_rng_range(&p->rng, 0, ST_GEN_HOUR_MS / 1000 - 1) * 1000;
}

int64_t st_gen_before_deadline(st_gen_plan *p)
{
    int64_t deadline_ms = p->deadlines_ms.v[st_rng_below(&p->rng, p->deadlines_ms.n)];
    /* The smaller of two draws: the nearer, the more. */
    int64_t a = st_rng_range(&p->rng, 1, RUSH_MS / 1000),
            b = st_rng_range(&p->rng, 1, RUSH_MS / 1000);

    return ST_MAX(deadline_ms - ST_MIN(a, b) * 1000, 0);
}
