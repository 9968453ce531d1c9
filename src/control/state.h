/*
 * The inside of the control loop. Private to src/control.
 */
#ifndef ST_CONTROL_STATE_H
#define ST_CONTROL_STATE_H

#include <jansson.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "control/control.h"
#include "control/follower.h"
#include "control/lanes.h"
#include "log/log.h"

/* What one task used, as last heard. */
typedef struct st_live_used {
    int stay, task;
    st_used used;
    st_scrub scrub;
    bool unmetered; /* the meter has not heard of it yet */
} st_live_used;

typedef struct st_billing st_billing;
typedef struct st_follower st_follower;
typedef struct st_outlooks st_outlooks;

/* What is known beside the core and the follower must know as well: a number and a text. */
typedef struct st_aside {
    int64_t n;
    char *text;
} st_aside;

typedef ST_VEC(st_aside) st_asides;

void st_asides_add(st_asides *list, int64_t n, const char *text);
void st_asides_done(st_asides *list);

/* What the documents of an array's pieces begin with, once for all of them. */
typedef struct st_array_head {
    char *text;
    uint64_t array;
    size_t pieces; /* live ones */
    bool fresh;    /* has no row yet */
} st_array_head;

/* What is known of a live job besides what the core has. */
typedef struct st_live {
    uint64_t id;
    size_t slot; /* in st_control.all */
    char *account, *user, *name;
    st_array_head *head; /* NULL: `doc` is the whole document */
    char *doc;
    int stay; /* how often it has started */
    int64_t submit_ms;
    int64_t start_ms; /* of its first start; ST_STORE_NEVER */
    int64_t end_ms;
    int64_t ran_ms,
        since_ms; /* on devices before, and since when it is on them now; -1: it is not */
    int64_t
        said_start_ms; /* when its engine says that its tasks had begun, in this stay; 0: it did not say */
    bool start_noted;    /* and the meter has heard of it */
    int64_t said_end_ms; /* when its engine says it ended; 0: it did not say */
    int64_t gpu_m, lost, part_of;
    int64_t limit_ms; /* as it was set last; 0: as its document says; ST_TIME_NEVER: none */
    int priority, preemptions, exit_code; /* exit_code ST_STORE_NEVER */
    st_job_state state;
    st_class class;
    char *reason;    /* why it ended as it did; NULL */
    char *detail;    /* where it is, JSON */
    char *left;      /* where it was before it had to wait again; NULL */
    int64_t charged; /* bytes its account is charged for while it waits; 0: it does not */
    ST_VEC(st_live_used) used;
    size_t used_next; /* where the next one is, if they are told in the same order again */
    ST_VEC(int) late; /* tasks of its last stay that turned out to have ended well */
    bool fresh;       /* has no row yet */
    bool dirty;       /* is in st_control.dirty */
} st_live;

/* Tokens that were refused and are not in the audit log yet. */
#define ST_REFUSALS_MAX 32 /* addresses that are told apart */

typedef struct st_refusals {
    struct {
        char address[64];
        uint64_t times;
    } row[ST_REFUSALS_MAX];
    size_t n;
    uint64_t others;
} st_refusals;

/* After a restore (restore.c). */
typedef struct st_restoring {
    int state;         /* st_restore_state; __atomic where others read it */
    bool clearing;     /* agents are being told what to end */
    int64_t branch;    /* the epoch of the last restore that was accepted; 0: there was none */
    int64_t marked_ms; /* when it was marked, by the machine's clock */
    char from[256];
} st_restoring;

/* When passes are run (pace.c). */
typedef struct st_pace {
    bool owed;        /* events were applied since the last pass */
    int64_t cost_us;  /* what a pass takes of a processor, about */
    int64_t took_us;  /* by the clock, the last one */
    int64_t ended_us; /* when that was over */
} st_pace;

