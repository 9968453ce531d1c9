/*
 * MPS daemons of a node: one per GPU and trust domain, below DATA/mps, started when a task at level mps
 * needs it and ended when none is left (run/mps.h has the daemon itself, mps_work.c who talks to it). Nothing here
 * waits: a start that needs a daemon is tried again until that is there.
 *
 * The limits of a server are per client process and for all new clients alike, while tasks of one domain may have
 * different grants. So the server has the largest of its tasks' grants, a task's environment tightens
 * that to its own, and who goes around its environment is seen by the watch (watch.c) and ended.
 *
 * The GPU is in exclusive mode as long as its daemon lives: what does not go through the server gets
 * no context. A daemon that ends under its tasks takes them with it.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "agent/tenant.h"

#define MPS_DIR   "mps"
#define LOOK_MS   1000
#define WANTED_MS 5000 /* a daemon waits for who is about to start on it */

static bool has_daemons(const st_host *h)
{
    return h->exec->ops->real && (!h->sim_gpus || h->process->conf->mps_control);
}

static int gpu_of(const st_task_place *p)
{
    return __builtin_ffs(p->devs) - 1;
}

int64_t st_host_granted_mib(const st_host *h, const st_task_place *p, int gpu)
{
    int64_t all = h->inv.gpu[gpu].vram_mib;

    if (p->vram_mib > 0)
        return p->vram_mib;
    return p->share_m > 0 ? ST_MAX(all * p->share_m / ST_WHOLE_M, 1) : all;
}

static st_mps_limits limits_of(const st_host *h, const st_task_place *p)
{
    int percent = p->share_m > 0 ? (int)(p->share_m / 10) : 100;

    return (st_mps_limits){.percent = ST_MAX(percent, 1),
                           .mem_mib = ST_MAX(st_host_granted_mib(h, p, gpu_of(p)), 1)};
}

/* ---- who needs whom ----------------------------------------------------------------------------- */

static bool needs(const st_task *t, int gpu, const char *domain)
{
    return !t->clean && t->place.level == ST_LEVEL_MPS && (t->place.devs >> gpu & 1) &&
           strcmp(t->place.domain, domain) == 0;
}

/* The largest grants of those who need it; false: nobody does. */
static bool largest(const st_host *h, int gpu, const char *domain, st_mps_limits *ret)
{
    st_mps_limits most = {0};

    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];
        st_mps_limits l;

        if (!needs(t, gpu, domain))
            continue;
        l = limits_of(h, &t->place);
        most.percent = ST_MAX(most.percent, l.percent);
        most.mem_mib = ST_MAX(most.mem_mib, l.mem_mib);
    }
    *ret = most;
    return most.percent > 0;
}

static bool needed(const st_host *h, const st_daemon *d, const st_task_key *but)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (needs(&h->journal.tasks.v[i], d->gpu, d->domain) &&
            !(but && st_key_same(&h->journal.tasks.v[i].key, but)))
            return true;
    return false;
}

/* ---- for a start -------------------------------------------------------------------------------- */

int st_host_mps_check(st_host *h, const st_task_place *p, st_err *err)
{
    st_gpu_mps facts;
    int gpu = gpu_of(p), r;

    /* Time slices need a GPU that several processes may open, whatever somebody left it in. */
    if (p->level == ST_LEVEL_TIME && gpu >= 0 && h->inv.gpu[gpu].mode != ST_GPU_MODE_DEFAULT) {
        return st_host_set_mode(h, gpu, ST_GPU_MODE_DEFAULT, err);
    }
    if (p->level != ST_LEVEL_MPS || !has_daemons(h) || gpu < 0)
        return 0;
    if (p->devs & (p->devs - 1))
        return st_fail(err, ST_EINVAL, "level mps: a task has part of one GPU, not of several");
    r = st_mps_find(h->process->conf->mps_control, h->mps_control, err);
    if (r == 0)
        r = st_gpu_mps_facts(&h->inv, gpu, &facts, err);
    if (r < 0)
        return st_fail_prefix(err, "level mps: ");
    if (!facts.memory_limit)
        return st_fail(err, ST_EDOWN,
                       "level mps: the driver runs CUDA %d.%d; memory limits need 11.5",
                       h->inv.cuda / 1000, h->inv.cuda % 1000 / 10);
    return 0;
}

