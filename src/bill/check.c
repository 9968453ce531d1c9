/* Whether the entries of a bill file lead to its lines (bill/check.h).
 *
 * Invariants of the second round:
 *  1 Only entries of the main range of an account of the bill are counted: the last range of its book in
 *    the file, which begins with the book or with the close before the period.
 *  2 A book, plan or terms in force at a moment are those with the latest beginning up to it; of the same beginning,
 *    the later entry. Only an account's own terms count for its prices.
 *  3 Carries join from entry to entry of a main range; only the first of each component is taken as it is,
 *    where the range does not begin with the book. */
#include "bill/check.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "bill/check_booking.h"
#include "bill/check_piece.h"
#include "bill/check_price.h"

typedef struct check_account {
    char *name;
    const struct check_account *parent; /* NULL: no child entry in the file names it */
    bool begun;                         /* its first entry is there */
    bool counted;                       /* of the bill */
    int64_t ranges;                     /* so many there are; the last is the main one */
    ST_VEC(st_price_plan) plans;
    ST_VEC(st_terms) terms;
    st_billpieces *pieces; /* NULL: no entry is about an earlier one */
    st_billbookings *bookings;
    st_bill_use use;
    bool use_said;
} check_account;

/* Lines as they must be. */
typedef struct check_row {
    st_bill_line line; /* account and gpu are in the arena */
    bool said;
} check_row;

struct st_billcheck {
    st_billhead head;
    st_arena *texts;
    ST_VEC(check_account *) accounts;
    st_map *by_name;
    ST_VEC(st_price_book *) books;
    ST_VEC(check_row) rows;
    st_map *by_row;
    int64_t total, uses;
    st_i128 owed;
    int64_t void_from_ms, void_to_ms; /* of the last restore that concerns the period; 0: none */
    bool has_cluster;

    /* The range being read. */
    check_account *at;
    st_billrange range;
    int64_t range_no; /* of its account, from 1 */
    bool main;
    bool closed; /* the period's close was seen */
    st_carries carries;
};

st_billcheck *st_billcheck_new(const st_billhead *head)
{
    st_billcheck *c = st_xcalloc(1, sizeof(*c));

    c->head = *head;
    c->texts = st_arena_new();
    c->by_name = st_map_new();
    c->by_row = st_map_new();
    return c;
}

void st_billcheck_free(st_billcheck *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->accounts.n; i++) {
        st_vec_free(&c->accounts.v[i]->plans);
        st_vec_free(&c->accounts.v[i]->terms);
        st_billpieces_free(c->accounts.v[i]->pieces);
        st_billbookings_free(c->accounts.v[i]->bookings);
        free(c->accounts.v[i]);
    }
    for (size_t i = 0; i < c->books.n; i++)
        free(c->books.v[i]);
    st_vec_free(&c->accounts);
    st_vec_free(&c->books);
    st_vec_free(&c->rows);
    st_map_free(c->by_name);
    st_map_free(c->by_row);
    st_arena_free(c->texts);
    free(c);
}

static check_account *find(const st_billcheck *c, const char *name)
{
    int64_t i;

    return st_map_get(c->by_name, name, &i) ? c->accounts.v[i] : NULL;
}

static check_account *find_or_add(st_billcheck *c, const char *name)
{
    check_account *a = find(c, name);

    if (a)
        return a;
    a = st_xcalloc(1, sizeof(*a));
    a->name = st_arena_strdup(c->texts, name);
    a->use.account = a->name;
    st_map_put(c->by_name, name, (int64_t)c->accounts.n);
    st_vec_push(&c->accounts, a);
    return a;
}

/* ---- first round: who there is and what is in force ---------------------------------------------- */

static bool is_cluster(const st_billrange *range)
{
    return range->account[0] == '\0';
}

