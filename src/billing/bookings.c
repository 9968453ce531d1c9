/*
 * What bookings mean in money. When one is confirmed its price is agreed, in an entry of its account's book; from then on the
 * ledger knows what is due. Windows are charged at every cut and when the booking changes. What the core says about a booking
 * after that (another window, another size, a place that is missing, its end) is held against what was agreed last, and
 * written if it is not the same. A booking that was confirmed when the price book had no price for bookings costs nothing.
 */
#include <inttypes.h>
#include <string.h>

#include "billing/billing.h"

#define MONTHS_MAX 1200

static int64_t gpu_m_of(const st_booking *b)
{
    return (int64_t)b->tasks * b->gpus * ST_WHOLE_M;
}

/* ---- what is not delivered ---------------------------------------------------------------------- */

/* Somebody else is still on these devices who was told to leave for the booking. */
static bool in_the_way(const st_core *core, const st_booking *b, const st_grant *place)
{
    const st_node *node = st_core_fleet(core)->nodes.v[place->node];

    for (size_t i = 0; i < node->residents.n; i++) {
        const st_job *job = node->residents.v[i].job;
        const st_grant *g = &job->grants[node->residents.v[i].task];

        if ((g->devs & place->devs) && job->booking != b->id &&
            job->claimant == (b->id | ST_BOOKING_BIT))
            return true;
    }
    return false;
}

/* Milli-GPU of an active booking that it does not have: without a place, or not yet left by others. */
static int64_t short_of(const st_core *core, const st_booking *b)
{
    int64_t short_m = 0;

    if (b->state != ST_BOOKING_ACTIVE || b->over)
        return 0;
    for (int t = 0; t < b->tasks; t++)
        if (b->plan[t].node < 0 || in_the_way(core, b, &b->plan[t]))
            short_m += (int64_t)b->gpus * ST_WHOLE_M;
    return short_m;
}

/* ---- writing ------------------------------------------------------------------------------------- */

/* Of what happened anyway: see post_fact in money.c. */
static int post(st_tx *tx, st_entry *e, st_err *err)
{
    int r = st_money_post(tx, e, err);

    if (r == 0 || tx->broken)
        return r;
    st_control_say(tx->ctl, "event=entry_refused account=\"%s\" kind=%s booking=%s reason=\"%s\"",
                   e->account, st_entry_kind_name(e->kind), e->booking, err->msg);
    return 0;
}

static st_entry entry_for(const st_tx *tx, const char *book, const char *name, const char *gpu)
{
    return (st_entry){
        .kind = ST_ENTRY_BOOKING, .at_ms = tx->now, .account = book, .booking = name, .gpu = gpu};
}

int st_money_booked(st_tx *tx, uint64_t id, st_err *err)
{
    const st_booking *b = st_core_booking(tx->ctl->core, id);
    const st_ledger *l = tx->ctl->billing->ledger;
    char book[ST_NAME_MAX + 1], name[ST_ID_TEXT];
    st_window_price price;
    st_entry e;

    if (!b || !l)
        return 0;
    st_control_name(tx->ctl, ST_BOOKING_ID, id, name);
    e = entry_for(tx, st_book_name(tx->ctl, b->account, book), name,
                  st_core_fleet(tx->ctl->core)->types.v[b->type].name);
    e.gpu_m = gpu_m_of(b);
    e.from_ms = ST_MAX(b->from_ms, tx->now);
    e.to_ms = b->to_ms;
    st_ledger_window_price(l, e.account, e.gpu, e.gpu_m, e.from_ms, e.to_ms, tx->now, &price);
    if (!price.priced || e.to_ms <= e.from_ms)
        return 0;
    st_ledger_agree(l, &e);
    return post(tx, &e, err);
}

/* Charges a booking up to now, with what `next` gives up, and writes that. */
static int charge_up_to_now(st_tx *tx, const st_agreed *was, st_entry *next, st_err *err)
{
    const st_ledger *l = tx->ctl->billing->ledger;
    st_entry window;
    int r = 0;

    if (st_ledger_window(l, was, next->gpu_m > 0 ? next : NULL, tx->now, &window)) {
        window.account = next->account; /* the ledger's own may go with the booking */
        window.booking = next->booking;
        window.gpu = next->gpu;
        r = post(tx, &window, err);
    }
    st_agreed left; /* nothing, where its window had just ended */
    if (r == 0 && next->gpu_m > 0 && st_ledger_booking(l, next->account, next->booking, &left)) {
        st_ledger_agree(l, next);
        r = post(tx, next, err);
    }
    return r;
}

