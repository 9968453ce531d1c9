/*
 * The directory: who is who and what is called what, as it was last committed. Every request asks
 * it, from any thread; only the control loop changes it, after a commit.
 *
 * It answers two questions and no others do: whose token is this, and is this account inside that
 * one (st_directory_within). Whatever is outside a caller's account is, for the caller, not there.
 */
#ifndef ST_STATE_DIRECTORY_H
#define ST_STATE_DIRECTORY_H

#include "base/arena.h"
#include "core/core.h"
#include "spec/spec.h"
#include "store/store.h"

/* X(id, word, what it may) */
#define ST_ROLE_TABLE(X)                                                                          \
    X(ST_ROLE_OWNER, "owner", "everything, everywhere")                                           \
    X(ST_ROLE_ADMIN, "admin", "its account and below: accounts, quotas, tokens, jobs, audit log") \
    X(ST_ROLE_MEMBER, "member",                                                                   \
      "its account: submit, and change or cancel its own jobs; "                                  \
      "see its account and below")                                                                \
    X(ST_ROLE_VIEWER, "viewer", "see its account and below")                                      \
    X(ST_ROLE_AUDITOR, "auditor", "see its account and below, and its audit log")                 \
    X(ST_ROLE_NODE, "node", "an agent: its own orders and reports")                               \
    X(ST_ROLE_JOIN, "join", "a machine: register itself as a node")                               \
    X(ST_ROLE_FEED, "feed", "a calendar program: read the bookings of its account and below")     \
    X(ST_ROLE_CALLER, "caller", "a client: call the services of its account and below")
typedef enum st_role {
#define X(id, word, what) id,
    ST_ROLE_TABLE(X)
#undef X
        ST_ROLE_COUNT
} st_role;

extern const char *const st_role_words[]; /* NULL at the end */
const char *st_role_about(st_role role);

#define ST_TOKEN_BYTES 32
#define ST_TOKEN_HASH  32
#define ST_TOKEN_TEXT  (sizeof "stint_" + 64)

/* The secret as it is shown once, and its hash, which is all that is kept. */
void st_token_make(char text[ST_TOKEN_TEXT], unsigned char hash[ST_TOKEN_HASH]);
/* False: this is not a token. */
bool st_token_hash(const char *text, unsigned char hash[ST_TOKEN_HASH]);

/* Who acts. Copied around whole, so that nobody has to keep it alive. */
typedef struct st_identity {
    int64_t token; /* 0: through the local socket, or stintd itself */
    st_role role;
    char account[ST_NAME_MAX + 1]; /* "" is the cluster */
    char user[ST_NAME_MAX + 1];
    char source[64]; /* where from */
} st_identity;

/* How the jobs of an account that was removed are filed: no name has a space. */
#define ST_GONE_NAME "%s (%lld)"

typedef struct st_directory st_directory;

st_directory *st_directory_new(void);
void st_directory_free(st_directory *dir);

/* ---- asked from any thread ------------------------------------------------------------ */

/* ST_EAUTH when the token is unknown, revoked or expired at `now`: one sentence for all three, so
 * that nobody learns which. */
int st_directory_token(st_directory *dir, const char *text, int64_t now, st_identity *ret,
                       st_err *err);

/* Whether a token, by its id, still opens something at `now`: it is not revoked or expired, and its account is
 * there. 0, the local socket's, always does. */
bool st_directory_opens(st_directory *dir, int64_t token, int64_t now);

/* Whose a token is, by its id, whether it opens something or not; false: there was none. */
bool st_directory_token_account(st_directory *dir, int64_t token, char ret[ST_NAME_MAX + 1]);

/* Whether the account exists and is `above` or stands below it; "" is the cluster. */
bool st_directory_within(st_directory *dir, const char *account, const char *above);

/* The name of the account above, "" for the cluster, NULL above that or for an unknown one. Lives
 * as long as the directory. */
const char *st_directory_parent(st_directory *dir, const char *account);

#define ST_ABOVE_MAX (ST_DEPTH_MAX + 2)

/* An account and those above it, nearest first, without the cluster; NULL-terminated. */
size_t st_directory_above(st_directory *dir, const char *account, const char *ret[ST_ABOVE_MAX]);

/* Its number, which no other account ever has, whatever it is called; -1: there is no such account. */
int64_t st_directory_serial(st_directory *dir, const char *account);
/* The name it had while it was there; its own if it is. Lives as long as the directory. NULL: unknown. */
const char *st_directory_was(st_directory *dir, const char *account);
/* The number of whoever, of an account and those above it, is or was called `name`; -1: nobody. */
int64_t st_directory_serial_above(st_directory *dir, const char *account, const char *name);

/* Under which accounts its rows stand, and what to ask a list for: its own and what all below it have. Of one that
 * there is not: nothing. */
void st_directory_stands(st_directory *dir, const char *account, st_stands *ret);
st_within st_directory_range(st_directory *dir, const char *account);

/* The organisation it belongs to, the account right below the cluster; 0: the cluster itself, or unknown. */
int32_t st_directory_org(st_directory *dir, const char *account);

/* Names of GPU types and pools for readers of documents. */
st_spec_names st_directory_names(st_directory *dir);

typedef struct st_directory_gpu {
    char name[ST_NAME_MAX + 1];
    int64_t vram_mib;
    st_board board;
    int node_gpus; /* of the largest node */
} st_directory_gpu;

size_t st_directory_types(st_directory *dir, st_directory_gpu ret[ST_TYPES_MAX]);

/* Whether an account may share GPUs with others of its domain. */
bool st_directory_trusted(st_directory *dir, const char *account);

/* All tokens: fn for each, with its account and whether it opens something at `now`. */
void st_directory_each_token(st_directory *dir, int64_t now,
                             void (*fn)(void *ctx, const char *account, bool opens), void *ctx);

/* ---- changed by the loop --------------------------------------------------------------- */

void st_directory_put_token(st_directory *dir, const st_token_row *row);
/* It opens nothing from here on, and its last use is written nowhere. */
void st_directory_remove_token(st_directory *dir, int64_t token);
void st_directory_revoke(st_directory *dir, int64_t token, int64_t at_ms);
/* All tokens of an account go by another name of it: it was removed. */
void st_directory_refile(st_directory *dir, const char *from, const char *to);
/* Takes over accounts, types and pools as the core has them. */
void st_directory_follow(st_directory *dir, const st_core *core);

/* Tokens used since the last call: fn for each, with when. */
void st_directory_used(st_directory *dir, void (*fn)(void *ctx, int64_t token, int64_t at_ms),
                       void *ctx);

#endif
