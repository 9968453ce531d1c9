/* For the tests of run; see the header. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/os.h"
#include "run/test/help.h"

#define PATIENCE_MS 60000

bool node_open(bench_node *node)
{
    st_run_finding found[ST_RUN_FINDINGS_MAX];
    st_err err = {0};

    *node = (bench_node){0};
    snprintf(node->dir, sizeof(node->dir), "/var/tmp/stint-run-test-%d", (int)getpid());
    snprintf(node->state, sizeof(node->state), "%s/state", node->dir);
    snprintf(node->cgroup, sizeof(node->cgroup), "stint-test-%d", (int)getpid());
    node->conf = (st_run_conf){.state_dir = node->state, .cgroup_root = node->cgroup};
    size_t n = st_run_probe(&node->conf, found);
    const st_run_finding *bad = st_run_probe_bad(found, n);

    if (!bad && st_run_new(&node->conf, &node->run, &err) == 0) {
        chmod(node->dir, 0711);
        return true;
    }
    printf("SKIP: no containers on this machine: %s: %s (%s)\n", bad ? bad->name : "runtime",
           bad ? bad->text : err.msg, bad ? bad->fix : "");
    node_close(node);
    return false;
}

void node_close(bench_node *node)
{
    st_err err = {0};
    st_run_task *tasks = NULL;
    size_t n = 0, bad = 0;

    if (node->run && st_run_list(node->run, &tasks, &n, &bad, &err) == 0) {
        for (size_t i = 0; i < n; i++) {
            (void)st_run_kill(node->run, tasks[i].id, "the test is over", 10000, NULL);
            if (st_run_remove(node->run, tasks[i].id, &err) != 0)
                printf("left behind: %s\n", err.msg);
        }
        if (st_run_clear(node->run, &err) != 0)
            printf("left behind: %s\n", err.msg);
    }
    free(tasks);
    st_run_free(node->run);
    node->run = NULL;
    if (st_os_remove_tree(node->dir, &err) != 0)
        printf("left behind: %s\n", err.msg);
}

const char *node_storage(const bench_node *node, const char *name, int64_t uid, char ret[PATH_MAX])
{
    st_err err = {0};

    assert_ok(st_os_path(ret, &err, "%s/%s", node->dir, name));
    assert_ok(st_os_mkdirs(ret, 0700, &err));
    assert_int_equal(chown(ret, (uid_t)uid, (gid_t)uid), 0);
    return ret;
}

st_run_spec node_spec(bench_node *node, const char *script, char id[ST_RUN_ID_MAX])
{
    snprintf(id, ST_RUN_ID_MAX, "job-%d/1/0", ++node->count);
    return (st_run_spec){.id = id,
                         .tenant = "red",
                         .uid = 200001,
                         .gid = 200001,
                         .script = script,
                         .cpu_m = 2000,
                         .ram_mib = 512,
                         .pids = 64,
                         .tmp_mib = 16};
}

size_t node_output(const bench_node *node, const char *id, st_run_stream stream, char *out,
                   size_t cap)
{
    st_run_piece piece = {0};
    st_err err = {0};

    assert_ok(st_run_log_read(node->run, id, stream, 0, out, cap - 1, &piece, &err));
    out[piece.n] = '\0';
    return piece.n;
}

st_run_task node_run(bench_node *node, const st_run_spec *spec, char *out, size_t cap)
{
    st_run_task task = {0};
    st_err err = {0};

    assert_ok(st_run_start(node->run, spec, &err));
    assert_ok(st_run_wait(node->run, spec->id, PATIENCE_MS, &task, &err));
    if (out)
        node_output(node, spec->id, ST_RUN_OUT, out, cap);
    return task;
}

void node_wait_output(const bench_node *node, const char *id, const char *text)
{
    char out[4096] = "";

    for (int i = 0; i < PATIENCE_MS / 5; i++) {
        node_output(node, id, ST_RUN_OUT, out, sizeof(out));
        st_run_task task = {.state = ST_RUN_STARTING};

        /* It may speak before its supervisor knows its pid. */
        if (strstr(out, text) && st_run_get(node->run, id, &task, NULL) == 0 &&
            task.state != ST_RUN_STARTING)
            return;
        st_os_sleep_ms(5);
    }
    fail_msg("task %s never said \"%s\" but \"%s\"", id, text, out);
}
