/* What accounts and pools let be booked (book.h).
 *
 * Limits of an account are for all that it and those below it have booked, and those of every account above it hold as
 * well. Limits of a pool are for all bookings with places there. A limit that is lowered ends no booking: it is for what
 * is booked or changed from then on. */
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "core/book.h"

#define HOUR_M_MS 3600 /* milli-GPU-hours are GPU-milliseconds over this */

typedef struct edge {
    int64_t at_ms, by;
} edge;
typedef ST_VEC(edge) edges;

/* Where one ends another may begin. */
static int by_time(const void *pa, const void *pb)
{
    const edge *a = pa, *b = pb;
    if (a->at_ms != b->at_ms)
        return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
    return (a->by > b->by) - (a->by < b->by);
}

static void add_edges(edges *e, int64_t from_ms, int64_t to_ms, int64_t by)
{
    st_vec_push(e, ((edge){from_ms, by}));
    st_vec_push(e, ((edge){to_ms, -by}));
}

/* The most at one moment; frees the edges. */
static int64_t peak(edges *e)
{
    int64_t now = 0, most = 0;
    if (e->n > 1)
        qsort(e->v, e->n, sizeof *e->v, by_time);
    for (size_t i = 0; i < e->n; i++) {
        now += e->v[i].by;
        most = ST_MAX(most, now);
    }
    st_vec_free(e);
    return most;
}

/* ---- accounts ---------------------------------------------------------------------------- */

typedef struct tally {
    int64_t now_ms;
    st_window within; /* where windows at one moment count */
    int64_t gpu_ms;   /* ahead */
    edges edges;
} tally;

static void count(tally *t, int64_t from_ms, int64_t to_ms, int64_t gpus)
{
    from_ms = ST_MAX(from_ms, t->now_ms);
    if (to_ms <= from_ms)
        return;
    t->gpu_ms += gpus * (to_ms - from_ms);
    if (from_ms < t->within.to_ms && to_ms > t->within.from_ms)
        add_edges(&t->edges, ST_MAX(from_ms, t->within.from_ms), to_ms, 1);
}

static void count_all(const st_core *core, int32_t account, const st_booking *b, st_window w,
                      const st_booked_vec *more, tally *ret)
{
    *ret = (tally){.now_ms = core->now, .within = w};
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *other = core->bookings.v[i];
        if (other->id != b->id && !other->over &&
            st_tree_within(core->tree, other->account, account))
            count(ret, other->from_ms, other->to_ms, (int64_t)other->tasks * other->gpus);
    }
    for (size_t i = 0; more && i < more->n; i++) { /* of the same account */
        const st_booked *row = &more->v[i];
        count(ret, row->from_ms + st_core_book_lead_ms(core),
              row->to_ms - st_core_book_tail_ms(core), row->gpu_m / ST_WHOLE_M);
    }
    count(ret, w.from_ms, w.to_ms, (int64_t)b->tasks * b->gpus);
}

static int64_t bound_of(const st_book_limits *l, st_book_limit limit)
{
    switch (limit) {
#define X(id, field, key, kind) \
    case id:                    \
        return l->field;
        ST_BOOK_LIMIT_TABLE(X)
#undef X
    default:
        return ST_UNSET;
    }
}

static bool over_in(const st_core *core, int32_t account, const st_booking *b, st_window w,
                    const st_booked_vec *more, st_book_over *ret)
{
    const st_book_limits *l = &st_tree_account(core->tree, account)->book_limits;
    int64_t would[ST_BOOK_LIMIT_COUNT] = {
        [ST_BOOK_LIMIT_LENGTH] = w.to_ms - w.from_ms, [ST_BOOK_LIMIT_LEAD] = w.from_ms - core->now};
    if (l->concurrent != ST_UNSET || l->hours_m != ST_UNSET) {
        tally t;
        count_all(core, account, b, w, more, &t);
        would[ST_BOOK_LIMIT_HOURS] = (t.gpu_ms + HOUR_M_MS - 1) / HOUR_M_MS;
        would[ST_BOOK_LIMIT_CONCURRENT] = peak(&t.edges);
    }
    for (int k = 0; k < ST_BOOK_LIMIT_COUNT; k++) {
        int64_t bound = bound_of(l, (st_book_limit)k);
        if (bound == ST_UNSET || would[k] <= bound)
            continue;
        *ret = (st_book_over){.account = account,
                              .pool = -1,
                              .limit = (st_book_limit)k,
                              .would = would[k],
                              .bound = bound};
        return true;
    }
    return false;
}

bool st_book_over_limit(const st_core *core, const st_booking *b, st_window w,
                        const st_booked_vec *more, st_book_over *ret)
{
    for (int32_t i = b->account; i > ST_ROOT && !ST_BROKEN(BOOK_QUOTA);
         i = st_tree_account(core->tree, i)->parent)
        if (over_in(core, i, b, w, more, ret))
            return true;
    return false;
}

/* ---- pools ------------------------------------------------------------------------------- */

