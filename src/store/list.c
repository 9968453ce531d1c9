/*
 * Lists of rows by account (store/list.h).
 *
 * With one account the index (account, key) gives the rows in order. With several the database would
 * sort all rows they ever had to return the newest few, so each account is asked for its newest keys
 * instead, by the same statement, and the best of all are fetched. Once as many keys as wanted are
 * known, the worst of them is the floor for the accounts that follow, which end early.
 */
#include "store/list.h"

#include <stdlib.h>

#include "base/vec.h"

/* $1 to $3 are the cursor, the floor and the limit; then the conditions', and last the account. */
#define FIXED_PARAMS 3

typedef ST_VEC(int64_t) key_vec;

void st_list_init(st_list *l, const st_shape *shape, const char *key, st_sql_id get)
{
    *l = (st_list){.shape = shape, .key = key, .get = get, .nparams = FIXED_PARAMS};
}

void st_list_done(st_list *l)
{
    st_strbuf_done(&l->where);
}

static void add_param(st_list *l, st_val value)
{
    ST_ASSERT(l->nparams + 1 < ST_STORE_PARAMS_MAX); /* one is left for the account */
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
    size_t room = ST_STORE_PARAMS_MAX - 1 - l->nparams;

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

static int prepare(const st_list *l, st_store *store, const char *what, bool order, st_stmt **ret,
                   st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf sql = {0}, text = {0};

    st_strbuf_addf(&sql, "SELECT %s FROM %s WHERE %s <= $1 AND %s > $2%s", what, l->shape->table,
                   l->key, l->key, st_strbuf_str(&l->where));
    if (l->naccounts > 0)
        st_strbuf_addf(&sql, " AND account = $%zu", l->nparams + 1);
    if (order)
        st_strbuf_addf(&sql, " ORDER BY %s DESC", l->key);
    /* Also where nothing is ordered, so that the parameters are the same. */
    st_strbuf_add(&sql, " LIMIT $3");
    st_shape_expand(NULL, l->shape, st_strbuf_str(&sql), &text);
    return st_sql_prepare(store, st_strbuf_str(&text), ret, err);
}

static int run(st_list *l, st_store *store, st_stmt *stmt, size_t account, int64_t floor,
               st_row_fn fn, void *ctx, st_err *err)
{
    size_t n = l->nparams;

    l->params[0] = st_val_i64(l->before > 0 ? l->before - 1 : INT64_MAX);
    l->params[1] = st_val_i64(floor);
    l->params[2] = st_val_i64(l->limit > 0 ? l->limit : INT64_MAX);
    if (l->naccounts > 0)
        l->params[n++] = st_val_text(l->accounts[account]);
    return st_sql_query_built(store, stmt, l->params, n, fn, ctx, err);
}

/* ---- rows of several accounts ----------------------------------------------------------- */

static int add_key(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    key_vec *keys = ctx;

    if (n != 1 || cols[0].kind != ST_VAL_I64)
        return st_fail(err, ST_ECORRUPT,
                       "a key of the store is no number; it is damaged, restore the last backup");
    st_vec_push(keys, cols[0].i64);
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static int gather(st_list *l, st_store *store, key_vec *keys, st_err *err)
{
    int64_t floor = INT64_MIN;
    st_stmt *stmt = NULL;
    int r = prepare(l, store, l->key, true, &stmt, err);

    for (size_t i = 0; r == 0 && i < l->naccounts; i++) {
        size_t had = keys->n;

        r = run(l, store, stmt, i, floor, add_key, keys, err);
        if (keys->n > had)
            qsort(keys->v, keys->n, sizeof(*keys->v), newest_first);
        if (l->limit > 0 && keys->n >= (size_t)l->limit) {
            keys->n = (size_t)l->limit;
            floor = keys->v[keys->n - 1];
        }
    }
    st_sql_finish(store, stmt);
    return r;
}

typedef struct stop_ctx {
    st_row_fn fn;
    void *ctx;
    bool stopped;
} stop_ctx;

static int pass_on(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    stop_ctx *s = ctx;
    int r = s->fn(s->ctx, cols, n, err);

    s->stopped = r > 0;
    return r;
}

static int merged(st_list *l, st_store *store, st_row_fn fn, void *ctx, st_err *err)
{
    stop_ctx stop = {.fn = fn, .ctx = ctx};
    key_vec keys = {0};
    int r = gather(l, store, &keys, err);

    for (size_t i = 0; r == 0 && i < keys.n && !stop.stopped; i++) {
        if (i > 0 && keys.v[i] == keys.v[i - 1])
            continue;
        r = st_sql_query(store, l->get, ST_PARAMS(st_val_i64(keys.v[i])), pass_on, &stop, err);
    }
    st_vec_free(&keys);
    return r;
}

int st_list_rows(st_list *l, st_store *store, st_row_fn fn, void *ctx, st_err *err)
{
    st_stmt *stmt = NULL;
    bool own;
    int r;

    if (l->no_account)
        return 0;
    if (l->naccounts > 1) {
        /* One moment for all the questions. */
        r = st_sql_begin(store, &own, err);
        return r < 0 ? r : st_sql_end(store, own, merged(l, store, fn, ctx, err), err);
    }
    r = prepare(l, store, l->as_written ? "@names" : "@cols", true, &stmt, err);
    if (r == 0)
        r = run(l, store, stmt, 0, INT64_MIN, fn, ctx, err);
    st_sql_finish(store, stmt);
    return r;
}

/* ---- counting --------------------------------------------------------------------------- */

static int add_count(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    int64_t *sum = ctx;

    (void)err;
    ST_ASSERT(n == 1 && cols[0].kind == ST_VAL_I64);
    *sum += cols[0].i64;
    return 0;
}

static int count(st_list *l, st_store *store, int64_t *ret, st_err *err)
{
    st_stmt *stmt = NULL;
    int64_t sum = 0;
    int r = prepare(l, store, "COUNT(*)", false, &stmt, err);

    for (size_t i = 0; r == 0 && i < ST_MAX(l->naccounts, (size_t)1); i++)
        r = run(l, store, stmt, i, INT64_MIN, add_count, &sum, err);
    st_sql_finish(store, stmt);
    if (r == 0)
        *ret = sum;
    return r;
}

int st_list_count(st_list *l, st_store *store, int64_t *ret, st_err *err)
{
    bool own;
    int r;

    if (l->no_account) {
        *ret = 0;
        return 0;
    }
    l->before = l->limit = 0;
    r = st_sql_begin(store, &own, err);
    return r < 0 ? r : st_sql_end(store, own, count(l, store, ret, err), err);
}
