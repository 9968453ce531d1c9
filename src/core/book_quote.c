/* Whether a window can be had, and what could be had instead (book.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/book.h"

#define LOOKS_MAX 8 /* windows that are tried for an alternative, either way */

const char *st_book_why_name(st_book_why why)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_BOOK_TABLE(X)
#undef X
    };
    ST_ASSERT(why < ST_BOOK_COUNT);
    return names[why];
}

/* What a victim is given to leave, in the worst case. */
int64_t st_core_book_lead_ms(const st_core *core)
{
    return core->policy.notice_ms + st_core_longest_grace_ms(core) + ST_STOP_MS;
}

/* Notice is given before the end. */
int64_t st_core_book_tail_ms(const st_core *core)
{
    return st_core_longest_grace_ms(core) + ST_STOP_MS;
}

void st_book_set_window(const st_core *core, st_booking *b, st_window w)
{
    b->from_ms = w.from_ms;
    b->to_ms = w.to_ms;
    b->close_ms = w.from_ms - st_core_book_lead_ms(core);
    b->clear_ms = w.to_ms + st_core_book_tail_ms(core);
}

st_booked st_book_row(const st_booking *b)
{
    return (st_booked){.account = b->account,
                       .type = b->type,
                       .from_ms = b->close_ms,
                       .to_ms = b->clear_ms,
                       .gpu_m = (int64_t)b->tasks * b->gpus * ST_WHOLE_M,
                       .cpu_m = b->all_cpu_m,
                       .ram_mib = b->all_ram_mib};
}

void st_book_list(const st_core *core, uint64_t but, int64_t from_ms, int64_t to_ms,
                  st_booked_vec *ret)
{
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        if (b->id != but && b->close_ms < to_ms && b->clear_ms > from_ms)
            st_vec_push(ret, st_book_row(b));
    }
}

/* Capacity as it is without fences: ready nodes. */
void st_book_carrier(const st_core *core, st_carrier *ret)
{
    const st_policy *p = &core->policy;
    int largest[ST_TYPES_MAX] = {0};
    *ret = (st_carrier){.tree = core->tree,
                        .types = (int)core->fleet->types.n,
                        .share_m = p->booking_share_m,
                        .account_share_m = p->booking_account_share_m};
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (node->state != ST_NODE_READY)
            continue;
        ret->capacity.cpu_m += node->cpu_m;
        ret->capacity.ram_mib += node->ram_mib;
        if (node->type < 0)
            continue;
        int gpus = node->ndevs - __builtin_popcount(node->out);
        ret->capacity.gpu_m += gpus * ST_WHOLE_M;
        ret->capacity.type_m[node->type] += gpus * ST_WHOLE_M;
        largest[node->type] = ST_MAX(largest[node->type], gpus);
    }
    for (int t = 0; t < ST_TYPES_MAX; t++)
        ret->reserve_m[t] = p->booking_reserve * largest[t] * ST_WHOLE_M;
}

static st_book_why check_window(const st_core *core, st_window w)
{
    if (w.from_ms < core->now)
        return ST_BOOK_PAST;
    if (w.to_ms <= w.from_ms || w.to_ms - w.from_ms > core->policy.booking_length_ms)
        return ST_BOOK_LENGTH;
    if (w.from_ms - core->now > core->policy.booking_horizon_ms)
        return ST_BOOK_HORIZON;
    return ST_BOOK_OK;
}

/* Milli-GPU of those whom the plan would put out, as things are: of all, and of the booking's account and those below. */
static void count_displaced(const st_core *core, const st_booking *b, st_book_quote *ret)
{
    for (int t = 0; t < b->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[b->plan[t].node];
        for (size_t i = 0; i < node->residents.n; i++) {
            const st_resident *r = &node->residents.v[i];
            const st_job *job = r->job;
            if (!st_job_on_devices(job) || job->class != ST_CLASS_BURSTABLE ||
                st_job_end_ms(job, core->now) <= b->from_ms)
                continue;
            int gpus = __builtin_popcount(job->grants[r->task].devs & b->plan[t].devs);
            ret->displaces_m += gpus * ST_WHOLE_M;
            if (st_tree_within(core->tree, job->account, b->account))
                ret->displaces_own_m += gpus * ST_WHOLE_M;
        }
    }
}

