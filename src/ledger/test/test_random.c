/* Random books: months of usage, price rises, holds, corrections, crashes. After each entry the sums must be
 * zero, remainders accounted for and no cap overrun; in the end the books are played again and must give the same ledger. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/testing.h"
#include "ledger/price.h"
#include "ledger/test/books.h"

#define ACCOUNTS 8
#define JOBS     24
#define STEPS    1000

static const char *const names[ACCOUNTS] = {"o1", "o2", "t1", "t2", "t3", "p1", "p2", "p3"};
static const int parents[ACCOUNTS] = {-1, -1, 0, 0, 1, 2, 2, 4};
static const char *const gpus[] = {"h100", "a100", "b200"};

typedef struct job {
    char name[16];
    int account; /* -1: none */
    int gpu;
    int64_t gpu_m, since, until, hold;
    int piece;
    bool held;
} job;

typedef struct world {
    st_rng rng;
    st_ledger *l;
    st_strbuf snapshot; /* and how many entries it has */
    size_t snapshot_at;
    ST_VEC(char *) entries; /* as texts; "" opens the next period */
    int64_t now;
    int month, made;
    job jobs[JOBS];
    st_i128 owed[ACCOUNTS][ST_PAY_COUNT]; /* quantity x rate x factor */
    st_i128 paid[ACCOUNTS][ST_PAY_COUNT]; /* amount x D */
    int64_t carry[ACCOUNTS][ST_PAY_COUNT];
} world;

static st_period month(int i)
{
    st_period p = {.from_ms = OCT_1 + i * 4 * DAY, .to_ms = OCT_1 + (i + 1) * 4 * DAY};
    snprintf(p.name, sizeof p.name, "20%02u-%02u", 26 + (unsigned)i / 12 % 70,
             1 + (unsigned)i % 12);
    return p;
}

static int pick(world *w, int n)
{
    return (int)st_rng_below(&w->rng, (uint64_t)n);
}

