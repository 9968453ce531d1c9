/*
 * Carrying out what a plan says, one action after the other (agent/plan.h).
 *
 * What cannot be done now is left for the next turn; the plan will say it again. A task is in the
 * journal, on the disk, before it is started.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/fence.h"
#include "agent/files.h"
#include "agent/helper.h"
#include "agent/host.h"
#include "agent/launch.h"
#include "agent/pause.h"

#define ROUNDS 4 /* of plans in one turn */
#define CARVE_PAUSE_MS \
    150                /* after it failed: a slice is in use for a moment after its last process */
#define UNMIG_MS 60000 /* so long may a GPU refuse to leave MIG mode before a task fails for it */

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

/* MIG mode follows what is asked of an empty GPU; where that needs a person, it is refused. */
static int mig_mode(st_host *h, int gpu, bool on, st_err *err)
{
    int r;

    if (h->inv.gpu[gpu].mig_on == on)
        return 0;
    r = st_gpu_mig_mode(h->gpu, gpu, on, err);
    if (r == 0)
        h->inv.gpu[gpu].mig_on = on;
    return r;
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
    r = n > 0 ? mig_mode(h, a->gpu, true, &err) : 0;
    if (r == 0)
        r = st_gpu_mig_reconcile(h->gpu, a->gpu, wanted, n, &done, &err);
    if (r < 0 || done.busy > 0) {
        h->carve_ms[a->gpu] = st_boot_ms() + CARVE_PAUSE_MS;
        st_say(h, "carve-failed", "gpu=%d reason=\"%s\"", a->gpu,
               r < 0 ? err.msg : "a slice nobody should have is in use");
        return;
    }
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

/* ---- starting ---------------------------------------------------------------------------------- */

/* Whether a GPU of the place still has slices, or just now cannot leave MIG mode for another reason: that passes, so
 * the task waits, but not for ever. */
static bool leaving_mig(st_host *h, const st_task_place *p)
{
    int64_t boot = st_boot_ms();
    st_gpu_instances now;
    st_err err = {0};

    for (int d = 0; h->gpu && p->level != ST_LEVEL_MIG && d < h->inv.n; d++) {
        if (!(p->devs >> d & 1) || !h->inv.gpu[d].mig_on)
            continue;
        if (h->unmig_ms[d] == 0)
            h->unmig_ms[d] = boot + UNMIG_MS;
        if (boot < h->unmig_ms[d] &&
            (boot < h->carve_ms[d] || st_gpu_mig_list(h->gpu, d, &now, &err) < 0 || now.n > 0))
            return true;
        if (mig_mode(h, d, false, &err) < 0 && boot < h->unmig_ms[d]) {
            h->carve_ms[d] = boot + CARVE_PAUSE_MS;
            st_say(h, "mig-stays", "gpu=%d reason=\"%s\"", d, err.msg);
            return true;
        }
        h->unmig_ms[d] = 0;
    }
    return false;
}

/* What a level needs that this node lacks: said, never weakened. */
static int check_level(st_host *h, const st_task_place *p, st_err *err)
{
    int cleared = st_host_mps_clear(h, p, err);

    if (cleared < 0)
        return cleared;
    for (int d = 0; d < ST_DEVS_MAX; d++) {
        if (!(p->devs >> d & 1))
            continue;
        if (d >= h->inv.n)
            return st_fail(err, ST_ENOENT, "GPU %d is not on node %s", d, h->name);
        if (p->level != ST_LEVEL_MIG && h->inv.gpu[d].mig_on) {
            int r = mig_mode(h, d, false, err);

            if (r < 0)
                return st_fail_prefix(err, "GPU %d is in MIG mode: ", d);
        }
    }
    return st_host_mps_check(h, p, err);
}

/* *ret_before is the record it replaces, if there was one. */
static st_task *note(st_host *h, const st_order *o, st_task *ret_before)
{
    st_task *old = st_journal_find(&h->journal, &o->key);
    const char *account = json_string_value(json_object_get(o->job, "account"));
    st_task t = {.key = o->key, .phase = ST_PHASE_NOTED};

    if (old) { /* it was saved, and may go on */
        t.attempt = old->attempt + 1;
        t.log_sent = t.log_before = old->log_sent;
        t.used = old->used;
        t.used.at_ms = 0;
    }
    t.place = o->place;
    t.signal = o->signal;
    t.notify_signal = o->notify_signal;
    st_launch_tenant(account && account[0] ? account : "root", t.tenant);
    if (old) {
        *ret_before = *old;
        *old = t;
        return old;
    }
    st_vec_push(&h->journal.tasks, t);
    return &h->journal.tasks.v[h->journal.tasks.n - 1];
}

/* As many tasks as the pool allows on a node: the next waits until one has ended. */
static bool crowded(const st_host *h)
{
    int64_t n = 0;

    for (size_t i = 0; i < h->journal.tasks.n; i++)
        n += h->journal.tasks.v[i].phase < ST_PHASE_ENDED;
    return h->list.node_tasks > 0 && n >= h->list.node_tasks;
}

static void do_start(st_host *h, const st_act *a, int64_t now)
{
    st_gpu_instance slice;
    st_mps_client mps;
    st_launch l = {
        .order = a->order, .node = h->name, .inv = &h->inv, .sim_gpus = h->sim_gpus, .dir = h->dir};
    st_task *t, before = {0};
    st_err err = {0};
    int r;

    if (a->order->place.mig_profile >= 0) {
        if (!st_host_slice(h, &a->order->place, &slice))
            return; /* not carved yet */
        l.slice = &slice;
    }
    if (st_host_mps_wait(h, &a->order->place) || leaving_mig(h, &a->order->place) || crowded(h))
        return;
    h->dirty = true;
    t = note(h, a->order, &before);
    st_host_save(h);
    if (h->stuck[0]) { /* not written down, so not started; the job need not fail for that */
        if (before.key.job[0])
            *t = before;
        else
            h->journal.tasks.n--;
        return;
    }
    h->changed = true;
    if (before.key.job[0]) /* of its earlier attempt nothing is needed any more */
        (void)h->exec->ops->remove(h->exec, &before, NULL);
    r = st_launch_allowed(a->order, &err);
    if (r == 0)
        r = check_level(h, &t->place, &err);
    if (r == 0)
        r = st_host_mps_ready(h, t, &mps, &err);
    if (r == 0 && mps.shm[0])
        l.mps = &mps;
    if (r == 0 && h->exec->ops->real)
        r = st_fence_ensure(h->dir, &err);
    if (r == 0)
        r = h->exec->ops->start(h->exec, t, &l, now, &err);
    h->dirty = true;
    if (r < 0) {
        st_task_unstarted(t, now, err.msg);
        st_say(h, "not-started", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, err.msg);
        return;
    }
    if (t->phase == ST_PHASE_RUNNING) /* at once: the simulated executor */
        st_host_load(h, t, true, now);
    st_say(h, "started", "job=%s stay=%d task=%d", t->key.job, t->key.stay, t->key.task);
}

/* ---- ending -------------------------------------------------------------------------------------- */

static void do_signal(st_host *h, st_task *t, const st_act *a, int64_t now)
{
    int signal = a->kind == ST_ACT_NOTIFY ? t->notify_signal : t->signal;
    st_err err = {0};

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
    /* Remembered first: what was asked and then exits has saved, whatever becomes of us. */
    st_host_save(h);
    if (signal == 0)
        return;
    if (h->exec->ops->signal(h->exec, t, signal, now, &err) < 0)
        st_say(h, "signal-failed", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task,
               err.msg);
    else
        st_say(h, st_act_name(a->kind), "job=%s stay=%d task=%d signal=%d", t->key.job, t->key.stay,
               t->key.task, signal);
}

void st_host_kill(st_host *h, st_task *t, const char *reason, int64_t now)
{
    st_err err = {0};

    t->killed = true;
    if (!t->reason[0])
        snprintf(t->reason, sizeof t->reason, "%s", reason);
    h->dirty = h->changed = true;
    st_host_mps_part(h, t);
    if (h->exec->ops->kill(h->exec, t, reason, now, &err) < 0)
        st_say(h, "kill-failed", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, err.msg);
    else
        st_say(h, "killed", "job=%s stay=%d task=%d reason=\"%s\"", t->key.job, t->key.stay,
               t->key.task, reason);
    if (st_task_live(t))
        h->exec->ops->look(h->exec, t, now);
}

static void do_kill(st_host *h, st_task *t, const st_act *a, int64_t now)
{
    t->fenced = t->fenced || a->fence;
    h->fenced = h->fenced || a->fence;
    st_host_kill(h, t, a->reason, now);
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

static void do_verify(st_host *h, st_task *t, int64_t now)
{
    bool over = !st_task_live(t);
    int64_t left = 1;
    st_err err = {0};

    if (over && (h->exec->ops->left(h->exec, t, &left, &err) < 0 || left > 0)) {
        st_say(h, "not-gone", "job=%s task=%d processes=%" PRId64, t->key.job, t->key.task, left);
        h->exec->ops->kill(h->exec, t, "it left processes behind", now, &err);
        return;
    }
    if (over)
        st_host_load(h, t, false, now);
    if ((over && !st_host_mps_leave(h, t)) || !devices_clean(h, t))
        return;
    t->gone = true;
    t->tries = 0;
    h->dirty = h->changed = true;
}

static void do_remove(st_host *h, st_task *t)
{
    static const char *const helpers[] = {"pause", "scan"};
    char name[128];
    st_err err = {0};

    if (h->exec->ops->remove(h->exec, t, &err) < 0) {
        st_say(h, "remove-failed", "job=%s reason=\"%s\"", t->key.job, err.msg);
        return;
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(helpers); i++) {
        st_cuda_name(t, helpers[i], name);
        st_helper_forget(h->dir, name);
    }
    st_vec_remove(&h->journal.tasks, (size_t)(t - h->journal.tasks.v));
    h->dirty = h->changed = true;
}

/* ---- a turn -------------------------------------------------------------------------------------- */

static void perform(st_host *h, const st_act *a, int64_t now)
{
    st_task *t = st_journal_find(&h->journal, &a->key);

    switch (a->kind) {
    case ST_ACT_CARVE:
        do_carve(h, a);
        return;
    case ST_ACT_START:
        do_start(h, a, now);
        return;
    default:
        break;
    }
    if (!t)
        return;
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
        do_verify(h, t, now);
        break;
    case ST_ACT_SCRUB:
        st_host_scrub(h, t, a->scan);
        break;
    case ST_ACT_REMOVE:
        do_remove(h, t);
        break;
    default:
        break;
    }
}

static void mark_unlisted(st_host *h, int64_t now)
{
    for (size_t i = 0; h->has_list && i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];
        bool on = false;

        for (size_t k = 0; k < h->list.orders.n && !on; k++)
            on = st_key_same(&h->list.orders.v[k].key, &t->key);
        if (on)
            t->unlisted_ms = 0;
        else if (t->unlisted_ms == 0) {
            t->unlisted_ms = now;
            h->changed = true;
        }
    }
}

/* Until nothing new follows: what was verified lets the next one start in the same turn. */
void st_host_act(st_host *h, int64_t now_ms)
{
    mark_unlisted(h, now_ms);
    for (int round = 0; round < ROUNDS; round++) {
        st_view view = {.list = h->has_list ? &h->list : NULL,
                        .tasks = h->journal.tasks.v,
                        .n = h->journal.tasks.n,
                        .can_pause = true,
                        .scrub = (st_scrub_policy)st_scrub_policy_parse(h->process->conf->scrub),
                        .lease_over = st_voice_lease_over(h) || h->fenced,
                        .stop_grace_ms = h->process->conf->stop_grace_ms};
        st_acts acts = {0};
        size_t n;

        if (!st_host_carved(h, &view.carved))
            return;
        st_plan(&view, now_ms, &acts);
        n = acts.n;
        for (size_t i = 0; i < n; i++)
            perform(h, &acts.v[i], now_ms);
        st_vec_free(&acts);
        if (n == 0)
            break;
    }
}
