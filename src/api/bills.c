/*
 * Bills: of any account of the caller's subtree, any month, in several formats; and the entries behind a line.
 */
#include "api/bills.h"

#include <stdlib.h>
#include <string.h>

#include "api/work.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "control/follower.h"

#define ENTRIES_MAX 1000

/* ---- a call ----------------------------------------------------------------------------------- */

void st_bill_call_free(st_bill_call *c)
{
    st_bill_done(&c->own);
    st_bill_ask_free(c->ask);
    st_vec_free(&c->open);
    st_vec_free(&c->idle);
    st_vec_free(&c->booked);
    st_vec_free(&c->where.parts);
    st_vec_free(&c->where.open);
    st_strbuf_done(&c->ledger);
    st_arena_free(c->arena);
    free(c);
}

static int fill(void *ctx, st_tx *tx, st_err *err);
static void finish_entries(st_bill_call *c, st_store *reader);

static void worker(void *arg)
{
    st_bill_call *c = arg;
    st_err err = {0};
    int64_t position = 0;
    int r =
        c->file ? 0 : st_control_read(c->api->control, ST_READ_SHARED, 0, fill, c, &position, &err);
    st_store *reader = r == 0 ? st_api_reader(c->api, &err) : NULL;

    if (r == 0 && !c->file)
        st_api_stamp(c->api, c->call, position);
    if (reader)
        c->finish(c, reader);
    else
        st_call_fail(c->call, &err);
    st_api_reader_back(c->api, reader);
    st_bill_call_free(c);
}

static void hand_over(st_bill_call *c)
{
    st_err busy;

    if (st_work_run(c->api->work, worker, c))
        return;
    st_fail(&busy, ST_EDOWN, "many bills are being written just now; try again in a moment");
    st_call_fail(c->call, &busy);
    st_bill_call_free(c);
}

static void done(st_cmd *cmd, const st_err *err)
{
    st_bill_call *c = (st_bill_call *)cmd;

    if (!err) {
        hand_over(c);
        return;
    }
    st_call_fail(c->call, err);
    st_bill_call_free(c);
}

static const char *keep(st_arena *arena, const char *text)
{
    return text ? st_arena_strdup(arena, text) : NULL;
}

/* Written and read again, which brings everything along. */
static void keep_whole(st_bill_call *c, const st_entry *e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_entry mine;
    st_err err;

    if (strcmp(e->account, c->book) != 0)
        return;
    st_entry_write(e, &text);
    if (st_entry_read(st_strbuf_str(&text), text.n, c->arena, &mine, &err) == 0)
        st_vec_push(&c->open, mine);
}

/* Only what sums are made of, unless more is wanted: there may be many, and others wait. */
static void keep_open(void *ctx, const st_entry *e)
{
    st_bill_call *c = ctx;
    st_entry mine = *e;

    if (c->whole) {
        keep_whole(c, e);
        return;
    }
    mine.account = keep(c->arena, e->account);
    mine.job = keep(c->arena, e->job);
    mine.user = keep(c->arena, e->user);
    mine.gpu = keep(c->arena, e->gpu);
    mine.name = keep(c->arena, e->name);
    mine.labels = keep(c->arena, e->labels);
    /* The rest is borrowed, and nobody here asks for it. */
    mine.priority_class = NULL;
    mine.workload = mine.profile = mine.doc = mine.reason = mine.by = NULL;
    mine.child = mine.period = mine.zone = mine.booking = NULL;
    mine.grants = NULL;
    mine.ngrants = 0;
    st_vec_push(&c->open, mine);
}

static int keep_floors(st_bill_call *c, const st_ledger *ledger, const char *period, st_err *err)
{
    int r = st_ledger_idle_floors(ledger, c->book, period, &c->idle, err);

    if (r == 0)
        r = st_ledger_idle_bookings(ledger, c->book, period, &c->booked, err);
    for (size_t i = 0; r == 0 && i < c->idle.n; i++)
        c->idle.v[i].account = keep(c->arena, c->idle.v[i].account);
    for (size_t i = 0; r == 0 && i < c->booked.n; i++)
        c->booked.v[i].account = keep(c->arena, c->booked.v[i].account);
    return r;
}

