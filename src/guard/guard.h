/*
 * The guard inside a process: its state, and what its files have for each other. Nothing here is seen by the
 * program around it; what is, is in guard/entries.h.
 *
 * 1. Nothing is opened, mapped or started before the program asks for the driver: a shell pays a page fault.
 * 2. No lock is held while the driver is called, but a device's own (`guard_device.lock`), under which batches are
 *    opened, closed and waited for. The driver never calls back into the guard.
 * 3. What other processes of the task read is changed by single stores of 8 bytes, so that a process that is killed
 *    between any two instructions leaves numbers that are true.
 */
#ifndef GUARD_GUARD_H
#define GUARD_GUARD_H

#include <stdbool.h>

#include "guard/abi.h"
#include "guard/cuda.h"
#include "guard/entries.h"

/* One number per entry: GUARD_FN_cuMemAlloc_v2. The driver's own function is guard.real[that]. */
typedef enum guard_fn {
#define GUARD_FN_ENUM(name, ...) GUARD_FN_##name,
    GUARD_CALLS(GUARD_FN_ENUM) GUARD_WORK(GUARD_FN_ENUM) GUARD_REFUSED(GUARD_FN_ENUM)
        GUARD_HELPERS(GUARD_FN_ENUM) GUARD_FN_NVML,
    GUARD_FN_NVML_BEFORE = GUARD_FN_NVML - 1,
    GUARD_NVML(GUARD_FN_ENUM) GUARD_FN_nvmlDeviceGetUUID,
    GUARD_FN_COUNT
#undef GUARD_FN_ENUM
} guard_fn;

#define GUARD_STREAMS 8 /* of one batch */
#define GUARD_PENDING 4 /* batches in flight */
#define GUARD_GAPS    8 /* between requests, that a rhythm is taken from */

/* Work between two events of the driver's. */
typedef struct guard_batch {
    CUevent first, last[GUARD_STREAMS];
    CUstream stream[GUARD_STREAMS];
    bool recorded[GUARD_STREAMS]; /* `last` is in its stream already */
    int nstream, launches;
    uint64_t opened_ns;
} guard_batch;

/* A device of the grant, as this process sees it. */
typedef struct guard_device {
    _Atomic uint32_t lock; /* of this process's threads */
    bool mapped;
    const guard_limit *limit;
    const guard_board *board;
    guard_turn *turn;
    guard_usage *usage;
    const guard_turn *other[GUARD_SLOTS];
    uint64_t looked_ns, stopped_ns[GUARD_SLOTS]; /* until then this neighbour is not waited for */
    int near[GUARD_SLOTS], nnear;                /* slots in use besides ours */
    uint64_t company_ns;
    bool company;      /* somebody used it lately, as of then */
    bool patient;      /* a latency task is among them */
    int me;            /* index in usage->proc, -1: none yet */
    CUcontext context; /* of the events */
    guard_batch ring[GUARD_PENDING];
    int head, pending; /* ring[head] is open when `open` */
    bool open, has_turn;
    uint64_t launched_ns, gap_ns; /* the latest launch, and the usual gap between two */
    uint64_t each_ns;             /* what one launch takes, as seen lately */
    uint64_t ran_ns;              /* when the latest batch was waited for */
    uint64_t gap[GUARD_GAPS];     /* between beginnings of a latency task */
    uint32_t ngap;
    uint32_t told_pm;  /* the cap that was told */
    uint64_t burst_ns; /* the first launch since the latest wait; 0: none */
    uint64_t cost_ns;  /* what the latest batch costs where there is a limit on time */
    _Atomic uint32_t small_lock;
    uint64_t small; /* bytes of allocations below a page of the device */
} guard_device;

typedef struct guard_state {
    _Atomic uint32_t lock; /* of the table of pointers, and of looking up */
    _Atomic uint32_t
        ready; /* 0: not yet, 1: limits are there, 2: they are not, and nothing is allowed */
    const guard_grant *grant;
    char dir[256];
    guard_device dev[GUARD_DEVICES];
    int ordinal[64]; /* CUDA's number of a device -> ours; -1: not granted */
    int nordinal;
    _Atomic int captures;
    bool graph_memory;
    void *real[GUARD_FN_COUNT];
    void *libcuda, *libnvml;
} guard_state;

extern guard_state guard;

/* ---- real.c: the driver's own functions ---- */

/* NULL where this driver lacks it. */
void *guard_real(guard_fn fn);
#define GUARD_REAL(type, name) ((type)guard_real(GUARD_FN_##name))
/* What stands before a name of the driver or of NVML; NULL: nothing does. */
void *guard_stands_for(const char *name);
/* The same for cuGetProcAddress. */
void *guard_stands_for_version(const char *base, int version, bool per_thread);

/* ---- elf.c ---- */
void *guard_libc_symbol(const char *name);

