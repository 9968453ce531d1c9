/*
 * The fluid division of a capacity over a tree of accounts: what everyone
 * would hold if GPUs could be cut at will. `stint sim shares` prints it and the
 * core steers by it; both call st_share_divide, once per resource.
 *
 * At every level, with what the parent got:
 *   1. each child gets its guarantee, up to its demand; guarantees that do not
 *      fit shrink in proportion, and what a child does not want of its shrunken
 *      guarantee returns to the others;
 *   2. what remains goes to the highest priority first, within one priority by
 *      weight, up to demand and max. Weight 0 borrows nothing.
 * doc/reference/shares.md says the same for people, with an example.
 */
#ifndef ST_SHARE_DIVIDE_H
#define ST_SHARE_DIVIDE_H

#include <stdint.h>

#include "base/macros.h"

/* Above this a double no longer tells wholes and their remainders apart safely. */
#define ST_DIVIDE_AMOUNT_MAX 1e12

/* A weight is 0 or between these. */
#define ST_DIVIDE_WEIGHT_MIN 1e-9
#define ST_DIVIDE_WEIGHT_MAX 1e12

/* What the weights divide: only what is held above the guarantee, or everything held. */
#define ST_SHARE_BASIS_TABLE(X)       \
    X(ST_COUNTS_BORROWED, "borrowed") \
    X(ST_COUNTS_TOTAL, "total")

typedef enum {
#define ST_BASIS_ENUM(name, string) name,
    ST_SHARE_BASIS_TABLE(ST_BASIS_ENUM)
#undef ST_BASIS_ENUM
} st_share_counts;

typedef struct st_divide_in {
    int parent;       /* index of the parent, -1 at the top */
    int priority;     /* higher goes first */
    const char *name; /* breaks ties, by bytes; NULL counts as "" and then the index decides */
    double guarantee; /* finite */
    double max;       /* INFINITY: no ceiling */
    double demand;    /* of a leaf, INFINITY allowed; of an inner account ignored */
    double weight;
} st_divide_in;

typedef struct st_divide_out {
    double share;
    int64_t whole; /* less than 1 away from share; the children's add up to the parent's */
} st_divide_out;

/* Fills ret[0..n-1]. The accounts may come in any order and the order changes no bit of the
 * result as long as names differ; parents must not form a cycle. What nobody may or wants to take
 * is *ret_left, and in whole units *ret_left_whole; either may be NULL. O(n log n). */
void st_share_divide(double capacity, st_share_counts counts, const st_divide_in *in, int n,
                     st_divide_out *ret, double *ret_left, int64_t *ret_left_whole);

#endif
