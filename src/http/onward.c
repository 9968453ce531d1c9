/*
 * The thread of requests to servers that nobody trusts (http/onward.h).
 */
#include "http/onward.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "http/call.h"
#include "http/pipe.h"

#define READ_BYTES 16384
#define CHECK_MS   1000 /* between looks at clients that wait */
#define SWITCHED   2    /* it is somebody else's now */

/* References: one is the thread's, one that of the pipe's hooks. */
typedef struct conversation {
    st_onwards *f;
    st_onward x;
    int fd; /* -1: there is none, for `why` */
    st_err why;
    size_t sent;
    st_upstream up;
    st_pipe *pipe;
    st_inflow *in;       /* the rest of the request; NULL: there is none, or nobody wants it */
    atomic_bool in_news; /* something of it can be taken, or it is over */
    int64_t deadline_ms;
    atomic_int refs;
    atomic_bool room, gone; /* the client takes more; it is gone, or has everything */
} conversation;

struct st_onwards {
    pthread_mutex_t lock;
    ST_VEC(conversation *) fresh;
    bool stopping;
    int wake_fd;
    pthread_t thread;

    /* The thread's. */
    ST_VEC(conversation *) all;
    ST_VEC(struct pollfd) fds;
    int64_t checked_ms;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wake(const st_onwards *f)
{
    const uint64_t one = 1;
    ssize_t n = write(f->wake_fd, &one, sizeof one);

    (void)n; /* one that is full wakes as well */
}

static void unref(conversation *c)
{
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
        return;
    st_upstream_done(&c->up);
    st_strbuf_done(&c->x.request);
    free(c);
}

/* ---- the client's side --------------------------------------------------------------------------- */

static void on_room(void *ctx)
{
    conversation *c = ctx;

    atomic_store(&c->room, true);
    wake(c->f);
}

static void on_inflow(void *ctx)
{
    conversation *c = ctx;

    atomic_store(&c->in_news, true);
    wake(c->f);
}

/* The thread may be gone by now: it waits for nobody. */
static void on_closed(void *ctx)
{
    conversation *c = ctx;

    atomic_store(&c->gone, true);
    unref(c);
}

static bool is_answered(const conversation *c)
{
    return !c->x.call;
}

static void refuse(conversation *c, const st_err *err)
{
    st_err say = *err;

    if (is_answered(c))
        return;
    say.code = ST_EDOWN; /* whatever is wrong with it: it is not the client's request */
    st_call_fail(ST_TAKE(c->x.call), &say);
}

/* The head has come. */
static void answer(conversation *c)
{
    const st_upstream *u = &c->up;
    const char *type = st_upstream_header_of(u, "Content-Type");
    const st_pipe_hooks hooks = {.want = on_room, .closed = on_closed, .ctx = c};
    st_call *call = ST_TAKE(c->x.call);

    for (size_t i = 0; c->x.header && i < u->headers.n; i++)
        c->x.header(c->x.ctx, call, u->headers.v[i].name, u->headers.v[i].value);
    if (u->status == 204 || u->status == 304) {
        st_call_reply_empty(call, u->status);
        return;
    }
    atomic_fetch_add(&c->refs, 1);
    atomic_store(&c->room, true);
    c->pipe =
        st_call_pipe(call, u->status, type ? type : "application/octet-stream", u->length, &hooks);
}

/* ---- the server's side ---------------------------------------------------------------------------- */

/* It is over; *err where that is not well. */
static void end(conversation *c, const st_err *err)
{
    static const st_err none = {.code = ST_EDOWN, .msg = "there was no answer"};

    st_inflow_close(ST_TAKE(c->in));
    refuse(c, err ? err : &none);
    if (c->pipe)
        st_pipe_end(ST_TAKE(c->pipe), !err);
    if (c->fd >= 0)
        close(c->fd);
    c->x.over(c->x.ctx, c->up.state == ST_UPSTREAM_HEAD ? 0 : c->up.status, err);
    unref(c);
}

/* The next piece of the body, framed. What has come is sent before it is looked at whether more did. */
static int take_inflow(conversation *c, st_err *err)
{
    st_strbuf *out = &c->x.request;
    char buf[READ_BYTES];
    st_inflow_state state;
    size_t n;

    atomic_store(&c->in_news, false);
    n = st_inflow_take(c->in, buf, sizeof buf, &state);
    if (state == ST_INFLOW_BROKEN)
        return st_fail(err, ST_EDOWN, "the client is gone");
    st_strbuf_clear(out);
    c->sent = 0;
    if (n > 0) {
        if (c->x.chunked && c->x.body && c->x.body(c->x.ctx, n, err) < 0)
            return -err->code;
        if (c->x.chunked)
            st_strbuf_addf(out, "%zx\r\n", n);
        st_strbuf_addn(out, buf, n);
        if (c->x.chunked)
            st_strbuf_add(out, "\r\n");
        atomic_store(&c->in_news, true); /* there may be more */
    }
    if (state == ST_INFLOW_ENDED) {
        if (c->x.chunked)
            st_strbuf_add(out, "0\r\n\r\n");
        st_inflow_close(ST_TAKE(c->in));
    }
    return 0;
}

static int send_some(conversation *c, st_err *err)
{
    const st_strbuf *out = &c->x.request;
    ssize_t n = send(c->fd, out->s + c->sent, out->n - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n > 0)
        c->sent += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        c->sent = out->n; /* it may have answered without reading everything */
        st_inflow_close(ST_TAKE(c->in));
    }
    return c->sent == out->n && c->in ? take_inflow(c, err) : 0;
}

