/*
 * What is unusual: today an account, or a user in it, has cost several times what a day of theirs usually costs.
 *
 * Usual is the median of the days on which they cost anything, among the last two weeks or as the configuration says; three such
 * days are needed. What runs counts as of now. Sums below a floor are nobody's business. Each is told once a day, to the admins
 * of the account and of those above it, and kept in the store: a restart tells nothing again, and the fleet report lists them.
 * Days are those of the books, so a wall clock that leaps makes none.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bill/bill.h"
#include "billing/billing.h"

#define KIND     "anomaly"
#define WATCH_MS 10000
#define DAYS_MIN 3
#define DAY_MS   INT64_C(86400000)
#define KEEP_MS  (400 * DAY_MS)
#define KEY_MAX  (2 * ST_NAME_MAX + 64)

typedef struct found {
    char account[ST_NAME_MAX + 1], user[ST_NAME_MAX + 1]; /* the book's name */
    int32_t id;
    int64_t cost, usual;
} found;

typedef struct search {
    st_tx *tx;
    st_map *running; /* "book user", "book " with all below it: micro-dollars */
    ST_VEC(found) list;
    char day[ST_UTC_MAX];
} search;

static const char *key_of(char buf[KEY_MAX], const char *account, const char *user)
{
    snprintf(buf, KEY_MAX, "%s %s", account, user);
    return buf;
}

static void add(st_map *m, const char *account, const char *user, int64_t amount)
{
    char key[KEY_MAX];
    int64_t had = 0;

    st_map_get(m, key_of(key, account, user), &had);
    st_map_put(m, key, had + amount);
}

/* What open intervals come to, by account with all below it, and by user. They began today at the earliest: midnight is a cut. */
static void add_running(search *s)
{
    const st_tree *tree = st_core_tree(s->tx->ctl->core);
    st_runnings accounts = {0};
    st_jobs_running jobs = {0};
    char buf[ST_NAME_MAX + 1];

    st_money_running(s->tx, &accounts);
    for (size_t i = ST_ROOT + 1; i < accounts.n; i++)
        if (accounts.v[i].all > 0)
            add(s->running, st_book_name(s->tx->ctl, (int32_t)i, buf), "", accounts.v[i].all);
    st_money_running_jobs(s->tx, &jobs);
    for (size_t i = 0; i < jobs.n; i++) {
        const st_job *job = st_core_job(s->tx->ctl->core, jobs.v[i].job);

        if (job && job->user >= 0 && (size_t)job->user < tree->users.n)
            add(s->running, st_book_name(s->tx->ctl, job->account, buf), tree->users.v[job->user],
                jobs.v[i].udollars);
    }
    st_vec_free(&accounts);
    st_vec_free(&jobs);
}

static void look(void *ctx, const st_daily_cost *d)
{
    search *s = ctx;
    const st_control *ctl = s->tx->ctl;
    const st_anomaly_options *o = &ctl->options.billing.anomaly;
    int32_t id = st_book_account(ctl, d->account);
    int64_t running = 0;
    char key[KEY_MAX];
    found f = {.id = id, .usual = d->usual};

    st_map_get(s->running, key_of(key, d->account, d->user), &running);
    f.cost = d->today + running;
    if (id <= ST_ROOT || st_tree_account(st_core_tree(ctl->core), id)->gone || d->days < DAYS_MIN ||
        f.cost < o->floor_udollars || f.cost / o->times < d->usual || f.cost <= 0)
        return;
    snprintf(f.account, sizeof f.account, "%s", d->account);
    snprintf(f.user, sizeof f.user, "%s", d->user);
    st_vec_push(&s->list, f);
}

static void name_of(char name[KEY_MAX], const search *s, const found *f)
{
    snprintf(name, KEY_MAX, "%s %s %s", s->day, f->account, f->user);
}

static int keep(const search *s, const found *f, const char *name, st_err *err)
{
    st_store *store = s->tx->ctl->store;
    json_t *doc =
        json_pack("{s:s,s:s,s:s,s:I,s:I}", "day", s->day, "account", f->account, "user", f->user,
                  "cost_udollars", (json_int_t)f->cost, "usual_udollars", (json_int_t)f->usual);
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
    const st_document_row row = {.kind = KIND, .name = name, .at_ms = s->tx->now, .doc = text};
    int r = text ? st_store_begin(store, err) : st_fail(err, ST_EINVAL, "no text");

    if (r == 0)
        r = st_store_document_put(store, &row, err);
    if (r == 0)
        r = st_store_commit(store, err);
    if (r < 0)
        st_store_rollback(store);
    free(text);
    json_decref(doc);
    return r;
}