static int account_of(const char *name)
{
    for (int i = 0; i < ACCOUNTS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* ---- checks ------------------------------------------------------------------------------------- */

static void check_carries(world *w, const st_entry *e)
{
    for (int i = 0; i < e->nlines; i++) {
        int a = account_of(e->account);
        const st_line *n = &e->lines[i];
        assert_true(st_line_valid(n));
        w->owed[a][n->what] += (st_i128)n->quantity * n->rate * n->factor_bp;
        w->paid[a][n->what] += (st_i128)n->amount * st_component_per(n->what) * ST_BP;
        w->carry[a][n->what] = n->carry;
        assert_true(w->owed[a][n->what] == w->paid[a][n->what] + w->carry[a][n->what]);
    }
}

static void check_caps(world *w)
{
    for (int i = -1; i < ACCOUNTS; i++) {
        st_budget_state b;
        st_err err = {0};
        assert_ok(st_ledger_budget(w->l, i < 0 ? "" : names[i], w->now, &b, &err));
        assert_true(b.held >= 0);
        if (b.cap >= 0)
            assert_true(b.spent + b.held <= b.cap);
    }
}

static void check_bills(world *w)
{
    for (int i = -1; i < ACCOUNTS; i++) {
        st_bill bill;
        st_err err = {0};
        int64_t own = 0, below = 0;
        assert_ok(st_ledger_bill(w->l, i < 0 ? "" : names[i], NULL, &bill, &err));
        for (size_t k = 0; k < bill.lines.n; k++)
            if (strcmp(bill.lines.v[k].account, bill.account) == 0)
                own += bill.lines.v[k].amount;
        for (int k = 0; k < ACCOUNTS; k++)
            if (parents[k] == i)
                below += books_total(w->l, names[k], NULL);
        assert_true(bill.total == own + below);
        st_bill_done(&bill);
    }
}

/* ---- steps -------------------------------------------------------------------------------------- */

static void take(world *w, st_entry *e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    books_put(w->l, e);
    st_entry_write(e, &text);
    st_vec_push(&w->entries, st_strbuf_take(&text));
    check_carries(w, e);
}

/* Terms follow in the books of all that a plan concerns. */
static void take_with_terms(world *w, st_entry *e)
{
    st_entry next;
    take(w, e);
    while (st_ledger_due(w->l, &next)) {
        next.at_ms = w->now;
        take(w, &next);
    }
}

static void post(world *w, st_entry *e)
{
    st_err err = {0};
    assert_ok(st_ledger_price(w->l, e, &err));
    take(w, e);
}

static void new_prices(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    ST_CLEANUP(st_freep) st_price_book *b = st_xcalloc(1, sizeof *b);
    const st_price_book *had = st_ledger_book(w->l, w->now);
    if (had && had->from_ms == w->now)
        return;
    snprintf(b->name, sizeof b->name, "book%d", w->made++);
    b->from_ms = w->now;
    b->nrates = 2;
    memcpy(b->rates[0].gpu, "h100", 5);
    memcpy(b->rates[1].gpu, "*", 2);
    for (int i = 0; i < 2; i++) {
        for (int c = 0; c <= ST_PAY_BOOKED; c++)
            b->rates[i].rate[c] = pick(w, 7000000);
        for (int k = 0; k < ST_LEVEL_COUNT; k++)
            b->rates[i].level_bp[k] = 3000 + pick(w, 12000);
    }
    b->cpu = pick(w, 50000);
    b->ram = pick(w, 9000);
    b->energy = pick(w, 400000);
    b->topo_bp[ST_TOPO_RACK] = pick(w, 3000);
    b->idle_bp = pick(w, 5000);
    b->lost_bp = pick(w, 10001);
    b->fault_bp = pick(w, 10001);
    st_price_book_write(b, &doc);
    take(w, &(st_entry){.kind = ST_ENTRY_PRICES, .at_ms = w->now, .account = "", .doc = doc.s});
}

/* Caps come, go, rise and fall; one below what is spent and held is refused. */
static void new_plan(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    int a = pick(w, ACCOUNTS);
    st_price_plan p = {.grace_ms = ST_CAP_GRACE_MS,
                       .hold_ms = ST_CAP_HOLD_MS,
                       .from_ms = w->now,
                       .discount_bp = pick(w, 3000),
                       .burst_m = pick(w, 2) ? ST_UNSET : 4000,
                       .cap_udollars = pick(w, 3) ? pick(w, 2000) * DOLLARS : ST_UNSET,
                       .budget_udollars = ST_UNSET,
                       .warn_bp = {5000},
                       .nwarn = 1};
    const st_price_plan *had = st_ledger_plan(w->l, names[a], w->now);
    if (had && had->from_ms == w->now)
        return;
    memcpy(p.account, names[a], strlen(names[a]) + 1);
    st_price_plan_write(&p, &doc);
    st_entry e = {.kind = ST_ENTRY_PLAN, .at_ms = w->now, .account = names[a], .doc = doc.s};
    e.seq = st_ledger_seq(w->l, names[a]) + 1;
    st_budget_state b;
    st_err err = {0};
    assert_ok(st_ledger_budget(w->l, names[a], w->now, &b, &err));
    if (p.cap_udollars >= 0 && b.spent + b.held > p.cap_udollars)
        assert_fails(st_ledger_apply(w->l, &e, &err), ST_EQUOTA, "spent or on hold");
    else
        take_with_terms(w, &e);
}

static void start_job(world *w)
{
    job *j = &w->jobs[pick(w, JOBS)];
    int64_t amount, limit = (1 + pick(w, 30)) * HOUR;
    st_err err = {0};
    if (j->account >= 0)
        return;
    *j = (job){.account = pick(w, ACCOUNTS), .gpu = pick(w, 3), .gpu_m = 125 * (1 + pick(w, 64))};
    snprintf(j->name, sizeof j->name, "j%d", w->made++);
    const st_worst worst = {.account = names[j->account],
                            .gpus = gpus,
                            .ngpus = 3,
                            .level = ST_LEVEL_WHOLE,
                            .topo = ST_TOPO_RACK,
                            .gpu_m = j->gpu_m,
                            .cpu_m = 8 * j->gpu_m,
                            .ram_mib = 64 * j->gpu_m,
                            .limit_ms = limit,
                            .at_ms = w->now};
    int r = st_ledger_admit(w->l, &worst, &amount, &err);
    if (r < 0) {
        assert_int_equal(r, -ST_EQUOTA);
        j->account = -1;
        return;
    }
    j->since = w->now;
    j->until = w->now + limit;
    j->held = amount != ST_UNSET;
    if (j->held)
        take(w, &(st_entry){.kind = ST_ENTRY_HOLD,
                            .at_ms = w->now,
                            .account = names[j->account],
                            .job = j->name,
                            .amount = amount});
}

static st_entry usage_of(world *w, job *j, st_cut cut)
{
    st_entry e = books_usage(names[j->account], j->name, gpus[j->gpu], j->gpu_m,
                             (st_basis)pick(w, ST_BASIS_COUNT), j->since, w->now);
    e.piece = ++j->piece;
    e.cut = cut;
    e.topo = pick(w, 2) ? ST_TOPO_RACK : ST_TOPO_NONE;
    e.cpu = e.share * 8;
    e.ram = e.share * 64;
    e.seen = pick(w, 3) ? e.share : ST_UNKNOWN;
    e.busy = e.seen < 0 ? ST_UNKNOWN : (int64_t)st_rng_below(&w->rng, (uint64_t)e.seen + 1);
    e.energy_mj = pick(w, 2) ? e.share / 2 : ST_UNKNOWN;
    return e;
}

/* All open intervals end here, as they do when a price or the month changes. */
static void cut_all(world *w)
{
    for (int i = 0; i < JOBS; i++) {
        job *j = &w->jobs[i];
        if (j->account < 0 || j->since == w->now)
            continue;
        st_entry e = usage_of(w, j, ST_CUT_GOES_ON);
        post(w, &e);
        j->since = w->now;
    }
}

/* Some part of its end, at times all of it. Credits are never more than what was charged for it. */
static void lose(world *w, st_piece_sum *sum, const st_entry *usage)
{
    int64_t ms = sum->to_ms - sum->from_ms, gone = 1 + (int64_t)st_rng_below(&w->rng, (uint64_t)ms);
    st_entry e = {.kind = ST_ENTRY_LOST,
                  .at_ms = w->now,
                  .account = usage->account,
                  .job = usage->job,
                  .stay = usage->stay,
                  .piece = usage->piece,
                  .gpu = usage->gpu,
                  .level = usage->level,
                  .basis = usage->basis,
                  .cut = usage->cut,
                  .from_ms = sum->to_ms - (pick(w, 3) ? gone : ms),
                  .to_ms = sum->to_ms};
    e.lost = (int64_t)((st_i128)sum->share * (e.to_ms - e.from_ms) / ms);
    st_ledger_lost(w->l, sum, &e);
    post(w, &e);
    assert_true(e.amount <= ST_MAX(sum->by_share + sum->by_time - sum->capped, 0));
    st_piece_add(sum, &e);
}

static void end_job(world *w)
{
    job *j = &w->jobs[pick(w, JOBS)];
    if (j->account < 0)
        return;
    st_piece_sum sum = {0};
    st_entry e = usage_of(w, j, (st_cut)pick(w, ST_CUT_COUNT));
    post(w, &e);
    st_piece_add(&sum, &e);
    j->since = w->now;
    if (pick(w, 3) == 0) {
        /* A later truth, up to a third of it less. */
        st_entry fix = e;
        fix.kind = ST_ENTRY_FIX;
        fix.fixes = e.seq;
        fix.ngrants = 0;
        fix.from_ms = e.to_ms - (e.to_ms - e.from_ms) / 3;
        fix.share = fix.held = -(e.share / 3);
        fix.cpu = -(e.cpu / 3);
        fix.ram = 0;
        fix.seen = fix.busy = -17;
        fix.energy_mj = 1001;
        fix.capped = ST_MAX(sum.capped, 0);
        post(w, &fix);
        st_piece_add(&sum, &fix);
    }
    if (st_cut_blameless(e.cut) && sum.to_ms > sum.from_ms)
        lose(w, &sum, &e);
    if (e.cut != ST_CUT_ENDED && w->now < j->until)
        return;
    if (j->held)
        take(w, &(st_entry){.kind = ST_ENTRY_RELEASE,
                            .at_ms = w->now,
                            .account = names[j->account],
                            .job = j->name});
    j->account = -1;
}

static void set_floor(world *w)
{
    int a = pick(w, ACCOUNTS);
    const char *gpu = gpus[pick(w, 3)];
    int64_t gpu_m = 500 * pick(w, 6);
    st_err err = {0};
    if (st_ledger_admit_floor(w->l, names[a], gpu, gpu_m, w->now, NULL, &err) < 0)
        gpu_m = 0;
    take(w, &(st_entry){.kind = ST_ENTRY_FLOOR,
                        .at_ms = w->now,
                        .account = names[a],
                        .gpu = gpu,
                        .gpu_m = gpu_m});
    st_entry e =
        books_reserve(names[a], gpu, 500, ST_MAX(w->now - HOUR, month(w->month).from_ms), w->now);
    const st_price_book *b = st_ledger_book(w->l, w->now);
    const st_price_plan *p = st_ledger_plan(w->l, names[a], w->now);
    if ((!b || b->from_ms <= e.from_ms) && (!p || p->from_ms <= e.from_ms))
        post(w, &e);
}

static void give_credit(world *w)
{
    st_entry e = {.kind = ST_ENTRY_CREDIT, .at_ms = w->now, .account = names[pick(w, ACCOUNTS)]};
    e.amount = 1 + pick(w, 90000000);
    if (pick(w, 4) == 0) { /* one is taken back */
        e.amount = -e.amount;
        e.fixes = 1;
    }
    e.reason = "a gift, \"as agreed\"";
    e.by = "root";
    post(w, &e);
}

static void next_month(world *w)
{
    st_period p = month(w->month);
    w->now = p.to_ms;
    cut_all(w);
    for (int i = ACCOUNTS; i-- > -1;)
        take(w, &(st_entry){.kind = ST_ENTRY_CLOSE,
                            .at_ms = w->now,
                            .account = i < 0 ? "" : names[i],
                            .period = p.name,
                            .zone = "UTC",
                            .from_ms = p.from_ms,
                            .to_ms = p.to_ms});
    st_vec_push(&w->entries, st_xstrdup(""));
    p = month(++w->month);
    st_ledger_set_period(w->l, &p);
}

/* ---- crashes ------------------------------------------------------------------------------------ */

static void play(world *w, st_ledger *l, size_t from, int *m)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_err err = {0};
    for (size_t i = from; i < w->entries.n; i++) {
        st_entry e;
        if (!w->entries.v[i][0]) {
            st_period p = month(++*m);
            st_ledger_set_period(l, &p);
            continue;
        }
        assert_ok(st_entry_read(w->entries.v[i], strlen(w->entries.v[i]), arena, &e, &err));
        assert_ok(st_ledger_apply(l, &e, &err));
    }
}

static void snapshot(world *w)
{
    st_strbuf_clear(&w->snapshot);
    st_ledger_save(w->l, &w->snapshot);
    w->snapshot_at = w->entries.n;
}

/* All is lost but the last snapshot and the books. */
static void crash(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf before = {0}, after = {0};
    int m = 0;
    st_err err = {0};
    st_ledger *l;
    st_ledger_save(w->l, &before);
    for (size_t i = 0; i < w->snapshot_at; i++)
        m += !w->entries.v[i][0];
    assert_ok(st_ledger_load(w->snapshot.s, w->snapshot.n, &l, &err));
    play(w, l, w->snapshot_at, &m);
    st_ledger_save(l, &after);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.s, after.s, before.n);
    st_ledger_free(w->l);
    w->l = l;
}

