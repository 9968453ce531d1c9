/*
 * Rules and sizes: kept as small documents in the store, in force from the commit on.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"

/* A size is kept as ACCOUNT/NAME: neither has a slash. */
static const char *size_name(const char *kept, char account[ST_NAME_MAX + 1])
{
    const char *slash = strchr(kept, '/');

    if (!slash || (size_t)(slash - kept) > ST_NAME_MAX)
        return NULL;
    memcpy(account, kept, (size_t)(slash - kept));
    account[slash - kept] = '\0';
    return slash + 1;
}

static int load_rule(void *ctx, const st_document_row *row, st_err *err)
{
    st_api *api = ctx;

    return st_rules_put(api->rules, row->name, row->doc, row->at_ms, err);
}

static int load_size(void *ctx, const st_document_row *row, st_err *err)
{
    st_api *api = ctx;
    char account[ST_NAME_MAX + 1];
    const char *name = size_name(row->name, account);
    json_t *doc = json_loads(row->doc, 0, NULL);
    int r = name && doc
                ? st_sizes_set(st_rules_sizes(api->rules), account, name, doc, row->at_ms, err)
                : 0;

    json_decref(doc);
    return r;
}

int st_api_rules_load(st_api *api, st_err *err)
{
    st_store *reader = st_api_reader(api, err);
    int r;

    if (!reader)
        return -err->code;
    r = st_store_documents(reader, "rule", load_rule, api, err);
    if (r >= 0)
        r = st_store_documents(reader, "size", load_size, api, err);
    st_api_reader_back(api, reader);
    return r < 0 ? r : 0;
}

/* ---- changing ---------------------------------------------------------------------------------- */

/* What was checked before the commit is not refused after it. */
static void publish_rule(st_control *ctl, st_cmd *cmd)
{
    st_document_change *c = (st_document_change *)cmd;
    st_err err;

    (void)ctl;
    if (c->document.doc)
        st_rules_put(c->api->rules, c->name, c->document.doc, c->document.version, &err);
    else
        st_rules_remove(c->api->rules, c->name, &err);
}

static void publish_size(st_control *ctl, st_cmd *cmd)
{
    st_document_change *c = (st_document_change *)cmd;
    st_sizes *sizes = st_rules_sizes(c->api->rules);
    st_err err;

    (void)ctl;
    if (c->document.doc)
        st_sizes_set(sizes, c->account, c->name, c->doc, c->document.version, &err);
    else
        st_sizes_remove(sizes, c->account, c->name, &err);
}

/* ---- rules --------------------------------------------------------------------------------------- */

void st_api_rules_list(st_call *call, void *ctx)
{
    st_api *api = ctx;

    st_call_reply_json(call, 200, json_pack("{s:o}", "rules", st_rules_list(api->rules)));
}

static char *lua_of(const st_call *call, st_err *err)
{
    size_t len;
    const char *body = st_call_body(call, &len);

    if (strlen(body) != len) {
        st_fail(err, ST_EINVAL, "the script has a NUL byte in it");
        return NULL;
    }
    return st_xstrndup(body, len);
}

void st_api_rule_put(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_document_change *c = st_document_change_new(call, api, "rule");
    st_err err = {0};

    c->text = lua_of(call, &err);
    c->kept = st_xstrdup(c->name);
    c->document.cmd.publish = publish_rule;
    st_document_change_post(c, c->text ? st_rules_check(api->rules, c->name, c->text, &err) : -1,
                            &err);
}

void st_api_rule_remove(st_call *call, void *ctx)
{
    st_document_change *c = st_document_change_new(call, ctx, "rule");

    c->kept = st_xstrdup(c->name);
    c->document.cmd.publish = publish_rule;
    st_document_change_post(c, 0, NULL);
}

void st_api_rule_check(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_err err = {0};
    ST_CLEANUP(st_freep) char *text = lua_of(call, &err);

    if (!text || st_rules_check(api->rules, "check", text, &err) < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_empty(call, 204);
}

/* ---- sizes --------------------------------------------------------------------------------------- */

/* Sizes from above are there to be used; whose they are is not the caller's to know. */
static json_t *hide_owners(st_api *api, const st_call *call, json_t *list)
{
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        const char *account = json_string_value(json_object_get(row, "account"));

        if (account && account[0] && !st_api_sees(api, call, account))
            json_object_set_new(row, "account", json_string(""));
    }
    return list;
}

void st_api_sizes_list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *above[ST_ABOVE_MAX];
    json_t *list;

    st_directory_above(api->dir, st_api_who(call)->account, above);
    list = hide_owners(api, call, st_sizes_list(st_rules_sizes(api->rules), above));
    st_call_reply_json(call, 200, json_pack("{s:o}", "sizes", list));
}

static void size_change(st_call *call, st_api *api, bool remove)
{
    st_document_change *c = st_document_change_new(call, api, "size");
    ST_CLEANUP(st_strbuf_done) st_strbuf kept = {0};
    st_err err = {0};
    int r = 0;

    memcpy(c->account, c->document.who.account, sizeof c->account);
    st_strbuf_addf(&kept, "%s/%s", c->account, c->name);
    c->kept = st_strbuf_take(&kept);
    c->document.cmd.publish = publish_size;
    c->document.counted = true;
    if (!remove) {
        ST_CLEANUP(st_doc_freep) st_doc *given = NULL;
        st_rules *trial = st_rules_new(NULL); /* is it a size at all? */

        r = st_call_json(call, &c->doc, &err);
        if (r == 0)
            r = st_call_doc(call, &given, &err);
        if (r == 0)
            r = st_spec_given(given, st_doc_root(given), &err);
        if (r == 0)
            r = st_sizes_set(st_rules_sizes(trial), c->account, c->name, c->doc, 0, &err);
        if (r == 0)
            c->text = json_dumps(c->doc, JSON_COMPACT);
        st_rules_free(trial);
    }
    st_document_change_post(c, r, &err);
}

void st_api_size_put(st_call *call, void *ctx)
{
    size_change(call, ctx, false);
}

void st_api_size_remove(st_call *call, void *ctx)
{
    size_change(call, ctx, true);
}
