/*
 * Metering and the books in the loop, with a real store: what a job costs, days and months that end, prices that change,
 * caps, restarts, a store that fails, files of bills, and what is found when somebody has changed a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/billing.h"
#include "control/test/world.h"
#include "store/test/tamper.h"

#define S     INT64_C(1000)
#define H     (3600 * S)
#define DAY   (24 * H)
#define OCT_1 (1790812800 * S) /* 2026-10-01, UTC */
#define NOON  (OCT_1 + 12 * H)

/* Three dollars an hour of burst: a GPU-second is 833 1/3 micro-dollars. */
#define PRICES "prices: first\ngpu: {\"*\": {reserved: 1, burst: 3}}\n"

/* ---- steps ------------------------------------------------------------------------------------- */

static int begin_at_noon(void **state)
{
    world *w;

    begin_at(state, NOON);
    w = *state;
    w->limit_ms = ST_TIME_NEVER;
    make_fleet(w);
    return 0;
}

static void publish(world *w, const char *text)
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

static int set_plan(world *w, const char *text, st_err *err)
{
    st_cmd_plan cmd = {.who = owner, .now = true};
    int r;

    assert_int_equal(st_price_plan_read("plan", text, strlen(text), w->now, &cmd.plan, err), 0);
    st_cmd_plan_init(&cmd);
    r = do_cmd(w, &cmd.cmd, err);
    let_pass(w, 10);
    return r;
}

static uint64_t start_job(world *w, const char *doc)
{
    st_err err = {0};
    uint64_t id = 0;

    assert_ok(submit(w, NULL, doc, &id, &err));
    return id;
}

/* An engine's report, and a command behind it, so that it has been taken. */
static void nudge(world *w);

static void end_job(world *w, uint64_t id, int64_t ended_ms)
{
    const st_report report = {.kind = ST_REPORT_ENDED, .job = id, .stay = 1, .ended_ms = ended_ms};

    st_control_report(w->ctl, &report);
    nudge(w);
}

typedef struct ask {
    st_cmd_ask cmd;
    int (*fn)(st_tx *tx, void *ctx, st_err *err);
    void *ctx;
} ask;

static int run_ask(st_cmd_ask *cmd, st_tx *tx, st_err *err)
{
    ask *a = (ask *)cmd;

    return a->fn ? a->fn(tx, a->ctx, err) : 0;
}

static int in_loop(world *w, int (*fn)(st_tx *tx, void *ctx, st_err *err), void *ctx, st_err *err)
{
    ask a = {.cmd = {.ask = run_ask}, .fn = fn, .ctx = ctx};

    st_cmd_ask_init(&a.cmd);
    return do_cmd(w, &a.cmd.cmd, err);
}

static void nudge(world *w)
{
    st_err err = {0};

    assert_ok(in_loop(w, NULL, NULL, &err));
}

/* ---- reading ------------------------------------------------------------------------------------ */

typedef struct seen {
    st_arena *arena;
    ST_VEC(st_entry) list;
} seen;

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

static void read_book(world *w, const char *account, seen *ret)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    st_err err = {0};

    *ret = (seen){.arena = st_arena_new()};
    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_book_of(reader, account, 1, INT64_MAX, keep, ret, &err));
}

static void forget(seen *s)
{
    st_arena_free(s->arena);
    st_vec_free(&s->list);
}

static const st_entry *nth(const seen *s, st_entry_kind kind, int n)
{
    for (size_t i = 0; i < s->list.n; i++)
        if (s->list.v[i].kind == kind && n-- == 0)
            return &s->list.v[i];
    return NULL;
}

static int count(const seen *s, st_entry_kind kind)
{
    int n = 0;

    while (nth(s, kind, n))
        n++;
    return n;
}

static int64_t paid(const st_entry *e)
{
    int64_t sum = 0;

    for (int i = 0; i < e->nlines; i++)
        sum += e->lines[i].amount;
    return sum;
}

typedef struct bill_ctx {
    const char *account, *period;
    int64_t total;
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
        b->sum = st_ledger_sum(st_tx_ledger(tx));
        st_bill_done(&bill);
    }
    return r;
}