int st_billcheck_learn_range(st_billcheck *c, const st_billrange *range, st_err *err)
{
    if (strcmp(range->account, ST_BOOK_FLEET) == 0)
        return st_fail(err, ST_ECORRUPT, "the book of the fleet has no place in a bill");
    if (is_cluster(range) && (range->from != 0 || range->to != range->size))
        return st_fail(err, ST_ECORRUPT,
                       "the cluster's book must be there as a whole, so that no price is missing");
    c->has_cluster = c->has_cluster || is_cluster(range);
    c->at = find_or_add(c, range->account);
    c->at->ranges++;
    return 0;
}

static int learn_prices(st_billcheck *c, const st_entry *e, st_err *err)
{
    st_price_book *book = st_xcalloc(1, sizeof(*book));
    int r = st_price_book_read("doc.json", e->doc, strlen(e->doc), 0, book, err);
    size_t at = c->books.n;

    if (r < 0) {
        free(book);
        return r;
    }
    while (at > 0 && c->books.v[at - 1]->from_ms > book->from_ms)
        at--;
    st_vec_insert(&c->books, at, book);
    return 0;
}

static int learn_plan(check_account *a, const st_entry *e, st_err *err)
{
    st_price_plan plan;
    int r = st_price_plan_read("doc.json", e->doc, strlen(e->doc), 0, &plan, err);
    size_t at = a->plans.n;

    if (r < 0)
        return r;
    if (strcmp(plan.account, a->name) != 0)
        return st_fail(err, ST_ECORRUPT, "the plan is another account's");
    while (at > 0 && a->plans.v[at - 1].from_ms > plan.from_ms)
        at--;
    st_vec_insert(&a->plans, at, plan);
    return 0;
}

static int learn_terms(check_account *a, const st_entry *e, st_err *err)
{
    size_t at = a->terms.n;

    if ((e->chargeback != 0 && e->chargeback != 1) || e->discount_bp < 0 ||
        e->discount_bp > ST_BP || e->from_ms < e->at_ms)
        return st_fail(err, ST_ECORRUPT,
                       "invalid terms entry: chargeback, discount or start is out of range");
    while (at > 0 && a->terms.v[at - 1].from_ms > e->from_ms)
        at--;
    st_vec_insert(&a->terms, at, ((st_terms){e->from_ms, e->chargeback, e->discount_bp}));
    return 0;
}

/* Who is made after the period has no part in its bill. */
static int learn_child(st_billcheck *c, const st_entry *e, st_err *err)
{
    check_account *a = c->at, *child;

    if (e->at_ms >= c->head.period.to_ms)
        return 0;
    child = find_or_add(c, e->child);
    if (child->parent || child == a || strcmp(e->child, c->head.account) == 0)
        return st_fail(err, ST_ECORRUPT, "account \"%s\" cannot be below this one", e->child);
    child->parent = a;
    return 0;
}

int st_billcheck_learn(st_billcheck *c, const st_entry *e, st_err *err)
{
    check_account *a = c->at;

    bool shared = e->kind == ST_ENTRY_PRICES || e->kind == ST_ENTRY_RESTORED;

    if (e->kind != ST_ENTRY_CLOSE && (a->name[0] == '\0') != shared)
        return st_fail(err, ST_ECORRUPT,
                       "the cluster's book has prices, restores and closes, and no other has the "
                       "first two");
    switch (e->kind) {
    case ST_ENTRY_ACCOUNT:
        a->begun = true;
        return 0;
    case ST_ENTRY_CHILD:
        return learn_child(c, e, err);
    case ST_ENTRY_TERMS:
        return learn_terms(a, e, err);
    case ST_ENTRY_PLAN:
        return learn_plan(a, e, err);
    case ST_ENTRY_PRICES:
        return learn_prices(c, e, err);
    case ST_ENTRY_RESTORED:
        if (e->from_ms > e->to_ms || e->from_ms > e->at_ms)
            return st_fail(err, ST_ECORRUPT, "a restore whose moments cannot be");
        if (e->from_ms < c->head.period.to_ms && e->to_ms > c->head.period.from_ms) {
            c->void_from_ms = e->from_ms;
            c->void_to_ms = e->to_ms;
        }
        return 0;
    case ST_ENTRY_FIX:
    case ST_ENTRY_LOST:
        if (!a->pieces)
            a->pieces = st_billpieces_new();
        st_billpieces_name(a->pieces, e->fixes);
        return 0;
    default:
        return 0;
    }
}

