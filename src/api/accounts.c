/*
 * Accounts: what they are promised, may reach, hold and have used.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "share/share.h"

/* {"gpu":16,"h100":8,"cpu":100,"ram_mib":1024}; what is not set is left out. */
static void quota_json(const st_core *core, const st_quota *q, const char *key, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);

    st_out_raw(out, key, "{");
    if (q->gpu_m != ST_UNSET)
        st_out_milli(out, "gpu", q->gpu_m);
    for (size_t t = 0; t < fleet->types.n; t++)
        if (q->type_m[t] != ST_UNSET)
            st_out_milli(out, fleet->types.v[t].name, q->type_m[t]);
    if (q->cpu_m != ST_UNSET)
        st_out_milli(out, "cpu", q->cpu_m);
    if (q->ram_mib != ST_UNSET)
        st_out_int(out, "ram_mib", q->ram_mib);
    st_strbuf_addc(out, '}');
}

static void use_json(const st_core *core, const st_use *u, const char *key, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);

    st_out_raw(out, key, "{");
    st_out_milli(out, "gpu", u->gpu_m);
    for (size_t t = 0; t < fleet->types.n; t++)
        if (u->type_m[t] > 0)
            st_out_milli(out, fleet->types.v[t].name, u->type_m[t]);
    st_out_milli(out, "cpu", u->cpu_m);
    st_out_int(out, "ram_mib", u->ram_mib);
    st_strbuf_addc(out, '}');
}

static void limits_json(const st_limits *l, const char *key, st_strbuf *out)
{
    st_out_raw(out, key, "{");
    if (l->gpu_m != ST_UNSET)
        st_out_milli(out, "gpu", l->gpu_m);
    if (l->vram_mib != ST_UNSET)
        st_out_int(out, "vram_mib", l->vram_mib);
    if (l->share_m != ST_UNSET)
        st_out_milli(out, "share", l->share_m);
    if (l->run_ms != ST_UNSET)
        st_out_milli(out, "run_seconds", l->run_ms);
    st_strbuf_addc(out, '}');
}

static void book_limits_json(const st_book_limits *l, st_strbuf *out)
{
    st_out_raw(out, "booking", "{");
    if (l->hours_m != ST_UNSET)
        st_out_milli(out, "gpu_hours", l->hours_m);
    if (l->concurrent != ST_UNSET)
        st_out_int(out, "concurrent", l->concurrent);
    if (l->length_ms != ST_UNSET)
        st_out_milli(out, "length_seconds", l->length_ms);
    if (l->lead_ms != ST_UNSET)
        st_out_milli(out, "lead_seconds", l->lead_ms);
    st_strbuf_addc(out, '}');
}

/* With the account's own number: one that is made again under the name has other versions. */
static void account_version(st_tx *tx, const st_core *core, const char *name, char ret[48])
{
    const st_tree *tree = st_core_tree(core);
    int32_t id = st_tree_find(tree, name);

    snprintf(ret, 48, "%lld.%lld", (long long)st_tx_version(tx, NULL, name),
             (long long)(id > ST_ROOT ? st_tree_account(tree, id)->serial : 0));
}

static void account_json(const st_question *q, const st_core *core, int32_t id, st_strbuf *out)
{
    static const char *const trust[] = {"inherit", "trusted", "untrusted"};
    const st_tree *tree = st_core_tree(core);
    const st_account *a = st_tree_account(tree, id);
    bool top = id == st_question_root(q, core) || a->parent == ST_ROOT;

    st_strbuf_addc(out, '{');
    st_out_text(out, "name", a->name);
    st_out_int(out, "id", a->serial);
    /* Who stands above the caller is not the caller's to know. */
    if (top)
        st_out_raw(out, "parent", "null");
    else
        st_out_text(out, "parent", st_tree_account(tree, a->parent)->name);
    quota_json(core, &a->guarantee, "guarantee", out);
    quota_json(core, &a->max, "max", out);
    st_out_milli(out, "weight", a->weight_m);
    st_out_int(out, "priority", a->priority);
    st_out_raw(out, "limits", "{");
    limits_json(&a->job_limits, "job", out);
    limits_json(&a->user_limits, "user", out);
    book_limits_json(&a->book_limits, out);
    st_strbuf_addc(out, '}');
    st_out_text(out, "trust", trust[st_tree_untrusted(tree, id) ? ST_TRUST_UNTRUSTED : a->trust]);
    st_out_raw(out, "trust_domain", a->own_domain ? "\"own\"" : "\"inherit\"");
    if (a->min_run_ms != ST_UNSET)
        st_out_milli(out, "min_run_seconds", a->min_run_ms);
    st_out_int(out, "version", st_tx_version(q->tx, NULL, a->name));
    st_strbuf_addc(out, '}');
}