/* ---- page.c: the agent's files ---- */

/* True: limits are there. Says once on stderr why not. */
bool guard_begin(void);
/* The device of the current context, or of a number of CUDA's; NULL: none that is granted. */
guard_device *guard_device_now(void);
guard_device *guard_device_of(CUdevice device);
/* What a call is answered that has no such device. Without a context it is the driver's own answer: CUDA's runtime
 * makes one then and calls again. */
CUresult guard_no_device(void);
bool guard_map(guard_device *d);
bool guard_peek(const guard_device *d, int slot, guard_turn *ret);
void guard_after_fork(void);

/* ---- usage.c: memory of all processes of the task ---- */
bool guard_charge(guard_device *d, guard_kind kind, uint64_t bytes);
void guard_uncharge(guard_device *d, guard_kind kind, uint64_t bytes);
/* Sets what this process holds of one kind; false: more than is granted (and it is set all the same). */
bool guard_charge_set(guard_device *d, guard_kind kind, uint64_t bytes);
uint64_t guard_held(guard_device *d);
uint64_t guard_mine(guard_device *d, guard_kind kind);
bool guard_proc_lives(const guard_proc *p);
void guard_count(guard_device *d, guard_counter what, uint64_t n);

/* ---- table.c: what a pointer or a handle stands for ---- */
typedef struct guard_entry {
    uint64_t key, bytes, aux;
    int32_t device;
    int16_t refs;
    uint8_t kind, set; /* set: 0 pointers, 1 VMM handles, 2 VMM maps, … */
} guard_entry;
enum {
    GUARD_SET_POINTER,
    GUARD_SET_HANDLE,
    GUARD_SET_MAP,
    GUARD_SET_ARRAY,
    GUARD_SET_GRAPH,
    GUARD_SET_EXTERNAL,
    GUARD_SET_POOL
};
bool guard_table_put(guard_entry e);
/* Takes it out and hands it over. */
bool guard_table_take(int set, uint64_t key, guard_entry *ret);
/* Under the table's lock; false: not there. */
bool guard_table_change(int set, uint64_t key, int refs, int64_t bytes, guard_entry *ret);
/* The first entry of a set at or behind a place; for sweeps. */
bool guard_table_next(int set, size_t *at, guard_entry *ret);
void guard_table_forget(void);

/* ---- turn.c: who may begin work ---- */
void guard_turn_wait(guard_device *d);
void guard_turn_pass(guard_device *d, uint64_t used_ns);
/* Others want the device, or may at any moment. */
bool guard_in_company(guard_device *d, uint64_t now);
void guard_look_around(guard_device *d, uint64_t now);
void guard_show_active(guard_device *d, bool active, uint64_t now);
void guard_yield_to_latency(guard_device *d);
/* Time until a latency task that keeps a rhythm is back; 0: one is at work, or none keeps one. */
uint64_t guard_room(guard_device *d, uint64_t now);
/* Others keep little in flight beside it: for good, or for now. */
static inline bool guard_is_latency(const guard_device *d)
{
    return d->limit->latency || d->limit->protect;
}
/* The most of 1000 that it may have of the clock; 0: no limit. */
uint32_t guard_most(const guard_device *d);
void guard_spend(guard_device *d, uint64_t used_ns);
void guard_wait_until_allowed(guard_device *d);

/* ---- mark.c: how long requests take ---- */
void guard_burst_begin(guard_device *d, uint64_t now);
void guard_burst_end(guard_device *d, uint64_t now);

/* ---- memory.c ---- */
void guard_uncharge_plain(const guard_entry *e);

/* ---- graph.c ---- */
CUresult guard_graph_fits(void);

/* ---- batch.c: work in flight, and its time ---- */
typedef struct guard_pass {
    guard_device *d; /* NULL: nothing is counted */
    CUstream stream;
    bool twin, locked; /* locked: the device stays so over the call */
} guard_pass;
guard_pass guard_enter(CUstream stream, bool twin, guard_counter what);
void guard_leave(const guard_pass *p, CUresult r);
/* Before and behind a call that waits for work. */
void guard_before_wait(void);
void guard_after_wait(void);

/* ---- lock.c ---- */
uint64_t guard_now(void);
void guard_lock(_Atomic uint32_t *lock);
void guard_unlock(_Atomic uint32_t *lock);
void guard_futex_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t ns);
/* Wakes so many of those that wait. */
void guard_futex_wake(_Atomic uint32_t *word, int most);
#define GUARD_ALL INT32_MAX
void guard_say(const char *text, const char *what);

/* A wrapper under the driver's own name. */
#define GUARD_CALL(name, ...)                                          \
    __attribute__((visibility("default"))) CUresult name(__VA_ARGS__); \
    CUresult name(__VA_ARGS__)

#endif
