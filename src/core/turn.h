/* Private to core: what one job can do when its turn comes. */
#ifndef ST_CORE_TURN_H
#define ST_CORE_TURN_H

#include "core/queue.h"

/* Give the job its turn in a phase: start it, or displace others for it. True when something
 * happened; otherwise *ret_later says that borrowers would make room but for protections.
 * Without effects (fx NULL) it is a dry run: false says that nothing would happen, and nothing changes but the
 * time to wake and what is remembered of shapes that found no place. */
bool st_core_turn(st_core *core, st_job *job, st_phase phase, const uint8_t *prefer,
                  bool *ret_later, st_effects *fx);

/* Whether it would be inside its floor on some type; true where that is not known for the whole round. */
bool st_core_may_be_inside(const st_core *core, st_job *job);
/* Whether a borrower who finds no place has nothing else to do with its turn, either. */
bool st_core_is_quiet(const st_core *core);

/* Whether room is all it lacks in a phase. */
bool st_core_lacks_room(const st_core *core, const st_job *job, st_phase phase);

/* Reserve for a blocked job, if it is only room that it lacks. */
void st_core_turn_reserve(st_core *core, st_job *job, st_phase phase, bool later);

/* ---- misfit.c ---- */

/* The two keys under which a shape without a place is remembered: nowhere, or nowhere that the
 * reservations it is bound by leave. */
typedef struct st_misfit {
    uint64_t key, bound_key;
} st_misfit;

/* Whether the job is known to find no place on a type, or is found to have none; else it has the keys. */
bool st_core_is_misfit(st_core *core, st_job *job, int32_t type, st_misfit *ret);
/* Whether a shape is known to find no place on any of the types, as they are. */
bool st_core_is_nowhere(const st_core *core, int32_t number, uint32_t types);
/* It found none. */
void st_core_note_misfit(st_core *core, const st_job *job, int32_t type, const st_misfit *m,
                         const st_barrier *barrier);
/* A round is over. */
void st_core_news_age(st_core *core);
/* A claim came to nothing. */
void st_core_refuse(st_core *core, uint64_t key, int64_t how);
/* Shapes that found no place are remembered until something is freed. */
void st_core_forget_misfits(st_core *core);
/* The same, but for claims as long as nothing was freed. */
void st_core_keep_refusals(st_core *core);

bool st_core_below_max(const st_core *core, const st_job *job, int32_t type, unsigned moments);
/* Who sits where a booking will be borrows: whether the job may, where the booking cannot move. */
bool st_core_may_sit(st_core *core, const st_job *job, st_class class, const st_grant *grants,
                     st_effects *fx);

#endif
