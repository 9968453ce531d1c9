/*
 * Event streams. A stream is a buffer between whoever sends and the reader that
 * libmicrohttpd calls when the socket takes more. With nothing to write the
 * connection is suspended, so an idle stream costs memory and no work.
 *
 * Invariants, under the stream's lock: the bytes from `at` on are not yet
 * taken; `suspended` is set by the reader and cleared by whoever resumes;
 * after `ended` nothing is added, after `closed` nothing is touched. The list
 * in the server is under the server's lock.
 *
 * References: one is the response's, one the caller's.
 */
#include <poll.h>
#include <string.h>

#include "base/mem.h"
#include "http/call.h"

#define BLOCK_BYTES 4096 /* most that goes into one chunk */
#define KEEP_BYTES  1024 /* an empty buffer larger than this is freed */

struct st_stream {
    st_http_server *server;
    struct MHD_Connection *mhd;
    st_stream_closed *on_closed;
    void *ctx;
    atomic_int refs;
    st_stream *prev, *next;

    pthread_mutex_t lock;
    st_strbuf buf;
    size_t at;
    bool suspended, ended, closed;
    int64_t wrote_ms;
};

void st_stream_unref(st_stream *stream)
{
    if (atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) > 1)
        return;
    st_strbuf_done(&stream->buf);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* Everything in the buffer was taken. */
static void reset(st_stream *stream)
{
    stream->at = 0;
    if (stream->buf.cap > KEEP_BYTES)
        st_strbuf_done(&stream->buf);
    else
        st_strbuf_clear(&stream->buf);
}

/* The reader: libmicrohttpd wants up to max bytes. */
static ssize_t take(void *cls, uint64_t pos, char *out, size_t max)
{
    st_stream *stream = cls;
    ssize_t result = 0;
    size_t n;

    (void)pos;
    pthread_mutex_lock(&stream->lock);
    n = ST_MIN(stream->buf.n - stream->at, max);
    if (n > 0) {
        memcpy(out, stream->buf.s + stream->at, n);
        stream->at += n;
        stream->wrote_ms = st_now_ms();
        if (stream->at == stream->buf.n)
            reset(stream);
        result = (ssize_t)n;
    } else if (stream->ended) {
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        stream->suspended = true;
        MHD_suspend_connection(stream->mhd);
    }
    pthread_mutex_unlock(&stream->lock);
    return result;
}

/* The response is gone: written out, or its client left, or the server stopped. */
static void gone(void *cls)
{
    st_stream *stream = cls;
    st_http_server *server = stream->server;

    pthread_mutex_lock(&stream->lock);
    ST_ASSERT(!stream->suspended && !stream->closed);
    stream->closed = stream->ended = true;
    stream->server = NULL;
    stream->mhd = NULL;
    st_strbuf_done(&stream->buf);
    stream->at = 0;
    pthread_mutex_unlock(&stream->lock);

    pthread_mutex_lock(&server->lock);
    if (stream->prev)
        stream->prev->next = stream->next;
    else
        server->streams = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    server->nstream--;
    pthread_mutex_unlock(&server->lock);
    if (stream->on_closed)
        stream->on_closed(stream->ctx, stream);
    st_stream_unref(stream);
}

/* Puts it on the server's list, unless there are too many. */
static bool enlist(st_http_server *server, st_stream *stream)
{
    bool room;

    pthread_mutex_lock(&server->lock);
    room = server->opt.streams_max < 0 || server->nstream < server->opt.streams_max;
    room = room && !atomic_load_explicit(&server->stopping, memory_order_relaxed);
    if (room) {
        stream->next = server->streams;
        if (stream->next)
            stream->next->prev = stream;
        server->streams = stream;
        server->nstream++;
    }
    pthread_mutex_unlock(&server->lock);
    return room;
}

