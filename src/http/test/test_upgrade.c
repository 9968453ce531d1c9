/*
 * Connections that become something else: at once and after waiting, with what was said early, and however they end.
 */
#include <string.h>

#include "http/test/harness.h"

typedef struct world {
    st_http_server *server;
    int port;
    pthread_mutex_t lock;
    st_upgrade *up[8];
    int n;
    char early[64];
    st_call *held;
    atomic_int lost, forgotten;
} world;

static void on_begun(void *ctx, st_upgrade *up, const char *early, size_t n)
{
    world *w = ctx;

    if (!up) {
        atomic_fetch_add(&w->lost, 1);
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->up[w->n++] = up;
    snprintf(w->early, sizeof w->early, "%.*s", (int)n, early ? early : "");
    pthread_mutex_unlock(&w->lock);
}

static void change(st_call *call, void *ctx)
{
    if (!st_call_may_upgrade(call, "tube"))
        st_call_reply_empty(call, 204);
    else
        st_call_upgrade(call, "tube", on_begun, ctx);
}

static void later(st_call *call, void *ctx)
{
    world *w = ctx;

    st_call_defer(call);
    pthread_mutex_lock(&w->lock);
    w->held = call;
    pthread_mutex_unlock(&w->lock);
}

static void plain(st_call *call, void *ctx)
{
    (void)ctx;
    st_call_reply_empty(call, 204);
}

static const st_route routes[] = {
    {"GET", "/tube", 1, ST_ROUTE_NO_RATE, change, "tube", "", NULL, NULL, NULL, 0},
    {"GET", "/later", 1, 0, later, "later", "", NULL, NULL, NULL, 0},
    {"GET", "/plain", 1, 0, plain, "plain", "", NULL, NULL, NULL, 0},
    {0},
};

static int let_in(void *ctx, const st_call *call, const char *bearer, st_principal *ret,
                  st_err *err)
{
    (void)call;
    (void)bearer;
    (void)err;
    ret->who = ctx;
    ret->roles = 1;
    ret->key = 1;
    return 0;
}

static void forgotten(void *ctx, void *who)
{
    world *w = ctx;

    (void)who;
    atomic_fetch_add(&w->forgotten, 1);
}

static world *begin(void)
{
    world *w = st_xcalloc(1, sizeof(*w));
    const st_http_options options = {.routes = routes,
                                     .ctx = w,
                                     .authenticate = let_in,
                                     .forget = forgotten,
                                     .header_ms = 300,
                                     .stranger_ms = 300,
                                     .running_per_principal = 1};
    st_err err;

    pthread_mutex_init(&w->lock, NULL);
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

static int begun(world *w)
{
    int n;

    pthread_mutex_lock(&w->lock);
    n = w->n;
    pthread_mutex_unlock(&w->lock);
    return n;
}

#define HEAD(path) \
    "GET " path " HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: tube\r\n\r\n"

static void test_bytes(void **state)
{
    world *w = begin();
    client c = connect_to(w->port), other;
    char buf[16];
    ssize_t n;

    (void)state;
    say(&c, HEAD("/tube") "early");
    hear(&c, "HTTP/1.1 101");
    hear(&c, "Upgrade: tube");
    hear(&c, "\r\n\r\n");
    wait_until(begun(w) == 1);
    /* Longer than anything else may be silent for, and it does not count as a request that runs. */
    nanosleep(&(struct timespec){.tv_nsec = 700000000}, NULL);
    other = connect_to(w->port);
    say(&other, "GET /plain HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&other, "204");
    assert_int_equal(st_upgrade_send(w->up[0], "hello", 5), 5);
    hear(&c, "hello");
    say(&c, "back");
    if (!*w->early) /* it came with the rest */
        wait_until(recv(st_upgrade_fd(w->up[0]), buf, 9, MSG_PEEK) == 9);
    else
        assert_string_equal(w->early, "early");
    wait_until(recv(st_upgrade_fd(w->up[0]), buf, sizeof buf, MSG_PEEK) >= 4);
    n = st_upgrade_recv(w->up[0], buf, sizeof buf);
    assert_memory_equal(buf + n - 4, "back", 4);
    assert_false(st_upgrade_is_tls(w->up[0]));
    st_upgrade_close(w->up[0]);
    hear_end(&c);
    wait_until(atomic_load(&w->forgotten) == 2);
    hang_up(&c);
    hang_up(&other);
    end(w);
}

static void test_not_asked(void **state)
{
    world *w = begin();
    client c = connect_to(w->port);

    (void)state;
    say(&c, "GET /tube HTTP/1.1\r\nHost: x\r\nUpgrade: tube\r\n\r\n");
    hear(&c, "204");
    say(&c, "GET /tube HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: tub, tuber\r\n\r\n");
    hear(&c, "204");
    hang_up(&c);
    end(w);
}

static st_call *held(world *w)
{
    st_call *call;

    pthread_mutex_lock(&w->lock);
    call = w->held;
    pthread_mutex_unlock(&w->lock);
    return call;
}

/* The answer comes from another thread; and the client may have gone meanwhile. */
static void test_later(void **state)
{
    world *w = begin();
    client c = connect_to(w->port);

    (void)state;
    say(&c, HEAD("/later"));
    wait_until(held(w));
    st_call_upgrade(held(w), "tube", on_begun, w);
    hear(&c, "101");
    wait_until(begun(w) == 1);
    hang_up(&c);
    wait_until(recv(st_upgrade_fd(w->up[0]), &(char){0}, 1, 0) == 0);
    st_upgrade_close(w->up[0]);
    end(w);
}

static void *close_all(void *arg)
{
    world *w = arg;
    char buf[64];

    for (int i = 0; i < w->n; i++) {
        while (recv(st_upgrade_fd(w->up[i]), buf, sizeof buf, 0) != 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        st_upgrade_close(w->up[i]);
    }
    return NULL;
}

/* A server that stops shuts what has begun and waits for its owner; what was only asked for is told that it never comes. */
static void test_stop(void **state)
{
    world *w = begin();
    client a = connect_to(w->port), b = connect_to(w->port), c = connect_to(w->port);
    pthread_t owner;

    (void)state;
    say(&a, HEAD("/tube"));
    say(&b, HEAD("/tube"));
    hear(&a, "101");
    hear(&b, "101");
    wait_until(begun(w) == 2);
    say(&c, HEAD("/later"));
    wait_until(held(w));
    assert_int_equal(pthread_create(&owner, NULL, close_all, w), 0);
    st_http_server_stop(w->server, 0);
    pthread_join(owner, NULL);
    hear_end(&a);
    hear_end(&b);
    st_call_upgrade(held(w), "tube", on_begun, w);
    assert_int_equal(atomic_load(&w->lost), 1);
    assert_int_equal(w->n, 2);
    hang_up(&a);
    hang_up(&b);
    hang_up(&c);
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_not_asked),
        cmocka_unit_test(test_later),
        cmocka_unit_test(test_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
