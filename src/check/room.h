/*
 * Private to sim: who sits where, built from jobs and grants alone.
 *
 * The checkers' own idea of occupancy. It shares nothing with st_view, st_place or the
 * residents kept on the nodes, so that a mistake there cannot hide here; it is slow, and
 * written to be obviously right. The two moments and their union are those of model/fleet.h.
 */
#ifndef ST_CHECK_ROOM_H
#define ST_CHECK_ROOM_H

#include "base/vec.h"
#include "model/fleet.h"

/* Some jobs, in order of id; they belong to somebody else. */
typedef ST_VEC(const st_job *) st_job_list;

typedef struct st_room_dev {
    bool fenced;     /* a booking has it */
    unsigned levels; /* bit l set: somebody is here at isolation level l */
    int tasks;
    unsigned mig_mask;
    int mig_compute;
    bool mig_bad; /* an illegal start, or slices that overlap */
    bool latency_critical;
    int64_t share_m, vram_mib;
    int32_t account, domain; /* of everybody here; -1 nobody, -2 not one and the same */
    uint64_t first, last;    /* jobs to name in a complaint */
} st_room_dev;

typedef struct st_room_node {
    st_room_dev dev[ST_DEVS_MAX];
    int64_t cpu_m, ram_mib; /* in use */
} st_room_node;

typedef struct st_room {
    const st_fleet *fleet;
    const st_tree *tree;
    st_room_node *nodes;
    size_t n;
} st_room;

/* The occupancy of one moment; jobs whose index is set in `out` (may be NULL) are left out.
 * Grants must name nodes and devices that exist. Devices that bookings have are fenced, with CPU and RAM. */
void st_room_build(st_room *room, const st_fleet *fleet, const st_tree *tree,
                   const st_job_list *jobs, const uint8_t *out, st_when when);
/* The same without fences: what jobs have, and nothing else. */
void st_room_bare(st_room *room, const st_fleet *fleet, const st_tree *tree,
                  const st_job_list *jobs, const uint8_t *out, st_when when);
void st_room_done(st_room *room);

/* Which moments a job is there for. */
bool st_room_is_now(const st_job *job);
bool st_room_is_next(const st_job *job);

/* How many tasks of the job one node could take on top of what is there. */
int64_t st_room_tasks(const st_room *room, const st_node *node, const st_job *job, uint16_t devs);

/* Whether the whole gang fits, on nodes that are ready or, with `ever`, on any; `type` as in
 * st_job. A paused job fits only where its memory is. */
bool st_room_fits(const st_room *room, const st_job *job, int32_t type, bool ever);

/* Whether the tasks lie inside one domain of the level, or closer together. */
bool st_room_together(const st_fleet *fleet, const st_job *job, const st_grant *grants);

/* Trust, by walking up from the account. */
bool st_room_untrusted(const st_tree *tree, int32_t account);
int32_t st_room_domain(const st_tree *tree, int32_t account);

/* VRAM of one task on one GPU at MPS or TIME. */
int64_t st_room_vram_mib(const st_fleet *fleet, const st_job *job, int32_t type);

/* Whether the job allows the node, by what it was submitted with (pick.c). */
bool st_check_picked(const st_fleet *fleet, const st_node *node, const st_job *job);

#endif
