/*
 * A seed from beginning to end, and a tape again.
 */
#include "worlds/worlds.h"

#define BOOK_SEEDS  10000000 /* half of the worlds behind have bookings */
#define PLAIN_SEEDS 10000    /* the worlds of these are as they were */
#define DRAIN_SEEDS 20000000 /* in those behind nodes drain by a time */
#define PICK_SEEDS  25000000 /* in those behind jobs choose among nodes as well */
#define FIRST_SEEDS 1000000  /* likewise, with what came next */
#define FLOW_SEEDS  30000000 /* in all behind jobs wait for others */
#define GPU_SEEDS \
    35000000 /* in all behind single GPUs fail; those with odd numbers have bookings instead */

/* What more may be the matter with a world, each in one of four. */
static void harder(st_fuzz_gen *gen, uint64_t seed)
{
    st_rng rng;
    st_rng_seed(&rng, seed ^ 0x68617264u);
    gen->bars = seed % 16 == 9;
    gen->flows = !gen->stream && seed > FLOW_SEEDS && !(seed > GPU_SEEDS && seed % 2 == 1);
    st_rng_seed(&gen->gpu_rng, seed ^ UINT64_C(0x67707573));
    gen->gpus = !gen->stream && seed > GPU_SEEDS;
    st_rng_seed(&gen->flow_rng, seed ^ UINT64_C(0x666c6f77));
    st_rng_seed(&gen->book_rng, seed ^ UINT64_C(0xb00c));
    gen->books = !gen->stream && !gen->flows &&
                 (seed > BOOK_SEEDS ? seed % 2 == 1 : seed <= PLAIN_SEEDS && seed % 16 == 5);
    gen->next_booking = 1;
    st_rng_seed(&gen->clock_rng, seed ^ UINT64_C(0x636c6f63));
    gen->clocks = gen->books && seed > BOOK_SEEDS && st_rng_chance(&gen->clock_rng, 1, 2);
    st_rng_seed(&gen->label_rng, seed ^ UINT64_C(0x6c61626c));
    gen->labels = gen->books && st_rng_chance(&gen->label_rng, 1, 2);
    st_rng_seed(&gen->window_rng, seed ^ UINT64_C(0x77696e64));
    gen->windows = !gen->stream && !gen->gpus && (seed <= PLAIN_SEEDS || seed > BOOK_SEEDS) &&
                   (seed % 16 == 3 || (gen->books && seed % 3 == 0));
    st_rng_seed(&gen->drain_rng, seed ^ UINT64_C(0x6472616e));
    gen->drains = !gen->stream && seed > DRAIN_SEEDS && !(gen->gpus && gen->books);
    st_rng_seed(&gen->pick_rng, seed ^ UINT64_C(0x7069636b));
    gen->picks = !gen->stream && seed > PICK_SEEDS && seed <= PICK_SEEDS + FIRST_SEEDS;
    if (seed <= PLAIN_SEEDS || gen->stream)
        return;
    gen->tight = st_rng_chance(&rng, 1, 4);
    gen->crowd = st_rng_chance(&rng, 1, 4);
    gen->storm = st_rng_chance(&rng, 1, 4);
    gen->jumps = st_rng_chance(&rng, 1, 4);
    gen->odd = st_rng_chance(&rng, 1, 4);
    if (seed <= FIRST_SEEDS)
        return;
    gen->bars = st_rng_chance(&rng, 1, 4);
    gen->pressed = st_rng_chance(&rng, 1, 4);
    gen->busy |= gen->pressed;
    gen->crowd |= gen->pressed && st_rng_chance(&rng, 1, 2);
}

/* A pass has effort for hardly anybody who waits, and half the time protections end while a round goes on. */
static void press(st_fuzz_gen *gen)
{
    st_rng rng = gen->rng;
    st_policy *p = &gen->tape->policy;
    if (!gen->pressed)
        return;
    p->claim_effort = st_rng_range(&rng, 1, 3);
    p->rebalance = 1;
    if (st_rng_chance(&rng, 1, 2))
        return;
    p->notice_ms = p->grace_ms = 0;
    p->min_run_ms = st_rng_range(&rng, 0, 20);
    p->cooldown_ms = st_rng_range(&rng, 0, 20);
    p->patience_ms = st_rng_range(&rng, 0, 20);
    p->ageing_ms = st_rng_range(&rng, 0, 20);
}

