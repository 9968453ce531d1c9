/*
 * The life of a call, as libmicrohttpd's callbacks drive it:
 *
 *   uri       the request line is read: the call is made
 *   access    first with the headers: checked;
 *             then with pieces of the body; then with its end: run;
 *             then again after it was resumed: the answer is queued
 *   over      the answer is out, or the client is gone: counted, logged, dropped
 *
 * and what a handler may ask of it.
 */
#include "http/call.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/quote.h"
#include "http/inflow.h"

#define DROP_BYTES_MIN 65536

static st_conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    ST_ASSERT(info && info->socket_context);
    return info->socket_context;
}

void *st_call_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    st_listener *listener = cls;
    st_http_server *server = listener->server;
    size_t len = uri ? strlen(uri) : 0;
    bool too_long = len > (size_t)server->opt.target_bytes;
    size_t kept = too_long ? 0 : len;
    /* One piece: the call, the path as sent, the target to take apart. */
    st_call *call = st_xmalloc(sizeof(*call) + 2 * (kept + 1));
    uint64_t n = atomic_fetch_add_explicit(&server->id_next, 1, memory_order_relaxed);

    memset(call, 0, sizeof(*call));
    call->server = server;
    call->conn = conn_of(mhd);
    call->conn->call = call;
    call->mhd = mhd;
    call->conn_fd = call->conn->fd;
    call->begun_us = st_now_us();
    call->path = (char *)(call + 1);
    call->target = call->path + kept + 1;
    if (kept > 0)
        memcpy(call->target, uri, kept);
    call->target[kept] = '\0';
    kept = strcspn(call->target, "?");
    memcpy(call->path, call->target, kept);
    call->path[kept] = '\0';
    call->target_too_long = too_long;
    call->target_end = uri ? uri + len : NULL;
    call->match.index = -1;
    call->peer = call->conn->peer;
    call->forget = server->opt.forget;
    call->ctx = server->opt.ctx;
    atomic_init(&call->refs, 1);
    pthread_mutex_init(&call->lock, NULL);
    snprintf(call->id, sizeof(call->id), "%016" PRIx64, st_hash_u64(server->id_seed, n));
    atomic_fetch_add_explicit(&server->running, 1, memory_order_relaxed);
    return call;
}

void st_call_unref(st_call *call)
{
    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) > 1)
        return;
    ST_ASSERT(!call->suspended);
    if (call->response)
        MHD_destroy_response(call->response);
    st_upgrade_lost(ST_TAKE(call->upgrade));
    if (call->has_principal && call->forget)
        call->forget(call->ctx, call->principal.who);
    for (size_t i = 0; i < call->headers.n; i++) {
        free(call->headers.v[i].name);
        free(call->headers.v[i].value);
    }
    st_vec_free(&call->headers);
    free(call->version);
    for (int i = 0; i < ST_KEEP_COUNT; i++)
        free(call->kept[i]);
    st_strbuf_done(&call->body);
    st_inflow_unref(call->inflow);
    free(call->raw_query);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

static enum MHD_Result queue(st_call *call)
{
    struct MHD_Response *response = ST_TAKE(call->response);
    enum MHD_Result result;

    /* libmicrohttpd, once it was told to stop, takes an answer without sending it and asks again: what is still here when
     * the farewell is over (server.c) is cut off. */
    if (!response) {
        ST_ASSERT(atomic_load(&call->server->stopping));
        return MHD_NO;
    }
    if (atomic_load_explicit(&call->server->stopping, memory_order_relaxed))
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    result = st_mhd_queue(call->mhd, (unsigned int)call->status, response);
    MHD_destroy_response(response);
    return result;
}

/* The handler has returned: send what it answered, or wait for whoever will. */
static enum MHD_Result send_or_wait(st_call *call)
{
    st_http_server *server = call->server;
    bool answered;

    if (!call->deferred) {
        ST_ASSERT(call->answered);
        return queue(call);
    }
    pthread_mutex_lock(&server->lock);
    pthread_mutex_lock(&call->lock);
    if (!call->answered && server->closing)
        st_call_abandon(call);
    answered = call->answered;
    if (!answered) {
        call->suspended = true;
        call->prev = NULL;
        call->next = server->deferred;
        if (call->next)
            call->next->prev = call;
        server->deferred = call;
        MHD_suspend_connection(call->mhd);
    }
    pthread_mutex_unlock(&call->lock);
    pthread_mutex_unlock(&server->lock);
    return answered ? queue(call) : MHD_YES;
}

