/* Corrections and credits held against what they are about (bill/check_piece.h). */
#include "bill/check_piece.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

/* A piece as the entries up to here have left it. Amounts by what they grow with: what was had of GPUs, or time
 * alone. */
typedef struct check_piece {
    bool there; /* its usage is in the file */
    st_i128 of_gpu, of_time, paid_by_caps, credited;
    int64_t from_ms, to_ms, share, inside;
    bool lost;
    int64_t lost_from_ms, lost_share;
} check_piece;

struct st_billpieces {
    st_idmap *at; /* by entry, into `list` */
    ST_VEC(check_piece) list;
};

st_billpieces *st_billpieces_new(void)
{
    st_billpieces *p = st_xcalloc(1, sizeof(*p));

    p->at = st_idmap_new();
    return p;
}

void st_billpieces_free(st_billpieces *p)
{
    if (!p)
        return;
    st_idmap_free(p->at);
    st_vec_free(&p->list);
    free(p);
}

static check_piece *find(const st_billpieces *p, int64_t seq)
{
    int64_t at;

    return st_idmap_get(p->at, (uint64_t)seq, &at) ? &p->list.v[at] : NULL;
}

void st_billpieces_name(st_billpieces *p, int64_t seq)
{
    if (seq < 1 || find(p, seq))
        return;
    st_idmap_put(p->at, (uint64_t)seq, (int64_t)p->list.n);
    st_vec_push(&p->list, (check_piece){0});
}

static void charge_piece(check_piece *p, const st_entry *e)
{
    for (int i = 0; i < e->nlines; i++) {
        st_component what = e->lines[i].what;

        if (what == ST_PAY_CAP)
            p->paid_by_caps -= e->lines[i].amount;
        else if (what == ST_PAY_CPU || what == ST_PAY_RAM || what == ST_PAY_ENERGY)
            p->of_time += e->lines[i].amount;
        else
            p->of_gpu += e->lines[i].amount;
    }
}

/* What the lost part was charged: its part of each amount, and of what caps paid of them as much. */
static st_i128 charged_for(const check_piece *p, int64_t ms, int64_t share)
{
    st_i128 all = p->of_gpu + p->of_time, part = 0;

    if (all <= 0 || ms <= 0 || p->to_ms <= p->from_ms || p->paid_by_caps >= all)
        return 0;
    if (p->share > 0 && p->of_gpu > 0)
        part = p->of_gpu * ST_MIN(share, p->share) / p->share;
    if (p->of_time > 0)
        part += p->of_time * ST_MIN(ms, p->to_ms - p->from_ms) / (p->to_ms - p->from_ms);
    part = ST_MIN(part, all);
    return p->paid_by_caps > 0 ? part * (all - p->paid_by_caps) / all : part;
}

static int check_lost(check_piece *p, const st_entry *e, st_err *err)
{
    bool again = e->reason != NULL;

    if (again != p->lost || e->from_ms < p->from_ms || e->to_ms != ST_MAX(p->to_ms, e->from_ms) ||
        (again && (e->from_ms != p->lost_from_ms || e->lost != 0)) || e->lost > p->share)
        return st_fail(err, ST_ECORRUPT,
                       "what it says is lost is not a part of entry %lld, or "
                       "was lost before",
                       (long long)e->fixes);
    if (!again) {
        p->lost = true;
        p->lost_from_ms = e->from_ms;
        p->lost_share = e->lost;
    }
    st_i128 must = charged_for(p, e->to_ms - e->from_ms, p->lost_share);
    if (e->charged != must || e->credited != p->credited)
        return st_fail(err, ST_ECORRUPT,
                       "it says that the lost work was charged %lld and credited %lld, but the "
                       "entries before it give %lld and %lld",
                       (long long)e->charged, (long long)e->credited, (long long)must,
                       (long long)p->credited);
    p->credited += e->amount;
    return 0;
}

int st_billpieces_check(st_billpieces *pieces, const st_entry *e, st_err *err)
{
    bool usage = e->kind == ST_ENTRY_USAGE;
    check_piece *p;

    if (!usage && e->kind != ST_ENTRY_FIX && e->kind != ST_ENTRY_LOST)
        return 0;
    p = find(pieces, usage ? e->seq : e->fixes);
    if (p && usage)
        *p = (check_piece){.there = true,
                           .from_ms = e->from_ms,
                           .to_ms = e->to_ms,
                           .share = e->share,
                           .inside = e->inside};
    if (!p || !p->there)
        return 0;
    if (e->kind == ST_ENTRY_LOST)
        return check_lost(p, e, err);
    if (!usage && e->capped != ST_MAX(p->paid_by_caps, 0))
        return st_fail(err, ST_ECORRUPT, "it says that caps had paid %lld, but they paid %lld",
                       (long long)e->capped, (long long)p->paid_by_caps);
    if (!usage && __builtin_add_overflow(p->share, e->share, &p->share))
        return st_fail(err, ST_ECORRUPT, "the usage is more than can be counted");
    if (!usage && (__builtin_add_overflow(p->inside, e->inside, &p->inside) || p->inside < 0 ||
                   p->inside > p->share))
        return st_fail(err, ST_ECORRUPT,
                       "with it %lld of the %lld of entry %lld lay inside a floor",
                       (long long)p->inside, (long long)p->share, (long long)e->fixes);
    if (!usage && (e->share < 0 || e->held < 0 || e->cpu < 0 || e->ram < 0))
        p->to_ms = ST_MIN(p->to_ms, e->from_ms);
    charge_piece(p, e);
    return 0;
}
