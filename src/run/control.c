/*
 * What can be done with a task that exists: look, signal, kill, wait, forget. All of it works
 * for tasks started by somebody else, as long as the state directory is the same.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "run/cache.h"
#include "run/log.h"
#include "run/net.h"
#include "run/os.h"
#include "run/segment.h"
#include "run/state.h"

#define CLEAN_UP_MS 5000

int st_run_folder(const st_run *run, const char *id, char ret[PATH_MAX], st_err *err)
{
    return st_state_dir(run, id, ret, err);
}

int st_run_get(const st_run *run, const char *id, st_run_task *ret, st_err *err)
{
    char dir[PATH_MAX];
    int r = st_state_dir(run, id, dir, err);

    if (r)
        return r;
    if (access(dir, F_OK) != 0)
        return st_fail(err, ST_ENOENT, "there is no task %s on this node", id);
    return st_state_read(run, dir, ret, err);
}

bool st_run_node_fault(const st_err *err)
{
    /* Refused: the node lacks what only some tasks need. */
    return err->code == ST_EREFUSED || err->code == ST_EFULL || err->code == ST_EIO ||
           err->code == ST_EDOWN || err->code == ST_EINTERNAL;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const st_run_task *)a)->id, ((const st_run_task *)b)->id);
}

int st_run_list(const st_run *run, st_run_task **ret, size_t *ret_n, size_t *ret_bad, st_err *err)
{
    ST_VEC(st_run_task) tasks = {0};
    char top[PATH_MAX], dir[PATH_MAX];
    size_t bad = 0;
    int r = st_os_path(top, err, "%s/tasks", run->state_dir);

    if (r)
        return r;
    DIR *d = opendir(top);

    if (!d)
        return st_fail(err, ST_EIO, "cannot read %s: %s", top, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        st_run_task task;

        if (e->d_name[0] == '.')
            continue;
        if (st_os_path(dir, NULL, "%s/%s", top, e->d_name) == 0 &&
            st_state_read(run, dir, &task, NULL) == 0)
            st_vec_push(&tasks, task);
        else
            bad++;
    }
    closedir(d);
    if (tasks.n > 0)
        qsort(tasks.v, tasks.n, sizeof(tasks.v[0]), by_id);
    *ret = tasks.v;
    *ret_n = tasks.n;
    *ret_bad = bad;
    return 0;
}

static bool over(const st_run_task *task)
{
    return task->state == ST_RUN_ENDED || task->state == ST_RUN_LOST;
}

int st_run_wait(const st_run *run, const char *id, int64_t timeout_ms, st_run_task *ret,
                st_err *err)
{
    int64_t until = st_os_mono_ms() + timeout_ms;
    st_run_task task;

    for (;;) {
        int r = st_run_get(run, id, &task, err);

        if (r)
            return r;
        if (over(&task))
            break;
        if (st_os_mono_ms() >= until)
            return st_fail(err, ST_EDOWN, "task %s is still %s after %lld ms", id,
                           st_run_state_name(task.state), (long long)timeout_ms);
        st_os_sleep_ms(5);
    }
    *ret = task;
    return 0;
}

int st_run_signal(const st_run *run, const char *id, int signal, st_err *err)
{
    st_run_task task;
    int r = st_run_get(run, id, &task, err);

    if (r)
        return r;
    if (signal <= 0 || signal > SIGRTMAX || signal == SIGKILL || signal == SIGSTOP)
        return st_fail(err, ST_EINVAL, "signal %d cannot be sent to a task", signal);
    /* Before its command is about to begin, process 1 has no ear for signals: the kernel drops them. */
    if (task.init_pid <= 0 || task.started_us == 0 || over(&task))
        return st_fail(err, ST_ESTATE, "task %s is %s, it takes no signals", id,
                       st_run_state_name(task.state));
    /* The descriptor is the process, whatever happens to its number; so look twice. */
    ST_CLEANUP(st_os_closep) int fd = (int)syscall(SYS_pidfd_open, task.init_pid, 0);
    st_run_task again;

    if (fd < 0 || st_run_get(run, id, &again, NULL) != 0 || again.init_pid != task.init_pid ||
        syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) != 0)
        return st_fail(err, ST_ESTATE, "task %s has just ended", id);
    return 0;
}

int st_run_tell(const st_run *run, const char *id, st_run_told told, st_err *err)
{
    char dir[PATH_MAX];
    int r = st_state_dir(run, id, dir, err);

    return r ? r : st_told_write(dir, told, err);
}

/* The control group of a task: as its plan has it; where that is lost, by its name. What runs is in
 * there, whatever became of our files. */
