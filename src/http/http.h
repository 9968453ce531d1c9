/*
 * HTTP and nothing of ours: connections, limits, routes, calls, problem
 * documents and event streams, on libmicrohttpd.
 *
 * The caller gives a table of routes, a way to find out who is calling, and
 * options. Every request becomes an st_call: it is matched against the table,
 * its query is checked, the caller is authenticated, its role and its limits
 * are looked at, its body is read, and only then the route's handler runs, in
 * one of a few threads. A handler answers
 *
 *   at once      st_call_reply_…() or st_call_fail();
 *   later        st_call_defer(), and one of those from any thread; or
 *   for a while  st_call_stream(), then st_stream_send() from any thread.
 *
 * Every call is answered exactly once; a second answer, or a handler that
 * returns without any of the above, is our own mistake and an assertion. After
 * its answer a call must not be touched. Whether the client is still there, or
 * the server has stopped meanwhile, makes no difference to who answers.
 *
 * Texts that a call hands out live as long as the call.
 */
#ifndef ST_HTTP_HTTP_H
#define ST_HTTP_HTTP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/doc.h"
#include "base/err.h"
#include "base/strbuf.h"

typedef struct st_http_server st_http_server;
typedef struct st_call st_call;
typedef struct st_stream st_stream;
typedef struct st_upgrade st_upgrade;

/* ---- routes ------------------------------------------------------------------------------ */

typedef enum {
    ST_QUERY_TEXT, /* any UTF-8 without control characters */
    ST_QUERY_INT,  /* a whole number */
    ST_QUERY_BOOL, /* true, false; the bare key means true */
    ST_QUERY_WORD, /* one of `words` */
} st_query_type;

/* A query parameter that a route knows. A table of these ends with a row without a name. */
typedef struct st_query_row {
    const char *name;
    st_query_type type;
    const char *about; /* a sentence for the OpenAPI document */
    const char *words; /* ST_QUERY_WORD: the words, parted by blanks */
    bool many;         /* may be given several times */
} st_query_row;

enum {
    ST_ROUTE_NO_AUTH = 1 << 0,   /* anybody may call it; there is no principal */
    ST_ROUTE_STREAM = 1 << 1,    /* answers with an event stream */
    ST_ROUTE_BIG = 1 << 2,       /* body up to big_body_max instead of body_max */
    ST_ROUTE_YAML = 1 << 3,      /* the body may be application/yaml as well */
    ST_ROUTE_ANY_BODY = 1 << 4,  /* the body may be of any type */
    ST_ROUTE_IF_MATCH = 1 << 5,  /* without If-Match: 428 */
    ST_ROUTE_CONDITION = 1 << 8, /* If-Match and If-None-Match are looked at */
    ST_ROUTE_NO_RATE = 1 << 6,   /* not counted against rates, e.g. probes and agents */
    ST_ROUTE_COSTLY = 1 << 7,    /* answering it is work: `admit` counts how many there are */
    ST_ROUTE_SECRET = 1 << 11,   /* its answer has a secret: it is not kept */
    ST_ROUTE_PAGE = 1 << 13,     /* a page or a file of one, for browsers: not in the document */
    ST_ROUTE_NO_KEY = 1 << 14, /* it proves something of one use: an Idempotency-Key adds nothing */
    ST_ROUTE_TAIL =
        1
        << 15, /* whatever follows the pattern is for its handler, with the query; one for each method */
    ST_ROUTE_FLOW =
        1
        << 16, /* its handler is called when the headers are good, defers, and takes the body as it comes
                              * (http/inflow.h); it may be of any length */
    ST_ROUTE_UNCHANGED = 1 << 12, /* other than GET and changes nothing that somebody answers for */
};

/* Must answer, defer or stream. */
typedef void st_handler(st_call *call, void *ctx);

/* One operation. A table of these ends with a row without a method. */
typedef struct st_route {
    const char *method;  /* "GET", "POST", …; HEAD and OPTIONS are not listed, they are derived */
    const char *pattern; /* "/v1/jobs/{id}"; a parameter is one whole segment */
    uint32_t roles;      /* bits of those who may, see st_principal; ignored with NO_AUTH */
    uint32_t flags;      /* ST_ROUTE_… */
    st_handler *handler;
    const char *id;            /* operationId, and the label of its metrics */
    const char *summary;       /* one line */
    const st_query_row *query; /* NULL: takes none */
    const char *request;       /* name of the body's schema; NULL: takes no body */
    const char *response; /* name of the answer's schema; NULL: no content. "A|B": B is that of a
                                * 200 beside it, where nothing was made */
    int status;           /* of success, for the document; 0 is 200, or 204 without response */
} st_route;

