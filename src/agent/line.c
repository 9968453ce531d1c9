/*
 * HTTP without waiting (agent/line.h).
 */
#include "agent/line.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/files.h"
#include "agent/poll.h"
#include "base/mem.h"

#define CONNECT_MS  5000L
#define BAD_PORT_MS 30000
#define BODY_MAX    (64u << 20)

/* A socket of curl's, while it is one. */
typedef struct curl_socket {
    st_lines *lines;
    st_agent_watch watch;
    struct curl_socket *next;
} curl_socket;

struct st_lines {
    CURLM *multi;
    st_poll *poll;
    curl_socket *dead;   /* to be freed after the wait */
    int64_t curl_due_ms; /* boot clock; -1: curl waits for nothing */
    char *url, *ca;
    char *own;      /* the same with the port for agents; NULL: none is known */
    int64_t bad_ms; /* boot clock: until then that port is not tried */
};

struct st_agent_line {
    st_lines *lines;
    CURL *curl;
    struct curl_slist *headers;
    st_strbuf proof; /* of the next request; "": none */
    st_line_fn fn;
    void *ctx;
    st_strbuf sent, got;
    char said[CURL_ERROR_SIZE];
    bool busy;
};

/* ---- curl's sockets ---------------------------------------------------------------------------- */

static void on_ready(void *ctx, uint32_t events)
{
    const curl_socket *s = ctx;
    int running;

    curl_multi_socket_action(s->lines->multi, s->watch.fd,
                             (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                                 (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                                 (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
                             &running);
}

/* One that curl is done with may have been reported in the same wait: it goes when that is over. */
static void let_go(st_lines *l, curl_socket *s)
{
    st_poll_remove(l->poll, &s->watch);
    s->next = l->dead;
    l->dead = s;
}

static void on_dead(void *ctx, uint32_t events)
{
    (void)ctx;
    (void)events;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    st_lines *l = ctx;
    curl_socket *s = known;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (s) {
            s->watch.ready = on_dead;
            let_go(l, s);
        }
        return 0;
    }
    if (!s) {
        s = st_xcalloc(1, sizeof *s);
        *s = (curl_socket){.lines = l, .watch = {.fd = fd, .ready = on_ready, .ctx = s}};
        curl_multi_assign(l->multi, fd, s);
    }
    st_poll_add(l->poll, &s->watch,
                (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
                    (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0));
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    st_lines *l = ctx;

    (void)multi;
    l->curl_due_ms = timeout_ms < 0 ? -1 : st_boot_ms() + timeout_ms;
    return 0;
}

int st_lines_new(const st_lines_conf *conf, st_lines **ret, st_err *err)
{
    st_lines *l;

    if (strncmp(conf->url, "http://", 7) != 0 && strncmp(conf->url, "https://", 8) != 0)
        return st_fail(err, ST_EINVAL, "%s: the address of stintd begins with http:// or https://",
                       conf->url);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    l = st_xcalloc(1, sizeof *l);
    l->curl_due_ms = -1;
    l->url = st_xstrndup(conf->url, strlen(conf->url) - (conf->url[strlen(conf->url) - 1] == '/'));
    l->ca = conf->ca ? st_xstrdup(conf->ca) : NULL;
    l->poll = st_poll_new();
    l->multi = curl_multi_init();
    ST_ASSERT(l->multi);
    curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
    curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
    *ret = l;
    return 0;
}

static void free_dead(st_lines *l)
{
    while (l->dead) {
        curl_socket *s = l->dead;

        l->dead = s->next;
        free(s);
    }
}

void st_lines_free(st_lines *l)
{
    if (!l)
        return;
    curl_multi_cleanup(l->multi);
    free_dead(l);
    st_poll_free(l->poll);
    free(l->url);
    free(l->own);
    free(l->ca);
    free(l);
}

void st_lines_wake(st_lines *l)
{
    st_poll_wake(l->poll);
}

const char *st_lines_url(const st_lines *l)
{
    return l->own ? l->own : l->url;
}

void st_lines_port(st_lines *l, int port)
{
    const char *host = strstr(l->url, "://") + 3;
    size_t n = strcspn(host, "/");
    const char *colon = memrchr(host, ':', n), *bracket = memrchr(host, ']', n);
    ST_CLEANUP(st_strbuf_done) st_strbuf url = {0};

    if (port <= 0 || port > 65535 || st_boot_ms() < l->bad_ms)
        return;
    if (!colon || (bracket && bracket > colon))
        colon = host + n;
    st_strbuf_addf(&url, "%.*s:%d%s", (int)(colon - l->url), l->url, port, host + n);
    free(l->own);
    l->own = st_strbuf_take(&url);
}

/* Nothing answers there, as behind a wall that lets only one port through: the address that was given will do. */
static void forget_port(st_lines *l)
{
    free(ST_TAKE(l->own));
    l->bad_ms = st_boot_ms() + BAD_PORT_MS;
}

static void finish(st_agent_line *line, CURLcode code)
{
    st_answer a = {0};

    curl_multi_remove_handle(line->lines->multi, line->curl);
    line->busy = false;
    if (code == CURLE_OK) {
        curl_easy_getinfo(line->curl, CURLINFO_RESPONSE_CODE, &a.status);
        a.body = st_strbuf_str(&line->got);
        a.n = line->got.n;
    } else {
        st_fail(&a.err, ST_EDOWN, "%s: %s", st_lines_url(line->lines),
                line->said[0] ? line->said : curl_easy_strerror(code));
        if (code == CURLE_COULDNT_CONNECT && line->lines->own)
            forget_port(line->lines);
    }
    line->fn(line->ctx, &a);
}

static void hear(st_lines *l)
{
    CURLMsg *msg;
    int left;

    while ((msg = curl_multi_info_read(l->multi, &left))) {
        st_agent_line *line;

        if (msg->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&line);
        finish(line, msg->data.result);
    }
}

void st_lines_wait(st_lines *l, int timeout_ms)
{
    int running;

    if (l->curl_due_ms >= 0)
        timeout_ms = (int)ST_MAX(0, ST_MIN((int64_t)timeout_ms, l->curl_due_ms - st_boot_ms()));
    st_poll_wait(l->poll, timeout_ms);
    if (l->curl_due_ms >= 0 && st_boot_ms() >= l->curl_due_ms) {
        l->curl_due_ms = -1;
        curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    free_dead(l);
    hear(l);
}

/* ---- one line ------------------------------------------------------------------------------------ */

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    st_agent_line *line = ctx;

    if (line->got.n + size * n > BODY_MAX)
        return 0;
    st_strbuf_addn(&line->got, data, size * n);
    return size * n;
}

st_agent_line *st_line_new(st_lines *lines, st_line_fn fn, void *ctx)
{
    st_agent_line *line = st_xcalloc(1, sizeof *line);

    *line = (st_agent_line){.lines = lines, .fn = fn, .ctx = ctx, .curl = curl_easy_init()};
    ST_ASSERT(line->curl);
    return line;
}

bool st_line_busy(const st_agent_line *line)
{
    return line->busy;
}

void st_line_drop(st_agent_line *line)
{
    if (line->busy)
        curl_multi_remove_handle(line->lines->multi, line->curl);
    line->busy = false;
}

void st_line_free(st_agent_line *line)
{
    if (!line)
        return;
    st_line_drop(line);
    curl_easy_cleanup(line->curl);
    curl_slist_free_all(line->headers);
    st_strbuf_done(&line->sent);
    st_strbuf_done(&line->got);
    st_strbuf_done(&line->proof);
    free(line);
}

static void add_header(st_agent_line *line, const char *name, const char *value)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    struct curl_slist *longer;

    st_strbuf_addf(&text, "%s: %s", name, value);
    longer = curl_slist_append(line->headers, st_strbuf_str(&text));
    ST_ASSERT(longer);
    line->headers = longer;
    explicit_bzero(text.s, text.n);
}

static void set_headers(st_agent_line *line, const char *token, const char *type)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bearer = {0};

    curl_slist_free_all(line->headers);
    line->headers = NULL;
    st_strbuf_addf(&bearer, "Bearer %s", token ? token : "");
    if (token)
        add_header(line, "Authorization", st_strbuf_str(&bearer));
    explicit_bzero(bearer.s, bearer.n);
    if (line->proof.n > 0)
        add_header(line, "Stint-Proof", st_strbuf_str(&line->proof));
    st_strbuf_clear(&line->proof);
    if (type)
        add_header(line, "Content-Type", type);
    add_header(line, "Expect", ""); /* no round trip before a body */
}

void st_line_prove(st_agent_line *line, const char *proof)
{
    st_strbuf_clear(&line->proof);
    st_strbuf_add(&line->proof, proof);
}

void st_line_ask(st_agent_line *line, const char *path, const char *token, const char *type,
                 const char *body, size_t n, int64_t timeout_ms)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf url = {0};
    CURL *c = line->curl;

    ST_ASSERT(!line->busy);
    st_strbuf_clear(&line->sent);
    st_strbuf_clear(&line->got);
    line->said[0] = '\0';
    st_strbuf_addf(&url, "%s%s", st_lines_url(line->lines), path);
    set_headers(line, token, body ? type : NULL);
    curl_easy_reset(c); /* keeps the connection */
    curl_easy_setopt(c, CURLOPT_URL, st_strbuf_str(&url));
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_easy_setopt(c, CURLOPT_USERAGENT, "stint-agent/" ST_VERSION);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, line->headers);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, line->said);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, line);
    curl_easy_setopt(c, CURLOPT_PRIVATE, line);
    if (line->lines->ca)
        curl_easy_setopt(c, CURLOPT_CAINFO, line->lines->ca);
    if (body) {
        st_strbuf_addn(&line->sent, body, n);
        curl_easy_setopt(c, CURLOPT_POST, 1L);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, st_strbuf_str(&line->sent));
    }
    line->busy = true;
    curl_multi_add_handle(line->lines->multi, c);
}
