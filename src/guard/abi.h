/*
 * What the agent and libstint-guard.so share: files that the agent makes and the guard maps. doc/dev/guard.md
 * says what each is for and who may write it. A change of layout is a new GUARD_VERSION, or a new GUARD_USAGE.
 *
 *   DIR/grant         guard_grant   the agent writes, its task reads
 *   DIR/dev.N/board   guard_board   the agent writes, every task on the device reads
 *   DIR/dev.N/turn.K  guard_turn    the task in slot K writes (as own.N/turn), every task on the device reads
 *   DIR/own.N/turn    guard_turn    the task's own turn.K
 *   DIR/own.N/book    guard_usage    the task writes, nobody else sees it; the agent reads it with suspicion
 *
 * N is the index of the device in the grant. All times are CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef GUARD_ABI_H
#define GUARD_ABI_H

#include <stdatomic.h>
#include <stdint.h>

#define GUARD_MAGIC   UINT32_C(0x44524753)
#define GUARD_VERSION 1                  /* of grant, board and turn */
#define GUARD_USAGE   2                  /* of the book */
#define GUARD_DIR     "/run/stint-guard" /* in a task */
#define GUARD_DEVICES 16
#define GUARD_SLOTS   32
#define GUARD_PROCS   2048
#define GUARD_UUID    16

/* Memory by kind; one row each in metrics. */
#define GUARD_KINDS(X)      \
    X(PLAIN, "plain")       \
    X(MANAGED, "managed")   \
    X(POOL, "pool")         \
    X(VMM, "vmm")           \
    X(ARRAY, "array")       \
    X(GRAPH, "graph")       \
    X(EXTERNAL, "external") \
    X(CONTEXT, "context")

typedef enum guard_kind {
#define GUARD_KIND_ENUM(name, text) GUARD_##name,
    GUARD_KINDS(GUARD_KIND_ENUM)
#undef GUARD_KIND_ENUM
        GUARD_KIND_COUNT
} guard_kind;

#define GUARD_LEVEL_TIME 0
#define GUARD_LEVEL_MPS  1

/* What a task may use of one device. */
typedef struct guard_limit {
    uint8_t uuid[GUARD_UUID]; /* all zero: the device with this index, whatever it is */
    uint64_t vram_bytes;
    uint64_t context_bytes; /* what a process takes by having a context */
    uint32_t share_pm;      /* of 1000 */
    uint32_t hard;          /* never more than the share, not even when others are idle */
    _Atomic uint32_t
        latency;    /* others keep little in flight and begin nothing while it is active */
    uint32_t level; /* GUARD_LEVEL_… */
    uint32_t slot;
    uint32_t quantum_us; /* a turn */
    uint32_t bound_us;   /* the most in flight beside a latency task */
    /* The agent may change these two while the task runs. */
    _Atomic uint32_t cap_pm;  /* never more than this of 1000, at any level; 0: no cap */
    _Atomic uint32_t protect; /* it is treated as a latency task */
    uint32_t limit_s;         /* GPU time of the task, for the agent; 0: no limit */
    uint32_t spare[2];
} guard_limit;

typedef struct guard_grant {
    uint32_t magic, version, ndev, spare;
    guard_limit dev[GUARD_DEVICES];
} guard_grant;

typedef struct guard_board {
    uint32_t magic, version;
    struct {
        _Atomic uint32_t used, latency;
    } slot[GUARD_SLOTS];
} guard_board;

#define GUARD_IDLE  0
#define GUARD_WANTS 1
#define GUARD_RUNS  2
#define GUARD_PAUSE \
    3 /* has just waited for its work, and may go on at once: keeps its place for a moment */

