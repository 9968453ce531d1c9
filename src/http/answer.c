/*
 * Answering: from bytes, JSON or a problem to a response of libmicrohttpd, and
 * the hand-over of that response to whichever thread is to send it.
 *
 * Invariants: `answered` is set once, by the owner or, when the server stops
 * first, in its place; a connection is resumed once for each time it was
 * suspended, by whoever cleared `suspended`.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "http/call.h"
#include "http/gzip.h"

void st_call_set_header(st_call *call, const char *name, const char *value)
{
    st_reply_header header = {st_xstrdup(name), st_xstrdup(value)};

    /* A line end would begin a header of somebody else's. */
    for (char *c = header.value; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '_';
    st_vec_push(&call->headers, header);
}

#define TAG_MAX 96

void st_call_set_version(st_call *call, const char *version)
{
    free(call->version);
    call->version = st_xstrdup(version);
}

static void set_etag(st_call *call, bool weak, const char *tag)
{
    char text[TAG_MAX + 8];

    snprintf(text, sizeof(text), "%s\"%s\"", weak ? "W/" : "", tag);
    st_call_set_header(call, "ETag", text);
}

static void add_headers(st_call *call, struct MHD_Response *response, const char *type)
{
    if (type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, "X-Request-Id", call->id);
    for (size_t i = 0; i < call->headers.n; i++)
        MHD_add_response_header(response, call->headers.v[i].name, call->headers.v[i].value);
}

