/*
 * stintd under load: a real process on a fleet of 1,000 nodes, client on the same machine.
 *
 *   bench_stintd PATH_OF_STINTD [FOLDER]
 *
 * Submits (alone, in batches, at a fixed rate), reads, idle event streams, and starts with a long
 * history. FOLDER, which decides what disk is measured, is /var/tmp unless given. Beside each rate
 * stands the processor time of stintd per request, which a busy machine changes less.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "load.h"
#include "service.h"
#include "store/store.h"

#define NODES   1000
#define HISTORY INT64_C(1000000)
#define STREAMS 1000

typedef struct bench {
    service s;
    int64_t key; /* of the next request */
    ST_VEC(char *) ids;
} bench;

/* ---- requests -------------------------------------------------------------------------------- */

static void one_job(st_strbuf *out, int64_t i)
{
    st_strbuf_addf(out,
                   "{\"name\":\"train-%" PRId64 "\",\"account\":\"team%" PRId64
                   "\",\"user\":\"ann\",\"gpus\":1,\"limit\":\"4h\",\"on_preempt\":\"checkpoint\","
                   "\"command\":[\"python\",\"train.py\"],\"env\":{\"SEED\":\"%" PRId64
                   "\"},\"sim\":{\"run\":\"3h\"}}",
                   i, i % 10, i);
}

static void ask_node(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    (void)ctx;
    (void)key;
    strcpy(path, "/v1/nodes");
    st_strbuf_addf(body, "{\"name\":\"n%04d\",\"gpu\":\"h100\",\"rack\":\"r%d\",\"block\":\"b%d\"}",
                   (int)i, (int)i / 16, (int)i / 128);
}

static void ask_submit(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    bench *b = ctx;

    (void)i;
    strcpy(path, "/v1/jobs");
    snprintf(key, 64, "bench-%" PRId64, ++b->key);
    one_job(body, b->key);
}

#define BATCH 1000

static void ask_batch(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    bench *b = ctx;

    (void)i;
    strcpy(path, "/v1/jobs/batch");
    snprintf(key, 64, "batch-%" PRId64, ++b->key);
    st_strbuf_add(body, "{\"jobs\":[");
    for (int j = 0; j < BATCH; j++) {
        if (j)
            st_strbuf_addc(body, ',');
        one_job(body, b->key * BATCH + j);
    }
    st_strbuf_add(body, "]}");
}

static void ask_get(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    const bench *b = ctx;

    (void)key;
    (void)body;
    snprintf(path, 128, "/v1/jobs/%s", b->ids.v[(size_t)(i * 7919) % b->ids.n]);
}

/* Remembers the id in the answer to a submit. */
static void keep_id(void *ctx, int64_t i, int status, const char *body, size_t n)
{
    bench *b = ctx;
    const char *at = memmem(body, n, "\"id\":\"", 6), *end;

    (void)i;
    if (status != 201 || !at)
        return;
    at += 6;
    end = memchr(at, '"', n - (size_t)(at - body));
    if (end)
        st_vec_push(&b->ids, st_xstrndup(at, (size_t)(end - at)));
}

/* Runs one load and prints its line; `each` is jobs per request. */
static void measure(bench *b, const char *what, const load *l, int64_t each)
{
    load_result r;
    int64_t cpu = load_cpu_us(b->s.pid);

    if (!load_run(l, &r))
        service_die(&b->s, what);
    cpu = load_cpu_us(b->s.pid) - cpu;
    printf("%-44s %9.0f/s  %6.1f us cpu  p50 %6.2f ms  p99 %6.2f ms  max %6.1f ms%s\n", what,
           (double)(r.answers * each) / r.seconds, (double)cpu / (double)(r.answers * each),
           (double)r.p50_us / 1e3, (double)r.p99_us / 1e3, (double)r.max_us / 1e3,
           r.refused ? "  REFUSALS" : "");
    fflush(stdout);
}

static void make_world(bench *b)
{
    const load nodes = {.port = b->s.port,
                        .token = b->s.token,
                        .method = "POST",
                        .connections = 16,
                        .requests = NODES,
                        .ask = ask_node,
                        .ctx = b};
    char body[128];

    service_post(&b->s, "/v1/types", "{\"name\":\"h100\"}");
    service_post(&b->s, "/v1/pools", "{\"name\":\"main\",\"allow\":[\"host-image\"]}");
    measure(b, "nodes announced", &nodes, 1);
    for (int i = 0; i < 10; i++) {
        snprintf(body, sizeof body, "{\"name\":\"team%d\",\"guarantee\":{\"gpu\":400}}", i);
        service_post(&b->s, "/v1/accounts", body);
    }
}

