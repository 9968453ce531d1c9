/* Who must yield: from candidates in order of eviction to a minimal set.
 *
 * Pure set arithmetic; what "fits" means is the caller's business, as long as it is monotone:
 * with more candidates out, what fitted still fits. Then the set returned is minimal: put any
 * one of its members back and the claimant no longer fits. */
#ifndef ST_CORE_MINIMAL_H
#define ST_CORE_MINIMAL_H

#include <stdbool.h>

typedef struct st_reclaim_ops {
    void *ctx;
    void (*take)(void *ctx, int cand); /* out with it, in thought */
    void (*put_back)(void *ctx, int cand);
    bool (*fits)(void *ctx); /* the claimant, with what is out now */
} st_reclaim_ops;

/* `order` lists candidates, first to go first; all are in. Writes the chosen ones in that
 * order to ret (room for n) and returns how many, or -1 when not even all of them would do.
 * The chosen ones are out when it returns, and all are in when it failed. */
int st_reclaim_minimal(const st_reclaim_ops *ops, const int *order, int n, int *ret);

#endif
