/* The fleet: GPU types, pools, nodes and the topology they stand in.
 *
 * A node's occupancy is a function of its residents and of nothing else: every change adds or
 * removes a resident and the node's view is built anew from the list (st_node_refresh), so it
 * cannot drift. Residents come in three kinds, told apart by their job:
 *   running           on the devices now and after the holds come true
 *   leaving           on the devices now, gone then
 *   held (a plan)     not there yet, there then
 * The view for everybody else (`node->view`) must suit both moments: a device counts as taken
 * if it is taken in either, CPU and RAM as the larger of the two. What is freed for a claimant
 * is thereby out of everybody's reach from the moment of the decision. Between the two moments
 * holds come true one by one, each as soon as it fits, so who counts on room at some moment in
 * between reckons with those who are still there and with all holds (ST_WHEN_ANY). */
#ifndef ST_MODEL_FLEET_H
#define ST_MODEL_FLEET_H

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/incident.h"
#include "model/job.h"
#include "model/tree.h"

typedef struct st_gpu_type {
    char *name;
    int64_t vram_mib;
    st_board board;
} st_gpu_type;

/* The rest of what a pool says of its jobs, one row each: how many tasks at most, and what a job
 * gets that asks for no CPU or RAM. In numbers 0 is "not said", and the default holds; where that
 * is 0 as well, an even part of the pool's smallest node.
 * X(field, key, kind of st_field, default, hi) */
#define ST_POOL_RULE_TABLE(X) \
    ST_POOL_RULE_FIRST(X)     \
    ST_POOL_RULE_SINCE_17(X)
/* Rows are saved in this order (model/codec.h). */
#define ST_POOL_RULE_FIRST(X)                                                               \
    X(job_tasks, "tasks_per_job", ST_F_I64, 1024, ST_TASKS_MAX)                             \
    X(node_tasks, "tasks_per_node", ST_F_I64, 512, ST_TASKS_MAX)                            \
    X(gpu_cpu_m, "cpu_per_gpu", ST_F_MILLI, 0, ST_QTY_MAX)                                  \
    X(gpu_ram_mib, "ram_per_gpu", ST_F_MIB, 0, ST_QTY_MAX)                                  \
    X(task_cpu_m, "cpu_per_task", ST_F_MILLI, 1000, ST_QTY_MAX) /* of a job without GPUs */ \
    X(cpu_ram_mib, "ram_per_cpu", ST_F_MIB, 0, ST_QTY_MAX)      /* likewise */
#define ST_POOL_RULE_SINCE_17(X)                                                                  \
    X(book_horizon_ms, "booking_horizon", ST_F_DURATION, 0, INT64_C(315360000000)) /* 0: as the \
                                                                                      policy */ \
    X(book_share_m, "booking_share", ST_F_MILLI, 0, 1000) /* of its GPUs; 0: as the policy */
typedef struct st_pool_rules {
    uint32_t allow; /* bit p set: the permission p (st_allow) is given */
    uint32_t lacks; /* bit y set: its engine has not the way y (st_yield) to yield */
    char engine[ST_ENGINE_NAME + 1]; /* who carries out what is placed there; "": each node's own */
#define X(field, key, kind, def, hi) int64_t field;
    ST_POOL_RULE_TABLE(X)
#undef X
} st_pool_rules;

/* What jobs find there of what they may need (st_shape.needs). */
static inline uint32_t st_pool_gives(const st_pool_rules *rules)
{
    return rules->allow | (ST_NEED_WAYS & ~(rules->lacks << ST_NEED_WAY_SHIFT));
}

typedef struct st_pool {
    char *name;        /* "": it was removed */
    uint32_t levels;   /* bit l set: isolation level l allowed */
    int64_t oversub_m; /* Σ time-sliced shares on a GPU may reach this; 1000..4000 */
    st_pool_rules rules;
} st_pool;

typedef enum st_dev_mode {
    ST_DEV_FREE,
    ST_DEV_WHOLE,
    ST_DEV_MIG,
    ST_DEV_MPS,
    ST_DEV_TIME,
} st_dev_mode;

typedef struct st_dev {
    uint8_t mode;
    uint8_t mig_mask, mig_compute;
    uint8_t clients;
    bool latency_critical; /* one of its residents is */
    int32_t used_m;        /* Σ shares at MPS and TIME */
    int32_t owner;         /* the account all residents belong to, ST_OWNER_MIXED otherwise */
    int32_t domain;        /* likewise their trust domain, at MPS and TIME */
    int64_t vram_mib;      /* Σ of residents, at MPS and TIME */
} st_dev;

