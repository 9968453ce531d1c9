/* The life of a GPU whose node is well: it alone goes out of service, and the jobs on its siblings go on.
 *
 * 1 A GPU that is out takes nobody new, whatever its node does: views show it as taken (model/view.c).
 * 2 A fault of the GPU ends the stays that have it, and no others; they go on elsewhere, or fail with it (on_fault). A breaker
 *   may hold that back: then the GPU is suspect, and who has it stays. Somebody's word `draining` ends nobody.
 * 3 A GPU that had failed comes back through a test of its node that it was in, where the agent can test. One whose fault comes
 *   back too often is retired.
 * 4 What it counts for is what nodes count for: a GPU that failed is no capacity, one that drains is while somebody has it.
 *
 * Called by nodes.c, for events that name a GPU. */
#include "base/mem.h"
#include "core/book.h"

#define OURSELVES "stintd"
#define AGAIN     "the same fault came back after it was repaired: somebody must look at the GPU"

static void tell(st_core *core, const st_node *node, int gpu, st_effects *fx)
{
    st_effect e = st_fx_of(core, ST_FX_GPU, NULL);
    e.node = node->id;
    e.other = (uint64_t)gpu;
    e.node_state = st_gpu_state(node, gpu);
    st_fx(core, fx, e, NULL, 0);
}

static bool by_fault(const st_node *node, int gpu)
{
    return (node->out >> gpu & 1) && node->gpus[gpu].found.kind != ST_FAULT_NONE;
}

bool st_gpus_have(const st_node *node, st_fault kind)
{
    for (int d = 0; d < node->ndevs; d++)
        if ((node->out >> d & 1) && node->gpus[d].found.kind == kind && kind != ST_FAULT_NONE &&
            node->gpus[d].state != ST_NODE_RETIRED)
            return true;
    return false;
}

bool st_gpus_wait(const st_node *node)
{
    for (int d = 0; d < node->ndevs; d++)
        if (st_gpu_state(node, d) == ST_NODE_TESTING || st_gpu_state(node, d) == ST_NODE_SUSPECT)
            return true;
    return false;
}

/* It is over its incident, unless a sibling is in it, or the node itself. */
static void back_of(st_core *core, const st_node *node, st_effects *fx)
{
    if (!node->fault.by && !node->failed_test && node->state != ST_NODE_TESTING)
        st_incident_back(core, node, fx);
}

static int go(st_core *core, st_node *node, int gpu, st_node_state state, bool force,
              st_effects *fx, st_err *err)
{
    st_node_state was = st_gpu_state(node, gpu);
    if (was == state)
        return 0;
    st_node_set_gpu(core->fleet, core->tree, node, gpu, state);
    int rc = was == ST_NODE_READY ? st_book_leave_node(core, node, force, fx, err) : 0;
    if (rc < 0) {
        st_node_set_gpu(core->fleet, core->tree, node, gpu, was);
        return rc;
    }
    if (state == ST_NODE_FAILED || state == ST_NODE_RETIRED)
        node->gpus[gpu].unproven = true;
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
    st_core_retime_all(core);
    tell(core, node, gpu, fx);
    st_book_set_due(core);
    if (state != ST_NODE_READY)
        st_core_node_part(core, node, (uint16_t)(1u << gpu),
                          state == ST_NODE_FAILED && !ST_BROKEN(GPU_STAY), fx);
    if (state == ST_NODE_TESTING)
        st_core_node_ask(core, node, fx);
    if (state == ST_NODE_SUSPECT && node->tests)
        st_core_node_again(core, node, core->policy.suspect_ms);
    if (state == ST_NODE_READY || state == ST_NODE_RETIRED)
        back_of(core, node, fx);
    return 0;
}

/* By ourselves: bookings that lose their place are told so. */
static void go_alone(st_core *core, st_node *node, int gpu, st_node_state state, st_effects *fx)
{
    st_err err;
    ST_ASSERT(go(core, node, gpu, state, true, fx, &err) == 0);
}

/* Through a test, where there was a reason to doubt it and somebody can test. */
static st_node_state comes_to(const st_core *core, const st_node *node, int gpu)
{
    bool doubt = (node->out >> gpu & 1) && node->gpus[gpu].unproven;
    bool first = doubt && core->policy.acceptance && node->tests && !ST_BROKEN(GPU_TEST);
    return first ? ST_NODE_TESTING : ST_NODE_READY;
}

static void note(st_core *core, st_node *node, int gpu, const st_event *ev)
{
    const char *by = ev->u.node_state.by;
    if (node->out >> gpu & 1)
        st_node_note_set(&node->gpus[gpu].note, by ? by : OURSELVES, ev->u.node_state.reason,
                         core->now);
}

