/*
 * What a transaction means in money: the meter hears of it, records become entries, and those are written with
 * it. Also the moments at which all intervals are cut, and the close of months.
 */
#include "billing/money.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "billing/billing.h"

#define SIGN_MS INT64_C(60000)

/* ---- entries ----------------------------------------------------------------------------------- */

static bool is_priced(st_entry_kind kind)
{
    return kind == ST_ENTRY_USAGE || kind == ST_ENTRY_RESERVE || kind == ST_ENTRY_FIX ||
           kind == ST_ENTRY_LOST || kind == ST_ENTRY_PIECES || kind == ST_ENTRY_CREDIT ||
           kind == ST_ENTRY_WINDOW;
}

static int write_entry(st_tx *tx, const st_entry *e, const st_period *period, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    st_hash chain;

    st_entry_write(e, &data);
    st_books_add(&b->books, e->account, e->at_ms, data.s, data.n, &chain);
    st_strbuf_addn(&tx->posted, st_strbuf_str(&data), data.n + 1);
    const st_book_row row = {.n = b->books.n,
                             .account = e->account,
                             .seq = e->seq,
                             .at_ms = e->at_ms,
                             .period = period->name,
                             .job = e->job ? e->job : "",
                             .data = st_strbuf_str(&data),
                             .chain = {chain.b, ST_HASH}};
    return st_tx_fault(tx, st_store_book_append(tx->ctl->store, &row, err), err);
}

int st_money_post(st_tx *tx, st_entry *e, st_err *err)
{
    st_ledger *l = tx->ctl->billing->ledger;
    const st_period period = *st_ledger_period(l); /* a close ends it */
    int r = st_tx_open(tx, err);

    if (r < 0)
        return r;
    e->at_ms = tx->now;
    if (is_priced(e->kind))
        r = st_ledger_price(l, e, err);
    else
        e->seq = ST_MAX(st_ledger_seq(l, e->account), 0) + 1;
    if (r == 0)
        r = st_ledger_apply(l, e, err);
    if (e->kind == ST_ENTRY_PRICES || e->kind == ST_ENTRY_PLAN)
        tx->ctl->billing->next_ms = tx->ctl->billing->caps_ms = 0;
    if (r == 0 && e->nlines > 0)
        st_budget_spent(tx, e->account);
    return r < 0 ? r : write_entry(tx, e, &period, err);
}

/* Of what happened anyway: a ledger that refuses it is wrong, and stopping everything would not make it right. It is
 * said, and found again by whoever compares. */
static int post_fact(st_tx *tx, st_entry *e, st_err *err)
{
    int r = st_money_post(tx, e, err);

    if (r == 0 || tx->broken)
        return r;
    st_control_say(tx->ctl, "event=entry_refused account=\"%s\" kind=%s job=%s reason=\"%s\"",
                   e->account, st_entry_kind_name(e->kind), e->job ? e->job : "-", err->msg);
    return 0;
}

/* ---- corrections -------------------------------------------------------------------------------- */

typedef struct wanted {
    int stay, piece;
    st_piece_sum sum;
    ST_VEC(st_lent_said) lent;
    st_arena *arena;
} wanted;

/* Whose bookings had lent its GPUs; what was taken back is taken off. */
static void look_lent(wanted *w, const st_entry *e)
{
    for (size_t i = 0; i < w->lent.n; i++) {
        st_lent_said *said = &w->lent.v[i];

        if (strcmp(said->child, e->child) == 0 && strcmp(said->booking, e->booking) == 0) {
            said->share += e->share;
            said->charged += e->charged;
            return;
        }
    }
    st_vec_push(&w->lent,
                ((st_lent_said){st_arena_strdup(w->arena, e->child),
                                st_arena_strdup(w->arena, e->booking), e->share, e->charged}));
}

static int look(void *ctx, const st_book_row *row, st_err *err)
{
    wanted *w = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_entry e;
    int r = st_entry_read(row->data, strlen(row->data), arena, &e, err);

    if (r == 0 && e.stay == w->stay && e.piece == w->piece) {
        st_piece_add(&w->sum, &e);
        if (e.kind == ST_ENTRY_LENT)
            look_lent(w, &e);
    }
    return r;
}

