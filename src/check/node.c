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
        if (passed && (state == ST_NODE_DRAINING || state == ST_NODE_SUSPECT) &&
            fleet->nodes.v[n]->tested == fleet->nodes.v[n]->test)
            unproven[n] = 0;
    }
    return 0;
}
