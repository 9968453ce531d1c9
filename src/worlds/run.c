/*
 * Playing a tape: what is due, what the engine says, what the tape says.
 *
 * The engine is simulated and has no state of its own: what it would say next follows from the
 * jobs and from what the tape knows about them. Each moment goes through fuzz_moment.c.
 */
#include "worlds/run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

#define BAD(...)        st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define DRAIN_STEPS_MAX 20000
#define DRAIN_STEP_MS \
    5000 /* and one more in so long: a job may run for weeks, and the order moves every few minutes */

st_fuzz_run *st_fuzz_run_new(const st_tape *tape)
{
    st_fuzz_run *run = st_xcalloc(1, sizeof *run);
    run->tape = tape;
    run->core = st_core_new(&tape->policy);
    run->watch = st_watch_new(run->core);
    if (tape->lens.metered)
        run->meter = st_fuzz_meter_new(tape->seed, tape->lens.billed);
    run->plan_of = st_idmap_new();
    st_rng_seed(&run->rng, tape->seed ^ 0x7477696eu);
    return run;
}

void st_fuzz_run_free(st_fuzz_run *run)
{
    if (!run)
        return;
    st_watch_free(run->watch);
    st_fuzz_meter_free(run->meter);
    st_core_free(run->core);
    st_core_free(run->twin);
    st_effects_done(&run->fx);
    st_effects_done(&run->twin_fx);
    st_idmap_free(run->plan_of);
    st_vec_free(&run->plans);
    st_vec_free(&run->refusals);
    st_vec_free(&run->refused_at);
    free(run);
}

st_core *st_fuzz_run_core(st_fuzz_run *run)
{
    return run->core;
}

bool st_fuzz_run_refused(const st_fuzz_run *run, size_t entry)
{
    for (size_t i = 0; i < run->refused_at.n; i++)
        if (run->refused_at.v[i] == entry)
            return true;
    return false;
}

void st_fuzz_run_trace(st_fuzz_run *run, FILE *trace)
{
    run->trace = trace;
}

void st_fuzz_run_count(const st_fuzz_run *run, st_fuzz_counts *counts)
{
    st_watch_counts seen = st_watch_counted(run->watch);
    counts->seeds++;
    counts->events += run->events;
    counts->refused += run->refused;
    counts->steps += run->steps;
    counts->starts += seen.starts;
    counts->preemptions += seen.preemptions;
    counts->hash = st_hash_u64(counts->hash, st_core_hash(run->core));
}

/* ---- the engine --------------------------------------------------------------------- */

static const st_fuzz_plan *plan_of(const st_fuzz_run *run, uint64_t id)
{
    int64_t at;
    return st_idmap_get(run->plan_of, id, &at) ? &run->plans.v[at] : NULL;
}

/* When the job ends by itself or reports its checkpoint, whichever comes first; or is gone, once it
 * was told to stop. */
static int64_t answer_ms(const st_fuzz_run *run, const st_job *job, bool *ret_saved)
{
    const st_fuzz_plan *p = plan_of(run, job->id);
    int64_t at = ST_TIME_NEVER;
    *ret_saved = false;
    if (p && job->stopping)
        return ST_MAX(job->stop_ms + p->gone_ms, run->now);
    if (!p || !st_job_on_devices(job))
        return at;
    if (p->run_ms != ST_TIME_NEVER)
        at = run->now + ST_MAX(p->run_ms - st_job_ran_ms(job, run->now), 0);
    if (job->state == ST_JOB_CHECKPOINTING) {
        int64_t saved = job->saving_ms + p->save_ms;
        *ret_saved = saved < at;
        at = ST_MIN(at, ST_MAX(saved, run->now));
    }
    return at;
}

/* When the agent of a node says what a test has found: at once, or a while later. */
static int64_t tested_ms(const st_fuzz_run *run, const st_node *node)
{
    if (node->test == node->tested || st_node_away(node))
        return ST_TIME_NEVER;
    bool slow = (node->id + node->test) % 4 == 0;
    return slow ? (run->now / 5000 + 1) * 5000 : run->now;
}

typedef ST_VEC(st_event) own_list;

/* When something is due next, for the core or from the engine. */
static int64_t due_ms(const st_fuzz_run *run)
{
    int64_t at = st_core_next_timer(run->core);
    bool saved;
    for (size_t i = 0; i < st_core_njobs(run->core); i++)
        at = ST_MIN(at, answer_ms(run, st_core_job_at(run->core, i), &saved));
    const st_fleet *fleet = st_core_fleet(run->core);
    for (size_t i = 0; i < fleet->nodes.n; i++)
        at = ST_MIN(at, tested_ms(run, fleet->nodes.v[i]));
    return at;
}

