/* The knobs of the scheduler: one row per key, with its default and range, read by the
 * configuration, the scenarios and the documentation alike. */
#ifndef ST_MODEL_POLICY_H
#define ST_MODEL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* X(field, key, kind, default, lowest, highest, what it means). Rows are saved in this order: those
 * that came later stand in a table of their own, named after the format (model/codec.h). */
#define ST_POLICY_TABLE(X) \
    ST_POLICY_FIRST(X)     \
    ST_POLICY_SINCE_5(X)

#define ST_POLICY_FIRST(X)                                                                       \
    X(notice_ms, "notice", DURATION, 30000, 0, 86400000,                                         \
      "how long a job that must yield is warned before anything happens to it")                  \
    X(grace_ms, "grace", DURATION, 120000, 0, 86400000,                                          \
      "how long it may then take to save its work")                                              \
    X(min_run_ms, "min_run", DURATION, 600000, 0, 2592000000,                                    \
      "a job is not displaced before it has run this long; an account may set its own")          \
    X(cooldown_ms, "cooldown", DURATION, 1800000, 0, 2592000000,                                 \
      "a job that was displaced is not displaced again by a borrower for this long; displaced "  \
      "again by an owner, it borrows nothing for this long")                                     \
    X(pause_limit_ms, "pause_limit", DURATION, 3600000, 0, 2592000000,                           \
      "a paused job that cannot go on where it is starts again elsewhere after this long")       \
    X(half_life_ms, "half_life", DURATION, 604800000, 3600000, 31536000000,                      \
      "a user's past GPU time counts half as much after this long")                              \
    X(bound_m, "reclaim_bound", MILLI, 2000, 1000, 1000000,                                      \
      "GPUs evicted for a claimant, at most this many times what it asked for")                  \
    X(patience_ms, "reclaim_patience", DURATION, 3600000, 0, 2592000000,                         \
      "an owner that has waited this long inside its floor is no longer held to the bound, nor " \
      "one that swaps inside its account; a borrower that waits four times as long may "         \
      "displace more than it takes")                                                             \
    X(reservations, "reservations", COUNT, 4, 0, 64,                                             \
      "how many blocked jobs at the head of the order have capacity gathered for them")          \
    X(rebalance, "rebalance", BOOL, 1, 0, 1,                                                     \
      "whether a borrower below its fair share may displace one above its own")                  \
    X(swap, "swap", BOOL, 0, 0, 1,                                                               \
      "whether, inside an account, a waiting job may displace a burstable one that is behind "   \
      "it in the order and keeps its progress")                                                  \
    X(forecast, "forecast", BOOL, 1, 0, 1,                                                       \
      "whether capacity is gathered and backfilled by how long jobs really run")                 \
    X(overstay_ms, "overstay", DURATION, 14400000, 0, 2592000000,                                \
      "how much later than limits allow a gathered start may be when such a forecast was wrong") \
    X(lookahead, "lookahead", COUNT, 0, 0, 1000000,                                              \
      "how many borrowers that lack room are looked at behind a gathered start; 0: all")         \
    X(as_if_alone, "as_if_alone", BOOL, 0, 0, 1,                                                 \
      "whether a floor carries the jobs that would be running if its account were alone on "     \
      "nodes of its own, so that sharing makes nobody late")                                     \
    X(learn, "learn_workload", BOOL, 1, 0, 1,                                                    \
      "whether what is submitted decides which places are kept free; without, the fullest "      \
      "place is taken")                                                                          \
    X(defrag, "defrag", BOOL, 0, 0, 1,                                                           \
      "whether running jobs that keep their progress are moved for one that only scatter keeps " \
      "waiting")                                                                                 \
    X(defrag_horizon_ms, "defrag_horizon", DURATION, 14400000, 0, 2592000000,                    \
      "a start that moves bring forward counts as gained by at most this long")                  \
    X(defrag_restore_ms, "defrag_restore", DURATION, 120000, 0, 86400000,                        \
      "how long a moved job is taken to need until it works again")

#define ST_POLICY_SINCE_5(X)                                                                    \
    X(urgent, "urgent", BOOL, 1, 0, 1,                                                          \
      "whether a job may displace burstable jobs of its own account that have a lower "         \
      "priority, beyond the floor too")                                                         \
    X(ageing_ms, "ageing", DURATION, 43200000, 0, 2592000000,                                   \
      "a job that has waited this long counts as one level of priority higher in its account, " \
      "but not above the highest that waits there; 0: never")                                   \
    X(claim_effort, "claim_effort", COUNT, 200000, 1, 1000000000,                               \
      "how many candidates claims look at in one pass; the rest is looked at right after it")

/* One level of priority: low, normal, high. */
#define ST_PRIO_LEVEL 100

/* A borrower displaces no more than it takes until it has waited so many times `reclaim_patience`. */
#define ST_EXCHANGE_PATIENCE 4

/* What goes first inside an account, after priority and before users' usage and age. */
#define ST_ORDER_TABLE(X)                                                    \
    X(ST_ORDER_AGE, "age")           /* nothing else */                      \
    X(ST_ORDER_SHORTEST, "shortest") /* declared run time left x GPUs^3/4 */ \
    X(ST_ORDER_ATTAINED, "attained") /* who should end soonest by what it has run, as learned */
typedef enum st_order {
#define X(id, name) id,
    ST_ORDER_TABLE(X)
#undef X
        ST_ORDER_COUNT
} st_order;

typedef struct st_policy {
#define X(field, key, kind, def, lo, hi, what) int64_t field;
    ST_POLICY_TABLE(X)
#undef X
    int basis; /* an st_share_basis: borrowed or total */
    int order; /* an st_order */
} st_policy;

static inline st_policy st_policy_default(void)
{
    return (st_policy){
#define X(field, key, kind, def, lo, hi, what) .field = def,
        ST_POLICY_TABLE(X)
#undef X
    };
}

#endif