static int64_t total_of(world *w, const char *account, const char *period)
{
    bill_ctx b = {.account = account, .period = period};
    st_err err = {0};

    assert_ok(in_loop(w, ask_bill, &b, &err));
    assert_true(b.sum == 0);
    return b.total;
}

static void found(void *ctx, const char *sentence)
{
    st_strbuf_addf(ctx, "%s\n", sentence);
}

/* Stops, and looks at everything. */
static void expect_sound(world *w)
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

/* ---- usage ---------------------------------------------------------------------------------------- */

static void a_job_is_metered_and_paid(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{\"workload\":\"training\"}");
    let_pass(w, 10 * S);
    assert_int_equal(total_of(w, "team", NULL), 8333); /* still running: as if it ended now */
    end_job(w, id, 0);
    assert_int_equal(total_of(w, "team", NULL), 8333);
    assert_int_equal(total_of(w, "", NULL), 8333);
    read_book(w, "team", &book);
    const st_entry *e = nth(&book, ST_ENTRY_USAGE, 0);
    assert_non_null(e);
    assert_int_equal(e->to_ms - e->from_ms, 10 * S);
    assert_int_equal(e->share, 1000 * 10 * S);
    assert_int_equal(e->cut, ST_CUT_ENDED);
    assert_string_equal(e->gpu, "h100");
    assert_string_equal(e->user, "ann");
    assert_string_equal(e->workload, "training");
    assert_int_equal(e->ngrants, 1);
    assert_string_equal(e->grants[0].node, "n1");
    assert_int_equal(paid(e), 8333);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    forget(&book);
    expect_sound(w);
}

/* Without prices usage is booked all the same. */
static void metering_needs_no_prices(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id = start_job(w, "{}");

    let_pass(w, 60 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    assert_int_equal(paid(nth(&book, ST_ENTRY_USAGE, 0)), 0);
    forget(&book);
    assert_int_equal(total_of(w, "team", NULL), 0);
    expect_sound(w);
}

/* What an agent says of the end counts: the time until that was heard is nobody's. */
static void the_true_end(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id = start_job(w, "{}");

    let_pass(w, 60 * S);
    end_job(w, id, w->now - 20 * S);
    read_book(w, "team", &book);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 0)->share, 1000 * 40 * S);
    forget(&book);
    expect_sound(w);
}

/* From noon over midnight, the end of October and on: each piece begins where the last one ended, at the very
 * instant, although nobody was awake then. */
static void days_and_months_end(void **state)
{
    world *w = *state;
    const int64_t nov = OCT_1 + 31 * DAY;
    int64_t from;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{}");
    from = w->now;
    let_pass(w, nov + 6 * H - w->now);
    restart(w);
    nudge(w);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 32);
    for (int i = 0; i < 32; i++) {
        const st_entry *e = nth(&book, ST_ENTRY_USAGE, i);

        assert_int_equal(e->piece, i + 1);
        assert_int_equal(e->from_ms, i == 0 ? from : OCT_1 + i * DAY);
        assert_int_equal(e->to_ms, i == 31 ? nov + 6 * H : OCT_1 + (i + 1) * DAY);
    }
    const st_entry *close = nth(&book, ST_ENTRY_CLOSE, 0);
    assert_non_null(close);
    assert_string_equal(close->period, "2026-10");
    assert_int_equal(close->to_ms, nov);
    assert_int_equal(count(&book, ST_ENTRY_CLOSE), 1);
    forget(&book);
    /* 6 hours at 3 dollars. */
    assert_int_equal(total_of(w, "team", NULL), 18000000);
    assert_int_equal(total_of(w, "team", "2026-11"), 18000000);
    assert_int_equal(total_of(w, "team", "2026-10"), (nov - from) * 3000000 / H);
    expect_sound(w);
}

