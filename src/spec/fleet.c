/*
 * GPU types and pools as documents (spec/spec.h).
 */
#include <string.h>

#include "spec/spec.h"

/* X(name, VRAM in GiB, board) */
#define KNOWN_TABLE(X)                 \
    X("a100-40", 40, ST_BOARD_A100_40) \
    X("a100-80", 80, ST_BOARD_A100_80) \
    X("h100", 80, ST_BOARD_H100_80)    \
    X("h200", 141, ST_BOARD_H200_141)  \
    X("l40s", 48, ST_BOARD_NONE)       \
    X("v100", 32, ST_BOARD_NONE)

static const st_type_doc known_types[] = {
#define X(name, gib, board) {name, INT64_C(gib) * 1024, board},
    KNOWN_TABLE(X)
#undef X
};
static const char *const known_names[] = {
#define X(name, gib, board) name,
    KNOWN_TABLE(X)
#undef X
        NULL,
};

const st_type_doc *st_spec_known_type(const char *name)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(known_types); i++)
        if (strcmp(known_types[i].name, name) == 0)
            return &known_types[i];
    return NULL;
}

const char *const *st_spec_known_types(void)
{
    return known_names;
}

typedef struct type_fields {
    int64_t vram_mib;
    int board;
} type_fields;

int st_spec_type(const st_doc *doc, const st_doc_node *map, st_type_doc *ret, st_err *err)
{
    const char *boards[ST_BOARD_COUNT + 1] = {NULL};
    const st_field fields[] = {
        {.key = "vram",
         .kind = ST_F_MIB,
         .offset = offsetof(type_fields, vram_mib),
         .required = true},
        {.key = "mig", .kind = ST_F_WORD, .offset = offsetof(type_fields, board), .words = boards},
        {0},
    };
    type_fields f = {.board = ST_BOARD_NONE};
    int r;

    for (int b = 0; b < ST_BOARD_COUNT; b++)
        boards[b] = st_board_name((st_board)b);
    r = st_fields_read(doc, map, fields, &f, err);
    if (r < 0)
        return r;
    ret->vram_mib = f.vram_mib;
    ret->board = (st_board)f.board;
    return 0;
}

typedef struct pool_fields {
    const st_doc_node *levels, *allow;
    const char *engine;
    int64_t oversub_m;
    st_pool_rules rules;
} pool_fields;

static const char *const allow_words[] = {
#define X(id, word, what) word,
    ST_ALLOW_TABLE(X)
#undef X
        NULL,
};

static const st_field pool_rows[] = {
    {.key = "levels", .kind = ST_F_NODE, .offset = offsetof(pool_fields, levels)},
    {.key = "oversubscribe",
     .kind = ST_F_MILLI,
     .offset = offsetof(pool_fields, oversub_m),
     .lo = 1000,
     .hi = 4000},
    {.key = "allow", .kind = ST_F_NODE, .offset = offsetof(pool_fields, allow)},
    {.key = "engine", .kind = ST_F_NAME, .offset = offsetof(pool_fields, engine)},
#define X(field, word, what, def, most)            \
    {.key = (word),                                \
     .kind = (what),                               \
     .offset = offsetof(pool_fields, rules.field), \
     .lo = 0,                                      \
     .hi = (most)},
    ST_POOL_RULE_TABLE(X)
#undef X
        {0},
};

/* A list of words, or one of them, as bits. */
static int read_words(const st_doc *doc, const st_doc_node *list, const char *const *words,
                      uint32_t *ret, st_err *err)
{
    uint32_t bits = 0;

    if (!list)
        return 0; /* as it is */
    for (const st_doc_node *n = NULL; (n = st_field_each(list, n));) {
        int word, r = st_field_word(doc, n, words, &word, err);

        if (r < 0)
            return r;
        bits |= 1u << word;
    }
    *ret = bits;
    return 0;
}

int st_spec_allow(const st_doc *doc, const st_doc_node *list, uint32_t *ret, st_err *err)
{
    return read_words(doc, list, allow_words, ret, err);
}

