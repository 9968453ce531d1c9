/*
 * The native engine as the control loop sees it: orders and nodes in, lists of tasks out
 * (engine/native.h).
 */
#include "engine/native.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/logs.h"
#include "engine/native_state.h"

#define LEASE_MS INT64_C(60000)

/* ---- finding, locking ---------------------------------------------------------------------- */

native_node *st_native_node_of(const native *e, int32_t id)
{
    int64_t i;

    return id >= 0 && st_idmap_get(e->by_id, (uint64_t)id, &i) ? e->nodes.v[i] : NULL;
}

native_job *st_native_job_of(const native *e, uint64_t id)
{
    int64_t i;

    return st_idmap_get(e->by_job, id, &i) ? e->jobs.v[i] : NULL;
}

void st_native_lock(native *e)
{
    pthread_mutex_lock(&e->lock);
}

void st_native_unlock(native *e)
{
    __typeof__(e->touched) touched = e->touched;
    __typeof__(e->reports) reports = e->reports;

    e->touched.v = NULL;
    e->touched.n = e->touched.cap = 0;
    e->reports.v = NULL;
    e->reports.n = e->reports.cap = 0;
    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; e->opt.changed && i < touched.n; i++)
        e->opt.changed(e->opt.ctx, touched.v[i]);
    for (size_t i = 0; e->base.report && i < reports.n; i++)
        e->base.report(e->base.ctx, &reports.v[i]);
    st_vec_free(&touched);
    st_vec_free(&reports);
}

void st_native_touch(native *e, native_node *node)
{
    node->revision++;
    node->synced = false;
    st_vec_push(&e->touched, node->id);
}

/* Every node of the job once: its tasks on one node stand together more often than not, and being
 * told twice does no harm. */
void st_native_touch_job(native *e, const native_job *job)
{
    int32_t last = -1;

    for (int t = 0; t < job->tasks; t++) {
        native_node *node = st_native_node_of(e, job->task[t].grant.node);

        if (node && node->id != last)
            st_native_touch(e, node);
        last = node ? node->id : -1;
    }
}

int64_t st_native_lease_told(const native *e)
{
    return e->opt.lease_ms - e->opt.lease_ms / 6;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void remember(const native *e, native_node *node, const native_job *job, int task)
{
    st_task_state state = job->task[task].state;

    /* What it did in a history that is void is not asked for. */
    if (e->lead != ST_LEAD_FULL && !job->adopted)
        return;
    native_past past = {.job = job->id,
                        .stay = job->stay,
                        .task = task,
                        .over = state == ST_TASK_EXITED || state == ST_TASK_UNSTARTED,
                        .tenant = job->tenant,
                        .devs = job->task[task].grant.devs,
                        .used = job->task[task].used};

    st_native_bounds(job, task, e->opt.clock(e->opt.ctx), &past.bounds);

    if (node->past.n < NATIVE_PAST)
        st_vec_push(&node->past, past);
    else
        node->past.v[node->past_at] = past;
    node->past_at = (node->past_at + 1) % NATIVE_PAST;
}

void st_native_unlist(native *e, const native_job *job)
{
    for (int t = 0; t < job->tasks; t++) {
        native_node *node = st_native_node_of(e, job->task[t].grant.node);
        size_t n = 0;

        if (!node)
            continue;
        for (size_t i = 0; i < node->list.n; i++) {
            if (node->list.v[i].job == job)
                remember(e, node, job, node->list.v[i].task);
            else
                node->list.v[n++] = node->list.v[i];
        }
        if (n == node->list.n)
            continue;
        node->list.n = n;
        st_native_touch(e, node);
    }
}

static void enlist(native *e, native_job *job)
{
    for (int t = 0; t < job->tasks; t++) {
        native_node *node = st_native_node_of(e, job->task[t].grant.node);

        if (node)
            st_vec_push(&node->list, (native_entry){job, t});
    }
    st_native_touch_job(e, job);
}

static void job_free(native_job *job)
{
    if (!job)
        return;
    free(job->account);
    free(job->user);
    free(job->domain);
    free(job->doc);
    free(job->image);
    free(job->volumes);
    free(job->type);
    free(job->hosts);
    free(job->task);
    free(job);
}

static void drop(native *e, native_job *job)
{
    size_t i = job->at;

    st_native_unlist(e, job);
    st_native_unhalt(e, job);
    st_idmap_del(e->by_job, job->id);
    e->jobs.v[i] = e->jobs.v[e->jobs.n - 1];
    e->jobs.n--;
    if (i < e->jobs.n) {
        e->jobs.v[i]->at = i;
        st_idmap_put(e->by_job, e->jobs.v[i]->id, (int64_t)i);
    }
    job_free(job);
}

/* What follows from where it is placed. */
static void place(native *e, native_job *job, const st_engine_order *o)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf hosts = {0};
    int32_t type = o->spec->type;

    job->tasks = o->ngrants;
    job->task = st_xreallocarray(job->task, (size_t)ST_MAX(o->ngrants, 1), sizeof *job->task);
    for (int t = 0; t < o->ngrants; t++)
        job->task[t] = (native_task){.grant = o->grants[t]};
    free(job->type);
    job->type = type >= 0 ? st_xstrdup(o->fleet->types.v[type].name) : NULL;
    job->watts = st_watts_of(job->type);
    job->vram_mib = type >= 0 ? o->fleet->types.v[type].vram_mib : 0;
    job->profile = type >= 0 && o->spec->shape.level == ST_LEVEL_MIG
                       ? st_mig_name(o->fleet->types.v[type].board, o->spec->shape.profile)
                       : NULL;
    st_native_hosts(e, o, &hosts);
    free(job->hosts);
    job->hosts = st_strbuf_take(&hosts);
}

