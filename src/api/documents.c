/*
 * Small documents of the site's: rules, sizes, images. What they have in common is the way into the store.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"
#include "spec/fields.h"

static void change_free(st_document_change *c)
{
    json_decref(c->doc);
    free(c->kept);
    free(c->text);
    free(c);
}

static void change_done(st_cmd *cmd, const st_err *err)
{
    st_document_change *c = (st_document_change *)cmd;
    st_strbuf out = {0};

    if (err && err->code == ST_ENOENT && !c->before) {
        st_api_no_such(c->call, c->document.kind, c->name);
    } else if (err) {
        st_call_fail(c->call, err);
    } else if (!c->document.doc) {
        st_call_reply_empty(c->call, 204);
    } else {
        st_api_set_version(c->call, c->document.version);
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", c->name);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    change_free(c);
}

static int change_run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_document_change *c = (st_document_change *)cmd;
    int r = c->before ? c->before(tx, c, err) : 0;

    c->document.name = c->kept;
    if (r == 0)
        r = st_api_condition_of(tx, c->call, c->document.kind, c->kept, c->name, err);
    return r < 0 ? r : c->put(tx, cmd, err);
}

st_document_change *st_document_change_new(st_call *call, st_api *api, const char *kind)
{
    st_document_change *c = st_xcalloc(1, sizeof *c);

    c->api = api;
    c->call = call;
    c->document.who = *st_api_who(call);
    c->document.kind = kind;
    strncpy(c->name, strchr(st_call_route(call)->pattern, '{') ? st_call_param(call, "name") : kind,
            ST_NAME_MAX); /* there is one of it, where the path has no name */
    st_cmd_document_put(&c->document);
    c->put = c->document.cmd.run;
    c->document.cmd.run = change_run;
    c->document.cmd.done = change_done;
    return c;
}

void st_document_change_post(st_document_change *c, int r, const st_err *err)
{
    char q[ST_QUOTE_MAX];
    st_err bad;

    if (r == 0 && (!st_field_name_ok(c->name) || strchr(c->name, '/'))) {
        st_fail(&bad, ST_EINVAL, "%s cannot be a name", st_quote(q, c->name));
        err = &bad;
        r = -1;
    }
    if (r < 0) {
        st_call_fail(c->call, err);
        change_free(c);
        return;
    }
    c->document.name = c->kept;
    c->document.account = c->account;
    c->document.doc = c->text;
    st_call_defer(c->call);
    st_api_post(c->api, c->call, &c->document.cmd);
}

int st_document_accounts_ok(st_api *api, const json_t *said, st_err *err)
{
    const json_t *row;
    size_t i;

    json_array_foreach(said, i, row)
    {
        const char *name = json_string_value(row);

        if (!name || !st_directory_within(api->dir, name, ""))
            return st_fail(err, ST_ENOENT, "there is no account %s", name ? name : "");
    }
    return 0;
}
