/* Caps: holds, what is left under a cap, what a job or a floor could cost.
 *
 * Of a capped account: posted + held + floors still to come <= cap when something is admitted. A posting takes
 * from its job's hold, so the sum does not grow; what a hold does not cover is taken from what is free, or from nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/mutant.h"
#include "ledger/state.h"

#define POWER_W INT64_C(1000) /* a GPU draws at most, for worst cases */
#define DAY_MS  INT64_C(86400000)

/* ---- holds -------------------------------------------------------------------------------------- */

#define HOLD_KEY (ST_NAME_MAX + 16)

static void hold_key(char key[HOLD_KEY], int account, const char *job)
{
    snprintf(key, HOLD_KEY, "%d %s", account, job);
}

ledger_hold *st_ledger_hold(const st_ledger *l, int account, const char *job)
{
    char key[HOLD_KEY];
    int64_t at;
    if (!job || l->holds.n == 0)
        return NULL;
    hold_key(key, account, job);
    return st_map_get(l->hold_ids, key, &at) ? &l->holds.v[at] : NULL;
}

void st_ledger_move_held(st_ledger *l, int account, int64_t by)
{
    for (; account >= 0; account = l->accounts.v[account]->parent)
        l->accounts.v[account]->held += by;
}

void st_ledger_add_hold(st_ledger *l, int account, const char *job, int64_t amount, int64_t left)
{
    char key[HOLD_KEY];
    hold_key(key, account, job);
    st_map_put(l->hold_ids, key, (int64_t)l->holds.n);
    st_vec_push(
        &l->holds,
        (ledger_hold){.account = account, .job = st_xstrdup(job), .amount = amount, .left = left});
    st_ledger_move_held(l, account, left);
}

void st_ledger_drop_hold(st_ledger *l, ledger_hold *h)
{
    char key[HOLD_KEY];
    int64_t at = h - l->holds.v;
    st_ledger_move_held(l, h->account, -h->left);
    hold_key(key, h->account, h->job);
    st_map_del(l->hold_ids, key);
    free(h->job);
    ledger_hold last = st_vec_pop(&l->holds);
    if ((size_t)at < l->holds.n) { /* the last takes its place, unless it was the last */
        *h = last;
        hold_key(key, last.account, last.job);
        st_map_put(l->hold_ids, key, at);
    }
}

int64_t st_ledger_held(const st_ledger *l, const char *account, const char *job)
{
    int id = st_ledger_id(l, account);
    const ledger_hold *h = id < 0 || strlen(job) > ST_NAME_MAX ? NULL : st_ledger_hold(l, id, job);
    return h ? h->left : ST_UNSET;
}

/* ---- under a cap -------------------------------------------------------------------------------- */

static int64_t cap_of(const ledger_account *a, int64_t at_ms)
{
    const st_price_plan *p = st_ledger_own_plan(a, at_ms);
    /* What ended as it came into force was before it. Others cannot fall below what is spent. */
    if (p && p->at_cap == ST_AT_CAP_STOP && p->from_ms == at_ms)
        p = st_ledger_own_plan(a, at_ms - 1);
    return p && p->at_cap != ST_AT_CAP_WARN ? p->cap_udollars : ST_UNSET;
}

bool st_ledger_capped(const st_ledger *l, int account, int64_t at_ms)
{
    for (; account >= 0; account = l->accounts.v[account]->parent)
        if (cap_of(l->accounts.v[account], at_ms) >= 0)
            return true;
    return false;
}

/* A hold is there to be spent, also under a cap that was lowered since, though not beyond that. */
int64_t st_ledger_chargeable(const st_ledger *l, int account, const ledger_hold *h, int64_t at_ms,
                             int64_t net)
{
    if (net <= 0 || ST_BROKEN(MONEY_CAP))
        return net;
    int64_t may = net;
    for (; account >= 0; account = l->accounts.v[account]->parent) {
        const ledger_account *a = l->accounts.v[account];
        int64_t cap = cap_of(a, at_ms);
        if (cap >= 0)
            may = ST_MIN(may, h ? ST_MIN(h->left, cap - a->posted) : cap - a->posted - a->held);
    }
    return ST_MAX(may, 0);
}

/* ---- floors to come ----------------------------------------------------------------------------- */

