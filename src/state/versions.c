/*
 * Versions: which edit of a thing is the last one, so that whoever changes it can say which one he has seen.
 *
 * Of an account it is a count (control/accounts.c). Of everything else it is a moment in ms that no other edit has, so a
 * thing that goes and comes back under its name, or is changed and changed back, is never at a version it had before.
 * Small documents (sizes, images, rules) have it in their row; the rows here, kind "version", are for what has none of its
 * own: "pool NAME", "node NAME", "plan ACCOUNT". 0 is what nobody has edited.
 */
#include <stdio.h>

#include "state/state.h"

#define KEY_MAX (ST_NAME_MAX * 2 + 16)

/* Of accounts the name alone. Names have no blanks. */
static const char *key_of(const char *kind, const char *name, char buf[KEY_MAX])
{
    if (!kind)
        return name;
    snprintf(buf, KEY_MAX, "%s %s", kind, name);
    return buf;
}

int64_t st_control_version(const st_control *ctl, const char *kind, const char *name)
{
    char buf[KEY_MAX];
    int64_t version = 0;

    st_map_get(ctl->versions, key_of(kind, name, buf), &version);
    return version;
}

int64_t st_tx_version(const st_tx *tx, const char *kind, const char *name)
{
    return st_control_version(tx->ctl, kind, name);
}

/* At once, for others in this transaction; if it fails, versions are read again. */
void st_version_set(st_tx *tx, const char *kind, const char *name, int64_t version)
{
    char buf[KEY_MAX];
    const char *key = key_of(kind, name, buf);

    if (version > 0)
        st_map_put(tx->ctl->versions, key, version);
    else
        st_map_del(tx->ctl->versions, key);
    st_asides_add(&tx->versions, version, key);
}

int64_t st_version_next(st_tx *tx)
{
    tx->ctl->edited_ms = ST_MAX(tx->now, tx->ctl->edited_ms + 1);
    return tx->ctl->edited_ms;
}

int st_version_edit(st_tx *tx, const char *kind, const char *name, st_err *err)
{
    char buf[KEY_MAX];
    const int64_t version = st_version_next(tx);
    int r = st_document_stamp(tx, "version", key_of(kind, name, buf), version, err);

    if (r == 0)
        st_version_set(tx, kind, name, version);
    return r;
}

int st_version_forget(st_tx *tx, const char *kind, const char *name, st_err *err)
{
    char buf[KEY_MAX];
    int r = st_document_erase(tx, "version", key_of(kind, name, buf), err);

    if (r == 0)
        st_version_set(tx, kind, name, 0);
    return r;
}

int st_version_event(st_tx *tx, const st_event *event, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);

    switch (event->kind) {
    case ST_EV_POOL:
    case ST_EV_POOL_CHANGE:
        return st_version_edit(tx, "pool", event->u.pool.name, err);
    case ST_EV_POOL_REMOVE:
        return st_version_forget(tx, "pool", event->u.pool.name, err);
    case ST_EV_NODE:
        return st_version_edit(tx, "node", event->u.node.name, err);
    case ST_EV_NODE_STATE:
        return event->u.node_state.state == ST_NODE_REMOVED
                   ? st_version_forget(tx, "node", fleet->nodes.v[event->u.node_state.node]->name,
                                       err)
                   : st_version_edit(tx, "node", fleet->nodes.v[event->u.node_state.node]->name,
                                     err);
    case ST_EV_LABELS:
        return st_version_edit(tx, "node", fleet->nodes.v[event->u.labels.node]->name, err);
    default:
        return 0;
    }
}

/* ---- from the store ---------------------------------------------------------------------------------- */

typedef struct loading {
    st_control *ctl;
    const char *kind;
} loading;

static int load_account(void *ctx, const st_document_row *row, st_err *err)
{
    st_control *ctl = ctx;

    (void)err;
    st_map_put(ctl->versions, row->name, row->version);
    return 0;
}

static int load_row(void *ctx, const st_document_row *row, st_err *err)
{
    const loading *l = ctx;
    char buf[KEY_MAX];

    (void)err;
    st_map_put(l->ctl->versions, key_of(l->kind, row->name, buf), row->at_ms);
    l->ctl->edited_ms = ST_MAX(l->ctl->edited_ms, row->at_ms);
    return 0;
}

int st_versions_load(st_control *ctl, st_err *err)
{
    static const char *const documents[] = {"size", "image", "rule", "service"};
    loading l = {.ctl = ctl};
    int r = st_store_documents(ctl->store, "account", load_account, ctl, err);

    if (r >= 0)
        r = st_store_documents(ctl->store, "version", load_row, &l, err);
    for (size_t i = 0; r >= 0 && i < ST_ARRAY_LEN(documents); i++) {
        l.kind = documents[i];
        r = st_store_documents(ctl->store, l.kind, load_row, &l, err);
    }
    return r < 0 ? r : 0;
}

/* ---- for the follower -------------------------------------------------------------------------------- */

static void tell(const st_control *ctl, const char *kind, const char *name, st_asides *ret)
{
    char buf[KEY_MAX];
    int64_t version = st_control_version(ctl, kind, name);

    if (version > 0)
        st_asides_add(ret, version, key_of(kind, name, buf));
}

void st_versions_tell(const st_control *ctl, st_asides *ret)
{
    const st_tree *tree = st_core_tree(ctl->core);
    const st_fleet *fleet = st_core_fleet(ctl->core);

    tell(ctl, "plan", "", ret);
    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++) {
        if (tree->accounts.v[i]->gone)
            continue;
        tell(ctl, NULL, tree->accounts.v[i]->name, ret);
        tell(ctl, "plan", tree->accounts.v[i]->name, ret);
    }
    for (size_t i = 0; i < fleet->pools.n; i++)
        tell(ctl, "pool", fleet->pools.v[i].name, ret);
    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->state != ST_NODE_REMOVED)
            tell(ctl, "node", fleet->nodes.v[i]->name, ret);
}
