/*
 * Starting tasks (agent/host.h): what a plan wants begun is noted, brought to the disk in one go, and then
 * begun, each by a worker (agent/worker.h).
 *
 * Invariants:
 *  1 A task is in the journal, on the disk, before anything of it is made.
 *  2 So many begin at a time as the node has room for; those that take long do not count, so that one
 *    who is slow keeps nobody waiting. Tenants take turns (agent/plan.h).
 *  3 While a worker is at it, nothing is concluded from what is there of the task.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/fence.h"
#include "agent/files.h"
#include "agent/host.h"
#include "agent/launch.h"

#define UNMIG_MS   60000 /* so long may a GPU refuse to leave MIG mode before a task fails for it */
#define FOREIGN_MS 15000 /* for somebody unknown to leave a GPU */
#define UNFIT_MS   60000 /* so long nothing is started where starts fail */
#define YOUNG_MS   3000  /* a start that takes longer has no say in how many others begin */
#define LIMIT_MS   1800000 /* for a worker; what unpacks an image has limits of its own */

/* ---- what stands in its way --------------------------------------------------------------------- */

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
        if (st_host_mig_mode(h, d, false, &err) < 0 && boot < h->unmig_ms[d]) {
            h->carve_ms[d] = boot + ST_CARVE_PAUSE_MS;
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
    for (int d = 0; d < ST_DEVS_MAX; d++) {
        if (!(p->devs >> d & 1))
            continue;
        if (d >= h->inv.n)
            return st_fail(err, ST_ENOENT, "GPU %d is not on node %s", d, h->name);
        if (p->level != ST_LEVEL_MIG && h->inv.gpu[d].mig_on) {
            int r = st_host_mig_mode(h, d, false, err);

            if (r < 0)
                return st_fail_prefix(err, "GPU %d is in MIG mode: ", d);
        }
    }
    return st_host_mps_check(h, p, err);
}

/* ---- noting ------------------------------------------------------------------------------------- */

/* Two for each processor: one waits for the kernel while the other works. */
static int room(const st_host *h)
{
    int64_t since = st_boot_ms() - YOUNG_MS;
    int most = (int)ST_MAX(2 * sysconf(_SC_NPROCESSORS_ONLN), 4);

    most -= st_workers_busy(h->process->workers, YOUNG_MS);
    for (size_t i = 0; most > 0 && i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        most -= t->phase == ST_PHASE_STARTING && t->now.began_ms > since;
    }
    return most;
}

/* As many tasks as the pool allows on a node: the next waits until one has ended. */
static int allowed(const st_host *h)
{
    int64_t n = 0;

    for (size_t i = 0; h->list.node_tasks > 0 && i < h->journal.tasks.n; i++)
        n += st_task_live(&h->journal.tasks.v[i]);
    return h->list.node_tasks > 0 ? (int)ST_MAX(h->list.node_tasks - n, 0) : INT_MAX;
}

/* What it replaces, if there was something, is kept until it is on the disk. */
static void note(st_host *h, const st_order *o)
{
    st_task *old = st_journal_find(&h->journal, &o->key);
    st_begin b = {.key = o->key, .order = o};
    st_task t = {.key = o->key, .phase = ST_PHASE_NOTED};

    if (old) { /* it was saved, and may go on */
        t.attempt = old->attempt + 1;
        t.log_sent = t.log_before = old->log_sent;
        t.used = old->used;
        t.used.at_ms = 0;
        b.again = true;
        b.before = *old;
    }
    t.place = o->place;
    t.signal = o->signal;
    t.notify_signal = o->notify_signal;
    t.now.working = true;
    t.now.began_ms = st_boot_ms();
    st_host_pin(h, &t, o);
    memcpy(t.tenant, o->tenant, sizeof t.tenant);
    if (old) {
        t.now.kept = old->now.kept;
        *old = t;
    } else {
        st_journal_add(&h->journal, &t);
    }
    st_vec_push(&h->begins, b);
    h->dirty = true;
}

/* Its time as unfit is over: the next start shows. */
static bool unfit(st_host *h)
{
    if (h->unfit[0] && st_boot_ms() >= h->unfit_ms) {
        h->unfit[0] = h->unfit_for[0] = '\0';
        h->changed = true;
    }
    return h->unfit[0] != '\0';
}

/* It is not even begun. */
static void refuse(st_host *h, const st_order *o, bool fault, const char *why)
{
    st_task *old = st_journal_find(&h->journal, &o->key);
    st_task t = old ? *old : (st_task){.key = o->key, .place = {.mig_profile = -1}};

    t.gone = t.clean = true;
    t.saved = t.asked = false;
    memcpy(t.tenant, o->tenant, sizeof t.tenant);
    st_task_unstarted(&t, st_boot_ms(), fault, why);
    if (old)
        *old = t;
    else
        st_journal_add(&h->journal, &t);
    st_say(h, "refused", "job=%s stay=%d task=%d reason=\"%s\"", o->key.job, o->key.stay,
           o->key.task, why);
    h->dirty = h->changed = true;
}

