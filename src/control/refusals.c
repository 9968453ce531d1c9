/*
 * Tokens that were refused: counted by address, and written to the audit log a few seconds later as one row per address,
 * so that somebody who tries a thousand a second fills neither the log nor our memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/state.h"

#define PAUSE_MS INT64_C(5000)

void st_control_refused(st_control *ctl, const char *address)
{
    st_refusals *all = &ctl->refusals;
    size_t i = 0;

    pthread_mutex_lock(&ctl->lock);
    while (i < all->n && strcmp(all->row[i].address, address) != 0)
        i++;
    if (i == all->n && i < ST_REFUSALS_MAX) {
        snprintf(all->row[i].address, sizeof all->row[i].address, "%s", address);
        all->n++;
    }
    if (i < all->n)
        all->row[i].times++;
    else
        all->others++;
    if (all->n == 1 && all->row[0].times == 1)
        pthread_cond_signal(&ctl->wake); /* somebody has to wake up for it */
    pthread_mutex_unlock(&ctl->lock);
}

/* When the loop should look: soon after the first, never while there are none. */
int64_t st_refusals_next(st_control *ctl, int64_t now)
{
    bool any;

    pthread_mutex_lock(&ctl->lock);
    any = ctl->refusals.n > 0;
    pthread_mutex_unlock(&ctl->lock);
    return any ? ST_MAX(ctl->refusals_ms + PAUSE_MS, now) : ST_TIME_NEVER;
}

static int write_row(st_tx *tx, const char *address, uint64_t times, st_err *err)
{
    st_identity nobody = {.role = ST_ROLE_VIEWER, .user = "nobody"};
    char detail[48];

    snprintf(nobody.source, sizeof nobody.source, "%s", address);
    snprintf(detail, sizeof detail, "{\"times\":%" PRIu64 "}", times);
    return st_tx_audit(tx, &nobody, "login.refused", "", address, detail, err);
}

void st_refusals_write(st_tx *tx)
{
    st_control *ctl = tx->ctl;
    st_refusals all;
    st_err err;
    int r = 0;

    if (tx->now < ctl->refusals_ms + PAUSE_MS)
        return;
    pthread_mutex_lock(&ctl->lock);
    all = ctl->refusals;
    ctl->refusals = (st_refusals){0};
    pthread_mutex_unlock(&ctl->lock);
    if (all.n == 0)
        return;
    ctl->refusals_ms = tx->now;
    for (size_t i = 0; r == 0 && i < all.n; i++)
        r = write_row(tx, all.row[i].address, all.row[i].times, &err);
    if (r == 0 && all.others > 0)
        write_row(tx, "others", all.others, &err);
}