/* Why there is none: whether there would be one but for the limits of a pool. */
static st_book_why no_place(st_core *core, const st_booking *b, st_book_over *ret)
{
    bool over = false;
    for (int32_t p = 0; p < (int32_t)core->fleet->pools.n && !over; p++)
        over = (b->pool < 0 || b->pool == p) && st_pool_there(&core->fleet->pools.v[p]) &&
               st_book_over_pool(core, b, p, ret);
    if (!over)
        return ST_BOOK_PLACE;
    ST_CLEANUP(st_freep) st_grant *plan = st_xcalloc((size_t)b->tasks, sizeof *plan);
    return st_book_find_plan(core, b, NULL, NULL, true, plan) ? ST_BOOK_QUOTA : ST_BOOK_PLACE;
}

/* Whether another start, fewer GPUs or another type might help. */
static bool may_help(const st_book_quote *q)
{
    if (q->why == ST_BOOK_QUOTA)
        return q->over.limit == ST_BOOK_LIMIT_HOURS || q->over.limit == ST_BOOK_LIMIT_CONCURRENT;
    return q->why >= ST_BOOK_SHARE;
}

st_book_why st_book_fit(st_core *core, st_booking *b, st_window w, const st_booked_vec *more,
                        st_book_quote *ret)
{
    *ret = (st_book_quote){.why = check_window(core, w),
                           .at_ms = w.from_ms,
                           .earlier_ms = ST_TIME_NEVER,
                           .later_ms = ST_TIME_NEVER};
    if (ret->why != ST_BOOK_OK)
        return ret->why;
    if (st_book_over_limit(core, b, w, more, &ret->over))
        return ret->why = ST_BOOK_QUOTA;
    st_book_set_window(core, b, w);
    st_grant *old = b->plan;
    b->plan = st_xcalloc((size_t)b->tasks, sizeof *b->plan);
    if (!st_book_find_plan(core, b, NULL, NULL, false, b->plan)) {
        free(b->plan);
        b->plan = old;
        return ret->why = no_place(core, b, &ret->over);
    }
    free(old);
    st_book_add_up(core, b);
    count_displaced(core, b, ret);
    st_booked_vec rows = {0};
    st_carrier c;
    st_book_carrier(core, &c);
    st_book_list(core, b->id, b->close_ms, b->clear_ms, &rows);
    for (size_t i = 0; more && i < more->n; i++)
        st_vec_push(&rows, more->v[i]);
    st_vec_push(&rows, st_book_row(b));
    st_tight tight = st_promises_check(&c, &rows, b->close_ms, b->clear_ms);
    st_vec_free(&rows);
    static const st_book_why why_of[] = {[ST_TIGHT_NOT] = ST_BOOK_OK,
                                         [ST_TIGHT_FLOORS] = ST_BOOK_FLOORS,
                                         [ST_TIGHT_SHARE] = ST_BOOK_SHARE,
                                         [ST_TIGHT_ACCOUNT_SHARE] = ST_BOOK_ACCOUNT};
    ret->why = why_of[tight.why];
    if (tight.why == ST_TIGHT_NOT)
        return ret->why;
    ret->at_ms = ST_MAX(tight.at_ms, w.from_ms);
    ret->need_m = tight.need;
    ret->have_m = tight.have;
    return ret->why;
}

/* ---- alternatives ------------------------------------------------------------------------ */

static bool fits(st_core *core, const st_booking *like, st_window w, const st_booked_vec *more)
{
    st_booking b = *like;
    st_book_quote q;
    b.plan = NULL;
    bool ok = st_book_fit(core, &b, w, more, &q) == ST_BOOK_OK;
    free(b.plan);
    return ok;
}

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

