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

#include "core/core.h"
#include "engine/engine.h"
#include "health/health.h"
#include "state/allowance.h"
#include "state/classes.h"
#include "state/command.h"
#include "state/directory.h"
#include "state/images.h"
#include "state/tally.h"
#include "state/volumes.h"
#include "store/store.h"
#include "vault/vault.h"

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
/* Which days' costs are unusual, from now on. In the loop's thread, as a command's publish is. */
void st_control_set_anomaly(st_control *ctl, const st_anomaly_options *options);
/* The last moment in the store: time goes on from there, whatever the clock says. Before the start, or in the
 * loop. */
int64_t st_control_last_ms(const st_control *ctl);
/* The time, as the next transaction and the next question have it; from any thread. It is the clock's, or a moment later where
 * something was said to be in force from then on. */
int64_t st_control_now(const st_control *ctl);
/* What the store says of stintd's time against the machine's uptime. Before the start, or in the loop. */
const st_clock_mark *st_control_mark(const st_control *ctl);
/* The thread. Nothing happens before. */
int st_control_start(st_control *ctl, st_err *err);
/* Answers what waits, writes a snapshot, ends the thread. */
void st_control_stop(st_control *ctl);
void st_control_free(st_control *ctl);

st_directory *st_control_directory(st_control *ctl);
st_images *st_control_images(st_control *ctl);
st_volumes *st_control_volumes(st_control *ctl);
st_classes *st_control_classes(st_control *ctl);
st_allowance *st_control_allowance(st_control *ctl);
st_store *st_control_store(st_control *ctl); /* for opening readers */
st_engine *st_control_engine(st_control *ctl);
/* Whether commands are taken; if not, why. */
bool st_control_ready(st_control *ctl, st_err *why);

/* ---- commands --------------------------------------------------------------------------- */

/* A token's, or the local socket's. */
void st_cmd_key_owner(const st_identity *who, char ret[32]);
/* In the loop's thread, inside `done`: the answer of a command that was done, for those who ask again. Elsewhere nothing is
 * kept: a repeat is told that it was done. */
void st_cmd_key_keep(st_control *ctl, const st_cmd_key *key, const char *answer);
/* There too: what came behind the command failed, so the key may be used again. */
void st_cmd_key_drop(st_control *ctl, const st_cmd_key *key);

/* From any thread. False when the loop has stopped or too many wait: the caller answers. */
bool st_control_post(st_control *ctl, st_cmd *cmd);

/* ---- jobs ------------------------------------------------------------------------------- */

/* What a job is to wait for, as it was written. */
typedef struct st_after_ask {
    uint64_t id; /* 0: the text is no id */
    const char *text;
    st_after_how how;
    bool only; /* that job, and not the array that goes by its name */
    bool each; /* yet to be made one of an array for each of another */
} st_after_ask;

typedef struct st_submit_item {
    st_job_spec spec; /* without id */
    const char *doc;  /* the job's document, JSON; kept */
    const char *head; /* of an array's pieces: what stands before each one's `doc`; NULL: nothing */
    const st_after_ask *afters; /* the same list for all pieces that wait for the same */
    int nafters;
    int64_t charged; /* the loop's: bytes of it that its account was charged for */
    int array;       /* items with the same number above 0 are the pieces of one array */
    uint64_t id;     /* given */
    int code;        /* of a refusal, else 0 */
    char *refusal;   /* the sentence, malloc'ed */
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
    const st_after_ask *looked_up; /* what these were found for */
    st_await afters[ST_AFTER_MAX];
    int nafters;
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
    bool hold;        /* of st_cmd_job_hold: or it is released */
    int throttle;     /* of st_cmd_array_throttle, where `id` is the array; 0: none */
} st_cmd_job;

