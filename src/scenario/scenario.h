/*
 * Scenarios: a fleet, a tree of accounts and a timeline in one document, with
 * what is expected to come of it. `stint sim run` plays them through the very
 * core stintd runs; doc/reference/scenarios.md describes every key.
 *
 * A scenario is read once and checked as far as it can be without a core; it
 * points into its document, which must outlive it. Playing it changes nothing
 * in it.
 */
#ifndef ST_SCENARIO_SCENARIO_H
#define ST_SCENARIO_SCENARIO_H

#include "base/arena.h"
#include "base/doc.h"
#include "base/map.h"
#include "base/vec.h"
#include "calendar/recur.h"
#include "check/check.h"
#include "core/core.h"
#include "spec/spec.h"

#define ST_SCN_JOBS_MAX  100000
#define ST_SCN_STEPS_MAX 1000000

typedef struct st_scn_type {
    st_type_doc doc;
    int line; /* 0: built in */
} st_scn_type;

typedef struct st_scn_pool {
    st_pool_doc doc;
    int line;
} st_scn_pool;

typedef struct st_scn_node {
    st_node_spec spec;
    const char *labels; /* NULL: none */
    int line;
} st_scn_node;

typedef struct st_scn_job {
    st_job_spec spec;
    int64_t run_ms;         /* it ends by itself after this much; ST_TIME_NEVER: it does not */
    int64_t checkpoint_ms;  /* how long it takes to save its work */
    bool array;             /* the jobs of its `count` are an array */
    int64_t stop_ms;        /* and, told to stop, until its agents say that it is gone */
    const char *impossible; /* a profile none of its types has: refused with this sentence */
    int line;
} st_scn_job;

/* What a timeline may do. */
#define ST_SCN_DO_TABLE(X)                \
    X(ST_DO_SUBMIT, "submit")             \
    X(ST_DO_FINISH, "finish")             \
    X(ST_DO_FAIL, "fail")                 \
    X(ST_DO_CANCEL, "cancel")             \
    X(ST_DO_CHECKPOINTED, "checkpointed") \
    X(ST_DO_NODE, "node")                 \
    X(ST_DO_ACCOUNT, "account")           \
    X(ST_DO_PRIORITY, "priority")         \
    X(ST_DO_GONE, "gone")                 \
    X(ST_DO_AGENT, "agent")               \
    X(ST_DO_LIMIT, "limit")               \
    X(ST_DO_BOOK, "book")                 \
    X(ST_DO_UNBOOK, "unbook")             \
    X(ST_DO_LABELS, "labels")             \
    X(ST_DO_CLOCKS, "clocks")             \
    X(ST_DO_TESTER, "tester")             \
    X(ST_DO_TESTED, "tested")             \
    X(ST_DO_FAULT, "fault")               \
    X(ST_DO_HEALED, "healed")             \
    X(ST_DO_RESET, "reset")               \
    X(ST_DO_HOLD, "hold")                 \
    X(ST_DO_RELEASE, "release")           \
    X(ST_DO_THROTTLE, "throttle")

typedef enum st_scn_do {
#define X(id, name) id,
    ST_SCN_DO_TABLE(X)
#undef X
        ST_DO_COUNT
} st_scn_do;

const char *st_scn_do_name(st_scn_do kind);

#define ST_SCN_WINDOWS_MAX 1000

/* A booking, or a series of them with numbers that follow. */
typedef struct st_scn_book {
    uint64_t id;
    st_booking_spec spec;
    st_window *windows;
    st_wall *walls; /* one of each window, as the clock of the zone shows it; NULL: moments */
    int zone;       /* of those: index */
    int n;
} st_scn_book;

typedef struct st_scn_action {
    st_scn_do kind;
    int line;
    int64_t at_ms;
    int64_t job;         /* index; -1: a job that does not exist */
    int32_t node;        /* id; -1: a node that does not exist */
    st_node_state state; /* of ST_DO_NODE */
    int64_t within_ms;   /* of one that drains: how long its jobs have; 0: as long as they want */
    st_drain_then then;  /* ... and what becomes of them */
    int priority;        /* of ST_DO_PRIORITY */
    int64_t limit_ms;    /* of ST_DO_LIMIT; ST_TIME_NEVER: none */
    st_account_doc *account; /* of ST_DO_ACCOUNT */
    const st_scn_book *book; /* of ST_DO_BOOK */
    uint64_t booking;        /* of ST_DO_UNBOOK */
    int zone;                /* of ST_DO_CLOCKS: index */
    const st_tz *clock;      /* of ST_DO_CLOCKS: as it goes from now on */
    const char *labels;      /* of ST_DO_LABELS: all of them */
    bool force;              /* of ST_DO_LABELS: although bookings lose their place */
    st_finding finding;      /* of ST_DO_FAULT and TESTED */
    int part;                /* of ST_DO_NODE, FAULT and HEALED: d + 1, its GPU d alone */
    bool passed;             /* of ST_DO_TESTED */
    int64_t incident;        /* of ST_DO_RESET */
    int by;                  /* of ST_DO_HOLD and RELEASE */
    int throttle;            /* of ST_DO_THROTTLE */
    bool refuse;             /* it must be refused ... */
    int code;                /* ... with this code, 0: any */
    const char *match;       /* ... and a message that has this in it; NULL: any */
} st_scn_action;

/* A reason as a scenario describes it; what is not said is ST_KEEP or -1 or NULL. */
typedef struct st_scn_why {
    st_why code;
    const char *account;
    int32_t type;
    int dim;
    int64_t used, asked, bound, until_ms;
    int64_t job; /* the other job */
} st_scn_why;