static void find_book(st_bill_call *c, st_tx *tx)
{
    char buf[ST_NAME_MAX + 1];

    snprintf(c->book, sizeof c->book, "%s",
             c->fleet ? ST_BOOK_FLEET : st_tx_book(tx, c->account, buf));
}

static int fill(void *ctx, st_tx *tx, st_err *err)
{
    st_bill_call *c = ctx;
    const char *period = c->period[0] ? c->period : NULL;
    int r;

    c->now = st_tx_now(tx);
    find_book(c, tx);
    r = st_tx_bill(tx, c->account, period, &c->own, err);
    c->bill = &c->own;
    if (r == 0 && c->floors)
        r = keep_floors(c, st_tx_ledger(tx), period, err);
    if (r == 0 && (c->running || c->whole) && !c->own.closed)
        r = st_tx_open_entries(tx, c->account, keep_open, c, err);
    if (r == 0 && c->budget && !c->own.closed)
        r = st_tx_budget(tx, c->account, &c->state, err);
    if (r == 0 && c->devices)
        st_tx_fleet(tx, &c->where);
    if (r == 0 && c->prices)
        st_ledger_save(st_tx_ledger(tx), &c->ledger);
    return r;
}

/* In the loop: what leaves as a file is written down, and what proves itself is signed as of now. */
static int run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_bill_call *c = (st_bill_call *)cmd;
    char detail[64];
    int r = 0;

    c->now = st_tx_now(tx);
    find_book(c, tx);
    if (c->file)
        r = st_tx_bill_ask(tx, c->account, c->period[0] ? c->period : NULL, &c->ask, err);
    if (r < 0)
        return r;
    if (c->file)
        c->bill = st_bill_ask_bill(c->ask);
    snprintf(detail, sizeof detail, "{\"format\":\"%s\"}", c->format);
    return st_tx_audit(tx, st_api_who(c->call), "bill.export", c->account,
                       c->period[0] ? c->period : "open", detail, err);
}