static void submits_and_reads(bench *b)
{
    load l = {.port = b->s.port,
              .token = b->s.token,
              .method = "POST",
              .connections = 64,
              .requests = 6000,
              .ask = ask_submit,
              .answered = keep_id,
              .ctx = b};

    measure(b, "submits, 64 connections, all start", &l, 1);
    l.requests = 20000;
    measure(b, "submits, 64 connections, full fleet", &l, 1);
    l.per_s = 2000;
    l.requests = 10000;
    measure(b, "submits at 2,000/s, 64 connections", &l, 1);
    l = (load){.port = b->s.port,
               .token = b->s.token,
               .method = "GET",
               .connections = 64,
               .requests = 150000,
               .ask = ask_get,
               .ctx = b};
    measure(b, "GET /v1/jobs/ID, 64 connections", &l, 1);
    l = (load){.port = b->s.port,
               .token = b->s.token,
               .method = "POST",
               .connections = 4,
               .requests = 60,
               .ask = ask_batch,
               .ctx = b};
    measure(b, "jobs in batches of 1,000, 4 connections", &l, BATCH);
}

/* A token may have only so many streams, so several share the work. */
static void new_token(const bench *b, char ret[128])
{
    ST_CLEANUP(st_strbuf_done) st_strbuf answer = {0};
    const char *at;

    ret[0] = '\0';
    load_once(b->s.port, b->s.token, "POST", "/v1/tokens",
              "{\"account\":\"team0\",\"user\":\"ann\",\"role\":\"viewer\"}", &answer);
    at = strstr(st_strbuf_str(&answer), "stint_");
    if (at)
        snprintf(ret, 128, "%.*s", (int)strcspn(at, "\""), at);
}

static void streams(bench *b)
{
    int64_t before = load_rss_kib(b->s.pid);
    int fds[STREAMS], n = 0;
    char token[128];

    while (n < STREAMS) {
        if (n % 50 == 0)
            new_token(b, token);
        fds[n] = load_stream(b->s.port, token);
        if (fds[n] < 0)
            break;
        n++;
    }
    printf("%d idle event streams: %.1f MB more than before\n", n,
           (double)(load_rss_kib(b->s.pid) - before) / 1e3);
    while (n > 0)
        close(fds[--n]);
}

/* ---- a long history -------------------------------------------------------------------------- */

static void write_history(bench *b)
{
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    st_err err = {0};
    int r = st_store_open(b->s.store, &(st_store_options){.loose = true}, &store, &err);

    for (int64_t i = 0; r == 0 && i < HISTORY; i++) {
        char name[32], account[16];
        const st_job_row row = {.id = 10000000 + i,
                                .account = account,
                                .user_name = "ann",
                                .name = name,
                                .state = "done",
                                .class_name = "guaranteed",
                                .submit_ms = 1000 + i,
                                .start_ms = 2000 + i,
                                .end_ms = 3000 + i,
                                .gpu_m = 1000,
                                .reason = "",
                                .spec = "{\"gpus\":1,\"command\":[\"python\",\"train.py\"],"
                                        "\"limit\":\"4h\",\"env\":{\"SEED\":\"12345\"}}",
                                .result = "{\"stay\":1,\"type\":\"h100\",\"grants\":[{\"node\":"
                                          "\"n0001\",\"gpus\":[3]}]}"};

        snprintf(name, sizeof name, "old-%" PRId64, i);
        snprintf(account, sizeof account, "team%d", (int)(i % 10));
        if (i % 10000 == 0)
            r = st_store_begin(store, &err);
        if (r == 0)
            r = st_store_job_insert(store, &row, &err);
        if (r == 0 && i % 10000 == 9999)
            r = st_store_commit(store, &err);
    }
    if (r < 0)
        service_die(&b->s, err.msg);
}

static void starts(bench *b)
{
    double clean, killed;

    service_stop(&b->s, SIGTERM);
    write_history(b);
    clean = service_start(&b->s);
    printf("start with 1,000,000 ended and about 96,000 live jobs: %.2f s after a clean stop",
           clean);
    fflush(stdout);
    load l = {.port = b->s.port,
              .token = b->s.token,
              .method = "POST",
              .connections = 1,
              .requests = 4000,
              .ask = ask_submit,
              .ctx = b};
    load_result r;
    if (!load_run(&l, &r))
        service_die(&b->s, "submits after the start");
    service_stop(&b->s, SIGKILL);
    killed = service_start(&b->s);
    printf(", %.2f s after kill -9 with 4,000 rows of log\n", killed);
}

static void clean_up(bench *b)
{
    char command[320];

    service_stop(&b->s, SIGTERM);
    snprintf(command, sizeof command, "rm -rf '%s'", b->s.data);
    if (system(command) != 0)
        fprintf(stderr, "bench_stintd: %s is left\n", b->s.data);
    for (size_t i = 0; i < b->ids.n; i++)
        free(b->ids.v[i]);
    st_vec_free(&b->ids);
}

int main(int argc, char **argv)
{
    bench b = {.s = {.program = argc > 1 ? argv[1] : "stintd"}};
    struct rlimit files = {65536, 65536};

    setrlimit(RLIMIT_NOFILE, &files);
    service_prepare(&b.s, argc > 2 ? argv[2] : "/var/tmp");
    make_world(&b);
    submits_and_reads(&b);
    streams(&b);
    starts(&b);
    clean_up(&b);
    return 0;
}
