/*
 * A step, effect by effect.
 *
 * The watch holds every job as the effects describe it. Each effect must follow from what was
 * there before it, and after the last one the jobs so described must be the jobs of the core:
 * an engine that only ever hears effects then knows everything. What it adds to sim/check.c:
 *
 *   - devices are left only for a reason, and not before notice and grace are over;
 *   - what is held for a job is what it starts on;
 *   - a start respects trust, and nobody's use grows past a ceiling or limit. An admin may set
 *     one below what is in use, so the rule is: use after <= max(bound, use before).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/check_watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

/* ---- tracks ------------------------------------------------------------------------- */

st_watch *st_watch_new(const st_core *core)
{
    ST_ASSERT(st_core_njobs(core) == 0);
    return st_xcalloc(1, sizeof(st_watch));
}

static void track_free(st_track *t)
{
    free(t->job.grants);
    free(t);
}

void st_watch_free(st_watch *watch)
{
    if (!watch)
        return;
    for (size_t i = 0; i < watch->tracks.n; i++)
        track_free(watch->tracks.v[i]);
    st_vec_free(&watch->tracks);
    st_vec_free(&watch->floors);
    free(watch);
}

static size_t position(const st_watch *watch, uint64_t id)
{
    size_t i = watch->tracks.n;
    while (i > 0 && watch->tracks.v[i - 1]->job.id >= id)
        i--;
    return i;
}

st_track *st_watch_find(const st_watch *watch, uint64_t id)
{
    size_t i = position(watch, id);
    return i < watch->tracks.n && watch->tracks.v[i]->job.id == id ? watch->tracks.v[i] : NULL;
}

st_job_list st_watch_jobs(const st_watch *watch)
{
    st_job_list list = {0};
    st_vec_reserve(&list, watch->tracks.n + 1);
    for (size_t i = 0; i < watch->tracks.n; i++)
        st_vec_push(&list, &watch->tracks.v[i]->job);
    return list;
}

st_watch_counts st_watch_counted(const st_watch *watch)
{
    return watch->counts;
}

int64_t st_watch_started_ms(const st_watch *watch, uint64_t id)
{
    const st_track *t = st_watch_find(watch, id);
    return t ? t->started_ms : -1;
}

/* The job as it was submitted: from the event, since it may be over by the end of the step. */
static void track_new(const st_step *step, uint64_t id)
{
    const st_tree *tree = st_core_tree(step->core);
    st_track *t = st_xcalloc(1, sizeof *t);
    t->job = (st_job){.id = id, .type = -1};
    t->started_ms = t->displaced_ms = -1;
    for (size_t i = 0; i < step->nevents; i++) {
        const st_job_spec *spec = &step->events[i]->u.job;
        int64_t user = -1;
        if (step->events[i]->kind != ST_EV_SUBMIT || spec->id != id)
            continue;
        st_map_get(tree->user_ids, spec->user, &user);
        t->job.account = st_tree_find(tree, spec->account);
        t->job.user = (int32_t)user;
        t->job.pool = spec->pool;
        t->job.tasks = spec->tasks;
        t->job.shape = spec->shape;
        t->job.topo = spec->topo;
        t->job.topo_required = spec->topo_required;
        t->job.latency_critical = spec->latency_critical;
        t->job.limit_ms = spec->limit_ms;
        t->job.yield = spec->yield;
    }
    /* Which of the types it allows are able to serve it at all is the core's to find out. */
    const st_job *job = st_core_job(step->core, id);
    if (job)
        t->job.shape.types = job->shape.types;
    size_t at = position(step->watch, id);
    st_vec_insert(&step->watch->tracks, at, t);
}

static bool asked_for(const st_step *step, st_event_kind kind, uint64_t id)
{
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        if (ev->kind == kind && (kind == ST_EV_FINISH ? ev->u.finish.id : ev->u.id) == id)
            return true;
    }
    return false;
}

static void set_grants(const st_step *step, st_track *t, const st_effect *e)
{
    free(t->job.grants);
    t->job.grants = st_xcalloc((size_t)t->job.tasks, sizeof(st_grant));
    memcpy(t->job.grants, &step->fx->grants.v[e->grants_at],
           (size_t)t->job.tasks * sizeof(st_grant));
}

/* A node may fail and return in one moment, so the effects are asked, not the node. */
static bool lost_a_node(const st_step *step, const st_track *t)
{
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        if (e->kind != ST_FX_NODE || e->value != ST_NODE_FAILED)
            continue;
        for (int k = 0; t->job.grants && k < t->job.tasks; k++)
            if (t->job.grants[k].node == e->node)
                return true;
    }
    return false;
}

