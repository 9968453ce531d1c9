/* Whose turn it is: hierarchical dominant-resource fairness, and the order inside an account.
 *
 * An account's standing among its siblings is the dominant share of what it holds above its
 * floor, divided by its weight; the policy `basis: total` counts everything it holds. Shares are kept as
 * fractions and compared by cross-multiplication: no rounding decides who goes first. Who stands lowest goes next; reclaim looks at the same numbers from above. */
#ifndef ST_SHARE_SHARE_H
#define ST_SHARE_SHARE_H

#include "model/job.h"
#include "model/policy.h"
#include "model/tree.h"
#include "share/divide.h"

/* (amount / capacity) / weight of the dominant resource; weight 0 stands above everybody. */
typedef struct st_standing {
    int64_t amount, capacity;
    int64_t weight_m;
} st_standing;

/* The share alone, in milli of the capacity, rounded. */
int64_t st_standing_share_m(st_standing standing);

/* The account's standing from its `next` counters, with `more` added (negative: taken away;
 * NULL: as it is). */
st_standing st_share_standing(const st_tree *tree, int32_t account, st_share_counts counts,
                              const st_use *more);

/* <0, 0, >0 as a stands lower than, level with or higher than b. */
int st_standing_cmp(st_standing a, st_standing b);

/* Whether the account holds more than its floor promises, by GPU. */
int64_t st_share_borrowed_m(const st_tree *tree, int32_t account);
/* Of what it holds now, what is inside its floor, in whatever order and of whatever class; without a floor of its own,
 * what is guaranteed by one above it. The rest is borrowed. */
int64_t st_share_inside_m(const st_tree *tree, int32_t account);
/* Whether it holds more CPU, or RAM, than it was promised; false where it was promised none. */
bool st_share_over_cpu(const st_tree *tree, int32_t account);
bool st_share_over_ram(const st_tree *tree, int32_t account);

/* Order of siblings. For guaranteed work: who has used least of its floor. For borrowed work:
 * higher priority first, then lower standing. Ties by id. */
bool st_share_guaranteed_before(const st_tree *tree, int32_t a, int32_t b);
bool st_share_burst_before(const st_tree *tree, int32_t a, int32_t b, st_share_counts counts);

/* Decayed usage of a user in an account: reading it (as of the last sixteenth of a half-life,
 * so that time alone changes an order only at such moments), and noting that what the user holds
 * changes by `delta_m` milli-GPU. */
int64_t st_usage_read(const st_tree *tree, int32_t account, int32_t user, int64_t now,
                      int64_t half_life_ms);
#define ST_USAGE_STEPS 16 /* per half-life */
int64_t st_usage_epoch(int64_t now, int64_t half_life_ms);
void st_usage_note(st_tree *tree, int32_t account, int32_t user, int64_t now, int64_t half_life_ms,
                   int64_t delta_m);

/* One pending job with what orders it inside its account: priority, then its deadline, then the key of the
 * policy's order, then the user's decayed usage, then age. The key is the run time left times
 * GPUs^3/4 (shortest), or (attained) the class of what one more end costs in GPU time, by what
 * the account's jobs have taught (share/life.h), and in a class the fewest GPUs. */
typedef struct st_turn {
    st_job *job;
    int priority; /* the job's, or what the caller makes of it */
    int64_t usage;
    int64_t key; /* 0 under the order "age" */
} st_turn;

st_turn st_turn_of(const st_tree *tree, const st_policy *policy, st_job *job, int64_t now);

int st_turn_cmp(const void *a, const void *b);

/* Whether a waiting job is so far ahead of a running one of its account that they may swap
 * (policy `swap`). The running one must be of the kind that keeps its progress; the waiting one
 * of higher priority, or at the same priority shorter by more than the swap may take (shortest),
 * or in a lower class (attained). The other cannot take it back: it does not get shorter while
 * it waits, nor does who runs get longer; and classes move only as lives go on. */
bool st_order_swaps(const st_tree *tree, const st_policy *policy, const st_job *waiting,
                    const st_job *running, int64_t now);
/* All that matters there of the one who waits, besides its priority: two with the same rank may swap
 * with the same jobs. */
int64_t st_order_swap_rank(const st_tree *tree, const st_policy *policy, const st_job *waiting,
                           int64_t now);
/* When a running job reaches its next stage; ST_TIME_NEVER if that changes nothing. */
int64_t st_order_next_stage_ms(const st_policy *policy, const st_job *running, int64_t now);

#endif