static int fault(st_core *core, st_node *node, int gpu, const st_event *ev, st_effects *fx,
                 st_err *err)
{
    st_finding finding = ev->u.node_state.finding;
    st_node_state was = st_gpu_state(node, gpu);
    finding.words = ev->u.node_state.reason;
    finding.gpu = gpu;
    if (st_fault_weighs(finding.kind) == ST_FAULT_NOTED) {
        st_incident_fault(core, node, &finding, true, fx);
        return 0;
    }
    if (was == ST_NODE_FAILED || was == ST_NODE_RETIRED)
        return 0; /* it is out already */
    bool take = st_incident_fault(core, node, &finding, false, fx);
    bool first = !by_fault(node, gpu);
    if (was == ST_NODE_DRAINING && !take && first)
        return 0; /* somebody took it out already: that stands */
    st_node_state state = take ? ST_NODE_FAILED : was == ST_NODE_READY ? ST_NODE_SUSPECT : was;
    int rc = go(core, node, gpu, state, true, fx, err);
    if (rc < 0)
        return rc;
    node->gpus[gpu].found = finding;
    node->gpus[gpu].found.words = NULL;
    if (take && first)
        node->gpus[gpu].worn = st_incident_again(core, node, &finding);
    note(core, node, gpu, ev);
    return 0;
}

static int healed(st_core *core, st_node *node, int gpu, st_effects *fx, st_err *err)
{
    if (!by_fault(node, gpu) || st_gpu_state(node, gpu) == ST_NODE_TESTING ||
        st_gpu_state(node, gpu) == ST_NODE_RETIRED)
        return 0; /* somebody else took it out, or it is on its way */
    st_gpu_out *g = &node->gpus[gpu];
    if (!g->worn)
        return go(core, node, gpu, comes_to(core, node, gpu), true, fx, err);
    int rc = go(core, node, gpu, ST_NODE_RETIRED, true, fx, err);
    st_node_note_set(&g->note, OURSELVES, AGAIN, core->now);
    return rc;
}

/* From now on it is so, whatever was found before. */
static int said(st_core *core, st_node *node, int gpu, const st_event *ev, st_effects *fx,
                st_err *err)
{
    st_node_state state = ev->u.node_state.state;
    if (state != ST_NODE_READY && state != ST_NODE_DRAINING && state != ST_NODE_FAILED &&
        state != ST_NODE_RETIRED)
        return st_fail(err, ST_EINVAL, "GPU %d of node %s: a GPU alone cannot be %s", gpu,
                       node->name, st_node_state_name(state));
    if (state == ST_NODE_READY)
        state = comes_to(core, node, gpu);
    int rc = go(core, node, gpu, state, ev->u.node_state.force, fx, err);
    if (rc < 0 || !(node->out >> gpu & 1))
        return rc;
    if (state != ST_NODE_TESTING)
        node->gpus[gpu].found = (st_finding){.gpu = -1};
    node->gpus[gpu].worn = false;
    note(core, node, gpu, ev);
    back_of(core, node, fx);
    return 0;
}

int st_core_gpu_said(st_core *core, st_node *node, const st_event *ev, st_effects *fx, st_err *err)
{
    int gpu = ev->u.node_state.part - 1;
    if (gpu < 0 || gpu >= node->ndevs)
        return st_fail(err, ST_EINVAL, "node %s has %d GPUs, numbered from 0", node->name,
                       node->ndevs);
    switch (ev->u.node_state.how) {
    case ST_HOW_FAULT:
        return fault(core, node, gpu, ev, fx, err);
    case ST_HOW_HEALED:
        return healed(core, node, gpu, fx, err);
    case ST_HOW_SAID:
        return said(core, node, gpu, ev, fx, err);
    case ST_HOW_RECALLED:
    case ST_HOW_COUNT:
        break;
    }
    return st_fail(err, ST_EINVAL, "GPU %d of node %s: nothing is recalled of it", gpu, node->name);
}

void st_gpus_passed(st_core *core, st_node *node, uint16_t without, st_effects *fx)
{
    for (int d = 0; d < node->ndevs; d++) {
        st_node_state state = st_gpu_state(node, d);
        if ((state == ST_NODE_TESTING || state == ST_NODE_SUSPECT) && !(without >> d & 1))
            go_alone(core, node, d, ST_NODE_READY, fx);
    }
    if (st_gpus_wait(node))
        st_core_node_again(core, node, core->policy.retest_ms);
}

void st_gpus_untested(st_core *core, st_node *node, st_effects *fx)
{
    for (int d = 0; d < node->ndevs; d++)
        if (st_gpu_state(node, d) == ST_NODE_TESTING)
            go_alone(core, node, d, ST_NODE_READY, fx);
}
