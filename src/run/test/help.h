/*
 * For the tests of run: a state directory of their own, a tenant's storage, tasks with short
 * specs, and one line that says why containers cannot run here.
 */
#ifndef ST_RUN_TEST_HELP_H
#define ST_RUN_TEST_HELP_H

#include <limits.h>
#include <stdbool.h>

#include "run/run.h"

typedef struct bench_node {
    char dir[PATH_MAX / 4]; /* everything of this test; removed at the end */
    char state[PATH_MAX / 2];
    char cgroup[64];
    st_run_conf conf;
    st_run *run; /* NULL when nothing can run here */
    int count;   /* of tasks, for their ids */
} bench_node;

/* Makes the folders and the handle. False, after one line on stdout, when this machine cannot run
 * containers: then the caller skips. */
bool node_open(bench_node *node);
void node_close(bench_node *node);

/* A folder node->dir/NAME that belongs to the user. */
const char *node_storage(const bench_node *node, const char *name, int64_t uid, char ret[PATH_MAX]);

/* A spec that runs a shell script in image "host"; the id is new each time. */
st_run_spec node_spec(bench_node *node, const char *script, char id[ST_RUN_ID_MAX]);

/* Starts, waits for its end, and reads its output (cut at the size). */
st_run_task node_run(bench_node *node, const st_run_spec *spec, char *out, size_t cap);

/* Waits until the task's output contains the text; fails the test after a while. */
void node_wait_output(const bench_node *node, const char *id, const char *text);

size_t node_output(const bench_node *node, const char *id, st_run_stream stream, char *out,
                   size_t cap);

#endif
