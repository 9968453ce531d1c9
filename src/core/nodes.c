/* The life of a node: who took it out of service and why, who takes it back, and the tests on the way.
 *
 * 1 The core alone has a node's state. Who decided it is noted with it: somebody's word, or the fault that an engine has
 *   found, which that engine alone takes back.
 * 2 A node whose agent can test it comes into service through `testing`: when it is new, and after it had failed, was
 *   repaired or retired (policy `acceptance`).
 * 3 Suspect, testing, repair and retired take nobody's devices away: they only take no new jobs.
 *   Draining does so only where somebody gave it a deadline (drain.c).
 * 4 What an engine or a test finds goes through incidents.c, which may hold it back: then a node that served is suspect, and
 *   any other stays what it is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/book.h"
#include "model/labels.h"

#define OURSELVES "stintd"
#define AGAIN     "the same fault came back after it was repaired: somebody must look at the hardware"

static int need_node(const st_core *core, int32_t id, st_node **ret, st_err *err)
{
    if (id < 0 || (size_t)id >= core->fleet->nodes.n)
        return st_fail(err, ST_ENOENT, "node %d does not exist", id);
    *ret = core->fleet->nodes.v[id];
    if ((*ret)->state == ST_NODE_REMOVED)
        return st_fail(err, ST_ENOENT, "node %s does not exist any more", (*ret)->name);
    return 0;
}

void st_node_who(const st_node *node, st_due_jobs *ret)
{
    for (size_t i = 0; i < node->residents.n; i++) {
        uint64_t id = node->residents.v[i].job->id;
        size_t at = ret->n;
        while (at > 0 && ret->v[at - 1] > id)
            at--;
        if (at > 0 && ret->v[at - 1] == id)
            continue;
        st_vec_push(ret, id);
        for (size_t k = ret->n - 1; k > at; k--)
            ret->v[k] = ret->v[k - 1];
        ret->v[at] = id;
    }
}

static void tell(st_core *core, const st_node *node, st_effects *fx)
{
    st_effect e = st_fx_of(core, ST_FX_NODE, NULL);
    e.node = node->id;
    e.node_state = node->state;
    st_fx(core, fx, e, NULL, 0);
}

/* ---- tests -------------------------------------------------------------------------- */

void st_core_nodes_set_due(st_core *core)
{
    core->nodes_ms = ST_TIME_NEVER;
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (node->due_ms > 0)
            core->nodes_ms = ST_MIN(core->nodes_ms, node->due_ms);
        core->nodes_ms = ST_MIN(core->nodes_ms, st_drain_due_ms(core, node));
    }
}

static void set_due(st_core *core, st_node *node, int64_t in_ms)
{
    bool was = node->due_ms > 0;
    node->due_ms = in_ms > 0 ? ST_MAX(core->now, 0) + in_ms : 0;
    if (was || node->due_ms > 0)
        st_core_nodes_set_due(core);
}

static void ask_test(st_core *core, st_node *node)
{
    node->test++;
    set_due(core, node, 0);
}

void st_core_node_ask(st_core *core, st_node *node, st_effects *fx)
{
    ask_test(core, node);
    tell(core, node, fx);
}

void st_core_node_again(st_core *core, st_node *node, int64_t in_ms)
{
    if (node->due_ms == 0 || node->due_ms > ST_MAX(core->now, 0) + in_ms)
        set_due(core, node, in_ms);
}

/* ---- from one state to another ------------------------------------------------------- */

static st_node_state comes_to(const st_core *core, const st_node *node, st_node_state state)
{
    bool first = core->policy.acceptance && node->tests && node->unproven;
    return state == ST_NODE_READY && first && !ST_BROKEN(ACCEPT) ? ST_NODE_TESTING : state;
}

/* It serves, or will not come back by itself: what it was in is over for it. */
static bool settled(const st_node *node)
{
    return node->state == ST_NODE_READY || node->state == ST_NODE_RETIRED ||
           node->state == ST_NODE_REMOVED;
}

static void entered(st_core *core, st_node *node)
{
    node->failed_test = false;
    set_due(core, node, node->state == ST_NODE_SUSPECT ? core->policy.suspect_ms : 0);
    if (node->state == ST_NODE_TESTING)
        ask_test(core, node);
    else if (!st_node_away(node) && node->tests && st_gpus_wait(node))
        st_core_node_again(core, node, core->policy.retest_ms);
    if (node->state == ST_NODE_FAILED || node->state == ST_NODE_REPAIR ||
        node->state == ST_NODE_RETIRED) {
        node->unproven = true;
        node->tested =
            node->test; /* what is still to be answered says nothing of it as it will be */
    }
}