static void bill_text(const st_ledger *l, const char *period, st_strbuf *out)
{
    st_bill bill;
    st_err err = {0};
    assert_ok(st_ledger_bill(l, "", period, &bill, &err));
    for (size_t i = 0; i < bill.lines.n; i++) {
        const st_bill_line *b = &bill.lines.v[i];
        st_strbuf_addf(out, "%s %d %s %d %lld %lld %lld %lld %lld %lld %lld\n", b->account,
                       (int)b->what, b->gpu, (int)b->level, (long long)b->quantity,
                       (long long)b->amount, (long long)b->rate, (long long)b->factor_bp,
                       (long long)b->entries, (long long)b->first_seq, (long long)b->last_seq);
    }
    for (size_t i = 0; i < bill.uses.n; i++) {
        const st_bill_use *u = &bill.uses.v[i];
        st_strbuf_addf(out, "%s %lld %lld %lld %lld %lld %lld %lld\n", u->account,
                       (long long)u->reserved, (long long)u->guaranteed, (long long)u->burst,
                       (long long)u->seen, (long long)u->busy, (long long)u->lost,
                       (long long)u->jobs);
    }
    st_bill_done(&bill);
}

/* The books from the first entry on: the same bytes, the same bills, month by month. */
static void play_all(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf before = {0}, after = {0};
    ST_CLEANUP(st_ledger_freep) st_ledger *l = st_ledger_new();
    st_period p = month(0);
    int m = 0;
    st_ledger_set_period(l, &p);
    play(w, l, 0, &m);
    for (int i = 0; i <= w->month; i++) {
        p = month(i);
        bill_text(w->l, p.name, &before);
        bill_text(l, p.name, &after);
    }
    st_ledger_save(w->l, &before);
    st_ledger_save(l, &after);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.s, after.s, before.n);
}