#define ST_ROUTE_PARAMS_MAX 8

/* ---- who calls --------------------------------------------------------------------------- */

typedef struct st_peer {
    char address[64]; /* "192.0.2.1", "::1", "unix" */
    bool is_unix;     /* then uid and gid are the peer's, as the kernel says */
    bool is_tls;
    uid_t uid;
    gid_t gid;
} st_peer;

typedef struct st_principal {
    void *who;      /* the caller's own; given to `forget` when nobody can ask the call any more */
    uint32_t roles; /* bits, compared with those of the route */
    uint64_t key;   /* what rates and concurrency are counted by; 0: by address */
    int rate_per_s; /* 0: as in the options; -1: none */
    const char *role; /* its name for people, or NULL; lives as long as the program */
    char label[64];   /* for the access log, e.g. the token's id; never the token */
} st_principal;

/* bearer is the token's text or NULL when there was no Authorization header; other headers of the call may be asked for
 * (st_call_header). Fails for 401: the message goes to the caller. Runs in a server thread, must not block for long. */
typedef int st_authenticate(void *ctx, const st_call *call, const char *bearer, st_principal *ret,
                            st_err *err);

/* The body of the caller's request has come, which may have taken long: whether it would still be let in. */
typedef bool st_still(void *ctx, const void *who);

/* The caller is known and its role may: whether it may now. Not asked on routes with NO_RATE. Fails for 429 with
 * the error's code and sentence; *ret_wait_ms is when it may try again, 0: that is not known. What it counts it
 * gives back in `forget`. */
typedef int st_admit(void *ctx, st_call *call, int64_t *ret_wait_ms, st_err *err);

/* The caller uses this connection, for the first time or again: whether it may have it. *claim is NULL at first and
 * the hook's to set; whatever it is when the connection ends is given to `unclaim`. Fails as `admit` does. */
typedef int st_claim(void *ctx, void **claim, void *who, st_err *err);

/* ---- the server -------------------------------------------------------------------------- */

/* What a zero stands for is in brackets; -1 is "no limit" where that makes sense. */
typedef struct st_http_options {
    const st_route *routes;
    void *ctx; /* given to handlers and to the callbacks below */
    st_authenticate *authenticate;
    st_still *still;                                 /* may be NULL: it is */
    st_admit *admit;                                 /* may be NULL */
    void (*forget)(void *ctx, void *who);            /* may be NULL */
    st_claim *claim;                                 /* may be NULL */
    void (*unclaim)(void *ctx, void *claim);         /* with claim */
    void (*tick)(void *ctx);                         /* about once a second, or NULL */
    void (*access_log)(void *ctx, const char *line); /* one key=value line per request, or NULL */
    void (*log)(void *ctx, const char *line); /* what libmicrohttpd complains about, or NULL */

    int threads;               /* per address [2] */
    int connections_max;       /* [4096] */
    int connections_per_peer;  /* per address, /64 of IPv6; a unix peer counts by uid [1024] */
    int strangers_per_peer;    /* of these, that have not shown who they are [64] */
    int strangers_max;         /* and of all addresses [no limit] */
    int streams_max;           /* [2048] */
    int header_bytes;          /* request line and headers [8192] */
    int target_bytes;          /* path and query [4096] */
    int64_t body_max;          /* [1 MiB] */
    int64_t big_body_max;      /* [64 MiB] */
    int64_t header_ms;         /* to deliver the headers, also the longest idle time [30 s] */
    int64_t stranger_ms;       /* the same, until it has shown who it is [5 s] */
    int64_t body_ms;           /* to deliver the body [60 s] */
    int rate_per_s;            /* requests per principal [200]; a burst is twice as much */
    int stranger_rate_per_s;   /* requests without a valid token, per address or /64 [50] */
    int running_per_principal; /* calls at the same time [64] */
    int64_t stream_bytes;      /* buffered per stream before it overflows [256 KiB] */
    int64_t keepalive_ms;      /* a comment on an idle stream [15 s] */
} st_http_options;

/* The options are copied; the route table and what it points to must outlive the server. Fails on
 * a table that makes no sense: two routes for one thing, a bad pattern, no handler. */
int st_http_server_new(const st_http_options *options, st_http_server **ret, st_err *err);

/* Addresses, any number, each before or after others have begun to serve. `where` is
 * "127.0.0.1:8443", "[::1]:0" or ":80" (all addresses). Port 0 is any free one; *ret_port, if not
 * NULL, is told which. With cert and key (PEM files) it is TLS 1.2 or 1.3, else plain. */
