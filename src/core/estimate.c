/* When each waiting job should start, as things stand.
 *
 * A copy of the state is played forward on its own: jobs run as long as such jobs usually do,
 * at most to their time limits, victims leave when their notice and grace are over, plans come
 * true, and waiting jobs start in today's order as soon as they fit and may. Nobody submits,
 * fails or is displaced further. Where nothing was learned, a job runs to its limit, and
 * without one it never ends: there is no estimate for who can only start on its place.
 *
 * Jobs of one shape stand in one list by rank, and a shape that does not fit is not tried
 * again before something is freed: the cost follows what starts and ends, not how many wait.
 * Where many wait, what ends within a sixty-fourth of the time until then counts as one moment:
 * nobody knows it better. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/timeline_state.h"
#include "core/turn.h"

#define MANY     2000          /* jobs that wait, from which on moments are drawn together */
#define SOON_MS  INT64_C(1000) /* nobody who waits is told less */
#define APART    64            /* by this part of the time until then */
#define APART_MS INT64_C(1000) /* and at least so much */

typedef struct release {
    int64_t at_ms;
    st_job *job;
} release;

/* Waiting jobs of one shape, by rank. */
typedef struct list {
    ST_VEC(size_t) ranks;
    size_t next; /* everybody before it has started */
    bool misfit;
} list;

typedef struct next_up {
    size_t rank, list;
} next_up;

typedef struct forecast {
    st_core *core; /* the copy */
    st_effects fx; /* thrown away */
    ST_VEC(st_job *) order;
    ST_VEC(int64_t) starts; /* by rank; ST_TIME_NEVER: not yet */
    ST_VEC(list) lists;
    ST_VEC(release) heap; /* earliest first */
    ST_VEC(next_up) up;   /* of start_all: lists by the rank of who is next, lowest first */
    size_t left, nguaranteed;
    st_timeline *tl; /* where it is recorded; NULL: nowhere */
} forecast;

/* ---- the heap ---------------------------------------------------------------------------- */

static bool sooner(const release *a, const release *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->job->id < b->job->id;
}

static void push(forecast *f, int64_t at_ms, st_job *job)
{
    if (at_ms == ST_TIME_NEVER)
        return;
    size_t i = f->heap.n;
    st_vec_push(&f->heap, (release){at_ms, job});
    for (; i > 0 && sooner(&f->heap.v[i], &f->heap.v[(i - 1) / 2]); i = (i - 1) / 2) {
        release swap = f->heap.v[i];
        f->heap.v[i] = f->heap.v[(i - 1) / 2];
        f->heap.v[(i - 1) / 2] = swap;
    }
}

static release pop(forecast *f)
{
    release top = f->heap.v[0];
    f->heap.v[0] = f->heap.v[f->heap.n - 1];
    f->heap.n--;
    for (size_t i = 0, c; (c = 2 * i + 1) < f->heap.n; i = c) {
        if (c + 1 < f->heap.n && sooner(&f->heap.v[c + 1], &f->heap.v[c]))
            c++;
        if (!sooner(&f->heap.v[c], &f->heap.v[i]))
            break;
        release swap = f->heap.v[i];
        f->heap.v[i] = f->heap.v[c];
        f->heap.v[c] = swap;
    }
    return top;
}

/* ---- who waits --------------------------------------------------------------------------- */

static void rank(forecast *f)
{
    st_core *core = f->core;
    st_queue q = {0};
    st_queue_build(core, &q, false);
    st_idmap *seen = st_idmap_new(), *by_shape = st_idmap_new();
    for (st_phase phase = ST_PHASE_GUARANTEED; phase <= ST_PHASE_BURST; phase++) {
        st_queue_rewind(core, &q);
        st_job *job;
        while ((job = st_queue_next(core, &q, phase))) {
            if (st_queue_phase(core, job) != phase && phase == ST_PHASE_GUARANTEED)
                continue;
            if (st_idmap_get(seen, job->id, NULL))
                continue;
            st_idmap_put(seen, job->id, 1);
            uint64_t key = st_core_shape_key(job, (int32_t)job->shape.types);
            int64_t at;
            if (!st_idmap_get(by_shape, key, &at)) {
                at = (int64_t)f->lists.n;
                st_vec_push(&f->lists, (list){0});
                st_idmap_put(by_shape, key, at);
            }
            st_vec_push(&f->lists.v[at].ranks, f->order.n);
            st_vec_push(&f->order, job);
            st_vec_push(&f->starts, ST_TIME_NEVER);
            f->nguaranteed += phase == ST_PHASE_GUARANTEED;
        }
    }
    f->left = f->order.n;
    st_idmap_free(seen);
    st_idmap_free(by_shape);
    st_queue_done(&q);
}

/* ---- starting ---------------------------------------------------------------------------- */

