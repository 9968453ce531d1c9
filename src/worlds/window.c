/*
 * Windows of jobs in random worlds, from a stream of their own (book.c says why).
 */
#include "base/macros.h"
#include "worlds/worlds.h"

#define MINUTE INT64_C(60000)

/* Some booking of a series of the job's account; 0 none. */
static uint64_t some_slot(st_fuzz_gen *gen, const char *account)
{
    const st_core *core = st_fuzz_run_core(gen->run);
    int32_t id = st_tree_find(st_core_tree(core), account);
    size_t n = st_core_nbookings(core), at = n ? st_rng_below(&gen->window_rng, n) : 0;
    for (size_t i = 0; id >= 0 && i < n; i++) {
        const st_booking *b = st_core_booking_at(core, (at + i) % n);
        if (b->series && st_tree_within(st_core_tree(core), id, b->account))
            return b->series;
    }
    return 0;
}

/* Perhaps a deadline: the numbers of what is kept for hard ones are those of bookings. */
static void add_deadline(st_fuzz_gen *gen, st_job_spec *job)
{
    st_rng *rng = &gen->window_rng;
    const st_policy *p = st_core_policy(st_fuzz_run_core(gen->run));
    if (!gen->books || !st_rng_chance(rng, 1, 3))
        return;
    job->hard = st_rng_chance(rng, 2, 3);
    if (job->hard && job->limit_ms == ST_TIME_NEVER)
        job->limit_ms = 10 * MINUTE;
    int64_t need_ms = job->limit_ms == ST_TIME_NEVER ? 0 : job->limit_ms;
    job->by_ms = ST_MAX(gen->now, job->begin_ms) + need_ms + p->notice_ms + p->grace_ms +
                 2 * MINUTE + st_rng_range(rng, -MINUTE, 30 * MINUTE);
    if (!job->hard)
        return;
    job->hold = gen->next_booking++;
    job->booking = job->series = 0;
    job->end_by_ms = 0;
    job->shape.level = ST_LEVEL_WHOLE;
}

void st_fuzz_window(st_fuzz_gen *gen, st_job_spec *job)
{
    st_rng *rng = &gen->window_rng;
    if (!gen->windows || st_rng_chance(rng, 1, 2))
        return;
    const st_policy *p = st_core_policy(st_fuzz_run_core(gen->run));
    uint64_t slot = job->account ? some_slot(gen, job->account) : 0;
    if (slot && st_rng_chance(rng, 2, 3)) {
        job->series = slot;
        job->booking = 0;
        job->tasks = 1;
        job->topo = ST_TOPO_NONE;
    }
    if (st_rng_chance(rng, 1, 2))
        job->begin_ms = gen->now + st_rng_range(rng, -MINUTE, 10 * MINUTE);
    int64_t from_ms = ST_MAX(gen->now, job->begin_ms);
    if (st_rng_chance(rng, 1, 2))
        job->end_by_ms = from_ms + p->notice_ms + p->grace_ms + st_rng_range(rng, -5, 20 * MINUTE);
    job->begin_ms = ST_MAX(job->begin_ms, 0);
    job->end_by_ms = ST_MAX(job->end_by_ms, 0);
    add_deadline(gen, job);
}