/* A booking as the core has it now, in the words of what was agreed. */
static void as_it_is(const st_tx *tx, const st_booking *b, const st_agreed *was, st_entry *next)
{
    next->from_ms = was->from_ms;
    if (was->from_ms >= tx->now || b->from_ms > was->from_ms)
        next->from_ms = ST_MAX(b->from_ms, tx->now);
    next->to_ms = b->to_ms;
    next->gpu_m = gpu_m_of(b);
    next->short_m = short_of(tx->ctl->core, b);
}

static bool is_agreed(const st_entry *next, const st_agreed *was)
{
    return next->from_ms == was->from_ms && next->to_ms == was->to_ms &&
           next->gpu_m == was->gpu_m && next->short_m == was->short_m;
}

/* What the core says of it, where that is not what was agreed. */
static int follow(st_tx *tx, uint64_t id, int32_t account, st_booking_state state, st_err *err)
{
    const st_booking *b = st_core_booking(tx->ctl->core, id);
    char book[ST_NAME_MAX + 1], name[ST_ID_TEXT], gpu[ST_NAME_MAX + 1];
    const char *account_book = st_book_name(tx->ctl, account, book);
    st_agreed was;
    st_entry next;

    st_control_name(tx->ctl, ST_BOOKING_ID, id, name);
    if (!st_ledger_booking(tx->ctl->billing->ledger, account_book, name, &was))
        return 0;
    memcpy(gpu, was.gpu, strlen(was.gpu) + 1);
    next = entry_for(tx, account_book, name, gpu);
    next.from_ms = was.from_ms;
    next.to_ms = was.to_ms;
    next.gpu_m = was.gpu_m;
    next.short_m = was.short_m;
    if (b && !b->over) {
        as_it_is(tx, b, &was, &next);
    } else if (state == ST_BOOKING_CANCELLED || state == ST_BOOKING_NO_SHOW) {
        next.to_ms = ST_MIN(was.to_ms, ST_MAX(was.from_ms, tx->now));
        next.reason = st_booking_state_name(state);
    }
    if (is_agreed(&next, &was)) {
        if (was.to_ms > tx->now)
            return 0;
        next.gpu_m = 0; /* it is over: nothing is agreed any more */
    }
    return charge_up_to_now(tx, &was, &next, err);
}

/* All that is booked is charged up to now. */
static int cut(st_tx *tx, st_err *err)
{
    const st_ledger *l = tx->ctl->billing->ledger;
    int r = 0;

    for (size_t i = st_ledger_nbookings(l); r == 0 && i-- > 0;) { /* one that is over goes */
        st_agreed was;
        st_entry e;

        st_ledger_booking_at(l, i, &was);
        if (!st_ledger_window(l, &was, NULL, tx->now, &e))
            continue;
        st_arena_reset(tx->ctl->billing->arena);
        e.booking = st_arena_strdup(tx->ctl->billing->arena, was.booking);
        r = post(tx, &e, err);
    }
    return r;
}

/* Those that lack something are looked at until they do not. */
static int follow_short(st_tx *tx, st_err *err)
{
    const st_ledger *l = tx->ctl->billing->ledger;
    int r = 0;

    for (size_t i = st_ledger_nbookings(l); r == 0 && i-- > 0;) {
        st_agreed was;
        uint64_t id;

        if (i >= st_ledger_nbookings(l))
            continue;
        st_ledger_booking_at(l, i, &was);
        if (was.short_m > 0 && st_control_named(tx->ctl, ST_BOOKING_ID, was.booking, &id))
            r = follow(tx, id, st_book_account(tx->ctl, was.account), ST_BOOKING_ACTIVE, err);
    }
    return r;
}

int st_money_follow_bookings(st_tx *tx, st_err *err)
{
    int r = 0;

    if (!tx->ctl->billing->ledger || st_ledger_nbookings(tx->ctl->billing->ledger) == 0)
        return 0;
    for (size_t i = 0; r == 0 && i < tx->fx.list.n; i++) {
        const st_effect *fx = &tx->fx.list.v[i];
        const st_booking *b;

        if (fx->kind == ST_FX_BOOKING) {
            r = follow(tx, fx->other, fx->account,
                       (st_booking_state)(fx->value % ST_BOOKING_DEGRADED), err);
        } else if (fx->other & ST_BOOKING_BIT) {
            b = st_core_booking(tx->ctl->core, fx->other & ~ST_BOOKING_BIT);
            if (b)
                r = follow(tx, b->id, b->account, b->state, err);
        }
    }
    if (r == 0 && tx->fx.list.n > 0 && st_ledger_nshort(tx->ctl->billing->ledger) > 0)
        r = follow_short(tx, err);
    return r == 0 && tx->cut ? cut(tx, err) : r;
}

