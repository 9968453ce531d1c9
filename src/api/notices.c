/*
 * Notices of accounts: added, listed, tried, removed (control/notices.h). Where one goes may be a secret of its own, as an address
 * with a token in it is; so the whole address is nobody's to read back, only its host. The key that webhooks are signed with is in the
 * answer that made it and in no other.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"
#include "control/notices.h"
#include "courier/courier.h"
#include "spec/fields.h"

/* ---- reading -------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text ? text : "";
}

static void write_log(const json_t *log, st_strbuf *out)
{
    const json_t *row;
    size_t i, n = 0;

    st_out_raw(out, "deliveries", "[");
    json_array_foreach(log, i, row)
    {
        st_strbuf_add(out, n++ > 0 ? ",{" : "{");
        st_out_text(out, "id", text_of(row, "id"));
        st_out_text(out, "state", text_of(row, "state"));
        st_out_int(out, "tries", json_integer_value(json_object_get(row, "tries")));
        st_out_int(out, "status", json_integer_value(json_object_get(row, "status")));
        st_out_text(out, "text", text_of(row, "text"));
        st_out_time(out, "changed", json_integer_value(json_object_get(row, "changed")));
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

static void write_notice(st_api *api, const st_call *call, const char *key, const json_t *doc,
                         st_strbuf *out)
{
    const char *slash = strchr(key, '/');
    ST_CLEANUP(st_freep) char *account = st_xstrndup(key, (size_t)(slash - key));
    const json_t *word;
    size_t i;

    st_out_text(out, "name", slash + 1);
    st_out_text(out, "account", account);
    st_out_text(out, "by",
                st_api_sees(api, call, text_of(doc, "by_account")) ? text_of(doc, "by")
                                                                   : "an account above yours");
    st_out_raw(out, "on", "[");
    json_array_foreach(json_object_get(doc, "on"), i, word)
    {
        st_strbuf_add(out, i > 0 ? "," : "");
        st_quote_json(out, json_string_value(word));
    }
    st_strbuf_addc(out, ']');
    st_out_text(out, "jobs", json_is_true(json_object_get(doc, "mine")) ? "mine" : "all");
    st_out_text(out, "by_way_of", json_is_true(json_object_get(doc, "mail")) ? "mail" : "webhook");
    st_out_text(out, "to", text_of(doc, "to"));
    st_out_time(out, "created", json_integer_value(json_object_get(doc, "made")));
}

typedef struct listing {
    st_api *api;
    const st_call *call;
    const char *account; /* NULL: the caller's */
    st_strbuf out;
    int n;
} listing;

static int add_row(void *ctx, const st_document_row *row, st_err *err)
{
    listing *l = ctx;
    ST_CLEANUP(st_freep) char *account = st_xstrndup(row->name, strcspn(row->name, "/"));
    json_t *doc;

    (void)err;
    if (!strchr(row->name, '/') || !st_api_sees(l->api, l->call, account) ||
        (l->account && !st_directory_within(l->api->dir, account, l->account)))
        return 0;
    doc = json_loads(row->doc, 0, NULL);
    st_strbuf_add(&l->out, l->n++ > 0 ? ",{" : "{");
    write_notice(l->api, l->call, row->name, doc, &l->out);
    st_strbuf_addc(&l->out, '}');
    json_decref(doc);
    return 0;
}

static void list_notices(st_call *call, void *ctx)
{
    st_api *api = ctx;
    listing l = {.api = api, .call = call, .account = st_call_query(call, "account")};
    st_store *reader;
    st_err err;
    int r;

    if (l.account && (!l.account[0] || !st_api_sees(api, call, l.account))) {
        st_api_no_such(call, "account", l.account);
        return;
    }
    st_api_stamp_now(api, call);
    reader = st_api_reader(api, &err);
    if (!reader) {
        st_call_fail(call, &err);
        return;
    }
    st_strbuf_add(&l.out, "{\"notices\":[");
    r = st_store_documents(reader, "notice", add_row, &l, &err);
    st_strbuf_add(&l.out, "]}");
    st_api_reader_back(api, reader);
    if (r < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &l.out);
    st_strbuf_done(&l.out);
}