static bool may_start(const forecast *f, const st_job *job, int32_t type, st_class *ret_class)
{
    const st_core *core = f->core;
    bool guaranteed = st_core_is_guaranteed(core, job, type);
    *ret_class = guaranteed ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE;
    if (!guaranteed && (st_core_weight_zero(core, job->account, NULL) || st_core_rests(core, job)))
        return false;
    return st_core_below_max(core, job, type, ST_NOW | ST_NEXT) &&
           st_admit_user_limits(core->fleet, core->tree, job, type, false, NULL, 0) == 0;
}

/* Start a job if it may; false when its shape does not fit. *ret_started: whether it did. */
static bool try_job(forecast *f, size_t rank, bool *ret_started)
{
    st_core *core = f->core;
    st_job *job = f->order.v[rank];
    int32_t types[ST_TYPES_MAX];
    int n = 0;
    bool fits = false;
    st_class class;
    *ret_started = false;
    ST_EACH_TYPE (core, job, t) {
        st_ask ask = {.job = job, .type = t};
        if (!st_place_fits(core->placer, &ask))
            continue;
        fits = true;
        if (may_start(f, job, t, &class))
            types[n++] = t;
    }
    if (n == 0)
        return fits;
    if (n > 1)
        st_place_sort_types(core->placer, job, types, n); /* as a turn does */
    may_start(f, job, types[0], &class);
    st_ask ask = {.job = job, .type = types[0]};
    st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
    bool ok = st_place_gang(core->placer, &ask, grants);
    ST_ASSERT(ok);
    st_core_start(core, job, types[0], class, grants, &f->fx);
    f->starts.v[rank] = core->now;
    st_timeline_started(f->tl, core, job, rank);
    f->left--;
    push(f, st_core_likely_end_ms(core, job), job);
    *ret_started = true;
    return true;
}

/* The first of a list that may start, or the list's end; marks a list that does not fit. */
static size_t candidate(forecast *f, list *l)
{
    while (l->next < l->ranks.n && f->starts.v[l->ranks.v[l->next]] != ST_TIME_NEVER)
        l->next++;
    if (l->misfit)
        return l->ranks.n;
    for (size_t i = l->next; i < l->ranks.n; i++) {
        const st_job *job = f->order.v[l->ranks.v[i]];
        if (f->starts.v[l->ranks.v[i]] != ST_TIME_NEVER)
            continue;
        ST_EACH_TYPE (f->core, job, t) {
            st_class class;
            if (may_start(f, job, t, &class))
                return i;
        }
    }
    return l->ranks.n;
}

static void put_up(forecast *f, size_t rank, size_t of)
{
    size_t i = f->up.n;
    st_vec_push(&f->up, (next_up){rank, of});
    for (; i > 0 && f->up.v[i].rank < f->up.v[(i - 1) / 2].rank; i = (i - 1) / 2) {
        next_up swap = f->up.v[i];
        f->up.v[i] = f->up.v[(i - 1) / 2];
        f->up.v[(i - 1) / 2] = swap;
    }
}

static next_up take_up(forecast *f)
{
    next_up top = f->up.v[0];
    f->up.v[0] = f->up.v[f->up.n - 1];
    f->up.n--;
    for (size_t i = 0, c; (c = 2 * i + 1) < f->up.n; i = c) {
        if (c + 1 < f->up.n && f->up.v[c + 1].rank < f->up.v[c].rank)
            c++;
        if (f->up.v[c].rank >= f->up.v[i].rank)
            break;
        next_up swap = f->up.v[i];
        f->up.v[i] = f->up.v[c];
        f->up.v[c] = swap;
    }
    return top;
}

static void put_list(forecast *f, size_t of)
{
    list *l = &f->lists.v[of];
    size_t i = candidate(f, l);
    if (i < l->ranks.n)
        put_up(f, l->ranks.v[i], of);
}

/* Everybody who can starts, lowest rank first. Starts only take away, so who could not start a
 * moment ago cannot now: a list's next is looked at again when its turn comes, and not before. */
static void start_all(forecast *f)
{
    st_vec_clear(&f->up);
    for (size_t s = 0; s < f->lists.n; s++)
        put_list(f, s);
    while (f->up.n > 0) {
        next_up next = take_up(f);
        list *l = &f->lists.v[next.list];
        size_t i = candidate(f, l);
        if (i == l->ranks.n)
            continue;
        if (l->ranks.v[i] != next.rank) {
            put_up(f, l->ranks.v[i], next.list);
            continue;
        }
        bool started;
        if (!try_job(f, next.rank, &started) || !started)
            l->misfit = true;
        else
            put_list(f, next.list);
        st_effects_clear(&f->fx);
    }
}

/* ---- ending ------------------------------------------------------------------------------ */