static void a_price_changes_in_between(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{}");
    let_pass(w, H);
    publish(w, "prices: second\ngpu: {\"*\": {reserved: 1, burst: 6}}\n");
    let_pass(w, H);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 2);
    const st_entry *a = nth(&book, ST_ENTRY_USAGE, 0), *b = nth(&book, ST_ENTRY_USAGE, 1);
    assert_int_equal(a->to_ms, b->from_ms);
    assert_int_equal(a->lines[0].rate, 3000000);
    assert_int_equal(b->lines[0].rate, 6000000);
    assert_int_equal(a->to_ms - a->from_ms, H + 1); /* from the next millisecond on */
    forget(&book);
    expect_sound(w);
}

static void the_past_keeps_its_price(void **state)
{
    world *w = *state;
    st_cmd_prices *cmd = calloc(1, sizeof *cmd);
    st_err err = {0};

    cmd->who = owner;
    assert_ok(st_price_book_read("prices", PRICES, strlen(PRICES), w->now - H, &cmd->book, &err));
    st_cmd_prices_init(cmd);
    assert_fails(do_cmd(w, &cmd->cmd, &err), ST_EINVAL, "in the past");
    free(cmd);
}

/* ---- telemetry --------------------------------------------------------------------------------------- */

static void used(world *w, uint64_t id, int64_t seen_ms, int64_t busy_ms, bool last)
{
    st_report r = {.kind = ST_REPORT_USED, .job = id, .stay = 1, .last = last};

    r.used.has = 1u << ST_USED_SEEN | 1u << ST_USED_BUSY | 1u << ST_USED_HELD;
    r.used.v[ST_USED_SEEN] = r.used.v[ST_USED_HELD] = seen_ms;
    r.used.v[ST_USED_BUSY] = busy_ms;
    st_control_report(w->ctl, &r);
    nudge(w);
}

static void telemetry_counts_once(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id = start_job(w, "{}");

    let_pass(w, 60 * S);
    used(w, id, 30 * S, 10 * S, false);
    used(w, id, 60 * S, 20 * S, false);
    used(w, id, 30 * S, 10 * S, false); /* out of order */
    restart(w);                         /* and forgotten: it was not needed yet */
    used(w, id, 60 * S, 20 * S, false);
    let_pass(w, DAY / 2 - 60 * S); /* a day ends */
    nudge(w);
    restart(w);
    let_pass(w, 20 * S);
    used(w, id, 80 * S, 30 * S, false);
    let_pass(w, 20 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 2);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 0)->busy, 1000 * 20 * S);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 1)->busy, 1000 * 10 * S);
    forget(&book);
    /* What comes behind the end is a correction, once. */
    used(w, id, 90 * S, 35 * S, true);
    used(w, id, 90 * S, 35 * S, true);
    restart(w);
    used(w, id, 90 * S, 35 * S, true);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_FIX), 1);
    assert_int_equal(nth(&book, ST_ENTRY_FIX, 0)->fixes, nth(&book, ST_ENTRY_USAGE, 1)->seq);
    assert_int_equal(nth(&book, ST_ENTRY_FIX, 0)->busy, 1000 * 5 * S);
    forget(&book);
    expect_sound(w);
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

static void frames_are_paid_by_piece(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES "pieces: {render: {frames: 0.05}}\n");
    id = start_job(w,
                   "{\"workload\":\"render\",\"array\":{\"index\":0,\"count\":2,\"frames\":[1,20],"
                   "\"step\":2}}");
    let_pass(w, H);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_PIECES), 1);
    assert_int_equal(nth(&book, ST_ENTRY_PIECES, 0)->pieces, 10);
    assert_int_equal(paid(nth(&book, ST_ENTRY_PIECES, 0)), 500000);
    forget(&book);
    assert_int_equal(total_of(w, "team", NULL), 500000);
    expect_sound(w);
}

/* ---- caps ------------------------------------------------------------------------------------------------ */

static int ask_budget(st_tx *tx, void *ctx, st_err *err)
{
    return st_tx_budget(tx, "team", ctx, err);
}