struct st_control {
    st_control_options options;
    st_store *store;
    st_core *core;
    st_directory *dir;
    st_images *images;
    st_allowance *allowance;
    st_billing *billing;   /* control/billing.h */
    st_follower *follower; /* control/follower.h; NULL: nobody reads */
    st_outlooks *outlooks; /* control/outlook.h; likewise */
    st_vault *vault;
    unsigned char veil_key[16];
    int64_t epoch;
    int64_t epoch_next; /* asked for in a transaction; that of `epoch` once it is on the disk */
    st_restoring restoring;

    /* Of the loop alone. */
    st_idmap *live;        /* id -> st_live * */
    st_idmap *heads;       /* array -> st_array_head * */
    st_strbuf whole;       /* of st_live_doc */
    ST_VEC(st_live *) all; /* in no order */
    ST_VEC(st_live *) dirty;
    ST_VEC(st_node_word) words; /* of this transaction, for those who listen */
    ST_VEC(st_live *) over;     /* ended in this transaction: known until it is settled */
    uint64_t last_id;
    uint64_t last_booking;
    int64_t log_seq, snap_seq;
    int64_t last_ms; /* of all that was written or read; a part of st_control_last_ms */
    bool parted;     /* rows of another version led elsewhere when they were played */
    st_pace pace;
    int64_t replay_us; /* what the core has cost since the snapshot, and would again at a start */
    uint64_t notice_seq;
    int64_t flushed_ms;  /* when uses of tokens were last written */
    int64_t retry_ms;    /* while down: when to try again */
    int64_t retry_step;  /* and how long the pause after that is */
    int64_t prune_ms;    /* when to look again for what is too old */
    int64_t snap_ms;     /* when the last snapshot was written, or it started */
    int64_t refusals_ms; /* when refused tokens were last written */
    st_map *versions;    /* versions.c */
    int64_t edited_ms;   /* the last version that was given out */
    int64_t last_token;
    size_t allowed_accounts; /* of the core's, that are known to `allowance` */
    st_control_stats count;  /* published to `stats` after each turn */

    /* Shared. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    st_lanes *lanes;
    bool stopping, started, stopped;
    st_refusals refusals;
    bool down;
    st_err down_why;
    st_control_stats stats;
    st_tallies *tallies; /* with a lock of its own */
    pthread_t thread;
};

/* One transaction: the commands that were taken together. */
struct st_tx {
    st_control *ctl;
    int64_t now;
    st_effects fx;
    st_strbuf log;          /* the events that were accepted */
    st_notes notes;         /* and what the meter must know beside them */
    st_strbuf posted;       /* entries of the books, each with a NUL behind it */
    st_asides versions;     /* of what was edited */
    st_asides docs;         /* of new jobs, by id */
    ST_VEC(st_report) late; /* what tasks of jobs that are over used */
    int applied;
    bool pays;       /* runs the pass, however long */
    bool later;      /* leaves the pass to a later one */
    bool branches;   /* it is the one that ends a restore */
    bool begin, cut; /* metering begins, or all its intervals end, here */
    bool open;       /* the store is in a transaction */
    bool names;      /* accounts, types, pools or nodes may have changed */
    bool broken;     /* the store failed: nothing of this may stay */
    st_err fault;
};

/* load.c: from the store to a core that goes on. */
/* What playing rows of a log needs from row to row; its effects and notes are those of the last. */
typedef struct st_replay {
    st_arena *arena;
    st_effects fx;
    st_notes notes;
} st_replay;

/* Plays one row into core and meter. `strict`: an event that is refused is an error. */
int st_replay_play(st_control *ctl, st_replay *rp, const st_log_row *row, bool strict, st_err *err);
void st_replay_done(st_replay *rp);
int st_control_load(st_control *ctl, st_err *err);
void st_control_unload(st_control *ctl);
/* For looking at a store without changing it: nothing is loaded yet. Nobody is told anything. */
int st_control_open_copy(st_store *store, st_control **ret, st_err *err);
void st_control_free_copy(st_control *ctl);
ST_DEFINE_FREEP(st_control, st_control_free_copy)