#define ST_OWNER_NONE  (-1)
#define ST_OWNER_MIXED (-2)

/* One node as a placement sees it. */
typedef struct st_view {
    st_dev dev[ST_DEVS_MAX];
    int64_t cpu_free_m, ram_free_mib;
    uint16_t free, shared; /* bits of devices in mode FREE; in MIG, MPS or TIME */
} st_view;

typedef struct st_resident {
    st_job *job;
    int32_t task;
} st_resident;

/* X(id, name, what the node does in it). The number of a removed node is not used again. */
#define ST_NODE_STATE_TABLE(X)                                                            \
    X(ST_NODE_READY, "ready", "takes jobs")                                               \
    X(ST_NODE_DRAINING, "draining", "finishes its jobs and takes no new ones")            \
    X(ST_NODE_FAILED, "failed", "is lost; its jobs restart elsewhere")                    \
    X(ST_NODE_REMOVED, "removed", "was removed for good")                                 \
    X(ST_NODE_SUSPECT, "suspect",                                                         \
      "may be faulty: its jobs go on, and it takes no new ones until it has been tested") \
    X(ST_NODE_TESTING, "testing", "is being tested and takes jobs once it has passed")    \
    X(ST_NODE_REPAIR, "repair", "is out for repair, once its jobs have ended")            \
    X(ST_NODE_RETIRED, "retired", "is out of service and does not come back by itself")
typedef enum st_node_state {
#define X(id, name, about) id,
    ST_NODE_STATE_TABLE(X)
#undef X
        ST_NODE_STATE_COUNT
} st_node_state;

/* What becomes of those who are on a node that drains when its deadline comes. X(id, name, what happens) */
#define ST_DRAIN_TABLE(X)                                                                 \
    X(ST_DRAIN_WAIT, "wait", "jobs stay until they end by themselves")                    \
    X(ST_DRAIN_REQUEUE, "requeue",                                                        \
      "jobs leave the node: those that can save do so first, and wait for another place") \
    X(ST_DRAIN_PAUSE, "pause",                                                            \
      "likewise, but those that can be paused stay in the memory of the node")
typedef enum st_drain_then {
#define X(id, name, about) id,
    ST_DRAIN_TABLE(X)
#undef X
        ST_DRAIN_COUNT
} st_drain_then;

/* What somebody said of a node; by NULL: nobody did. */
typedef struct st_node_note {
    char *by, *reason; /* reason "": none was given */
    int64_t since_ms;
} st_node_note;

/* A GPU that is out of service while its node need not be. DRAINING: it takes nobody new, and who has it stays. SUSPECT: the
 * same, since too many others are out. FAILED: it is lost; who had it leaves. TESTING: it has failed and waits for
 * a test of its node. RETIRED: it failed again after it was repaired. */
typedef struct st_gpu_out {
    st_node_state state; /* READY: it serves */
    st_node_note note;
    st_finding found; /* of what an engine found, without words; NONE: it is somebody's word */
    bool worn;        /* it is retired when its engine takes the fault back */
    bool unproven;    /* it has failed since it passed a test */
} st_gpu_out;

typedef struct st_node {
    int32_t id;
    char *name;
    int32_t pool, type; /* type -1: no GPUs */
    int ndevs;
    int64_t cpu_m, ram_mib;
    char *labels;                /* model/labels.h; NULL: none */
    int32_t place[ST_TOPO_NODE]; /* [ZONE], [BLOCK], [RACK]: domain ids, -1 none */
    int32_t nvlink[ST_DEVS_MAX]; /* NVLink domain of each device */
    st_node_state state;
    bool agent; /* it has one: what ran there is gone when that says so, and not before */
    /* Who took it out of service; and the fault for which an engine did, which counts first, with what it was before. */
    st_node_note word, fault;
    st_node_state was;
    /* While it drains: when jobs must be off it, 0 whenever; what becomes of them then; whether those were told to go. */
    int64_t drain_ms;
    st_drain_then drain_then;
    bool drain_told;
    /* The last fault of its hardware, and how often that had come back after a repair. */
    st_finding last; /* without words */
    int64_t last_ms;
    int repeats;
    bool tests;           /* its agent can test it */
    bool unproven;        /* it has failed, was repaired or is new since it passed a test */
    bool failed_test;     /* that is why it is in repair */
    int64_t test, tested; /* the last test that was asked for, and answered, by number; 0 none */
    int64_t passed_ms;    /* when it last passed; 0 never */
    int64_t due_ms;       /* when it is tested again; 0 never */
    int32_t home; /* the account whose floor stands on it (policy as_if_alone); 0: nobody's */
    ST_VEC(st_resident) residents;
    /* Devices that bookings have, with CPU and RAM: taken for everybody, unless the fence is ajar for one who may
     * pass. Derived from the bookings. */
    uint16_t fence;
    bool ajar;
    int64_t fence_cpu_m, fence_ram_mib;
    uint16_t out;     /* GPUs that take nobody new; set by st_node_set_gpu alone */
    st_gpu_out *gpus; /* by device; NULL: none was ever out */
    st_view view;     /* for everybody, see above */
} st_node;

