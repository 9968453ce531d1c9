/*
 * Problems that HTTP itself has, beside those of base/err.h, each once: code,
 * status, title, remedy. The code is what clients may rely upon.
 */
#ifndef ST_HTTP_PROBLEM_H
#define ST_HTTP_PROBLEM_H

#include <jansson.h>

#include "base/strbuf.h"
#include "http/http.h"

/* X(name, code, status, title, what the caller can do) */
#define ST_PROBLEM_TABLE(X)                                                                  \
    X(ST_P_BAD_REQUEST, "bad_request", 400, "The request is malformed",                      \
      "correct the HTTP: lengths, headers, path")                                            \
    X(ST_P_UNAUTHENTICATED, "unauthenticated", 401, "No valid token",                        \
      "log in (stint login) with a valid token")                                             \
    X(ST_P_FORBIDDEN, "forbidden", 403, "Your role does not allow this",                     \
      "ask an admin: your role does not allow this")                                         \
    X(ST_P_NOT_FOUND, "not_found", 404, "Not found",                                         \
      "check the name: it does not exist, or is not yours")                                  \
    X(ST_P_METHOD, "method_not_allowed", 405, "This method is not allowed here",             \
      "use a method that Allow lists")                                                       \
    X(ST_P_ACCEPT, "not_acceptable", 406, "No acceptable type of answer",                    \
      "accept application/json")                                                             \
    X(ST_P_PRECONDITION, "precondition_failed", 412, "It has changed meanwhile",             \
      "read it again and repeat the change")                                                 \
    X(ST_P_TOO_LARGE, "body_too_large", 413, "The body is too large", "send less at a time") \
    X(ST_P_TARGET, "target_too_long", 414, "The path or query is too long", "shorten it")    \
    X(ST_P_TYPE, "unsupported_type", 415, "This type of body is not accepted here",          \
      "send JSON, or YAML where it is accepted")                                             \
    X(ST_P_IF_MATCH, "precondition_required", 428, "If-Match is required",                   \
      "send If-Match with the ETag you read")                                                \
    X(ST_P_RATE, "rate_limited", 429, "Too many requests", "wait Retry-After seconds")       \
    X(ST_P_RUNNING, "too_many_running", 429, "Too many requests at the same time",           \
      "wait Retry-After seconds")                                                            \
    X(ST_P_HEADERS, "headers_too_large", 431, "The headers are too large",                   \
      "send fewer or shorter headers")                                                       \
    X(ST_P_STREAMS, "too_many_streams", 503, "Too many event streams",                       \
      "close a stream, or try again later")                                                  \
    X(ST_P_STOPPING, "stopping", 503, "The server is stopping", "try again in a moment")     \
    X(ST_P_VERSION, "http_version", 505, "This version of HTTP is not supported", "use HTTP/1.1")

typedef enum {
#define ST_PROBLEM_ENUM(name, code, status, title, remedy) name,
    ST_PROBLEM_TABLE(ST_PROBLEM_ENUM)
#undef ST_PROBLEM_ENUM
} st_problem_id;

const char *st_problem_code(st_problem_id id);
int st_problem_status(st_problem_id id);

/* What is known for the code, else for the status; never NULL. */
const char *st_problem_title(const char *code, int status);

/* A problem document (RFC 9457). */
typedef struct st_problem {
    int status;
    const char *code;   /* "quota"; type is "/problems/quota" */
    const char *title;  /* NULL: what is known for the code, else for the status */
    const char *detail; /* a sentence for a person */
    json_t *extra;      /* NULL or an object whose members are added; taken */
} st_problem;

void st_call_problem(st_call *call, const st_problem *problem);
void st_problem_write(const st_problem *problem, const char *instance, st_strbuf *out);

#endif
