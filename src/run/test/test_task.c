/*
 * The life of a task with real containers: exit statuses, signals, output, ends, and
 * what a starter that died left running. Skipped where containers cannot run.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/os.h"
#include "run/state.h"
#include "run/test/help.h"

static bench_node *node_of(void **state)
{
    bench_node *node = *state;

    if (!node->run)
        skip();
    return node;
}

static void exit_status_is_reported(void **state)
{
    bench_node *node = node_of(state);
    static const struct {
        const char *script;
        int status, signal;
    } rows[] = {{"true", 0, 0},
                {"false", 1, 0},
                {"exit 42", 42, 0},
                {"kill -9 $$", -1, 9},
                {"kill -TERM $$", -1, 15},
                {"exit 137", 137, 0}, /* not to be taken for a kill */
                {"#!/bin/sh -e\nfalse\nexit 3", 1, 0}};

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        char id[ST_RUN_ID_MAX];
        st_run_spec spec = node_spec(node, rows[i].script, id);
        int64_t before = st_os_now_ms();
        st_run_task task = node_run(node, &spec, NULL, 0);

        assert_int_equal(task.why, ST_RUN_WHY_EXIT);
        assert_int_equal(task.status, rows[i].status);
        assert_int_equal(task.signal, rows[i].signal);
        assert_true(task.gone);
        assert_true(task.started_us / 1000 >= before && task.ended_ms >= task.started_us / 1000 &&
                    task.ended_ms <= st_os_now_ms());
    }
}

static void output_is_kept_apart_or_merged(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[256];
    st_run_spec spec = node_spec(node, "echo one; echo two >&2; printf three", id);

    node_run(node, &spec, out, sizeof(out));
    assert_string_equal(out, "one\nthree");
    node_output(node, id, ST_RUN_ERR, out, sizeof(out));
    assert_string_equal(out, "two\n");
    spec = node_spec(node, "echo one; echo two >&2; echo three", id);
    spec.merge_output = true;
    node_run(node, &spec, out, sizeof(out));
    assert_string_equal(out, "one\ntwo\nthree\n");
}

static void a_command_that_cannot_run_says_so(void **state)
{
    bench_node *node = node_of(state);
    static const char *const command[] = {"/no/such/program", NULL};
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, NULL, id);

    spec.command = command;
    st_run_task task = node_run(node, &spec, NULL, 0);

    assert_int_equal(task.why, ST_RUN_WHY_START);
    assert_non_null(strstr(task.text, "command not found"));
    assert_int_equal(task.status, 127);
}

static void a_runtime_that_fails_says_so(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, "true", id);
    const st_run_mount mount = {.source = "/no/such/folder", .target = "/mnt"};

    spec.mounts = &mount;
    spec.nmount = 1;
    st_run_task task = node_run(node, &spec, NULL, 0);

    assert_int_equal(task.why, ST_RUN_WHY_START);
    assert_non_null(strstr(task.text, "/no/such/folder"));
    assert_true(task.gone);
}

static void an_id_is_started_once(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, "true", id);
    st_err err = {0};

    node_run(node, &spec, NULL, 0);
    assert_fails(st_run_start(node->run, &spec, &err), ST_EEXIST, "started before");
    assert_ok(st_run_remove(node->run, id, &err));
    assert_ok(st_run_start(node->run, &spec, &err));
}

/* Whoever removed it was killed, and its plan had gone first. */
static void a_removal_cut_short_is_finished(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], name[ST_RUN_ID_MAX], dir[PATH_MAX], path[PATH_MAX];
    st_run_spec spec = node_spec(node, "true", id);
    st_err err = {0};

    node_run(node, &spec, NULL, 0);
    st_state_name(id, name);
    assert_ok(st_os_path(dir, &err, "%s/tasks/%s", node->state, name));
    assert_ok(st_os_path(path, &err, "%s/task.json", dir));
    for (int i = 0; i < 1000 && st_state_locked(dir); i++)
        st_os_sleep_ms(5);
    assert_int_equal(unlink(path), 0);
    assert_ok(st_run_remove(node->run, id, &err));
    assert_int_equal(access(dir, F_OK), -1);
    assert_fails(st_run_remove(node->run, id, &err), ST_ENOENT, "no task");
}

