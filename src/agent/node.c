/*
 * A node's turn: hear what stintd said, see what became of its tasks, do what its list asks, and report.
 * Speaking is the voice's (agent/voice.h): nothing here may wait for stintd, and stintd waits for nothing
 * here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/fence.h"
#include "agent/files.h"
#include "agent/host.h"
#include "agent/pause.h"
#include "base/mem.h"

#define IDLE_MS 1000
#define STEP_MS 20 /* while a pause or a scan is under way */

/* ---- what was heard ------------------------------------------------------------------------------ */

#define MOVED_MS \
    1000 /* what reading two clocks one after the other makes of the same moment is less */

/* A time limit that was changed: whoever holds the task to it hears of it. */
static void follow_deadline(st_host *h, st_task *t, const st_order *o, int64_t now)
{
    int64_t by_ms = o->deadline_ms - t->now.deadline_ms;
    st_err err = {0};

    if (t->phase != ST_PHASE_RUNNING || t->step != ST_STEP_NONE || t->now.working ||
        (o->want != ST_DO_RUN && o->want != ST_DO_NOTIFY) || llabs(by_ms) < MOVED_MS)
        return;
    if (h->exec->ops->retime(h->exec, t, o->deadline_ms, now, &err) <
        0) { /* the next list tries again */
        st_say(h, "deadline", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, err.msg);
        return;
    }
    if (t->now.deadline_ms > 0) /* else the agent has just started */
        st_say(h, "deadline-moved", "job=%s task=%d by_ms=%" PRId64, t->key.job, t->key.task,
               by_ms);
    t->now.deadline_ms = o->deadline_ms;
    t->now.look_ms = 0;
}

static void follow_deadlines(st_host *h, int64_t now)
{
    for (size_t i = 0; i < h->list.orders.n; i++) {
        st_task *t = st_journal_find(&h->journal, &h->list.orders.v[i].key);

        if (t)
            follow_deadline(h, t, &h->list.orders.v[i], now);
    }
}

static int take_list(st_host *h, json_t *root, st_err *err)
{
    st_agent_list list = {0};
    int r = st_list_read(root, h->boards, h->skew_ms, &list, err);

    if (r < 0)
        return r;
    if (!st_epoch_ok(h->journal.epoch, list.epoch)) {
        r = st_fail(err, ST_ESTATE, "it is of epoch %" PRId64 ", and %" PRId64 " was heard of",
                    list.epoch, h->journal.epoch);
        st_agent_list_done(&list);
        return r;
    }
    if (!st_history_ok(&h->journal.at, &list.at)) {
        r = st_fail(err, ST_ESTATE,
                    "it stands at row %" PRId64 " of branch %" PRId64 ", and row %" PRId64
                    " of branch %" PRId64 " was followed: it is of an older copy of the store",
                    list.at.position, list.at.branch, h->journal.at.position, h->journal.at.branch);
        st_agent_list_done(&list);
        return r;
    }
    if (list.epoch != h->journal.epoch || list.at.branch != h->journal.at.branch ||
        list.at.position != h->journal.at.position) {
        h->journal.epoch = list.epoch;
        h->journal.at = list.at;
        h->dirty = true;
    }
    st_agent_list_done(&h->list);
    h->list = list;
    h->has_list = true;
    h->changed = true;
    st_host_images_want(h);
    follow_deadlines(h, st_boot_ms());
    return 0;
}

/* A list as it came, and whether it could be used. */
static void read_list(st_host *h, const st_strbuf *text)
{
    json_t *root = json_loadb(st_strbuf_str(text), text->n, 0, NULL);
    int64_t now = json_integer_value(json_object_get(root, "now_ms"));
    st_err err = {0};
    int r = 0;

    if (now > 0)
        h->skew_ms = now - st_boot_ms();
    r = root ? take_list(h, root, &err) : st_fail(&err, ST_EINVAL, "it is no JSON");
    if (r < 0)
        st_say(h, r == -ST_ESTATE ? "stale-list" : "bad-list", "reason=\"%s\"", err.msg);
    json_decref(root);
    pthread_mutex_lock(&h->mail.lock);
    h->mail.epoch = h->journal.epoch;
    h->mail.at = h->journal.at;
    h->mail.revision = h->has_list ? h->list.revision : 0;
    h->mail.bad_list = r < 0;
    h->mail.has_list = false;
    pthread_mutex_unlock(&h->mail.lock);
    st_voice_wake(h);
}

