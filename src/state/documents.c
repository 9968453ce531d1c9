/* Small documents that are not the core's, in a transaction. */
#include "base/mem.h"
#include "state/state.h"

static int put_document(st_tx *tx, const char *kind, const char *name, const char *text,
                        int64_t at_ms, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row = {0}, old = {0};
    int r = st_tx_open(tx, err);

    if (r < 0)
        return r;
    r = st_store_document_get(tx->ctl->store, kind, name, arena, &old, err);
    if (r == 0 || r == -ST_ENOENT) {
        row = (st_document_row){.kind = kind,
                                .name = name,
                                .version = r == 0 ? old.version : 0,
                                .at_ms = at_ms,
                                .doc = text};
        r = st_store_document_put(tx->ctl->store, &row, err);
    }
    return st_tx_fault(tx, r, err);
}

int st_document_write(st_tx *tx, const char *kind, const char *name, json_t *doc, st_err *err)
{
    ST_CLEANUP(st_freep) char *text = json_dumps(doc, JSON_COMPACT);

    json_decref(doc);
    return put_document(tx, kind, name, text, tx->now, err);
}

int st_document_stamp(st_tx *tx, const char *kind, const char *name, int64_t at_ms, st_err *err)
{
    return put_document(tx, kind, name, "{}", at_ms, err);
}

/* The document of a document; NULL when there is none, or (*ret_r) when it cannot be read. */
json_t *st_document_json(st_store *store, const char *kind, const char *name, int *ret_r,
                         st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row = {0};
    int r = st_store_document_get(store, kind, name, arena, &row, err);

    *ret_r = r == -ST_ENOENT ? 0 : r;
    return r == 0 ? json_loads(row.doc, 0, NULL) : NULL;
}

int st_document_erase(st_tx *tx, const char *kind, const char *name, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row;
    int r = st_tx_open(tx, err);

    if (r == 0)
        r = st_store_document_get(tx->ctl->store, kind, name, arena, &row, err);
    if (r == 0)
        r = st_store_document_delete(tx->ctl->store, kind, name, row.version, err);
    return r == -ST_ENOENT ? 0 : st_tx_fault(tx, r, err);
}