static int play_seed(uint64_t seed, int steps, const st_lens *lens, st_cover *cover, FILE *trace,
                     st_tape *ret, st_fuzz_counts *counts, st_err *err)
{
    st_fuzz_gen gen = {.tape = ret, .next_job = 1};
    st_tape_init(ret, seed);
    ret->lens = lens ? *lens : st_lens_of(seed);
    ret->cover = cover;
    st_rng_seed(&gen.rng, seed);
    gen.stream = st_rng_chance(&gen.rng, 1, 8);
    gen.busy = st_rng_chance(&gen.rng, 2, 3);
    harder(&gen, seed);
    st_fuzz_policy(&gen.rng, &ret->policy);
    press(&gen);
    if (gen.books) {
        ret->policy.as_if_alone = 0;
        ret->policy.booking_share_m = ret->policy.booking_account_share_m = 1000;
        ret->policy.booking_reserve = (int64_t)(seed % 7 == 0);
    }
    if (gen.stream) {
        ret->policy.rebalance = 0;
        ret->policy.reservations = 4;
        gen.early = st_rng_chance(&gen.rng, 2, 3);
        gen.alike = st_rng_chance(&gen.rng, 1, 2);
        if (gen.alike) { /* small and short ones would go first for ever */
            ret->policy.order = ST_ORDER_AGE;
            ret->policy.overstay_ms /= 60;
            ret->policy.lookahead = 0;
        }
        ret->policy.forecast |= gen.early;
    }
    ST_CLEANUP(st_fuzz_run_freep) st_fuzz_run *run = st_fuzz_run_new(ret);
    gen.run = run;
    st_fuzz_run_trace(run, trace);
    int rc = st_fuzz_world(&gen, err), done = 0;
    while (rc == 0 && done < steps) {
        int n;
        rc = st_fuzz_next(&gen, &n, err);
        done += n;
    }
    if (rc == 0)
        rc = st_fuzz_run_drain(run, err);
    if (counts)
        st_fuzz_run_count(run, counts);
    return rc;
}

int st_fuzz_seed(uint64_t seed, int steps, const st_lens *lens, FILE *trace, st_tape *ret,
                 st_fuzz_counts *counts, st_err *err)
{
    return play_seed(seed, steps, lens, NULL, trace, ret, counts, err);
}

int st_fuzz_seed_met(uint64_t seed, int steps, st_cover *cover, FILE *trace, st_tape *ret,
                     st_fuzz_counts *counts, st_err *err)
{
    return play_seed(seed, steps, NULL, cover, trace, ret, counts, err);
}

static int play_tape(const st_tape *tape, const uint8_t *keep, FILE *trace, uint8_t *ret_refused,
                     st_fuzz_counts *counts, st_err *err)
{
    st_tape part = *tape;
    ST_VEC(size_t) origin = {0};
    part.list.v = NULL;
    part.list.n = part.list.cap = 0;
    for (size_t i = 0; i < tape->list.n; i++) {
        if (keep && !keep[i])
            continue;
        st_vec_push(&part.list, tape->list.v[i]);
        st_vec_push(&origin, i);
    }
    ST_CLEANUP(st_fuzz_run_freep) st_fuzz_run *run = st_fuzz_run_new(&part);
    st_fuzz_run_trace(run, trace);
    int rc = 0;
    for (size_t from = 0, to; rc == 0 && from < part.list.n; from = to) {
        to = from + 1;
        while (to < part.list.n && part.list.v[to].together &&
               part.list.v[to].at_ms == part.list.v[from].at_ms)
            to++;
        rc = st_fuzz_run_moment(run, from, to, err);
    }
    if (rc == 0)
        rc = st_fuzz_run_drain(run, err);
    if (counts)
        st_fuzz_run_count(run, counts);
    for (size_t i = 0; ret_refused && i < origin.n; i++)
        ret_refused[origin.v[i]] = st_fuzz_run_refused(run, i);
    st_vec_free(&origin);
    st_vec_free(&part.list);
    return rc;
}

int st_fuzz_replay(const st_tape *tape, const uint8_t *keep, FILE *trace, uint8_t *ret_refused,
                   st_err *err)
{
    return play_tape(tape, keep, trace, ret_refused, NULL, err);
}

int st_fuzz_play(const st_tape *tape, FILE *trace, st_fuzz_counts *counts, st_err *err)
{
    return play_tape(tape, NULL, trace, NULL, counts, err);
}
