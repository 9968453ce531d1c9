/*
 * Carrying out what a plan says, one action after the other (agent/plan.h).
 *
 * What cannot be done now is left for the next turn; the plan will say it again. What takes long is
 * done by workers, and nothing here waits for it.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "agent/pause.h"

#define ROUNDS 4 /* of plans in one turn */

/* ---- slices ------------------------------------------------------------------------------------ */

bool st_host_carved(st_host *h, st_carved *ret)
{
    st_carved c = {0};
    st_err err;

    for (int d = 0; h->gpu && d < h->inv.n; d++) {
        st_gpu_instances now;

        if (!h->inv.gpu[d].mig_on)
            continue;
        if (st_gpu_mig_list(h->gpu, d, &now, &err) < 0)
            return false;
        for (int i = 0; i < now.n; i++)
            if (now.v[i].profile >= 0 && now.v[i].profile < ST_MIG_COUNT)
                c.at[d][now.v[i].profile] |= (uint8_t)(1u << now.v[i].start);
    }
    *ret = c;
    return true;
}

static void do_carve(st_host *h, const st_act *a)
{
    st_gpu_slot wanted[ST_GPU_INSTANCES_MAX];
    st_gpu_reconciled done;
    st_err err = {0};
    int n = 0, r;

    if (!h->gpu || st_boot_ms() < h->carve_ms[a->gpu])
        return;
    for (int p = 0; p < ST_MIG_COUNT; p++)
        for (int s = 0; s < ST_MIG_MEMORY; s++)
            if (a->carve[p] >> s & 1 && n < ST_GPU_INSTANCES_MAX)
                wanted[n++] = (st_gpu_slot){.profile = (st_mig)p, .start = s};
    r = st_host_slices_set(h, a->gpu, wanted, n, &done, &err);
    if (r < 0 || done.busy > 0) {
        h->carve_ms[a->gpu] = st_boot_ms() + ST_CARVE_PAUSE_MS;
        st_say(h, "carve-failed", "gpu=%d reason=\"%s\"", a->gpu,
               r < 0 ? err.msg : "a slice nobody should have is in use");
        return;
    }
    if (done.made + done.removed > 0)
        st_say(h, "carved", "gpu=%d made=%d removed=%d kept=%d", a->gpu, done.made, done.removed,
               done.kept);
}

bool st_host_slice(st_host *h, const st_task_place *place, st_gpu_instance *ret)
{
    st_gpu_instances now;
    st_err err;

    for (int d = 0; h->gpu && d < h->inv.n; d++) {
        if (!(place->devs >> d & 1) || st_gpu_mig_list(h->gpu, d, &now, &err) < 0)
            continue;
        for (int i = 0; i < now.n; i++)
            if (now.v[i].profile == place->mig_profile && now.v[i].start == place->mig_start) {
                *ret = now.v[i];
                return true;
            }
    }
    return false;
}

/* ---- ending -------------------------------------------------------------------------------------- */

static void do_signal(st_host *h, st_task *t, const st_act *a, int64_t now)
{
    int signal = a->kind == ST_ACT_NOTIFY ? t->notify_signal : t->signal;

    switch (a->kind) {
    case ST_ACT_NOTIFY:
        t->notified = true;
        break;
    case ST_ACT_CHECKPOINT:
        t->asked = true;
        t->stop_ms = now;
        break;
    default:
        t->stopped = true;
        t->stop_ms = now;
        break;
    }
    h->dirty = true;
    if (signal != 0)
        t->owed = signal;
    /* Remembered first: what was asked and then exits has saved, whatever becomes of us. */
    st_host_save(h);
    st_say(h, st_act_name(a->kind), "job=%s stay=%d task=%d signal=%d", t->key.job, t->key.stay,
           t->key.task, signal);
    st_host_signal(h, t, now);
}

/* What it is told is not forgotten because it is not there yet: its grace begins when it has heard. */
void st_host_signal(st_host *h, st_task *t, int64_t now)
{
    st_err err = {0};
    int r;

    if (t->owed == 0 || t->phase < ST_PHASE_RUNNING || !st_task_live(t))
        return;
    r = h->exec->ops->signal(h->exec, t, t->owed, now, &err);

    if (r == -ST_ESTATE) /* not yet, or no more */
        return;
    if (r < 0) {
        st_say(h, "signal-failed", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task,
               err.msg);
        return;
    }
    st_say(h, "signalled", "job=%s stay=%d task=%d signal=%d", t->key.job, t->key.stay, t->key.task,
           t->owed);
    if (t->stop_ms != 0)
        t->stop_ms = now;
    t->owed = 0;
    h->dirty = true;
}

void st_host_kill(st_host *h, st_task *t, const char *reason, int64_t now)
{
    st_err err = {0};

    int r;

    if (!t->killed)
        st_say(h, "killed", "job=%s stay=%d task=%d reason=\"%s\"", t->key.job, t->key.stay,
               t->key.task, reason);
    t->killed = true;
    t->now.kill_ms = now;
    if (!t->reason[0])
        snprintf(t->reason, sizeof t->reason, "%s", reason);
    h->dirty = h->changed = true;
    if (t->now.working) { /* it is on its way: what comes of that is killed when it is there */
        st_host_unstart(h, t);
        return;
    }
    if (!st_host_mps_parted(h, t, now))
        return; /* it is killed when that is done */
    r = h->exec->ops->kill(h->exec, t, reason, now, &err);
    if (r == 0) {
        t->now.look_ms = 0;
        st_host_look(h, t, now);
    }
    if (r < 0 && r != -ST_EDOWN) /* it is dying: its end will be seen */
        st_say(h, "kill-failed", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, err.msg);
}

