/*
 * What comes next for a node that is out of service, and which of its GPUs are out alone. Who decided something, and what they
 * wrote, is for owners.
 */
#include "api/ask.h"
#include "api/state.h"
#include "base/quote.h"

/* X(state, what happens, when its agent or a test took it out; what, when somebody did) */
#define NEXT_TABLE(X)                                                                     \
    X(ST_NODE_READY, "", "")                                                              \
    X(ST_NODE_DRAINING, "it serves again once its agent says that this is over",          \
      "an owner makes it ready")                                                          \
    X(ST_NODE_FAILED, "its agent says that this is over; then it is tested",              \
      "an owner makes it ready; then it is tested")                                       \
    X(ST_NODE_REMOVED, "", "")                                                            \
    X(ST_NODE_SUSPECT, "it serves again once its agent says that this is over",           \
      "it is tested, and serves again if it passes")                                      \
    X(ST_NODE_TESTING, "it serves once it has passed", "it serves once it has passed")    \
    X(ST_NODE_REPAIR, "it is tested again, and serves if it passes",                      \
      "it is mended once its jobs have ended; an owner makes it ready, and it is tested") \
    X(ST_NODE_RETIRED, "somebody looks at it; an owner makes it ready, and it is tested", \
      "an owner makes it ready, and it is tested")

static const char *next_of(st_node_state state, bool found)
{
    static const char *const rows[][2] = {
#define X(id, by_fault, by_word) [id] = {by_fault, by_word},
        NEXT_TABLE(X)
#undef X
    };

    ST_ASSERT(state < ST_NODE_STATE_COUNT);
    return rows[state][found ? 0 : 1];
}

const char *st_api_node_next(const st_node *n)
{
    bool found = n->fault.by || n->failed_test;

    if (n->state == ST_NODE_DRAINING && n->drain_ms > 0 && !n->fault.by)
        return "its jobs leave in time; then an owner makes it ready";
    return next_of(n->state, found);
}

static void gpu_json(const st_question *q, const st_node *n, int d, st_strbuf *out)
{
    const st_gpu_out *g = &n->gpus[d];
    bool found = g->found.kind != ST_FAULT_NONE, owner = st_question_owner(q);

    st_strbuf_addc(out, '{');
    st_out_int(out, "gpu", d);
    st_out_text(out, "state", st_node_state_name(g->state));
    if (found)
        st_out_text(out, "fault", st_fault_name(g->found.kind));
    if (found)
        st_out_text(out, "cause", st_cause_name(st_fault_cause(g->found.kind)));
    if (g->note.by && g->note.reason[0] && (owner || found))
        st_out_text(out, "reason", g->note.reason);
    if (g->note.by && owner)
        st_out_text(out, "by", g->note.by);
    if (g->note.by)
        st_out_time(out, "since", g->note.since_ms);
    st_out_text(out, "next", next_of(g->state, found));
    st_strbuf_addc(out, '}');
}

void st_api_node_gpus(const st_question *q, const st_node *n, st_strbuf *out)
{
    const char *sep = "";

    if (!n->out)
        return;
    st_out_raw(out, "gpus_out", "[");
    for (unsigned devs = n->out; devs; devs &= devs - 1, sep = ",") {
        st_strbuf_add(out, sep);
        gpu_json(q, n, __builtin_ctz(devs), out);
    }
    st_strbuf_addc(out, ']');
}