/* A job of an hour costs 3 dollars at most; two of them do not fit under a cap of 5. */
static void a_cap_is_kept_at_the_door(void **state)
{
    world *w = *state;
    st_budget_state budget;
    uint64_t id, next;
    st_err err = {0};

    w->limit_ms = H;
    publish(w, PRICES);
    assert_ok(set_plan(w, "account: team\ncap: 5\n", &err));
    nudge(w);
    id = start_job(w, "{}");
    assert_fails(submit(w, NULL, "{}", &next, &err), ST_EBUDGET, "team");
    assert_ok(in_loop(w, ask_budget, &budget, &err));
    assert_in_range(budget.held, 3000000, 3001000); /* and what rounding might add */
    restart(w);                                     /* a hold survives that */
    assert_fails(submit(w, NULL, "{}", &next, &err), ST_EBUDGET, "team");
    let_pass(w, 600 * S);
    end_job(w, id, 0);
    assert_ok(in_loop(w, ask_budget, &budget, &err));
    assert_int_equal(budget.held, 0);
    assert_int_equal(budget.spent, 500000);
    start_job(w, "{}");
    /* A lower cap must wait for the next month. */
    assert_int_equal(set_plan(w, "account: team\ncap: 0.1\n", &err), -ST_EBUDGET);
    expect_sound(w);
}

/* October has 30.5 days left: a GPU's floor costs 732 dollars. What is handed down costs nothing more. */
static void floors_pass_caps(void **state)
{
    world *w = *state;
    st_err err = {0};

    publish(w, PRICES);
    make_account(w, "org", "", "{name: org, guarantee: {gpu: 1}}");
    assert_ok(set_plan(w, "account: org\ncap: 1000\n", &err));
    nudge(w);
    assert_fails(put_account(w, false, "org", "", "{guarantee: {gpu: 2}}", &err), ST_EBUDGET,
                 "org");
    make_account(w, "inner", "org", "{name: inner, guarantee: {gpu: 1}}");
    assert_ok(put_account(w, false, "inner", "org", "{guarantee: {gpu: 0}}", &err));
    assert_ok(set_plan(w, "account: org\ncap: 2000\n", &err));
    nudge(w);
    assert_ok(put_account(w, false, "org", "", "{guarantee: {gpu: 2}}", &err));
    assert_ok(set_plan(w, "account: \"\"\ncap: 2000\n", &err));
    nudge(w);
    assert_int_equal(put_account(w, true, "new", "", "{name: new, guarantee: {gpu: 1}}", &err),
                     -ST_EBUDGET);
    expect_sound(w);
}

/* A month is closed in the zone it was opened in; the next one ends where the new zone says. */
static void a_zone_is_changed(void **state)
{
    static const char *const zones[] = {"Europe/Berlin", "America/New_York", "UTC"};
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{}");
    for (size_t i = 0; i < ST_ARRAY_LEN(zones); i++) {
        w->billing.zone = zones[i];
        restart(w);
        let_pass(w, 31 * DAY);
        nudge(w);
    }
    end_job(w, id, 0);
    read_book(w, "team", &book);
    /* November began in UTC, December in Berlin (the 30th, 23:00), January in New York. */
    assert_int_equal(count(&book, ST_ENTRY_CLOSE), 3);
    assert_int_equal(nth(&book, ST_ENTRY_CLOSE, 0)->to_ms, OCT_1 + 31 * DAY);
    assert_string_equal(nth(&book, ST_ENTRY_CLOSE, 1)->period, "2026-11");
    assert_int_equal(nth(&book, ST_ENTRY_CLOSE, 1)->to_ms, OCT_1 + 61 * DAY - H);
    assert_string_equal(nth(&book, ST_ENTRY_CLOSE, 2)->period, "2026-12");
    assert_int_equal(nth(&book, ST_ENTRY_CLOSE, 2)->to_ms, OCT_1 + 92 * DAY + 5 * H);
    forget(&book);
    restart(w);
    expect_sound(w);
}

/* ---- restarts and a store that fails ---------------------------------------------------------------------- */

