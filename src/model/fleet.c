/* Building the fleet: types, pools, nodes and the domains they form. */
#include "model/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/mem.h"
#include "base/mutant.h"

st_fleet *st_fleet_new(void)
{
    st_fleet *fleet = st_xcalloc(1, sizeof *fleet);
    fleet->node_ids = st_map_new();
    fleet->domain_ids = st_map_new();
    return fleet;
}

void st_node_note_set(st_node_note *note, const char *by, const char *reason, int64_t since_ms)
{
    char *next_by = by ? st_xstrdup(by) : NULL;
    char *next = by ? st_xstrdup(reason ? reason : "") : NULL;
    free(note->by);
    free(note->reason);
    *note = (st_node_note){.by = next_by, .reason = next, .since_ms = by ? since_ms : 0};
}

/* What was said of it is of nobody's concern any more. */
static void forget(st_node *node)
{
    st_node_note_set(&node->word, NULL, NULL, 0);
    st_node_note_set(&node->fault, NULL, NULL, 0);
    for (int d = 0; node->gpus && d < node->ndevs; d++)
        st_node_note_set(&node->gpus[d].note, NULL, NULL, 0);
    free(node->gpus);
    node->gpus = NULL;
    node->out = 0;
    node->due_ms = 0;
}

void st_fleet_free(st_fleet *fleet)
{
    if (!fleet)
        return;
    for (size_t i = 0; i < fleet->types.n; i++)
        free(fleet->types.v[i].name);
    st_vec_free(&fleet->types);
    for (size_t i = 0; i < fleet->pools.n; i++)
        free(fleet->pools.v[i].name);
    st_vec_free(&fleet->pools);
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        st_node *node = fleet->nodes.v[i];
        free(node->name);
        free(node->labels);
        st_vec_free(&node->residents);
        forget(node);
        free(node);
    }
    st_vec_free(&fleet->nodes);
    st_vec_free(&fleet->changes);
    for (size_t i = 0; i < fleet->picks.n; i++)
        free(fleet->picks.v[i].text);
    st_vec_free(&fleet->picks);
    st_idmap_free(fleet->pick_at);
    for (int l = 0; l < ST_TOPO_COUNT; l++) {
        for (size_t i = 0; i < fleet->domains[l].n; i++) {
            free(fleet->domains[l].v[i].name);
            st_vec_free(&fleet->domains[l].v[i].nodes);
        }
        st_vec_free(&fleet->domains[l]);
    }
    st_map_free(fleet->node_ids);
    st_map_free(fleet->domain_ids);
    free(fleet);
}

int st_fleet_type(const st_fleet *fleet, const char *name)
{
    for (size_t i = 0; i < fleet->types.n; i++)
        if (strcmp(fleet->types.v[i].name, name) == 0)
            return (int)i;
    return -1;
}

int st_fleet_pool(const st_fleet *fleet, const char *name)
{
    for (size_t i = 0; i < fleet->pools.n; i++)
        if (st_pool_there(&fleet->pools.v[i]) && strcmp(fleet->pools.v[i].name, name) == 0)
            return (int)i;
    return -1;
}

int32_t st_fleet_node(const st_fleet *fleet, const char *name)
{
    int64_t id;
    return st_map_get(fleet->node_ids, name, &id) ? (int32_t)id : -1;
}

const char *st_drain_name(st_drain_then then)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_DRAIN_TABLE(X)
#undef X
    };
    ST_ASSERT(then < ST_DRAIN_COUNT);
    return names[then];
}

const char *st_node_state_name(st_node_state state)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_NODE_STATE_TABLE(X)
#undef X
    };
    ST_ASSERT(state < ST_NODE_STATE_COUNT);
    return names[state];
}

void st_fleet_whole(const st_fleet *fleet, st_use *ret)
{
    *ret = (st_use){0};
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[i];
        if (node->state == ST_NODE_REMOVED)
            continue;
        if (node->ndevs > 0) {
            ret->gpu_m += (int64_t)node->ndevs * ST_WHOLE_M;
            ret->type_m[node->type] += (int64_t)node->ndevs * ST_WHOLE_M;
        }
        ret->cpu_m += node->cpu_m;
        ret->ram_mib += node->ram_mib;
    }
}

