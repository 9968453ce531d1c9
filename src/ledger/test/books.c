/* Entries with few words, for tests. */
#include "base/mem.h"
#include "base/testing.h"
#include "ledger/test/books.h"

st_ledger *books_new(void)
{
    st_ledger *l = st_ledger_new();
    st_ledger_set_period(l, &(st_period){"2026-10", OCT_1, NOV_1});
    return l;
}

static int64_t next_seq(const st_ledger *l, const char *account)
{
    int64_t seq = st_ledger_seq(l, account);
    return seq < 0 ? 1 : seq + 1;
}

void books_put(st_ledger *l, st_entry *e)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_entry again;
    st_err err = {0};
    e->seq = next_seq(l, e->account);
    st_entry_write(e, &text);
    assert_ok(st_entry_read(text.s, text.n, arena, &again, &err));
    assert_ok(st_ledger_apply(l, &again, &err));
    assert_true(st_ledger_sum(l) == 0);
}

void books_post(st_ledger *l, st_entry *e)
{
    st_err err = {0};
    assert_ok(st_ledger_price(l, e, &err));
    assert_true(e->contra);
    books_put(l, e);
}

void books_lose_at(st_ledger *l, const st_entry *usage, st_piece_sum *sum, int64_t from_ms,
                   int64_t lost, int64_t at_ms)
{
    st_piece_sum own = {0};
    st_entry e = {.kind = ST_ENTRY_LOST,
                  .at_ms = at_ms,
                  .account = usage->account,
                  .job = usage->job,
                  .user = usage->user,
                  .stay = usage->stay,
                  .piece = usage->piece,
                  .gpu = usage->gpu,
                  .level = usage->level,
                  .basis = usage->basis,
                  .cut = st_cut_blameless(usage->cut) ? usage->cut : ST_CUT_PREEMPTED,
                  .from_ms = from_ms,
                  .to_ms = usage->to_ms,
                  .lost = lost};
    if (!sum)
        sum = &own;
    st_piece_add(sum, usage);
    st_ledger_lost(l, sum, &e);
    books_post(l, &e);
    st_piece_add(sum, &e);
}

void books_lose(st_ledger *l, const st_entry *usage, st_piece_sum *sum, int64_t from_ms,
                int64_t lost)
{
    books_lose_at(l, usage, sum, from_ms, lost, usage->at_ms);
}

/* What follows from a plan or an account, for each that it is for. */
static void put_terms(st_ledger *l, int64_t at_ms)
{
    st_entry e;
    while (st_ledger_due(l, &e)) {
        e.at_ms = at_ms;
        books_put(l, &e);
    }
}

void books_new_account(st_ledger *l, int64_t at_ms, const char *name, const char *parent)
{
    books_put(l, &(st_entry){.kind = ST_ENTRY_CHILD,
                             .at_ms = at_ms,
                             .account = *parent ? parent : ST_BOOK_FLEET,
                             .child = name});
    books_put(l, &(st_entry){.kind = ST_ENTRY_ACCOUNT, .at_ms = at_ms, .account = name});
    put_terms(l, at_ms);
}

void books_account(st_ledger *l, const char *name, const char *parent)
{
    books_new_account(l, OCT_1, name, parent);
}

void books_prices(st_ledger *l, int64_t at_ms, const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    ST_CLEANUP(st_freep) st_price_book *book = st_xcalloc(1, sizeof *book);
    st_err err = {0};
    assert_ok(st_price_book_read("prices.yaml", text, strlen(text), at_ms, book, &err));
    st_price_book_write(book, &doc);
    books_put(l, &(st_entry){.kind = ST_ENTRY_PRICES, .at_ms = at_ms, .account = "", .doc = doc.s});
}

void books_plan(st_ledger *l, int64_t at_ms, const char *text)
{
    st_price_plan plan;
    st_err err = {0};
    assert_ok(st_price_plan_read("plan.yaml", text, strlen(text), at_ms, &plan, &err));
    books_put_plan(l, at_ms, &plan);
}

void books_put_plan(st_ledger *l, int64_t at_ms, const st_price_plan *plan)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_price_plan_write(plan, &doc);
    books_put(l, &(st_entry){.kind = ST_ENTRY_PLAN,
                             .at_ms = at_ms,
                             .account = plan->account[0] ? plan->account : ST_BOOK_FLEET,
                             .doc = doc.s});
    put_terms(l, at_ms);
}

static void close_book(st_ledger *l, const char *account, const st_period *p)
{
    books_put(l, &(st_entry){.kind = ST_ENTRY_CLOSE,
                             .at_ms = p->to_ms,
                             .account = account,
                             .period = p->name,
                             .zone = "UTC",
                             .from_ms = p->from_ms,
                             .to_ms = p->to_ms});
}

void books_close(st_ledger *l, const st_period *next)
{
    st_period open = *st_ledger_period(l);
    st_bill all;
    st_err err = {0};
    assert_ok(st_ledger_bill(l, "", NULL, &all, &err));
    for (size_t i = 1; i < all.uses.n; i++)
        close_book(l, all.uses.v[i].account, &open);
    close_book(l, "", &open);
    st_bill_done(&all);
    st_ledger_set_period(l, next);
}

st_entry books_usage(const char *account, const char *job, const char *gpu, int64_t gpu_m,
                     st_basis basis, int64_t from_ms, int64_t to_ms)
{
    return (st_entry){.kind = ST_ENTRY_USAGE,
                      .at_ms = to_ms,
                      .account = account,
                      .from_ms = from_ms,
                      .to_ms = to_ms,
                      .job = job,
                      .user = "ada",
                      .stay = 1,
                      .piece = 1,
                      .gpu = gpu,
                      .basis = basis,
                      .tasks = 1,
                      .cut = ST_CUT_ENDED,
                      .gpu_m = gpu_m,
                      .share = gpu_m * (to_ms - from_ms),
                      .held = gpu_m * (to_ms - from_ms),
                      .seen = ST_UNKNOWN,
                      .busy = ST_UNKNOWN,
                      .energy_mj = ST_UNKNOWN};
}

st_entry books_reserve(const char *account, const char *gpu, int64_t gpu_m, int64_t from_ms,
                       int64_t to_ms)
{
    return (st_entry){.kind = ST_ENTRY_RESERVE,
                      .at_ms = to_ms,
                      .account = account,
                      .from_ms = from_ms,
                      .to_ms = to_ms,
                      .gpu = gpu,
                      .gpu_m = gpu_m,
                      .share = gpu_m * (to_ms - from_ms)};
}

int64_t books_total(const st_ledger *l, const char *account, const char *period)
{
    st_bill bill;
    st_err err = {0};
    assert_ok(st_ledger_bill(l, account, period, &bill, &err));
    int64_t total = bill.total;
    st_bill_done(&bill);
    return total;
}

static int64_t sum_lines(const st_ledger *l, const char *account, const char *period,
                         st_component what, bool quantity)
{
    st_bill bill;
    st_err err = {0};
    int64_t sum = 0;
    assert_ok(st_ledger_bill(l, account, period, &bill, &err));
    for (size_t i = 0; i < bill.lines.n; i++)
        if (bill.lines.v[i].what == what)
            sum += quantity ? bill.lines.v[i].quantity : bill.lines.v[i].amount;
    st_bill_done(&bill);
    return sum;
}

int64_t books_amount(const st_ledger *l, const char *account, const char *period, st_component what)
{
    return sum_lines(l, account, period, what, false);
}

int64_t books_quantity(const st_ledger *l, const char *account, const char *period,
                       st_component what)
{
    return sum_lines(l, account, period, what, true);
}
