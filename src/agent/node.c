/*
 * A node's turn: see what became of its tasks, do what its list asks, and tell stintd.
 *
 * The lease counts from the moment the answered status was sent, on the boot clock; it is in a file,
 * so that an agent that was restarted knows it too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/fence.h"
#include "agent/files.h"
#include "agent/host.h"
#include "base/mem.h"
#include "base/quote.h"

#define STATUS_MS    10000 /* for an answer to a status */
#define LINES_MS     3000
#define POLL_MORE_MS 10000 /* beyond what stintd may wait */
#define PAUSE_MIN_MS 200
#define PAUSE_MAX_MS 15000
#define IDLE_MS      1000

/* ---- pauses ------------------------------------------------------------------------------------- */

void st_retry_ok(st_retry *r)
{
    *r = (st_retry){0};
}

/* Twice as long each time, and never for all nodes at once. */
void st_retry_later(st_host *h, st_retry *r)
{
    int64_t most = ST_MIN((int64_t)PAUSE_MIN_MS << ST_MIN(r->failures, 10), PAUSE_MAX_MS);

    r->failures++;
    r->at_ms =
        st_boot_ms() + most / 2 + (int64_t)st_rng_below(&h->process->rng, (uint64_t)most / 2);
}

void st_host_wake(st_host *h)
{
    h->next_ms = 0;
}

/* ---- the lease ---------------------------------------------------------------------------------- */

void st_host_terms(st_host *h, const json_t *answer, int64_t sent_ms)
{
    const char *end = json_string_value(json_object_get(answer, "at_lease_end"));
    int64_t lease = json_integer_value(json_object_get(answer, "lease_ms"));
    int64_t now = json_integer_value(json_object_get(answer, "now_ms"));

    if (lease > 0)
        h->lease_ms = lease;
    h->keep = end && strcmp(end, "keep") == 0;
    h->lease_end_ms = sent_ms + h->lease_ms;
    if (now > 0)
        h->skew_ms = now - st_wall_ms();
    if (h->exec->ops->real)
        st_lease_save(h->dir, &(st_lease){.end_ms = h->lease_end_ms, .keep = h->keep});
}

/* ---- statuses ----------------------------------------------------------------------------------- */

/* An end is told when its last lines have gone ahead, so that who follows them misses none; but
 * not for long, and not where logs cannot be brought. */
static bool lines_first(const st_host *h, const st_task *t)
{
    int64_t ago = st_wall_ms() - t->ended_ms;

    return t->phase == ST_PHASE_ENDED && t->started_ms > 0 && !t->log_done && ago >= 0 &&
           ago < LINES_MS && h->log_at.failures == 0 && !t->fenced;
}

static void add_used(const st_task *t, st_strbuf *out)
{
    if (t->used.sum.has) {
        st_strbuf_add(out, ",\"usage\":");
        st_used_json(&t->used.sum, out);
    }
    if (t->scrub.result != ST_SCRUB_PENDING)
        st_strbuf_addf(out,
                       ",\"scrub\":{\"result\":\"%s\",\"bytes\":%" PRId64 ",\"found\":%" PRId64
                       ",\"ms\":%" PRId64 "}",
                       st_scrub_name(t->scrub.result), t->scrub.bytes, t->scrub.found, t->scrub.ms);
}

/* Over, off the list and looked after: what it used, once more, until that was heard. */
static bool leaves(const st_task *t)
{
    return !st_task_live(t) && t->unlisted_ms > 0 && t->clean && !t->told;
}

static void past_json(st_host *h, st_strbuf *out)
{
    const char *sep = "";

    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        t->telling = leaves(t);
        if (!t->telling)
            continue;
        st_strbuf_addf(out, "%s{\"job\":\"%s\",\"stay\":%d,\"task\":%d", sep, t->key.job,
                       t->key.stay, t->key.task);
        add_used(t, out);
        st_strbuf_addc(out, '}');
        sep = ",";
    }
}

static void past_heard(st_host *h)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        t->told = t->told || t->telling;
        t->telling = false;
    }
}

