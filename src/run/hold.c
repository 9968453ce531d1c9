/*
 * A task held still for a while: its processes frozen and counted by name, its RAM limit and its
 * deadline moved. What is done here is undone by the same calls; the supervisor runs on.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

int st_run_cpus(const st_run *run, const char *id, const char *cpus, st_err *err)
{
    st_plan plan;
    int r = plan_of(run, id, &plan, err);

    if (r == 0 && !st_cg_cpus(&run->cg, plan.cgroup, cpus))
        r = st_fail(err, ST_EDOWN, "task %s cannot be held to CPUs %s: %s", id, cpus,
                    strerror(errno));
    return r;
}

/* The file in the task's own /dev, which is in memory and nobody else's; links in there lead nowhere. */
static int make_node(const st_run_task *task, const char *path, dev_t dev, st_err *err)
{
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
    char root[PATH_MAX];
    ST_CLEANUP(st_os_closep) int top = -1;
    ST_CLEANUP(st_os_closep) int dir = -1;

    if (st_os_path(root, err, "/proc/%d/root", task->init_pid) != 0)
        return -ST_EINVAL;
    top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top >= 0)
        dir = (int)syscall(SYS_openat2, top, "dev", &how, sizeof(how));
    if (dir < 0 ||
        (mknodat(dir, path + strlen("/dev/"), S_IFCHR | 0666, dev) != 0 && errno != EEXIST))
        return st_fail(err, ST_EIO, "task %s cannot be given %s: %s", task->id, path,
                       strerror(errno));
    if (fchmodat(dir, path + strlen("/dev/"), 0666, 0) != 0)
        return st_fail(err, ST_EIO, "task %s cannot open %s: %s", task->id, path, strerror(errno));
    return 0;
}

int st_run_device_add(const st_run *run, const char *id, const char *path, st_err *err)
{
    st_run_task task;
    struct stat st;
    st_plan plan;
    int r = plan_of(run, id, &plan, err);

    if (r == 0)
        r = st_run_get(run, id, &task, err);
    if (r)
        return r;
    if (strncmp(path, "/dev/", 5) != 0 || strchr(path + 5, '/') || stat(path, &st) != 0 ||
        !S_ISCHR(st.st_mode))
        return st_fail(err, ST_EINVAL, "%s is no device of this node", path);
    if (task.init_pid <= 0)
        return st_fail(err, ST_ESTATE, "task %s does not run", id);
    if (!st_cg_allow(&run->cg, plan.cgroup, major(st.st_rdev), minor(st.st_rdev)))
        return st_fail(err, ST_EDOWN, "task %s cannot be given %s while it runs: %s", id, path,
                       run->cg.devices[0] ? strerror(errno)
                                          : "cgroups of version 2 do not allow it");
    return make_node(&task, path, st.st_rdev, err);
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
