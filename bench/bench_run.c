/*
 * From st_run_start to the first instruction of a task, one after another and several at once,
 * and from its end to the record of it. Prints why not where containers cannot run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/run.h"

#define ROUNDS 40
#define BATCH  8

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void show(const char *what, int64_t *us, size_t n)
{
    qsort(us, n, sizeof(us[0]), by_size);
    printf("%-44s p50 %6.1f ms   p99 %6.1f ms   n %zu\n", what, (double)us[n / 2] / 1000,
           (double)us[n * 99 / 100] / 1000, n);
}

static int start_one(st_run *run, int n, char id[ST_RUN_ID_MAX], st_err *err)
{
    static const char *const command[] = {"/bin/true", NULL};

    snprintf(id, ST_RUN_ID_MAX, "bench-%d/1/0", n);
    const st_run_spec spec = {.id = id,
                              .tenant = "bench",
                              .uid = 200001,
                              .gid = 200001,
                              .command = command,
                              .cpu_m = 1000,
                              .ram_mib = 256};

    return st_run_start(run, &spec, err);
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Starts `batch` tasks together, `rounds` times. */
static int measure(st_run *run, int rounds, int batch, int *count, const char *what, st_err *err)
{
    int64_t *first = st_xcalloc((size_t)(rounds * batch), sizeof(*first));
    int64_t *call = st_xcalloc((size_t)(rounds * batch), sizeof(*call));
    char ids[BATCH][ST_RUN_ID_MAX];
    size_t n = 0;
    int r = 0;

    for (int i = 0; r == 0 && i < rounds; i++) {
        int64_t asked[BATCH];

        for (int k = 0; r == 0 && k < batch; k++) {
            asked[k] = now_us();
            r = start_one(run, (*count)++, ids[k], err);
            call[n + (size_t)k] = now_us() - asked[k];
        }
        for (int k = 0; r == 0 && k < batch; k++) {
            st_run_task task;

            r = st_run_wait(run, ids[k], 30000, &task, err);
            if (r == 0) {
                first[n++] = task.started_us - asked[k];
                r = st_run_remove(run, ids[k], err);
            }
        }
    }
    if (r == 0) {
        char text[96];

        snprintf(text, sizeof(text), "%s: call of st_run_start", what);
        show(text, call, n);
        snprintf(text, sizeof(text), "%s: to the first instruction", what);
        show(text, first, n);
    }
    free(first);
    free(call);
    return r;
}

int main(void)
{
    char state[64], cgroup[64], libexec[4096];
    ST_CLEANUP(st_run_freep) st_run *run = NULL;
    st_err err = {0};
    int count = 0;
    ssize_t n = readlink("/proc/self/exe", libexec, sizeof(libexec) - 1);

    snprintf(state, sizeof(state), "/var/tmp/stint-bench-%d", (int)getpid());
    snprintf(cgroup, sizeof(cgroup), "stint-bench-%d", (int)getpid());
    /* We are in BUILD/bench, the programs in BUILD. */
    for (int i = 0; n > 0 && i < 2; n--) {
        i += libexec[n] == '/';
        libexec[n] = '\0';
    }
    const st_run_conf conf = {.state_dir = state, .cgroup_root = cgroup, .libexec = libexec};

    if (st_run_new(&conf, &run, &err) != 0) {
        printf("not measured: %s\n", err.msg);
        return 0;
    }
    printf("runtime %s\n", st_run_runtime(run));
    if (measure(run, ROUNDS, 1, &count, "one at a time", &err) != 0 ||
        measure(run, ROUNDS / BATCH, BATCH, &count, "eight at once", &err) != 0) {
        printf("failed: %s\n", err.msg);
        return 1;
    }
    if (st_run_clear(run, &err) != 0)
        printf("left behind: %s\n", err.msg);
    return 0;
}