static void task_json(const st_host *h, const st_task *t, st_strbuf *out)
{
    static const char *const words[] = {
        [ST_PHASE_NOTED] = "starting",  [ST_PHASE_STARTING] = "starting",
        [ST_PHASE_RUNNING] = "running", [ST_PHASE_PAUSED] = "paused",
        [ST_PHASE_ENDED] = "exited",    [ST_PHASE_UNSTARTED] = "failed-to-start",
    };
    const char *state = t->phase == ST_PHASE_ENDED && t->saved ? "checkpointed" : words[t->phase];
    bool first = lines_first(h, t);

    if (first)
        state = words[ST_PHASE_RUNNING];
    st_strbuf_addf(out, "{\"job\":\"%s\",\"stay\":%d,\"task\":%d,\"state\":\"%s\"", t->key.job,
                   t->key.stay, t->key.task, state);
    if (t->started_ms > 0)
        st_strbuf_addf(out, ",\"started_ms\":%" PRId64, t->started_ms);
    if (t->ended_ms > 0 && !first)
        st_strbuf_addf(out, ",\"ended_ms\":%" PRId64, t->ended_ms);
    if (t->phase == ST_PHASE_ENDED && t->exit_signal && !first)
        st_strbuf_addf(out, ",\"signal\":%d", t->exit_signal);
    else if (t->phase == ST_PHASE_ENDED && !first)
        st_strbuf_addf(out, ",\"exit_code\":%d", t->exit_code);
    if (t->reason[0] && !first) {
        st_strbuf_add(out, ",\"reason\":");
        st_quote_json(out, t->reason);
    }
    add_used(t, out);
    st_strbuf_addc(out, '}');
}

static void status_json(st_host *h, st_strbuf *out)
{
    const char *reason = h->fenced     ? "its lease ended and its tasks were killed"
                         : h->stuck[0] ? h->stuck
                                       : h->ill;
    const char *sep = "";

    st_strbuf_addf(out,
                   "{\"epoch\":%" PRId64 ",\"revision\":%" PRIu64 ",\"now_ms\":%" PRId64
                   ",\"node\":{\"health\":\"%s\"",
                   h->journal.epoch, h->has_list ? h->list.revision : 0, st_wall_ms(),
                   reason[0] ? "failed" : "ok");
    if (reason[0]) {
        st_strbuf_add(out, ",\"reason\":");
        st_quote_json(out, reason);
    }
    st_strbuf_add(out, "},\"tasks\":[");
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        /* Off the list and over: only its last lines are still on their way. */
        if (!st_task_live(t) && t->unlisted_ms > 0)
            continue;
        st_strbuf_add(out, sep);
        task_json(h, t, out);
        sep = ",";
    }
    st_strbuf_add(out, "],\"past\":[");
    past_json(h, out);
    st_strbuf_add(out, "],\"gpus\":");
    st_host_gpus_json(h, out);
    st_strbuf_addc(out, '}');
}

static void send_status(st_host *h)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};

    status_json(h, &body);
    h->changed = false;
    h->sent_ms = st_boot_ms();
    st_line_ask(h->main, "/v1/agent/status", h->token, "application/json", body.s, body.n,
                STATUS_MS);
}

static void complain(const st_host *h, const char *event, const st_answer *a)
{
    char q[ST_QUOTE_MAX];

    if (a->status == 0)
        st_say(h, event, "reason=\"%s\"", a->err.msg);
    else
        st_say(h, event, "status=%ld answer=%s", a->status, st_quote(q, a->body));
}

