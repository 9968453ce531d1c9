/*
 * Inside a transaction: what a command's `run` may do to the core, the store and the audit chain.
 */
#include <inttypes.h>
#include <stdio.h>

#include "control/state.h"

st_core *st_tx_core(st_tx *tx)
{
    return tx->ctl->core;
}

int64_t st_tx_now(const st_tx *tx)
{
    return tx->now;
}

int st_tx_fault(st_tx *tx, int r, const st_err *err)
{
    if (r < 0 && !tx->broken) {
        tx->broken = true;
        tx->fault = *err;
    }
    return r;
}

int st_tx_open(st_tx *tx, st_err *err)
{
    int r;

    if (tx->broken) {
        *err = tx->fault;
        return -err->code;
    }
    if (tx->open)
        return 0;
    r = st_tx_fault(tx, st_store_begin(tx->ctl->store, err), err);
    tx->open = r == 0;
    return r;
}

int st_tx_apply(st_tx *tx, const st_event *event, st_err *err)
{
    int r = st_core_apply(tx->ctl->core, event, tx->now, &tx->fx, err);

    if (r < 0)
        return r;
    st_event_encode(event, &tx->log);
    tx->applied++;
    switch (event->kind) {
    case ST_EV_TYPE:
    case ST_EV_POOL:
    case ST_EV_POOL_REMOVE:
    case ST_EV_NODE:
    case ST_EV_ACCOUNT:
    case ST_EV_ACCOUNT_REMOVE:
        tx->names = true;
        break;
    default:
        break;
    }
    return st_version_event(tx, event, err);
}

int st_tx_audit(st_tx *tx, const st_identity *who, const char *verb, const char *account,
                const char *target, const char *detail, st_err *err)
{
    char actor[ST_NAME_MAX * 2 + 32];
    int r = st_tx_open(tx, err);

    /* Names have no blanks, so whoever shows it can take it apart. */
    snprintf(actor, sizeof actor, "%s %s %" PRId64, who->user, who->account[0] ? who->account : "-",
             who->token);
    st_audit_row row = {.at_ms = tx->now,
                        .actor = actor,
                        .account = account,
                        .source = who->source,
                        .verb = verb,
                        .target = target,
                        .detail = detail ? detail : ""};
    st_stands_of(tx->ctl, account, &row.stands);
    if (r == 0)
        r = st_tx_fault(tx, st_store_audit_append(tx->ctl->store, &row, NULL, err), err);
    return r;
}