static void a_restart_changes_nothing(void **state)
{
    world *w = *state;
    uint64_t ids[6];
    int64_t before;

    publish(w, PRICES);
    for (int i = 0; i < 6; i++) {
        ids[i] = start_job(w, "{}");
        let_pass(w, 777);
    }
    end_job(w, ids[0], 0);
    before = total_of(w, "team", NULL);
    for (int i = 1; i < 6; i++) {
        restart(w);
        assert_int_equal(total_of(w, "team", NULL), before);
        let_pass(w, 1234);
        end_job(w, ids[i], 0);
        before = total_of(w, "team", NULL);
    }
    expect_sound(w);
}

static void a_failing_store_books_nothing_twice(void **state)
{
    world *w = *state;
    st_err err = {0};
    seen book;
    uint64_t id, next;

    publish(w, PRICES);
    id = start_job(w, "{}");
    let_pass(w, 10 * S);
    const st_report report = {.kind = ST_REPORT_ENDED, .job = id, .stay = 1};
    faulty_arm(w->vfs, FAULT_SYNC, 1);
    st_control_report(w->ctl, &report);
    assert_int_equal(submit(w, NULL, "{}", &next, &err), -ST_EDOWN);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    let_pass(w, 20 * S);
    for (int i = 0; i < 200 && submit(w, NULL, "{}", &next, &err) < 0; i++)
        let_pass(w, S);
    assert_int_equal(err.code, 0);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 0)->cut, ST_CUT_ENDED);
    forget(&book);
    expect_sound(w);
}

/* A store from before there was money: the books begin when it is opened, with what is running. */
static void books_begin_where_they_were_not(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_store *store;
    st_core *core = NULL;
    seen book;
    st_err err = {0};
    uint64_t id = start_job(w, "{}");

    let_pass(w, 100 * S);
    nudge(w);
    st_control_stop(w->ctl);
    store = st_control_store(w->ctl);
    assert_ok(st_control_replay(store, &core, &err));
    st_core_save(core, &saved);
    int64_t seq = 0;
    assert_ok(st_store_log_last(store, &seq, &err));
    const st_snap_row snap = {
        .seq = seq, .at_ms = w->now, .version = ST_VERSION, .data = {saved.s, saved.n}};
    tamper_exec(store, "DELETE FROM book; DELETE FROM checkpoints; "
                       "DELETE FROM snap; DELETE FROM meta WHERE k LIKE 'billing%'");
    assert_ok(st_store_snap_put(store, &snap, &err));
    st_core_free(core);
    restart(w);
    nudge(w);
    let_pass(w, 50 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(nth(&book, ST_ENTRY_ACCOUNT, 0)->seq, 1);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    assert_in_range(nth(&book, ST_ENTRY_USAGE, 0)->to_ms - nth(&book, ST_ENTRY_USAGE, 0)->from_ms,
                    50 * S - 1, 50 * S + 1);
    forget(&book);
    expect_sound(w);
}

/* An entry without an event moves the books' time and not the core's. */
static void a_clock_set_back_is_outlived(void **state)
{
    world *w = *state;
    st_cmd_credit credit = {
        .who = owner, .account = "team", .reason = "sorry", .amount_udollars = 5000000};
    st_err err = {0};
    seen book;
    uint64_t id;

    let_pass(w, H);
    st_cmd_credit_init(&credit);
    assert_ok(do_cmd(w, &credit.cmd, &err));
    assert_int_equal(total_of(w, "team", NULL), -5000000);
    st_control_free(w->ctl);
    let_pass(w, -30 * 60 * S);
    assert_ok(open_control(w, &err));
    id = start_job(w, "{}");
    let_pass(w, 40 * 60 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    const st_entry *e = nth(&book, ST_ENTRY_USAGE, 0);
    assert_int_equal(e->from_ms, NOON + H);
    assert_int_equal(e->to_ms, NOON + H + 10 * 60 * S);
    forget(&book);
    expect_sound(w);
}

/* Once a day, in a quiet moment, everything is compared. */
static void every_day_is_compared(void **state)
{
    world *w = *state;
    st_control_stats stats = {0};
    uint64_t id = start_job(w, "{}");

    nudge(w);
    let_pass(w, DAY);
    end_job(w, id, 0);
    for (int i = 0; i < 500 && __atomic_load_n(&w->compared, __ATOMIC_RELAXED) == 0; i++) {
        nudge(w);
        usleep(2000);
    }
    st_control_stats_get(w->ctl, &stats);
    assert_int_equal(stats.differences, 0);
    assert_true(stats.entries > 0);
    expect_sound(w);
    assert_int_equal(w->compared, 1);
}

/* ---- proofs ------------------------------------------------------------------------------------------------ */

typedef struct file_ctx {
    const char *account, *period;
    st_bill_ask *ask;
} file_ctx;

static int ask_file(st_tx *tx, void *ctx, st_err *err)
{
    file_ctx *f = ctx;

    return st_tx_bill_ask(tx, f->account, f->period, &f->ask, err);
}

static void expect_file(world *w, const char *account, const char *period)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    file_ctx f = {.account = account, .period = period};
    st_verdict verdict;
    st_err err = {0};

    assert_ok(in_loop(w, ask_file, &f, &err));
    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_bill_ask_write(f.ask, reader, &out, &err));
    st_billfile_verify(out.s, out.n, st_control_key(w->ctl), &verdict);
    if (!verdict.good)
        print_error("%s %s: %s\n%s", account, period ? period : "now", verdict.what, out.s);
    assert_true(verdict.good);
    assert_int_equal(verdict.total, st_bill_ask_bill(f.ask)->total);
    st_bill_ask_free(f.ask);
    out.s[out.n / 2] ^= 1;
    st_billfile_verify(out.s, out.n, NULL, &verdict);
    assert_false(verdict.good);
}