uint64_t st_fleet_changes(const st_fleet *fleet)
{
    return fleet->changes_from + fleet->changes.n;
}

uint64_t st_fleet_changes_of(const st_fleet *fleet, int32_t type)
{
    return fleet->changed[type + 1];
}

int st_fleet_add_type(st_fleet *fleet, const char *name, int64_t vram_mib, st_board board,
                      st_err *err)
{
    if (!st_name_ok(name))
        return st_fail(err, ST_EINVAL, "a GPU type's name must be 1 to %d bytes without spaces",
                       ST_NAME_MAX);
    for (int d = 0; d < ST_NDIMS; d++)
        if (strcmp(name, st_dim_name((st_dim)d)) == 0)
            return st_fail(err, ST_EINVAL, "GPU type %s: gpu, cpu and ram are reserved names",
                           name);
    if (st_fleet_type(fleet, name) >= 0)
        return st_fail(err, ST_EEXIST, "GPU type %s exists already", name);
    if (fleet->types.n >= ST_TYPES_MAX)
        return st_fail(err, ST_ELIMIT, "GPU type %s: at most %d types", name, ST_TYPES_MAX);
    if (board >= ST_BOARD_COUNT)
        return st_fail(err, ST_EINVAL, "GPU type %s: its board is unknown", name);
    if (vram_mib <= 0 || vram_mib > ST_QTY_MAX)
        return st_fail(err, ST_ERANGE, "GPU type %s: its VRAM is out of range", name);
    st_vec_push(&fleet->types, (st_gpu_type){st_xstrdup(name), vram_mib, board});
    return 0;
}

static int check_pool(const char *name, uint32_t levels, int64_t oversub_m, st_err *err)
{
    if (levels >> ST_LEVEL_COUNT)
        return st_fail(err, ST_EINVAL, "pool %s: it allows a level that does not exist", name);
    if (oversub_m < 1000 || oversub_m > 4000)
        return st_fail(err, ST_ERANGE, "pool %s: the time-slicing factor must be 1 to 4", name);
    return 0;
}

int st_fleet_set_rules(st_fleet *fleet, int32_t pool, const st_pool_rules *rules, st_err *err)
{
    st_pool *p = &fleet->pools.v[pool];
    if (rules->allow >> ST_ALLOW_COUNT)
        return st_fail(err, ST_EINVAL, "pool %s: it gives a permission that does not exist",
                       p->name);
#define X(field, key, kind, def, hi)             \
    if (rules->field < 0 || rules->field > (hi)) \
        return st_fail(err, ST_ERANGE, "pool %s: %s is out of range", p->name, key);
    ST_POOL_RULE_TABLE(X)
#undef X
    if (rules->lacks & ~ST_NEED_WAYS >> ST_NEED_WAY_SHIFT)
        return st_fail(err, ST_EINVAL, "pool %s: its engine lacks a way to yield that all have",
                       p->name);
    p->rules = *rules;
    return 0;
}

st_pool_rules st_pool_rules_of(const st_pool *pool)
{
    st_pool_rules rules = pool->rules;
#define X(field, key, kind, def, hi) rules.field = rules.field ? rules.field : (def);
    ST_POOL_RULE_TABLE(X)
#undef X
    return rules;
}

int st_fleet_set_pool(st_fleet *fleet, const st_tree *tree, int32_t pool, uint32_t levels,
                      int64_t oversub_m, st_err *err)
{
    st_pool *p = &fleet->pools.v[pool];
    int rc = check_pool(p->name, levels, oversub_m, err);
    if (rc < 0)
        return rc;
    p->levels = levels;
    p->oversub_m = oversub_m;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->pool == pool && !ST_BROKEN(POOL_ROOM))
            st_node_refresh(fleet, tree, fleet->nodes.v[i]);
    return 0;
}

