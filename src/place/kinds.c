/* Nodes that are alike.
 *
 * Where no GPU is shared, what a node has to offer follows from what it is and how much of it is
 * free, not from which of its GPUs that is; and most nodes of a fleet are like many others. Such
 * nodes are of one kind, and whoever looks at all nodes asks once for each kind.
 *
 * Kinds are numbered from 1 and kept per node, together with its domains and type, in arrays of their own:
 * looking at all nodes must not mean fetching all of them. They follow the fleet's log. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "base/mem.h"
#include "place/placer.h"

#define KINDS_LEAST 1024 /* numbers given before all are given anew */

static uint64_t key_of(const st_node *node)
{
    const st_view *view = &node->view;
    uint64_t key = st_hash_u64(st_hash_u64((uint64_t)node->cpu_m, (uint64_t)node->ram_mib),
                               (uint64_t)(uint32_t)node->type << 32 | (uint32_t)node->pool);
    key = st_hash_u64(key, (uint64_t)node->ndevs << 16 | (uint64_t)node->state << 8 |
                               (uint64_t)__builtin_popcount(view->free));
    return st_hash_u64(st_hash_u64(key, (uint64_t)view->cpu_free_m), (uint64_t)view->ram_free_mib);
}

static void set_kind(st_place_kinds *k, const st_node *node)
{
    k->of[node->id] = 0;
    k->place[node->id].type = node->type;
    if (node->view.shared)
        return;
    uint64_t key = key_of(node);
    int64_t kind;
    if (!st_idmap_get(k->ids, key, &kind)) {
        kind = ++k->count;
        st_idmap_put(k->ids, key, kind);
    }
    k->of[node->id] = (uint32_t)kind;
}

static void cover(st_place_kinds *k, const st_fleet *fleet)
{
    size_t n = fleet->nodes.n;
    k->of = st_xreallocarray(k->of, n, sizeof *k->of);
    k->place = st_xreallocarray(k->place, n, sizeof *k->place);
    for (size_t i = k->n; i < n; i++) {
        const st_node *node = fleet->nodes.v[i];
        memcpy(k->place[i].v, node->place, sizeof k->place[i].v);
        set_kind(k, node);
    }
    k->n = n;
}

/* Number everything anew: too much was missed, or too many kinds are of the past. */
static void start_over(st_place_kinds *k, const st_fleet *fleet)
{
    st_idmap_free(k->ids);
    k->ids = st_idmap_new();
    k->count = 0;
    k->n = 0;
    cover(k, fleet);
}

void st_kinds_look(st_place_kinds *k, const st_fleet *fleet)
{
    if (!k->ids || k->seen < fleet->changes_from || k->count > 2 * fleet->nodes.n + KINDS_LEAST) {
        start_over(k, fleet);
    } else {
        if (k->n < fleet->nodes.n)
            cover(k, fleet);
        for (size_t i = (size_t)(k->seen - fleet->changes_from); i < fleet->changes.n; i++)
            set_kind(k, fleet->nodes.v[fleet->changes.v[i].node]);
    }
    k->seen = st_fleet_changes(fleet);
    if (k->nanswers <= k->count || k->look == UINT32_MAX) {
        free(k->answers);
        k->nanswers = 2 * (size_t)k->count + 1;
        k->answers = st_xcalloc(k->nanswers, sizeof *k->answers);
        k->look = 0;
    }
    k->look++;
}

void st_kinds_done(st_place_kinds *k)
{
    st_idmap_free(k->ids);
    free(k->of);
    free(k->place);
    free(k->answers);
}
