/*
 * One stintd and the agents of 6,250 nodes: each has a long poll open and says every five seconds
 * what it runs. Measured: what stintd needs of a processor for that, and how long a status takes.
 * The agents are in this process, stintd is in a child. `bench_agents NODES SECONDS` for others.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "model/proof.h"
#include "stintd/stintd.h"

#define INTERVAL_US INT64_C(5000000)
#define GANG        8
#define WINDOW      32 /* registrations under way */

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void die(const char *what)
{
    fprintf(stderr, "agents: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- stintd ------------------------------------------------------------------------------ */

typedef struct hello {
    int port;
    char owner[ST_TOKEN_TEXT];
} hello;

static void serve(const char *dir, int out)
{
    st_cmd_token token = {.who = {.role = ST_ROLE_OWNER, .user = "bench", .source = "bench"},
                          .account = "",
                          .user = "root",
                          .role = ST_ROLE_OWNER,
                          .label = "",
                          .expires_ms = ST_STORE_NEVER};
    st_config config;
    st_serve *s;
    st_err err = {0};
    hello h = {0};
    char path[128];
    bool ok;

    st_config_init(&config);
    snprintf(path, sizeof path, "%s/stint.db", dir);
    config.store = path;
    config.listen = "127.0.0.1:0";
    config.engine = "native";
    config.connections = 100000;
    config.rate = 1000000;
    st_cmd_token_make(&token);
    ok = st_serve_new(&config, &s, &err) == 0 && st_serve_start(s, &h.port, &err) == 0 &&
         st_serve_do(s, &token.cmd, &err) == 0;
    snprintf(h.owner, sizeof h.owner, "%s", token.text);
    if (!ok)
        fprintf(stderr, "agents: %s\n", err.msg);
    if (!ok || write(out, &h, sizeof h) != (ssize_t)sizeof h)
        _exit(1);
    pause();
    _exit(0);
}

/* Processor time of a process in microseconds: user and system. */
static void cpu_of(pid_t pid, int64_t ret[2])
{
    char path[64], text[1024] = "";
    unsigned long user = 0, sys = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    if (!f || !fgets(text, sizeof text, f))
        die(path);
    fclose(f);
    sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
           &sys);
    ret[0] = (int64_t)user * 1000000 / sysconf(_SC_CLK_TCK);
    ret[1] = (int64_t)sys * 1000000 / sysconf(_SC_CLK_TCK);
}

/* ---- HTTP -------------------------------------------------------------------------------- */

typedef struct line {
    int fd;
    st_strbuf got;
} line;

static void dial(line *l, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    l->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&at, sizeof at) < 0)
        die("connect");
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void say(const line *l, const char *method, const char *path, const char *token,
                const char *proof, const char *body)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_strbuf_addf(&out, "%s %s HTTP/1.1\r\nHost: stint\r\nAuthorization: Bearer %s\r\n", method,
                   path, token);
    if (proof)
        st_strbuf_addf(&out, "Stint-Proof: %s\r\n", proof);
    if (body)
        st_strbuf_addf(&out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                       strlen(body));
    st_strbuf_addf(&out, "\r\n%s", body ? body : "");
    if (send(l->fd, out.s, out.n, MSG_NOSIGNAL) != (ssize_t)out.n)
        die("send");
}

/* The status of an answer that is complete, with its body; 0: not yet. */
static int answer(line *l, json_t **ret)
{
    const char *end = l->got.n ? strstr(l->got.s, "\r\n\r\n") : NULL;
    const char *length = end ? strcasestr(l->got.s, "\r\nContent-Length:") : NULL;
    size_t head = end ? (size_t)(end + 4 - l->got.s) : 0;
    size_t n = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    int status;

    if (!end || l->got.n < head + n)
        return 0;
    status = (int)strtol(l->got.s + 9, NULL, 10);
    if (ret)
        *ret = n ? json_loadb(l->got.s + head, n, 0, NULL) : NULL;
    st_strbuf_clear(&l->got);
    return status;
}

static int hear(line *l, json_t **ret)
{
    char bytes[65536];
    ssize_t n = recv(l->fd, bytes, sizeof bytes, 0);

    if (n <= 0)
        die("recv");
    st_strbuf_addn(&l->got, bytes, (size_t)n);
    return answer(l, ret);
}

static json_t *owner(const hello *h, const char *path, const char *body)
{
    line l = {0};
    json_t *ret = NULL;
    int status;

    dial(&l, h->port);
    say(&l, "POST", path, h->owner, NULL, body);
    while (!(status = hear(&l, &ret)))
        ;
    if (status != 201)
        die(path);
    close(l.fd);
    st_strbuf_done(&l.got);
    return ret;
}

/* ---- agents ------------------------------------------------------------------------------ */

typedef struct agent {
    line status, poll;
    unsigned char secret[ST_SECRET_BYTES];
    st_proof proof; /* of its next message */
    char job[32];
    int stay, task;
    int64_t revision, due_us, said_us;
} agent;