static bool same_place(const native_job *job, const st_engine_order *o)
{
    if (job->tasks != o->ngrants)
        return false;
    for (int t = 0; t < job->tasks; t++)
        if (job->task[t].grant.node != o->grants[t].node ||
            job->task[t].grant.devs != o->grants[t].devs ||
            job->task[t].grant.mig_start != o->grants[t].mig_start)
            return false;
    return true;
}

static native_job *make_job(native *e, const st_engine_order *o)
{
    native_job *job = st_xcalloc(1, sizeof *job);

    job->id = o->job;
    job->stay = o->stay;
    job->account = st_xstrdup(o->account ? o->account : "");
    job->user = st_xstrdup(o->user ? o->user : "");
    job->domain = st_xstrdup(o->domain ? o->domain : job->account);
    job->tenant = o->tenant;
    job->domain_tenant = o->domain ? o->domain_tenant : o->tenant;
    job->named = o->named;
    job->untrusted = o->untrusted;
    job->domain_named = o->domain ? o->domain_named : o->named;
    job->doc = st_xstrdup(o->doc && o->doc[0] ? o->doc : "{}");
    job->image = st_xstrdup(o->image && o->image[0] ? o->image : "{}");
    job->volumes = o->volumes && o->volumes[0] ? st_xstrdup(o->volumes) : NULL;
    job->shape = o->spec->shape;
    job->yield = o->spec->yield;
    /* After a restart of stintd the order comes again, later than the job began. */
    job->begun_ms = o->spec->start_ms > 0 ? ST_MIN(o->spec->start_ms, o->at_ms) : o->at_ms;
    job->ran_ms = ST_MAX(o->ran_ms, 0);
    job->at_ms = o->at_ms;
    job->at = e->jobs.n;
    st_idmap_put(e->by_job, job->id, (int64_t)job->at);
    st_vec_push(&e->jobs, job);
    place(e, job, o);
    return job;
}

/* The job with its tasks where the order says; one that is there already stays as it is. */
static native_job *put_in_place(native *e, const st_engine_order *o)
{
    native_job *job = st_native_job_of(e, o->job);

    if (job && job->stay == o->stay && !job->halted && same_place(job, o))
        return job;
    if (job)
        drop(e, job);
    job = make_job(e, o);
    enlist(e, job);
    return job;
}