static void off_devices(const st_step *step, st_track *t, st_job_state state)
{
    if (st_room_is_now(&t->job))
        t->ran_ms += step->now - t->started_ms;
    if (t->job.claimant && !lost_a_node(step, t))
        t->displaced_ms = step->now;
    t->job.state = state;
    t->job.class = ST_CLASS_NONE;
    t->job.claimant = 0;
    if (state == ST_JOB_PAUSED)
        return;
    free(t->job.grants);
    t->job.grants = NULL;
    t->job.type = -1;
}

/* ---- one effect --------------------------------------------------------------------- */

static int wrong(const st_effect *e, const st_track *t, st_err *err)
{
    return BAD("effects: %s for job %" PRIu64 ", which is %s%s", st_effect_name(e->kind), e->job,
               st_job_state_name(t->job.state), t->job.held ? " and held" : "");
}

static int whole_gang(const st_effect *e, const st_track *t, st_err *err)
{
    if (e->ngrants == t->job.tasks)
        return 0;
    return BAD("gang: %s for job %" PRIu64 " with %d grants for %d tasks", st_effect_name(e->kind),
               e->job, e->ngrants, t->job.tasks);
}

static int trust_ok(const st_step *step, const st_track *t, st_err *err)
{
    const st_tree *tree = st_core_tree(step->core);
    if (t->job.shape.gpus == 0 || t->job.shape.level <= ST_LEVEL_MIG ||
        !st_room_untrusted(tree, t->job.account))
        return 0;
    return BAD("trust: job %" PRIu64 " of untrusted account %s is given a GPU at level %s",
               t->job.id, tree->accounts.v[t->job.account]->name,
               st_level_name(t->job.shape.level));
}

static int on_start(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    st_job_state from = e->kind == ST_FX_START ? ST_JOB_PENDING : ST_JOB_PAUSED;
    if (t->job.state != from)
        return wrong(e, t, err);
    int rc = whole_gang(e, t, err);
    if (rc == 0)
        rc = trust_ok(step, t, err);
    if (rc < 0)
        return rc;
    const st_grant *given = &step->fx->grants.v[e->grants_at];
    for (int i = 0; t->job.held && i < t->job.tasks; i++)
        if (given[i].node != t->job.grants[i].node || given[i].devs != t->job.grants[i].devs ||
            given[i].mig_start != t->job.grants[i].mig_start)
            return BAD("hold: job %" PRIu64 " does not start on what was held for it", e->job);
    set_grants(step, t, e);
    t->job.state = ST_JOB_RUNNING;
    t->job.held = false;
    t->job.type = (int32_t)e->value;
    t->job.class = e->class;
    t->started_ms = step->now;
    step->watch->counts.starts++;
    return 0;
}

static int on_hold(const st_step *step, st_track *t, const st_effect *e, size_t at, st_err *err)
{
    if ((t->job.state != ST_JOB_PENDING && t->job.state != ST_JOB_PAUSED) || t->job.held)
        return wrong(e, t, err);
    int rc = whole_gang(e, t, err);
    if (rc == 0)
        rc = trust_ok(step, t, err);
    if (rc == 0)
        rc = st_watch_claim(step, at, err);
    if (rc < 0)
        return rc;
    set_grants(step, t, e);
    t->job.held = true;
    t->job.class = e->class;
    if (t->job.shape.gpus > 0)
        t->job.type = st_core_fleet(step->core)->nodes.v[t->job.grants[0].node]->type;
    return 0;
}

static int on_unhold(st_track *t, const st_effect *e, st_err *err)
{
    if (!t->job.held)
        return wrong(e, t, err);
    t->job.held = false;
    t->job.class = ST_CLASS_NONE;
    if (t->job.state == ST_JOB_PENDING) {
        free(t->job.grants);
        t->job.grants = NULL;
        t->job.type = -1;
    }
    return 0;
}

static int on_notify(const st_step *step, st_track *t, const st_effect *e, size_t at, st_err *err)
{
    if (t->job.state != ST_JOB_RUNNING)
        return wrong(e, t, err);
    int rc = st_watch_victim(step, at, err);
    if (rc < 0)
        return rc;
    t->job.state = ST_JOB_NOTIFIED;
    t->job.claimant = e->other;
    t->notified_ms = step->now;
    t->saved = false;
    step->watch->counts.preemptions++;
    return 0;
}

