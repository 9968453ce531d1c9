/*
 * documents: small ones with a version, which a writer must know to replace one.
 */
#include "store/sql.h"

int st_store_document_get(st_store *store, const char *kind, const char *name, st_arena *a,
                          st_document_row *ret, st_err *err)
{
    st_document_row row;
    int r = st_sql_get(store, ST_SQL_DOCUMENT_GET, ST_PARAMS(st_val_text(kind), st_val_text(name)),
                       a, &row, err);

    if (r < 0)
        return r;
    if (r == 0)
        return st_fail(err, ST_ENOENT, "there is no %s %s", kind, name);
    *ret = row;
    return 0;
}

static int wrong_version(const st_document_row *there, int64_t version, st_err *err)
{
    return st_fail(err, ST_ESTATE,
                   "%s %s has version %lld, not %lld; read it again and change that", there->kind,
                   there->name, (long long)there->version, (long long)version);
}

/* Nothing was changed: because it is not there, or because its version is another? */
static int other_version(st_store *store, const char *kind, const char *name, int64_t version,
                         st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    st_document_row there;
    int r = st_store_document_get(store, kind, name, a, &there, err);

    if (r == -ST_ENOENT && version > 0)
        return st_fail(err, ST_ESTATE, "%s %s is not there any more; version %lld was expected",
                       kind, name, (long long)version);
    if (r < 0)
        return r;
    if (version == 0)
        return st_fail(err, ST_ESTATE, "%s %s exists already, in version %lld", kind, name,
                       (long long)there.version);
    return wrong_version(&there, version, err);
}

int st_store_document_put(st_store *store, const st_document_row *row, st_err *err)
{
    st_document_row first = *row;
    int r;

    ST_ASSERT(row->version >= 0);
    first.version = 1;
    if (row->version == 0)
        r = st_sql_one_row(store, ST_SQL_DOCUMENT_NEW, &first, err);
    else
        r = st_sql_one(store, ST_SQL_DOCUMENT_PUT,
                       ST_PARAMS(st_val_text(row->kind), st_val_text(row->name),
                                 st_val_i64(row->version), st_val_i64(row->at_ms),
                                 st_val_text(row->doc)),
                       err);
    if (r <= 0)
        return r;
    return other_version(store, row->kind, row->name, row->version, err);
}

int st_store_document_delete(st_store *store, const char *kind, const char *name, int64_t version,
                             st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    st_document_row there;
    int r = st_sql_one(store, ST_SQL_DOCUMENT_DELETE,
                       ST_PARAMS(st_val_text(kind), st_val_text(name), st_val_i64(version)), err);

    if (r <= 0)
        return r;
    r = st_store_document_get(store, kind, name, a, &there, err);
    if (r < 0)
        return r;
    return wrong_version(&there, version, err);
}

typedef struct document_ctx {
    st_document_fn fn;
    void *ctx;
} document_ctx;

static int document_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const document_ctx *t = ctx;
    st_document_row row;
    int r = st_shape_read(&st_shape_document, cols, n, &row, err);

    return r < 0 ? r : t->fn(t->ctx, &row, err);
}

int st_store_documents(st_store *store, const char *kind, st_document_fn fn, void *ctx, st_err *err)
{
    document_ctx t = {.fn = fn, .ctx = ctx};

    if (!kind)
        return st_sql_query(store, ST_SQL_DOCUMENTS, ST_NO_PARAMS, document_row, &t, err);
    return st_sql_query(store, ST_SQL_DOCUMENTS_OF, ST_PARAMS(st_val_text(kind)), document_row, &t,
                        err);
}
