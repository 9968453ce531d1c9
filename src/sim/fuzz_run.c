/*
 * Playing moments, and looking at everything afterwards.
 *
 * A moment is: the events of one time are applied, then one pass. The engine is simulated and
 * has no state of its own: what it would say next follows from the jobs and from what the tape
 * knows about them. After each moment
 *   1 the state and the effects are checked, and those who wait;
 *   2 the same moment again must change nothing;
 *   3 a twin that was saved and loaded at some earlier moment must have done the same. It never
 *     sees events that are refused, so if one leaves a trace, the two part.
 */
#include "sim/fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define BAD(...)        st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define DRAIN_STEPS_MAX 20000
#define TWIN_CHANCE     60 /* one moment in so many, saves are compared or a twin is made */

typedef struct plan {
    int64_t run_ms, save_ms;
} plan;

typedef ST_VEC(const st_event *) event_list;

struct st_fuzz_run {
    const st_tape *tape;
    st_core *core, *twin;
    st_watch *watch;
    st_effects fx, twin_fx;
    st_idmap *plan_of; /* by job, into `plans` */
    ST_VEC(plan) plans;
    int64_t now;
    st_rng rng; /* when to save; a stream of its own, so that looking changes nothing */
    int64_t events, refused, steps;
    ST_VEC(size_t) refusals;   /* which events of the last moment */
    ST_VEC(size_t) refused_at; /* which entries of the tape */
    bool must_done;
    FILE *trace;
};

st_fuzz_run *st_fuzz_run_new(const st_tape *tape)
{
    st_fuzz_run *run = st_xcalloc(1, sizeof *run);
    run->tape = tape;
    run->core = st_core_new(&tape->policy);
    run->watch = st_watch_new(run->core);
    run->plan_of = st_idmap_new();
    st_rng_seed(&run->rng, tape->seed ^ 0x7477696eu);
    return run;
}

