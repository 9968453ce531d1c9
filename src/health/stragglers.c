/* Stragglers (health/stragglers.h). */
#include "health/stragglers.h"

#include <stdlib.h>

#include "base/mem.h"

#define LESS_M 100 /* thousandths less than the middle one that count */

static int64_t busy_of(const st_rank_use *r)
{
    return r->busy * 1000 / r->seen;
}

static int64_t waits_of(const st_rank_use *r)
{
    return ST_MAX(r->busy - r->sm, 0) * 1000 / r->seen;
}

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return a < b ? -1 : a > b;
}

static int64_t middle(const st_rank_use *ranks, int n, int64_t (*of)(const st_rank_use *))
{
    ST_CLEANUP(st_freep) int64_t *v = st_xcalloc((size_t)n, sizeof *v);

    for (int i = 0; i < n; i++)
        v[i] = of(&ranks[i]);
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

bool st_straggler_find(const st_rank_use *ranks, int n, st_straggler *ret)
{
    st_straggler s = {.rank = -1};
    int found = 0;

    if (n < ST_STRAGGLER_RANKS)
        return false;
    for (int i = 0; i < n; i++)
        if (ranks[i].seen < ST_STRAGGLER_SEEN || ranks[i].busy < 0 || ranks[i].sm < 0)
            return false; /* of a gang that is not seen whole nobody knows who is late */
    s.others_busy_m = middle(ranks, n, busy_of);
    s.others_waits_m = middle(ranks, n, waits_of);
    for (int i = 0; i < n; i++) {
        if (waits_of(&ranks[i]) + LESS_M > s.others_waits_m)
            continue;
        found++;
        s.rank = i;
        s.busy_m = busy_of(&ranks[i]);
        s.waits_m = waits_of(&ranks[i]);
        s.device = s.busy_m + LESS_M > s.others_busy_m;
    }
    if (found != 1)
        return false;
    *ret = s;
    return true;
}