static int fill_list(st_question *q, st_core *core, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    int32_t root = st_question_root(q, core);
    const char *sep = "";

    (void)err;
    st_strbuf_add(&q->out, "{\"accounts\":[");
    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++) {
        if (tree->accounts.v[i]->gone || !st_tree_within(tree, (int32_t)i, root))
            continue;
        st_strbuf_add(&q->out, sep);
        account_json(q, core, (int32_t)i, &q->out);
        sep = ",";
    }
    st_strbuf_add(&q->out, "]}");
    return 0;
}

void st_api_accounts_list(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_list, NULL, 0);
}

static int fill_one(st_question *q, st_core *core, st_err *err)
{
    int32_t id;
    int r = st_question_account(q, core, q->name, &id, err);

    if (r < 0)
        return r;
    account_json(q, core, id, &q->out);
    account_version(q->tx, core, q->name, q->version);
    return 0;
}

void st_api_account_get(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_one, st_call_param(call, "name"), 0);
}

/* ---- quota and usage ------------------------------------------------------------------------ */

static int fill_quota(st_question *q, st_core *core, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    int32_t id;
    int r = st_question_account(q, core, q->name, &id, err);

    if (r < 0)
        return r;
    const st_account *a = st_tree_account(tree, id);
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "account", a->name);
    quota_json(core, &a->guarantee, "guarantee", &q->out);
    quota_json(core, &a->floor, "floor", &q->out);
    quota_json(core, &a->max, "max", &q->out);
    use_json(core, &a->now, "held", &q->out);
    use_json(core, &a->guaranteed, "guaranteed", &q->out);
    st_out_milli(&q->out, "inside_gpu", st_share_inside_m(tree, id));
    st_out_milli(&q->out, "borrowed_gpu", a->now.gpu_m - st_share_inside_m(tree, id));
    st_strbuf_addc(&q->out, '}');
    return 0;
}

void st_api_account_quota(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_quota, st_call_param(call, "name"), 0);
}

/* GPU time is in milli-GPU x ms; people think in hours. */
#define GPU_HOUR INT64_C(3600000)

static int fill_usage(st_question *q, st_core *core, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    int64_t half_life = st_core_policy(core)->half_life_ms;
    const char *sep = "";
    int32_t id;
    int r = st_question_account(q, core, q->name, &id, err);

    if (r < 0)
        return r;
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "account", q->name);
    st_out_milli(&q->out, "half_life_seconds", half_life);
    st_out_milli(&q->out, "lost_gpu_hours", st_tree_account(tree, id)->lost / GPU_HOUR);
    st_out_raw(&q->out, "users", "[");
    for (size_t i = 0; i < tree->usage.n; i++) {
        const st_usage *u = &tree->usage.v[i];
        int64_t used;

        if (st_tree_account(tree, u->account)->gone || !st_tree_within(tree, u->account, id))
            continue;
        used = st_usage_read(tree, u->account, u->user, st_core_now(core), half_life);
        st_strbuf_addf(&q->out, "%s{", sep);
        st_out_text(&q->out, "account", st_tree_account(tree, u->account)->name);
        st_out_text(&q->out, "user", tree->users.v[u->user]);
        st_out_milli(&q->out, "held_gpu", u->rate_m);
        st_out_milli(&q->out, "decayed_gpu_hours", used / GPU_HOUR);
        st_strbuf_addc(&q->out, '}');
        sep = ",";
    }
    st_strbuf_add(&q->out, "]}");
    return 0;
}

void st_api_account_usage(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_usage, st_call_param(call, "name"), 0);
}

/* ---- changing ------------------------------------------------------------------------------- */

typedef struct account_change {
    st_cmd_account account;
    st_api *api;
    st_call *call;
    st_doc *doc;
    int (*put)(st_tx *tx, st_cmd *cmd, st_err *err); /* what control gave */
    char version[48];                                /* after it */
} account_change;

/* Whose account it is, and whether it is there, is for the command to say. */
static int run_if(st_tx *tx, st_cmd *cmd, st_err *err)
{
    account_change *c = (account_change *)cmd;
    const st_tree *tree = st_core_tree(st_tx_core(tx));
    int32_t id = st_tree_find(tree, c->account.name), top = ST_ROOT;
    int r = 0;

    if (c->account.who.account[0])
        top = st_tree_find(tree, c->account.who.account);
    account_version(tx, st_tx_core(tx), c->account.name, c->version);
    if (!c->account.create && id > ST_ROOT && top >= ST_ROOT && st_tree_within(tree, id, top))
        r = st_api_condition(c->call, c->version, true, "account", c->account.name, err);
    if (r == 0)
        r = c->put(tx, cmd, err);
    account_version(tx, st_tx_core(tx), c->account.name, c->version);
    return r;
}

