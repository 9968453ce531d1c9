/*
 * How far stintd's time is ahead of the machine's uptime, kept in the store with what is written anyway: a restart on the same
 * run of the machine knows by it how much time has passed, whatever the wall clock says (stintd/clock.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/state.h"

#define META    "clock_mark"
#define NEAR_MS INT64_C(1000) /* drift is followed in steps of it */

int st_mark_load(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_clock_mark *mark = &ctl->mark;
    const char *text;
    int r = st_store_meta_get(ctl->store, META, arena, &text, err);

    *mark = (st_clock_mark){0};
    if (r == -ST_ENOENT)
        return 0;
    if (r == 0 && sscanf(text, "%63s %" SCNd64, mark->boot, &mark->ahead_ms) != 2)
        *mark = (st_clock_mark){0}; /* then nothing is known */
    return r;
}

int st_mark_follow(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;
    const st_clock_mark *old = &ctl->mark;
    st_clock_mark mark = {0};
    char text[128];
    int r;

    if (!ctl->options.clock_mark || !ctl->options.clock_mark(ctl->options.ctx, &mark))
        return 0;
    if (strcmp(mark.boot, old->boot) == 0 && llabs(mark.ahead_ms - old->ahead_ms) < NEAR_MS)
        return 0;
    snprintf(text, sizeof text, "%s %" PRId64, mark.boot, mark.ahead_ms);
    r = st_tx_fault(tx, st_store_meta_put(ctl->store, META, text, err), err);
    if (r == 0)
        ctl->mark = mark;
    return r;
}

const st_clock_mark *st_control_mark(const st_control *ctl)
{
    return &ctl->mark;
}