/* Whether its GPUs are free by the word of the kernel and the driver, too. Who waits for somebody we know
 * nothing of does not wait for long: the job is tried elsewhere. */
static bool free_for(st_host *h, const st_order *o)
{
    int64_t boot = st_boot_ms();
    char why[160];

    if (o->place.devs == 0)
        return true;
    if (!h->swept && st_host_sweep(h, boot, true) > 0) {
        h->room = 0; /* the next plan knows of them */
        return false;
    }
    h->swept = true;
    if (!st_host_foreign(h, &o->place, why)) {
        h->foreign_ms = 0;
        return true;
    }
    if (h->foreign_ms == 0) {
        h->foreign_ms = boot;
        st_say(h, "foreign", "job=%s reason=\"%s\"", o->key.job, why);
    } else if (boot > h->foreign_ms + FOREIGN_MS) {
        refuse(h, o, true, why);
        snprintf(h->unfit, sizeof h->unfit, "%s", why);
        h->unfit_ms = boot + UNFIT_MS;
    }
    return false;
}

bool st_host_start(st_host *h, const st_order *o)
{
    st_gpu_instance slice;
    const char *over;
    st_err err = {0};
    int r;

    if (unfit(h) || h->room <= 0 || !st_host_data_known(h, o->tenant, &over))
        return false;
    if (!over[0])
        over = st_host_volumes_over(h, o);
    if (over[0]) { /* also of a disk that is full: it may be for that */
        refuse(h, o, false, over);
        st_journal_find(&h->journal, &o->key)->full = true;
        return true;
    }
    if (h->full[0] || (h->hangs[0] && o->place.devs))
        return false;
    r = st_settings_suit(h, &o->place, &err);
    if (r == 0 && o->place.mig_profile >= 0 && !st_host_slice(h, &o->place, &slice))
        return false; /* not carved yet */
    if (r == 0)
        r = st_host_mps_clear(h, &o->place, &err);
    if (r == 0 && (leaving_mig(h, &o->place) || !free_for(h, o)))
        return false;
    if (r == 0)
        r = st_host_mps_ready(h, &o->place, &err);
    if (r < 0) {
        refuse(h, o, st_run_node_fault(&err), err.msg);
        st_host_judge_start(h, st_journal_find(&h->journal, &o->key));
    }
    if (r != 0)
        return r < 0;
    h->room--;
    note(h, o);
    return true;
}

/* ---- beginning ---------------------------------------------------------------------------------- */

typedef struct start {
    st_exec *exec;
    const st_begin *begin;
    st_task task;
    st_launch launch;
    st_gpu_instance slice;
    st_mps_client mps;
    st_guard_client guard;
    int64_t now;
} start;

/* In a worker. Of an earlier attempt nothing is needed any more. */
static int work(void *ctx, st_err *err)
{
    start *s = ctx;

    if (s->begin->again)
        (void)s->exec->ops->remove(s->exec, &s->begin->before, NULL);
    return s->exec->ops->start(s->exec, &s->task, &s->launch, s->now, err);
}

static void unstarted(st_host *h, st_task *t, const st_err *err)
{
    st_task_unstarted(t, st_boot_ms(), st_run_node_fault(err), err->msg);
    h->disk_ms = 0; /* is it that? */
    /* What only some tasks need says nothing about the others. */
    if (err->code == ST_EREFUSED)
        st_say(h, "not-started", "job=%s task=%d fault=node reason=\"%s\"", t->key.job, t->key.task,
               t->reason);
    else
        st_host_judge_start(h, t);
}

/* One tenant's start may fail for something that only it has; when another's does as well, with none that
 * went well in between, it is the node. It is left alone for a while then. */
void st_host_judge_start(st_host *h, const st_task *t)
{
    if (t->phase == ST_PHASE_RUNNING) {
        if (h->unfit[0])
            st_say(h, "fit", "job=%s", t->key.job);
        h->changed = h->changed || h->unfit[0];
        h->unfit[0] = h->unfit_for[0] = '\0';
        return;
    }
    if (t->phase != ST_PHASE_UNSTARTED)
        return;
    st_say(h, "not-started", "job=%s task=%d fault=%s reason=\"%s\"", t->key.job, t->key.task,
           t->fault ? "node" : "job", t->reason);
    if (!t->fault)
        return;
    if (!h->unfit_for[0]) {
        snprintf(h->unfit_for, sizeof h->unfit_for, "%s", t->tenant);
    } else if (strcmp(h->unfit_for, t->tenant) != 0 && !h->unfit[0]) {
        snprintf(h->unfit, sizeof h->unfit, "it cannot start tasks: %.150s", t->reason);
        h->unfit_ms = st_boot_ms() + UNFIT_MS;
        h->changed = true;
        st_say(h, "unfit", "reason=\"%s\"", t->reason);
    }
}

