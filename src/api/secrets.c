/*
 * Secrets of accounts: put, listed by name, removed. Nothing here, and nothing anywhere in the API of people, gives a
 * value back.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"

/* ---- reading -------------------------------------------------------------------------------------- */

typedef struct listing {
    st_api *api;
    const st_call *call;
    st_strbuf out;
    int n;
    bool above; /* of an account above the one that was asked for */
} listing;

/* Whose it is and who put it is told to those who see that account. */
static void add_row(void *ctx, const st_secret *s)
{
    listing *l = ctx;
    bool sees = st_api_sees(l->api, l->call, s->account);

    if (strchr(s->name, '/')) /* a notice's */
        return;
    st_strbuf_add(&l->out, l->n++ > 0 ? ",{" : "{");
    st_out_text(&l->out, "name", s->name);
    st_out_text(&l->out, "account", sees ? s->account : "");
    st_out_raw(&l->out, "below", s->below ? "true" : "false");
    if (sees) {
        st_out_int(&l->out, "version", s->version);
        st_out_time(&l->out, "created", s->made_ms);
        st_out_time(&l->out, "changed", s->changed_ms);
        st_out_text(&l->out, "by",
                    st_api_sees(l->api, l->call, s->by_account) ? s->by : "an account above yours");
    }
    st_strbuf_addc(&l->out, '}');
}

void st_api_secrets_list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *name = st_call_param(call, "name"), *above[ST_ABOVE_MAX];
    listing l = {.api = api, .call = call};

    if (!name[0] || !st_api_sees(api, call, name)) {
        st_api_no_such(call, "account", name);
        return;
    }
    st_strbuf_add(&l.out, "{\"secrets\":[");
    st_directory_above(api->dir, name, above);
    for (size_t i = 0; above[i]; i++)
        st_vault_each(st_control_vault(api->control), above[i], i > 0, add_row, &l);
    st_strbuf_add(&l.out, "]}");
    st_call_reply_buf(call, 200, NULL, &l.out);
    st_strbuf_done(&l.out);
}

/* ---- changing ------------------------------------------------------------------------------------- */

typedef struct change {
    st_cmd_secret secret;
    st_api *api;
    st_call *call;
    char account[ST_NAME_MAX + 1], name[ST_SECRET_NAME_MAX + 1];
    st_strbuf value;
} change;

static void change_free(change *c)
{
    st_wipe(&c->value);
    st_strbuf_done(&c->secret.sealed);
    free(c);
}

static void change_done(st_cmd *cmd, const st_err *err)
{
    change *c = (change *)cmd;
    st_strbuf out = {0};

    /* Nodes that wait to start a job with it must not start it with what it was. */
    if (!err && c->api->options.native)
        st_native_refresh(c->api->options.native);
    if (err) {
        st_call_fail(c->call, err);
    } else if (!c->secret.value) {
        st_call_reply_empty(c->call, 204);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", c->name);
        st_out_text(&out, "account", c->account);
        st_out_int(&out, "version", c->secret.kept.version);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    change_free(c);
}

static int read_change(change *c, bool put, st_err *err)
{
    const char *account = st_call_param(c->call, "name"), *name = st_call_param(c->call, "key");
    char q[ST_QUOTE_MAX];
    size_t n;
    const char *body = st_call_body(c->call, &n);

    if (strlen(account) > ST_NAME_MAX || !st_api_sees(c->api, c->call, account))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, account));
    if (!st_plain_name(name, ST_SECRET_NAME_MAX))
        return st_fail(err, ST_EINVAL,
                       "%s cannot be the name of a secret: 1 to %d letters, digits, ., - and _",
                       st_quote(q, name), ST_SECRET_NAME_MAX);
    memcpy(c->account, account, strlen(account) + 1);
    memcpy(c->name, name, strlen(name) + 1);
    if (!put)
        return 0;
    if (n == 0 || n > ST_SECRET_BYTES_MAX)
        return st_fail(err, ST_ERANGE, "a secret has 1 to %d bytes, this has %zu",
                       ST_SECRET_BYTES_MAX, n);
    st_strbuf_addn(&c->value, body, n);
    c->secret.value = c->value.s;
    c->secret.n = c->value.n;
    c->secret.below = st_call_query_bool(c->call, "below", false);
    return 0;
}

static void post_change(st_call *call, st_api *api, bool put)
{
    change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->api = api;
    c->call = call;
    c->secret.who = *st_api_who(call);
    c->secret.account = c->account;
    c->secret.name = c->name;
    if (read_change(c, put, &err) < 0) {
        st_call_fail(call, &err);
        change_free(c);
        return;
    }
    st_cmd_secret_init(&c->secret);
    c->secret.cmd.done = change_done;
    st_call_defer(call);
    st_api_post(api, call, &c->secret.cmd);
}

void st_api_secret_put(st_call *call, void *ctx)
{
    post_change(call, ctx, true);
}

void st_api_secret_remove(st_call *call, void *ctx)
{
    post_change(call, ctx, false);
}

/* ---- another key ---------------------------------------------------------------------------------- */

typedef struct rotation {
    st_cmd_rotate rotate;
    st_api *api;
    st_call *call;
} rotation;

/* A piece at a time, so that others have their turn between two of them. */
static void rotate_done(st_cmd *cmd, const st_err *err)
{
    rotation *c = (rotation *)cmd;
    st_strbuf out = {0};

    if (!err && !c->rotate.over) {
        st_api_post(c->api, c->call, &c->rotate.cmd);
        return;
    }
    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "key", c->rotate.key);
        st_out_int(&out, "documents", c->rotate.documents);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    free(c);
}

void st_api_secrets_rotate(st_call *call, void *ctx)
{
    st_api *api = ctx;
    rotation *c = st_xcalloc(1, sizeof *c);

    c->api = api;
    c->call = call;
    c->rotate.who = *st_api_who(call);
    st_cmd_rotate_init(&c->rotate);
    c->rotate.cmd.done = rotate_done;
    st_call_defer(call);
    st_api_post(api, call, &c->rotate.cmd);
}
