/*
 * Watchers of a job's own streams (run/attach.h).
 */
#include "run/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "run/console.h"
#include "run/os.h"
#include "tunnel/frame.h"

#define EVENTS    16
#define SIZE_MOST 1000 /* rows and columns */

typedef struct watcher {
    int fd;
    bool asked, may_write, sized, said_exit, gone;
    bool mid_line; /* it began in the middle of a line, which it does not get */
    uint32_t wants;
    int64_t at; /* of the output: what it gets next */
    st_strbuf heard, out;
} watcher;

struct st_attach {
    st_attach_job job;
    char logs[PATH_MAX];
    int epoll, listener;
    int in; /* -1: nothing is taken */
    bool terminal, in_waits, in_ends;
    st_strbuf typed;
    ST_VEC(watcher *) all;
    bool over;
    unsigned char how[2]; /* it ended */
    char buf[ST_FRAME_MAX];
};

static void drop(st_strbuf *b, size_t n)
{
    memmove(b->s, b->s + n, b->n - n);
    b->n -= n;
}

/* ---- what is typed --------------------------------------------------------------------------------- */

static bool has_room(const st_attach *a)
{
    return a->typed.n < ST_ATTACH_HELD;
}

static void listen_in(st_attach *a, bool waits)
{
    struct epoll_event e = {.events = waits ? (uint32_t)EPOLLOUT : 0, .data.ptr = &a->in};

    if (a->in < 0 || waits == a->in_waits)
        return;
    a->in_waits = waits;
    epoll_ctl(a->epoll, waits ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, a->in, &e);
}

static void close_input(st_attach *a)
{
    listen_in(a, false);
    st_os_closep(&a->in);
    a->typed.n = 0;
}

static void feed_job(st_attach *a)
{
    while (a->in >= 0 && a->typed.n > 0) {
        ssize_t n = write(a->in, a->typed.s, a->typed.n);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            listen_in(a, true);
            return;
        }
        if (n < 0) { /* it reads no more */
            close_input(a);
            return;
        }
        drop(&a->typed, (size_t)n);
    }
    listen_in(a, false);
    if (a->in_ends && !a->terminal)
        close_input(a);
    a->in_ends = false;
}

void st_attach_input(st_attach *a, int fd, bool terminal)
{
    if (fd < 0)
        return;
    a->in = fd;
    a->terminal = terminal;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    feed_job(a);
}

/* ---- watchers -------------------------------------------------------------------------------------- */

static void listen_for(st_attach *a, watcher *w)
{
    uint32_t wants = (!w->may_write || has_room(a) ? (uint32_t)EPOLLIN : 0) |
                     (w->out.n > 0 ? (uint32_t)EPOLLOUT : 0);
    struct epoll_event e = {.events = wants, .data.ptr = w};

    if (wants != w->wants && !w->gone)
        epoll_ctl(a->epoll, EPOLL_CTL_MOD, w->fd, &e);
    w->wants = wants;
}

static void let_go(st_attach *a, watcher *w)
{
    if (w->gone)
        return;
    w->gone = true;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    st_os_closep(&w->fd);
}

/* After a turn: an event of it may have been reported together with others. */
static void bury(st_attach *a)
{
    size_t kept = 0;

    for (size_t i = 0; i < a->all.n; i++) {
        watcher *w = a->all.v[i];

        if (!w->gone) {
            a->all.v[kept++] = w;
            continue;
        }
        st_strbuf_done(&w->heard);
        st_strbuf_done(&w->out);
        free(w);
    }
    a->all.n = kept;
}

static void say(st_attach *a, watcher *w)
{
    while (w->out.n > 0 && !w->gone) {
        ssize_t n = send(w->fd, w->out.s, w->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0)
            let_go(a, w);
        else
            drop(&w->out, (size_t)n);
    }
}

static void add_output(watcher *w, const char *bytes, size_t n)
{
    if (w->mid_line) {
        const char *end = memchr(bytes, '\n', n);
        size_t skip = end ? (size_t)(end - bytes) + 1 : n;

        w->mid_line = !end;
        bytes += skip;
        n -= skip;
    }
    for (size_t len; n > 0; bytes += len, n -= len) {
        len = ST_MIN(n, (size_t)ST_FRAME_MAX);
        st_frame_add(&w->out, ST_FRAME_OUT, bytes, len);
    }
}

