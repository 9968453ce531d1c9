/* Postings reckoned again (bill/check_price.h).
 *
 * The lines an entry must have are written down as a list, in their order: what, how much, at which rate, and the
 * factors. A line is there when there is something to count and, but for GPU time itself, when it costs something. */
#include "bill/check_price.h"

#include <string.h>

typedef struct wanted {
    st_component what;
    st_i128 quantity;
    int64_t rate;
    int64_t bp[4]; /* factors, in hundredths of a percent; all four are multiplied */
    bool shown;    /* also when it costs nothing */
} wanted;

#define WANTED_MAX 9

typedef struct wants {
    wanted v[WANTED_MAX];
    int n;
} wants;

/* The product, in hundredths of a percent, rounded half up. */
static int64_t product_bp(const int64_t bp[4])
{
    st_i128 product = (st_i128)bp[0] * bp[1] * bp[2] * bp[3];
    st_i128 unit = (st_i128)ST_BP * ST_BP * ST_BP;

    return (int64_t)((product + unit / 2) / unit);
}

static void want(wants *w, wanted one)
{
    for (int i = 0; i < 4; i++)
        if (one.bp[i] == ST_UNSET)
            one.bp[i] = ST_BP;
    if (one.quantity == 0)
        return;
    if (!one.shown && (one.rate == 0 || product_bp(one.bp) == 0))
        return;
    ST_ASSERT(w->n < WANTED_MAX);
    w->v[w->n++] = one;
}
#define FACTORS(a, b, c, d) \
    {                       \
        (a), (b), (c), (d)  \
    }
#define ONE ST_UNSET

static const st_rates *row_for(const st_price_book *book, const char *gpu)
{
    const st_rates *others = NULL;

    for (int i = 0; book && gpu && i < book->nrates; i++) {
        if (strcmp(book->rates[i].gpu, gpu) == 0)
            return &book->rates[i];
        if (strcmp(book->rates[i].gpu, "*") == 0)
            others = &book->rates[i];
    }
    return others;
}

static const st_unit_price *by_piece(const st_price_book *book, const char *workload)
{
    for (int i = 0; book && workload && i < book->nunits; i++)
        if (strcmp(book->units[i].workload, workload) == 0)
            return &book->units[i];
    return NULL;
}

/* Jobs of a class pay more or less of the price, as the book says. */
static int64_t class_bp(const st_price_book *book, const st_entry *e)
{
    for (int i = 0; book && e->priority_class && i < book->nclasses; i++)
        if (strcmp(book->classes[i].name, e->priority_class) == 0)
            return book->classes[i].bp;
    return ST_BP;
}

static st_component gpu_component(st_basis basis)
{
    switch (basis) {
    case ST_BASIS_GUARANTEED:
        return ST_PAY_GUARANTEED;
    case ST_BASIS_BURST:
        return ST_PAY_BURST;
    case ST_BASIS_ON_DEMAND:
        return ST_PAY_ON_DEMAND;
    case ST_BASIS_BOOKED:
        return ST_PAY_BOOKED;
    case ST_BASIS_COUNT:
        break;
    }
    return ST_PAY_ON_DEMAND;
}

/* Held, seen and not busy. What nobody measured was not idle; in a correction all numbers are deltas. */
static st_i128 idle_of(const st_entry *e)
{
    if (e->kind == ST_ENTRY_USAGE &&
        (e->seen == ST_UNKNOWN || e->busy == ST_UNKNOWN || e->busy > e->seen))
        return 0;
    return (st_i128)e->seen - e->busy;
}

static void want_gpu(const st_entry *e, const st_price_book *book, int64_t keep_bp, wants *w)
{
    const st_rates *row = row_for(book, e->gpu);
    st_component what = gpu_component(e->basis);
    int64_t rate = row ? row->rate[what] : 0, level_bp = row ? row->level_bp[e->level] : ST_BP;
    int64_t topo_bp = book ? book->topo_bp[e->topo] : 0, idle_bp = book ? book->idle_bp : 0;
    int64_t of_class = class_bp(book, e);

    int64_t floor_rate = row ? row->rate[ST_PAY_GUARANTEED] : 0;
    st_i128 in = e->inside, out = (st_i128)e->share - in, idle_in = e->inside_idle;

    want(w, (wanted){ST_PAY_GUARANTEED, in, floor_rate, FACTORS(level_bp, keep_bp, of_class, ONE),
                     true});
    want(w, (wanted){what, out, rate, FACTORS(level_bp, keep_bp, of_class, ONE), true});
    want(w, (wanted){ST_PAY_TOPOLOGY, in, floor_rate, FACTORS(level_bp, topo_bp, keep_bp, of_class),
                     false});
    want(w, (wanted){ST_PAY_TOPOLOGY, out, rate, FACTORS(level_bp, topo_bp, keep_bp, of_class),
                     false});
    want(w, (wanted){ST_PAY_IDLE, idle_in, floor_rate,
                     FACTORS(level_bp, idle_bp, keep_bp, of_class), false});
    want(w, (wanted){ST_PAY_IDLE, idle_of(e) - idle_in, rate,
                     FACTORS(level_bp, idle_bp, keep_bp, of_class), false});
}