static int group_of(const st_run *run, const char *id, char ret[256], st_err *err)
{
    char dir[PATH_MAX], name[ST_RUN_ID_MAX];
    st_plan plan;
    int r = st_state_dir(run, id, dir, err);

    if (r)
        return r;
    if (st_plan_read(dir, &plan, NULL) == 0) {
        memcpy(ret, plan.cgroup, sizeof(plan.cgroup));
        return 0;
    }
    st_state_name(id, name);
    snprintf(ret, 256, "%.127s/%s", run->cgroup_root, name);
    return 0;
}

int st_run_count(const st_run *run, const char *id, int64_t *ret, st_err *err)
{
    char group[256];
    int r = group_of(run, id, group, err);

    if (r == 0)
        *ret = st_cg_count(&run->cg, group);
    return r;
}

typedef char trace[ST_RUN_ID_MAX];
typedef ST_VEC(trace) traces;

static void add_traces(const char *top, st_map *seen, traces *ret)
{
    DIR *d = opendir(top);

    for (struct dirent *e; d && (e = readdir(d));) {
        bool folder = e->d_type == DT_DIR || e->d_type == DT_UNKNOWN;

        if (!folder || e->d_name[0] == '.' || strlen(e->d_name) >= sizeof(trace) ||
            st_map_get(seen, e->d_name, NULL))
            continue;
        st_map_put(seen, e->d_name, 1);
        st_vec_reserve(ret, ret->n + 1);
        snprintf(ret->v[ret->n++], sizeof(trace), "%.*s", (int)sizeof(trace) - 1, e->d_name);
    }
    if (d)
        closedir(d);
}

static int backwards(const void *a, const void *b)
{
    return -strcmp(a, b);
}

void st_run_traces(const st_run *run, char (**ret)[ST_RUN_ID_MAX], size_t *ret_n)
{
    ST_CLEANUP(st_map_freep) st_map *seen = st_map_new();
    traces all = {0};
    char top[PATH_MAX];

    for (int i = 0; i < run->cg.nall; i++)
        if (st_os_path(top, NULL, "%s/%s", run->cg.all[i], run->cgroup_root) == 0)
            add_traces(top, seen, &all);
    if (st_os_path(top, NULL, "%s/tasks", run->state_dir) == 0)
        add_traces(top, seen, &all);
    if (all.n > 0)
        qsort(all.v, all.n, sizeof(all.v[0]), backwards);
    *ret = all.v;
    *ret_n = all.n;
}

int64_t st_run_group_end(const st_run *run, const char *name)
{
    char group[256];

    snprintf(group, sizeof group, "%.127s/%.95s", run->cgroup_root, name);
    int64_t left = st_cg_kill_wait(&run->cg, group, 0);

    if (left == 0)
        st_cg_remove(&run->cg, group);
    return left;
}

int st_run_pids(const st_run *run, const char *id, int64_t *buf, size_t room, size_t *ret_n,
                st_err *err)
{
    char group[256];
    int r = group_of(run, id, group, err);

    if (r == 0)
        *ret_n = st_cg_pids(&run->cg, group, buf, room);
    return r;
}

int st_run_kill(const st_run *run, const char *id, const char *reason, int64_t timeout_ms,
                st_err *err)
{
    int64_t until = st_os_mono_ms() + timeout_ms;
    char dir[PATH_MAX];
    st_plan plan;
    st_run_task task;
    int r = st_run_get(run, id, &task, err);

    if (r == -ST_ENOENT) { /* its folder is lost; what runs is not */
        char group[256];

        r = group_of(run, id, group, err);
        if (r == 0 && st_cg_kill_wait(&run->cg, group, timeout_ms) > 0)
            r = st_fail(err, ST_EDOWN, "task %s, whose folder is lost, has processes left", id);
        return r;
    }
    if (r || (r = st_state_dir(run, id, dir, err)) != 0 || (r = st_plan_read(dir, &plan, err)) != 0)
        return r;
    /* A disk too full for the reason must not save it. */
    if (!over(&task))
        (void)st_kill_write(dir, reason, NULL);
    for (;;) {
        int64_t left = st_cg_kill_wait(&run->cg, plan.cgroup, ST_MAX(until - st_os_mono_ms(), 0));

        r = st_run_get(run, id, &task, err);
        if (r)
            return r;
        /* Until its end is recorded, one may still be on its way into the group. */
        if (left == 0 && (over(&task) || !st_state_locked(dir)))
            return 0;
        if (st_os_mono_ms() >= until)
            return st_fail(err, ST_EDOWN,
                           "task %s: %lld processes are left %lld ms after they were killed", id,
                           (long long)left, (long long)timeout_ms);
        st_os_sleep_ms(2);
    }
}