/* Who is inside when a window ends stays a little longer, and pays for that like anybody who borrows. */
void st_money_note_beyond(st_tx *tx, const st_effect *fx)
{
    const st_core *core = tx->ctl->core;
    char book[ST_NAME_MAX + 1], name[ST_ID_TEXT];
    st_agreed was;

    if (fx->value % ST_BOOKING_DEGRADED != ST_BOOKING_ENDED || !tx->ctl->billing->ledger)
        return;
    st_control_name(tx->ctl, ST_BOOKING_ID, fx->other, name);
    if (!st_ledger_booking(tx->ctl->billing->ledger, st_book_name(tx->ctl, fx->account, book), name,
                           &was))
        return;
    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);
        const st_live *live = st_control_known(tx->ctl, job->id);
        /* One that runs in every window of a series has the next one already. */
        bool inside = job->booking == fx->other || (live && live->booking == fx->other);

        if (inside && job->class == ST_CLASS_BOOKED && st_job_on_devices(job))
            st_vec_push(&tx->notes, (st_note){.kind = ST_NOTE_BEYOND, .v = {(int64_t)job->id}});
    }
}

/* In a booking that is paid for, GPU time is the booking's. In one without a price, or in what is kept for a deadline, nobody
 * pays but the job, as whoever borrows does: else booking would be a way around prices. */
void st_money_note_within(st_tx *tx, const st_effect *fx, uint64_t booking)
{
    st_agreed was;

    if (fx->kind == ST_FX_START || fx->kind == ST_FX_RESUME || fx->kind == ST_FX_CLASS)
        st_vec_push(&tx->notes, (st_note){.kind = st_tx_agreed(tx, booking, &was) ? ST_NOTE_WITHIN
                                                                                  : ST_NOTE_BEYOND,
                                          .v = {(int64_t)fx->job}});
}

/* ---- asking --------------------------------------------------------------------------------------- */

void st_tx_window_price(st_tx *tx, const char *account, int32_t type, int64_t gpu_m,
                        const st_window *w, st_window_price *ret)
{
    char book[ST_NAME_MAX + 1];

    *ret = (st_window_price){0};
    if (tx->ctl->billing->ledger)
        st_ledger_window_price(tx->ctl->billing->ledger, st_book_of(tx->ctl, account, book),
                               st_core_fleet(tx->ctl->core)->types.v[type].name, gpu_m, w->from_ms,
                               w->to_ms, tx->now, ret);
}

bool st_tx_agreed(st_tx *tx, uint64_t id, st_agreed *ret)
{
    const st_booking *b = st_core_booking(tx->ctl->core, id);
    char book[ST_NAME_MAX + 1], name[ST_ID_TEXT];

    st_control_name(tx->ctl, ST_BOOKING_ID, id, name);
    return b && tx->ctl->billing->ledger &&
           st_ledger_booking(tx->ctl->billing->ledger, st_book_name(tx->ctl, b->account, book),
                             name, ret);
}

bool st_tx_agreed_price(st_tx *tx, uint64_t id, st_agreed_price *ret)
{
    const st_booking *b = st_core_booking(tx->ctl->core, id);
    st_agreed was;
    st_entry next;

    if (!st_tx_agreed(tx, id, &was))
        return false;
    next = entry_for(tx, was.account, was.booking, was.gpu);
    as_it_is(tx, b, &was, &next);
    if (!b->over && !is_agreed(&next, &was)) {
        st_ledger_agree(tx->ctl->billing->ledger, &next);
        was.from_ms = next.from_ms;
        was.to_ms = next.to_ms;
        was.gpu_m = next.gpu_m;
        was.agreed_ms = next.agreed_ms;
        was.keep_bp = next.keep_bp;
    }
    st_ledger_agreed_price(tx->ctl->billing->ledger, &was, tx->now, ret);
    return true;
}

/* What of an amount for a window falls into a month; rounded up. */
static int64_t part_in(const st_window *w, int64_t amount, const st_period *month)
{
    int64_t from = ST_MAX(w->from_ms, month->from_ms), to = ST_MIN(w->to_ms, month->to_ms);
    int64_t all = w->to_ms - w->from_ms;

    if (from >= to || all <= 0)
        return 0;
    return (int64_t)(((st_i128)amount * (to - from) + all - 1) / all);
}

typedef struct wish {
    const char *account; /* of the core */
    int32_t type;
    int64_t gpu_m;
    const st_window *windows;
    size_t n;
    const st_agreed *was, *next; /* a change: what is agreed now, and will be; NULL: it is new */
    const char *reader;
} wish;

/* What of an agreement lies ahead and in a month. */
static int64_t ahead_in(st_tx *tx, const st_agreed *a, const st_period *month)
{
    st_agreed rest = *a;
    st_agreed_price price;

    rest.from_ms = ST_MAX(rest.from_ms, tx->now);
    if (rest.from_ms >= rest.to_ms)
        return 0;
    st_ledger_agreed_price(tx->ctl->billing->ledger, &rest, tx->now, &price);
    return part_in(&(st_window){rest.from_ms, rest.to_ms}, price.amount, month);
}