static void want_stay(const st_entry *e, const st_price_book *book, int64_t keep_bp, wants *w)
{
    int64_t energy = e->energy_mj;

    if (by_piece(book, e->workload))
        return;
    if (e->gpu)
        want_gpu(e, book, keep_bp, w);
    if (!book)
        return;
    if (e->kind == ST_ENTRY_USAGE && energy == ST_UNKNOWN)
        energy = 0;
    int64_t of_class = class_bp(book, e);

    want(w, (wanted){ST_PAY_CPU, e->cpu, book->cpu, FACTORS(keep_bp, of_class, ONE, ONE), false});
    want(w, (wanted){ST_PAY_RAM, e->ram, book->ram, FACTORS(keep_bp, of_class, ONE, ONE), false});
    want(w, (wanted){ST_PAY_ENERGY, energy, book->energy, FACTORS(keep_bp, of_class, ONE, ONE),
                     false});
}

/* What is not delivered is credited at the price it is charged at, rounded down. Of what others paid for what was lent the
 * booker has a share, at most what the window costs for the same GPU time. */
static void want_window(const st_entry *e, const st_price_book *book, int64_t keep_bp, wants *w)
{
    const st_rates *row = row_for(book, e->gpu);
    int64_t rate = row ? row->rate[ST_PAY_WINDOW] : 0;
    const int64_t own[4] = {e->keep_bp, keep_bp, ST_BP, ST_BP};
    st_i128 unit = (st_i128)ST_BP * st_component_per(ST_PAY_WINDOW);

    want(w, (wanted){ST_PAY_WINDOW, e->share, rate, FACTORS(e->keep_bp, keep_bp, ONE, ONE), true});
    want(w, (wanted){ST_PAY_SHORT, -((st_i128)e->missing * rate * product_bp(own) / unit), 1,
                     FACTORS(ONE, ONE, ONE, ONE), true});
    want(w, (wanted){ST_PAY_CANCEL, e->removed, rate, FACTORS(e->keep_bp, e->fee_bp, keep_bp, ONE),
                     false});
    st_i128 most = (st_i128)e->lent * rate * product_bp(own) / unit;
    st_i128 income = (st_i128)e->paid * (book ? book->booking.lent_bp : 0) / ST_BP;
    want(w, (wanted){ST_PAY_LENT, -(income < most ? income : most), 1, FACTORS(ONE, ONE, ONE, ONE),
                     true});
}

static void want_lines(const st_entry *e, const st_price_book *book, int64_t keep_bp, wants *w)
{
    const st_rates *row;
    const st_unit_price *unit;

    switch (e->kind) {
    case ST_ENTRY_USAGE:
    case ST_ENTRY_FIX:
        want_stay(e, book, keep_bp, w);
        break;
    case ST_ENTRY_LOST:
        want(w, (wanted){e->cut == ST_CUT_FAULT ? ST_PAY_FAULT : ST_PAY_LOST, -(st_i128)e->amount,
                         1, FACTORS(ONE, ONE, ONE, ONE), true});
        break;
    case ST_ENTRY_RESERVE:
        row = row_for(book, e->gpu);
        want(w, (wanted){ST_PAY_RESERVED, e->share, row ? row->rate[ST_PAY_RESERVED] : 0,
                         FACTORS(keep_bp, ONE, ONE, ONE), true});
        break;
    case ST_ENTRY_PIECES:
        unit = by_piece(book, e->workload);
        if (unit)
            want(w, (wanted){unit->by, e->pieces, unit->rate,
                             FACTORS(keep_bp, class_bp(book, e), ONE, ONE), true});
        break;
    case ST_ENTRY_WINDOW:
        want_window(e, book, keep_bp, w);
        break;
    case ST_ENTRY_CREDIT:
        want(w, (wanted){ST_PAY_ADJUST, -(st_i128)e->amount, 1, FACTORS(ONE, ONE, ONE, ONE), true});
        break;
    default:
        break;
    }
}

/* ---- comparing ---------------------------------------------------------------------------------- */

static int differs(st_err *err, const st_line *line, const char *field, int64_t is, st_i128 must)
{
    return st_fail(err, ST_ECORRUPT, "its posting %s has %s %lld, but usage and prices give %lld",
                   st_component_name(line->what), field, (long long)is, (long long)must);
}

static int compare(const st_line *line, const wanted *w, st_err *err)
{
    int64_t factor = product_bp(w->bp);

    if (line->what != w->what)
        return st_fail(err, ST_ECORRUPT, "it has a posting %s where one for %s must be",
                       st_component_name(line->what), st_component_name(w->what));
    if (line->quantity != w->quantity)
        return differs(err, line, "quantity", line->quantity, w->quantity);
    if (line->rate != w->rate)
        return differs(err, line, "rate", line->rate, w->rate);
    if (line->factor_bp != factor)
        return differs(err, line, "factor", line->factor_bp, factor);
    return 0;
}

