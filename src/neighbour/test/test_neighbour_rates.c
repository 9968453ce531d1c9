/* How often the watch on neighbours is wrong, and how often and how soon it is right, over many seeds.
 *
 *   neighbour_rates [DAYS [SEEDS]]    job-days without a guilty neighbour; arrivals of a guilty one, for each factor
 *
 * Prints a table; exits 1 where a bar of doc/dev/neighbour.md is missed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/mem.h"
#include "neighbour/test/world.h"

#define DAY_MS INT64_C(86400000)

typedef struct tally {
    int suspected, pardoned, confirmed, acted, incidents;
} tally;

static void count(world *w, tally *t)
{
    st_nb_note v[64];
    size_t n = st_nb_notes(w->nb, v, ST_ARRAY_LEN(v));

    for (size_t i = 0; i < n; i++) {
        t->suspected += v[i].kind == ST_NB_SUSPECTED;
        t->pardoned += v[i].kind == ST_NB_PARDONED;
        t->confirmed += v[i].kind == ST_NB_CONFIRMED;
        t->acted += v[i].kind == ST_NB_ACTED;
        t->incidents += v[i].kind == ST_NB_INCIDENT;
    }
}

/* A day with neighbours that come and go and slow nobody, and a host that is slow at times: nobody is to be blamed. */
static tally innocent_day(world *w, uint64_t seed)
{
    tally t = {0};
    uint64_t id = 2;
    int64_t next = 60000;

    world_init(w, seed);
    w->per_day = 24;
    while (w->now_ms < DAY_MS) {
        if (w->now_ms >= next) {
            int i = w->ntask < 6 ? w->ntask++ : (int)(id % 6);

            w->task[i] =
                (world_task){.id = id++,
                             .from_ms = w->now_ms,
                             .to_ms = w->now_ms + 60000 + st_rng_range(&w->rng, 0, 3600000),
                             .factor = 1 + 0.05 * st_rng_unit(&w->rng),
                             .eased = 1,
                             .part = 0.15 + 0.4 * st_rng_unit(&w->rng)};
            next = w->now_ms + 1000 + st_rng_range(&w->rng, 0, 3600000);
        }
        world_tick(w);
        count(w, &t);
    }
    world_done(w);
    return t;
}

typedef struct found {
    bool confirmed, cured, innocent_acted;
    int touched; /* innocents that were paused for a moment */
    int64_t ms;  /* from its arrival until it was confirmed */
    int64_t cured_ms;
} found;

/* Two that slow nobody, a guilty one, and a third innocent two seconds behind it. */
static found guilty(world *w, uint64_t seed, double factor)
{
    found f = {0};
    int64_t at;

    world_init(w, seed);
    for (uint64_t id = 2; id < 4; id++)
        world_add(w, (world_task){.id = id, .to_ms = DAY_MS, .factor = 1, .eased = 1, .part = 0.2});
    at = 120000 + st_rng_range(&w->rng, 0, 5000);
    world_add(w, (world_task){.id = 9,
                              .from_ms = at,
                              .to_ms = DAY_MS,
                              .factor = factor,
                              .eased = ST_MIN(factor, 1.08),
                              .part = 0.5});
    world_add(
        w,
        (world_task){
            .id = 10, .from_ms = at + 2000, .to_ms = DAY_MS, .factor = 1, .eased = 1, .part = 0.3});
    while (w->now_ms < at + 120000 && !f.cured) {
        st_nb_note v[64];
        size_t n;

        world_tick(w);
        n = st_nb_notes(w->nb, v, ST_ARRAY_LEN(v));
        for (size_t i = 0; i < n; i++) {
            if (v[i].kind == ST_NB_CONFIRMED && v[i].suspect == 9 && !f.confirmed) {
                f.confirmed = true;
                f.ms = v[i].at_ms - at;
            }
            f.innocent_acted |= v[i].kind == ST_NB_ACTED && v[i].suspect != 9;
            f.touched += v[i].kind == ST_NB_PARDONED && v[i].suspect != 9;
            if (v[i].kind == ST_NB_VERIFIED && v[i].suspect == 9) {
                f.cured = true;
                f.cured_ms = v[i].at_ms - at;
            }
        }
    }
    world_done(w);
    return f;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static const double factors[] = {1.0, 1.3, 1.5, 2.2, 6.0};
    int days = argc > 1 ? atoi(argv[1]) : 4, seeds = argc > 2 ? atoi(argv[2]) : 100, bad = 0;
    world *w = st_xcalloc(1, sizeof *w);
    int64_t *ms = st_xcalloc((size_t)ST_MAX(seeds, 1), sizeof *ms);
    tally sum = {0};
    int wrong_days = 0;

    for (int i = 0; i < days; i++) {
        tally t = innocent_day(w, (uint64_t)i + 1);

        sum.suspected += t.suspected;
        sum.pardoned += t.pardoned;
        sum.confirmed += t.confirmed;
        sum.acted += t.acted;
        sum.incidents += t.incidents;
        wrong_days += t.confirmed > 0;
    }
    printf("days=%d suspected=%d pardoned=%d confirmed=%d incidents=%d wrong_days=%d "
           "false_percent=%.2f\n",
           days, sum.suspected, sum.pardoned, sum.confirmed, sum.incidents, wrong_days,
           days ? 100.0 * sum.confirmed / days : 0);
    bad += sum.confirmed * 100 > days && (days >= 100 || sum.confirmed > 0);
    for (size_t k = 0; k < ST_ARRAY_LEN(factors); k++) {
        int confirmed = 0, cured = 0, within = 0, wrong = 0, touched = 0;

        for (int i = 0; i < seeds; i++) {
            found f = guilty(w, 1000000 + (uint64_t)i, factors[k]);

            confirmed += f.confirmed;
            wrong += f.innocent_acted;
            touched += f.touched;
            if (f.cured)
                ms[cured++] = f.cured_ms;
            within += f.cured && f.cured_ms < 10000;
        }
        qsort(ms, (size_t)cured, sizeof *ms, by_size);
        printf("factor=%.1f seeds=%d found_percent=%.1f cured_percent=%.1f cured_p50_ms=%lld "
               "cured_p95_ms=%lld "
               "within_10s_percent=%.1f innocent_acted=%d innocents_paused=%d\n",
               factors[k], seeds, 100.0 * confirmed / seeds, 100.0 * cured / seeds,
               cured ? (long long)ms[cured / 2] : -1, cured ? (long long)ms[cured * 95 / 100] : -1,
               100.0 * within / seeds, wrong, touched);
        bad += factors[k] > 1.4 && confirmed * 100 < seeds * 95;
        bad += wrong > 0;
    }
    free(ms);
    free(w);
    return bad ? 1 : 0;
}
