/*
 * Saved views of the console: everybody's own, and nobody else's (control/views.c). A view is a name in the person's own
 * words, a page of the console, and what stands behind the question mark of its address.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "spec/fields.h"

#define NAME_MAX_BYTES  100
#define QUERY_MAX_BYTES 2000

/* ---- reading -------------------------------------------------------------------------------------- */

static void write_views(st_strbuf *out, const char *text)
{
    json_t *doc = json_loads(text, 0, NULL), *row;
    size_t i;

    json_array_foreach(json_object_get(doc, "views"), i, row)
    {
        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "name", json_string_value(json_object_get(row, "name")));
        st_out_text(out, "page", json_string_value(json_object_get(row, "page")));
        st_out_text(out, "query", json_string_value(json_object_get(row, "query")));
        st_out_time(out, "saved", json_integer_value(json_object_get(row, "saved")));
        st_strbuf_addc(out, '}');
    }
    json_decref(doc);
}

static void list_views(st_call *call, void *ctx)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_api *api = ctx;
    st_document_row row = {0};
    char key[ST_VIEW_KEY];
    st_store *reader;
    st_err err;
    int r;

    st_api_stamp_now(api, call);
    reader = st_api_reader(api, &err);
    if (!reader) {
        st_call_fail(call, &err);
        return;
    }
    st_view_key(st_api_who(call), key);
    r = st_store_document_get(reader, "view", key, arena, &row, &err);
    st_strbuf_add(&out, "{\"views\":[");
    if (r == 0)
        write_views(&out, row.doc);
    st_strbuf_add(&out, "]}");
    st_api_reader_back(api, reader);
    if (r < 0 && r != -ST_ENOENT)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_views_list(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, list_views);
}

/* ---- changing ------------------------------------------------------------------------------------- */

typedef struct change {
    st_cmd_view view; /* first */
    st_call *call;
    st_doc *doc; /* which page and query point into */
} change;

static void change_free(change *c)
{
    st_doc_free(c->doc);
    free(c);
}

static void change_done(st_cmd *cmd, const st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    change *c = (change *)cmd;

    if (err) {
        st_call_fail(c->call, err);
    } else if (!c->view.page) {
        st_call_reply_empty(c->call, 204);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", c->view.name);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    change_free(c);
}

static int check_name(const char *name, st_err *err)
{
    size_t n = strlen(name);

    if (n == 0 || n > NAME_MAX_BYTES || name[0] == ' ' || name[n - 1] == ' ')
        return st_fail(err, ST_EINVAL,
                       "the name of a view has 1 to %d bytes, and no blank at its beginning or end",
                       NAME_MAX_BYTES);
    if (!st_text_honest(name))
        return st_fail(err, ST_EINVAL,
                       "the name of a view has a character that is not seen or turns the direction "
                       "of writing");
    return 0;
}

/* Of an address, nothing else: letters, digits and what a browser leaves as it is. */
static int check_query(const char *query, st_err *err)
{
    static const char others[] = "-._~%!$&'()*+,;=:@/?";

    if (strlen(query) > QUERY_MAX_BYTES)
        return st_fail(err, ST_EINVAL, "query has %zu bytes; a view has at most %d", strlen(query),
                       QUERY_MAX_BYTES);
    for (const char *p = query; *p; p++)
        if (!(*p >= '0' && *p <= '9') && !((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') &&
            !strchr(others, *p))
            return st_fail(err, ST_EINVAL,
                           "query is what stands behind the ? of an address, encoded as there: "
                           "state=pending&name=train");
    return 0;
}

static int read_view(change *c, st_err *err)
{
    static const char *const pages[] = {"jobs", NULL};
    struct said {
        int page;
        const char *query;
    } said = {0, ""};
    static const st_field rows[] = {{.key = "page",
                                     .kind = ST_F_WORD,
                                     .offset = offsetof(struct said, page),
                                     .words = pages,
                                     .required = true},
                                    {.key = "query",
                                     .kind = ST_F_TEXT,
                                     .offset = offsetof(struct said, query),
                                     .required = true},
                                    {0}};
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_doc_expect(c->doc, st_doc_root(c->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(c->doc, st_doc_root(c->doc), rows, &said, err);
    if (r == 0)
        r = check_query(said.query, err);
    c->view.page = pages[said.page];
    c->view.query = said.query;
    return r;
}

static void post(st_call *call, st_api *api, bool keep)
{
    change *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};
    int r;

    c->call = call;
    c->view.who = *st_api_who(call);
    c->view.name = st_call_param(call, "name");
    r = check_name(c->view.name, &err);
    if (r == 0 && keep)
        r = read_view(c, &err);
    if (r < 0) {
        st_call_fail(call, &err);
        change_free(c);
        return;
    }
    st_cmd_view_init(&c->view);
    c->view.cmd.done = change_done;
    st_call_defer(call);
    st_api_post(api, call, &c->view.cmd);
}

void st_api_view_put(st_call *call, void *ctx)
{
    post(call, ctx, true);
}

void st_api_view_remove(st_call *call, void *ctx)
{
    post(call, ctx, false);
}