/* pace.c: a pass that has become long comes behind the answers. */
bool st_pace_due(const st_control *ctl,
                 bool last); /* what is owed is to be paid now; last: whatever the time */
int64_t st_pace_wait_ms(const st_control *ctl); /* until then */
void st_pace_pass(st_tx *tx); /* the pass for what was applied, or the note that it comes later */

/* rows.c: what a transaction changed, as rows; and afterwards, as orders and notices. */
st_live *st_control_live(const st_control *ctl, uint64_t id);
st_live *st_control_known(const st_control *ctl, uint64_t id); /* also if it has just ended */
void st_control_touch(st_control *ctl, st_live *live);
void st_control_add_live(st_control *ctl, st_live *live);
void st_control_drop_live(st_control *ctl, st_live *live);
/* The head of an array, made when it is first asked for; NULL for a text of NULL. */
st_array_head *st_control_head(st_control *ctl, uint64_t array, const char *text);
/* A job's document. Good until the next call. */
const char *st_live_doc(st_control *ctl, const st_live *live);
/* With the whole document; good as long as that. */
void st_live_row(st_control *ctl, const st_live *live, st_job_row *ret);
/* As it is written: of a piece, its own part of the document. */
void st_live_row_own(const st_live *live, st_job_row *ret);
/* Where it is, as the core has it: another place is another stay. */
void st_live_place(st_control *ctl, st_live *live);
int st_rows_write(st_tx *tx, st_err *err);
void st_rows_tell(st_tx *tx);
void st_rows_settle(st_control *ctl); /* forget what ended */
void st_control_order_all(st_control *ctl);
/* The time limit is another one: for its row, and, after the commit, for its engine. */
void st_live_limit(st_live *live, int64_t limit_ms);
void st_control_retime(st_control *ctl, uint64_t id);

/* allowed.c: what jobs, accounts and tokens are charged for. */
/* The item and, if it is the first piece of an array, all of them; refused: none. */
int st_charge_items(st_tx *tx, st_submit_item *items, size_t n, const st_identity *who,
                    st_err *err);
void st_uncharge_item(st_control *ctl, const st_submit_item *item);
/* Whether the job waits may have changed. */
void st_live_charge(st_control *ctl, st_live *live);
int st_charge_token(st_tx *tx, const st_identity *who, const char *account, st_err *err);
int st_charge_account(st_tx *tx, const st_identity *who, const char *parent, st_err *err);
void st_uncharge_account(st_tx *tx, const char *parent);
/* Who pays for what an account has: itself, or the next above it that is there. */
const char *st_payer(st_control *ctl, const char *account);
void st_count_tokens(st_control *ctl, int64_t now);
/* The account goes: who has its name next has none of its limits. */
int st_unlimit_account(st_tx *tx, const char *account, st_err *err);
/* Accounts that are new in the core. */
void st_count_accounts(st_control *ctl);
int st_allowed_load(st_control *ctl, st_err *err);

/* used.c: a report of what a task used, and what is kept of it when the job ends. */
void st_control_used(st_tx *tx, const st_report *report);
/* What came for jobs that are over goes into their rows; at the end of a transaction. */
void st_control_used_late(st_tx *tx);
void st_live_used_write(st_live *live);
/* As the meter wants it. */
void st_sums_of(const st_used *used, st_sums *ret);

/* bookings.c: what an effect means for the record of a booking; and the last number that was given out. */
int st_booking_follow(st_tx *tx, const st_effect *fx, st_err *err);
/* Whether a job may run in its booking: it is its account's, or of one above it. Others' are not there. */
int st_booking_admit(const st_tx *tx, const st_job_spec *spec, st_err *err);
int st_bookings_load(st_control *ctl, st_err *err);

