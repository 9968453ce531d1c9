/*
 * Control groups of version 2 alone: what is read from and written to their files, on a folder that
 * looks like one; and killing, on the machine's own version 2 hierarchy where there is one. Limits are
 * set by the runtime from the config that test_bundle checks.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/cgroup.h"
#include "run/os.h"

static char top[] = "/tmp/stint-cgroup-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    st_err err = {0};

    snprintf(path, sizeof(path), "%s/stint/j1.1.0/%s", top, name);
    assert_ok(st_os_write(path, text, strlen(text), 0600, &err));
}

static const char *get(const char *name, char ret[256])
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/stint/j1.1.0/%s", top, name);
    assert_true(st_os_peek(path, ret, 256) >= 0);
    return ret;
}

static st_cg version_2(const char *at)
{
    char line[PATH_MAX + 64];
    st_cg cg;

    snprintf(line, sizeof(line), "cgroup2 %s cgroup2 rw,nosuid 0 0\n", at);
    st_cg_parse(line, &cg);
    assert_int_equal(cg.mode, ST_CG_V2);
    return cg;
}

static void memory_and_processes_are_read(void **state)
{
    st_cg cg = version_2(top);

    (void)state;
    put("cgroup.procs", "4000001\n4000002\n");
    put("memory.events", "low 0\nhigh 3\nmax 12\noom 4\noom_kill 2\noom_group_kill 1\n");
    assert_int_equal(st_cg_count(&cg, "stint/j1.1.0"), 2);
    assert_int_equal(st_cg_oom_kills(&cg, "stint/j1.1.0"), 2); /* not oom, not the group's */
    put("cgroup.procs", "");
    put("memory.events", "low 0\noom 4\noom_group_kill 1\n");
    assert_int_equal(st_cg_count(&cg, "stint/j1.1.0"), 0);
    assert_int_equal(st_cg_oom_kills(&cg, "stint/j1.1.0"), 0);
    assert_int_equal(st_cg_count(&cg, "stint/none"), 0);
    assert_int_equal(st_cg_oom_kills(&cg, "stint/none"), 0);
}

static void one_write_kills(void **state)
{
    st_cg cg = version_2(top);
    char text[256];

    (void)state;
    put("cgroup.procs", "");
    put("cgroup.kill", "");
    st_cg_kill(&cg, "stint/j1.1.0", false);
    assert_string_equal(get("cgroup.kill", text), "1");
    put("cgroup.kill", "");
    st_cg_kill(&cg, "stint/j1.1.0", true);
    assert_string_equal(get("cgroup.kill", text), "");
    assert_int_equal(st_cg_kill_wait(&cg, "stint/j1.1.0", 0), 0);
}

static pid_t sleeper(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGTERM, SIG_IGN);
        for (;;)
            pause();
    }
    return pid;
}

/* Time that is over before it has begun is no reason to let somebody live. */
static void a_kill_without_time_is_a_kill(void **state)
{
    st_cg cg = version_2(top);
    char text[32];

    (void)state;
    put("cgroup.procs", "999999999\n"); /* nobody's number */
    put("cgroup.kill", "");
    assert_int_equal(st_cg_kill_wait(&cg, "stint/j1.1.0", -1000), 1);
    assert_string_equal(get("cgroup.kill", text), "1");
    put("cgroup.procs", "");
}

/* With and without cgroup.kill, which older kernels lack. */
static void a_real_group_is_killed(void **state)
{
    char group[64], path[PATH_MAX], text[32];
    st_cg machine, cg;

    (void)state;
    st_cg_find(&machine);
    snprintf(group, sizeof(group), "stint-test-%d", (int)getpid());
    snprintf(path, sizeof(path), "%s/%s", machine.unified, group);
    if (!machine.unified[0] || mkdir(path, 0755) != 0) {
        printf("SKIP: no cgroups of version 2 that may be written on this machine\n");
        skip();
    }
    cg = version_2(machine.unified);
    snprintf(path, sizeof(path), "%s/%s/cgroup.procs", machine.unified, group);
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        pid_t pids[] = {sleeper(), sleeper()};

        for (int i = 0; i < 2; i++) {
            snprintf(text, sizeof(text), "%d", (int)pids[i]);
            assert_int_equal(st_os_poke(path, text), 0);
        }
        assert_int_equal(st_cg_count(&cg, group), 2);
        st_cg_kill(&cg, group, by_hand);
        for (int i = 0; i < 2; i++) {
            int status = 0;

            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        assert_int_equal(st_cg_count(&cg, group), 0);
    }
    st_cg_remove(&cg, group);
    assert_int_not_equal(access(path, F_OK), 0);
}

static int make_top(void **state)
{
    char path[PATH_MAX];

    (void)state;
    if (!mkdtemp(top))
        return -1;
    snprintf(path, sizeof(path), "%s/stint", top);
    if (mkdir(path, 0700) != 0)
        return -1;
    snprintf(path, sizeof(path), "%s/stint/j1.1.0", top);
    return mkdir(path, 0700);
}

static int drop_top(void **state)
{
    (void)state;
    return st_os_remove_tree(top, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_processes_are_read),
        cmocka_unit_test(one_write_kills),
        cmocka_unit_test(a_kill_without_time_is_a_kill),
        cmocka_unit_test(a_real_group_is_killed),
    };

    return cmocka_run_group_tests(tests, make_top, drop_top);
}
