/*
 * Tokens and users.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"
#include "spec/fields.h"

#define LABEL_MAX 200

/* What may be told of a token: everything but the secret, which nobody has. */
static void token_json(const st_api *api, const st_token_row *row, st_strbuf *out)
{
    char id[ST_ID_TEXT];

    st_control_name(api->control, 't', (uint64_t)row->id, id);
    st_strbuf_addc(out, '{');
    st_out_text(out, "id", id);
    st_out_text(out, "account", row->account);
    st_out_text(out, "user", row->user_name);
    st_out_text(out, "role", row->role);
    st_out_text(out, "label", row->label);
    st_out_time(out, "created", row->created_ms);
    st_out_time(out, "expires", row->expires_ms);
    st_out_time(out, "revoked", row->revoked_ms);
    st_out_time(out, "last_used", row->last_used_ms);
    st_strbuf_addc(out, '}');
}

typedef struct token_list {
    st_api *api;
    st_call *call;
    st_strbuf out;
    int n;
} token_list;

/* Admins see those of their subtree, others their own. */
static bool may_see(st_api *api, const st_call *call, const st_token_row *row)
{
    const st_identity *who = st_api_who(call);

    if (strcmp(row->account, who->account) == 0 && strcmp(row->user_name, who->user) == 0)
        return true;
    return (ST_MAY(who->role) & ST_MAY_AUDIT) && st_api_sees(api, call, row->account);
}

static int list_row(void *ctx, const st_token_row *row, st_err *err)
{
    token_list *l = ctx;

    (void)err;
    if (!may_see(l->api, l->call, row))
        return 0;
    if (l->n++ > 0)
        st_strbuf_addc(&l->out, ',');
    token_json(l->api, row, &l->out);
    return 0;
}

static void tokens_list_now(st_call *call, void *ctx)
{
    st_api *api = ctx;
    token_list l = {.api = api, .call = call};
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int r = -1;

    st_api_stamp_now(api, call);
    st_strbuf_add(&l.out, "{\"tokens\":[");
    if (reader)
        r = st_store_tokens(reader, list_row, &l, &err);
    st_api_reader_back(api, reader);
    if (r < 0) {
        st_call_fail(call, &err);
    } else {
        st_strbuf_add(&l.out, "]}");
        st_call_reply_buf(call, 200, NULL, &l.out);
    }
    st_strbuf_done(&l.out);
}

void st_api_tokens_list(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, tokens_list_now);
}

static bool token_id(const st_api *api, const st_call *call, int64_t *ret)
{
    uint64_t id;

    if (!st_control_named(api->control, 't', st_call_param(call, "id"), &id))
        return false;
    *ret = (int64_t)id;
    return true;
}

void st_api_token_get(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};
    st_token_row row;
    st_store *reader = st_api_reader(api, &err);
    int64_t id;
    int r = reader ? -ST_ENOENT : -err.code;

    st_api_stamp_now(api, call);
    if (reader && token_id(api, call, &id))
        r = st_store_token_get(reader, id, arena, &row, &err);
    st_api_reader_back(api, reader);
    if (r == 0 && may_see(api, call, &row)) {
        token_json(api, &row, &out);
        st_call_reply_buf(call, 200, NULL, &out);
    } else if (r == 0 || r == -ST_ENOENT) {
        st_api_no_such(call, "token", st_call_param(call, "id"));
    } else {
        st_call_fail(call, &err);
    }
}

typedef struct token_change {
    st_cmd_token token;
    st_api *api;
    st_call *call;
    st_doc *doc;
} token_change;

static void change_free(token_change *c)
{
    explicit_bzero(c->token.text, sizeof c->token.text);
    st_doc_free(c->doc);
    free(c);
}

static void make_done(st_cmd *cmd, const st_err *err)
{
    token_change *c = (token_change *)cmd;
    st_strbuf out = {0};
    char id[ST_ID_TEXT];

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_control_name(c->api->control, 't', (uint64_t)c->token.id, id);
        st_out_text(&out, "id", id);
        st_out_text(&out, "token", c->token.text);
        st_out_text(&out, "account", c->token.account);
        st_out_text(&out, "user", c->token.user);
        st_out_text(&out, "role", st_role_words[c->token.role]);
        st_out_time(&out, "expires", c->token.expires_ms);
        st_strbuf_addc(&out, '}');
        st_call_set_header(c->call, "Cache-Control", "no-store");
        st_call_reply_buf(c->call, 201, NULL, &out);
    }
    st_strbuf_done(&out);
    change_free(c);
}

typedef struct token_fields {
    const char *account, *user, *label;
    int role;
    int64_t expires_ms; /* from now */
} token_fields;

static const st_field token_rows[] = {
    {.key = "account", .kind = ST_F_TEXT, .offset = offsetof(token_fields, account)},
    {.key = "user", .kind = ST_F_NAME, .offset = offsetof(token_fields, user), .required = true},
    {.key = "role",
     .kind = ST_F_WORD,
     .offset = offsetof(token_fields, role),
     .words = st_role_words,
     .required = true},
    {.key = "label", .kind = ST_F_LINE, .offset = offsetof(token_fields, label)},
    {.key = "expires_in", .kind = ST_F_DURATION, .offset = offsetof(token_fields, expires_ms)},
    {0},
};

