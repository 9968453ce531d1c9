/* The ledger to bytes and back (model/codec.h).
 *
 * Reading checks every range. What can be derived is derived, or checked where it is money: balances and revenue
 * must be the sums of the rows. In the end the ledger is saved again and must give the same bytes; the last eight
 * are a hash over all others. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "ledger/state.h"
#include "model/codec.h"

#define MAGIC   INT64_C(0x36676c74) /* "tlg6" */
#define MAGIC5  INT64_C(0x35676c74) /* "tlg5": nobody had a share of what others pay */
#define MAGIC4  INT64_C(0x34676c74) /* "tlg4": bookings had no price */
#define MAGIC3  INT64_C(0x33676c74) /* "tlg3": nobody counted days */
#define MAGIC2  INT64_C(0x32676c74) /* "tlg2": rows did not say what of them is owed */
#define SEED    11
#define DOC_MAX 65536

/* Each thing that is counted takes so many bytes at least: a damaged count cannot ask for more memory than that. */
static size_t io_many(codec *c, size_t n, size_t least)
{
    return (size_t)io_in(c, (int64_t)n, 0, c->out ? INT64_MAX : (int64_t)((c->n - c->at) / least));
}

/* A text of at most `max` bytes without NUL; what was read is the caller's. */
static char *io_text(codec *c, const char *s, size_t max)
{
    size_t n = (size_t)io_in(c, s ? (int64_t)strlen(s) : 0, 0, (int64_t)max);
    if (c->out) {
        st_strbuf_addn(c->out, s, n);
        return NULL;
    }
    if (c->bad || c->n - c->at < n || memchr(c->in + c->at, '\0', n)) {
        c->bad = true;
        n = 0;
    }
    c->at += n;
    return st_xstrndup(c->in + c->at - n, n);
}

/* ---- parts -------------------------------------------------------------------------------------- */

static void io_period(codec *c, st_period *p)
{
    ST_CLEANUP(st_freep) char *name = io_text(c, p->name, sizeof p->name - 1);
    if (name)
        memcpy(p->name, name, strlen(name) + 1);
    io_i64(c, &p->from_ms);
    io_i64(c, &p->to_ms);
    if (!c->out && (p->name[0] ? p->from_ms >= p->to_ms : p->from_ms || p->to_ms))
        c->bad = true;
}

static void io_gpus(codec *c, st_ledger *l)
{
    size_t n = io_many(c, l->gpus.n - 1, 2);
    for (size_t i = 1; i <= n; i++) {
        char *name = io_text(c, c->out ? l->gpus.v[i] : NULL, ST_NAME_MAX);
        if (c->out)
            continue;
        if (c->bad || !st_name_ok(name) || st_ledger_gpu(l, name) >= 0)
            c->bad = true;
        else
            st_vec_push(&l->gpus, ST_TAKE(name));
        free(name);
    }
}

static void io_books(codec *c, st_ledger *l)
{
    size_t n = io_many(c, l->books.n, 64);
    for (size_t i = 0; i < n && !c->bad; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
        if (c->out)
            st_price_book_write(l->books.v[i], &doc);
        ST_CLEANUP(st_freep) char *text = io_text(c, doc.s, DOC_MAX);
        if (c->out)
            continue;
        st_price_book *b = st_xcalloc(1, sizeof *b);
        c->bad = c->bad ||
                 st_price_book_read("prices.json", text, strlen(text), INT64_MAX, b, NULL) < 0 ||
                 (i > 0 && b->from_ms <= l->books.v[i - 1]->from_ms);
        st_vec_push(&l->books, b);
    }
}

static void io_plans(codec *c, ledger_account *a)
{
    size_t n = io_many(c, a->plans.n, 64);
    for (size_t i = 0; i < n && !c->bad; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
        if (c->out)
            st_price_plan_write(&a->plans.v[i], &doc);
        ST_CLEANUP(st_freep) char *text = io_text(c, doc.s, DOC_MAX);
        if (c->out)
            continue;
        st_price_plan p = {0};
        c->bad = c->bad ||
                 st_price_plan_read("plan.json", text, strlen(text), INT64_MAX, &p, NULL) < 0 ||
                 strcmp(p.account, a->name) != 0 ||
                 (i > 0 && p.from_ms <= a->plans.v[i - 1].from_ms);
        st_vec_push(&a->plans, p);
    }
}

