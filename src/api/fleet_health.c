/*
 * How well the fleet is, for owners: what is in service, out and spare by pool and GPU type; what was out, for how long and why;
 * and how much lies between two failures of the hardware.
 *
 * What was is reckoned from the incidents that the core keeps: those that are open, and the last that are over. So it begins with
 * the oldest of them (`from`), and says nothing while there was none.
 */
#include <string.h>

#include "api/ask.h"
#include "api/state.h"
#include "base/quote.h"

typedef struct tally {
    int64_t nodes, gpus, ready, out_nodes, out_gpus, spare, failures;
    int64_t by_cause[ST_CAUSE_COUNT]; /* nodes that are out for it, or have a GPU that is */
} tally;

typedef struct past {
    int64_t incidents, nodes, out_ms, ended, ended_ms;
} past;

/* Ready, and nobody has or booked anything of it. */
static bool is_spare(const st_node *n)
{
    return n->state == ST_NODE_READY && !n->out && !n->fence && n->residents.n == 0;
}

static void count_node(const st_node *n, tally *t)
{
    bool serves = n->state == ST_NODE_READY || n->state == ST_NODE_SUSPECT;

    t->nodes++;
    t->gpus += n->ndevs;
    t->ready += n->state == ST_NODE_READY ? n->ndevs - __builtin_popcount(n->out) : 0;
    t->out_nodes += !serves;
    t->out_gpus += serves ? __builtin_popcount(n->out) : n->ndevs;
    t->spare += is_spare(n);
}

static void count_incident(const st_core *core, const st_incident *inc, int32_t pool, int32_t type,
                           tally *t)
{
    st_cause cause = st_fault_cause(inc->kind);

    for (size_t i = 0; inc->pool == pool && i < inc->nodes.n; i++) {
        const st_incident_node *at = &inc->nodes.v[i];

        if (st_core_fleet(core)->nodes.v[at->node]->type != type)
            continue;
        t->failures += cause == ST_CAUSE_HARDWARE && (at->taken_ms >= 0 || at->out_ms > 0);
        t->by_cause[cause] += at->out && !at->held;
    }
}

static int64_t from_ms(const st_core *core)
{
    int64_t from = -1;

    for (size_t i = 0; i < st_core_nincidents(core); i++) {
        int64_t at = st_core_incident_at(core, i)->from_ms;

        from = from < 0 ? at : ST_MIN(from, at);
    }
    return from;
}

static void part_json(const st_core *core, int32_t pool, int32_t type, const tally *t,
                      st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);
    int64_t from = from_ms(core), span = ST_MAX(st_core_now(core) - from, 0);

    st_strbuf_addc(out, '{');
    st_out_text(out, "pool", fleet->pools.v[pool].name);
    if (type >= 0)
        st_out_text(out, "type", fleet->types.v[type].name);
    else
        st_out_raw(out, "type", "null");
    st_out_int(out, "nodes", t->nodes);
    st_out_int(out, "nodes_out", t->out_nodes);
    st_out_int(out, "gpus", t->gpus);
    st_out_int(out, "gpus_ready", t->ready);
    st_out_int(out, "gpus_out", t->out_gpus);
    st_out_int(out, "spare_nodes", t->spare);
    st_out_int(out, "failures", t->failures);
    if (t->failures > 0)
        st_out_milli(out, "node_hours_between_failures",
                     (int64_t)((st_i128)span * t->nodes / t->failures / 3600));
    st_out_raw(out, "out_for", "{");
    for (int c = 0; c < ST_CAUSE_COUNT; c++)
        st_out_int(out, st_cause_name((st_cause)c), t->by_cause[c]);
    st_strbuf_add(out, "}}");
}

static void parts_json(const st_core *core, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);
    const char *sep = "";

    st_out_raw(out, "parts", "[");
    for (size_t p = 0; p < fleet->pools.n; p++)
        for (int32_t type = -1; type < (int32_t)fleet->types.n; type++) {
            tally t = {0};

            for (size_t i = 0; i < fleet->nodes.n; i++) {
                const st_node *n = fleet->nodes.v[i];

                if (n->pool == (int32_t)p && n->type == type && n->state != ST_NODE_REMOVED)
                    count_node(n, &t);
            }
            if (t.nodes == 0)
                continue;
            for (size_t i = 0; i < st_core_nincidents(core); i++)
                count_incident(core, st_core_incident_at(core, i), (int32_t)p, type, &t);
            st_strbuf_add(out, sep);
            part_json(core, (int32_t)p, type, &t, out);
            sep = ",";
        }
    st_strbuf_addc(out, ']');
}

static void add_past(const st_incident *inc, int64_t now, past *ret)
{
    ret->incidents++;
    for (size_t i = 0; i < inc->nodes.n; i++) {
        const st_incident_node *at = &inc->nodes.v[i];
        bool still = at->out && !at->held;

        ret->nodes++;
        ret->out_ms += at->out_ms + (still ? now - at->since_ms : 0);
        ret->ended += !still && at->out_ms > 0;
        ret->ended_ms += still ? 0 : at->out_ms;
    }
}

static void causes_json(const st_core *core, st_strbuf *out)
{
    st_out_raw(out, "causes", "[");
    for (int c = 0; c < ST_CAUSE_COUNT; c++) {
        past p = {0};

        for (size_t i = 0; i < st_core_nincidents(core); i++)
            if (st_fault_cause(st_core_incident_at(core, i)->kind) == (st_cause)c)
                add_past(st_core_incident_at(core, i), st_core_now(core), &p);
        st_strbuf_add(out, c > 0 ? ",{" : "{");
        st_out_text(out, "cause", st_cause_name((st_cause)c));
        st_out_int(out, "incidents", p.incidents);
        st_out_int(out, "nodes", p.nodes);
        st_out_milli(out, "node_hours_out", p.out_ms / 3600);
        if (p.ended > 0)
            st_out_milli(out, "seconds_to_return", p.ended_ms / p.ended);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

static int fill(st_question *q, st_core *core, st_err *err)
{
    (void)err;
    st_strbuf_addc(&q->out, '{');
    if (from_ms(core) >= 0)
        st_out_time(&q->out, "from", from_ms(core));
    parts_json(core, &q->out);
    causes_json(core, &q->out);
    st_strbuf_addc(&q->out, '}');
    return 0;
}

void st_api_fleet_health(st_call *call, void *ctx)
{
    if (st_api_is_of_cluster(call))
        st_api_ask(ctx, call, fill, NULL, 0);
}
