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
    ST_POLICY_SINCE_5(X)   \
    ST_POLICY_SINCE_13(X)  \
    ST_POLICY_SINCE_19(X)  \
    ST_POLICY_SINCE_21(X)  \
    ST_POLICY_SINCE_25(X)  \
    ST_POLICY_SINCE_27(X)

#define ST_POLICY_FIRST(X)                                                                         \
    X(notice_ms, "notice", DURATION, 30000, 0, 86400000,                                           \
      "time between the warning to a job that will be preempted and the first action")             \
    X(grace_ms, "grace", DURATION, 120000, 0, 86400000, "time the job then has to save its work")  \
    X(min_run_ms, "min_run", DURATION, 600000, 0, 2592000000,                                      \
      "time a job runs before it can be preempted; an account may set its own")                    \
    X(cooldown_ms, "cooldown", DURATION, 1800000, 0, 2592000000,                                   \
      "time during which a preempted job is not preempted again by a borrower; a job that an "     \
      "owner preempts twice within it may not borrow until it is over")                            \
    X(pause_limit_ms, "pause_limit", DURATION, 3600000, 0, 2592000000,                             \
      "time after which a paused job that cannot resume on its node restarts elsewhere")           \
    X(half_life_ms, "half_life", DURATION, 604800000, 3600000, 31536000000,                        \
      "time after which a user's past GPU time counts half")                                       \
    X(bound_m, "reclaim_bound", MILLI, 2000, 1000, 1000000,                                        \
      "most GPUs that may be preempted for each GPU a job asks for")                               \
    X(patience_ms, "reclaim_patience", DURATION, 300000, 0, 2592000000,                            \
      "wait after which reclaim_bound no longer applies to a job inside its floor or to a swap; "  \
      "a borrower waits 48 times as long before it may preempt more GPUs than it takes")           \
    X(reservations, "reservations", COUNT, 4, 0, 64,                                               \
      "number of blocked jobs at the head of the queue that get capacity reserved")                \
    X(rebalance, "rebalance", BOOL, 1, 0, 1,                                                       \
      "let a borrower below its fair share preempt one above its own")                             \
    X(swap, "swap", BOOL, 0, 0, 1,                                                                 \
      "inside an account, let a waiting job preempt a burstable job that is behind it in the "     \
      "order and keeps its progress")                                                              \
    X(forecast, "forecast", BOOL, 1, 0, 1,                                                         \
      "reserve and backfill by how long similar jobs really run, not by limits alone")             \
    X(overstay_ms, "overstay", DURATION, 14400000, 0, 2592000000,                                  \
      "most time by which a wrong forecast may delay a reserved start beyond what limits allow")   \
    X(lookahead, "lookahead", COUNT, 0, 0, 1000000,                                                \
      "number of blocked borrowers that are examined behind a reserved start; 0 examines all")     \
    X(as_if_alone, "as_if_alone", BOOL, 0, 0, 1,                                                   \
      "give each floor the jobs that would run if its account had private nodes, so that sharing " \
      "delays nobody")                                                                             \
    X(learn, "learn_workload", BOOL, 1, 0, 1,                                                      \
      "keep free the places that submitted jobs need; otherwise fill the fullest place first")     \
    X(defrag, "defrag", BOOL, 0, 0, 1,                                                             \
      "move checkpointing jobs to unblock a job that is stopped only by fragmentation")            \
    X(defrag_horizon_ms, "defrag_horizon", DURATION, 14400000, 0, 2592000000,                      \
      "most time that a start brought forward by moves counts as gained")                          \
    X(defrag_restore_ms, "defrag_restore", DURATION, 120000, 0, 86400000,                          \
      "time that a moved job is assumed to need until it works again")

#define ST_POLICY_SINCE_5(X)                                                                    \
    X(urgent, "urgent", BOOL, 1, 0, 1,                                                          \
      "let a job preempt burstable jobs of its own account that have a lower priority, even "   \
      "beyond the floor")                                                                       \
    X(ageing_ms, "ageing", DURATION, 43200000, 0, 2592000000,                                   \
      "wait after which a job counts as one priority level (100) higher in its account, up to " \
      "the highest that waits there; 0: never")                                                 \
    X(claim_effort, "claim_effort", COUNT, 200000, 1, 1000000000,                               \
      "number of candidates for preemption examined in one pass; the next pass continues")

