/* Private to place: the scratch memory and the steps of one placement. */
#ifndef ST_PLACE_PLACER_H
#define ST_PLACE_PLACER_H

#include "place/place.h"
#include "place/waste.h"

typedef struct st_cand {
    int32_t node;
    int32_t room;   /* tasks it can take */
    int64_t score;  /* lower is better */
    uint16_t devs;  /* devices it may use */
    int32_t domain; /* scratch: which one of the level at hand it is in */
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
    uint64_t changed;         /* how often the nodes of its type had changed then */
    uint64_t epoch;           /* of the target the costs go by */
    st_job like;              /* one task of the shape */
    int32_t type;
    bool ever;
    size_t n; /* nodes covered */
    int32_t *room;
    uint64_t *some; /* a bit for each node that has any: most of a busy fleet has none */
    int64_t total;
    ST_VEC(int64_t) sums[ST_TOPO_NODE]; /* per zone, block, rack */
    int16_t *cost;                      /* reckoned when somebody must choose */
    int16_t *low;                       /* the least of each block */
    uint64_t *stale;                    /* bits of nodes whose cost is out of date */
};

/* Nodes that are alike (kinds.c). */
typedef struct st_place_answer {
    uint32_t look; /* in which it was given */
    int32_t value;
} st_place_answer;

typedef struct st_places {
    int32_t v[ST_TOPO_NODE]; /* as in st_node */
    int32_t type;
} st_places;

typedef struct st_place_kinds {
    uint32_t *of;     /* by node; 0: it shares GPUs, and is like no other */
    st_places *place; /* by node: its domains and its type */
    size_t n;
    uint64_t seen; /* place in the fleet's log */
    st_idmap *ids; /* numbers by what nodes are like */
    uint32_t count;
    st_place_answer *answers; /* by kind */
    size_t nanswers;
    uint32_t look;
} st_place_kinds;

/* Prices of GPU types (price.c), and what they were made from. */
typedef struct st_place_free {
    int32_t type; /* -1: it takes no jobs, or has no GPUs */
    int64_t free_m;
} st_place_free;

typedef struct st_place_prices {
    st_place_free *nodes;
    size_t n;
    uint64_t seen;                /* place in the fleet's log */
    int64_t free_m[ST_TYPES_MAX]; /* the sums of `nodes` */
    int types;
    int64_t arrivals;
    int64_t price[ST_TYPES_MAX]; /* 0: the cheapest; in 1/1024 GPU for a GPU */
} st_place_prices;

struct st_placer {
    const st_fleet *fleet;
    const st_tree *tree;
    ST_VEC(st_cand) work;
    ST_VEC(int64_t) sums;      /* per domain of the level at hand */
    ST_VEC(st_rooms *) shapes; /* kept rooms */
    st_idmap *shape_at;        /* where they are, by key */
    st_rooms *once;            /* rooms counted for one ask */
    st_rooms *blank;           /* rooms filled by one ask */
    ST_VEC(int32_t) filled;    /* the nodes that have any there */
    uint64_t tick;
    st_place_kinds kinds;
    st_place_prices prices;
    st_typical typical;
    st_waste *waste;
};

/* kinds.c: begin a look at all nodes as they are, in which each kind is asked once. */
void st_kinds_look(st_place_kinds *kinds, const st_fleet *fleet);
void st_kinds_done(st_place_kinds *kinds);

/* price.c: the prices as of now, by type. */
const int64_t *st_prices_now(st_placer *placer);
void st_prices_done(st_place_prices *prices);

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

/* devices.c: all devices of a node; those of it in one NVLink domain; what is free of its GPUs */
uint16_t st_all_devs(const st_node *node);
uint16_t st_nvlink_devs(const st_node *node, int32_t domain);
int64_t st_free_m(const st_view *view);

#endif