/* One thing expected: the row says what is looked at, `want` is it in its one way of writing. */
typedef struct st_scn_expect {
    const struct st_expect_row *row;
    int line;
    int64_t job;
    int32_t node;
    const char *account;
    int dim, type; /* of an amount; type -1: of the dimension as a whole */
    const st_scn_why *why;
    const char *want;
} st_scn_expect;

/* One entry of the timeline: at a moment do these things together, then look. */
typedef struct st_scn_entry {
    int line;
    int64_t at_ms;
    size_t action, nactions; /* in the scenario's list */
    size_t expect, nexpects;
} st_scn_entry;

typedef struct st_scenario {
    const st_doc *doc;
    st_arena *arena; /* owns the text that is not the document's */
    const char *name;
    st_policy policy;
    int64_t until_ms; /* play on till then; ST_UNSET: not said */
    ST_VEC(st_scn_type) types;
    ST_VEC(st_scn_pool) pools;
    ST_VEC(st_scn_node) nodes;
    ST_VEC(st_account_doc *) accounts;
    ST_VEC(st_scn_job) jobs; /* the job of index i has the id i + 1 */
    ST_VEC(st_scn_action) actions;
    ST_VEC(st_scn_action) arrivals; /* later jobs of streams, in order of time */
    ST_VEC(st_scn_expect) expects;
    ST_VEC(st_scn_entry) entries;
    ST_VEC(const char *) account_names; /* all that are ever mentioned as accounts */
    st_map *job_ids, *node_ids, *account_ids, *booking_ids;
    int64_t start_ms; /* what 0 is, in ms since 1970 */
    ST_VEC(st_tz *) zones;
    ST_VEC(st_tz *) clocks; /* of ST_DO_CLOCKS */
    uint64_t next_booking;  /* the last number that was given out */
    bool asserts;           /* something is expected, or expected to be refused */
} st_scenario;

int st_scenario_new(const st_doc *doc, st_scenario **ret, st_err *err);
/* A document that has a fleet, its pools and types, and nothing else. */
int st_scenario_fleet(const st_doc *doc, st_scenario **ret, st_err *err);
void st_scenario_free(st_scenario *s);
ST_DEFINE_FREEP(st_scenario, st_scenario_free)

/* ---- playing -------------------------------------------------------------------------- */

/* What the player knows of a job, also after it has left the core. */
typedef struct st_play_job {
    bool submitted, refused;
    st_job_state state;
    st_class class;
    int32_t type;            /* -1 none */
    ST_VEC(st_grant) grants; /* where it is, or was last */
    int starts, preemptions;
    uint64_t claimant;            /* while it yields */
    int64_t until_ms;             /* while it yields or is yielded to */
    int64_t started_ms, ended_ms; /* ST_UNSET: not yet */
    int64_t saved_ms;             /* progress that survives */
    int64_t lost_gpu_ms;          /* milli-GPU x ms of its work thrown away */
    int64_t answer_ms;            /* when its engine reports that it is saved */
    char *refusal;
} st_play_job;

/* One line of what happened: an effect of the core, or an action it refused. */
typedef struct st_play_event {
    st_effect fx;     /* grants_at counts in st_play.grants */
    int64_t action;   /* index of the refused action's job, or -1; see `refused` */
    char *refused;    /* the sentence; NULL: an effect */
    const char *what; /* the action that was refused */
} st_play_event;

/* One expectation that did not hold. */
typedef struct st_play_diff {
    int line;
    int64_t at_ms;
    char *text;
} st_play_diff;

typedef struct st_play_options {
    bool reload; /* save and load the core before every entry: the outcome must not change */
} st_play_options;

typedef struct st_play {
    const st_scenario *s;
    st_play_options options;
    st_core *core;
    st_effects fx;              /* of the step at hand */
    size_t followed;            /* as many of them are in the records already */
    ST_VEC(st_event) events_in; /* that were accepted in the step at hand */
    st_watch *watch;            /* the invariants, over all steps */
    int64_t now;
    int64_t steps;
    size_t arrival;    /* the next one */
    bool cancelling;   /* the action at hand is a cancel: who ends now is nobody's victim */
    st_play_job *jobs; /* as many as the scenario has */
    ST_VEC(st_play_event) events;
    ST_VEC(st_grant) grants;
    ST_VEC(st_play_diff) diffs;
    int looked; /* expectations that were looked at */
    int broken; /* invariants that did not hold; they are among the differences too */
    int64_t evictions, evicted_m;
    /* Since the entry before: who was told to yield, who started, whose floor moved. */
    ST_VEC(int64_t) victims;
    ST_VEC(int64_t) started;
    ST_VEC(int32_t) floors;
} st_play;

/* Plays it from beginning to end. Fails when the scenario cannot be set up, with FILE:LINE; what
 * was expected and did not come is in ret->diffs. */
int st_play_run(const st_scenario *s, const st_play_options *options, st_play **ret, st_err *err);
void st_play_free(st_play *play);
ST_DEFINE_FREEP(st_play, st_play_free)

/* ---- telling -------------------------------------------------------------------------- */

/* Of one line of what happened: what, in words, and where or why. */
void st_play_what(const st_play *play, const st_play_event *event, st_strbuf *what,
                  st_strbuf *where);

/* "n1:0-3 n2:0-3"; nodes in the order of the grants. */
void st_play_grants_text(const st_play *play, const st_grant *grants, size_t n, st_strbuf *out);

/* Why a job that waits waits, all reasons in one line; "" when it does not. */
void st_play_why(const st_play *play, int64_t job, st_strbuf *out);
/* When it should start, if that can be said. */
void st_play_expected(const st_play *play, int64_t job, st_strbuf *out);

/* The whole play as a JSON value; the caller gives it back with json_decref. */
struct json_t *st_play_json(const st_play *play);

#endif