/* What the books say about the piece an entry is about; what is about none says so and is not written. */
static int find_piece(st_tx *tx, const st_entry *e, wanted *ret, st_err *err)
{
    wanted w = {.stay = e->stay, .piece = e->piece, .arena = tx->ctl->billing->arena};
    int r = st_store_book_of_job(tx->ctl->store, e->job, look, &w, err);

    *ret = w;
    if (r < 0)
        return st_tx_fault(tx, r, err);
    if (w.sum.seq == 0)
        st_control_say(tx->ctl, "event=%s_of_nothing job=%s stay=%d piece=%d",
                       st_entry_kind_name(e->kind), e->job, e->stay, e->piece);
    return 0;
}

/* What gives something back takes it from those who had a share of it. */
static int post_back(st_tx *tx, st_entry *e, const wanted *w, st_err *err)
{
    int64_t had = w->sum.share;
    int r = post_fact(tx, e, err);

    return r < 0 ? r : st_lent_take_back(tx, e, had, w->lent.v, w->lent.n, err);
}

/* Lost work is credited what was charged for it by now. */
static int post_lost(st_tx *tx, st_entry *e, st_err *err)
{
    wanted w;
    int r = find_piece(tx, e, &w, err);

    if (r == 0 && w.sum.seq != 0) {
        st_ledger_lost(tx->ctl->billing->ledger, &w.sum, e);
        r = post_back(tx, e, &w, err);
    }
    st_vec_free(&w.lent);
    return r;
}

static int post_fix(st_tx *tx, st_entry *e, st_err *err)
{
    st_entry again;
    wanted w;
    int r = find_piece(tx, e, &w, err);

    if (r == 0 && w.sum.seq != 0) {
        e->fixes = w.sum.seq;
        e->capped = ST_MAX(w.sum.capped, 0);
        r = post_back(tx, e, &w, err);
        st_piece_add(&w.sum, e);
        if (r == 0 && st_ledger_lost_again(tx->ctl->billing->ledger, &w.sum, e, &again))
            r = post_back(tx, &again, &w, err);
    }
    st_vec_free(&w.lent);
    return r;
}

static int post_record(st_tx *tx, const st_record *rec, st_err *err)
{
    st_control *ctl = tx->ctl;
    const st_live *live = rec->job ? st_control_known(ctl, rec->job) : NULL;
    st_entry e;
    int r;

    if (rec->kind != ST_REC_FLEET && rec->account <= ST_ROOT)
        return 0; /* the cluster's own: nobody's to pay */
    st_arena_reset(ctl->billing->arena);
    st_entry_of(ctl, rec, live ? st_live_doc(ctl, live) : NULL, ctl->billing->arena, &e);
    if (e.kind == ST_ENTRY_FIX || e.kind == ST_ENTRY_LOST)
        return e.kind == ST_ENTRY_FIX ? post_fix(tx, &e, err) : post_lost(tx, &e, err);
    r = post_fact(tx, &e, err);
    return r == 0 && e.kind == ST_ENTRY_USAGE ? st_lent_post(tx, &e, rec->job, err) : r;
}

/* ---- floors --------------------------------------------------------------------------------------- */

typedef struct floor_ctx {
    st_tx *tx;
    ST_VEC(st_floor_said) now;
} floor_ctx;

/* Floors come before grants, and that is all that is wanted. */
static int see_floor(void *ctx, const st_record *rec)
{
    floor_ctx *f = ctx;

    if (rec->kind == ST_REC_GRANT)
        return 1;
    if (rec->kind == ST_REC_RESERVE && rec->account > ST_ROOT)
        st_vec_push(&f->now, (st_floor_said){rec->account, rec->type, rec->gpu_m});
    return 0;
}

static int by_account(const void *a, const void *b)
{
    const st_floor_said *x = a, *y = b;

    return x->account != y->account ? (x->account < y->account ? -1 : 1)
           : x->type != y->type     ? (x->type < y->type ? -1 : 1)
                                    : 0;
}

static int say_floor(st_tx *tx, const st_floor_said *floor, st_err *err)
{
    const st_core *core = tx->ctl->core;
    char book[ST_NAME_MAX + 1];
    st_entry e = {.kind = ST_ENTRY_FLOOR,
                  .account = st_book_name(tx->ctl, floor->account, book),
                  .gpu = floor->type < 0 ? "*" : st_core_fleet(core)->types.v[floor->type].name,
                  .gpu_m = floor->gpu_m};

    return post_fact(tx, &e, err);
}

static void sort_floors(st_floor_said *list, size_t n)
{
    if (n > 1)
        qsort(list, n, sizeof *list, by_account);
}

