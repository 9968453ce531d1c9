/*
 * What was used in a month, added up by account, user, GPU type, level or job: from the same entries the bill is made
 * of, so that the two cannot differ. What is in the books is kept added up (api/usages.h); what runs is added on each question.
 */
#include <stdlib.h>
#include <string.h>

#include "api/bills.h"
#include "base/mem.h"
#include "base/num.h"

#define ROWS_MAX  1000
#define LABEL_MAX 500

typedef struct metered {
    const st_bill_call *c;
    const char *by;
    st_sums_by all; /* rows of accounts together */
    bool apart;     /* a key is of one account: the others need not be looked at */
    ST_VEC(st_sums_row)
    top;             /* the largest of those; twice as many as are wanted before it is cut */
    int64_t n_apart; /* how many there were */
    ST_VEC(st_usages_book *) books; /* whose texts are used */
    ST_VEC(const st_entry *) open;  /* what runs, by account */
    size_t open_at;                 /* the first that was not looked at */
} metered;

static int by_account(const void *a, const void *b)
{
    return strcmp((*(const st_entry *const *)a)->account, (*(const st_entry *const *)b)->account);
}

static void sort_open(metered *m)
{
    for (size_t i = 0; i < m->c->open.n; i++)
        st_vec_push(&m->open, &m->c->open.v[i]);
    if (m->open.n > 0)
        qsort(m->open.v, m->open.n, sizeof *m->open.v, by_account);
}

static int larger_first(const void *a, const void *b)
{
    const st_sums_row *x = a, *y = b;

    if (x->share != y->share)
        return x->share < y->share ? 1 : -1;
    if (x->amount != y->amount)
        return x->amount < y->amount ? 1 : -1;
    return strcmp(x->key, y->key);
}

static void cut_top(metered *m)
{
    if (m->top.n > 0)
        qsort(m->top.v, m->top.n, sizeof *m->top.v, larger_first);
    m->top.n = ST_MIN(m->top.n, ROWS_MAX);
}

/* A row of one account. */
static void take(metered *m, const st_sums_row *row)
{
    if (row->entries == 0)
        return; /* it is only there later */
    if (!m->apart || row->key[0] == '(') {
        st_sums_row_add(st_sums_row_of(&m->all, row->key), row);
        return;
    }
    m->n_apart++;
    st_vec_push(&m->top, *row);
    if (m->top.n == (size_t)2 * ROWS_MAX)
        cut_top(m);
}

/* What is kept of a book, and beside it what differs from that: what runs, and what was kept too much. */
static int take_book(metered *m, st_store *reader, const st_usages_ask *ask, st_sums_by *beside,
                     st_err *err)
{
    st_usages *kept = m->c->api->usages;
    st_usages_book *book = NULL;
    const st_sums_by *sums;
    ST_CLEANUP(st_freep) bool *taken = NULL;
    int r;

    /* What somebody has made up to add up by is not kept: nobody pushes the others' sums out with it. */
    if (strchr(ask->by, ST_SUMS_SEP))
        return st_usages_fold(reader, ask, beside, err);
    r = st_usages_lend(kept, reader, ask, beside, &book, err);
    if (r < 0)
        return r;
    sums = st_usages_sums(book);
    taken = st_xcalloc(sums->rows.n + 1, sizeof *taken);
    for (size_t i = 0; i < beside->rows.n; i++) {
        int64_t at;

        if (st_map_get(sums->at, beside->rows.v[i].key, &at)) {
            st_sums_row_add(&beside->rows.v[i], &sums->rows.v[at]);
            taken[at] = true;
        }
    }
    for (size_t i = 0; i < sums->rows.n; i++)
        if (!taken[i])
            take(m, &sums->rows.v[i]);
    st_usages_unlock(book);
    st_vec_push(&m->books, book);
    return 0;
}

static int take_account(metered *m, st_store *reader, const char *account, st_sums_by *beside,
                        st_err *err)
{
    st_usages_ask ask = {.by = m->by, .period = m->c->bill->period.name, .book = account};
    int r = 0;

    /* Accounts of a bill are in the same order. */
    while (m->open_at < m->open.n && strcmp(m->open.v[m->open_at]->account, account) <= 0) {
        if (strcmp(m->open.v[m->open_at]->account, account) == 0)
            st_sums_add(beside, m->by, m->open.v[m->open_at], 1);
        m->open_at++;
    }
    st_bill_span(m->c->bill, account, &ask.from, &ask.to);
    if (ask.to >= ask.from)
        r = take_book(m, reader, &ask, beside, err);
    for (size_t i = 0; r == 0 && i < beside->rows.n; i++) {
        st_sums_row row = beside->rows.v[i];

        row.key = st_arena_strdup(m->all.texts, row.key);
        take(m, &row);
    }
    return r;
}

/* GPU time in hours, thousandths of one. */
static void out_hours(st_strbuf *out, const char *key, int64_t mgpu_ms)
{
    st_out_milli(out, key, mgpu_ms / 3600000);
}

