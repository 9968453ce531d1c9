/*
 * What all executors have in common (agent/exec.h): how an end is written down.
 */
#include "agent/exec.h"

#include <stdio.h>

void st_exec_free(st_exec *e)
{
    if (e)
        e->ops->free(e);
}

void st_task_end(st_task *t, int64_t ended_ms, int exit_code, int exit_signal, const char *reason)
{
    /* One that was off its devices had none: others may be on them. */
    if (t->phase == ST_PHASE_PAUSED && t->clean)
        t->place.devs = 0;
    t->gone = t->clean = false;
    t->step = ST_STEP_NONE;
    t->phase = ST_PHASE_ENDED;
    t->ended_ms = ended_ms;
    t->exit_code = exit_signal ? 0 : exit_code;
    t->exit_signal = exit_signal;
    /* Who was asked to save and leaves in peace has saved. */
    t->saved = t->asked && !t->killed && !t->stopped && exit_code == 0 && exit_signal == 0;
    if (reason && !t->reason[0])
        snprintf(t->reason, sizeof t->reason, "%s", reason);
}

void st_task_lost(st_task *t, int64_t now_ms, const char *reason)
{
    st_task_end(t, now_ms, ST_EXIT_LOST, 0, reason);
}

void st_task_unstarted(st_task *t, int64_t now_ms, bool fault, const char *reason)
{
    t->phase = ST_PHASE_UNSTARTED;
    t->fault = fault;
    t->ended_ms = now_ms;
    snprintf(t->reason, sizeof t->reason, "%s", reason);
}