/* Writes those that are not what the books say: both in one order, side by side. */
static int follow_floors(st_tx *tx, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    floor_ctx f = {.tx = tx};
    size_t i = 0, k = 0;
    int r = 0;

    /* A moment later: what has just begun is not an interval yet. */
    st_meter_open(b->meter, tx->now + 1, see_floor, &f);
    sort_floors(f.now.v, f.now.n);
    sort_floors(b->floors.v, b->floors.n);
    while (r == 0 && (i < b->floors.n || k < f.now.n)) {
        int order = i >= b->floors.n ? 1
                    : k >= f.now.n   ? -1
                                     : by_account(&b->floors.v[i], &f.now.v[k]);
        st_floor_said said = order < 0 ? b->floors.v[i] : f.now.v[k];
        int64_t before = order > 0 ? 0 : b->floors.v[i].gpu_m;

        if (order < 0)
            said.gpu_m = 0; /* it has none any more */
        if (said.gpu_m != before)
            r = say_floor(tx, &said, err);
        i += order <= 0;
        k += order >= 0;
    }
    st_vec_clear(&b->floors);
    for (i = 0; i < f.now.n; i++)
        st_vec_push(&b->floors, f.now.v[i]);
    st_vec_free(&f.now);
    return r;
}

static bool touches_floors(const st_tx *tx)
{
    if (tx->names || tx->begin)
        return true;
    for (size_t i = 0; i < tx->fx.list.n; i++)
        if (tx->fx.list.v[i].kind == ST_FX_FLOOR || tx->fx.list.v[i].kind == ST_FX_NODE ||
            tx->fx.list.v[i].kind == ST_FX_GPU)
            return true;
    return false;
}

/* ---- jobs that end ---------------------------------------------------------------------------------- */

static int post_pieces(st_tx *tx, const st_live *live, const char *job, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    const st_price_book *book = st_ledger_book(b->ledger, tx->now);
    const char *doc = st_live_doc(tx->ctl, live), *workload;
    char buf[ST_NAME_MAX + 1];
    st_doc_words words;
    int r = 0;

    st_doc_names(doc, b->arena, &words);
    workload = words.workload;

    for (int i = 0; workload && book && r == 0 && i < book->nunits; i++) {
        st_entry e = {.kind = ST_ENTRY_PIECES,
                      .account = st_book_of(tx->ctl, live->account, buf),
                      .job = job,
                      .user = live->user,
                      .workload = workload,
                      .priority_class = words.priority_class,
                      .name = live->name,
                      .labels = words.labels};

        if (strcmp(book->units[i].workload, workload) != 0)
            continue;
        e.pieces = st_doc_pieces(doc, book->units[i].by);
        if (e.pieces > 0)
            r = post_fact(tx, &e, err);
    }
    return r;
}

static int post_end(st_tx *tx, const st_effect *fx, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    const st_live *live = st_control_known(tx->ctl, fx->job);
    char job[ST_ID_TEXT], buf[ST_NAME_MAX + 1];
    const char *book;
    int r = 0;

    if (!live)
        return 0;
    book = st_book_of(tx->ctl, live->account, buf);
    st_control_id_text(tx->ctl, fx->job, job);
    st_arena_reset(b->arena);
    if (fx->state == ST_JOB_DONE)
        r = post_pieces(tx, live, job, err);
    if (r == 0 && st_ledger_held(b->ledger, book, job) != ST_UNSET) {
        st_entry e = {.kind = ST_ENTRY_RELEASE, .account = book, .job = job};

        r = post_fact(tx, &e, err);
    }
    return r;
}

/* ---- what the meter must know ------------------------------------------------------------------------ */

static void note_used(st_tx *tx, st_live *live)
{
    for (size_t i = 0; i < live->used.n; i++) {
        st_live_used *u = &live->used.v[i];
        st_sums sums;

        if (!u->unmetered)
            continue;
        u->unmetered = false;
        st_sums_of(&u->used, &sums);
        st_vec_push(&tx->notes, st_note_used(live->id, u->stay, u->task, &sums));
    }
}

void st_money_started(st_live *live, int64_t started_ms)
{
    if (live->said_start_ms == 0)
        live->said_start_ms = started_ms;
}

static void note_start(st_tx *tx, st_live *live)
{
    if (live->said_start_ms == 0 || live->start_noted)
        return;
    live->start_noted = true;
    st_vec_push(&tx->notes,
                (st_note){.kind = ST_NOTE_STARTED, .v = {(int64_t)live->id, live->said_start_ms}});
}

