/*
 * What tasks write, brought to stintd: one piece at a time and node, tasks in turn.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/mem.h"

#define LOG_MS      15000 /* for an answer */
#define LOG_LOOK_MS 300   /* between two looks at what running tasks wrote */

static bool quiet(const st_task *t)
{
    return t->log_done || t->phase < ST_PHASE_RUNNING;
}

/* Sends what is new of one task; false: there is nothing. */
static bool send_one(st_host *h, st_task *t, char *buf, size_t cap)
{
    st_run_piece piece;
    st_err err = {0};
    char path[128];

    if (h->exec->ops->log(h->exec, t, t->log_sent - t->log_before, buf, cap, &piece, &err) < 0) {
        if (!st_task_live(t))
            t->log_done = h->changed = true; /* no output was ever kept */
        return false;
    }
    if (piece.n == 0) {
        if (!st_task_live(t) && !t->log_done) {
            t->log_done = true;
            h->dirty = h->changed = true;
        }
        return false;
    }
    snprintf(path, sizeof path, "/v1/agent/logs/%s/%d/%d?offset=%" PRId64, t->key.job, t->key.stay,
             t->key.task, t->log_before + piece.offset);
    h->log_key = t->key;
    st_line_ask(h->log, path, h->token, "application/octet-stream", buf, piece.n, LOG_MS);
    return true;
}

void st_host_logs(st_host *h)
{
    size_t n = h->journal.tasks.n;
    ST_CLEANUP(st_freep) char *buf = NULL;

    for (size_t i = 0; i < n; i++) {
        st_task *t = &h->journal.tasks.v[(h->log_next + i) % n];

        if (quiet(t))
            continue;
        if (!buf)
            buf = st_xmalloc((size_t)h->chunk);
        if (!send_one(h, t, buf, (size_t)h->chunk))
            continue;
        h->log_next = (h->log_next + i + 1) % n;
        return;
    }
    h->log_at.at_ms = st_boot_ms() + LOG_LOOK_MS;
}

void st_host_logs_heard(void *ctx, const st_answer *a)
{
    st_host *h = ctx;
    st_task *t = st_journal_find(&h->journal, &h->log_key);
    json_t *root = a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    int64_t next = json_integer_value(json_object_get(root, "next"));

    st_host_wake(h);
    if (root) {
        st_retry_ok(&h->log_at);
        if (t && next > t->log_sent) {
            t->log_sent = next;
            h->dirty = h->dirty || !st_task_live(t);
        } else if (t) {
            st_retry_later(h, &h->log_at); /* it takes nothing now */
        }
    } else if (a->status == 404) {
        st_retry_ok(&h->log_at);
        if (t)
            t->log_done = h->changed = true;
    } else {
        st_retry_later(h, &h->log_at);
    }
    json_decref(root);
}