static bool touches(const st_grant *grant, int32_t node, uint16_t devs)
{
    return grant->node == node && (devs == 0 || (grant->devs & devs));
}

/* Without tests: what was due may have been one of a GPU's, while somebody has the node out for reasons of his own. */
static bool comes_back_alone(const st_node *node)
{
    return node->state == ST_NODE_SUSPECT || node->state == ST_NODE_TESTING ||
           (node->state == ST_NODE_REPAIR && node->failed_test);
}

/* Those of a node's residents that the change of its state concerns, each once, by id. */
static void residents_of(const st_core *core, int32_t node, uint16_t devs, uint64_t **ret,
                         size_t *ret_n)
{
    ST_VEC(uint64_t) ids = {0};
    for (size_t i = 0; i < core->jobs.n; i++) {
        const st_job *job = core->jobs.v[i];
        if (devs != 0 && job->state == ST_JOB_PAUSED && !job->held)
            continue; /* in the memory of the node, and on none of its GPUs */
        for (int t = 0; job->grants && t < job->tasks; t++) {
            if (touches(&job->grants[t], node, devs)) {
                st_vec_push(&ids, job->id);
                break;
            }
        }
    }
    *ret = ids.v;
    *ret_n = ids.n;
}

/* It was submitted with on_fault: fail. Who ends already ends as it would. */
static void fail_job(st_core *core, st_job *job, const st_node *node, st_effects *fx)
{
    if (job->stopping && job->after != ST_JOB_PENDING)
        return;
    job->fault = node->id + 1;
    job->claimant = 0;
    if (!st_core_stop(core, job, ST_JOB_FAILED, false, fx))
        st_core_end_now(core, job, ST_JOB_FAILED, fx);
}

void st_core_node_part(st_core *core, const st_node *node, uint16_t devs, bool lost, st_effects *fx)
{
    uint64_t *ids;
    size_t n;
    residents_of(core, node->id, devs, &ids, &n);
    for (size_t i = 0; i < n; i++) {
        st_job *job = st_core_find(core, ids[i]);
        if (job->held)
            st_core_unhold(core, job, fx);
        if (devs != 0 && job->state == ST_JOB_PAUSED)
            continue; /* it had a plan there, and no GPU */
        if (lost && job->grants && job->fails && !ST_BROKEN(ON_FAULT)) {
            fail_job(core, job, node, fx);
        } else if (lost && job->grants && !ST_BROKEN(FAILED_NODE) &&
                   !st_core_stop(core, job, ST_JOB_PENDING, true, fx)) {
            st_core_restart(core, job);
            st_core_requeue_now(core, job, fx);
        }
    }
    free(ids);
}

/* Who is there goes only where the node has failed. */
static void part(st_core *core, const st_node *node, st_effects *fx)
{
    bool broken = node->state == ST_NODE_SUSPECT && ST_BROKEN(SUSPECT);
    st_core_node_part(core, node, 0, node->state == ST_NODE_FAILED || broken, fx);
}

static int go(st_core *core, st_node *node, st_node_state state, bool force, st_effects *fx,
              st_err *err)
{
    st_node_state was = node->state;
    state = comes_to(core, node, state);
    if (was == state)
        return 0;
    st_node_set_state(core->fleet, node, state);
    force |= state == ST_NODE_FAILED;
    int rc = state == ST_NODE_READY ? 0 : st_book_leave_node(core, node, force, fx, err);
    if (rc < 0) {
        st_node_set_state(core->fleet, node, was);
        return rc;
    }
    entered(core, node);
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
    tell(core, node, fx);
    st_book_set_due(core);
    if (state != ST_NODE_READY)
        part(core, node, fx);
    if (state != ST_NODE_DRAINING && state != ST_NODE_FAILED)
        st_drain_set(core, node, 0, ST_DRAIN_WAIT, fx);
    else
        st_core_nodes_set_due(core);
    if (settled(node))
        st_incident_back(core, node, fx);
    return 0;
}

/* By ourselves: bookings that lose their place are told so. */
static void go_alone(st_core *core, st_node *node, st_node_state state, st_effects *fx)
{
    st_err err;
    ST_ASSERT(go(core, node, state, true, fx, &err) == 0);
}

static void back(st_core *core, st_node *node, st_effects *fx)
{
    st_node_note_set(&node->fault, NULL, NULL, 0);
    st_node_note_set(&node->word, NULL, NULL, 0);
    go_alone(core, node, ST_NODE_READY, fx);
}

