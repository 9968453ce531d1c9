/* A device with a service and its neighbours, for tests of src/neighbour: requests with times drawn from a seed, neighbours
 * that slow it or do not, and slowness of the host that nobody on the device has caused. */
#ifndef ST_NEIGHBOUR_TEST_WORLD_H
#define ST_NEIGHBOUR_TEST_WORLD_H

#include "base/rng.h"
#include "neighbour/neighbour.h"

#define WORLD_TICK_MS 250
#define WORLD_SHAPE   4096

typedef struct world_task {
    uint64_t id;
    int64_t from_ms, to_ms; /* on the device */
    double factor;          /* of the service's times while it runs */
    double eased;           /* the same when the service is protected */
    double part;            /* of the device */
    uint64_t gpu_ns;
} world_task;

typedef struct world {
    st_rng rng;
    st_nb *nb;
    int64_t now_ms;
    double rate, swing, sigma, hiccup; /* requests a second, by day, spread, rare slow ones */
    uint32_t shape[WORLD_SHAPE];       /* times of requests, in units of 16 ns */
    uint64_t times[ST_NB_TIMES], gpu_ns;
    world_task task[ST_NB_TASKS];
    int ntask;
    double host, owed;              /* slowness of its own; parts of a request */
    int64_t host_to_ms, host_at_ms; /* until then; the next; 0: none */
    double per_day;                 /* such times a day */
} world;

void world_init(world *w, uint64_t seed);
void world_add(world *w, world_task t);
/* A tick: time goes on, requests are made, the loop is told. */
void world_tick(world *w);
void world_done(world *w);

#endif
