/*
 * Accounts: made and changed by those above them, removed when they are empty.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "admit/admit.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "billing/billing.h"
#include "control/state.h"

/* Quotas come from above: whoever changes an account must stand over it. */
static int may_change(st_tx *tx, const st_cmd_account *c, st_err *err)
{
    const char *me = c->who.account;

    if (c->create) {
        if (!st_tx_within(tx, c->parent, me))
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
    if (!st_tx_within(tx, c->name, me))
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
                   "leave out trust, or ask an admin of that account",
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

/* ---- what the fleet can carry -------------------------------------------------------------------- */

static const char *amount(char buf[ST_FMT_MAX], const st_floor_cut *cut, int64_t v)
{
    return cut->dim == ST_RAM ? st_fmt_mib(buf, v) : st_fmt_milli(buf, v);
}

static int64_t of_cut(const st_use *use, const st_floor_cut *cut)
{
    return cut->type >= 0       ? use->type_m[cut->type]
           : cut->dim == ST_GPU ? use->gpu_m
           : cut->dim == ST_CPU ? use->cpu_m
                                : use->ram_mib;
}

static const char *resource_of(const st_core *core, const st_floor_cut *cut)
{
    return cut->type >= 0       ? st_core_fleet(core)->types.v[cut->type].name
           : cut->dim == ST_RAM ? "ram_mib"
                                : st_dim_name(cut->dim);
}

/* The one that is new has no place in the tree yet. */
static const char *account_of(const st_tree *tree, const st_cmd_account *c, const st_floor_cut *cut)
{
    return (size_t)cut->account < tree->accounts.n ? st_tree_account(tree, cut->account)->name
                                                   : c->name;
}

static void tell_cuts(st_tx *tx, st_cmd_account *c, const st_floor_cut_vec *cuts)
{
    const st_core *core = tx->ctl->core;
    const char *sep = "";

    st_strbuf_clear(&c->floors);
    st_strbuf_addc(&c->floors, '[');
    for (size_t i = 0; i < cuts->n; i++) {
        const st_floor_cut *cut = &cuts->v[i];
        const char *name = account_of(st_core_tree(core), c, cut);
        const int64_t v[] = {cut->promised, cut->before, cut->after};
        static const char *const keys[] = {"guarantee", "from", "to"};
        char buf[ST_FMT_MAX];

        if (strcmp(name, c->name) != 0 && !st_tx_within(tx, name, c->who.account))
            continue;
        st_strbuf_addf(&c->floors, "%s{\"account\":", sep);
        st_quote_json(&c->floors, name);
        st_strbuf_add(&c->floors, ",\"resource\":");
        st_quote_json(&c->floors, resource_of(core, cut));
        for (size_t k = 0; k < ST_ARRAY_LEN(v); k++)
            if (cut->dim == ST_RAM)
                st_strbuf_addf(&c->floors, ",\"%s\":%" PRId64, keys[k], v[k]);
            else
                st_strbuf_addf(&c->floors, ",\"%s\":%s", keys[k], st_fmt_milli(buf, v[k]));
        st_strbuf_addc(&c->floors, '}');
        sep = ",";
    }
    st_strbuf_addc(&c->floors, ']');
}

/* Says it with one floor that would shrink; whose floors there are is the owners' to know. */
static int refuse_cuts(st_tx *tx, const st_cmd_account *c, const st_floor_cut_vec *cuts,
                       const st_use *whole, const st_use *promised, st_err *err)
{
    const st_core *core = tx->ctl->core;
    const st_floor_cut *cut = &cuts->v[0];
    char sum[ST_FMT_MAX], have[ST_FMT_MAX], from[ST_FMT_MAX], to[ST_FMT_MAX];

    if (c->who.role != ST_ROLE_OWNER)
        return st_fail(err, ST_EOVER,
                       "account %s: the fleet cannot carry this guarantee beside those of others; "
                       "ask an owner of the cluster",
                       c->name);
    for (size_t i = 0; i < cuts->n; i++) /* of what is short, not of what follows from it */
        if (of_cut(promised, &cuts->v[i]) > of_cut(whole, &cuts->v[i])) {
            cut = &cuts->v[i];
            break;
        }
    return st_fail(
        err, ST_EOVER,
        "account %s: with this guarantee %s %s would be promised, and all nodes together "
        "have %s; the floor of %s would be %s instead of %s. Lower it, or force it to "
        "shrink floors",
        c->name, amount(sum, cut, of_cut(promised, cut)),
        cut->dim == ST_RAM ? "of RAM" : resource_of(core, cut),
        amount(have, cut, of_cut(whole, cut)), account_of(st_core_tree(core), c, cut),
        amount(to, cut, cut->after),
        amount(from, cut, cut->after < cut->before ? cut->before : cut->promised));
}

/* Before the first node is there, nothing can be compared. Nodes that are down or drain are expected back. */
static int check_carried(st_tx *tx, st_cmd_account *c, const st_account_spec *spec, st_err *err)
{
    const st_core *core = tx->ctl->core;
    const st_tree *tree = st_core_tree(core);
    st_floor_cut_vec cuts = {0};
    st_use whole, promised;
    int r = 0;

    st_admit_cuts(tree, &tree->capacity, spec, &cuts, NULL);
    tell_cuts(tx, c, &cuts);
    st_fleet_whole(st_core_fleet(core), &whole);
    st_admit_cuts(tree, &whole, spec, &cuts, &promised);
    if (cuts.n > 0 && whole.cpu_m + whole.gpu_m > 0) {
        if (!c->said.force)
            r = refuse_cuts(tx, c, &cuts, &whole, &promised, err);
        else if (c->who.role != ST_ROLE_OWNER)
            r = st_fail(err, ST_EPERM,
                        "Your role (%s) cannot force a guarantee that the fleet cannot carry: it "
                        "would shrink the floors of others.",
                        st_role_words[c->who.role]);
    }
    st_vec_free(&cuts);
    return r;
}

/* From the command to what the core takes. */
static int lay_command(st_tx *tx, st_cmd_account *c, st_account_spec *ret, st_err *err)
{
    int r;

    c->said.name = c->name;
    c->said.parent = c->create && c->parent[0] ? c->parent : NULL;
    r = lay_account(tx, &c->who, &c->said, ret, err);
    if (r == 0)
        r = st_tree_check(st_core_tree(tx->ctl->core), ret, err);
    return r < 0 ? r : check_carried(tx, c, ret, err);
}

int st_tx_account_try(st_tx *tx, st_cmd_account *cmd, st_account_spec *ret, st_err *err)
{
    int r = may_change(tx, cmd, err);

    return r < 0 ? r : lay_command(tx, cmd, ret, err);
}

int st_tx_account_change(st_tx *tx, const st_identity *who, const st_account_doc *said,
                         st_account_spec *ret, st_err *err)
{
    const st_cmd_account as = {.who = *who, .name = said->name};
    int r = may_change(tx, &as, err);

    return r < 0 ? r : lay_account(tx, who, said, ret, err);
}

/* Whose floors were shrunk by force. */
static const char *audit_detail(const st_cmd_account *c, st_strbuf *out)
{
    if (!c->said.force)
        return NULL;
    st_strbuf_addf(out, "{\"forced\":true,\"floors\":%s}", st_strbuf_str(&c->floors));
    return st_strbuf_str(out);
}

static int run_account(st_tx *tx, st_cmd *cmd, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf detail = {0};
    st_cmd_account *c = (st_cmd_account *)cmd;
    st_control *ctl = tx->ctl;
    st_event event = {.kind = ST_EV_ACCOUNT};
    int64_t version = 0;
    int r = may_change(tx, c, err);

    if (r < 0)
        return r;
    version = st_control_version(ctl, NULL, c->name);
    r = lay_command(tx, c, &event.u.account, err);
    if (r == 0)
        r = st_tx_open(tx, err);
    if (r == 0 && c->create)
        r = st_charge_account(tx, &c->who, c->parent, err);
    if (r < 0)
        return r;
    r = st_tx_apply(tx, &event, err);
    if (r < 0 && c->create)
        st_uncharge_account(tx, c->parent);
    if (r == 0 && c->create) /* at once: what is charged to it may come in this very transaction */
        st_allowance_add(ctl->allowance, c->name, c->parent);
    if (r == 0 && c->create) /* what the core takes, the books take; if not, nothing stays */
        r = st_tx_fault(
            tx, st_money_account(tx, st_tree_find(st_core_tree(ctl->core), c->name), err), err);
    if (r < 0)
        return r;
    const st_document_row row = {
        .kind = "account", .name = c->name, .version = version, .at_ms = tx->now, .doc = "{}"};
    r = st_tx_fault(tx, st_store_document_put(ctl->store, &row, err), err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, c->create ? "account.create" : "account.change", c->name,
                        c->name, audit_detail(c, &detail), err);
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
static int find_document(void *ctx, const st_document_row *row, st_err *err)
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
static int find_image(void *ctx, const st_document_row *row, st_err *err)
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
    static const char *const kinds[] = {"notice", "size", "secret", "service", "volume"};
    belongings b = {.account = c->name};
    char q[ST_QUOTE_MAX], what[32];
    int r = 0;

    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(kinds); i++) {
        snprintf(what, sizeof what, "%s", kinds[i]);
        r = st_store_documents(tx->ctl->store, kinds[i], find_document, &b, err);
    }
    if (r == 0 && !b.name[0]) {
        r = st_store_documents(tx->ctl->store, "image", find_image, &b, err);
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

/* Money stays in the books, under the name it has there; jobs and tokens are filed under one nobody can have. */
static int run_account_remove(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_account *c = (st_cmd_account *)cmd;
    st_control *ctl = tx->ctl;
    st_event event = {.kind = ST_EV_ACCOUNT_REMOVE};
    char detail[80];
    int64_t version = 0, serial;
    const char *parent;
    int32_t id, up;
    int r = may_change(tx, c, err);

    if (r < 0)
        return r;
    id = st_tree_find(st_core_tree(ctl->core), c->name);
    if (id <= ST_ROOT)
        return st_no_account(c->name, err);
    serial = st_tree_account(st_core_tree(ctl->core), id)->serial;
    up = st_tree_account(st_core_tree(ctl->core), id)->parent;
    parent = up == ST_ROOT ? "" : st_tree_account(st_core_tree(ctl->core), up)->name;
    version = st_control_version(ctl, NULL, c->name);
    r = st_tx_open(tx, err);
    if (r == 0)
        r = check_empty(tx, c, err);
    event.u.account.name = c->name;
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    snprintf(c->filed, sizeof c->filed, ST_GONE_NAME, c->name, (long long)serial);
    r = revoke_all(tx, c, err);
    if (r == 0)
        r = st_tx_fault(tx, st_store_jobs_refile(ctl->store, c->name, c->filed, err), err);
    if (r == 0)
        r = st_tx_fault(tx, st_store_tokens_refile(ctl->store, c->name, c->filed, INT64_MAX, err),
                        err);
    if (r == 0 && version > 0)
        r = st_tx_fault(tx, st_store_document_delete(ctl->store, "account", c->name, version, err),
                        err);
    c->version = tx->now;
    snprintf(detail, sizeof detail, "{\"id\":%" PRId64 ",\"tokens_revoked\":%zu}", serial,
             c->revoked.n);
    if (r == 0)
        r = st_version_forget(tx, "plan", c->name, err);
    if (r == 0)
        r = st_unlimit_account(tx, c->name, err);
    if (r == 0)
        r = st_views_forget(tx, c->name, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "account.remove", c->name, c->name, detail, err);
    if (r < 0)
        return r;
    st_allowance_release(ctl->allowance, c->name, ST_AL_TOKENS, (int64_t)c->revoked.n);
    st_allowance_release(ctl->allowance, parent, ST_AL_ACCOUNTS, 1);
    st_allowance_remove(ctl->allowance, c->name);
    st_version_set(tx, NULL, c->name, 0);
    return 0;
}

static void publish_account_remove(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_account *c = (const st_cmd_account *)cmd;

    for (size_t i = 0; i < c->revoked.n; i++)
        st_directory_revoke(ctl->dir, c->revoked.v[i], c->version);
    st_directory_refile(ctl->dir, c->name, c->filed);
}

void st_cmd_account_remove(st_cmd_account *cmd)
{
    cmd->cmd.run = run_account_remove;
    cmd->cmd.publish = publish_account_remove;
}
