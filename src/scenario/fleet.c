/*
 * The fleet of a scenario: GPU types, pools, and nodes written a whole row of
 * racks at a time.
 *
 *     fleet:
 *       - {count: 500, gpu: h100, gpus: 8, rack: "r%d", rack_size: 16,
 *          block: "b%d", block_size: 8, zone: z1}
 *
 * A size says how many of the next smaller thing one of these holds: nodes in a
 * rack, racks in a block, blocks in a zone.
 */
#include <string.h>

#include "base/quote.h"
#include "base/suggest.h"
#include "scenario/read.h"

int32_t st_scn_type_index(st_scenario *s, const char *name)
{
    for (size_t i = 0; i < s->types.n; i++)
        if (strcmp(s->types.v[i].doc.name, name) == 0)
            return (int32_t)i;
    const st_type_doc *known = st_spec_known_type(name);
    if (!known)
        return -1;
    if (s->types.n >= ST_TYPES_MAX)
        return -2;
    st_vec_push(&s->types, (st_scn_type){*known, 0});
    return (int32_t)s->types.n - 1;
}

static int read_type(st_scenario *s, const st_doc_node *map, st_err *err)
{
    const st_doc_node at = {.line = map->key_line};
    st_scn_type type = {.doc.name = map->key, .line = map->key_line};
    int r = st_spec_type(s->doc, map, &type.doc, err);

    if (r < 0)
        return r;
    if (s->types.n >= ST_TYPES_MAX)
        return st_doc_fail(s->doc, &at, err, ST_ERANGE, "there are more than %d GPU types",
                           ST_TYPES_MAX);
    st_vec_push(&s->types, type);
    return 0;
}

int st_scn_read_types(st_scenario *s, const st_doc_node *map, st_err *err)
{
    int r = map ? st_doc_expect(s->doc, map, ST_DOC_MAP, err) : 0;

    for (const st_doc_node *n = map ? map->child : NULL; r == 0 && n; n = n->next)
        r = read_type(s, n, err);
    return r;
}

static int read_pool(st_scenario *s, const st_doc_node *map, st_err *err)
{
    const st_doc_node at = {.line = map->key_line};
    st_scn_pool pool = {.doc = ST_POOL_DOC_INIT, .line = map->key_line};
    pool.doc.name = map->key;
    int r = st_spec_pool(s->doc, map, &pool.doc, err);

    if (r < 0)
        return r;
    if (s->pools.n >= ST_POOLS_MAX)
        return st_doc_fail(s->doc, &at, err, ST_ERANGE, "there are more than %d pools",
                           ST_POOLS_MAX);
    st_vec_push(&s->pools, pool);
    return 0;
}

int st_scn_read_pools(st_scenario *s, const st_doc_node *map, st_err *err)
{
    int r = map ? st_doc_expect(s->doc, map, ST_DOC_MAP, err) : 0;

    for (const st_doc_node *n = map ? map->child : NULL; r == 0 && n; n = n->next)
        r = read_pool(s, n, err);
    if (r == 0 && s->pools.n == 0)
        st_vec_push(&s->pools, (st_scn_pool){.doc = {.name = "main",
                                                     .levels = ST_POOL_LEVELS,
                                                     .oversub_m = ST_POOL_OVERSUB_M}});
    return r;
}

/* A place in the topology: its name or pattern, and how many smaller things it holds. */
typedef struct place_fields {
    const char *name;
    int size; /* 0: all of them are in the one */
} place_fields;

typedef struct row_fields {
    const char *name;
    const st_doc_node *pool, *gpu, *labels;
    int count, gpus, nvlink, nvlink_nodes;
    const char *nvlink_domain;
    int64_t cpu_m, ram_mib;
    place_fields rack, block, zone;
} row_fields;

#define COUNT_ROW(word, field, low, high)                                                \
    {                                                                                    \
        .key = word, .kind = ST_F_INT, .offset = offsetof(row_fields, field), .lo = low, \
        .hi = high                                                                       \
    }
#define NAME_ROW(word, field)                                                 \
    {                                                                         \
        .key = word, .kind = ST_F_NAME, .offset = offsetof(row_fields, field) \
    }

static const st_field fleet_rows[] = {
    COUNT_ROW("count", count, 1, ST_NODES_MAX),
    NAME_ROW("name", name),
    {.key = "pool", .kind = ST_F_NODE, .offset = offsetof(row_fields, pool)},
    {.key = "gpu", .kind = ST_F_NODE, .offset = offsetof(row_fields, gpu)},
    {.key = "labels", .kind = ST_F_NODE, .offset = offsetof(row_fields, labels)},
    COUNT_ROW("gpus", gpus, 0, ST_DEVS_MAX),
    COUNT_ROW("nvlink", nvlink, 1, ST_DEVS_MAX),
    NAME_ROW("nvlink_domain", nvlink_domain),
    COUNT_ROW("nvlink_nodes", nvlink_nodes, 1, ST_NODES_MAX),
    {.key = "cpu",
     .kind = ST_F_MILLI,
     .offset = offsetof(row_fields, cpu_m),
     .lo = 0,
     .hi = ST_QTY_MAX},
    {.key = "ram", .kind = ST_F_MIB, .offset = offsetof(row_fields, ram_mib)},
    NAME_ROW("rack", rack.name),
    COUNT_ROW("rack_size", rack.size, 1, ST_NODES_MAX),
    NAME_ROW("block", block.name),
    COUNT_ROW("block_size", block.size, 1, ST_NODES_MAX),
    NAME_ROW("zone", zone.name),
    COUNT_ROW("zone_size", zone.size, 1, ST_NODES_MAX),
    {0},
};

