/*
 * E1 and E4 on the openb traces: GPU left unallocated when requests reach capacity, over ten seeds,
 * beside the published figures; and how fast the decisions are, at one and at ten times the nodes.
 * Stint is the scheduler itself: a decision is a job that is submitted, and cancelled where it must wait.
 * The traces are looked for in $STINT_TRACES, then in ../shared/traces from the
 * project (STINT_SOURCE, or the folder it is run in).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "trace/csv.h"
#include "trace/fragmentation.h"

#define SEED_FIRST 42
#define SEEDS      10
#define WORKERS    2

static const char *const traces[] = {
    "default",    "multigpu20", "multigpu30",  "multigpu40", "multigpu50", "gpushare40",
    "gpushare60", "gpushare80", "gpushare100", "gpuspec10",  "gpuspec20",  "gpuspec25",
    "gpuspec33",  "cpu050",     "cpu100",      "cpu200",     "cpu250",
};

typedef struct task {
    const char *trace;
    st_frag_policy policy;
    const char *published; /* as anchors.csv calls it */
} task;

typedef struct answer {
    double mean, sd;
} answer;

static void path_of(st_strbuf *ret, const char *folder, const char *file, const char *trace)
{
    st_strbuf_addf(ret, "%s/openb/%s%s%s", folder, file, trace ? trace : "", trace ? ".csv" : "");
}

/* The trace, or an end with a message: the files were there a moment ago. */
static st_openb *load(const char *folder, const char *trace)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf nodes = {0}, pods = {0};
    st_openb *t = NULL;
    st_err err = {0};

    path_of(&nodes, folder, "openb_node_list_gpu_node.csv", NULL);
    path_of(&pods, folder, "openb_pod_list_", trace);
    if (st_openb_load(st_strbuf_str(&nodes), st_strbuf_str(&pods), &t, &err) < 0) {
        fprintf(stderr, "bench_fragmentation: %s\n", err.msg);
        exit(1);
    }
    return t;
}

static void play(const st_openb *t, st_frag_policy policy, uint64_t seed, int32_t times,
                 st_fragmentation *ret)
{
    st_err err = {0};

    if (st_fragmentation_run(t, policy, seed, times, ret, &err) < 0) {
        fprintf(stderr, "bench_fragmentation: %s\n", err.msg);
        exit(1);
    }
}

static answer run_task(const char *folder, const task *job)
{
    ST_CLEANUP(st_openb_freep) st_openb *t = load(folder, job->trace);
    double sum = 0, squares = 0, mean;

    for (uint64_t seed = SEED_FIRST; seed < SEED_FIRST + SEEDS; seed++) {
        st_fragmentation r;

        play(t, job->policy, seed, 1, &r);
        sum += r.unallocated_pct_at_100;
        squares += r.unallocated_pct_at_100 * r.unallocated_pct_at_100;
    }
    mean = sum / SEEDS;
    return (answer){mean, sqrt(fmax(0, (squares - SEEDS * mean * mean) / (SEEDS - 1)))};
}

/* Each worker takes every second task and sends its answers in that order. */
static int start_worker(const char *folder, const task *tasks, int n, int worker)
{
    int fd[2];
    pid_t pid;

    if (pipe(fd) < 0 || (pid = fork()) < 0) {
        perror("bench_fragmentation");
        exit(1);
    }
    if (pid > 0) {
        close(fd[1]);
        return fd[0];
    }
    close(fd[0]);
    for (int i = worker; i < n; i += WORKERS) {
        answer a = run_task(folder, &tasks[i]);

        if (write(fd[1], &a, sizeof(a)) != (ssize_t)sizeof(a))
            _exit(1);
    }
    _exit(0);
}

static bool find_published(const char *folder, const task *job, answer *ret)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    int mean, sd, r;
    st_err err = {0};

    path_of(&path, folder, "anchors.csv", NULL);
    if (st_csv_load(st_strbuf_str(&path), &csv, &err) < 0)
        return false;
    mean = st_csv_find(csv, "unalloc_mean_pct");
    sd = st_csv_find(csv, "alloc_sd");
    while ((r = st_csv_next(csv, &err)) > 0)
        if (strcmp(st_csv_text(csv, 0), job->trace) == 0 &&
            strcmp(st_csv_text(csv, 1), job->published) == 0 &&
            strcmp(st_csv_text(csv, 2), "100") == 0) {
            *ret = (answer){atof(st_csv_text(csv, mean)), atof(st_csv_text(csv, sd))};
            return true;
        }
    return false;
}

static void print_task(const char *folder, const task *job, const answer *a)
{
    answer published;

    printf("%-12s %-8s %6.2f (sd %.2f)", job->trace, st_frag_policy_name(job->policy), a->mean,
           a->sd);
    if (find_published(folder, job, &published))
        printf("   %-10s %6.2f (sd %.2f)   %+6.2f", job->published + 3, published.mean,
               published.sd, a->mean - published.mean);
    putchar('\n');
    fflush(stdout);
}

static void bench_e1(const char *folder)
{
    task tasks[ST_ARRAY_LEN(traces) + 3];
    int n = 0, fd[WORKERS];

    tasks[n++] = (task){"default", ST_FRAG_POLICY_random, "01-Random"};
    tasks[n++] = (task){"default", ST_FRAG_POLICY_bestfit, "05-BestFit"};
    tasks[n++] = (task){"default", ST_FRAG_POLICY_fgd, "06-FGD"};
    for (size_t i = 0; i < ST_ARRAY_LEN(traces); i++)
        tasks[n++] = (task){traces[i], ST_FRAG_POLICY_stint, "06-FGD"};
    printf("E1: unallocated GPU %% at 100 %% requested, seeds %d-%d, beside what was published\n",
           SEED_FIRST, SEED_FIRST + SEEDS - 1);
    fflush(stdout);
    for (int w = 0; w < WORKERS; w++)
        fd[w] = start_worker(folder, tasks, n, w);
    for (int i = 0; i < n; i++) {
        answer a;

        if (read(fd[i % WORKERS], &a, sizeof(a)) != (ssize_t)sizeof(a))
            exit(1);
        print_task(folder, &tasks[i], &a);
    }
    for (int w = 0; w < WORKERS; w++) {
        close(fd[w]);
        wait(NULL);
    }
}

static void bench_e4(const char *folder)
{
    ST_CLEANUP(st_openb_freep) st_openb *t = load(folder, "default");

    printf("E4: decisions of the scheduler, each a submit, one thread, seed %d (a plain FGD with a "
           "cache: 31-40 thousand/s)\n",
           SEED_FIRST);
    for (int32_t times = 1; times <= 10; times *= 10) {
        st_fragmentation r;

        play(t, ST_FRAG_POLICY_stint, SEED_FIRST, times, &r);
        printf("%6zu nodes %8lld decisions %6.0f thousand/s   p99 %.1f us\n",
               t->nodes.n * (size_t)times, (long long)r.decisions,
               (double)r.decisions / r.seconds / 1000, r.decision_p99_us);
    }
}

int main(void)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, beside = {0};
    const char *folder = getenv("STINT_TRACES"), *source = getenv("STINT_SOURCE");

    st_strbuf_addf(&beside, "%s/../shared/traces", source ? source : ".");
    if (!folder)
        folder = st_strbuf_str(&beside);
    path_of(&path, folder, "openb_node_list_gpu_node.csv", NULL);
    if (access(st_strbuf_str(&path), R_OK) != 0) {
        printf("skipped: no traces at %s (set STINT_TRACES to where they are)\n", folder);
        return 0;
    }
    bench_e1(folder);
    bench_e4(folder);
    return 0;
}