/* When a price or a plan changes that matters to the account. */
static int64_t next_change(const st_ledger *l, int account, int64_t now)
{
    int64_t next = ST_TIME_NEVER;
    for (size_t i = 0; i < l->books.n; i++)
        if (l->books.v[i]->from_ms > now)
            next = ST_MIN(next, l->books.v[i]->from_ms);
    for (; account >= 0; account = l->accounts.v[account]->parent) {
        const ledger_plans *plans = &l->accounts.v[account]->plans;
        for (size_t k = 0; k < plans->n; k++)
            if (plans->v[k].from_ms > now)
                next = ST_MIN(next, plans->v[k].from_ms);
    }
    return next;
}

static const st_price_book *book_at(const st_ledger *l, int64_t at_ms)
{
    const st_price_book *b = st_ledger_book(l, at_ms);
    return b ? b : &st_price_free;
}

int64_t st_ledger_keep_at(const st_ledger *l, int account, int64_t at_ms)
{
    const st_price_plan *p = st_ledger_plan_of(l, account, at_ms);
    return ST_BP - (p ? p->discount_bp : 0);
}

int64_t st_ledger_cost_up(st_component what, st_i128 quantity, int64_t rate, int64_t factor_bp)
{
    st_i128 d = st_line_divisor(what), most = (st_i128)ST_AMOUNT_MAX;
    if (rate == 0 || factor_bp == 0)
        return 0;
    if (quantity > most * d / rate / factor_bp)
        return ST_AMOUNT_MAX;
    return (int64_t)((quantity * rate * factor_bp + d - 1) / d);
}

static int64_t add_up(int64_t a, int64_t b)
{
    return ST_MIN(a + b, ST_AMOUNT_MAX); /* each at most ST_AMOUNT_MAX */
}

static int64_t floor_cost(const st_ledger *l, int account, const char *gpu, int64_t gpu_m,
                          int64_t from, int64_t to)
{
    int64_t cost = 0;
    while (from < to) {
        int64_t until = ST_MIN(to, next_change(l, account, from));
        const st_rates *r = st_price_rates(book_at(l, from), gpu);
        if (r)
            cost = add_up(cost, st_ledger_cost_up(ST_PAY_RESERVED, (st_i128)gpu_m * (until - from),
                                                  r->rate[ST_PAY_RESERVED],
                                                  st_ledger_keep_at(l, account, from)));
        from = until;
    }
    return cost;
}

static int64_t floors_to_come(const st_ledger *l, int above)
{
    int64_t cost = 0;
    for (size_t i = 0; i < l->accounts.n; i++) {
        const ledger_account *a = l->accounts.v[i];
        if (a->floors.n == 0 || !st_ledger_within(l, (int)i, above))
            continue;
        for (size_t k = 0; k < a->floors.n; k++) {
            const ledger_floor *f = &a->floors.v[k];
            int64_t from = ST_MAX(f->until_ms, l->period.from_ms);
            cost = add_up(
                cost, floor_cost(l, (int)i, l->gpus.v[f->gpu], f->gpu_m, from, l->period.to_ms));
        }
    }
    return cost;
}

/* ---- admission ---------------------------------------------------------------------------------- */

static const char *dollars(char buf[32], int64_t udollars)
{
    uint64_t n = udollars < 0 ? 0 - (uint64_t)udollars : (uint64_t)udollars;
    snprintf(buf, 32, "%s$%" PRIu64 ".%02u", udollars < 0 ? "-" : "", n / 1000000,
             (unsigned)(n % 1000000 / 10000));
    return buf;
}

/* Floors, and windows of bookings. */
static int64_t all_to_come(const st_ledger *l, int above)
{
    return add_up(floors_to_come(l, above),
                  st_ledger_bookings_cost(l, above, l->period.from_ms, l->period.to_ms));
}

int st_ledger_fits(const st_ledger *l, int account, int64_t more, int64_t at_ms, const char *what,
                   const char *reader, st_err *err)
{
    char want[32], cap_text[32], spent[32], held[32], floors[32];
    int top = reader ? st_ledger_id(l, reader) : 0;
    for (; account >= 0; account = l->accounts.v[account]->parent) {
        const ledger_account *a = l->accounts.v[account];
        int64_t cap = cap_of(a, at_ms);
        if (cap < 0)
            continue;
        int64_t to_come = all_to_come(l, account);
        if ((st_i128)a->posted + a->held + to_come + more <= cap)
            continue;
        if (top < 0 || !st_ledger_within(l, account, top))
            return st_fail(err, ST_EQUOTA,
                           "%s could cost %s: an account above yours has a spend cap that leaves "
                           "less than that in %s",
                           what, dollars(want, more), l->period.name);
        return st_fail(err, ST_EQUOTA,
                       "%s could cost %s: the cap of %s is %s in %s, of which %s are spent, %s on "
                       "hold and %s needed for floors and bookings",
                       what, dollars(want, more), account ? a->name : "the cluster",
                       dollars(cap_text, cap), l->period.name, dollars(spent, a->posted),
                       dollars(held, a->held), dollars(floors, to_come));
    }
    return 0;
}

