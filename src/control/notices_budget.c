/*
 * Thresholds of budgets: they are found passed after the commit that passed them (billing/budget.c), so what is told of one is a row of
 * the next transaction. A crash between the two must lose nothing. So the number of thresholds that were told is kept, in the
 * transaction with the deliveries; a start takes what was told from there, and who watches budgets finds the others again.
 *
 * kept as documents:  notice-budget  ACCOUNT  {serial, plan, period, told}: how many of the plan's thresholds, in which month
 *                     notice-budget  is kept  it is kept at all; where it is not, what was passed before a start counts as told
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "billing/billing.h"
#include "control/notices_state.h"

#define KIND  "notice-budget"
#define KNOWN "is kept" /* no account has a name with a blank */

/* ---- keeping ---------------------------------------------------------------------------------- */

static int keep(st_tx *tx, int32_t id, st_err *err)
{
    const st_account *a = st_tree_account(st_core_tree(tx->ctl->core), id);
    const st_billing *b = tx->ctl->billing;
    const st_warned *w = (size_t)id < b->warned.n ? &b->warned.v[id] : NULL;

    if (!w || w->n == 0 || a->gone)
        return 0;
    return st_document_write(tx, KIND, a->name,
                             json_pack("{s:I,s:I,s:I,s:i}", "serial", (json_int_t)a->serial, "plan",
                                       (json_int_t)w->plan_ms, "period", (json_int_t)w->period_ms,
                                       "told", w->n),
                             err);
}

typedef struct told {
    st_control *ctl;
    bool known;
    ST_VEC(char *) stale; /* of accounts that are gone */
} told;

/* The account of a row, if it is still the one that has the name; else -1. */
static int32_t account_of(const st_control *ctl, const char *name, const json_t *doc)
{
    const st_tree *tree = st_core_tree(ctl->core);
    int32_t id = st_tree_find(tree, name);

    if (id <= ST_ROOT ||
        st_tree_account(tree, id)->serial != json_integer_value(json_object_get(doc, "serial")))
        return -1;
    return id;
}

static int load_row(void *ctx, const st_document_row *row, st_err *err)
{
    told *t = ctx;
    st_billing *b = t->ctl->billing;
    json_t *doc = json_loads(row->doc, 0, NULL);
    int32_t id = account_of(t->ctl, row->name, doc);

    (void)err;
    if (strcmp(row->name, KNOWN) == 0) {
        t->known = true;
    } else if (id < 0) {
        st_vec_push(&t->stale, st_xstrdup(row->name));
    } else {
        while (b->warned.n <= (size_t)id)
            st_vec_push(&b->warned, ((st_warned){0}));
        st_warned *w = &b->warned.v[id];
        const st_warned kept = {.plan_ms = json_integer_value(json_object_get(doc, "plan")),
                                .period_ms = json_integer_value(json_object_get(doc, "period")),
                                .n = (int)json_integer_value(json_object_get(doc, "told"))};

        if (w->plan_ms == kept.plan_ms && w->period_ms == kept.period_ms)
            w->n = kept.n; /* the cap's word stays */
        else if (w->plan_ms == 0)
            *w = kept;
    }
    json_decref(doc);
    return 0;
}

static int look(st_control *ctl, told *t, st_err *err)
{
    *t = (told){.ctl = ctl};
    return st_store_documents(ctl->store, KIND, load_row, t, err);
}

static void told_done(told *t)
{
    for (size_t i = 0; i < t->stale.n; i++)
        free(t->stale.v[i]);
    st_vec_free(&t->stale);
}

static int is_known(void *ctx, const st_document_row *row, st_err *err)
{
    bool *known = ctx;

    (void)err;
    *known = *known || strcmp(row->name, KNOWN) == 0;
    return 0;
}

int st_notices_load_budgets(st_control *ctl, st_err *err)
{
    st_billing *b = ctl->billing;
    bool known = false;
    told t;
    int r = st_store_documents(ctl->store, KIND, is_known, &known, err);

    if (r < 0 || !known)
        return r;
    for (size_t i = 0; i < b->warned.n; i++)
        b->warned.v[i].n = 0; /* what was passed is told, unless it was */
    r = look(ctl, &t, err);
    told_done(&t);
    return r;
}

