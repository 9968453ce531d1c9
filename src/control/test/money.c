/*
 * Steps that tests of money share (test/money.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/restore.h"
#include "control/test/money.h"

/* ---- steps ------------------------------------------------------------------------------------- */

void publish(world *w, const char *text)
{
    st_cmd_prices *cmd = calloc(1, sizeof *cmd);
    st_err err = {0};

    cmd->who = owner;
    cmd->now = strstr(text, "from:") == NULL;
    assert_ok(st_price_book_read("prices", text, strlen(text), w->now, &cmd->book, &err));
    st_cmd_prices_init(cmd);
    assert_ok(do_cmd(w, &cmd->cmd, &err));
    assert_true(cmd->seq > 0);
    free(cmd);
    let_pass(w, 10);
}

int set_plan(world *w, const char *text, st_err *err)
{
    st_cmd_plan cmd = {.who = owner, .now = true};
    int r;

    assert_int_equal(st_price_plan_read("plan", text, strlen(text), w->now, &cmd.plan, err), 0);
    st_cmd_plan_init(&cmd);
    r = do_cmd(w, &cmd.cmd, err);
    let_pass(w, 10);
    return r;
}

uint64_t start_job(world *w, const char *doc)
{
    st_err err = {0};
    uint64_t id = 0;

    assert_ok(submit(w, NULL, doc, &id, &err));
    return id;
}

void end_job(world *w, uint64_t id, int64_t ended_ms)
{
    const st_report report = {.kind = ST_REPORT_ENDED, .job = id, .stay = 1, .ended_ms = ended_ms};

    st_control_report(w->ctl, &report);
    nudge(w);
}

typedef struct ask {
    st_cmd cmd;
    int (*fn)(st_tx *tx, void *ctx, st_err *err);
    void *ctx;
} ask;

static int run_ask(st_tx *tx, st_cmd *cmd, st_err *err)
{
    ask *a = (ask *)cmd;

    return a->fn ? a->fn(tx, a->ctx, err) : 0;
}

int in_loop(world *w, int (*fn)(st_tx *tx, void *ctx, st_err *err), void *ctx, st_err *err)
{
    ask a = {.cmd = {.run = run_ask}, .fn = fn, .ctx = ctx};

    return do_cmd(w, &a.cmd, err);
}

void nudge(world *w)
{
    st_err err = {0};

    assert_ok(in_loop(w, NULL, NULL, &err));
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int keep(void *ctx, const st_book_row *row, st_err *err)
{
    seen *s = ctx;
    st_entry e;
    const char *data = st_arena_strdup(s->arena, row->data);
    int r = st_entry_read(data, strlen(data), s->arena, &e, err);

    if (r == 0)
        st_vec_push(&s->list, e);
    return r;
}

void read_book(world *w, const char *account, seen *ret)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    st_err err = {0};

    *ret = (seen){.arena = st_arena_new()};
    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_book_of(reader, account, 1, INT64_MAX, keep, ret, &err));
}

void forget(seen *s)
{
    st_arena_free(s->arena);
    st_vec_free(&s->list);
}

const st_entry *nth(const seen *s, st_entry_kind kind, int n)
{
    for (size_t i = 0; i < s->list.n; i++)
        if (s->list.v[i].kind == kind && n-- == 0)
            return &s->list.v[i];
    return NULL;
}

int count(const seen *s, st_entry_kind kind)
{
    int n = 0;

    while (nth(s, kind, n))
        n++;
    return n;
}

int64_t paid(const st_entry *e)
{
    int64_t sum = 0;

    for (int i = 0; i < e->nlines; i++)
        sum += e->lines[i].amount;
    return sum;
}

typedef struct bill_ctx {
    const char *account, *period;
    int64_t total, busy;
    bool closed;
    st_i128 sum;
} bill_ctx;

static int ask_bill(st_tx *tx, void *ctx, st_err *err)
{
    bill_ctx *b = ctx;
    st_bill bill = {0};
    int r = st_tx_bill(tx, b->account, b->period, &bill, err);

    if (r == 0) {
        b->total = bill.total;
        b->closed = bill.closed;
        for (size_t i = 0; i < bill.uses.n; i++)
            b->busy += bill.uses.v[i].busy;
        b->sum = st_ledger_sum(st_tx_ledger(tx));
        st_bill_done(&bill);
    }
    return r;
}

