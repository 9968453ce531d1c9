/* Bills: the rows of an account and all below it. */
#include <string.h>

#include "base/mem.h"
#include "ledger/state.h"

typedef ST_VEC(int) ids;

static int by_name(const void *a, const void *b, void *ctx)
{
    const st_ledger *l = ctx;
    return strcmp(l->accounts.v[*(const int *)a]->name, l->accounts.v[*(const int *)b]->name);
}

/* Parents come first in the list, so one pass finds all that is below. */
static void subtree(const st_ledger *l, int top, size_t n, ids *ret)
{
    ST_CLEANUP(st_freep) bool *in = st_xcalloc(n + 1, sizeof *in);
    for (size_t i = (size_t)top; i < n; i++) {
        int parent = l->accounts.v[i]->parent;
        in[i] = (int)i == top || (parent >= 0 && in[parent]);
        if (in[i])
            st_vec_push(ret, (int)i);
    }
}

/* NULL *ret_past: the open period. */
static int find_period(const st_ledger *l, const char *period, const ledger_past **ret_past,
                       st_err *err)
{
    *ret_past = NULL;
    if (!period || (l->period.name[0] && strcmp(period, l->period.name) == 0))
        return 0;
    for (size_t i = 0; i < l->past.n; i++)
        if (strcmp(l->past.v[i]->period.name, period) == 0) {
            *ret_past = l->past.v[i];
            return 0;
        }
    return st_fail(err, ST_ENOENT, "there are no bills for %s", period);
}

static const char *gpu_text(st_bill *bill, const char *gpu)
{
    if (!gpu[0])
        return "";
    for (size_t i = bill->lines.n; i-- > 0;)
        if (strcmp(bill->lines.v[i].gpu, gpu) == 0)
            return bill->lines.v[i].gpu;
    return st_arena_strdup(bill->texts, gpu);
}

/* The total fits; what comes between need not. */
static void add_total(st_bill *bill, int64_t amount, int64_t owed)
{
    bill->owed = (int64_t)((uint64_t)bill->owed + (uint64_t)owed);
    bill->total = (int64_t)((uint64_t)bill->total + (uint64_t)amount);
}

static void add_account(const st_ledger *l, st_bill *bill, const char *name, const ledger_tally *t)
{
    st_bill_use use = t->use;
    use.account = st_arena_strdup(bill->texts, name);
    st_vec_push(&bill->uses, use);
    for (size_t i = 0; i < t->rows.n; i++) {
        const ledger_row *row = &t->rows.v[i];
        st_vec_push(&bill->lines, (st_bill_line){.account = use.account,
                                                 .what = row->what,
                                                 .gpu = gpu_text(bill, l->gpus.v[row->gpu]),
                                                 .level = row->level,
                                                 .quantity = row->quantity,
                                                 .amount = row->amount,
                                                 .owed = row->owed,
                                                 .rate = row->rate,
                                                 .factor_bp = row->factor_bp,
                                                 .entries = row->entries,
                                                 .first_seq = row->first_seq,
                                                 .last_seq = row->last_seq});
        add_total(bill, row->amount, row->owed);
    }
}

