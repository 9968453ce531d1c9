/*
 * Problems that HTTP itself has, beside those of base/err.h, each once: code,
 * status, title. The code is what clients may rely upon.
 */
#ifndef ST_HTTP_PROBLEM_H
#define ST_HTTP_PROBLEM_H

/* X(name, code, status, title) */
#define ST_PROBLEM_TABLE(X)                                                               \
    X(ST_P_BAD_REQUEST, "bad_request", 400, "The request is malformed")                   \
    X(ST_P_UNAUTHENTICATED, "unauthenticated", 401, "Nobody known is calling")            \
    X(ST_P_FORBIDDEN, "forbidden", 403, "The caller's role does not allow this")          \
    X(ST_P_NOT_FOUND, "not_found", 404, "There is no such thing")                         \
    X(ST_P_METHOD, "method_not_allowed", 405, "This cannot be done here")                 \
    X(ST_P_ACCEPT, "not_acceptable", 406, "The answer is not of a type that is accepted") \
    X(ST_P_PRECONDITION, "precondition_failed", 412, "It has changed meanwhile")          \
    X(ST_P_TOO_LARGE, "body_too_large", 413, "The body is too large")                     \
    X(ST_P_TARGET, "target_too_long", 414, "The path or query is too long")               \
    X(ST_P_TYPE, "unsupported_type", 415, "The body is not of a type that is taken here") \
    X(ST_P_IF_MATCH, "precondition_required", 428, "If-Match is wanted")                  \
    X(ST_P_RATE, "rate_limited", 429, "Too many requests")                                \
    X(ST_P_RUNNING, "too_many_running", 429, "Too many requests at the same time")        \
    X(ST_P_HEADERS, "headers_too_large", 431, "The headers are too large")                \
    X(ST_P_STREAMS, "too_many_streams", 503, "Too many event streams")                    \
    X(ST_P_STOPPING, "stopping", 503, "The server is stopping")                           \
    X(ST_P_VERSION, "http_version", 505, "This version of HTTP is not spoken here")

typedef enum {
#define ST_PROBLEM_ENUM(name, code, status, title) name,
    ST_PROBLEM_TABLE(ST_PROBLEM_ENUM)
#undef ST_PROBLEM_ENUM
} st_problem_id;

const char *st_problem_code(st_problem_id id);
int st_problem_status(st_problem_id id);

/* What is known for the code, else for the status; never NULL. */
const char *st_problem_title(const char *code, int status);

#endif
