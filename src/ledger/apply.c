/* Taking entries in. First everything is checked, then it is done: a refused entry changes nothing. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/mutant.h"
#include "base/quote.h"
#include "ledger/state.h"
#include "ledger/text.h"
#include "model/tree.h"

static bool is_fleet(const st_entry *e)
{
    return strcmp(e->account, ST_BOOK_FLEET) == 0;
}

/* ---- the book ----------------------------------------------------------------------------------- */

static int check_book(const st_ledger *l, const st_entry *e, int *ret_id, st_err *err)
{
    char q[ST_QUOTE_MAX];
    if (e->kind >= ST_ENTRY_COUNT || !e->account)
        return st_fail(err, ST_EINVAL, "an entry without a kind or an account");
    if (!l->period.name[0])
        return st_fail(err, ST_ESTATE, "no period is open");
    if (e->at_ms < l->at_ms)
        return st_fail(err, ST_ESTATE, "entry %lld of %s is from %lld, before the last one's %lld",
                       (long long)e->seq, st_quote(q, e->account), (long long)e->at_ms,
                       (long long)l->at_ms);
    int id = is_fleet(e) ? -1 : st_ledger_id(l, e->account);
    if (e->kind == ST_ENTRY_ACCOUNT && id >= 0 && l->accounts.v[id]->seq > 0)
        return st_fail(err, ST_EEXIST, "there is an account %s already", st_quote(q, e->account));
    if (id < 0 && !is_fleet(e))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, e->account));
    int64_t seq = is_fleet(e) ? l->fleet_seq : id < 0 ? 0 : l->accounts.v[id]->seq;
    if (e->seq != seq + 1)
        return st_fail(err, ST_ESTATE, "entry %lld of %s comes where %lld must", (long long)e->seq,
                       st_quote(q, e->account), (long long)seq + 1);
    if (id >= 0 && l->accounts.v[id]->closed)
        return st_fail(err, ST_ESTATE, "%s is closed for %s", st_quote(q, e->account),
                       l->period.name);
    *ret_id = id;
    return 0;
}

/* Which kinds are in the books of the cluster (""), which everybody sees, of the fleet, which nobody does, and of
 * accounts. */
static int check_place(const st_entry *e, int id, st_err *err)
{
    bool shared = e->kind == ST_ENTRY_CLOSE;
    bool hidden = e->kind == ST_ENTRY_FLEET || e->kind == ST_ENTRY_PLAN ||
                  e->kind == ST_ENTRY_CHILD || e->kind == ST_ENTRY_LENT;
    bool good = is_fleet(e) ? hidden || shared
                : id == 0   ? e->kind == ST_ENTRY_PRICES || e->kind == ST_ENTRY_RESTORED || shared
                            : e->kind != ST_ENTRY_FLEET && e->kind != ST_ENTRY_PRICES &&
                                e->kind != ST_ENTRY_RESTORED && e->kind != ST_ENTRY_LENT;
    if (good)
        return 0;
    return st_fail(err, ST_EINVAL, "a %s entry has no place in the book \"%s\"",
                   st_entry_kind_name(e->kind), e->account);
}

/* ---- priced entries ----------------------------------------------------------------------------- */

static bool good_name(const char *s)
{
    return s && st_name_ok(s);
}

/* Only what borrows has a part inside floors; a correction has deltas. */
static bool good_inside(const st_entry *e)
{
    bool borrows = e->gpu && (e->basis == ST_BASIS_BURST || e->basis == ST_BASIS_ON_DEMAND);
    int64_t unused = e->seen < 0 || e->busy < 0 ? 0 : ST_MAX(e->seen - e->busy, 0);
    if (e->kind == ST_ENTRY_FIX)
        return (borrows || (e->inside == 0 && e->inside_idle == 0)) && e->inside >= -ST_SUM_MAX &&
               e->inside <= ST_SUM_MAX && e->inside_idle >= -ST_SUM_MAX &&
               e->inside_idle <= ST_SUM_MAX;
    return e->inside >= 0 && e->inside <= (borrows ? e->share : 0) && e->inside_idle >= 0 &&
           e->inside_idle <= ST_MIN(unused, e->inside);
}