static bool is_period(const char *text)
{
    for (int i = 0; i < 7; i++)
        if (i == 4 ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    return text[7] == '\0';
}

/* Where the devices were is nobody's but the cluster's (doc/decisions/0017). */
static bool may_see_fleet(const st_call *call, const char *account)
{
    const st_identity *who = st_api_who(call);

    return strcmp(account, ST_BOOK_FLEET) == 0 && !who->account[0] &&
           (who->role == ST_ROLE_OWNER || who->role == ST_ROLE_AUDITOR);
}

/* Of the path, or asked for; the open one where nobody says. */
static const char *period_of(const st_call *call)
{
    const char *asked;

    if (strchr(st_call_route(call)->pattern, '{'))
        return st_call_param(call, "period");
    asked = st_call_query(call, "period");
    return asked ? asked : "open";
}

st_bill_call *st_bill_call_new(st_api *api, st_call *call, const char *format,
                               void (*finish)(st_bill_call *c, st_store *reader))
{
    const char *account = st_call_query(call, "account"), *period = period_of(call);
    bool fleet = false;
    st_bill_call *c;

    if (!account)
        account = st_api_who(call)->account;
    if (finish == finish_entries && may_see_fleet(call, account)) {
        fleet = true;
        account = ""; /* its months are the cluster's */
    }
    if (strlen(account) >= sizeof c->account || !st_api_sees(api, call, account)) {
        st_api_no_such(call, "account", account);
        return NULL;
    }
    if (strcmp(period, "open") != 0 && !is_period(period)) {
        st_api_no_such(call, "month", period);
        return NULL;
    }
    c = st_xcalloc(1, sizeof *c);
    *c = (st_bill_call){.cmd = {.run = run, .done = done},
                        .api = api,
                        .call = call,
                        .format = format,
                        .leaves = strcmp(format, "json") != 0,
                        .finish = finish,
                        .fleet = fleet,
                        .arena = st_arena_new()};
    memcpy(c->account, account, strlen(account));
    if (is_period(period))
        memcpy(c->period, period, sizeof c->period);
    return c;
}

void st_bill_call_post(st_bill_call *c)
{
    st_call_defer(c->call);
    if (c->leaves)
        st_api_post(c->api, c->call, &c->cmd);
    else
        hand_over(c);
}

void st_bill_span(const st_bill *bill, const char *account, int64_t *from, int64_t *to)
{
    *from = 1;
    *to = 0;
    for (size_t i = 0; i < bill->uses.n; i++)
        if (strcmp(bill->uses.v[i].account, account) == 0 && bill->uses.v[i].first_seq > 0) {
            *from = bill->uses.v[i].first_seq;
            *to = bill->uses.v[i].last_seq;
        }
}

void st_bill_about(const st_bill_call *c, st_export_about *ret)
{
    *ret = (st_export_about){.cluster = st_control_cluster(c->api->control),
                             .currency = st_control_currency(c->api->control),
                             .zone = st_control_zone(c->api->control),
                             .made_ms = c->now,
                             .key = st_control_key(c->api->control),
                             .idle = c->floors ? &c->idle : NULL};
}

/* ---- formats ------------------------------------------------------------------------------------ */

typedef struct focus_pass {
    st_focus *focus;
    st_spool *out; /* NULL: the first pass */
    st_arena *arena;
    const char *period;
} focus_pass;

static int focus_row(void *ctx, const st_book_row *row, st_err *err)
{
    focus_pass *p = ctx;
    st_entry e;
    int r;

    if (strcmp(row->period, p->period) != 0)
        return 0;
    st_arena_reset(p->arena);
    r = st_entry_read(row->data, strlen(row->data), p->arena, &e, err);
    if (r < 0)
        return r;
    if (!p->out) {
        st_focus_learn(p->focus, &e);
        return 0;
    }
    st_focus_rows(p->focus, &e, st_spool_buf(p->out));
    return st_spool_flush(p->out, err);
}

static int focus_accounts(st_bill_call *c, st_store *reader, focus_pass *p, st_err *err)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < c->bill->uses.n; i++) {
        int64_t from, to;

        st_bill_span(c->bill, c->bill->uses.v[i].account, &from, &to);
        if (to >= from)
            r = st_store_book_of(reader, c->bill->uses.v[i].account, from, to, focus_row, p, err);
    }
    return r < 0 ? r : 0;
}

static int write_focus(st_bill_call *c, st_store *reader, st_spool *out, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_ledger_freep) st_ledger *ledger = NULL;
    ST_CLEANUP(st_focus_freep) st_focus *focus = NULL;
    st_export_about about;
    focus_pass p = {.arena = arena, .period = c->bill->period.name};
    int r = st_ledger_load(c->ledger.s, c->ledger.n, &ledger, err);

    if (r < 0)
        return r;
    st_bill_about(c, &about);
    const st_focus_about what = {.about = &about,
                                 .ledger = ledger,
                                 .account = c->book,
                                 .period = c->bill->period,
                                 .closed = c->bill->closed,
                                 .chargeback = c->bill->chargeback};
    p.focus = focus = st_focus_new(&what);
    for (size_t i = 0; i < c->bill->uses.n; i++) {
        const char *account = c->bill->uses.v[i].account,
                   *parent = st_ledger_parent(ledger, account);

        st_focus_account(focus, account, parent ? parent : "");
    }
    r = focus_accounts(c, reader, &p, err);
    if (r < 0)
        return r;
    st_focus_head(st_spool_buf(out));
    p.out = out;
    return focus_accounts(c, reader, &p, err);
}