/* A rack, block, zone or NVLink domain. */
typedef struct st_domain {
    char *name;
    ST_VEC(int32_t) nodes;
} st_domain;

/* A node whose view or state changed, and its type. */
typedef struct st_node_change {
    int32_t node, type;
} st_node_change;

/* What a job says of its nodes (model/pick.h), under a number that follows from its text. */
typedef struct st_fleet_picked {
    uint64_t number;
    char *text;
    bool used; /* scratch */
} st_fleet_picked;

typedef struct st_fleet {
    ST_VEC(st_gpu_type) types;
    ST_VEC(st_pool) pools;
    ST_VEC(st_node *) nodes;
    ST_VEC(st_domain) domains[ST_TOPO_COUNT]; /* [ZONE], [BLOCK], [RACK], [NVLINK] */
    ST_VEC(st_node_change) changes;           /* in order */
    uint64_t changes_from;                    /* how many were dropped from the front */
    uint64_t changed[ST_TYPES_MAX + 1]; /* by type + 1: how many there were, and nodes that came */
    int64_t latency_critical;           /* residents that share a GPU and are */
    ST_VEC(st_fleet_picked) picks;
    st_idmap *pick_at; /* where they are, by number */
    st_map *node_ids;
    st_map *domain_ids; /* "rack/NAME" and so on */
} st_fleet;

/* A node as it is announced. */
typedef struct st_node_spec {
    const char *name;
    int32_t pool, type;
    int ndevs;
    int nvlink_size;           /* GPUs per NVLink domain inside the node; 0: all of them */
    const char *nvlink_domain; /* instead: the name of a domain that spans nodes, or NULL */
    int64_t cpu_m, ram_mib;
    const char *zone, *block, *rack; /* NULL: none */
} st_node_spec;

st_fleet *st_fleet_new(void);
void st_fleet_free(st_fleet *fleet);

int st_fleet_add_type(st_fleet *fleet, const char *name, int64_t vram_mib, st_board board,
                      st_err *err);
int st_fleet_add_pool(st_fleet *fleet, const char *name, uint32_t levels, int64_t oversub_m,
                      st_err *err);
/* Permissions, bounds and defaults of a pool; they are placed by, and nobody is put off for them. */
int st_fleet_set_rules(st_fleet *fleet, int32_t pool, const st_pool_rules *rules, st_err *err);
/* As they hold: with the defaults where nothing is said. */
st_pool_rules st_pool_rules_of(const st_pool *pool);
/* What a pool allows from now on. That those on its nodes may stay is for the caller to see to. */
int st_fleet_set_pool(st_fleet *fleet, const st_tree *tree, int32_t pool, uint32_t levels,
                      int64_t oversub_m, st_err *err);
int st_fleet_add_node(st_fleet *fleet, const st_node_spec *spec, int32_t *ret_id, st_err *err);

int st_fleet_type(const st_fleet *fleet, const char *name);
int st_fleet_pool(const st_fleet *fleet, const char *name);
int32_t st_fleet_node(const st_fleet *fleet, const char *name);

/* Takes out for good a node that nobody is on: its name is free. What refers to its number still finds it. */
void st_fleet_remove_node(st_fleet *fleet, st_node *node);
/* The same for a pool without nodes; its slot is used again. */
void st_fleet_remove_pool(st_fleet *fleet, int32_t pool);
static inline bool st_pool_there(const st_pool *pool)
{
    return pool->name[0] != '\0';
}

/* Keeps the text, which is well-formed, and returns its number, never 0. It is kept until it is swept out. */
uint64_t st_fleet_pick(st_fleet *fleet, const char *text);
/* Under the number it had when it was saved; false: another text has that. */
bool st_fleet_pick_as(st_fleet *fleet, uint64_t number, const char *text);
const char *st_fleet_picked_text(const st_fleet *fleet, uint64_t number); /* NULL: there is none */
/* Whether the node will do; of a pick that is gone none does. */
bool st_fleet_picks(const st_fleet *fleet, uint64_t number, const st_node *node);
/* Forgets those that are not `used`, and unmarks the others. */
void st_fleet_sweep_picks(st_fleet *fleet);
void st_fleet_use_pick(st_fleet *fleet, uint64_t number);

