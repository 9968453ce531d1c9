/*
 * Accounts: made and changed by those above them, removed when they are empty.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/billing.h"

int st_no_account(const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, name));
}

/* Quotas come from above: whoever changes an account must stand over it. */
static int may_change(st_tx *tx, const st_cmd_account *c, st_err *err)
{
    st_directory *dir = tx->ctl->dir;
    const char *me = c->who.account;

    if (c->create) {
        if (!st_directory_within(dir, c->parent, me))
            return st_no_account(c->parent, err);
        if (st_tree_find(st_core_tree(tx->ctl->core), c->name) >= 0 ||
            !st_book_free(tx->ctl, c->name)) {
            char q[ST_QUOTE_MAX];

            /* Names are the cluster's; which of them others use is not said. */
            return st_fail(err, ST_EEXIST, "the name %s cannot be used; choose another",
                           st_quote(q, c->name));
        }
        return 0;
    }
    if (!st_directory_within(dir, c->name, me))
        return st_no_account(c->name, err);
    if (c->who.role != ST_ROLE_OWNER && strcmp(c->name, me) == 0)
        return st_fail(err, ST_EPERM, "account %s is your own: its quota is set by those above it",
                       c->name);
    return 0;
}

/* The core takes the least trust along the path anyway; here it is said. */
static int check_trust(st_tx *tx, const st_account_spec *spec, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    int32_t self = st_tree_find(tree, spec->name);
    int32_t above = self >= 0 ? st_tree_account(tree, self)->parent
                              : st_tree_find(tree, spec->parent ? spec->parent : "cluster");
    bool kept = self >= 0 && st_tree_account(tree, self)->trust == ST_TRUST_TRUSTED;

    if (spec->trust != ST_TRUST_TRUSTED || kept || above < 0 || !st_tree_untrusted(tree, above))
        return 0;
    return st_fail(err, ST_EINVAL,
                   "account %s: an account above it is untrusted, and so is everything below that; "
                   "leave out trust, or ask those who made that account",
                   spec->name);
}

/* From what was said to what the core takes, if the money is there. */
static int lay_account(st_tx *tx, const st_identity *who, const st_account_doc *said,
                       st_account_spec *ret, st_err *err)
{
    int r;

    st_spec_account_lay(st_core_tree(tx->ctl->core), said, ret);
    r = check_trust(tx, ret, err);
    return r < 0 ? r : st_money_admit_floor(tx, ret, who->account[0] ? who->account : NULL, err);
}

int st_tx_account_change(st_tx *tx, const st_identity *who, const st_account_doc *said,
                         st_account_spec *ret, st_err *err)
{
    const st_cmd_account as = {.who = *who, .name = said->name};
    int r = may_change(tx, &as, err);

    return r < 0 ? r : lay_account(tx, who, said, ret, err);
}

static int run_account(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_account *c = (st_cmd_account *)cmd;
    st_control *ctl = tx->ctl;
    st_event event = {.kind = ST_EV_ACCOUNT};
    int64_t version = 0;
    int r = may_change(tx, c, err);

    if (r < 0)
        return r;
    version = st_control_version(ctl, NULL, c->name);
    c->said.name = c->name;
    c->said.parent = c->create && c->parent[0] ? c->parent : NULL;
    r = lay_account(tx, &c->who, &c->said, &event.u.account, err);
    if (r == 0)
        r = st_tx_open(tx, err);
    if (r == 0 && c->create)
        r = st_allowance_charge(ctl->allowance, c->parent, ST_AL_ACCOUNTS, 1, c->who.account, err);
    if (r < 0)
        return r;
    r = st_tx_apply(tx, &event, err);
    if (r < 0 && c->create)
        st_allowance_release(ctl->allowance, c->parent, ST_AL_ACCOUNTS, 1);
    if (r == 0 && c->create) /* what the core takes, the books take; if not, nothing stays */
        r = st_tx_fault(
            tx, st_money_account(tx, st_tree_find(st_core_tree(ctl->core), c->name), err), err);
    if (r < 0)
        return r;
    const st_thing_row row = {
        .kind = "account", .name = c->name, .version = version, .at_ms = tx->now, .doc = "{}"};
    r = st_tx_fault(tx, st_store_thing_put(ctl->store, &row, err), err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, c->create ? "account.create" : "account.change", c->name,
                        c->name, NULL, err);
    if (r < 0)
        return r;
    c->version = version + 1;
    st_version_set(tx, NULL, c->name, c->version);
    return 0;
}

void st_cmd_account_put(st_cmd_account *cmd)
{
    cmd->cmd.run = run_account;
}

static int find_token(void *ctx, const st_token_row *row, st_err *err)
{
    st_cmd_account *c = ctx;

    (void)err;
    if (row->revoked_ms == ST_STORE_NEVER && strcmp(row->account, c->name) == 0)
        st_vec_push(&c->revoked, row->id);
    return 0;
}

typedef struct belongings {
    const char *account, *what;
    char name[ST_NAME_MAX + 1];
} belongings;

