/*
 * One moment, and everything that must hold after it.
 *
 * A moment is: the events of one time are applied, then one pass. Afterwards
 *   1 the state and the effects are checked, and those who wait;
 *   2 the same moment again must change nothing;
 *   3 a twin that was saved and loaded at some earlier moment must have done the same. It never
 *     sees events that are refused, so if one leaves a trace, the two part;
 *   4 the meter beside it must have counted right (fuzz_meter.c);
 *   5 with effort for everybody the same would run;
 *   6 what the core keeps from pass to pass is what it would find anew (now and then).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "worlds/run.h"

#define BAD(...)     st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define EFFORT_SMALL 16 /* from here down a pass may leave something over */
#define RESUMES_MAX  2000

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

/* The twin is told what a log would tell it: every event goes through its bytes. */
static int twin_apply(st_fuzz_run *run, const st_event *event, st_err *why)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_event read;
    size_t at = 0;
    int r;

    st_event_encode(event, &bytes);
    r = st_event_decode(st_strbuf_str(&bytes), bytes.n, &at, arena, &read, why);
    if (r == 0 && at != bytes.n)
        r = st_fail(why, ST_EPARSE, "%zu of its %zu bytes were read", at, bytes.n);
    return r < 0 ? r : st_core_apply(run->twin, &read, run->now, &run->twin_fx, why);
}

static int twin_moment(st_fuzz_run *run, const st_event_list *accepted, st_err *err)
{
    if (!run->twin)
        return 0;
    st_effects_clear(&run->twin_fx);
    for (size_t i = 0; i < accepted->n; i++) {
        st_err why = {0};
        if (twin_apply(run, accepted->v[i], &why) < 0)
            return BAD("save: a loaded core refuses %s: %s", st_event_name(accepted->v[i]->kind),
                       why.msg);
    }
    /* A full pass, unless that would stop half-way where the short way need not. */
    if (st_core_policy(run->twin)->claim_effort > EFFORT_SMALL)
        st_core_pass(run->twin, run->now, &run->twin_fx);
    else
        st_core_settle(run->twin, run->now, &run->twin_fx);
    if (!same_effects(&run->fx, &run->twin_fx) ||
        st_core_hash(run->core) != st_core_hash(run->twin)) {
        trace_effects(run, &run->twin_fx, "twin: ");
        return BAD("determinism: a core and the one loaded from its save decide differently "
                   "(%zu and %zu effects)",
                   run->fx.list.n, run->twin_fx.list.n);
    }
    /* The twin has looked at everybody: what it is to be called for, nobody may sleep through. */
    if (st_core_next_timer(run->core) > st_core_next_timer(run->twin))
        return BAD("timer: a loaded core wants to be called at %" PRId64
                   ", and the other one not before %" PRId64,
                   st_core_next_timer(run->twin), st_core_next_timer(run->core));
    return 0;
}

/* ---- effort ------------------------------------------------------------------------- */

/* Who is where, as a number; not since when. */
static uint64_t places(const st_core *core)
{
    uint64_t h = 1;
    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);
        h = st_hash_u64(st_hash_u64(h, job->id), (uint64_t)job->state * 2 + job->held);
        for (int t = 0; job->grants && t < job->tasks; t++)
            h = st_hash_u64(st_hash_u64(h, (uint64_t)job->grants[t].node), job->grants[t].devs);
    }
    return h;
}

/* Let the core go on until nothing is left over; false when something else was due meanwhile. */
static bool go_on(st_core *core, int64_t *now, st_effects *fx)
{
    for (int i = 0; i < RESUMES_MAX && st_core_resumes(core); i++) {
        if (st_core_next_timer(core) != *now + 1)
            return false;
        st_core_pass(core, ++*now, fx);
    }
    return !st_core_resumes(core);
}

/* The effort of a pass never changes who runs, only when: the core, in as many passes as it takes,
 * comes to what one that is not held to any effort finds at once. */