typedef struct bench {
    hello h;
    agent *a;
    int n, epoll;
    int next; /* whose status is due next */
    int64_t polls;
    ST_VEC(int64_t) took;
} bench;

/* Sends with the proof of the next message. */
static void say_signed(agent *a, const line *l, const char *method, const char *path,
                       const char *body)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf proof = {0};

    a->proof.n++;
    st_proof_digest(method, path, body, body ? strlen(body) : 0, a->proof.digest);
    st_proof_sign(&a->proof, a->secret, &proof);
    say(l, method, path, st_strbuf_str(&proof), NULL, body);
}

static void send_registration(agent *a, int at, const char *token)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf proof = {0};
    unsigned char key[ST_KEY_BYTES];
    char text[ST_KEY_TEXT], body[640];
    json_t *challenge = NULL;

    crypto_sign_keypair(key, a->secret);
    sodium_bin2hex(text, sizeof text, key, sizeof key);
    snprintf(a->proof.node, sizeof a->proof.node, "n%d", at);
    memset(a->proof.boot, '0' + at % 10, ST_BOOT_TEXT - 1);
    say(&a->status, "GET", "/v1/agent/challenge", "", NULL, NULL);
    while (hear(&a->status, &challenge) == 0)
        ;
    snprintf(a->proof.session, sizeof a->proof.session, "%s",
             json_string_value(json_object_get(challenge, "challenge")));
    json_decref(challenge);
    snprintf(body, sizeof body,
             "{\"name\":\"n%d\",\"machine_id\":\"m%d\",\"key\":\"%s\",\"cpu\":128,"
             "\"ram\":\"1Ti\",\"gpu\":{\"type\":\"h100\",\"count\":8},"
             "\"topology\":{\"rack\":\"r%d\",\"block\":\"b%d\"}}",
             at, at, text, at / 8, at / 64);
    st_proof_digest("POST", "/v1/agent/register", body, strlen(body), a->proof.digest);
    st_proof_sign(&a->proof, a->secret, &proof);
    say(&a->status, "POST", "/v1/agent/register", token, st_strbuf_str(&proof), body);
}

static void register_all(bench *b)
{
    json_t *join;
    char body[128];

    snprintf(body, sizeof body, "{\"pool\":\"main\",\"uses\":%d,\"new_types\":true}", b->n);
    join = owner(&b->h, "/v1/admin/join-tokens", body);
    for (int at = 0; at < b->n + WINDOW; at++) {
        agent *done = at >= WINDOW ? &b->a[at - WINDOW] : NULL;
        json_t *terms = NULL;

        if (at < b->n) {
            dial(&b->a[at].status, b->h.port);
            send_registration(&b->a[at], at, json_string_value(json_object_get(join, "token")));
        }
        if (!done)
            continue;
        while (hear(&done->status, &terms) == 0)
            ;
        const char *session = json_string_value(json_object_get(terms, "session"));
        if (!session)
            die(json_string_value(json_object_get(terms, "detail")));
        snprintf(done->proof.session, sizeof done->proof.session, "%s", session);
        json_decref(terms);
    }
    json_decref(join);
}

static void submit_all(bench *b)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};

    st_strbuf_add(&body, "{\"jobs\":[");
    for (int i = 0; i < b->n / GANG; i++)
        st_strbuf_addf(&body,
                       "%s{\"name\":\"g%d\",\"account\":\"lab\",\"user\":\"ann\",\"tasks\":%d,"
                       "\"gpus\":8,\"command\":[\"python\",\"train.py\"]}",
                       i ? "," : "", i, GANG);
    st_strbuf_add(&body, "]}");
    json_decref(owner(&b->h, "/v1/jobs/batch", st_strbuf_str(&body)));
}

static void watch(const bench *b, const line *l, uint64_t what)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = what};

    if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, l->fd, &e) < 0)
        die("epoll");
}

static void poll_again(agent *a)
{
    char path[96];

    snprintf(path, sizeof path, "/v1/agent/desired?revision=%" PRId64 "&wait=60", a->revision);
    say_signed(a, &a->poll, "GET", path, NULL);
}

static void take_list(bench *b, agent *a, json_t *list)
{
    const json_t *job = json_array_get(json_object_get(list, "jobs"), 0);
    const json_t *task = json_array_get(json_object_get(job, "tasks"), 0);

    b->polls++;
    if (list)
        a->revision = json_integer_value(json_object_get(list, "revision"));
    if (job) {
        snprintf(a->job, sizeof a->job, "%s", json_string_value(json_object_get(job, "job")));
        a->stay = (int)json_integer_value(json_object_get(job, "stay"));
        a->task = (int)json_integer_value(json_object_get(task, "task"));
    }
    poll_again(a);
}

