/* Whether the fleet carries what is booked beside what is guaranteed, at every moment of a window.
 *
 * What an account must be able to have is its *need*: its guarantee, or what it has booked and the needs of those below
 * it, whichever is more. So a booking uses its account's own guarantee first, and beyond that what nobody was promised.
 *     need(a) = max(guarantee(a), booked by a + sum of need(child))
 * by GPU type, CPU and RAM, and for GPUs in all as in admit/admit.h. The need of the whole fleet and a reserve for nodes
 * that fail must be there.
 *
 * While bookings run, the rest of the accounts' needs is what they are promised elsewhere (st_promises_left). */
#ifndef ST_CALENDAR_PROMISES_H
#define ST_CALENDAR_PROMISES_H

#include "model/tree.h"

/* One booking, as far as it counts here. */
typedef struct st_booked {
    int32_t account, type;
    int64_t from_ms, to_ms;
    int64_t gpu_m, cpu_m, ram_mib;
} st_booked;

typedef ST_VEC(st_booked) st_booked_vec;

/* What there is, and how much of it may be booked. */
typedef struct st_carrier {
    const st_tree *tree;
    int types;
    st_use capacity;
    int64_t reserve_m[ST_TYPES_MAX]; /* kept for nodes that fail */
    int64_t share_m;                 /* of a type all bookings may have, in milli */
    int64_t account_share_m; /* ... and those of one account below the cluster, with all below it */
    const st_account_spec *spec; /* one account's guarantee as it would be; NULL: as they are */
} st_carrier;

typedef enum st_tight_why {
    ST_TIGHT_NOT,
    ST_TIGHT_FLOORS, /* guarantees of others, and the reserve */
    ST_TIGHT_SHARE,
    ST_TIGHT_ACCOUNT_SHARE,
} st_tight_why;

typedef struct st_tight {
    st_tight_why why;
    int64_t at_ms; /* the first moment */
    st_dim dim;
    int32_t type; /* -1: over all types */
    int64_t need, have;
} st_tight;

/* The first moment in [from, to) at which the bookings are too many. */
st_tight st_promises_check(const st_carrier *c, const st_booked_vec *booked, int64_t from_ms,
                           int64_t to_ms);

/* What each account is promised beside the bookings, which all run now: ret[tree->accounts.n]. */
void st_promises_left(const st_tree *tree, int types, const st_booked_vec *booked, st_quota *ret);

#endif