/* versions.c: kind NULL is an account's, a count; others are of "pool", "node", "plan", "size", "image", "rule". */
int64_t st_control_version(const st_control *ctl, const char *kind, const char *name);
void st_version_set(st_tx *tx, const char *kind, const char *name, int64_t version);
int64_t st_version_next(st_tx *tx);
/* A plan, pool or node was edited, or is gone. */
int st_version_edit(st_tx *tx, const char *kind, const char *name, st_err *err);
int st_version_forget(st_tx *tx, const char *kind, const char *name, st_err *err);
int st_version_event(st_tx *tx, const st_event *event, st_err *err);
int st_versions_load(st_control *ctl, st_err *err);
void st_versions_tell(const st_control *ctl, st_asides *ret);

/* nodes.c: what is kept of nodes beside the core. */
void st_control_tell_node(st_control *ctl, int32_t id);
void st_control_tell_nodes(st_control *ctl);
/* Who took the node out, and why; gone when it is ready again. */
int st_node_say(st_tx *tx, int32_t id, const char *by, const char *reason, st_err *err);
/* Whether there is such a word. */
bool st_node_word_of(st_store *store, const char *node, st_node_word *ret);
void st_node_fault(st_store *store, const char *node, st_strbuf *out);
void st_node_flags(st_store *store, const char *node, st_flag_fn fn, void *ctx);
void st_node_key(st_store *store, const char *node, char ret[ST_KEY_TEXT], bool *ret_rejoin);
/* Tells the core, once, that the node has an agent. */
int st_node_has_agent(st_tx *tx, int32_t id, st_err *err);
void st_control_know_agents(st_control *ctl);
/* Writes the epoch if it is still this stintd's; ST_ESTATE: another one decides since. */
int st_epoch_hold(st_control *ctl, st_err *err);
/* A higher one, in the open transaction; and what follows its commit. */
int st_epoch_take(st_control *ctl, int64_t epoch, st_err *err);
void st_epoch_taken(st_control *ctl);
/* A fact about the store, in a transaction of its own; at starts. */
int st_meta_keep(st_store *store, const char *key, const char *value, st_err *err);
/* control/engines.c. Completes what a pool says of its engine, or refuses it. */
int st_pool_engine(const st_control *ctl, st_event *event, st_err *err);
/* Whether nodes come into the pool in this way. */
int st_pool_takes(const st_control *ctl, int32_t pool, st_engine_nodes nodes, st_err *err);
int st_node_found(st_tx *tx, const st_report *rep, st_err *err);
/* After a start: pools have what their engines can do today. */
void st_control_follow_engines(st_control *ctl);
/* All orders have been given; not while a restored store is looked at. */
void st_control_complete(const st_control *ctl);
int st_node_fail(st_tx *tx, int32_t id, const char *reason, st_err *err);
int st_node_heal(st_tx *tx, int32_t id, st_err *err);
/* What an engine says of a node: failed, held (draining) or well again. */
int st_node_report(st_tx *tx, const st_report *report, st_err *err);
/* A person decides about the node from here on. */
int st_node_unfault(st_tx *tx, int32_t id, bool ready, st_err *err);
int st_node_set(st_tx *tx, int32_t id, st_node_state state, st_err *err);
/* A report of what is wrong with what a node says; *ret_new: it was not known. */
int st_node_flag(st_tx *tx, const st_report *rep, bool *ret_new, st_err *err);
/* Revokes the token of the time before keys, if there is one. */
int st_node_drop_token(st_tx *tx, int64_t *ret_revoked, int64_t token, st_err *err);
/* Things as JSON: written over whatever version there is (takes doc), read (NULL: there is none, or *ret_r says
 * why), removed if there. */