/* What it has not had, a piece at a time, as fast as it takes it; then how the job ended. */
static void catch_up(st_attach *a, watcher *w)
{
    int64_t first, end;
    size_t n;

    if (!w->asked)
        return;
    say(a, w);
    while (!w->gone && w->out.n == 0 && w->at < st_log_end(a->job.log)) {
        if (st_log_read(a->logs, "out", w->at, a->buf, sizeof a->buf, &n, &first, &end, NULL) < 0 ||
            n == 0)
            break;
        w->at = first + (int64_t)n; /* what was rotated away is left out */
        add_output(w, a->buf, n);
        say(a, w);
    }
    if (a->over && !w->gone && w->out.n == 0) {
        if (w->said_exit) {
            let_go(a, w);
            return;
        }
        w->said_exit = true;
        st_frame_add(&w->out, ST_FRAME_EXIT, a->how, sizeof a->how);
        say(a, w);
        if (w->out.n == 0)
            let_go(a, w);
    }
}

static void set_size(const st_attach *a, watcher *w, const unsigned char b[4])
{
    int rows = b[0] << 8 | b[1], cols = b[2] << 8 | b[3];

    if (!a->terminal || rows < 1 || cols < 1 || rows > SIZE_MOST || cols > SIZE_MOST)
        return;
    /* A program that fills the screen draws it anew for whoever comes: it hears of a size that is another one. */
    if (!w->sized)
        st_console_size(a->in, rows, cols + 1);
    w->sized = true;
    st_console_size(a->in, rows, cols);
}

/* False: it is not to be heard any more. */
static bool take_frame(st_attach *a, watcher *w, const st_frame *f)
{
    static const char typed_end = 4; /* as if it was typed */

    if (!w->may_write)
        return false;
    switch (f->kind) {
    case ST_FRAME_IN:
        if (a->in >= 0)
            st_strbuf_addn(&a->typed, (const char *)f->bytes, f->n);
        return true;
    case ST_FRAME_IN_END:
        if (a->terminal)
            st_strbuf_addn(&a->typed, &typed_end, 1);
        else
            a->in_ends = true;
        return true;
    case ST_FRAME_SIZE:
        set_size(a, w, f->bytes);
        return true;
    case ST_FRAME_SIGNAL:
        if (f->bytes[0] == 0 || f->bytes[0] > 31 || f->bytes[0] == SIGKILL ||
            f->bytes[0] == SIGSTOP)
            return false;
        a->job.signal(a->job.ctx, f->bytes[0]);
        return true;
    default:
        return false;
    }
}

static void say_full(int fd)
{
    static const char why[] = "the task has as many watchers as it may have";
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_frame_add(&out, ST_FRAME_FAIL, why, sizeof why - 1);
    (void)send(fd, out.s, out.n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool watchers_full(const st_attach *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->all.n; i++)
        n += a->all.v[i]->asked && !a->all.v[i]->may_write && !a->all.v[i]->gone;
    return n > ST_ATTACH_MAX - ST_ATTACH_KEPT;
}

/* What comes first is the agent's, whole. */
static bool take_ask(st_attach *a, watcher *w, size_t *n)
{
    st_attach_ask ask;
    int64_t end = st_log_end(a->job.log);

    if (*n < sizeof ask)
        return false;
    memcpy(&ask, a->buf, sizeof ask);
    w->asked = true;
    w->may_write = ask.may_write == 1;
    if (!w->may_write && watchers_full(a)) {
        say_full(w->fd);
        return false;
    }
    w->at = ask.from < 0 ? ST_MAX(end + ask.from, 0) : ST_MIN(ask.from, end);
    w->mid_line = ask.from < 0 && w->at > 0;
    *n -= sizeof ask;
    memmove(a->buf, a->buf + sizeof ask, *n);
    return true;
}

static void hear(st_attach *a, watcher *w)
{
    ssize_t got = recv(w->fd, a->buf, sizeof a->buf, MSG_DONTWAIT);
    size_t used = 0, n = (size_t)ST_MAX(got, 0);
    bool fine = true;
    st_frame f;
    int r = 0;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || (!w->asked && !take_ask(a, w, &n))) {
        let_go(a, w);
        return;
    }
    st_strbuf_addn(&w->heard, a->buf, n);
    while (fine && (r = st_frame_read(w->heard.s, w->heard.n, false, &f, &used)) > 0) {
        fine = take_frame(a, w, &f);
        drop(&w->heard, used);
    }
    if (!fine || r < 0)
        let_go(a, w);
    feed_job(a);
}