/* That the account is the bill's or below it, through the child entries of those between. Who is below the
 * cluster itself stands in a book that is in no file: there, whoever is below nobody is. */
static int check_within(const st_billcheck *c, const check_account *a, st_err *err)
{
    const check_account *top = a;

    for (int depth = 0; top->parent && depth <= ST_DEPTH_MAX; depth++)
        top = top->parent;
    if (a->name[0] == '\0')
        return 0;
    if (!a->begun)
        return st_fail(err, ST_ECORRUPT, "the first entry of account \"%s\" is missing", a->name);
    if (top->parent || (c->head.account[0] != '\0' && strcmp(top->name, c->head.account) != 0))
        return st_fail(err, ST_ECORRUPT, "account \"%s\" is not below \"%s\"", a->name,
                       c->head.account);
    return 0;
}

/* ---- what is in force ----------------------------------------------------------------------------- */

typedef int64_t begin_fn(const void *list, size_t i);

/* How many of a list in order of their beginnings have begun. */
static size_t begun(const void *list, size_t n, begin_fn *begin, int64_t ms)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (begin(list, mid) <= ms)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int64_t book_begins(const void *list, size_t i)
{
    return ((st_price_book *const *)list)[i]->from_ms;
}

static int64_t plan_begins(const void *list, size_t i)
{
    return ((const st_price_plan *)list)[i].from_ms;
}

static int64_t terms_begin(const void *list, size_t i)
{
    return ((const st_terms *)list)[i].from_ms;
}

static const st_price_book *book_at(const st_billcheck *c, int64_t ms)
{
    size_t n = begun(c->books.v, c->books.n, book_begins, ms);

    return n > 0 ? c->books.v[n - 1] : NULL;
}

static const st_price_plan *own_plan_at(const check_account *a, int64_t ms)
{
    size_t n = begun(a->plans.v, a->plans.n, plan_begins, ms);

    return n > 0 ? &a->plans.v[n - 1] : NULL;
}

static const st_terms *terms_at(const check_account *a, int64_t ms)
{
    size_t n = begun(a->terms.v, a->terms.n, terms_begin, ms);

    return n > 0 ? &a->terms.v[n - 1] : NULL;
}

/* Terms follow from the nearest plan; where that is in the file, they must be what it says. */
static int check_terms(const check_account *a, st_err *err)
{
    for (size_t i = 0; i < a->terms.n; i++) {
        const st_terms *terms = terms_at(a, a->terms.v[i].from_ms);
        const st_price_plan *plan = NULL;

        for (const check_account *up = a; up && !plan; up = up->parent)
            plan = own_plan_at(up, terms->from_ms);
        if (plan &&
            (plan->discount_bp != terms->discount_bp || plan->chargeback != terms->chargeback))
            return st_fail(err, ST_ECORRUPT,
                           "the terms of account \"%s\" are not those of its plan", a->name);
    }
    return 0;
}

int st_billcheck_learned(st_billcheck *c, st_err *err)
{
    const check_account *own = find(c, c->head.account);

    if (!c->has_cluster)
        return st_fail(err, ST_ECORRUPT, "the cluster's book, with the prices, is missing");
    if (!own)
        return st_fail(err, ST_ECORRUPT, "the book of account \"%s\" is missing", c->head.account);
    for (size_t i = 0; i < c->accounts.n; i++) {
        check_account *a = c->accounts.v[i];
        int r = check_within(c, a, err);

        if (r == 0)
            r = check_terms(a, err);
        if (r < 0)
            return r;
        a->counted = a->name[0] != '\0' || c->head.account[0] == '\0';
    }
    return 0;
}