static void want(native *e, native_job *job, st_want what, int64_t until_ms)
{
    if (job->halted || (job->due && job->report.kind == ST_REPORT_ENDED))
        return; /* it is over; only the order to stop can follow */
    job->due = false;
    if (job->want == what && job->until_ms == until_ms)
        return;
    job->want = what;
    job->until_ms = until_ms;
    st_native_touch_job(e, job);
}

/* ---- orders ------------------------------------------------------------------------------------ */

static void begin(native *e, const st_engine_order *o, st_want what)
{
    native_job *job;

    if (!o->spec)
        return; /* started and ended in one moment: the order to stop comes next */
    job = put_in_place(e, o);
    job->deadline_ms = st_job_end_ms(o->spec, o->at_ms);
    want(e, job, what, 0);
}

static void on_order(st_engine *engine, const st_engine_order *o)
{
    native *e = (native *)engine;
    native_job *job;

    st_native_lock(e);
    job = st_native_job_of(e, o->job);
    if (job && job->stay != o->stay && o->kind != ST_ENG_RUN && o->kind != ST_ENG_STOP)
        job = NULL;
    switch (o->kind) {
    case ST_ENG_RUN:
    case ST_ENG_RESUME:
        begin(e, o, ST_WANT_RUN);
        break;
    case ST_ENG_PAUSE:
        /* With its places after a restart, without them when it is known here. */
        if (!job && o->ngrants > 0)
            begin(e, o, ST_WANT_PAUSE);
        else if (job)
            want(e, job, ST_WANT_PAUSE, 0);
        break;
    case ST_ENG_NOTIFY:
        if (job)
            want(e, job, ST_WANT_NOTIFY, o->until_ms);
        break;
    case ST_ENG_SPARE:
        if (job)
            want(e, job, ST_WANT_RUN, 0);
        break;
    case ST_ENG_CHECKPOINT:
        if (job)
            want(e, job, job->yield == ST_YIELD_PAUSE ? ST_WANT_PAUSE : ST_WANT_CHECKPOINT,
                 o->until_ms);
        break;
    case ST_ENG_LIMIT:
        if (job && o->spec && job->want != ST_WANT_PAUSE) { /* a pause gets it when it is over */
            job->deadline_ms = st_job_end_ms(o->spec, o->at_ms);
            st_native_touch_job(e, job);
        }
        break;
    case ST_ENG_HALT:
        /* With its places after a restart; it may be there, so it is not put on the list. */
        if (!job && o->ngrants > 0 && o->spec)
            job = make_job(e, o);
        if (job)
            st_native_halt(e, job, e->opt.clock(e->opt.ctx));
        break;
    case ST_ENG_STOP:
        if (job)
            drop(e, job);
        break;
    case ST_ENG_COUNT:
        break;
    }
    st_native_unlock(e);
}

/* ---- nodes ------------------------------------------------------------------------------------- */

static native_node *make_node(native *e, const st_node *node)
{
    native_node *n = st_xcalloc(1, sizeof *n);

    n->id = node->id;
    n->name = st_xstrdup(node->name);
    n->state = node->state;
    n->revision = (uint64_t)e->base.epoch << 32 | 1;
    n->lease_ms = e->opt.clock(e->opt.ctx) + e->opt.lease_ms; /* a fresh one after each start */
    st_map_put(e->by_name, n->name, (int64_t)e->nodes.n);
    st_idmap_put(e->by_id, (uint64_t)n->id, (int64_t)e->nodes.n);
    st_vec_push(&e->nodes, n);
    return n;
}

/* Its agent is to hear of it when what tasks may do there has changed. */
static void set_rules(native *e, native_node *node, const st_pool *pool)
{
    const st_pool_rules rules = pool ? st_pool_rules_of(pool) : (st_pool_rules){0};

    if (node->rules.allow != rules.allow || node->rules.node_tasks != rules.node_tasks)
        st_native_touch(e, node);
    node->rules = rules;
}

/* Nobody speaks for it any more, and nobody is on it; what waits for its list hears that it is gone. */
static void forget_node(native *e, native_node *node)
{
    st_map_del(e->by_name, node->name);
    st_idmap_del(e->by_id, (uint64_t)node->id);
    node->removed = true;
    st_vec_push(&e->touched, node->id);
}