static void status_heard(st_host *h, const st_answer *a)
{
    json_t *root = a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    int64_t epoch = json_integer_value(json_object_get(root, "epoch"));

    if (root && st_epoch_ok(h->journal.epoch, epoch)) {
        bool same = h->has_list && (uint64_t)json_integer_value(
                                       json_object_get(root, "revision")) == h->list.revision;

        if (h->main_at.failures > 0)
            st_say(h, "back", "after=%d", h->main_at.failures);
        h->behind = same ? 0 : h->behind + 1;
        /* A line that was cut may wait for ever: the network is back, or the list is long due. */
        if (h->main_at.failures > 0 || h->behind >= 2) {
            st_line_drop(h->poll);
            st_retry_ok(&h->poll_at);
            h->behind = 0;
        }
        st_retry_ok(&h->main_at);
        past_heard(h);
        st_host_terms(h, root, h->sent_ms);
        h->main_at.at_ms = h->sent_ms + h->interval_ms;
    } else {
        if (h->main_at.failures == 0)
            complain(h, "status-failed", a);
        h->changed = true;
        st_retry_later(h, &h->main_at);
        if (a->status == 401 || a->status == 404)
            h->registered = false;
    }
    json_decref(root);
}

static void main_heard(void *ctx, const st_answer *a)
{
    st_host *h = ctx;

    st_host_wake(h);
    if (h->registered)
        status_heard(h, a);
    else
        st_host_registered(h, a);
}

/* ---- the list ----------------------------------------------------------------------------------- */

static void take_list(st_host *h, json_t *root)
{
    st_list list = {0};
    st_err err = {0};

    if (st_list_read(root, h->boards, h->skew_ms, &list, &err) < 0) {
        st_say(h, "bad-list", "reason=\"%s\"", err.msg);
        st_retry_later(h, &h->poll_at);
        return;
    }
    if (!st_epoch_ok(h->journal.epoch, list.epoch)) {
        st_say(h, "stale-list", "epoch=%" PRId64 " heard=%" PRId64, list.epoch, h->journal.epoch);
        st_list_done(&list);
        st_retry_later(h, &h->poll_at);
        return;
    }
    st_retry_ok(&h->poll_at);
    if (list.epoch != h->journal.epoch) {
        h->journal.epoch = list.epoch;
        h->dirty = true;
    }
    st_list_done(&h->list);
    h->list = list;
    h->has_list = true;
    h->changed = true;
}

static void poll_heard(void *ctx, const st_answer *a)
{
    st_host *h = ctx;
    json_t *root = a->status == 200 ? json_loadb(a->body, a->n, 0, NULL) : NULL;
    int64_t now = json_integer_value(json_object_get(root, "now_ms"));

    st_host_wake(h);
    if (now > 0)
        h->skew_ms = now - st_wall_ms();
    if (root)
        take_list(h, root);
    else if (a->status == 204)
        st_retry_ok(&h->poll_at);
    else
        st_retry_later(h, &h->poll_at);
    json_decref(root);
}

static void ask_list(st_host *h)
{
    char path[96];

    snprintf(path, sizeof path, "/v1/agent/desired?revision=%" PRIu64 "&wait=%" PRId64,
             h->has_list ? h->list.revision : 0, h->wait_ms / 1000);
    st_line_ask(h->poll, path, h->token, NULL, NULL, 0, h->wait_ms + POLL_MORE_MS);
}

/* ---- a turn ------------------------------------------------------------------------------------- */

void st_host_save(st_host *h)
{
    st_err err = {0};

    if (!h->dirty)
        return;
    h->dirty = false;
    if (st_journal_save(&h->journal, h->dir, h->exec->ops->real, &err) < 0) {
        h->dirty = true;
        h->changed = h->changed || !h->stuck[0];
        if (!h->stuck[0])
            st_say(h, "stuck", "reason=\"%s\"", err.msg);
        snprintf(h->stuck, sizeof h->stuck, "%.150s", err.msg);
    } else if (h->stuck[0]) {
        h->stuck[0] = '\0';
        h->changed = true;
        st_say(h, "unstuck", "tasks=%zu", h->journal.tasks.n);
    }
}

static void look(st_host *h, int64_t now)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        if (!st_task_live(t) || !h->exec->ops->look(h->exec, t, now))
            continue;
        h->dirty = h->changed = true;
        h->fenced = h->fenced || t->fenced;
        if (h->log_at.failures == 0)
            h->log_at.at_ms = 0; /* its last lines, at once */
        if (t->phase == ST_PHASE_RUNNING)
            st_host_load(h, t, true, now);
        else if (!st_task_live(t))
            st_say(h, "ended", "job=%s stay=%d task=%d exit=%d signal=%d%s", t->key.job,
                   t->key.stay, t->key.task, t->exit_code, t->exit_signal,
                   t->saved ? " saved=true" : "");
    }
}