/* ---- second round: entries ------------------------------------------------------------------------ */

int st_billcheck_range(st_billcheck *c, const st_billrange *range, st_err *err)
{
    check_account *a = find(c, range->account);

    ST_ASSERT(a);
    c->range_no = a == c->at ? c->range_no + 1 : 1;
    c->at = a;
    c->range = *range;
    c->closed = false;
    c->main = a->counted && c->range_no == a->ranges;
    for (int i = 0; i < ST_PAY_COUNT; i++)
        c->carries.v[i] = range->from == 0 ? 0 : -1;
    if (c->main && !c->head.closed && range->to != range->size)
        return st_fail(err, ST_ECORRUPT,
                       "the bill runs until now, but entries behind %lld of \"%s\" are missing",
                       (long long)range->to, a->name);
    return 0;
}

static check_row *row_for(st_billcheck *c, const st_entry *e, st_component what)
{
    bool of_gpu = what <= ST_PAY_IDLE || what == ST_PAY_LOST || what == ST_PAY_FAULT ||
                  what == ST_PAY_WINDOW || what == ST_PAY_CANCEL || what == ST_PAY_SHORT ||
                  what == ST_PAY_LENT;
    const char *gpu = of_gpu && e->gpu ? e->gpu : "";
    st_level level = *gpu && what != ST_PAY_RESERVED ? e->level : ST_LEVEL_WHOLE;
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    int64_t i;

    st_strbuf_addf(&key, "%d %d %s %s", (int)what, (int)level, gpu, e->account);
    if (!st_map_get(c->by_row, key.s, &i)) {
        i = (int64_t)c->rows.n;
        st_map_put(c->by_row, key.s, i);
        st_vec_push(&c->rows, (check_row){.line = {.account = c->at->name,
                                                   .what = what,
                                                   .gpu = st_arena_strdup(c->texts, gpu),
                                                   .level = level,
                                                   .first_seq = e->seq}});
    }
    return &c->rows.v[i];
}

static bool add(int64_t *to, int64_t by)
{
    return !__builtin_add_overflow(*to, by, to);
}

/* Adds the postings of an entry to the rows. */
static int count_lines(st_billcheck *c, const st_entry *e, st_err *err)
{
    for (int i = 0; i < e->nlines; i++) {
        const st_line *l = &e->lines[i];
        st_bill_line *row = &row_for(c, e, l->what)->line;

        if (row->entries == 0) {
            row->rate = l->rate;
            row->factor_bp = l->factor_bp;
        }
        row->rate = row->rate == l->rate ? l->rate : ST_UNSET;
        row->factor_bp = row->factor_bp == l->factor_bp ? l->factor_bp : ST_UNSET;
        row->last_seq = e->seq;
        row->entries++;
        if (!add(&row->quantity, l->quantity) || !add(&row->amount, l->amount) ||
            !add(&c->total, l->amount))
            return st_fail(err, ST_ECORRUPT, "the sums are more than can be counted");
    }
    return 0;
}

static int64_t known(const st_entry *e, int64_t v)
{
    return e->kind == ST_ENTRY_FIX || v != ST_UNKNOWN ? v : 0;
}

