/*
 * Single GPUs that fail, drain and come back, from a stream of their own and in worlds of their own (book.c says why).
 */
#include "base/macros.h"
#include "worlds/worlds.h"

/* One that is out already, or whatever comes up. */
static bool some_gpu(st_rng *rng, const st_fleet *fleet, bool out, const st_node **ret,
                     int *ret_gpu)
{
    size_t at = st_rng_below(rng, fleet->nodes.n);
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[(at + i) % fleet->nodes.n];
        if (node->ndevs == 0 || node->state == ST_NODE_REMOVED || (out && !node->out))
            continue;
        *ret = node;
        *ret_gpu = out ? __builtin_ctz(node->out) : (int)st_rng_below(rng, (uint64_t)node->ndevs);
        return true;
    }
    return false;
}

void st_fuzz_gpus(st_fuzz_gen *gen)
{
    static const st_fault kinds[] = {ST_FAULT_XID,      ST_FAULT_XID,  ST_FAULT_GPU,
                                     ST_FAULT_RECOVERY, ST_FAULT_NONE, ST_FAULT_PROGRAM};
    static const st_node_state words[] = {ST_NODE_DRAINING, ST_NODE_FAILED, ST_NODE_RETIRED,
                                          ST_NODE_SUSPECT};
    st_rng *rng = &gen->gpu_rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    const st_node *node;
    int gpu;
    if (!gen->gpus || fleet->nodes.n == 0 || !st_rng_chance(rng, 1, 3))
        return;
    bool again = st_rng_chance(rng, 1, 2);
    if (!some_gpu(rng, fleet, again, &node, &gpu))
        return;
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_NODE_STATE, true);
    entry->node = st_tape_text(gen->tape, "%s", node->name);
    entry->event.u.node_state.part = st_rng_chance(rng, 1, 40) ? ST_DEVS_MAX : gpu + 1;
    entry->event.u.node_state.force = st_rng_chance(rng, 1, 2);
    bool engine = st_rng_chance(rng, 2, 3);
    if (again && engine) {
        entry->event.u.node_state.how = ST_HOW_HEALED;
    } else if (engine) {
        entry->event.u.node_state.how = ST_HOW_FAULT;
        entry->event.u.node_state.state = ST_NODE_FAILED;
        entry->event.u.node_state.finding =
            (st_finding){.kind = kinds[st_rng_below(rng, ST_ARRAY_LEN(kinds))],
                         .gpu = gpu,
                         .code = (int64_t)st_rng_below(rng, 2)};
    } else if (!again) {
        entry->event.u.node_state.state = words[st_rng_below(rng, ST_ARRAY_LEN(words))];
    }
}
