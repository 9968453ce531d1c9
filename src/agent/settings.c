/*
 * The settings of a node's GPUs: MIG mode, slices, compute mode. The agent sets them as its tasks need, or, with
 * `--settings leave`, somebody else does, and it takes them as they are:
 *
 *  1 Nothing of them is changed, whatever a task would need.
 *  2 A task that they do not suit is refused with the reason before anything of it is begun, as the node's fault.
 *  3 Level mps runs in the compute mode that is there. In the default one the driver does not keep a task to its
 *    daemon; `stint-agent doctor` says so.
 */
#include <string.h>

#include "agent/host.h"

bool st_settings_left(const st_agent_conf *conf)
{
    return conf->settings && strcmp(conf->settings, "leave") == 0;
}

static bool left(const st_host *h)
{
    return st_settings_left(h->process->conf);
}

int st_host_set_mode(st_host *h, int gpu, st_gpu_mode mode, st_err *err)
{
    int r;

    if (!h->gpu || gpu >= h->inv.n || left(h))
        return 0;
    r = st_gpu_set_mode(h->gpu, gpu, mode, err);
    if (r == 0)
        h->inv.gpu[gpu].mode = (int)mode;
    return r;
}

int st_host_mig_mode(st_host *h, int gpu, bool on, st_err *err)
{
    int r;

    if (h->inv.gpu[gpu].mig_on == on)
        return 0;
    if (left(h))
        return st_fail(err, ST_EDOWN, "MIG of GPU %d is %s and stays so (--settings leave)", gpu,
                       on ? "off" : "on");
    r = st_gpu_mig_mode(h->gpu, gpu, on, err);
    if (r == 0)
        h->inv.gpu[gpu].mig_on = on;
    return r;
}

int st_host_slices_set(st_host *h, int gpu, const st_gpu_slot *wanted, int n,
                       st_gpu_reconciled *ret, st_err *err)
{
    int r;

    if (left(h)) { /* a task without its slice is refused (2) */
        *ret = (st_gpu_reconciled){0};
        return 0;
    }
    r = n > 0 ? st_host_mig_mode(h, gpu, true, err) : 0;
    return r == 0 ? st_gpu_mig_reconcile(h->gpu, gpu, wanted, n, ret, err) : r;
}

static int suits(st_host *h, const st_task_place *p, int gpu, st_err *err)
{
    const st_gpu_info *i = &h->inv.gpu[gpu];
    st_gpu_instance slice;
    int r = st_host_mig_mode(h, gpu, p->level == ST_LEVEL_MIG, err);

    if (r < 0)
        return r;
    if (p->level == ST_LEVEL_MIG && !st_host_slice(h, p, &slice))
        return st_fail(
            err, ST_EDOWN,
            "GPU %d has no slice %s at memory slice %d, and none is made (--settings leave)", gpu,
            st_mig_name(i->board, (st_mig)p->mig_profile), p->mig_start);
    if (i->mode == (int)ST_GPU_MODE_PROHIBITED ||
        (p->level == ST_LEVEL_TIME && i->mode != (int)ST_GPU_MODE_DEFAULT))
        return st_fail(err, ST_EDOWN,
                       "GPU %d is in compute mode %s and stays so (--settings leave)", gpu,
                       i->mode == (int)ST_GPU_MODE_PROHIBITED ? "prohibited" : "exclusive");
    return 0;
}

int st_settings_suit(st_host *h, const st_task_place *p, st_err *err)
{
    int r = 0;

    for (int d = 0; h->gpu && left(h) && r == 0 && d < h->inv.n; d++)
        if (p->devs >> d & 1)
            r = suits(h, p, d, err);
    return r;
}
