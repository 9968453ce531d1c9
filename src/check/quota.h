/*
 * Private to sim: guarantees, ceilings and limits, summed up from the jobs.
 *
 * The checkers' own ledger of who uses what. Nothing is carried from step to step: every
 * number is a sum over the jobs at hand, every rule is applied to the whole tree.
 */
#ifndef ST_CHECK_QUOTA_H
#define ST_CHECK_QUOTA_H

#include "admit/admit.h"
#include "check/room.h"

/* What one account and everything below it uses. */
typedef struct st_tally_row {
    st_use now, next, guaranteed;
    int64_t own_guaranteed_m[ST_TYPES_MAX]; /* guaranteed, of its own jobs only */
} st_tally_row;

typedef struct st_tally {
    const st_fleet *fleet;
    const st_tree *tree;
    st_use capacity;    /* what is there and healthy */
    st_tally_row *rows; /* one per account */
} st_tally;

/* Add up all jobs but those whose index is set in `out` (may be NULL). */
void st_tally_build(st_tally *tally, const st_fleet *fleet, const st_tree *tree,
                    const st_job_list *jobs, const uint8_t *out);
void st_tally_done(st_tally *tally);

/* milli-GPU a gang is charged for. */
int64_t st_tally_gpu_m(const st_job *job);

/* Put one job on top of what somebody uses. */
void st_tally_add(st_use *use, const st_job *job, int32_t type);

/* What a guarantee promises over all types, and whether it promises any GPU. */
int64_t st_tally_promised_m(const st_quota *q);
bool st_tally_promises_gpu(const st_quota *q);

/* Put a job on top of the guaranteed ones. */
void st_tally_add_guaranteed(st_tally *tally, const st_job *job, int32_t type);

/* Whether the guaranteed set is sound at every account; if not, where and how. */
bool st_tally_sound(const st_tally *tally, char *why, size_t size);

/* The larger of both moments, as a ceiling sees it; type -1: all types. */
int64_t st_tally_used(const st_tally *tally, int32_t account, st_dim dim, int32_t type);
int64_t st_tally_now(const st_tally *tally, int32_t account, st_dim dim, int32_t type);

/* Whether all ceilings above the job leave room for it in these moments (ST_NOW, ST_NEXT or
 * both); 0: if nobody else ran. */
bool st_tally_max_ok(const st_tally *tally, const st_job *job, int32_t type, unsigned moments);

/* Whether one more guaranteed job of this kind keeps the set sound, and something backs it. */
bool st_tally_guaranteed_ok(const st_tally *tally, const st_job_list *jobs, const uint8_t *out,
                            const st_job *job, int32_t type);

/* The floors the capacity allows: the guarantee, scaled where the fleet cannot cover it. */
void st_tally_floors(const st_tally *tally, st_quota *ret);

/* Whether anything was promised by type. Then floors are not one formula; they must lie within
 * the guarantees, and what was promised below an account must fit into what is left of it. */
bool st_tally_named(const st_tree *tree);
bool st_tally_floors_ok(const st_tally *tally, char *why, size_t size);

/* What a job counts for under a limit, and what its user's placed and held jobs at and below
 * an account count for together, the job itself left out. */
int64_t st_tally_limit_of(const st_fleet *fleet, const st_job *job, int32_t type,
                          st_limit_kind kind);
int64_t st_tally_user(const st_fleet *fleet, const st_tree *tree, const st_job_list *jobs,
                      const uint8_t *out, const st_job *but, int32_t account, int32_t user,
                      st_limit_kind kind);
bool st_tally_limits_ok(const st_fleet *fleet, const st_tree *tree, const st_job_list *jobs,
                        const uint8_t *out, const st_job *job, int32_t type, bool alone);
int64_t st_tally_bound(const st_limits *limits, st_limit_kind kind);

#endif