static void step(world *w)
{
    int64_t left = month(w->month).to_ms - w->now;
    if (left <= HOUR) {
        next_month(w);
        return;
    }
    w->now += ST_MIN(left - 1, 1 + (int64_t)st_rng_below(&w->rng, (uint64_t)HOUR));
    switch (pick(w, 12)) {
    case 0:
        cut_all(w);
        new_prices(w);
        break;
    case 1:
        cut_all(w);
        new_plan(w);
        break;
    case 2:
        set_floor(w);
        break;
    case 3:
        give_credit(w);
        break;
    case 4:
        snapshot(w);
        break;
    case 5:
        crash(w);
        break;
    case 6:
    case 7:
        end_job(w);
        break;
    default:
        start_job(w);
    }
    check_caps(w);
}

static void one_world(uint64_t seed)
{
    world *w = st_xcalloc(1, sizeof *w);
    st_period p = month(0);
    print_message("seed %llu\n", (unsigned long long)seed);
    st_rng_seed(&w->rng, seed);
    w->l = st_ledger_new();
    w->now = OCT_1;
    st_ledger_set_period(w->l, &p);
    for (int i = 0; i < ACCOUNTS; i++) {
        take(w, &(st_entry){.kind = ST_ENTRY_CHILD,
                            .at_ms = w->now,
                            .account = parents[i] < 0 ? ST_BOOK_FLEET : names[parents[i]],
                            .child = names[i]});
        take(w, &(st_entry){.kind = ST_ENTRY_ACCOUNT, .at_ms = w->now, .account = names[i]});
    }
    for (int i = 0; i < JOBS; i++)
        w->jobs[i].account = -1;
    snapshot(w);
    for (int i = 0; i < STEPS; i++) {
        step(w);
        if (i % 50 == 0)
            check_bills(w);
    }
    crash(w);
    play_all(w);
    assert_true(w->month > 3);
    for (size_t i = 0; i < w->entries.n; i++)
        free(w->entries.v[i]);
    st_vec_free(&w->entries);
    st_strbuf_done(&w->snapshot);
    st_ledger_free(w->l);
    free(w);
}

static void random_books(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        one_world(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_books)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
