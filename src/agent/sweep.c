/*
 * What is on the node by the word of the kernel and the disk, against what the journal has: groups and folders
 * of tasks that nobody knows of are given a record, as strays. What runs is ended by the plan; what has ended is told
 * as it ended, if its folder says how, and forgotten like any other. It is looked for when the agent starts, before
 * anything is started, and now and then.
 *
 * A stray is taken to hold every device that nobody else holds, for nobody knows better: so nothing is
 * handed out until all of it is verified gone and what it may have left in memory was read. Several strays hold the
 * same devices, and each of them must be gone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "agent/launch.h"
#include "agent/pause.h"
#include "base/hash.h"
#include "base/mem.h"
#include "gpu/guard.h"

#define SWEEP_MS 5000
#define CLEAR_MS 60000 /* for a worker that removes what an earlier attempt left */

static uint64_t name_hash(const char *name)
{
    return st_hash_str(9, name);
}

/* "job.stay.task" or "job.stay.task-attempt". Pure. */
bool st_sweep_parse(const char *name, st_task *ret)
{
    st_task t = {.phase = ST_PHASE_RUNNING, .stray = true, .fault = true};
    const char *dot = strchr(name, '.');
    size_t n = dot ? (size_t)(dot - name) : 0;
    int used = 0;

    if (n == 0 || n >= sizeof t.key.job)
        return false;
    memcpy(t.key.job, name, n);
    if (sscanf(dot, ".%9d.%9d%n", &t.key.stay, &t.key.task, &used) != 2)
        return false;
    if (dot[used] == '-' && sscanf(dot + used, "-%9d", &t.attempt) != 1)
        return false;
    if (t.key.stay < 0 || t.key.task < 0 || t.attempt < 0)
        return false;
    t.place.mig_profile = -1;
    *ret = t;
    return true;
}

static st_idmap *known_names(const st_host *h)
{
    st_idmap *m = st_idmap_new();

    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        char id[ST_RUN_ID_MAX];

        st_launch_id(&h->journal.tasks.v[i], id);
        for (char *p = id; *p; p++)
            *p = *p == '/' ? '.' : *p;
        st_idmap_put(m, name_hash(id), 1);
    }
    return m;
}

static uint16_t unheld(const st_host *h)
{
    uint16_t devs = (uint16_t)((1u << h->inv.n) - 1);

    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (!h->journal.tasks.v[i].clean && !h->journal.tasks.v[i].stray)
            devs &= (uint16_t)~h->journal.tasks.v[i].place.devs;
    return devs;
}

typedef struct attempt {
    st_exec *exec;
    const st_task *task;
} attempt;

/* In a worker. */
static int clear(void *ctx, st_err *err)
{
    attempt *a = ctx;

    return a->exec->ops->remove(a->exec, a->task, err);
}

static void cleared(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    st_host *h = ctx;

    h->clearing = false;
    if (r < 0)
        st_say(h, "not-cleared", "job=%s stay=%d task=%d reason=\"%s\"", key->job, key->stay,
               key->task, err->msg);
}

/* Ends what is in a group that is no task's; false: nobody is in it. */
static bool end_group(st_host *h, const char *name)
{
    int64_t left = st_run_group_end(h->exec->run, name);

    if (left > 0)
        st_say(h, "swept", "group=%s left=%" PRId64, name, left);
    return left > 0;
}

/* Another attempt of a task that is known: only what is there is too much. */
static bool end_attempt(st_host *h, const st_task *known, const st_task *t, const char *name)
{
    attempt ctx = {h->exec, t};
    st_agent_work w = {.what = "removing an earlier attempt",
                       .limit_ms = CLEAR_MS,
                       .aside = true,
                       .fn = clear,
                       .ctx = &ctx,
                       .done = cleared,
                       .done_ctx = h,
                       .key = t->key};
    st_err err = {0};
    int id;

    if (known->now.working) /* whoever is at it removes it */
        return false;
    if (end_group(h, name))
        return true;
    if (!h->clearing && h->exec->ops->there(h->exec, t))
        h->clearing = st_worker_start(h->process->workers, &w, &id, &err) == 0;
    return false;
}