static int notice_over(const st_step *step, const st_track *t, const char *what, st_err *err)
{
    const st_policy *policy = st_core_policy(step->core);
    int64_t had = step->now - t->notified_ms;
    if (had < policy->notice_ms)
        return BAD("notice: job %" PRIu64 " %s after %" PRId64 " ms, the notice is %" PRId64,
                   t->job.id, what, had, policy->notice_ms);
    bool saves = t->job.yield == ST_YIELD_CHECKPOINT || t->job.yield == ST_YIELD_PAUSE;
    if (!saves || policy->grace_ms == 0 || t->saved || strcmp(what, "is told to save") == 0)
        return 0;
    had = t->job.state == ST_JOB_CHECKPOINTING ? step->now - t->checkpoint_ms : 0;
    if (had < policy->grace_ms)
        return BAD("grace: job %" PRIu64 " %s after %" PRId64
                   " ms and has not saved, the grace is %" PRId64,
                   t->job.id, what, had, policy->grace_ms);
    return 0;
}

static int on_checkpoint(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    if (t->job.state != ST_JOB_NOTIFIED)
        return wrong(e, t, err);
    int rc = notice_over(step, t, "is told to save", err);
    t->job.state = ST_JOB_CHECKPOINTING;
    t->checkpoint_ms = step->now;
    t->saved = false;
    return rc;
}

static int on_requeue(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    int rc = 0;
    bool paused = t->job.state == ST_JOB_PAUSED;
    if (t->job.state == ST_JOB_PENDING || t->job.held)
        return wrong(e, t, err);
    if (e->kind == ST_FX_PAUSE && (t->job.state != ST_JOB_CHECKPOINTING || !t->saved))
        return wrong(e, t, err);
    if (!lost_a_node(step, t) && !paused) {
        if (t->job.state == ST_JOB_RUNNING)
            return BAD("reclaim: job %" PRIu64 " is off its devices without notice", e->job);
        rc = notice_over(step, t, "is off its devices", err);
    }
    off_devices(step, t, e->kind == ST_FX_PAUSE ? ST_JOB_PAUSED : ST_JOB_PENDING);
    return rc;
}

static int on_end(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    int rc = 0;
    bool on = st_room_is_now(&t->job);
    int64_t ran = t->ran_ms + (on ? step->now - t->started_ms : 0);
    if (t->job.held)
        return wrong(e, t, err);
    if (e->state == ST_JOB_DONE || e->state == ST_JOB_FAILED) {
        if (!on || !asked_for(step, ST_EV_FINISH, e->job))
            return wrong(e, t, err);
    } else if (e->state == ST_JOB_TIMEOUT) {
        if (!on || ran < t->job.limit_ms)
            return BAD("limit: job %" PRIu64 " times out after %" PRId64 " ms of %" PRId64, e->job,
                       ran, t->job.limit_ms);
    } else if (e->state == ST_JOB_CANCELLED && !asked_for(step, ST_EV_CANCEL, e->job)) {
        if (!t->job.claimant || t->job.yield != ST_YIELD_CANCEL)
            return wrong(e, t, err);
        rc = notice_over(step, t, "is ended", err);
    }
    size_t at = position(step->watch, e->job);
    st_vec_remove(&step->watch->tracks, at);
    track_free(t);
    return rc;
}

static int on_class(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    if (!st_room_is_now(&t->job))
        return wrong(e, t, err);
    if (e->class == ST_CLASS_BURSTABLE && !step->promises_moved)
        return BAD("class: job %" PRIu64 " is no longer guaranteed although no floor changed",
                   e->job);
    t->job.class = e->class;
    return 0;
}

