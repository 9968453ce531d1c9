/*
 * What a tenant may have of stintd itself: jobs that wait, accounts, tokens, streams, requests. One table says
 * what is counted; whoever gives such a thing out charges it here first, and releases it when it is over. There
 * is no other place where these are counted or refused.
 *
 * What an account uses counts at the account and at every account above it, up to the cluster. Each of them may
 * have a limit of its own, set by those above it; an organisation (an account right below the cluster) without
 * one has the default of the configuration, one further down is bounded by those above it alone. So a child may
 * have less than its parent and never more than is left there.
 *
 * Everything may be called from any thread. Names of accounts that are not there are nobody's: nothing is
 * counted for them, and nothing is refused.
 */
#ifndef ST_STATE_ALLOWANCE_H
#define ST_STATE_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"

/* X(id, key, default of an organisation, default of the cluster, what is counted). -1: no limit. */
#define ST_ALLOWANCE_TABLE(X)                                                                      \
    X(ST_AL_PENDING, "pending", 20000, -1, "jobs that wait")                                       \
    X(ST_AL_PENDING_BYTES, "pending_bytes", INT64_C(256) << 20, -1,                                \
      "bytes of waiting jobs' documents")                                                          \
    X(ST_AL_PIECES, "array_pieces", 20000, -1, "pieces of arrays that wait")                       \
    X(ST_AL_ACCOUNTS, "accounts", 1000, -1, "accounts below it")                                   \
    X(ST_AL_MADE, "accounts_made", 5000, -1, "accounts ever made below it")                        \
    X(ST_AL_TOKENS, "tokens", 10000, -1, "tokens that are valid")                                  \
    X(ST_AL_KEPT, "tokens_kept", 50000, -1, "tokens that were not removed, valid or not")          \
    X(ST_AL_SIZES, "sizes", 1000, -1, "sizes")                                                     \
    X(ST_AL_SECRETS, "secrets", 1000, -1, "secrets")                                               \
    X(ST_AL_SERVICES, "services", 1000, -1, "services")                                            \
    X(ST_AL_NOTICES, "notices", 100, -1, "notices by webhook or mail")                             \
    X(ST_AL_CALLS, "service_calls", 256, -1, "requests to services that are open")                 \
    X(ST_AL_CALL_BYTES, "service_bytes", INT64_C(4) << 30, -1,                                     \
      "bytes of requests to services that are open")                                               \
    X(ST_AL_VOLUMES, "volumes", 1000, -1, "volumes")                                               \
    X(ST_AL_VOLUME_BYTES, "volume_bytes", INT64_C(16) << 40, -1, "bytes that its volumes may get") \
    X(ST_AL_VIEWS, "views", 5000, -1, "saved views of the console")                                \
    X(ST_AL_KEYS, "idempotency_keys", 100000, -1, "idempotency keys of two days")                  \
    X(ST_AL_STREAMS, "streams", 256, -1, "open event streams")                                     \
    X(ST_AL_SESSIONS, "sessions", 1000, -1, "sessions of browsers")                                \
    X(ST_AL_CONNECTIONS, "connections", 1024, -1, "open connections with one of its tokens")       \
    X(ST_AL_REQUESTS, "requests", 2000, -1, "requests per second")                                 \
    X(ST_AL_QUESTIONS, "questions", 32, -1,                                                        \
      "questions being answered: dry runs, why, lists, bills")                                     \
    X(ST_AL_COMMANDS, "commands", 1024, -1, "changes waiting for their turn")                      \
    X(ST_AL_BATCHES, "batches", 8, -1, "batches, arrays and large documents being read")           \
    X(ST_AL_TUNNELS, "tunnels", 256, -1, "open shells, forwards and their connections")            \
    X(ST_AL_LOG_BYTES, "log_bytes", INT64_C(16) << 30, INT64_C(128) << 30, "bytes of logs kept")