void st_cmd_job_cancel(st_cmd_job *cmd);
void st_cmd_job_priority(st_cmd_job *cmd);
/* Shorter by whoever may cancel it, longer by an admin above it. */
void st_cmd_job_limit(st_cmd_job *cmd);
void st_cmd_job_hold(st_cmd_job *cmd);
void st_cmd_array_throttle(st_cmd_job *cmd);

/* Somebody goes into a job that runs: by whom it may be cancelled it may be entered; who sees it may watch it. It changes
 * nothing but the audit log. */
typedef struct st_cmd_tunnel {
    st_cmd cmd;
    st_identity who;
    uint64_t job;
    bool watches; /* and nothing else */
    const char *verb, *detail;
    char account[ST_NAME_MAX + 1]; /* given: the job's */
} st_cmd_tunnel;

void st_cmd_tunnel_init(st_cmd_tunnel *cmd);

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

/* What an account may have of stintd (state/allowance.h); what is not in `which` stays. */
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
typedef struct st_cmd_document {
    st_cmd cmd;
    st_identity who;
    const char *kind, *name, *account; /* account: whose it is, for the audit log */
    const char *doc;                   /* NULL: removed */
    bool counted;                      /* against the account's sizes */
    int64_t version;                   /* given, of what was put */
} st_cmd_document;

void st_cmd_document_put(st_cmd_document *cmd);

/* One that is there, in the loop; ST_ENOENT. */
int st_tx_document(st_tx *tx, const char *kind, const char *name, st_arena *arena,
                   st_document_row *ret, st_err *err);

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

/* A saved view of whoever calls: put, or with page NULL removed. */
#define ST_VIEWS_MAX 50 /* of one person */
#define ST_VIEW_KEY  (2 * ST_NAME_MAX + 2)
typedef struct st_cmd_view {
    st_cmd cmd;
    st_identity who;
    const char *name, *page, *query;
} st_cmd_view;

void st_cmd_view_init(st_cmd_view *cmd);
/* Under which name the store has somebody's views (kind "view"). */
void st_view_key(const st_identity *who, char ret[ST_VIEW_KEY]);

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

/* What owners add to the labels of a node, or take away again. */
typedef struct st_cmd_labels {
    st_cmd cmd;
    st_identity who;
    const char *node;
    const json_t *set;    /* {NAME: VALUE}, or NULL */
    const json_t *remove; /* [NAME], or NULL */
    bool force;           /* although bookings lose their place */
} st_cmd_labels;

void st_cmd_labels_init(st_cmd_labels *cmd);

/* An owner has a node tested. */
typedef struct st_cmd_trial {
    st_cmd cmd;
    st_identity who;
    const char *node;
    st_test_level level;
    bool force; /* although bookings lose their place meanwhile */
} st_cmd_trial;

void st_cmd_trial_init(st_cmd_trial *cmd);

/* An owner changes what GPUs of a type must reach in tests. */
typedef struct st_cmd_limits {
    st_cmd cmd;
    st_identity who;
    const char *type;
    const json_t *set; /* {LIMIT: number, or null: as it was} */
} st_cmd_limits;

void st_cmd_limits_init(st_cmd_limits *cmd);

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

/* ---- volumes (volumes.c) ------------------------------------------------------------------- */

typedef struct st_cmd_volume {
    st_cmd cmd;
    st_identity who;
    st_volume
        volume; /* account and name; of one that is made also id and size. Afterwards as it is, or was */
    bool make; /* refused where it is there */
    bool remove;
    bool below, about; /* they are said */
} st_cmd_volume;

void st_cmd_volume_init(st_cmd_volume *cmd);

/* ---- what engines report ------------------------------------------------------------------ */

/* Posts a report of the engine; called by the wiring that gives the engine its `report`. */
void st_control_report(st_control *ctl, const st_report *report);

/* From any thread. */
void st_control_stats_get(st_control *ctl, st_control_stats *ret);
/* What became of the jobs of one account, without those below it, since this stintd started; adds to *ret. */
void st_control_tally(st_control *ctl, int32_t account, st_job_counts *ret);

#endif