#define ST_POLICY_SINCE_13(X)                                                          \
    X(booking_reserve, "booking_reserve", COUNT, 0, 0, 262144,                         \
      "number of nodes of each GPU type that bookings leave free for nodes that fail") \
    X(booking_horizon_ms, "booking_horizon", DURATION, 31622400000, 0, 315360000000,   \
      "how far ahead of now a booking may begin")                                      \
    X(booking_length_ms, "booking_length", DURATION, 2678400000, 60000, 315360000000,  \
      "longest window of one booking")                                                 \
    X(booking_share_m, "booking_share", MILLI, 800, 0, 1000,                           \
      "part of the GPUs of a type that all bookings may have at one time")             \
    X(booking_account_share_m, "booking_account_share", MILLI, 500, 0, 1000,           \
      "part of the GPUs of a type that the bookings of one organisation may have at one time")

#define ST_POLICY_SINCE_19(X)                                                                  \
    X(acceptance, "acceptance", BOOL, 1, 0, 1,                                                 \
      "nodes whose agent can test them take jobs after a passed test: when they are new, and " \
      "after they have failed or were repaired")                                               \
    X(suspect_ms, "suspect", DURATION, 600000, 1000, 604800000,                                \
      "time after which a suspect node is tested")                                             \
    X(retest_ms, "retest", DURATION, 600000, 0, 604800000,                                     \
      "time after which a node that failed its test is tested again; 0: never")

#define ST_POLICY_SINCE_21(X)                                                                    \
    X(incident_quiet_ms, "incident_quiet", DURATION, 600000, 1000, 604800000,                    \
      "time without another fault after which an incident is over; a fault of the same kind in " \
      "the same pool before that is part of it")                                                 \
    X(breaker_window_ms, "breaker_window", DURATION, 1800000, 1000, 604800000,                   \
      "time over which nodes are counted that were taken out of service for one cause")          \
    X(breaker_nodes, "breaker_nodes", COUNT, 3, 1, 1000000,                                      \
      "nodes of a pool that faults may take out of service, however small the pool is")          \
    X(breaker_share_m, "breaker_share", MILLI, 100, 0, 1000,                                     \
      "part of a pool that one cause may take out of service within breaker_window; then its "   \
      "nodes are suspect instead, and somebody must look")                                       \
    X(unavailable_share_m, "unavailable_share", MILLI, 250, 0, 1000,                             \
      "part of a pool that may be out of service before faults take no more out; its nodes are " \
      "suspect instead")                                                                         \
    X(retire_after, "retire_after", COUNT, 2, 0, 100,                                            \
      "repairs after which a node that has the same hardware fault again is retired; 0: never")

#define ST_POLICY_SINCE_25(X)                                                            \
    X(grace_limit_ms, "grace_limit", DURATION, 0, 0, 86400000,                           \
      "longest grace that a job may ask for, or that a pause has by the speed that was " \
      "measured; less than grace: grace")

#define ST_POLICY_SINCE_27(X)                                                                 \
    X(fill_m, "fill", MILLI, 750, 0, 1000,                                                    \
      "part of its GPUs that a gang may take from borrowers that checkpoint, whatever their " \
      "accounts hold, once it has waited reclaim_patience: the rest was idle; 0: none")

/* One level of priority: low, normal, high. */
#define ST_PRIO_LEVEL 100

/* A borrower displaces no more than it takes until it has waited so many times `reclaim_patience`. */
#define ST_EXCHANGE_PATIENCE 48

/* What goes first inside an account, after priority and before users' usage and age. */
#define ST_ORDER_TABLE(X)                                                    \
    X(ST_ORDER_AGE, "age")           /* nothing else */                      \
    X(ST_ORDER_SHORTEST, "shortest") /* declared run time left x GPUs^3/4 */ \
    X(ST_ORDER_ATTAINED, "attained") /* who should end soonest by what it has run, as learned */
typedef enum st_queue_order {
#define X(id, name) id,
    ST_ORDER_TABLE(X)
#undef X
        ST_ORDER_COUNT
} st_queue_order;

typedef struct st_policy {
#define X(field, key, kind, def, lo, hi, what) int64_t field;
    ST_POLICY_TABLE(X)
#undef X
    int counts; /* an st_share_counts: borrowed or total */
    int order;  /* an st_queue_order */
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
