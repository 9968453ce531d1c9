/* The store: job inserts in transactions of 1000, single durable commits, reads by id and by list.
 * The file is made in the current folder, so that it is on a disk, and removed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

#define PATH  "bench_store.db"
#define JOBS  300000
#define BATCH 1000

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
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

static void reads(st_store *store)
{
    st_arena *a = st_arena_new();
    st_job_row row;
    st_err err;
    int64_t rows = 0;
    double t = now_s();
    for (int64_t i = 0; i < 100000; i++) {
        must(st_store_job_get(store, 1 + i * 7919 % JOBS, a, &row, &err), &err);
        st_arena_reset(a);
    }
    printf("  reads by id: %.0f/s\n", 100000 / (now_s() - t));
    t = now_s();
    for (int i = 0; i < 1000; i++) {
        st_job_filter f = {.within = {1 + i % 2, i % 2 ? 11 + i % 200 : 1 + i % 10}, .limit = 50};
        must(st_store_jobs_list(store, &f, one_more, &rows, &err), &err);
    }
    printf("  lists of 50 jobs of an account, or of one with 20 below it: %.0f/s (%lld rows)\n",
           1000 / (now_s() - t), (long long)rows);
    st_arena_free(a);
}

int main(void)
{
    st_store *store;
    st_err err;
    clean();
    must(st_store_open(PATH, &(st_store_options){.loose = true}, &store, &err), &err);
    double t = now_s();
    for (int64_t id = 1; id <= JOBS; id += BATCH) {
        must(st_store_begin(store, &err), &err);
        for (int64_t i = 0; i < BATCH; i++)
            insert(store, id + i);
        must(st_store_commit(store, &err), &err);
    }
    printf("store: %d job inserts in transactions of %d: %.0f/s\n", JOBS, BATCH,
           JOBS / (now_s() - t));
    t = now_s();
    int64_t n = 0;
    for (; n < 2000 && now_s() - t < 5; n++)
        insert(store, JOBS + 1 + n);
    printf("  single durable commits: %.0f/s\n", (double)n / (now_s() - t));
    reads(store);
    st_store_close(store);
    clean();
    return 0;
}
