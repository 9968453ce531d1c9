/*
 * Inside a transaction: what a command's `run` may do to the core, the store and the audit chain.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "state/state.h"

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

int st_meta_keep(st_store *store, const char *key, const char *value, st_err *err)
{
    int r = st_store_begin(store, err);

    return r < 0 ? r : st_store_end(store, st_store_meta_put(store, key, value, err), err);
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

void st_control_say(st_control *ctl, const char *fmt, ...)
{
    char line[900];
    va_list ap;

    if (!ctl->options.log)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ctl->options.log(ctl->options.ctx, line);
}

int st_restoring_check(const st_control *ctl, st_err *err)
{
    if (ctl->restoring.state == ST_RESTORE_NONE)
        return 0;
    return st_fail(err, ST_EDOWN,
                   ctl->restoring.state == ST_RESTORE_WAITING
                       ? "stintd was restored from a backup and changes nothing until an owner has "
                         "looked at it (stint admin restore); try again later"
                       : "stintd was restored from a backup, and nodes are ending what it does not "
                         "know; try again in a minute");
}

int st_no_account(const char *name, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, name));
}

int st_tx_apply(st_tx *tx, const st_event *event, st_err *err)
{
    int r = tx->branches ? 0 : st_restoring_check(tx->ctl, err);

    if (r == 0)
        r = st_core_apply(tx->ctl->core, event, tx->now, &tx->fx, err);
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

/* Where an account stands in the core; -1: there is none. */
static int32_t account_now(const st_tree *tree, const char *name)
{
    return name[0] ? st_tree_find(tree, name) : ST_ROOT;
}

bool st_tx_within(const st_tx *tx, const char *account, const char *above)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    int32_t id = account_now(tree, account), over = account_now(tree, above);

    if (id < 0 || over < 0)
        return false;
    while (id >= 0 && id != over)
        id = st_tree_account(tree, id)->parent;
    return id >= 0;
}

bool st_tx_sees(const st_tx *tx, const char *account, const char *above)
{
    if (!strchr(account, ' '))
        return st_tx_within(tx, account, above);
    return account_now(st_core_tree(tx->ctl->core), above) >= 0 &&
           st_directory_within(tx->ctl->dir, account, above);
}

bool st_tx_is_still(const st_tx *tx, int64_t token)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    char name[ST_NAME_MAX + 1];
    int32_t id;

    if (!st_directory_opens(tx->ctl->dir, token, tx->now) ||
        !st_directory_token_account(tx->ctl->dir, token, name))
        return false;
    id = account_now(tree, name);
    return id == ST_ROOT || (id > ST_ROOT && st_tree_account(tree, id)->serial ==
                                                 st_directory_serial(tx->ctl->dir, name));
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
