/* Postings of one account and period, added up. */
#include <string.h>

#include "ledger/state.h"

void st_ledger_tally_done(ledger_tally *t)
{
    st_vec_free(&t->rows);
}

/* Whether postings of a component are kept apart by GPU type and level. */
static bool of_gpu(st_component what)
{
    return what <= ST_PAY_IDLE || what == ST_PAY_LOST || what == ST_PAY_FAULT ||
           what == ST_PAY_WINDOW || what == ST_PAY_CANCEL || what == ST_PAY_SHORT ||
           what == ST_PAY_LENT;
}

void st_ledger_row_key(const st_entry *e, st_component what, const char **ret_gpu,
                       st_level *ret_level)
{
    bool gpu = of_gpu(what) && e->gpu;
    *ret_gpu = gpu ? e->gpu : "";
    *ret_level = gpu && what != ST_PAY_RESERVED ? e->level : ST_LEVEL_WHOLE;
}

int st_ledger_row_order(const st_ledger *l, const ledger_row *a, const ledger_row *b)
{
    if (a->what != b->what)
        return a->what < b->what ? -1 : 1;
    if (a->gpu != b->gpu)
        return strcmp(l->gpus.v[a->gpu], l->gpus.v[b->gpu]);
    return a->level < b->level ? -1 : a->level > b->level;
}

bool st_ledger_owed(const st_ledger *l, const st_entry *e)
{
    const st_terms *terms = st_ledger_terms(l, e->account, st_entry_moment(e));
    return terms && terms->chargeback;
}

/* A quantity that would not fit any more goes on in a second row of the same kind. */
void st_ledger_tally_post(st_ledger *l, ledger_tally *t, const st_entry *e, const st_line *line)
{
    const char *gpu;
    ledger_row row = {.what = line->what,
                      .quantity = line->quantity,
                      .amount = line->amount,
                      .owed = st_ledger_owed(l, e) ? line->amount : 0,
                      .rate = line->rate,
                      .factor_bp = line->factor_bp,
                      .entries = 1,
                      .first_seq = e->seq,
                      .last_seq = e->seq};
    st_ledger_row_key(e, line->what, &gpu, &row.level);
    row.gpu = st_ledger_add_gpu(l, gpu);
    size_t i = t->rows.n;
    for (; i > 0; i--) {
        int64_t quantity, amount;
        ledger_row *had = &t->rows.v[i - 1];
        int o = st_ledger_row_order(l, had, &row);
        if (o < 0)
            break;
        if (o > 0)
            continue;
        if (__builtin_add_overflow(had->quantity, row.quantity, &quantity) ||
            __builtin_add_overflow(had->amount, row.amount, &amount))
            break;
        had->quantity = quantity;
        had->amount = amount;
        had->owed += row.owed; /* at most the amount's own sum of parts, which fits */
        had->rate = had->rate == row.rate ? row.rate : ST_UNSET;
        had->factor_bp = had->factor_bp == row.factor_bp ? row.factor_bp : ST_UNSET;
        had->last_seq = e->seq;
        had->entries++;
        return;
    }
    st_vec_insert(&t->rows, i, row);
}

static bool add(int64_t *to, int64_t by)
{
    return !__builtin_add_overflow(*to, by, to);
}

bool st_ledger_use_add(st_bill_use *to, const st_entry *e)
{
    st_bill_use u = *to;
    int64_t *const by_basis[] = {
        [ST_BASIS_GUARANTEED] = &u.guaranteed,
        [ST_BASIS_BURST] = &u.burst,
        [ST_BASIS_ON_DEMAND] = &u.on_demand,
        [ST_BASIS_BOOKED] = &u.booked,
    };
    bool ok = true;
    if (e->kind == ST_ENTRY_RESERVE)
        ok = add(&u.reserved, e->share);
    if (e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_FIX) {
        bool known = e->kind == ST_ENTRY_FIX || e->seen >= 0;
        int64_t busy = e->kind == ST_ENTRY_FIX || e->busy >= 0 ? e->busy : 0;
        int64_t energy = e->kind == ST_ENTRY_FIX || e->energy_mj >= 0 ? e->energy_mj : 0;
        ok = add(by_basis[e->basis], e->share - e->inside) && add(&u.guaranteed, e->inside) &&
             add(&u.seen, known ? e->seen : 0) && add(&u.busy, busy) && add(&u.energy_mj, energy);
        u.jobs += e->kind == ST_ENTRY_USAGE && e->stay == 1 && e->piece == 1;
    }
    if (e->kind == ST_ENTRY_LOST)
        ok = add(&u.lost, e->lost);
    if (ok)
        *to = u;
    return ok;
}