static bool still_let_in(const st_call *call)
{
    const st_http_options *opt = &call->server->opt;

    return !call->has_principal || !opt->still || opt->still(opt->ctx, call->principal.who);
}

static enum MHD_Result run(st_call *call)
{
    call->phase = ST_PHASE_RUN;
    atomic_store_explicit(&call->conn->deadline_ms, 0, memory_order_relaxed);
    if (call->body_dropped > 0) {
        st_call_refuse(call, ST_P_TOO_LARGE, ST_REJECT_SIZE, "the body has at most %zu bytes here",
                       call->body_max);
        return queue(call);
    }
    if (!still_let_in(call)) {
        st_call_set_header(call, "WWW-Authenticate", "Bearer");
        st_call_refuse(call, ST_P_UNAUTHENTICATED, ST_REJECT_AUTH,
                       "the token was revoked, or expired, before the request was complete");
        return queue(call);
    }
    call->match.route->handler(call, call->server->opt.ctx);
    return send_or_wait(call);
}

/* The handler first, then the body. One that answers at once does not want it. */
static enum MHD_Result begin_flow(st_call *call)
{
    call->phase = ST_PHASE_RUN;
    call->flows = true;
    call->match.route->handler(call, call->server->opt.ctx);
    ST_ASSERT(call->deferred ? call->inflow != NULL : call->answered);
    if (!call->deferred && call->body_length > ST_INFLOW_DROP) {
        atomic_store_explicit(&call->conn->deadline_ms, 0, memory_order_relaxed);
        return queue(call);
    }
    call->phase = ST_PHASE_FLOW;
    call->patience_ms = call->deferred ? call->server->opt.body_ms : ST_INFLOW_LAST_MS;
    atomic_store_explicit(&call->conn->deadline_ms, st_now_ms() + call->patience_ms,
                          memory_order_relaxed);
    return MHD_YES;
}

/* A piece of it, or its end. Its client has patience_ms more than what it sends takes at the least rate. */
static enum MHD_Result take_flow(st_call *call, const char *bytes, size_t *n)
{
    int64_t now = st_now_ms(),
            deadline = atomic_load_explicit(&call->conn->deadline_ms, memory_order_relaxed);
    size_t taken = 0;
    st_inflow_put_how how;

    if (*n == 0) {
        call->phase = ST_PHASE_RUN;
        atomic_store_explicit(&call->conn->deadline_ms, 0, memory_order_relaxed);
        if (call->inflow)
            st_inflow_end(call->inflow, ST_INFLOW_ENDED);
        return send_or_wait(call);
    }
    if (!call->deferred) { /* it is answered, and its body is not wanted */
        call->body_dropped += *n;
        *n = 0;
        return call->body_dropped <= ST_INFLOW_DROP ? MHD_YES : MHD_NO;
    }
    if (deadline > 0)
        call->patience_ms = deadline - now;
    how = st_inflow_put(call->inflow, bytes, *n, &taken);
    call->patience_ms = ST_MIN(call->patience_ms + (int64_t)taken * 1000 / ST_INFLOW_RATE,
                               call->server->opt.body_ms);
    if (how == ST_INFLOW_TAKEN || how == ST_INFLOW_FULL)
        atomic_store_explicit(&call->conn->deadline_ms,
                              how == ST_INFLOW_FULL ? 0 : now + ST_MAX(call->patience_ms, 1),
                              memory_order_relaxed);
    *n -= taken;
    return how == ST_INFLOW_CUT ? MHD_NO : MHD_YES;
}

/* libmicrohttpd closes the connection behind an answer that is queued here, so that is only done
 * when a body would have to be read that nobody wants. */
static enum MHD_Result begin(st_call *call, const char *method, const char *version)
{
    bool has_body = false;

    snprintf(call->method, sizeof(call->method), "%s", method);
    if (st_request_check(call, version, &has_body)) {
        if (has_body && (call->match.route->flags & ST_ROUTE_FLOW))
            return begin_flow(call);
        call->phase = ST_PHASE_BODY;
        atomic_store_explicit(&call->conn->deadline_ms, st_now_ms() + call->server->opt.body_ms,
                              memory_order_relaxed);
        return MHD_YES;
    }
    call->phase = ST_PHASE_RUN;
    atomic_store_explicit(&call->conn->deadline_ms, 0, memory_order_relaxed);
    return has_body ? queue(call) : MHD_YES;
}