/* GPUs of the type that the pool has, whatever becomes of its nodes, and the most that others have booked of them while
 * the booking is there. */
static int64_t booked_in(const st_core *core, const st_booking *b, int32_t pool, int64_t *ret_gpus)
{
    edges e = {0};
    *ret_gpus = 0;
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (node->pool != pool || node->type != b->type || node->state == ST_NODE_REMOVED)
            continue;
        *ret_gpus += node->ndevs;
        const st_slot_vec *v = st_slots_of(core->slots, node->id);
        for (size_t k = 0; v && k < v->n; k++) {
            const st_slot *s = &v->v[k];
            if (s->booking != b->id && s->close_ms < b->clear_ms && s->clear_ms > b->close_ms)
                add_edges(&e, ST_MAX(s->close_ms, b->close_ms), s->clear_ms,
                          __builtin_popcount(s->devs));
        }
    }
    return peak(&e);
}

bool st_book_over_pool(const st_core *core, const st_booking *b, int32_t pool, st_book_over *ret)
{
    const st_pool_rules *rules = &core->fleet->pools.v[pool].rules;
    *ret = (st_book_over){.account = -1, .pool = pool};
    if (ST_BROKEN(BOOK_POOL))
        return false;
    if (rules->book_horizon_ms > 0 && b->from_ms - core->now > rules->book_horizon_ms) {
        ret->limit = ST_BOOK_LIMIT_LEAD;
        ret->would = b->from_ms - core->now;
        ret->bound = rules->book_horizon_ms;
        return true;
    }
    if (rules->book_share_m == 0)
        return false;
    int64_t gpus, booked = booked_in(core, b, pool, &gpus);
    ret->limit = ST_BOOK_LIMIT_CONCURRENT;
    ret->would = booked + (int64_t)b->tasks * b->gpus;
    ret->bound = rules->book_share_m;
    return ret->would * 1000 > rules->book_share_m * gpus;
}

/* ---- what is said ------------------------------------------------------------------------ */

static void amount(st_book_limit limit, int64_t v, char ret[ST_FMT_MAX])
{
    if (limit == ST_BOOK_LIMIT_HOURS)
        st_fmt_milli(ret, v);
    else if (limit == ST_BOOK_LIMIT_CONCURRENT)
        snprintf(ret, ST_FMT_MAX, "%lld", (long long)v);
    else
        st_fmt_duration(ret, v);
}

/* What all bookings of a pool have is nobody's to know. */
static void pool_text(const st_core *core, const st_book_over *over, char *ret, size_t size)
{
    const char *name = core->fleet->pools.v[over->pool].name;
    char would[ST_FMT_MAX], bound[ST_FMT_MAX];
    if (over->limit == ST_BOOK_LIMIT_LEAD) {
        snprintf(ret, size, "pool %s can be booked up to %s ahead; this window begins in %s", name,
                 st_fmt_duration(bound, over->bound), st_fmt_duration(would, over->would));
        return;
    }
    snprintf(ret, size,
             "bookings may have %s %% of the GPUs of pool %s at one time, and too few of these are "
             "left",
             st_fmt_milli(bound, over->bound * 100), name);
}

const char *st_core_book_over_text(const st_core *core, const st_book_over *over, int32_t reader,
                                   char ret[ST_BOOK_OVER_TEXT])
{
    char whose[ST_NAME_MAX + 32] = "an account above yours", would[ST_FMT_MAX], bound[ST_FMT_MAX];
    if (over->pool >= 0) {
        pool_text(core, over, ret, ST_BOOK_OVER_TEXT);
        return ret;
    }
    bool known = st_tree_within(core->tree, over->account, reader);
    if (known)
        snprintf(whose, sizeof whose, "account %s",
                 st_tree_account(core->tree, over->account)->name);
    amount(over->limit, over->would, would);
    amount(over->limit, over->bound, bound);
    switch (over->limit) {
    case ST_BOOK_LIMIT_LENGTH:
        snprintf(ret, ST_BOOK_OVER_TEXT, "%s may book windows of up to %s; this one has %s", whose,
                 bound, would);
        break;
    case ST_BOOK_LIMIT_LEAD:
        snprintf(ret, ST_BOOK_OVER_TEXT, "%s may book up to %s ahead; this window begins in %s",
                 whose, bound, would);
        break;
    default: /* what others below it have is not the reader's to know */
        if (!known)
            snprintf(ret, ST_BOOK_OVER_TEXT, "%s would have more %s than it may", whose,
                     over->limit == ST_BOOK_LIMIT_HOURS ? "GPU-hours booked ahead"
                                                        : "bookings at one time");
        else if (over->limit == ST_BOOK_LIMIT_HOURS)
            snprintf(ret, ST_BOOK_OVER_TEXT,
                     "%s may have %s GPU-hours booked ahead; with this window it would have %s",
                     whose, bound, would);
        else
            snprintf(ret, ST_BOOK_OVER_TEXT,
                     "%s may have %s bookings at one time; with this window it would have %s",
                     whose, bound, would);
    }
    return ret;
}