typedef enum st_allowed {
#define X(id, key, def, total, about) id,
    ST_ALLOWANCE_TABLE(X)
#undef X
        ST_AL_COUNT
} st_allowed;

#define ST_AL_NONE INT64_C(-1) /* no limit (of its own) */

typedef struct st_allowance_limits {
    int64_t v[ST_AL_COUNT]; /* ST_AL_NONE */
} st_allowance_limits;

extern const char *const st_allowed_keys[];  /* NULL at the end */
extern const char *const st_allowed_about[]; /* likewise */

/* The table's columns. */
st_allowance_limits st_allowance_default(void);
st_allowance_limits st_allowance_total(void);
st_allowance_limits st_allowance_nothing(void); /* ST_AL_NONE everywhere */

typedef struct st_allowance st_allowance;

/* NULL: as the table has it. */
st_allowance *st_allowance_new(const st_allowance_limits *organisation,
                               const st_allowance_limits *cluster);
void st_allowance_free(st_allowance *al);
/* Other limits from now on; what is used beyond them stays. */
void st_allowance_defaults(st_allowance *al, const st_allowance_limits *organisation,
                           const st_allowance_limits *cluster);

/* An account, "" for the cluster, which is there from the start; its parent is there already. One that is known
 * stays as it is. */
void st_allowance_add(st_allowance *al, const char *account, const char *parent);
/* It goes by no name from now on. What it still uses counts on for those above it, until it is given back by its number. */
void st_allowance_remove(st_allowance *al, const char *account);

/* The limits that were set for the account itself. */
void st_allowance_set(st_allowance *al, const char *account, const st_allowance_limits *limits);
bool st_allowance_get(st_allowance *al, const char *account, st_allowance_limits *ret);
/* Whether those above have as much: ST_ERANGE names the first that is too high. `reader` as below. */
int st_allowance_fits(st_allowance *al, const char *account, const st_allowance_limits *limits,
                      const char *reader, st_err *err);

/* Takes n for the account, everywhere or, with ST_EALLOWANCE, nowhere. The sentence names the limit, the account
 * whose it is and what is used there if that is `reader` or below; of accounts above it says that there is one. */
int st_allowance_charge(st_allowance *al, const char *account, st_allowed what, int64_t n,
                        const char *reader, st_err *err);
/* The same without asking: it is there already. */
void st_allowance_put(st_allowance *al, const char *account, st_allowed what, int64_t n);
void st_allowance_release(st_allowance *al, const char *account, st_allowed what, int64_t n);
/* Under which number a name is counted now: nobody else ever has it, whoever takes the name later. -1: none.
 * What is given back later than its account may be removed is charged and given back by number. */
int32_t st_allowance_number(st_allowance *al, const char *account);
int st_allowance_charge_as(st_allowance *al, int32_t number, st_allowed what, int64_t n,
                           const char *reader, st_err *err);
void st_allowance_put_as(st_allowance *al, int32_t number, st_allowed what, int64_t n);
/* How much more it may have, by its own limit and those above it but not the cluster's; of the cluster by the cluster's.
 * INT64_MAX: any. */
int64_t st_allowance_left_as(st_allowance *al, int32_t number, st_allowed what);
#define ST_AL_CLUSTER 0 /* the number of the cluster */
/* Nobody has any of it: before it is counted anew. */
void st_allowance_clear(st_allowance *al, st_allowed what);

/* One request at `now_ms`, a monotonic time. Refused: *ret_wait_ms is when the next may come. */
int st_allowance_request(st_allowance *al, const char *account, int64_t now_ms,
                         int64_t *ret_wait_ms, st_err *err);

/* What it uses, and the lowest limit of the account and those above it up to `reader`; ST_AL_NONE. */
typedef struct st_allowance_row {
    int64_t used, limit, set;
} st_allowance_row;

/* False: there is no such account. */
bool st_allowance_read(st_allowance *al, const char *account, const char *reader,
                       st_allowance_row ret[ST_AL_COUNT]);

#endif