/* Which of its GPUs are out for what its agent had said. */
static void know_gpus(native_node *node, const st_node *is)
{
    node->ndevs = is->ndevs;
    node->out_gpus = node->stay_gpus = 0;
    memset(node->gpu_told_ms, 0, sizeof node->gpu_told_ms);
    for (int d = 0; d < is->ndevs; d++) {
        st_node_state state = st_gpu_state(is, d);
        bool fault = (is->out >> d & 1) && is->gpus[d].found.kind != ST_FAULT_NONE;
        bool ours = fault && (state == ST_NODE_FAILED || state == ST_NODE_SUSPECT);
        node->out_gpus |= (uint16_t)(ours << d);
        node->stay_gpus |= (uint16_t)((ours && state == ST_NODE_SUSPECT) << d);
    }
}

static void on_node(st_engine *engine, const st_engine_node *said)
{
    native *e = (native *)engine;
    native_node *node;

    st_native_lock(e);
    node = st_native_node_of(e, said->node->id);
    if (said->node->state == ST_NODE_REMOVED) {
        if (node)
            forget_node(e, node);
    } else if (!said->doc) {
        /* A leftover of another engine: nobody would run anything there. */
        if (said->node->state != ST_NODE_FAILED)
            st_vec_push(&e->reports, (st_report){.kind = ST_REPORT_NODE,
                                                 .node = said->node->id,
                                                 .node_state = ST_NODE_FAILED,
                                                 .reason = "no agent has registered it"});
    } else {
        if (!node)
            node = make_node(e, said->node);
        st_native_read_doc(node, said->doc);
        set_rules(e, node, said->pool);
        st_native_bind(node, said);
        node->state = said->node->state;
        node->ours = node->state != ST_NODE_READY && said->fault;
        node->told_ms = 0;
        know_gpus(node, said->node);
        node->test = said->node->test > said->node->tested ? said->node->test : 0;
        node->test_told_ms = 0;
        free(node->trial);
        node->trial = said->trial ? st_xstrdup(said->trial) : NULL;
    }
    st_native_unlock(e);
}

static void node_free(native_node *node)
{
    free(node->name);
    free(node->address);
    for (int d = 0; d < ST_DEVS_MAX; d++)
        free(node->uuids[d]);
    free(node->images);
    free(node->trial);
    st_vec_free(&node->image_said);
    st_vec_free(&node->said);
    st_vec_free(&node->list);
    st_vec_free(&node->past);
    free(node);
}

/* ---- time ---------------------------------------------------------------------------------------- */

/* One look at every node and job a second: cheap enough for thousands, and nothing to keep sorted. */
static void on_tick(st_engine *engine, int64_t now)
{
    native *e = (native *)engine;

    st_native_lock(e);
    if (now >= e->sweep_ms) {
        e->sweep_ms = now + ST_MIN(NATIVE_SWEEP_MS, e->opt.lease_ms / 4 + 1);
        for (size_t i = 0; i < e->nodes.n; i++) {
            if (e->nodes.v[i]->removed)
                continue;
            st_native_listen(e, e->nodes.v[i], now);
            st_native_judge_node(e, e->nodes.v[i], now);
        }
        st_native_judge_halted(e, now);
        st_native_remind(e, now);
    }
    st_native_unlock(e);
}

static int64_t on_next(st_engine *engine)
{
    native *e = (native *)engine;
    int64_t next;

    st_native_lock(e);
    next = e->nodes.n > 0 ? e->sweep_ms : ST_TIME_NEVER;
    st_native_unlock(e);
    return next;
}

static int on_logs(st_engine *engine, const st_log_ask *ask, st_log_got *ret, st_err *err)
{
    native *e = (native *)engine;

    if (!e->opt.logs)
        return st_fail(err, ST_ENOENT, "this stintd keeps no logs");
    return st_logs_read(e->opt.logs, ask, ret, err);
}

/* ---- making ---------------------------------------------------------------------------------------- */