static int on_effect(const st_step *step, size_t at, st_err *err)
{
    const st_effect *e = &step->fx->list.v[at];
    if (e->at_ms != step->now)
        return BAD("effects: %s is dated %" PRId64 ", it is %" PRId64, st_effect_name(e->kind),
                   e->at_ms, step->now);
    if (e->kind == ST_FX_FLOOR || e->kind == ST_FX_NODE)
        return 0;
    st_track *t = st_watch_find(step->watch, e->job);
    if ((t == NULL) != (e->kind == ST_FX_QUEUED))
        return BAD("effects: %s for job %" PRIu64 ", which is %s", st_effect_name(e->kind), e->job,
                   t ? "there already" : "not there");
    switch (e->kind) {
    case ST_FX_QUEUED:
        track_new(step, e->job);
        return 0;
    case ST_FX_START:
    case ST_FX_RESUME:
        return on_start(step, t, e, err);
    case ST_FX_CLASS:
        return on_class(step, t, e, err);
    case ST_FX_HOLD:
        return on_hold(step, t, e, at, err);
    case ST_FX_UNHOLD:
        return on_unhold(t, e, err);
    case ST_FX_NOTIFY:
        return on_notify(step, t, e, at, err);
    case ST_FX_SPARE:
        if (t->job.state != ST_JOB_NOTIFIED)
            return wrong(e, t, err);
        t->job.state = ST_JOB_RUNNING;
        t->job.claimant = 0;
        return 0;
    case ST_FX_CHECKPOINT:
        return on_checkpoint(step, t, e, err);
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
        return on_requeue(step, t, e, err);
    case ST_FX_END:
        return on_end(step, t, e, err);
    default:
        return BAD("effects: kind %d is unknown", (int)e->kind);
    }
}

/* ---- before and after --------------------------------------------------------------- */

static int same_job(const st_core *core, const st_track *t, st_err *err)
{
    const st_job *job = st_core_job(core, t->job.id);
    if (!job)
        return BAD("effects: job %" PRIu64 " is gone and no effect said so", t->job.id);
    if (job->state != t->job.state || job->held != t->job.held)
        return BAD("effects: job %" PRIu64 " is %s%s, by its effects it is %s%s", job->id,
                   st_job_state_name(job->state), job->held ? " and held" : "",
                   st_job_state_name(t->job.state), t->job.held ? " and held" : "");
    if (!job->held && job->class != t->job.class)
        return BAD("effects: job %" PRIu64 " is %s, by its effects it is %s", job->id,
                   st_class_name(job->class), st_class_name(t->job.class));
    if (job->claimant != t->job.claimant || job->type != t->job.type)
        return BAD("effects: job %" PRIu64 " yields to %" PRIu64 " on type %d, by its effects to "
                   "%" PRIu64 " on %d",
                   job->id, job->claimant, job->type, t->job.claimant, t->job.type);
    for (int i = 0; job->grants && t->job.grants && i < job->tasks; i++)
        if (job->grants[i].node != t->job.grants[i].node ||
            job->grants[i].devs != t->job.grants[i].devs ||
            job->grants[i].mig_start != t->job.grants[i].mig_start)
            return BAD("effects: job %" PRIu64 " is not where its effects put it", job->id);
    if (st_room_is_now(job) && job->limit_ms != ST_TIME_NEVER &&
        st_core_now(core) - t->started_ms >= job->limit_ms)
        return BAD("limit: job %" PRIu64 " runs for %" PRId64 " ms, its limit is %" PRId64, job->id,
                   st_core_now(core) - t->started_ms, job->limit_ms);
    return 0;
}

static int same_jobs(const st_step *step, st_err *err)
{
    const st_watch *w = step->watch;
    for (size_t i = 0; i < w->tracks.n; i++) {
        int rc = same_job(step->core, w->tracks.v[i], err);
        if (rc < 0)
            return rc;
    }
    if (st_core_njobs(step->core) != w->tracks.n)
        return BAD("effects: %zu jobs are there, by the effects %zu", st_core_njobs(step->core),
                   w->tracks.n);
    return 0;
}

static int grown(const char *what, const st_account *a, int64_t before, int64_t after,
                 int64_t bound, st_err *err)
{
    if (bound == ST_UNSET || after <= ST_MAX(bound, before))
        return 0;
    return BAD("max: account %s uses %" PRId64 " %s, its max is %" PRId64, a->name, after, what,
               bound);
}

static int check_max(const st_account *a, const st_tally *before, const st_tally *after,
                     st_err *err)
{
    static const char *const what[] = {"milli-GPU", "milli-CPU", "MiB"};
    const int64_t bounds[] = {a->max.gpu_m, a->max.cpu_m, a->max.ram_mib};
    int rc = 0;
    for (int d = 0; rc == 0 && d < ST_NDIMS; d++)
        rc = grown(what[d], a, st_tally_used(before, a->id, (st_dim)d, -1),
                   st_tally_used(after, a->id, (st_dim)d, -1), bounds[d], err);
    for (int t = 0; rc == 0 && t < ST_TYPES_MAX; t++)
        rc = grown("milli-GPU of one type", a, st_tally_used(before, a->id, ST_GPU, t),
                   st_tally_used(after, a->id, ST_GPU, t), a->max.type_m[t], err);
    return rc;
}

