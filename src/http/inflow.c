/*
 * A body on its way from a client to whoever reads it (http/inflow.h): a bounded buffer. With no room in it the connection is
 * suspended, by the server's thread; whoever makes room resumes it.
 *
 * Under the lock: the bytes from `at` on are not yet taken; `suspended` is set by the server's thread and cleared by whoever
 * resumes; after `closed` nothing is kept, and after the end nothing of libmicrohttpd's is touched.
 *
 * References: one is the call's, one the reader's.
 */
#include "http/inflow.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "http/call.h"

struct st_inflow {
    struct MHD_Connection *mhd;
    st_conn *conn;
    void (*more)(void *ctx);
    void *ctx;
    int64_t length;
    atomic_int refs;

    pthread_mutex_t lock;
    st_strbuf buf;
    size_t at, dropped;
    int64_t came, came_then; /* bytes: now, and when it was found to have hung up */
    bool hung_up;
    bool suspended, closed;
    st_inflow_state state;
};

void st_inflow_unref(st_inflow *in)
{
    if (!in || atomic_fetch_sub_explicit(&in->refs, 1, memory_order_acq_rel) > 1)
        return;
    st_strbuf_done(&in->buf);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

static size_t held(const st_inflow *in)
{
    return in->buf.n - in->at;
}

static void tell(const st_inflow *in)
{
    if (in->more && !in->closed)
        in->more(in->ctx);
}

static void resume(st_inflow *in)
{
    if (!in->suspended)
        return;
    in->suspended = false;
    MHD_resume_connection(in->mhd);
}

/* ---- the client's side ------------------------------------------------------------------- */

/* Whoever reads it is there. */
static st_inflow_put_how keep(st_inflow *in, const char *bytes, size_t n, size_t *ret_n)
{
    size_t taken = ST_MIN(n, ST_INFLOW_BYTES - held(in));

    if (in->at > 0) {
        memmove(in->buf.s, in->buf.s + in->at, held(in));
        in->buf.n -= in->at;
        in->at = 0;
    }
    if (taken > 0)
        st_strbuf_addn(&in->buf, bytes, taken);
    if (taken < n) { /* with something left, so that the server asks again */
        in->suspended = true;
        MHD_suspend_connection(in->mhd);
    }
    in->came += (int64_t)taken;
    tell(in);
    *ret_n = taken;
    return taken < n ? ST_INFLOW_FULL : ST_INFLOW_TAKEN;
}

st_inflow_put_how st_inflow_put(st_inflow *in, const char *bytes, size_t n, size_t *ret_n)
{
    st_inflow_put_how how;

    pthread_mutex_lock(&in->lock);
    if (in->closed) {
        in->dropped += n;
        *ret_n = n;
        how = in->dropped > ST_INFLOW_DROP ? ST_INFLOW_CUT : ST_INFLOW_DROPPED;
    } else {
        how = keep(in, bytes, n, ret_n);
    }
    pthread_mutex_unlock(&in->lock);
    return how;
}

void st_inflow_end(st_inflow *in, st_inflow_state how)
{
    pthread_mutex_lock(&in->lock);
    ST_ASSERT(!in->suspended);
    if (in->state == ST_INFLOW_MORE) {
        in->state = how;
        in->mhd = NULL;
        in->conn = NULL;
        tell(in);
    }
    pthread_mutex_unlock(&in->lock);
}

/* ---- the reader's side ------------------------------------------------------------------- */

st_inflow *st_call_inflow(st_call *call)
{
    st_inflow *in;

    ST_ASSERT(!call->inflow);
    if (!call->flows)
        return NULL;
    in = st_xcalloc(1, sizeof(*in));
    in->mhd = call->mhd;
    in->conn = call->conn;
    in->length = call->body_length;
    in->state = ST_INFLOW_MORE;
    atomic_init(&in->refs, 2);
    pthread_mutex_init(&in->lock, NULL);
    call->inflow = in;
    return in;
}

void st_inflow_to(st_inflow *in, void (*more)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&in->lock);
    in->more = more;
    in->ctx = ctx;
    tell(in);
    pthread_mutex_unlock(&in->lock);
}

int64_t st_inflow_length(const st_inflow *in)
{
    return in->length;
}

size_t st_inflow_take(st_inflow *in, char *buf, size_t max, st_inflow_state *ret)
{
    size_t n;

    pthread_mutex_lock(&in->lock);
    n = ST_MIN(held(in), max);
    if (n > 0)
        memcpy(buf, in->buf.s + in->at, n);
    in->at += n;
    if (held(in) <= ST_INFLOW_BYTES / 2)
        resume(in);
    *ret = held(in) > 0 && in->state == ST_INFLOW_ENDED ? ST_INFLOW_MORE : in->state;
    pthread_mutex_unlock(&in->lock);
    return n;
}

/* A suspended connection hears nothing, and libmicrohttpd may miss an end that came together with the last bytes. So the socket is
 * asked. One that has hung up, and of which nothing more is read, is gone. */
bool st_inflow_check(st_inflow *in)
{
    struct pollfd p = {.events = POLLRDHUP};
    bool there = true;

    pthread_mutex_lock(&in->lock);
    p.fd = in->conn ? in->conn->fd : -1;
    if (poll(&p, 1, 0) > 0) {
        there = !in->hung_up || in->came != in->came_then;
        in->hung_up = true;
        in->came_then = in->came;
    }
    if (!there)
        shutdown(p.fd, SHUT_RDWR);
    pthread_mutex_unlock(&in->lock);
    return there;
}

void st_inflow_close(st_inflow *in)
{
    if (!in)
        return;
    pthread_mutex_lock(&in->lock);
    in->closed = true;
    st_strbuf_done(&in->buf);
    in->buf = (st_strbuf){0};
    in->at = 0;
    if (in->conn)
        atomic_store_explicit(&in->conn->deadline_ms, st_now_ms() + ST_INFLOW_LAST_MS,
                              memory_order_relaxed);
    resume(in);
    pthread_mutex_unlock(&in->lock);
    st_inflow_unref(in);
}
