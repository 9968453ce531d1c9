/*
 * Where the fleet's devices were up to a moment (meter/parts.c): now, and at the beginning of each month, which is written down
 * with the close of the one before. The difference of two is a month, by pool and cause.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "billing/billing.h"

#define KIND "fleet_mark"

static const char *type_name(const st_control *ctl, int32_t type)
{
    const st_fleet *fleet = st_core_fleet(ctl->core);

    return type >= 0 && (size_t)type < fleet->types.n ? fleet->types.v[type].name : "";
}

static const char *pool_name(const st_control *ctl, int32_t pool)
{
    const st_fleet *fleet = st_core_fleet(ctl->core);

    return pool >= 0 && (size_t)pool < fleet->pools.n ? fleet->pools.v[pool].name : "";
}

/* A pool that goes and one that has its name later are one. */
static void add_part(st_fleet_now *ret, const st_fleet_part *p)
{
    for (size_t i = 0; i < ret->parts.n; i++) {
        st_fleet_part *had = &ret->parts.v[i];

        if (strcmp(had->type, p->type) != 0 || strcmp(had->pool, p->pool) != 0)
            continue;
        for (int w = 0; w < ST_WHERE_COUNT; w++)
            had->at[w] += p->at[w];
        return;
    }
    st_vec_push(&ret->parts, *p);
}

static void add_parts(const st_control *ctl, int64_t now, st_fleet_now *ret)
{
    st_meter_part *list;
    size_t n = st_meter_parts(ctl->billing->meter, now, &list);

    for (size_t i = 0; i < n; i++) {
        st_fleet_part p = {0};

        if (list[i].pool < 0)
            continue; /* from before pools were counted */
        snprintf(p.type, sizeof p.type, "%s", type_name(ctl, list[i].type));
        snprintf(p.pool, sizeof p.pool, "%s", pool_name(ctl, list[i].pool));
        memcpy(p.at, list[i].at, sizeof p.at);
        add_part(ret, &p);
    }
    free(list);
}

typedef struct open_ctx {
    const st_control *ctl;
    st_fleet_now *ret;
} open_ctx;

/* The fleet's records come first. */
static int add_open(void *ctx, const st_record *rec)
{
    const open_ctx *o = ctx;
    st_fleet_part p = {.at = {[ST_WHERE_GRANTED] = rec->granted,
                              [ST_WHERE_IDLE] = rec->idle,
                              [ST_WHERE_FAILED] = rec->unhealthy,
                              [ST_WHERE_ENDED] = rec->overhead}};

    if (rec->kind != ST_REC_FLEET)
        return 1;
    snprintf(p.type, sizeof p.type, "%s", type_name(o->ctl, rec->type));
    st_vec_push(&o->ret->open, p);
    return 0;
}

void st_tx_fleet(st_tx *tx, st_fleet_now *ret)
{
    open_ctx o = {tx->ctl, ret};

    if (!tx->ctl->billing->meter)
        return;
    add_parts(tx->ctl, tx->now, ret);
    st_meter_open(tx->ctl->billing->meter, tx->now, add_open, &o);
}

/* ---- marks --------------------------------------------------------------------------------------------- */

int st_fleet_mark(st_tx *tx, st_err *err)
{
    st_fleet_now now = {0};
    json_t *rows = json_array();
    char name[24], *text;
    int r;

    add_parts(tx->ctl, tx->now, &now);
    for (size_t i = 0; i < now.parts.n; i++) {
        json_t *row = json_pack("[s,s]", now.parts.v[i].type, now.parts.v[i].pool);

        for (int w = 0; w < ST_WHERE_COUNT; w++)
            json_array_append_new(row, json_integer(now.parts.v[i].at[w]));
        json_array_append_new(rows, row);
    }
    st_vec_free(&now.parts);
    text = json_dumps(rows, JSON_COMPACT);
    ST_ASSERT(text);
    snprintf(name, sizeof name, "%" PRId64, st_ledger_period(tx->ctl->billing->ledger)->from_ms);
    const st_document_row document = {.kind = KIND, .name = name, .at_ms = tx->now, .doc = text};
    r = st_tx_open(tx, err);
    if (r == 0)
        r = st_tx_fault(tx, st_store_document_put(tx->ctl->store, &document, err), err);
    free(text);
    json_decref(rows);
    return r;
}

int st_fleet_mark_read(st_store *reader, int64_t at_ms, st_fleet_now *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char name[24];
    st_document_row row;
    json_t *rows, *one;
    size_t i;
    int r;

    snprintf(name, sizeof name, "%" PRId64, at_ms);
    r = st_store_document_get(reader, KIND, name, arena, &row, err);
    if (r < 0)
        return r == -ST_ENOENT ? 0 : r;
    rows = json_loads(row.doc, 0, NULL);
    json_array_foreach(rows, i, one)
    {
        st_fleet_part p = {0};
        const char *type = json_string_value(json_array_get(one, 0)),
                   *pool = json_string_value(json_array_get(one, 1));

        snprintf(p.type, sizeof p.type, "%s", type ? type : "");
        snprintf(p.pool, sizeof p.pool, "%s", pool ? pool : "");
        for (size_t w = 0; w < ST_WHERE_COUNT; w++)
            p.at[w] = json_integer_value(json_array_get(one, 2 + w));
        st_vec_push(&ret->parts, p);
    }
    json_decref(rows);
    return 0;
}