static int check_effort(st_fuzz_run *run, st_core *thorough, const st_event_list *accepted,
                        st_err *err)
{
    st_core *copy = NULL;
    st_effects fx = {0}, all_fx = {0};
    st_strbuf saved = {0};
    int64_t now = run->now;
    st_err why = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < accepted->n; i++)
        if (st_core_apply(thorough, accepted->v[i], now, &all_fx, &why) < 0)
            rc = BAD("effort: a copy refuses %s: %s", st_event_name(accepted->v[i]->kind), why.msg);
    st_core_pass(thorough, now, &all_fx);
    st_core_save(run->core, &saved);
    if (rc == 0 && st_core_load(saved.s, saved.n, &copy, &why) < 0)
        rc = BAD("save: what was just saved is refused: %s", why.msg);
    if (rc == 0 && go_on(copy, &now, &fx) && st_core_next_timer(thorough) > now &&
        places(copy) != places(thorough)) {
        trace_effects(run, &fx, "in pieces: ");
        trace_effects(run, &all_fx, "in one: ");
        rc = BAD("effort: in %d passes others run than with effort for everybody",
                 (int)(now - run->now) + 1);
    }
    st_strbuf_done(&saved);
    st_effects_done(&fx);
    st_effects_done(&all_fx);
    st_core_free(copy);
    return rc;
}

/* ---- one moment --------------------------------------------------------------------- */

static int check_timer(const st_fuzz_run *run, st_err *err)
{
    int64_t next = st_core_next_timer(run->core);
    if (next <= run->now)
        return BAD("timer: it is %" PRId64 " and a timer is wanted for %" PRId64, run->now, next);
    return 0;
}

static int check_again(st_fuzz_run *run, st_err *err)
{
    st_event timer = {.kind = ST_EV_TIMER};
    uint64_t before = st_core_hash(run->core);
    st_err why = {0};
    size_t n = run->fx.list.n;
    if (st_core_policy(run->core)->claim_effort <= EFFORT_SMALL && !st_core_resumes(run->core))
        return 0; /* looking at everybody again may take more than this moment */
    if (st_core_step(run->core, &timer, run->now, &run->fx, &why) < 0)
        return BAD("fixed point: a timer is refused: %s", why.msg);
    if (run->fx.list.n != n)
        return BAD("fixed point: the same moment again gives %zu more effects, the first is %s "
                   "for job %" PRIu64,
                   run->fx.list.n - n, st_effect_name(run->fx.list.v[n].kind),
                   run->fx.list.v[n].job);
    if (st_core_hash(run->core) != before)
        return BAD("fixed point: the same moment again changes the hash");
    return check_timer(run, err);
}

int st_fuzz_compare_twin(st_fuzz_run *run, st_err *err)
{
    if (!run->twin)
        return 0;
    /* The twin has looked at everything; after a short way, moments that have come by are not yet put right. */
    int rc = check_again(run, err);
    if (rc < 0)
        return rc;
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

/* A refused event has nothing to show for itself. */
static int check_refusal(const st_fuzz_run *run, const st_event *ev, const st_err *why,
                         size_t effects, uint64_t hash, st_err *err)
{
    if (run->trace)
        fprintf(run->trace, "    refused: %s\n", why->msg);
    if (run->fx.list.n != effects || st_core_hash(run->core) != hash)
        return BAD("refusal: %s is refused (%s) and has %zu effects all the same",
                   st_event_name(ev->kind), why->msg, run->fx.list.n - effects);
    if (why->code == 0 || why->msg[0] == '\0')
        return BAD("refusal: %s is refused without a sentence", st_event_name(ev->kind));
    return 0;
}

/* Apply the events, then schedule; those that are not refused go to `accepted`. Either by halves
 * or, for one event at a time when nothing else is due, as one step. The twin always goes by halves
 * and through a full pass, so that the short ways are held against it. */
static int apply_all(st_fuzz_run *run, const st_event_list *events, st_event_list *accepted,
                     st_err *err)
{
    bool step = st_core_next_timer(run->core) > run->now && events->n == 1;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < events->n; i++) {
        size_t n = run->fx.list.n;
        uint64_t hash = st_core_hash(run->core);
        st_err why = {0};
        run->events++;
        int refused = step ? st_core_step(run->core, events->v[i], run->now, &run->fx, &why)
                           : st_core_apply(run->core, events->v[i], run->now, &run->fx, &why);
        if (refused == 0) {
            st_vec_push(accepted, events->v[i]);
            continue;
        }
        run->refused++;
        st_vec_push(&run->refusals, i);
        rc = check_refusal(run, events->v[i], &why, n, hash, err);
    }
    if (rc == 0 && (!step || accepted->n == 0))
        st_core_settle(run->core, run->now, &run->fx);
    return rc;
}

