/*
 * Commands with an Idempotency-Key: done once, however often they come.
 *
 * That it was done is written in its own transaction. Its answer is known behind the commit and is kept before it goes out;
 * should stintd end just between, a repeat is told that it was done, and not done again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

void st_cmd_key_owner(const st_identity *who, char ret[32])
{
    snprintf(ret, 32, "token %" PRId64, who->token);
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

int st_cmd_run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = NULL;
    st_cmd_key *key = cmd->key;
    st_idem_row row;
    int r;

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
    r = cmd->run(tx, cmd, err);
    if (r != 0)
        return r;
    row = (st_idem_row){.owner = key->owner,
                        .key = key->key,
                        .at_ms = tx->now,
                        .digest = {key->digest, sizeof key->digest},
                        .answer = ""};
    r = st_tx_fault(tx, st_store_idem_put(tx->ctl->store, &row, err), err);
    key->done = r == 0;
    return r;
}

void st_cmd_key_keep(st_control *ctl, const st_cmd_key *key, const char *answer)
{
    st_err err;

    if (key->done && st_store_idem_more(ctl->store, key->owner, key->key, answer, &err) < 0)
        st_control_say(ctl, "event=answer_not_kept reason=\"%s\"", err.msg);
}