void st_api_notices_list(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, list_notices);
}

/* NULL: there is none, or *ret_r says why not. */
static json_t *read_document(st_store *reader, const char *kind, const char *key, int *ret_r,
                             st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row = {0};
    int r = st_store_document_get(reader, kind, key, arena, &row, err);

    *ret_r = r == -ST_ENOENT ? 0 : r;
    return r == 0 ? json_loads(row.doc, 0, NULL) : NULL;
}

/* One sentence for accounts that are not there and those that are not the caller's. */
static int see_account(st_api *api, const st_call *call, const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (!name[0] || strlen(name) > ST_NAME_MAX || !st_api_sees(api, call, name))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, name));
    return 0;
}

static int no_notice(const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no notice %s", st_quote(q, name));
}

static int read_notice(st_api *api, const st_call *call, st_store *reader, st_strbuf *out,
                       st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    const char *account = st_call_param(call, "name"), *name = st_call_param(call, "key");
    json_t *doc, *log;
    int r = see_account(api, call, account, err);

    if (r < 0)
        return r;
    if (!st_plain_name(name, ST_NOTICE_NAME_MAX))
        return no_notice(name, err);
    st_strbuf_addf(&key, "%s/%s", account, name);
    doc = read_document(reader, "notice", st_strbuf_str(&key), &r, err);
    if (!doc)
        return r < 0 ? r : no_notice(name, err);
    log = read_document(reader, "notice-log", st_strbuf_str(&key), &r, err);
    st_strbuf_addc(out, '{');
    write_notice(api, call, st_strbuf_str(&key), doc, out);
    write_log(log, out);
    st_strbuf_addc(out, '}');
    json_decref(doc);
    json_decref(log);
    return r;
}