static bool good_stay(const st_entry *e)
{
    bool fix = e->kind == ST_ENTRY_FIX;
    const int64_t amounts[] = {e->gpu_m, e->share, e->held, e->cpu, e->ram};
    const int64_t measured[] = {e->seen, e->busy, e->energy_mj};
    int64_t tasks = 0;
    for (size_t i = 0; i < ST_ARRAY_LEN(amounts); i++)
        if (amounts[i] < (fix ? -INT64_MAX : 0))
            return false;
    for (size_t i = 0; i < ST_ARRAY_LEN(measured); i++)
        if (measured[i] < (fix ? -INT64_MAX : ST_UNKNOWN))
            return false;
    for (int i = 0; i < e->ngrants; i++)
        tasks += e->grants[i].n;
    int64_t unused;
    return good_name(e->job) && e->stay >= 1 && e->piece >= 1 && e->tasks >= 0 && e->capped >= 0 &&
           e->capped <= ST_SUM_MAX && (e->ngrants == 0 || tasks == e->tasks) &&
           (!e->gpu || good_name(e->gpu)) && e->level < ST_LEVEL_COUNT &&
           e->basis < ST_BASIS_COUNT && e->topo < ST_TOPO_COUNT && e->cut < ST_CUT_COUNT &&
           !__builtin_sub_overflow(e->seen, e->busy, &unused) && unused >= -INT64_MAX &&
           good_inside(e);
}

static bool good_lost(const st_entry *e)
{
    return good_name(e->job) && e->stay >= 1 && e->piece >= 1 && (!e->gpu || good_name(e->gpu)) &&
           e->level < ST_LEVEL_COUNT && e->basis < ST_BASIS_COUNT && e->cut < ST_CUT_COUNT &&
           st_cut_blameless(e->cut) && e->lost >= 0 && e->charged >= 0 &&
           e->charged <= ST_SUM_MAX && e->credited >= 0 && e->credited <= ST_SUM_MAX &&
           e->amount <= ST_AMOUNT_MAX && e->amount >= -ST_AMOUNT_MAX;
}

static bool good_fields(const st_entry *e)
{
    switch (e->kind) {
    case ST_ENTRY_USAGE:
    case ST_ENTRY_FIX:
        return good_stay(e);
    case ST_ENTRY_LOST:
        return good_lost(e);
    case ST_ENTRY_RESERVE:
        return good_name(e->gpu) && e->gpu_m >= 0 && e->share >= 0;
    case ST_ENTRY_PIECES:
        return good_name(e->job) && good_name(e->workload) && e->pieces >= 0;
    case ST_ENTRY_CREDIT:
        /* Below 0 it takes back the credit it names. */
        return e->amount != 0 && e->amount <= ST_AMOUNT_MAX && e->amount >= -ST_AMOUNT_MAX &&
               e->reason && e->reason[0] && e->by && e->fixes >= (e->amount < 0 ? 1 : 0);
    case ST_ENTRY_BOOKING:
        return good_name(e->booking) && good_name(e->gpu) && e->gpu_m > 0 &&
               e->gpu_m <= ST_QTY_MAX && e->from_ms >= 0 && e->to_ms >= e->from_ms &&
               e->short_m >= 0 && e->short_m <= e->gpu_m && e->agreed_ms <= e->at_ms;
    case ST_ENTRY_WINDOW:
        return good_name(e->booking) && good_name(e->gpu);
    case ST_ENTRY_LENT:
        return good_name(e->job) && good_name(e->booking) && e->from_ms >= 0 &&
               e->to_ms >= e->from_ms;
    case ST_ENTRY_HOLD:
        return good_name(e->job) && e->amount >= 0 && e->amount <= ST_AMOUNT_MAX;
    case ST_ENTRY_RELEASE:
        return good_name(e->job);
    case ST_ENTRY_FLOOR:
        return good_name(e->gpu) && e->gpu_m >= 0 && e->gpu_m <= ST_QTY_MAX;
    default:
        return true;
    }
}