/* What the engine has to say by `at`. The core's own deadlines of that moment come first, so an
 * answer may be too late. */
static void collect_answers(const st_fuzz_run *run, int64_t at, own_list *ret)
{
    for (size_t i = 0; i < st_core_njobs(run->core); i++) {
        const st_job *job = st_core_job_at(run->core, i);
        bool saved;
        if (answer_ms(run, job, &saved) > at)
            continue;
        st_event ev = {.kind = saved           ? ST_EV_CHECKPOINTED
                               : job->stopping ? ST_EV_GONE
                                               : ST_EV_FINISH};
        if (job->stopping)
            ev.u.gone.id = job->id;
        else if (saved)
            ev.u.id = job->id;
        else
            ev.u.finish = (__typeof__(ev.u.finish)){
                .id = job->id, .failed = job->tries < plan_of(run, job->id)->fails};
        st_vec_push(ret, ev);
    }
    const st_fleet *fleet = st_core_fleet(run->core);
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[i];
        if (tested_ms(run, node) > at)
            continue;
        st_event ev = {.kind = ST_EV_TESTED};
        ev.u.tested.node = node->id;
        ev.u.tested.test = node->test;
        ev.u.tested.passed = (node->id + 3 * node->test) % 5 != 0;
        ev.u.tested.finding.kind = node->test % 7 == 6 ? ST_FAULT_CHECKER : ST_FAULT_TEST;
        ev.u.tested.finding.gpu = -1;
        st_vec_push(ret, ev);
    }
}

static int play_events(st_fuzz_run *run, const own_list *own, int64_t at, st_err *err)
{
    st_event_list events = {0};
    for (size_t i = 0; i < own->n; i++)
        st_vec_push(&events, &own->v[i]);
    int rc = st_fuzz_moment(run, &events, at, err);
    st_vec_free(&events);
    return rc;
}

/* Play all that is due up to a time. */
static int play_until(st_fuzz_run *run, int64_t until, int *steps, st_err *err)
{
    int64_t from = run->now;
    for (;;) {
        int64_t at = due_ms(run);
        if (at > until || at == ST_TIME_NEVER)
            return 0;
        if (++*steps > DRAIN_STEPS_MAX + (at - from) / DRAIN_STEP_MS)
            return BAD("rest: %d steps without an event and no end", *steps);
        own_list own = {0};
        collect_answers(run, at, &own);
        if (run->trace)
            fprintf(run->trace, "%" PRId64 "ms due, %zu answers\n", at, own.n);
        int rc = play_events(run, &own, at, err);
        st_vec_free(&own);
        if (rc < 0)
            return rc;
    }
}

/* ---- moments of a tape -------------------------------------------------------------- */

static void trace_entry(const st_fuzz_run *run, const st_tape_entry *entry)
{
    if (!run->trace)
        return;
    st_strbuf line = {0};
    st_tape_tell(entry, &line);
    fprintf(run->trace, "%s%s%s\n", st_strbuf_str(&line), entry->together ? " (together)" : "",
            entry->late ? " (late)" : "");
    st_strbuf_done(&line);
}

int st_fuzz_run_moment(st_fuzz_run *run, size_t from, size_t to, st_err *err)
{
    const st_tape *tape = run->tape;
    int steps = 0, rc = 0;
    if (from == to)
        return 0;
    int64_t at = tape->list.v[from].at_ms;
    if (!tape->list.v[from].late)
        rc = play_until(run, at - 1, &steps, err);
    if (rc < 0)
        return rc;
    own_list own = {0};
    collect_answers(run, at, &own);
    for (size_t i = from; i < to; i++) {
        const st_tape_entry *entry = &tape->list.v[i];
        st_event ev = entry->event;
        trace_entry(run, entry);
        if (ev.kind == ST_EV_NODE_STATE || ev.kind == ST_EV_AGENT)
            ev.u.node_state.node = st_fleet_node(st_core_fleet(run->core), entry->node);
        if (ev.kind == ST_EV_LABELS)
            ev.u.labels.node = st_fleet_node(st_core_fleet(run->core), entry->node);
        if (ev.kind == ST_EV_SUBMIT && !plan_of(run, ev.u.job.id)) {
            st_idmap_put(run->plan_of, ev.u.job.id, (int64_t)run->plans.n);
            st_vec_push(&run->plans, (st_fuzz_plan){entry->run_ms, entry->save_ms, entry->gone_ms,
                                                    entry->fails});
        }
        st_vec_push(&own, ev);
    }
    rc = play_events(run, &own, at, err);
    /* The tape's own come last, in order. */
    for (size_t i = 0; i < run->refusals.n; i++)
        if (run->refusals.v[i] >= own.n - (to - from))
            st_vec_push(&run->refused_at, from + run->refusals.v[i] - (own.n - (to - from)));
    st_vec_free(&own);
    return rc;
}

