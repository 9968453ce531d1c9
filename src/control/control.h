/*
 * The control loop: one thread that owns the core and the store's writing connection.
 *
 * Everybody else hands it commands. It takes those that wait, gives them to the core, runs one
 * pass, writes all that changed in one transaction, and answers when that is durable. doc/dev/stintd.md
 * has the whole story.
 *
 * Invariants:
 *  1 A command's `done` is called exactly once, from the loop, after the commit that contains it;
 *    with an error, none of it happened, or (store_unavailable) it is not known to have happened.
 *  2 Engines and listeners hear only what is committed.
 *  3 The core in memory is what the store's log gives when it is played; where that cannot be
 *    kept, the core is thrown away and played again.
 *  4 Every change that a person asked for has a row in the audit chain in the same transaction.
 */
#ifndef ST_CONTROL_CONTROL_H
#define ST_CONTROL_CONTROL_H

#include "control/allowance.h"
#include "control/directory.h"
#include "control/images.h"
#include "control/tally.h"
#include "core/core.h"
#include "engine/engine.h"
#include "store/store.h"
#include "vault/vault.h"

typedef struct st_control st_control;
typedef struct st_tx st_tx;
typedef struct st_cmd st_cmd;

/* ---- what happened, for listeners ------------------------------------------------------- */

/* A threshold of an account's budget or cap that its spending has passed. */
typedef struct st_notice_budget {
    int64_t threshold_bp; /* hundredths of a percent */
    int64_t of_udollars, spent_udollars;
    bool of_cap; /* or of the budget */
} st_notice_budget;

/* What a cap does: to an account that has reached it, or to a job. */
typedef struct st_notice_cap {
    const char *does; /* "reached", "stops", "waits", "lifted" */
    const char *at_cap;
    int64_t cap_udollars, spent_udollars; /* of an account alone */
} st_notice_cap;

/* Somebody has cost several times today what a day of theirs usually costs. For admins alone. */
typedef struct st_notice_anomaly {
    const char *user; /* NULL: the account with all below it */
    int64_t cost_udollars, usual_udollars;
} st_notice_anomaly;

typedef struct st_notice {
    uint64_t seq; /* grows by one */
    int64_t at_ms;
    uint64_t job;     /* 0: about a node or an account */
    uint64_t booking; /* of "booking" alone, and whether a part of it has no place */
    bool degraded;
    const char *account; /* "" concerns the cluster alone */
    const char *kind;    /* an effect's name, "budget", "cap", "anomaly", "incident" or "data" */
    const char *state;   /* the job's, afterwards; NULL without one */
    const char *name;    /* of the job, node or account */
    const char *
        grants; /* of a job that comes onto devices or leaves them: which, JSON; NULL: none, or too many */
    const char *reason;  /* of a job's end, and of "data": why; NULL: there is nothing to say */
    const st_effect *fx; /* never NULL; of "budget" it says nothing */
    const st_notice_budget *budget;   /* of "budget" alone */
    const st_notice_cap *cap;         /* of "cap" alone */
    const st_notice_anomaly *anomaly; /* of "anomaly" alone */
    struct {
        const char *flag, *reason;
    } incident; /* of "incident" alone: something is wrong with what a node says */
    const struct st_node_word *word; /* of a node that was taken out; NULL: none */
} st_notice;

/* Who took a node out of service, why, and since when. */
typedef struct st_node_word {
    int32_t node;
    int64_t since_ms;
    char by[ST_NAME_MAX + 1];
    char reason[300]; /* "": none was given */
} st_node_word;

/* When a day's cost is unusual: so many times what the last days cost in the median, and no less than the floor. */
typedef struct st_anomaly_options {
    int64_t times; /* 0: nobody looks */
    int64_t floor_udollars;
    int days;
} st_anomaly_options;

/* How usage becomes money, doc/dev/money.md. What is NULL is left to its default. */
typedef struct st_billing_options {
    const char *zone;     /* in which months end; "UTC". "test-3" has months of three seconds */
    const char *currency; /* how the money is called, "USD" */
    const char *key;      /* the file of the key that signs; beside the store */
    const char *cluster;  /* whose books these are, "stint" */
    bool credit_second;   /* credits above this need a second owner */
    int64_t credit_alone_udollars;
    st_anomaly_options anomaly;
} st_billing_options;

