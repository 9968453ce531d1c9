/*
 * Forgetting tasks that are over: their folders and logs go, by one worker for many at a time, and then
 * their records.
 */
#include <stdio.h>

#include "agent/helper.h"
#include "agent/host.h"
#include "agent/pause.h"

#define AT_ONCE  64
#define LIMIT_MS 60000
#define TIDY_MS  600000
#define AGAIN_MS 5000 /* after it could not be removed */

static void forget(st_host *h, st_task *t)
{
    static const char *const helpers[] = {"pause", "scan"};
    char name[128];

    for (size_t i = 0; i < ST_ARRAY_LEN(helpers); i++) {
        st_cuda_name(t, helpers[i], name);
        st_helper_forget(h->dir, name);
    }
    st_notice_forget(h->notices, t->now.folder);
    st_notice_forget(h->notices, t->now.logs);
    st_journal_remove(&h->journal, t);
    h->dirty = h->changed = true;
}

bool st_host_remove(st_host *h, const st_task *t)
{
    if (!h->exec->ops->real) {
        forget(h, st_journal_find(&h->journal, &t->key));
        return true;
    }
    if (h->removing || h->leaving.n >= AT_ONCE || t->now.working || h->now_ms < t->now.remove_ms)
        return false;
    st_vec_push(&h->leaving, *t);
    return true;
}

/* In a worker. One that cannot be removed keeps nobody else. */
static int work(void *ctx, st_err *err)
{
    const st_host *h = ctx;
    int first = 0;

    for (size_t i = 0; i < h->leaving.n; i++) {
        st_err why = {0};
        int r = h->exec->ops->remove(h->exec, &h->leaving.v[i], &why);

        if (r < 0 && first == 0)
            first = st_fail(err, why.code, "%s", why.msg);
    }
    return first;
}

static void worked(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;

    (void)key;
    if (r < 0)
        st_say(h, "remove-failed", "reason=\"%s\"", err->msg);
    for (size_t i = 0; i < h->leaving.n; i++) {
        st_task *t = st_journal_find(&h->journal, &h->leaving.v[i].key);

        if (!t)
            continue;
        t->now.working = false;
        t->now.remove_ms = h->now_ms + AGAIN_MS;
        if (!h->exec->ops->there(h->exec, t))
            forget(h, t);
    }
    st_vec_clear(&h->leaving);
    h->removing = false;
    h->next_ms = 0;
}

/* ---- of earlier versions ------------------------------------------------------------------------ */

static int tidy_work(void *ctx, st_err *err)
{
    const st_host *h = ctx;

    return h->exec->ops->tidy(h->exec, err);
}

static void tidied(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    (void)key;
    if (r < 0) /* at the next start, then */
        st_say(ctx, "not-tidied", "reason=\"%s\"", err->msg);
}

void st_host_tidy(st_host *h)
{
    st_agent_work w = {.what = "tidying up",
                       .limit_ms = TIDY_MS,
                       .aside = true,
                       .fn = tidy_work,
                       .ctx = h,
                       .done = tidied,
                       .done_ctx = h};
    st_err err = {0};
    int id;

    if (h->exec->ops->tidy && st_worker_start(h->process->workers, &w, &id, &err) < 0)
        tidied(h, NULL, -1, &err);
}

void st_host_remove_begin(st_host *h)
{
    st_agent_work w = {.what = "a removal",
                       .limit_ms = LIMIT_MS,
                       .fn = work,
                       .ctx = h,
                       .done = worked,
                       .done_ctx = h};
    st_err err = {0};
    int id;

    if (h->removing || h->leaving.n == 0)
        return;
    if (st_worker_start(h->process->workers, &w, &id, &err) < 0) {
        st_say(h, "remove-failed", "reason=\"%s\"", err.msg);
        st_vec_clear(&h->leaving);
        return;
    }
    h->removing = true;
    for (size_t i = 0; i < h->leaving.n; i++)
        st_journal_find(&h->journal, &h->leaving.v[i].key)->now.working = true;
}