/* ---- what is said of it ---------------------------------------------------------------- */

/* From now on it is so, whatever was found before. */
static int said(st_core *core, st_node *node, const st_event *ev, st_effects *fx, st_err *err)
{
    st_node_state state = ev->u.node_state.state;
    if (state == ST_NODE_REMOVED) {
        int rc = st_core_node_remove(core, node, ev->u.node_state.force, fx, err);
        if (rc == 0) {
            st_core_nodes_set_due(core);
            st_incident_back(core, node, fx);
        }
        return rc;
    }
    if (state == ST_NODE_TESTING && !node->tests)
        return st_fail(err, ST_ESTATE, "node %s has no agent that could test it", node->name);
    if (ev->u.node_state.by_ms < 0 || ev->u.node_state.then >= ST_DRAIN_COUNT)
        return st_fail(err, ST_EINVAL, "node %s: its deadline is not well-formed", node->name);
    int rc = go(core, node, state, ev->u.node_state.force, fx, err);
    if (rc < 0)
        return rc;
    st_node_note_set(&node->fault, NULL, NULL, 0);
    st_node_note_set(&node->word, state == ST_NODE_READY ? NULL : ev->u.node_state.by,
                     ev->u.node_state.reason, core->now);
    if (state == ST_NODE_READY)
        node->repeats = 0; /* somebody has looked at it */
    bool drains = state == ST_NODE_DRAINING;
    st_drain_set(core, node, drains ? ev->u.node_state.by_ms : 0,
                 drains ? ev->u.node_state.then : ST_DRAIN_WAIT, fx);
    return 0;
}

/* It goes on as it is, but for new jobs. */
static int hold(st_core *core, st_node *node, const st_event *ev, st_effects *fx, st_err *err)
{
    if (node->state != ST_NODE_READY)
        return 0;
    int rc = go(core, node, ST_NODE_SUSPECT, true, fx, err);
    node->was = ST_NODE_READY;
    st_node_note_set(&node->fault, ev->u.node_state.by ? ev->u.node_state.by : OURSELVES,
                     ev->u.node_state.reason, core->now);
    return rc;
}

/* An engine takes it out: lost, or it takes nothing new. What it was before is kept until the engine takes that back, however
 * often it goes from one to the other. */
static int fault(st_core *core, st_node *node, const st_event *ev, st_effects *fx, st_err *err)
{
    st_node_state was = node->fault.by ? node->was : node->state, state = ev->u.node_state.state;
    bool held = node->state == ST_NODE_SUSPECT && node->fault.by;
    bool serves = node->state == ST_NODE_READY || node->state == ST_NODE_TESTING || held;
    st_finding finding = ev->u.node_state.finding;
    finding.words = ev->u.node_state.reason;
    bool repeats = node->state == state, moves = !repeats && (state == ST_NODE_FAILED || serves);
    bool first = !node->fault.by;
    if (st_fault_weighs(finding.kind) == ST_FAULT_NOTED) {
        st_incident_fault(core, node, &finding, true, fx);
        return 0;
    }
    if (!moves && (!repeats || finding.kind == ST_FAULT_NONE))
        return 0;
    if (!st_incident_fault(core, node, &finding, state == ST_NODE_DRAINING, fx))
        return hold(core, node, ev, fx, err);
    if (repeats)
        return 0;
    int rc = go(core, node, state, true, fx, err);
    if (rc < 0)
        return rc;
    node->was = was;
    if (first && st_incident_again(core, node, &finding))
        node->was = ST_NODE_RETIRED;
    st_node_note_set(&node->fault, ev->u.node_state.by ? ev->u.node_state.by : OURSELVES,
                     ev->u.node_state.reason, core->now);
    return 0;
}

/* Back to what it was: a node that somebody drained goes on draining. */
static int healed(st_core *core, st_node *node, const st_event *ev, st_effects *fx, st_err *err)
{
    if (!node->fault.by)
        return 0; /* somebody else took it out */
    int rc = go(core, node, node->was, ev->u.node_state.force, fx, err);
    if (rc < 0)
        return rc;
    st_node_note_set(&node->fault, NULL, NULL, 0);
    if (node->state == ST_NODE_RETIRED && !node->word.by)
        st_node_note_set(&node->word, OURSELVES, AGAIN, core->now);
    if (node->state == ST_NODE_DRAINING)
        st_incident_back(core, node, fx); /* it is out by somebody's word alone */
    return 0;
}

