/*
 * Questions beside submits: a real stintd on a fleet of 50,000 GPUs with 30,000 jobs that wait.
 *
 *   bench_questions PATH_OF_STINTD [FOLDER [JOBS]]
 *
 * How long why and a dry run take, and what happens to other people's submits while four clients ask without pause.
 * Works with a stintd that answers questions in its control loop as well.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "load.h"
#include "service.h"

#define NODES 6250
#define TEAMS 100
#define BATCH 1000
#define JOBS  44000

/* Each may need a whole pass of the scheduler: not more than it can do. */
#define RATE    5
#define SUBMITS 100

typedef struct bench {
    service s;
    int64_t key, n;
    ST_VEC(char *) ids; /* of jobs that wait */
} bench;

/* ---- the world ---------------------------------------------------------------------------- */

static void ask_node(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    (void)ctx;
    (void)key;
    strcpy(path, "/v1/nodes");
    st_strbuf_addf(body, "{\"name\":\"n%04d\",\"gpu\":\"h100\",\"rack\":\"r%d\",\"block\":\"b%d\"}",
                   (int)i, (int)i / 16, (int)i / 128);
}

/* One in eight is a gang, the others take 1 to 8 GPUs. */
static void one_job(st_strbuf *out, int64_t i, const char *name)
{
    static const int gpus[] = {1, 2, 4, 8, 8, 4, 2, 8};
    int tasks = i % 8 == 7 ? 2 << (i / 8 % 4) : 1;

    st_strbuf_addf(
        out,
        "{\"name\":\"%s-%" PRId64 "\",\"account\":\"team%" PRId64
        "\",\"user\":\"u%d\",\"gpus\":%d,\"tasks\":%d,\"limit\":\"%dh\",\"sim\":{\"run\":\"%dh\"}}",
        name, i, i * 7 % TEAMS, (int)(i % 11), gpus[i % 8], tasks, (int)(4 + i % 40),
        (int)(4 + i % 40));
}

static void ask_batch(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    (void)ctx;
    (void)key;
    strcpy(path, "/v1/jobs/batch");
    st_strbuf_add(body, "{\"jobs\":[");
    for (int j = 0; j < BATCH; j++) {
        if (j)
            st_strbuf_addc(body, ',');
        one_job(body, i * BATCH + j, "train");
    }
    st_strbuf_add(body, "]}");
}

static void run_quietly(bench *b, const load *l)
{
    load_result r;

    if (!load_run(l, &r) || r.refused > 0)
        service_die(&b->s, "the world could not be made");
}

static void make_world(bench *b, int64_t jobs)
{
    load l = {.port = b->s.port,
              .token = b->s.token,
              .method = "POST",
              .connections = 16,
              .requests = NODES,
              .ask = ask_node,
              .ctx = b};
    char body[128];

    service_post(&b->s, "/v1/types", "{\"name\":\"h100\"}");
    service_post(&b->s, "/v1/pools", "{\"name\":\"main\",\"allow\":[\"host-image\"]}");
    run_quietly(b, &l);
    for (int i = 0; i < TEAMS; i++) {
        snprintf(body, sizeof body, "{\"name\":\"team%d\",\"guarantee\":{\"gpu\":400}}", i);
        service_post(&b->s, "/v1/accounts", body);
    }
    l.connections = 1;
    l.requests = jobs / BATCH;
    l.ask = ask_batch;
    run_quietly(b, &l);
}

static void learn_waiting(bench *b)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf answer = {0};

    load_once(b->s.port, b->s.token, "GET", "/v1/jobs?state=pending&limit=1000", "", &answer);
    for (const char *at = st_strbuf_str(&answer); (at = strstr(at, "\"id\":\"j")); at += 7)
        st_vec_push(&b->ids, st_xstrndup(at + 6, 9));
    if (b->ids.n == 0)
        service_die(&b->s, "nobody waits");
}

/* ---- what is measured ----------------------------------------------------------------------- */

static void ask_submit(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    bench *b = ctx;

    (void)i;
    strcpy(path, "/v1/jobs");
    snprintf(key, 64, "%d-%" PRId64, (int)getpid(), ++b->key);
    one_job(body, b->key, "late");
}