st_stream *st_call_stream(st_call *call, st_stream_closed *closed, void *ctx)
{
    st_stream *stream = st_xcalloc(1, sizeof(*stream));
    struct MHD_Response *response;

    ST_ASSERT(!call->deferred);
    stream->server = call->server;
    stream->mhd = call->mhd;
    stream->on_closed = closed;
    stream->ctx = ctx;
    stream->wrote_ms = st_now_ms();
    atomic_init(&stream->refs, 2);
    pthread_mutex_init(&stream->lock, NULL);
    if (!enlist(call->server, stream)) {
        st_call_set_header(call, "Retry-After", "5");
        st_call_refuse(call, ST_P_STREAMS, ST_REJECT_STREAMS, "at most %d streams are served",
                       call->server->opt.streams_max);
        atomic_store(&stream->refs, 1);
        st_stream_unref(stream);
        return NULL;
    }
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, take, stream, gone);
    ST_ASSERT(response);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    MHD_add_response_header(response, "X-Request-Id", call->id);
    call->streams_us = st_now_us();
    st_call_finish(call, 200, response, 0);
    return stream;
}

static void wake(st_stream *stream)
{
    if (!stream->suspended)
        return;
    stream->suspended = false;
    MHD_resume_connection(stream->mhd);
}

/* One "data: " line per line of the text, whatever its line ends. */
static void add_data(st_strbuf *out, const char *data, size_t len)
{
    size_t begin = 0;

    for (;;) {
        size_t end = begin;

        while (end < len && data[end] != '\n' && data[end] != '\r')
            end++;
        st_strbuf_add(out, "data: ");
        st_strbuf_addn(out, data + begin, end - begin);
        st_strbuf_addc(out, '\n');
        if (end >= len)
            return;
        begin = end + (data[end] == '\r' && end + 1 < len && data[end + 1] == '\n' ? 2 : 1);
    }
}

static void add_event(st_strbuf *out, const char *id, const char *event, const char *data,
                      size_t len)
{
    ST_ASSERT(!id || !strpbrk(id, "\r\n"));
    ST_ASSERT(!event || !strpbrk(event, "\r\n"));
    if (id)
        st_strbuf_addf(out, "id: %s\n", id);
    if (event)
        st_strbuf_addf(out, "event: %s\n", event);
    add_data(out, data, len);
    st_strbuf_addc(out, '\n');
}

static void drop_taken(st_stream *stream)
{
    st_strbuf *buf = &stream->buf;

    if (stream->at == 0)
        return;
    memmove(buf->s, buf->s + stream->at, buf->n - stream->at);
    buf->n -= stream->at;
    buf->s[buf->n] = '\0';
    stream->at = 0;
}

bool st_stream_send(st_stream *stream, const char *id, const char *event, const char *data,
                    size_t len)
{
    bool sent = false;
    size_t before;

    pthread_mutex_lock(&stream->lock);
    if (!stream->ended) {
        if (stream->at > stream->buf.n / 2)
            drop_taken(stream);
        before = stream->buf.n;
        add_event(&stream->buf, id, event, data, len);
        sent = stream->buf.n - stream->at <= (size_t)stream->server->opt.stream_bytes;
        if (!sent) {
            stream->buf.n = before;
            stream->buf.s[before] = '\0';
            add_event(&stream->buf, NULL, "overflow", "{}", 2);
            stream->ended = true;
            st_stats_reject(stream->server->stats, ST_REJECT_OVERFLOW);
        }
        wake(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return sent;
}

void st_stream_end(st_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    if (!stream->ended) {
        stream->ended = true;
        wake(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* A suspended connection hears nothing, so its socket is asked whether the client has gone. */
static bool left(const st_stream *stream)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(stream->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd p = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};

    return p.fd >= 0 && poll(&p, 1, 0) > 0;
}

/* A client that has gone is found out by writing to it; its stream counts against its tenant's quota until then. */
void st_streams_keep_alive(st_http_server *server, int64_t now_ms)
{
    for (st_stream *stream = server->streams; stream; stream = stream->next) {
        pthread_mutex_lock(&stream->lock);
        if (stream->suspended &&
            (now_ms - stream->wrote_ms >= server->opt.keepalive_ms || left(stream))) {
            st_strbuf_add(&stream->buf, ":\n\n");
            wake(stream);
        }
        pthread_mutex_unlock(&stream->lock);
    }
}

void st_streams_say_bye(st_http_server *server)
{
    for (st_stream *stream = server->streams; stream; stream = stream->next) {
        pthread_mutex_lock(&stream->lock);
        if (!stream->ended) {
            add_event(&stream->buf, NULL, "bye", "{}", 2);
            stream->ended = true;
            wake(stream);
        }
        pthread_mutex_unlock(&stream->lock);
    }
}
