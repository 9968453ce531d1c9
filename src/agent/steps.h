/*
 * How a task leaves its devices and stays on the node, and how it comes back: which step follows
 * which. Pure. pause.c carries the steps out; each is in the journal before it is begun, and each can
 * be begun again, so that an agent that was killed goes on where it was.
 *
 *   run --save--> --freeze--> paused --load--> run
 *          |          |
 *          +---undo---+--> runs on, and is told to save by its signal instead
 *
 * Invariants:
 *  1 What could not be paused runs as before, or is ended with the reason; it is never left locked.
 *  2 It is paused when nothing of it runs and nothing of it is on a device.
 */
#ifndef ST_AGENT_STEPS_H
#define ST_AGENT_STEPS_H

#include "agent/plan.h"

#define ST_OUTCOME_TABLE(X)                                 \
    X(ST_OUTCOME_WAIT) /* not known yet */                  \
    X(ST_OUTCOME_OK)                                        \
    X(ST_OUTCOME_FAILED) /* something may have changed */   \
    X(ST_OUTCOME_UNDONE) /* failed, and all is as it was */ \
    X(ST_OUTCOME_DIED)   /* whoever did it was killed, or the machine */
typedef enum st_outcome {
#define X(id) id,
    ST_OUTCOME_TABLE(X)
#undef X
} st_outcome;

typedef struct st_after {
    st_agent_step step; /* what comes next */
    bool again;         /* the same once more */
    bool paused;        /* it is off its devices */
    bool running;       /* it is back */
    bool refused;       /* it cannot be paused */
    bool lost;          /* it cannot be saved: it has to end */
} st_after;

#define ST_STEP_TRIES 3

/* `tries` is how often the step was begun. */
st_after st_step_after(st_agent_step step, st_outcome outcome, int tries);

const char *st_step_name(st_agent_step step);

#endif
