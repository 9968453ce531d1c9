/* What of borrowed work lies inside floors, and is paid for with them.
 *
 * A job is guaranteed as a whole or not at all. One that is not may still stand in a floor that nobody else uses: a gang larger
 * than the floor, or one that lacks CPU inside it. That part costs what guaranteed work does, or the floor would be paid twice.
 *
 * An account with a floor has room for what its guaranteed work leaves. What was promised of a type is kept for that type; the
 * rest is of any. A stay has as much as there is room for at every account above it that has a floor; where none has, nothing.
 * Accounts are served in order, and in each the oldest job first: who has what follows from who is there, not from how that
 * came about. Branches of the tree have nothing to do with each other. */
#include <stdlib.h>
#include <string.h>

#include "base/mutant.h"
#include "meter/state.h"

static limit *limit_of(const st_meter *m, int32_t id)
{
    int32_t at = m->accounts.v[id].limit;
    return at > 0 ? &m->limits.v[at - 1] : NULL;
}

static bool has_limit(const st_meter *m, int32_t id)
{
    for (int32_t a = id; a >= 0; a = m->accounts.v[a].parent)
        if (limit_of(m, a))
            return true;
    return false;
}

/* The account below the root that it belongs to. */
static int32_t branch_of(const st_meter *m, int32_t id)
{
    for (int32_t up; (up = m->accounts.v[id].parent) > ST_ROOT;)
        id = up;
    return id;
}

static void use(st_meter *m, const stay *s, int64_t gpu_m)
{
    for (int32_t a = s->account; a >= 0; a = m->accounts.v[a].parent) {
        limit *l = limit_of(m, a);
        if (!l)
            continue;
        int64_t was = l->use_m[s->type], is = was + gpu_m;
        l->use_m[s->type] = is;
        l->sum_m += ST_MAX(is, l->type_m[s->type]) - ST_MAX(was, l->type_m[s->type]);
    }
}

static int64_t room(const st_meter *m, const stay *s)
{
    int64_t least = s->gpu_m;
    bool any = false;
    for (int32_t a = s->account; a >= 0 && least > 0; a = m->accounts.v[a].parent) {
        const limit *l = limit_of(m, a);
        if (!l)
            continue;
        any = true;
        int64_t typed = l->type_m[s->type] - l->use_m[s->type], rest = l->gpu_m - l->sum_m;
        least = ST_MIN(least, ST_MAX(typed, 0) + ST_MAX(rest, 0));
    }
    return any && !ST_BROKEN(METER_FLOOR) ? least : 0;
}