static void tell(const search *s, const found *f)
{
    static const st_effect nothing = {.kind = ST_FX_FLOOR};
    st_control *ctl = s->tx->ctl;
    const char *account = st_tree_account(st_core_tree(ctl->core), f->id)->name;
    const st_notice_anomaly said = {
        .user = f->user[0] ? f->user : NULL, .cost_udollars = f->cost, .usual_udollars = f->usual};
    const st_notice notice = {.seq = ++ctl->notice_seq,
                              .at_ms = s->tx->now,
                              .account = account,
                              .kind = KIND,
                              .name = account,
                              .fx = &nothing,
                              .anomaly = &said};

    if (ctl->options.listen)
        ctl->options.listen(ctl->options.ctx, &notice);
}

void st_anomalies_watch(st_tx *tx)
{
    st_billing *b = tx->ctl->billing;
    search s = {.tx = tx};
    char name[KEY_MAX];
    st_err err = {0};

    if (!b->meter || tx->ctl->options.billing.anomaly.times <= 0 || tx->now < b->anomaly_ms)
        return;
    b->anomaly_ms = tx->now + WATCH_MS;
    if (!b->anomalies)
        b->anomalies = st_map_new();
    s.running = st_map_new();
    st_utc(s.day, tx->now);
    s.day[10] = '\0';
    add_running(&s);
    st_ledger_daily_costs(b->ledger, tx->now, tx->ctl->options.billing.anomaly.days, look, &s);
    for (size_t i = 0; i < s.list.n; i++) {
        name_of(name, &s, &s.list.v[i]);
        if (st_map_get(b->anomalies, name, NULL))
            continue;
        if (keep(&s, &s.list.v[i], name, &err) < 0) {
            st_control_say(tx->ctl, "event=anomaly_not_kept reason=\"%s\"", err.msg);
            break; /* another time */
        }
        st_map_put(b->anomalies, name, tx->now);
        tell(&s, &s.list.v[i]);
    }
    st_vec_free(&s.list);
    st_map_free(s.running);
}

int64_t st_anomalies_next(const st_control *ctl)
{
    const st_billing *b = ctl->billing;

    /* What runs grows; what is posted brings a transaction with it. */
    return b->meter && ctl->options.billing.anomaly.times > 0 && st_meter_stays(b->meter) > 0
               ? b->anomaly_ms
               : ST_TIME_NEVER;
}

/* ---- what was told before ---------------------------------------------------------------------- */

typedef struct begin_ctx {
    st_control *ctl;
    ST_VEC(char *) old;
    ST_VEC(int64_t) versions;
} begin_ctx;

static int remember(void *ctx, const st_document_row *row, st_err *err)
{
    begin_ctx *c = ctx;

    (void)err;
    st_map_put(c->ctl->billing->anomalies, row->name, row->at_ms);
    if (row->at_ms < st_core_now(c->ctl->core) - KEEP_MS) {
        st_vec_push(&c->old, st_xstrdup(row->name));
        st_vec_push(&c->versions, row->version);
    }
    return 0;
}

int st_anomalies_begin(st_control *ctl, st_err *err)
{
    st_billing *b = ctl->billing;
    begin_ctx c = {.ctl = ctl};
    int r;

    st_map_free(b->anomalies);
    b->anomalies = st_map_new();
    b->anomaly_ms = 0;
    r = st_store_documents(ctl->store, KIND, remember, &c, err);
    if (r >= 0 && c.old.n > 0)
        r = st_store_begin(ctl->store, err);
    for (size_t i = 0; i < c.old.n; i++) {
        if (r >= 0)
            r = st_store_document_delete(ctl->store, KIND, c.old.v[i], c.versions.v[i], err);
        st_map_del(b->anomalies, c.old.v[i]);
        free(c.old.v[i]);
    }
    if (r >= 0 && c.old.n > 0)
        r = st_store_commit(ctl->store, err);
    if (r < 0 && c.old.n > 0)
        st_store_rollback(ctl->store);
    st_vec_free(&c.old);
    st_vec_free(&c.versions);
    return r < 0 ? r : 0;
}

/* ---- for the fleet report ------------------------------------------------------------------------ */

typedef struct list_ctx {
    int64_t from_ms, to_ms;
    st_anomaly_fn fn;
    void *ctx;
} list_ctx;

static int list_one(void *ctx, const st_document_row *row, st_err *err)
{
    const list_ctx *l = ctx;
    json_t *doc = json_loads(row->doc, 0, NULL);
    const char *day = NULL, *account = NULL, *user = NULL;
    json_int_t cost = 0, usual = 0;
    bool good = row->at_ms >= l->from_ms && row->at_ms < l->to_ms &&
                json_unpack(doc, "{s:s,s:s,s:s,s:I,s:I}", "day", &day, "account", &account, "user",
                            &user, "cost_udollars", &cost, "usual_udollars", &usual) == 0;

    (void)err;
    if (good)
        l->fn(l->ctx, &(st_anomaly){day, account, user, cost, usual});
    json_decref(doc);
    return 0;
}

int st_anomalies_list(st_store *reader, int64_t from_ms, int64_t to_ms, st_anomaly_fn fn, void *ctx,
                      st_err *err)
{
    list_ctx l = {from_ms, to_ms, fn, ctx};

    return st_store_documents(reader, KIND, list_one, &l, err);
}
