/* How long a job has to save when it must yield, once its notice is over:
 *
 *   what it was submitted with, else the policy's `grace`;
 *   who pauses has more where that was measured: what its memory takes to be moved at the speed of its GPU type, and what
 *   its own last pause took, with a quarter on top;
 *   never more than the policy's `grace_limit`, if that is longer than `grace`.
 *
 * A pause that did not end in time is taken to need half as long again: that counts for the job alone, so that nobody makes
 * the pauses of others longer. Bookings, and nodes that drain by some time, count the longest grace there can be. */
#include "base/macros.h"
#include "base/num.h"
#include "core/state.h"

#define GIB 1024
#define DAY INT64_C(86400000)

int64_t st_core_longest_grace_ms(const st_core *core)
{
    return ST_MAX(core->policy.grace_ms, core->policy.grace_limit_ms);
}

bool st_core_saves(const st_job *job)
{
    return job->yield == ST_YIELD_CHECKPOINT || job->yield == ST_YIELD_PAUSE;
}

/* Device memory of one task: as much as it may use, since nobody knows how much it does. */
static int64_t task_mib(const st_fleet *fleet, const st_job *job)
{
    const st_gpu_type *type = &fleet->types.v[job->type];
    switch (job->shape.level) {
    case ST_LEVEL_WHOLE:
        return type->vram_mib * job->shape.gpus;
    case ST_LEVEL_MIG:
        return st_mig_vram_mib(type->board, job->shape.profile);
    default:
        return st_share_vram_mib(fleet, &job->shape, job->type);
    }
}

/* What has to be moved on the node with most of it: nodes work side by side, tasks on one node do not. */
static int64_t moved_mib(const st_core *core, const st_job *job)
{
    int most = 0, here = 0;
    if (job->type < 0 || !job->grants || job->shape.gpus == 0)
        return 0;
    for (int t = 0; t < job->tasks; t++) {
        here = t > 0 && job->grants[t].node == job->grants[t - 1].node ? here + 1 : 1;
        most = ST_MAX(most, here);
    }
    return most * task_mib(core->fleet, job);
}

static int64_t pause_ms(const st_core *core, const st_job *job)
{
    int64_t gib = (moved_mib(core, job) + GIB - 1) / GIB;
    int64_t slow_ms = job->type < 0 ? 0 : core->pause_gib_ms[job->type];
    int64_t by_speed_ms = gib > 0 && slow_ms > DAY / gib ? DAY : slow_ms * gib;
    int64_t ms = ST_MAX(by_speed_ms, job->pause_ms);
    return ms + ms / 4;
}

int64_t st_core_grace_ms(const st_core *core, const st_job *job)
{
    int64_t ms = job->grace_ms > 0 ? job->grace_ms : core->policy.grace_ms;
    if (job->yield == ST_YIELD_PAUSE && core->policy.grace_limit_ms > core->policy.grace_ms)
        ms = ST_MAX(ms, pause_ms(core, job));
    return ST_MIN(ms, st_core_longest_grace_ms(core));
}

void st_core_paused_in(st_core *core, st_job *job, int64_t took_ms, bool done)
{
    int64_t gib = (moved_mib(core, job) + GIB - 1) / GIB;
    job->pause_ms = done ? took_ms : ST_MIN(took_ms + took_ms / 2, DAY);
    if (!done || gib == 0)
        return;
    int64_t *slow_ms = &core->pause_gib_ms[job->type], was_ms = *slow_ms;
    int64_t now_ms = (took_ms + gib - 1) / gib;
    /* Slower counts at once, faster by and by. */
    *slow_ms = now_ms > was_ms ? now_ms : was_ms - (was_ms - now_ms) / 8;
    if (*slow_ms != was_ms && core->policy.grace_limit_ms > core->policy.grace_ms)
        st_core_retime_all(core); /* others like it leave later, or sooner */
}

int st_core_check_grace(const st_core *core, const st_job_spec *spec, st_err *err)
{
    int64_t most_ms = st_core_longest_grace_ms(core);
    char asked[ST_FMT_MAX], most[ST_FMT_MAX];
    if (spec->grace_ms < 0)
        return st_fail(err, ST_ERANGE, "job %s: its grace is negative", spec->name);
    if (spec->grace_ms <= most_ms)
        return 0;
    st_fmt_duration(asked, spec->grace_ms);
    st_fmt_duration(most, most_ms);
    return st_fail(
        err, ST_ELIMIT,
        "job %s: it asks for %s to save its work; the most is %s (the policies grace and "
        "grace_limit)",
        spec->name, asked, most);
}
