/*
 * The outlook: start estimates of everybody who waits, made once for a state and read by all who ask.
 *
 * A thread makes it from a copy of the follower's core. Where that takes a moment it is made for every state that
 * somebody asks about; where it takes long, at most a fifth of the time goes into it, and jobs that came since are
 * looked up in the last one (core/timeline.h). Once a minute those who wait are told: what is noted is how good
 * estimates are. That is the service's own event, not that of anybody who asks.
 */
#ifndef ST_CONTROL_OUTLOOK_H
#define ST_CONTROL_OUTLOOK_H

#include "control/control.h"
#include "core/timeline.h"

typedef struct st_outlook st_outlook;

/* The outlook from a position of the log or, where that would take too long, the last one there is; NULL: none yet. May
 * wait, ST_OUTLOOK_WAIT_MS at most. From any thread but the loop's; the caller gives it back. */
#define ST_OUTLOOK_WAIT_MS 1500
st_outlook *st_control_outlook(st_control *ctl, int64_t position);
void st_outlook_unref(st_outlook *outlook);
ST_DEFINE_FREEP(st_outlook, st_outlook_unref)
/* One of a core that only the caller has. */
int st_outlook_of(const st_core *core, st_outlook **ret, st_err *err);

const st_timeline *st_outlook_timeline(const st_outlook *outlook);
/* Whether making it is a matter of milliseconds: then a copy of the core may as well be played by itself. */
bool st_outlook_is_cheap(const st_outlook *outlook);

#endif
