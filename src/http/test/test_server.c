/*
 * A real server on loopback, driven by raw sockets: framing, limits, deferred
 * answers, stopping.
 */
#include "http/test/harness.h"

typedef struct world {
    st_http_server *server;
    int port;
    pthread_mutex_t lock;
    st_call *held[64];
    int nheld;
    atomic_int forgotten;
    atomic_int logged;
    atomic_bool stopping;
    int late_us; /* how long after that the held call is answered */
    char last_log[512];
} world;

static void hello(st_call *call, void *ctx)
{
    (void)ctx;
    st_call_set_version(call, "v1");
    st_call_reply_json(call, 200, json_pack("{s:s}", "id", st_call_param(call, "id")));
}

static void echo(st_call *call, void *ctx)
{
    json_t *value = NULL;
    st_err err;

    (void)ctx;
    if (st_call_json(call, &value, &err) < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_json(call, 201, value);
}

static void hold(st_call *call, void *ctx)
{
    world *w = ctx;

    st_call_defer(call);
    pthread_mutex_lock(&w->lock);
    assert_true(w->nheld < 64);
    w->held[w->nheld++] = call;
    pthread_mutex_unlock(&w->lock);
}

static void *answer_soon(void *call)
{
    st_call_reply_json(call, 200, json_pack("{s:s}", "from", "another thread"));
    return NULL;
}

/* Answers from another thread, which may come before, while or after the handler returns. */
static void race(st_call *call, void *ctx)
{
    pthread_t thread;

    (void)ctx;
    st_call_defer(call);
    assert_int_equal(pthread_create(&thread, NULL, answer_soon, call), 0);
    pthread_detach(thread);
}

static void change(st_call *call, void *ctx)
{
    st_err err;

    (void)ctx;
    if (st_etag_listed(st_call_if_match(call), "v7", ST_ETAG_VERSION)) {
        st_call_reply_empty(call, 204);
    } else {
        st_fail(&err, ST_EVERSION, "it is v7");
        st_call_fail(call, &err);
    }
}

static void secret(st_call *call, void *ctx)
{
    (void)ctx;
    st_call_reply_json(call, 200, json_pack("{s:s}", "who", st_call_principal(call)->label));
}

static const st_query_row hello_query[] = {{.name = "limit", .type = ST_QUERY_INT}, {0}};
#define OPEN (ST_ROUTE_NO_AUTH | ST_ROUTE_NO_RATE)

static const st_route routes[] = {
    {"GET", "/hello/{id}", 0, OPEN, hello, "hello", "", hello_query, NULL, "H", 0},
    {"POST", "/echo", 0, OPEN, echo, "echo", "", NULL, "E", "E", 201},
    {"GET", "/hold", 0, OPEN, hold, "hold", "", NULL, NULL, "H", 0},
    {"GET", "/race", 0, OPEN, race, "race", "", NULL, NULL, "H", 0},
    {"PUT", "/change", 0, OPEN | ST_ROUTE_IF_MATCH, change, "change", "", NULL, NULL, NULL, 0},
    {"GET", "/secret", 1, 0, secret, "secret", "", NULL, NULL, "S", 0},
    {0},
};

static int authenticate(void *ctx, const st_call *call, const char *bearer, st_principal *ret,
                        st_err *err)
{
    (void)ctx;
    assert_string_equal(st_call_peer(call)->address, "127.0.0.1");
    if (!bearer || (strcmp(bearer, "good") != 0 && strcmp(bearer, "weak") != 0))
        return st_fail(err, ST_EINVAL, "no such token");
    *ret = (st_principal){
        .who = ctx, .roles = strcmp(bearer, "good") == 0 ? 1 : 2, .key = 42, .rate_per_s = 5};
    snprintf(ret->label, sizeof(ret->label), "tok-%s", bearer);
    return 0;
}

static void forget(void *ctx, void *who)
{
    assert_ptr_equal(ctx, who);
    atomic_fetch_add(&((world *)ctx)->forgotten, 1);
}

static void note(void *ctx, const char *line)
{
    world *w = ctx;

    pthread_mutex_lock(&w->lock);
    snprintf(w->last_log, sizeof(w->last_log), "%s", line);
    pthread_mutex_unlock(&w->lock);
    atomic_fetch_add(&w->logged, 1);
}

static world *begin(st_http_options options)
{
    world *w = st_xcalloc(1, sizeof(*w));
    st_err err;

    pthread_mutex_init(&w->lock, NULL);
    options.routes = routes;
    if (options.strangers_per_peer == 0) /* most calls here are nobody's */
        options.strangers_per_peer = options.stranger_rate_per_s = -1;
    options.ctx = w;
    options.authenticate = authenticate;
    options.forget = forget;
    options.access_log = note;
    assert_ok(st_http_server_new(&options, &w->server, &err));
    assert_ok(st_http_listen(w->server, "127.0.0.1:0", NULL, NULL, &w->port, &err));
    return w;
}

static void end(world *w)
{
    st_http_server_free(w->server);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static int held(world *w)
{
    int n;

    pthread_mutex_lock(&w->lock);
    n = w->nheld;
    pthread_mutex_unlock(&w->lock);
    return n;
}

/* One request on a connection of its own; the answer must contain both texts. */
static void ask(world *w, const char *request, const char *status, const char *text)
{
    client c = connect_to(w->port);

    say(&c, request);
    hear(&c, status);
    hear(&c, text);
    hang_up(&c);
}

#define TAG_A "\"v1-be08db485da7d780\""

static void test_answers(void **state)
{
    world *w = begin((st_http_options){0});

    (void)state;
    ask(w, "GET /hello/a%20b?limit=3 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200",
        "{\"id\":\"a b\"}");
    ask(w, "HEAD /hello/a HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", "\r\n\r\n");
    ask(w, "OPTIONS /echo HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 204", "Allow: POST, OPTIONS");
    ask(w, "GET /hello/a HTTP/1.1\r\nHost: x\r\n\r\n", " 200", "ETag: " TAG_A);
    ask(w, "GET /hello/a HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"v1\", " TAG_A "\r\n\r\n", " 304",
        "ETag: " TAG_A);
    ask(w,
        "GET /hello/a HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"v1\"\r\nIf-None-Match: " TAG_A
        "\r\n\r\n",
        " 304", "ETag: " TAG_A);
    ask(w, "GET /hello/b HTTP/1.1\r\nHost: x\r\nIf-None-Match: " TAG_A "\r\n\r\n", " 200", "\"b\"");
    ask(w, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", " 404", "/problems/not_found");
    ask(w, "DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n", " 405", "Allow: POST, OPTIONS");
    ask(w, "GET /hello/a?limt=3 HTTP/1.1\r\nHost: x\r\n\r\n", " 400", "did you mean limit?");
    ask(w, "GET /hello/%ff HTTP/1.1\r\nHost: x\r\n\r\n", " 400", "bad_request");
    ask(w, "GET /hello/a HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n", " 406",
        "not_acceptable");
    ask(w, "PUT /change HTTP/1.1\r\nHost: x\r\n\r\n", " 428", "precondition_required");
    ask(w, "PUT /change HTTP/1.1\r\nHost: x\r\nIf-Match: \"v6\"\r\n\r\n", " 412", "it is v7");
    ask(w, "PUT /change HTTP/1.1\r\nHost: x\r\nIf-Match: \"v6\", \"v7-1f\"\r\n\r\n", " 204",
        "\r\n\r\n");
    ask(w, "POST /echo HTTP/1.1\r\nHost: x\r\nIf-Match: \"v7\"\r\nContent-Length: 0\r\n\r\n",
        " 400", "this operation has no condition");
    ask(w, "POST /echo HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nContent-Length: 0\r\n\r\n",
        " 400", "this operation has no condition");
    end(w);
}

#define POST "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

static void test_bodies(void **state)
{
    world *w = begin((st_http_options){.body_max = 100});
    client c;

    (void)state;
    ask(w, POST "Content-Length: 7\r\n\r\n{\"a\":1}", " 201", "{\"a\":1}");
    ask(w, POST "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n", " 201",
        "{\"a\":1}");
    ask(w, POST "Content-Length: 3\r\n\r\n{\n]", " 400", "body:2:");
    ask(w, POST "Content-Length: 101\r\n\r\n", " 413", "body_too_large");
    ask(w, POST "Content-Length: 99999999999999999999999\r\n\r\n", " 413", "");
    ask(w, POST "Content-Length: x\r\n\r\n", " 400", "");
    ask(w, POST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n1", " 400", "more than one");
    ask(w, POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", " 400", "more than one");
    ask(w, POST "Transfer-Encoding: gzip\r\n\r\n", " 400", "chunked");
    ask(w, POST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", " 400", "");
    ask(w, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", " 415", "not given");
    ask(w,
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
        " 415", "text/plain");
    ask(w, "GET /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", " 400", "no body");
    /* Chunks that add up to too much are read to their end, then refused. */
    c = connect_to(w->port);
    say(&c, POST "Transfer-Encoding: chunked\r\n\r\n40\r\n");
    for (int i = 0; i < 2; i++)
        say(&c, "0123456789012345678901234567890123456789012345678901234567890123\r\n40\r\n");
    say(&c, "0123456789012345678901234567890123456789012345678901234567890123\r\n0\r\n\r\n");
    hear(&c, " 413");
    hang_up(&c);
    c = connect_to(w->port);
    say(&c, POST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    hear(&c, "HTTP/1.1 100");
    say(&c, "{}");
    hear(&c, " 201");
    hang_up(&c);
    end(w);
}

static void test_keep_alive(void **state)
{
    world *w = begin((st_http_options){0});
    client c = connect_to(w->port);

    (void)state;
    for (int i = 0; i < 3; i++) {
        say(&c, "GET /hello/one HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&c, "{\"id\":\"one\"}");
    }
    say(&c, "GET /hello/p1 HTTP/1.1\r\nHost: x\r\n\r\n"
            "GET /race HTTP/1.1\r\nHost: x\r\n\r\n"
            "GET /hello/p3 HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&c, "p1");
    hear(&c, "another thread");
    hear(&c, "p3");
    hang_up(&c);
    wait_until(atomic_load(&w->logged) == 6);
    end(w);
}

static void test_callers(void **state)
{
    world *w = begin((st_http_options){0});
    client c;

    (void)state;
    ask(w, "GET /secret HTTP/1.1\r\nHost: x\r\n\r\n", " 401", "WWW-Authenticate: Bearer");
    ask(w, "GET /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bad\r\n\r\n", " 401",
        "no such token");
    ask(w, "GET /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer weak\r\n\r\n", " 403",
        "forbidden");
    ask(w, "GET /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n", " 200",
        "tok-good");
    wait_until(atomic_load(&w->forgotten) == 2);
    pthread_mutex_lock(&w->lock);
    assert_null(strstr(w->last_log, "Bearer"));
    pthread_mutex_unlock(&w->lock);
    /* Ten at once are let in, five a second are the rate: of many in a row one is refused. */
    c = connect_to(w->port);
    for (int i = 0; i < 500; i++)
        say(&c, "GET /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n");
    hear(&c, " 429");
    hear(&c, "Retry-After: ");
    hear(&c, "rate_limited");
    hang_up(&c);
    end(w);
}

static void test_sizes(void **state)
{
    world *w = begin((st_http_options){.target_bytes = 200});
    ST_CLEANUP(st_strbuf_done) st_strbuf request = {0};

    (void)state;
    st_strbuf_add(&request, "GET /hello/");
    for (int i = 0; i < 300; i++)
        st_strbuf_addc(&request, 'a');
    st_strbuf_add(&request, " HTTP/1.1\r\nHost: x\r\n\r\n");
    ask(w, request.s, " 414", "");
    for (int kib = 9; kib < 100; kib *= 3) {
        st_strbuf_clear(&request);
        st_strbuf_add(&request, "GET /hello/a HTTP/1.1\r\nHost: x\r\nX-Big: ");
        for (int i = 0; i < kib * 1024; i++)
            st_strbuf_addc(&request, 'a');
        st_strbuf_add(&request, "\r\n\r\n");
        ask(w, request.s, " 431", "");
    }
    ask(w, "GET /hello/a HTTP/1.1\r\nHost: x\r\n\r\n", " 200", "");
    end(w);
}

static void test_nul(void **state)
{
    static const char request[] = "GET /hello/a\0b HTTP/1.1\r\nHost: x\r\n\r\n";
    world *w = begin((st_http_options){0});
    client c = connect_to(w->port);

    (void)state;
    assert_int_equal(send(c.fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    hear(&c, " 400");
    hang_up(&c);
    end(w);
}

static void test_slow(void **state)
{
    world *w = begin((st_http_options){.header_ms = 200, .body_ms = 200});
    client headers = connect_to(w->port), idle = connect_to(w->port), body = connect_to(w->port);

    (void)state;
    say(&body, POST "Content-Length: 9\r\n\r\n{");
    say(&headers, "GET /hello/a HTTP/1.1\r\n");
    /* One byte at a time never looks idle. */
    for (int i = 0; i < WAIT_MS && !headers.ended; i++) {
        say(&headers, "X: y\r\n");
        hear_some(&headers, 20);
    }
    assert_true(headers.ended);
    hear_end(&idle);
    hear_end(&body);
    hang_up(&headers);
    hang_up(&idle);
    hang_up(&body);
    end(w);
}

#define GOOD "GET /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n"

static client known(world *w)
{
    client c = connect_to(w->port);

    say(&c, GOOD);
    hear(&c, " 200");
    return c;
}

static void test_too_many_connections(void **state)
{
    world *w = begin((st_http_options){.connections_per_peer = 2});
    client a = known(w), b = known(w), c;

    (void)state;
    c = connect_to(w->port);
    hear_end(&c);
    hang_up(&a);
    hang_up(&b);
    hang_up(&c);
    end(w);
}

static int connections(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf metrics = {0};
    static const char name[] = "\nstint_http_connections ";

    st_http_server_metrics(w->server, &metrics);
    return atoi(strstr(metrics.s, name) + strlen(name));
}

/* With no room left strangers go first, the oldest of those who are many; who is known stays. */
static void test_strangers_go_first(void **state)
{
    world *w = begin((st_http_options){.connections_max = 4});
    client a = known(w), b, c, d;

    (void)state;
    b = connect_to(w->port);
    say(&b, "GET /hello/a HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&b, " 200");
    c = connect_to(w->port);
    d = connect_to(w->port);
    say(&d, "GET /hello/a HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&d, " 200");
    for (int i = 0; i < 6; i++) {
        client honest = known(w);

        hang_up(&honest);
        wait_until(connections(w) ==
                   3); /* a, c and d: it is seen to be gone before the next one comes */
    }
    hear_end(&b);
    say(&a, GOOD);
    hear(&a, "tok-good");
    hang_up(&a);
    hang_up(&b);
    hang_up(&c);
    hang_up(&d);
    end(w);
}

/* An address has few connections without a token, and little time on them. */
static void test_few_strangers(void **state)
{
    world *w = begin((st_http_options){.strangers_per_peer = 2,
                                       .stranger_rate_per_s = 3,
                                       .stranger_ms = 2000,
                                       .header_ms = 60000});
    client a = known(w), b, c, d;
    int refused = 0;

    (void)state;
    b = connect_to(w->port);
    c = connect_to(w->port);
    d = connect_to(w->port);
    hear_end(&b); /* made room for d */
    hear_end(&c); /* said nothing for too long */
    hear_end(&d);
    for (int i = 0; i < 12; i++) {
        client guess = connect_to(w->port);

        say(&guess, "GET /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bad\r\n\r\n");
        hear(&guess, "\"status\":4");
        refused += strncmp(st_strbuf_str(&guess.got), "29", 2) == 0;
        hang_up(&guess);
    }
    assert_in_range(refused, 1, 11);
    say(&a, GOOD);
    hear(&a, "tok-good");
    hang_up(&a);
    hang_up(&b);
    hang_up(&c);
    hang_up(&d);
    end(w);
}

/* Clients that leave while their call waits; half of the answers come before the server stops,
 * half when it is gone. */
static void test_gone_clients(void **state)
{
    world *w = begin((st_http_options){0});
    st_call *late[16];

    (void)state;
    for (int i = 0; i < 32; i++) {
        client c = connect_to(w->port);

        say(&c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
        wait_until(held(w) == i + 1);
        hang_up(&c);
    }
    for (int i = 0; i < 16; i++) {
        st_call_reply_json(w->held[i], 200, json_pack("{}"));
        late[i] = w->held[16 + i];
    }
    end(w);
    for (int i = 0; i < 16; i++)
        st_call_fail(late[i], &(st_err){.code = ST_EIO, .msg = "too late"});
}

static void test_stop(void **state)
{
    world *w = begin((st_http_options){0});
    client c = connect_to(w->port);
    st_call *call;

    (void)state;
    say(&c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_until(held(w) == 1);
    call = w->held[0];
    end(w);
    hear(&c, " 503");
    hear(&c, "stopping");
    hear_end(&c);
    st_call_reply_empty(call, 204);
    hang_up(&c);
}

static void *answer_late(void *cls)
{
    world *w = cls;

    wait_until(atomic_load(&w->stopping));
    for (int64_t until_us = now_us() + w->late_us; now_us() < until_us;)
        ;
    st_call_reply_json(w->held[0], 200, json_pack("{s:s}", "said", "late"));
    return NULL;
}

/* Whatever the moment at which a call is answered while the server stops: the client gets that answer, or is told that the
 * server stops. libmicrohttpd, once told to stop, takes an answer without sending it and asks for it again. */
static void test_stop_meets_an_answer(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        world *w = begin((st_http_options){0});
        client c = connect_to(w->port);
        pthread_t thread;

        w->late_us = round * 10;
        say(&c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
        wait_until(held(w) == 1);
        assert_int_equal(pthread_create(&thread, NULL, answer_late, w), 0);
        atomic_store(&w->stopping, true);
        st_http_server_stop(w->server, 0);
        hear_end(&c);
        if (!strstr(st_strbuf_str(&c.got), " 200 ") && !strstr(st_strbuf_str(&c.got), " 503 "))
            fail_msg("round %d: no answer", round);
        pthread_join(thread, NULL);
        hang_up(&c);
        end(w);
    }
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

/* What libmicrohttpd would refuse in HTML comes as a problem document, once. */
static void test_refused_before_us(void **state)
{
    static const struct {
        const char *head;
        int fill; /* bytes behind it, before the tail */
        const char *tail, *status, *code;
    } rows[] = {
        {"GET /hello/a HTTP/1.1\r\n\r\n", 0, "", "400", "there is no Host"},
        {"GET /hello/a b HTTP/1.1\r\nHost: x\r\n\r\n", 0, "", "400", "a space in the path"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n", 0, "", "400",
         "Content-Length is no number"},
        {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 0, "",
         "413", "body_too_large"},
        {"GET /hello/", 20000, " HTTP/1.1\r\nHost: x\r\n\r\n", "414", "target_too_long"},
        {"GET /hello/a HTTP/1.1\r\nHost: x\r\nX: ", 40000, "\r\n\r\n", "431", "headers_too_large"},
        {"GET /hello/a HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", 0, "", "400",
         "a header has no colon"},
        {"GET /hello/a HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\n", 0, "", "400",
         "a blank in the name"},
        {"GET /hello/a HTTP/9.9\r\nHost: x\r\n\r\n", 0, "", "505", "http_version"},
        {"GET /hello/a\r\n\r\n", 0, "", "400", "its first line is not METHOD TARGET HTTP/1.1"},
        {"GET /hello/a\r\nHost: x\r\n\r\n", 0, "", "400", "its first line is not"},
        {"GET /hello/a HTTP\r\nHost: x\r\n\r\n", 0, "", "400", "its first line is not"},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        world *w = begin((st_http_options){0});
        ST_CLEANUP(st_strbuf_done) st_strbuf request = {0};
        client c = connect_to(w->port);
        const char *got;
        char status[32];

        snprintf(status, sizeof status, "HTTP/1.1 %s ", rows[i].status);
        st_strbuf_add(&request, rows[i].head);
        for (int n = 0; n < rows[i].fill; n++)
            st_strbuf_addc(&request, 'a');
        st_strbuf_add(&request, rows[i].tail);
        say(&c, st_strbuf_str(&request));
        shutdown(c.fd, SHUT_WR);
        hear_end(&c);
        got = st_strbuf_str(&c.got);
        if (strncmp(got, status, strlen(status)) != 0 || !strstr(got, rows[i].code) ||
            !strstr(got, "Content-Type: application/problem+json\r\n") ||
            count(got, "\r\n\r\n") != 1)
            fail_msg("row %zu got \"%s\"", i, got);
        hang_up(&c);
        end(w);
    }
}

static void *ask_races(void *cls)
{
    world *w = cls;
    client c = connect_to(w->port);

    for (int i = 0; i < 200; i++) {
        say(&c, "GET /race HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&c, "another thread");
    }
    hang_up(&c);
    return NULL;
}

static void test_races(void **state)
{
    world *w = begin((st_http_options){0});
    ST_CLEANUP(st_strbuf_done) st_strbuf metrics = {0};
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_races, w), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    wait_until(atomic_load(&w->logged) == 800);
    st_http_server_metrics(w->server, &metrics);
    assert_non_null(
        strstr(metrics.s, "stint_http_requests_total{route=\"race\",status=\"2xx\"} 800\n"));
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_keep_alive),
        cmocka_unit_test(test_callers),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_nul),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_too_many_connections),
        cmocka_unit_test(test_strangers_go_first),
        cmocka_unit_test(test_few_strangers),
        cmocka_unit_test(test_gone_clients),
        cmocka_unit_test(test_refused_before_us),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_meets_an_answer),
        cmocka_unit_test(test_races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