static void refuse(int fd)
{
    say_full(fd);
    close(fd);
}

static void take_in(st_attach *a)
{
    int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    watcher *w;

    if (fd < 0)
        return;
    if (a->all.n >= ST_ATTACH_MAX) {
        refuse(fd);
        return;
    }
    w = st_xcalloc(1, sizeof *w);
    w->fd = fd;
    w->wants = EPOLLIN;
    st_vec_push(&a->all, w);
    epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = w});
}

/* ---- for the supervisor ---------------------------------------------------------------------------- */

static void turn(st_attach *a, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(a->epoll, events, EVENTS, timeout_ms);

    for (int i = 0; i < n; i++) {
        watcher *w = events[i].data.ptr;

        if (events[i].data.ptr == &a->listener) {
            take_in(a);
        } else if (events[i].data.ptr == &a->in) {
            if (events[i].events & EPOLLERR)
                close_input(a);
            feed_job(a);
        } else if (!w->gone) {
            if (events[i].events & EPOLLIN)
                hear(a, w);
            else if (events[i].events & (EPOLLERR | EPOLLHUP))
                let_go(a, w);
            catch_up(a, w);
        }
    }
    bury(a);
    for (size_t i = 0; i < a->all.n; i++)
        listen_for(a, a->all.v[i]);
}

void st_attach_turn(st_attach *a)
{
    turn(a, 0);
}

void st_attach_output(st_attach *a, int64_t at, const char *bytes, size_t n)
{
    int64_t end = st_log_end(a->job.log);

    for (size_t i = 0; i < a->all.n; i++) {
        watcher *w = a->all.v[i];

        if (w->asked && w->at == at && w->out.n + n <= ST_ATTACH_HELD) {
            add_output(w, bytes, n); /* also what a full disk did not take */
            w->at = end;
        }
        catch_up(a, w);
    }
    bury(a);
    for (size_t i = 0; i < a->all.n; i++)
        listen_for(a, a->all.v[i]);
}

void st_attach_end(st_attach *a, int status, int signal, int timeout_ms)
{
    int64_t until = st_os_mono_ms() + timeout_ms, left;

    close_input(a);
    a->over = true;
    a->how[0] = (unsigned char)ST_MAX(status, 0);
    a->how[1] = (unsigned char)signal;
    for (size_t i = 0; i < a->all.n; i++)
        catch_up(a, a->all.v[i]);
    bury(a);
    for (size_t i = 0; i < a->all.n; i++)
        listen_for(a, a->all.v[i]);
    while (a->all.n > 0 && (left = until - st_os_mono_ms()) > 0)
        turn(a, (int)left);
}

int st_attach_fd(const st_attach *a)
{
    return a->epoll;
}

st_attach *st_attach_new(const st_attach_job *job)
{
    st_attach *a = st_xcalloc(1, sizeof *a);

    a->job = *job;
    a->in = -1;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->listener = st_socket_listen(job->dir, ST_ATTACH, ST_ATTACH_MAX);
    if (a->epoll < 0 || a->listener < 0 || st_os_path(a->logs, NULL, "%s/logs", job->dir) != 0) {
        st_attach_free(a);
        return NULL;
    }
    epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->listener,
              &(struct epoll_event){.events = EPOLLIN, .data.ptr = &a->listener});
    return a;
}

void st_attach_free(st_attach *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->all.n; i++)
        let_go(a, a->all.v[i]);
    bury(a);
    st_vec_free(&a->all);
    close_input(a);
    st_strbuf_done(&a->typed);
    st_os_closep(&a->listener);
    st_os_closep(&a->epoll);
    free(a);
}