int64_t total_of(world *w, const char *account, const char *period)
{
    bill_ctx b = {.account = account, .period = period};
    st_err err = {0};

    assert_ok(in_loop(w, ask_bill, &b, &err));
    assert_true(b.sum == 0);
    return b.total;
}

int64_t busy_of(world *w, const char *account)
{
    bill_ctx b = {.account = account};
    st_err err = {0};

    assert_ok(in_loop(w, ask_bill, &b, &err));
    return b.busy;
}

/* ---- files of bills -------------------------------------------------------------------------------- */

typedef struct file_ctx {
    const char *account, *period;
    st_bill_ask *ask;
} file_ctx;

static int ask_file(st_tx *tx, void *ctx, st_err *err)
{
    file_ctx *f = ctx;

    return st_tx_bill_ask(tx, f->account, f->period, &f->ask, err);
}

void expect_file_without(world *w, const char *account, const char *period, const char *above)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    file_ctx f = {.account = account, .period = period};
    st_verdict verdict;
    st_err err = {0};

    assert_ok(in_loop(w, ask_file, &f, &err));
    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_bill_ask_write(f.ask, reader, &(st_bill_sink){.out = &out}, &err));
    st_billfile_verify(out.s, out.n, st_control_key(w->ctl), &verdict);
    if (!verdict.good)
        print_error("%s %s: %s\n%s", account, period ? period : "now", verdict.what, out.s);
    assert_true(verdict.good);
    assert_int_equal(verdict.total, st_bill_ask_bill(f.ask)->total);
    assert_true(!above || !strstr(out.s, above));
    st_bill_ask_free(f.ask);
    out.s[out.n / 2] ^= 1;
    st_billfile_verify(out.s, out.n, NULL, &verdict);
    assert_false(verdict.good);
}

void expect_file(world *w, const char *account, const char *period)
{
    expect_file_without(w, account, period, NULL);
}

/* ---- restored ---------------------------------------------------------------------------------------- */

void close_control(world *w)
{
    st_control_free(w->ctl);
    w->ctl = NULL;
}

int mark_restored(world *w, int64_t now_ms, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    return st_control_mark_restored(w->place.path, "a backup", now_ms, &out, err);
}

static void note_plan(st_cmd_restore *cmd, const st_restore_view *view)
{
    st_strbuf_clear(&cmd->out);
    st_strbuf_add(&cmd->out, view->plan ? view->plan->digest : "");
}

void accept_plan(world *w)
{
    st_cmd_restore look = {.who = owner, .show = note_plan}, accept = {.who = owner};
    st_err err = {0};

    st_cmd_restore_init(&look);
    assert_ok(do_cmd(w, &look.cmd, &err));
    accept.accept = st_strbuf_str(&look.out);
    st_cmd_restore_init(&accept);
    assert_ok(do_cmd(w, &accept.cmd, &err));
    st_strbuf_done(&look.out);
    nudge(w);
    assert_int_equal(st_control_restore_state(w->ctl), ST_RESTORE_NONE);
}

void restore_backup(world *w)
{
    char beside[120];
    st_err err = {0};

    close_control(w);
    for (int i = 0; i < 2; i++) {
        snprintf(beside, sizeof beside, "%s%s", w->place.path, i ? "-wal" : "-shm");
        unlink(beside);
    }
    assert_int_equal(rename(w->place.second, w->place.path), 0);
    assert_ok(mark_restored(w, w->now, &err));
    assert_ok(open_control(w, &err));
    accept_plan(w);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

void found(void *ctx, const char *sentence)
{
    st_strbuf_addf(ctx, "%s\n", sentence);
}

void expect_sound(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    int64_t n = 0;
    st_err err = {0};

    st_control_stop(w->ctl);
    assert_ok(st_control_check(st_control_store(w->ctl), NULL, found, &out, &n, &err));
    if (n > 0)
        print_error("%s", st_strbuf_str(&out));
    assert_int_equal(n, 0);
}