/* A name that counts needs a size, and a size needs a name; both must fit. */
static int check_place(const st_scenario *s, const st_doc_node *map, const char *key,
                       const char *size_key, const place_fields *p, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, key);

    if (!p->name && p->size > 0)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "%s is given without a %s", size_key, key);
    if (p->name && p->size == 0 && strstr(p->name, "%d"))
        return st_doc_fail(s->doc, node, err, ST_EINVAL, "%s counts, so it needs a %s", key,
                           size_key);
    return p->name ? st_scn_check_pattern(s, node, p->name, err) : 0;
}

static int check_row(const st_scenario *s, const st_doc_node *map, const row_fields *f, st_err *err)
{
    const place_fields nvlink = {f->nvlink_domain, f->nvlink_nodes};
    int r = 0;

    if (f->name)
        r = st_scn_check_pattern(s, st_doc_get(map, "name"), f->name, err);
    if (r == 0)
        r = check_place(s, map, "rack", "rack_size", &f->rack, err);
    if (r == 0)
        r = check_place(s, map, "block", "block_size", &f->block, err);
    if (r == 0)
        r = check_place(s, map, "zone", "zone_size", &f->zone, err);
    if (r == 0)
        r = check_place(s, map, "nvlink_domain", "nvlink_nodes", &nvlink, err);
    if (r == 0 && f->nvlink_domain && f->nvlink > 0)
        r = st_doc_fail(s->doc, map, err, ST_EINVAL,
                        "nvlink parts a node and nvlink_domain joins nodes: give one of them");
    if (r == 0 && s->nodes.n + (size_t)f->count > ST_NODES_MAX)
        r = st_doc_fail(s->doc, map, err, ST_ERANGE, "there are more than %d nodes", ST_NODES_MAX);
    return r;
}

/* The place of the i-th node of a row; `unit` is how many nodes the next smaller place holds. */
static const char *place_of(st_scenario *s, const place_fields *p, int i, int64_t *unit,
                            const char *before)
{
    if (!p->name || p->size == 0)
        return p->name;
    *unit *= p->size;
    if (before && i % *unit != 0)
        return before; /* the node before is in the same one */
    return st_scn_numbered(s, p->name, (int)(i / *unit) + 1);
}

int st_scn_read_labels(st_scenario *s, const st_doc_node *map, const char **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = map ? st_spec_node_labels(s->doc, map, &text, err) : 0;

    if (r == 0)
        *ret = text.n > 0 ? st_arena_strdup(s->arena, st_strbuf_str(&text)) : NULL;
    return r;
}

static int add_nodes(st_scenario *s, const st_doc_node *map, const row_fields *f, st_node_spec spec,
                     const char *labels, st_err *err)
{
    const place_fields nvlink = {f->nvlink_domain, f->nvlink_nodes};
    char q[ST_QUOTE_MAX];

    for (int i = 0; i < f->count; i++) {
        int64_t unit = 1, nodes = 1;

        if (!f->name)
            spec.name = st_scn_numbered(s, "n", (int)s->nodes.n + 1);
        else if (f->count > 1 || strstr(f->name, "%d"))
            spec.name = st_scn_numbered(s, f->name, i + 1);
        else
            spec.name = f->name;
        spec.rack = place_of(s, &f->rack, i, &unit, spec.rack);
        spec.block = place_of(s, &f->block, i, &unit, spec.block);
        spec.zone = place_of(s, &f->zone, i, &unit, spec.zone);
        spec.nvlink_domain = place_of(s, &nvlink, i, &nodes, spec.nvlink_domain);
        if (st_map_get(s->node_ids, spec.name, NULL))
            return st_doc_fail(s->doc, map, err, ST_EEXIST, "there is a node %s already",
                               st_quote(q, spec.name));
        st_map_put(s->node_ids, spec.name, (int64_t)s->nodes.n);
        st_vec_push(&s->nodes, (st_scn_node){spec, labels, map->line});
    }
    return 0;
}

static int read_row(st_scenario *s, const st_doc_node *map, st_err *err)
{
    row_fields f = {.count = 1, .gpus = -1, .cpu_m = ST_NODE_CPU_M, .ram_mib = ST_NODE_RAM_MIB};
    st_node_spec spec = {.pool = 0, .type = -1};
    const char *labels = NULL;
    int r = st_fields_read(s->doc, map, fleet_rows, &f, err);

    if (r == 0)
        r = check_row(s, map, &f, err);
    if (r == 0 && f.pool)
        r = st_scn_find_pool(s, f.pool, &spec.pool, err);
    if (r == 0 && f.gpu)
        r = st_scn_find_type(s, f.gpu, &spec.type, err);
    if (r == 0)
        r = st_scn_read_labels(s, f.labels, &labels, err);
    if (r < 0)
        return r;
    if (!f.gpu && f.gpus > 0)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "gpus needs a gpu: of which type?");
    spec.ndevs = f.gpus >= 0 ? f.gpus : f.gpu ? ST_NODE_GPUS : 0;
    spec.nvlink_size = f.nvlink;
    spec.cpu_m = f.cpu_m;
    spec.ram_mib = f.ram_mib;
    return add_nodes(s, map, &f, spec, labels, err);
}

int st_scn_read_fleet(st_scenario *s, const st_doc_node *list, st_err *err)
{
    int r = st_doc_expect(s->doc, list, ST_DOC_SEQ, err);

    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next)
        r = read_row(s, n, err);
    if (r == 0 && s->nodes.n == 0)
        r = st_doc_fail(s->doc, list, err, ST_EINVAL, "the fleet has no nodes");
    return r;
}