/* Where its time lies: in one price book and terms, and usage in the open period. */
static int check_span(const st_ledger *l, const st_entry *e, int id, st_err *err)
{
    if (e->kind == ST_ENTRY_PIECES || e->kind == ST_ENTRY_CREDIT)
        return 0;
    if (e->from_ms < 0 || e->to_ms < e->from_ms || e->to_ms > e->at_ms)
        return st_fail(err, ST_EINVAL,
                       "entry %lld of %s: from %lld to %lld is no interval of the past",
                       (long long)e->seq, e->account, (long long)e->from_ms, (long long)e->to_ms);
    bool later = e->kind == ST_ENTRY_FIX || e->kind == ST_ENTRY_LOST;
    if (later && (e->fixes < 1 || e->fixes >= e->seq))
        return st_fail(err, ST_EINVAL, "entry %lld of %s corrects none before it",
                       (long long)e->seq, e->account);
    if (!later && (e->from_ms < l->period.from_ms || e->to_ms > l->period.to_ms))
        return st_fail(err, ST_ESTATE,
                       "entry %lld of %s: from %lld to %lld is not within %s, which is open",
                       (long long)e->seq, e->account, (long long)e->from_ms, (long long)e->to_ms,
                       l->period.name);
    int64_t last = ST_MAX(e->from_ms, e->to_ms - 1);
    if (st_ledger_book(l, e->from_ms) != st_ledger_book(l, last) ||
        st_ledger_terms_of(l->accounts.v[id], e->from_ms) !=
            st_ledger_terms_of(l->accounts.v[id], last))
        return st_fail(err, ST_ESTATE, "entry %lld of %s: prices change between %lld and %lld",
                       (long long)e->seq, e->account, (long long)e->from_ms, (long long)e->to_ms);
    return 0;
}

static int64_t net_of(const st_entry *e)
{
    int64_t net = 0; /* at most ST_LINES_MAX x ST_AMOUNT_MAX */
    for (int i = 0; i < e->nlines; i++)
        net += e->lines[i].amount;
    return net;
}

/* What the entry may charge whatever a cap leaves: a credit for lost work that is too high after a correction is
 * taken back as far as the correction, just before it, has given back. The two together charge nothing, and
 * without it the job would be credited more than it was charged. */
static int64_t given_back(const ledger_account *a, const st_entry *e)
{
    bool pair = e->kind == ST_ENTRY_LOST && e->seq == a->gave_seq + 1 && e->fixes == a->gave_of;
    return pair ? a->gave_back : 0;
}

/* The lines, with a last one for what is beyond a cap. `former`: as books were kept before credits were taken
 * back under a cap. */
static int price(const st_ledger *l, int id, bool former, st_entry *e, st_err *err)
{
    const ledger_account *a = l->accounts.v[id];
    /* Just before, as what begins in the same millisecond may be in its book before this one or behind. */
    int64_t at = st_entry_moment(e), book_at = e->kind == ST_ENTRY_WINDOW ? e->agreed_ms - 1 : at;
    int r = st_price_entry(e, st_ledger_book(l, book_at), st_ledger_terms_of(a, at), a->carry, err);
    if (r < 0)
        return r;
    int64_t net = net_of(e);
    int64_t may = st_ledger_chargeable(l, id, st_ledger_hold(l, id, e->job), e->at_ms, net);
    if (!former)
        may = ST_MAX(may, ST_MIN(net, given_back(a, e)));
    int64_t beyond = net - may;
    /* What was charged and a cap had paid is not given back a second time. */
    if (e->kind == ST_ENTRY_FIX && net < 0 && !ST_BROKEN(MONEY_UNCAP))
        beyond = -ST_MIN(e->capped, -net);
    if (beyond == 0)
        return 0;
    return st_price_add(
        e, a->carry,
        (st_line){.what = ST_PAY_CAP, .quantity = -beyond, .rate = 1, .factor_bp = ST_BP}, err);
}

static int check_priced(const st_ledger *l, const st_entry *e, int id, st_err *err)
{
    if (!good_fields(e))
        return st_fail(err, ST_EINVAL, "entry %lld of %s: a %s entry with impossible values",
                       (long long)e->seq, e->account, st_entry_kind_name(e->kind));
    int r = check_span(l, e, id, err);
    if (r == 0 && e->kind == ST_ENTRY_WINDOW)
        r = st_ledger_check_window(l, e, id, err);
    return r;
}

int st_ledger_price(const st_ledger *l, st_entry *e, st_err *err)
{
    char q[ST_QUOTE_MAX];
    int id = e->account ? st_ledger_id(l, e->account) : -1;
    if (id <= 0)
        return st_fail(err, ST_ENOENT, "there is no account %s",
                       st_quote(q, e->account ? e->account : ""));
    st_entry priced = *e;
    priced.seq = l->accounts.v[id]->seq + 1;
    int r = check_priced(l, &priced, id, err);
    priced.contra = true;
    if (r == 0)
        r = price(l, id, false, &priced, err);
    if (r == 0)
        *e = priced;
    return r;
}

