/* Private to place: the scratch memory and the steps of one placement. */
#ifndef ST_PLACE_PLACER_H
#define ST_PLACE_PLACER_H

#include "place/place.h"

typedef struct st_cand {
    int32_t node;
    int32_t room;  /* tasks it can take */
    int64_t score; /* lower is better */
    uint16_t devs; /* devices it may use */
} st_cand;

struct st_placer {
    const st_fleet *fleet;
    const st_tree *tree;
    ST_VEC(st_cand) cands;
    ST_VEC(st_cand) work;
    ST_VEC(int64_t) sums; /* per domain of the level at hand */
};

/* Pick devices for up to `n` tasks on one node; returns how many were written. */
int st_place_devices(const st_placer *placer, const st_ask *ask, const st_cand *cand, int n,
                     st_grant *ret);

const st_view *st_ask_view(const st_ask *ask, const st_node *node);

#endif
