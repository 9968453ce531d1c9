/* The store: job inserts in transactions of 1000, single durable commits, reads by id and by list.
 * The file is made in the current folder, so that it is on a disk, and removed.
 *
 *   bench_store [JOBS]
 *
 * Each rate is told by the clock and by processor time: the disk and whoever else is at work are in the first only, so the
 * second is what two versions are compared by. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

#define PATH  "bench_store.db"
#define BATCH 1000

typedef struct moment {
    double wall_s, cpu_s;
} moment;

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static moment now(void)
{
    return (moment){seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

static void tell(const char *what, int64_t n, moment since)
{
    moment t = now();
    printf("%s: %.0f/s, %.0f by processor time\n", what, (double)n / (t.wall_s - since.wall_s),
           (double)n / (t.cpu_s - since.cpu_s));
}

static void must(int rc, const st_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_store: %s\n", err->msg);
        exit(1);
    }
}

static void clean(void)
{
    unlink(PATH);
    unlink(PATH "-wal");
    unlink(PATH "-shm");
    unlink(PATH ".lock");
}

static void insert(st_store *store, int64_t id)
{
    st_err err;
    char account[32];
    snprintf(account, sizeof account, "team-%d", (int)(id % 200));
    st_job_row row = {.id = id,
                      .account = account,
                      .user_name = "ann",
                      .name = "train-a-model",
                      .state = "pending",
                      .class_name = "guaranteed",
                      .submit_ms = 1700000000000 + id,
                      .start_ms = ST_STORE_NEVER,
                      .end_ms = ST_STORE_NEVER,
                      .gpu_m = 8000,
                      .exit_code = ST_STORE_NEVER,
                      .reason = "",
                      .spec =
                          "{\"name\":\"train-a-model\",\"gpus\":8,\"tasks\":4,\"pool\":\"main\","
                          "\"time_limit\":\"4h\",\"image\":\"registry/train:latest\"}",
                      .result = "",
                      .stands = {{1 + id % 200 / 20, 11 + id % 200}}};
    must(st_store_job_insert(store, &row, &err), &err);
}

static int one_more(void *ctx, const st_job_row *row, st_err *err)
{
    (void)row, (void)err;
    ++*(int64_t *)ctx;
    return 0;
}

static void reads(st_store *store, int64_t jobs)
{
    st_arena *a = st_arena_new();
    st_job_row row;
    st_err err;
    int64_t rows = 0;
    moment t = now();
    for (int64_t i = 0; i < 100000; i++) {
        must(st_store_job_get(store, 1 + i * 7919 % jobs, a, &row, &err), &err);
        st_arena_reset(a);
    }
    tell("  reads by id", 100000, t);
    t = now();
    for (int i = 0; i < 1000; i++) {
        st_job_filter f = {.within = {1 + i % 2, i % 2 ? 11 + i % 200 : 1 + i % 10}, .limit = 50};
        must(st_store_jobs_list(store, &f, one_more, &rows, &err), &err);
    }
    tell("  lists of 50 jobs of an account, or of one with 20 below it", 1000, t);
    if (rows == 0)
        exit(1);
    st_arena_free(a);
}

int main(int argc, char **argv)
{
    int64_t jobs = argc > 1 ? strtoll(argv[1], NULL, 10) / BATCH * BATCH : 300000;
    st_store *store;
    st_err err;
    clean();
    must(st_store_open(PATH, &(st_store_options){.loose = true}, &store, &err), &err);
    moment t = now();
    for (int64_t id = 1; id <= jobs; id += BATCH) {
        must(st_store_begin(store, &err), &err);
        for (int64_t i = 0; i < BATCH; i++)
            insert(store, id + i);
        must(st_store_commit(store, &err), &err);
    }
    tell("store: job inserts in transactions of 1000", jobs, t);
    t = now();
    int64_t n = 0;
    for (; n < 2000 && now().wall_s - t.wall_s < 5; n++)
        insert(store, jobs + 1 + n);
    tell("  single durable commits", n, t);
    reads(store, jobs);
    st_store_close(store);
    clean();
    return 0;
}
