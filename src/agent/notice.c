/*
 * Notices by inotify (agent/notice.h).
 *
 * A flood of output is a flood of events: once there is one, the descriptor is not waited for until
 * they are taken, which is at most once per turn.
 */
#include "agent/notice.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/mem.h"

#define READS     64     /* at a time: writers may be faster than we are */
#define LOCK_FILE "lock" /* held open by a supervisor, and by nobody else for writing */

struct st_notices {
    st_poll *poll;
    st_agent_watch watch;
    bool ready;
};

static void on_ready(void *ctx, uint32_t events)
{
    st_notices *n = ctx;

    (void)events;
    n->ready = true;
    st_poll_remove(n->poll, &n->watch);
}

st_notices *st_notices_new(st_poll *poll)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    st_notices *n;

    if (fd < 0)
        return NULL;
    n = st_xcalloc(1, sizeof *n);
    n->poll = poll;
    n->watch = (st_agent_watch){.fd = fd, .ready = on_ready, .ctx = n};
    st_poll_add(poll, &n->watch, EPOLLIN);
    return n;
}

void st_notices_free(st_notices *n)
{
    if (!n)
        return;
    st_poll_remove(n->poll, &n->watch);
    close(n->watch.fd);
    free(n);
}

int st_notice_watch(st_notices *n, const char *path, st_notice_kind kind)
{
    uint32_t what = kind == ST_NOTICE_OUTPUT ? IN_MODIFY | IN_CREATE : IN_MOVED_TO | IN_CLOSE_WRITE;
    int wd = n ? inotify_add_watch(n->watch.fd, path, what | IN_ONLYDIR) : -1;

    return ST_MAX(wd, 0);
}

void st_notice_forget(st_notices *n, int watch)
{
    if (n && watch > 0)
        inotify_rm_watch(n->watch.fd, watch);
}

bool st_notices_ready(const st_notices *n)
{
    return n && n->ready;
}

static void take_one(const struct inotify_event *e, st_notice_fn fn, void *ctx)
{
    if (e->mask & IN_Q_OVERFLOW)
        fn(ctx, ST_NOTICE_ALL, 0);
    else if (e->mask & (IN_MODIFY | IN_CREATE))
        fn(ctx, ST_NOTICE_OUTPUT, e->wd);
    else if (e->mask & IN_MOVED_TO || (e->len > 0 && strcmp(e->name, LOCK_FILE) == 0))
        fn(ctx, ST_NOTICE_RECORD, e->wd);
}

void st_notices_take(st_notices *n, st_notice_fn fn, void *ctx)
{
    char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t got;

    if (!st_notices_ready(n))
        return;
    for (int i = 0; i < READS && (got = read(n->watch.fd, buf, sizeof buf)) > 0; i++)
        for (char *p = buf; p < buf + got;) {
            const struct inotify_event *e = (const struct inotify_event *)(void *)p;

            take_one(e, fn, ctx);
            p += sizeof *e + e->len;
        }
    n->ready = false;
    st_poll_add(n->poll, &n->watch, EPOLLIN);
}