static int64_t cost_in(st_tx *tx, const wish *w, const st_period *month)
{
    st_i128 more = 0;
    st_window_price price;

    if (w->was)
        more = (st_i128)ahead_in(tx, w->next, month) - ahead_in(tx, w->was, month);
    for (size_t i = 0; !w->was && i < w->n; i++) {
        if (w->windows[i].from_ms >= month->to_ms || w->windows[i].to_ms <= month->from_ms)
            continue;
        st_tx_window_price(tx, w->account, w->type, w->gpu_m, &w->windows[i], &price);
        if (price.priced)
            more += part_in(&w->windows[i], price.amount, month);
    }
    return more > ST_AMOUNT_MAX ? ST_AMOUNT_MAX : (int64_t)ST_MAX(more, 0);
}

/* Every month that it touches has room under every cap. */
static int admit(st_tx *tx, const wish *w, st_err *err)
{
    st_billing *bill = tx->ctl->billing;
    int64_t last = 0;
    char book[ST_NAME_MAX + 1], reader[ST_NAME_MAX + 1];
    const char *account = st_book_of(tx->ctl, w->account, book);
    st_period month;
    int r = 0;

    if (!bill->ledger || st_tree_find(st_core_tree(tx->ctl->core), w->account) <= ST_ROOT)
        return 0;
    for (size_t i = 0; i < w->n; i++)
        last = ST_MAX(last, w->windows[i].to_ms);
    month = *st_ledger_period(bill->ledger);
    for (int k = 0; r == 0 && month.from_ms < last && k < MONTHS_MAX; k++) {
        int64_t more = cost_in(tx, w, &month);

        if (more > 0)
            r = st_ledger_admit_booking(bill->ledger, account, &month, more, tx->now,
                                        w->reader ? st_book_of(tx->ctl, w->reader, reader) : NULL,
                                        err);
        st_zone_after(bill->zone, month.to_ms, &month);
    }
    if (r == -ST_EQUOTA) {
        err->code = ST_EBUDGET;
        r = -ST_EBUDGET;
    }
    return r;
}

int st_money_may_book(st_tx *tx, const st_booking_spec *spec, const st_window *windows, size_t n,
                      const char *reader, st_err *err)
{
    const wish w = {.account = spec->account,
                    .type = spec->type,
                    .gpu_m = (int64_t)spec->tasks * spec->gpus * ST_WHOLE_M,
                    .windows = windows,
                    .n = n,
                    .reader = reader};

    return admit(tx, &w, err);
}

/* What is agreed, and what would be after a change; false: it has no price. */
static bool agree_anew(st_tx *tx, const st_booking *b, const st_window *to, int tasks,
                       st_agreed *was, st_agreed *then)
{
    st_entry next;

    if (!st_tx_agreed(tx, b->id, was))
        return false;
    next = entry_for(tx, was->account, was->booking, was->gpu);
    next.gpu_m = (int64_t)tasks * b->gpus * ST_WHOLE_M;
    next.from_ms = was->from_ms < tx->now ? was->from_ms : ST_MAX(to->from_ms, tx->now);
    next.to_ms = ST_MAX(to->to_ms, next.from_ms);
    st_ledger_agree(tx->ctl->billing->ledger, &next);
    *then = *was;
    then->gpu_m = next.gpu_m;
    then->from_ms = next.from_ms;
    then->to_ms = next.to_ms;
    then->agreed_ms = next.agreed_ms;
    then->keep_bp = next.keep_bp;
    return true;
}

int st_money_may_rebook(st_tx *tx, const st_booking *b, const st_window *to, int tasks,
                        const char *reader, st_err *err)
{
    st_agreed was, then;
    const wish w = {.account = st_tree_account(st_core_tree(tx->ctl->core), b->account)->name,
                    .windows = to,
                    .n = 1,
                    .was = &was,
                    .next = &then,
                    .reader = reader};

    return agree_anew(tx, b, to, tasks, &was, &then) ? admit(tx, &w, err) : 0;
}

bool st_money_moves_free(st_tx *tx, const st_booking *b, const st_window *to)
{
    st_agreed was, then;
    st_agreed_price before, after;

    if (!agree_anew(tx, b, to, b->tasks, &was, &then))
        return true;
    st_ledger_agreed_price(tx->ctl->billing->ledger, &was, tx->now, &before);
    st_ledger_agreed_price(tx->ctl->billing->ledger, &then, tx->now, &after);
    return before.fee == 0 && after.amount <= before.amount;
}