/* Its notes from before the core had them; its state stays. */
static int recalled(const st_core *core, st_node *node, const st_event *ev)
{
    int64_t since_ms = ev->u.node_state.since_ms > 0 ? ev->u.node_state.since_ms : core->now;
    if (node->state == ST_NODE_READY)
        return 0;
    if (ev->u.node_state.force)
        node->was = ev->u.node_state.state;
    st_node_note_set(ev->u.node_state.force ? &node->fault : &node->word, ev->u.node_state.by,
                     ev->u.node_state.reason, since_ms);
    return 0;
}

int st_core_node_state(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_node *node = NULL;
    int rc = need_node(core, ev->u.node_state.node, &node, err);
    if (rc < 0)
        return rc;
    if (ev->u.node_state.state >= ST_NODE_STATE_COUNT || ev->u.node_state.how >= ST_HOW_COUNT)
        return st_fail(err, ST_EINVAL, "node %s: unknown state", node->name);
    if (ev->u.node_state.reason && strlen(ev->u.node_state.reason) > ST_REASON_MAX)
        return st_fail(err, ST_ELIMIT, "node %s: a reason has at most %d bytes", node->name,
                       ST_REASON_MAX);
    if (ev->u.node_state.part != 0)
        return st_core_gpu_said(core, node, ev, fx, err);
    switch (ev->u.node_state.how) {
    case ST_HOW_FAULT:
        return fault(core, node, ev, fx, err);
    case ST_HOW_HEALED:
        return healed(core, node, ev, fx, err);
    case ST_HOW_RECALLED:
        return recalled(core, node, ev);
    case ST_HOW_SAID:
    case ST_HOW_COUNT:
        break;
    }
    return said(core, node, ev, fx, err);
}

int st_core_node_agent(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_node *node = NULL;
    int rc = need_node(core, ev->u.node_state.node, &node, err);
    if (rc < 0)
        return rc;
    bool first = !node->agent;
    node->agent = true;
    node->tests = ev->u.node_state.tests;
    if (first && node->tests) {
        node->unproven = true;
        if (node->state == ST_NODE_READY)
            go_alone(core, node, ST_NODE_READY, fx);
    }
    /* It was suspected when nobody could test it. */
    if (node->tests && node->state == ST_NODE_SUSPECT && node->due_ms == 0 &&
        node->tested == node->test)
        set_due(core, node, core->policy.suspect_ms);
    if (!node->tests)
        st_gpus_untested(core, node, fx);
    return 0;
}

/* Jobs may allow the node no more, or from now on. Who runs there stays; a plan to come there goes. */
static void pick_again(st_core *core, st_node *node, st_effects *fx)
{
    st_due_jobs ids = {0};
    bool any = false;
    for (size_t i = 0; i < core->jobs.n; i++)
        any |= core->jobs.v[i]->shape.nodes != 0;
    if (!any)
        return;
    st_node_who(node, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        st_job *job = st_core_find(core, ids.v[i]);
        if (job && job->held && !st_fleet_picks(core->fleet, job->shape.nodes, node))
            st_core_unhold(core, job, fx);
        else if (job && job->to && !st_fleet_picks(core->fleet, job->shape.nodes, node))
            st_core_forget_move(core, job);
    }
    st_vec_free(&ids);
    st_node_touch(core->fleet, node);
    st_core_forget_possible(core);
    st_core_changed(core, ST_CHANGED_WAITING | ST_CHANGED_ROUND);
}

/* Bookings that require what it has no more move, as from a node that drains. */
int st_core_node_labels(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_node *node = NULL;
    const char *text = ev->u.labels.text;
    int rc = need_node(core, ev->u.labels.node, &node, err);
    if (rc < 0)
        return rc;
    if (text && !st_labels_ok(text))
        return st_fail(err, ST_EINVAL, "node %s: its labels are not well-formed", node->name);
    if (strcmp(text ? text : "", node->labels ? node->labels : "") == 0)
        return 0;
    char *was = node->labels;
    node->labels = text && text[0] ? st_xstrdup(text) : NULL;
    rc = st_book_leave_node(core, node, ev->u.labels.force, fx, err);
    if (rc < 0) {
        free(node->labels);
        node->labels = was;
        return rc;
    }
    free(was);
    pick_again(core, node, fx);
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
    st_book_set_due(core);
    return 0;
}

/* ---- what tests say ------------------------------------------------------------------- */

