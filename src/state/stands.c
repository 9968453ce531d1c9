/*
 * Under which accounts rows stand (st_stands): written with each job and each row of the audit log, by serials, so
 * that a list of an account and all below it is one range, and whoever is called the same later is in none of it.
 * Stores from before get it at their first start.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "state/state.h"

_Static_assert(ST_DEPTH_MAX <= ST_STORE_DEPTH, "a level of accounts has no column");

static void stands_of(const st_tree *tree, int32_t id, st_stands *ret)
{
    const st_account *a = st_tree_account(tree, id);

    *ret = (st_stands){0};
    for (; id > ST_ROOT; id = a->parent) {
        a = st_tree_account(tree, id);
        ret->in[a->depth - 1] = a->serial;
    }
}

/* The core knows accounts that this transaction makes, the directory those that it removes. */
void st_stands_of(const st_control *ctl, const char *account, st_stands *ret)
{
    const st_tree *tree = st_core_tree(ctl->core);
    int32_t id = account[0] ? st_tree_find(tree, account) : ST_ROOT;

    if (id >= 0)
        stands_of(tree, id, ret);
    else
        st_directory_stands(ctl->dir, account, ret);
}

/* ---- stores from before --------------------------------------------------------------------------- */

typedef struct removal {
    char *account;
    int64_t seq, at_ms;
} removal;

typedef ST_VEC(removal) removals;

static int note_removal(void *ctx, const st_audit_row *row, st_err *err)
{
    removals *list = ctx;

    (void)err;
    st_vec_push(list, (removal){st_xstrdup(row->target), row->seq, row->at_ms});
    return 0;
}

/* Newest first in the list. The first one behind `after`, INT64_MAX: it is there still. */
static int64_t removed_at(const removals *list, const char *account, int64_t after)
{
    int64_t at = INT64_MAX;

    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].seq > after && strcmp(list->v[i].account, account) == 0)
            at = list->v[i].seq;
    return at;
}

/* Accounts of one name follow each other in the tree as they did in the log. */
static int stand_account(st_control *ctl, const removals *gone, int32_t id, st_map *upto,
                         st_err *err)
{
    const st_tree *tree = st_core_tree(ctl->core);
    const st_account *a = st_tree_account(tree, id);
    char filed[ST_NAME_MAX + 32];
    int64_t after = 0, until;
    st_stands stands;
    int r;

    stands_of(tree, id, &stands);
    snprintf(filed, sizeof filed, ST_GONE_NAME, a->name, (long long)a->serial);
    st_map_get(upto, a->name, &after);
    until = a->gone ? removed_at(gone, a->name, after) : INT64_MAX;
    r = st_store_jobs_stand(ctl->store, a->gone ? filed : a->name, &stands, err);
    if (r == 0)
        r = st_store_audit_stand(ctl->store, a->name, after, until, &stands, err);
    st_map_put(upto, a->name, until);
    return r;
}

/* When it was removed, and in *after the row that says so; 0: nobody knows. */
static int64_t removed_ms(const removals *list, const char *account, int64_t *after)
{
    int64_t seq = removed_at(list, account, *after);

    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].seq == seq) {
            *after = seq;
            return list->v[i].at_ms;
        }
    return 0;
}

/* A removal revoked them all: those of whoever is called the same now were made later. */
static int file_tokens(st_control *ctl, const removals *gone, int32_t id, st_map *upto, st_err *err)
{
    const st_account *a = st_tree_account(st_core_tree(ctl->core), id);
    char filed[ST_NAME_MAX + 32];
    int64_t after = 0, at;

    if (!a->gone)
        return 0;
    snprintf(filed, sizeof filed, ST_GONE_NAME, a->name, (long long)a->serial);
    st_map_get(upto, a->name, &after);
    at = removed_ms(gone, a->name, &after);
    st_map_put(upto, a->name, after);
    return st_store_tokens_refile(ctl->store, a->name, filed, at, err);
}

typedef int each_fn(st_control *ctl, const removals *gone, int32_t id, st_map *upto, st_err *err);

static int each_account(st_control *ctl, each_fn *fn, st_err *err)
{
    const st_tree *tree = st_core_tree(ctl->core);
    const st_audit_filter f = {.what = "account.remove"};
    st_map *upto = st_map_new();
    removals gone = {0};
    int r = st_store_audit_list(ctl->store, &f, note_removal, &gone, err);

    for (size_t i = ST_ROOT + 1; r == 0 && i < tree->accounts.n; i++)
        r = fn(ctl, &gone, (int32_t)i, upto, err);
    for (size_t i = 0; i < gone.n; i++)
        free(gone.v[i].account);
    st_vec_free(&gone);
    st_map_free(upto);
    return r;
}

/* In one transaction, unless it was done before. */
static int once(st_control *ctl, const char *meta, each_fn *fn, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *text;
    int r = st_store_meta_get(ctl->store, meta, arena, &text, err);

    if (r != -ST_ENOENT)
        return r;
    r = st_store_begin(ctl->store, err);
    if (r < 0)
        return r;
    r = each_account(ctl, fn, err);
    if (r == 0)
        r = st_store_meta_put(ctl->store, meta, "1", err);
    return st_store_end(ctl->store, r, err);
}

int st_stands_load(st_control *ctl, st_err *err)
{
    return once(ctl, "stands", stand_account, err);
}

int st_tokens_filed(st_control *ctl, st_err *err)
{
    return once(ctl, "tokens_filed", file_tokens, err);
}
