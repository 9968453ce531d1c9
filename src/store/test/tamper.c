/*
 * Changing a store behind everybody's back (test/tamper.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/testing.h"
#include "store/impl.h"
#include "store/test/tamper.h"

void tamper_exec(st_store *store, const char *sql)
{
    st_err err = {0};

    assert_ok(store->driver->exec(store->db, sql, &err));
}

static int take(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    tamper_cell *c = ctx;

    (void)n;
    (void)err;
    c->is_number = cols[0].kind == ST_VAL_I64;
    c->is_text = cols[0].kind == ST_VAL_TEXT;
    c->number = c->is_number ? cols[0].i64 : 0;
    c->len = c->is_number ? 0 : cols[0].n;
    c->bytes = st_xmalloc(c->len + 1);
    if (c->len > 0)
        memcpy(c->bytes, cols[0].p, c->len);
    return 1;
}

static int query(st_store *store, const char *sql, const st_val *vals, size_t n, tamper_cell *c)
{
    st_stmt *stmt;
    st_err err = {0};
    int r;

    assert_ok(st_sql_prepare(store, sql, &stmt, &err));
    r = st_sql_query_built(store, stmt, vals, n, take, c, &err);
    st_sql_finish(store, stmt);
    return r;
}

int64_t tamper_number(st_store *store, const char *sql)
{
    tamper_cell c = {0};

    assert_true(query(store, sql, NULL, 0, &c) >= 0);
    free(c.bytes);
    return c.number;
}

void tamper_get(st_store *store, tamper_cell *cell)
{
    const st_val key = {.kind = ST_VAL_I64, .i64 = cell->n};
    char sql[200];

    snprintf(sql, sizeof sql, "SELECT %s FROM %s WHERE n = $1", cell->column, cell->table);
    assert_true(query(store, sql, &key, 1, cell) >= 0);
}

bool tamper_put(st_store *store, const tamper_cell *cell)
{
    const st_val vals[2] = {{.kind = cell->is_number ? ST_VAL_I64
                                     : cell->is_text ? ST_VAL_TEXT
                                                     : ST_VAL_BLOB,
                             .i64 = cell->number,
                             .p = (const char *)cell->bytes,
                             .n = cell->len},
                            {.kind = ST_VAL_I64, .i64 = cell->n}};
    tamper_cell none = {0};
    char sql[200];

    snprintf(sql, sizeof sql, "UPDATE %s SET %s = $1 WHERE n = $2", cell->table, cell->column);
    return query(store, sql, vals, 2, &none) == 0;
}