static void start_plans(forecast *f)
{
    for (size_t i = 0; i < f->core->jobs.n; i++) {
        st_job *job = f->core->jobs.v[i];
        if (!job->held || !st_core_ready(f->core, job))
            continue;
        st_core_start_held(f->core, job, &f->fx);
        st_timeline_started(f->tl, f->core, job, 0);
        push(f, st_core_likely_end_ms(f->core, job), job);
    }
}

static void end_job(forecast *f, st_job *job)
{
    /* The job is gone afterwards; what is recorded is how its nodes are then. */
    st_job shape = *job;
    ST_VEC(int32_t) nodes = {0};
    for (int t = 0; f->tl && t < job->tasks; t++)
        st_vec_push(&nodes, job->grants[t].node);
    st_core_end(f->core, job, ST_JOB_DONE, &f->fx);
    st_timeline_ended(f->tl, f->core, &shape, shape.type, nodes.v, nodes.n);
    st_vec_free(&nodes);
}

static int64_t drawn_together(const forecast *f, int64_t began_ms, int64_t at_ms)
{
    if (f->order.n < MANY)
        return at_ms;
    return at_ms + ST_MAX(APART_MS, (at_ms - began_ms) / APART);
}

static void play(forecast *f)
{
    st_core *core = f->core;
    bool plans = false;
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *job = core->jobs.v[i];
        plans |= job->held;
        if (st_job_on_devices(job))
            push(f, ST_MIN(st_core_release_ms(core, job), st_core_likely_end_ms(core, job)), job);
    }
    int64_t began_ms = core->now;
    st_timeline_begin(f->tl, core);
    start_all(f);
    /* Once all have started, those who end are still of interest to who comes later. */
    while ((f->left > 0 || f->tl) && f->heap.n > 0) {
        int64_t until = drawn_together(f, began_ms, ST_MAX(core->now, f->heap.v[0].at_ms));
        st_timeline_at(f->tl, until);
        while (f->heap.n > 0 && f->heap.v[0].at_ms <= until) {
            core->now = ST_MAX(core->now, f->heap.v[0].at_ms);
            end_job(f, pop(f).job);
        }
        st_timeline_was(f->tl, core->now);
        if (plans)
            start_plans(f);
        for (size_t s = 0; s < f->lists.n; s++)
            f->lists.v[s].misfit = false;
        if (f->left > 0)
            start_all(f);
    }
}

st_estimate st_core_with_margin(const st_core *core, uint64_t job, int64_t start_ms)
{
    if (start_ms == ST_TIME_NEVER)
        return (st_estimate){job, start_ms, start_ms, start_ms, 0};
    /* Who has not started does not start now. */
    start_ms = ST_MAX(start_ms, core->now + SOON_MS);
    st_margin m = st_forecast_margin(core->forecast, start_ms - core->now);
    return (st_estimate){job, start_ms, core->now + m.lo_ms, core->now + m.hi_ms, m.seen};
}

static void keep_order(forecast *f)
{
    for (size_t i = 0; i < f->order.n; i++)
        st_vec_push(&f->tl->order, (st_timeline_rank){f->order.v[i]->id, f->order.v[i]->account});
    f->tl->nguaranteed = f->nguaranteed;
}

int st_core_timeline(const st_core *core, st_timeline **ret, st_err *err)
{
    forecast f = {0};
    st_strbuf saved = {0};
    st_core_save(core, &saved);
    int rc = st_core_load(saved.s, saved.n, &f.core, err);
    st_strbuf_done(&saved);
    if (rc < 0)
        return rc;
    f.tl = st_xcalloc(1, sizeof *f.tl);
    f.tl->by_job = st_idmap_new();
    rank(&f);
    keep_order(&f); /* the jobs of the copy are gone once they have ended; ids outlive them */
    play(&f);
    for (size_t i = 0; i < f.tl->order.n; i++) {
        uint64_t id = f.tl->order.v[i].job;
        st_idmap_put(f.tl->by_job, id, (int64_t)i);
        st_vec_push(&f.tl->list, st_core_with_margin(core, id, f.starts.v[i]));
    }
    st_vec_free(&f.order);
    st_vec_free(&f.starts);
    for (size_t s = 0; s < f.lists.n; s++)
        st_vec_free(&f.lists.v[s].ranks);
    st_vec_free(&f.lists);
    st_vec_free(&f.heap);
    st_vec_free(&f.up);
    st_effects_done(&f.fx);
    st_core_free(f.core);
    *ret = f.tl;
    return 0;
}

int st_core_estimate(const st_core *core, st_estimates *ret, st_err *err)
{
    ST_CLEANUP(st_timeline_freep) st_timeline *tl = NULL;
    int rc = st_core_timeline(core, &tl, err);
    for (size_t i = 0; rc == 0 && i < tl->list.n; i++)
        st_vec_push(ret, tl->list.v[i]);
    return rc;
}
