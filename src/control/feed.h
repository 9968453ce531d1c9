/*
 * What the loop tells the follower. Private to src/control.
 */
#ifndef ST_CONTROL_FEED_H
#define ST_CONTROL_FEED_H

#include "control/follower.h"
#include "control/state.h"

/* Opens a second state over the writer's store, fills it and starts its thread. */
int st_follower_start(st_control *ctl, st_err *err);
/* Ends the thread: whoever asks from now on is refused. Nobody may be asking when it is freed. */
void st_follower_stop(st_control *ctl);
void st_follower_free(st_control *ctl);

/* In the loop, after the commit and before anybody is answered. Takes what the transaction has to tell. */
void st_follower_feed(st_tx *tx, bool logged);
/* In the loop: false when that must be tried again in a moment, because somebody else is at the list. */
bool st_follower_hand_over(st_control *ctl);
/* In the loop: the whole state, as it is now. */
void st_follower_seed(st_control *ctl);

/* The thread that makes outlooks; as above. */
int st_outlooks_start(st_control *ctl, st_err *err);
void st_outlooks_stop(st_control *ctl);
void st_outlooks_free(st_control *ctl);

#endif