/* A new one: its folder says whose it is, before anything else is done. */
static int add(st_host *h, const st_task_place *p, st_daemon **ret, st_err *err)
{
    st_daemon d = {.id = ++h->last_daemon, .gpu = gpu_of(p)};
    st_mps_record record = {.gpu = d.gpu};
    int r;

    snprintf(d.domain, sizeof d.domain, "%s", p->domain);
    snprintf(record.domain, sizeof record.domain, "%s", p->domain);
    snprintf(record.uuid, sizeof record.uuid, "%s", h->inv.gpu[d.gpu].uuid);
    if (snprintf(d.dir, sizeof d.dir, "%s/" MPS_DIR "/%d-%s", h->dir, d.gpu, d.domain) >=
        (int)sizeof d.dir)
        return st_fail(err, ST_ELIMIT, "%s: the name is too long", h->dir);
    r = st_tenant_uid(h->dir, p->domain, &record.uid, err);
    if (r == 0)
        r = st_mps_note(d.dir, &record, err);
    if (r < 0)
        return r;
    st_vec_push(&h->daemons, d);
    *ret = &h->daemons.v[h->daemons.n - 1];
    return 0;
}

int st_host_mps_clear(st_host *h, const st_task_place *p, st_err *err)
{
    int r = 0;

    for (size_t i = h->daemons.n; i-- > 0 && r >= 0;) {
        st_daemon *d = &h->daemons.v[i];

        if (d->gone || !(p->devs >> d->gpu & 1) ||
            (p->level == ST_LEVEL_MPS && strcmp(d->domain, p->domain) == 0))
            continue;
        r = 1;
        if (d->ending && d->work == ST_DAEMON_IDLE && st_boot_ms() < d->retry_ms)
            r = st_fail(err, d->why.code, "the MPS daemon of GPU %d: %s", d->gpu, d->why.msg);
        else
            st_daemon_end(h, d);
    }
    return r;
}

static bool same(const st_mps_limits *a, const st_mps_limits *b)
{
    return a->percent == b->percent && a->mem_mib == b->mem_mib;
}

/* The one there is: 0 when it has these limits. */
static int check_limits(st_host *h, st_daemon *d, const st_mps_limits *limits, st_err *err)
{
    if (d->failed) {
        int r = st_fail(err, d->why.code, "%s", d->why.msg);

        d->failed = false;
        if (d->gone)
            st_daemon_forget(h, d);
        return r;
    }
    if (d->work != ST_DAEMON_IDLE)
        return 1;
    if (d->ending || !st_mps_alive(d->dir)) {
        if (!needed(h, d, NULL)) /* else its tasks are ended first */
            st_daemon_end(h, d);
        return 1;
    }
    if (same(&d->limits, limits))
        return 0;
    st_daemon_limit(h, d, limits);
    return 1;
}

int st_host_mps_ready(st_host *h, const st_task_place *p, st_err *err)
{
    st_mps_limits most, own;
    st_daemon *d;
    int r;

    if (p->level != ST_LEVEL_MPS || !p->devs || !has_daemons(h))
        return 0;
    r = st_host_mps_check(h, p, err);
    if (r < 0)
        return r;
    own = limits_of(h, p);
    if (!largest(h, gpu_of(p), p->domain, &most))
        most = own;
    most.percent = ST_MAX(most.percent, own.percent);
    most.mem_mib = ST_MAX(most.mem_mib, own.mem_mib);
    d = st_daemon_of(h, gpu_of(p), p->domain);
    if (d) {
        d->wanted_ms = st_boot_ms() + WANTED_MS;
        r = check_limits(h, d, &most, err);
    } else if ((r = add(h, p, &d, err)) == 0) {
        d->wanted_ms = st_boot_ms() + WANTED_MS;
        st_daemon_start(h, d, &most);
        r = 1;
    }
    return r < 0 ? st_fail_prefix(err, "level mps: ") : r;
}

