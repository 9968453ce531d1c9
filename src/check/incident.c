/*
 * Incidents: a storm of one fault does not empty a pool, and what nobody is out for any more is over.
 *
 * Who was taken out lately is counted from events and effects alone, and rather too few than too many: a node that was being
 * tested served nobody, and after somebody has looked at a breaker all counting begins anew.
 */
#include <inttypes.h>

#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static const st_finding *finding_of(const st_event *ev, int32_t *ret_node)
{
    if (ev->kind == ST_EV_NODE_STATE && ev->u.node_state.how == ST_HOW_FAULT &&
        ev->u.node_state.state == ST_NODE_FAILED) {
        *ret_node = ev->u.node_state.node;
        return &ev->u.node_state.finding;
    }
    if (ev->kind == ST_EV_TESTED && !ev->u.tested.passed) {
        *ret_node = ev->u.tested.node;
        return &ev->u.tested.finding;
    }
    return NULL;
}

/* Somebody's own word took it out in the same step, or may have. */
static bool spoken(const st_step *step, int32_t node)
{
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        if (ev->kind == ST_EV_NODE_STATE && ev->u.node_state.node == node &&
            ev->u.node_state.how == ST_HOW_SAID)
            return true;
    }
    return false;
}

static bool taken_out(const st_step *step, int32_t node)
{
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        if (e->kind == ST_FX_NODE && e->node == node &&
            (e->node_state == ST_NODE_FAILED || e->node_state == ST_NODE_DRAINING ||
             e->node_state == ST_NODE_REPAIR))
            return true;
        if (e->kind == ST_FX_GPU && e->node == node && e->node_state == ST_NODE_FAILED)
            return true;
    }
    return false;
}

static int64_t most(const st_step *step, int32_t pool)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    const st_policy *p = st_core_policy(step->core);
    int64_t n = 0;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        n += fleet->nodes.v[i]->pool == pool && fleet->nodes.v[i]->state != ST_NODE_REMOVED;
    n = n * p->breaker_share_m / 1000;
    return n > p->breaker_nodes ? n : p->breaker_nodes;
}

/* `alone`: one of its GPUs; a node that counts already is not counted from then. */
static int take(const st_step *step, int32_t id, st_fault kind, bool alone, st_err *err)
{
    const st_node *node = st_core_fleet(step->core)->nodes.v[id];
    int64_t window_ms = st_core_policy(step->core)->breaker_window_ms, others = 0;
    st_cause cause = st_fault_cause(kind);
    for (size_t i = 0; i < step->watch->taken.n; i++) {
        const st_watch_taken *t = &step->watch->taken.v[i];
        if (t->node == id && t->cause == cause && alone)
            return 0;
        if (t->node == id && t->cause == cause)
            st_vec_remove(&step->watch->taken, i--);
        else
            others +=
                t->pool == node->pool && t->cause == cause && step->now - t->at_ms < window_ms;
    }
    if (others >= most(step, node->pool))
        return BAD("breaker: node %s was taken out for %s, after %" PRId64
                   " others of its pool that may be %" PRId64,
                   node->name, st_cause_name(cause), others, most(step, node->pool));
    st_vec_push(&step->watch->taken, (st_watch_taken){id, node->pool, cause, step->now});
    return 0;
}

int st_watch_incidents(const st_step *step, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    int rc = 0;
    while (step->watch->served.n < fleet->nodes.n)
        st_vec_push(&step->watch->served, false);
    for (size_t i = 0; rc == 0 && i < step->nevents; i++) {
        int32_t node = -1;
        const st_event *ev = step->events[i];
        const st_finding *found = finding_of(ev, &node);
        bool alone = ev->kind == ST_EV_NODE_STATE && ev->u.node_state.part > 0;
        if (ev->kind == ST_EV_INCIDENT)
            st_vec_clear(&step->watch->taken);
        if (found && found->kind != ST_FAULT_NONE &&
            st_fault_weighs(found->kind) == ST_FAULT_JUDGED && step->watch->served.v[node] &&
            taken_out(step, node) && !spoken(step, node))
            rc = take(step, node, found->kind, alone, err);
    }
    for (size_t n = 0; n < fleet->nodes.n; n++)
        step->watch->served.v[n] = fleet->nodes.v[n]->state == ST_NODE_READY;
    return rc;
}

static bool may_be_out(const st_node *node)
{
    bool gpu = node->out && node->state != ST_NODE_REMOVED;
    return gpu || (node->state != ST_NODE_READY && node->state != ST_NODE_REMOVED &&
                   node->state != ST_NODE_RETIRED);
}

int st_check_incidents(const st_core *core, st_err *err)
{
    for (size_t i = 0; i < st_core_nincidents(core); i++) {
        const st_incident *inc = st_core_incident_at(core, i);
        bool any = false;
        for (size_t k = 0; k < inc->nodes.n; k++) {
            const st_incident_node *at = &inc->nodes.v[k];
            const st_node *node = st_core_fleet(core)->nodes.v[at->node];
            any |= may_be_out(node);
            if (at->out && (inc->over || !may_be_out(node)))
                return BAD("incident: %" PRIu64 " has node %s, which is %s", inc->id, node->name,
                           st_node_state_name(node->state));
        }
        if (!inc->over && !any &&
            st_core_now(core) - inc->last_ms > st_core_policy(core)->incident_quiet_ms)
            return BAD("incident: %" PRIu64 " is not over, and nobody is out for it", inc->id);
    }
    return 0;
}
