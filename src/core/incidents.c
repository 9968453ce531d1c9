/* What is wrong with nodes: incidents, and the breaker that keeps a storm of one fault from emptying a pool.
 *
 * 1 A fault of a kind joins the open incident of that kind in its pool, where the last one was not long ago or the node is in it
 *   already; else it opens another. An incident is over when none of its nodes is out for it and nothing was found for
 *   the policy `incident_quiet`.
 * 2 What is judged takes a node out of service only while fewer nodes of the pool were taken out for the same cause within
 *   `breaker_window` than the policy allows. The one beyond trips the breaker of the cause and pool, which an incident
 *   carries: until that is over, or somebody has looked, all others are held. Nor is one taken out while as much of
 *   the pool is out, for whatever reason, as `unavailable_share` says.
 * 3 What is only noted, a checker that broke among it, takes nobody out and holds nobody.
 *
 * Called by nodes.c, which has the states. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/state.h"

#define KEPT      128                          /* incidents that are over and remembered */
#define REPEAT_MS (INT64_C(30) * 86400 * 1000) /* a fault after longer is another one */

static void tell(st_core *core, const st_incident *inc, int32_t node, st_incident_news news,
                 st_effects *fx)
{
    st_effect e = st_fx_of(core, ST_FX_INCIDENT, NULL);
    e.other = inc->id;
    e.node = node;
    e.news = news;
    st_fx(core, fx, e, NULL, 0);
}

/* ---- which one --------------------------------------------------------------------------- */

static bool quiet(const st_core *core, const st_incident *inc)
{
    return core->now - inc->last_ms >= core->policy.incident_quiet_ms;
}

static st_incident *find(const st_core *core, const st_node *node, st_fault kind)
{
    st_incident *lately = NULL;
    for (size_t i = core->incidents.n; i-- > 0;) {
        st_incident *inc = core->incidents.v[i];
        if (inc->over || inc->kind != kind || inc->pool != node->pool)
            continue;
        const st_incident_node *at = st_incident_find(inc, node->id);
        if (at && at->out)
            return inc;
        if (!lately && (!quiet(core, inc) || inc->breaker))
            lately = inc;
    }
    return lately;
}

static void forget_old(st_core *core)
{
    size_t over = 0;
    for (size_t i = 0; i < core->incidents.n; i++)
        over += core->incidents.v[i]->over;
    for (size_t i = 0; over > KEPT && i < core->incidents.n;) {
        if (!core->incidents.v[i]->over) {
            i++;
            continue;
        }
        st_incident_free(core->incidents.v[i]);
        st_vec_remove(&core->incidents, i);
        over--;
    }
}

static st_incident *open_one(st_core *core, const st_node *node, const st_finding *finding)
{
    st_incident *inc = st_xcalloc(1, sizeof *inc);
    inc->id = ++core->last_incident;
    inc->kind = finding->kind;
    inc->pool = node->pool;
    inc->from_ms = core->now;
    inc->words = st_xstrdup(finding->words ? finding->words : "");
    st_vec_push(&core->incidents, inc);
    forget_old(core);
    return inc;
}

static bool listed(const st_incident *inc, uint64_t job, int32_t node)
{
    for (size_t i = 0; i < inc->jobs.n; i++)
        if (inc->jobs.v[i].job == job && inc->jobs.v[i].node == node)
            return true;
    return false;
}

/* Who was there. A job with several tasks on the node is there once. */
static void note_jobs(const st_core *core, st_incident *inc, const st_node *node)
{
    st_due_jobs ids = {0};
    st_node_who(node, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        const st_job *job = st_core_find(core, ids.v[i]);
        if (!job || !st_job_on_devices(job) || listed(inc, job->id, node->id))
            continue;
        if (inc->jobs.n >= ST_INCIDENT_JOBS)
            inc->more++;
        else
            st_vec_push(&inc->jobs, (st_incident_job){job->id, job->account, node->id});
    }
    st_vec_free(&ids);
}

/* ---- the breaker -------------------------------------------------------------------------- */

static bool same(const st_incident *inc, const st_node *node, st_cause cause)
{
    return inc->pool == node->pool && st_fault_cause(inc->kind) == cause;
}

static st_incident *tripped(const st_core *core, const st_node *node, st_cause cause)
{
    for (size_t i = 0; i < core->incidents.n; i++) {
        st_incident *inc = core->incidents.v[i];
        if (!inc->over && inc->breaker && same(inc, node, cause))
            return inc;
    }
    return NULL;
}

static int64_t part_of(const st_core *core, const st_node *node, int64_t share_m)
{
    int64_t nodes = 0;
    for (size_t i = 0; i < core->fleet->nodes.n; i++)
        nodes += core->fleet->nodes.v[i]->pool == node->pool &&
                 core->fleet->nodes.v[i]->state != ST_NODE_REMOVED;
    return ST_MAX(nodes * share_m / 1000, core->policy.breaker_nodes);
}