static void write_row(const st_sums_row *row, st_strbuf *out)
{
    char buf[ST_MONEY_MAX];

    st_strbuf_addc(out, '{');
    st_out_text(out, "key", row->key);
    out_hours(out, "gpu_hours", row->share);
    out_hours(out, "held_gpu_hours", row->held);
    out_hours(out, "seen_gpu_hours", row->seen);
    out_hours(out, "busy_gpu_hours", row->busy);
    out_hours(out, "lost_gpu_hours", row->lost);
    st_out_milli(out, "energy_kwh", row->energy_mj / 3600000);
    st_out_int(out, "jobs", row->jobs);
    st_out_int(out, "gpu_mgpu_ms", row->share);
    st_out_int(out, "cost_udollars", row->amount);
    st_out_text(out, "cost", st_money(buf, row->amount));
    st_strbuf_addc(out, '}');
}

static void write_all(const metered *m, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf word = {0};

    st_strbuf_addc(out, '{');
    st_out_text(out, "account", m->c->account);
    st_out_text(out, "period", m->c->bill->period.name);
    st_out_time(out, "from", m->c->bill->period.from_ms);
    st_out_time(out, "to", m->c->bill->period.to_ms);
    st_strbuf_add(&word, m->by);
    word.s[strcspn(word.s, (char[]){ST_SUMS_SEP, '\0'})] = '\0';
    st_out_text(out, "by", word.s);
    st_out_int(out, "rows_in_all", (int64_t)m->all.rows.n + m->n_apart);
    st_out_raw(out, "rows", "[");
    for (size_t i = 0; i < m->top.n; i++) {
        st_strbuf_add(out, i > 0 ? "," : "");
        write_row(&m->top.v[i], out);
    }
    st_strbuf_add(out, "]}");
}

/* Days are a series; of everything else the largest come first. */
static int by_key(const void *a, const void *b)
{
    return strcmp(((const st_sums_row *)a)->key, ((const st_sums_row *)b)->key);
}

static int collect(metered *m, st_store *reader, st_err *err)
{
    int r = 0;

    st_sums_init(&m->all);
    sort_open(m);
    for (size_t i = 0; r == 0 && i < m->c->bill->uses.n; i++) {
        st_sums_by beside;

        st_sums_init(&beside);
        r = take_account(m, reader, m->c->bill->uses.v[i].account, &beside, err);
        st_sums_done(&beside);
    }
    for (size_t i = 0; i < m->all.rows.n; i++)
        st_vec_push(&m->top, m->all.rows.v[i]);
    cut_top(m);
    if (st_sums_is(m->by, "day") && m->top.n > 0)
        qsort(m->top.v, m->top.n, sizeof *m->top.v, by_key);
    return r;
}

static void metered_done(metered *m)
{
    for (size_t i = 0; i < m->books.n; i++)
        st_usages_back(m->c->api->usages, m->books.v[i]);
    st_vec_free(&m->books);
    st_vec_free(&m->open);
    st_vec_free(&m->top);
    st_sums_done(&m->all);
}

int st_bill_sums(const st_bill_call *c, st_store *reader, const char *by, st_sums_by *ret,
                 st_err *err)
{
    metered m = {.c = c, .by = by};
    int r = collect(&m, reader, err);

    for (size_t i = 0; r == 0 && i < m.top.n; i++)
        st_sums_row_add(st_sums_row_of(ret, m.top.v[i].key), &m.top.v[i]);
    metered_done(&m);
    return r;
}

static void finish(st_bill_call *c, st_store *reader)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    metered m = {.c = c, .by = c->format, .apart = st_sums_is(c->format, "job")};
    st_err err = {0};

    if (collect(&m, reader, &err) < 0) {
        st_call_fail(c->call, &err);
    } else {
        write_all(&m, &out);
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    metered_done(&m);
}

/* Of what is asked for, as one text that lives as long as the call. */
static int read_by(const st_call *call, st_arena *arena, const char **ret, st_err *err)
{
    const char *by = st_call_query(call, "by"), *label = st_call_query(call, "label");
    const char *where = st_call_query(call, "where"), *equals = where ? strchr(where, '=') : NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};

    by = by ? by : "user";
    if (label && (strcmp(by, "label") != 0 || !label[0] || strlen(label) > LABEL_MAX))
        return st_fail(err, ST_EINVAL, "label: the name of a label, together with by=label");
    if (where && (!equals || equals == where || strlen(where) > LABEL_MAX))
        return st_fail(err, ST_EINVAL, "where: NAME=VALUE, a label of jobs");
    for (const char *c = label ? label : ""; *c; c++)
        if ((unsigned char)*c < ' ')
            return st_fail(err, ST_EINVAL, "label: no label has such a name");
    for (const char *c = where ? where : ""; *c; c++)
        if ((unsigned char)*c < ' ')
            return st_fail(err, ST_EINVAL, "where: no label has such a name or value");
    st_sums_key(by, label, where, &key);
    *ret = st_arena_strdup(arena, st_strbuf_str(&key));
    return 0;
}

void st_api_metered(st_call *call, void *ctx)
{
    st_bill_call *c = st_bill_call_new(ctx, call, "", finish);
    st_err err;

    if (!c)
        return;
    if (read_by(call, c->arena, &c->format, &err) < 0) {
        st_call_fail(call, &err);
        st_bill_call_free(c);
        return;
    }
    c->running = true;
    c->leaves = false; /* its format is what it is added up by */
    st_bill_call_post(c);
}