/* From the first start on it is kept what was told; rows of accounts that are gone go. */
int st_notices_keep_budgets(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;
    told t;
    int r = look(ctl, &t, err);

    for (size_t i = 0; r >= 0 && i < t.stale.n; i++)
        r = st_document_erase(tx, KIND, t.stale.v[i], err);
    for (size_t i = ST_ROOT + 1; r >= 0 && !t.known && i < ctl->billing->warned.n; i++)
        r = keep(tx, (int32_t)i, err);
    if (r >= 0 && !t.known)
        r = st_document_write(tx, KIND, KNOWN, json_pack("{s:I}", "since", (json_int_t)tx->now),
                              err);
    told_done(&t);
    return r < 0 ? r : 0;
}

/* ---- what is told after its commit -------------------------------------------------------------------------------- */

static int run_late(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_noticers *all = tx->ctl->notices;
    int r = 0;

    (void)cmd;
    all->posted = false;
    for (size_t i = 0; i < all->late.n; i++) {
        st_notice_late *l = &all->late.v[i];
        const st_telling t = {
            .on = l->on, .account = l->account, .title = l->title, .more = l->more};
        int32_t id = st_tree_find(st_core_tree(tx->ctl->core), l->account);

        if (r == 0 && l->title)
            r = st_notices_tell(tx, &t, err);
        if (r == 0 && id > ST_ROOT)
            r = keep(tx, id, err);
        free(l->account);
        free(l->title);
        json_decref(l->more);
    }
    st_vec_clear(&all->late);
    return r;
}

static void done_late(st_cmd *cmd, const st_err *err)
{
    (void)err;
    free(cmd);
}

static void money(const st_billing_options *billing, int64_t udollars, st_strbuf *out)
{
    char buf[ST_FMT_MAX];

    st_strbuf_addf(out, "%s %s", st_fmt_milli(buf, udollars / 1000),
                   billing->currency ? billing->currency : "USD");
}

/* What is told of it; where nobody wants to know, only that it was passed is kept. */
static void write_late(const st_control *ctl, const st_notice *n, st_notice_late *late)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf title = {0}, of = {0}, spent = {0};
    char percent[ST_FMT_MAX];

    if (!st_notices_anybody(ctl, st_tree_find(st_core_tree(ctl->core), n->account)))
        return;
    st_fmt_milli(percent, n->budget->threshold_bp * 10);
    money(&ctl->options.billing, n->budget->of_udollars, &of);
    money(&ctl->options.billing, n->budget->spent_udollars, &spent);
    st_strbuf_addf(&title, "account %s has spent %s: more than %s %% of its %s of %s", n->account,
                   st_strbuf_str(&spent), percent, n->budget->of_cap ? "cap" : "budget",
                   st_strbuf_str(&of));
    late->title = st_strbuf_take(&title);
    late->more = json_pack("{s:{s:s,s:s,s:I,s:I}}", "budget", "threshold_percent", percent, "of",
                           n->budget->of_cap ? "cap" : "budget", "limit_udollars",
                           (json_int_t)n->budget->of_udollars, "spent_udollars",
                           (json_int_t)n->budget->spent_udollars);
}

void st_notices_hear(st_control *ctl, const st_notice *n)
{
    st_notice_late late = {.on = ST_ON_BUDGET};
    st_cmd *cmd;

    if (!n->budget || !ctl->notices)
        return;
    late.account = st_xstrdup(n->account);
    write_late(ctl, n, &late);
    st_vec_push(&ctl->notices->late, late);
    if (ctl->notices->posted)
        return;
    cmd = st_xcalloc(1, sizeof *cmd);
    cmd->run = run_late;
    cmd->done = done_late;
    cmd->lane = ST_LANE_AGENTS;
    ctl->notices->posted = st_control_post(ctl, cmd);
    if (!ctl->notices->posted)
        free(cmd);
}
