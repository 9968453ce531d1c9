/*
 * Fragmentation: the measure against its definition, written out class by class; the index against
 * a visit to every node; and what the choice is meant to do.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "base/testing.h"
#include "place/frag.h"
#include "place/frag_state.h"

#define TYPES 3

typedef struct placed {
    st_frag_ask ask;
    st_frag_spot spot;
} placed;

/* CPU per GPU is a multiple of 256 milli, where the table of ratios has its points. */
static st_frag_ask random_ask(st_rng *rng)
{
    static const int32_t parts[] = {125, 250, 500, 625, 875, 1000, 1000};
    st_frag_ask ask = {.ram_mib = st_rng_range(rng, 0, 8) * 1024};
    int64_t steps = st_rng_range(rng, 1, 80);

    if (st_rng_chance(rng, 1, 6)) {
        ask.cpu_m = (int32_t)steps * 500;
        ask.types = ~UINT64_C(0);
        return ask;
    }
    ask.gpus = st_rng_chance(rng, 1, 6) ? (int32_t)st_rng_range(rng, 2, 8) : 1;
    ask.gpu_m = ask.gpus > 1 ? 1000 : parts[st_rng_below(rng, ST_ARRAY_LEN(parts))];
    ask.cpu_m = (int32_t)(ask.gpus * ask.gpu_m / 125 * 32 * steps);
    ask.types = st_rng_chance(rng, 1, 2) ? ~UINT64_C(0) : st_rng_below(rng, 1 << TYPES);
    return ask;
}

static int32_t add_random(st_frag *f, st_rng *rng)
{
    return st_frag_add(f, (int32_t)st_rng_below(rng, TYPES),
                       (int32_t)st_rng_range(rng, 4, 96) * 1000, st_rng_range(rng, 8, 64) * 1024,
                       (int32_t)st_rng_range(rng, 0, 8));
}

/* ---- the measure, by its definition ---- */

/* What of the node one class can use, in milli-GPU. */
static int64_t usable_by(const frag_node *n, const st_frag_ask *m)
{
    int64_t usable = 0;
    int enough = 0;

    for (int i = 0; i < n->gpus; i++)
        if (n->free_m[i] >= m->gpu_m) {
            usable += n->free_m[i];
            enough++;
        }
    return n->cpu_m >= m->cpu_m && enough >= m->gpus ? usable : 0;
}

static double measure_slowly(const st_frag *f, const frag_node *n)
{
    const frag_target *t = &f->target;
    double fit = 0, weights = 0, balance = 0, gpus = 0;

    for (int32_t i = 0; i < t->n; i++) {
        const frag_typical *m = &t->typical[i];
        double gpu_m = (double)m->ask.gpus * m->ask.gpu_m, weight = (double)m->weight;
        double carried = (double)n->cpu_m / (m->ask.cpu_m / gpu_m);

        if (carried < n->total_m)
            balance += weight * gpu_m * (n->total_m - carried);
        gpus += weight * gpu_m;
        if (m->ask.types >> n->type & 1) {
            fit += weight * (double)usable_by(n, &m->ask);
            weights += weight;
        }
    }
    return (n->total_m - (weights > 0 ? fit / weights : 0)) / 2 + (gpus > 0 ? balance / gpus : 0);
}

static void test_measure(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        st_frag *f = st_frag_new();
        st_frag_spot spot;
        st_rng rng;

        st_rng_seed(&rng, seed);
        for (int i = 0; i < 20; i++)
            add_random(f, &rng);
        for (int i = 0; i < 130; i++) {
            st_frag_ask ask = random_ask(&rng);

            if (st_frag_choose(f, st_frag_learn(f, &ask), &spot))
                st_frag_take(f, &ask, &spot);
        }
        for (int32_t i = 0; i < 20; i++) {
            double want = measure_slowly(f, &f->nodes.v[i]);
            double diff = (double)st_frag_measure(f, i) - want;

            /* Shares are cut off at 1/65536, for each of at most 128 classes and 8000 milli. */
            if (diff < -33 || diff > 9)
                fail_msg("seed %d node %d: %d, wanted %.1f", (int)seed, (int)i,
                         (int)st_frag_measure(f, i), want);
        }
        st_frag_free(f);
    }
}

/* ---- the index ---- */

