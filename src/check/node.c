/*
 * Nodes that come into service: where their agent can test them, they have passed a test since they were new, failed, in
 * repair or retired.
 */
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static bool happened(const st_step *step, st_event_kind kind, int32_t node, bool *ret_passed)
{
    bool any = false;
    *ret_passed = false;
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        int32_t of = kind == ST_EV_TESTED ? ev->u.tested.node : ev->u.node_state.node;
        if (ev->kind != kind || (kind != ST_EV_POLICY && of != node))
            continue;
        any = true;
        *ret_passed |= kind == ST_EV_TESTED && ev->u.tested.passed;
    }
    return any;
}

/* Whether GPU d of the node was in a test that was passed in this step. */
static bool gpu_passed(const st_step *step, int32_t node, int d)
{
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        if (ev->kind == ST_EV_TESTED && ev->u.tested.node == node && ev->u.tested.passed &&
            !(ev->u.tested.without >> d & 1))
            return true;
    }
    return false;
}

/* A GPU that had failed alone comes back through a test that it was in. */
static int watch_gpus(const st_step *step, bool rules_moved, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    while (step->watch->gpus_unproven.n < fleet->nodes.n)
        st_vec_push(&step->watch->gpus_unproven, 0);
    uint16_t *unproven = step->watch->gpus_unproven.v;
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        if (e->kind != ST_FX_GPU)
            continue;
        const st_node *node = fleet->nodes.v[e->node];
        int d = (int)e->other;
        uint16_t bit = (uint16_t)(1u << d);
        bool ready = e->node_state == ST_NODE_READY;
        if (ready && (unproven[e->node] & bit) && node->tests && !rules_moved &&
            st_core_policy(step->core)->acceptance && !gpu_passed(step, e->node, d))
            return BAD("accept: GPU %d of node %s is back, and was in no test since it failed", d,
                       node->name);
        if (e->node_state == ST_NODE_FAILED || e->node_state == ST_NODE_RETIRED)
            unproven[e->node] |= bit;
        else if (ready)
            unproven[e->node] &= (uint16_t)~bit;
    }
    return 0;
}

static bool moved(const st_step *step, int32_t node)
{
    for (size_t i = 0; i < step->fx->list.n; i++)
        if (step->fx->list.v[i].kind == ST_FX_NODE && step->fx->list.v[i].node == node)
            return true;
    return false;
}

int st_watch_nodes(const st_step *step, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    bool passed, any;
    while (step->watch->unproven.n < fleet->nodes.n)
        st_vec_push(&step->watch->unproven, 0);
    uint8_t *unproven = step->watch->unproven.v;
    for (size_t n = 0; n < fleet->nodes.n; n++)
        if (happened(step, ST_EV_AGENT, (int32_t)n, &passed))
            unproven[n] = fleet->nodes.v[n]->tests;
    bool rules_moved = happened(step, ST_EV_POLICY, -1, &passed);
    int rc = watch_gpus(step, rules_moved, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        if (e->kind != ST_FX_NODE)
            continue;
        const st_node *node = fleet->nodes.v[e->node];
        any = happened(step, ST_EV_TESTED, e->node, &passed);
        if (e->node_state == ST_NODE_READY && unproven[e->node] && node->tests &&
            !(any && passed) && st_core_policy(step->core)->acceptance && !rules_moved)
            return BAD("accept: node %s is ready, and has passed no test since it had to",
                       node->name);
        unproven[e->node] = e->node_state == ST_NODE_FAILED || e->node_state == ST_NODE_REPAIR ||
                            e->node_state == ST_NODE_RETIRED ||
                            (unproven[e->node] && !(any && passed));
    }
    /* A node that somebody drained may pass meanwhile; nothing changes then. */
    for (size_t n = 0; n < fleet->nodes.n; n++) {
        st_node_state state = fleet->nodes.v[n]->state;
        happened(step, ST_EV_TESTED, (int32_t)n, &passed);
        bool apart = (state == ST_NODE_REPAIR || state == ST_NODE_RETIRED) &&
                     !moved(step, (int32_t)n); /* asked for since it is */
        if (passed && (state == ST_NODE_DRAINING || state == ST_NODE_SUSPECT || apart) &&
            fleet->nodes.v[n]->tested == fleet->nodes.v[n]->test)
            unproven[n] = 0;
    }
    return 0;
}
