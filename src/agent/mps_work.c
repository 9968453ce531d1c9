/*
 * What is done to MPS daemons (run/mps.h): by workers with time limits (agent/worker.h), for the vendor's program may
 * hang, and its folders have files that tenants made. The GPU's mode is set here: the driver has a guard of its own.
 *
 * Invariants:
 *  1 One thing at a time is done to a daemon.
 *  2 What fails leaves a reason; whoever waits to start on it takes that, and it is tried again later.
 *  3 A daemon that is to go is stopped, its GPU's mode set back, its folder removed, in this order: as long as the
 *    folder is there, whoever comes knows that something is to be undone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"

#define RETRY_MS   1000
#define PART_MS    3000 /* a kill does not wait longer */
#define CLIENT_MAX 1024 /* processes of a task that are looked at */

static const struct {
    const char *what;
    int64_t limit_ms;
} works[] = {
    [ST_DAEMON_START] = {"starting the MPS daemon", 30000},
    [ST_DAEMON_LIMIT] = {"telling the MPS daemon its limits", 30000},
    [ST_DAEMON_STOP] = {"ending the MPS daemon", 20000},
    [ST_DAEMON_REMOVE] = {"removing the folder of the MPS daemon", 60000},
};

st_daemon *st_daemon_of(const st_host *h, int gpu, const char *domain)
{
    for (size_t i = 0; i < h->daemons.n; i++)
        if (h->daemons.v[i].gpu == gpu && strcmp(h->daemons.v[i].domain, domain) == 0)
            return &h->daemons.v[i];
    return NULL;
}

static st_daemon *by_id(const st_host *h, int id)
{
    for (size_t i = 0; i < h->daemons.n; i++)
        if (h->daemons.v[i].id == id)
            return &h->daemons.v[i];
    return NULL;
}

/* ---- a worker ------------------------------------------------------------------------------------ */

typedef struct errand {
    st_mps mps;
    st_daemon_work work;
    st_mps_limits limits;
} errand;

static int run(void *ctx, st_err *err)
{
    const errand *e = ctx;

    switch (e->work) {
    case ST_DAEMON_START:
        return st_mps_start(&e->mps, &e->limits, err);
    case ST_DAEMON_LIMIT:
        return st_mps_limit(&e->mps, &e->limits, err);
    case ST_DAEMON_STOP:
        return st_mps_stop(&e->mps, err);
    case ST_DAEMON_REMOVE:
        return st_mps_remove(e->mps.dir, err);
    case ST_DAEMON_IDLE:
        break;
    }
    return 0;
}

static void put_off(st_host *h, st_daemon *d, const st_err *why)
{
    d->why = *why;
    d->retry_ms = st_boot_ms() + RETRY_MS;
    st_say(h, "mps-stuck", "gpu=%d domain=%s reason=\"%s\"", d->gpu, d->domain, why->msg);
}

static void worked(void *ctx, const st_task_key *key, int r, const st_err *err);

/* False: nobody is at it, and the reason is kept. */
static bool begin(st_host *h, st_daemon *d, st_daemon_work work)
{
    errand e = {.mps = {.control = h->mps_control, .dir = d->dir}, .work = work, .limits = d->next};
    st_agent_work w = {.what = works[work].what,
                       .limit_ms = works[work].limit_ms,
                       .aside = true,
                       .fn = run,
                       .ctx = &e,
                       .done = worked,
                       .done_ctx = h,
                       .key = {.task = d->id}};
    st_err err = {0};
    int id;

    if (st_worker_start(h->process->workers, &w, &id, &err) < 0) {
        put_off(h, d, &err);
        return false;
    }
    d->work = work;
    d->began_ms = st_boot_ms();
    return true;
}

void st_daemon_forget(st_host *h, st_daemon *d)
{
    st_vec_remove(&h->daemons, (size_t)(d - h->daemons.v));
}

/* ---- what came of it ------------------------------------------------------------------------------- */

static void started(st_host *h, st_daemon *d, int r, const st_err *err)
{
    if (r < 0) { /* undone, whatever there is of it */
        put_off(h, d, err);
        d->failed = true;
        d->retry_ms = 0;
        st_daemon_end(h, d);
        return;
    }
    d->limits = d->next;
    st_say(h, "mps-started", "gpu=%d domain=%s percent=%d memory_mib=%" PRId64 " ms=%" PRId64,
           d->gpu, d->domain, d->limits.percent, d->limits.mem_mib, st_boot_ms() - d->began_ms);
}

static void limited(st_host *h, st_daemon *d, int r, const st_err *err)
{
    if (r < 0) {
        put_off(h, d, err);
        d->failed = st_boot_ms() < d->wanted_ms;
        return;
    }
    d->limits = d->next;
    st_say(h, "mps-limits", "gpu=%d domain=%s percent=%d memory_mib=%" PRId64, d->gpu, d->domain,
           d->limits.percent, d->limits.mem_mib);
}