static int order(const st_meter *m, const stay *a, const stay *b)
{
    int32_t x = branch_of(m, a->account), y = branch_of(m, b->account);
    if (x != y)
        return x < y ? -1 : 1;
    if (a->account != b->account)
        return a->account < b->account ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

/* Where a stay is among those that borrow, or would be. */
static size_t place_of(const st_meter *m, const stay *s)
{
    size_t lo = 0, hi = m->borrow.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (order(m, m->borrow.v[mid], s) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void set_inside(st_meter *m, stay *s, int64_t inside_m)
{
    if (s->inside_m == inside_m)
        return;
    meter_deal_out_stay(m, s);
    meter_burst(m, s, -1);
    s->inside_m = inside_m;
    meter_burst(m, s, 1);
}

/* Those of a run that is a branch, or all of them: what they had is given out again. */
static void deal(st_meter *m, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (m->borrow.v[i]->inside_m > 0)
            use(m, m->borrow.v[i], -m->borrow.v[i]->inside_m);
    const stay *full = NULL; /* nothing is left for stays like this one */
    for (size_t i = from; i < to; i++) {
        stay *s = m->borrow.v[i];
        bool none = full && full->account == s->account && full->type == s->type;
        int64_t inside_m = none ? 0 : room(m, s);
        if (inside_m > 0)
            use(m, s, inside_m);
        else
            full = s;
        set_inside(m, s, inside_m);
    }
}

static void deal_branch(st_meter *m, int32_t id)
{
    int32_t branch = branch_of(m, id);
    size_t from = 0, to = m->borrow.n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (branch_of(m, m->borrow.v[mid]->account) < branch)
            from = mid + 1;
        else
            to = mid;
    }
    for (to = from; to < m->borrow.n && branch_of(m, m->borrow.v[to]->account) == branch;)
        to++;
    deal(m, from, to);
}

static bool counts(const st_meter *m, const stay *s)
{
    return m->inside && s->class != ST_CLASS_BOOKED && s->type >= 0 && has_limit(m, s->account);
}

void meter_inside_enter(st_meter *m, stay *s)
{
    if (!counts(m, s))
        return;
    if (s->class == ST_CLASS_GUARANTEED)
        use(m, s, s->gpu_m);
    else
        st_vec_insert(&m->borrow, place_of(m, s), s);
    deal_branch(m, s->account);
}

void meter_inside_leave(st_meter *m, stay *s)
{
    if (!counts(m, s))
        return;
    if (s->class == ST_CLASS_GUARANTEED) {
        use(m, s, -s->gpu_m);
    } else {
        use(m, s, -s->inside_m);
        set_inside(m, s, 0);
        st_vec_remove(&m->borrow, place_of(m, s));
    }
    deal_branch(m, s->account);
}

int64_t meter_inside_open(const stay *s, int64_t share)
{
    return s->gpu_m > 0 ? plus(s->in_acc, part(share - s->in_mark, s->inside_m, s->gpu_m)) : 0;
}

/* ---- floors --------------------------------------------------------------------------------- */

static int in_order(const void *a, const void *b, void *ctx)
{
    return order(ctx, *(stay *const *)a, *(stay *const *)b);
}

void meter_inside_derive(st_meter *m)
{
    st_vec_clear(&m->borrow);
    for (size_t i = 0; i < m->accounts.n; i++)
        m->accounts.v[i].limit = 0;
    for (size_t i = 0; i < m->limits.n; i++) {
        limit *l = &m->limits.v[i];
        memset(l->use_m, 0, sizeof l->use_m);
        l->sum_m = 0;
        for (int t = 0; t < ST_TYPES_MAX; t++)
            l->sum_m += l->type_m[t];
        m->accounts.v[l->account].limit = (int32_t)i + 1;
    }
    for (size_t i = 0; i < m->open.n; i++) {
        stay *s = m->open.v[i];
        bool borrows = counts(m, s) && s->class != ST_CLASS_GUARANTEED;
        if (!borrows)
            set_inside(m, s, 0);
        if (borrows)
            st_vec_push(&m->borrow, s);
        if (counts(m, s)) /* what borrows has is taken off again when it is dealt out */
            use(m, s, borrows ? s->inside_m : s->gpu_m);
    }
    if (m->borrow.n > 1)
        qsort_r(m->borrow.v, m->borrow.n, sizeof *m->borrow.v, in_order, m);
    deal(m, 0, m->borrow.n);
}

void meter_inside_floors(st_meter *m, const st_tree *tree)
{
    if (!m->inside)
        return;
    st_vec_clear(&m->limits);
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_quota *floor = &tree->accounts.v[i]->floor;
        limit l = {.account = (int32_t)i, .gpu_m = st_quota_gpu_m(floor)};
        if (!st_quota_has_gpu(floor))
            continue;
        for (int t = 0; t < ST_TYPES_MAX; t++)
            l.type_m[t] = ST_MAX(floor->type_m[t], 0);
        st_vec_push(&m->limits, l);
    }
    meter_inside_derive(m);
}

void st_meter_inside(st_meter *m, const st_tree *tree, int64_t now)
{
    st_meter_advance(m, now);
    meter_learn_tree(m, tree);
    m->inside = true;
    meter_inside_floors(m, tree);
}

bool st_meter_knows_inside(const st_meter *m)
{
    return m->inside;
}
