/*
 * The GPUs of one node, through a driver table. Two drivers: `nvml` for NVIDIA hardware and `sim`
 * (gpu/sim.h) for none. The agent opens one and uses the functions below; what it gets are values,
 * never a vendor's handles.
 *
 * What a driver lacks is refused with -ST_EDOWN and the reason, or absent from a sample; nothing is
 * made up. Text that is unknown is "", numbers that are unknown are ST_GPU_UNKNOWN.
 *
 * Threads: st_gpu_wait may run in one thread while one other thread uses the rest.
 */
#ifndef ST_GPU_GPU_H
#define ST_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/metrics.h"
#include "model/mig.h"
#include "model/types.h"

#define ST_GPU_UNKNOWN       (-1)
#define ST_GPU_WHOLE         (-1) /* no GPU instance: all of it */
#define ST_GPU_LINKS_MAX     18
#define ST_GPU_UUID_MAX      96 /* what NVML asks for */
#define ST_GPU_INSTANCES_MAX 8
#define ST_GPU_PATH_MAX      64

typedef struct st_gpu st_gpu;

/* Who may have a context on a GPU; the numbers are the vendor's. */
typedef enum st_gpu_mode {
    ST_GPU_MODE_DEFAULT = 0,
    ST_GPU_MODE_PROHIBITED = 2,
    ST_GPU_MODE_EXCLUSIVE = 3, /* one process; what MPS servers want */
} st_gpu_mode;

typedef struct st_gpu_info {
    int index;
    char uuid[ST_GPU_UUID_MAX];
    char bus_id[32]; /* 00000000:18:00.0 */
    char name[96];
    char serial[32];
    char type[ST_NAME_MAX]; /* our name of it: h200; "" when not in our table */
    int64_t vram_mib;
    int cc; /* compute capability: 90 is 9.0 */

    int minor;
    char node[ST_GPU_PATH_MAX]; /* its device file */

    st_board board; /* NONE: no MIG geometry known to us */
    bool mig_capable, mig_on, mig_pending;
    int mode; /* st_gpu_mode */

    int numa;
    char cpus[256]; /* those near it: 0-15,32-47 */
    int pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
    int64_t power_limit_mw;

    int links;                 /* NVLinks that are up */
    int links_switch;          /* of these, to a switch */
    uint8_t peer[ST_DEVS_MAX]; /* of these, to GPU i */
    int8_t
        ancestor[ST_DEVS_MAX]; /* PCIe distance to GPU i: 0 same board, 10 one switch, 20 several,
                                     30 a host bridge, 40 a NUMA node, 50 the system; -1 unknown */
    bool lost;                 /* was there, does not answer any more */
} st_gpu_info;

typedef struct st_gpu_inventory {
    char driver[64];                /* version of the kernel driver */
    int cuda;                       /* the newest CUDA it runs: 13000 is 13.0 */
    char nodes[2][ST_GPU_PATH_MAX]; /* device files every job needs besides its GPU's */
    int n;
    st_gpu_info gpu[ST_DEVS_MAX];
} st_gpu_inventory;

/* What the driver says about one MIG profile on one GPU, as it is now. */
typedef struct st_gpu_profile {
    int64_t vram_mib;
    int sms;
    int most;       /* at once on an empty GPU */
    int left;       /* that still fit */
    uint8_t starts; /* bit s set: may begin at memory slice s on an empty GPU */
    bool offered;
} st_gpu_profile;

/* A GPU instance with the compute instance that fills it. */
typedef struct st_gpu_instance {
    int gi, ci;  /* ci is ST_GPU_UNKNOWN when it has none */
    int profile; /* st_mig, or ST_GPU_UNKNOWN for one we would not have made */
    int start, size;
    int64_t vram_mib;
    char uuid[ST_GPU_UUID_MAX];
    int gi_minor, ci_minor;        /* of its capability device files */
    char node[2][ST_GPU_PATH_MAX]; /* these files: what a job needs besides its GPU's */
} st_gpu_instance;

typedef struct st_gpu_instances {
    int n;
    st_gpu_instance v[ST_GPU_INSTANCES_MAX];
} st_gpu_instances;

typedef struct st_gpu_proc {
    int64_t pid;
    int64_t mem_mib; /* or ST_GPU_UNKNOWN */
    int sm;          /* percent of the last second, or ST_GPU_UNKNOWN */
    int gi, ci;      /* or ST_GPU_UNKNOWN */
    bool mps;        /* a client of an MPS server */
} st_gpu_proc;

#define ST_GPU_EVENT_TABLE(X)                    \
    X(ST_GPU_EVENT_XID, "xid")                   \
    X(ST_GPU_EVENT_ECC, "ecc")                   \
    X(ST_GPU_EVENT_REMAP, "remap")               \
    X(ST_GPU_EVENT_REMAP_FAILED, "remap-failed") \
    X(ST_GPU_EVENT_POISON, "poison")             \
    X(ST_GPU_EVENT_RECOVERY, "recovery")         \
    X(ST_GPU_EVENT_LOST, "lost")                 \
    X(ST_GPU_EVENT_MIG, "mig")
