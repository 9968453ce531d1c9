/*
 * The load generator (bench/load.h).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "load.h"

#define SILENCE_MS 30000

typedef struct connection {
    int fd;
    bool busy;
    int64_t request, due_us;
    st_strbuf out, in;
    size_t sent;
} connection;

typedef struct run {
    const load *l;
    connection *cs;
    int epoll;
    int64_t began_us, asked, answers, refused;
    int64_t *took_us;
} run;

int64_t load_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int dial(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void write_head(st_strbuf *out, const char *method, const char *path, const char *token,
                       const char *key, size_t n)
{
    st_strbuf_addf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n", method,
                   path, token);
    if (key[0])
        st_strbuf_addf(out, "Idempotency-Key: %s\r\n", key);
    if (n > 0)
        st_strbuf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", n);
    st_strbuf_add(out, "\r\n");
}

/* ---- answers ------------------------------------------------------------------------------ */

static int64_t length_of(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");

    return at ? strtoll(at + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

/* Whether a whole answer is there; where its body begins and how long it is. */
static bool whole(st_strbuf *in, size_t *ret_at, size_t *ret_n)
{
    const char *text = st_strbuf_str(in), *end = strstr(text, "\r\n\r\n");

    if (!end)
        return false;
    *ret_at = (size_t)(end - text) + 4;
    *ret_n = (size_t)length_of(text);
    return in->n >= *ret_at + *ret_n;
}

static bool push(run *r, connection *c)
{
    while (c->sent < c->out.n) {
        ssize_t n =
            send(c->fd, c->out.s + c->sent, c->out.n - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN) {
            fprintf(stderr, "load: send: %s\n", strerror(errno));
            return false;
        }
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    struct epoll_event ev = {.events = EPOLLIN | (c->sent < c->out.n ? EPOLLOUT : 0),
                             .data.ptr = c};
    if (c->sent < c->out.n || c->out.n > 65536)
        epoll_ctl(r->epoll, EPOLL_CTL_MOD, c->fd, &ev);
    return true;
}

static bool ask(run *r, connection *c, int64_t due_us)
{
    const load *l = r->l;
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    char path[128] = "", key[64] = "";

    c->request = r->asked++;
    c->due_us = due_us;
    c->busy = true;
    c->sent = 0;
    l->ask(l->ctx, c->request, path, key, &body);
    st_strbuf_clear(&c->out);
    st_strbuf_clear(&c->in);
    write_head(&c->out, l->method, path, l->token, key, body.n);
    st_strbuf_addn(&c->out, st_strbuf_str(&body), body.n);
    return push(r, c);
}

/* One that had nothing to do for long was closed at the other end. */
static bool redial(run *r, connection *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

    close(c->fd);
    c->fd = dial(r->l->port);
    return c->fd >= 0 && epoll_ctl(r->epoll, EPOLL_CTL_ADD, c->fd, &ev) == 0;
}

static bool pull(run *r, connection *c)
{
    char buf[65536];
    size_t at, len;
    ssize_t n = recv(c->fd, buf, sizeof buf, MSG_DONTWAIT);
    int status;

    if (n < 0 && errno == EAGAIN)
        return true;
    if (n == 0 && !c->busy)
        return redial(r, c);
    if (n <= 0) {
        fprintf(stderr, "load: the connection ended: %s\n", n < 0 ? strerror(errno) : "closed");
        return false;
    }
    st_strbuf_addn(&c->in, buf, (size_t)n);
    if (!whole(&c->in, &at, &len))
        return true;
    status = atoi(c->in.s + 9);
    r->took_us[r->answers++] = load_now_us() - c->due_us;
    c->busy = false;
    if (status / 100 != 2 && r->refused++ == 0)
        fprintf(stderr, "load: status %d: %.*s\n", status, (int)ST_MIN(len, 300), c->in.s + at);
    if (r->l->answered)
        r->l->answered(r->l->ctx, c->request, status, c->in.s + at, len);
    return true;
}

/* ---- a run -------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Gives idle connections what is due; how long to wait for more of it. */
static int feed(run *r, bool *ret_ok)
{
    const load *l = r->l;
    int64_t now = load_now_us();

    for (int i = 0; i < l->connections && r->asked < l->requests && *ret_ok; i++) {
        int64_t due = l->per_s ? r->began_us + r->asked * 1000000 / l->per_s : now;

        if (due > now)
            return (int)((due - now) / 1000) + 1;
        if (!r->cs[i].busy)
            *ret_ok = ask(r, &r->cs[i], due);
    }
    return SILENCE_MS;
}

static bool play(run *r)
{
    struct epoll_event evs[64];
    bool ok = true;

    while (ok && r->answers < r->l->requests) {
        int wait = feed(r, &ok);
        int n = ok ? epoll_wait(r->epoll, evs, 64, wait) : 0;

        if (n == 0 && wait >= SILENCE_MS) {
            fprintf(stderr, "load: nothing came for %d s\n", SILENCE_MS / 1000);
            return false;
        }
        for (int i = 0; i < n && ok; i++) {
            connection *c = evs[i].data.ptr;

            if (evs[i].events & EPOLLOUT)
                ok = push(r, c);
            if (ok && evs[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                ok = pull(r, c);
            if (ok && !c->busy && !r->l->per_s && r->asked < r->l->requests)
                ok = ask(r, c, load_now_us());
        }
    }
    return ok;
}

bool load_run(const load *l, load_result *ret)
{
    run r = {.l = l, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    bool ok = true;

    r.cs = st_xcalloc((size_t)l->connections, sizeof *r.cs);
    r.took_us = st_xcalloc((size_t)l->requests, sizeof *r.took_us);
    for (int i = 0; i < l->connections && ok; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &r.cs[i]};

        r.cs[i].fd = dial(l->port);
        ok = r.cs[i].fd >= 0 && epoll_ctl(r.epoll, EPOLL_CTL_ADD, r.cs[i].fd, &ev) == 0;
    }
    r.began_us = load_now_us();
    ok = ok && play(&r);
    *ret = (load_result){.answers = r.answers,
                         .refused = r.refused,
                         .seconds = (double)(load_now_us() - r.began_us) / 1e6};
    if (r.answers > 0) {
        qsort(r.took_us, (size_t)r.answers, sizeof *r.took_us, by_size);
        ret->p50_us = r.took_us[r.answers / 2];
        ret->p99_us = r.took_us[r.answers * 99 / 100];
        ret->max_us = r.took_us[r.answers - 1];
    }
    for (int i = 0; i < l->connections; i++) {
        if (r.cs[i].fd >= 0)
            close(r.cs[i].fd);
        st_strbuf_done(&r.cs[i].in);
        st_strbuf_done(&r.cs[i].out);
    }
    close(r.epoll);
    free(r.cs);
    free(r.took_us);
    return ok;
}

int load_once(int port, const char *token, const char *method, const char *path, const char *body,
              st_strbuf *ret)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf in = {0};
    char buf[4096];
    size_t at = 0, len = 0, n = strlen(body);
    bool done = false;
    ssize_t got = 1;
    int fd = dial(port);

    if (fd < 0)
        return 0;
    write_head(&out, method, path, token, "", n);
    st_strbuf_add(&out, body);
    if (send(fd, out.s, out.n, MSG_NOSIGNAL) == (ssize_t)out.n)
        while (!(done = whole(&in, &at, &len)) && (got = recv(fd, buf, sizeof buf, 0)) > 0)
            st_strbuf_addn(&in, buf, (size_t)got);
    close(fd);
    if (!done)
        return 0;
    if (ret)
        st_strbuf_addn(ret, in.s + at, len);
    return atoi(in.s + 9);
}

int load_stream(int port, const char *token)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char buf[2048];
    int fd = dial(port);

    if (fd < 0)
        return -1;
    write_head(&out, "GET", "/v1/events", token, "", 0);
    if (send(fd, out.s, out.n, MSG_NOSIGNAL) == (ssize_t)out.n &&
        recv(fd, buf, sizeof buf, 0) > 12 && memcmp(buf + 9, "200", 3) == 0)
        return fd;
    close(fd);
    return -1;
}

/* ---- what the server costs ---------------------------------------------------------------- */

int64_t load_cpu_us(pid_t pid)
{
    char path[64], line[1024] = "";
    uint64_t user = 0, sys = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    if (!f)
        return 0;
    if (fgets(line, sizeof line, f) && strrchr(line, ')'))
        sscanf(strrchr(line, ')') + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user, &sys);
    fclose(f);
    return (int64_t)((user + sys) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

int64_t load_rss_kib(pid_t pid)
{
    char path[64], line[256];
    int64_t kib = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtoll(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}