/* What is too much is read and thrown away, so that the client gets to read why; up to as much
 * again, and then the connection is cut. */
static enum MHD_Result take_body(st_call *call, const char *bytes, size_t n)
{
    if (call->body_dropped == 0 && n <= call->body_max - call->body.n) {
        st_strbuf_addn(&call->body, bytes, n);
        return MHD_YES;
    }
    st_strbuf_done(&call->body);
    call->body_dropped += n;
    return call->body_dropped <= ST_MAX(call->body_max, DROP_BYTES_MIN) ? MHD_YES : MHD_NO;
}

enum MHD_Result st_call_access(void *cls, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **context)
{
    st_call *call = *context;
    enum MHD_Result result;

    (void)cls, (void)url, (void)mhd;
    ST_ASSERT(call);
    switch (call->phase) {
    case ST_PHASE_NEW:
        return begin(call, method, version);
    case ST_PHASE_BODY:
        if (*upload_size == 0)
            return run(call);
        result = take_body(call, upload, *upload_size);
        *upload_size = 0;
        return result;
    case ST_PHASE_FLOW:
        return take_flow(call, upload, upload_size);
    case ST_PHASE_RUN:
        /* Refused, or resumed. The lock makes the other thread's answer visible here. */
        pthread_mutex_lock(&call->lock);
        ST_ASSERT(call->answered);
        pthread_mutex_unlock(&call->lock);
        return queue(call);
    }
    return MHD_NO;
}

static void write_log(st_call *call, int64_t took_us)
{
    const st_http_options *opt = &call->server->opt;
    ST_CLEANUP(st_strbuf_done) st_strbuf line = {0};
    char path[ST_QUOTE_MAX], who[ST_QUOTE_MAX];

    st_strbuf_addf(&line, "id=%s peer=%s", call->id, call->peer.address);
    if (call->peer.is_unix)
        st_strbuf_addf(&line, " uid=%u", (unsigned int)call->peer.uid);
    if (call->has_principal && call->principal.label[0])
        st_strbuf_addf(&line, " who=%s", st_quote(who, call->principal.label));
    st_strbuf_addf(&line, " method=%s path=%s route=%s", call->method[0] ? call->method : "-",
                   st_quote(path, call->path), call->match.route ? call->match.route->id : "none");
    st_strbuf_addf(&line, " status=%d bytes=%zu us=%" PRId64, call->status, call->bytes, took_us);
    opt->access_log(opt->ctx, st_strbuf_str(&line));
}

void st_call_over(void *cls, struct MHD_Connection *mhd, void **context,
                  enum MHD_RequestTerminationCode why)
{
    st_call *call = ST_TAKE(*context);
    st_http_server *server;
    int64_t took_us;

    (void)cls, (void)mhd, (void)why;
    if (!call)
        return;
    server = call->server;
    if (call->inflow)
        st_inflow_end(call->inflow, ST_INFLOW_BROKEN);
    took_us = st_now_us() - call->begun_us;
    /* 0 when libmicrohttpd refused it, or the client left before its request was complete. */
    /* Of a stream, how long it took until it began: how long somebody listened says nothing about us. */
    if (call->status != 0)
        st_stats_call(server->stats, call->match.index, call->status,
                      call->streams_us ? call->streams_us - call->begun_us : took_us);
    else
        st_stats_reject(server->stats, ST_REJECT_MALFORMED);
    if (server->opt.access_log)
        write_log(call, took_us);
    if (call->entered)
        st_limits_leave(server->limits, call->limit_key);
    atomic_store_explicit(&call->conn->deadline_ms, st_now_ms() + st_conn_patience_ms(call->conn),
                          memory_order_relaxed);
    call->conn->call = NULL;
    call->conn = NULL;
    atomic_fetch_sub_explicit(&server->running, 1, memory_order_release);
    st_call_unref(call);
}

void st_call_defer(st_call *call)
{
    ST_ASSERT(call->phase == ST_PHASE_RUN && !call->deferred && !call->answered);
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
    call->deferred = true;
}

