/*
 * Submitting: exactly once with a key, each item by itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "billing/billing.h"
#include "control/bookings.h"
#include "control/state.h"

#define SLICE 256 /* items of a batch in one transaction */

/* An answer is kept as a line per item: its id, or 0 with the code and the sentence of a refusal. Of a batch that
 * is not done it has the lines of those that are. */
static void write_answer(const st_cmd_submit *s, st_strbuf *out)
{
    for (size_t i = 0; i < s->at; i++) {
        const st_submit_item *item = &s->items[i];

        st_strbuf_addf(out, "%s%" PRIu64, i ? "\n" : "", item->id);
        if (item->id == 0)
            st_strbuf_addf(out, " %d %s", item->code, item->refusal ? item->refusal : "");
    }
}

/* An array goes by its first piece that was taken; pieces of one stand together. */
static uint64_t array_of(st_cmd_submit *s, const st_submit_item *item)
{
    if (item->array == 0)
        return 0;
    if (s->array != item->array) {
        s->array = item->array;
        s->array_id = item->id;
    }
    return s->array_id;
}

/* The key was used: give the same answer, or refuse when it was for something else. A batch of which a part
 * was done when stintd ended goes on behind it: s->at says from where. */
static int replay(st_cmd_submit *s, const st_idem_row *row, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char *at = st_arena_strdup(arena, row->answer);
    char q[ST_QUOTE_MAX];

    if (row->digest.n != sizeof s->digest || memcmp(row->digest.p, s->digest, row->digest.n) != 0)
        return st_fail(err, ST_ESTATE,
                       "Idempotency-Key %s was used for another request; use a new one",
                       st_quote(q, s->key));
    for (; s->at < s->n && at; s->at++) {
        st_submit_item *item = &s->items[s->at];
        char *line = strsep(&at, "\n"), *text;

        item->id = strtoull(line, &text, 10);
        if (item->id != 0) {
            array_of(s, item);
            s->taken++;
            continue;
        }
        /* " CODE SENTENCE" */
        free(item->refusal);
        item->code = (int)strtol(text, &text, 10);
        item->refusal = st_xstrdup(text[0] ? text + 1 : "");
    }
    s->kept = true;
    s->replayed = s->at == s->n;
    return 0;
}

/* It was sealed when it came in; the key may have been renewed since. */
static char *kept(st_control *ctl, const st_submit_item *item, const char *text, bool head)
{
    const st_vault_who job = {st_directory_serial(ctl->dir, item->spec.account), item->spec.user};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    bool changed = false;
    st_err err;

    if (st_vault_doc_renew(ctl->vault, &job, NULL, text, head, &out, &changed, &err) == 0 &&
        changed)
        return st_strbuf_take(&out);
    return st_xstrdup(text);
}

static st_array_head *head_of(st_control *ctl, const st_submit_item *item, uint64_t part_of)
{
    ST_CLEANUP(st_freep) char *fresh = NULL;

    if (!item->head || st_idmap_get(ctl->heads, part_of, NULL))
        return st_control_head(ctl, part_of, item->head);
    fresh = kept(ctl, item, item->head, true);
    return st_control_head(ctl, part_of, fresh);
}

static void add_live(st_tx *tx, const st_submit_item *item, uint64_t part_of)
{
    st_control *ctl = tx->ctl;
    st_array_head *head = head_of(ctl, item, part_of);
    const st_job *job = st_core_job(ctl->core, item->id);
    st_live *live = st_xcalloc(1, sizeof *live);

    if (head && head->pieces == 0)
        head->fresh = true;
    *live = (st_live){.id = item->id,
                      .since_ms = -1,
                      .account = st_xstrdup(item->spec.account),
                      .user = st_xstrdup(item->spec.user),
                      .name = st_xstrdup(item->spec.name),
                      .head = head,
                      .doc = kept(ctl, item, item->doc, false),
                      .submit_ms = tx->now,
                      .start_ms = ST_STORE_NEVER,
                      .end_ms = ST_STORE_NEVER,
                      .exit_code = ST_STORE_NEVER,
                      .gpu_m = job ? st_job_gpu_m(job) : 0,
                      .priority = item->spec.priority,
                      .part_of = (int64_t)part_of,
                      .charged = item->charged,
                      .held_by = item->spec.held_by,
                      .fresh = true};
    if (item->spec.held_by > 0)
        st_live_held(live, item->spec.held_by);
    if (item->spec.by_ms > 0)
        st_live_deadline(live, item->spec.by_ms, item->spec.hard, false);
    st_control_add_live(ctl, live);
    st_control_touch(ctl, live);
    st_tx_tell_job(tx, live);
}

static int submit_one(st_tx *tx, st_cmd_submit *s, st_submit_item *item, st_err *err)
{
    st_event event = {.kind = ST_EV_SUBMIT};
    int64_t hold;
    int r;

    r = st_tx_within(tx, item->spec.account, s->who.account)
            ? st_restoring_room(tx, err)
            : st_no_account(item->spec.account, err);
    if (r == 0 && item->spec.booking != 0)
        r = st_booking_admit(tx, &item->spec, err);
    if (r == 0)
        r = st_spec_fill(st_core_fleet(tx->ctl->core), &item->spec, err);
    if (r == 0)
        r = st_flow_look_up(tx, s, item, err);
    if (r == 0)
        r = st_money_admit(tx, &item->spec, &hold, err);
    event.u.job = item->spec;
    event.u.job.id = tx->ctl->last_id + 1;
    event.u.job.afters = s->afters;
    event.u.job.nafters = item->nafters > 0 ? s->nafters : 0;
    if (item->array)
        event.u.job.array = s->array == item->array ? s->array_id : event.u.job.id;
    event.u.job.hold = item->spec.hard ? tx->ctl->last_booking + 1 : 0;
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    item->id = ++tx->ctl->last_id;
    if (item->spec.hard)
        r = st_booking_kept(tx, event.u.job.hold, item->spec.user, err);
    if (r < 0)
        return r;
    r = st_money_hold(tx, item->id, item->spec.account, hold, err);
    if (r < 0)
        return st_tx_fault(tx, r, err); /* it was admitted a moment ago: our own mistake */
    add_live(tx, item, array_of(s, item));
    return 0;
}

