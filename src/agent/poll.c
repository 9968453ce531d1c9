/*
 * Waiting on an epoll (agent/poll.h).
 */
#include "agent/poll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

#define EVENTS 64

struct st_poll {
    int epoll;
    st_agent_watch wake;
};

static void on_wake(void *ctx, uint32_t events)
{
    uint64_t times;

    (void)events;
    if (read(((st_poll *)ctx)->wake.fd, &times, sizeof times) < 0)
        ST_ASSERT(errno == EAGAIN || errno == EINTR);
}

st_poll *st_poll_new(void)
{
    st_poll *p = st_xcalloc(1, sizeof *p);

    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->wake =
        (st_agent_watch){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_wake, .ctx = p};
    ST_ASSERT(p->epoll >= 0 && p->wake.fd >= 0);
    st_poll_add(p, &p->wake, EPOLLIN);
    return p;
}

void st_poll_free(st_poll *p)
{
    if (!p)
        return;
    close(p->wake.fd);
    close(p->epoll);
    free(p);
}

void st_poll_add(st_poll *p, st_agent_watch *watch, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = watch};

    if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, watch->fd, &e) != 0 && errno == EEXIST)
        epoll_ctl(p->epoll, EPOLL_CTL_MOD, watch->fd, &e);
}

void st_poll_remove(st_poll *p, const st_agent_watch *watch)
{
    epoll_ctl(p->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
}

void st_poll_wait(st_poll *p, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(p->epoll, events, EVENTS, ST_MAX(timeout_ms, 0)); /* never for ever */

    for (int i = 0; i < n; i++) {
        st_agent_watch *w = events[i].data.ptr;

        w->ready(w->ctx, events[i].events);
    }
}

void st_poll_wake(st_poll *p)
{
    uint64_t one = 1;

    while (write(p->wake.fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}