/* ---- the end ------------------------------------------------------------------------ */

/* Long enough for everything to run one after the other, several times over. */
static int64_t patience_ms(const st_fuzz_run *run)
{
    const st_policy *p = &run->tape->policy;
    int64_t each = p->notice_ms + ST_MAX(p->grace_ms, p->grace_limit_ms) + p->min_run_ms +
                   p->cooldown_ms + p->pause_limit_ms;
    int64_t sum = 60000;
    for (size_t i = 0; i < st_core_njobs(run->core); i++) {
        const st_job *job = st_core_job_at(run->core, i);
        const st_fuzz_plan *mine = plan_of(run, job->id);
        int64_t runs = ST_MIN(mine ? mine->run_ms : ST_TIME_NEVER, job->limit_ms);
        sum += each + (runs == ST_TIME_NEVER ? 0 : runs); /* who never ends is not waited for */
    }
    return 10 * sum;
}

static int drain_begin(st_fuzz_run *run, st_err *err)
{
    own_list own = {0};
    const st_fleet *fleet = st_core_fleet(run->core);
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        st_event ev = {.kind = ST_EV_NODE_STATE};
        ev.u.node_state.node = (int32_t)i;
        ev.u.node_state.state = ST_NODE_READY;
        if (fleet->nodes.v[i]->state != ST_NODE_READY &&
            fleet->nodes.v[i]->state != ST_NODE_REMOVED)
            st_vec_push(&own, ev);
        for (unsigned devs = fleet->nodes.v[i]->out; devs; devs &= devs - 1) {
            ev.u.node_state.part = __builtin_ctz(devs) + 1;
            st_vec_push(&own, ev);
        }
    }
    for (size_t i = 0; i < st_core_njobs(run->core); i++) {
        const st_job *job = st_core_job_at(run->core, i);
        const st_fuzz_plan *p = plan_of(run, job->id);
        st_event ev = {.kind = ST_EV_CANCEL};
        ev.u.id = job->id;
        if (job->limit_ms == ST_TIME_NEVER && (!p || p->run_ms == ST_TIME_NEVER))
            st_vec_push(&own, ev);
        st_event lift = {.kind = ST_EV_BAR};
        lift.u.bar.id = job->id;
        if ((job->barred & ~ST_BAR_IDLE) && (!st_job_on_devices(job) || job->stopping))
            st_vec_push(&own, lift);
        st_event release = {.kind = ST_EV_HOLD};
        release.u.hold.id = job->id;
        release.u.hold.by = ST_MAX(job->held_by, 1);
        if (job->held_by > 0)
            st_vec_push(&own, release);
    }
    for (size_t i = 0; i < st_core_nbookings(run->core); i++) {
        st_event ev = {.kind = ST_EV_BOOK_CANCEL};
        ev.u.booking.id = st_core_booking_at(run->core, i)->id;
        if (!st_core_booking_at(run->core, i)->over && st_core_booking_at(run->core, i)->job == 0)
            st_vec_push(&own, ev);
    }
    if (run->trace)
        fprintf(run->trace, "%" PRId64 "ms no more events\n", run->now + 1);
    int rc = play_events(run, &own, run->now + 1, err);
    st_vec_free(&own);
    return rc;
}

int st_fuzz_run_drain(st_fuzz_run *run, st_err *err)
{
    int steps = 0;
    int rc = play_until(run, run->now, &steps, err);
    if (rc == 0)
        rc = drain_begin(run, err);
    int64_t by = run->now + patience_ms(run);
    size_t live = st_core_njobs(run->core);
    int64_t before = st_watch_counted(run->watch).preemptions;
    if (rc == 0)
        rc = play_until(run, by, &steps, err);
    ST_CLEANUP(st_freep) bool *stuck = st_fuzz_flow_stuck(run->core);
    for (size_t i = 0; rc == 0 && i < st_core_njobs(run->core); i++) {
        const st_job *job = st_core_job_at(run->core, i);
        if (!stuck[i] || (st_job_on_devices(job) && !job->barred))
            rc = BAD("starvation: job %" PRIu64 " is still %s %" PRId64
                     " ms after the last event, with every node ready",
                     job->id, st_job_state_name(job->state), run->now);
    }
    int64_t more = st_watch_counted(run->watch).preemptions - before;
    if (rc == 0 && more > (int64_t)(20 + 4 * live))
        rc = BAD("flapping: %" PRId64 " preemptions among %zu jobs after the last event", more,
                 live);
    if (rc == 0)
        rc = st_fuzz_compare_twin(run, err);
    if (rc == 0 && run->meter)
        rc = st_fuzz_meter_close(run->meter, run->core, err);
    return rc;
}
