/*
 * Pairs of sockets joined: bytes whole and in order, back-pressure, half-closed ends, idle pairs, cuts.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/testing.h"
#include "tunnel/tunnel.h"

#define WAIT_MS 20000

typedef struct seen {
    atomic_int over, closed;
    st_relay_why why;
    int64_t moved[2];
} seen;

static void on_over(void *ctx, st_relay_why why, const int64_t moved[2])
{
    seen *s = ctx;

    s->why = why;
    s->moved[0] = moved[0];
    s->moved[1] = moved[1];
    atomic_fetch_add(&s->over, 1);
}

static void wait_over(seen *s, int n)
{
    for (int left = WAIT_MS; atomic_load(&s->over) < n && left > 0; left--)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(atomic_load(&s->over), n);
}

/* Two sockets whose far ends are joined. */
static void join(st_relay *r, seen *s, uint64_t group, int64_t idle_ms, int ret[2])
{
    const st_relay_rule rule = {.group = group, .idle_ms = idle_ms, .over = on_over, .ctx = s};
    int a[2], b[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
    st_relay_join(r, &(st_relay_end){.fd = a[1]}, &(st_relay_end){.fd = b[1]}, &rule);
    ret[0] = a[0];
    ret[1] = b[0];
}

static ssize_t hear(int fd, char *buf, size_t n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    return recv(fd, buf, n, 0);
}

static void test_bytes(void **state)
{
    ST_CLEANUP(st_relay_freep) st_relay *r = NULL;
    char buf[64];
    seen s = {0};
    st_err err;
    int fd[2];

    (void)state;
    assert_ok(st_relay_new(&r, &err));
    join(r, &s, 1, 0, fd);
    assert_int_equal(send(fd[0], "question", 8, 0), 8);
    assert_int_equal(hear(fd[1], buf, sizeof buf), 8);
    assert_memory_equal(buf, "question", 8);
    /* One direction ends; the other goes on. */
    shutdown(fd[0], SHUT_WR);
    assert_int_equal(hear(fd[1], buf, sizeof buf), 0);
    assert_int_equal(send(fd[1], "answer", 6, 0), 6);
    assert_int_equal(hear(fd[0], buf, sizeof buf), 6);
    assert_int_equal(atomic_load(&s.over), 0);
    shutdown(fd[1], SHUT_WR);
    assert_int_equal(hear(fd[0], buf, sizeof buf), 0);
    wait_over(&s, 1);
    assert_int_equal(s.why, ST_RELAY_DONE);
    assert_int_equal(s.moved[0], 8);
    assert_int_equal(s.moved[1], 6);
    assert_int_equal(st_relay_count(r), 0);
    close(fd[0]);
    close(fd[1]);
    st_relay_free(ST_TAKE(r)); /* before what it tells goes */
}

static unsigned char byte_at(size_t i)
{
    return (unsigned char)((i * 2654435761u) >> 13);
}

static size_t fill(int fd, size_t at, size_t most)
{
    unsigned char buf[8192];

    while (at < most) {
        size_t n = ST_MIN(sizeof buf, most - at);
        ssize_t sent;

        for (size_t i = 0; i < n; i++)
            buf[i] = byte_at(at + i);
        sent = send(fd, buf, n, MSG_DONTWAIT);
        if (sent < 0)
            break;
        at += (size_t)sent;
    }
    return at;
}

/* A reader that does not read holds up its own pair, with a bounded number of bytes, and nobody else's. */
static void test_slow_reader(void **state)
{
    const size_t all = 4u << 20;
    ST_CLEANUP(st_relay_freep) st_relay *r = NULL;
    unsigned char buf[8192];
    size_t sent = 0, got = 0, before;
    seen s = {0}, t = {0};
    int fd[2], beside[2], still = 0;
    st_err err;

    (void)state;
    assert_ok(st_relay_new(&r, &err));
    join(r, &s, 1, 0, fd);
    join(r, &t, 2, 0, beside);
    while (still < 200) { /* until nothing has gone in for a while */
        before = sent;
        sent = fill(fd[0], sent, all);
        still = sent == before ? still + 1 : 0;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    assert_true(sent < all); /* the kernel's buffers and ours are full */
    assert_int_equal(send(beside[0], "x", 1, 0), 1);
    assert_int_equal(hear(beside[1], (char *)buf, 1), 1);
    while (got < all) {
        ssize_t n = hear(fd[1], (char *)buf, sizeof buf);

        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(buf[i], byte_at(got + (size_t)i));
        got += (size_t)n;
        sent = fill(fd[0], sent, all);
    }
    close(fd[0]);
    close(fd[1]);
    wait_over(&s, 1);
    assert_int_equal(s.moved[0], all);
    close(beside[0]);
    close(beside[1]);
    st_relay_free(ST_TAKE(r)); /* before what it tells goes */
}

/* Who has said all and is gone is heard to the end. */
static void test_gone_writer(void **state)
{
    ST_CLEANUP(st_relay_freep) st_relay *r = NULL;
    unsigned char buf[8192];
    size_t sent = 0, got = 0, before;
    int fd[2], still = 0;
    ssize_t n;
    seen s = {0};
    st_err err;

    (void)state;
    assert_ok(st_relay_new(&r, &err));
    join(r, &s, 1, 0, fd);
    while (still < 100) {
        before = sent;
        sent = fill(fd[0], sent, 4u << 20);
        still = sent == before ? still + 1 : 0;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    close(fd[0]);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    while ((n = hear(fd[1], (char *)buf, sizeof buf)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            assert_int_equal(buf[i], byte_at(got + (size_t)i));
        got += (size_t)n;
    }
    assert_int_equal(got, sent);
    wait_over(&s, 1);
    close(fd[1]);
    st_relay_free(ST_TAKE(r)); /* before what it tells goes */
}

static void test_idle_and_cut(void **state)
{
    ST_CLEANUP(st_relay_freep) st_relay *r = NULL;
    int idle[2], first[2], second[2], kept[2];
    seen s = {0}, c = {0}, k = {0};
    char buf[8];
    st_err err;

    (void)state;
    assert_ok(st_relay_new(&r, &err));
    join(r, &s, 1, 30, idle);
    wait_over(&s, 1);
    assert_int_equal(s.why, ST_RELAY_IDLE);
    assert_int_equal(hear(idle[0], buf, 8), 0);
    join(r, &c, 7, 0, first);
    join(r, &c, 7, 0, second);
    join(r, &k, 8, 0, kept);
    st_relay_cut(r, 7);
    wait_over(&c, 2);
    assert_int_equal(c.why, ST_RELAY_CUT);
    assert_int_equal(send(kept[0], "x", 1, 0), 1);
    assert_int_equal(hear(kept[1], buf, 8), 1);
    st_relay_free(ST_TAKE(r)); /* ends what is left */
    assert_int_equal(atomic_load(&k.over), 1);
    assert_int_equal(k.why, ST_RELAY_CUT);
    for (int i = 0; i < 2; i++) {
        close(idle[i]);
        close(first[i]);
        close(second[i]);
        close(kept[i]);
    }
}

static void count_close(void *owner)
{
    seen *s = owner;

    atomic_fetch_add(&s->closed, 1);
}

/* Ends that are somebody's: what was said early comes first, `whole` ends end together, and they are closed by their owner. */
static void test_owned(void **state)
{
    ST_CLEANUP(st_relay_freep) st_relay *r = NULL;
    int a[2], b[2];
    seen s = {0};
    char buf[64];
    st_err err;

    (void)state;
    assert_ok(st_relay_new(&r, &err));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
    st_relay_join(
        r,
        &(st_relay_end){
            .fd = a[1], .close = count_close, .owner = &s, .whole = true, .early = "hel", .n = 3},
        &(st_relay_end){.fd = b[1], .close = count_close, .owner = &s},
        &(st_relay_rule){.over = on_over, .ctx = &s});
    assert_int_equal(send(a[0], "lo", 2, 0), 2);
    for (size_t got = 0; got < 5;)
        got += (size_t)hear(b[0], buf + got, sizeof buf - got);
    assert_memory_equal(buf, "hello", 5);
    shutdown(b[0], SHUT_WR);
    wait_over(&s, 1);
    assert_int_equal(atomic_load(&s.closed), 2);
    close(a[0]);
    close(a[1]);
    close(b[0]);
    close(b[1]);
    st_relay_free(ST_TAKE(r)); /* before what it tells goes */
}

/* An idle pair takes no processor time; nor does one of which one side has hung up and the other does not read. */
static void test_quiet(void **state)
{
    ST_CLEANUP(st_relay_freep) st_relay *r = NULL;
    struct timespec before, after;
    seen s = {0};
    st_err err;
    int fd[2];

    (void)state;
    assert_ok(st_relay_new(&r, &err));
    join(r, &s, 1, 0, fd);
    fill(fd[0], 0, 4u << 20);
    shutdown(fd[0], SHUT_WR);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    assert_true((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 <
                100);
    assert_int_equal(atomic_load(&s.over), 0);
    close(fd[0]);
    close(fd[1]);
    st_relay_free(ST_TAKE(r)); /* before what it tells goes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_idle_and_cut), cmocka_unit_test(test_owned),
        cmocka_unit_test(test_quiet),        cmocka_unit_test(test_gone_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