/* A suspended connection hears nothing, so its socket is asked. */
bool st_call_left(st_call *call)
{
    struct pollfd p = {.fd = call->conn_fd, .events = POLLRDHUP};
    bool left;

    pthread_mutex_lock(&call->lock);
    left = call->suspended && poll(&p, 1, 0) > 0;
    pthread_mutex_unlock(&call->lock);
    return left;
}

/* ---- what was asked ---------------------------------------------------------------------- */

const st_route *st_call_route(const st_call *call)
{
    return call->match.route;
}

const char *st_call_method(const st_call *call)
{
    return call->method;
}

const char *st_call_path(const st_call *call)
{
    return call->path;
}

const st_peer *st_call_peer(const st_call *call)
{
    return &call->peer;
}

const st_principal *st_call_principal(const st_call *call)
{
    return call->has_principal ? &call->principal : NULL;
}

const char *st_call_param(const st_call *call, const char *name)
{
    int i = st_router_param(call->match.route, name);

    ST_ASSERT(i >= 0 && i < call->match.nparam);
    return call->match.param[i];
}

const char *st_call_query_nth(const st_call *call, const char *name, int nth)
{
    return st_query_get(&call->query, name, nth);
}

const char *st_call_query(const st_call *call, const char *name)
{
    return st_query_get(&call->query, name, 0);
}

int64_t st_call_query_int(const st_call *call, const char *name, int64_t otherwise)
{
    const char *text = st_query_get(&call->query, name, 0);

    return text ? strtoll(text, NULL, 10) : otherwise;
}

bool st_call_query_bool(const st_call *call, const char *name, bool otherwise)
{
    const char *text = st_query_get(&call->query, name, 0);

    return text ? strcmp(text, "true") == 0 : otherwise;
}

const char *st_call_header(const st_call *call, const char *name)
{
    ST_ASSERT(!call->deferred);
    return MHD_lookup_connection_value(call->mhd, MHD_HEADER_KIND, name);
}

typedef struct each_header {
    st_header_fn *fn;
    void *ctx;
} each_header;

static enum MHD_Result tell_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    const each_header *e = cls;

    (void)kind;
    if (value)
        e->fn(e->ctx, key, value);
    return MHD_YES;
}

void st_call_each_header(const st_call *call, st_header_fn *fn, void *ctx)
{
    each_header e = {fn, ctx};

    ST_ASSERT(!call->deferred);
    MHD_get_connection_values(call->mhd, MHD_HEADER_KIND, tell_header, &e);
}

const char *st_call_tail(const st_call *call)
{
    ST_ASSERT(call->match.route->flags & ST_ROUTE_TAIL);
    return call->path + call->match.tail;
}

const char *st_call_raw_query(const st_call *call)
{
    return call->raw_query ? call->raw_query : "";
}

bool st_call_takes_gzip(const st_call *call)
{
    return call->takes_gzip;
}

const char *st_call_idempotency_key(const st_call *call)
{
    return call->kept[ST_KEEP_IDEMPOTENCY];
}

const char *st_call_if_match(const st_call *call)
{
    return call->kept[ST_KEEP_IF_MATCH];
}

const char *st_call_if_none_match(const st_call *call)
{
    return call->kept[ST_KEEP_IF_NONE_MATCH];
}

const char *st_call_last_event_id(const st_call *call)
{
    return call->kept[ST_KEEP_LAST_EVENT];
}

bool st_call_flows(const st_call *call)
{
    return call->flows;
}

const char *st_call_body(const st_call *call, size_t *ret_len)
{
    *ret_len = call->body.n;
    return st_strbuf_str(&call->body);
}

int st_call_json(const st_call *call, json_t **ret, st_err *err)
{
    return st_json_parse("body", st_strbuf_str(&call->body), call->body.n, ret, err);
}

int st_call_doc(const st_call *call, st_doc **ret, st_err *err)
{
    st_err why = {0};
    int r = st_doc_parse(call->is_yaml ? "body.yaml" : "body.json", st_strbuf_str(&call->body),
                         call->body.n, ret, &why);

    if (r == 0)
        st_doc_strict(*ret);
    /* A document that is too deep or has too much in it is malformed; "limit" is about accounts. */
    if (why.code == ST_ELIMIT)
        r = st_fail(&why, ST_ERANGE, "%s", why.msg);
    if (r < 0 && err)
        *err = why;
    return r;
}