/* 1: the answer is complete. */
static int take(conversation *c, const char *bytes, size_t n, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    bool wants_body = !is_answered(c) || c->pipe;
    size_t used;
    int r = n > 0 ? st_upstream_feed(&c->up, bytes, n, &used, &body, err)
                  : st_upstream_end(&c->up, err);

    if (r == 0 && c->up.state == ST_UPSTREAM_OTHER) {
        int fd = c->fd;

        c->fd = -1;
        c->x.switched(c->x.ctx, ST_TAKE(c->x.call), &c->up, fd, bytes + used, n - used);
        return SWITCHED;
    }
    if (c->up.state != ST_UPSTREAM_HEAD && c->up.status > 0) {
        if (!wants_body)
            return 1; /* the status was all that is wanted */
        if (!is_answered(c) && r == 0)
            answer(c);
    }
    if (c->pipe && body.n > 0 && !st_pipe_write(c->pipe, body.s, body.n))
        atomic_store(&c->room, false);
    return r < 0 ? r : c->up.state == ST_UPSTREAM_DONE;
}

static int read_some(conversation *c, st_err *err)
{
    char buf[READ_BYTES];
    ssize_t n = recv(c->fd, buf, sizeof buf, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return st_fail(err, ST_EDOWN, "the connection to the server behind it broke");
    return take(c, buf, (size_t)n, err);
}

/* One whose answer has begun is noticed by that. */
static bool has_left(conversation *c)
{
    if (c->in)
        return !st_inflow_check(c->in);
    return !is_answered(c) && st_call_left(c->x.call);
}

/* Whether it goes on; what happened on its socket is in `events`. */
static bool step(conversation *c, short events, int64_t now, bool check)
{
    st_err err = {0};
    int r = 0;

    if (c->fd < 0)
        r = -1, err = c->why;
    if (r == 0 && c->pipe && atomic_load(&c->gone))
        r = st_fail(&err, ST_EDOWN, "the client is gone");
    if (r == 0 && check && has_left(c))
        r = st_fail(&err, ST_EDOWN, "the client is gone");
    if (r == 0 && check && c->x.alive && !c->x.alive(c->x.ctx))
        r = st_fail(&err, ST_EDOWN, "the token was revoked, or expired");
    if (r == 0 && (events & POLLOUT))
        r = send_some(c, &err);
    if (r == 0 && (events & (POLLIN | POLLHUP | POLLERR)))
        r = read_some(c, &err);
    if (r == 0 && events)
        c->deadline_ms =
            now + (c->up.state == ST_UPSTREAM_HEAD && !c->in ? c->x.head_ms : c->x.idle_ms);
    if (r == 0 && now >= c->deadline_ms)
        r = st_fail(&err, ST_EDOWN, "the server behind it did not answer in time");
    if (r == 0)
        return true;
    if (r == SWITCHED)
        unref(c);
    else
        end(c, r > 0 ? NULL : &err);
    return false;
}

static short wanted(const conversation *c)
{
    bool full = c->pipe && !atomic_load(&c->room);
    bool sends = c->sent < c->x.request.n || (c->in && atomic_load(&c->in_news));

    return (short)((full ? 0 : POLLIN) | (sends ? POLLOUT : 0));
}

/* ---- the thread ------------------------------------------------------------------------------------ */

static bool take_fresh(st_onwards *f)
{
    bool stopping;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->fresh.n; i++)
        st_vec_push(&f->all, f->fresh.v[i]);
    st_vec_clear(&f->fresh);
    stopping = f->stopping;
    pthread_mutex_unlock(&f->lock);
    return !stopping;
}