/* All that neighbours see of a task: whether it wants or has the device, and whose turn it is by time used. */
typedef struct guard_turn {
    uint32_t magic, version;
    _Atomic uint32_t state;     /* GUARD_IDLE … GUARD_PAUSE */
    _Atomic uint32_t word;      /* futex: changes when `state` or `active_ns` do */
    _Atomic uint64_t vtime;     /* GPU time used, over the share */
    _Atomic uint64_t seen_ns;   /* its latest sign of life while it wants or runs */
    _Atomic uint64_t active_ns; /* a latency task at work since then; 0: not at work */
    _Atomic uint64_t last_ns;   /* when it last began */
    _Atomic uint64_t period_ns; /* it begins so far apart */
    _Atomic uint64_t off_ns;    /* give or take */
} guard_turn;

typedef struct guard_proc {
    _Atomic uint32_t pid; /* as the task counts; 0: free */
    uint32_t spare;
    _Atomic uint64_t born; /* start time by /proc, so that a pid used again is not it */
    _Atomic uint64_t bytes[GUARD_KIND_COUNT];
} guard_proc;

/* Counters, for metrics. */
#define GUARD_COUNTERS(X)                                                           \
    X(LAUNCHES, "launches", "Kernels a task started.")                              \
    X(GRAPHS, "graph_launches", "Graphs a task started.")                           \
    X(COPIES, "copies", "Copies and fills a task started.")                         \
    X(GPU_NS, "gpu_ns", "GPU time of a task, in ns.")                               \
    X(WAIT_NS, "wait_ns", "Time a task waited for its turn, in ns.")                \
    X(TURNS, "turns", "Turns a task had.")                                          \
    X(YIELDS, "yields", "Waits for a latency task.")                                \
    X(REFUSED, "refused_allocations", "Allocations refused because of the grant.")  \
    X(LONG, "long_batches", "Batches longer than the bound beside a latency task.") \
    X(BURSTS, "bursts", "Times a task waited for work it had started.")             \
    X(REQUESTS, "requests", "Requests a task marked.")                              \
    X(REQUEST_NS, "request_ns", "Time of the requests a task marked, in ns.")       \
    X(CAPPED_NS, "capped_ns", "Time a task waited because of a hard share or a cap, in ns.")
typedef enum guard_counter {
#define GUARD_COUNTER_ENUM(name, ...) GUARD_COUNT_##name,
    GUARD_COUNTERS(GUARD_COUNTER_ENUM)
#undef GUARD_COUNTER_ENUM
        GUARD_COUNT_COUNT
} guard_counter;

/* How often something took how long: sixteen steps to a doubling, from 64 ns to a minute. */
#define GUARD_TIMES 448

static inline int guard_time_step(uint64_t ns)
{
    uint64_t v = ns / 64;
    int e = v ? 63 - __builtin_clzll(v) : 0, i;

    if (v < 16)
        return (int)v;
    i = (e - 3) * 16 + (int)(v >> (e - 4) & 15);
    return i < GUARD_TIMES ? i : GUARD_TIMES - 1;
}

/* Where a step begins. */
static inline uint64_t guard_time_least(int step)
{
    if (step < 16)
        return (uint64_t)step * 64;
    return (uint64_t)(16 + step % 16) << (step / 16 - 1) << 6;
}

typedef struct guard_usage {
    uint32_t magic, version;
    _Atomic uint32_t lock;    /* 1 + index of the process that changes memory; 0: nobody */
    _Atomic uint32_t holder;  /* 1 + index of the process that has the task's turn; 0: nobody */
    _Atomic uint64_t held_ns; /* its latest sign of life */
    _Atomic uint64_t next_ns; /* a hard share: nothing begins before */
    _Atomic uint64_t count[GUARD_COUNT_COUNT];
    _Atomic uint32_t nproc; /* no process is behind this index */
    guard_proc proc[GUARD_PROCS];
    _Atomic uint64_t burst[GUARD_TIMES];   /* from a launch until it was waited for */
    _Atomic uint64_t request[GUARD_TIMES]; /* of what the task marked as requests */
} guard_usage;

#endif
