/*
 * What keeps tasks apart: every attack of attack.c from inside a real container, two tenants at
 * once, networks, devices. Skipped where containers cannot run.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/os.h"
#include "run/test/attack.h"
#include "run/test/help.h"

#define SECRET "blue-secret-4711"

static bench_node *node_of(void **state)
{
    bench_node *node = *state;

    if (!node->run)
        skip();
    return node;
}

static void put(const char *path, const char *text, uid_t owner)
{
    st_err err = {0};

    assert_ok(st_os_write(path, text, strlen(text), 0644, &err));
    assert_int_equal(chown(path, owner, owner), 0);
}

/* Runs attack_all as the other tenant would, and expects every line to say "denied". */
static void run_attacks(bench_node *node, bool mapped)
{
    static const char *const command[] = {"/attack", "attack", NULL};
    static const char *const env[] = {"ASAN_OPTIONS=detect_leaks=0", NULL};
    char id[ST_RUN_ID_MAX], out[16384], exe[PATH_MAX], red[PATH_MAX], blue[PATH_MAX],
        path[PATH_MAX];
    st_run_spec spec = node_spec(node, NULL, id);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    const st_run_mount mount = {.source = exe, .target = "/attack"};
    st_err err = {0};
    size_t denied = 0;

    assert_true(n > 0);
    exe[n] = '\0';
    spec.uid = spec.gid = mapped ? 310000 : 200001;
    spec.userns_ids = mapped ? 65536 : 0;
    spec.command = command;
    spec.env = env;
    spec.mounts = &mount;
    spec.nmount = 1;
    spec.shm_mib = 8;
    spec.data = node_storage(node, mapped ? "red-mapped" : "red", spec.uid, red);
    node_storage(node, "blue", 200002, blue);
    assert_ok(st_os_path(path, &err, "%s/secret", blue));
    put(path, SECRET, 200002);
    assert_ok(st_os_path(path, &err, "%s/kmsg", red));
    assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(1, 11)), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_ok(st_os_path(path, &err, "%s/link", red));
    assert_int_equal(symlink(blue, path), 0);
    st_run_task task = node_run(node, &spec, out, sizeof(out));

    if (task.status != 0)
        fail_msg("%s %d %d %s: %s", st_run_why_name(task.why), task.status, task.signal, task.text,
                 out);
    for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
        if (getenv("ST_SHOW_ATTACKS"))
            printf("  %s\n", line);
        if (strncmp(line, "denied ", 7) != 0)
            fail_msg("%s", line);
        denied++;
    }
    assert_int_equal(denied, attack_count());
}

static void no_attack_gets_through(void **state)
{
    run_attacks(node_of(state), false);
}

static void no_attack_gets_through_as_mapped_root(void **state)
{
    run_attacks(node_of(state), true);
}

static void two_tenants_at_once(void **state)
{
    bench_node *node = node_of(state);
    static const char *const env[] = {"TOKEN=" SECRET, NULL};
    char id[ST_RUN_ID_MAX], blue_id[ST_RUN_ID_MAX], out[4096], red[PATH_MAX], blue[PATH_MAX];
    st_run_spec spec =
        node_spec(node, "echo " SECRET " >/data/secret; echo up; sleep 1000", blue_id);
    int64_t n = 0;
    st_err err = {0};

    spec.tenant = "blue";
    spec.uid = spec.gid = 200002;
    spec.env = env;
    spec.data = node_storage(node, "blue2", 200002, blue);
    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, blue_id, "up");
    spec = node_spec(node, NULL, id);
    spec.data = node_storage(node, "red2", 200001, red);
    /* The script itself holds the words it looks for, so leave that copy out. */
    spec.script =
        "w=blue-sec''ret-4711; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c "
        "$w; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sle[e]p 1000'; "
        "grep -rl $w /data /tmp /run /etc /dev/shm 2>/dev/null; ls -A /data; "
        "(kill -9 -1); echo end";
    st_run_task task = node_run(node, &spec, out, sizeof(out));

    /* Nothing found, twice; no files; and kill(-1) ended red's own processes only. */
    assert_int_equal(strncmp(out, "0\n0\n", 4), 0);
    assert_null(strstr(out, "secret"));
    assert_true(task.state == ST_RUN_ENDED);
    assert_ok(st_run_count(node->run, blue_id, &n, &err));
    assert_true(n >= 2);
    assert_ok(st_run_kill(node->run, blue_id, "over", 30000, &err));
}

