/*
 * Reading an expected reason: its code and as many of its numbers as are given,
 * each in the unit its code counts in.
 */
#include "scenario/expect.h"

#include "admit/admit.h"
#include "scenario/read.h"

static const char *const topo_words[] = {
#define X(id, name) name,
    ST_TOPO_TABLE(X)
#undef X
        NULL,
};
static const char *const limit_words[] = {[ST_LIMIT_GPU] = "gpu",
                                          [ST_LIMIT_VRAM] = "vram",
                                          [ST_LIMIT_SHARE] = "share",
                                          [ST_LIMIT_RUN] = "run",
                                          NULL};

st_why_unit st_scn_why_unit(st_why code, int dim, bool bound)
{
    switch (code) {
    case ST_WHY_MAX:
        return dim == ST_RAM ? ST_U_MIB : ST_U_MILLI;
    case ST_WHY_USER_LIMIT:
        return dim == ST_LIMIT_VRAM ? ST_U_MIB : dim == ST_LIMIT_RUN ? ST_U_MS : ST_U_MILLI;
    case ST_WHY_OVER_FLOOR:
    case ST_WHY_RECLAIM_PROTECTED:
    case ST_WHY_RECLAIM_BOUND:
    case ST_WHY_RECLAIM_NONE:
        return ST_U_MILLI;
    case ST_WHY_GPUS_BUSY:
    case ST_WHY_FRAGMENTED:
    case ST_WHY_MOVES:
        return bound ? ST_U_MILLI : ST_U_COUNT; /* tasks or jobs, and the GPU free or in use */
    default:
        return ST_U_COUNT;
    }
}

static int read_quantity(const st_scenario *s, const st_doc_node *node, st_why_unit unit,
                         int64_t *ret, st_err *err)
{
    if (!node)
        return 0;
    switch (unit) {
    case ST_U_MILLI:
        return st_doc_milli(s->doc, node, 0, ST_QTY_MAX, ret, err);
    case ST_U_MIB:
        return st_doc_mib(s->doc, node, ret, err);
    case ST_U_MS:
        return st_doc_duration_ms(s->doc, node, ret, err);
    case ST_U_COUNT:
        break;
    }
    return st_doc_i64(s->doc, node, 0, ST_QTY_MAX, ret, err);
}

typedef struct why_fields {
    int code;
    const st_doc_node *account, *type, *dim, *used, *asked, *bound, *job;
    int64_t until_ms;
} why_fields;

#define AT(field) .offset = offsetof(why_fields, field)

static const st_field why_rows[] = {
    {.key = "code", .kind = ST_F_WORD, AT(code), .words = st_scn_why_words, .required = true},
    {.key = "account", .kind = ST_F_NODE, AT(account)},
    {.key = "type", .kind = ST_F_NODE, AT(type)},
    {.key = "dim", .kind = ST_F_NODE, AT(dim)},
    {.key = "used", .kind = ST_F_NODE, AT(used)},
    {.key = "asked", .kind = ST_F_NODE, AT(asked)},
    {.key = "bound", .kind = ST_F_NODE, AT(bound)},
    {.key = "job", .kind = ST_F_NODE, AT(job)},
    {.key = "until", .kind = ST_F_DURATION, AT(until_ms)},
    {0},
};

static const char *const *dims_of(int code)
{
    return code == ST_WHY_USER_LIMIT ? limit_words
           : code == ST_WHY_TOPOLOGY ? topo_words
                                     : st_scn_dim_words;
}

static int read_why(st_scenario *s, const st_doc_node *map, st_scn_why *w, st_err *err)
{
    why_fields f = {.until_ms = ST_KEEP};
    int r = st_fields_read(s->doc, map, why_rows, &f, err);
    st_why_unit unit;

    *w = (st_scn_why){.type = -1,
                      .dim = -1,
                      .used = ST_KEEP,
                      .asked = ST_KEEP,
                      .bound = ST_KEEP,
                      .until_ms = f.until_ms,
                      .job = -1};
    if (r == 0 && f.account)
        r = st_scn_find_account(s, f.account, &w->account, err);
    if (r == 0 && f.type)
        r = st_scn_find_type(s, f.type, &w->type, err);
    if (r == 0 && f.dim)
        r = st_field_word(s->doc, f.dim, dims_of(f.code), &w->dim, err);
    if (r == 0 && f.job)
        r = st_scn_find_job(s, f.job, &w->job, err);
    if (r < 0)
        return r;
    w->code = (st_why)f.code;
    unit = st_scn_why_unit(w->code, ST_MAX(w->dim, 0), false);
    r = read_quantity(s, f.used, unit, &w->used, err);
    if (r == 0)
        r = read_quantity(s, f.asked, unit, &w->asked, err);
    unit = st_scn_why_unit(w->code, ST_MAX(w->dim, 0), true);
    return r < 0 ? r : read_quantity(s, f.bound, unit, &w->bound, err);
}

/* The flow of a map in one line, as it was written: "code max, used 8". */
static void write_flow(const st_doc_node *map, st_strbuf *out)
{
    for (const st_doc_node *n = map->child; n; n = n->next)
        st_strbuf_addf(out, "%s%s %s", n == map->child ? "" : ", ", n->key,
                       n->value ? n->value : "");
}

int st_scn_read_reason(st_scenario *s, const st_doc_node *node, st_scn_expect *e, st_strbuf *out,
                       st_err *err)
{
    st_scn_why why;
    int r = read_why(s, node, &why, err);

    if (r < 0)
        return r;
    st_scn_why *own = st_arena_alloc(s->arena, sizeof(*own));

    *own = why;
    e->why = own;
    write_flow(node, out);
    return 0;
}