static void say_status(agent *a)
{
    char body[512], task[128] = "";

    if (a->job[0])
        snprintf(task, sizeof task,
                 "{\"job\":\"%s\",\"stay\":%d,\"task\":%d,\"state\":\"running\"}", a->job, a->stay,
                 a->task);
    snprintf(body, sizeof body,
             "{\"epoch\":1,\"revision\":%" PRId64 ",\"node\":{\"health\":\"ok\"},\"tasks\":[%s]}",
             a->revision, task);
    a->said_us = now_us();
    say_signed(a, &a->status, "POST", "/v1/agent/status", body);
}

/* Statuses spread over their interval, answers taken as they come. */
static void run(bench *b, int64_t us, bool measured)
{
    int64_t end = now_us() + us;

    while (now_us() < end) {
        struct epoll_event e[256];
        int n = epoll_wait(b->epoll, e, 256, 1);

        for (int i = 0; i < n; i++) {
            agent *a = &b->a[e[i].data.u64 >> 1];
            json_t *body = NULL;

            if (e[i].data.u64 & 1) {
                if (hear(&a->poll, &body))
                    take_list(b, a, body);
            } else if (hear(&a->status, &body)) {
                if (!body)
                    die("status");
                if (measured)
                    st_vec_push(&b->took, now_us() - a->said_us);
                a->said_us = 0;
            }
            json_decref(body);
        }
        int64_t now = now_us();
        for (; b->a[b->next].due_us <= now; b->next = (b->next + 1) % b->n) {
            if (b->a[b->next].said_us == 0)
                say_status(&b->a[b->next]);
            b->a[b->next].due_us += INTERVAL_US;
        }
    }
}

static int by_size(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return a < b ? -1 : a > b;
}

static void measure(bench *b, pid_t pid, int64_t us)
{
    int64_t before[2], after[2], began, polls, running = 0;
    double s;

    began = now_us();
    for (int i = 0; i < b->n; i++)
        b->a[i].due_us = began + INTERVAL_US * i / b->n;
    run(b, INTERVAL_US, false);
    for (int i = 0; i < b->n; i++)
        running += b->a[i].job[0] != '\0';
    cpu_of(pid, before);
    began = now_us();
    polls = b->polls;
    run(b, us, true);
    cpu_of(pid, after);
    s = (double)(now_us() - began) / 1e6;
    qsort(b->took.v, b->took.n, sizeof *b->took.v, by_size);
    printf("agents: %d nodes, %" PRId64 " of them with a task, %.0f s: %zu statuses (%.0f/s), "
           "%" PRId64 " lists\n",
           b->n, running, s, b->took.n, (double)b->took.n / s, b->polls - polls);
    printf("agents: stintd uses %.1f %% of a core (user %.1f, system %.1f)\n",
           (double)(after[0] + after[1] - before[0] - before[1]) / s / 1e4,
           (double)(after[0] - before[0]) / s / 1e4, (double)(after[1] - before[1]) / s / 1e4);
    if (b->took.n > 0)
        printf("agents: a status takes p50 %.2f ms, p99 %.2f ms, at most %.2f ms, seen from here\n",
               (double)b->took.v[b->took.n / 2] / 1e3,
               (double)b->took.v[b->took.n * 99 / 100] / 1e3,
               (double)b->took.v[b->took.n - 1] / 1e3);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/stint-bench-XXXXXX", command[64];
    bench b = {.n = argc > 1 ? atoi(argv[1]) : 6250};
    int64_t us = (argc > 2 ? atoi(argv[2]) : 20) * INT64_C(1000000), t;
    struct rlimit files;
    int pipes[2];
    pid_t pid;

    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if ((rlim_t)b.n * 2 + 100 > files.rlim_max) {
        printf("agents: only %llu open files are allowed; not measured\n",
               (unsigned long long)files.rlim_max);
        return 0;
    }
    if (sodium_init() < 0 || !mkdtemp(dir) || pipe(pipes) < 0)
        die("start");
    pid = fork();
    if (pid == 0)
        serve(dir, pipes[1]);
    if (read(pipes[0], &b.h, sizeof b.h) != (ssize_t)sizeof b.h)
        die("stintd");
    b.a = st_xcalloc((size_t)b.n, sizeof *b.a);
    b.epoll = epoll_create1(0);
    json_decref(owner(&b.h, "/v1/pools", "{\"name\":\"main\",\"allow\":[\"host-image\"]}"));
    json_decref(owner(&b.h, "/v1/accounts", "{\"name\":\"lab\"}"));
    t = now_us();
    register_all(&b);
    printf("agents: %d registered in %.1f s\n", b.n, (double)(now_us() - t) / 1e6);
    for (int i = 0; i < b.n; i++) {
        dial(&b.a[i].poll, b.h.port);
        poll_again(&b.a[i]);
        watch(&b, &b.a[i].status, (uint64_t)i << 1);
        watch(&b, &b.a[i].poll, (uint64_t)i << 1 | 1);
    }
    t = now_us();
    submit_all(&b);
    printf("agents: %d gangs submitted in %.1f s\n", b.n / GANG, (double)(now_us() - t) / 1e6);
    fflush(stdout);
    measure(&b, pid, us);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) == 0 ? 0 : 1;
}
