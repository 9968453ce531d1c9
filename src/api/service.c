/*
 * What an account has of stintd itself and may have: GET and PATCH /v1/accounts/{name}/service-quota.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "spec/fields.h"

#define LIMIT_MAX (INT64_C(1) << 50)

static void number(st_strbuf *out, const char *key, int64_t n)
{
    if (n == ST_AL_NONE)
        st_out_raw(out, key, "null");
    else
        st_out_int(out, key, n);
}

static void service_json(const char *account, const st_allowance_row *rows, st_strbuf *out)
{
    st_strbuf_addc(out, '{');
    st_out_text(out, "account", account);
    st_out_raw(out, "quota", "[");
    for (int i = 0; i < ST_AL_COUNT; i++) {
        st_strbuf_add(out, i ? ",{" : "{");
        st_out_text(out, "name", st_allowed_keys[i]);
        st_out_text(out, "about", st_allowed_about[i]);
        st_out_int(out, "used", rows[i].used);
        number(out, "limit", rows[i].limit);
        number(out, "set", rows[i].set);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_add(out, "]}");
}

static void answer(st_api *api, st_call *call, const char *account)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_allowance_row rows[ST_AL_COUNT];

    if (!account[0] || !st_api_sees(api, call, account) ||
        !st_allowance_read(api->allowance, account, st_api_who(call)->account, rows)) {
        st_api_no_such(call, "account", account);
        return;
    }
    service_json(account, rows, &out);
    st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_service_get(st_call *call, void *ctx)
{
    answer(ctx, call, st_call_param(call, "name"));
}

typedef struct service_change {
    st_cmd_allowance put;
    st_api *api;
    st_call *call;
} service_change;

static void change_done(st_cmd *cmd, const st_err *err)
{
    service_change *c = (service_change *)cmd;

    if (err)
        st_call_fail(c->call, err);
    else
        answer(c->api, c->call, c->put.account);
    free(c);
}

/* Numbers by name; none takes an account's own limit away. */
static int read_change(service_change *c, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_field rows[ST_AL_COUNT + 1] = {{0}};
    int64_t untouched = ST_AL_NONE - 1, v[ST_AL_COUNT];
    int r = st_call_doc(c->call, &doc, err);

    for (int i = 0; i < ST_AL_COUNT; i++) {
        rows[i] = (st_field){.key = st_allowed_keys[i],
                             .kind = ST_F_I64,
                             .offset = (size_t)i * sizeof *v,
                             .hi = LIMIT_MAX,
                             .none = true};
        v[i] = untouched;
    }
    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(doc, st_doc_root(doc), rows, v, err);
    for (int i = 0; r == 0 && i < ST_AL_COUNT; i++) {
        c->put.which[i] = v[i] != untouched;
        c->put.limits.v[i] = v[i] == ST_UNSET ? ST_AL_NONE : v[i];
    }
    return r;
}

void st_api_service_set(st_call *call, void *ctx)
{
    service_change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->api = ctx;
    c->call = call;
    c->put.who = *st_api_who(call);
    c->put.account = st_call_param(call, "name");
    if (read_change(c, &err) < 0) {
        st_call_fail(call, &err);
        free(c);
        return;
    }
    st_cmd_allowance_put(&c->put);
    c->put.cmd.done = change_done;
    st_call_defer(call);
    st_api_post(ctx, call, &c->put.cmd);
}