int st_host_mps_client(const st_host *h, const st_task *t, st_mps_client *ret, st_err *err)
{
    st_mps_client c = {0};
    const st_daemon *d;
    int r;

    *ret = c;
    if (t->place.level != ST_LEVEL_MPS || !t->place.devs || !has_daemons(h))
        return 0;
    c.limits = limits_of(h, &t->place);
    d = st_daemon_of(h, gpu_of(&t->place), t->place.domain);
    if (!d || d->ending)
        return st_fail(err, ST_EDOWN, "level mps: the MPS daemon of GPU %d is not there",
                       gpu_of(&t->place));
    r = st_tenant_uid(h->dir, t->place.domain, &c.uid, err);
    if (r < 0)
        return st_fail_prefix(err, "level mps: ");
    if (snprintf(c.shm, sizeof c.shm, "%s/shm", d->dir) >= (int)sizeof c.shm)
        return st_fail(err, ST_ELIMIT, "%s: the name is too long", d->dir);
    *ret = c;
    return 0;
}

/* ---- for an end --------------------------------------------------------------------------------- */

bool st_host_mps_leave(st_host *h, const st_task *t)
{
    st_daemon *d = t->place.level == ST_LEVEL_MPS && t->place.devs
                       ? st_daemon_of(h, gpu_of(&t->place), t->place.domain)
                       : NULL;

    if (!d || d->gone || needed(h, d, &t->key))
        return true;
    st_daemon_end(h, d);
    return false;
}

/* ---- a turn ------------------------------------------------------------------------------------- */

static void end_tasks(st_host *h, const st_daemon *d, int64_t now)
{
    char reason[ST_TASK_REASON_MAX];

    snprintf(reason, sizeof reason, "the MPS daemon of GPU %d has ended under it", d->gpu);
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];

        if (st_task_live(t) && t->phase != ST_PHASE_NOTED && needs(t, d->gpu, d->domain))
            st_host_kill(h, t, reason, now);
    }
}

static void tend(st_host *h, st_daemon *d, int64_t now)
{
    int64_t boot = st_boot_ms();
    st_mps_limits most;

    if (d->work != ST_DAEMON_IDLE)
        return;
    if (d->gone && boot >= d->wanted_ms) { /* who waited for it does not any more */
        st_daemon_forget(h, d);
        return;
    }
    if (d->ending || (!needed(h, d, NULL) && boot >= d->wanted_ms)) {
        st_daemon_end(h, d);
        return;
    }
    if (boot >= d->look_ms) {
        d->look_ms = boot + LOOK_MS;
        if (!st_mps_alive(d->dir)) {
            end_tasks(h, d, now);
            return;
        }
    }
    if (boot >= d->wanted_ms && largest(h, d->gpu, d->domain, &most) && !same(&d->limits, &most))
        st_daemon_limit(h, d, &most);
}

void st_host_mps_tidy(st_host *h, int64_t now)
{
    for (size_t i = h->daemons.n; i-- > 0;)
        tend(h, &h->daemons.v[i], now);
}

/* Those that an earlier agent has left. One that nobody has started on may be half made. */
int st_host_mps_open(st_host *h, st_err *err)
{
    char top[PATH_MAX];
    struct dirent *e;
    DIR *dir;

    /* Without the program they cannot be asked, but still be ended. */
    if (h->exec->ops->real)
        st_mps_find(h->process->conf->mps_control, h->mps_control, NULL);
    if (snprintf(top, sizeof top, "%s/" MPS_DIR, h->dir) >= (int)sizeof top)
        return st_fail(err, ST_ELIMIT, "%s: the name is too long", h->dir);
    dir = opendir(top);
    while (dir && (e = readdir(dir))) {
        st_daemon d = {.id = ++h->last_daemon, .gpu = -1};
        st_mps_record record;

        if (e->d_name[0] == '.' ||
            snprintf(d.dir, sizeof d.dir, "%s/%s", top, e->d_name) >= (int)sizeof d.dir)
            continue;
        if (st_mps_read(d.dir, &record, NULL) == 0 && record.gpu >= 0 && record.gpu < ST_DEVS_MAX) {
            d.gpu = record.gpu;
            snprintf(d.domain, sizeof d.domain, "%s", record.domain);
            st_say(h, "mps-found", "gpu=%d domain=%s alive=%s", d.gpu, d.domain,
                   st_mps_alive(d.dir) ? "true" : "false");
        } else { /* whose it was cannot be known, and no GPU's mode is set back for it */
            d.gpu = ST_DEVS_MAX;
        }
        d.ending = !needed(h, &d, NULL);
        st_vec_push(&h->daemons, d);
    }
    if (dir)
        closedir(dir);
    return 0;
}