static void io_terms(codec *c, ledger_account *a)
{
    size_t n = io_many(c, a->terms.n, 3);
    IO_GROW(c, &a->terms, n);
    for (size_t i = 0; i < n; i++) {
        st_terms *t = &a->terms.v[i];
        io_i64(c, &t->from_ms);
        IO_IN(c, t->chargeback, 0, 1);
        IO_IN(c, t->discount_bp, 0, ST_BP);
        if (!c->out && i > 0 && t->from_ms <= t[-1].from_ms)
            c->bad = true;
    }
}

static void io_row(codec *c, const st_ledger *l, ledger_row *r)
{
    IO_IN(c, r->what, 0, ST_PAY_COUNT - 1);
    IO_IN(c, r->gpu, 0, (int64_t)l->gpus.n - 1);
    IO_IN(c, r->level, 0, ST_LEVEL_COUNT - 1);
    io_i64(c, &r->quantity);
    io_i64(c, &r->amount);
    io_i64(c, &r->owed);
    IO_IN(c, r->rate, ST_UNSET, ST_RATE_MAX);
    IO_IN(c, r->factor_bp, ST_UNSET, ST_FACTOR_MAX);
    IO_IN(c, r->entries, 1, INT64_MAX);
    IO_IN(c, r->first_seq, 1, INT64_MAX);
    IO_IN(c, r->last_seq, 1, INT64_MAX);
}

static void io_tally(codec *c, const st_ledger *l, ledger_tally *t)
{
    size_t n = io_many(c, t->rows.n, 10);
    IO_GROW(c, &t->rows, n);
    for (size_t i = 0; i < n; i++) {
        io_row(c, l, &t->rows.v[i]);
        if (!c->out && i > 0 && st_ledger_row_order(l, &t->rows.v[i - 1], &t->rows.v[i]) > 0)
            c->bad = true;
    }
    st_bill_use *u = &t->use;
    int64_t *nums[] = {&u->first_seq, &u->last_seq,  &u->reserved, &u->guaranteed,
                       &u->burst,     &u->on_demand, &u->booked,   &u->seen,
                       &u->busy,      &u->energy_mj, &u->lost,     &u->jobs};
    for (size_t i = 0; i < ST_ARRAY_LEN(nums); i++)
        io_i64(c, nums[i]);
}

/* The name and parent of an account that is read; the cluster (0) is there from the start. */
static ledger_account *io_name(codec *c, st_ledger *l, size_t i)
{
    if (i == 0 || c->out) {
        if (i > 0) {
            io_text(c, l->accounts.v[i]->name, ST_NAME_MAX);
            io_in(c, l->accounts.v[i]->parent, 0, INT64_MAX);
        }
        return l->accounts.v[i];
    }
    char *name = io_text(c, NULL, ST_NAME_MAX);
    int64_t parent = io_in(c, 0, 0, (int64_t)i - 1);
    if (c->bad || !st_name_ok(name) || name[0] == '#' || st_ledger_id(l, name) >= 0 ||
        l->accounts.v[parent]->depth >= ST_DEPTH_MAX) {
        c->bad = true;
        free(name);
        return NULL;
    }
    ledger_account *a = st_xcalloc(1, sizeof *a);
    a->name = name;
    a->parent = (int)parent;
    a->depth = l->accounts.v[parent]->depth + 1;
    st_map_put(l->ids, name, (int64_t)i);
    st_vec_push(&l->accounts, a);
    return a;
}

static void io_account(codec *c, st_ledger *l, size_t i)
{
    ledger_account *a = io_name(c, l, i);
    if (!a)
        return;
    IO_IN(c, a->seq, 0, INT64_MAX);
    IO_IN(c, a->closed, 0, 1);
    for (int k = 0; k < ST_PAY_COUNT; k++)
        IO_IN(c, a->carry[k], 0, st_line_divisor((st_component)k) - 1);
    io_i64(c, &a->balance);
    io_plans(c, a);
    io_terms(c, a);
    size_t n = io_many(c, a->floors.n, 3);
    if (n > ST_FLOORS_MAX)
        c->bad = true;
    IO_GROW(c, &a->floors, c->bad ? 0 : n);
    for (size_t k = 0; k < a->floors.n; k++) {
        IO_IN(c, a->floors.v[k].gpu, 1, (int64_t)l->gpus.n - 1);
        IO_IN(c, a->floors.v[k].gpu_m, 1, ST_QTY_MAX);
        IO_IN(c, a->floors.v[k].until_ms, 0, INT64_MAX);
    }
    io_tally(c, l, &a->now);
}

