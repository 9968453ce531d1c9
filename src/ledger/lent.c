/* What others pay for GPUs that are booked and not used.
 *
 * Right behind the entry that charges a borrower comes a LENT entry for each booking whose GPUs it had. These are in the fleet's
 * book, which no tenant sees: a book names nobody beside its account. They add up in the booking, and its next WINDOW
 * entry takes them over. It gives back a share of what was paid, by the price book that was agreed, and never more than
 * the window costs for the same GPU time. So lending makes a booking cheaper and never makes money, whoever borrows; and
 * nobody is given a share of what was not paid. What a correction or a credit gives back to the borrower is taken off
 * again, as long as the booking lasts. */
#include <string.h>

#include "ledger/state.h"

int64_t st_entry_paid(const st_entry *e)
{
    int64_t gpu = 0, net = 0;
    for (int i = 0; i < e->nlines; i++) {
        net += e->lines[i].amount;
        gpu += e->lines[i].what <= ST_PAY_IDLE ? e->lines[i].amount : 0;
    }
    return e->kind == ST_ENTRY_LOST ? net : ST_MIN(gpu, net);
}

bool st_ledger_may_share(const st_ledger *l, const st_entry *e, const char *booker)
{
    const st_terms *terms = st_ledger_terms(l, booker, e->from_ms);
    return st_ledger_owed(l, e) || !terms || !terms->chargeback;
}

void st_ledger_note_lendable(st_ledger *l, const st_entry *e, int id)
{
    bool borrows = e->basis == ST_BASIS_BURST || e->basis == ST_BASIS_ON_DEMAND;
    bool back = e->kind == ST_ENTRY_FIX || e->kind == ST_ENTRY_LOST;
    if (e->kind == ST_ENTRY_LENT)
        return;
    l->lendable = (ledger_lendable){0};
    if ((e->kind == ST_ENTRY_USAGE || back) && borrows && e->gpu)
        l->lendable = (ledger_lendable){.account = id,
                                        .gpu = st_ledger_gpu(l, e->gpu),
                                        .back = back,
                                        .owed = st_ledger_owed(l, e),
                                        .share = back ? 0 : e->share,
                                        .paid = back ? 0 : st_entry_paid(e)};
}

static int refuse(const st_entry *e, const char *what, st_err *err)
{
    return st_fail(err, ST_ECORRUPT, "entry %lld of the fleet: what booking %s has lent %s",
                   (long long)e->seq, e->booking, what);
}

int st_ledger_apply_lent(st_ledger *l, const st_entry *e, st_err *err)
{
    ledger_lendable *of = &l->lendable;
    int id = e->child ? st_ledger_id(l, e->child) : -1;
    ledger_booking *b = id > 0 ? st_ledger_find_booking(l, id, e->booking) : NULL;
    if (!b)
        return refuse(e, "is of none that is agreed", err);
    if (of->account <= 0 || e->at_ms != l->at_ms)
        return refuse(e, "is not behind what was charged for it", err);
    if (st_ledger_within(l, of->account, id))
        return refuse(e, "was used by its own account", err);
    if (of->gpu != b->gpu)
        return refuse(e, "is of another GPU type", err);
    const st_terms *terms = st_ledger_terms_of(l->accounts.v[id], e->from_ms);
    if (e->charged > 0 && !of->owed && terms && terms->chargeback)
        return refuse(e, "is paid for by nobody", err);
    if (of->back ? e->share > 0 || e->charged > 0
                 : e->share < 0 || e->charged < 0 || e->share > of->share || e->charged > of->paid)
        return refuse(e, "is more than was used and paid", err);
    if (!st_ledger_sum_fits(b->lent, e->share) || !st_ledger_sum_fits(b->paid, e->charged))
        return refuse(e, "is more than can be counted", err);
    b->lent += e->share;
    b->paid += e->charged;
    of->share -= of->back ? 0 : e->share;
    of->paid -= of->back ? 0 : e->charged;
    return 0;
}

void st_ledger_lent_in(int64_t lent, int64_t paid, st_entry *window)
{
    window->lent = window->paid = 0;
    if (lent <= 0 || paid <= 0)
        return;
    int64_t part = ST_MIN(lent, window->share - window->missing);
    window->paid = (int64_t)((st_i128)paid * part / lent);
    window->lent = window->paid > 0 ? part : 0;
}