/* The least increase of the node's measure over all its GPUs, on copies of the node. */
static int16_t score_slowly(const st_frag *f, const frag_node *n, const st_frag_ask *ask)
{
    int64_t best = INT64_MAX;

    if (n->cpu_m < ask->cpu_m || n->ram_mib < ask->ram_mib ||
        (ask->gpus > 0 && !(ask->types >> n->type & 1)))
        return ST_FRAG_NOWHERE;
    for (int from = 0; from < ST_MAX(n->gpus, 1); from++) {
        frag_node after = *n;
        int32_t left = ask->gpus;

        for (int i = from; i < n->gpus && left > 0; i++)
            if (after.free_m[i] >= ask->gpu_m) {
                after.free_m[i] = (int16_t)(after.free_m[i] - ask->gpu_m);
                left--;
            }
        if (left > 0)
            continue;
        after.cpu_m -= ask->cpu_m;
        after.total_m -= ask->gpus * ask->gpu_m;
        best = ST_MIN(best, st_frag_measure_raw(f, &after) - st_frag_measure_raw(f, n));
    }
    return best == INT64_MAX ? (int16_t)ST_FRAG_NOWHERE : st_frag_steps(best);
}

static int32_t choose_slowly(const st_frag *f, const st_frag_ask *ask)
{
    int32_t best = INT32_MAX, node = -1;

    for (int32_t i = 0; i < (int32_t)f->nodes.n; i++) {
        const frag_node *n = &f->nodes.v[i];
        int16_t score = score_slowly(f, n, ask);

        if (score != ST_FRAG_NOWHERE && score + st_frag_price(f, ask, n->type) < best) {
            best = score + st_frag_price(f, ask, n->type);
            node = i;
        }
    }
    return node;
}

/* One step of a random life: nodes come, work leaves, someone else changes a node. */
static void disturb(st_frag *f, st_rng *rng, placed *all, int *n)
{
    if (st_rng_chance(rng, 1, 40))
        add_random(f, rng);
    if (st_rng_chance(rng, 1, 30)) {
        int32_t node = add_random(f, rng);
        int16_t free_m[ST_FRAG_GPUS_MAX] = {1000, 0, 375, 1000, 500, 1000, 0, 1000};

        st_frag_set(f, node, 12000, 4096, free_m);
    }
    if (*n > 0 && st_rng_chance(rng, 1, 3)) {
        int at = (int)st_rng_below(rng, (uint64_t)*n);

        st_frag_give(f, &all[at].ask, &all[at].spot);
        all[at] = all[--*n];
    }
}

static void play_index(uint64_t seed, int steps, int nodes)
{
    st_frag *f = st_frag_new();
    placed *all = calloc((size_t)steps, sizeof(*all));
    st_frag_ask asks[12];
    int n = 0;
    st_rng rng;

    st_rng_seed(&rng, seed);
    for (int i = 0; i < nodes; i++)
        add_random(f, &rng);
    for (int i = 0; i < 12; i++)
        asks[i] = random_ask(&rng);
    for (int step = 0; step < steps; step++) {
        st_frag_ask ask =
            st_rng_chance(&rng, 1, 10) ? random_ask(&rng) : asks[st_rng_below(&rng, 12)];
        int32_t cls, want;
        st_frag_spot spot = {-1, 0};

        disturb(f, &rng, all, &n);
        cls = st_frag_learn(f, &ask);
        want = choose_slowly(f, &ask);
        if (st_frag_choose(f, cls, &spot)) {
            assert_int_equal(__builtin_popcount(spot.devs), ask.gpus);
            st_frag_take(f, &ask, &spot);
            all[n++] = (placed){ask, spot};
        }
        if (spot.node != want)
            fail_msg("seed %d step %d: node %d, wanted %d", (int)seed, step, (int)spot.node,
                     (int)want);
    }
    free(all);
    st_frag_free(f);
}

static void test_index(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        play_index(seed, 300, (int)seed % 7 * 5);
    play_index(1000, 2000, 200);
}

/* ---- what it is for ---- */

static void learn(st_frag *f, int times, st_frag_ask ask)
{
    for (int i = 0; i < times; i++)
        st_frag_learn(f, &ask);
}

static int32_t choose(st_frag *f, st_frag_ask ask)
{
    st_frag_spot spot = {-1, 0};

    return st_frag_choose(f, st_frag_learn(f, &ask), &spot) ? spot.node : -1;
}