static void time_limit_signals_then_kills(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[256];
    st_run_spec spec =
        node_spec(node, "trap 'echo saved; exit 7' USR1; while :; do sleep 0.02; done", id);

    spec.time_limit_ms = 300;
    spec.grace_ms = 30000;
    spec.signal = SIGUSR1;
    st_run_task task = node_run(node, &spec, out, sizeof(out));

    assert_int_equal(task.why, ST_RUN_WHY_TIME);
    assert_int_equal(task.status, 7); /* the grace was enough */
    assert_non_null(strstr(out, "saved"));
    assert_true(task.ended_ms - task.started_us / 1000 >= 300);

    spec = node_spec(node, "trap '' TERM INT HUP; while :; do sleep 0.02; done", id);
    spec.time_limit_ms = 300;
    spec.grace_ms = 200;
    task = node_run(node, &spec, NULL, 0);
    assert_int_equal(task.why, ST_RUN_WHY_TIME);
    assert_int_equal(task.signal, SIGKILL);
    assert_true(task.ended_ms - task.started_us / 1000 >= 500);
}

/* Double-forked, in a session of its own, deaf to signals, with its descriptors closed. */
#define DAEMONS                                                                             \
    "for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done' " \
    ">/dev/null 2>&1 </dev/null &) ; done; sleep 0.1; "

static void daemons_end_with_their_task(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, DAEMONS "exit 5", id);
    int64_t n = -1;
    st_err err = {0};
    st_run_task task = node_run(node, &spec, NULL, 0);

    assert_int_equal(task.status, 5);
    assert_true(task.gone);
    assert_ok(st_run_count(node->run, id, &n, &err));
    assert_int_equal(n, 0);
}

static void kill_ends_what_ignores_signals(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec =
        node_spec(node, "trap '' TERM HUP INT; " DAEMONS "echo up; while :; do sleep 1; done", id);
    int64_t n = 0;
    st_run_task task;
    st_err err = {0};

    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "up");
    assert_ok(st_run_signal(node->run, id, SIGTERM, &err));
    st_os_sleep_ms(50);
    assert_ok(st_run_count(node->run, id, &n, &err));
    assert_true(n >= 4);
    assert_fails(st_run_remove(node->run, id, &err), ST_ESTATE, "kill it first");
    assert_ok(st_run_kill(node->run, id, "its owner asked", 30000, &err));
    assert_ok(st_run_count(node->run, id, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(st_run_wait(node->run, id, 30000, &task, &err));
    assert_int_equal(task.why, ST_RUN_WHY_KILLED);
    assert_string_equal(task.text, "its owner asked");
    assert_int_equal(task.signal, SIGKILL);
    assert_ok(st_run_kill(node->run, id, "again", 1000, &err)); /* harmless */
    assert_fails(st_run_signal(node->run, id, SIGTERM, &err), ST_ESTATE, "takes no signals");
}

static void kill_right_after_start(void **state)
{
    bench_node *node = node_of(state);

    for (int i = 0; i < 5; i++) {
        char id[ST_RUN_ID_MAX];
        st_run_spec spec = node_spec(node, "sleep 1000", id);
        st_run_task task;
        st_err err = {0};

        assert_ok(st_run_start(node->run, &spec, &err));
        st_os_sleep_ms(i * 7);
        assert_ok(st_run_kill(node->run, id, "changed my mind", 30000, &err));
        assert_ok(st_run_wait(node->run, id, 30000, &task, &err));
        assert_int_equal(task.why, ST_RUN_WHY_KILLED);
    }
}

static void signals_reach_the_jobs_processes(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    /* No trap: as process 1 this shell would be deaf to SIGTERM. */
    st_run_spec spec = node_spec(node, "echo up; while :; do sleep 0.05; done", id);
    st_run_task task;
    st_err err = {0};

    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "up");
    assert_ok(st_run_signal(node->run, id, SIGTERM, &err));
    assert_ok(st_run_wait(node->run, id, 30000, &task, &err));
    assert_int_equal(task.signal, SIGTERM);
    assert_fails(st_run_signal(node->run, id, SIGKILL, &err), ST_EINVAL, "cannot be sent");
}

