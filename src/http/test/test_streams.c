/*
 * Event streams, unix sockets and TLS on a real server. TLS is tried with the
 * openssl and curl programs, and left out with a line when they are not there.
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "http/call.h"
#include "http/test/harness.h"

#define STREAMS 1000

typedef struct world {
    st_http_server *server;
    int port;
    pthread_mutex_t lock;
    st_stream *streams[STREAMS];
    int n;
    atomic_int closed;
} world;

static void on_closed(void *ctx, st_stream *stream)
{
    (void)stream;
    atomic_fetch_add(&((world *)ctx)->closed, 1);
}

static void events(st_call *call, void *ctx)
{
    world *w = ctx;
    const char *last = st_call_last_event_id(call);
    st_stream *stream = st_call_stream(call, on_closed, w);

    if (!stream)
        return;
    if (last)
        st_stream_send(stream, "8", "resumed", "a\nb", 3);
    pthread_mutex_lock(&w->lock);
    assert_true(w->n < STREAMS);
    w->streams[w->n++] = stream;
    pthread_mutex_unlock(&w->lock);
}

static void peer(st_call *call, void *ctx)
{
    const st_peer *p = st_call_peer(call);

    (void)ctx;
    st_call_reply_json(call, 200,
                       json_pack("{s:s,s:i,s:b}", "address", p->address, "uid",
                                 p->is_unix ? (int)p->uid : -1, "tls", p->is_tls));
}

static const st_route routes[] = {
    {"GET", "/events", 0, ST_ROUTE_NO_AUTH | ST_ROUTE_NO_RATE | ST_ROUTE_STREAM, events, "events",
     "", NULL, NULL, NULL, 0},
    {"GET", "/peer", 0, ST_ROUTE_NO_AUTH | ST_ROUTE_NO_RATE, peer, "peer", "", NULL, NULL, "P", 0},
    {0},
};

static world *begin(st_http_options options)
{
    world *w = st_xcalloc(1, sizeof(*w));
    st_err err;

    pthread_mutex_init(&w->lock, NULL);
    options.routes = routes;
    options.strangers_per_peer = options.stranger_rate_per_s = -1; /* nobody here is known */
    options.ctx = w;
    assert_ok(st_http_server_new(&options, &w->server, &err));
    assert_ok(st_http_listen(w->server, "127.0.0.1:0", NULL, NULL, &w->port, &err));
    return w;
}

static int count(world *w)
{
    int n;

    pthread_mutex_lock(&w->lock);
    n = w->n;
    pthread_mutex_unlock(&w->lock);
    return n;
}