static bool same_line(const st_line *a, const st_line *b)
{
    return a->what == b->what && a->quantity == b->quantity && a->rate == b->rate &&
           a->factor_bp == b->factor_bp && a->carry_in == b->carry_in && a->amount == b->amount &&
           a->carry == b->carry;
}

/* The first line that is another, or -1. */
static int other_line(const st_entry *a, const st_entry *b)
{
    for (int i = 0; i < a->nlines || i < b->nlines; i++)
        if (i >= a->nlines || i >= b->nlines || !same_line(&a->lines[i], &b->lines[i]))
            return i;
    return -1;
}

static int check_lines(const st_ledger *l, const st_entry *e, int id, st_err *err)
{
    st_entry again = *e, then = *e;
    int r = price(l, id, false, &again, err);
    if (r < 0)
        return r;
    int other = other_line(&again, e);
    if (other >= 0 && given_back(l->accounts.v[id], e) > 0 &&
        price(l, id, true, &then, NULL) == 0 && other_line(&then, e) < 0)
        return 0;
    if (other >= 0)
        return st_fail(err, ST_ECORRUPT,
                       "entry %lld of %s: line %d does not follow from usage, prices and terms",
                       (long long)e->seq, e->account, other + 1);
    return 0;
}

/* Whether every sum that postings go into stays one. */
static bool sums_fit(const st_ledger *l, const st_entry *e, int id, int64_t net)
{
    const ledger_account *a = l->accounts.v[id];
    st_bill_use use = a->now.use;
    if (!st_ledger_use_add(&use, e) || !st_ledger_sum_fits(a->balance, -net))
        return false;
    for (int i = 0; i < e->nlines; i++)
        if (!st_ledger_sum_fits(l->revenue[e->lines[i].what], e->lines[i].amount))
            return false;
    for (; id >= 0; id = l->accounts.v[id]->parent)
        if (!st_ledger_sum_fits(l->accounts.v[id]->posted, net))
            return false;
    return true;
}

static void post(st_ledger *l, const st_entry *e, int id)
{
    ledger_account *a = l->accounts.v[id];
    ledger_hold *h = st_ledger_hold(l, id, e->job);
    int64_t net = net_of(e);
    for (int i = 0; i < e->nlines; i++) {
        const st_line *line = &e->lines[i];
        a->carry[line->what] = ST_BROKEN(MONEY_CARRY) ? 0 : line->carry;
        l->revenue[line->what] += line->amount;
        st_ledger_tally_post(l, &a->now, e, line);
    }
    st_ledger_daily_post(l, id, e);
    a->balance -= net;
    a->gave_back = e->kind == ST_ENTRY_FIX ? ST_MAX(-net, 0) : 0;
    a->gave_of = e->fixes;
    a->gave_seq = e->seq;
    st_ledger_use_add(&a->now.use, e);
    for (int up = id; up >= 0; up = l->accounts.v[up]->parent)
        l->accounts.v[up]->posted += net;
    if (h) {
        /* What comes back to a job may be spent by it again. */
        int64_t left = ST_MAX(0, ST_MIN(h->amount, h->left - net));
        st_ledger_move_held(l, id, left - h->left);
        h->left = left;
    }
}

static ledger_floor *find_floor(ledger_account *a, int gpu)
{
    for (size_t i = 0; i < a->floors.n; i++)
        if (a->floors.v[i].gpu == gpu)
            return &a->floors.v[i];
    return NULL;
}

static int apply_priced(st_ledger *l, const st_entry *e, int id, st_err *err)
{
    int r = check_priced(l, e, id, err);
    if (r == 0)
        r = check_lines(l, e, id, err);
    if (r < 0)
        return r;
    if (!sums_fit(l, e, id, net_of(e)))
        return st_fail(err, ST_ERANGE, "entry %lld of %s: the sums are more than can be counted",
                       (long long)e->seq, e->account);
    post(l, e, id);
    if (e->kind == ST_ENTRY_WINDOW)
        st_ledger_window_posted(l, e, id);
    if (e->kind == ST_ENTRY_RESERVE) {
        ledger_floor *f = find_floor(l->accounts.v[id], st_ledger_add_gpu(l, e->gpu));
        if (f)
            f->until_ms = ST_MAX(f->until_ms, e->to_ms);
    }
    return 0;
}