typedef struct st_control_options {
    const char *store;
    st_store_options store_options;
    st_policy policy;
    int64_t (*clock)(void *ctx);              /* ms since the epoch, UTC */
    void (*log)(void *ctx, const char *line); /* key=value, without time */
    void (*listen)(void *ctx,
                   const st_notice *n); /* from the loop, after the commit; may be NULL */
    void *ctx;
    st_engine *engine;
    /* Of an organisation, and of the cluster; NULL: as the table has it. */
    const st_allowance_limits *quota, *quota_total;
    int64_t
        pass_long_us; /* a pass that takes as much of a processor comes behind the answers; 0: 2000, -1: any */
    int64_t snap_rows;    /* a snapshot after so many rows of the log; 0: 32768 */
    int64_t keep_jobs_ms; /* jobs that ended longer ago are forgotten; 0: never */
    int64_t
        keep_log_ms; /* the log goes back so far, to be played again; 0: no further than a start needs */
    int64_t tell_ms; /* how often those who wait are told an estimate; 0: a minute */
    st_billing_options billing;
    const char *secrets_key; /* the file of the key that seals; NULL: beside the store */
} st_control_options;

/* Opens the store, brings the core back, and checks one against the other. The engine is borrowed
 * and must outlive it. */
int st_control_new(const st_control_options *options, st_control **ret, st_err *err);
/* Plays the log of a store and compares the core with the tables beside it, and usage with the books;
 * follows the books' chains and checkpoints (`key` is the file of the key, NULL: beside the store). Tells what
 * differs and adds to *ret_n. Changes nothing. */
int st_control_check(st_store *store, const char *key, st_finding_fn fn, void *ctx, int64_t *ret_n,
                     st_err *err);

/* The core as the store gives it, for looking at; the caller frees it. And the last moment in the store; NULL: not asked for. */
int st_control_replay(st_store *store, st_core **ret, int64_t *ret_last_ms, st_err *err);

/* Whether the core that was brought back works by this policy; before the start only. */
bool st_control_has_policy(const st_control *ctl, const st_policy *policy);
/* The last moment in the store: time goes on from there, whatever the clock says. Before the start, or in the
 * loop. */
int64_t st_control_last_ms(const st_control *ctl);
/* The thread. Nothing happens before. */
int st_control_start(st_control *ctl, st_err *err);
/* Answers what waits, writes a snapshot, ends the thread. */
void st_control_stop(st_control *ctl);
void st_control_free(st_control *ctl);

st_directory *st_control_directory(st_control *ctl);
st_images *st_control_images(st_control *ctl);
st_allowance *st_control_allowance(st_control *ctl);
st_store *st_control_store(st_control *ctl); /* for opening readers */
st_engine *st_control_engine(st_control *ctl);
/* Whether commands are taken; if not, why. */
bool st_control_ready(st_control *ctl, st_err *why);

/* ---- commands --------------------------------------------------------------------------- */

/* Whose turn a command uses (control/lanes.h): an organisation's, by st_directory_org, 0 the cluster's own; or
 * before all others, for agents and for stintd itself. */
#define ST_LANE_AGENTS (-1)

/* Embedded in what a caller needs to remember. `run` is given the transaction, may refuse, and
 * must not fail once it has changed something. One that has much to do does a bounded part of it and
 * returns 1: it is committed, and `run` is called again when it is its turn. `publish`, which may be
 * NULL, runs after the (last) commit and before `done`. All in the loop's thread. */
typedef struct st_cmd_key st_cmd_key;

struct st_cmd {
    int (*run)(st_tx *tx, st_cmd *cmd, st_err *err);
    void (*publish)(st_control *ctl, st_cmd *cmd);
    void (*done)(st_cmd *cmd, const st_err *err); /* err NULL: it is durable */
    int32_t lane;
    int64_t token;   /* must still open something when its first turn comes; 0: stintd's own word */
    st_cmd_key *key; /* done once under this key; NULL: none */
    bool keys_itself; /* keys are its own affair */
    bool calm;        /* is done also while a restored store waits: the core has no part in it */
    /* The loop's. */
    st_cmd *next;
    st_err *failed;
    bool more;
    bool begun; /* its token was good: what has begun is brought to its end */
};