static void end(world *w)
{
    st_http_server_stop(w->server, 0);
    assert_int_equal(atomic_load(&w->closed), w->n);
    for (int i = 0; i < w->n; i++) {
        assert_false(st_stream_send(w->streams[i], NULL, NULL, "x", 1));
        st_stream_unref(w->streams[i]);
    }
    st_http_server_free(w->server);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

#define GET_EVENTS "GET /events HTTP/1.1\r\nHost: x\r\n"

static void test_events(void **state)
{
    world *w = begin((st_http_options){.keepalive_ms = 50});
    client c = connect_to(w->port);

    (void)state;
    say(&c, GET_EVENTS "Last-Event-ID: 7\r\n\r\n");
    hear(&c, "Content-Type: text/event-stream");
    hear(&c, "id: 8\nevent: resumed\ndata: a\ndata: b\n\n");
    for (int i = 0; i < 3; i++)
        hear(&c, ":\n\n"); /* kept alive */
    assert_true(st_stream_send(w->streams[0], "9", NULL, "{}", 2));
    hear(&c, "id: 9\ndata: {}\n\n");
    st_stream_end(w->streams[0]);
    assert_false(st_stream_send(w->streams[0], "10", NULL, "{}", 2));
    wait_until(atomic_load(&w->closed) == 1);
    hang_up(&c);
    end(w);
}

/* Microseconds of /events in the histogram of the metrics. */
static int64_t told_us(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *at;

    st_http_server_metrics(w->server, &text);
    at = strstr(st_strbuf_str(&text), "stint_http_request_seconds_sum{route=\"events\"} ");
    return at ? (int64_t)(strtod(strchr(at, '}') + 1, NULL) * 1e6) : -1;
}

/* How long somebody listened is no latency. */
static void test_latency(void **state)
{
    world *w = begin((st_http_options){.keepalive_ms = 50});
    int64_t begun_us = st_now_us(), heard_us;
    client c = connect_to(w->port);

    (void)state;
    say(&c, GET_EVENTS "Last-Event-ID: 7\r\n\r\n");
    hear(&c, "event: resumed");
    heard_us = st_now_us();
    wait_until(st_now_us() - heard_us > 2 * (heard_us - begun_us));
    st_stream_end(w->streams[0]);
    hang_up(&c);
    wait_until(told_us(w) >= 0);
    assert_in_range(told_us(w), 0, heard_us - begun_us);
    end(w);
}

static void test_gone_consumer(void **state)
{
    world *w = begin((st_http_options){.keepalive_ms = 3600000});
    client c = connect_to(w->port);

    (void)state;
    say(&c, GET_EVENTS "\r\n");
    hear(&c, "text/event-stream");
    wait_until(count(w) == 1);
    hang_up(&c);
    wait_until(atomic_load(&w->closed) == 1); /* long before a keep-alive is due */
    end(w);
}

static void test_overflow(void **state)
{
    world *w = begin((st_http_options){.stream_bytes = 64 << 10});
    client c = connect_to(w->port);
    char data[1000];
    int sent = 0;

    (void)state;
    memset(data, 'x', sizeof(data));
    say(&c, GET_EVENTS "\r\n");
    wait_until(count(w) == 1);
    /* Nobody reads: the sockets' buffers fill, then ours, and then it is over. */
    while (sent < 1000000 && st_stream_send(w->streams[0], NULL, "e", data, sizeof(data)))
        sent++;
    assert_in_range(sent, 60, 999999);
    assert_false(st_stream_send(w->streams[0], NULL, "e", data, sizeof(data)));
    hear(&c, "event: overflow\ndata: {}\n\n");
    wait_until(atomic_load(&w->closed) == 1);
    hang_up(&c);
    end(w);
}

static long resident_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_many(void **state)
{
    world *w = begin((st_http_options){.connections_per_peer = -1, .streams_max = STREAMS});
    client *c = st_xcalloc(STREAMS + 1, sizeof(*c));
    long before = resident_kib();
    struct rlimit files;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    for (int i = 0; i < STREAMS; i++) {
        c[i] = connect_to(w->port);
        say(&c[i], GET_EVENTS "\r\n");
    }
    wait_until(count(w) == STREAMS);
    for (int i = 0; i < STREAMS; i++)
        hear(&c[i], "\r\n\r\n");
    print_message("%d idle streams: %ld KiB more, client included\n", STREAMS,
                  resident_kib() - before);
    c[STREAMS] = connect_to(w->port);
    say(&c[STREAMS], GET_EVENTS "\r\n");
    hear(&c[STREAMS], " 503");
    for (int i = 0; i < STREAMS; i++)
        assert_true(st_stream_send(w->streams[i], NULL, NULL, "all", 3));
    for (int i = 0; i < STREAMS; i++)
        hear(&c[i], "data: all\n\n");
    for (int i = 0; i < STREAMS / 2; i++)
        hang_up(&c[i]);
    st_http_server_stop(w->server, WAIT_MS);
    for (int i = STREAMS / 2; i < STREAMS; i++) {
        hear(&c[i], "event: bye\n");
        hang_up(&c[i]);
    }
    hang_up(&c[STREAMS]);
    free(c);
    end(w);
}

static void test_unix(void **state)
{
    char dir[] = "/tmp/st-http-XXXXXX", path[64], want[64];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    client c = {.fd = socket(AF_UNIX, SOCK_STREAM, 0)};
    world *w = begin((st_http_options){0});
    struct stat st;
    st_err err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    assert_ok(st_http_listen_unix(w->server, path, 0600, &err));
    assert_fails(st_http_listen_unix(w->server, path, 0600, &err), ST_EEXIST, "another process");
    assert_fails(st_http_listen_unix(w->server, dir, 0600, &err), ST_EEXIST, "isn't a socket");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&at, sizeof(at)), 0);
    say(&c, "GET /peer HTTP/1.1\r\nHost: x\r\n\r\n");
    snprintf(want, sizeof(want), "{\"address\":\"unix\",\"uid\":%d,\"tls\":false}", (int)getuid());
    hear(&c, want);
    hang_up(&c);
    end(w);
    assert_int_not_equal(stat(path, &st), 0);
    rmdir(dir);
}

static void make_certificate(const char *dir)
{
    char command[512];

    snprintf(command, sizeof(command),
             "cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 "
             "-subj /CN=localhost -addext subjectAltName=DNS:localhost >log 2>&1",
             dir);
    assert_int_equal(system(command), 0);
}

/* What curl says to the server, trusting only the certificate that is there now. */
static bool curl_works(const char *dir, int port, const char *options)
{
    char command[512];

    snprintf(command, sizeof(command),
             "curl -sf %s --cacert %s/cert https://localhost:%d/peer --resolve "
             "localhost:%d:127.0.0.1 | grep -q '\"tls\":true'",
             options, dir, port, port);
    return system(command) == 0;
}

static void test_tls(void **state)
{
    char dir[] = "/tmp/st-http-XXXXXX", cert[64], key[64], command[128];
    world *w;
    st_err err;
    int port;

    (void)state;
    if (system("command -v openssl >/dev/null && command -v curl >/dev/null") != 0) {
        print_message("openssl or curl is not installed; TLS is not tried\n");
        return;
    }
    w = begin((st_http_options){0});
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof(cert), "%s/cert", dir);
    snprintf(key, sizeof(key), "%s/key", dir);
    assert_fails(st_http_listen(w->server, "127.0.0.1:0", cert, key, &port, &err), ST_ENOENT,
                 "TLS for");
    make_certificate(dir);
    assert_fails(st_http_listen(w->server, "127.0.0.1:0", cert, cert, &port, &err), ST_EINVAL,
                 "PEM");
    assert_ok(st_http_listen(w->server, "127.0.0.1:0", cert, key, &port, &err));
    assert_true(curl_works(dir, port, ""));
    assert_false(curl_works(dir, port, "--tls-max 1.1"));
    make_certificate(dir);
    assert_false(curl_works(dir, port, ""));
    assert_ok(st_http_reload_tls(w->server, &err));
    assert_true(curl_works(dir, port, ""));
    end(w);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),   cmocka_unit_test(test_gone_consumer),
        cmocka_unit_test(test_overflow), cmocka_unit_test(test_many),
        cmocka_unit_test(test_latency),  cmocka_unit_test(test_unix),
        cmocka_unit_test(test_tls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
