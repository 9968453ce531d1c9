/* Who may run: guarantees, ceilings and limits over the tree of accounts.
 *
 * This module alone writes the counters in st_account. Two moments are kept, as on the nodes:
 * `now` is what sits on devices, `next` is what will once every hold has come true. A start
 * must respect the ceilings in both.
 *
 * Guaranteed. What an account must be able to deliver is its *need*, by type and in all:
 *     below[t] = own guaranteed use of t + Σ children's need[t]
 *     need[t]  = max(floor[t], below[t])
 *     below    = own guaranteed use + Σ children's need
 *     need     = max(floor, below, Σ_t need[t])
 * A set of guaranteed jobs is sound when at every account with a GPU guarantee need <= floor,
 * and for the whole fleet need <= capacity and need[t] <= capacity[t] for every type. So
 * neither a parent nor a sibling can use up a child's floor as guaranteed while the child is
 * away, and a job under an untyped guarantee can never sit on a type that somebody else was
 * promised by name. An account that was given no guarantee of its own passes through: its
 * jobs draw on the nearest ancestor that has one. */
#ifndef ST_ADMIT_ADMIT_H
#define ST_ADMIT_ADMIT_H

#include "model/fleet.h"

/* What a gang asks for, in quota's terms. */
typedef struct st_need {
    int32_t type; /* -1: no GPU */
    int64_t gpu_m, cpu_m, ram_mib;
} st_need;

st_need st_need_of(const st_job *job, int32_t type);

/* Would it be guaranteed? Where not, and `ret_account` is given: the account that says no. */
bool st_admit_guaranteed(const st_tree *tree, int32_t account, const st_need *need,
                         int32_t *ret_account);

/* A number: while it is the same, st_admit_guaranteed and, with `nearest`, st_admit_full say the same of the gang on
 * every type. Most of what is charged elsewhere leaves it as it is. */
uint64_t st_admit_inside_print(const st_tree *tree, int32_t account, const st_need *need);

/* What an account uses inside its floor is all it holds, in whatever order and of whatever class, up to
 * the floor. The lowest account that was promised something the gang asks for and would hold more than
 * that with it; -1 none. With `nearest` only the first one that was promised anything is asked. */
int32_t st_admit_full(const st_tree *tree, int32_t account, const st_need *need, bool nearest);
/* How much more GPU than its floor an account would hold with the gang; typed floors that stand empty are in
 * use. 0 where it has no such floor. */
int64_t st_admit_excess_m(const st_tree *tree, int32_t account, const st_need *need);

/* One ceiling or limit that a start would break. */
typedef struct st_over {
    int32_t account;
    st_dim dim;
    int32_t type; /* GPU type where the ceiling is typed, else -1 */
    int64_t used, asked, bound;
} st_over;

typedef enum st_moment { ST_NOW = 1, ST_NEXT = 2, ST_GUARANTEED = 4 } st_moment;

/* Ceilings of all ancestors in the given moments; returns how many are broken and writes up
 * to `max` of them. With used 0 (`alone`), whether it could ever start. */
int st_admit_over(const st_tree *tree, int32_t account, const st_need *need, unsigned moments,
                  bool alone, st_over *ret, int max);

/* Move amounts in or out (sign +1, -1) of the counters named by `moments`. */
void st_admit_charge(st_tree *tree, int32_t account, const st_need *need, unsigned moments,
                     int sign);

/* Capacity or guarantees changed: set the floors anew, shrunk in proportion where capacity no
 * longer covers them, and rebuild the needs. Returns whether any floor changed. */
bool st_admit_floors(st_tree *tree);

/* Rebuild every account's need from its floor and guaranteed use. */
void st_admit_needs(st_tree *tree);

/* A floor that comes out lower than it was, or of the account that changes lower than what it is promised. */
typedef struct st_floor_cut {
    int32_t account; /* of the tree; one behind its last for an account that is new */
    st_dim dim;
    int32_t type; /* -1: all types */
    int64_t promised, before, after;
} st_floor_cut;

typedef ST_VEC(st_floor_cut) st_floor_cut_vec;

/* What setting the account's guarantee as in `spec`, which st_tree_check() takes, would cut with this capacity;
 * nothing: the capacity carries it. *ret_promised, which may be NULL, is what all guarantees would add up to. */
void st_admit_cuts(const st_tree *tree, const st_use *capacity, const st_account_spec *spec,
                   st_floor_cut_vec *ret, st_use *ret_promised);

/* Per-job and per-user limits at every ancestor. */
typedef enum st_limit_kind {
    ST_LIMIT_GPU,
    ST_LIMIT_VRAM,
    ST_LIMIT_SHARE,
    ST_LIMIT_RUN,
    ST_LIMIT_COUNT
} st_limit_kind;

typedef struct st_limit_over {
    int32_t account;
    bool per_user;
    st_limit_kind kind;
    int64_t used, asked, bound;
} st_limit_over;

const char *st_limit_name(st_limit_kind kind);

int st_admit_job_limits(const st_fleet *fleet, const st_tree *tree, const st_job *job, int32_t type,
                        st_limit_over *ret, int max);
int st_admit_user_limits(const st_fleet *fleet, const st_tree *tree, const st_job *job,
                         int32_t type, bool alone, st_limit_over *ret, int max);
void st_admit_user_charge(const st_fleet *fleet, st_tree *tree, const st_job *job, int32_t type,
                          int sign);

#endif