static void on_free(st_engine *engine)
{
    native *e = (native *)engine;

    for (size_t i = 0; i < e->jobs.n; i++)
        job_free(e->jobs.v[i]);
    for (size_t i = 0; i < e->nodes.n; i++)
        node_free(e->nodes.v[i]);
    st_vec_free(&e->jobs);
    st_vec_free(&e->halted);
    st_vec_free(&e->nodes);
    st_vec_free(&e->touched);
    st_vec_free(&e->reports);
    st_vec_free(&e->measures);
    st_map_free(e->by_name);
    st_idmap_free(e->by_id);
    st_idmap_free(e->by_job);
    st_idmap_free(e->faults);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* Lists are those of this epoch from now on. */
static void on_lead(st_engine *engine, int64_t epoch)
{
    native *e = (native *)engine;

    st_native_lock(e);
    e->base.epoch = epoch;
    for (size_t i = 0; i < e->nodes.n; i++) {
        native_node *node = e->nodes.v[i];

        node->revision = ST_MAX(node->revision, (uint64_t)epoch << 32);
        if (!node->removed)
            st_native_touch(e, node);
    }
    st_native_unlock(e);
}

static void on_place(st_engine *engine, int64_t branch, int64_t position)
{
    native *e = (native *)engine;

    st_native_lock(e);
    e->branch = branch;
    e->position = position;
    st_native_unlock(e);
}

static const st_engine_ops ops = {
    .name = "native",
    .nodes = ST_NODES_AGENTS,
    .lead = on_lead,
    .place = on_place,
    .restored = st_native_on_restored,
    .told = st_native_on_told,
    .measures = st_native_on_measures,
    .used = st_native_on_used,
    .ranks = st_native_on_ranks,
    .order = on_order,
    .tick = on_tick,
    .next_ms = on_next,
    .node = on_node,
    .images = st_native_images,
    .logs = on_logs,
    .free = on_free,
};

st_engine *st_engine_native_new(const st_native_options *options)
{
    native *e = st_xcalloc(1, sizeof *e);

    e->base.ops = &ops;
    e->opt = *options;
    e->opt.lease_ms = e->opt.lease_ms > 0 ? e->opt.lease_ms : LEASE_MS;
    e->by_name = st_map_new();
    e->by_id = st_idmap_new();
    e->by_job = st_idmap_new();
    e->faults = st_idmap_new();
    ST_ASSERT(pthread_mutex_init(&e->lock, NULL) == 0);
    return &e->base;
}

int32_t st_native_node(st_engine *engine, const char *name)
{
    native *e = (native *)engine;
    int32_t id = -1;
    int64_t i;

    st_native_lock(e);
    if (st_map_get(e->by_name, name, &i))
        id = e->nodes.v[i]->id;
    st_native_unlock(e);
    return id;
}

void st_native_refresh(st_engine *engine)
{
    native *e = (native *)engine;

    st_native_lock(e);
    for (size_t i = 0; i < e->jobs.n; i++)
        if (strstr(e->jobs.v[i]->doc, "\"secrets\""))
            st_native_touch_job(e, e->jobs.v[i]);
    st_native_unlock(e);
}

native_past *st_native_was(const native_node *node, uint64_t job, int stay, int task)
{
    for (size_t p = 0; p < node->past.n; p++)
        if (node->past.v[p].job == job && node->past.v[p].stay == stay &&
            node->past.v[p].task == task)
            return &node->past.v[p];
    return NULL;
}

bool st_native_had(st_engine *engine, const char *name, uint64_t job, int stay, int task)
{
    native *e = (native *)engine;
    const native_job *j;
    bool had = false;
    int64_t i;

    st_native_lock(e);
    if (st_map_get(e->by_name, name, &i)) {
        const native_node *node = e->nodes.v[i];

        j = st_native_job_of(e, job);
        had = j && j->stay == stay && task >= 0 && task < j->tasks &&
              j->task[task].grant.node == node->id;
        had = had || st_native_was(node, job, stay, task) != NULL;
    }
    st_native_unlock(e);
    return had;
}
