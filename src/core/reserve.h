/* Private to core: how a start is reserved.
 *
 *   reserve.c    the list of reservations, and which nodes their plans are on
 *   profile.c   when each node has room for one more task of a shape, as those on it leave
 *   keep.c      the earliest start and its plan, kept from pass to pass while nothing touches them
 *   reserve_slow.c  the same for the few whose place is not a number of tasks to a node
 *   reserve_audit.c  that all this says what counting anew would say
 *   backfill.c  what others may use meanwhile */
#ifndef ST_CORE_RESERVE_H
#define ST_CORE_RESERVE_H

#include "core/state.h"

/* When the job will be off its devices at the latest, by limits or by forecast; with `claims`, burstable ones
 * once their protection is over. Does not depend on the time it is. */
int64_t st_reserve_release_ms(const st_core *core, const st_job *job, unsigned by, bool claims);

/* ---- plans by node (reserve.c) ---- */

void st_reserve_push(st_core *core, st_reservation resv); /* takes the plan */
st_reservation st_reserve_pop(st_core *core);             /* the caller owns the plan */

/* Put the plans by limits or by forecast on a node into a view of it; of all reservations. */
void st_reserve_add_plans(st_core *core, unsigned by, const st_node *node, st_view *view);
/* Whether there are any. */
bool st_reserve_planned(const st_core *core, unsigned by, int32_t node);
/* The first link of a node, and the next; NULL ends. */
const st_plan_link *st_reserve_link(const st_core *core, int32_t node, const st_plan_link *after);
/* What plans by limits or by forecast there are, in order, as a number; and those of one node. */
uint64_t st_reserve_ahead(const st_core *core, unsigned by);
uint64_t st_reserve_ahead_at(const st_core *core, unsigned by, int32_t node);

/* ---- nodes that were looked at (reserve.c) ---- */

void st_marks_begin(st_core *core);
/* Whether the node has no mark since then; now it has. */
bool st_marks_first(st_core *core, int32_t node);

/* ---- when nodes have room (profile.c) ---- */

/* The moments at which a node has room for one, two ... tasks of a shape, earliest first: 0 for
 * now, ST_TIME_NEVER for never. `per` of them to a node. Equal to counting anew at any time. */
struct st_profile {
    uint64_t key, seen, epoch, used;
    unsigned by;
    bool claims;
    int32_t type;
    st_job like; /* one task of the shape */
    int per;
    size_t n; /* nodes covered */
    int64_t *at_ms;
    uint64_t *
        some; /* a bit for each node: there is any moment at all. Most of a fleet is of other types */
};

/* Whether the room of nodes decides alone where the job fits. */
bool st_profile_serves(const st_job *job);
/* Kept, and brought up to date. */
st_profile *st_profile_of(st_core *core, const st_job *job, int32_t type, unsigned by, bool claims);
/* Of one node, as it is (`planned`: beside the plans ahead, by what the profile goes by). */
void st_profile_count(st_core *core, const st_profile *p, const st_node *node, bool planned,
                      int64_t *ret);
void st_profile_free(st_profile *p);

/* ---- the earliest start (keep.c, reserve_slow.c) ---- */

/* By r->by, for r->type, with r->claims: sets r->at_ms and r->plan; false when there will never
 * be room. */
bool st_reserve_kept(st_core *core, const st_job *job, st_reservation *r);
/* `all_leavers`: nobody is left out because his leaving is of no use; only slower. */
bool st_reserve_slowly(st_core *core, const st_job *job, bool all_leavers, st_reservation *r);
void st_kept_free(st_kept *kept);

/* After picks of the fleet were swept out (st_fleet_sweep_picks). */
void st_profiles_forget_picks(st_core *core);

#endif
