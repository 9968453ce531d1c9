/*
 * Errors as values. A function that can fail returns 0 or a negative code and
 * fills a caller-owned st_err once, where the failure happens:
 *
 *     return st_fail(err, ST_EQUOTA, "team %s: %s GPUs asked, %s free", ...);
 *
 * The code decides what machines do (HTTP status, exit status); the message is
 * one sentence for a person, with the names and numbers needed to act on it.
 */
#ifndef ST_BASE_ERR_H
#define ST_BASE_ERR_H

#include "base/macros.h"

/* X(name, stable string, HTTP status, CLI exit status, what the caller can do), in order of value from 1; new ones
 * go last. */
#define ST_ERR_TABLE(X)                                                                            \
    X(ST_EINVAL, "invalid", 400, 2, "correct the request; the message names the field")            \
    X(ST_EPARSE, "parse", 400, 2, "correct the document; the message names the line")              \
    X(ST_ENOENT, "not_found", 404, 4, "check the name: it does not exist, or is not yours")        \
    X(ST_EEXIST, "exists", 409, 5, "choose another name")                                          \
    X(ST_EQUOTA, "quota", 403, 6, "ask for less: it could never start within the account's quota") \
    X(ST_ELIMIT, "limit", 403, 6, "ask for less, or ask an admin to raise the limit")              \
    X(ST_ERANGE, "range", 400, 2, "use a number inside the stated range")                          \
    X(ST_ESTATE, "state", 409, 5, "it is over, in use, or was done before; read it again")         \
    X(ST_EIO, "io", 500, 7, "tell the owner the instance id; stintd's log has the cause")          \
    X(ST_EFULL, "full", 507, 7, "free disk space on stintd's machine")                             \
    X(ST_EINTERNAL, "internal", 500, 70, "report it with the instance id: this is a bug")          \
    X(ST_ECORRUPT, "corrupt", 500, 7, "stop stintd and run stintd --check-store")                  \
    X(ST_EAUTH, "unauthenticated", 401, 8, "log in (stint login) with a valid token")              \
    X(ST_EPERM, "forbidden", 403, 8, "ask an admin: your role does not allow this")                \
    X(ST_EVERSION, "version", 412, 5, "read it again and repeat the change")                       \
    X(ST_EDOWN, "unavailable", 503, 7, "try again; with an Idempotency-Key nothing happens twice") \
    X(ST_EREFUSED, "refused", 403, 6, "read the message: a rule of the site refused it")           \
    X(ST_EBUDGET, "budget", 402, 6, "set a shorter limit, or ask for a higher cap")                \
    X(ST_EALLOWANCE, "service_quota", 429, 6,                                                      \
      "wait until some of your jobs or requests end, or ask an admin")                             \
    X(ST_EOVER, "overcommitted", 409, 6,                                                           \
      "ask for less or another time; for a guarantee add nodes, or let an owner force it")

enum {
    ST_OK = 0,
#define ST_ERR_ENUM(name, string, http, cli, remedy) name,
    ST_ERR_TABLE(ST_ERR_ENUM)
#undef ST_ERR_ENUM
};

typedef struct st_err {
    int code; /* positive, ST_E…; 0 when nothing failed */
    char msg[600];
} st_err;

/* Fills *err (which may be NULL) and returns -code. The arguments may point into err->msg.
 * A message that does not fit ends in "...", never inside a UTF-8 character. */
int st_fail(st_err *err, int code, const char *fmt, ...) ST_PRINTF(3, 4);

/* Puts text in front of the message already there and returns -err->code; for adding context on
 * the way up. With err NULL the code is unknown and -ST_EINTERNAL is returned. */
int st_fail_prefix(st_err *err, const char *fmt, ...) ST_PRINTF(2, 3);

/* These take code or -code; an unknown code counts as ST_EINTERNAL. */
const char *st_err_name(int code);
int st_err_exit(int code);
int st_err_http(int code);

#endif