static void hear(st_host *h)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    st_mail *m = &h->mail;
    uint64_t heard;

    pthread_mutex_lock(&m->lock);
    m->poked = false;
    heard = m->heard_no;
    h->test_wanted = m->test;
    memcpy(h->trial.orders, m->trial, sizeof h->trial.orders);
    if (m->has_list) {
        list = m->list;
        m->list = (st_strbuf){0};
    }
    pthread_mutex_unlock(&m->lock);
    st_host_report_heard(h, heard);
    if (list.n > 0)
        read_list(h, &list);
}

/* ---- a turn ------------------------------------------------------------------------------------- */

void st_host_save(st_host *h)
{
    st_err err = {0};
    int r;

    if (!h->dirty)
        return;
    r = st_journal_save(&h->journal, h->dir, h->exec->ops->real, &err);
    if (r < 0 && st_host_disk_give(h))
        r = st_journal_save(&h->journal, h->dir, h->exec->ops->real, &err);
    h->dirty = r < 0;
    if (r < 0) {
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

/* A task's folder has changed. */
static void noticed(void *ctx, st_notice_kind kind, int watch)
{
    st_host *h = ctx;

    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task_now *n = &h->journal.tasks.v[i].now;

        if (kind == ST_NOTICE_ALL || (kind == ST_NOTICE_RECORD && n->folder == watch))
            n->look_ms = 0;
        if (kind == ST_NOTICE_ALL || (kind == ST_NOTICE_OUTPUT && n->logs == watch))
            n->output = true;
    }
}

void st_host_look(st_host *h, st_task *t, int64_t now)
{
    if (!st_task_live(t) || !h->exec->ops->look(h->exec, t, now))
        return;
    h->dirty = h->changed = true;
    h->fenced = h->fenced || t->fenced;
    h->log_ms = 0; /* its last lines, at once */
    t->now.output = true;
    if (t->phase == ST_PHASE_RUNNING || t->phase == ST_PHASE_UNSTARTED)
        st_host_judge_start(h, t);
    /* The limit may have been changed while it was starting. */
    for (size_t i = 0; t->phase == ST_PHASE_RUNNING && h->has_list && i < h->list.orders.n; i++)
        if (st_key_same(&h->list.orders.v[i].key, &t->key))
            follow_deadline(h, t, &h->list.orders.v[i], now);
    if (t->phase == ST_PHASE_RUNNING)
        st_host_load(h, t, true, now);
    else if (!st_task_live(t))
        st_say(h, "ended", "job=%s stay=%d task=%d exit=%d signal=%d%s", t->key.job, t->key.stay,
               t->key.task, t->exit_code, t->exit_signal, t->saved ? " saved=true" : "");
}

static void look(st_host *h, int64_t now)
{
    st_notices_take(h->notices, noticed, h);
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_host_look(h, &h->journal.tasks.v[i], now);
        st_host_signal(h, &h->journal.tasks.v[i], now);
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

/* When something is due by the clock; what is noticed, heard or done by a worker wakes it earlier. */
static int64_t next_turn(const st_host *h, int64_t now)
{
    int64_t wait = IDLE_MS;

    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        if (st_task_live(t))
            wait = ST_MIN(wait, h->exec->ops->due(h->exec, t, now) - now);
        if (t->step != ST_STEP_NONE || t->scanning)
            wait = ST_MIN(wait, STEP_MS);
        if (t->now.kill_ms > 0 && !t->gone && !t->now.working)
            wait = ST_MIN(wait, t->now.kill_ms + ST_KILL_AGAIN_MS - now);
    }
    if (h->changed)
        wait = ST_MIN(wait, h->urgent_ms - now);
    if (h->guards)
        wait = ST_MIN(wait, h->neighbour_ms - now);
    wait = ST_MIN(wait, h->log_ms > now ? h->log_ms - now : IDLE_MS);
    return now + ST_MAX(wait, 5);
}

bool st_host_busy(const st_host *h)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (st_task_live(&h->journal.tasks.v[i]))
            return true;
    return false;
}