/* By its name; "auto" is each node's own. Whether there is one of that name, only stintd knows. */
static int read_engine(const st_doc *doc, const st_doc_node *map, const char *name,
                       st_pool_rules *ret, st_err *err)
{
    if (!name)
        return 0; /* as it is */
    if (strlen(name) > ST_ENGINE_NAME)
        return st_doc_fail(doc, map, err, ST_EINVAL, "the name of an engine has at most %d bytes",
                           ST_ENGINE_NAME);
    memset(ret->engine, 0, sizeof ret->engine);
    if (strcmp(name, "auto") != 0)
        memcpy(ret->engine, name, strlen(name));
    return 0;
}

int st_spec_pool(const st_doc *doc, const st_doc_node *map, st_pool_doc *ret, st_err *err)
{
    pool_fields f = {.oversub_m = ret->oversub_m, .rules = ret->rules};
    st_pool_doc pool = *ret;
    int r = st_fields_read(doc, map, pool_rows, &f, err);

    pool.oversub_m = f.oversub_m;
    pool.rules = f.rules;
    if (r == 0)
        r = read_words(doc, f.levels, st_level_words, &pool.levels, err);
    if (r == 0)
        r = st_spec_allow(doc, f.allow, &pool.rules.allow, err);
    if (r == 0)
        r = read_engine(doc, map, f.engine, &pool.rules, err);
    if (r == 0)
        *ret = pool;
    return r;
}

typedef struct node_fields {
    const char *name, *nvlink_domain, *rack, *block, *zone;
    const st_doc_node *pool, *gpu;
    int gpus, nvlink;
    int64_t cpu_m, ram_mib;
} node_fields;

#define NAME_ROW(word, field)                                                  \
    {                                                                          \
        .key = word, .kind = ST_F_NAME, .offset = offsetof(node_fields, field) \
    }

static const st_field node_rows[] = {
    {.key = "name", .kind = ST_F_NAME, .offset = offsetof(node_fields, name), .required = true},
    {.key = "pool", .kind = ST_F_NODE, .offset = offsetof(node_fields, pool)},
    {.key = "gpu", .kind = ST_F_NODE, .offset = offsetof(node_fields, gpu)},
    {.key = "gpus",
     .kind = ST_F_INT,
     .offset = offsetof(node_fields, gpus),
     .lo = 0,
     .hi = ST_DEVS_MAX},
    {.key = "nvlink",
     .kind = ST_F_INT,
     .offset = offsetof(node_fields, nvlink),
     .lo = 1,
     .hi = ST_DEVS_MAX},
    NAME_ROW("nvlink_domain", nvlink_domain),
    {.key = "cpu",
     .kind = ST_F_MILLI,
     .offset = offsetof(node_fields, cpu_m),
     .lo = 0,
     .hi = ST_QTY_MAX},
    {.key = "ram", .kind = ST_F_MIB, .offset = offsetof(node_fields, ram_mib)},
    NAME_ROW("rack", rack),
    NAME_ROW("block", block),
    NAME_ROW("zone", zone),
    {0},
};

int st_spec_node(const st_doc *doc, const st_doc_node *map, const st_spec_names *names,
                 st_node_spec *ret, st_err *err)
{
    node_fields f = {.gpus = -1, .cpu_m = ST_NODE_CPU_M, .ram_mib = ST_NODE_RAM_MIB};
    st_node_spec spec = {.type = -1};
    int r = st_fields_read(doc, map, node_rows, &f, err);

    if (r == 0 && f.pool)
        r = names->pool(names->ctx, doc, f.pool, &spec.pool, err);
    if (r == 0 && f.gpu)
        r = names->type(names->ctx, doc, f.gpu, &spec.type, err);
    if (r == 0 && !f.gpu && f.gpus > 0)
        r = st_doc_fail(doc, map, err, ST_EINVAL, "gpus needs a gpu: of which type?");
    if (r == 0 && f.nvlink_domain && f.nvlink > 0)
        r = st_doc_fail(doc, map, err, ST_EINVAL,
                        "nvlink parts a node and nvlink_domain joins nodes: give one of them");
    if (r < 0)
        return r;
    spec.name = f.name;
    spec.ndevs = f.gpus >= 0 ? f.gpus : f.gpu ? ST_NODE_GPUS : 0;
    spec.nvlink_size = f.nvlink;
    spec.nvlink_domain = f.nvlink_domain;
    spec.cpu_m = f.cpu_m;
    spec.ram_mib = f.ram_mib;
    spec.rack = f.rack;
    spec.block = f.block;
    spec.zone = f.zone;
    *ret = spec;
    return 0;
}
