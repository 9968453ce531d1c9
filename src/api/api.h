/*
 * The API: /v1 by noun, over src/http, in front of src/control. doc/reference/api.md describes it for
 * users; the table of routes (api/routes.c) is the only list of operations, of the roles that may
 * call them, and the source of /openapi.json.
 *
 * A handler decides three things and nothing else: what was asked (spec), whether it is inside the
 * caller's account (st_api_sees), and which command or row answers it. Everything that changes
 * goes through the control loop; jobs are read from the store.
 */
#ifndef ST_API_API_H
#define ST_API_API_H

#include <sys/types.h>

#include "control/control.h"
#include "engine/logs.h"
#include "http/http.h"
#include "http/openapi.h"

typedef struct st_api st_api;
struct st_courier;
struct st_estimate_rules;

typedef struct st_api_options {
    st_control *control;
    int64_t (*clock)(void *ctx); /* ms since the epoch */
    /* How far the machine's clock is ahead of it, and whether that is so far that it is not followed; and an owner says that it
     * is right, false where it is behind. NULL: there is no other clock. */
    int64_t (*clock_off)(void *ctx, bool *ret_doubted);
    bool (*clock_accept)(void *ctx);
    /* Reads the configuration again and says as JSON what has changed; may wait for the loop. NULL: there is none. */
    int (*reload)(void *ctx, st_strbuf *ret, st_err *err);
    void *ctx;
    st_engine *native;   /* the engine with agents; NULL: there is none */
    st_logs *logs;       /* where agents bring what tasks write; NULL: nowhere */
    int64_t log_keep_ms; /* how long they stay after the last line; 0: for good */
    const char
        *backup_dir; /* where copies of the store go; absolute or from where stintd was started */
    const char *
        spool_dir; /* where long answers are kept until they are sent; NULL: where the system has such files */
    const struct st_courier *courier;         /* where notices may go */
    const struct st_estimate_rules *estimate; /* of models; NULL: the default */
    bool no_shells, no_forwards;              /* nobody may enter jobs, or reach their ports */
    int64_t tunnel_idle_ms; /* a connection into a job on which nothing moves ends; 0: never */
    /* Brings an image of a registry to where nodes find it: its layout, and the digest of its manifest. In a thread that may
     * wait for long. NULL: there are no registries. */
    int (*pull)(void *ctx, const char *from, st_strbuf *ret_path, char ret_digest[72], st_err *err);
    const char *events_dir;  /* where events of the past are; NULL: nowhere */
    int64_t events_keep_ms;  /* how long; 0: as long as there is room */
    int64_t folder_keep_ms;  /* how long what jobs came with stays; 0: for good */
    const char *volumes_dir; /* where volumes are; made when the first one is. NULL: nowhere */
    uid_t admin_uid;         /* who is owner on the unix socket, besides root */
    st_http_options http;    /* limits; routes, ctx and authenticate are the API's */
} st_api_options;

struct st_log_head;
/* How far the log of checkpoints has come, signed; for those who hand it to witnesses. From any thread. */
int st_api_log_head(st_api *api, struct st_log_head *ret, st_err *err);

int st_api_new(const st_api_options *options, st_api **ret, st_err *err);
void st_api_free(st_api *api);
/* What the API does by itself; between the start and the end of the control loop. */
int st_api_start(st_api *api, st_err *err);
void st_api_stop(st_api *api);

/* Give it addresses (st_http_listen). */
st_http_server *st_api_server(st_api *api);

/* The one for agents alone, with connections and threads of its own; and where it listens, which agents are told. */
st_http_server *st_api_agent_server(st_api *api);
void st_api_agent_port(st_api *api, int port);

/* What the control loop's listener hears; sent to event streams. */
void st_api_notice(st_api *api, const st_notice *notice);

/* What the engine with agents says: the node's list has changed. From any thread. */
void st_api_node_changed(st_api *api, int32_t node);

/* Answers calls that wait for something; before the server is stopped. */
void st_api_quiet(st_api *api);

/* The table, for tests and for the document. */
const st_route *st_api_routes(void);
const st_schema *const *st_api_schemas(void);
int st_api_openapi(st_strbuf *out, st_err *err);

#endif
