/*
 * Inside the sim driver: its object, shared by its files.
 *
 * What changes with time is derived, not stepped: energy and temperature are known at `since_ms`,
 * the last moment the load changed, and computed from there, so that how often somebody looks
 * changes nothing.
 */
#ifndef ST_GPU_SIM_STATE_H
#define ST_GPU_SIM_STATE_H

#include <pthread.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "gpu/product.h"
#include "gpu/sim.h"

#define SIM_RESERVED_MIB 512 /* what a driver keeps back */

typedef struct sim_load {
    uint64_t job;
    int gi;
    st_gpu_load what;
} sim_load;

/* What those who left have left in memory. */
typedef struct sim_residue {
    int gi;
    int64_t words;
} sim_residue;

/* An instance; the rest follows from these. */
typedef struct sim_instance {
    int gi, start;
    st_mig profile;
    uint64_t serial; /* of all ever made on this GPU */
} sim_instance;

typedef struct sim_gpu {
    const st_gpu_product *product;
    bool mig, linked;
    int mode;
    int n; /* instances, by start */
    sim_instance instance[ST_GPU_INSTANCES_MAX];
    uint64_t made; /* instances ever */
    ST_VEC(sim_load) loads;

    int64_t since_ms;  /* when the load changed last; of the two values below */
    int64_t energy_uj; /* since the beginning */
    int64_t temp_m;    /* milli-degrees */

    ST_VEC(sim_residue) residue;

    bool lost, thermal, remap_pending, remap_failed;
    bool stuck; /* its memory cannot be cleared */
    int64_t xid, sbe, dbe, remapped, recovery;
    int64_t sbe_before, dbe_before;                          /* of these, before the last reset */
    int64_t lanes, replays, links_down;                      /* lanes 0: all */
    int64_t slow_pcie, slow_memory, slow_peer, slow_compute; /* percent in tests; 0: all of it */
    int64_t bad_words, bad_products;
    int64_t busy_m, waits_m; /* of jobs that run there, in thousandths; busy 0: as they are */
    bool hangs;              /* what a test asks of it comes to no end */
    int64_t broken;          /* with what the program that tests ends; 0: it works */
} sim_gpu;

typedef struct st_gpu_sim {
    st_gpu base;
    pthread_mutex_t lock; /* everything below; the waiting thread and the other meet here */
    char *node;
    uint64_t seed;
    int64_t now_ms; /* the latest moment anybody named; ST_UNSET before the first */
    ST_VEC(st_gpu_event) events;
    int wake_fd, poll_fd; /* -1 until asked for */

    char *control;
    int control_fd;
    bool fifo;
    st_strbuf line; /* what has been read of it and has no end yet */

    sim_gpu gpu[ST_DEVS_MAX];
} st_gpu_sim;

static inline st_gpu_sim *st_sim_of(st_gpu *g)
{
    return (st_gpu_sim *)g;
}

/* The answer of a GPU that is gone. */
int st_sim_lost(const st_gpu_sim *s, int gpu, st_err *err);

/* Reads a profile into s->gpu and s->base.n. */
int st_sim_profile(st_gpu_sim *s, const char *text, st_err *err);

/* Notes the caller's clock; the first moment named is when the node began. */
void st_sim_see(st_gpu_sim *s, int64_t now_ms);

/* Brings energy and temperature up to now; called before anything changes the load. */
void st_sim_catch_up(sim_gpu *gpu, int64_t now_ms);
void st_sim_uuid(const st_gpu_sim *s, const char *prefix, uint64_t a, uint64_t b,
                 char ret[ST_GPU_UUID_MAX]);

/* The index of an instance by its id, or -1. */
int st_sim_find(const sim_gpu *gpu, int gi);

/* With the lock held. */
void st_sim_push(st_gpu_sim *s, st_gpu_event event);
int st_sim_control_open(st_gpu_sim *s, const char *path, st_err *err);
int st_sim_control_read(st_gpu_sim *s, st_err *err);

int st_sim_sample(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err);
int st_sim_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err);
int st_sim_mig_mode(st_gpu *g, int gpu, bool on, st_err *err);
int st_sim_mig_profiles(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err);
int st_sim_mig_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err);
int st_sim_mig_create(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                      st_err *err);
int st_sim_mig_destroy(st_gpu *g, int gpu, int gi, st_err *err);

#endif
