/* The lines of an entry, from a price book, the terms' discount and the account's carries. */
#include "ledger/price.h"

#include "base/mutant.h"

/* A factor of three or four is at most ST_FACTOR_MAX x 10^12 before it is divided. */
int64_t st_price_factor(const int64_t *bp, int n)
{
    st_i128 product = 1, ones = 1;
    for (int i = 0; i < n; i++) {
        product *= bp[i];
        if (i > 0)
            ones *= ST_BP;
    }
    return (int64_t)((2 * product + ones) / (2 * ones));
}
#define FACTOR(...)                                 \
    st_price_factor((const int64_t[]){__VA_ARGS__}, \
                    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

st_component st_basis_component(st_basis basis)
{
    static const st_component of[] = {
        [ST_BASIS_GUARANTEED] = ST_PAY_GUARANTEED,
        [ST_BASIS_BURST] = ST_PAY_BURST,
        [ST_BASIS_ON_DEMAND] = ST_PAY_ON_DEMAND,
        [ST_BASIS_BOOKED] = ST_PAY_BOOKED,
    };
    ST_ASSERT(basis < ST_BASIS_COUNT);
    return of[basis];
}

int st_price_add(st_entry *e, const int64_t *carry, st_line line, st_err *err)
{
    ST_ASSERT(e->nlines < ST_LINES_MAX);
    line.carry_in = carry[line.what];
    for (int i = 0; i < e->nlines; i++)
        if (e->lines[i].what == line.what)
            line.carry_in = e->lines[i].carry;
    int r = st_line_reckon(&line, err);
    if (r == 0)
        e->lines[e->nlines++] = line;
    return r;
}

typedef struct job_prices {
    st_component what, inside; /* its GPU time; the part of it that floors have paid */
    int64_t rate, inside_rate, level_bp, topo_bp, keep_bp, class_bp;
} job_prices;

/* What is charged for each line, 0 when it does not apply. */
static int price_gpu(st_entry *e, const st_price_book *b, const job_prices *p, const int64_t *carry,
                     st_err *err)
{
    int64_t unused = e->seen - e->busy;
    if (e->kind == ST_ENTRY_USAGE && (e->seen < 0 || e->busy < 0 || unused < 0))
        unused = 0;
    int64_t own = FACTOR(p->level_bp, p->keep_bp, p->class_bp);
    int64_t topology = FACTOR(p->level_bp, p->topo_bp, p->keep_bp, p->class_bp);
    int64_t idle = FACTOR(p->level_bp, b->idle_bp, p->keep_bp, p->class_bp);
    const st_line lines[] = {
        {.what = p->inside, .quantity = e->inside, .rate = p->inside_rate, .factor_bp = own},
        {.what = p->what, .quantity = e->share - e->inside, .rate = p->rate, .factor_bp = own},
        {.what = ST_PAY_TOPOLOGY,
         .quantity = e->inside,
         .rate = p->inside_rate,
         .factor_bp = topology},
        {.what = ST_PAY_TOPOLOGY,
         .quantity = e->share - e->inside,
         .rate = p->rate,
         .factor_bp = topology},
        {.what = ST_PAY_IDLE,
         .quantity = e->inside_idle,
         .rate = p->inside_rate,
         .factor_bp = idle},
        {.what = ST_PAY_IDLE,
         .quantity = unused - e->inside_idle,
         .rate = p->rate,
         .factor_bp = idle},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(lines); i++)
        /* GPU time is shown also where it costs nothing. */
        if (lines[i].quantity != 0 && (i < 2 || (lines[i].rate > 0 && lines[i].factor_bp > 0)))
            r = st_price_add(e, carry, lines[i], err);
    return r;
}

static int price_rest(st_entry *e, const st_price_book *b, int64_t keep_bp, const int64_t *carry,
                      st_err *err)
{
    int64_t energy = e->energy_mj;
    if (e->kind == ST_ENTRY_USAGE && energy < 0)
        energy = 0;
    const st_line lines[] = {
        {.what = ST_PAY_CPU, .quantity = e->cpu, .rate = b->cpu, .factor_bp = keep_bp},
        {.what = ST_PAY_RAM, .quantity = e->ram, .rate = b->ram, .factor_bp = keep_bp},
        {.what = ST_PAY_ENERGY, .quantity = energy, .rate = b->energy, .factor_bp = keep_bp},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(lines); i++)
        if (lines[i].quantity != 0 && lines[i].rate > 0 && keep_bp > 0)
            r = st_price_add(e, carry, lines[i], err);
    return r;
}

static int price_stay(st_entry *e, const st_price_book *b, int64_t keep_bp, const int64_t *carry,
                      st_err *err)
{
    if (st_price_unit(b, e->workload))
        return 0; /* its pieces pay for everything */
    const st_rates *rates = e->gpu ? st_price_rates(b, e->gpu) : NULL;
    if (rates) {
        st_component what = st_basis_component(e->basis);
        const job_prices p = {.what = what,
                              .inside = ST_PAY_GUARANTEED,
                              .rate = rates->rate[what],
                              .inside_rate = rates->rate[ST_PAY_GUARANTEED],
                              .level_bp = rates->level_bp[e->level],
                              .topo_bp = b->topo_bp[e->topo],
                              .keep_bp = keep_bp,
                              .class_bp = st_price_class_bp(b, e->priority_class)};
        int r = price_gpu(e, b, &p, carry, err);
        if (r < 0)
            return r;
    }
    return price_rest(e, b, FACTOR(keep_bp, st_price_class_bp(b, e->priority_class)), carry, err);
}

int64_t st_entry_moment(const st_entry *e)
{
    bool at_once = e->kind == ST_ENTRY_PIECES || e->kind == ST_ENTRY_CREDIT ||
                   (e->kind == ST_ENTRY_WINDOW && e->from_ms == e->to_ms);
    return at_once ? e->at_ms - 1 : e->from_ms;
}

/* A booked window, less what was not delivered of it, the fee for what is given up, and the booker's share of what others
 * paid. Credits are rounded down and carry nothing, and are for parts of the window that do not overlap: they are never
 * more than it. */
static int price_window(st_entry *e, const st_price_book *b, int64_t keep_bp, const int64_t *carry,
                        st_err *err)
{
    const st_rates *rates = st_price_rates(b, e->gpu);
    if (!rates)
        return 0;
    int64_t rate = rates->rate[ST_PAY_WINDOW], own = FACTOR(e->keep_bp, keep_bp);
    int64_t fee = FACTOR(e->keep_bp, e->fee_bp, keep_bp);
    int64_t back = (int64_t)((st_i128)e->missing * rate * own / st_line_divisor(ST_PAY_WINDOW));
    if (ST_BROKEN(MONEY_SHORT))
        back = 0;
    if (ST_BROKEN(MONEY_FEE))
        fee = 0;
    int64_t most = (int64_t)((st_i128)e->lent * rate * own / st_line_divisor(ST_PAY_WINDOW));
    int64_t income = (int64_t)ST_MIN((st_i128)e->paid * b->booking.lent_bp / ST_BP, most);
    if (ST_BROKEN(MONEY_LENT))
        income = (int64_t)((st_i128)e->paid * b->booking.lent_bp / ST_BP);
    const st_line lines[] = {
        {.what = ST_PAY_WINDOW, .quantity = e->share, .rate = rate, .factor_bp = own},
        {.what = ST_PAY_SHORT, .quantity = -back, .rate = 1, .factor_bp = ST_BP},
        {.what = ST_PAY_CANCEL,
         .quantity = rate > 0 && fee > 0 ? e->removed : 0,
         .rate = rate,
         .factor_bp = fee},
        {.what = ST_PAY_LENT, .quantity = -income, .rate = 1, .factor_bp = ST_BP},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(lines); i++)
        if (lines[i].quantity != 0)
            r = st_price_add(e, carry, lines[i], err);
    return r;
}

int st_price_entry(st_entry *e, const st_price_book *book, const st_terms *terms,
                   const int64_t *carry, st_err *err)
{
    const st_price_book *b = book ? book : &st_price_free;
    int64_t keep_bp = ST_BP - (terms ? terms->discount_bp : 0);
    const st_rates *rates;
    const st_unit_price *unit;

    e->nlines = 0;
    switch (e->kind) {
    case ST_ENTRY_USAGE:
    case ST_ENTRY_FIX:
        return price_stay(e, b, keep_bp, carry, err);
    case ST_ENTRY_RESERVE:
        rates = st_price_rates(b, e->gpu);
        if (!rates || e->share == 0)
            return 0;
        return st_price_add(e, carry,
                            (st_line){.what = ST_PAY_RESERVED,
                                      .quantity = e->share,
                                      .rate = rates->rate[ST_PAY_RESERVED],
                                      .factor_bp = keep_bp},
                            err);
    case ST_ENTRY_LOST:
        if (e->credited + e->amount != st_price_back(b, e))
            return st_fail(err, ST_EINVAL, "lost work that was charged %lld is credited %lld",
                           (long long)e->charged, (long long)(e->credited + e->amount));
        if (e->amount == 0)
            return 0;
        return st_price_add(e, carry,
                            (st_line){.what = e->cut == ST_CUT_FAULT ? ST_PAY_FAULT : ST_PAY_LOST,
                                      .quantity = -e->amount,
                                      .rate = 1,
                                      .factor_bp = ST_BP},
                            err);
    case ST_ENTRY_PIECES:
        unit = st_price_unit(b, e->workload);
        if (!unit || e->pieces == 0)
            return 0;
        return st_price_add(
            e, carry,
            (st_line){.what = unit->by,
                      .quantity = e->pieces,
                      .rate = unit->rate,
                      .factor_bp = FACTOR(keep_bp, st_price_class_bp(b, e->priority_class))},
            err);
    case ST_ENTRY_WINDOW:
        return price_window(e, b, keep_bp, carry, err);
    case ST_ENTRY_CREDIT:
        return st_price_add(
            e, carry,
            (st_line){.what = ST_PAY_ADJUST, .quantity = -e->amount, .rate = 1, .factor_bp = ST_BP},
            err);
    default:
        return st_fail(err, ST_EINVAL, "a %s entry has no price", st_entry_kind_name(e->kind));
    }
}