static int count_use(st_billcheck *c, const st_entry *e, st_err *err)
{
    st_bill_use *u = &c->at->use;
    bool fits = true;

    u->first_seq = u->first_seq == 0 ? e->seq : u->first_seq;
    u->last_seq = e->seq;
    if (e->kind == ST_ENTRY_RESERVE) {
        fits = add(&u->reserved, e->share);
    } else if (e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_FIX) {
        int64_t *basis = e->basis == ST_BASIS_GUARANTEED ? &u->guaranteed
                         : e->basis == ST_BASIS_BURST    ? &u->burst
                         : e->basis == ST_BASIS_BOOKED   ? &u->booked
                                                         : &u->on_demand;

        fits = add(basis, e->share) && add(basis, -e->inside) && add(&u->guaranteed, e->inside) &&
               add(&u->seen, known(e, e->seen)) && add(&u->busy, known(e, e->busy)) &&
               add(&u->energy_mj, known(e, e->energy_mj));
        u->jobs += e->kind == ST_ENTRY_USAGE && e->stay == 1 && e->piece == 1;
    }
    if (e->kind == ST_ENTRY_LOST)
        fits = add(&u->lost, e->lost);
    return fits ? 0 : st_fail(err, ST_ECORRUPT, "the usage is more than can be counted");
}

static const st_price_book *book_then(const void *ctx, int64_t ms)
{
    return book_at(ctx, ms);
}

/* Which kinds have a place outside the main range: those that say who there is and what is in force. */
static int check_kind(const st_billcheck *c, const st_entry *e, st_err *err)
{
    if (e->kind == ST_ENTRY_ACCOUNT || e->kind == ST_ENTRY_CHILD || e->kind == ST_ENTRY_TERMS ||
        e->kind == ST_ENTRY_PLAN || e->kind == ST_ENTRY_BOOKING)
        return 0;
    if (c->at->name[0] == '\0') /* was looked at in the first round */
        return 0;
    return st_fail(err, ST_ECORRUPT, "a %s entry has no place here: it is not of this bill",
                   st_entry_kind_name(e->kind));
}

/* The moment whose prices and terms an entry has. What has no interval has those of just before it was made: of
 * two things made in the same millisecond, the order is not known across books. */
static int64_t moment_of(const st_entry *e)
{
    if (e->kind == ST_ENTRY_WINDOW && e->from_ms == e->to_ms)
        return e->at_ms - 1;
    return e->kind == ST_ENTRY_PIECES || e->kind == ST_ENTRY_CREDIT ? e->at_ms - 1 : e->from_ms;
}

/* An interval lies within the period and within one price book and terms; a correction is of an entry before it. */
static int check_span(const st_billcheck *c, const st_entry *e, st_err *err)
{
    const st_period *p = &c->head.period;
    int64_t last = ST_MAX(e->from_ms, e->to_ms - 1);

    if ((e->kind == ST_ENTRY_FIX || e->kind == ST_ENTRY_LOST) &&
        (e->fixes < 1 || e->fixes >= e->seq))
        return st_fail(err, ST_ECORRUPT, "it corrects none of the entries before it");
    if (e->kind == ST_ENTRY_CREDIT && e->amount <= 0 && (e->fixes < 1 || e->fixes >= e->seq))
        return st_fail(err, ST_ECORRUPT, "it takes back none of the credits before it");
    if (e->kind != ST_ENTRY_USAGE && e->kind != ST_ENTRY_RESERVE && e->kind != ST_ENTRY_WINDOW)
        return 0;
    if (e->from_ms < p->from_ms || e->to_ms > p->to_ms || e->from_ms > e->to_ms ||
        e->to_ms > e->at_ms)
        return st_fail(err, ST_ECORRUPT, "its time is not within %s", p->name);
    if (book_at(c, e->from_ms) != book_at(c, last) ||
        terms_at(c->at, e->from_ms) != terms_at(c->at, last))
        return st_fail(err, ST_ECORRUPT, "prices change within its time");
    return 0;
}