/* Over when a list came that has none of those that were killed. */
static void lift_fence(st_host *h)
{
    if (!h->fenced || !h->has_list)
        return;
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (h->journal.tasks.v[i].fenced && h->journal.tasks.v[i].unlisted_ms == 0)
            return;
    h->fenced = false;
    h->changed = true;
    st_say(h, "fence-lifted", "revision=%" PRIu64, h->list.revision);
}

static void speak(st_host *h, int64_t boot)
{
    if (!st_line_busy(h->main) && boot >= h->main_at.at_ms && !h->registered)
        st_host_register(h);
    if (!h->registered)
        return;
    if (!st_line_busy(h->log) && boot >= h->log_at.at_ms)
        st_host_logs(h);
    if (!st_line_busy(h->main) &&
        (boot >= h->main_at.at_ms || (h->changed && h->main_at.failures == 0)))
        send_status(h);
    if (!st_line_busy(h->poll) && boot >= h->poll_at.at_ms)
        ask_list(h);
}

static int64_t next_turn(const st_host *h, int64_t boot, int64_t now)
{
    int64_t wait = IDLE_MS;

    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        if (st_task_live(t))
            wait = ST_MIN(wait, h->exec->ops->due(h->exec, t, now) - now);
    }
    if (!st_line_busy(h->main))
        wait = ST_MIN(wait, h->main_at.at_ms - boot);
    if (h->registered && !st_line_busy(h->poll))
        wait = ST_MIN(wait, h->poll_at.at_ms - boot);
    return boot + ST_MAX(wait, 10);
}

void st_host_turn(st_host *h)
{
    int64_t now = st_wall_ms(), boot = st_boot_ms();

    look(h, now);
    st_host_act(h, now);
    lift_fence(h);
    if (boot >= h->sample_ms) {
        st_host_sample(h, now);
        h->sample_ms = boot + 1000;
    }
    st_host_save(h);
    speak(h, boot);
    h->next_ms = next_turn(h, boot, now);
}

/* ---- life --------------------------------------------------------------------------------------- */

st_host *st_host_new(st_process *process, const char *name, const char *dir)
{
    st_host *h = st_xcalloc(1, sizeof *h);

    h->process = process;
    snprintf(h->name, sizeof h->name, "%s", name);
    snprintf(h->dir, sizeof h->dir, "%s", dir);
    h->interval_ms = 5000;
    h->wait_ms = 60000;
    h->chunk = 65536;
    h->main = st_line_new(process->lines, main_heard, h);
    h->poll = st_line_new(process->lines, poll_heard, h);
    h->log = st_line_new(process->lines, st_host_logs_heard, h);
    return h;
}

int st_host_open(st_host *h, st_err *err)
{
    st_lease lease;
    int r = st_dir_make(h->dir, err);

    if (r == 0)
        r = st_host_identity(h, err);
    if (r == 0)
        r = st_journal_load(h->dir, &h->journal, err);
    if (r < 0)
        return r;
    lease = st_lease_load(h->dir);
    h->lease_end_ms = lease.end_ms;
    h->keep = lease.keep;
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        h->fenced = h->fenced || t->fenced;
        if (t->phase == ST_PHASE_RUNNING)
            st_host_load(h, t, true, st_wall_ms());
    }
    if (h->journal.tasks.n > 0)
        st_say(h, "found", "tasks=%zu", h->journal.tasks.n);
    return 0;
}

void st_host_free(st_host *h)
{
    if (!h)
        return;
    st_line_free(h->main);
    st_line_free(h->poll);
    st_line_free(h->log);
    st_list_done(&h->list);
    st_journal_done(&h->journal);
    st_exec_free(h->exec);
    st_gpu_free(h->gpu);
    explicit_bzero(h->token, sizeof h->token);
    free(h);
}
