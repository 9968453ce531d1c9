/* What of borrowed work lies inside floors, reckoned anew: what the meter says (meter/inside.c) is held against this.
 *
 * Guaranteed work first; then those that borrow, account by account and the oldest job first, each as much as there is room
 * for at every account above it that has a floor. */
#ifndef ST_CHECK_INSIDE_H
#define ST_CHECK_INSIDE_H

#include "model/tree.h"

typedef struct st_inside {
    uint64_t job;
    int32_t account, type; /* type -1: no GPU */
    int64_t gpu_m;
    bool guaranteed;
    int64_t inside_m; /* to be found out */
} st_inside;

/* Puts the rows in order. */
void st_inside_reckon(const st_tree *tree, st_inside *rows, size_t n);

#endif