static int join(const st_line *line, st_carries *carries, st_err *err)
{
    int64_t *carry = &carries->v[line->what];

    if (*carry >= 0 && line->carry_in != *carry)
        return st_fail(err, ST_ECORRUPT,
                       "its posting %s begins with a carry of %lld, but the one before ended with "
                       "%lld",
                       st_component_name(line->what), (long long)line->carry_in, (long long)*carry);
    if (!st_line_valid(line))
        return st_fail(err, ST_ECORRUPT,
                       "its posting %s is reckoned wrongly: quantity, rate and factor do not give "
                       "%lld",
                       st_component_name(line->what), (long long)line->amount);
    *carry = line->carry;
    return 0;
}

/* What was beyond a spend cap is given back, at most all of it. */
static int check_cap(const st_entry *e, const st_line *line, st_err *err)
{
    st_i128 net = 0;

    for (const st_line *l = e->lines; l < line; l++)
        net += l->amount;
    if (line->rate != 1 || line->factor_bp != ST_BP || line->amount != line->quantity)
        return st_fail(err, ST_ECORRUPT, "its posting cap is not an amount of money");
    if (e->kind == ST_ENTRY_FIX && net < 0) {
        if (line->amount == (e->capped < -net ? e->capped : -net) && line->amount > 0)
            return 0;
        return st_fail(err, ST_ECORRUPT, "its posting cap is %lld where caps had paid %lld",
                       (long long)line->amount, (long long)e->capped);
    }
    if (line->amount >= 0 || net + line->amount < 0)
        return st_fail(err, ST_ECORRUPT, "its posting cap is %lld where %lld are charged",
                       (long long)line->amount, (long long)net);
    return 0;
}

/* Of what caps had paid, a correction gives nothing back: it must say so. */
static int check_uncapped(const st_entry *e, st_err *err)
{
    st_i128 net = 0;

    for (int i = 0; i < e->nlines; i++)
        net += e->lines[i].amount;
    if (e->kind != ST_ENTRY_FIX || net >= 0 || e->capped <= 0)
        return 0;
    return st_fail(err, ST_ECORRUPT, "it gives %lld back, of which caps had paid %lld",
                   (long long)-net, (long long)e->capped);
}

/* What was charged for the lost time, times the percentage of its cause, rounded down: that is credited in all. */
static int check_lost(const st_entry *e, const st_price_book *book, st_err *err)
{
    st_i128 bp = 0, all = (st_i128)e->credited + e->amount;

    if (e->kind != ST_ENTRY_LOST)
        return 0;
    if (book && e->cut == ST_CUT_PREEMPTED)
        bp = book->lost_bp;
    else if (book && e->cut == ST_CUT_FAULT)
        bp = book->fault_bp;
    if (e->charged < 0 || e->credited < 0 || all < 0 || all * ST_BP > bp * e->charged ||
        (all + 1) * ST_BP <= bp * e->charged)
        return st_fail(err, ST_ECORRUPT,
                       "it credits %lld in all for lost work that was charged %lld", (long long)all,
                       (long long)e->charged);
    return 0;
}

/* Only what borrows has a part in floors, at most all of it. */
static int check_inside(const st_entry *e, st_err *err)
{
    bool borrows = e->basis == ST_BASIS_BURST || e->basis == ST_BASIS_ON_DEMAND;

    if (e->kind != ST_ENTRY_USAGE && e->kind != ST_ENTRY_FIX)
        return 0;
    if (e->inside == 0 && e->inside_idle == 0)
        return 0;
    if (borrows &&
        (e->kind == ST_ENTRY_FIX || (e->inside >= 0 && e->inside <= e->share &&
                                     e->inside_idle >= 0 && e->inside_idle <= idle_of(e))))
        return 0;
    return st_fail(err, ST_ECORRUPT, "it says that %lld of %lld lay inside a floor",
                   (long long)e->inside, (long long)e->share);
}

int st_billprice_check(const st_entry *e, const st_price_book *book, const st_terms *terms,
                       st_carries *carries, st_err *err)
{
    wants w = {0};
    int r = check_lost(e, book, err), n = e->nlines;

    if (r == 0)
        r = check_inside(e, err);

    want_lines(e, book, ST_BP - (terms ? terms->discount_bp : 0), &w);
    if (n > 0 && e->lines[n - 1].what == ST_PAY_CAP)
        n--;
    else if (r == 0)
        r = check_uncapped(e, err);
    if (r < 0)
        return r;
    if (n != w.n)
        return st_fail(err, ST_ECORRUPT, "it has %d postings where there must be %d", n, w.n);
    for (int i = 0; r == 0 && i < n; i++) {
        r = compare(&e->lines[i], &w.v[i], err);
        if (r == 0)
            r = join(&e->lines[i], carries, err);
    }
    if (r == 0 && n < e->nlines) {
        r = check_cap(e, &e->lines[n], err);
        if (r == 0)
            r = join(&e->lines[n], carries, err);
    }
    return r;
}
