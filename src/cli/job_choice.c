/*
 * Which jobs (cli/job_choice.h).
 */
#include "cli/job_choice.h"

#include "base/mem.h"
#include "cli/spinner.h"

bool st_job_chosen(const st_job_choice *c)
{
    return c->user || c->account || c->name || c->array || c->since || c->until ||
           c->states.n > 0 || c->labels.n > 0;
}

static void add_query(st_strbuf *path, const char *key, const char *value)
{
    if (!value)
        return;
    st_strbuf_addf(path, "&%s=", key);
    st_url_add(path, value);
}

void st_job_choice_path(const st_job_choice *c, bool all, const char *fields, int64_t limit,
                        st_strbuf *out)
{
    static const char *const live[] = {"pending",       "running", "notified",
                                       "checkpointing", "paused",  "stopping"};

    st_strbuf_addf(out, "/v1/jobs?limit=%lld", (long long)ST_MIN(limit, ST_JOB_PAGE_MAX));
    add_query(out, "user", c->user);
    add_query(out, "account", c->account);
    add_query(out, "name", c->name);
    add_query(out, "array", c->array);
    add_query(out, "since", c->since);
    add_query(out, "until", c->until);
    add_query(out, "fields", fields);
    for (int i = 0; i < c->labels.n; i++)
        add_query(out, "label", c->labels.v[i]);
    for (int i = 0; i < c->states.n; i++)
        add_query(out, "state", c->states.v[i]);
    for (size_t i = 0; !all && c->states.n == 0 && i < ST_ARRAY_LEN(live); i++)
        add_query(out, "state", live[i]);
}

/* Appends the page behind `next` of doc, and puts the new `next` there. */
static int add_page(st_client *client, const char *path, json_t *doc, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf more = {0};
    json_t *page = NULL;
    int r;

    st_strbuf_add(&more, path);
    add_query(&more, "cursor", st_view_text(doc, "next"));
    r = st_client_get(client, st_strbuf_str(&more), &page, err);
    if (r < 0)
        return r;
    json_array_extend(json_object_get(doc, "jobs"), json_object_get(page, "jobs"));
    if (json_object_get(page, "next"))
        json_object_set(doc, "next", json_object_get(page, "next"));
    else
        json_object_del(doc, "next");
    json_decref(page);
    return 0;
}

/* Pages look at so many jobs and no more, and may bring fewer rows than were asked for, or, the last one, more. */
int st_job_list(st_cli *cli, st_client *client, const char *path, int64_t limit, json_t **ret,
                st_err *err)
{
    ST_CLEANUP(st_spinner_done) st_spinner spinner = {0};
    json_t *doc = NULL, *rows;
    int r = st_client_get(client, path, &doc, err);

    if (r < 0)
        return r;
    rows = json_object_get(doc, "jobs");
    st_spinner_begin(&spinner, cli->errors, "reading the list of jobs");
    while (r == 0 && json_object_get(doc, "next") && (int64_t)json_array_size(rows) < limit) {
        st_spinner_turn(&spinner, NULL);
        r = add_page(client, path, doc, err);
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
