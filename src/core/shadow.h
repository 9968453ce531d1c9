/* Private to core: every floor as a cluster of its own (policy `as_if_alone`).
 *
 * An account with a floor is given whole nodes, its home, as far as the floor covers them. On
 * paper it is alone there: its jobs, in order of priority and age, stand where they would stand
 * and start when they would start if nobody shared anything; a job that finds no place does not
 * keep those behind it from theirs. Such a job on paper is a shadow.
 *
 *  1 A job has the right to its home place while its shadow stands there, and no other claim to
 *    the floor. It is guaranteed while it sits exactly there; anywhere else it borrows.
 *  2 The right is used only when nothing else is free: whoever sits in the place goes, and that
 *    is never a guaranteed job, for no two shadows share a place.
 *  3 A shadow ends when it has stood for the run time the job really needed, and not before the
 *    job itself has ended. A job that leads its shadow has ended by then, so its run time is
 *    known when it is needed: nothing has to be declared.
 *
 * So at any moment each job has run at least as long as its shadow. With preemption that costs
 * nothing no job ends later than it would alone; what it costs is what a job can be late by. */
#ifndef ST_CORE_SHADOW_H
#define ST_CORE_SHADOW_H

#include "core/state.h"

struct st_shadow_job {
    st_job job;       /* as submitted; on paper PENDING or RUNNING, `grants` its home place */
    uint64_t key;     /* of its shape */
    int64_t run_ms;   /* what the job needed; ST_TIME_NEVER while it lives */
    int64_t ended_ms; /* when the job ended */
};

typedef struct st_shadow_cluster {
    int32_t account;
    ST_VEC(int32_t) nodes;                       /* its home, by id */
    ST_VEC(struct st_shadow_job *) waits, stand; /* in order of turn; in no order */
    bool dirty;                                  /* somebody who waits may find a place now */
} st_shadow_cluster;

/* Floors or nodes changed: who is at home where. */
void st_shadow_floors(st_core *core);
void st_shadow_list_nodes(const st_core *core, st_shadow_cluster *cluster);
/* Whether on paper somebody stands in the pool at another level than these, or a GPU of it is
 * time-sliced by more than the factor; ret_account is told whose home that is. */
bool st_shadow_uses(const st_core *core, int32_t pool, uint32_t levels, uint32_t allow,
                    int64_t oversub_m, int32_t *ret_account);
/* Bring the paper up to the core's time. */
void st_shadow_run(st_core *core);
/* When a shadow ends next; ST_TIME_NEVER. */
int64_t st_shadow_next_ms(const st_core *core);

void st_shadow_join(st_core *core, st_job *job);
void st_shadow_priority(st_core *core, const st_job *job);
void st_shadow_ended(st_core *core, st_job *job, st_job_state state);
void st_shadow_free(st_shadow_cluster *cluster);
void st_shadow_job_free(struct st_shadow_job *shadow);

/* Whether the floor may carry the job as far as this is concerned: as it sits; on a type. */
bool st_shadow_at_home(const st_job *job);
/* Whether its shadow stands: it has a right to its home place. */
bool st_shadow_stands(const st_job *job);
bool st_shadow_entitled(const st_job *job, int32_t type);
/* Whether its home place is free, as `view` sees the nodes. */
bool st_shadow_fits(const st_core *core, const st_job *job,
                    const st_view *(*view)(void *ctx, const st_node *node), void *ctx);
/* A copy of its home place. */
st_grant *st_shadow_place(const st_job *job);

/* Marks the picks of jobs on paper as used (st_fleet_sweep_picks). */
void st_shadow_use_picks(st_core *core);

#endif