/* ---- the others --------------------------------------------------------------------------------- */

/* The account is there from here on; its book begins with the next entry. */
static int apply_child(st_ledger *l, const st_entry *e, int parent, st_err *err)
{
    char q[ST_QUOTE_MAX];
    const char *name = e->child ? e->child : "";
    if (!st_name_ok(name) || name[0] == '#')
        return st_fail(err, ST_EINVAL, "%s cannot be the name of an account", st_quote(q, name));
    if (st_ledger_id(l, name) >= 0)
        return st_fail(err, ST_EEXIST, "there is an account %s already", st_quote(q, name));
    if (l->accounts.v[parent]->depth >= ST_DEPTH_MAX)
        return st_fail(err, ST_ELIMIT, "account %s: the tree has at most %d levels", name,
                       ST_DEPTH_MAX);
    if (l->accounts.n >= ST_ACCOUNTS_MAX)
        return st_fail(err, ST_ELIMIT, "account %s: there are at most %d accounts", name,
                       ST_ACCOUNTS_MAX);
    ledger_account *a = st_xcalloc(1, sizeof *a);
    a->name = st_xstrdup(name);
    a->parent = parent;
    a->depth = l->accounts.v[parent]->depth + 1;
    st_map_put(l->ids, a->name, (int64_t)l->accounts.n);
    st_vec_push(&l->accounts, a);
    st_vec_push(&l->due, (int)l->accounts.n - 1);
    return 0;
}

static void moment_text(int64_t ms, char ret[32])
{
    char utc[ST_UTC_MAX];

    st_utc(utc, ms);
    snprintf(ret, 32, "%.10s %.5s UTC", utc, utc + 11);
}

static int too_late(const st_entry *e, int64_t from_ms, st_err *err)
{
    char from[32], at[32];

    moment_text(from_ms, from);
    moment_text(e->at_ms, at);
    return st_fail(err, ST_EINVAL,
                   "%s from %s on cannot be set at %s: what is past keeps its price",
                   st_entry_kind_name(e->kind), from, at);
}

static int fail_cap(const char *account, int64_t used, const char *period, int64_t cap, st_err *err)
{
    char spent[ST_MONEY_MAX], bound[ST_MONEY_MAX];

    return st_fail(err, ST_EQUOTA,
                   "\"%s\" has $%s spent or on hold in %s; a cap of $%s can begin next month",
                   account, st_money(spent, used), period, st_money(bound, cap));
}

static int fail_same_plan(const char *account, int64_t from_ms, st_err *err)
{
    char from[32];

    moment_text(from_ms, from);
    return st_fail(err, ST_EEXIST, "\"%s\" already has a plan that starts at %s", account, from);
}

static int fail_same_start(const st_price_book *book, st_err *err)
{
    char from[32];

    moment_text(book->from_ms, from);
    return st_fail(err, ST_EEXIST,
                   "price book %s already starts at %s; give this one another start (`from`)",
                   book->name, from);
}

/* What is in a book is written in the one way. */
static int check_doc(const st_entry *e, const st_strbuf *again, st_err *err)
{
    if (strcmp(e->doc, st_strbuf_str(again)) == 0)
        return 0;
    return st_fail(err, ST_EINVAL, "the %s document is not in its canonical form",
                   st_entry_kind_name(e->kind));
}

static int apply_prices(st_ledger *l, const st_entry *e, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    ST_CLEANUP(st_freep) st_price_book *b = st_xcalloc(1, sizeof *b);
    int r = e->doc ? st_price_book_read("prices.json", e->doc, strlen(e->doc), e->at_ms, b, err)
                   : st_fail(err, ST_EINVAL, "prices without a document");
    if (r < 0)
        return r;
    st_price_book_write(b, &again);
    if ((r = check_doc(e, &again, err)) < 0)
        return r;
    if (b->from_ms < e->at_ms)
        return too_late(e, b->from_ms, err);
    size_t i = 0;
    for (; i < l->books.n && l->books.v[i]->from_ms <= b->from_ms; i++)
        if (l->books.v[i]->from_ms == b->from_ms)
            return fail_same_start(l->books.v[i], err);
    st_vec_insert(&l->books, i, ST_TAKE(b));
    return 0;
}

