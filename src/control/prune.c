/*
 * What is too old goes (control/state.h): jobs that ended long ago, and rows of the log that nobody will play again. A
 * little at a time, so that nobody waits for it. Books, checkpoints and the audit log are never touched; logs of
 * tasks are the API's, idempotency keys the loop's.
 */
#include "control/state.h"

#define SOON_MS  INT64_C(1000)  /* there is more to do */
#define LATER_MS INT64_C(60000) /* there is not */
#define JOBS_MAX 250
#define ROWS_MAX 2000

/* Whether the log begins with its first row, and that is not so old that it may go: what was before the first snapshot is
 * the past of a fleet that is new. */
static bool is_young(const st_control *ctl, int64_t now, int *ret_r, st_err *err)
{
    st_store_reach reach;

    if (ctl->options.keep_log_ms <= 0)
        return false;
    *ret_r = st_store_log_reach(ctl->store, now, &reach, err);
    return *ret_r < 0 || (reach.whole && reach.first_ms > now - ctl->options.keep_log_ms);
}

void st_prune(st_tx *tx)
{
    st_control *ctl = tx->ctl;
    int64_t jobs = 0, rows = 0;
    st_err err = {0};
    int r;

    if (tx->now < ctl->prune_ms)
        return;
    r = st_tx_open(tx, &err);
    if (r == 0 && ctl->options.keep_jobs_ms > 0)
        r = st_store_jobs_prune(ctl->store, tx->now - ctl->options.keep_jobs_ms, JOBS_MAX, &jobs,
                                &err);
    if (r == 0 && !is_young(ctl, tx->now, &r, &err))
        r = st_store_log_prune(ctl->store, ROWS_MAX, &rows, &err);
    if (r < 0) {
        st_tx_fault(tx, r, &err);
        return;
    }
    ctl->count.pruned_jobs += (uint64_t)jobs;
    ctl->count.pruned_rows += (uint64_t)rows;
    ctl->count.store_bytes = st_store_bytes(ctl->store);
    ctl->prune_ms = tx->now + (jobs == JOBS_MAX || rows == ROWS_MAX ? SOON_MS : LATER_MS);
}
