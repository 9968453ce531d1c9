/*
 * stintd under load: a real process on a fleet of 1,000 nodes, client on the same machine.
 *
 *   bench_stintd PATH_OF_STINTD [FOLDER]
 *
 * Submits (alone, in batches, at a fixed rate), reads, idle event streams, and starts with a long
 * history. FOLDER, which decides what disk is measured, is /var/tmp unless given. Beside each rate
 * stands the processor time of stintd per request, which a busy machine changes less.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "load.h"
#include "store/store.h"

#define NODES   1000
#define HISTORY INT64_C(1000000)
#define STREAMS 1000

typedef struct bench {
    const char *program;
    char data[256], config[300], log[300], store[300];
    char token[128];
    pid_t pid;
    int port;
    int64_t key; /* of the next request */
    ST_VEC(char *) ids;
} bench;

extern char **environ;

static void die(const bench *b, const char *what)
{
    fprintf(stderr, "bench_stintd: %s; see %s\n", what, b->data);
    if (b->pid > 0)
        kill(b->pid, SIGKILL);
    exit(1);
}

/* ---- the process ---------------------------------------------------------------------------- */

static int port_of(const char *log)
{
    FILE *f = fopen(log, "r");
    char line[1024];
    int port = 0;

    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "event=listening") && strstr(line, "port="))
            port = atoi(strstr(line, "port=") + 5);
    if (f)
        fclose(f);
    return port;
}

/* Returns how long it took until it was ready. */
static double start(bench *b)
{
    char *args[] = {st_xstrdup(b->program),
                    st_xstrdup("--config"),
                    b->config,
                    st_xstrdup("--data"),
                    b->data,
                    NULL};
    posix_spawn_file_actions_t files;
    int64_t began = load_now_us();

    unlink(b->log);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, b->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (posix_spawn(&b->pid, b->program, &files, NULL, args, environ) != 0)
        die(b, "stintd cannot be started");
    posix_spawn_file_actions_destroy(&files);
    b->port = 0;
    while (b->port == 0 || load_once(b->port, "", "GET", "/readyz", "", NULL) != 200) {
        if (load_now_us() - began > 60000000 || waitpid(b->pid, NULL, WNOHANG) > 0)
            die(b, "stintd does not get ready");
        usleep(1000);
        b->port = port_of(b->log);
    }
    free(args[0]);
    free(args[1]);
    free(args[3]);
    return (double)(load_now_us() - began) / 1e6;
}

static void stop(bench *b, int sig)
{
    kill(b->pid, sig);
    waitpid(b->pid, NULL, 0);
    b->pid = 0;
}

static void prepare(bench *b, const char *folder)
{
    char path[300];
    FILE *f;

    snprintf(b->data, sizeof b->data, "%s/stintd-bench-XXXXXX", folder);
    if (!mkdtemp(b->data))
        die(b, "the folder cannot be made");
    snprintf(b->config, sizeof b->config, "%s/config", b->data);
    snprintf(b->log, sizeof b->log, "%s/log", b->data);
    snprintf(b->store, sizeof b->store, "%s/stint.db", b->data);
    f = fopen(b->config, "w");
    if (!f)
        die(b, "the configuration cannot be written");
    fputs("listen: 127.0.0.1:0\nrate: 1000000\n", f);
    fclose(f);
    start(b);
    snprintf(path, sizeof path, "%s/owner.token", b->data);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%127s", b->token) != 1)
        die(b, "there is no token");
    fclose(f);
}

static void post(const bench *b, const char *path, const char *body)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf answer = {0};

    if (load_once(b->port, b->token, "POST", path, body, &answer) != 201)
        die(b, st_strbuf_str(&answer));
}

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
    int64_t cpu = load_cpu_us(b->pid);

    if (!load_run(l, &r))
        die(b, what);
    cpu = load_cpu_us(b->pid) - cpu;
    printf("%-44s %9.0f/s  %6.1f us cpu  p50 %6.2f ms  p99 %6.2f ms  max %6.1f ms%s\n", what,
           (double)(r.answers * each) / r.seconds, (double)cpu / (double)(r.answers * each),
           (double)r.p50_us / 1e3, (double)r.p99_us / 1e3, (double)r.max_us / 1e3,
           r.refused ? "  REFUSALS" : "");
    fflush(stdout);
}

