/*
 * Which step of a pause follows which (agent/steps.h). Pure.
 */
#include "agent/steps.h"

static const char *const names[] = {
#define X(id, word) word,
    ST_STEP_TABLE(X)
#undef X
};

const char *st_step_name(st_agent_step step)
{
    return names[step];
}

static st_after after_save(st_outcome outcome)
{
    if (outcome == ST_OUTCOME_OK)
        return (st_after){.step = ST_STEP_FREEZE};
    if (outcome == ST_OUTCOME_UNDONE)
        return (st_after){.refused = true};
    return (st_after){.step = ST_STEP_UNDO};
}

st_after st_step_after(st_agent_step step, st_outcome outcome, int tries)
{
    if (outcome == ST_OUTCOME_WAIT || step == ST_STEP_NONE)
        return (st_after){.step = step};
    if (outcome == ST_OUTCOME_DIED && tries < ST_STEP_TRIES)
        return (st_after){.step = step, .again = true};
    switch (step) {
    case ST_STEP_SAVE:
        return after_save(outcome);
    case ST_STEP_FREEZE:
        return outcome == ST_OUTCOME_OK ? (st_after){.paused = true}
                                        : (st_after){.step = ST_STEP_UNDO};
    case ST_STEP_UNDO:
        return outcome == ST_OUTCOME_OK ? (st_after){.refused = true} : (st_after){.lost = true};
    case ST_STEP_LOAD:
        return outcome == ST_OUTCOME_OK ? (st_after){.running = true} : (st_after){.lost = true};
    default:
        return (st_after){.step = ST_STEP_NONE};
    }
}