/* Other nodes that were taken out for the cause lately. */
static int64_t taken(const st_core *core, const st_node *node, st_cause cause)
{
    int64_t n = 0;
    for (size_t i = 0; i < core->incidents.n; i++) {
        const st_incident *inc = core->incidents.v[i];
        if (!same(inc, node, cause) || st_fault_weighs(inc->kind) != ST_FAULT_JUDGED)
            continue;
        for (size_t k = 0; k < inc->nodes.n; k++) {
            const st_incident_node *at = &inc->nodes.v[k];
            n += at->node != node->id && at->taken_ms >= 0 &&
                 core->now - at->taken_ms < core->policy.breaker_window_ms;
        }
    }
    return n;
}

/* Others that serve nobody; suspects serve those they have. */
static int64_t away(const st_core *core, const st_node *node)
{
    int64_t n = 0;
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *other = core->fleet->nodes.v[i];
        n += other->pool == node->pool && other != node && other->state != ST_NODE_READY &&
             other->state != ST_NODE_SUSPECT && other->state != ST_NODE_REMOVED;
    }
    return n;
}

typedef enum verdict { TAKE, HOLD, TRIP } verdict;

static verdict judge(const st_core *core, const st_node *node, st_fault kind)
{
    st_cause cause = st_fault_cause(kind);
    if (st_fault_weighs(kind) == ST_FAULT_LOST)
        return TAKE;
    if (tripped(core, node, cause) && !ST_BROKEN(BREAKER))
        return HOLD;
    if (taken(core, node, cause) >= part_of(core, node, core->policy.breaker_share_m))
        return ST_BROKEN(BREAKER) ? TAKE : TRIP;
    if (away(core, node) >= part_of(core, node, core->policy.unavailable_share_m))
        return HOLD;
    return TAKE;
}

bool st_core_holds(const st_core *core, int32_t node, st_fault kind)
{
    const st_node *n = core->fleet->nodes.v[node];
    const st_incident *inc = kind == ST_FAULT_NONE ? NULL : find(core, n, kind);
    const st_incident_node *at = inc ? st_incident_find(inc, node) : NULL;
    return at && at->out && at->held && judge(core, n, kind) != TAKE;
}

/* ---- what happens --------------------------------------------------------------------------- */

static st_incident_node *join(st_incident *inc, const st_core *core, const st_node *node,
                              const st_finding *finding)
{
    st_incident_node *at = st_incident_find(inc, node->id);
    if (!at) {
        st_vec_push(&inc->nodes, (st_incident_node){.node = node->id,
                                                    .gpu = finding->gpu,
                                                    .code = finding->code,
                                                    .from_ms = core->now,
                                                    .taken_ms = -1});
        at = &inc->nodes.v[inc->nodes.n - 1];
    }
    return at;
}

bool st_incident_fault(st_core *core, const st_node *node, const st_finding *finding, bool soft,
                       st_effects *fx)
{
    if (finding->kind == ST_FAULT_NONE)
        return true;
    /* Before it is one of them. */
    verdict v = soft ? TAKE : judge(core, node, finding->kind);
    st_incident *inc = find(core, node, finding->kind);
    bool opens = !inc;
    inc = inc ? inc : open_one(core, node, finding);
    st_incident_node *at = join(inc, core, node, finding);
    bool was = at->out, held = at->held;
    bool noted = st_fault_weighs(finding->kind) == ST_FAULT_NOTED, take = v == TAKE && !noted;
    inc->times++;
    inc->last_ms = core->now;
    note_jobs(core, inc, node);
    /* Who does not come back by itself is not held: nobody would say that it is well again. */
    at->out = take || (!noted && node->state != ST_NODE_RETIRED);
    at->held = at->out && !take;
    if (at->out && !was)
        at->since_ms = core->now;
    if (take && !soft && (!was || held || at->taken_ms < 0))
        at->taken_ms = core->now;
    if (opens)
        tell(core, inc, node->id, ST_INCIDENT_OPENED, fx);
    if (v == TRIP) {
        inc->breaker = true;
        tell(core, inc, node->id, ST_INCIDENT_TRIPPED, fx);
    }
    if (at->held && !held)
        tell(core, inc, node->id, ST_INCIDENT_HELD, fx);
    else if (!opens && take && (!was || held))
        tell(core, inc, node->id, ST_INCIDENT_JOINED, fx);
    st_incidents_set_due(core);
    return take;
}

static void over_it(st_core *core, st_incident *inc, st_incident_node *at, st_effects *fx)
{
    if (!at->held)
        at->out_ms += core->now - at->since_ms;
    at->out = at->held = false;
    inc->last_ms = core->now;
    tell(core, inc, at->node, ST_INCIDENT_BACK, fx);
}

