/*
 * Money for Prometheus: what each account of the caller's subtree costs this month, and what is left of budgets. Sums
 * are the ledger's and what runs is added as if it ended now; the store is not read.
 *
 * Costs and times are of an account alone, so that they can be added up; budgets are of it and all below it.
 *
 * With 12,000 running jobs that is 20 ms of a processor, and several monitoring systems ask for the same. So what was
 * written for an account is kept for a second, as long as the state is the same.
 */
#include "api/money_metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/money.h"
#include "control/control.h"

#define PAGES    8
#define KEEP_MS  1000
#define TEXT_MAX ((size_t)4 << 20) /* longer ones are written anew */

#define MGPU_MS_PER_MILLI_SECOND INT64_C(1000) /* milli-GPU x ms to thousandths of a GPU-second */

static void costs(const st_bill *bill, st_metrics *m)
{
    st_metrics_family(m, "stint_account_cost_dollars", ST_METRIC_GAUGE,
                      "What an account costs this month so far, without those below it.");
    for (size_t i = 0; i < bill->lines.n;) {
        const st_bill_line *line = &bill->lines.v[i];
        int64_t amount = 0;

        /* Lines are sorted by account and component: GPU types and levels are added up. */
        for (; i < bill->lines.n && strcmp(bill->lines.v[i].account, line->account) == 0 &&
               bill->lines.v[i].what == line->what;
             i++)
            amount += bill->lines.v[i].amount;
        st_metrics_label(m, "account", line->account);
        st_metrics_label(m, "component", st_component_name(line->what));
        st_metrics_micro(m, amount);
    }
}

static void gpu_seconds(const st_bill *bill, st_metrics *m)
{
    st_metrics_family(
        m, "stint_account_gpu_seconds", ST_METRIC_GAUGE,
        "GPU time this month so far by what it is: the floor that is paid, what was held "
        "inside it or beyond it, what telemetry saw and of that busy, and what was lost.");
    for (size_t i = 0; i < bill->uses.n; i++) {
        const st_bill_use *u = &bill->uses.v[i];
        const struct {
            const char *basis;
            int64_t mgpu_ms;
        } rows[] = {
            {"reserved", u->reserved}, {"guaranteed", u->guaranteed},
            {"burst", u->burst},       {"on_demand", u->on_demand},
            {"booked", u->booked},     {"seen", u->seen},
            {"busy", u->busy},         {"lost", u->lost},
        };

        for (size_t k = 0; u->account[0] && k < ST_ARRAY_LEN(rows); k++) {
            st_metrics_label(m, "account", u->account);
            st_metrics_label(m, "basis", rows[k].basis);
            st_metrics_milli(m, rows[k].mgpu_ms / MGPU_MS_PER_MILLI_SECOND);
        }
    }
}

typedef struct budget_view {
    st_metrics *m;
    const st_tree *tree;
    int32_t root; /* the caller's */
} budget_view;

static void sample(const budget_view *v, const char *account, const char *what, int64_t udollars)
{
    int32_t id = st_tree_find(v->tree, account);
    const st_account *a = id >= 0 ? st_tree_account(v->tree, id) : NULL;
    st_metrics *m = v->m;

    if (udollars == ST_UNSET)
        return;
    st_metrics_label(m, "account", account);
    st_metrics_label(m, "parent",
                     !a || id == v->root || a->parent == ST_ROOT
                         ? ""
                         : st_tree_account(v->tree, a->parent)->name);
    st_metrics_label(m, "what", what);
    st_metrics_micro(m, udollars);
}

static void add_budget(void *ctx, const char *account, const st_budget_state *s)
{
    const budget_view *v = ctx;

    sample(v, account, "cap", s->cap);
    sample(v, account, "budget", s->budget);
    sample(v, account, "spent", s->spent);
    sample(v, account, "held", s->held);
    sample(v, account, "reserved", s->reserved);
    sample(v, account, "left", s->cap == ST_UNSET ? ST_UNSET : s->left);
}

/* Of accounts that have one: the rest is in their costs. */
static int budgets(const st_question *q, const st_core *core, st_metrics *m, st_err *err)
{
    budget_view v = {m, st_core_tree(core), st_question_root(q, core)};

    st_metrics_family(
        m, "stint_account_budget_dollars", ST_METRIC_GAUGE,
        "Of accounts with a cap or a budget, with those below them: what it is, and what is "
        "spent, on hold for jobs, reserved for floors and left of it this month.");
    return st_tx_budgets(q->tx, q->who.account, add_budget, &v, err);
}

/* ---- what was written lately ------------------------------------------------------------------ */

typedef struct page {
    char account[ST_NAME_MAX + 1]; /* the caller's; everybody with it sees the same */
    uint64_t state;
    int64_t at_ms;
    st_strbuf text;
} page;

struct st_money_pages {
    pthread_mutex_t lock;
    page v[PAGES];
    size_t next; /* to be written over */
};

st_money_pages *st_money_pages_new(void)
{
    st_money_pages *pages = st_xcalloc(1, sizeof *pages);

    ST_ASSERT(pthread_mutex_init(&pages->lock, NULL) == 0);
    return pages;
}

void st_money_pages_free(st_money_pages *pages)
{
    if (!pages)
        return;
    for (size_t i = 0; i < PAGES; i++)
        st_strbuf_done(&pages->v[i].text);
    pthread_mutex_destroy(&pages->lock);
    free(pages);
}

/* With the lock held. */
static page *find_page(st_money_pages *pages, const char *account)
{
    for (size_t i = 0; i < PAGES; i++)
        if (pages->v[i].text.n > 0 && strcmp(pages->v[i].account, account) == 0)
            return &pages->v[i];
    return NULL;
}

static bool take_page(const st_question *q, st_strbuf *out)
{
    st_money_pages *pages = q->api->money_pages;
    int64_t now = st_tx_now(q->tx);
    const page *p;
    bool good;

    pthread_mutex_lock(&pages->lock);
    p = find_page(pages, q->who.account);
    good = p && p->state == st_tx_state(q->tx) && now >= p->at_ms && now - p->at_ms < KEEP_MS;
    if (good)
        st_strbuf_addn(out, p->text.s, p->text.n);
    pthread_mutex_unlock(&pages->lock);
    return good;
}

static void keep_page(const st_question *q, const char *text, size_t n)
{
    st_money_pages *pages = q->api->money_pages;
    page *p;

    if (n > TEXT_MAX)
        return;
    pthread_mutex_lock(&pages->lock);
    p = find_page(pages, q->who.account);
    if (!p)
        p = &pages->v[pages->next++ % PAGES];
    snprintf(p->account, sizeof p->account, "%s", q->who.account);
    p->state = st_tx_state(q->tx);
    p->at_ms = st_tx_now(q->tx);
    st_strbuf_clear(&p->text);
    st_strbuf_addn(&p->text, text, n);
    pthread_mutex_unlock(&pages->lock);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static int write_page(const st_question *q, const st_core *core, st_metrics *m, st_err *err)
{
    st_bill bill = {0};
    int r = st_tx_bill(q->tx, q->who.account, NULL, &bill, err);

    if (r < 0)
        return r;
    costs(&bill, m);
    gpu_seconds(&bill, m);
    st_bill_done(&bill);
    return budgets(q, core, m, err);
}

int st_money_metrics(const st_question *q, const st_core *core, st_metrics *m, st_err *err)
{
    size_t begin = m->out->n;
    int r;

    if (take_page(q, m->out))
        return 0;
    r = write_page(q, core, m, err);
    if (r == 0)
        keep_page(q, m->out->s + begin, m->out->n - begin);
    return r;
}