/* A process of its own starts tasks through its own handle and is killed. */
static void start_and_die(const bench_node *node, const st_run_spec *spec)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        st_run *own = NULL;
        st_run_conf conf = node->conf;

        conf.runtime = st_run_runtime(node->run);
        if (st_run_new(&conf, &own, NULL) != 0 || st_run_start(own, spec, NULL) != 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void tasks_outlive_their_starter(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], running[ST_RUN_ID_MAX], out[256];
    st_run_spec short_one = node_spec(node, "sleep 0.3; echo done; exit 9", id);
    st_run_spec long_one = node_spec(node, "echo up; while :; do sleep 0.1; done", running);
    st_run_task *tasks = NULL, task;
    size_t n = 0, bad = 0;
    st_err err = {0};
    int found = 0;

    start_and_die(node, &short_one);
    start_and_die(node, &long_one);
    node_wait_output(node, running, "up");
    st_os_sleep_ms(800); /* nobody watches while the first one ends */
    int64_t late = st_os_now_ms();

    assert_ok(st_run_list(node->run, &tasks, &n, &bad, &err));
    assert_int_equal(bad, 0);
    for (size_t i = 0; i < n; i++)
        found += strcmp(tasks[i].id, running) == 0 && tasks[i].state == ST_RUN_RUNNING;
    free(tasks);
    assert_int_equal(found, 1);
    assert_ok(st_run_wait(node->run, id, 30000, &task, &err));
    assert_int_equal(task.status, 9);
    assert_true(task.ended_ms - task.started_us / 1000 >= 300);
    assert_true(task.ended_ms < late); /* when it ended, not when it was asked */
    node_output(node, id, ST_RUN_OUT, out, sizeof(out));
    assert_string_equal(out, "done\n");
    assert_ok(st_run_kill(node->run, running, "found", 30000, &err));
}

static void a_dead_supervisor_is_noticed(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, "echo up; trap '' PIPE; while :; do sleep 0.1; done", id);
    st_run_task task;
    int64_t n = -1;
    st_err err = {0};

    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "up");
    assert_ok(st_run_get(node->run, id, &task, &err));
    assert_int_equal(task.state, ST_RUN_RUNNING);
    kill(task.shim_pid, SIGKILL);
    for (int i = 0; i < 1000 && task.state == ST_RUN_RUNNING; i++) {
        st_os_sleep_ms(5);
        assert_ok(st_run_get(node->run, id, &task, &err));
    }
    assert_int_equal(task.state, ST_RUN_UNSUPERVISED);
    assert_ok(st_run_kill(node->run, id, "nobody watches it", 30000, &err));
    assert_ok(st_run_count(node->run, id, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(st_run_get(node->run, id, &task, &err));
    assert_int_equal(task.state, ST_RUN_LOST);
    assert_ok(st_run_remove(node->run, id, &err));
    assert_fails(st_run_get(node->run, id, &task, &err), ST_ENOENT, "no task");
}

/* Who cannot look says nothing: a task would be ended for it. */
static void no_descriptor_is_no_dead_supervisor(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], name[ST_RUN_ID_MAX], dir[PATH_MAX];
    st_run_spec spec = node_spec(node, "echo up; sleep 60", id);
    struct rlimit was, none = {0};
    st_err err = {0};

    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "up");
    st_state_name(id, name);
    assert_ok(st_os_path(dir, &err, "%s/tasks/%s", node->state, name));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none.rlim_max = was.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool locked = st_state_locked(dir);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_true(locked);
    assert_ok(st_run_kill(node->run, id, "enough", 30000, &err));
}