static void worked(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;
    st_daemon *d = by_id(h, key->task);
    st_daemon_work work = d ? d->work : ST_DAEMON_IDLE;

    h->next_ms = 0;
    if (!d)
        return;
    d->work = ST_DAEMON_IDLE;
    if (work == ST_DAEMON_START) {
        started(h, d, r, err);
    } else if (work == ST_DAEMON_LIMIT) {
        limited(h, d, r, err);
    } else if (r < 0) {
        put_off(h, d, err);
    } else if (work == ST_DAEMON_STOP) {
        d->stopped = true;
        st_daemon_end(h, d);
    } else {
        st_say(h, "mps-ended", "gpu=%d domain=%s", d->gpu, d->domain);
        d->gone = true;
        if (!d->failed)
            st_daemon_forget(h, d);
    }
}

/* ---- what is asked for ------------------------------------------------------------------------------ */

void st_daemon_start(st_host *h, st_daemon *d, const st_mps_limits *limits)
{
    st_err err = {0};
    int r = st_host_set_mode(h, d->gpu, ST_GPU_MODE_EXCLUSIVE, &err);

    d->next = *limits;
    st_say(h, "mps-starting", "gpu=%d domain=%s", d->gpu, d->domain);
    if (r < 0)
        started(h, d, r, &err);
    else if (!begin(h, d, ST_DAEMON_START))
        started(h, d, -1, &d->why);
}

void st_daemon_limit(st_host *h, st_daemon *d, const st_mps_limits *limits)
{
    if (d->work != ST_DAEMON_IDLE || st_boot_ms() < d->retry_ms)
        return;
    d->next = *limits;
    (void)begin(h, d, ST_DAEMON_LIMIT);
}

void st_daemon_end(st_host *h, st_daemon *d)
{
    st_err err = {0};

    d->ending = true;
    if (d->gone)
        return;
    if (d->work != ST_DAEMON_IDLE || st_boot_ms() < d->retry_ms)
        return;
    if (!d->stopped)
        (void)begin(h, d, ST_DAEMON_STOP);
    else if (st_host_set_mode(h, d->gpu, ST_GPU_MODE_DEFAULT, &err) < 0)
        put_off(h, d, &err);
    else
        (void)begin(h, d, ST_DAEMON_REMOVE);
}

/* ---- a task that is to be killed --------------------------------------------------------------------- */

typedef struct parting {
    st_exec *exec;
    const st_task *task;
    st_mps mps;
} parting;

/* How many of its processes were clients. */
static int part(void *ctx, st_err *err)
{
    const parting *p = ctx;
    int64_t pids[CLIENT_MAX];
    size_t n = 0;
    int parted = 0;
    int r = p->exec->ops->pids(p->exec, p->task, pids, CLIENT_MAX, &n, err);

    if (r == 0 && n > 0)
        r = st_mps_part(&p->mps, pids, ST_MIN(n, (size_t)CLIENT_MAX), &parted, err);
    return r < 0 ? r : parted;
}

static void parted(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;
    st_task *t = st_journal_find(&h->journal, key);

    h->next_ms = 0;
    if (r < 0)
        st_say(h, "part-failed", "job=%s reason=\"%s\"", key->job, err->msg);
    else if (r > 0)
        st_say(h, "parted", "job=%s task=%d clients=%d", key->job, key->task, r);
    if (!t || !t->killed)
        return;
    t->now.parted = true;
    if (st_task_live(t))
        st_host_kill(h, t, t->reason, st_boot_ms());
}

bool st_host_mps_parted(st_host *h, st_task *t, int64_t now)
{
    const st_daemon *d = t->place.level == ST_LEVEL_MPS && t->place.devs
                             ? st_daemon_of(h, __builtin_ffs(t->place.devs) - 1, t->place.domain)
                             : NULL;
    parting p = {.exec = h->exec, .task = t};
    st_agent_work w = {.what = "taking it off its MPS server",
                       .limit_ms = PART_MS,
                       .aside = true,
                       .fn = part,
                       .ctx = &p,
                       .done = parted,
                       .done_ctx = h,
                       .key = t->key};
    st_err err = {0};
    int id;

    if (!d || t->now.parted || !st_task_live(t) || !h->exec->ops->pids || !st_mps_alive(d->dir))
        return true;
    if (t->now.part_ms > 0)
        return now >= t->now.part_ms + 2 * PART_MS;
    p.mps = (st_mps){.control = h->mps_control, .dir = d->dir};
    if (st_worker_start(h->process->workers, &w, &id, &err) < 0) {
        st_say(h, "part-failed", "job=%s reason=\"%s\"", t->key.job, err.msg);
        return true;
    }
    t->now.part_ms = now;
    return false;
}