/* The close of the period before is where a main range may begin. */
static int check_close(st_billcheck *c, const st_entry *e, bool first, st_err *err)
{
    const st_period *p = &c->head.period;

    if (first && c->range.from > 0) {
        if (e->to_ms != p->from_ms)
            return st_fail(err, ST_ECORRUPT,
                           "the entries do not begin with the close of the month before");
        return 0;
    }
    if (!c->head.closed || e->seq != c->range.to || strcmp(e->period, p->name) != 0 ||
        e->from_ms != p->from_ms || e->to_ms != p->to_ms)
        return st_fail(err, ST_ECORRUPT, "the close of %s has no place in the bill for %s",
                       e->period, p->name);
    c->closed = true;
    return count_use(c, e, err);
}

/* The cluster's book is there as a whole; of its entries those between two closes are of the period. */
static int count_cluster(st_billcheck *c, const st_entry *e, st_err *err)
{
    bool close = e->kind == ST_ENTRY_CLOSE;
    int r = check_kind(c, e, err);

    if (r < 0 || c->closed)
        return r;
    if (close && e->to_ms <= c->head.period.from_ms) {
        c->at->use.first_seq = c->at->use.last_seq = 0;
        return 0;
    }
    c->closed = close;
    return count_use(c, e, err);
}

int st_billcheck_entry(st_billcheck *c, const st_entry *e, st_err *err)
{
    bool first = e->seq == c->range.from + 1;
    int r;

    if (c->main && c->at->name[0] == '\0')
        return count_cluster(c, e, err);
    r = st_billbookings_check(&c->at->bookings, e, c->main ? c->head.period.from_ms : ST_UNSET,
                              book_then, c, err);
    if (r < 0)
        return r;
    if (!c->main)
        return check_kind(c, e, err);
    if (e->kind == ST_ENTRY_CLOSE)
        return check_close(c, e, first, err);
    if (first && c->range.from > 0)
        return st_fail(err, ST_ECORRUPT,
                       "the entries of \"%s\" must begin with its first or with a close",
                       c->at->name);
    if (c->closed)
        return st_fail(err, ST_ECORRUPT, "it is behind the close");
    r = check_span(c, e, err);
    if (r == 0)
        r = st_billprice_check(
            e, book_at(c, e->kind == ST_ENTRY_WINDOW ? e->agreed_ms - 1 : moment_of(e)),
            terms_at(c->at, moment_of(e)), &c->carries, err);
    if (r == 0 && c->at->pieces)
        r = st_billpieces_check(c->at->pieces, e, err);
    if (r == 0)
        r = count_lines(c, e, err);
    const st_terms *terms = terms_at(c->at, moment_of(e));
    for (int i = 0; r == 0 && terms && terms->chargeback && i < e->nlines; i++)
        c->owed += e->lines[i].amount;
    return r < 0 ? r : count_use(c, e, err);
}

int64_t st_billcheck_owed(const st_billcheck *c)
{
    return (int64_t)c->owed;
}

int st_billcheck_range_end(st_billcheck *c, st_err *err)
{
    if (c->main && c->at->name[0] != '\0' && c->head.closed && !c->closed &&
        c->range.to > c->range.from)
        return st_fail(err, ST_ECORRUPT, "the entries of \"%s\" do not go on to the close of %s",
                       c->at->name, c->head.period.name);
    return 0;
}

/* ---- lines, uses, total ---------------------------------------------------------------------------- */

static int differs(st_err *err, const char *what, int64_t is, int64_t must)
{
    return st_fail(err, ST_ECORRUPT, "%s is %lld, but the entries give %lld", what, (long long)is,
                   (long long)must);
}

typedef struct pair {
    const char *what;
    int64_t is, must;
} pair;

static int compare(const pair *pairs, size_t n, st_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (pairs[i].is != pairs[i].must)
            return differs(err, pairs[i].what, pairs[i].is, pairs[i].must);
    return 0;
}

