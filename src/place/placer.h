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

/* Nodes fall into classes by what taking them costs those who come later: free GPUs they have,
 * and whether a share would open a fresh one. */
#define ST_CLASSES  (2 * (ST_DEVS_MAX + 1))
#define ST_ROOM_MAX (1 << 20)

struct st_rooms {
    uint64_t key, seen, used; /* seen: place in the fleet's log; used: for throwing out */
    st_job like;              /* one task of the shape */
    int32_t type;
    bool ever;
    size_t n; /* nodes covered */
    int32_t *room;
    uint8_t *class;
    int64_t total;
    ST_VEC(int64_t) sums[ST_TOPO_NODE]; /* per zone, block, rack */
    uint64_t *bits[ST_CLASSES];         /* nodes with room, by class */
    int32_t count[ST_CLASSES];
};

struct st_placer {
    const st_fleet *fleet;
    const st_tree *tree;
    ST_VEC(st_cand) work;
    ST_VEC(int64_t) sums;      /* per domain of the level at hand */
    ST_VEC(st_rooms *) shapes; /* kept rooms */
    st_rooms *once;            /* rooms counted for one ask */
    uint64_t tick;
    /* st_mig_best_start by memory mask, compute slices and profile, plus 2; 0: not asked yet */
    uint8_t mig_start[1 << ST_MIG_MEMORY][ST_MIG_COMPUTE + 1][ST_MIG_COUNT];
};

/* rooms.c */
st_rooms *st_rooms_for(st_placer *placer, const st_ask *ask);
void st_rooms_free(st_rooms *rooms);

/* Pick devices for up to `n` tasks on one node; returns how many were written. */
int st_place_devices(st_placer *placer, const st_ask *ask, const st_cand *cand, int n,
                     st_grant *ret);

const st_view *st_ask_view(const st_ask *ask, const st_node *node);

/* devices.c: all devices of a node; those of it in one NVLink domain */
uint16_t st_all_devs(const st_node *node);
uint16_t st_nvlink_devs(const st_node *node, int32_t domain);

#endif