int st_fleet_add_pool(st_fleet *fleet, const char *name, uint32_t levels, int64_t oversub_m,
                      st_err *err)
{
    if (!st_name_ok(name))
        return st_fail(err, ST_EINVAL, "a pool's name must be 1 to %d bytes without spaces",
                       ST_NAME_MAX);
    if (st_fleet_pool(fleet, name) >= 0)
        return st_fail(err, ST_EEXIST, "pool %s exists already", name);
    size_t slot = 0;
    while (slot < fleet->pools.n && st_pool_there(&fleet->pools.v[slot]))
        slot++;
    if (slot >= ST_POOLS_MAX)
        return st_fail(err, ST_ELIMIT, "pool %s: at most %d pools", name, ST_POOLS_MAX);
    int rc = check_pool(name, levels, oversub_m, err);
    if (rc < 0)
        return rc;
    const st_pool pool = {.name = st_xstrdup(name), .levels = levels, .oversub_m = oversub_m};
    if (slot == fleet->pools.n) {
        st_vec_push(&fleet->pools, pool);
    } else {
        free(fleet->pools.v[slot].name);
        fleet->pools.v[slot] = pool;
    }
    return 0;
}

void st_fleet_remove_pool(st_fleet *fleet, int32_t pool)
{
    free(fleet->pools.v[pool].name);
    fleet->pools.v[pool] = (st_pool){.name = st_xstrdup(""), .oversub_m = ST_WHOLE_M};
}

static void leave(st_fleet *fleet, st_topo level, int32_t domain, int32_t node)
{
    if (domain < 0)
        return;
    st_domain *d = &fleet->domains[level].v[domain];
    size_t n = 0;
    for (size_t i = 0; i < d->nodes.n; i++)
        if (d->nodes.v[i] != node)
            d->nodes.v[n++] = d->nodes.v[i];
    d->nodes.n = n;
}

void st_fleet_remove_node(st_fleet *fleet, st_node *node)
{
    ST_ASSERT(node->residents.n == 0 && node->state == ST_NODE_REMOVED);
    st_map_del(fleet->node_ids, node->name);
    for (int l = ST_TOPO_ZONE; l <= ST_TOPO_RACK; l++)
        leave(fleet, (st_topo)l, node->place[l], node->id);
    for (int d = 0; d < node->ndevs; d++)
        leave(fleet, ST_TOPO_NVLINK, node->nvlink[d], node->id);
    node->home = 0;
    for (unsigned devs = node->out; devs; devs &= devs - 1)
        node->view.dev[__builtin_ctz(devs)].mode = ST_DEV_FREE; /* nobody is on it */
    st_view_seal(node, &node->view);
    forget(node);
}

/* The domain of that name, made on first mention. */
static int32_t domain(st_fleet *fleet, st_topo level, const char *name)
{
    if (!name)
        return -1;
    char key[2 * ST_NAME_MAX + 32];
    snprintf(key, sizeof key, "%s/%s", st_topo_name(level), name);
    int64_t id;
    if (st_map_get(fleet->domain_ids, key, &id))
        return (int32_t)id;
    id = (int64_t)fleet->domains[level].n;
    st_vec_push(&fleet->domains[level], (st_domain){.name = st_xstrdup(name)});
    st_map_put(fleet->domain_ids, key, id);
    return (int32_t)id;
}

static void join_nvlink(st_fleet *fleet, st_node *node, const st_node_spec *spec)
{
    int size = spec->nvlink_size > 0 ? spec->nvlink_size : node->ndevs;
    int32_t last = -1;
    for (int d = 0; d < node->ndevs; d++) {
        char name[2 * ST_NAME_MAX + 32];
        if (spec->nvlink_domain)
            snprintf(name, sizeof name, "%s", spec->nvlink_domain);
        else
            snprintf(name, sizeof name, "%s\x1f%d", node->name, d / size);
        node->nvlink[d] = domain(fleet, ST_TOPO_NVLINK, name);
        if (node->nvlink[d] != last)
            st_vec_push(&fleet->domains[ST_TOPO_NVLINK].v[node->nvlink[d]].nodes, node->id);
        last = node->nvlink[d];
    }
}

