/*
 * Networks of tenants that reach other nodes (run/run.h, st_run_segments): tasks bring and remove what they need. This
 * looks at all of it at the agent's start and now and then, by a worker: what an earlier agent left half done is finished,
 * and rules that somebody else has taken away are there again.
 */
#include "agent/files.h"
#include "agent/host.h"

#define LOOK_MS  10000
#define LIMIT_MS 60000

static int work(void *ctx, st_err *err)
{
    const st_host *h = ctx;

    return st_run_segments(h->exec->run, err);
}

static void worked(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;

    (void)key;
    h->segments_ms = st_boot_ms() + LOOK_MS;
    if (r < 0)
        st_say(h, "segments-failed", "reason=\"%s\"", err->msg);
}

void st_host_segments(st_host *h, int64_t now)
{
    st_agent_work w = {.what = "looking after networks",
                       .limit_ms = LIMIT_MS,
                       .aside = true,
                       .fn = work,
                       .ctx = h,
                       .done = worked,
                       .done_ctx = h};
    st_err err = {0};
    int id;

    if (!h->exec->run || now < h->segments_ms)
        return;
    h->segments_ms = now + (st_run_segmented(h->exec->run) ? LIMIT_MS + LOOK_MS : LOOK_MS);
    if (st_run_segmented(h->exec->run) && st_worker_start(h->process->workers, &w, &id, &err) < 0)
        worked(h, NULL, -1, &err);
}