/* An Idempotency-Key. Where it was used before, `run` is not called and the command fails; `answer` is what was kept of the
 * first time, which the caller frees, or NULL. */
struct st_cmd_key {
    char owner[32]; /* keys are each owner's own */
    const char *key;
    unsigned char digest[32]; /* of the request: another one with the key is refused */
    char *answer;
    bool done; /* it is being done, for the first time */
};
/* A token's, or the local socket's. */
void st_cmd_key_owner(const st_identity *who, char ret[32]);
/* In the loop's thread, inside `done`: the answer of a command that was done, for those who ask again. Elsewhere nothing is
 * kept: a repeat is told that it was done. */
void st_cmd_key_keep(st_control *ctl, const st_cmd_key *key, const char *answer);
/* There too: what came behind the command failed, so the key may be used again. */
void st_cmd_key_drop(st_control *ctl, const st_cmd_key *key);

/* From any thread. False when the loop has stopped or too many wait: the caller answers. */
bool st_control_post(st_control *ctl, st_cmd *cmd);

/* For use inside `run`. */
st_core *st_tx_core(st_tx *tx);
int64_t st_tx_now(const st_tx *tx);
/* Gives the core an event; refused ones leave no trace, accepted ones are in the log. */
int st_tx_apply(st_tx *tx, const st_event *event, st_err *err);
/* Which edit of a thing is the last; 0: there was none. See control/versions.c for kinds; NULL is an account, by how
 * often it was changed. Here and in questions to the follower. */
int64_t st_tx_version(const st_tx *tx, const char *kind, const char *name);
/* A row of the audit chain. */
int st_tx_audit(st_tx *tx, const st_identity *who, const char *verb, const char *account,
                const char *target, const char *detail, st_err *err);

/* ---- jobs ------------------------------------------------------------------------------- */

/* What people call a job: a permuted number, so that ids do not tell how many there are. Other
 * counters that go outside (tokens, events, audit rows) get a letter of their own. */
#define ST_ID_TEXT 16
void st_control_name(const st_control *ctl, char kind, uint64_t id, char ret[ST_ID_TEXT]);
bool st_control_named(const st_control *ctl, char kind, const char *text, uint64_t *ret);
void st_control_id_text(const st_control *ctl, uint64_t id, char ret[ST_ID_TEXT]);
bool st_control_id_parse(const st_control *ctl, const char *text, uint64_t *ret);

typedef struct st_submit_item {
    st_job_spec spec; /* without id */
    const char *doc;  /* the job's document, JSON; kept */
    const char *head; /* of an array's pieces: what stands before each one's `doc`; NULL: nothing */
    int64_t charged;  /* the loop's: bytes of it that its account was charged for */
    int array;        /* items with the same number above 0 are the pieces of one array */
    uint64_t id;      /* given */
    int code;         /* of a refusal, else 0 */
    char *refusal;    /* the sentence, malloc'ed */
} st_submit_item;

typedef struct st_cmd_submit {
    st_cmd cmd;
    st_identity who;
    const char *key; /* of idempotency; NULL: none */
    unsigned char digest[32];
    st_submit_item *items;
    size_t n;
    /* The loop's: how far it is, how many were taken, the array it is in. */
    size_t at, taken;
    int array;
    uint64_t array_id;
    bool kept;     /* what was done so far is under its key */
    bool replayed; /* the key was used before for the same thing: items have their ids */
} st_cmd_submit;

/* Each item is taken or refused by itself; of a single one the refusal is the command's. */
void st_cmd_submit_init(st_cmd_submit *cmd);

typedef struct st_cmd_job {
    st_cmd cmd;
    st_identity who;
    uint64_t id;
    int priority;     /* of st_cmd_job_priority */
    int64_t limit_ms; /* of st_cmd_job_limit; ST_TIME_NEVER: none */
} st_cmd_job;

void st_cmd_job_cancel(st_cmd_job *cmd);
void st_cmd_job_priority(st_cmd_job *cmd);
/* Shorter by whoever may cancel it, longer by an admin above it. */
void st_cmd_job_limit(st_cmd_job *cmd);

/* The row as it is being committed, for use in `done`; false when it has to be read from the
 * store. Texts are good until `done` returns. */