static void condition(account_change *c)
{
    c->put = c->account.cmd.run;
    c->account.cmd.run = run_if;
}

static void change_free(account_change *c)
{
    st_strbuf_done(&c->account.floors);
    st_vec_free(&c->account.revoked);
    st_doc_free(c->doc);
    free(c);
}

static void change_done(st_cmd *cmd, const st_err *err)
{
    account_change *c = (account_change *)cmd;
    st_strbuf out = {0};

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_call_set_version(c->call, c->version);
        st_api_stamp_now(c->api, c->call);
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", c->account.name);
        st_out_int(&out, "version", c->account.version);
        st_out_raw(&out, "floors", st_strbuf_str(&c->account.floors));
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, c->account.create ? 201 : 200, NULL, &out);
    }
    st_strbuf_done(&out);
    change_free(c);
}

static int read_change(account_change *c, st_err *err)
{
    const st_spec_names names = st_directory_names(c->api->dir);
    const st_doc_node *children = NULL;
    st_cmd_account *a = &c->account;
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_doc_expect(c->doc, st_doc_root(c->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_spec_account(c->doc, st_doc_root(c->doc), &names, a->create, &a->said, &children,
                            err);
    if (r < 0)
        return r;
    if (children)
        return st_doc_fail(c->doc, children, err, ST_EINVAL,
                           "accounts are made one by one: \"children\" has no place here");
    if (a->create) {
        a->name = a->said.name;
        a->parent = a->said.parent ? a->said.parent : a->who.account;
        return 0;
    }
    a->name = st_call_param(c->call, "name");
    if (a->said.name && strcmp(a->said.name, a->name) != 0)
        return st_fail(err, ST_EINVAL, "account %s: its name cannot change", a->name);
    if (a->said.parent)
        return st_fail(err, ST_EINVAL, "account %s: its parent cannot change", a->name);
    return 0;
}

/* ---- trying --------------------------------------------------------------------------------- */

static void drop_change(void *owner)
{
    change_free(owner);
}

/* What the fleet cannot carry is told, not refused: that is what is asked. */
static int fill_trial(st_question *q, st_core *core, st_err *err)
{
    account_change *c = q->owner;
    st_account_spec spec;
    int r = st_tx_account_try(q->tx, &c->account, &spec, err);
    bool carried = r == 0 && !c->account.said.force;

    (void)core;
    if (r < 0 && r != -ST_EOVER)
        return r;
    if (r == 0 && c->account.said.force) { /* would it have been taken without? */
        c->account.said.force = false;
        carried = st_tx_account_try(q->tx, &c->account, &spec, err) == 0;
        c->account.said.force = true;
    }
    st_strbuf_addc(&q->out, '{');
    st_out_text(&q->out, "name", c->account.name);
    st_out_int(&q->out, "version", st_tx_version(q->tx, NULL, c->account.name));
    st_out_raw(&q->out, "carried", carried ? "true" : "false");
    if (!carried)
        st_out_text(&q->out, "detail", err->msg);
    st_out_raw(&q->out, "floors", st_strbuf_str(&c->account.floors));
    st_strbuf_addc(&q->out, '}');
    return 0;
}

static void try_change(st_api *api, st_call *call, account_change *c)
{
    st_question *q = st_question_new(api, call, fill_trial, NULL, 0);

    q->drop = drop_change;
    q->owner = c;
    st_question_post(q);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void change(st_call *call, st_api *api, bool create)
{
    account_change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->api = api;
    c->call = call;
    c->account.who = *st_api_who(call);
    c->account.create = create;
    if (read_change(c, &err) < 0) {
        st_call_fail(call, &err);
        change_free(c);
        return;
    }
    if (st_call_query_bool(call, "dry_run", false)) {
        try_change(api, call, c);
        return;
    }
    st_cmd_account_put(&c->account);
    condition(c);
    c->account.cmd.done = change_done;
    st_call_defer(call);
    st_api_post(api, call, &c->account.cmd);
}

static void remove_done(st_cmd *cmd, const st_err *err)
{
    account_change *c = (account_change *)cmd;

    if (err)
        st_call_fail(c->call, err);
    else
        st_call_reply_empty(c->call, 204);
    change_free(c);
}

void st_api_account_remove(st_call *call, void *ctx)
{
    account_change *c = st_xcalloc(1, sizeof *c);

    c->api = ctx;
    c->call = call;
    c->account.who = *st_api_who(call);
    c->account.name = st_call_param(call, "name");
    st_cmd_account_remove(&c->account);
    condition(c);
    c->account.cmd.done = remove_done;
    st_call_defer(call);
    st_api_post(c->api, call, &c->account.cmd);
}

void st_api_account_make(st_call *call, void *ctx)
{
    change(call, ctx, true);
}

void st_api_account_patch(st_call *call, void *ctx)
{
    change(call, ctx, false);
}