static void undefer(st_http_server *server, st_call *call)
{
    pthread_mutex_lock(&server->lock);
    if (call->prev)
        call->prev->next = call->next;
    else
        server->deferred = call->next;
    if (call->next)
        call->next->prev = call->prev;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void finish_deferred(st_call *call, int status, struct MHD_Response *response, size_t bytes)
{
    bool was_suspended = false;

    pthread_mutex_lock(&call->lock);
    ST_ASSERT(!call->owner_done);
    call->owner_done = true;
    if (!call->answered) {
        call->answered = true;
        call->status = status;
        call->bytes = bytes;
        call->response = ST_TAKE(response);
        was_suspended = call->suspended;
        call->suspended = false;
        if (was_suspended)
            MHD_resume_connection(call->mhd);
    }
    pthread_mutex_unlock(&call->lock);
    /* The server waits for its list of deferred calls to be empty, so it is still there. */
    if (was_suspended)
        undefer(call->server, call);
    if (response)
        MHD_destroy_response(response);
    st_call_unref(call);
}

void st_call_finish(st_call *call, int status, struct MHD_Response *response, size_t bytes)
{
    ST_ASSERT(response);
    if (call->deferred) {
        finish_deferred(call, status, response, bytes);
        return;
    }
    ST_ASSERT(!call->answered);
    call->answered = true;
    call->status = status;
    call->bytes = bytes;
    call->response = response;
}

/* libmicrohttpd does not write to such bytes, but its signature says it might. */
static struct MHD_Response *persistent(const void *bytes, size_t len)
{
    union {
        const void *given;
        void *wanted;
    } pointer = {.given = bytes};

    return MHD_create_response_from_buffer(len, pointer.wanted, MHD_RESPMEM_PERSISTENT);
}

void st_call_send(st_call *call, int status, const char *type, struct MHD_Response *response,
                  size_t len)
{
    ST_ASSERT(response);
    add_headers(call, response, type);
    st_call_finish(call, status, response, len);
}

static bool is_read(const st_call *call)
{
    return strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;
}

/* Only what is read: an answer to a write may have a secret beside what the caller chose. */
static bool can_shorten(const st_call *call, size_t len)
{
    return len >= ST_GZIP_MIN && is_read(call);
}

/* Says what is sent by a tag; true: the caller has it. Bytes that were packed are others, which a strong tag tells apart. */
static bool tagged(st_call *call, int status, const char *text, size_t len)
{
    const char *seen = call->kept[ST_KEEP_IF_NONE_MATCH], *version = call->version;
    unsigned long long content;
    char tag[TAG_MAX];

    if (!is_read(call)) {
        if (version && status < 300)
            set_etag(call, false, version);
        return false;
    }
    if (status != 200)
        return false;
    content = st_hash_bytes(text, len, 0);
    if (version)
        snprintf(tag, sizeof(tag), "%.60s-%016llx%s", version, content,
                 call->takes_gzip && can_shorten(call, len) ? "-gz" : "");
    else
        snprintf(tag, sizeof(tag), "%016llx", content);
    set_etag(call, !version, tag);
    return seen && st_etag_listed(seen, tag, ST_ETAG_CONTENT);
}

static char *shorten(st_call *call, char *text, size_t *len)
{
    size_t n;
    char *packed = call->takes_gzip ? st_gzip(text, *len, &n) : NULL;

    if (!packed)
        return text;
    st_call_set_header(call, "Content-Encoding", "gzip");
    free(text);
    *len = n;
    return packed;
}

void st_call_on_answer(st_call *call, st_answer_fn fn, void *ctx)
{
    call->on_answer = fn;
    call->answer_ctx = ctx;
}

void st_call_reply_text(st_call *call, int status, const char *type, char *text, size_t len)
{
    st_answer_fn fn = call->on_answer;

    call->on_answer = NULL;
    if (fn)
        fn(call->answer_ctx, &status, &type, &text, &len);
    if (can_shorten(call, len))
        st_call_set_header(call, "Vary", "Accept-Encoding");
    if (tagged(call, status, text, len)) {
        free(text);
        st_call_send(call, 304, NULL, persistent("", 0), 0);
        return;
    }
    if (can_shorten(call, len))
        text = shorten(call, text, &len);
    st_call_send(call, status, type ? type : "application/json",
                 MHD_create_response_from_buffer_with_free_callback(len, text, free), len);
}

void st_call_reply_buf(st_call *call, int status, const char *type, st_strbuf *body)
{
    size_t len = body->n;

    st_call_reply_text(call, status, type, st_strbuf_take(body), len);
}

void st_call_reply_json(st_call *call, int status, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    ST_ASSERT(text);
    json_decref(value);
    st_call_reply_text(call, status, NULL, text, strlen(text));
}

void st_call_reply_static(st_call *call, int status, const char *type, const void *bytes,
                          size_t len)
{
    st_call_send(call, status, type, persistent(bytes, len), len);
}

void st_call_reply_empty(st_call *call, int status)
{
    if (call->on_answer) {
        st_call_reply_text(call, status, NULL, st_xstrdup(""), 0);
        return;
    }
    st_call_send(call, status, NULL, persistent("", 0), 0);
}

void st_call_problem(st_call *call, const st_problem *problem)
{
    st_strbuf body = {0};

    st_problem_write(problem, call->id, &body);
    st_call_reply_buf(call, problem->status, "application/problem+json", &body);
}

void st_call_fail(st_call *call, const st_err *err)
{
    st_call_problem(call, &(st_problem){.status = st_err_http(err->code),
                                        .code = st_err_name(err->code),
                                        .detail = err->msg});
}

void st_call_refuse(st_call *call, st_problem_id id, st_reject why, const char *fmt, ...)
{
    char detail[600];
    va_list args;

    va_start(args, fmt);
    vsnprintf(detail, sizeof(detail), fmt, args);
    va_end(args);
    if (why != ST_REJECT_COUNT)
        st_stats_reject(call->server->stats, why);
    st_call_problem(call, &(st_problem){.status = st_problem_status(id),
                                        .code = st_problem_code(id),
                                        .detail = detail});
}

void st_call_abandon(st_call *call)
{
    static const char body[] = "{\"type\":\"/problems/stopping\",\"title\":\"The server is "
                               "stopping\",\"status\":503,\"code\":\"stopping\"}";
    struct MHD_Response *response = persistent(body, sizeof(body) - 1);

    ST_ASSERT(response);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/problem+json");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    call->answered = true;
    call->status = 503;
    call->response = response;
    if (call->suspended) {
        call->suspended = false;
        MHD_resume_connection(call->mhd);
    }
}
