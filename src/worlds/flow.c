/*
 * Jobs that wait for others, are on hold, are tried again, and arrays with throttles, in random worlds; from a stream
 * of their own (book.c says why), in worlds of their own.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "worlds/run.h"

#define AFTERS_MAX 4

/* Any job that is there; now and then one that is not. */
static uint64_t some_live(st_fuzz_gen *gen)
{
    const st_core *core = st_fuzz_run_core(gen->run);
    size_t n = st_core_njobs(core);
    if (n == 0 || st_rng_chance(&gen->flow_rng, 1, 30))
        return st_rng_below(&gen->flow_rng, gen->next_job + 3);
    return st_core_job_at(core, st_rng_below(&gen->flow_rng, n))->id;
}

/* The array of some job; 0: it has none. */
static uint64_t some_array(st_fuzz_gen *gen)
{
    const st_job *job = st_core_job(st_fuzz_run_core(gen->run), some_live(gen));
    return job ? job->array : 0;
}

/* Whether the job must wait for one that is stuck. */
static bool behind_stuck(const st_core *core, const st_job *job, const bool *stuck)
{
    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *other = st_core_job_at(core, i);
        bool turn = job->array && other->array == job->array && !(other->barred & ST_BAR_THROTTLE);
        if (stuck[i] && (job->barred & ST_BAR_THROTTLE) && turn)
            return true;
        for (int k = 0; stuck[i] && k < job->nafters; k++)
            if (job->afters[k].id == (job->afters[k].array ? other->array : other->id))
                return true;
    }
    return false;
}

bool *st_fuzz_flow_stuck(const st_core *core)
{
    size_t n = st_core_njobs(core);
    bool *stuck = st_xcalloc(n + 1, sizeof *stuck), more = true;
    for (size_t i = 0; i < n; i++) {
        const st_job *job = st_core_job_at(core, i);
        stuck[i] = (job->barred & ~ST_BAR_IDLE) || (job->keeps && job->never) ||
                   !st_check_could_ever(core, job);
    }
    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            if (stuck[i] || !behind_stuck(core, st_core_job_at(core, i), stuck))
                continue;
            stuck[i] = more = true;
        }
    }
    return stuck;
}

static void add_afters(st_fuzz_gen *gen, st_job_spec *job)
{
    st_rng *rng = &gen->flow_rng;
    int n = (int)st_rng_range(rng, 1, AFTERS_MAX);
    st_await *list = st_arena_alloc(gen->tape->arena, AFTERS_MAX * sizeof *list);
    for (int i = 0; i < n; i++) {
        uint64_t array = st_rng_chance(rng, 1, 4) ? some_array(gen) : 0;
        list[i] = (st_await){.id = array ? array : some_live(gen),
                             .how = (st_after_how)st_rng_below(rng, ST_AFTER_COUNT),
                             .array = array != 0};
    }
    job->afters = list;
    job->nafters = n;
    job->keeps = st_rng_chance(rng, 1, 4);
}

/* One of an array that is there, or the first of a new one. */
static void add_array(st_fuzz_gen *gen, st_job_spec *job)
{
    st_rng *rng = &gen->flow_rng;
    const st_core *core = st_fuzz_run_core(gen->run);
    if (!gen->array || st_rng_chance(rng, 1, 6) || !st_core_array(core, gen->array, NULL, NULL)) {
        gen->array = job->id;
        gen->throttle = (int)st_rng_range(rng, 0, 3);
    }
    job->array = gen->array;
    job->throttle = gen->throttle;
}

void st_fuzz_flow_job(st_fuzz_gen *gen, st_tape_entry *entry)
{
    st_rng *rng = &gen->flow_rng;
    st_job_spec *job = &entry->event.u.job;
    if (!gen->flows)
        return;
    if (st_rng_chance(rng, 1, 3))
        entry->fails = (int)st_rng_range(rng, 1, 4);
    if (job->hard)
        return;
    if (st_rng_chance(rng, 1, 3))
        add_afters(gen, job);
    if (st_rng_chance(rng, 1, 8))
        job->held_by = (int)st_rng_range(rng, 1, 2);
    if (st_rng_chance(rng, 1, 3))
        add_array(gen, job);
    if (!st_rng_chance(rng, 1, 3))
        return;
    job->retry.times = (int)st_rng_range(rng, 1, 3);
    job->retry.wait_ms = st_rng_range(rng, ST_RETRY_WAIT_MIN_MS, 60000);
    job->retry.most_ms = job->retry.wait_ms * st_rng_range(rng, 1, 4);
    job->retry.timeout = st_rng_chance(rng, 1, 2);
}

static void hold(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->flow_rng;
    const st_core *core = st_fuzz_run_core(gen->run);
    uint64_t id = some_live(gen);
    for (int tries = 0; tries < 8 && st_core_njobs(core) > 0; tries++) {
        const st_job *job = st_core_job(core, id);
        if (job && (job->held_by > 0 || (job->state == ST_JOB_PENDING && tries > 3)))
            break;
        id = some_live(gen);
    }
    st_event *ev = &st_fuzz_record(gen, ST_EV_HOLD, true)->event;
    ev->u.hold.id = id;
    ev->u.hold.on = st_rng_chance(rng, 1, 2);
    ev->u.hold.by = (int)st_rng_range(rng, 1, 2);
}

void st_fuzz_flow(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->flow_rng;
    if (!gen->flows)
        return;
    if (st_rng_chance(rng, 1, 5))
        hold(gen);
    if (!st_rng_chance(rng, 1, 12))
        return;
    uint64_t array = some_array(gen);
    st_event *ev = &st_fuzz_record(gen, ST_EV_ARRAY, true)->event;
    ev->u.array.id = array ? array : st_rng_below(rng, gen->next_job + 3);
    ev->u.array.throttle = (int)st_rng_range(rng, 0, 4);
}