static void the_environment_of_a_gang(void **state)
{
    bench_node *node = node_of(state);
    static const char *const env[] = {"COLOUR=dark red", "RANK=99", NULL};
    char id[ST_RUN_ID_MAX], out[1024];
    st_run_spec spec = node_spec(node,
                                 "echo $MASTER_ADDR:$MASTER_PORT $RANK/$WORLD_SIZE $LOCAL_RANK "
                                 "$NODE_RANK \"$COLOUR\" $CUDA_VISIBLE_DEVICES $STINT_TASK; cat "
                                 "$STINT_HOSTFILE; pwd; id -u; whoami; echo $STINT_TASK_ADDRESSES; "
                                 "grep task- /etc/hosts; getent hosts $(hostname)",
                                 id);

    spec.env = env;
    spec.gpu_uuids = "GPU-a,GPU-b";
    spec.gang = (st_run_gang){.master_addr = "10.0.0.1",
                              .master_port = 29500,
                              .rank = 3,
                              .world_size = 4,
                              .local_rank = 1,
                              .node_rank = 1,
                              .hostfile = "node-a slots=2\nnode-b slots=2\n",
                              .hosts = "10.0.0.1 task-0\n10.0.0.2 task-1\n",
                              .addresses = "10.0.0.1,10.0.0.2",
                              .self = "10.0.0.2"};
    node_run(node, &spec, out, sizeof(out));
    char want[512];

    snprintf(
        want, sizeof(want),
        "10.0.0.1:29500 3/4 1 1 dark red GPU-a,GPU-b %s\nnode-a slots=2\nnode-b slots=2\n/tmp\n"
        "200001\njob\n10.0.0.1,10.0.0.2\n10.0.0.1 task-0\n10.0.0.2 task-1\n",
        id);
    assert_memory_equal(out, want, strlen(want));
    assert_int_equal(strncmp(out + strlen(want), "10.0.0.2 ", 9), 0);
}

static void a_folder_as_image(void **state)
{
    bench_node *node = node_of(state);
    static const char *const command[] = {
        "/bin/busybox", "sh", "-c", "busybox ls / | busybox tr '\\n' ' '; busybox touch /x", NULL};
    char id[ST_RUN_ID_MAX], out[1024], root[PATH_MAX], data[PATH_MAX], said[256], busybox[PATH_MAX];
    st_run_spec spec = node_spec(node, NULL, id);
    st_err err = {0};

    if (!st_os_which("busybox", busybox)) {
        printf("SKIP: busybox is not installed\n");
        skip();
    }
    assert_ok(st_os_path(root, &err, "%s/image/bin", node->dir));
    assert_ok(st_os_mkdirs(root, 0755, &err));
    const char *const copy[] = {"/bin/cp", busybox, root, NULL};

    assert_int_equal(st_os_run(copy, said, sizeof(said)), 0);
    assert_ok(st_os_path(root, &err, "%s/image", node->dir));
    spec.command = command;
    spec.image = (st_run_image){.kind = ST_IMAGE_FOLDER, .root = root};
    spec.data = node_storage(node, "red-data", spec.uid, data);
    st_run_task task = node_run(node, &spec, out, sizeof(out));

    assert_string_equal(out, "bin data dev etc proc run sys tmp ");
    assert_int_equal(task.status, 1); /* the root is read-only */
    /* The image itself stays as it was: mount points live above it. */
    assert_int_equal(access(strcat(root, "/data"), F_OK), -1);
}

/* Every mount a task sees has nodev and nosuid, but for /dev with its devices, and the empty ones with which the
 * runtime covers parts of /proc and /sys. */
