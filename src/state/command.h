/*
 * What everybody who hands the loop something to do needs: commands, what they may do in a transaction, what listeners
 * hear, the options of the loop, and how numbers are called outside.
 */
#ifndef ST_STATE_COMMAND_H
#define ST_STATE_COMMAND_H

#include "core/core.h"
#include "engine/engine.h"
#include "state/allowance.h"
#include "state/directory.h"
#include "store/store.h"

typedef struct st_control st_control;
typedef struct st_tx st_tx;
typedef struct st_cmd st_cmd;

struct st_outgoing; /* control/notices.h */

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
    const char *
        kind; /* an effect's name, "budget", "cap", "anomaly", "incident", "data", "deadline" or "neighbour" */
    const char *state; /* the job's, afterwards; NULL without one */
    const char *name;  /* of the job, node or account */
    const char *
        grants; /* of a job that comes onto devices or leaves them: which, JSON; NULL: none, or too many */
    const char *deadline; /* of "deadline" alone: how it stands now */
    const char *node;     /* of "drain": the node that drains; NULL: of anything else */
    const char *then;     /* ... and what becomes of the job when its time is up */
    const char *reason;   /* of a job's end, of "data" and "neighbour": why; NULL: nothing to say */
    const st_effect *fx;  /* never NULL; of "budget" it says nothing */
    const st_notice_budget *budget;   /* of "budget" alone */
    const st_notice_cap *cap;         /* of "cap" alone */
    const st_notice_anomaly *anomaly; /* of "anomaly" alone */
    struct {
        const char *flag, *reason;
        uint64_t id; /* of an incident of nodes; then `state` is what is new */
        st_fault kind;
    } incident; /* of "incident" alone: something is wrong with nodes, or with what one says */
    const st_node_note *word; /* of a node that was taken out; NULL: none */
} st_notice;

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

/* stintd's time against how long the machine has been up. */
typedef struct st_clock_mark {
    char boot[64];    /* which run of the machine; "": not known */
    int64_t ahead_ms; /* our time less its uptime */
} st_clock_mark;

/* Figures over time (control/series.h). */
#define ST_SERIES_TIERS 3 /* widths there are: a step, ten of it, sixty of it */
typedef struct st_series_options {
    int64_t step_ms;                  /* width of the narrowest buckets; 0: none are kept */
    int64_t keep_ms[ST_SERIES_TIERS]; /* how long each width is kept */
} st_series_options;

typedef struct st_control_options {
    const char *store;
    st_store_options store_options;
    st_policy policy;
    int64_t (*clock)(void *ctx);                       /* ms since the epoch, UTC */
    bool (*clock_mark)(void *ctx, st_clock_mark *ret); /* false: not known; may be NULL */
    void (*log)(void *ctx, const char *line);          /* key=value, without time */
    void (*listen)(void *ctx,
                   const st_notice *n); /* from the loop, after the commit; may be NULL */
    void (*deliver)(void *ctx,
                    const struct st_outgoing *o); /* likewise: a delivery (control/notices.h) */
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
    st_series_options series;
    int64_t tell_ms; /* how often those who wait are told an estimate; 0: a minute */
    st_billing_options billing;
    const char *secrets_key; /* the file of the key that seals; NULL: beside the store */
} st_control_options;

/* ---- commands --------------------------------------------------------------------------- */

/* Whose turn a command uses (state/lanes.h): an organisation's, by st_directory_org, 0 the cluster's own; or
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
    uint64_t number; /* in the order in which all came */
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
/* For use inside `run`. */
st_core *st_tx_core(st_tx *tx);
int64_t st_tx_now(const st_tx *tx);
/* Gives the core an event; refused ones leave no trace, accepted ones are in the log. */
int st_tx_apply(st_tx *tx, const st_event *event, st_err *err);
/* Which edit of a thing is the last; 0: there was none. See state/versions.c for kinds; NULL is an account, by how
 * often it was changed. Here and in questions to the follower. */
int64_t st_tx_version(const st_tx *tx, const char *kind, const char *name);
/* A row of the audit chain. */
int st_tx_audit(st_tx *tx, const st_identity *who, const char *verb, const char *account,
                const char *target, const char *detail, st_err *err);

/* ---- names of numbers ------------------------------------------------------------------- */

/* What people call a job: a permuted number, so that ids do not tell how many there are. Other
 * counters that go outside (tokens, events, audit rows) get a letter of their own. */
#define ST_ID_TEXT     16
#define ST_BOOKING_ID  'b' /* the kind of bookings */
#define ST_INCIDENT_ID 'n' /* of incidents */
void st_control_name(const st_control *ctl, char kind, uint64_t id, char ret[ST_ID_TEXT]);
bool st_control_named(const st_control *ctl, char kind, const char *text, uint64_t *ret);
void st_control_id_text(const st_control *ctl, uint64_t id, char ret[ST_ID_TEXT]);
bool st_control_id_parse(const st_control *ctl, const char *text, uint64_t *ret);

/* A position as it goes outside: a number would tell how much others do, so it is veiled, each time in another way. */
#define ST_POSITION_TEXT 16
void st_control_position_text(const st_control *ctl, int64_t position, char ret[ST_POSITION_TEXT]);
bool st_control_position_parse(const st_control *ctl, const char *text, int64_t *ret);

/* ---- counters --------------------------------------------------------------------------- */

/* Counters for metrics. */
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

#endif
