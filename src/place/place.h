/* Where a gang lands.
 *
 * Pure functions over a fleet and the views of its nodes. Tasks of a gang are identical, so
 * what a node can take is a number (st_place_room), and a gang fits exactly when those numbers
 * add up inside one domain of the level it requires: feasibility is exact, and monotone in
 * what is free. Reclaim's minimality rests on that; an heuristic here would break it there.
 *
 * Among the places that fit: the tightest level, then the domain with least to spare, then the
 * fewest blocks, racks and nodes, then the nodes where it wastes least of what is typically
 * asked for (place/typical.h), for a large job those without a large job of somebody else, then
 * the fullest; ties by id. Fragmentation chooses only among places that fit. So does the order of
 * GPU types (st_place_sort_types), where a job allows several. */
#ifndef ST_PLACE_PLACE_H
#define ST_PLACE_PLACE_H

#include "model/fleet.h"
#include "place/typical.h"

typedef struct st_placer st_placer;

/* Scratch memory for a fleet; the fleet may grow afterwards. */
st_placer *st_placer_new(const st_fleet *fleet, const st_tree *tree);
void st_placer_free(st_placer *placer);

/* After picks of the fleet were swept out (st_fleet_sweep_picks). */
void st_placer_forget_picks(st_placer *placer);

/* The learned workload: to count what is submitted, and to save it. */
st_typical *st_placer_typical(st_placer *placer);

/* How many tasks of one shape each node can take, with sums per domain. Kept per shape and
 * brought up to date from the fleet's log of changes, so asking costs what has changed, not
 * the size of the fleet. For a what-if, nodes are set to other views and set back. */
typedef struct st_rooms st_rooms;

st_rooms *st_rooms_of(st_placer *placer, const st_job *job, int32_t type);
void st_rooms_set(st_placer *placer, st_rooms *rooms, const st_node *node, const st_view *view);
/* Whether an outline of a node (st_view_outline) says all they are counted from. */
bool st_rooms_outlined(const st_rooms *rooms);
/* Tasks that fit in all, and on one node. */
int64_t st_rooms_total(const st_rooms *rooms);
int st_rooms_at(const st_rooms *rooms, const st_node *node);
/* The first node from `id` on that has room; none: as many as there are nodes. */
size_t st_rooms_next(const st_rooms *rooms, size_t id);
/* For an ask that knows the numbers: rooms without any, good until the next call, and one node's. */
st_rooms *st_rooms_blank(st_placer *placer, const st_job *job, int32_t type);
void st_rooms_put(st_placer *placer, st_rooms *rooms, const st_node *node, int32_t room);

typedef struct st_ask {
    const st_job *job;
    int32_t type;          /* GPU type for the whole gang; -1 for a job without GPUs */
    bool ever;             /* count nodes that are down or draining too */
    bool plain;            /* neither what is typical nor who is beside counts: the fullest place */
    const uint8_t *prefer; /* per node, may be NULL: non-zero nodes are taken first */
    st_rooms *rooms;       /* NULL: counted here */
    const st_view *(*view)(void *ctx, const st_node *node); /* NULL: the node's own */
    void *ctx;
} st_ask;

/* Find places for all tasks; fills ret[job->tasks]. */
bool st_place_gang(st_placer *placer, const st_ask *ask, st_grant *ret);

/* Put GPU types the job allows into the order in which it should try them: first where a task adds
 * least to the waste, with the price of the type (place/price.c). Before anything is learned, as
 * they are; and likewise between equals. */
void st_place_sort_types(st_placer *placer, const st_job *job, int32_t *types, int n);

/* What is free of a GPU type on ready nodes, whatever the shape. */
int64_t st_place_free_m(st_placer *placer, int32_t type);

/* Whether st_place_gang would succeed. */
bool st_place_fits(st_placer *placer, const st_ask *ask);

/* How many tasks one node can take on the devices of `devs` under a view. */
int st_place_room(const st_placer *placer, const st_node *node, const st_job *job,
                  const st_view *view, uint16_t devs);

/* Whether the node may serve the job at all: type, pool, isolation level. */
bool st_place_allowed(const st_placer *placer, const st_node *node, const st_job *job,
                      int32_t type);

/* The numbers behind a refusal, all counted in tasks of the job. */
typedef struct st_place_why {
    int64_t fit_now;                   /* tasks that fit what is free, anywhere */
    int64_t fit_gpu, fit_cpu, fit_ram; /* that would, if only that counted */
    int64_t fit_domain;                /* the most that fit one domain of the required level */
    int64_t fit_ready;                 /* that would fit if ready nodes were empty */
    int64_t fit_ever;                  /* and if every node were ready */
    int64_t domain_ever; /* the most one domain of the required level could ever take */
    int64_t fit_gpu_cpu, fit_gpu_ram; /* and beside each other on the same nodes */
    int64_t gpu_free_m;               /* free GPU on ready nodes it may use, whatever the shape */
} st_place_why;

void st_place_explain(st_placer *placer, const st_ask *ask, st_place_why *ret);

/* Of those numbers only the most that could ever fit, in all or inside one domain of the level
 * it requires. */
int64_t st_place_most(st_placer *placer, const st_ask *ask);

#endif