/* Time alone decides nothing before the core's own timer says so. */
static int check_idle(const st_fuzz_run *run, const st_event_list *accepted, st_err *err)
{
    for (size_t i = 0; i < accepted->n; i++)
        if (accepted->v[i]->kind != ST_EV_TIMER)
            return 0;
    if (run->fx.list.n == 0)
        return 0;
    return BAD("timer: nothing was due at %" PRId64 " and yet there is %s for job %" PRIu64,
               run->now, st_effect_name(run->fx.list.v[0].kind), run->fx.list.v[0].job);
}

/* Whether this step counts for the lens: where nothing happens there is little that was not seen before. */
static bool counts(st_fuzz_run *run, const st_event_list *accepted)
{
    bool quiet = run->fx.list.n == 0;
    for (size_t i = 0; quiet && i < accepted->n; i++)
        quiet = accepted->v[i]->kind == ST_EV_TIMER;
    if (quiet && ++run->idle % run->tape->lens.idle != 0)
        return false;
    run->looks++;
    return true;
}

int st_fuzz_moment(st_fuzz_run *run, const st_event_list *events, int64_t now, st_err *err)
{
    st_event_list accepted = {0};
    run->now = ST_MAX(run->now, now);
    st_effects_clear(&run->fx);
    st_vec_clear(&run->refusals);
    run->steps++;
    bool due = st_core_next_timer(run->core) <= run->now;
    const st_lens *lens = &run->tape->lens;
    st_core *thorough = NULL;
    int rc = 0;
    if (st_core_policy(run->core)->claim_effort <= EFFORT_SMALL && lens->effort > 0 &&
        run->steps % lens->effort == 0 && !st_core_resumes(run->core))
        rc = st_core_thorough(run->core, &thorough, err);
    if (rc == 0)
        rc = apply_all(run, events, &accepted, err);
    trace_effects(run, &run->fx, "");
    if (run->tape->cover)
        st_cover_step(run->tape->cover, run->core, accepted.v, accepted.n, &run->fx);
    bool look = counts(run, &accepted);
    if (rc == 0 && look && run->looks % lens->check == 0)
        rc = st_check(run->core, err);
    if (rc == 0)
        rc = st_watch_step(run->watch, run->core, accepted.v, accepted.n, &run->fx, err);
    if (rc == 0 && look)
        rc = st_watch_waiting(run->watch, run->core, lens->wait, run->looks, err);
    if (rc == 0)
        rc = check_must(run, err);
    if (rc == 0 && !due)
        rc = check_idle(run, &accepted, err);
    if (rc == 0 && run->meter)
        rc = st_fuzz_meter_moment(run->meter, run->core, &run->fx, run->now, err);
    if (rc == 0)
        rc = twin_moment(run, &accepted, err);
    if (rc == 0 && thorough)
        rc = check_effort(run, thorough, &accepted, err);
    st_core_free(thorough);
    if (rc == 0 && look && run->looks % lens->audit == 0 && !st_core_resumes(run->core))
        rc = st_core_audit(run->core, err);
    if (rc == 0)
        rc = check_timer(run, err);
    if (rc == 0 && look && run->looks % lens->again == 0)
        rc = check_again(run, err);
    if (rc == 0 && lens->twin > 0 && st_rng_chance(&run->rng, 1, (uint64_t)lens->twin)) {
        rc = st_fuzz_compare_twin(run, err);
        if (rc == 0)
            rc = make_twin(run, err);
    }
    st_vec_free(&accepted);
    return rc;
}