/* Whether any plan above, now or later, makes burst beyond a limit on demand. */
static bool may_be_on_demand(const st_ledger *l, int account)
{
    for (; account >= 0; account = l->accounts.v[account]->parent)
        for (size_t i = 0; i < l->accounts.v[account]->plans.n; i++)
            if (l->accounts.v[account]->plans.v[i].burst_m != ST_UNSET)
                return true;
    return false;
}

static int64_t dearest(const st_rates *r, bool on_demand)
{
    int64_t rate = ST_MAX(r->rate[ST_PAY_GUARANTEED], r->rate[ST_PAY_BURST]);
    rate = ST_MAX(rate, r->rate[ST_PAY_BOOKED]);
    return on_demand ? ST_MAX(rate, r->rate[ST_PAY_ON_DEMAND]) : rate;
}

/* With the prices of one moment. Premium and surcharge are on top of the rate. */
static int64_t worst_at(const st_ledger *l, int account, const st_worst *w, int64_t at_ms)
{
    const st_price_book *b = book_at(l, at_ms);
    const int64_t left[] = {st_ledger_keep_at(l, account, at_ms),
                            st_price_class_bp(b, w->priority_class)};
    int64_t keep = st_price_factor(left, 2), most = 0;
    st_i128 gpu = (st_i128)w->gpu_m * w->limit_ms;
    const st_unit_price *unit = w->pieces > 0 ? st_price_unit(b, w->workload) : NULL;
    if (unit)
        return st_ledger_cost_up(unit->by, w->pieces, unit->rate, keep);
    for (int i = 0; i < w->ngpus; i++) {
        const st_rates *r = st_price_rates(b, w->gpus[i]);
        if (!r)
            continue;
        int64_t rate = dearest(r, may_be_on_demand(l, account)), level = r->level_bp[w->level];
        const int64_t once[] = {level, keep}, topo[] = {level, b->topo_bp[w->topo], keep},
                      idle[] = {level, b->idle_bp, keep};
        int64_t cost = st_ledger_cost_up(ST_PAY_BURST, gpu, rate, st_price_factor(once, 2));
        cost =
            add_up(cost, st_ledger_cost_up(ST_PAY_TOPOLOGY, gpu, rate, st_price_factor(topo, 3)));
        cost = add_up(cost, st_ledger_cost_up(ST_PAY_IDLE, gpu, rate, st_price_factor(idle, 3)));
        most = ST_MAX(most, cost);
    }
    most =
        add_up(most, st_ledger_cost_up(ST_PAY_CPU, (st_i128)w->cpu_m * w->limit_ms, b->cpu, keep));
    most = add_up(most,
                  st_ledger_cost_up(ST_PAY_RAM, (st_i128)w->ram_mib * w->limit_ms, b->ram, keep));
    return add_up(most,
                  st_ledger_cost_up(ST_PAY_ENERGY, gpu * POWER_W / ST_WHOLE_M, b->energy, keep));
}

/* A job's lines may carry remainders of others: less than a micro-dollar each, a few lines for each interval. */
static int64_t slack(int64_t limit_ms)
{
    return ST_LINES_MAX * (limit_ms / DAY_MS + 16);
}

/* The most it can cost, whenever in its time prices change. */
static int64_t worst_of(const st_ledger *l, int id, const st_worst *w)
{
    int64_t most = 0;
    for (int64_t at = w->at_ms; at != ST_TIME_NEVER; at = next_change(l, id, at))
        most = ST_MAX(most, worst_at(l, id, w, at));
    return add_up(most, slack(w->limit_ms));
}

st_cap_terms st_ledger_cap_terms(const st_ledger *l, const char *account, int64_t at_ms,
                                 int64_t limit_ms)
{
    st_cap_terms t = {.rolls = limit_ms == ST_TIME_NEVER};
    for (int id = st_ledger_id(l, account); id >= 0; id = l->accounts.v[id]->parent) {
        const st_price_plan *p = st_ledger_own_plan(l->accounts.v[id], at_ms);
        if (cap_of(l->accounts.v[id], at_ms) < 0)
            continue;
        t.hold_ms = t.capped ? t.hold_ms : p->hold_ms;
        t.grace_ms = ST_MAX(t.grace_ms, p->grace_ms);
        t.rolls |= p->at_cap == ST_AT_CAP_STOP;
        t.capped = true;
    }
    return t;
}