/* A listener of the node itself, on loopback and as an abstract unix socket. */
static int listen_tcp(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
                listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static int connects(bench_node *node, st_run_net net, const char *tenant, int port)
{
    char id[ST_RUN_ID_MAX], script[512], out[512];
    st_run_spec spec;

    snprintf(script, sizeof(script),
             "ls /sys/class/net | tr '\\n' ' '; python3 -c 'import socket; "
             "socket.create_connection((\"127.0.0.1\", %d), 5)' 2>&1",
             port);
    spec = node_spec(node, script, id);
    spec.net = net;
    spec.tenant = tenant;
    st_run_task task = node_run(node, &spec, out, sizeof(out));

    if (net != ST_NET_HOST)
        assert_int_equal(strncmp(out, "lo ", 3), 0);
    return task.status;
}

static void networks(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    int port = 0;
    ST_CLEANUP(st_os_closep) int fd = listen_tcp(&port);
    st_err err = {0};

    assert_true(fd >= 0);
    assert_int_equal(connects(node, ST_NET_HOST, "red", port), 0);
    assert_int_equal(connects(node, ST_NET_NONE, "red", port), 1);
    assert_int_equal(connects(node, ST_NET_TENANT, "red", port), 1);
    /* Tasks of one tenant meet, those of another do not. */
    st_run_spec spec = node_spec(node,
                                 "python3 -uc 'import socket; s = socket.create_server((\"127.0.0.1"
                                 "\", 7001)); print(\"up\")\nwhile True: s.accept()'",
                                 id);

    spec.net = ST_NET_TENANT;
    assert_ok(st_run_start(node->run, &spec, &err));
    node_wait_output(node, id, "up");
    assert_int_equal(connects(node, ST_NET_TENANT, "red", 7001), 0);
    assert_int_equal(connects(node, ST_NET_TENANT, "blue", 7001), 1);
    assert_int_equal(connects(node, ST_NET_NONE, "red", 7001), 1);
    assert_ok(st_run_kill(node->run, id, "over", 30000, &err));
}

static void shared_memory_of_the_node_is_not_seen(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[1024], script[128];
    key_t key = 0x5717 + getpid();
    int shm = shmget(key, 4096, IPC_CREAT | 0666);

    assert_true(shm >= 0);
    snprintf(script, sizeof(script), "ipcs -m | grep -c 0x%08x", (unsigned)key);
    st_run_spec spec = node_spec(node, script, id);

    node_run(node, &spec, out, sizeof(out));
    shmctl(shm, IPC_RMID, NULL);
    assert_string_equal(out, "0\n");
}

static void devices_given_and_no_others(void **state)
{
    bench_node *node = node_of(state);
    /* Under a GPU's name, devices that anybody may open and that runtimes do not give anyway. */
    const st_run_device both[] = {{.path = "/dev/nvidia3", .major = 10, .minor = 229},
                                  {.path = "/dev/nvidia-caps/nvidia-cap7",
                                   .host_path = "/dev/loop-control",
                                   .major = -1,
                                   .access = "r"}};
    char id[ST_RUN_ID_MAX], out[1024];
    st_run_spec spec = node_spec(node,
                                 "ls /dev | grep -vx core | tr '\\n' ' '; echo; for d in nvidia3 "
                                 "nvidia-caps/nvidia-cap7; do (exec "
                                 "3</dev/$d) && echo reads; (exec 3>/dev/$d) && echo writes; done",
                                 id);

    if (access("/dev/fuse", F_OK) != 0 || access("/dev/loop-control", F_OK) != 0) {
        printf("SKIP: this machine lacks /dev/fuse or /dev/loop-control to try\n");
        skip();
    }
    spec.devices = both;
    spec.ndevice = 2;
    node_run(node, &spec, out,
             sizeof(out)); /* crun's core is a link to /proc/kcore, which is covered */
    assert_string_equal(out, "fd full mqueue null nvidia-caps nvidia3 ptmx pts random shm stderr "
                             "stdin stdout tty urandom zero \nreads\nwrites\nreads\n");
    /* The group's rule, not the mode of the node: that lets everybody in. */
    node_output(node, id, ST_RUN_ERR, out, sizeof(out));
    assert_non_null(strstr(out, "Operation not permitted"));
}

static void environment_of_the_agent_stays_outside(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], out[4096];
    st_run_spec spec = node_spec(node, "env", id);

    setenv("STINT_AGENT_TOKEN", SECRET, 1);
    node_run(node, &spec, out, sizeof(out));
    unsetenv("STINT_AGENT_TOKEN");
    assert_null(strstr(out, SECRET));
    assert_non_null(strstr(out, "NVIDIA_VISIBLE_DEVICES=void"));
}

static int open_node(void **state)
{
    static bench_node node;

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_attack_gets_through),
        cmocka_unit_test(no_attack_gets_through_as_mapped_root),
        cmocka_unit_test(two_tenants_at_once),
        cmocka_unit_test(networks),
        cmocka_unit_test(shared_memory_of_the_node_is_not_seen),
        cmocka_unit_test(devices_given_and_no_others),
        cmocka_unit_test(environment_of_the_agent_stays_outside),
    };

    if (argc == 2 && strcmp(argv[1], "attack") == 0)
        return attack_all();
    return cmocka_run_group_tests(tests, open_node, close_node);
}
