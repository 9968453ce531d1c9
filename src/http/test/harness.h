/*
 * A server on loopback for tests, and a raw client that sends bytes and waits,
 * generously, for text to come back.
 */
#ifndef ST_HTTP_TEST_HARNESS_H
#define ST_HTTP_TEST_HARNESS_H

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/testing.h"
#include "http/http.h"

#define WAIT_MS 20000

typedef struct client {
    int fd;
    bool ended; /* the other side closed */
    st_strbuf got;
} client;

static inline client connect_to(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    client c = {.fd = socket(AF_INET, SOCK_STREAM, 0)};

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(c.fd >= 0);
    assert_int_equal(connect(c.fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return c;
}

static inline void hang_up(client *c)
{
    close(c->fd);
    st_strbuf_done(&c->got);
}

static inline void say(client *c, const char *text)
{
    size_t n = strlen(text);

    while (n > 0) {
        ssize_t sent = send(c->fd, text, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return; /* the other side may have closed already */
        text += sent;
        n -= (size_t)sent;
    }
}

/* Reads what comes within the time; false when nothing did, or the connection is over. */
static inline bool hear_some(client *c, int wait_ms)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    char bytes[4096];
    ssize_t n;

    if (c->ended || poll(&p, 1, wait_ms) <= 0)
        return false;
    n = recv(c->fd, bytes, sizeof(bytes), 0);
    if (n <= 0) {
        c->ended = true;
        return false;
    }
    st_strbuf_addn(&c->got, bytes, (size_t)n);
    return true;
}

/* Waits until the text has come and forgets everything up to its end. */
static inline void hear(client *c, const char *text)
{
    const char *found;
    size_t n;

    while (!(found = strstr(st_strbuf_str(&c->got), text)))
        if (!hear_some(c, WAIT_MS))
            fail_msg("waited for \"%s\", got \"%s\"%s", text, st_strbuf_str(&c->got),
                     c->ended ? " and the end" : "");
    n = (size_t)(found - c->got.s) + strlen(text);
    memmove(c->got.s, c->got.s + n, c->got.n - n + 1);
    c->got.n -= n;
}

static inline void hear_end(client *c)
{
    while (!c->ended)
        if (!hear_some(c, WAIT_MS) && !c->ended)
            fail_msg("waited for the end, got \"%s\"", st_strbuf_str(&c->got));
}

/* Polls a condition, generously. */
#define wait_until(condition)                                        \
    do {                                                             \
        int st_test_left_ = WAIT_MS;                                 \
        while (!(condition) && st_test_left_-- > 0)                  \
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); \
        if (!(condition))                                            \
            fail_msg("%s did not come true", #condition);            \
    } while (0)

#endif