static void check_mounts(char *info)
{
    int seen = 0;

    for (char *save = NULL, *line = strtok_r(info, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char at[PATH_MAX], options[256];

        assert_int_equal(sscanf(line, "%*d %*d %*s %*s %4095s %255s", at, options), 2);
        seen++;
        if (strncmp(at, "/proc/", 6) == 0 || strncmp(at, "/sys/", 5) == 0 ||
            (strncmp(at, "/dev", 4) == 0 && strcmp(at, "/dev/shm") != 0))
            continue;
        if (!strstr(options, "nosuid"))
            fail_msg("setuid works at %s (%s)", at, options);
        if (!strstr(options, "nodev"))
            fail_msg("devices work at %s (%s)", at, options);
        if (strcmp(at, "/") == 0 && strncmp(options, "ro", 2) != 0)
            fail_msg("the root can be written (%s)", options);
    }
    assert_true(seen > 8);
}

static void mounts_inside_have_no_devices_and_no_setuid(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[16384], root[PATH_MAX], data[PATH_MAX], busybox[PATH_MAX];
    static const char *const command[] = {"/bin/busybox", "cat", "/proc/self/mountinfo", NULL};
    st_err err = {0};

    for (int userns = 0; userns < 2; userns++) {
        st_run_spec spec = node_spec(node, "cat /proc/self/mountinfo", id);

        spec.userns_ids = userns * 10;
        spec.data = node_storage(node, "red-data", spec.uid, data);
        node_run(node, &spec, out, sizeof(out));
        check_mounts(out);
        if (!st_os_which("busybox", busybox))
            continue;
        assert_ok(st_os_path(root, &err, "%s/image/bin", node->dir));
        assert_ok(st_os_mkdirs(root, 0755, &err));
        const char *const copy[] = {"/bin/cp", busybox, root, NULL};

        assert_int_equal(st_os_run(copy, out, sizeof(out)), 0);
        assert_ok(st_os_path(root, &err, "%s/image", node->dir));
        spec = node_spec(node, NULL, id);
        spec.userns_ids = userns * 10;
        spec.command = command;
        spec.image = (st_run_image){.kind = ST_IMAGE_FOLDER, .root = root};
        node_run(node, &spec, out, sizeof(out));
        check_mounts(out);
    }
}

static void a_user_namespace_of_its_own(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[256], data[PATH_MAX], path[PATH_MAX];
    st_run_spec spec = node_spec(node, "id -u; cat /proc/self/uid_map; touch /data/mine", id);
    struct stat st;
    st_err err = {0};

    spec.uid = spec.gid = 300000;
    spec.userns_ids = 65536;
    spec.data = node_storage(node, "mapped", 300000, data);
    st_run_task task = node_run(node, &spec, out, sizeof(out));

    if (task.why == ST_RUN_WHY_START)
        fail_msg("%s", task.text);
    assert_int_equal(task.status, 0);
    assert_non_null(strstr(out, "300000      65536"));
    assert_ok(st_os_path(path, &err, "%s/mine", data));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 300000);
}

static int open_node(void **state)
{
    static bench_node node;

    /* So that supervisors, once orphaned, do not pile up as zombies under a test's init. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, SIG_DFL);
    node_open(&node);
    *state = &node;
    return 0;
}

static int close_node(void **state)
{
    bench_node *node = *state;

    if (node->run)
        node_close(node);
    return 0;
}

/* Held still it does nothing and its time does not pass; then it goes on where it was. */
static void a_task_is_held_still(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], one[4096], two[4096];
    st_run_spec spec =
        node_spec(node, "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.05; done", id);
    int64_t used, limit, was;
    int64_t pids[8];
    size_t n;
    st_err err = {0};
    st_run_task task;

    spec.ram_mib = 64;
    spec.time_limit_ms = 4000;
    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "3");
    assert_ok(st_run_deadline(node->run, id, 0, &err));
    assert_ok(st_run_freeze(node->run, id, true, 2000, &err));
    assert_ok(st_run_pids(node->run, id, pids, ST_ARRAY_LEN(pids), &n, &err));
    assert_true(n >= 2 && n <= ST_ARRAY_LEN(pids));
    assert_true(st_run_birth((int)pids[0]) > 0);
    assert_ok(st_run_ram(node->run, id, &used, &was, &err));
    assert_int_equal(was, INT64_C(64) << 20);
    assert_true(used > 0 && used < was);
    assert_ok(st_run_ram_limit(node->run, id, INT64_C(256) << 20, &err));
    assert_ok(st_run_ram(node->run, id, &used, &limit, &err));
    assert_int_equal(limit, INT64_C(256) << 20);
    assert_ok(st_run_ram_limit(node->run, id, was, &err));
    assert_ok(st_run_ram(node->run, id, &used, &limit, &err));
    assert_int_equal(limit, was);
    st_os_sleep_ms(100);
    node_output(node, id, ST_RUN_OUT, one, sizeof(one));
    st_os_sleep_ms(4500); /* beyond its limit */
    node_output(node, id, ST_RUN_OUT, two, sizeof(two));
    assert_string_equal(one, two);
    assert_ok(st_run_deadline(node->run, id, st_os_mono_ms() + 30000, &err));
    assert_ok(st_run_freeze(node->run, id, false, 2000, &err));
    assert_ok(st_run_wait(node->run, id, 20000, &task, &err));
    assert_int_equal(task.why, ST_RUN_WHY_EXIT);
    assert_int_equal(task.status, 0);
    assert_ok(st_run_remove(node->run, id, &err));
    assert_fails(st_run_freeze(node->run, id, true, 100, &err), ST_ENOENT, "");
}