int st_thing_write(st_tx *tx, const char *kind, const char *name, json_t *doc, st_err *err);
/* One without a document, that says when. */
int st_thing_stamp(st_tx *tx, const char *kind, const char *name, int64_t at_ms, st_err *err);
json_t *st_thing_json(st_store *store, const char *kind, const char *name, int *ret_r, st_err *err);
int st_thing_erase(st_tx *tx, const char *kind, const char *name, st_err *err);

/* meta: the highest number a token ever had, once one was removed. */
#define ST_LAST_TOKEN "last_token"

/* parted.c: after such rows. The core and the table of jobs agree again; then, with the jobs loaded, their rows, the meter
 * and a snapshot. */
int st_parted_settle(st_control *ctl, st_err *err);
int st_parted_end(st_control *ctl, st_err *err);

/* restore.c. What the store says of it, before anything else is made of it: numbers that may not come back. */
int st_restoring_load(st_control *ctl, st_err *err);
/* The lowest epoch that agents can take for a new one. */
int64_t st_restoring_epoch(const st_control *ctl);
/* The engine is told how much it may say; after its nodes and jobs. */
void st_restoring_lead(st_control *ctl);
/* Whether a change is to be refused for now. */
int st_restoring_check(const st_control *ctl, st_err *err);
/* One look at how far agents are; true: all is clear, and `tx` has to be written. */
bool st_restoring_step(st_tx *tx);
/* `tx` is written. */
void st_restoring_end(st_control *ctl);
/* Another job at this moment would be more than can be told from those of a lost history. */
int st_restoring_room(const st_tx *tx, st_err *err);

/* prune.c: what is too old goes, a little at a time. */
void st_prune(st_tx *tx);

/* refusals.c */
int64_t st_refusals_next(st_control *ctl, int64_t now);
void st_refusals_write(st_tx *tx);

/* secrets.c: the key and what is sealed under it; what is not, is sealed first. */
int st_secrets_open(st_control *ctl, st_err *err);

/* ---- keyed.c: idempotency keys, counted at the account of the token they came with -------------------- */

int st_key_charge(st_tx *tx, const char *owner, int64_t n, st_err *err);
/* Counts them anew: some have expired. */
int st_count_keys(st_control *ctl, st_err *err);

/* ---- stands.c --------------------------------------------------------------------------------- */

/* Where a row of this account stands, in the middle of a transaction. */
void st_stands_of(const st_control *ctl, const char *account, st_stands *ret);
/* Of rows from before there was this; once in the life of a store. */
int st_stands_load(st_control *ctl, st_err *err);
/* Tokens of accounts that were removed before tokens were filed (stands.c). */
int st_tokens_filed(st_control *ctl, st_err *err);

/* follower.c: a job is new. */
void st_tx_tell_job(st_tx *tx, const st_live *live);

/* keyed.c: runs it, unless it was done under its key before. */
int st_cmd_run(st_tx *tx, st_cmd *cmd, st_err *err);

/* tx.c */
int st_tx_open(st_tx *tx, st_err *err);
/* For helpers that return a fault of the store: remembers it and passes it on. */
int st_tx_fault(st_tx *tx, int r, const st_err *err);

/* loop.c */
int st_control_snapshot(st_control *ctl, st_err *err);
void st_control_say(st_control *ctl, const char *fmt, ...) ST_PRINTF(2, 3);

/* One sentence for accounts that are not there and for those that are not the caller's to know. */
int st_no_account(const char *name, st_err *err);
/* Whether the account is there at this moment of the transaction, and `above` or below it. The directory, which has
 * what was committed, must not be asked in a command: what came before it in the same transaction may have removed
 * the account, and given its name to others. */
bool st_tx_within(const st_tx *tx, const char *account, const char *above);
/* The same for what is in a row: of an account that is gone too, which goes by a name with a blank then. */
bool st_tx_sees(const st_tx *tx, const char *account, const char *above);
/* Whether a token opens something, and its account is still the one it was made for. */
bool st_tx_is_still(const st_tx *tx, int64_t token);

#endif