static void io_holds(codec *c, st_ledger *l)
{
    size_t n = io_many(c, l->holds.n, 4);
    for (size_t i = 0; i < n && !c->bad; i++) {
        ledger_hold h = c->out ? l->holds.v[i] : (ledger_hold){0};
        IO_IN(c, h.account, 1, (int64_t)l->accounts.n - 1);
        ST_CLEANUP(st_freep) char *job = io_text(c, h.job, ST_NAME_MAX);
        IO_IN(c, h.amount, 0, ST_AMOUNT_MAX);
        IO_IN(c, h.left, 0, h.amount);
        if (c->out)
            continue;
        if (c->bad || !st_name_ok(job) || st_ledger_hold(l, h.account, job) ||
            !st_ledger_sum_fits(l->accounts.v[0]->held, h.left))
            c->bad = true;
        else
            st_ledger_add_hold(l, h.account, job, h.amount, h.left);
    }
}

static void io_bookings(codec *c, st_ledger *l)
{
    size_t n = io_many(c, l->bookings.n, 12);
    for (size_t i = 0; i < n && !c->bad; i++) {
        ledger_booking b = c->out ? l->bookings.v[i] : (ledger_booking){0};
        IO_IN(c, b.account, 1, (int64_t)l->accounts.n - 1);
        char *id = io_text(c, b.id, ST_NAME_MAX);
        IO_IN(c, b.gpu, 1, (int64_t)l->gpus.n - 1);
        IO_IN(c, b.gpu_m, 1, ST_QTY_MAX);
        IO_IN(c, b.from_ms, 0, INT64_MAX);
        IO_IN(c, b.to_ms, b.from_ms, INT64_MAX);
        IO_IN(c, b.agreed_ms, 0, INT64_MAX);
        IO_IN(c, b.keep_bp, 0, ST_BP);
        IO_IN(c, b.short_m, 0, b.gpu_m);
        IO_IN(c, b.until_ms, b.from_ms, b.to_ms);
        IO_IN(c, b.removed, 0, INT64_MAX);
        IO_IN(c, b.removed_at, 0, INT64_MAX);
        IO_IN(c, b.lent, -ST_SUM_MAX, ST_SUM_MAX);
        IO_IN(c, b.paid, -ST_SUM_MAX, ST_SUM_MAX);
        if (c->out)
            continue;
        if (c->bad || !st_name_ok(id) || st_ledger_find_booking(l, b.account, id)) {
            c->bad = true;
            free(id);
            return;
        }
        b.id = id;
        st_ledger_add_booking(l, &b);
    }
}

static void io_past(codec *c, st_ledger *l)
{
    size_t n = io_many(c, l->past.n, 4);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&l->past, st_xcalloc(1, sizeof(ledger_past)));
        ledger_past *past = l->past.v[i];
        io_period(c, &past->period);
        size_t m = io_many(c, past->tallies.n, 13);
        if (m > l->accounts.n || !past->period.name[0])
            c->bad = true;
        IO_GROW(c, &past->tallies, c->bad ? 0 : m);
        for (size_t k = 0; k < past->tallies.n; k++)
            io_tally(c, l, &past->tallies.v[k]);
    }
}

static void io_voids(codec *c, st_ledger *l)
{
    size_t n = io_many(c, l->voids.n, 2);
    for (size_t i = 0; i < n && !c->bad; i++) {
        ledger_void v = c->out ? l->voids.v[i] : (ledger_void){0};
        IO_IN(c, v.from_ms, 0, INT64_MAX);
        IO_IN(c, v.to_ms, v.from_ms, INT64_MAX);
        if (!c->out)
            st_vec_push(&l->voids, v);
    }
}

static void io_daily(codec *c, st_ledger *l)
{
    size_t n = io_many(c, l->daily.n, ST_DAILY_DAYS);
    IO_IN(c, l->daily_day, -(INT64_C(1) << 40), INT64_C(1) << 40);
    for (size_t i = 0; i < n && !c->bad; i++) {
        int account = c->out ? l->daily.v[i].account : 0;
        ST_CLEANUP(st_freep)
        char *user = io_text(c, c->out ? l->daily.v[i].user : NULL, ST_NAME_MAX);
        IO_IN(c, account, 1, ST_MAX((int64_t)l->accounts.n - 1, 1));
        if (!c->out && (c->bad || (size_t)account >= l->accounts.n ||
                        !st_ledger_daily_add(l, account, user))) {
            c->bad = true;
            return;
        }
        for (int d = 0; d < ST_DAILY_DAYS; d++)
            IO_IN(c, l->daily.v[i].cost[d], -ST_SUM_MAX, ST_SUM_MAX);
    }
}

