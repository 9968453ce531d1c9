/*
 * An answer whose body comes from somewhere else, as fast as its client takes it. A pipe is a bounded buffer between whoever
 * writes and the reader that libmicrohttpd calls when the socket takes more. With nothing to send the connection is
 * suspended.
 *
 * Invariants, under the pipe's lock: the bytes from `at` on are not yet taken; `suspended` is set by the reader and cleared
 * by whoever resumes; after `ended` nothing is added, after `closed` nothing of libmicrohttpd's is touched.
 *
 * References: one is the response's, one the writer's.
 */
#include "http/pipe.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "http/call.h"

#define BLOCK_BYTES 16384 /* most that is taken at once */

struct st_pipe {
    struct MHD_Connection *mhd;
    st_pipe_hooks hooks;
    atomic_int refs;

    pthread_mutex_t lock;
    st_strbuf buf;
    size_t at;
    bool suspended, ended, bad, closed;
    bool waits; /* the writer has seen it full */
};

static void unref(st_pipe *p)
{
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1)
        return;
    st_strbuf_done(&p->buf);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static size_t held(const st_pipe *p)
{
    return p->buf.n - p->at;
}

static int socket_of(const st_pipe *p)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(p->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

/* libmicrohttpd closes a connection whose answer ends with an error; of one that was suspended it does so only when something
 * happens on its socket, or after its timeout. So something does. */
static void cut(const st_pipe *p)
{
    int fd = socket_of(p);

    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
}

/* The reader: libmicrohttpd wants up to max bytes. */
static ssize_t take(void *cls, uint64_t pos, char *out, size_t max)
{
    st_pipe *p = cls;
    bool want = false;
    ssize_t result = 0;
    size_t n;

    (void)pos;
    pthread_mutex_lock(&p->lock);
    n = ST_MIN(held(p), max);
    if (p->bad) {
        cut(p);
        result = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (n > 0) {
        memcpy(out, p->buf.s + p->at, n);
        p->at += n;
        result = (ssize_t)n;
        if (p->at == p->buf.n) {
            p->at = 0;
            st_strbuf_clear(&p->buf);
        }
        want = p->waits && held(p) <= ST_PIPE_BYTES / 2;
        p->waits = p->waits && !want;
    } else if (p->ended) {
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        p->suspended = true;
        MHD_suspend_connection(p->mhd);
    }
    if (want) /* with the lock: once the writer has ended it hears nothing more */
        p->hooks.want(p->hooks.ctx);
    pthread_mutex_unlock(&p->lock);
    return result;
}

/* The response is gone: sent, or its client left, or the server stopped before it was. */
static void gone(void *cls)
{
    st_pipe *p = cls;

    pthread_mutex_lock(&p->lock);
    ST_ASSERT(!p->suspended && !p->closed);
    p->closed = p->ended = true;
    p->mhd = NULL;
    pthread_mutex_unlock(&p->lock);
    p->hooks.closed(p->hooks.ctx);
    unref(p);
}

st_pipe *st_call_pipe(st_call *call, int status, const char *type, int64_t length,
                      const st_pipe_hooks *hooks)
{
    st_pipe *p = st_xcalloc(1, sizeof(*p));
    struct MHD_Response *response;

    p->mhd = call->mhd;
    p->hooks = *hooks;
    atomic_init(&p->refs, 2);
    pthread_mutex_init(&p->lock, NULL);
    response = MHD_create_response_from_callback(length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)length,
                                                 BLOCK_BYTES, take, p, gone);
    ST_ASSERT(response);
    call->streams_us = st_now_us();
    st_call_send(call, status, type, response, length > 0 ? (size_t)length : 0);
    return p;
}

static void wake(st_pipe *p)
{
    if (!p->suspended)
        return;
    p->suspended = false;
    MHD_resume_connection(p->mhd);
}

bool st_pipe_write(st_pipe *p, const char *bytes, size_t n)
{
    bool room;

    pthread_mutex_lock(&p->lock);
    if (!p->ended) {
        if (p->at > p->buf.n / 2) {
            memmove(p->buf.s, p->buf.s + p->at, held(p));
            p->buf.n -= p->at;
            p->at = 0;
        }
        st_strbuf_addn(&p->buf, bytes, n);
        wake(p);
    }
    room = p->ended || held(p) < ST_PIPE_BYTES;
    p->waits = !room;
    pthread_mutex_unlock(&p->lock);
    return room;
}

void st_pipe_end(st_pipe *p, bool well)
{
    pthread_mutex_lock(&p->lock);
    p->waits = false;
    if (!p->ended) {
        p->ended = true;
        p->bad = !well;
        wake(p);
    }
    pthread_mutex_unlock(&p->lock);
    unref(p);
}

/* A suspended connection hears nothing, so its socket is asked whether the client has gone. */
void st_pipe_check(st_pipe *p)
{
    struct pollfd poll_fd = {.events = POLLRDHUP};

    pthread_mutex_lock(&p->lock);
    if (p->suspended && !p->ended) {
        poll_fd.fd = socket_of(p);
        if (poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) > 0) {
            p->ended = p->bad = true;
            wake(p);
        }
    }
    pthread_mutex_unlock(&p->lock);
}