static int remember(st_tx *tx, st_cmd_submit *s, const char *owner, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf answer = {0};

    write_answer(s, &answer);
    if (s->kept)
        return st_tx_fault(
            tx, st_store_idem_more(tx->ctl->store, owner, s->key, st_strbuf_str(&answer), err),
            err);
    s->kept = true;
    const st_idem_row row = {.owner = owner,
                             .key = s->key,
                             .at_ms = tx->now,
                             .digest = {s->digest, sizeof s->digest},
                             .answer = st_strbuf_str(&answer),
                             .status = 201};
    return st_tx_fault(tx, st_store_idem_put(tx->ctl->store, &row, err), err);
}

/* Whether no item of [from, at) was taken for the same account. */
static bool first_of_account(const st_cmd_submit *s, size_t from, size_t at)
{
    for (size_t i = from; i < at; i++)
        if (s->items[i].code == 0 &&
            strcmp(s->items[i].spec.account, s->items[at].spec.account) == 0)
            return false;
    return true;
}

/* A row for each account of what was done: what one has got is not written into the log of another. */
static int audit_account(st_tx *tx, const st_cmd_submit *s, size_t first, st_err *err)
{
    const char *account = s->items[first].spec.account;
    char target[ST_ID_TEXT], detail[64];
    size_t n = 0;

    for (size_t i = first; i < s->at; i++)
        n += s->items[i].code == 0 && strcmp(s->items[i].spec.account, account) == 0;
    st_control_id_text(tx->ctl, s->items[first].id, target);
    snprintf(detail, sizeof detail, "{\"jobs\":%zu}", n);
    return st_tx_audit(tx, &s->who, "job.submit", account, target, detail, err);
}

/* One document that became an array, none of whose pieces fits the quota. */
static bool refused_whole(const st_cmd_submit *s, const st_err *why)
{
    return why->code == ST_EALLOWANCE && s->items[0].array > 0 &&
           s->items[s->n - 1].array == s->items[0].array;
}

/* What was done before under the same key, if there is one. */
static int look_up(st_tx *tx, st_cmd_submit *s, const char *owner, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = NULL;
    st_idem_row row;
    int r;

    if (!s->key || s->at > 0)
        return 0;
    arena = st_arena_new();
    r = st_store_idem_get(tx->ctl->store, owner, s->key, arena, &row, err);
    if (r == 0)
        return replay(s, &row, err);
    return r == -ST_ENOENT ? st_key_charge(tx, owner, 1, err) : st_tx_fault(tx, r, err);
}

/* Takes or refuses the item; fails where the whole command does. */
static int take_item(st_tx *tx, st_cmd_submit *s, size_t i, st_err *err)
{
    st_submit_item *item = &s->items[i];
    st_err why = {0};

    if (item->code != 0)
        return 0; /* refused before it came here, or with its array */
    if ((item->charged > 0 || st_charge_items(tx, item, s->n - i, &s->who, &why) == 0) &&
        submit_one(tx, s, item, &why) == 0) {
        s->taken++;
        return 0;
    }
    st_uncharge_item(tx->ctl, item);
    if (s->n == 1 || (i == 0 && refused_whole(s, &why))) {
        *err = why;
        return -why.code;
    }
    item->code = why.code;
    item->refusal = st_xstrdup(why.msg);
    return 0;
}

/* A batch is done in slices, each a transaction, so that others have their turns in between. What is done is
 * under the key at each of them: who asks again after a crash gets the rest done, and nothing twice. No other
 * command with the key can come between: it is the same caller's, and waits in the same lane. */
static int run_submit(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_submit *s = (st_cmd_submit *)cmd;
    char owner[32];
    size_t from, to;
    int r = st_tx_open(tx, err);

    st_cmd_key_owner(&s->who, owner);
    if (r == 0)
        r = look_up(tx, s, owner, err);
    if (r < 0 || s->replayed)
        return r;
    from = s->at;
    to = ST_MIN(s->n, from + SLICE);
    for (; r == 0 && s->at < to; s->at++)
        r = take_item(tx, s, s->at, err);
    /* A key that nothing was done under is not kept. */
    if (s->key && !s->kept && s->taken == 0 && (r < 0 || s->at == s->n))
        st_key_charge(tx, owner, -1, NULL);
    if (r < 0)
        return r;
    if (s->key && s->taken > 0)
        r = remember(tx, s, owner, err);
    for (size_t i = from; r == 0 && i < to; i++)
        if (s->items[i].code == 0 && first_of_account(s, from, i))
            r = audit_account(tx, s, i, err);
    return r < 0 ? r : s->at < s->n;
}

void st_cmd_submit_init(st_cmd_submit *cmd)
{
    cmd->cmd.run = run_submit;
    cmd->cmd.keys_itself = true;
}

bool st_control_row(st_control *ctl, uint64_t id, st_job_row *ret)
{
    const st_live *live = st_control_known(ctl, id);

    if (!live)
        return false;
    st_live_row(ctl, live, ret);
    return true;
}