static void files_prove_themselves(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id;

    make_account(w, "org", "", "{name: org, guarantee: {gpu: 2}}");
    make_account(w, "inner", "org", "{name: inner, guarantee: {gpu: 1}}");
    publish(w, PRICES);
    expect_file(w, "team", NULL);
    assert_ok(set_plan(w, "account: org\ndiscount: 10%\n", &err));
    assert_ok(set_plan(w, "account: team\nchargeback: true\n", &err));
    id = start_job(w, "{}");
    let_pass(w, 10 * DAY);
    expect_file(w, "team", NULL);
    let_pass(w, 25 * DAY);
    nudge(w);
    end_job(w, id, 0);
    make_account(w, "young", "org", "{name: young}");
    restart(w);
    for (int i = 0; i < 2; i++) {
        const char *period = i ? "2026-10" : NULL;

        expect_file(w, "team", period);
        expect_file(w, "org", period);
        expect_file(w, "inner", period);
        expect_file(w, "", period);
    }
    expect_file(w, "young", NULL);
    expect_sound(w);
}

static void the_key_is_kept(void **state)
{
    world *w = *state;
    unsigned char key[32];
    char path[200];
    struct stat st;

    memcpy(key, st_control_key(w->ctl), sizeof key);
    snprintf(path, sizeof path, "%s/billing.key", w->place.folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    restart(w);
    assert_memory_equal(key, st_control_key(w->ctl), sizeof key);
    expect_sound(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_at_noon, end)
    const struct CMUnitTest tests[] = {
        TEST(a_job_is_metered_and_paid),
        TEST(metering_needs_no_prices),
        TEST(the_true_end),
        TEST(days_and_months_end),
        TEST(a_price_changes_in_between),
        TEST(the_past_keeps_its_price),
        TEST(telemetry_counts_once),
        TEST(frames_are_paid_by_piece),
        TEST(a_cap_is_kept_at_the_door),
        TEST(floors_pass_caps),
        TEST(a_zone_is_changed),
        TEST(a_restart_changes_nothing),
        TEST(a_failing_store_books_nothing_twice),
        TEST(books_begin_where_they_were_not),
        TEST(a_clock_set_back_is_outlived),
        TEST(every_day_is_compared),
        TEST(files_prove_themselves),
        TEST(the_key_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