static int check_spec(const st_fleet *fleet, const st_node_spec *spec, st_err *err)
{
    if (!st_name_ok(spec->name))
        return st_fail(err, ST_EINVAL, "a node's name must be 1 to %d bytes without spaces",
                       ST_NAME_MAX);
    if (st_fleet_node(fleet, spec->name) >= 0)
        return st_fail(err, ST_EEXIST, "node %s exists already", spec->name);
    if (fleet->nodes.n >= ST_NODES_MAX)
        return st_fail(err, ST_ELIMIT, "node %s: at most %d nodes", spec->name, ST_NODES_MAX);
    if (spec->ndevs < 0 || spec->ndevs > ST_DEVS_MAX)
        return st_fail(err, ST_ERANGE, "node %s: %d GPUs, at most %d are allowed", spec->name,
                       spec->ndevs, ST_DEVS_MAX);
    if (spec->pool < 0 || (size_t)spec->pool >= fleet->pools.n ||
        !st_pool_there(&fleet->pools.v[spec->pool]))
        return st_fail(err, ST_ENOENT, "node %s: its pool does not exist", spec->name);
    if (spec->ndevs > 0 && (spec->type < 0 || (size_t)spec->type >= fleet->types.n))
        return st_fail(err, ST_ENOENT, "node %s: its GPU type does not exist", spec->name);
    if (spec->cpu_m < 0 || spec->cpu_m > ST_QTY_MAX || spec->ram_mib < 0 ||
        spec->ram_mib > ST_QTY_MAX)
        return st_fail(err, ST_ERANGE, "node %s: CPU or RAM is out of range", spec->name);
    const char *const places[] = {spec->zone, spec->block, spec->rack, spec->nvlink_domain};
    static const char *const words[] = {"zone", "block", "rack", "NVLink domain"};
    for (size_t i = 0; i < ST_ARRAY_LEN(places); i++)
        if (places[i] && !st_name_ok(places[i]))
            return st_fail(err, ST_EINVAL,
                           "node %s: the name of its %s must be 1 to %d bytes without spaces",
                           spec->name, words[i], ST_NAME_MAX);
    return 0;
}

int st_fleet_add_node(st_fleet *fleet, const st_node_spec *spec, int32_t *ret_id, st_err *err)
{
    int rc = check_spec(fleet, spec, err);
    if (rc < 0)
        return rc;
    st_node *node = st_xcalloc(1, sizeof *node);
    node->id = (int32_t)fleet->nodes.n;
    node->name = st_xstrdup(spec->name);
    node->pool = spec->pool;
    node->type = spec->ndevs > 0 ? spec->type : -1;
    node->ndevs = spec->ndevs;
    node->cpu_m = spec->cpu_m;
    node->ram_mib = spec->ram_mib;
    st_vec_push(&fleet->nodes, node);
    fleet->changed[node->type + 1]++;
    st_map_put(fleet->node_ids, node->name, node->id);

    /* A rack's name counts inside its block only, a block's inside its zone: the path is the
     * identity, so that "r1" of two blocks are two racks. The separator is in no name. */
    char block[3 * ST_NAME_MAX], rack[4 * ST_NAME_MAX];
    snprintf(block, sizeof block, "%s\x1f%s", spec->zone ? spec->zone : "",
             spec->block ? spec->block : "");
    snprintf(rack, sizeof rack, "%s\x1f%s", block, spec->rack ? spec->rack : "");
    node->place[ST_TOPO_NONE] = -1;
    node->place[ST_TOPO_ZONE] = domain(fleet, ST_TOPO_ZONE, spec->zone);
    node->place[ST_TOPO_BLOCK] = domain(fleet, ST_TOPO_BLOCK, spec->block ? block : NULL);
    node->place[ST_TOPO_RACK] = domain(fleet, ST_TOPO_RACK, spec->rack ? rack : NULL);
    for (int l = ST_TOPO_ZONE; l <= ST_TOPO_RACK; l++)
        if (node->place[l] >= 0)
            st_vec_push(&fleet->domains[l].v[node->place[l]].nodes, node->id);
    join_nvlink(fleet, node, spec);
    node->view = (st_view){.cpu_free_m = node->cpu_m, .ram_free_mib = node->ram_mib};
    st_view_seal(node, &node->view);
    if (ret_id)
        *ret_id = node->id;
    return 0;
}
