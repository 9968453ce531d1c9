/*
 * What use costs (replay/state.h): the meter's records at the prices and terms of their time, by the function that
 * bills are made and verified with. What people credit, and what caps would refuse, is not here.
 */
#include <inttypes.h>
#include <stdio.h>

#include "replay/state.h"

static const st_price_book *book_at(const st_rerun_side *side, int64_t at_ms)
{
    const st_rerun_lab *lab = side->lab;

    if (side->which == ST_WOULD && lab->other)
        return lab->other;
    for (size_t i = lab->books.n; i-- > 0;)
        if (lab->books.v[i]->from_ms <= at_ms)
            return lab->books.v[i];
    return NULL;
}

static const st_terms *terms_at(const st_rerun_lab *lab, size_t account, int64_t at_ms)
{
    for (size_t i = lab->terms.n; i-- > 0;)
        if (lab->terms.v[i].account == account && lab->terms.v[i].terms.from_ms <= at_ms)
            return &lab->terms.v[i].terms;
    return NULL;
}

/* The sum over a piece of a stay; made if it is new. */
static st_piece_sum *piece_of(st_rerun_side *side, const st_record *rec)
{
    char key[80];
    int64_t at;

    snprintf(key, sizeof key, "%" PRIu64 "/%d/%d", rec->job, rec->stay,
             rec->kind == ST_REC_FIX ? rec->fixes : rec->piece);
    if (!st_map_get(side->piece_ids, key, &at)) {
        at = (int64_t)side->pieces.n;
        st_vec_push(&side->pieces, (st_piece_sum){0});
        st_map_put(side->piece_ids, key, at);
    }
    return &side->pieces.v[at];
}

static void price(st_rerun_side *side, const st_record *rec)
{
    st_rerun_lab *lab = side->lab;
    char job[32];
    const st_record_names names = {
        .fleet = st_core_fleet(side->core), .tree = st_core_tree(side->core), .job = job};
    st_rerun_count *c;
    st_entry e;
    size_t account;

    if (rec->kind == ST_REC_FLEET || rec->account <= ST_ROOT)
        return;
    snprintf(job, sizeof job, "%" PRIu64, rec->job);
    account = st_rerun_name(lab, st_tree_account(names.tree, rec->account)->name);
    c = st_rerun_of(side, account);
    st_entry_of_record(rec, &names, lab->scratch, &e);
    const st_price_book *book = book_at(side, e.from_ms);
    st_piece_sum *piece = rec->kind == ST_REC_RESERVE ? NULL : piece_of(side, rec);

    if (e.kind == ST_ENTRY_LOST && piece->seq == 0)
        return; /* of a time that is not counted */
    if (e.kind == ST_ENTRY_LOST)
        st_piece_lost(book, piece, &e);
    e.seq = 1;
    /* One that cannot be priced is not in the books either: its stintd said so when it was made. */
    if (st_price_entry(&e, book, terms_at(lab, account, e.from_ms), c->carry, NULL) < 0)
        return;
    if (piece)
        st_piece_add(piece, &e);
    for (int i = 0; i < e.nlines; i++) {
        c->own_udollars += e.lines[i].amount;
        c->carry[e.lines[i].what] = e.lines[i].carry;
    }
}

void st_rerun_price(st_rerun_side *side)
{
    for (size_t i = 0; side->counting && i < side->records.n; i++)
        price(side, &side->records.v[i]);
    st_vec_clear(&side->records);
}