static void note_end(st_tx *tx, const st_effect *fx)
{
    const st_live *live = st_control_known(tx->ctl, fx->job);

    if (live && live->said_end_ms > 0 && live->said_end_ms <= fx->at_ms)
        st_vec_push(&tx->notes,
                    (st_note){.kind = ST_NOTE_ENDED, .v = {(int64_t)fx->job, live->said_end_ms}});
}

/* Plans that come into force with this cut. */
static void note_plans(st_tx *tx)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    const st_ledger *l = tx->ctl->billing->ledger;

    for (size_t i = 0; i < tree->accounts.n; i++) {
        if (tree->accounts.v[i]->gone)
            continue;
        char buf[ST_NAME_MAX + 1];
        const char *name = st_book_name(tx->ctl, (int32_t)i, buf);
        const st_price_plan *plan = st_ledger_plan(l, name, tx->now);

        if (plan && plan->from_ms == tx->now && strcmp(plan->account, name) == 0)
            st_vec_push(&tx->notes,
                        (st_note){.kind = ST_NOTE_AGREE, .v = {(int64_t)i, plan->burst_m}});
    }
}

static void take_notes(st_tx *tx)
{
    st_control *ctl = tx->ctl;

    for (size_t i = 0; tx->cut && i < ctl->all.n; i++) {
        note_used(tx, ctl->all.v[i]);
        note_start(tx, ctl->all.v[i]);
    }
    for (size_t i = 0; i < tx->fx.list.n; i++) {
        const st_effect *fx = &tx->fx.list.v[i];
        st_live *live = fx->job ? st_control_known(ctl, fx->job) : NULL;

        if (live && live->used.n > 0)
            note_used(tx, live);
        if (live) {
            const st_job *job = st_core_job(ctl->core, fx->job);

            note_start(tx, live);
            live->booking = job && job->booking ? job->booking : live->booking;
        }
        if (fx->kind == ST_FX_END)
            note_end(tx, fx);
        if (fx->kind == ST_FX_BOOKING)
            st_money_note_beyond(tx, fx);
        if (live && fx->class == ST_CLASS_BOOKED && live->booking != 0)
            st_money_note_within(tx, fx, live->booking);
    }
    st_lent_note(tx);
    if (tx->begin)
        st_vec_push(&tx->notes, (st_note){.kind = ST_NOTE_BEGIN});
    if (tx->cut) {
        note_plans(tx);
        st_vec_push(&tx->notes, (st_note){.kind = ST_NOTE_CUT});
    }
    /* A meter of before begins with it where all intervals begin. */
    if (tx->begin ||
        (tx->cut && ctl->billing->meter && !st_meter_knows_inside(ctl->billing->meter)))
        st_vec_push(&tx->notes, (st_note){.kind = ST_NOTE_INSIDE});
}

void st_money_used(st_tx *tx, uint64_t job, int stay, int task, const st_sums *sums)
{
    st_vec_push(&tx->notes, st_note_used(job, stay, task, sums));
}

void st_money_meter(st_control *ctl, const st_effects *fx, st_notes *notes, int64_t now)
{
    st_billing *b = ctl->billing;

    st_vec_clear(&b->records);
    st_log_meter(ctl->core, fx, notes, now, &b->meter, &b->records);
}

/* ---- beginning, cutting, closing ----------------------------------------------------------------------- */

bool st_money_begun(const st_control *ctl)
{
    return ctl->billing->meter != NULL;
}

void st_money_begin(st_tx *tx)
{
    tx->begin = true;
}

void st_money_cut(st_tx *tx)
{
    tx->cut = true;
}

/* It is asked all the time and changes rarely. */
int64_t st_money_next(const st_control *ctl)
{
    st_billing *b = ctl->billing;
    int64_t now;

    if (!b->meter)
        return ST_TIME_NEVER;
    if (b->next_ms == 0) {
        now = st_core_now(ctl->core);
        b->next_ms = ST_MIN(st_zone_midnight(now), st_ledger_next_change(b->ledger, now));
        b->next_ms = ST_MIN(b->next_ms, st_ledger_period(b->ledger)->to_ms);
        b->next_ms = ST_MAX(b->next_ms, now + 1);
    }
    return b->next_ms;
}