static void get_notice(st_call *call, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_api *api = ctx;
    st_store *reader;
    st_err err;
    int r;

    st_api_stamp_now(api, call);
    reader = st_api_reader(api, &err);
    if (!reader) {
        st_call_fail(call, &err);
        return;
    }
    r = read_notice(api, call, reader, &out, &err);
    st_api_reader_back(api, reader);
    if (r < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_notice_get(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, get_notice);
}

/* ---- changing ------------------------------------------------------------------------------------- */

typedef struct change {
    st_cmd_notice notice; /* first */
    st_call *call;
    st_doc *doc; /* which `to` points into */
    char account[ST_NAME_MAX + 1], name[ST_NOTICE_NAME_MAX + 1];
    char host[ST_COURIER_HOST_MAX], key[ST_COURIER_KEY_TEXT];
    bool add, test;
} change;

static void change_free(change *c)
{
    st_cmd_notice_done(&c->notice);
    explicit_bzero(c->key, sizeof c->key);
    st_doc_free(c->doc);
    free(c);
}

static void change_done(st_cmd *cmd, const st_err *err)
{
    change *c = (change *)cmd;
    ST_CLEANUP(st_wipe) st_strbuf out = {0};

    st_strbuf_addc(&out, '{');
    st_out_text(&out, "name", c->name);
    st_out_text(&out, "account", c->account);
    if (c->add && !c->notice.mail)
        st_out_text(&out, "secret", c->key);
    if (c->test)
        st_out_text(&out, "delivery", c->notice.id);
    st_strbuf_addc(&out, '}');
    if (err)
        st_call_fail(c->call, err);
    else if (!c->add && !c->test)
        st_call_reply_empty(c->call, 204);
    else
        st_call_reply_buf(c->call, 200, NULL, &out);
    change_free(c);
}

static int read_on(change *c, const st_doc_node *list, st_err *err)
{
    int r = list ? st_doc_expect(c->doc, list, ST_DOC_SEQ, err) : 0;

    for (const st_doc_node *n = list ? list->child : NULL; r == 0 && n; n = n->next) {
        const char *word;
        int on = 0;

        r = st_doc_str(c->doc, n, &word, err);
        while (r == 0 && on < ST_ON_COUNT && strcmp(word, st_notice_words[on]) != 0)
            on++;
        if (r == 0 && on == ST_ON_COUNT)
            return st_doc_fail(c->doc, n, err, ST_EINVAL,
                               "on: choose from start, end, fail, preempt, budget, incident and "
                               "booking");
        c->notice.on |= UINT32_C(1) << on;
    }
    if (r == 0 && !list)
        c->notice.on =
            UINT32_C(1) << ST_ON_END | UINT32_C(1) << ST_ON_FAIL | UINT32_C(1) << ST_ON_PREEMPT;
    if (r == 0 && c->notice.on == 0)
        r = st_fail(err, ST_EINVAL, "on: name what the notice is for, for example [end, fail]");
    return r;
}

static int read_change(change *c, const st_courier *courier, st_err *err)
{
    static const char *const words[] = {"mine", "all", NULL};
    struct said {
        const char *webhook, *mail;
        const st_doc_node *on;
        int jobs;
    } said = {.jobs = 0};
    static const st_field rows[] = {
        {.key = "webhook", .kind = ST_F_TEXT, .offset = offsetof(struct said, webhook)},
        {.key = "mail", .kind = ST_F_TEXT, .offset = offsetof(struct said, mail)},
        {.key = "on", .kind = ST_F_NODE, .offset = offsetof(struct said, on)},
        {.key = "jobs", .kind = ST_F_WORD, .offset = offsetof(struct said, jobs), .words = words},
        {0}};
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_doc_expect(c->doc, st_doc_root(c->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(c->doc, st_doc_root(c->doc), rows, &said, err);
    if (r == 0)
        r = read_on(c, said.on, err);
    if (r == 0 && !said.webhook == !said.mail)
        r = st_fail(err, ST_EINVAL, "say where the notice goes: either webhook or mail");
    if (r < 0)
        return r;
    c->notice.mine = said.jobs == 0;
    c->notice.mail = said.mail != NULL;
    c->notice.to = said.mail ? said.mail : said.webhook;
    if (said.mail) {
        c->notice.host = said.mail;
        return st_courier_mail(courier, said.mail, err);
    }
    c->notice.host = c->host;
    c->notice.key = c->key;
    st_courier_key(c->key);
    return st_courier_url(courier, said.webhook, c->host, err);
}

static int read_names(change *c, st_api *api, st_err *err)
{
    const char *account = st_call_param(c->call, "name"), *name = st_call_param(c->call, "key");
    char q[ST_QUOTE_MAX];

    if (see_account(api, c->call, account, err) < 0)
        return -ST_ENOENT;
    if (!st_plain_name(name, ST_NOTICE_NAME_MAX))
        return st_fail(err, ST_EINVAL,
                       "%s cannot be the name of a notice: 1 to %d letters, digits, ., - and _",
                       st_quote(q, name), ST_NOTICE_NAME_MAX);
    memcpy(c->account, account, strlen(account) + 1);
    memcpy(c->name, name, strlen(name) + 1);
    return 0;
}

static void post_change(st_call *call, st_api *api, bool add, bool test)
{
    change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};
    int r;

    c->call = call;
    c->add = add;
    c->test = test;
    c->notice.who = *st_api_who(call);
    c->notice.account = c->account;
    c->notice.name = c->name;
    r = read_names(c, api, &err);
    if (r == 0 && add)
        r = read_change(c, api->options.courier, &err);
    if (r < 0) {
        st_call_fail(call, &err);
        change_free(c);
        return;
    }
    if (add)
        st_cmd_notice_add(&c->notice);
    else if (test)
        st_cmd_notice_test(&c->notice);
    else
        st_cmd_notice_remove(&c->notice);
    c->notice.cmd.done = change_done;
    st_call_defer(call);
    st_api_post(api, call, &c->notice.cmd);
}

void st_api_notice_add(st_call *call, void *ctx)
{
    post_change(call, ctx, true, false);
}

void st_api_notice_remove(st_call *call, void *ctx)
{
    post_change(call, ctx, false, false);
}

void st_api_notice_test(st_call *call, void *ctx)
{
    post_change(call, ctx, false, true);
}
