/*
 * Watching the memory of shared GPUs (agent/watch.h).
 */
#include "agent/watch.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/host.h"

#define PIDS_MAX 4096

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

static void watch_gpu(st_host *h, int gpu, int64_t now)
{
    int64_t pids[PIDS_MAX];
    char reason[ST_TASK_REASON_MAX];
    st_gpu_proc *procs = NULL;
    size_t n = 0;

    if (!list_procs(h, gpu, &procs, &n))
        return;
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        st_task *t = &h->journal.tasks.v[i];
        int64_t used, granted;

        if (!watched(t, gpu))
            continue;
        used = st_watch_sum(procs, n, pids, pids_of(h, t, pids));
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
