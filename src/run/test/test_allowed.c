/*
 * What a task may use, with real containers: RAM, CPU time, CPUs, processes. Skipped where containers cannot run.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

static void memory_limit_is_reported_as_such(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    /* A shell variable that doubles until it cannot. */
    st_run_spec spec = node_spec(node, "x=0123456789abcdef; while :; do x=$x$x; done", id);

    spec.ram_mib = 64;
    st_run_task task = node_run(node, &spec, NULL, 0);

    assert_int_equal(task.why, ST_RUN_WHY_OOM);
    assert_true(task.oom && task.gone);
}

static void cpu_limit_holds(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[512];
    st_run_spec spec = node_spec(node,
                                 "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us "
                                 "2>/dev/null",
                                 id);

    spec.cpu_m = 250;
    node_run(node, &spec, out, sizeof(out));
    assert_non_null(strstr(out, "25000"));
}

/* Without its limit a command does not begin, and that is the node's fault. On version 1 a group may not have more than
 * the group around it. */
static void a_cpu_limit_that_cannot_be_set_is_the_nodes_fault(void **state)
{
    bench_node tight = *node_of(state);
    char id[ST_RUN_ID_MAX], out[64] = "", top[PATH_MAX];
    st_err err = {0};
    st_cg cg;

    st_cg_find(&cg);
    if (!cg.cpu[0])
        skip();
    snprintf(tight.cgroup, sizeof(tight.cgroup), "stint-test-tight-%d", (int)getpid());
    snprintf(top, sizeof(top), "%s/%s", cg.cpu, tight.cgroup);
    tight.conf.cgroup_root = tight.cgroup;
    assert_ok(st_run_new(&tight.conf, &tight.run, &err));
    assert_true(mkdir(top, 0755) == 0 || errno == EEXIST);
    assert_true(st_cg_cpu_limit(&cg, tight.cgroup, 500));
    st_run_spec spec = node_spec(&tight, "echo ran", id);

    spec.id = "tight/1/0";
    spec.cpu_m = 1000;
    st_run_task task = node_run(&tight, &spec, out, sizeof(out));

    assert_ok(st_run_remove(tight.run, spec.id, &err));
    st_cg_remove(&cg, tight.cgroup);
    st_run_free(tight.run);
    assert_int_equal(task.why, ST_RUN_WHY_START);
    assert_true(task.node_fault && task.gone);
    assert_non_null(strstr(task.text, "CPU limit"));
    assert_string_equal(out, "");
}

/* The CPUs a task was given are those it sees, and it gets to no others. */
static void cpus_are_pinned(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[1024], first[16];
    st_run_spec spec = node_spec(node,
                                 "nproc; grep Cpus_allowed_list /proc/self/status\n"
                                 "taskset -p ffff $$ >/dev/null 2>&1\n"
                                 "nproc; grep Cpus_allowed_list /proc/self/status\n"
                                 "echo end; read x </data/go",
                                 id);
    char data[PATH_MAX], fifo[PATH_MAX];
    st_err err = {0};
    int cpu = sched_getcpu();

    if (!st_run_pins(node->run))
        skip();
    node_storage(node, "pinned", spec.uid, data);
    snprintf(fifo, sizeof(fifo), "%.4000s/go", data);
    assert_int_equal(mkfifo(fifo, 0666), 0);
    assert_int_equal(chmod(fifo, 0666), 0);
    snprintf(first, sizeof(first), "%d", cpu);
    spec.cpus = first;
    spec.data = data;
    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "end");
    node_output(node, id, ST_RUN_OUT, out, sizeof(out));
    char want[128];

    snprintf(want, sizeof(want), "1\nCpus_allowed_list:\t%d\n1\nCpus_allowed_list:\t%d\nend\n", cpu,
             cpu);
    assert_string_equal(out, want);
    /* Another one, while it runs. */
    assert_ok(st_run_cpus(node->run, id, first, &err));
    assert_fails(st_run_cpus(node->run, id, "4000", &err), ST_EDOWN, "CPUs 4000");
    assert_ok(st_run_kill(node->run, id, "seen", 30000, &err));
}

static void fork_bomb_is_bounded_and_killed_whole(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, "echo go; b() { b | b & b; }; b", id);
    int64_t n = 0, most = 0;
    st_err err = {0};

    spec.pids = 48;
    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "go");
    for (int i = 0; i < 50; i++) {
        assert_ok(st_run_count(node->run, id, &n, &err));
        most = n > most ? n : most;
        st_os_sleep_ms(4);
    }
    assert_true(most <= 48);
    assert_ok(st_run_kill(node->run, id, "a fork bomb", 30000, &err));
    assert_ok(st_run_count(node->run, id, &n, &err));
    assert_int_equal(n, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_limit_is_reported_as_such),
        cmocka_unit_test(cpu_limit_holds),
        cmocka_unit_test(a_cpu_limit_that_cannot_be_set_is_the_nodes_fault),
        cmocka_unit_test(cpus_are_pinned),
        cmocka_unit_test(fork_bomb_is_bounded_and_killed_whole),
    };

    return cmocka_run_group_tests(tests, open_node, close_node);
}
