/*
 * Looking at a whole store (st_store_check): its structure, and what must hold between rows.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/impl.h"

typedef struct findings {
    st_finding_fn fn;
    void *ctx;
    int64_t n;
    const char *const *states;
    size_t nstates;
} findings;

static void found(void *ctx, const char *sentence)
{
    findings *f = ctx;

    f->n++;
    f->fn(f->ctx, sentence);
}

static void foundf(findings *f, const char *fmt, ...) ST_PRINTF(2, 3);

static void foundf(findings *f, const char *fmt, ...)
{
    char sentence[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    found(f, sentence);
}

/* ---- parts ------------------------------------------------------------------------------ */

static int check_structure(st_store *store, findings *f, st_err *err)
{
    return store->driver->check(store->db, found, f, err);
}

typedef struct log_ctx {
    int64_t snap, first, last;
} log_ctx;

static int log_seen(void *ctx, const st_log_row *row, st_err *err)
{
    log_ctx *l = ctx;

    (void)err;
    if (!l->first)
        l->first = row->seq;
    l->last = row->seq;
    return 0;
}

/* Reading finds gaps among rows; the one before the first is found here. */
static int check_log(st_store *store, findings *f, st_err *err)
{
    log_ctx l = {0};
    int r = st_sql_number(store, ST_SQL_SNAP_FIRST, &l.snap, err);

    if (r == 0)
        r = st_store_log_read(store, INT64_MIN, log_seen, &l, err);
    if (r < 0)
        return r;
    if (l.first > l.snap + 1)
        foundf(f, "log: rows %lld to %lld, behind the snapshot, are missing", (long long)l.snap + 1,
               (long long)l.first - 1);
    r = st_sql_number(store, ST_SQL_SNAP_LAST, &l.snap, err);
    if (r == 0 && l.last && l.last < l.snap)
        foundf(f, "log: it ends at row %lld, before the snapshot of row %lld", (long long)l.last,
               (long long)l.snap);
    return r;
}

static int check_audit(st_store *store, findings *f, st_err *err)
{
    st_audit_verdict v;
    int r = st_store_audit_verify(store, &v, err);

    if (r == 0 && v.why[0])
        foundf(f, "audit: %s", v.why);
    return r;
}

static int state_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    findings *f = ctx;

    (void)err;
    if (n != 2 || cols[0].kind != ST_VAL_TEXT || cols[1].kind != ST_VAL_I64) {
        foundf(f, "jobs: a state is not text");
        return 0;
    }
    for (size_t i = 0; i < f->nstates; i++)
        if (strcmp(f->states[i], cols[0].p) == 0)
            return 0;
    foundf(f, "jobs: %lld rows have the state \"%s\", which there is not", (long long)cols[1].i64,
           (const char *)cols[0].p);
    return 0;
}

static int check_states(st_store *store, findings *f, st_err *err)
{
    if (!f->states)
        return 0;
    return st_sql_query(store, ST_SQL_JOBS_STATES, ST_NO_PARAMS, state_row, f, err);
}

/* Reads every row of every noun, so that what cannot be read is found now. */
static int any_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    union {
        st_job_row job;
        st_snap_row snap;
        st_token_row token;
        st_idem_row idem;
        st_document_row document;
        st_checkpoint_row checkpoint;
    } row;

    return st_shape_read(ctx, cols, n, &row, err);
}

static int book_seen(void *ctx, const st_book_row *row, st_err *err)
{
    (void)ctx;
    (void)row;
    (void)err;
    return 0;
}

/* What the entries say is the ledger's to check; here only that none is missing. */
static int check_book(st_store *store, findings *f, st_err *err)
{
    (void)f;
    return st_store_book_read(store, 1, INT64_MAX, book_seen, NULL, err);
}

static int check_rows(st_store *store, findings *f, st_err *err)
{
    static const struct {
        st_sql_id sql;
        const st_row_shape *shape;
    } all[] = {{ST_SQL_JOBS_ALL, &st_shape_job},
               {ST_SQL_TOKENS, &st_shape_token},
               {ST_SQL_IDEM_ALL, &st_shape_idem},
               {ST_SQL_DOCUMENTS, &st_shape_document},
               {ST_SQL_SNAPS, &st_shape_snap}};

    for (size_t i = 0; i < ST_ARRAY_LEN(all); i++) {
        st_row_shape shape = *all[i].shape;
        int r = st_sql_query(store, all[i].sql, ST_NO_PARAMS, any_row, &shape, err);

        if (r == -ST_ECORRUPT && err)
            foundf(f, "%s: %s", shape.table, err->msg);
        else if (r < 0)
            return r;
    }
    return 0;
}

/* Damage is what is being looked for, so it is a finding and the next part goes on. */
int st_store_check(st_store *store, const char *const *states, size_t nstates, st_finding_fn fn,
                   void *ctx, int64_t *ret_n, st_err *err)
{
    static int (*const parts[])(st_store *, findings *, st_err *) = {
        check_structure, check_log, check_audit, check_book, check_states, check_rows};
    findings f = {.fn = fn, .ctx = ctx, .states = states, .nstates = nstates};

    ST_ASSERT(!store->in_transaction);
    for (size_t i = 0; i < ST_ARRAY_LEN(parts); i++) {
        st_err why = {0};
        int r = parts[i](store, &f, &why);

        if (r == -ST_ECORRUPT)
            found(&f, why.msg);
        else if (r < 0)
            return st_fail(err, why.code, "%s", why.msg);
    }
    if (ret_n)
        *ret_n = f.n;
    return 0;
}
