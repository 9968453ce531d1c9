/*
 * Watching the memory of shared GPUs (agent/watch.h).
 */
#include "agent/watch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/host.h"
#include "base/mem.h"
#include "guard/abi.h"

#define PIDS_MAX 4096
#define AROUND   10 /* looks, a second apart */

int64_t st_watch_sum(const st_gpu_proc *procs, size_t n, const int64_t *pids, size_t npids)
{
    int64_t sum = 0;

    for (size_t i = 0; i < npids; i++) {
        int64_t most = 0;

        for (size_t k = 0; k < n; k++)
            if (procs[k].pid == pids[i])
                most = ST_MAX(most, procs[k].mem_mib);
        sum += most;
    }
    return sum;
}

bool st_watch_above(int64_t used_mib, int64_t granted_mib)
{
    return used_mib > granted_mib + ST_WATCH_CONTEXT_MIB;
}

static bool watched(const st_task *t, int gpu)
{
    return t->phase == ST_PHASE_RUNNING && (t->place.devs >> gpu & 1) &&
           (t->place.level == ST_LEVEL_TIME || t->place.level == ST_LEVEL_MPS);
}

/* Everybody on the GPU; the caller frees it. */
static bool list_procs(st_host *h, int gpu, st_gpu_proc **ret, size_t *ret_n)
{
    ST_VEC(st_gpu_proc) v = {0};
    size_t n = 32;
    st_err err;

    for (int tries = 0; tries < 3; tries++) {
        size_t room = n + 32;

        st_vec_reserve(&v, room);
        if (st_gpu_procs(h->gpu, gpu, v.v, room, &n, &err) < 0)
            break;
        if (n <= room) {
            *ret = v.v;
            *ret_n = n;
            return true;
        }
    }
    st_vec_free(&v);
    return false;
}

static size_t pids_of(st_host *h, const st_task *t, int64_t pids[PIDS_MAX])
{
    size_t n = 0;
    st_err err;

    if (!h->exec->ops->pids || h->exec->ops->pids(h->exec, t, pids, PIDS_MAX, &n, &err) < 0)
        n = 0;
    n = ST_MIN(n, (size_t)PIDS_MAX);
    if (h->sim_gpus && n < PIDS_MAX) /* one that has no container is seen by this */
        pids[n++] = st_host_sim_pid(t);
    return n;
}

/* ---- processes that the guard does not know ------------------------------------------------------- */

int64_t st_watch_inside(const char *status)
{
    const char *at = strstr(status, "\nNSpid:");
    int64_t pid = -1;
    int n;

    for (at = at ? at + strlen("\nNSpid:") : ""; sscanf(at, " %" SCNd64 "%n", &pid, &n) == 1;
         at += n)
        if (at[n] == '\n' || at[n] == '\0')
            break;
    return pid;
}

static int64_t pid_inside(int64_t pid)
{
    char path[64], text[4096];
    int fd;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%" PRId64 "/status", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return st_watch_inside(text);
}

static bool listed(const guard_usage *b, int64_t pid)
{
    for (int i = 0; i < GUARD_PROCS; i++)
        if (atomic_load(&b->proc[i].pid) == (uint32_t)pid)
            return true;
    return false;
}

/* A process of the task on this GPU that its book does not have; 0: none. One that is on its way out is no more in the book and
 * still on the device, so nobody is judged by one look. */
static int64_t around(st_host *h, const st_task *t, int gpu, const st_gpu_proc *procs, size_t n,
                      const int64_t *pids, size_t npids)
{
    ST_CLEANUP(st_freep) guard_usage *b = NULL;
    char dir[PATH_MAX];

    if (h->sim_gpus || t->place.level != ST_LEVEL_TIME || !st_host_guard_dir(h, t, gpu, dir))
        return 0;
    b = st_xcalloc(1, sizeof *b);
    if (!st_guard_read_usage(dir, b))
        return 0;
    for (size_t i = 0; i < npids; i++)
        for (size_t k = 0; k < n; k++) {
            int64_t inside = procs[k].pid == pids[i] ? pid_inside(pids[i]) : -1;

            if (inside > 0 && !listed(b, inside))
                return pids[i];
        }
    return 0;
}

static bool end_around(st_host *h, st_task *t, int gpu, int64_t pid, int64_t now)
{
    char reason[ST_TASK_REASON_MAX];

    t->now.around = pid ? t->now.around + 1 : 0;
    if (t->now.around < AROUND)
        return false;
    snprintf(reason, sizeof reason,
             "a process of it (%" PRId64
             ") uses GPU %d without the limits of a shared GPU: a program "
             "that is linked statically, or takes the driver past the linker",
             pid, gpu);
    st_host_kill(h, t, reason, now);
    return true;
}

static void watch_gpu(st_host *h, int gpu, int64_t now)
{
    int64_t pids[PIDS_MAX];
    char reason[ST_TASK_REASON_MAX];
    st_gpu_proc *procs = NULL;
    size_t n = 0, npids;

    if (!list_procs(h, gpu, &procs, &n))
        return;
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];
        int64_t used, granted;

        if (!watched(t, gpu))
            continue;
        npids = pids_of(h, t, pids);
        if (end_around(h, t, gpu, around(h, t, gpu, procs, n, pids, npids), now))
            continue;
        used = st_watch_sum(procs, n, pids, npids);
        granted = st_host_granted_mib(h, &t->place, gpu);
        if (!st_watch_above(used, granted))
            continue;
        snprintf(reason, sizeof reason,
                 "it used %" PRId64 " MiB of GPU %d, and %" PRId64 " MiB are granted to it", used,
                 gpu, granted);
        st_host_kill(h, t, reason, now);
    }
    free(procs);
}

void st_host_watch(st_host *h, int64_t now)
{
    for (int d = 0; h->gpu && d < h->inv.n; d++)
        for (size_t i = 0; i < h->journal.tasks.n; i++)
            if (watched(&h->journal.tasks.v[i], d)) {
                watch_gpu(h, d, now);
                break;
            }
}