/* Sizes and the like are kept as "ACCOUNT/NAME", and have no slash in their names. */
static int find_thing(void *ctx, const st_thing_row *row, st_err *err)
{
    belongings *b = ctx;
    const char *slash = strrchr(row->name, '/');
    size_t n = strlen(b->account);

    (void)err;
    if (!slash || (size_t)(slash - row->name) != n || strncmp(row->name, b->account, n) != 0)
        return 0;
    snprintf(b->name, sizeof b->name, "%s", slash + 1);
    b->what = row->kind;
    return 1;
}

/* An image of the catalogue that is for this account by name. */
static int find_image(void *ctx, const st_thing_row *row, st_err *err)
{
    belongings *b = ctx;
    json_t *doc = json_loads(row->doc, 0, NULL), *name;
    size_t i;

    (void)err;
    json_array_foreach(json_object_get(doc, "accounts"), i, name)
    {
        if (strcmp(json_string_value(name), b->account) == 0)
            snprintf(b->name, sizeof b->name, "%s", row->name);
    }
    json_decref(doc);
    return b->name[0] ? 1 : 0;
}

/* What would become another's with the name has to go first. */
static int check_empty(st_tx *tx, const st_cmd_account *c, st_err *err)
{
    static const char *const kinds[] = {"size", "secret"};
    belongings b = {.account = c->name};
    char q[ST_QUOTE_MAX], what[32];
    int r = 0;

    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(kinds); i++) {
        snprintf(what, sizeof what, "%s", kinds[i]);
        r = st_store_things(tx->ctl->store, kinds[i], find_thing, &b, err);
    }
    if (r == 0 && !b.name[0]) {
        r = st_store_things(tx->ctl->store, "image", find_image, &b, err);
        if (r >= 0 && b.name[0])
            return st_fail(
                err, ST_ESTATE,
                "image %s names account %s; take it off its list first (stint image add)",
                st_quote(q, b.name), c->name);
    }
    if (r < 0)
        return st_tx_fault(tx, r, err);
    return b.name[0] ? st_fail(err, ST_ESTATE, "account %s has the %s %s; remove it first", c->name,
                               what, st_quote(q, b.name))
                     : 0;
}

static int revoke_all(st_tx *tx, st_cmd_account *c, st_err *err)
{
    int r = st_store_tokens(tx->ctl->store, find_token, c, err);

    for (size_t i = 0; r >= 0 && i < c->revoked.n; i++)
        r = st_store_token_revoke(tx->ctl->store, c->revoked.v[i], tx->now, err);
    return r < 0 ? st_tx_fault(tx, r, err) : 0;
}

/* Money stays in the books, under the name it has there; jobs are filed under one nobody can have. */
static int run_account_remove(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_account *c = (st_cmd_account *)cmd;
    st_control *ctl = tx->ctl;
    st_event event = {.kind = ST_EV_ACCOUNT_REMOVE};
    char filed[ST_NAME_MAX + 32], detail[80];
    int64_t version = 0, serial;
    const char *parent;
    int32_t id;
    int r = may_change(tx, c, err);

    if (r < 0)
        return r;
    id = st_tree_find(st_core_tree(ctl->core), c->name);
    if (id <= ST_ROOT)
        return st_no_account(c->name, err);
    serial = st_tree_account(st_core_tree(ctl->core), id)->serial;
    parent = st_directory_parent(ctl->dir, c->name);
    version = st_control_version(ctl, NULL, c->name);
    r = st_tx_open(tx, err);
    if (r == 0)
        r = check_empty(tx, c, err);
    event.u.account.name = c->name;
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    snprintf(filed, sizeof filed, ST_GONE_NAME, c->name, (long long)serial);
    r = revoke_all(tx, c, err);
    if (r == 0)
        r = st_tx_fault(tx, st_store_jobs_refile(ctl->store, c->name, filed, err), err);
    if (r == 0 && version > 0)
        r = st_tx_fault(tx, st_store_thing_delete(ctl->store, "account", c->name, version, err),
                        err);
    c->version = tx->now;
    snprintf(detail, sizeof detail, "{\"id\":%" PRId64 ",\"tokens_revoked\":%zu}", serial,
             c->revoked.n);
    if (r == 0)
        r = st_version_forget(tx, "plan", c->name, err);
    if (r == 0)
        r = st_unlimit_account(tx, c->name, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "account.remove", c->name, c->name, detail, err);
    if (r < 0)
        return r;
    st_allowance_release(ctl->allowance, c->name, ST_AL_TOKENS, (int64_t)c->revoked.n);
    st_allowance_release(ctl->allowance, parent ? parent : "", ST_AL_ACCOUNTS, 1);
    st_allowance_remove(ctl->allowance, c->name);
    st_version_set(tx, NULL, c->name, 0);
    return 0;
}

static void publish_account_remove(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_account *c = (const st_cmd_account *)cmd;

    for (size_t i = 0; i < c->revoked.n; i++)
        st_directory_revoke(ctl->dir, c->revoked.v[i], c->version);
}

void st_cmd_account_remove(st_cmd_account *cmd)
{
    cmd->cmd.run = run_account_remove;
    cmd->cmd.publish = publish_account_remove;
}
