/*
 * What bookings leave idle and others use (ledger/lent.c has the rules). A row says that a job is on GPUs of a booking that
 * is paid for by somebody else. It follows from the core alone, so a start finds them again. When the rows of a job are
 * others than before, its interval ends there: an interval has the same rows throughout.
 */
#include <string.h>

#include "billing/billing.h"

/* The devices of the job that the booking has, if it borrows them: not who was told to leave for it, and nobody of its own
 * account. */
static int lent_to(const st_core *core, const st_booking *b, const st_job *job)
{
    int n = 0;

    if (b->state != ST_BOOKING_ACTIVE || b->over || b->job != 0 ||
        job->claimant == (b->id | ST_BOOKING_BIT) ||
        st_tree_within(st_core_tree(core), job->account, b->account))
        return 0;
    for (int t = 0; t < job->tasks; t++)
        for (int u = 0; u < b->tasks; u++)
            if (job->grants[t].node == b->plan[u].node)
                n += __builtin_popcount(job->grants[t].devs & b->plan[u].devs);
    return n;
}

static bool is_fenced(const st_core *core, const st_job *job)
{
    for (int t = 0; t < job->tasks; t++)
        if (st_core_fleet(core)->nodes.v[job->grants[t].node]->fence & job->grants[t].devs)
            return true;
    return false;
}

/* Rows of the job as they are now. */
static void look(const st_core *core, uint64_t id, st_lent_rows *ret)
{
    const st_job *job = st_core_job(core, id);
    int all = 0;

    st_vec_clear(ret);
    if (!job || job->class != ST_CLASS_BURSTABLE || !st_job_on_devices(job) || !job->grants ||
        job->shape.gpus == 0 || !is_fenced(core, job))
        return;
    for (int t = 0; t < job->tasks; t++)
        all += __builtin_popcount(job->grants[t].devs);
    for (size_t i = 0; i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        int n = lent_to(core, b, job);

        if (n > 0)
            st_vec_push(ret, ((st_lent){id, b->id, b->account, n, all}));
    }
}

/* As they were, in the order of bookings. */
static void known(const st_billing *b, uint64_t id, st_lent_rows *ret)
{
    st_vec_clear(ret);
    for (size_t i = 0; i < b->lent.n; i++)
        if (b->lent.v[i].job == id)
            st_vec_push(ret, b->lent.v[i]);
}

static bool same(const st_lent_rows *a, const st_lent_rows *b)
{
    bool ok = a->n == b->n;

    for (size_t i = 0; ok && i < a->n; i++)
        ok = a->v[i].booking == b->v[i].booking && a->v[i].devs == b->v[i].devs &&
             a->v[i].of == b->v[i].of;
    return ok;
}

static void put(st_billing *b, uint64_t id, const st_lent_rows *rows)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->lent.n; i++)
        if (b->lent.v[i].job != id)
            b->lent.v[kept++] = b->lent.v[i];
    b->lent.n = kept;
    for (size_t i = 0; i < rows->n; i++)
        st_vec_push(&b->lent, rows->v[i]);
}

typedef void touch_fn(st_tx *tx, uint64_t job);

static void touch_booking(st_tx *tx, uint64_t id, touch_fn *fn)
{
    const st_core *core = tx->ctl->core;
    const st_booking *b = st_core_booking(core, id);
    st_billing *bill = tx->ctl->billing;

    for (size_t i = bill->lent.n; i-- > 0;)
        if (i < bill->lent.n && bill->lent.v[i].booking == id)
            fn(tx, bill->lent.v[i].job);
    for (int t = 0; b && b->state == ST_BOOKING_ACTIVE && t < b->tasks; t++) {
        const st_node *node =
            b->plan[t].node < 0 ? NULL : st_core_fleet(core)->nodes.v[b->plan[t].node];

        for (size_t i = 0; node && i < node->residents.n; i++)
            fn(tx, node->residents.v[i].job->id);
    }
}

/* Every job for which something may be another now. */
static void touch(st_tx *tx, touch_fn *fn)
{
    for (size_t i = 0; i < tx->fx.list.n; i++) {
        const st_effect *fx = &tx->fx.list.v[i];

        if (fx->kind == ST_FX_BOOKING)
            touch_booking(tx, fx->other, fn);
        else if (fx->job != 0)
            fn(tx, fx->job);
    }
}