bool st_control_row(st_control *ctl, uint64_t id, st_job_row *ret);

/* ---- accounts, fleet, tokens ------------------------------------------------------------- */

typedef struct st_cmd_account {
    st_cmd cmd;
    st_identity who;
    st_account_doc said;
    const char *name, *parent; /* of a new one; parent "" is the cluster */
    bool create;
    int64_t version;  /* given */
    st_strbuf floors; /* given: those that shrink with it and `who` sees, a list in JSON; to free */
    ST_VEC(int64_t) revoked;      /* of a removal: tokens that went with it; the caller's to free */
    char filed[ST_NAME_MAX + 32]; /* of a removal, given: the name its jobs and tokens have now */
} st_cmd_account;

void st_cmd_account_put(st_cmd_account *cmd);
/* What a change of an account would tell the core, if `who` may make it; for questions. Texts are those of `said`. */
int st_tx_account_change(st_tx *tx, const st_identity *who, const st_account_doc *said,
                         st_account_spec *ret, st_err *err);
/* The same of the command as it would be done, with the floors that would shrink; nothing is done. ST_EOVER: the
 * fleet cannot carry it, and it is not forced; the cuts are told all the same. */
int st_tx_account_try(st_tx *tx, st_cmd_account *cmd, st_account_spec *ret, st_err *err);
/* An account with nobody below it, no live jobs and nothing of its own: st_cmd_account.name. */
void st_cmd_account_remove(st_cmd_account *cmd);

/* What an account may have of stintd (control/allowance.h); what is not in `which` stays. */
typedef struct st_cmd_allowance {
    st_cmd cmd;
    st_identity who;
    const char *account;
    st_allowance_limits limits;
    bool which[ST_AL_COUNT];
} st_cmd_allowance;

void st_cmd_allowance_put(st_cmd_allowance *cmd);

/* A small document that is not the core's: a size, a rule. Those who use it hear of it in
 * `publish`. */
typedef struct st_cmd_thing {
    st_cmd cmd;
    st_identity who;
    const char *kind, *name, *account; /* account: whose it is, for the audit log */
    const char *doc;                   /* NULL: removed */
    bool counted;                      /* against the account's sizes */
    int64_t version;                   /* given, of what was put */
} st_cmd_thing;

void st_cmd_thing_put(st_cmd_thing *cmd);

/* One that is there, in the loop; ST_ENOENT. */
int st_tx_thing(st_tx *tx, const char *kind, const char *name, st_arena *arena, st_thing_row *ret,
                st_err *err);

/* Any single event of an admin, written to the audit log with its words. */
typedef struct st_cmd_event {
    st_cmd cmd;
    st_identity who;
    st_event event;
    const char *verb, *target, *detail;
    const char *reason; /* of a node's state, by who changes it; NULL: none */
} st_cmd_event;

void st_cmd_event_init(st_cmd_event *cmd);

/* Something that changes nothing in here and must be known all the same: a copy, an export. */
typedef struct st_cmd_note {
    st_cmd cmd;
    st_identity who;
    const char *verb, *account, *target, *detail;
} st_cmd_note;

void st_cmd_note_init(st_cmd_note *cmd);

/* Somebody at this address had a token that is none, or no more. From any thread. */
void st_control_refused(st_control *ctl, const char *address);

typedef struct st_cmd_token {
    st_cmd cmd;
    st_identity who;
    int64_t id; /* given, or of the one to revoke */
    const char *account, *user, *label;
    st_role role;
    int64_t expires_ms;       /* ST_STORE_NEVER */
    char text[ST_TOKEN_TEXT]; /* given: shown once */
    unsigned char hash[ST_TOKEN_HASH];
} st_cmd_token;

void st_cmd_token_make(st_cmd_token *cmd);
void st_cmd_token_revoke(st_cmd_token *cmd);
/* Only one that is revoked or has expired. */
void st_cmd_token_remove(st_cmd_token *cmd);

/* ---- machines that join ------------------------------------------------------------------- */

/* A token that lets machines become nodes. */
typedef struct st_cmd_join {
    st_cmd_token token; /* who, label and expires_ms are the caller's */
    const char *pool;   /* theirs; NULL: the first, which is named in `first` (malloc'ed) */
    char *first;
    int64_t uses;   /* how many machines may join with it */
    bool new_types; /* they may bring GPU types that are not known here */
    int (*make)(st_tx *tx, st_cmd *cmd, st_err *err);
} st_cmd_join;

