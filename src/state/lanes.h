/*
 * Commands that wait for the loop, in lanes: one per organisation, and one for what agents and stintd itself have
 * to say. Private to src/state.
 *
 * Each lane is served in the order its commands came. Between lanes the one that has had the least of the loop's
 * time goes next, so forty clients of one tenant cost another tenant one turn and not forty. A lane that was
 * empty does not save up: it begins where the others are. Commands of agents go before all others, as long as the
 * turn is young.
 *
 * Commands have numbers, in the order in which they came. A turn that reads the clock takes none that came later: time
 * would say that it was done before it was asked for.
 *
 * Not locked: the loop's lock is held around it.
 */
#ifndef ST_STATE_LANES_H
#define ST_STATE_LANES_H

#include "state/command.h"

typedef struct st_lanes st_lanes;

st_lanes *st_lanes_new(void);
void st_lanes_free(st_lanes *q); /* it is empty */

/* False: its lane has as many as it may. */
bool st_lanes_put(st_lanes *q, st_cmd *cmd);
/* It has begun and will go on: nothing of its lane comes before it is put back, or given up. */
void st_lanes_block(st_lanes *q, const st_cmd *cmd);
void st_lanes_put_back(st_lanes *q, st_cmd *cmd); /* in front of its lane */
void st_lanes_give_up(st_lanes *q, const st_cmd *cmd);

/* The number of the one that came last; 0: none ever did. */
uint64_t st_lanes_last(const st_lanes *q);

/* The next of those up to number `last`; NULL: there is none, or only in lanes that are held. `young`: those of agents may
 * go first. */
st_cmd *st_lanes_next(st_lanes *q, uint64_t last, bool young);
/* What it took of the loop's time. */
void st_lanes_took(st_lanes *q, const st_cmd *cmd, int64_t us);

size_t st_lanes_count(const st_lanes *q);

#endif