static int apply_plan(st_ledger *l, const st_entry *e, int id, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    ledger_account *a = l->accounts.v[id];
    st_price_plan p;
    int r = e->doc ? st_price_plan_read("plan.json", e->doc, strlen(e->doc), e->at_ms, &p, err)
                   : st_fail(err, ST_EINVAL, "a plan without a document");
    if (r < 0)
        return r;
    st_price_plan_write(&p, &again);
    if ((r = check_doc(e, &again, err)) < 0)
        return r;
    if (strcmp(p.account, a->name) != 0)
        return st_fail(err, ST_EINVAL, "a plan for \"%s\" in the book of \"%s\"", p.account,
                       e->account);
    if (p.from_ms < e->at_ms)
        return too_late(e, p.from_ms, err);
    if (p.cap_udollars >= 0 && p.at_cap == ST_AT_CAP_REFUSE && p.from_ms == e->at_ms &&
        a->posted + a->held > p.cap_udollars)
        return fail_cap(e->account, a->posted + a->held, l->period.name, p.cap_udollars, err);
    size_t i = 0;
    for (; i < a->plans.n && a->plans.v[i].from_ms <= p.from_ms; i++)
        if (a->plans.v[i].from_ms == p.from_ms)
            return fail_same_plan(e->account, p.from_ms, err);
    st_vec_insert(&a->plans, i, p);
    st_ledger_add_due(l, id);
    return 0;
}

static int apply_hold(st_ledger *l, const st_entry *e, int id, st_err *err)
{
    char what[ST_NAME_MAX + 8];
    ledger_hold *h = st_ledger_hold(l, id, e->job);
    if (e->kind == ST_ENTRY_RELEASE) {
        if (!h)
            return st_fail(err, ST_ENOENT, "job %s of %s holds nothing", e->job, e->account);
        if (!ST_BROKEN(MONEY_RELEASE))
            st_ledger_drop_hold(l, h);
        return 0;
    }
    if (h)
        return st_fail(err, ST_EEXIST, "job %s of %s has a hold already", e->job, e->account);
    if (!st_ledger_sum_fits(l->accounts.v[0]->held, e->amount))
        return st_fail(err, ST_ERANGE, "job %s of %s: the holds are more than can be counted",
                       e->job, e->account);
    snprintf(what, sizeof what, "job %s", e->job);
    int r = st_ledger_fits(l, id, e->amount, e->at_ms, what, NULL, err);
    if (r == 0)
        st_ledger_add_hold(l, id, e->job, e->amount, e->amount);
    return r;
}

static int apply_floor(st_ledger *l, const st_entry *e, int id, st_err *err)
{
    ledger_account *a = l->accounts.v[id];
    int gpu = st_ledger_gpu(l, e->gpu);
    ledger_floor *f = gpu < 0 ? NULL : find_floor(a, gpu);
    if (!f && e->gpu_m == 0)
        return 0;
    if (!f && a->floors.n >= ST_FLOORS_MAX)
        return st_fail(err, ST_ELIMIT, "%s: floors of more than %d GPU types", e->account,
                       ST_FLOORS_MAX);
    if (!f) {
        st_vec_push(&a->floors, (ledger_floor){.gpu = st_ledger_add_gpu(l, e->gpu)});
        f = &a->floors.v[a->floors.n - 1];
    }
    f->gpu_m = e->gpu_m;
    f->until_ms = ST_MAX(f->until_ms, e->at_ms);
    if (f->gpu_m == 0)
        st_vec_remove(&a->floors, f - a->floors.v);
    return 0;
}

static int check_fleet(const st_entry *e, st_err *err)
{
    const int64_t parts[] = {e->granted, e->idle, e->unhealthy, e->overhead};
    st_i128 sum = 0;
    for (size_t i = 0; i < ST_ARRAY_LEN(parts); i++)
        sum += parts[i];
    if (!good_name(e->gpu) || e->from_ms < 0 || e->to_ms < e->from_ms || sum != e->total)
        return st_fail(err, ST_EINVAL, "fleet entry %lld: its parts are not the whole",
                       (long long)e->seq);
    return 0;
}