typedef enum st_gpu_event_kind {
#define X(id, name) id,
    ST_GPU_EVENT_TABLE(X)
#undef X
        ST_GPU_EVENT_COUNT
} st_gpu_event_kind;

typedef struct st_gpu_event {
    st_gpu_event_kind kind;
    int gpu;
    int gi;        /* or ST_GPU_WHOLE */
    int64_t value; /* the XID; the recovery action; otherwise 0 */
} st_gpu_event;

const char *st_gpu_event_name(st_gpu_event_kind kind);

/* The table a driver fills. `gpu` is checked before a driver sees it. */
typedef struct st_gpu_ops {
    const char *name;
    void (*free)(st_gpu *g);
    int (*inventory)(st_gpu *g, st_gpu_inventory *ret, st_err *err);
    int (*sample)(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err);
    void (*fresh)(st_gpu *g, int gpu); /* NULL: samples always are */
    int (*procs)(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err);
    int (*wait)(st_gpu *g, int timeout_ms, st_gpu_event *ret, st_err *err);
    int (*set_mode)(st_gpu *g, int gpu, st_gpu_mode mode, st_err *err);
    int (*mig_mode)(st_gpu *g, int gpu, bool on, st_err *err);
    int (*mig_profiles)(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err);
    int (*mig_list)(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err);
    int (*mig_create)(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                      st_err *err);
    int (*mig_destroy)(st_gpu *g, int gpu, int gi, st_err *err);
} st_gpu_ops;

/* What every driver's object begins with. */
struct st_gpu {
    const st_gpu_ops *ops;
    int n; /* GPUs */
};

typedef struct st_gpu_nvml_options {
    const char *library; /* NULL: libnvidia-ml.so.1 */
    const char *proc;    /* NULL: /proc */
    const char *sys;     /* NULL: /sys */
} st_gpu_nvml_options;

/* The NVIDIA driver of this machine; options may be NULL. -ST_EDOWN says what is missing. */
int st_gpu_nvml_open(const st_gpu_nvml_options *options, st_gpu **ret, st_err *err);

void st_gpu_free(st_gpu *g);
ST_DEFINE_FREEP(st_gpu, st_gpu_free)

const char *st_gpu_driver(const st_gpu *g);
int st_gpu_inventory_get(st_gpu *g, st_gpu_inventory *ret, st_err *err);

/* Of a GPU, or of one GPU instance of it. Ratios and rates are over the time since the
 * last sample of the same thing, so a first one lacks them. `now_ms` is the caller's clock. */
int st_gpu_sample_get(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err);

/* Has the next sample of a GPU read anew what a driver otherwise reads every few seconds, such as
 * the energy counter; for the moments a bill begins and ends. */
void st_gpu_fresh(st_gpu *g, int gpu);

/* Fills buf up to `room`; *ret_n is how many there are. */
int st_gpu_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err);

/* 1 and an event, or 0 when there was none in that time. */
int st_gpu_wait(st_gpu *g, int timeout_ms, st_gpu_event *ret, st_err *err);

int st_gpu_set_mode(st_gpu *g, int gpu, st_gpu_mode mode, st_err *err);

/* MIG. Turning it on or off needs a GPU nobody uses, and root. */
int st_gpu_mig_mode(st_gpu *g, int gpu, bool on, st_err *err);
int st_gpu_mig_profiles(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err);
int st_gpu_mig_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err);
int st_gpu_mig_create(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                      st_err *err);
int st_gpu_mig_destroy(st_gpu *g, int gpu, int gi, st_err *err);

/* One wanted instance. */
typedef struct st_gpu_slot {
    st_mig profile;
    int start;
} st_gpu_slot;

typedef struct st_gpu_reconciled {
    int kept, made, removed;
    int busy;                     /* not wanted, but in use: left alone, for the caller to end */
    st_gpu_instances now;         /* as it is afterwards */
    int at[ST_GPU_INSTANCES_MAX]; /* wanted[i] is now.v[at[i]]; -1 when its place is busy */
} st_gpu_reconciled;

/* Makes a GPU's instances those wanted: keeps what fits, removes what does not, makes what is
 * missing. An empty list leaves none. What is in use is never forced. The wanted slots must be
 * legal and disjoint. */
int st_gpu_mig_reconcile(st_gpu *g, int gpu, const st_gpu_slot *wanted, int n,
                         st_gpu_reconciled *ret, st_err *err);

/* What MPS can do on a GPU; refused, with the reason, where it cannot. */
typedef struct st_gpu_mps {
    int clients;       /* at most */
    bool memory_limit; /* per client */
    bool partitions;   /* SMs of its own for each client, not just a ceiling */
} st_gpu_mps;

int st_gpu_mps_facts(const st_gpu_inventory *inv, int gpu, st_gpu_mps *ret, st_err *err);

#endif