void st_cmd_join_init(st_cmd_join *cmd);

/* An agent says who it is: a new node, or one that comes back. */
typedef struct st_cmd_register {
    st_cmd cmd;
    st_identity who;
    const char *machine; /* what tells the machine from all others */
    const char *key;     /* the node's, proved; NULL: an agent of the time before keys */
    const char *doc;     /* what it says of itself, JSON; kept */
    st_node_spec node;   /* without pool and type */
    const char *type;    /* of its GPUs; NULL: it has none */
    int64_t vram_mib;    /* of the type, if that is new here */
    st_board board;

    /* Given. */
    char refusal[400]; /* not "": it came back with other hardware, and was declared failed */
    bool created;
    int32_t id;
    char pool[ST_NAME_MAX + 1];
    int64_t revoked, at_ms;
} st_cmd_register;

void st_cmd_register_init(st_cmd_register *cmd);

/* An owner lets a machine join again under the name of a node, with a new key. */
typedef struct st_cmd_rejoin {
    st_cmd cmd;
    st_identity who;
    const char *node;

    int32_t id;
    int64_t revoked, at_ms;
} st_cmd_rejoin;

void st_cmd_rejoin_init(st_cmd_rejoin *cmd);

/* An owner removes a node that nobody is on, or a pool without nodes. */
typedef struct st_cmd_remove {
    st_cmd cmd;
    st_identity who;
    const char *name;
    bool force; /* of a node: although it has failed */

    int32_t id;
    int64_t revoked, at_ms;
} st_cmd_remove;

void st_cmd_node_remove(st_cmd_remove *cmd);
void st_cmd_pool_remove(st_cmd_remove *cmd);

/* ---- secrets (secrets.c) ------------------------------------------------------------------ */

typedef struct st_cmd_secret {
    st_cmd cmd;
    st_identity who;
    const char *account, *name;
    const void *value; /* NULL: removed */
    size_t n;
    bool below; /* jobs of accounts below may use it */

    /* Given. */
    bool created;
    st_strbuf sealed; /* the caller's to free */
    st_secret kept;
} st_cmd_secret;

void st_cmd_secret_init(st_cmd_secret *cmd);

/* Everything that is sealed, sealed under a new key: posted again and again until `over`. */
typedef struct st_cmd_rotate {
    st_cmd cmd;
    st_identity who;
    bool begun, over;
    int64_t before;    /* documents below this job are still to be done */
    int64_t documents; /* done */
    char key[ST_VAULT_KEY_ID];
} st_cmd_rotate;

void st_cmd_rotate_init(st_cmd_rotate *cmd);

st_vault *st_control_vault(st_control *ctl);
/* Writes the document as an agent needs it, with all its private parts, and behind it `,"secrets":[…]`; or an empty
 * one and `,"undeliverable":"why"`. From any thread. */
void st_control_dress(st_control *ctl, const char *account, const char *user, const char *doc,
                      st_strbuf *out);

/* ---- what engines report ------------------------------------------------------------------ */

/* Posts a report of the engine; called by the wiring that gives the engine its `report`. */
void st_control_report(st_control *ctl, const st_report *report);

/* Counters for metrics, read from any thread. */
typedef struct st_control_stats {
    uint64_t commits, commands, refused, effects, log_rows, snapshots, reloads;
    uint64_t passes;
    int64_t commit_us_sum, pass_us_sum;
    uint64_t live;
    uint64_t pruned_jobs, pruned_rows; /* of the table of jobs, and of the log */
    int64_t store_bytes;               /* on the disk, about a minute ago; -1: not known */
    int64_t entries;                   /* in all books */
    int64_t signed_ms;                 /* the last checkpoint's time; 0: none */
    int64_t differences; /* that the last daily comparison found; -1: it could not be done */
    bool ready;
} st_control_stats;
void st_control_stats_get(st_control *ctl, st_control_stats *ret);
/* What became of the jobs of one account, without those below it, since this stintd started; adds to *ret. */
void st_control_tally(st_control *ctl, int32_t account, st_job_counts *ret);

#endif