/* Of every user, at one account: what its jobs hold. */
static int64_t *user_sums(const st_step *step, const st_job_list *jobs)
{
    const st_tree *tree = st_core_tree(step->core);
    size_t n = tree->users.n * ST_LIMIT_COUNT;
    int64_t *sums = st_xcalloc(tree->accounts.n * n + 1, sizeof *sums);
    for (size_t a = 0; a < tree->accounts.n; a++)
        for (size_t i = 0; i < n; i++)
            if (st_tally_bound(&tree->accounts.v[a]->user_limits,
                               (st_limit_kind)(i % ST_LIMIT_COUNT)) != ST_UNSET)
                sums[a * n + i] = st_tally_user(st_core_fleet(step->core), tree, jobs, NULL, NULL,
                                                (int32_t)a, (int32_t)(i / ST_LIMIT_COUNT),
                                                (st_limit_kind)(i % ST_LIMIT_COUNT));
    return sums;
}

static int check_users(const st_step *step, const int64_t *before, const int64_t *after,
                       st_err *err)
{
    const st_tree *tree = st_core_tree(step->core);
    size_t n = tree->users.n * ST_LIMIT_COUNT;
    for (size_t i = 0; i < tree->accounts.n * n; i++) {
        const st_account *a = tree->accounts.v[i / n];
        st_limit_kind kind = (st_limit_kind)(i % ST_LIMIT_COUNT);
        int64_t bound = st_tally_bound(&a->user_limits, kind);
        if (bound != ST_UNSET && after[i] > ST_MAX(bound, before[i]))
            return BAD("user limit: user %s holds %s %" PRId64 " in account %s, at most %" PRId64,
                       tree->users.v[i % n / ST_LIMIT_COUNT], st_limit_name(kind), after[i],
                       a->name, bound);
    }
    return 0;
}

/* Notes what the step began with; true when floors or capacity moved. */
static bool begin(st_step *step)
{
    st_watch *w = step->watch;
    const st_tree *tree = st_core_tree(step->core);
    for (size_t i = 0; i < w->tracks.n; i++) {
        st_track *t = w->tracks.v[i];
        t->class_before = t->job.class;
        t->saved |= asked_for(step, ST_EV_CHECKPOINTED, t->job.id);
    }
    bool moved = w->floors.n != tree->accounts.n ||
                 memcmp(&w->capacity, &tree->capacity, sizeof w->capacity) != 0;
    for (size_t i = 0; !moved && i < tree->accounts.n; i++)
        moved = memcmp(&w->floors.v[i], &tree->accounts.v[i]->floor, sizeof(st_quota)) != 0;
    w->capacity = tree->capacity;
    st_vec_clear(&w->floors);
    for (size_t i = 0; i < tree->accounts.n; i++)
        st_vec_push(&w->floors, tree->accounts.v[i]->floor);
    return moved;
}

int st_watch_step(st_watch *watch, const st_core *core, const st_event *const *events,
                  size_t nevents, const st_effects *fx, st_err *err)
{
    st_step step = {.watch = watch,
                    .core = core,
                    .events = events,
                    .nevents = nevents,
                    .fx = fx,
                    .now = st_core_now(core)};
    step.promises_moved = begin(&step);
    st_tally before, after;
    st_job_list jobs = st_watch_jobs(watch);
    st_tally_build(&before, st_core_fleet(core), st_core_tree(core), &jobs, NULL);
    ST_CLEANUP(st_freep) int64_t *users_before = user_sums(&step, &jobs);
    st_vec_free(&jobs);

    int rc = 0;
    for (size_t i = 0; rc == 0 && i < fx->list.n; i++)
        rc = on_effect(&step, i, err);
    if (rc == 0)
        rc = same_jobs(&step, err);

    jobs = st_watch_jobs(watch);
    st_tally_build(&after, st_core_fleet(core), st_core_tree(core), &jobs, NULL);
    ST_CLEANUP(st_freep) int64_t *users_after = user_sums(&step, &jobs);
    st_vec_free(&jobs);
    for (size_t i = 0; rc == 0 && i < st_core_tree(core)->accounts.n; i++)
        rc = check_max(st_core_tree(core)->accounts.v[i], &before, &after, err);
    if (rc == 0)
        rc = check_users(&step, users_before, users_after, err);
    st_tally_done(&before);
    st_tally_done(&after);
    return rc;
}