static void make_world(bench *b)
{
    const load nodes = {.port = b->port,
                        .token = b->token,
                        .method = "POST",
                        .connections = 16,
                        .requests = NODES,
                        .ask = ask_node,
                        .ctx = b};
    char body[128];

    post(b, "/v1/types", "{\"name\":\"h100\"}");
    post(b, "/v1/pools", "{\"name\":\"main\",\"allow\":[\"host-image\"]}");
    measure(b, "nodes announced", &nodes, 1);
    for (int i = 0; i < 10; i++) {
        snprintf(body, sizeof body, "{\"name\":\"team%d\",\"guarantee\":{\"gpu\":400}}", i);
        post(b, "/v1/accounts", body);
    }
}

static void submits_and_reads(bench *b)
{
    load l = {.port = b->port,
              .token = b->token,
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
    l = (load){.port = b->port,
               .token = b->token,
               .method = "GET",
               .connections = 64,
               .requests = 150000,
               .ask = ask_get,
               .ctx = b};
    measure(b, "GET /v1/jobs/ID, 64 connections", &l, 1);
    l = (load){.port = b->port,
               .token = b->token,
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
    load_once(b->port, b->token, "POST", "/v1/tokens",
              "{\"account\":\"team0\",\"user\":\"ann\",\"role\":\"viewer\"}", &answer);
    at = strstr(st_strbuf_str(&answer), "stint_");
    if (at)
        snprintf(ret, 128, "%.*s", (int)strcspn(at, "\""), at);
}

static void streams(bench *b)
{
    int64_t before = load_rss_kib(b->pid);
    int fds[STREAMS], n = 0;
    char token[128];

    while (n < STREAMS) {
        if (n % 50 == 0)
            new_token(b, token);
        fds[n] = load_stream(b->port, token);
        if (fds[n] < 0)
            break;
        n++;
    }
    printf("%d idle event streams: %.1f MB more than before\n", n,
           (double)(load_rss_kib(b->pid) - before) / 1e3);
    while (n > 0)
        close(fds[--n]);
}

/* ---- a long history -------------------------------------------------------------------------- */

static void write_history(bench *b)
{
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    st_err err = {0};
    int r = st_store_open(b->store, NULL, &store, &err);

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
        die(b, err.msg);
}

static void starts(bench *b)
{
    double clean, killed;

    stop(b, SIGTERM);
    write_history(b);
    clean = start(b);
    printf("start with 1,000,000 ended and about 96,000 live jobs: %.2f s after a clean stop",
           clean);
    fflush(stdout);
    load l = {.port = b->port,
              .token = b->token,
              .method = "POST",
              .connections = 1,
              .requests = 4000,
              .ask = ask_submit,
              .ctx = b};
    load_result r;
    if (!load_run(&l, &r))
        die(b, "submits after the start");
    stop(b, SIGKILL);
    killed = start(b);
    printf(", %.2f s after kill -9 with 4,000 rows of log\n", killed);
}

static void clean_up(bench *b)
{
    char command[320];

    stop(b, SIGTERM);
    snprintf(command, sizeof command, "rm -rf '%s'", b->data);
    if (system(command) != 0)
        fprintf(stderr, "bench_stintd: %s is left\n", b->data);
    for (size_t i = 0; i < b->ids.n; i++)
        free(b->ids.v[i]);
    st_vec_free(&b->ids);
}

int main(int argc, char **argv)
{
    bench b = {.program = argc > 1 ? argv[1] : "stintd"};
    struct rlimit files = {65536, 65536};

    setrlimit(RLIMIT_NOFILE, &files);
    prepare(&b, argc > 2 ? argv[2] : "/var/tmp");
    make_world(&b);
    submits_and_reads(&b);
    streams(&b);
    starts(&b);
    clean_up(&b);
    return 0;
}