/* Whether there is somebody who has to go first. */
static bool found(st_host *h, const char *name)
{
    st_task t, *old;

    if (!st_sweep_parse(name, &t))
        return end_group(h, name);
    t.place.devs = unheld(h);
    t.now.kept = 0;
    old = st_journal_find(&h->journal, &t.key);
    if (old)
        return end_attempt(h, old, &t, name);
    snprintf(t.reason, sizeof t.reason, "%s", ST_STRAY_REASON);
    st_journal_add(&h->journal, &t);
    h->dirty = h->changed = true;
    st_say(h, "stray", "job=%s stay=%d task=%d reason=\"%s\"", t.key.job, t.key.stay, t.key.task,
           ST_STRAY_REASON);
    return true;
}

size_t st_host_sweep(st_host *h, int64_t boot, bool now)
{
    typedef char name[ST_RUN_ID_MAX];
    ST_CLEANUP(st_idmap_freep) st_idmap *known = NULL;
    ST_CLEANUP(st_freep) name *names = NULL;
    size_t n = 0, strays = 0;

    if (!h->exec->run || (!now && boot < h->sweep_ms))
        return 0;
    h->sweep_ms = boot + SWEEP_MS;
    st_run_traces(h->exec->run, &names, &n);
    known = known_names(h);
    for (size_t i = 0; i < n; i++)
        if (!st_idmap_get(known, name_hash(names[i]), NULL) &&
            strncmp(names[i], ST_RUN_TRY, strlen(ST_RUN_TRY)) != 0)
            strays += found(h, names[i]);
    return strays;
}

/* ---- devices -------------------------------------------------------------------------------------- */

/* One that is paused keeps a little of its context there. */
static bool is_paused(const st_host *h, int64_t pid)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (h->journal.tasks.v[i].phase == ST_PHASE_PAUSED &&
            st_pause_has(&h->journal.tasks.v[i], pid))
            return true;
    return false;
}

/* Of a GPU that is to be one task's alone, and that nobody we know is on; pid 0: nobody can tell, for the driver
 * hangs. */
static bool held_by(st_host *h, int gpu, int64_t *ret_pid)
{
    st_gpu_proc procs[64];
    size_t n = 0;
    st_err err;

    for (size_t i = 0; i < h->daemons.n; i++)
        if (h->daemons.v[i].gpu == gpu)
            return false; /* ended before the task begins */
    if (st_gpu_procs(h->gpu, gpu, procs, ST_ARRAY_LEN(procs), &n, &err) < 0) {
        char call[64];

        st_gpu_hangs(h->gpu, call);
        *ret_pid = 0;
        return call[0] != '\0';
    }
    for (size_t i = 0; i < ST_MIN(n, ST_ARRAY_LEN(procs)); i++)
        if (!is_paused(h, procs[i].pid)) {
            *ret_pid = procs[i].pid;
            return true;
        }
    return false;
}

bool st_host_foreign(st_host *h, const st_task_place *place, char why[160])
{
    int64_t pid = 0;

    for (int d = 0; h->gpu && place->level == ST_LEVEL_WHOLE && d < h->inv.n; d++) {
        char path[64];
        ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};

        if (!(place->devs >> d & 1) || !held_by(h, d, &pid))
            continue;
        if (pid == 0) {
            snprintf(why, 160, "GPU %d: " ST_GPU_HANGS, d);
            return true;
        }
        snprintf(path, sizeof path, "/proc/%" PRId64, pid);
        if (st_file_load(path, "comm", &name, NULL) < 0)
            st_strbuf_add(&name, "unknown");
        snprintf(why, 160, "GPU %d is in use by process %" PRId64 " (%.32s), which is no task's", d,
                 pid, st_strbuf_str(&name));
        return true;
    }
    return false;
}