int st_http_listen(st_http_server *server, const char *where, const char *cert_file,
                   const char *key_file, int *ret_port, st_err *err);

/* A unix socket; one that is left over and that nobody listens on is replaced. */
int st_http_listen_unix(st_http_server *server, const char *path, mode_t mode, st_err *err);

/* Reads certificates and keys again. New connections get them, old ones go on; on failure
 * everything stays as it was. */
int st_http_reload_tls(st_http_server *server, st_err *err);

/* Stops accepting, ends the streams (they are sent "event: bye"), lets running calls finish for up
 * to `grace_ms`, answers those that are still deferred with 503, and closes. Handlers must not be
 * blocked forever. st_http_server_free stops as well, with no grace. */
void st_http_server_stop(st_http_server *server, int64_t grace_ms);
void st_http_server_free(st_http_server *server);
ST_DEFINE_FREEP(st_http_server, st_http_server_free)

/* The server's own numbers, appended in Prometheus text format; see http/metrics.h. */
void st_http_server_metrics(st_http_server *server, st_strbuf *out);

/* ---- what was asked ---------------------------------------------------------------------- */

const st_route *st_call_route(const st_call *call);
const char *st_call_method(const st_call *call); /* as sent: "HEAD" for a GET route */
const char *st_call_path(const st_call *call);   /* as sent, without the query */
const st_peer *st_call_peer(const st_call *call);
const st_principal *st_call_principal(const st_call *call); /* NULL on NO_AUTH routes */

/* A path parameter that the route's pattern has; an unknown name is an assertion. */
const char *st_call_param(const st_call *call, const char *name);

/* A query parameter that the route's table has, or NULL when it was not given. The numbers are
 * already checked; st_call_query_int answers `otherwise` when it was not given. */
const char *st_call_query(const st_call *call, const char *name);
const char *st_call_query_nth(const st_call *call, const char *name, int nth);
int64_t st_call_query_int(const st_call *call, const char *name, int64_t otherwise);
bool st_call_query_bool(const st_call *call, const char *name, bool otherwise);

/* Any header, or NULL. Only inside the handler, before it defers, or while the caller is authenticated: not from another
 * thread. */
const char *st_call_header(const st_call *call, const char *name);
bool st_call_takes_gzip(const st_call *call);             /* the answer may be packed */
const char *st_call_idempotency_key(const st_call *call); /* Idempotency-Key or NULL; any thread */
const char *st_call_if_match(const st_call *call);        /* If-Match or NULL; any thread */
const char *st_call_if_none_match(const st_call *call);   /* If-None-Match or NULL; any thread */
const char *st_call_last_event_id(const st_call *call);   /* Last-Event-ID or NULL; any thread */

/* Of a route with a tail: what stands behind its pattern, as it was sent: "" or "/…"; and the query, "" where there is none. */
const char *st_call_tail(const st_call *call);
const char *st_call_raw_query(const st_call *call);
/* Every header as it was sent. Where st_call_header may be asked. */
typedef void st_header_fn(void *ctx, const char *name, const char *value);
void st_call_each_header(const st_call *call, st_header_fn *fn, void *ctx);

/* Whether its body comes by st_call_inflow (http/inflow.h). */
bool st_call_flows(const st_call *call);
/* The body's bytes with a NUL behind them. */
const char *st_call_body(const st_call *call, size_t *ret_len);

/* The body as JSON; an empty one is an error. Messages are "body:LINE: sentence". The caller owns
 * *ret. At most ST_JSON_DEPTH_MAX deep, keys at most once. */
int st_call_json(const st_call *call, json_t **ret, st_err *err);

/* The body as a document (JSON, or YAML when it was sent as such), which knows its lines. */
int st_call_doc(const st_call *call, st_doc **ret, st_err *err);

#define ST_JSON_DEPTH_MAX 64
int st_json_parse(const char *name, const char *text, size_t len, json_t **ret, st_err *err);

/* ---- answering --------------------------------------------------------------------------- */

/* Keeps the call for later; to be called inside the handler. Exactly one answer must follow, from
 * any thread, possibly before the handler has returned. */
void st_call_defer(st_call *call);

/* A header of the answer to come; both texts are copied. */
void st_call_set_header(st_call *call, const char *name, const char *value);

/* The version of what is answered, without quotes: an ETag that If-Match takes. Answers to a GET have one of their content
 * as well, with or without a version, and are 304 where If-None-Match names it. */
void st_call_set_version(st_call *call, const char *version);

/* Sees the answer before it goes out, whatever it is, and may put another in its place: `text` is from malloc, type NULL is
 * JSON. Called once, in the thread that answers. */