int st_ledger_bill(const st_ledger *l, const char *account, const char *period, st_bill *ret,
                   st_err *err)
{
    const ledger_past *past;
    int top = st_ledger_id(l, account);
    if (top < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", account);
    int r = find_period(l, period, &past, err);
    if (r < 0)
        return r;
    if (past && (size_t)top >= past->tallies.n)
        return st_fail(err, ST_ENOENT, "%s is younger than %s", account, past->period.name);
    st_bill bill = {
        .period = past ? past->period : l->period, .closed = past != NULL, .texts = st_arena_new()};
    /* A closed bill's terms were in force at its end; an open one's are the newest that have begun. */
    int64_t at = past ? past->period.to_ms - 1 : l->at_ms;
    const st_price_plan *all = st_ledger_own_plan(l->accounts.v[0], at);
    const st_terms *terms = st_ledger_terms_of(l->accounts.v[top], at);
    bill.chargeback = top == 0 ? all && all->chargeback : terms && terms->chargeback;
    for (size_t i = 0; i < l->voids.n; i++) {
        const ledger_void *v = &l->voids.v[i];
        if (v->from_ms >= bill.period.to_ms || v->to_ms <= bill.period.from_ms)
            continue;
        bill.void_from_ms = v->from_ms;
        bill.void_to_ms = v->to_ms;
    }
    memcpy(bill.account, account, strlen(account) + 1);

    ids below = {0};
    subtree(l, top, past ? past->tallies.n : l->accounts.n, &below);
    qsort_r(below.v, below.n, sizeof *below.v, by_name, (void *)(uintptr_t)l);
    for (size_t i = 0; i < below.n; i++) {
        const ledger_account *a = l->accounts.v[below.v[i]];
        const st_terms *own = st_ledger_terms_of(a, at);
        if (below.v[i] != 0) { /* the cluster itself is nobody's account */
            bill.charged += own && own->chargeback;
            bill.shown += !(own && own->chargeback);
        }
        add_account(l, &bill, a->name, past ? &past->tallies.v[below.v[i]] : &a->now);
    }
    st_vec_free(&below);
    *ret = bill;
    return 0;
}

/* ---- what is not in the book yet --------------------------------------------------------------- */

static int order(const st_bill_line *a, const st_bill_line *b)
{
    int c = strcmp(a->account, b->account);
    if (c)
        return c;
    if (a->what != b->what)
        return a->what < b->what ? -1 : 1;
    c = strcmp(a->gpu, b->gpu);
    return c ? c : (int)a->level - (int)b->level;
}

static void add_line(st_bill *bill, const char *account, const st_entry *e, const st_line *line,
                     bool owed)
{
    st_bill_line add = {.account = account,
                        .what = line->what,
                        .quantity = line->quantity,
                        .amount = line->amount,
                        .owed = owed ? line->amount : 0,
                        .rate = line->rate,
                        .factor_bp = line->factor_bp};
    st_ledger_row_key(e, line->what, &add.gpu, &add.level);
    add_total(bill, line->amount, add.owed);
    size_t lo = 0, hi = bill->lines.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (order(&bill->lines.v[mid], &add) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    st_bill_line *had = lo < bill->lines.n ? &bill->lines.v[lo] : NULL;
    int64_t quantity;
    if (had && order(had, &add) == 0 &&
        !__builtin_add_overflow(had->quantity, add.quantity, &quantity)) {
        had->quantity = quantity;
        had->amount += add.amount;
        had->owed += add.owed;
        had->rate = had->rate == add.rate ? add.rate : ST_UNSET;
        had->factor_bp = had->factor_bp == add.factor_bp ? add.factor_bp : ST_UNSET;
        return;
    }
    add.gpu = gpu_text(bill, add.gpu);
    st_vec_insert(&bill->lines, lo, add);
}

void st_bill_add(st_bill *bill, const st_entry *e, bool owed)
{
    size_t lo = 0, hi = bill->uses.n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (strcmp(bill->uses.v[mid].account, e->account) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == bill->uses.n || strcmp(bill->uses.v[lo].account, e->account) != 0)
        return;
    st_ledger_use_add(&bill->uses.v[lo], e);
    for (int i = 0; i < e->nlines; i++)
        add_line(bill, bill->uses.v[lo].account, e, &e->lines[i], owed);
}

void st_bill_done(st_bill *bill)
{
    st_vec_free(&bill->lines);
    st_vec_free(&bill->uses);
    st_arena_free(bill->texts);
    bill->texts = NULL;
}

/* ---- floors that nobody uses -------------------------------------------------------------------- */

static int by_cost(const void *a, const void *b)
{
    const st_idle_floor *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    if (x->unused != y->unused)
        return x->unused > y->unused ? -1 : 1;
    return strcmp(x->account, y->account);
}

/* What an account paid for a component, and how much of it that was. */
static st_i128 paid_for(const ledger_tally *t, st_component what, int64_t *ret_quantity)
{
    st_i128 amount = 0;
    *ret_quantity = 0;
    for (size_t i = 0; i < t->rows.n; i++) {
        if (t->rows.v[i].what != what)
            continue;
        amount += t->rows.v[i].amount;
        *ret_quantity = ST_MAX(*ret_quantity, 0) + ST_MAX(t->rows.v[i].quantity, 0);
    }
    return amount;
}

/* An account may use the floor, or the booking, of those above it: what it uses beyond its own is theirs. */
static int idle_of(const st_ledger *l, const char *account, const char *period, bool bookings,
                   st_idle_floors *ret, st_err *err)
{
    const ledger_past *past;
    int top = st_ledger_id(l, account);
    if (top < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", account);
    int r = find_period(l, period, &past, err);
    if (r < 0)
        return r;
    size_t n = past ? past->tallies.n : l->accounts.n;
    ST_CLEANUP(st_freep) int64_t *used = st_xcalloc(n + 1, sizeof *used);
    ids below = {0};
    subtree(l, top, n, &below);
    for (size_t i = below.n; i-- > 0;) {
        int id = below.v[i];
        const ledger_account *a = l->accounts.v[id];
        const ledger_tally *t = past ? &past->tallies.v[id] : &a->now;
        int64_t windows, reserved = ST_MAX(t->use.reserved, 0);
        st_i128 paid = paid_for(t, bookings ? ST_PAY_WINDOW : ST_PAY_RESERVED, &windows);
        if (bookings)
            reserved = windows;
        used[id] += ST_MAX(bookings ? t->use.booked : t->use.guaranteed, 0);
        int64_t unused = reserved - ST_MIN(used[id], reserved);
        if (a->parent >= 0)
            used[a->parent] += used[id] - (reserved - unused);
        if (unused > 0)
            st_vec_push(ret, (st_idle_floor){.account = a->name,
                                             .reserved = reserved,
                                             .unused = unused,
                                             .cost = (int64_t)(paid * unused / reserved)});
    }
    st_vec_free(&below);
    if (ret->n)
        qsort(ret->v, ret->n, sizeof *ret->v, by_cost);
    return 0;
}

int st_ledger_idle_floors(const st_ledger *l, const char *account, const char *period,
                          st_idle_floors *ret, st_err *err)
{
    return idle_of(l, account, period, false, ret, err);
}

int st_ledger_idle_bookings(const st_ledger *l, const char *account, const char *period,
                            st_idle_floors *ret, st_err *err)
{
    return idle_of(l, account, period, true, ret, err);
}