static void ask_why(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    const bench *b = ctx;

    (void)key;
    (void)body;
    snprintf(path, 128, "/v1/jobs/%s/why", b->ids.v[(size_t)(i * 7919) % b->ids.n]);
}

static void ask_dry(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    (void)ctx;
    (void)key;
    strcpy(path, "/v1/jobs?dry_run=true");
    one_job(body, i, "maybe");
}

static void ask_metrics(void *ctx, int64_t i, char path[128], char key[64], st_strbuf *body)
{
    (void)ctx;
    (void)i;
    (void)key;
    (void)body;
    strcpy(path, "/metrics");
}

static load load_of(const bench *b, const char *method, int connections, int64_t requests,
                    void (*ask)(void *, int64_t, char[128], char[64], st_strbuf *))
{
    union {
        const bench *from;
        bench *to;
    } same = {.from = b};

    return (load){.port = b->s.port,
                  .token = b->s.token,
                  .method = method,
                  .connections = connections,
                  .requests = requests,
                  .ask = ask,
                  .ctx = same.to};
}

static void measure(bench *b, const char *what, load l)
{
    load_result r;

    if (!load_run(&l, &r))
        service_die(&b->s, what);
    printf("%-52s %8.0f/s  p50 %7.2f ms  p99 %7.2f ms  max %7.1f ms%s\n", what,
           (double)r.answers / r.seconds, (double)r.p50_us / 1e3, (double)r.p99_us / 1e3,
           (double)r.max_us / 1e3, r.refused ? "  REFUSALS" : "");
    fflush(stdout);
}

/* Asks until it is killed. */
static pid_t ask_on(const bench *b, load l)
{
    pid_t pid = fork();
    load_result r;

    if (pid != 0)
        return pid;
    l.requests = 1000000;
    load_run(&l, &r);
    (void)b;
    _exit(0);
}

static void beside(bench *b, const char *what, load asking)
{
    pid_t pid = ask_on(b, asking);
    load l = load_of(b, "POST", 4, SUBMITS, ask_submit);

    usleep(500000);
    l.per_s = RATE;
    measure(b, what, l);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    bench b = {.s = {.program = argc > 1 ? argv[1] : "stintd"}};
    int64_t jobs = argc > 3 ? atoll(argv[3]) : JOBS;
    struct rlimit files = {65536, 65536};
    char command[320];
    load l;

    setrlimit(RLIMIT_NOFILE, &files);
    service_prepare(&b.s, argc > 2 ? argv[2] : "/var/tmp");
    make_world(&b, jobs);
    learn_waiting(&b);
    printf("%d GPUs, %" PRId64 " jobs; stintd has %.0f MiB\n", NODES * 8, jobs,
           (double)load_rss_kib(b.s.pid) / 1024);
    l = load_of(&b, "POST", 4, SUBMITS, ask_submit);
    l.per_s = RATE;
    measure(&b, "submits at 5/s, quiet", l);
    measure(&b, "why, 1 connection", load_of(&b, "GET", 1, 300, ask_why));
    measure(&b, "why, 4 connections", load_of(&b, "GET", 4, 1000, ask_why));
    measure(&b, "dry runs, 1 connection", load_of(&b, "POST", 1, 50, ask_dry));
    measure(&b, "/metrics, 1 connection", load_of(&b, "GET", 1, 50, ask_metrics));
    beside(&b, "submits at 5/s, 1 client asks for dry runs", load_of(&b, "POST", 1, 0, ask_dry));
    beside(&b, "submits at 5/s, 4 clients ask for dry runs", load_of(&b, "POST", 4, 0, ask_dry));
    beside(&b, "submits at 5/s, 4 clients ask why", load_of(&b, "GET", 4, 0, ask_why));
    beside(&b, "submits at 5/s, 4 clients ask for /metrics", load_of(&b, "GET", 4, 0, ask_metrics));
    measure(&b, "submits, 48 connections, as fast as they go",
            load_of(&b, "POST", 48, 2000, ask_submit));
    service_stop(&b.s, SIGTERM);
    snprintf(command, sizeof command, "rm -rf '%s'", b.s.data);
    if (system(command) != 0)
        fprintf(stderr, "bench_questions: %s is left\n", b.s.data);
    for (size_t i = 0; i < b.ids.n; i++)
        free(b.ids.v[i]);
    st_vec_free(&b.ids);
    return 0;
}
