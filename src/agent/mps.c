/*
 * MPS daemons of a node: one per GPU and trust domain, below DATA/mps, started when a task at level mps
 * needs it and ended when none is left (run/mps.h has the daemon itself).
 *
 * The limits of a server are per client process and for all new clients alike, while tasks of one domain may have
 * different grants. So the server has the largest of its tasks' grants, a task's environment tightens
 * that to its own, and who goes around its environment is seen by the watch (watch.c) and ended.
 *
 * The GPU is in exclusive mode as long as its daemon lives: what does not go through the server gets
 * no context. A daemon that ends under its tasks takes them with it.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "agent/tenant.h"

#define MPS_DIR    "mps"
#define RETRY_MS   1000
#define LOOK_MS    1000
#define CLIENT_MAX 1024 /* processes of a task that are looked at */

/* Who may have a context on a GPU. */
static int set_mode(st_host *h, int gpu, st_gpu_mode mode, st_err *err)
{
    int r = st_gpu_set_mode(h->gpu, gpu, mode, err);

    if (r == 0)
        h->inv.gpu[gpu].mode = (int)mode;
    return r;
}

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

static st_daemon *daemon_of(const st_host *h, int gpu, const char *domain)
{
    for (size_t i = 0; i < h->daemons.n; i++)
        if (h->daemons.v[i].gpu == gpu && strcmp(h->daemons.v[i].domain, domain) == 0)
            return &h->daemons.v[i];
    return NULL;
}

static st_mps handle(const st_host *h, const st_daemon *d)
{
    return (st_mps){.control = h->mps_control, .dir = d->dir};
}

/* ---- their life --------------------------------------------------------------------------------- */

static int end_daemon(st_host *h, size_t at, st_err *err)
{
    st_daemon *d = &h->daemons.v[at];
    st_mps m = handle(h, d);
    int r = st_mps_stop(&m, err);

    /* The folder goes last: while it is there, whoever comes knows that something is to be undone. */
    if (r == 0 && h->gpu && d->gpu < h->inv.n)
        r = set_mode(h, d->gpu, ST_GPU_MODE_DEFAULT, err);
    if (r == 0)
        r = st_mps_remove(d->dir, err);
    if (r < 0)
        return st_fail_prefix(err, "the MPS daemon of GPU %d: ", d->gpu);
    st_say(h, "mps-ended", "gpu=%d domain=%s", d->gpu, d->domain);
    st_vec_remove(&h->daemons, at);
    return 0;
}

static int start_daemon(st_host *h, const st_task_place *p, const st_mps_limits *limits,
                        st_daemon **ret, st_err *err)
{
    st_daemon d = {.gpu = gpu_of(p), .limits = *limits};
    st_mps_record record = {.gpu = d.gpu};
    int64_t begun = st_boot_ms();
    st_mps m;
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
    m = handle(h, &h->daemons.v[h->daemons.n - 1]);
    r = set_mode(h, d.gpu, ST_GPU_MODE_EXCLUSIVE, err);
    if (r == 0)
        r = st_mps_start(&m, limits, err);
    if (r < 0) {
        st_err more = {0};

        if (end_daemon(h, h->daemons.n - 1, &more) < 0)
            st_say(h, "mps-stuck", "gpu=%d reason=\"%s\"", d.gpu, more.msg);
        return r;
    }
    st_say(h, "mps-started", "gpu=%d domain=%s percent=%d memory_mib=%" PRId64 " ms=%" PRId64,
           d.gpu, d.domain, limits->percent, limits->mem_mib, st_boot_ms() - begun);
    *ret = &h->daemons.v[h->daemons.n - 1];
    return 0;
}

/* A daemon that lives, or none: nobody needs one that has ended (st_host_mps_wait). */
static int living(st_host *h, const st_task_place *p, st_daemon **ret, st_err *err)
{
    st_daemon *d = daemon_of(h, gpu_of(p), p->domain);

    *ret = d;
    if (!d || st_mps_alive(d->dir))
        return 0;
    *ret = NULL;
    return end_daemon(h, (size_t)(d - h->daemons.v), err);
}

static int tighten(st_host *h, st_daemon *d, const st_mps_limits *limits, st_err *err)
{
    st_mps m = handle(h, d);
    int r;

    if (d->limits.percent == limits->percent && d->limits.mem_mib == limits->mem_mib)
        return 0;
    r = st_mps_limit(&m, limits, err);
    if (r == 0) {
        d->limits = *limits;
        st_say(h, "mps-limits", "gpu=%d domain=%s percent=%d memory_mib=%" PRId64, d->gpu,
               d->domain, limits->percent, limits->mem_mib);
    }
    return r;
}

/* ---- for a start -------------------------------------------------------------------------------- */