static void do_kill(st_host *h, st_task *t, const st_act *a, int64_t now)
{
    t->fenced = t->fenced || a->fence;
    h->fenced = h->fenced || a->fence;
    st_host_kill(h, t, a->reason ? a->reason : t->reason, now);
}

/* Nobody of it is left on its devices; one that is paused is, with a few MiB. A GPU that somebody
 * shares has others on it, by right. */
static bool devices_clean(st_host *h, const st_task *t)
{
    st_gpu_proc procs[64];
    size_t n = 0, others = 0;
    st_err err;

    if (!st_host_cuda(h) || t->place.level != ST_LEVEL_WHOLE)
        return true;
    for (int d = 0; d < h->inv.n; d++) {
        if (!(t->place.devs >> d & 1))
            continue;
        if (st_gpu_procs(h->gpu, d, procs, ST_ARRAY_LEN(procs), &n, &err) < 0 ||
            n > ST_ARRAY_LEN(procs))
            others = n + 1;
        for (size_t i = 0; others == 0 && i < n; i++)
            others += !(t->phase == ST_PHASE_PAUSED && st_pause_has(t, procs[i].pid));
        if (others > 0) {
            st_say(h, "not-clean", "job=%s gpu=%d processes=%zu", t->key.job, d, n);
            return false;
        }
    }
    return true;
}

static bool do_verify(st_host *h, st_task *t, int64_t now)
{
    bool over = !st_task_live(t);
    int64_t left = 1;
    st_err err = {0};

    if (t->now.working)
        return false;
    if (over && (h->exec->ops->left(h->exec, t, &left, &err) < 0 || left > 0)) {
        if (t->now.kill_ms > 0 && now < t->now.kill_ms + ST_KILL_AGAIN_MS)
            return false;
        st_say(h, "not-gone", "job=%s task=%d processes=%" PRId64, t->key.job, t->key.task, left);
        t->now.kill_ms = now;
        h->exec->ops->kill(h->exec, t, "it left processes behind", now, &err);
        return false;
    }
    if (over)
        st_host_load(h, t, false, now);
    if ((over && !st_host_mps_leave(h, t)) || !devices_clean(h, t))
        return false;
    t->gone = true;
    t->tries = 0;
    h->dirty = h->changed = true;
    return true;
}

/* ---- a turn -------------------------------------------------------------------------------------- */

/* Whether something was done, so that more may follow from it. */
static bool perform(st_host *h, const st_act *a, int64_t now)
{
    st_task *t;

    if (a->kind == ST_ACT_CARVE) {
        do_carve(h, a);
        return true;
    }
    if (a->kind == ST_ACT_START)
        return st_host_start(h, a->order);
    t = st_journal_find(&h->journal, &a->key);
    if (!t)
        return false;
    switch (a->kind) {
    case ST_ACT_KILL:
        do_kill(h, t, a, now);
        break;
    case ST_ACT_STOP:
    case ST_ACT_NOTIFY:
    case ST_ACT_CHECKPOINT:
        do_signal(h, t, a, now);
        break;
    case ST_ACT_PAUSE:
        st_pause_begin(h, t, now);
        break;
    case ST_ACT_RESUME:
        st_pause_end(h, t, a->order, now);
        break;
    case ST_ACT_VERIFY:
        return do_verify(h, t, now);
    case ST_ACT_SCRUB:
        st_host_scrub(h, t, a->scan);
        break;
    case ST_ACT_REMOVE:
        return st_host_remove(h, t);
    default:
        break;
    }
    return true;
}

static void mark_unlisted(st_host *h, int64_t now)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        h->journal.tasks.v[i].now.listed = false;
    for (size_t k = 0; k < h->list.orders.n; k++) {
        st_task *t = st_journal_find(&h->journal, &h->list.orders.v[k].key);

        if (t)
            t->now.listed = true;
    }
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        if (t->now.listed) {
            t->unlisted_ms = 0;
        } else if (t->unlisted_ms == 0) {
            t->unlisted_ms = now;
            h->changed = true;
        }
    }
}

/* One plan, carried out; false: nothing came of it. */
static bool carry_out(st_host *h, const st_agent_view *view, int64_t now_ms)
{
    st_acts acts = {0};
    bool done = false;

    st_plan(view, now_ms, &acts);
    st_host_room(h);
    for (size_t i = 0; i < acts.n; i++)
        done |= perform(h, &acts.v[i], now_ms);
    st_vec_free(&acts);
    st_host_begin(h, now_ms);
    st_host_remove_begin(h);
    return done;
}

/* Until nothing new follows: what was verified lets the next one start in the same turn. */
void st_host_act(st_host *h, int64_t now_ms)
{
    if (h->has_list)
        mark_unlisted(h, now_ms);
    for (int round = 0; round < ROUNDS; round++) {
        st_agent_view view = {.list = h->has_list ? &h->list : NULL,
                              .tasks = h->journal.tasks.v,
                              .n = h->journal.tasks.n,
                              .can_pause = true,
                              .scrub =
                                  (st_scrub_policy)st_scrub_policy_parse(h->process->conf->scrub),
                              .lease_over = st_voice_lease_over(h) || h->fenced,
                              .stop_grace_ms = h->process->conf->stop_grace_ms};

        view.uncarved = !st_host_carved(h, &view.carved);
        if (!carry_out(h, &view, now_ms))
            return;
    }
}
