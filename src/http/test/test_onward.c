/*
 * Answers that come from elsewhere, with a real server and clients: what is well goes through, whatever its framing; what is
 * hostile costs its own call and nothing else.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/testing.h"
#include "http/onward.h"

#define BIG 3000000

static st_onwards *fetcher;
static atomic_int begun, overs;
static int port;

/* What servers behind it answer, by the tail of the path. */
static const struct {
    const char *tail, *answer;
} scripts[] = {
    {"/length",
     "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-Mine: yes\r\n"
     "Set-Cookie: a=b\r\n\r\nhello"},
    {"/chunks",
     "HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"},
    {"/close", "HTTP/1.0 200 OK\r\n\r\nuntil the end"},
    {"/none", "HTTP/1.1 204 No\r\n\r\n"},
    {"/smuggled",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"/twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: "
               "4\r\n\r\nevil"},
    {"/short", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"},
    {"/cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"},
    {"/garbage", "SSH-2.0-OpenSSH\r\n\r\n"},
    {"/nothing", ""},
    {"/split", "HTTP/1.1 200 OK\r\nX-Mine: a\rX-Evil: b\r\n\r\n"},
};

static void *serve(void *arg)
{
    int fd = *(int *)arg;
    char got[8192];
    ssize_t n = recv(fd, got, sizeof got - 1, 0);
    const char *answer = NULL;

    free(arg);
    got[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; i < ST_ARRAY_LEN(scripts); i++)
        if (strstr(got, scripts[i].tail))
            answer = scripts[i].answer;
    if (strstr(got, "/big") || strstr(got, "/endless")) {
        char block[8192];
        bool endless = strstr(got, "/endless") != NULL;

        memset(block, 'x', sizeof block);
        send(fd, "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL);
        for (int sent = 0; endless || sent < BIG; sent += n) {
            size_t want = endless ? sizeof block : (size_t)ST_MIN((int)sizeof block, BIG - sent);

            n = send(fd, block, want, MSG_NOSIGNAL);
            if (n <= 0)
                break;
        }
    } else if (strstr(got, "/echo")) {
        dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zd\r\n\r\n%s", n, got);
    } else if (strstr(got, "/silent")) {
        while (recv(fd, got, sizeof got, 0) > 0)
            ;
    } else if (answer && send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0) {
        fail_msg("send");
    }
    close(fd);
    return NULL;
}

static void header(void *ctx, st_call *call, const char *name, const char *value)
{
    (void)ctx;
    if (strncmp(name, "X-", 2) == 0)
        st_call_set_header(call, name, value);
}

static void over(void *ctx, int status, const st_err *err)
{
    (void)ctx;
    (void)err;
    (void)status;
    atomic_fetch_add(&overs, 1);
}

static void handle(st_call *call, void *ctx)
{
    bool gone = strcmp(st_call_tail(call), "/gone") == 0;
    const st_err why = {.code = ST_EDOWN, .msg = "there is no way there"};
    st_onward x = {.call = call,
                   .head_only = strcmp(st_call_method(call), "HEAD") == 0,
                   .head_ms = 300,
                   .idle_ms = 300,
                   .header = header,
                   .over = over};
    int fds[2] = {-1, -1};
    pthread_t thread;
    size_t len;

    (void)ctx;
    st_strbuf_addf(&x.request, "%s %s?%s HTTP/1.1\r\n\r\n%s", st_call_method(call),
                   st_call_tail(call), st_call_raw_query(call), st_call_body(call, &len));
    if (!gone) {
        int *arg = st_xmalloc(sizeof *arg);

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        *arg = fds[1];
        assert_int_equal(pthread_create(&thread, NULL, serve, arg), 0);
        pthread_detach(thread);
    }
    st_call_defer(call);
    st_onward_begin(fetcher, &x, fds[0], gone ? &why : NULL);
    atomic_fetch_add(&begun, 1);
}

static const st_route routes[] = {
    {.method = "GET",
     .pattern = "/v1/x/{name}/call",
     .flags = ST_ROUTE_TAIL | ST_ROUTE_NO_AUTH | ST_ROUTE_PAGE,
     .handler = handle,
     .id = "callGet",
     .summary = "Call"},
    {.method = "POST",
     .pattern = "/v1/x/{name}/call",
     .flags = ST_ROUTE_TAIL | ST_ROUTE_NO_AUTH | ST_ROUTE_ANY_BODY | ST_ROUTE_PAGE,
     .handler = handle,
     .id = "callPost",
     .summary = "Call"},
    {0},
};

static int dial(const char *method, const char *tail, const char *body)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    dprintf(fd, "%s /v1/x/a%%2Fb/call%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", method,
            tail);
    if (body)
        dprintf(fd, "Content-Length: %zu\r\n", strlen(body));
    dprintf(fd, "\r\n%s", body ? body : "");
    return fd;
}

/* The whole answer, as it came. */
static st_strbuf ask(const char *method, const char *tail, const char *body)
{
    int fd = dial(method, tail, body);
    st_strbuf got = {0};
    char buf[65536];
    ssize_t n;

    while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
        st_strbuf_addn(&got, buf, (size_t)n);
    close(fd);
    return got;
}

static void says(const char *method, const char *tail, const char *body, const char *status,
                 const char *has)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf got = ask(method, tail, body);

    if (strncmp(st_strbuf_str(&got) + 9, status, 3) != 0 || !strstr(st_strbuf_str(&got), has))
        fail_msg("%s %s: %.600s", method, tail, st_strbuf_str(&got));
}