static void worked(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;
    st_task *t = st_journal_find(&h->journal, key);

    h->next_ms = 0;
    h->dirty = h->changed = true;
    if (!t)
        return;
    t->now.working = false;
    t->now.worker = 0;
    t->now.look_ms = 0;
    t->now.kill_ms = 0;
    if (r == 0 || h->exec->ops->there(h->exec, t)) {
        t->phase = ST_PHASE_STARTING;
        h->exec->ops->watch(h->exec, h->notices, t);
        st_say(h, "started", "job=%s stay=%d task=%d", t->key.job, t->key.stay, t->key.task);
    } else {
        unstarted(h, t, err);
    }
}

static int prepare(st_host *h, st_task *t, start *s, st_err *err)
{
    int r = 0;

    s->launch = (st_launch){.order = s->begin->order,
                            .node = h->name,
                            .inv = &h->inv,
                            .sim_gpus = h->sim_gpus,
                            .data_limit = h->data_held ? &h->data_limit : NULL,
                            .segment_port = h->process->conf->segment_port,
                            .volumes = h->process->conf->volumes,
                            .program = st_trial_is(&t->key) ? h->trial.program : NULL,
                            .dir = h->dir};
    if (t->place.mig_profile >= 0 && st_host_slice(h, &t->place, &s->slice))
        s->launch.slice = &s->slice;
    r = st_launch_allowed(s->begin->order, err);
    if (r == 0)
        r = check_level(h, &t->place, err);
    if (r == 0)
        r = st_host_mps_client(h, t, &s->mps, err);
    if (r == 0 && s->mps.shm[0])
        s->launch.mps = &s->mps;
    if (r < 0 || !h->exec->ops->real)
        return r;
    /* Here: two workers would adopt twice. */
    r = st_launch_adopt(s->begin->order, h->dir, err);
    if (r == 0)
        r = st_host_guard_client(h, t, s->begin->order, s->mps.shm[0] ? s->mps.uid : -1, &s->guard,
                                 err);
    if (r == 0 && s->guard.n > 0)
        s->launch.guard = &s->guard;
    return r == 0 ? st_fence_ensure(h->dir, err) : r;
}

static void begin(st_host *h, const st_begin *b, int64_t now)
{
    st_task *t = st_journal_find(&h->journal, &b->key);
    start s = {.exec = h->exec, .begin = b, .now = now};
    st_agent_work w = {.what = "its start",
                       .limit_ms = LIMIT_MS,
                       .fn = work,
                       .ctx = &s,
                       .done = worked,
                       .done_ctx = h,
                       .key = b->key};
    st_err err = {0};
    int r = prepare(h, t, &s, &err);

    h->dirty = h->changed = true;
    t->now.working = false;
    t->now.deadline_ms = b->order->deadline_ms;
    if (r == 0 && h->exec->ops->real) {
        s.task = *t;
        r = st_worker_start(h->process->workers, &w, &t->now.worker, &err);
        t->now.working = r == 0;
    } else if (r == 0) {
        if (b->again)
            (void)h->exec->ops->remove(h->exec, &b->before, NULL);
        r = h->exec->ops->start(h->exec, t, &s.launch, now, &err);
        if (r == 0) { /* at once: the simulated executor */
            st_host_load(h, t, true, now);
            st_say(h, "started", "job=%s stay=%d task=%d", t->key.job, t->key.stay, t->key.task);
        }
    }
    if (r < 0)
        unstarted(h, t, &err);
}

/* Not written down, so not started; the job need not fail for that. */
static void take_back(st_host *h, const st_begin *b)
{
    st_task *t = st_journal_find(&h->journal, &b->key);

    if (b->again)
        *t = b->before;
    else
        st_journal_remove(&h->journal, t);
}

void st_host_begin(st_host *h, int64_t now)
{
    if (h->begins.n == 0)
        return;
    st_voice_doing(h, "starting tasks");
    h->disk_ms = 0;
    st_host_disk(h, st_boot_ms()); /* what it was a second ago is not what it is */
    st_host_save(h);
    for (size_t i = 0; i < h->begins.n; i++)
        if (h->stuck[0] || h->full[0])
            take_back(h, &h->begins.v[i]);
        else
            begin(h, &h->begins.v[i], now);
    st_vec_clear(&h->begins);
}

void st_host_room(st_host *h)
{
    h->room = ST_MIN(h->exec->ops->real ? room(h) : INT_MAX, allowed(h));
    h->swept = false;
    h->process->loaded = false;
}

void st_host_unstart(st_host *h, st_task *t)
{
    if (t->now.worker)
        st_worker_kill(h->process->workers, t->now.worker);
}
