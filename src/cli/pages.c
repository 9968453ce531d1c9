/*
 * Lists in pages (cli/pages.h). A page looks at so much and no more, and may bring fewer rows than were asked for, or, the last one, more.
 */
#include "cli/pages.h"

#include "base/mem.h"
#include "cli/spinner.h"
#include "cli/view.h"

/* Appends the page behind `next` of doc, and puts the new `next` there. */
static int add_page(st_client *client, const char *path, const char *key, json_t *doc, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf more = {0};
    json_t *page = NULL;
    int r;

    st_strbuf_add(&more, path);
    st_url_query(&more, "cursor", st_view_text(doc, "next"));
    r = st_client_get(client, st_strbuf_str(&more), &page, err);
    if (r < 0)
        return r;
    json_array_extend(json_object_get(doc, key), json_object_get(page, key));
    if (json_object_get(page, "next"))
        json_object_set(doc, "next", json_object_get(page, "next"));
    else
        json_object_del(doc, "next");
    json_decref(page);
    return 0;
}

int st_pages_get(FILE *errors, st_client *client, const char *path, const char *key, int64_t limit,
                 json_t **ret, st_err *err)
{
    ST_CLEANUP(st_spinner_done) st_spinner spinner = {0};
    json_t *doc = NULL, *rows;
    int r = st_client_get(client, path, &doc, err);

    if (r < 0)
        return r;
    rows = json_object_get(doc, key);
    if (errors)
        st_spinner_begin(&spinner, errors, "reading the list");
    while (r == 0 && json_object_get(doc, "next") && (int64_t)json_array_size(rows) < limit) {
        if (errors)
            st_spinner_turn(&spinner, NULL);
        r = add_page(client, path, key, doc, err);
    }
    if (r < 0) {
        json_decref(doc);
        return r;
    }
    if ((int64_t)json_array_size(rows) > limit)
        json_object_set_new(doc, "next", json_string("more"));
    while ((int64_t)json_array_size(rows) > limit)
        json_array_remove(rows, json_array_size(rows) - 1);
    *ret = doc;
    return 0;
}
