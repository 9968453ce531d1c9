/*
 * Nodes that drain by a time, from a stream of their own and in worlds of their own (book.c says why).
 */
#include "base/macros.h"
#include "worlds/worlds.h"

#define MINUTE INT64_C(60000)

/* One that serves, or whatever comes up. */
static const st_node *some_node(st_rng *rng, const st_fleet *fleet, bool draining)
{
    size_t at = st_rng_below(rng, fleet->nodes.n);
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[(at + i) % fleet->nodes.n];
        if (node->state == (draining ? ST_NODE_DRAINING : ST_NODE_READY))
            return node;
    }
    return fleet->nodes.v[at];
}

void st_fuzz_drain(st_fuzz_gen *gen)
{
    static const int64_t spans_ms[] = {-MINUTE, 1, 5000, MINUTE, 3 * MINUTE, 10 * MINUTE};
    st_rng *rng = &gen->drain_rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    if (!gen->drains || fleet->nodes.n == 0 || !st_rng_chance(rng, 1, 6))
        return;
    bool again = st_rng_chance(rng, 2, 5);
    const st_node *node = some_node(rng, fleet, again);
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_NODE_STATE, true);
    entry->node = st_tape_text(gen->tape, "%s", node->name);
    entry->event.u.node_state.force = true;
    entry->event.u.node_state.state =
        again && st_rng_chance(rng, 2, 3) ? ST_NODE_READY : ST_NODE_DRAINING;
    if (entry->event.u.node_state.state == ST_NODE_READY)
        return;
    entry->event.u.node_state.then = (st_drain_then)st_rng_below(rng, ST_DRAIN_COUNT);
    entry->event.u.node_state.by_ms =
        ST_MAX(gen->now + spans_ms[st_rng_below(rng, ST_ARRAY_LEN(spans_ms))], 0);
}
