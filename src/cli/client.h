/*
 * Talking to stintd: one request at a time over HTTP, and event streams. What the server refuses
 * comes back as the st_err it had there, with its sentence.
 */
#ifndef ST_CLI_CLIENT_H
#define ST_CLI_CLIENT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "cli/profile.h"
#include "cli/sse.h"

typedef struct st_client st_client;

/* Takes what the profile owns. `errors` is where a wait is shown, on a terminal. */
st_client *st_client_new(st_cli_profile *profile, FILE *errors);
void st_client_free(st_client *client);
ST_DEFINE_FREEP(st_client, st_client_free)

/* From now on an answer is there within so many seconds, or not at all. */
void st_client_hurry(st_client *client, long most_s);

/* As st_profile_now says. */
int st_client_open(FILE *errors, st_client **ret, st_err *err);

const st_cli_profile *st_client_profile(const st_client *client);

typedef struct st_request {
    const char *method; /* NULL: GET */
    const char *path;   /* with its query */
    const char *body;   /* NULL: none */
    size_t n;           /* its bytes; 0: up to its NUL */
    const char *type;   /* of the body; NULL: application/json */
    const char *file;   /* that the body was read from: complaints name it; NULL: none */
    const char *if_match;
    const char *key; /* an Idempotency-Key: the request is repeated when a connection breaks */
} st_request;

typedef struct st_response {
    long status;
    st_strbuf body;
    char etag[80];
    char digest[72];    /* of a piece of a file: SHA-256 in hex; "": not said */
    char version[80];   /* likewise, which one it is of */
    long retry_after_s; /* 0: not said */
    struct {
        int64_t next, stay, newest; /* of a piece of a log: where to go on; 0: not said */
    } log;
} st_response;

void st_response_done(st_response *r);

/* Fails for every status that is not 2xx, with the server's code and sentence. */
int st_client_call(st_client *client, const st_request *request, st_response *ret, st_err *err);

/* The same, with the body read as JSON; *ret is the caller's. ret_response may be NULL. */
int st_client_json(st_client *client, const st_request *request, json_t **ret,
                   st_response *ret_response, st_err *err);
int st_client_get(st_client *client, const char *path, json_t **ret, st_err *err);

/* A fresh Idempotency-Key. */
#define ST_KEY_MAX 40
void st_client_key(char ret[ST_KEY_MAX]);

/* Appends text so that it is one segment of a path, or one value of a query. */
void st_url_add(st_strbuf *out, const char *text);
/* Adds ?KEY=VALUE, or &KEY=VALUE where there is a query; NULL: nothing. */
void st_url_query(st_strbuf *path, const char *key, const char *value);

/* What an answer means that is not 2xx: a problem document, or whatever else came. */
int st_client_problem(const st_response *response, const char *url, st_err *err);

/* ---- streams ------------------------------------------------------------------------------- */

typedef struct st_events st_events;

/* Begins to listen; `last_id` (or NULL) is the last event one has seen. */
st_events *st_events_open(st_client *client, const char *path, const char *last_id);
void st_events_free(st_events *events);
ST_DEFINE_FREEP(st_events, st_events_free)

/* Waits for an event: 1 and the event, which is the caller's; 0 when none came in time; or what
 * ended the stream. */
int st_events_next(st_events *events, int timeout_ms, st_sse_event *ret, st_err *err);

#endif