static void note(st_tx *tx, uint64_t id)
{
    st_lent_rows was = {0}, is = {0};

    known(tx->ctl->billing, id, &was);
    look(tx->ctl->core, id, &is);
    if (!same(&was, &is))
        st_vec_push(&tx->notes, (st_note){.kind = ST_NOTE_LENT, .v = {(int64_t)id}});
    st_vec_free(&was);
    st_vec_free(&is);
}

static void remember(st_tx *tx, uint64_t id)
{
    st_lent_rows is = {0};

    look(tx->ctl->core, id, &is);
    put(tx->ctl->billing, id, &is);
    st_vec_free(&is);
}

static bool any(const st_control *ctl)
{
    return ctl->billing->ledger &&
           (st_ledger_nbookings(ctl->billing->ledger) > 0 || ctl->billing->lent.n > 0);
}

void st_lent_note(st_tx *tx)
{
    if (any(tx->ctl))
        touch(tx, note);
}

void st_lent_remember(st_tx *tx)
{
    if (any(tx->ctl))
        touch(tx, remember);
}

void st_lent_begin(st_control *ctl)
{
    st_billing *b = ctl->billing;
    st_lent_rows is = {0};

    st_vec_clear(&b->lent);
    for (size_t i = 0; any(ctl) && i < st_core_njobs(ctl->core); i++) {
        uint64_t id = st_core_job_at(ctl->core, i)->id;

        look(ctl->core, id, &is);
        put(b, id, &is);
    }
    st_vec_free(&is);
}

/* ---- entries ---------------------------------------------------------------------------------------- */

static int post(st_tx *tx, const st_entry *of, st_entry *e, st_err *err)
{
    int r;

    e->kind = ST_ENTRY_LENT;
    e->account = ST_BOOK_FLEET;
    e->job = of->job;
    e->stay = of->stay;
    e->piece = of->piece;
    e->from_ms = of->from_ms;
    e->to_ms = of->to_ms;
    r = st_money_post(tx, e, err);
    if (r == 0 || tx->broken)
        return r;
    st_control_say(tx->ctl, "event=entry_refused account=\"%s\" kind=%s booking=%s reason=\"%s\"",
                   e->child, st_entry_kind_name(e->kind), e->booking, err->msg);
    return 0;
}

/* Part of a whole, rounded down also below 0. */
static int64_t part_of(int64_t amount, int64_t part, int64_t whole)
{
    st_i128 product = (st_i128)amount * part;

    if (whole <= 0)
        return 0;
    return (int64_t)(product < 0 ? -((-product + whole - 1) / whole) : product / whole);
}

int st_lent_post(st_tx *tx, const st_entry *usage, uint64_t job, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    bool borrows = usage->basis == ST_BASIS_BURST || usage->basis == ST_BASIS_ON_DEMAND;
    int r = 0;

    for (size_t i = 0; r == 0 && borrows && usage->share > 0 && i < b->lent.n; i++) {
        const st_lent *row = &b->lent.v[i];
        char book[ST_NAME_MAX + 1], name[ST_ID_TEXT];
        st_agreed was;

        if (row->job != job)
            continue;
        st_control_name(tx->ctl, ST_BOOKING_ID, row->booking, name);
        st_entry e = {.child = st_book_name(tx->ctl, row->account, book), .booking = name};
        if (!st_ledger_booking(b->ledger, e.child, name, &was))
            continue;
        e.share = part_of(usage->share, row->devs, row->of);
        if (st_ledger_may_share(b->ledger, usage, e.child))
            e.charged = part_of(st_entry_paid(usage), row->devs, row->of);
        r = post(tx, usage, &e, err);
    }
    return r;
}

/* A correction or a credit of a piece whose GPUs were lent: what it gives back was not paid. */
int st_lent_take_back(st_tx *tx, const st_entry *by, int64_t share, const st_lent_said *said,
                      size_t n, st_err *err)
{
    int64_t paid = ST_MIN(st_entry_paid(by), 0);
    int64_t less = by->kind == ST_ENTRY_FIX ? ST_MIN(by->share, 0) : 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        st_agreed was;
        st_entry e = {.child = said[i].child, .booking = said[i].booking};

        if (!st_ledger_booking(tx->ctl->billing->ledger, e.child, e.booking, &was))
            continue;
        e.share = ST_MAX(part_of(less, said[i].share, share), -said[i].share);
        e.charged = ST_MAX(part_of(paid, said[i].share, share), -said[i].charged);
        if (e.share < 0 || e.charged < 0)
            r = post(tx, by, &e, err);
    }
    return r;
}
