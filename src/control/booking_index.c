/*
 * Which bookings an organisation has, also those that are over: feeds and lists of all ask for that, and do not look
 * through what others have booked. The parent of an account never changes, so what is written once stays true.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/bookings.h"
#include "control/state.h"

int32_t st_organisation(const st_tree *tree, int32_t account)
{
    while (account > ST_ROOT && st_tree_account(tree, account)->parent > ST_ROOT)
        account = st_tree_account(tree, account)->parent;
    return account;
}

/* Whoever asks for an organisation's bookings does not look through those of others. */
int st_booking_index_put(st_tx *tx, const char *account, const char *name, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    char kind[ST_BOOKING_OF_MAX];

    snprintf(kind, sizeof kind, ST_BOOKING_OF, st_organisation(tree, st_tree_find(tree, account)));
    return st_document_write(tx, kind, name, json_object(), err);
}

int st_booking_index_erase(st_tx *tx, const char *account, const char *name, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    char kind[ST_BOOKING_OF_MAX];

    snprintf(kind, sizeof kind, ST_BOOKING_OF, st_organisation(tree, st_tree_find(tree, account)));
    return st_document_erase(tx, kind, name, err);
}

static const char *account_of(const json_t *doc)
{
    const char *s = json_string_value(json_object_get(doc, "account"));

    return s ? s : "";
}

typedef struct indexing {
    st_tx *tx;
    ST_VEC(char *) names, accounts;
} indexing;

static int list_record(void *ctx, const st_document_row *row, st_err *err)
{
    indexing *x = ctx;
    const st_tree *tree = st_core_tree(x->tx->ctl->core);
    json_t *doc = json_loads(row->doc, 0, NULL);
    int32_t account = st_tree_find(tree, account_of(doc));

    (void)err;
    if (account >= 0 && st_tree_account(tree, account)->serial ==
                            json_integer_value(json_object_get(doc, "serial"))) {
        st_vec_push(&x->names, st_xstrdup(row->name));
        st_vec_push(&x->accounts, st_xstrdup(account_of(doc)));
    }
    json_decref(doc);
    return 0;
}

int st_bookings_index(st_tx *tx, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    indexing x = {.tx = tx};
    const char *had = NULL;
    int r = st_store_meta_get(tx->ctl->store, ST_BOOKINGS_INDEXED, arena, &had, err);

    if (r != -ST_ENOENT && (r < 0 || strcmp(had, "1") == 0))
        return r;
    r = st_store_documents(tx->ctl->store, ST_BOOKING_KIND, list_record, &x, err);
    if (r == 0)
        r = st_tx_open(tx, err);
    for (size_t i = 0; i < x.names.n; i++) {
        r = r == 0 ? st_booking_index_put(tx, x.accounts.v[i], x.names.v[i], err) : r;
        free(x.names.v[i]);
        free(x.accounts.v[i]);
    }
    st_vec_free(&x.names);
    st_vec_free(&x.accounts);
    return r < 0 ? r
                 : st_tx_fault(tx, st_store_meta_put(tx->ctl->store, ST_BOOKINGS_INDEXED, "1", err),
                               err);
}
