/*
 * Submitting: exactly once with a key, each item by itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/billing.h"

/* Keys are each owner's own: a token's, or the local socket's. */
static void owner_of(const st_identity *who, char ret[32])
{
    snprintf(ret, 32, "token %" PRId64, who->token);
}

/* An answer is kept as a line per item: its id, or 0 with the code and the sentence of a refusal. */
static void write_answer(const st_cmd_submit *s, st_strbuf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        const st_submit_item *item = &s->items[i];

        st_strbuf_addf(out, "%s%" PRIu64, i ? "\n" : "", item->id);
        if (item->id == 0)
            st_strbuf_addf(out, " %d %s", item->code, item->refusal ? item->refusal : "");
    }
}

/* The key was used: give the same answer, or refuse when it was for something else. */
static int replay(st_cmd_submit *s, const st_idem_row *row, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char *at = st_arena_strdup(arena, row->answer);
    char q[ST_QUOTE_MAX];

    if (row->digest.n != sizeof s->digest || memcmp(row->digest.p, s->digest, row->digest.n) != 0)
        return st_fail(err, ST_ESTATE,
                       "Idempotency-Key %s was used for another request; use a new one",
                       st_quote(q, s->key));
    for (size_t i = 0; i < s->n && at; i++) {
        st_submit_item *item = &s->items[i];
        char *line = strsep(&at, "\n"), *text;

        item->id = strtoull(line, &text, 10);
        if (item->id != 0)
            continue;
        /* " CODE SENTENCE" */
        free(item->refusal);
        item->code = (int)strtol(text, &text, 10);
        item->refusal = st_xstrdup(text[0] ? text + 1 : "");
    }
    s->replayed = true;
    return 0;
}

/* It was sealed when it came in; the key may have been renewed since. */
static char *kept(st_control *ctl, const st_submit_item *item, const char *text, bool head)
{
    const st_vault_who job = {item->spec.account, item->spec.user};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    bool changed = false;
    st_err err;

    if (st_vault_doc_renew(ctl->vault, &job, text, head, &out, &changed, &err) == 0 && changed)
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
                      .fresh = true};
    st_control_add_live(ctl, live);
    st_control_touch(ctl, live);
    st_tx_tell_job(tx, live);
}

/* An array goes by its first piece that was taken; pieces of one stand together. */
typedef struct array {
    int number;
    uint64_t first;
} array;

static int submit_one(st_tx *tx, st_submit_item *item, array *of, st_err *err)
{
    st_event event = {.kind = ST_EV_SUBMIT};
    int64_t hold;
    int r;

    r = st_spec_settle(st_core_fleet(tx->ctl->core), &item->spec, err);
    if (r == 0)
        r = st_money_admit(tx, &item->spec, &hold, err);
    event.u.job = item->spec;
    event.u.job.id = tx->ctl->last_id + 1;
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    item->id = ++tx->ctl->last_id;
    r = st_money_hold(tx, item->id, item->spec.account, hold, err);
    if (r < 0)
        return st_tx_fault(tx, r, err); /* it was admitted a moment ago: our own mistake */
    if (of->number != item->array)
        *of = (array){item->array, item->id};
    add_live(tx, item, item->array > 0 ? of->first : 0);
    return 0;
}

static int remember(st_tx *tx, const st_cmd_submit *s, const char *owner, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf answer = {0};

    write_answer(s, &answer);
    const st_idem_row row = {.owner = owner,
                             .key = s->key,
                             .at_ms = tx->now,
                             .digest = {s->digest, sizeof s->digest},
                             .answer = st_strbuf_str(&answer),
                             .status = 201};
    return st_tx_fault(tx, st_store_idem_put(tx->ctl->store, &row, err), err);
}

/* Whether no item before it was taken for the same account. */
static bool first_of_account(const st_cmd_submit *s, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (s->items[i].code == 0 &&
            strcmp(s->items[i].spec.account, s->items[at].spec.account) == 0)
            return false;
    return true;
}

/* A row for each account of a batch: what one has got is not written into the log of another. */
static int audit_account(st_tx *tx, const st_cmd_submit *s, size_t first, st_err *err)
{
    const char *account = s->items[first].spec.account;
    char target[ST_ID_TEXT], detail[64];
    size_t n = 0;

    for (size_t i = first; i < s->n; i++)
        n += s->items[i].code == 0 && strcmp(s->items[i].spec.account, account) == 0;
    st_control_id_text(tx->ctl, s->items[first].id, target);
    snprintf(detail, sizeof detail, "{\"jobs\":%zu}", n);
    return st_tx_audit(tx, &s->who, "job.submit", account, target, detail, err);
}

static int run_submit(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_submit *s = (st_cmd_submit *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = NULL;
    char owner[32];
    array of = {0};
    size_t taken = 0;
    int r = st_tx_open(tx, err);

    owner_of(&s->who, owner);
    if (r == 0 && s->key) {
        st_idem_row row;

        arena = st_arena_new();
        r = st_store_idem_get(tx->ctl->store, owner, s->key, arena, &row, err);
        if (r == 0)
            return replay(s, &row, err);
        r = r == -ST_ENOENT ? 0 : st_tx_fault(tx, r, err);
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n; i++) {
        st_submit_item *item = &s->items[i];
        st_err why = {0};

        if (item->code != 0)
            continue; /* refused before it came here */
        if (submit_one(tx, item, &of, &why) == 0) {
            taken++;
            continue;
        }
        if (s->n == 1) {
            *err = why;
            return -why.code;
        }
        item->code = why.code;
        item->refusal = st_xstrdup(why.msg);
    }
    if (taken == 0)
        return 0;
    if (s->key)
        r = remember(tx, s, owner, err);
    for (size_t i = 0; r == 0 && i < s->n; i++)
        if (s->items[i].code == 0 && first_of_account(s, i))
            r = audit_account(tx, s, i, err);
    return r;
}

void st_cmd_submit_init(st_cmd_submit *cmd)
{
    cmd->cmd.run = run_submit;
}

bool st_control_row(st_control *ctl, uint64_t id, st_job_row *ret)
{
    const st_live *live = st_control_known(ctl, id);

    if (!live)
        return false;
    st_live_row(ctl, live, ret);
    return true;
}
