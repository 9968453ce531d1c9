/*
 * A task held still for a while: its processes frozen and counted by name, its RAM limit and its
 * deadline moved. What is done here is undone by the same calls; the supervisor runs on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/os.h"
#include "run/state.h"

static int plan_of(const st_run *run, const char *id, st_plan *ret, st_err *err)
{
    char dir[PATH_MAX];
    int r = st_state_dir(run, id, dir, err);

    return r ? r : st_plan_read(dir, ret, err);
}

int st_run_freeze(const st_run *run, const char *id, bool on, int64_t timeout_ms, st_err *err)
{
    int64_t until = st_os_mono_ms() + timeout_ms;
    st_plan plan;
    int r = plan_of(run, id, &plan, err);

    if (r)
        return r;
    for (;;) {
        r = st_cg_freeze(&run->cg, plan.cgroup, on);
        if (r == 1)
            return 0;
        if (r < 0)
            return st_fail(err, ST_EDOWN, "task %s cannot be %s: %s", id, on ? "frozen" : "thawed",
                           strerror(errno));
        if (st_os_mono_ms() >= until)
            return st_fail(err, ST_EDOWN, "task %s is not %s after %lld ms", id,
                           on ? "frozen" : "thawed", (long long)timeout_ms);
        st_os_sleep_ms(2);
    }
}

int st_run_ram(const st_run *run, const char *id, int64_t *ret_used, int64_t *ret_limit,
               st_err *err)
{
    st_plan plan;
    int r = plan_of(run, id, &plan, err);

    if (r == 0 && !st_cg_memory(&run->cg, plan.cgroup, ret_used, ret_limit))
        r = st_fail(err, ST_EDOWN, "the memory of task %s cannot be read", id);
    return r;
}

int st_run_ram_limit(const st_run *run, const char *id, int64_t bytes, st_err *err)
{
    st_plan plan;
    int r = plan_of(run, id, &plan, err);

    if (r == 0 && !st_cg_memory_limit(&run->cg, plan.cgroup, bytes))
        r = st_fail(err, ST_EDOWN, "the memory limit of task %s cannot be made %lld bytes: %s", id,
                    (long long)bytes, strerror(errno));
    return r;
}

int st_run_deadline(const st_run *run, const char *id, int64_t deadline_ms, st_err *err)
{
    char dir[PATH_MAX];
    int r = st_state_dir(run, id, dir, err);

    return r ? r : st_deadline_write(dir, deadline_ms, err);
}

uint64_t st_run_birth(int pid)
{
    return st_os_birth(pid);
}