bool st_ledger_cap_reached(const st_ledger *l, const char *account, int64_t at_ms, int64_t running,
                           const st_price_plan **ret_plan, int64_t *ret_spent)
{
    int id = st_ledger_id(l, account);
    const ledger_account *a = id < 0 ? NULL : l->accounts.v[id];
    const st_price_plan *p = a ? st_ledger_own_plan(a, at_ms) : NULL;
    if (!p || p->cap_udollars < 0 || a->posted + running < p->cap_udollars)
        return false;
    *ret_plan = p;
    *ret_spent = a->posted + running;
    return true;
}

int64_t st_ledger_worst(const st_ledger *l, const st_worst *w)
{
    int id = st_ledger_id(l, w->account);
    return id <= 0 ? 0 : worst_of(l, id, w);
}

int st_ledger_renew(const st_ledger *l, const st_worst *w, const char *job, int64_t running,
                    int64_t *ret, st_err *err)
{
    int id = st_ledger_id(l, w->account);
    if (id <= 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", w->account);
    const ledger_hold *h = st_ledger_hold(l, id, job);
    int64_t want = add_up(ST_MAX(running, 0), worst_of(l, id, w));
    int r = st_ledger_fits(l, id, want - (h ? h->left : 0), w->at_ms, "this job", w->reader, err);
    if (r == 0)
        *ret = want;
    return r;
}

/* For how long a job's hold is when it is admitted. */
static int64_t first_hold_ms(const st_ledger *l, const st_worst *w)
{
    st_cap_terms t = st_ledger_cap_terms(l, w->account, w->at_ms, w->limit_ms);
    return t.rolls ? ST_MIN(w->limit_ms, t.hold_ms + t.grace_ms) : w->limit_ms;
}

int st_ledger_rehold(const st_ledger *l, const st_worst *w, const char *job, int64_t limit_ms,
                     int64_t *ret, st_err *err)
{
    int id = st_ledger_id(l, w->account);
    const ledger_hold *h = id <= 0 ? NULL : st_ledger_hold(l, id, job);
    *ret = ST_UNSET;
    /* What is renewed is held for a while whatever the limit is. */
    if (!h || st_ledger_cap_terms(l, w->account, w->at_ms, limit_ms).rolls)
        return 0;
    st_worst then = *w;
    then.limit_ms = limit_ms;
    /* One that had no end holds for a while: from now on for its whole limit, which is more than is left of it. */
    int64_t more = worst_of(l, id, &then);
    more -= w->limit_ms == ST_TIME_NEVER ? h->left : worst_of(l, id, w);
    int r = st_ledger_fits(l, id, ST_MAX(more, 0), w->at_ms, "the longer limit of this job",
                           w->reader, err);
    if (r < 0)
        return more > 0 ? r : 0; /* more than its cap is spent: what is held stays held */
    *ret = ST_MAX(add_up(h->left, more), 0);
    return 0;
}

int st_ledger_admit(const st_ledger *l, const st_worst *w, int64_t *ret, st_err *err)
{
    int id = st_ledger_id(l, w->account);
    if (id <= 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", w->account);
    if (!st_ledger_capped(l, id, w->at_ms)) {
        *ret = ST_UNSET;
        return 0;
    }
    st_worst first = *w;
    first.limit_ms = first_hold_ms(l, w);
    int64_t most = worst_of(l, id, &first);
    int r = st_ledger_fits(l, id, most, w->at_ms, "this job", w->reader, err);
    if (r == 0)
        *ret = most;
    return r;
}

int st_ledger_admit_floor(const st_ledger *l, const char *account, const char *gpu, int64_t more_m,
                          int64_t at_ms, const char *reader, st_err *err)
{
    int id = st_ledger_id(l, account);
    if (id < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", account);
    if (more_m <= 0)
        return 0;
    int64_t cost =
        floor_cost(l, id, gpu, more_m, ST_MAX(at_ms, l->period.from_ms), l->period.to_ms);
    return st_ledger_fits(l, id, cost, at_ms, "the floor, until the month ends,", reader, err);
}

/* In a later month nothing is posted or held yet: floors as they are now, and what is booked. */
static int fits_later(const st_ledger *l, int id, const st_period *month, int64_t more,
                      const char *reader, st_err *err)
{
    char want[32], cap_text[32], has[32];
    int top = reader ? st_ledger_id(l, reader) : 0;
    for (int up = id; up >= 0; up = l->accounts.v[up]->parent) {
        const ledger_account *a = l->accounts.v[up];
        int64_t cap = cap_of(a, month->from_ms);
        if (cap < 0)
            continue;
        int64_t there = st_ledger_bookings_cost(l, up, month->from_ms, month->to_ms);
        for (size_t i = 0; i < l->accounts.n; i++)
            for (size_t k = 0; st_ledger_within(l, (int)i, up) && k < l->accounts.v[i]->floors.n;
                 k++)
                there = add_up(there,
                               floor_cost(l, (int)i, l->gpus.v[l->accounts.v[i]->floors.v[k].gpu],
                                          l->accounts.v[i]->floors.v[k].gpu_m, month->from_ms,
                                          month->to_ms));
        if ((st_i128)there + more <= cap)
            continue;
        if (top < 0 || !st_ledger_within(l, up, top))
            return st_fail(err, ST_EQUOTA,
                           "this booking costs %s in %s: an account above yours has a spend cap "
                           "that leaves less than that",
                           dollars(want, more), month->name);
        return st_fail(err, ST_EQUOTA,
                       "this booking costs %s in %s: the cap of %s is %s a month, of which %s are "
                       "needed for floors and bookings",
                       dollars(want, more), month->name, up ? a->name : "the cluster",
                       dollars(cap_text, cap), dollars(has, there));
    }
    return 0;
}

int st_ledger_admit_booking(const st_ledger *l, const char *account, const st_period *month,
                            int64_t more, int64_t at_ms, const char *reader, st_err *err)
{
    int id = st_ledger_id(l, account);
    if (id < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", account);
    if (more <= 0)
        return 0;
    if (month->from_ms > l->period.from_ms)
        return fits_later(l, id, month, more, reader, err);
    return st_ledger_fits(l, id, more, at_ms, "this booking", reader, err);
}

static int passed(const st_price_plan *p, int64_t spent)
{
    int64_t of = p->budget_udollars >= 0 ? p->budget_udollars : p->cap_udollars;
    int n = 0;
    for (int i = 0; of >= 0 && i < p->nwarn; i++)
        n += (st_i128)spent * ST_BP >= (st_i128)of * p->warn_bp[i];
    return n;
}

int st_ledger_warned(const st_ledger *l, const char *account, int64_t at_ms, int64_t running,
                     const st_price_plan **ret_plan, int64_t *ret_spent)
{
    int id = st_ledger_id(l, account);
    const ledger_account *a = id < 0 ? NULL : l->accounts.v[id];
    const st_price_plan *p = a ? st_ledger_own_plan(a, at_ms) : NULL;
    if (!p)
        return 0;
    *ret_plan = p;
    *ret_spent = a->posted + running;
    return passed(p, *ret_spent);
}

int st_ledger_budget(const st_ledger *l, const char *account, int64_t at_ms, st_budget_state *ret,
                     st_err *err)
{
    int id = st_ledger_id(l, account);
    if (id < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", account);
    const ledger_account *a = l->accounts.v[id];
    const st_price_plan *p = st_ledger_own_plan(a, at_ms);
    st_budget_state s = {.cap = p ? p->cap_udollars : ST_UNSET,
                         .budget = p ? p->budget_udollars : ST_UNSET,
                         .spent = a->posted,
                         .held = a->held,
                         .reserved = floors_to_come(l, id),
                         .booked =
                             st_ledger_bookings_cost(l, id, l->period.from_ms, l->period.to_ms),
                         .left = ST_UNSET};
    if (s.cap >= 0)
        s.left = ST_MAX(0, s.cap - s.spent - s.held - s.reserved - s.booked);
    s.warned = p ? passed(p, s.spent) : 0;
    *ret = s;
    return 0;
}

void st_budget_run(const st_ledger *l, const char *account, int64_t at_ms, int64_t running,
                   int64_t of_holds, int64_t of_floors, int64_t of_windows, st_budget_state *state)
{
    const st_price_plan *plan;
    int64_t spent;
    state->running = running;
    state->spent += running;
    state->held = ST_MAX(0, state->held - of_holds);
    state->reserved = ST_MAX(0, state->reserved - of_floors);
    state->booked = ST_MAX(0, state->booked - of_windows);
    if (state->cap >= 0)
        state->left =
            ST_MAX(0, state->cap - state->spent - state->held - state->reserved - state->booked);
    state->warned = st_ledger_warned(l, account, at_ms, running, &plan, &spent);
}