static void a_running_task_gets_a_device(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node,
                                 "head -c 0 /dev/fuse && echo wrong; echo begun;"
                                 "while ! [ -e /dev/fuse ]; do sleep 0.05; done; sleep 0.2;"
                                 "exec 3</dev/fuse && echo opened",
                                 id);
    st_run_task task;
    st_err err = {0};
    char out[4096];

    if (access("/dev/fuse", R_OK) != 0)
        skip();
    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "begun");
    assert_fails(st_run_device_add(node->run, id, "/dev/../etc/passwd", &err), ST_EINVAL, "no dev");
    assert_fails(st_run_device_add(node->run, id, "/dev/none", &err), ST_EINVAL, "no device");
    if (st_run_device_add(node->run, id, "/dev/fuse", &err) == -ST_EDOWN) {
        assert_ok(st_run_kill(node->run, id, "no such rules", 5000, &err));
    } else {
        assert_ok(st_run_device_add(node->run, id, "/dev/fuse", &err));
        assert_ok(st_run_wait(node->run, id, 10000, &task, &err));
        node_output(node, id, ST_RUN_OUT, out, sizeof(out));
        assert_non_null(strstr(out, "opened"));
        assert_null(strstr(out, "wrong"));
    }
    assert_ok(st_run_remove(node->run, id, &err));
}

static void what_is_held_still_can_be_killed(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, "echo on; sleep 100", id);
    st_err err = {0};
    st_run_task task;

    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "on");
    assert_ok(st_run_freeze(node->run, id, true, 2000, &err));
    assert_ok(st_run_kill(node->run, id, "enough", 5000, &err));
    assert_ok(st_run_wait(node->run, id, 5000, &task, &err));
    assert_int_equal(task.why, ST_RUN_WHY_KILLED);
    assert_ok(st_run_remove(node->run, id, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_status_is_reported),
        cmocka_unit_test(a_task_is_held_still),
        cmocka_unit_test(what_is_held_still_can_be_killed),
        cmocka_unit_test(a_running_task_gets_a_device),
        cmocka_unit_test(output_is_kept_apart_or_merged),
        cmocka_unit_test(a_command_that_cannot_run_says_so),
        cmocka_unit_test(a_runtime_that_fails_says_so),
        cmocka_unit_test(an_id_is_started_once),
        cmocka_unit_test(a_removal_cut_short_is_finished),
        cmocka_unit_test(time_limit_signals_then_kills),
        cmocka_unit_test(daemons_end_with_their_task),
        cmocka_unit_test(kill_ends_what_ignores_signals),
        cmocka_unit_test(kill_right_after_start),
        cmocka_unit_test(signals_reach_the_jobs_processes),
        cmocka_unit_test(tasks_outlive_their_starter),
        cmocka_unit_test(a_dead_supervisor_is_noticed),
        cmocka_unit_test(no_descriptor_is_no_dead_supervisor),
        cmocka_unit_test(the_environment_of_a_gang),
        cmocka_unit_test(a_folder_as_image),
        cmocka_unit_test(mounts_inside_have_no_devices_and_no_setuid),
        cmocka_unit_test(a_user_namespace_of_its_own),
    };

    return cmocka_run_group_tests(tests, open_node, close_node);
}
