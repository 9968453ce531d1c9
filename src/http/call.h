/*
 * A call from inside: what was asked, and where its answer stands.
 *
 * References: one is libmicrohttpd's, until the request is over; one more is
 * the owner's between st_call_defer and the answer. So a late answer finds its
 * call even when the server has stopped, and does nothing but drop it.
 */
#ifndef ST_HTTP_CALL_H
#define ST_HTTP_CALL_H

#include "http/problem.h"
#include "http/query.h"
#include "http/server.h"

/* Headers that are kept because they are asked for later, from other threads. */
typedef enum {
    ST_KEEP_IDEMPOTENCY,
    ST_KEEP_IF_MATCH,
    ST_KEEP_IF_NONE_MATCH,
    ST_KEEP_LAST_EVENT,
    ST_KEEP_COUNT
} st_keep;

typedef enum {
    ST_PHASE_NEW,  /* the request line was read */
    ST_PHASE_BODY, /* the headers are good, the body comes in */
    ST_PHASE_FLOW, /* the same, with the handler called already: it goes to whoever takes it */
    ST_PHASE_RUN,  /* the handler has been called, or the call refused */
} st_call_phase;

typedef struct st_reply_header {
    char *name, *value;
} st_reply_header;

struct st_call {
    st_http_server *server;
    st_conn *conn;
    struct MHD_Connection *mhd;
    int conn_fd;
    st_call_phase phase;
    char id[17];
    char method[16];
    int64_t begun_us;
    int64_t streams_us; /* since when it is a stream; 0: it is none */

    /* asked */
    char *path;             /* as sent, without the query */
    char *raw_query;        /* of a route with a tail; NULL: none */
    char *target;           /* taken apart by router and query */
    const char *target_end; /* in libmicrohttpd's memory, only compared with */
    bool target_too_long;
    st_match match;
    st_query query;
    char *kept[ST_KEEP_COUNT];
    st_strbuf body;
    size_t body_max, body_dropped;
    int64_t body_length; /* as it is said; -1: it is not */
    bool flows;          /* the handler is to take it as it comes: */
    struct st_inflow *inflow;
    int64_t patience_ms; /* that its client has left while nobody waits for it */
    bool is_yaml;
    bool takes_gzip;
    st_peer peer;
    st_principal principal;
    bool has_principal;
    void (*forget)(void *ctx, void *who); /* kept here: the call may outlive the server */
    void *ctx;
    bool entered; /* counted by the limits under limit_key */
    uint64_t limit_key;

    st_upgrade *upgrade; /* asked for, and neither begun nor lost */

    st_answer_fn on_answer;
    void *answer_ctx;

    /* answered */
    atomic_int refs;
    bool deferred; /* written by the handler's thread before anybody else knows the call */
    ST_VEC(st_reply_header) headers;
    char *version;        /* of what is answered; NULL: it has none */
    pthread_mutex_t lock; /* the rest, once deferred */
    bool answered;        /* response and status are there */
    bool owner_done;      /* the owner has answered */
    bool suspended;
    int status;
    size_t bytes;
    struct MHD_Response *response;
    st_call *prev, *next; /* server->deferred */
};

/* Callbacks of libmicrohttpd; cls is the listener. */
void *st_call_uri(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result st_call_access(void *cls, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **context);
void st_call_over(void *cls, struct MHD_Connection *mhd, void **context,
                  enum MHD_RequestTerminationCode why);

/* refusal.c: MHD_queue_response, for answers of ours. */
enum MHD_Result st_mhd_queue(struct MHD_Connection *mhd, unsigned int status,
                             struct MHD_Response *response);

/* request.c: looks at line and headers; true when the request may go on, else it is refused.
 * Whether a body follows is told in both cases. */
bool st_request_check(st_call *call, const char *version, bool *ret_has_body);

/* answer.c. Refusals are the server's own, in its threads; an owner must not touch the server. */
void st_call_refuse(st_call *call, st_problem_id id, st_reject why, const char *fmt, ...)
    ST_PRINTF(4, 5);
/* The answer as libmicrohttpd wants it; takes the response. */
void st_call_finish(st_call *call, int status, struct MHD_Response *response, size_t bytes);
/* The same with the call's headers and a type, which may be NULL. */
void st_call_send(st_call *call, int status, const char *type, struct MHD_Response *response,
                  size_t len);
/* Answers a suspended call in its owner's place; with server->lock held. */
void st_call_abandon(st_call *call);
void st_call_unref(st_call *call);

/* call.c. Of a call that was deferred and is not answered: whether its client has hung up meanwhile. */
bool st_call_left(st_call *call);

/* upgrade.c: it will never begin. NULL: there is none. */
void st_upgrade_lost(st_upgrade *up);

#endif
