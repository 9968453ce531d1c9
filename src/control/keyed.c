/*
 * Commands with an Idempotency-Key: done once, however often they come.
 *
 * That it was done is written in its own transaction. Its answer is known behind the commit and is kept before it goes out;
 * should stintd end just between, a repeat is told that it was done, and not done again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

#define OWNER "token "

void st_cmd_key_owner(const st_identity *who, char ret[32])
{
    snprintf(ret, 32, OWNER "%" PRId64, who->token);
}

int st_key_charge(st_tx *tx, const char *owner, int64_t n, st_err *err)
{
    char account[ST_NAME_MAX + 1];

    if (strncmp(owner, OWNER, strlen(OWNER)) != 0 ||
        !st_directory_token_account(tx->ctl->dir, strtoll(owner + strlen(OWNER), NULL, 10),
                                    account))
        return 0; /* the local socket's: nobody's to pay */
    if (n > 0)
        return st_allowance_charge(tx->ctl->allowance, account, ST_AL_KEYS, n, account, err);
    st_allowance_put(tx->ctl->allowance, account, ST_AL_KEYS, n);
    return 0;
}

static int count_owner(void *ctx, const char *owner, int64_t n, st_err *err)
{
    st_control *ctl = ctx;
    char account[ST_NAME_MAX + 1];

    (void)err;
    if (strncmp(owner, OWNER, strlen(OWNER)) == 0 &&
        st_directory_token_account(ctl->dir, strtoll(owner + strlen(OWNER), NULL, 10), account))
        st_allowance_put(ctl->allowance, st_payer(ctl, account), ST_AL_KEYS, n);
    return 0;
}

int st_count_keys(st_control *ctl, st_err *err)
{
    st_allowance_clear(ctl->allowance, ST_AL_KEYS);
    return st_store_idem_owners(ctl->store, count_owner, ctl, err);
}

static int used_before(st_cmd_key *key, const st_idem_row *row, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (row->digest.n != sizeof key->digest ||
        memcmp(row->digest.p, key->digest, row->digest.n) != 0)
        return st_fail(err, ST_ESTATE,
                       "Idempotency-Key %s was used for another request; use a new one",
                       st_quote(q, key->key));
    key->answer = row->answer[0] ? st_xstrdup(row->answer) : NULL;
    return st_fail(err, ST_ESTATE,
                   "the request with Idempotency-Key %s was done already; its answer is not kept, "
                   "so look at what it made",
                   st_quote(q, key->key));
}

/* Between a caller's coming in and its command's turn the token may have been revoked, its account removed, and the name
 * given to somebody else. */
static int check_token(const st_tx *tx, st_cmd *cmd, st_err *err)
{
    if (!cmd->begun && cmd->token > 0 && !st_tx_is_still(tx, cmd->token))
        return st_fail(err, ST_EAUTH,
                       "the token was revoked, or expired, before the request had its turn");
    cmd->begun = true;
    return 0;
}

int st_cmd_run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = NULL;
    st_cmd_key *key = cmd->key;
    st_idem_row row;
    int r = cmd->calm ? 0 : st_restoring_check(tx->ctl, err);

    if (r == 0)
        r = check_token(tx, cmd, err);

    if (r < 0)
        return r;
    if (!key)
        return cmd->run(tx, cmd, err);
    arena = st_arena_new();
    r = st_tx_open(tx, err);
    if (r < 0)
        return r;
    r = st_store_idem_get(tx->ctl->store, key->owner, key->key, arena, &row, err);
    if (r == 0)
        return used_before(key, &row, err);
    if (r != -ST_ENOENT)
        return st_tx_fault(tx, r, err);
    r = st_key_charge(tx, key->owner, 1, err);
    if (r < 0)
        return r;
    r = cmd->run(tx, cmd, err);
    if (r != 0) {
        st_key_charge(tx, key->owner, -1, NULL);
        return r;
    }
    row = (st_idem_row){.owner = key->owner,
                        .key = key->key,
                        .at_ms = tx->now,
                        .digest = {key->digest, sizeof key->digest},
                        .answer = ""};
    r = st_tx_fault(tx, st_store_idem_put(tx->ctl->store, &row, err), err);
    key->done = r == 0;
    return r;
}

/* The row of a key changes outside of a command's own transaction. */
static void rewrite(st_control *ctl, const st_cmd_key *key, const char *answer)
{
    st_store *store = ctl->store;
    st_err err;
    int r;

    if (!key->done || !pthread_equal(ctl->thread, pthread_self()))
        return;
    r = st_store_begin(store, &err);
    if (r == 0)
        r = st_store_end(store,
                         answer ? st_store_idem_more(store, key->owner, key->key, answer, &err)
                                : st_store_idem_drop(store, key->owner, key->key, &err),
                         &err);
    if (r < 0)
        st_control_say(ctl, "event=answer_not_kept reason=\"%s\"", err.msg);
}

void st_cmd_key_keep(st_control *ctl, const st_cmd_key *key, const char *answer)
{
    rewrite(ctl, key, answer);
}

void st_cmd_key_drop(st_control *ctl, const st_cmd_key *key)
{
    rewrite(ctl, key, NULL);
}
