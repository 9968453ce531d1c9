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
    if (r == 0)
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