/* ---- what may be long --------------------------------------------------------------------------- */

static int new_spool(const st_bill_call *c, st_spool **ret, st_err *err)
{
    const char *dir = c->api->options.spool_dir;

    return st_spool_new(c->call, dir ? dir : P_tmpdir, ret, err);
}

static int flush_spool(void *ctx, st_err *err)
{
    return st_spool_flush(ctx, err);
}

/* Takes the spool and, with r < 0, the error. */
static void reply_spool(const st_bill_call *c, const char *type, st_spool *spool, int r,
                        st_err *err)
{
    if (r == 0)
        r = st_call_reply_spool(c->call, 200, type, spool, err);
    if (r == 0)
        return;
    st_spool_free(spool);
    st_call_fail(c->call, err);
}

static void finish_long(st_bill_call *c, st_store *reader)
{
    const bool focus = strcmp(c->format, "focus") == 0;
    st_spool *spool = NULL;
    st_err err = {0};
    int r = new_spool(c, &spool, &err);

    if (r == 0 && focus)
        r = write_focus(c, reader, spool, &err);
    if (r == 0 && !focus)
        r = st_bill_ask_write(c->ask, reader,
                              &(st_bill_sink){st_spool_buf(spool), flush_spool, spool}, &err);
    reply_spool(c, focus ? "text/csv" : "application/jsonl", spool, r, &err);
}

static void finish_bill(st_bill_call *c, st_store *reader)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *type = NULL;
    st_export_about about;

    (void)reader;
    st_bill_about(c, &about);
    if (strcmp(c->format, "csv") == 0) {
        type = "text/csv";
        st_export_bill_csv(c->bill, &about, &out);
    } else if (strcmp(c->format, "html") == 0) {
        type = "text/html; charset=utf-8";
        st_export_bill_html(c->bill, &about, &out);
    } else {
        st_export_bill_json(c->bill, &about, &out);
    }
    st_call_reply_buf(c->call, 200, type, &out);
}

void st_api_bill_get(st_call *call, void *ctx)
{
    const char *format = st_call_query(call, "format");
    st_bill_call *c = st_bill_call_new(ctx, call, format ? format : "json", finish_bill);

    if (!c)
        return;
    c->prices = strcmp(c->format, "focus") == 0;
    c->file = strcmp(c->format, "file") == 0;
    if (c->prices || c->file)
        c->finish = finish_long;
    c->floors = strcmp(c->format, "json") == 0 || strcmp(c->format, "html") == 0;
    st_bill_call_post(c);
}

/* ---- the entries behind a line ---------------------------------------------------------------- */

typedef struct entry_list {
    const st_bill_call *c;
    const char *gpu, *level, *job; /* NULL: any */
    int component;                 /* -1: any */
    bool csv;
    int64_t limit, n, last; /* last: seq of the last that is in */
    bool more;
    st_arena *arena;
    st_strbuf *out;
    st_spool *spool; /* of csv: `out` is its */
} entry_list;

static bool entry_wanted(const entry_list *l, const st_entry *e)
{
    bool has = l->component < 0;

    if (e->kind == ST_ENTRY_ACCOUNT)
        return false; /* it only says that the book begins */
    for (int i = 0; i < e->nlines && !has; i++)
        has = (int)e->lines[i].what == l->component;
    if (!has || (l->gpu && strcmp(e->gpu ? e->gpu : "", l->gpu) != 0))
        return false;
    if (l->level && strcmp(e->gpu ? st_level_name(e->level) : "", l->level) != 0)
        return false;
    return !l->job || (e->job && strcmp(e->job, l->job) == 0);
}