int st_run_remove(const st_run *run, const char *id, st_err *err)
{
    int64_t until = st_os_mono_ms() + CLEAN_UP_MS;
    char dir[PATH_MAX], said[256];
    st_plan plan;
    st_run_task task;
    bool segment;
    int r = st_state_dir(run, id, dir, err);

    if (r == 0)
        r = st_run_get(run, id, &task, err);
    /* A removal that was cut short: only what is over is removed, and the plan goes with the rest. */
    if (r == -ST_ENOENT && access(dir, F_OK) == 0 && !st_state_locked(dir))
        return st_os_remove_tree(dir, err);
    if (r || (r = st_plan_read(dir, &plan, err)) != 0)
        return r;
    if (!over(&task) || st_cg_count(&run->cg, plan.cgroup) > 0)
        return st_fail(err, ST_ESTATE, "task %s is %s; kill it first", id,
                       st_run_state_name(task.state));
    while (st_state_locked(dir)) {
        if (st_os_mono_ms() > until)
            return st_fail(err, ST_ESTATE, "the supervisor of task %s has not finished", id);
        st_os_sleep_ms(5);
    }
    if (task.state == ST_RUN_LOST) { /* nobody has cleaned up */
        const char *argv[] = {plan.runtime, "--root", plan.runtime_root, "delete", "--force",
                              plan.name,    NULL};

        (void)st_os_run(argv, said, sizeof(said));
        st_cg_remove(&run->cg, plan.cgroup);
    }
    segment = st_segment_noted(dir);
    r = st_os_remove_tree(dir, err);
    if (segment) /* if not now, then with the next look at all of them */
        (void)st_segment_settle(run, plan.tenant, NULL);
    return r;
}

int st_run_segments(const st_run *run, st_err *err)
{
    return st_segment_settle(run, NULL, err);
}

bool st_run_segmented(const st_run *run)
{
    return st_net_there(run->state_dir, ST_SEGMENT_HOLD);
}

int st_run_tidy(const st_run *run, st_err *err)
{
    ST_CLEANUP(st_freep) st_run_task *tasks = NULL;
    char images[PATH_MAX], dir[PATH_MAX];
    size_t n = 0, bad = 0;
    st_plan plan;
    int r = st_os_path(images, err, "%s/images/", run->state_dir);

    if (r == 0)
        r = st_run_list(run, &tasks, &n, &bad, err);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (tasks[i].state != ST_RUN_ENDED && st_state_dir(run, tasks[i].id, dir, NULL) == 0 &&
            st_plan_read(dir, &plan, NULL) == 0 && strncmp(plan.lower, images, strlen(images)) == 0)
            return st_fail(err, ST_ESTATE, "task %s still runs from a layer of an earlier version",
                           tasks[i].id);
    return r ? r : st_cache_tidy(images, err);
}

void st_run_rest(const st_run *run)
{
    ST_CLEANUP(st_freep) st_run_task *tasks = NULL;
    size_t n = 0, bad = 0;

    if (st_run_list(run, &tasks, &n, &bad, NULL) != 0 || bad > 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!over(&tasks[i]))
            return;
    st_cg_remove(&run->cg, run->cgroup_root);
}

int st_run_clear(st_run *run, st_err *err)
{
    st_run_task *tasks = NULL;
    size_t n = 0, bad = 0;
    char net[PATH_MAX];
    int r = st_run_list(run, &tasks, &n, &bad, err);

    free(tasks);
    if (r || (r = st_os_path(net, err, "%s/net", run->state_dir)) != 0)
        return r;
    if (n + bad > 0)
        return st_fail(err, ST_ESTATE, "%s still holds %zu tasks", run->state_dir, n + bad);
    DIR *d = opendir(net);

    st_segment_clear(run);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            st_net_forget(run->state_dir, e->d_name);
    if (d)
        closedir(d);
    st_cg_remove(&run->cg, run->cgroup_root);
    return st_os_remove_tree(run->state_dir, err);
}

int st_run_log_read(const st_run *run, const char *id, st_run_stream stream, int64_t offset,
                    char *buf, size_t cap, st_run_piece *ret, st_err *err)
{
    char dir[PATH_MAX], logs[PATH_MAX];
    st_run_piece piece;
    int r = st_state_dir(run, id, dir, err);

    if (r || (r = st_os_path(logs, err, "%s/logs", dir)) != 0)
        return r;
    if (offset < 0)
        return st_fail(err, ST_ERANGE, "an offset is not negative");
    r = st_log_read(logs, stream == ST_RUN_OUT ? "out" : "err", offset, buf, cap, &piece.n,
                    &piece.offset, &piece.end, err);
    if (!r)
        *ret = piece;
    return r;
}