/* Where other bookings end or begin the answer may change: there, from near to far. */
void st_book_starts(st_core *core, const st_booking *like, st_window w, const st_booked_vec *more,
                    st_book_quote *ret)
{
    int64_t length_ms = w.to_ms - w.from_ms;
    int64_t lead_ms = st_core_book_lead_ms(core), tail_ms = st_core_book_tail_ms(core);
    ST_VEC(int64_t) starts = {0};
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        st_vec_push(&starts, b->clear_ms + lead_ms);
        st_vec_push(&starts, b->close_ms - tail_ms - length_ms);
    }
    for (size_t i = 0; i < core->placed.n; i++) { /* and where those end who will not yield */
        int64_t end_ms = st_job_end_ms(core->placed.v[i], core->now);
        if (end_ms != ST_TIME_NEVER && core->placed.v[i]->class == ST_CLASS_GUARANTEED)
            st_vec_push(&starts, end_ms + lead_ms);
    }
    if (starts.n > 1)
        qsort(starts.v, starts.n, sizeof *starts.v, by_value);
    int looks = 0;
    for (size_t i = 0; i < starts.n && looks < LOOKS_MAX && ret->later_ms == ST_TIME_NEVER; i++) {
        int64_t at = starts.v[i];
        if (at <= w.from_ms || (i > 0 && at == starts.v[i - 1]))
            continue;
        looks++;
        if (fits(core, like, (st_window){at, at + length_ms}, more))
            ret->later_ms = at;
    }
    looks = 0;
    for (size_t i = starts.n; i-- > 0 && looks < LOOKS_MAX && ret->earlier_ms == ST_TIME_NEVER;) {
        int64_t at = starts.v[i];
        if (at >= w.from_ms || at < core->now || (i > 0 && at == starts.v[i - 1]))
            continue;
        looks++;
        if (fits(core, like, (st_window){at, at + length_ms}, more))
            ret->earlier_ms = at;
    }
    st_vec_free(&starts);
}

static void find_others(st_core *core, const st_booking *like, st_window w,
                        const st_booked_vec *more, st_book_quote *ret)
{
    int lo = 0, hi = like->tasks; /* lo fit, hi do not */
    while (hi - lo > 1) {
        st_booking b = *like;
        b.tasks = lo + (hi - lo) / 2;
        if (fits(core, &b, w, more))
            lo = b.tasks;
        else
            hi = b.tasks;
    }
    ret->fewer = lo;
    for (int32_t t = 0; t < (int32_t)core->fleet->types.n; t++) {
        st_booking b = *like;
        b.type = t;
        if (t != like->type && fits(core, &b, w, more))
            ret->types |= 1u << t;
    }
}

/* ---- the question ------------------------------------------------------------------------ */

int st_core_quote(st_core *core, const st_booking_spec *spec, const st_window *windows, size_t n,
                  st_book_quote *ret, st_err *err)
{
    st_booking b;
    int rc = st_book_from_spec(core, spec, &b, err);
    if (rc < 0)
        return rc;
    if (n == 0 || n > ST_WINDOWS_MAX)
        return st_fail(err, ST_ERANGE, "a booking has 1 to %d windows, not %zu", ST_WINDOWS_MAX, n);
    st_booked_vec more = {0};
    ST_VEC(st_booking) tried = {0};
    for (size_t i = 0; i < n; i++) {
        b.id = UINT64_MAX - i; /* nobody's number */
        b.plan = NULL;
        if (st_book_fit(core, &b, windows[i], &more, &ret[i]) == ST_BOOK_OK) {
            st_vec_push(&more, st_book_row(&b));
            st_book_add_slots(core, &b); /* those behind it find its devices taken */
            st_vec_push(&tried, b);
            continue;
        }
        free(b.plan);
        b.plan = NULL;
        if (may_help(&ret[i])) {
            st_book_starts(core, &b, windows[i], &more, &ret[i]);
            find_others(core, &b, windows[i], &more, &ret[i]);
        }
    }
    for (size_t i = 0; i < tried.n; i++) {
        st_book_remove_slots(core, &tried.v[i]);
        free(tried.v[i].plan);
    }
    st_vec_free(&tried);
    st_vec_free(&more);
    return 0;
}
