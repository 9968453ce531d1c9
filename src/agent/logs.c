/*
 * What tasks write, handed to the voice: one piece at a time and node, tasks in turn.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/mem.h"

#define LOG_LOOK_MS 300  /* between two looks at what running tasks wrote */
#define LOG_FULL_MS 1000 /* after stintd took nothing */

/* Where a task's folder is watched, only what is new is looked for. */
static bool quiet(const st_task *t)
{
    return t->log_done || t->phase < ST_PHASE_RUNNING || (t->now.logs > 0 && !t->now.output);
}

static void hand_over(st_host *h, const st_task *t, const char *bytes, const st_run_piece *piece)
{
    st_mail *m = &h->mail;

    h->log_key = t->key;
    pthread_mutex_lock(&m->lock);
    snprintf(m->piece_path, sizeof m->piece_path, "/v1/agent/logs/%s/%d/%d?offset=%" PRId64,
             t->key.job, t->key.stay, t->key.task, t->log_before + piece->offset);
    st_strbuf_clear(&m->piece);
    st_strbuf_addn(&m->piece, bytes, piece->n);
    m->piece_state = ST_PIECE_READY;
    pthread_mutex_unlock(&m->lock);
    st_voice_wake(h);
}

/* Where to go on. One that is over and still not brought after minutes is cut: its last lines, before
 * which stintd says how many bytes are missing. */
static int64_t from_where(st_host *h, const st_task *t, size_t cap)
{
    int64_t from = t->log_sent - t->log_before;
    st_run_piece last;
    char none[1];

    if (st_task_live(t) || t->unlisted_ms == 0 || h->now_ms < t->unlisted_ms + ST_LOG_WAIT_MS / 2 ||
        h->exec->ops->log(h->exec, t, from, none, 0, &last, NULL) < 0 ||
        last.end - from <= (int64_t)cap)
        return from;
    st_say(h, "log-cut", "job=%s task=%d bytes=%" PRId64, t->key.job, t->key.task,
           last.end - (int64_t)cap - from);
    return last.end - (int64_t)cap;
}

/* Hands over what is new of one task; false: there is nothing. */
static bool send_one(st_host *h, st_task *t, char *buf, size_t cap)
{
    st_run_piece piece;
    st_err err = {0};

    if (h->exec->ops->log(h->exec, t, from_where(h, t, cap), buf, cap, &piece, &err) < 0) {
        if (st_task_live(t))
            return false;
        if (t->started_ms != 0) /* otherwise none was ever kept */
            st_say(h, "log-lost", "job=%s task=%d from=%" PRId64 " reason=\"%s\"", t->key.job,
                   t->key.task, t->log_sent, err.msg);
        t->log_done = h->changed = true;
        return false;
    }
    if (piece.n == 0) {
        t->now.output = false;
        if (!st_task_live(t) && !t->log_done) {
            t->log_done = true;
            h->dirty = h->changed = true;
        }
        return false;
    }
    hand_over(h, t, buf, &piece);
    return true;
}

static void take_answer(st_host *h, long status, int64_t next)
{
    st_task *t = st_journal_find(&h->journal, &h->log_key);

    h->log_ms = 0;
    if (!t)
        return;
    if (status == 404) {
        st_say(h, "log-unwanted", "job=%s task=%d from=%" PRId64, t->key.job, t->key.task,
               t->log_sent);
        t->log_done = h->changed = true;
    } else if (next > t->log_sent) {
        t->log_sent = next;
        h->dirty = h->dirty || !st_task_live(t);
    } else {
        h->log_ms = st_boot_ms() + LOG_FULL_MS; /* it takes nothing now */
    }
}

void st_host_logs(st_host *h)
{
    ST_CLEANUP(st_freep) char *buf = NULL;
    st_piece_state state;
    int64_t next, chunk;
    long status;
    size_t n = h->journal.tasks.n;

    pthread_mutex_lock(&h->mail.lock);
    state = h->mail.piece_state;
    status = h->mail.piece_status;
    next = h->mail.piece_next;
    chunk = h->mail.chunk;
    if (state == ST_PIECE_ANSWERED)
        h->mail.piece_state = ST_PIECE_NONE;
    pthread_mutex_unlock(&h->mail.lock);
    if (state == ST_PIECE_ANSWERED)
        take_answer(h, status, next);
    if (state == ST_PIECE_READY || st_boot_ms() < h->log_ms)
        return;
    /* First those that are over: their ends wait for it. */
    for (size_t i = 0; i < 2 * n; i++) {
        st_task *t = &h->journal.tasks.v[(h->log_next + i) % n];

        if (quiet(t) || st_task_live(t) != (i >= n))
            continue;
        if (!buf)
            buf = st_xmalloc((size_t)chunk);
        if (!send_one(h, t, buf, (size_t)chunk))
            continue;
        h->log_next = (h->log_next + i + 1) % n;
        return;
    }
    h->log_ms = st_boot_ms() + LOG_LOOK_MS;
}