static void io_ledger(codec *c, st_ledger *l)
{
    int64_t magic = MAGIC;
    IO_IN(c, magic, MAGIC, MAGIC);
    IO_IN(c, l->at_ms, 0, INT64_MAX);
    IO_IN(c, l->entries, 0, INT64_MAX);
    IO_IN(c, l->fleet_seq, 0, INT64_MAX);
    io_period(c, &l->period);
    io_gpus(c, l);
    io_books(c, l);
    size_t n = io_many(c, l->accounts.n - 1, 2);
    if (n >= ST_PLACES_MAX)
        c->bad = true;
    for (size_t i = 0; i <= n && !c->bad; i++)
        io_account(c, l, i);
    io_holds(c, l);
    io_bookings(c, l);
    for (int k = 0; k < ST_PAY_COUNT; k++)
        io_i64(c, &l->revenue[k]);
    io_past(c, l);
    io_voids(c, l);
    io_daily(c, l);
}

/* ---- what must follow --------------------------------------------------------------------------- */

static st_i128 add_rows(const ledger_tally *t, st_i128 revenue[ST_PAY_COUNT])
{
    st_i128 sum = 0;
    for (size_t i = 0; i < t->rows.n; i++) {
        revenue[t->rows.v[i].what] += t->rows.v[i].amount;
        sum += t->rows.v[i].amount;
    }
    return sum;
}

/* Balances and revenue are what the rows say; what is posted at and below each account follows from them. */
static bool adds_up(st_ledger *l)
{
    ST_CLEANUP(st_freep) st_i128 *posted = st_xcalloc(l->accounts.n, sizeof *posted);
    st_i128 revenue[ST_PAY_COUNT] = {0};
    /* Those below an account come behind it: its sum is whole when its turn comes. */
    for (size_t i = l->accounts.n; i-- > 0;) {
        ledger_account *a = l->accounts.v[i];
        st_i128 now = add_rows(&a->now, revenue), ever = now;
        for (size_t k = 0; k < l->past.n; k++)
            if (i < l->past.v[k]->tallies.n)
                ever += add_rows(&l->past.v[k]->tallies.v[i], revenue);
        posted[i] += now;
        if (ever != -(st_i128)a->balance || !st_ledger_sum_fits(a->balance, 0) ||
            posted[i] > ST_SUM_MAX || posted[i] < -ST_SUM_MAX)
            return false;
        a->posted = (int64_t)posted[i];
        if (a->parent >= 0)
            posted[a->parent] += posted[i];
    }
    for (int c = 0; c < ST_PAY_COUNT; c++)
        if (revenue[c] != l->revenue[c] || !st_ledger_sum_fits(l->revenue[c], 0))
            return false;
    return true;
}

/* ---- both --------------------------------------------------------------------------------------- */

static void put_hash(st_strbuf *out, const char *data, size_t n)
{
    uint64_t h = st_hash_bytes(data, n, SEED);
    for (int i = 0; i < 8; i++)
        st_strbuf_addc(out, (char)(h >> (8 * i)));
}

void st_ledger_save(const st_ledger *l, st_strbuf *out)
{
    codec c = {.out = out};
    size_t from = out->n;
    io_ledger(&c, (st_ledger *)(uintptr_t)l); /* writing changes nothing */
    put_hash(out, out->s + from, out->n - from);
}

bool st_ledger_is_former(const char *data, size_t len)
{
    codec c = {.in = data, .n = len < 8 ? 0 : len - 8};
    int64_t magic = 0;
    IO_IN(&c, magic, MAGIC2, MAGIC5);
    return !c.bad;
}

int st_ledger_load(const char *data, size_t len, st_ledger **ret, st_err *err)
{
    ST_CLEANUP(st_ledger_freep) st_ledger *l = st_ledger_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    codec c = {.in = data, .n = len < 8 ? 0 : len - 8};
    put_hash(&again, data, c.n);
    if (len < 8 || memcmp(again.s, data + c.n, 8) != 0)
        return st_fail(err, ST_ECORRUPT, "the saved ledger is damaged: its checksum is wrong");
    io_ledger(&c, l);
    if (c.bad || c.at != c.n || !adds_up(l))
        return st_fail(err, ST_ECORRUPT, "the saved ledger is damaged at byte %zu", c.at);
    /* What was saved between a plan and its terms goes on there. */
    st_ledger_add_due(l, 0);
    st_ledger_refresh_due(l);
    st_strbuf_clear(&again);
    st_ledger_save(l, &again);
    if (again.n != len || memcmp(again.s, data, len) != 0)
        return st_fail(err, ST_ECORRUPT, "the saved ledger is not as a ledger is saved");
    *ret = ST_TAKE(l);
    return 0;
}