/* The watchdog is there as long as something runs. */
static void keep_fence(st_host *h)
{
    st_err err = {0};

    if (h->exec->ops->real && st_host_busy(h) && st_fence_ensure(h->dir, &err) < 0)
        st_say(h, "no-fence", "reason=\"%s\"", err.msg);
}

void st_host_turn(st_host *h)
{
    int64_t now = st_boot_ms();

    h->now_ms = now;
    st_voice_doing(h, "looking after its tasks");
    hear(h);
    st_trial_order(h, now);
    st_host_disk(h, now);
    st_host_data(h, now);
    st_host_sweep(h, now, false);
    look(h, now);
    st_pause_turn(h, now);
    st_host_act(h, now);
    lift_fence(h);
    st_host_mps_tidy(h, now);
    st_host_guard_tidy(h, now);
    st_host_segments(h, now);
    st_host_neighbours(h, now);
    if (now >= h->sample_ms) {
        st_voice_doing(h, "looking at its GPUs");
        st_host_sample(h, now);
        st_host_symptoms(h, now);
        st_host_watch(h, now);
        st_host_guard_limits(h, now);
        h->sample_ms = now + 1000;
        keep_fence(h);
    }
    st_host_test(h, now);
    st_host_images(h, now);
    st_host_save(h);
    st_host_logs(h);
    st_host_report(h);
    h->next_ms = next_turn(h, st_boot_ms());
}

/* ---- life --------------------------------------------------------------------------------------- */

st_host *st_host_new(st_process *process, const char *name, const char *dir)
{
    st_host *h = st_xcalloc(1, sizeof *h);

    h->process = process;
    snprintf(h->name, sizeof h->name, "%s", name);
    snprintf(h->dir, sizeof h->dir, "%s", dir);
    h->talk.interval_ms = 5000;
    h->talk.wait_ms = 60000;
    st_mail_init(&h->mail);
    ST_ASSERT(pthread_mutex_init(&h->talk.ident_lock, NULL) == 0);
    return h;
}

int st_host_open(st_host *h, st_err *err)
{
    st_run_lease lease;
    int r = st_dir_make(h->dir, err);

    if (r == 0)
        r = st_host_identity(h, err);
    if (r == 0)
        r = st_journal_load(h->dir, &h->journal, err);
    if (r == 0)
        r = st_host_mps_open(h, err);
    if (r < 0)
        return r;
    st_host_guard_open(h);
    st_host_disk_open(h);
    st_host_data_open(h);
    h->notices = h->exec->ops->real ? st_notices_new(h->process->poll) : NULL;
    lease = st_lease_load(h->dir);
    h->mail.lease_end_ms = lease.end_ms;
    h->mail.keep = lease.keep;
    h->mail.epoch = h->journal.epoch;
    h->mail.at = h->journal.at;
    st_host_sweep(h, st_boot_ms(), true);
    st_host_tidy(h);
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        h->fenced = h->fenced || t->fenced;
        if (t->phase == ST_PHASE_RUNNING)
            st_host_load(h, t, true, st_boot_ms());
        h->exec->ops->watch(h->exec, h->notices, t);
    }
    if (h->journal.tasks.n > 0)
        st_say(h, "found", "tasks=%zu", h->journal.tasks.n);
    return 0;
}

void st_host_free(st_host *h)
{
    if (!h)
        return;
    st_line_free(h->talk.main);
    st_line_free(h->talk.poll);
    st_line_free(h->talk.log);
    st_mail_done(&h->mail);
    pthread_mutex_destroy(&h->talk.ident_lock);
    st_agent_list_done(&h->list);
    st_journal_done(&h->journal);
    st_vec_free(&h->begins);
    st_vec_free(&h->leaving);
    st_notices_free(h->notices);
    st_host_neighbours_free(h);
    st_vec_free(&h->slices);
    st_strbuf_done(&h->test_text);
    st_trial_done(h);
    free(h->symptoms);
    st_host_images_done(h);
    st_vec_free(&h->daemons);
    st_host_data_close(h);
    st_exec_free(h->exec);
    st_gpu_free(h->gpu);
    explicit_bzero(h->talk.token, sizeof h->talk.token);
    st_ident_done(&h->talk.ident);
    free(h);
}