typedef void (*st_answer_fn)(void *ctx, int *status, const char **type, char **text, size_t *len);
void st_call_on_answer(st_call *call, st_answer_fn fn, void *ctx);

/* Takes the value. */
void st_call_reply_json(st_call *call, int status, json_t *value);
/* Takes a text of `len` bytes from malloc; type NULL is application/json. */
void st_call_reply_text(st_call *call, int status, const char *type, char *text, size_t len);
/* Takes the buffer's text, leaving it empty. */
void st_call_reply_buf(st_call *call, int status, const char *type, st_strbuf *body);
/* For bytes that outlive the server, such as files built into the program. */
void st_call_reply_static(st_call *call, int status, const char *type, const void *bytes,
                          size_t len);
void st_call_reply_empty(st_call *call, int status);

/* For what may be long: text goes to the end of st_spool_buf, and now and then st_spool_flush writes what is there into a
 * file without a name in the folder `dir`. From one thread. Once all of it is there the answer takes the spool; on failure
 * nothing is answered and the spool is still the caller's. */
typedef struct st_spool st_spool;
int st_spool_new(const st_call *call, const char *dir, st_spool **ret, st_err *err);
void st_spool_free(st_spool *s);
ST_DEFINE_FREEP(st_spool, st_spool_free)
st_strbuf *st_spool_buf(st_spool *s);
int st_spool_flush(st_spool *s, st_err *err);
int st_call_reply_spool(st_call *call, int status, const char *type, st_spool *s, st_err *err);

/* A problem document (RFC 9457) from an error: status and code as base/err.h says. */
void st_call_fail(st_call *call, const st_err *err);

/* Whether a header ("*" or a list of tags) names a tag, given without quotes: strongly and whatever the content, as
 * If-Match of an edit does; or weakly, as If-None-Match of a read does. */
typedef enum {
    ST_ETAG_VERSION,
    ST_ETAG_CONTENT,
} st_etag_how;
bool st_etag_listed(const char *header, const char *tag, st_etag_how how);

/* ---- event streams ----------------------------------------------------------------------- */

/* Turns a call into a stream of server-sent events (status 200); the call is answered by this.
 * Only inside the handler, not of a deferred call.
 * The caller holds one reference until st_stream_unref. `closed`, if not NULL, is called exactly
 * once, in a server thread, when nothing can be sent any more: the client is gone, the stream was
 * ended or overflowed and is written out, or the server stops. It must not call back into the
 * stream except for st_stream_unref. NULL when there are too many streams: answered 503. */
typedef void st_stream_closed(void *ctx, st_stream *stream);
st_stream *st_call_stream(st_call *call, st_stream_closed *closed, void *ctx);

/* Queues one event; id and event may be NULL, line ends in data are kept as lines. Never blocks.
 * False when the stream is over. A consumer that is too slow for its buffer gets
 * "event: overflow" behind what is buffered, and its stream ends: it must list again. */
bool st_stream_send(st_stream *stream, const char *id, const char *event, const char *data,
                    size_t len);

/* No more events; what is buffered is still written. */
void st_stream_end(st_stream *stream);
void st_stream_unref(st_stream *stream);

/* ---- connections that become something else -------------------------------------------------- */

/* Whether the client asks for it (Connection and Upgrade name it). Where st_call_header may be asked. */
bool st_call_may_upgrade(const st_call *call, const char *protocol);

/* Answers the call with 101, now or after it was deferred. `begun` is called exactly once: in a server thread when the
 * answer is out, with what the client has sent already; or with NULL, from any thread, where that never comes to be. It
 * must not block. What has begun must be closed by st_upgrade_close, from any thread; when the server stops its socket is
 * shut, and st_http_server_stop waits for the close. */
typedef void st_upgrade_begun(void *ctx, st_upgrade *up, const char *early, size_t n);
void st_call_upgrade(st_call *call, const char *protocol, st_upgrade_begun *begun, void *ctx);
/* To be polled; not to be closed by itself. */
int st_upgrade_fd(const st_upgrade *up);
/* Bytes, `owner` being the upgrade; 0: the client has ended; -1: nothing now; -2: it is broken. From one thread at a time.
 * What was not sent must be tried again as it was. More may be there than a poll shows until the answer is -1. */
ssize_t st_upgrade_recv(void *owner, char *buf, size_t n);
ssize_t st_upgrade_send(void *owner, const char *buf, size_t n);
/* Then one direction cannot be closed alone. */
bool st_upgrade_is_tls(const st_upgrade *up);
void st_upgrade_close(st_upgrade *up);
#endif