static void wait_for_overs(int n)
{
    for (int i = 0; i < 1000 && atomic_load(&overs) < n; i++)
        usleep(10000);
    assert_int_equal(atomic_load(&overs), n);
}

static void test_goes_through(void **state)
{
    int before = atomic_load(&overs);
    st_strbuf got;

    (void)state;
    says("GET", "/length", NULL, "200", "hello");
    says("GET", "/length", NULL, "200", "X-Mine: yes");
    says("GET", "/chunks", NULL, "201", "hello!");
    says("GET", "/close", NULL, "200", "until the end");
    says("GET", "/none", NULL, "204", "");
    says("HEAD", "/length", NULL, "200", "Content-Length: 5");
    says("POST", "/echo?a=b%20c", "the body", "200", "the body");
    says("POST", "/echo?a=b%20c", "the body", "200", "/echo?a=b%20c HTTP");
    says("GET", "/echo/a//b/../%2e?x", NULL, "200", "GET /echo/a//b/../%2e?x HTTP");
    says("GET", "/twice", NULL, "200", "hi");
    got = ask("GET", "/twice", NULL);
    assert_null(strstr(st_strbuf_str(&got), "evil"));
    st_strbuf_done(&got);
    got = ask("GET", "/length", NULL);
    assert_null(strstr(st_strbuf_str(&got), "Cookie"));
    st_strbuf_done(&got);
    wait_for_overs(before + 12);
}

static void test_big(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf got = ask("GET", "/big", NULL);
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < got.n; i++)
        n += got.s[i] == 'x';
    assert_int_equal(n, BIG);
}

static void test_hostile(void **state)
{
    st_strbuf got;

    (void)state;
    says("GET", "/smuggled", NULL, "503", "more than one way");
    says("GET", "/garbage", NULL, "503", "status line");
    says("GET", "/nothing", NULL, "503", "in the middle of its head");
    says("GET", "/split", NULL, "503", "control character");
    says("GET", "/gone", NULL, "503", "there is no way there");
    says("GET", "/silent", NULL, "503", "in time");
    says("TRACE", "/length", NULL, "405", "Allow: GET");
    /* What began well and is cut is cut for the client too: a whole answer it is not. */
    got = ask("GET", "/short", NULL);
    assert_non_null(strstr(st_strbuf_str(&got), "Content-Length: 50"));
    st_strbuf_done(&got);
    got = ask("GET", "/cut", NULL);
    assert_null(strstr(st_strbuf_str(&got), "\r\n0\r\n"));
    st_strbuf_done(&got);
}

/* One that sends without end, and a client that does not read: it ends when it has not moved for a while. */
static void test_slow_reader(void **state)
{
    int before = atomic_load(&overs), fd = dial("GET", "/endless", NULL);

    (void)state;
    wait_for_overs(before + 1);
    close(fd);
}

/* A client that goes away: what it asked for is not read on. */
static void test_client_goes(void **state)
{
    int before = atomic_load(&overs), fd = dial("GET", "/endless", NULL);
    char buf[100];

    (void)state;
    assert_true(recv(fd, buf, sizeof buf, 0) > 0);
    close(fd);
    wait_for_overs(before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_through), cmocka_unit_test(test_big),
        cmocka_unit_test(test_hostile),      cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_client_goes),
    };
    const st_http_options options = {.routes = routes};
    st_http_server *server = NULL;
    int failed, fds[20], before;
    st_err err;

    if (st_onwards_new(&fetcher, &err) < 0 || st_http_server_new(&options, &server, &err) < 0 ||
        st_http_listen(server, "127.0.0.1:0", NULL, NULL, &port, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    /* Some are under way when it ends. */
    before = atomic_load(&begun);
    for (size_t i = 0; i < ST_ARRAY_LEN(fds); i++)
        fds[i] = dial("GET", i % 2 ? "/endless" : "/silent", NULL);
    while (atomic_load(&begun) < before + (int)ST_ARRAY_LEN(fds))
        usleep(1000);
    st_onwards_free(fetcher);
    for (size_t i = 0; i < ST_ARRAY_LEN(fds); i++)
        close(fds[i]);
    st_http_server_stop(server, 1000);
    st_http_server_free(server);
    return failed;
}
