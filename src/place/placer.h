/* Private to place: the scratch memory and the steps of one placement. */
#ifndef ST_PLACE_PLACER_H
#define ST_PLACE_PLACER_H

#include "place/place.h"
#include "place/waste.h"

typedef struct st_cand {
    int32_t node;
    int32_t room;  /* tasks it can take */
    int64_t score; /* lower is better */
    uint16_t devs; /* devices it may use */
} st_cand;

#define ST_ROOM_MAX (1 << 20)
#define ST_BLOCK    64 /* nodes that share a least cost */

/* What a node costs those who come later: first the waste a task adds, in steps; then, for those
 * who look at neighbours, whether there is a large job of somebody else; then how empty it is,
 * counting a fresh GPU for a share as emptier still. One number, lower is better. */
#define ST_COST_STEP_M   50
#define ST_COST_STEP     128
#define ST_COST_STEPS    250 /* at most, either way */
#define ST_COST_STRANGER 64
#define ST_COST_AWAY     (1 << 20) /* not on a node that is preferred */
#define ST_COST_NONE     INT16_MAX /* no room */

struct st_rooms {
    uint64_t key, seen, used; /* seen: place in the fleet's log; used: for throwing out */
    uint64_t epoch;           /* of the target the costs go by */
    st_job like;              /* one task of the shape */
    int32_t type;
    bool ever;
    size_t n; /* nodes covered */
    int32_t *room;
    int64_t total;
    ST_VEC(int64_t) sums[ST_TOPO_NODE]; /* per zone, block, rack */
    int16_t *cost;                      /* reckoned when somebody must choose */
    int16_t *low;                       /* the least of each block */
    uint64_t *stale;                    /* bits of nodes whose cost is out of date */
};

struct st_placer {
    const st_fleet *fleet;
    const st_tree *tree;
    ST_VEC(st_cand) work;
    ST_VEC(int64_t) sums;      /* per domain of the level at hand */
    ST_VEC(st_rooms *) shapes; /* kept rooms */
    st_idmap *shape_at;        /* where they are, by key */
    st_rooms *once;            /* rooms counted for one ask */
    uint64_t tick;
    st_typical typical;
    st_waste *waste;
};

/* rooms.c */
st_rooms *st_rooms_for(st_placer *placer, const st_ask *ask);
/* Bring the costs up to date, as the ask sees the nodes. */
void st_rooms_reckon(st_placer *placer, st_rooms *rooms, const st_ask *ask);
void st_rooms_free(st_rooms *rooms);

/* Pick devices for up to `n` tasks on one node; returns how many were written. */
int st_place_devices(st_placer *placer, const st_ask *ask, const st_cand *cand, int n,
                     st_grant *ret);

const st_view *st_ask_view(const st_ask *ask, const st_node *node);

/* neighbours.c: whether the job is large for the node, and whether there is a large job of
 * another account on these of its devices. */
bool st_is_large(const st_job *job, const st_node *node);
bool st_has_stranger(const st_node *node, uint16_t devs, int32_t account);

/* devices.c: all devices of a node; those of it in one NVLink domain */
uint16_t st_all_devs(const st_node *node);
uint16_t st_nvlink_devs(const st_node *node, int32_t domain);

#endif