void st_incident_back(st_core *core, const st_node *node, st_effects *fx)
{
    for (size_t i = 0; i < core->incidents.n; i++) {
        st_incident *inc = core->incidents.v[i];
        st_incident_node *at = inc->over ? NULL : st_incident_find(inc, node->id);
        if (at && at->out && !st_gpus_have(node, inc->kind))
            over_it(core, inc, at, fx);
    }
    st_incidents_set_due(core);
}

/* What was taken out before is not counted any more. */
static void count_anew(st_core *core, const st_incident *reset)
{
    for (size_t i = 0; i < core->incidents.n; i++) {
        st_incident *inc = core->incidents.v[i];
        if (inc->pool != reset->pool || st_fault_cause(inc->kind) != st_fault_cause(reset->kind))
            continue;
        inc->breaker = false;
        for (size_t k = 0; k < inc->nodes.n; k++)
            inc->nodes.v[k].taken_ms = -1;
    }
}

int st_core_incident_reset(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    for (size_t i = 0; i < core->incidents.n; i++) {
        st_incident *inc = core->incidents.v[i];
        if (inc->id != ev->u.id)
            continue;
        if (inc->over || !inc->breaker)
            return st_fail(err, ST_ESTATE, "incident %" PRIu64 " %s", inc->id,
                           inc->over ? "is over" : "holds no nodes back");
        count_anew(core, inc);
        tell(core, inc, -1, ST_INCIDENT_RESET, fx);
        return 0;
    }
    return st_fail(err, ST_ENOENT, "there is no incident %" PRIu64, ev->u.id);
}

void st_incidents_set_due(st_core *core)
{
    core->incidents_ms = ST_TIME_NEVER;
    for (size_t i = 0; i < core->incidents.n && !ST_BROKEN(INCIDENT); i++) {
        const st_incident *inc = core->incidents.v[i];
        if (!inc->over && st_incident_out(inc) == 0)
            core->incidents_ms =
                ST_MIN(core->incidents_ms, inc->last_ms + core->policy.incident_quiet_ms);
    }
}

void st_incidents_expire(st_core *core, st_effects *fx)
{
    if (core->incidents_ms > core->now)
        return;
    for (size_t i = 0; i < core->incidents.n; i++) {
        st_incident *inc = core->incidents.v[i];
        if (inc->over || st_incident_out(inc) > 0 || !quiet(core, inc))
            continue;
        inc->over = true;
        inc->breaker = false;
        inc->to_ms = core->now;
        tell(core, inc, -1, ST_INCIDENT_CLOSED, fx);
    }
    forget_old(core);
    st_incidents_set_due(core);
}

bool st_incident_again(st_core *core, st_node *node, const st_finding *finding)
{
    bool hardware =
        finding->kind != ST_FAULT_NONE && st_fault_cause(finding->kind) == ST_CAUSE_HARDWARE;
    if (!hardware)
        return false;
    bool again = node->last.kind == finding->kind && node->last.gpu == finding->gpu &&
                 node->last.code == finding->code && core->now - node->last_ms < REPEAT_MS;
    node->repeats = again ? node->repeats + 1 : 0;
    node->last = (st_finding){finding->kind, finding->gpu, finding->code, NULL};
    node->last_ms = core->now;
    return core->policy.retire_after > 0 && node->repeats >= core->policy.retire_after;
}

/* ---- reading -------------------------------------------------------------------------------- */

size_t st_core_nincidents(const st_core *core)
{
    return core->incidents.n;
}

const st_incident *st_core_incident_at(const st_core *core, size_t i)
{
    ST_ASSERT(i < core->incidents.n);
    return core->incidents.v[i];
}

const st_incident *st_core_incident(const st_core *core, uint64_t id)
{
    for (size_t i = 0; i < core->incidents.n; i++)
        if (core->incidents.v[i]->id == id)
            return core->incidents.v[i];
    return NULL;
}

/* Whether all its nodes are in one domain of the level. */
static bool together(const st_core *core, const st_incident *inc, st_topo level)
{
    int32_t place = core->fleet->nodes.v[inc->nodes.v[0].node]->place[level];
    for (size_t i = 1; i < inc->nodes.n; i++)
        if (core->fleet->nodes.v[inc->nodes.v[i].node]->place[level] != place)
            return false;
    return place >= 0;
}

st_scope st_core_incident_scope(const st_core *core, const st_incident *inc)
{
    if (inc->nodes.n == 1)
        return inc->nodes.v[0].gpu >= 0 ? ST_SCOPE_GPU : ST_SCOPE_NODE;
    if (inc->nodes.n == 0)
        return ST_SCOPE_POOL;
    return together(core, inc, ST_TOPO_RACK)    ? ST_SCOPE_RACK
           : together(core, inc, ST_TOPO_BLOCK) ? ST_SCOPE_SWITCH
                                                : ST_SCOPE_POOL;
}