static int check_close(const st_ledger *l, const st_entry *e, int id, st_err *err)
{
    const st_period *p = &l->period;
    if (!e->period || !e->zone || strcmp(e->period, p->name) != 0 || e->from_ms != p->from_ms ||
        e->to_ms != p->to_ms || e->at_ms < p->to_ms)
        return st_fail(err, ST_ESTATE, "entry %lld of \"%s\" closes what is not over or not open",
                       (long long)e->seq, e->account);
    for (size_t i = 1; id == 0 && i < l->accounts.n; i++)
        if (!l->accounts.v[i]->closed)
            return st_fail(err, ST_ESTATE, "%s cannot be closed before the book of %s is", p->name,
                           l->accounts.v[i]->name);
    return 0;
}

/* The cluster's close: what is open becomes past. Carries, holds and floors go on. */
static void close_period(st_ledger *l)
{
    ledger_past *past = st_xcalloc(1, sizeof *past);
    past->period = l->period;
    for (size_t i = 0; i < l->accounts.n; i++) {
        ledger_account *a = l->accounts.v[i];
        st_vec_push(&past->tallies, a->now);
        a->now = (ledger_tally){0};
        a->closed = false;
        a->posted = ST_BROKEN(MONEY_MONTH) ? a->posted : 0;
    }
    st_vec_push(&l->past, past);
    l->period = (st_period){0};
}

static int apply_restored(st_ledger *l, const st_entry *e, st_err *err)
{
    if (e->from_ms < 0 || e->to_ms < e->from_ms || e->from_ms > e->at_ms)
        return st_fail(err, ST_EINVAL, "a restored entry with impossible moments");
    st_vec_push(&l->voids, (ledger_void){e->from_ms, e->to_ms});
    return 0;
}

static int apply_kind(st_ledger *l, const st_entry *e, int id, st_err *err)
{
    switch (e->kind) {
    case ST_ENTRY_ACCOUNT:
        return 0;
    case ST_ENTRY_CHILD:
        return apply_child(l, e, ST_MAX(id, 0), err);
    case ST_ENTRY_TERMS:
        return st_ledger_apply_terms(l, e, id, err);
    case ST_ENTRY_PRICES:
        return apply_prices(l, e, err);
    case ST_ENTRY_PLAN:
        return apply_plan(l, e, ST_MAX(id, 0), err);
    case ST_ENTRY_HOLD:
    case ST_ENTRY_RELEASE:
    case ST_ENTRY_FLOOR:
    case ST_ENTRY_BOOKING:
        if (!good_fields(e))
            return st_fail(err, ST_EINVAL, "entry %lld of %s: a %s entry with impossible values",
                           (long long)e->seq, e->account, st_entry_kind_name(e->kind));
        if (e->kind == ST_ENTRY_BOOKING)
            return st_ledger_apply_booking(l, e, id, err);
        return e->kind == ST_ENTRY_FLOOR ? apply_floor(l, e, id, err) : apply_hold(l, e, id, err);
    case ST_ENTRY_FLEET:
        return check_fleet(e, err);
    case ST_ENTRY_CLOSE:
        return check_close(l, e, id, err);
    case ST_ENTRY_RESTORED:
        return apply_restored(l, e, err);
    case ST_ENTRY_LENT:
        if (!good_fields(e))
            return st_fail(err, ST_EINVAL, "entry %lld of %s: a %s entry with impossible values",
                           (long long)e->seq, e->account, st_entry_kind_name(e->kind));
        return st_ledger_apply_lent(l, e, err);
    default:
        return apply_priced(l, e, id, err);
    }
}

int st_ledger_apply(st_ledger *l, const st_entry *e, st_err *err)
{
    int id = -1, r = check_book(l, e, &id, err);
    if (r == 0)
        r = check_place(e, id, err);
    if (r == 0)
        r = st_ledger_check_due(l, e, err);
    if (r == 0)
        r = apply_kind(l, e, id, err);
    if (r < 0)
        return r;
    l->entries++;
    l->at_ms = e->at_ms;
    st_ledger_note_lendable(l, e, id);
    if (is_fleet(e)) {
        l->fleet_seq++;
        st_ledger_refresh_due(l);
        return 0;
    }
    ledger_account *a = l->accounts.v[id];
    a->seq++;
    a->now.use.last_seq = e->seq;
    if (!a->now.use.first_seq)
        a->now.use.first_seq = e->seq;
    if (e->kind == ST_ENTRY_CLOSE && id > 0)
        a->closed = true;
    else if (e->kind == ST_ENTRY_CLOSE)
        close_period(l);
    st_ledger_refresh_due(l);
    return 0;
}
