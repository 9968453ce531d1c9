/*
 * What the loop holds, between transactions and within one: the core and the store, live jobs, versions, who may. For
 * what runs in the loop alone (billing, control).
 */
#ifndef ST_STATE_STATE_H
#define ST_STATE_STATE_H

#include <jansson.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "log/log.h"
#include "meter/meter.h"
#include "state/classes.h"
#include "state/command.h"
#include "state/images.h"
#include "state/lanes.h"
#include "state/tally.h"
#include "state/volumes.h"
#include "vault/vault.h"

#define ST_RESTORE_TABLE(X)          \
    X(ST_RESTORE_NONE, "none")       \
    X(ST_RESTORE_WAITING, "waiting") \
    X(ST_RESTORE_ACCEPTED, "accepted")
typedef enum st_restore_state {
#define X(id, word) id,
    ST_RESTORE_TABLE(X)
#undef X
} st_restore_state;

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
typedef struct st_series_thread st_series_thread;
typedef struct st_noticers st_noticers;

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
    int64_t by_ms;      /* its deadline; 0: none */
    bool hard, at_risk; /* it was promised; and what was kept for it has no place now */
    bool risk_told;     /* and its people have heard of that */
    int held_by;        /* who holds it back (core/hold.c); 0: nobody */
    int tries;          /* how often it has been tried again, */
    int64_t retry_ms;   /* and when the last of these may start */
    int64_t limit_ms;   /* as it was set last; 0: as its document says; ST_TIME_NEVER: none */
    int priority, preemptions, exit_code; /* exit_code ST_STORE_NEVER */
    uint64_t booking;                     /* that it has last run in; 0: none is known */
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
    st_volumes *volumes;
    st_classes *classes;
    st_allowance *allowance;
    st_billing *billing;          /* billing/billing.h */
    st_follower *follower;        /* control/follower.h; NULL: nobody reads */
    st_outlooks *outlooks;        /* control/outlook.h; likewise */
    st_series_thread *series;     /* control/series.h; NULL: nothing is gathered */
    struct st_services *services; /* control/services.h */
    st_noticers *notices;         /* control/notices.h; NULL: nobody is told anything */
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
    ST_VEC(st_live *) over; /* ended in this transaction: known until it is forgotten */
    uint64_t last_id;
    uint64_t last_booking;
    /* control/prepare.c: bookings with an image; those of which something new is known; nodes that were told of images. */
    ST_VEC(uint64_t) imaged;
    ST_VEC(uint64_t) image_news;
    ST_VEC(int32_t) image_nodes;
    int64_t prepare_ms; /* when to look again */
    st_clock_mark mark; /* the last that was written */
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
    int64_t word_ms; /* atomic; time does not go behind it, see st_control_now */
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
    int64_t in_force_ms;    /* from when on something that was said is so; 0: nothing was */
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

/* live.c */
st_live *st_control_live(const st_control *ctl, uint64_t id);
st_live *st_control_known(const st_control *ctl, uint64_t id); /* also if it has just ended */
/* A job's document. Good until the next call. */
const char *st_live_doc(st_control *ctl, const st_live *live);
/* What a task used, as the meter wants it. */
void st_sums_of(const st_used *used, st_sums *ret);

/* documents.c */
/* Documents as JSON: written over whatever version there is (takes doc), read (NULL: there is none, or *ret_r says
 * why), removed if there. */
int st_document_write(st_tx *tx, const char *kind, const char *name, json_t *doc, st_err *err);
/* One without a document, that says when. */
int st_document_stamp(st_tx *tx, const char *kind, const char *name, int64_t at_ms, st_err *err);
json_t *st_document_json(st_store *store, const char *kind, const char *name, int *ret_r,
                         st_err *err);
int st_document_erase(st_tx *tx, const char *kind, const char *name, st_err *err);

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

/* ---- stands.c --------------------------------------------------------------------------------- */

/* Where a row of this account stands, in the middle of a transaction. */
void st_stands_of(const st_control *ctl, const char *account, st_stands *ret);
/* Of rows from before there was this; once in the life of a store. */
int st_stands_load(st_control *ctl, st_err *err);
/* Tokens of accounts that were removed before tokens were filed (stands.c). */
int st_tokens_filed(st_control *ctl, st_err *err);

/* tx.c */
int st_tx_open(st_tx *tx, st_err *err);
/* For helpers that return a fault of the store: remembers it and passes it on. */
int st_tx_fault(st_tx *tx, int r, const st_err *err);
/* A fact about the store, in a transaction of its own; at starts. */
int st_meta_keep(st_store *store, const char *key, const char *value, st_err *err);
/* Whether a change is to be refused for now: the store was restored (control/restore.h). */
int st_restoring_check(const st_control *ctl, st_err *err);
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
