/* What lost work is credited: what was charged for exactly that time, once, and never more.
 *
 * A piece of a stay is one usage entry and those that correct it. The sum of them knows what was charged for
 * it in all components, what of that a cap has paid already, and what was credited. Amounts are those that were posted, so
 * that no rounding makes a credit larger than its charge. */
#include "base/mutant.h"
#include "ledger/price.h"

static void add_line(st_piece_sum *s, const st_line *line)
{
    switch (line->what) {
    case ST_PAY_GUARANTEED:
    case ST_PAY_BURST:
    case ST_PAY_ON_DEMAND:
    case ST_PAY_BOOKED:
    case ST_PAY_TOPOLOGY:
    case ST_PAY_IDLE:
        s->by_share += line->amount;
        break;
    case ST_PAY_CPU:
    case ST_PAY_RAM:
    case ST_PAY_ENERGY:
        s->by_time += line->amount;
        break;
    case ST_PAY_CAP:
        s->capped -= line->amount;
        break;
    default:
        break;
    }
}

void st_piece_add(st_piece_sum *s, const st_entry *e)
{
    switch (e->kind) {
    case ST_ENTRY_USAGE:
        *s = (st_piece_sum){
            .seq = e->seq, .from_ms = e->from_ms, .to_ms = e->to_ms, .share = e->share};
        break;
    case ST_ENTRY_FIX:
        s->share += e->share;
        if (e->share < 0 || e->held < 0 || e->cpu < 0 || e->ram < 0) /* its end was not its end */
            s->to_ms = ST_MIN(s->to_ms, e->from_ms);
        break;
    case ST_ENTRY_LOST:
        if (!s->is_lost) {
            s->is_lost = true;
            s->lost = e->lost;
            s->lost_from_ms = e->from_ms;
            s->cut = e->cut;
        }
        s->credited += e->amount;
        return;
    default:
        return;
    }
    for (int i = 0; i < e->nlines; i++)
        add_line(s, &e->lines[i]);
}

/* Of the whole piece's amounts the part that a time in it, with so much share, was charged. */
static int64_t charged_for(const st_piece_sum *s, int64_t ms, int64_t lost)
{
    int64_t length = s->to_ms - s->from_ms, gross = s->by_share + s->by_time;
    st_i128 part = 0;
    if (length <= 0 || ms <= 0 || gross <= 0 || gross <= s->capped)
        return 0;
    if (s->share > 0)
        part += (st_i128)ST_MAX(s->by_share, 0) * ST_MIN(lost, s->share) / s->share;
    part += (st_i128)ST_MAX(s->by_time, 0) * ST_MIN(ms, length) / length;
    part = ST_MIN(part, gross);
    if (ST_BROKEN(MONEY_LOST))
        return (int64_t)part;
    return (int64_t)(part * (gross - ST_MAX(s->capped, 0)) / gross);
}

int64_t st_price_back_bp(const st_price_book *book, st_cut cut)
{
    if (!book)
        return 0;
    return cut == ST_CUT_FAULT ? book->fault_bp : cut == ST_CUT_PREEMPTED ? book->lost_bp : 0;
}

/* charged is at most ST_SUM_MAX, the factor at most 1. */
int64_t st_price_back(const st_price_book *book, const st_entry *lost)
{
    return (int64_t)((st_i128)lost->charged * st_price_back_bp(book, lost->cut) / ST_BP);
}

void st_piece_lost(const st_price_book *book, const st_piece_sum *s, st_entry *lost)
{
    int64_t share = s->is_lost ? s->lost : lost->lost;
    lost->fixes = s->seq;
    lost->charged = charged_for(s, lost->to_ms - lost->from_ms, share);
    lost->credited = ST_BROKEN(MONEY_AGAIN) ? 0 : s->credited;
    lost->amount = st_price_back(book, lost) - lost->credited;
}

void st_ledger_lost(const st_ledger *l, const st_piece_sum *s, st_entry *lost)
{
    st_piece_lost(st_ledger_book(l, lost->from_ms), s, lost);
}

bool st_ledger_lost_again(const st_ledger *l, const st_piece_sum *s, const st_entry *fix,
                          st_entry *ret)
{
    if (!s->is_lost)
        return false;
    *ret = (st_entry){.kind = ST_ENTRY_LOST,
                      .account = fix->account,
                      .from_ms = s->lost_from_ms,
                      .to_ms = ST_MAX(s->to_ms, s->lost_from_ms),
                      .job = fix->job,
                      .user = fix->user,
                      .workload = fix->workload,
                      .priority_class = fix->priority_class,
                      .stay = fix->stay,
                      .piece = fix->piece,
                      .gpu = fix->gpu,
                      .level = fix->level,
                      .basis = fix->basis,
                      .cut = s->cut,
                      .reason = "corrected"};
    st_ledger_lost(l, s, ret);
    return ret->amount != 0;
}