/* One that waits for room is not asked for anything: a socket without wishes tells of its end all the time. */
static int fill(st_onwards *f, int64_t now)
{
    int64_t next = f->all.n > 0 ? CHECK_MS : -1;

    st_vec_clear(&f->fds);
    st_vec_push(&f->fds, ((struct pollfd){.fd = f->wake_fd, .events = POLLIN}));
    for (size_t i = 0; i < f->all.n; i++) {
        const conversation *c = f->all.v[i];
        short events = wanted(c);

        st_vec_push(&f->fds, ((struct pollfd){.fd = events ? c->fd : -1, .events = events}));
        next = ST_MIN(next, ST_MAX(c->deadline_ms - now, 0));
        if (c->fd < 0)
            next = 0;
    }
    return (int)next;
}

static void round_of(st_onwards *f)
{
    int64_t now = now_ms();
    bool check = now - f->checked_ms >= CHECK_MS;
    uint64_t n;
    size_t kept = 0, had = f->fds.n - 1;

    if (f->fds.v[0].revents && read(f->wake_fd, &n, sizeof n) < 0)
        n = 0;
    if (check)
        f->checked_ms = now;
    for (size_t i = 0; i < f->all.n; i++) {
        conversation *c = f->all.v[i];

        if (check && c->pipe)
            st_pipe_check(c->pipe);
        if (step(c, i < had ? f->fds.v[i + 1].revents : 0, now, check))
            f->all.v[kept++] = c;
    }
    f->all.n = kept;
}

static void *loop(void *arg)
{
    st_onwards *f = arg;
    const st_err stopping = {.code = ST_EDOWN, .msg = "stintd is stopping"};

    while (take_fresh(f)) {
        int ms = fill(f, now_ms());

        poll(f->fds.v, f->fds.n, ms);
        round_of(f);
    }
    for (size_t i = 0; i < f->all.n; i++)
        end(f->all.v[i], &stopping);
    f->all.n = 0;
    return NULL;
}

int st_onwards_new(st_onwards **ret, st_err *err)
{
    st_onwards *f = st_xcalloc(1, sizeof *f);

    pthread_mutex_init(&f->lock, NULL);
    f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (f->wake_fd < 0 || pthread_create(&f->thread, NULL, loop, f) != 0) {
        if (f->wake_fd >= 0)
            close(f->wake_fd);
        pthread_mutex_destroy(&f->lock);
        free(f);
        return st_fail(err, ST_EINTERNAL, "the thread of requests cannot be started");
    }
    *ret = f;
    return 0;
}

void st_onwards_free(st_onwards *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_mutex_unlock(&f->lock);
    wake(f);
    pthread_join(f->thread, NULL);
    st_vec_free(&f->fresh);
    st_vec_free(&f->all);
    st_vec_free(&f->fds);
    close(f->wake_fd);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void st_onward_begin(st_onwards *f, const st_onward *x, int fd, const st_err *why)
{
    conversation *c = st_xcalloc(1, sizeof *c);

    c->f = f;
    c->x = *x;
    c->fd = fd;
    if (fd < 0)
        c->why = *why;
    c->up.head_only = x->head_only;
    c->up.may_switch = x->switched != NULL;
    c->deadline_ms = now_ms() + x->head_ms;
    atomic_init(&c->refs, 1);
    atomic_init(&c->room, true);
    atomic_init(&c->gone, false);
    atomic_init(&c->in_news, false);
    c->in = x->in;
    if (c->in)
        st_inflow_to(c->in, on_inflow, c);
    pthread_mutex_lock(&f->lock);
    st_vec_push(&f->fresh, c);
    pthread_mutex_unlock(&f->lock);
    wake(f);
}
