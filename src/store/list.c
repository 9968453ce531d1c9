/*
 * Lists of rows by account (store/list.h): an account and all below it are one range of an index, in order.
 */
#include "store/list.h"

/* $1 to $4 are the cursor, the floor, the limit and the account's serial; then the conditions'. */
#define FIXED_PARAMS 4

void st_list_init(st_list *l, const st_row_shape *shape, const char *key)
{
    *l = (st_list){.shape = shape, .key = key, .range = "", .nparams = FIXED_PARAMS};
}

void st_list_done(st_list *l)
{
    st_strbuf_done(&l->where);
}

static void add_param(st_list *l, st_val value)
{
    ST_ASSERT(l->nparams < ST_STORE_PARAMS_MAX);
    l->params[l->nparams++] = value;
}

void st_list_where(st_list *l, const char *column, const char *op, st_val value)
{
    add_param(l, value);
    st_strbuf_addf(&l->where, " AND %s%s$%zu", column, op, l->nparams);
}

int st_list_where_in(st_list *l, const char *column, const char *const *values, size_t n,
                     st_err *err)
{
    size_t room = ST_STORE_PARAMS_MAX - l->nparams;

    if (n == 0)
        return 0;
    if (n > room)
        return st_fail(err, ST_ERANGE, "%zu values of %s in one question, at most %zu", n, column,
                       room);
    for (size_t i = 0; i < n; i++) {
        add_param(l, st_val_text(values[i]));
        if (i == 0)
            st_strbuf_addf(&l->where, " AND %s IN ($%zu", column, l->nparams);
        else
            st_strbuf_addf(&l->where, ", $%zu", l->nparams);
    }
    st_strbuf_add(&l->where, ")");
    return 0;
}

void st_list_where_has(st_list *l, const st_store *store, const char *column, const char *part)
{
    add_param(l, st_val_text(part));
    st_strbuf_addf(&l->where, " AND %s(%s, $%zu) > 0", st_sql_position(store), column, l->nparams);
}

/* ---- the statement ---------------------------------------------------------------------- */

/* Every statement has all fixed parameters, used or not, so that one array fits them all. */
static int prepare(const st_list *l, st_store *store, const char *what, bool conditions, bool order,
                   st_stmt **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf sql = {0}, text = {0};

    ST_ASSERT(l->within.level >= 0 && l->within.level <= ST_STORE_DEPTH);
    st_strbuf_addf(&sql, "SELECT %s FROM %s WHERE %s <= $1 AND %s > $2", what, l->shape->table,
                   l->key, l->key);
    if (l->within.level >
        0) /* said twice: the second is what the index is for; with a + there is none */
        st_strbuf_addf(&sql, " AND %sin%d = $4 AND in%d > 0", l->narrow ? "+" : "", l->within.level,
                       l->within.level);
    else
        st_strbuf_add(&sql, " AND $4 = $4");
    st_strbuf_add(&sql, l->range);
    if (conditions)
        st_strbuf_add(&sql, st_strbuf_str(&l->where));
    if (order)
        st_strbuf_addf(&sql, " ORDER BY %s DESC", l->key);
    st_strbuf_add(&sql, order && !conditions ? " LIMIT 1 OFFSET $3" : " LIMIT $3");
    st_shape_expand(NULL, l->shape, st_strbuf_str(&sql), &text);
    return st_sql_prepare(store, st_strbuf_str(&text), ret, err);
}

static int run(st_list *l, st_store *store, st_stmt *stmt, int64_t floor, int64_t limit, size_t n,
               st_row_fn fn, void *ctx, st_err *err)
{
    l->params[0] = st_val_i64(l->before > 0 ? l->before - 1 : INT64_MAX);
    l->params[1] = st_val_i64(floor);
    l->params[2] = st_val_i64(limit);
    l->params[3] = st_val_i64(l->within.serial);
    return st_sql_query_built(store, stmt, l->params, n, fn, ctx, err);
}

static int keep_number(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    if (n != 1 || cols[0].kind != ST_VAL_I64)
        return st_fail(err, ST_ECORRUPT,
                       "a key of the store is no number; it is damaged, restore the last backup");
    *(int64_t *)ctx = cols[0].i64;
    return 0;
}

int st_list_reach(st_list *l, st_store *store, int64_t *ret, st_err *err)
{
    st_stmt *stmt = NULL;
    int r = 0;

    *ret = 0;
    if (l->scan <= 0)
        return 0;
    r = prepare(l, store, l->key, false, true, &stmt, err);
    if (r == 0)
        r = run(l, store, stmt, INT64_MIN, l->scan - 1, FIXED_PARAMS, keep_number, ret, err);
    st_sql_finish(store, stmt);
    return r;
}

static int rows(st_list *l, st_store *store, st_row_fn fn, void *ctx, st_err *err)
{
    st_stmt *stmt = NULL;
    int64_t last = 0;
    int r = st_list_reach(l, store, &last, err);

    if (r == 0)
        r = prepare(l, store, l->as_written ? "@names" : "@cols", true, true, &stmt, err);
    if (r == 0)
        r = run(l, store, stmt, last > 0 ? last - 1 : INT64_MIN,
                l->limit > 0 ? l->limit : INT64_MAX, l->nparams, fn, ctx, err);
    st_sql_finish(store, stmt);
    return r;
}

int st_list_rows(st_list *l, st_store *store, st_row_fn fn, void *ctx, st_err *err)
{
    bool own;
    int r;

    if (l->scan <= 0)
        return rows(l, store, fn, ctx, err);
    r = st_sql_begin(store, &own, err); /* one moment for both questions */
    return r < 0 ? r : st_sql_end(store, own, rows(l, store, fn, ctx, err), err);
}

int st_list_count(st_list *l, st_store *store, int64_t *ret, st_err *err)
{
    st_stmt *stmt = NULL;
    int r;

    l->before = 0;
    r = prepare(l, store, "COUNT(*)", true, false, &stmt, err);
    if (r == 0)
        r = run(l, store, stmt, INT64_MIN, INT64_MAX, l->nparams, keep_number, ret, err);
    st_sql_finish(store, stmt);
    return r;
}
