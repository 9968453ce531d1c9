/*
 * When passes are run.
 *
 * A pass looks at everybody who waits, so what it takes grows with what all tenants have submitted, and a command that is
 * answered behind it waits for all of them. While passes are short that is nothing, and the answer tells what came of it.
 * When they are not, commands are committed and answered without one; the pass is owed, and paid by a transaction
 * of its own. Passes take at most half of the loop's time then. So a command waits for the pass that runs when it comes
 * and for its turn, and what its own start takes beyond that is the scheduler's time, not the submit's.
 *
 * What is long is measured, and no other machine would measure the same: a row says that its pass comes later
 * (ST_NOTE_LATER), a later one that this is it (ST_NOTE_PASS), and who plays the log does as they say.
 *
 * Invariants:
 *  1 While something is owed nothing is saved: a saved core does not know what it has heard since its last pass.
 *  2 The loop does not end while something is owed.
 */
#include <time.h>

#include "control/state.h"

#define LONG_US  INT64_C(2000)    /* of a processor: a pass that is answered without */
#define PAUSE_US INT64_C(1000000) /* between two of them at most */

static int64_t clock_us(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static bool is_long(const st_control *ctl)
{
    int64_t most = ctl->options.pass_long_us ? ctl->options.pass_long_us : LONG_US;

    return ctl->pace.cost_us >= most;
}

/* Passes and everything else have the loop by turns. */
static int64_t left_us(const st_pace *pace)
{
    return pace->ended_us + ST_MIN(pace->took_us, PAUSE_US) - clock_us(CLOCK_MONOTONIC);
}

bool st_pace_due(const st_control *ctl, bool last)
{
    return ctl->pace.owed && (last || left_us(&ctl->pace) <= 0);
}

int64_t st_pace_wait_ms(const st_control *ctl)
{
    return ST_MAX((left_us(&ctl->pace) + 999) / 1000, 0);
}

void st_pace_pass(st_tx *tx)
{
    st_control *ctl = tx->ctl;
    st_pace *pace = &ctl->pace;
    int64_t began, cpu;

    if (tx->applied == 0 && !tx->pays)
        return;
    if (!tx->pays && (tx->later || is_long(ctl))) {
        st_vec_push(&tx->notes, (st_note){.kind = ST_NOTE_LATER});
        pace->owed = true;
        return;
    }
    if (tx->applied == 0)
        st_vec_push(&tx->notes, (st_note){.kind = ST_NOTE_PASS});
    began = clock_us(CLOCK_MONOTONIC);
    cpu = clock_us(CLOCK_THREAD_CPUTIME_ID);
    st_core_settle(ctl->core, tx->now, &tx->fx);
    cpu = clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu;
    pace->ended_us = clock_us(CLOCK_MONOTONIC);
    pace->took_us = pace->ended_us - began;
    /* Some passes find little to look at; the next may not. */
    pace->cost_us = ST_MAX(cpu, pace->cost_us * 15 / 16);
    pace->owed = false;
    ctl->count.passes++;
    ctl->count.pass_us_sum += pace->took_us;
    ctl->replay_us += cpu;
}