/* Somebody wants it tested; it stays what it is until the answer. */
int st_core_node_test(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_node *node = NULL;
    int rc = need_node(core, ev->u.tested.node, &node, err);
    if (rc < 0)
        return rc;
    if (!node->tests || node->state == ST_NODE_FAILED)
        return st_fail(err, ST_ESTATE,
                       node->tests ? "node %s has failed; it is tested when its agent is back"
                                   : "node %s has no agent that could test it",
                       node->name);
    ask_test(core, node);
    tell(core, node, fx);
    return 0;
}

/* Suspect until it is tested again: too many others are out. */
static void doubt(st_core *core, st_node *node, const char *reason, st_effects *fx)
{
    go_alone(core, node, ST_NODE_SUSPECT, fx);
    set_due(core, node, core->policy.suspect_ms);
    if (!node->fault.by)
        st_node_note_set(&node->word, OURSELVES, reason, core->now);
}

/* The checker broke: that says nothing of the node. Who waits for a test is tested again. */
static void untested(st_core *core, st_node *node, const st_finding *finding, st_effects *fx)
{
    st_incident_fault(core, node, finding, true, fx);
    if (node->state != ST_NODE_READY && node->state != ST_NODE_RETIRED)
        set_due(core, node, core->policy.suspect_ms);
    else if (node->state == ST_NODE_READY && st_gpus_wait(node))
        st_core_node_again(core, node, core->policy.retest_ms); /* for GPUs of it */
}

static void failed(st_core *core, st_node *node, const st_event *ev, st_effects *fx)
{
    const char *reason = ev->u.tested.reason;
    st_finding finding = ev->u.tested.finding;
    finding.words = reason;
    bool serves = node->state == ST_NODE_READY || node->state == ST_NODE_SUSPECT;
    bool ours = node->state == ST_NODE_REPAIR && node->failed_test;
    if (st_fault_weighs(finding.kind) == ST_FAULT_NOTED) {
        untested(core, node, &finding, fx);
        return;
    }
    node->unproven = true;
    if (!ours && !serves && node->state != ST_NODE_TESTING)
        return; /* somebody else decides */
    if (!st_incident_fault(core, node, &finding, false, fx) && serves) {
        doubt(core, node, reason, fx);
        return;
    }
    if (!ours && st_incident_again(core, node, &finding)) {
        go_alone(core, node, ST_NODE_RETIRED, fx);
        st_node_note_set(&node->word, OURSELVES, AGAIN, core->now);
        return;
    }
    go_alone(core, node, ST_NODE_REPAIR, fx);
    node->failed_test = true;
    set_due(core, node, core->policy.retest_ms);
    st_node_note_set(&node->word, OURSELVES, reason, core->now);
}

int st_core_node_tested(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_node *node = NULL;
    int rc = need_node(core, ev->u.tested.node, &node, err);
    if (rc < 0)
        return rc;
    if (ev->u.tested.test != node->test || node->tested == node->test)
        return 0; /* of a test that nobody waits for */
    node->tested = node->test;
    int gpu = ev->u.tested.finding.gpu;
    if (!ev->u.tested.passed && gpu >= 0 && gpu < node->ndevs && (node->out >> gpu & 1) &&
        node->state == ST_NODE_READY) {
        set_due(core, node, core->policy.retest_ms); /* it is out already, and it alone */
        return 0;
    }
    if (!ev->u.tested.passed) {
        failed(core, node, ev, fx);
        return 0;
    }
    node->unproven = false;
    node->passed_ms = core->now;
    if (node->state == ST_NODE_TESTING || node->state == ST_NODE_SUSPECT ||
        (node->state == ST_NODE_REPAIR && node->failed_test))
        back(core, node, fx);
    st_gpus_passed(core, node, ev->u.tested.without, fx);
    return 0;
}

/* Suspects, and those that had failed a test, are tested again; where nobody can, a suspicion is over. Who drains may
 * be at its deadline. */
void st_core_nodes_expire(st_core *core, st_effects *fx)
{
    if (core->nodes_ms > core->now)
        return;
    st_core_changed(core, ST_CHANGED_WAITING | ST_CHANGED_ROUND);
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        st_node *node = core->fleet->nodes.v[i];
        st_drain_expire(core, node, fx);
        if (node->due_ms == 0 || node->due_ms > core->now)
            continue;
        node->due_ms = 0;
        if (!node->tests && node->fault.by)
            continue; /* its engine takes it back; there is nothing to look at again and again */
        if (!node->tests) {
            if (comes_back_alone(node))
                back(core, node, fx);
            continue;
        }
        ask_test(core, node);
        tell(core, node, fx);
    }
    st_core_nodes_set_due(core);
}