int st_billcheck_line(st_billcheck *c, const st_bill_line *l, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    const st_bill_line *must;
    int64_t i;

    st_strbuf_addf(&key, "%d %d %s %s", (int)l->what, (int)l->level, l->gpu, l->account);
    if (!st_map_get(c->by_row, key.s, &i))
        return st_fail(err, ST_ECORRUPT, "no entry of \"%s\" leads to this line", l->account);
    if (c->rows.v[i].said)
        return st_fail(err, ST_ECORRUPT, "the line is there twice");
    c->rows.v[i].said = true;
    must = &c->rows.v[i].line;
    const pair pairs[] = {
        {"its quantity", l->quantity, must->quantity},
        {"its amount", l->amount, must->amount},
        {"its rate", l->rate, must->rate},
        {"its factor", l->factor_bp, must->factor_bp},
        {"the number of its entries", l->entries, must->entries},
        {"its first entry", l->first_seq, must->first_seq},
        {"its last entry", l->last_seq, must->last_seq},
    };
    return compare(pairs, ST_ARRAY_LEN(pairs), err);
}

int st_billcheck_use(st_billcheck *c, const st_bill_use *u, st_err *err)
{
    check_account *a = find(c, u->account);

    if (!a || !a->counted)
        return st_fail(err, ST_ECORRUPT, "account \"%s\" is not of this bill", u->account);
    if (a->use_said)
        return st_fail(err, ST_ECORRUPT, "the utilisation of \"%s\" is there twice", u->account);
    a->use_said = true;
    const pair pairs[] = {
        {"the first entry", u->first_seq, a->use.first_seq},
        {"the last entry", u->last_seq, a->use.last_seq},
        {"reserved time", u->reserved, a->use.reserved},
        {"guaranteed time", u->guaranteed, a->use.guaranteed},
        {"burst time", u->burst, a->use.burst},
        {"on-demand time", u->on_demand, a->use.on_demand},
        {"booked time", u->booked, a->use.booked},
        {"measured time", u->seen, a->use.seen},
        {"busy time", u->busy, a->use.busy},
        {"energy", u->energy_mj, a->use.energy_mj},
        {"lost time", u->lost, a->use.lost},
        {"the number of jobs", u->jobs, a->use.jobs},
    };
    return compare(pairs, ST_ARRAY_LEN(pairs), err);
}

/* Whether it is owed say the terms at the end of the month; that of a running bill is still open, and the cluster
 * owes nobody. */
static int check_chargeback(const st_billcheck *c, st_err *err)
{
    const check_account *own = find(c, c->head.account);
    const st_terms *terms = terms_at(own, c->head.period.to_ms - 1);
    bool owed = terms && terms->chargeback;

    if (!c->head.closed || own->name[0] == '\0' || owed == c->head.chargeback)
        return 0;
    return st_fail(err, ST_ECORRUPT, "the bill says that it is %s, but the terms say otherwise",
                   c->head.chargeback ? "owed" : "for information only");
}

int st_billcheck_end(st_billcheck *c, st_err *err)
{
    for (size_t i = 0; i < c->rows.n; i++)
        if (!c->rows.v[i].said)
            return st_fail(err, ST_ECORRUPT, "the line for %s of \"%s\" is missing",
                           st_component_name(c->rows.v[i].line.what), c->rows.v[i].line.account);
    for (size_t i = 0; i < c->accounts.n; i++)
        if (c->accounts.v[i]->counted && !c->accounts.v[i]->use_said)
            return st_fail(err, ST_ECORRUPT, "the utilisation of \"%s\" is missing",
                           c->accounts.v[i]->name);
    if (c->total != c->head.total)
        return differs(err, "the total", c->head.total, c->total);
    return check_chargeback(c, err);
}

int64_t st_billcheck_accounts(const st_billcheck *c)
{
    int64_t n = 0;

    for (size_t i = 0; i < c->accounts.n; i++)
        n += c->accounts.v[i]->counted;
    return n;
}

bool st_billcheck_voids(const st_billcheck *c, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
    *ret_from_ms = c->void_from_ms;
    *ret_to_ms = c->void_to_ms;
    return c->void_to_ms > 0;
}