static void test_contested_type(void **state)
{
    const st_frag_ask picky = {1024, 4000, 1, 1000, 1}, any = {1024, 4000, 1, 1000, ~UINT64_C(0)};
    st_frag *f = st_frag_new();

    (void)state;
    st_frag_add(f, 0, 64000, 65536, 8);
    st_frag_add(f, 1, 64000, 65536, 8);
    /* Nothing is known yet: the lower id. */
    assert_int_equal(choose(f, any), 0);
    learn(f, 100, picky);
    learn(f, 100, any);
    assert_int_equal(choose(f, any), 1);
    assert_int_equal(choose(f, picky), 0);
    st_frag_free(f);
}

static void test_cpu_beside_gpus(void **state)
{
    const st_frag_ask job = {1024, 8000, 1, 1000, ~UINT64_C(0)};
    const st_frag_ask cpu_only = {1024, 16000, 0, 0, ~UINT64_C(0)};
    st_frag *f = st_frag_new();

    (void)state;
    /* The first node's CPU is needed for its GPUs, the second has some to spare. */
    st_frag_add(f, 0, 64000, 65536, 8);
    st_frag_add(f, 0, 96000, 65536, 8);
    learn(f, 100, job);
    assert_int_equal(choose(f, cpu_only), 1);
    st_frag_free(f);
}

static void test_whole_gpus_are_kept(void **state)
{
    const st_frag_ask eight = {1024, 8000, 8, 1000, ~UINT64_C(0)};
    const st_frag_ask one = {1024, 1000, 1, 1000, ~UINT64_C(0)};
    const int16_t used[8] = {0, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
    st_frag *f = st_frag_new();

    (void)state;
    st_frag_add(f, 0, 64000, 65536, 8);
    st_frag_add(f, 0, 64000, 65536, 8);
    st_frag_set(f, 1, 63000, 64512, used);
    learn(f, 50, eight);
    learn(f, 50, one);
    assert_int_equal(choose(f, one), 1);
    assert_int_equal(choose(f, eight), 0);
    st_frag_free(f);
}

static void test_classes_are_bounded(void **state)
{
    const st_frag_ask frequent = {1024, 1000, 1, 500, ~UINT64_C(0)};
    st_frag *f = st_frag_new();
    st_frag_spot spot;
    int32_t first;

    (void)state;
    st_frag_add(f, 0, 64000, 65536, 8);
    first = st_frag_learn(f, &frequent);
    learn(f, 100, frequent);
    for (int i = 0; i < 3 * ST_FRAG_CLASSES; i++) {
        st_frag_ask rare = {1024, 2000 + i, 1, 1000, ~UINT64_C(0)};

        assert_true(st_frag_choose(f, st_frag_learn(f, &rare), &spot));
    }
    assert_int_equal(f->nclasses, ST_FRAG_CLASSES);
    assert_int_equal(st_frag_learn(f, &frequent), first);
    st_frag_free(f);
}

static void test_counts_fade(void **state)
{
    const st_frag_ask once = {1024, 1000, 1, 500, 1}, often = {1024, 1000, 0, 0, 1};
    st_frag *f = st_frag_new();
    int32_t cls;

    (void)state;
    st_frag_add(f, 0, 64000, 65536, 8);
    cls = st_frag_learn(f, &once);
    learn(f, 16, often);
    assert_int_equal(f->target.n, 1);
    learn(f, 4 * ST_FRAG_HALVE, often);
    assert_int_equal(f->classes[cls].weight, 0);
    assert_int_equal(f->target.n, 0);
    assert_int_equal(choose(f, once), 0);
    st_frag_free(f);
}

static void test_nothing_fits(void **state)
{
    st_frag *f = st_frag_new();

    (void)state;
    assert_int_equal(choose(f, (st_frag_ask){0, 0, 0, 0, 0}), -1);
    st_frag_add(f, 0, 1000, 1024, 1);
    assert_int_equal(choose(f, (st_frag_ask){0, 0, 2, 1000, 1}), -1);
    assert_int_equal(choose(f, (st_frag_ask){0, 1001, 1, 1000, 1}), -1);
    assert_int_equal(choose(f, (st_frag_ask){1025, 0, 1, 1000, 1}), -1);
    assert_int_equal(choose(f, (st_frag_ask){0, 0, 1, 1000, 2}), -1);
    assert_int_equal(choose(f, (st_frag_ask){1024, 1000, 1, 1000, 1}), 0);
    st_frag_free(f);
    st_frag_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_contested_type),
        cmocka_unit_test(test_cpu_beside_gpus),
        cmocka_unit_test(test_whole_gpus_are_kept),
        cmocka_unit_test(test_classes_are_bounded),
        cmocka_unit_test(test_counts_fade),
        cmocka_unit_test(test_nothing_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
