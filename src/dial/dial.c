/*
 * Connections that become something else, by libcurl (dial/dial.h).
 */
#include "dial/dial.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/mem.h"

#define CONNECT_MS 10000L
#define HEAD_MAX   16384
#define BODY_MAX   65536
#define PIECE      16384
#define LINGER_MS  5000 /* for the other side, where it cannot be told that we have ended */

struct st_dial {
    CURL *curl;
    curl_socket_t fd;
    bool tls;
    st_strbuf early; /* came with the answer */
    size_t at;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int st_dial_fd(const st_dial *d)
{
    return d->fd;
}

ssize_t st_dial_recv(st_dial *d, char *buf, size_t n)
{
    size_t got = ST_MIN(n, d->early.n - d->at);
    CURLcode code;

    if (got > 0) {
        memcpy(buf, d->early.s + d->at, got);
        d->at += got;
        return (ssize_t)got;
    }
    code = curl_easy_recv(d->curl, buf, n, &got);
    if (code == CURLE_AGAIN)
        return -1;
    return code == CURLE_OK ? (ssize_t)got : -2;
}

ssize_t st_dial_send(st_dial *d, const char *buf, size_t n)
{
    size_t sent = 0;
    CURLcode code = curl_easy_send(d->curl, buf, n, &sent);

    if (code == CURLE_AGAIN)
        return -1;
    return code == CURLE_OK ? (ssize_t)sent : -2;
}

bool st_dial_finish(st_dial *d)
{
    return !d->tls && shutdown(d->fd, SHUT_WR) == 0;
}

void st_dial_close(st_dial *d)
{
    if (!d)
        return;
    curl_easy_cleanup(d->curl);
    st_strbuf_done(&d->early);
    free(d);
}

/* ---- the request ---------------------------------------------------------------------------------- */

static bool wait_for(const st_dial *d, short events, int64_t until)
{
    struct pollfd p = {.fd = d->fd, .events = events};
    int64_t left = until - now_ms();

    return left > 0 && poll(&p, 1, (int)left) > 0;
}

static int ask(st_dial *d, const st_dial_to *to, int64_t until, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *host = strstr(to->url, "://");
    size_t at = 0;
    ssize_t n = 0;

    host = host ? host + 3 : "localhost";
    st_strbuf_addf(&out, "GET %s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: %s\r\n", to->target,
                   (int)strcspn(host, "/"), host, to->program);
    if (to->protocol)
        st_strbuf_addf(&out, "Connection: Upgrade\r\nUpgrade: %s\r\n", to->protocol);
    else
        st_strbuf_add(&out, "Connection: close\r\n");
    if (to->bearer)
        st_strbuf_addf(&out, "Authorization: Bearer %s\r\n", to->bearer);
    st_strbuf_add(&out, "\r\n");
    while (at < out.n) {
        n = st_dial_send(d, out.s + at, out.n - at);
        if (n == -2 || (n == -1 && !wait_for(d, POLLOUT, until)))
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    explicit_bzero(out.s, out.n);
    return at == out.n ? 0 : st_fail(err, ST_EDOWN, "the connection to %s broke", to->url);
}

/* Reads until the end of the head is there; *ret is where the rest begins. */
static int hear_head(st_dial *d, const st_dial_to *to, int64_t until, size_t *ret, st_err *err)
{
    char buf[PIECE];

    for (;;) {
        const char *end = d->early.n > 0 ? strstr(d->early.s, "\r\n\r\n") : NULL;
        ssize_t n;

        if (end) {
            *ret = (size_t)(end - d->early.s) + 4;
            return 0;
        }
        if (d->early.n > HEAD_MAX)
            return st_fail(err, ST_EDOWN, "%s answered with something that is not HTTP", to->url);
        d->at = d->early.n; /* what is here was looked at */
        n = st_dial_recv(d, buf, sizeof buf);
        if (n == 0 || n == -2)
            return st_fail(err, ST_EDOWN, "%s hung up without an answer", to->url);
        if (n == -1 && !wait_for(d, POLLIN, until))
            return st_fail(err, ST_EDOWN, "%s did not answer in time", to->url);
        if (n > 0)
            st_strbuf_addn(&d->early, buf, (size_t)n);
    }
}

/* The rest of an answer that is none of ours: as long as its head says, or until the other side ends. */
static void hear_body(st_dial *d, size_t head, int64_t until, st_strbuf *ret)
{
    char buf[PIECE];
    const char *length = strcasestr(d->early.s, "\r\ncontent-length:");
    size_t most = BODY_MAX;

    if (length && length < d->early.s + head)
        most = ST_MIN((size_t)strtoul(length + 17, NULL, 10), most);
    d->at = head;
    while (ret->n < most) {
        ssize_t n = st_dial_recv(d, buf, ST_MIN(sizeof buf, most - ret->n));

        if (n == 0 || n == -2 || (n == -1 && !wait_for(d, POLLIN, until)))
            return;
        if (n > 0)
            st_strbuf_addn(ret, buf, (size_t)n);
    }
}

static int answered(st_dial *d, const st_dial_to *to, int64_t until, long *ret_status,
                    st_strbuf *ret_body, st_err *err)
{
    size_t head = 0;
    int r = hear_head(d, to, until, &head, err);

    if (r < 0)
        return r;
    if (strncmp(d->early.s, "HTTP/1.", 7) != 0 || d->early.n < 12)
        return st_fail(err, ST_EDOWN, "%s answered with something that is not HTTP", to->url);
    *ret_status = strtol(d->early.s + 9, NULL, 10);
    if (*ret_status == 101 && to->protocol) {
        d->at = head;
        return 0;
    }
    hear_body(d, head, until, ret_body);
    if (!to->protocol && *ret_status >= 200 && *ret_status < 300)
        return 0;
    return st_fail(err, ST_EDOWN, "%s answered with status %ld", to->url, *ret_status);
}

static void aim(CURL *c, const st_dial_to *to)
{
    bool local = strncmp(to->url, "unix:", 5) == 0;

    if (local)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, to->url + 5);
    curl_easy_setopt(c, CURLOPT_URL, local ? "http://localhost" : to->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_easy_setopt(c, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, ST_MIN(CONNECT_MS, (long)to->timeout_ms));
    curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
    if (to->ca)
        curl_easy_setopt(c, CURLOPT_CAINFO, to->ca);
}

int st_dial_open(const st_dial_to *to, st_dial **ret, long *ret_status, st_strbuf *ret_body,
                 st_err *err)
{
    ST_CLEANUP(st_dial_closep) st_dial *d = st_xcalloc(1, sizeof *d);
    int64_t until = now_ms() + to->timeout_ms;
    char said[CURL_ERROR_SIZE] = "";
    CURLcode code;
    int r;

    *ret_status = 0;
    d->curl = curl_easy_init();
    ST_ASSERT(d->curl);
    d->tls = strncmp(to->url, "https:", 6) == 0;
    aim(d->curl, to);
    curl_easy_setopt(d->curl, CURLOPT_ERRORBUFFER, said);
    code = curl_easy_perform(d->curl);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(d->curl, CURLINFO_ACTIVESOCKET, &d->fd);
    curl_easy_setopt(d->curl, CURLOPT_ERRORBUFFER, NULL);
    if (code != CURLE_OK)
        return st_fail(err, ST_EDOWN, "%s: %s", to->url, *said ? said : curl_easy_strerror(code));
    r = ask(d, to, until, err);
    if (r == 0)
        r = answered(d, to, until, ret_status, ret_body, err);
    if (r == 0)
        *ret = ST_TAKE(d);
    return r;
}

/* ---- bytes both ways ------------------------------------------------------------------------------- */

typedef struct way {
    char buf[PIECE];
    size_t at, n;
    bool ended, passed;
} way;

typedef struct pump {
    st_dial *d;
    int fd;
    way out, in; /* from fd, to fd */
    bool moved;  /* something came: there may be more, and what TLS holds does not show in a poll */
    int64_t ended_ms;
} pump;

/* False: it is broken. */
static bool move_out(pump *p)
{
    way *w = &p->out;
    ssize_t n;

    if (w->n == 0 && !w->ended) {
        n = recv(p->fd, w->buf, sizeof w->buf, MSG_DONTWAIT);
        w->ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
        w->at = 0;
        w->n = n > 0 ? (size_t)n : 0;
        p->moved = p->moved || n > 0;
    }
    while (w->n > 0) {
        n = st_dial_send(p->d, w->buf + w->at, w->n);
        if (n == -1)
            return true;
        if (n < 0)
            return false;
        w->at += (size_t)n;
        w->n -= (size_t)n;
    }
    if (w->ended && !w->passed) {
        w->passed = true;
        p->ended_ms = st_dial_finish(p->d) ? 0 : now_ms();
    }
    return true;
}

static bool move_in(pump *p)
{
    way *w = &p->in;
    ssize_t n;

    if (w->n == 0 && !w->ended) {
        n = st_dial_recv(p->d, w->buf, sizeof w->buf);
        if (n == -2)
            return false;
        w->ended = n == 0;
        w->at = 0;
        w->n = n > 0 ? (size_t)n : 0;
        p->moved = p->moved || n > 0;
    }
    while (w->n > 0) {
        n = send(p->fd, w->buf + w->at, w->n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n < 0) /* it takes nothing more; what it has said last is still to be had */
            n = (ssize_t)w->n;
        w->at += (size_t)n;
        w->n -= (size_t)n;
    }
    if (w->ended && !w->passed) {
        w->passed = true;
        shutdown(p->fd, SHUT_WR);
    }
    return true;
}

static bool over(const pump *p)
{
    if (p->in.passed && (p->out.passed || p->d->tls))
        return true;
    return p->ended_ms > 0 && now_ms() - p->ended_ms >= LINGER_MS;
}

void st_dial_pump(st_dial *d, int fd, int stop)
{
    ST_CLEANUP(st_freep) pump *p = st_xcalloc(1, sizeof *p);

    p->d = d;
    p->fd = fd;
    for (;;) {
        struct pollfd fds[] = {{.fd = fd}, {.fd = d->fd}, {.fd = stop, .events = POLLIN}};

        p->moved = false;
        if (!move_out(p) || !move_in(p) || over(p))
            return;
        fds[0].events =
            (short)((p->out.n == 0 && !p->out.ended ? POLLIN : 0) | (p->in.n > 0 ? POLLOUT : 0));
        fds[1].events =
            (short)((p->in.n == 0 && !p->in.ended ? POLLIN : 0) | (p->out.n > 0 ? POLLOUT : 0));
        if (!fds[0].events)
            fds[0].fd = -1; /* one that hung up would be told of again and again */
        if (!fds[1].events)
            fds[1].fd = -1;
        poll(fds, 3, p->moved ? 0 : p->ended_ms > 0 ? 200 : -1);
        if (fds[2].revents)
            return;
    }
}