int st_host_mps_check(st_host *h, const st_task_place *p, st_err *err)
{
    st_gpu_mps facts;
    int gpu = gpu_of(p), r;

    /* Time slices need a GPU that several processes may open, whatever somebody left it in. */
    if (p->level == ST_LEVEL_TIME && gpu >= 0 && h->inv.gpu[gpu].mode != ST_GPU_MODE_DEFAULT)
        return set_mode(h, gpu, ST_GPU_MODE_DEFAULT, err);
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

int st_host_mps_clear(st_host *h, const st_task_place *p, st_err *err)
{
    for (size_t i = h->daemons.n; i-- > 0;) {
        const st_daemon *d = &h->daemons.v[i];
        bool stays = p->level == ST_LEVEL_MPS && strcmp(d->domain, p->domain) == 0;
        int r = stays || !(p->devs >> d->gpu & 1) ? 0 : end_daemon(h, i, err);

        if (r < 0)
            return r;
    }
    return 0;
}

bool st_host_mps_wait(const st_host *h, const st_task_place *p)
{
    const st_daemon *d =
        p->level == ST_LEVEL_MPS && p->devs ? daemon_of(h, gpu_of(p), p->domain) : NULL;

    if (!d || st_mps_alive(d->dir))
        return false;
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (needs(&h->journal.tasks.v[i], d->gpu, d->domain))
            return true;
    return false;
}

int st_host_mps_ready(st_host *h, const st_task *t, st_mps_client *ret, st_err *err)
{
    st_mps_client c = {0};
    st_mps_limits most;
    st_daemon *d;
    int r;

    *ret = c;
    if (t->place.level != ST_LEVEL_MPS || !t->place.devs || !has_daemons(h))
        return 0;
    c.limits = limits_of(h, &t->place);
    if (!largest(h, gpu_of(&t->place), t->place.domain, &most))
        most = c.limits;
    r = living(h, &t->place, &d, err);
    if (r == 0 && !d)
        r = start_daemon(h, &t->place, &most, &d, err);
    else if (r == 0)
        r = tighten(h, d, &most, err);
    if (r == 0)
        r = st_tenant_uid(h->dir, t->place.domain, &c.uid, err);
    if (r < 0)
        return st_fail_prefix(err, "level mps: ");
    if (snprintf(c.shm, sizeof c.shm, "%s/shm", d->dir) >= (int)sizeof c.shm)
        return st_fail(err, ST_ELIMIT, "%s: the name is too long", d->dir);
    *ret = c;
    return 0;
}

/* ---- for an end --------------------------------------------------------------------------------- */

void st_host_mps_part(st_host *h, const st_task *t)
{
    st_daemon *d = t->place.level == ST_LEVEL_MPS && t->place.devs
                       ? daemon_of(h, gpu_of(&t->place), t->place.domain)
                       : NULL;
    int64_t pids[CLIENT_MAX];
    size_t n = 0;
    int parted = 0;
    st_err err = {0};
    st_mps m;

    if (!d || !st_task_live(t) || !h->exec->ops->pids || !st_mps_alive(d->dir) ||
        h->exec->ops->pids(h->exec, t, pids, CLIENT_MAX, &n, &err) < 0 || n == 0)
        return;
    m = handle(h, d);
    if (st_mps_part(&m, pids, ST_MIN(n, (size_t)CLIENT_MAX), &parted, &err) < 0)
        st_say(h, "part-failed", "job=%s reason=\"%s\"", t->key.job, err.msg);
    else if (parted > 0)
        st_say(h, "parted", "job=%s task=%d clients=%d", t->key.job, t->key.task, parted);
}

/* The next turn will try again, not this one. */
static void put_off(st_host *h, size_t at, const st_err *why)
{
    h->daemons.v[at].retry_ms = st_boot_ms() + RETRY_MS;
    st_say(h, "mps-stuck", "gpu=%d reason=\"%s\"", h->daemons.v[at].gpu, why->msg);
}

bool st_host_mps_leave(st_host *h, const st_task *t)
{
    st_daemon *d = t->place.level == ST_LEVEL_MPS && t->place.devs
                       ? daemon_of(h, gpu_of(&t->place), t->place.domain)
                       : NULL;
    size_t at = d ? (size_t)(d - h->daemons.v) : 0;
    st_err err = {0};

    if (!d)
        return true;
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (needs(&h->journal.tasks.v[i], d->gpu, d->domain) &&
            !st_key_same(&h->journal.tasks.v[i].key, &t->key))
            return true;
    if (st_boot_ms() < d->retry_ms)
        return false;
    if (end_daemon(h, at, &err) == 0)
        return true;
    put_off(h, at, &err);
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

static int tend(st_host *h, size_t at, int64_t now, st_err *err)
{
    st_daemon *d = &h->daemons.v[at];
    st_mps_limits most;

    if (!largest(h, d->gpu, d->domain, &most))
        return end_daemon(h, at, err);
    if (st_boot_ms() >= d->look_ms) {
        d->look_ms = st_boot_ms() + LOOK_MS;
        if (!st_mps_alive(d->dir)) {
            end_tasks(h, d, now);
            return 0;
        }
    }
    return tighten(h, d, &most, err);
}

void st_host_mps_tidy(st_host *h, int64_t now)
{
    int64_t boot = st_boot_ms();

    for (size_t i = h->daemons.n; i-- > 0;) {
        st_err err = {0};

        if (boot >= h->daemons.v[i].retry_ms && tend(h, i, now, &err) < 0)
            put_off(h, i, &err);
    }
}

/* Those that an earlier agent has left. */
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
        st_daemon d = {.gpu = -1};
        st_mps_record record;

        if (e->d_name[0] == '.' ||
            snprintf(d.dir, sizeof d.dir, "%s/%s", top, e->d_name) >= (int)sizeof d.dir)
            continue;
        if (st_mps_read(d.dir, &record, NULL) == 0 && record.gpu >= 0 && record.gpu < ST_DEVS_MAX) {
            d.gpu = record.gpu;
            snprintf(d.domain, sizeof d.domain, "%s", record.domain);
            st_vec_push(&h->daemons, d);
            st_say(h, "mps-found", "gpu=%d domain=%s alive=%s", d.gpu, d.domain,
                   st_mps_alive(d.dir) ? "true" : "false");
        } else {
            st_mps_stop(&(st_mps){.dir = d.dir}, NULL);
            st_mps_remove(d.dir, NULL);
        }
    }
    if (dir)
        closedir(dir);
    return 0;
}