/* Everything it would have if all nodes were well. */
void st_fleet_whole(const st_fleet *fleet, st_use *ret);

const char *st_node_state_name(st_node_state state);
const char *st_drain_name(st_drain_then then);
/* Nothing of it counts now: it has failed, or was removed. */
static inline bool st_node_away(const st_node *node)
{
    return node->state == ST_NODE_FAILED || node->state == ST_NODE_REMOVED;
}
/* It takes no new jobs, and those that are there go on. */
static inline bool st_node_closed(st_node_state state)
{
    return state != ST_NODE_READY && state != ST_NODE_FAILED && state != ST_NODE_REMOVED;
}
void st_node_set_state(st_fleet *fleet, st_node *node, st_node_state state);
/* A GPU alone: READY puts it back into service. */
void st_node_set_gpu(st_fleet *fleet, const st_tree *tree, st_node *node, int gpu,
                     st_node_state state);
static inline st_node_state st_gpu_state(const st_node *node, int gpu)
{
    return node->out >> gpu & 1 ? node->gpus[gpu].state : ST_NODE_READY;
}
/* Nothing of it counts now, whoever is about to leave it. */
static inline bool st_gpu_away(const st_node *node, int gpu)
{
    return st_gpu_state(node, gpu) == ST_NODE_FAILED;
}
/* Copies both texts; by NULL: nothing is noted any more. */
void st_node_note_set(st_node_note *note, const char *by, const char *reason, int64_t since_ms);
/* Why it is out of service; NULL: nobody said. */
static inline const st_node_note *st_node_note_of(const st_node *node)
{
    return node->fault.by ? &node->fault : node->word.by ? &node->word : NULL;
}

/* Who keeps something per node reads fleet->changes from where it last stopped. The log is
 * cut when it grows past a few times the fleet; a reader that fell behind starts over. */
uint64_t st_fleet_changes(const st_fleet *fleet);
/* The same of the nodes of one type alone; -1: of those without GPUs. */
uint64_t st_fleet_changes_of(const st_fleet *fleet, int32_t type);

/* Residents. `tree` gives the trust domains. */
void st_node_add(st_fleet *fleet, const st_tree *tree, st_job *job, int32_t task);
void st_node_remove(st_fleet *fleet, const st_tree *tree, st_job *job, int32_t task);
void st_node_refresh(st_fleet *fleet, const st_tree *tree, st_node *node);
/* Something about its residents changed that its view does not show. */
void st_node_touch(st_fleet *fleet, const st_node *node);

/* Which residents a view counts. */
typedef enum st_when {
    ST_WHEN_EITHER, /* now or after the holds: for everybody */
    ST_WHEN_NOW,    /* what is physically there */
    ST_WHEN_NEXT,   /* what will be there once the holds have come true */
    ST_WHEN_EMPTY,  /* nobody: what could ever fit */
    ST_WHEN_ANY,    /* whichever holds have come true by then: for who is to come later */
} st_when;

/* Build a view; residents whose job is marked `out` are left out. */
void st_view_build(const st_fleet *fleet, const st_tree *tree, const st_node *node, st_when when,
                   st_view *ret);

/* The same without its devices, for those who want whole GPUs or none: which are free, CPU and RAM. */
void st_view_outline(const st_node *node, st_when when, st_view *ret);

/* Put one task's grant into a view: 0, or -1 when the place is already taken. */
int st_view_add(const st_fleet *fleet, const st_tree *tree, const st_node *node, const st_job *job,
                const st_grant *grant, st_view *view);

/* Set the bits of a view from its devices, after these were changed by hand. */
void st_view_seal(const st_node *node, st_view *view);

/* How many more tasks of the job's shape one device of the node can take; at WHOLE 0 or 1. */
int st_dev_room(const st_fleet *fleet, const st_tree *tree, const st_node *node, const st_job *job,
                const st_dev *dev);

/* RAM a task needs beyond what it has: a paused one is still in memory. */
int64_t st_task_ram_mib(const st_job *job);

/* VRAM one task takes on a shared GPU of a type. */
int64_t st_share_vram_mib(const st_fleet *fleet, const st_shape *shape, int32_t type);

#endif