static int entry_row(void *ctx, const st_book_row *row, st_err *err)
{
    entry_list *l = ctx;
    st_entry e;
    int r;

    st_arena_reset(l->arena);
    if (strcmp(row->period, l->c->bill->period.name) != 0)
        return 0;
    r = st_entry_read(row->data, strlen(row->data), l->arena, &e, err);
    if (r < 0 || !entry_wanted(l, &e))
        return r;
    if (l->n == l->limit) {
        l->more = true;
        return 1;
    }
    if (l->csv) {
        st_export_entry_csv(&e, l->out);
    } else {
        st_strbuf_add(l->out, l->n > 0 ? "," : "");
        st_strbuf_add(l->out, row->data);
    }
    l->n++;
    l->last = row->seq;
    return l->spool ? st_spool_flush(l->spool, err) : 0;
}

/* Behind the last of what is in the book: what runs, as if it ended now. */
static void end_entries(const entry_list *l)
{
    bool first = true;

    st_strbuf_add(l->out, "],\"running\":[");
    for (size_t i = 0; !l->more && i < l->c->open.n; i++) {
        if (!entry_wanted(l, &l->c->open.v[i]))
            continue;
        st_strbuf_add(l->out, first ? "" : ",");
        st_entry_write(&l->c->open.v[i], l->out);
        first = false;
    }
    st_strbuf_add(l->out, "],\"next\":");
    if (l->more)
        st_strbuf_addf(l->out, "\"%lld\"}", (long long)l->last);
    else
        st_strbuf_add(l->out, "null}");
}

/* As a table, without a limit, it is all of them. */
static int read_list(const st_bill_call *c, entry_list *l, int64_t *after, st_err *err)
{
    const char *component = st_call_query(c->call, "component"),
               *cursor = st_call_query(c->call, "cursor");
    char q[ST_QUOTE_MAX];

    if (l->limit < 1 || (l->limit > ENTRIES_MAX && !(l->csv && l->limit == INT64_MAX)))
        return st_fail(err, ST_ERANGE, "limit is from 1 to %d", ENTRIES_MAX);
    l->component = component ? st_component_parse(component) : -1;
    if (component && l->component < 0)
        return st_fail(err, ST_EINVAL, "there is no component %s", st_quote(q, component));
    if (cursor && st_parse_i64(cursor, 0, INT64_MAX, after, NULL) < 0)
        return st_fail(err, ST_EINVAL, "the cursor is none of ours: begin again without it");
    return 0;
}

static void finish_entries(st_bill_call *c, st_store *reader)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const bool csv = strcmp(c->format, "csv") == 0;
    entry_list l = {.c = c,
                    .gpu = st_call_query(c->call, "gpu"),
                    .level = st_call_query(c->call, "level"),
                    .job = st_call_query(c->call, "job"),
                    .csv = csv,
                    .limit = st_call_query_int(c->call, "limit", csv ? INT64_MAX : 100),
                    .arena = arena,
                    .out = &out};
    int64_t from, to, after = 0;
    st_err err = {0};
    int r = read_list(c, &l, &after, &err);

    if (r == 0 && csv)
        r = new_spool(c, &l.spool, &err);
    if (r == 0 && csv)
        st_export_entries_csv_head(l.out = st_spool_buf(l.spool));
    if (!csv)
        st_strbuf_add(&out, "{\"entries\":[");
    st_bill_span(c->bill, c->book, &from, &to);
    if (c->fleet) { /* no bill says where in it the month begins; it is short */
        from = 1;
        to = INT64_MAX;
    }
    if (r == 0 && ST_MAX(from, after + 1) <= to)
        r = st_store_book_of(reader, c->book, ST_MAX(from, after + 1), to, entry_row, &l, &err);
    if (csv) {
        reply_spool(c, "text/csv", l.spool, r, &err);
    } else if (r < 0) {
        st_call_fail(c->call, &err);
    } else {
        end_entries(&l);
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
}

void st_api_bill_entries(st_call *call, void *ctx)
{
    const char *format = st_call_query(call, "format");
    st_bill_call *c = st_bill_call_new(ctx, call, format ? format : "json", finish_entries);

    if (!c)
        return;
    c->whole = strcmp(c->format, "json") == 0;
    st_bill_call_post(c);
}