/* Usage is booked from the first day on, at no price, until there are prices. */
static int post_unpriced(st_tx *tx, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_price_book book = {
        .name = "unpriced", .from_ms = tx->now, .nrates = 1, .rates = {{.gpu = "*"}}};

    for (int l = 0; l < ST_LEVEL_COUNT; l++)
        book.rates[0].level_bp[l] = ST_BP;
    st_price_book_write(&book, &doc);
    st_entry e = {.kind = ST_ENTRY_PRICES, .account = "", .doc = st_strbuf_str(&doc)};
    return st_money_post(tx, &e, err);
}

static int post_beginning(st_tx *tx, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    const st_tree *tree = st_core_tree(tx->ctl->core);
    st_period period;
    int r;

    b->ledger = st_ledger_new();
    st_zone_month(b->zone, tx->now, &period);
    st_ledger_set_period(b->ledger, &period);
    r = st_tx_open(tx, err);
    if (r == 0)
        r = st_tx_fault(
            tx, st_store_meta_put(tx->ctl->store, "billing_began", st_zone_name(b->zone), err),
            err);
    if (r == 0)
        r = post_unpriced(tx, err);
    for (size_t i = 1; r == 0 && i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];

        if (a->gone)
            continue;
        r = st_money_account(tx, (int32_t)i, err);
    }
    if (r < 0) /* without a beginning there is nothing to go on with */
        st_tx_fault(tx, r, err);
    return r;
}

static int close_book(st_tx *tx, const char *account, const st_period *p, st_err *err)
{
    st_entry e = {.kind = ST_ENTRY_CLOSE,
                  .account = account,
                  .period = p->name,
                  .zone = st_zone_name(tx->ctl->billing->zone),
                  .from_ms = p->from_ms,
                  .to_ms = p->to_ms};

    return post_fact(tx, &e, err);
}

/* The cluster's book is closed last: then the month is. */
static int close_month(st_tx *tx, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    const st_period period = *st_ledger_period(b->ledger);
    st_period next;
    int r = 0;

    for (size_t i = 0; r == 0 && i < b->books.heads.n; i++)
        if (b->books.heads.v[i].account[0])
            r = close_book(tx, b->books.heads.v[i].account, &period, err);
    if (r == 0)
        r = close_book(tx, "", &period, err);
    if (r < 0)
        return r;
    st_zone_after(b->zone, period.to_ms, &next);
    st_ledger_set_period(b->ledger, &next);
    r = st_fleet_mark(tx, err);
    if (r < 0)
        return r;
    st_control_say(tx->ctl, "event=month_closed period=%s entries=%" PRId64, period.name,
                   b->books.n);
    return st_money_sign(tx, true, err);
}

int st_money_sign(st_tx *tx, bool at_once, st_err *err)
{
    st_billing *b = tx->ctl->billing;
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    st_checkpoint point;
    int r;

    if (b->books.n == b->books.signed_n || (!at_once && tx->now - b->books.signed_ms < SIGN_MS))
        return 0;
    st_books_sign(&b->books, &b->keys, b->cluster, tx->now, &point);
    st_checkpoint_write(&point, &data);
    const st_checkpoint_row row = {.n = b->books.n, .at_ms = tx->now, .data = st_strbuf_str(&data)};
    r = st_tx_open(tx, err);
    if (r == 0)
        r = st_tx_fault(tx, st_store_checkpoint_put(tx->ctl->store, &row, err), err);
    if (r == 0) {
        b->books.signed_n = b->books.n;
        b->books.signed_ms = tx->now;
    }
    return r;
}

/* ---- a transaction ------------------------------------------------------------------------------------------ */

int st_money_follow(st_tx *tx, st_err *err)
{
    st_control *ctl = tx->ctl;
    st_billing *b = ctl->billing;
    int r = 0;

    if (tx->begin)
        r = post_beginning(tx, err);
    take_notes(tx);
    st_money_meter(ctl, &tx->fx, &tx->notes, tx->now);
    for (size_t i = 0; r == 0 && i < b->records.n; i++)
        r = post_record(tx, &b->records.v[i], err);
    for (size_t i = 0; r == 0 && i < tx->fx.list.n; i++)
        if (tx->fx.list.v[i].kind == ST_FX_END)
            r = post_end(tx, &tx->fx.list.v[i], err);
    if (r == 0 && touches_floors(tx))
        r = follow_floors(tx, err);
    st_lent_remember(tx);
    if (r == 0)
        r = st_money_follow_bookings(tx, err);
    if (r == 0 && tx->cut && st_ledger_period(b->ledger)->to_ms <= tx->now)
        r = close_month(tx, err);
    if (tx->cut || tx->begin)
        b->next_ms = 0;
    return r;
}
