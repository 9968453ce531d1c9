/* The shortest prefix that suffices, then every member that can go back goes back. */
#include "core/minimal.h"

#include "base/macros.h"
#include "base/mutant.h"

/* Move from `have` candidates out to `want`. */
static void shift(const st_reclaim_ops *ops, const int *order, int have, int want)
{
    for (; have < want; have++)
        ops->take(ops->ctx, order[have]);
    for (; have > want; have--)
        ops->put_back(ops->ctx, order[have - 1]);
}

int st_reclaim_minimal(const st_reclaim_ops *ops, const int *order, int n, int *ret)
{
    /* Double the prefix until it fits: the answer is often near the front. */
    int have = 0, lo = 0, hi = 0; /* fits with hi out, not with less than lo */
    while (!ops->fits(ops->ctx)) {
        if (have == n) {
            shift(ops, order, n, 0);
            return -1;
        }
        lo = have + 1;
        hi = ST_MIN(2 * have + 1, n);
        shift(ops, order, have, hi);
        have = hi;
    }
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        shift(ops, order, have, mid);
        have = mid;
        if (ops->fits(ops->ctx))
            hi = mid;
        else
            lo = mid + 1;
    }
    shift(ops, order, have, hi);

    /* From the most deserving downwards: who is not needed stays. */
    int kept = 0;
    for (int i = hi - 1; i >= 0; i--) {
        ops->put_back(ops->ctx, order[i]);
        if (!ST_BROKEN(MINIMAL) && ops->fits(ops->ctx))
            continue;
        ops->take(ops->ctx, order[i]);
        ret[hi - 1 - kept++] = order[i];
    }
    for (int i = 0; i < kept; i++)
        ret[i] = ret[hi - kept + i];
    return kept;
}