static int read_token(token_change *c, st_err *err)
{
    token_fields f = {.label = "", .expires_ms = ST_STORE_NEVER};
    st_cmd_token *t = &c->token;
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_doc_expect(c->doc, st_doc_root(c->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(c->doc, st_doc_root(c->doc), token_rows, &f, err);
    if (r < 0)
        return r;
    t->account = f.account ? f.account : t->who.account;
    t->user = f.user;
    t->label = f.label;
    t->role = (st_role)f.role;
    t->expires_ms = f.expires_ms == ST_STORE_NEVER
                        ? ST_STORE_NEVER
                        : c->api->options.clock(c->api->options.ctx) + f.expires_ms;
    if (t->role == ST_ROLE_JOIN)
        return st_fail(err, ST_EINVAL,
                       "a token for joining machines is made at /v1/admin/join-tokens, with a pool "
                       "and a number of uses");
    if (strlen(t->label) > LABEL_MAX)
        return st_fail(err, ST_ERANGE, "a token's label has at most %d bytes", LABEL_MAX);
    if (t->role == ST_ROLE_OWNER && t->who.role == ST_ROLE_OWNER && t->account[0])
        return st_fail(err, ST_EINVAL, "an owner stands at the cluster: leave the account out");
    if (t->role != ST_ROLE_OWNER && t->role != ST_ROLE_NODE && t->role != ST_ROLE_AUDITOR &&
        t->role != ST_ROLE_VIEWER && !t->account[0])
        return st_fail(err, ST_EINVAL, "which account is the token for?");
    return 0;
}

/* For whoever asks: it opens no more than that one sees already. */
void st_api_feed_make(st_call *call, void *ctx)
{
    token_change *c = st_xcalloc(1, sizeof *c);

    c->api = ctx;
    c->call = call;
    c->token.who = *st_api_who(call);
    c->token.account = c->token.who.account;
    c->token.user = c->token.who.user;
    c->token.label = "calendar feed";
    c->token.role = ST_ROLE_FEED;
    c->token.expires_ms = ST_STORE_NEVER;
    st_cmd_token_make(&c->token);
    c->token.cmd.done = make_done;
    st_call_defer(call);
    st_api_post(ctx, call, &c->token.cmd);
}

void st_api_token_make(st_call *call, void *ctx)
{
    st_api *api = ctx;
    token_change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->api = api;
    c->call = call;
    c->token.who = *st_api_who(call);
    if (read_token(c, &err) < 0) {
        st_call_fail(call, &err);
        change_free(c);
        return;
    }
    st_cmd_token_make(&c->token);
    c->token.cmd.done = make_done;
    st_call_defer(call);
    st_api_post(api, call, &c->token.cmd);
}

static void revoke_done(st_cmd *cmd, const st_err *err)
{
    token_change *c = (token_change *)cmd;

    if (err)
        st_call_fail(c->call, err);
    else
        st_call_reply_empty(c->call, 204);
    change_free(c);
}

void st_api_token_revoke(st_call *call, void *ctx)
{
    st_api *api = ctx;
    token_change *c = st_xcalloc(1, sizeof *c);

    c->api = api;
    c->call = call;
    c->token.who = *st_api_who(call);
    if (!token_id(api, call, &c->token.id)) {
        st_api_no_such(call, "token", st_call_param(call, "id"));
        change_free(c);
        return;
    }
    if (st_call_query_bool(call, "remove", false))
        st_cmd_token_remove(&c->token);
    else
        st_cmd_token_revoke(&c->token);
    c->token.cmd.done = revoke_done;
    st_call_defer(call);
    st_api_post(api, call, &c->token.cmd);
}

/* ---- users: whoever has a token, once each ------------------------------------------------------ */

typedef struct user_list {
    token_list l;
    st_map *seen;
} user_list;

static int user_row(void *ctx, const st_token_row *row, st_err *err)
{
    user_list *u = ctx;
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};

    (void)err;
    if (row->revoked_ms != ST_STORE_NEVER || !st_api_sees(u->l.api, u->l.call, row->account) ||
        strcmp(row->role, st_role_words[ST_ROLE_NODE]) == 0 ||
        strcmp(row->role, st_role_words[ST_ROLE_JOIN]) == 0 ||
        strcmp(row->role, st_role_words[ST_ROLE_FEED]) == 0 ||
        strcmp(row->role, st_role_words[ST_ROLE_CALLER]) == 0)
        return 0;
    st_strbuf_addf(&key, "%s %s %s", row->account, row->user_name, row->role);
    if (st_map_get(u->seen, st_strbuf_str(&key), NULL))
        return 0;
    st_map_put(u->seen, st_strbuf_str(&key), 1);
    st_strbuf_add(&u->l.out, u->l.n++ > 0 ? ",{" : "{");
    st_out_text(&u->l.out, "user", row->user_name);
    st_out_text(&u->l.out, "account", row->account);
    st_out_text(&u->l.out, "role", row->role);
    st_strbuf_addc(&u->l.out, '}');
    return 0;
}

static void users_list_now(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_map_freep) st_map *seen = st_map_new();
    user_list u = {.l = {.api = api, .call = call}, .seen = seen};
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int r = -1;

    st_api_stamp_now(api, call);
    st_strbuf_add(&u.l.out, "{\"users\":[");
    if (reader)
        r = st_store_tokens(reader, user_row, &u, &err);
    st_api_reader_back(api, reader);
    if (r < 0) {
        st_call_fail(call, &err);
    } else {
        st_strbuf_add(&u.l.out, "]}");
        st_call_reply_buf(call, 200, NULL, &u.l.out);
    }
    st_strbuf_done(&u.l.out);
}

void st_api_users_list(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, users_list_now);
}
