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
    const st_doc_node *levels;
    int64_t oversub_m;
} pool_fields;

static const st_field pool_rows[] = {
    {.key = "levels", .kind = ST_F_NODE, .offset = offsetof(pool_fields, levels)},
    {.key = "oversubscribe",
     .kind = ST_F_MILLI,
     .offset = offsetof(pool_fields, oversub_m),
     .lo = 1000,
     .hi = 4000},
    {0},
};

int st_spec_pool(const st_doc *doc, const st_doc_node *map, st_pool_doc *ret, st_err *err)
{
    pool_fields f = {.oversub_m = ST_POOL_OVERSUB_M};
    uint32_t levels = ST_POOL_LEVELS;
    int r = st_fields_read(doc, map, pool_rows, &f, err);

    if (r < 0)
        return r;
    if (f.levels)
        levels = 0;
    for (const st_doc_node *n = NULL; f.levels && (n = st_field_each(f.levels, n));) {
        int level;

        r = st_field_word(doc, n, st_level_words, &level, err);
        if (r < 0)
            return r;
        levels |= 1u << level;
    }
    ret->levels = levels;
    ret->oversub_m = f.oversub_m;
    return 0;
}
