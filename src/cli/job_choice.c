/*
 * Which jobs (cli/job_choice.h).
 */
#include "cli/job_choice.h"

bool st_job_chosen(const st_job_choice *c)
{
    return c->user || c->account || c->name || c->array || c->since || c->until ||
           c->states.n > 0 || c->labels.n > 0;
}

void st_job_choice_path(const st_job_choice *c, bool all, const char *fields, int64_t limit,
                        st_strbuf *out)
{
    static const char *const live[] = {"pending",       "running", "notified",
                                       "checkpointing", "paused",  "stopping"};

    st_strbuf_addf(out, "/v1/jobs?limit=%lld", (long long)ST_MIN(limit, ST_JOB_PAGE_MAX));
    st_url_query(out, "user", c->user);
    st_url_query(out, "account", c->account);
    st_url_query(out, "name", c->name);
    st_url_query(out, "array", c->array);
    st_url_query(out, "since", c->since);
    st_url_query(out, "until", c->until);
    st_url_query(out, "fields", fields);
    for (int i = 0; i < c->labels.n; i++)
        st_url_query(out, "label", c->labels.v[i]);
    for (int i = 0; i < c->states.n; i++)
        st_url_query(out, "state", c->states.v[i]);
    for (size_t i = 0; !all && c->states.n == 0 && i < ST_ARRAY_LEN(live); i++)
        st_url_query(out, "state", live[i]);
}