void st_fuzz_run_free(st_fuzz_run *run)
{
    if (!run)
        return;
    st_watch_free(run->watch);
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

int64_t st_fuzz_run_now(const st_fuzz_run *run)
{
    return run->now;
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

static void trace_effects(const st_fuzz_run *run, const st_effects *fx, const char *whose)
{
    for (size_t i = 0; run->trace && i < fx->list.n; i++) {
        const st_effect *e = &fx->list.v[i];
        fprintf(run->trace, "    %s%s", whose, st_effect_name(e->kind));
        if (e->job)
            fprintf(run->trace, " %" PRIu64 " (%s)", e->job, st_class_name(e->class));
        if (e->other)
            fprintf(run->trace, " for %" PRIu64, e->other);
        if (!e->job)
            fprintf(run->trace, " account %d node %d value %" PRId64, e->account, e->node,
                    e->value);
        for (int g = 0; g < e->ngrants; g++) {
            const st_grant *grant = &fx->grants.v[e->grants_at + (size_t)g];
            fprintf(run->trace, " n%d:%#x", grant->node, (unsigned)grant->devs);
            if (grant->mig_start >= 0)
                fprintf(run->trace, "@%d", grant->mig_start);
        }
        fputc('\n', run->trace);
    }
}

/* ---- the twin ----------------------------------------------------------------------- */

static bool same_effects(const st_effects *a, const st_effects *b)
{
    if (a->list.n != b->list.n || a->grants.n != b->grants.n)
        return false;
    for (size_t i = 0; i < a->list.n; i++) {
        const st_effect *x = &a->list.v[i], *y = &b->list.v[i];
        if (x->kind != y->kind || x->job != y->job || x->other != y->other ||
            x->until_ms != y->until_ms || x->value != y->value || x->class != y->class)
            return false;
    }
    return true;
}

/* Any one byte changed, or the end cut off, must be noticed. */
static int check_damage(st_fuzz_run *run, const st_strbuf *save, st_err *err)
{
    st_strbuf bad = {0};
    st_strbuf_addn(&bad, save->s, save->n);
    size_t at = st_rng_below(&run->rng, bad.n), len = bad.n;
    bool cut = st_rng_chance(&run->rng, 1, 3);
    if (cut)
        len = at;
    else
        bad.s[at] = (char)(bad.s[at] ^ (1 << st_rng_below(&run->rng, 8)));
    st_core *core = NULL;
    st_err why = {0};
    int rc = st_core_load(bad.s, len, &core, &why);
    st_core_free(core);
    st_strbuf_done(&bad);
    if (rc < 0 && why.msg[0])
        return 0;
    return BAD("save: one of %zu bytes %s at %zu and it still loads%s", save->n,
               cut ? "is cut off" : "is wrong", at, rc < 0 ? " no sentence" : "");
}

static int make_twin(st_fuzz_run *run, st_err *err)
{
    st_strbuf first = {0}, second = {0};
    st_core *twin = NULL;
    st_err why = {0};
    int rc = 0;
    st_core_save(run->core, &first);
    if (st_core_load(first.s, first.n, &twin, &why) < 0)
        rc = BAD("save: what was just saved is refused: %s", why.msg);
    if (rc == 0) {
        st_core_save(twin, &second);
        if (first.n != second.n || memcmp(first.s, second.s, first.n) != 0)
            rc = BAD("save: saved, loaded and saved again, %zu bytes became %zu others", first.n,
                     second.n);
    }
    if (rc == 0)
        rc = check_damage(run, &first, err);
    if (rc == 0 && st_check(twin, err) < 0)
        rc = st_fail_prefix(err, "save: after loading: ");
    st_strbuf_done(&first);
    st_strbuf_done(&second);
    if (rc < 0) {
        st_core_free(twin);
        return rc;
    }
    st_core_free(run->twin);
    run->twin = twin;
    return 0;
}

static int compare_twin(st_fuzz_run *run, st_err *err)
{
    if (!run->twin)
        return 0;
    st_strbuf a = {0}, b = {0};
    st_core_save(run->core, &a);
    st_core_save(run->twin, &b);
    size_t at = 0;
    while (at < a.n && at < b.n && a.s[at] == b.s[at])
        at++;
    bool same = a.n == b.n && at == a.n;
    size_t an = a.n, bn = b.n;
    st_strbuf_done(&a);
    st_strbuf_done(&b);
    if (same)
        return 0;
    return BAD("save: a core and the one loaded from its save part: %zu and %zu bytes, different "
               "from byte %zu on",
               an, bn, at);
}

static int twin_moment(st_fuzz_run *run, const event_list *accepted, st_err *err)
{
    if (!run->twin)
        return 0;
    st_effects_clear(&run->twin_fx);
    for (size_t i = 0; i < accepted->n; i++) {
        st_err why = {0};
        if (st_core_apply(run->twin, accepted->v[i], run->now, &run->twin_fx, &why) < 0)
            return BAD("save: a loaded core refuses %s: %s", st_event_name(accepted->v[i]->kind),
                       why.msg);
    }
    st_core_pass(run->twin, run->now, &run->twin_fx);
    if (!same_effects(&run->fx, &run->twin_fx) ||
        st_core_hash(run->core) != st_core_hash(run->twin)) {
        trace_effects(run, &run->twin_fx, "twin: ");
        return BAD("determinism: a core and the one loaded from its save decide differently "
                   "(%zu and %zu effects)",
                   run->fx.list.n, run->twin_fx.list.n);
    }
    return 0;
}

/* ---- one moment --------------------------------------------------------------------- */

static int check_again(st_fuzz_run *run, st_err *err)
{
    st_event timer = {.kind = ST_EV_TIMER};
    uint64_t before = st_core_hash(run->core);
    st_err why = {0};
    size_t n = run->fx.list.n;
    if (st_core_step(run->core, &timer, run->now, &run->fx, &why) < 0)
        return BAD("fixed point: a timer is refused: %s", why.msg);
    if (run->fx.list.n != n)
        return BAD("fixed point: the same moment again gives %zu more effects, the first is %s "
                   "for job %" PRIu64,
                   run->fx.list.n - n, st_effect_name(run->fx.list.v[n].kind),
                   run->fx.list.v[n].job);
    if (st_core_hash(run->core) != before)
        return BAD("fixed point: the same moment again changes the hash");
    int64_t next = st_core_next_timer(run->core);
    if (next <= run->now)
        return BAD("timer: it is %" PRId64 " and a timer is wanted for %" PRId64, run->now, next);
    return 0;
}

static int check_must(st_fuzz_run *run, st_err *err)
{
    uint64_t id = run->tape->must_start;
    if (id == 0 || run->must_done)
        return 0;
    for (size_t i = 0; i < run->fx.list.n; i++)
        run->must_done |= run->fx.list.v[i].job == id && run->fx.list.v[i].kind == ST_FX_START;
    int64_t at;
    if (run->must_done || !st_idmap_get(run->plan_of, id, &at) ||
        run->now <= run->tape->must_by_ms || !st_core_job(run->core, id))
        return 0;
    return BAD("starvation: job %" PRIu64 " should have started by %" PRId64 ", it is %" PRId64, id,
               run->tape->must_by_ms, run->now);
}

/* What an event before it in the same moment made due at once may show; nothing else. */
static int check_refusal(const st_fuzz_run *run, const st_event *ev, const st_err *why, bool due,
                         size_t effects, uint64_t hash, st_err *err)
{
    if (run->trace)
        fprintf(run->trace, "    refused: %s\n", why->msg);
    if (!due && (run->fx.list.n != effects || st_core_hash(run->core) != hash))
        return BAD("refusal: %s is refused (%s) and has %zu effects all the same",
                   st_event_name(ev->kind), why->msg, run->fx.list.n - effects);
    if (why->code == 0 || why->msg[0] == '\0')
        return BAD("refusal: %s is refused without a sentence", st_event_name(ev->kind));
    return 0;
}

/* Apply the events, then schedule; those that are not refused go to `accepted`. Either by halves
 * or, for one event at a time when nothing else is due, as one step: the twin always goes by
 * halves, so the two ways are held against each other. */
static int apply_all(st_fuzz_run *run, const event_list *events, event_list *accepted, st_err *err)
{
    static const st_event timer = {.kind = ST_EV_TIMER};
    bool due = st_core_next_timer(run->core) <= run->now;
    bool step = !due && events->n == 1;
    int rc = 0;
    if (!step) {
        /* What is due comes first, so that a refused event has nothing to show for itself. */
        rc = st_core_apply(run->core, &timer, run->now, &run->fx, err);
        st_vec_push(accepted, &timer);
    }
    for (size_t i = 0; rc == 0 && i < events->n; i++) {
        size_t n = run->fx.list.n;
        uint64_t hash = st_core_hash(run->core);
        st_err why = {0};
        due = st_core_next_timer(run->core) <= run->now;
        run->events++;
        int refused = step ? st_core_step(run->core, events->v[i], run->now, &run->fx, &why)
                           : st_core_apply(run->core, events->v[i], run->now, &run->fx, &why);
        if (refused == 0) {
            st_vec_push(accepted, events->v[i]);
            continue;
        }
        run->refused++;
        st_vec_push(&run->refusals, i);
        rc = check_refusal(run, events->v[i], &why, due, n, hash, err);
    }
    if (rc == 0 && !step)
        st_core_pass(run->core, run->now, &run->fx);
    return rc;
}

/* Time alone decides nothing before the core's own timer says so. */
static int check_idle(const st_fuzz_run *run, const event_list *accepted, st_err *err)
{
    for (size_t i = 0; i < accepted->n; i++)
        if (accepted->v[i]->kind != ST_EV_TIMER)
            return 0;
    if (run->fx.list.n == 0)
        return 0;
    return BAD("timer: nothing was due at %" PRId64 " and yet there is %s for job %" PRIu64,
               run->now, st_effect_name(run->fx.list.v[0].kind), run->fx.list.v[0].job);
}

/* One moment, and everything that must hold after it. */
static int moment(st_fuzz_run *run, const event_list *events, int64_t now, st_err *err)
{
    event_list accepted = {0};
    run->now = ST_MAX(run->now, now);
    st_effects_clear(&run->fx);
    st_vec_clear(&run->refusals);
    run->steps++;
    bool due = st_core_next_timer(run->core) <= run->now;
    int rc = apply_all(run, events, &accepted, err);
    trace_effects(run, &run->fx, "");
    if (rc == 0)
        rc = st_check(run->core, err);
    if (rc == 0)
        rc = st_watch_step(run->watch, run->core, accepted.v, accepted.n, &run->fx, err);
    if (rc == 0)
        rc = st_watch_waiting(run->watch, run->core, err);
    if (rc == 0)
        rc = check_must(run, err);
    if (rc == 0 && !due)
        rc = check_idle(run, &accepted, err);
    if (rc == 0)
        rc = twin_moment(run, &accepted, err);
    if (rc == 0)
        rc = check_again(run, err);
    if (rc == 0 && st_rng_chance(&run->rng, 1, TWIN_CHANCE)) {
        rc = compare_twin(run, err);
        if (rc == 0)
            rc = make_twin(run, err);
    }
    st_vec_free(&accepted);
    return rc;
}

/* ---- the engine --------------------------------------------------------------------- */

static const plan *plan_of(const st_fuzz_run *run, uint64_t id)
{
    int64_t at;
    return st_idmap_get(run->plan_of, id, &at) ? &run->plans.v[at] : NULL;
}

/* When the job ends by itself or reports its checkpoint, whichever comes first. */
static int64_t answer_ms(const st_fuzz_run *run, const st_job *job, bool *ret_saved)
{
    const plan *p = plan_of(run, job->id);
    int64_t at = ST_TIME_NEVER;
    *ret_saved = false;
    if (!p || !st_job_on_devices(job))
        return at;
    if (p->run_ms != ST_TIME_NEVER)
        at = run->now + ST_MAX(p->run_ms - st_job_ran_ms(job, run->now), 0);
    if (job->state == ST_JOB_CHECKPOINTING) {
        int64_t saved = job->deadline_ms - run->tape->policy.grace_ms + p->save_ms;
        *ret_saved = saved < at;
        at = ST_MIN(at, ST_MAX(saved, run->now));
    }
    return at;
}

typedef ST_VEC(st_event) own_list;

/* When something is due next, for the core or from the engine. */
static int64_t due_ms(const st_fuzz_run *run)
{
    int64_t at = st_core_next_timer(run->core);
    bool saved;
    for (size_t i = 0; i < st_core_njobs(run->core); i++)
        at = ST_MIN(at, answer_ms(run, st_core_job_at(run->core, i), &saved));
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
        st_event ev = {.kind = saved ? ST_EV_CHECKPOINTED : ST_EV_FINISH};
        if (saved)
            ev.u.id = job->id;
        else
            ev.u.finish.id = job->id;
        st_vec_push(ret, ev);
    }
}

static int play_events(st_fuzz_run *run, const own_list *own, int64_t at, st_err *err)
{
    event_list events = {0};
    for (size_t i = 0; i < own->n; i++)
        st_vec_push(&events, &own->v[i]);
    int rc = moment(run, &events, at, err);
    st_vec_free(&events);
    return rc;
}

/* Play all that is due up to a time. */
static int play_until(st_fuzz_run *run, int64_t until, int *steps, st_err *err)
{
    for (;;) {
        int64_t at = due_ms(run);
        if (at > until || at == ST_TIME_NEVER)
            return 0;
        if (++*steps > DRAIN_STEPS_MAX)
            return BAD("rest: %d steps without an event and no end", DRAIN_STEPS_MAX);
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
        if (ev.kind == ST_EV_NODE_STATE)
            ev.u.node_state.node = st_fleet_node(st_core_fleet(run->core), entry->node);
        if (ev.kind == ST_EV_SUBMIT && !plan_of(run, ev.u.job.id)) {
            st_idmap_put(run->plan_of, ev.u.job.id, (int64_t)run->plans.n);
            st_vec_push(&run->plans, (plan){entry->run_ms, entry->save_ms});
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
    int64_t each = p->notice_ms + p->grace_ms + p->min_run_ms + p->cooldown_ms + p->pause_limit_ms;
    int64_t sum = 60000;
    for (size_t i = 0; i < st_core_njobs(run->core); i++) {
        const st_job *job = st_core_job_at(run->core, i);
        const plan *mine = plan_of(run, job->id);
        sum += each + ST_MIN(mine ? mine->run_ms : ST_TIME_NEVER, job->limit_ms);
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
        if (fleet->nodes.v[i]->state != ST_NODE_READY)
            st_vec_push(&own, ev);
    }
    for (size_t i = 0; i < st_core_njobs(run->core); i++) {
        const st_job *job = st_core_job_at(run->core, i);
        const plan *p = plan_of(run, job->id);
        st_event ev = {.kind = ST_EV_CANCEL};
        ev.u.id = job->id;
        if (job->limit_ms == ST_TIME_NEVER && (!p || p->run_ms == ST_TIME_NEVER))
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
    for (size_t i = 0; rc == 0 && i < st_core_njobs(run->core); i++) {
        const st_job *job = st_core_job_at(run->core, i);
        if (st_check_could_ever(run->core, job) || st_job_on_devices(job))
            rc = BAD("starvation: job %" PRIu64 " is still %s %" PRId64
                     " ms after the last event, with every node ready",
                     job->id, st_job_state_name(job->state), run->now);
    }
    int64_t more = st_watch_counted(run->watch).preemptions - before;
    if (rc == 0 && more > (int64_t)(20 + 4 * live))
        rc = BAD("flapping: %" PRId64 " preemptions among %zu jobs after the last event", more,
                 live);
    if (rc == 0)
        rc = compare_twin(run, err);
    return rc;
}
