/*
 * Simulated GPUs: the driver for machines without any, for tests and for clusters on paper.
 *
 * A node is a short profile: TYPExCOUNT, groups joined by +, each with options behind commas:
 *
 *     h100x8        h200x1        a100-80x4,mig        h100x4+l40sx2,pcie
 *
 *     mig     MIG is on from the start
 *     pcie    no NVLink
 *
 * It looks like the hardware where the agent can tell: MIG geometry, capability numbers, what is
 * absent (activity ratios before Hopper, utilisation under MIG), IN USE refusals, UUIDs that may change
 * when an instance is made again. Memory and activity follow what the agent says is running. With
 * the same profile, name, seed, calls and clock it gives the same answers; nothing reads a clock.
 *
 * Faults come by function or by lines in a control file or FIFO, read when events are waited for:
 *
 *     NODE GPU FAULT [VALUE]        n17 3 xid 79      * * thermal 1      n2 0 lost
 *
 * One process may hold any number of nodes; each costs a few kilobytes, and file descriptors only
 * once its events are polled.
 */
#ifndef ST_GPU_SIM_H
#define ST_GPU_SIM_H

#include "gpu/gpu.h"

typedef struct st_gpu_sim_options {
    const char *profile;
    const char *node; /* its name; part of its UUIDs */
    uint64_t seed;
    const char *control; /* NULL: none */
} st_gpu_sim_options;

int st_gpu_sim_open(const st_gpu_sim_options *options, st_gpu **ret, st_err *err);

/* What one job does on a device. */
typedef struct st_gpu_load {
    int64_t pid;
    int64_t mem_mib;
    int busy_m; /* 0 to 1000, of the device it was given */
    bool mps;
} st_gpu_load;

/* Says what `job` does on a GPU or an instance from now on, instead of what it did before; NULL: it
 * is gone. More memory than there is, is refused with -ST_ELIMIT. */
int st_gpu_sim_load(st_gpu *g, int gpu, int gi, uint64_t job, const st_gpu_load *load,
                    int64_t now_ms, st_err *err);

/* Reads all free memory of a GPU or an instance and clears what is not zero. Drivers clear what they take
 * back; here everything that leaves leaves its memory behind as it was, so that somebody has something
 * to find. *ret_found is words of 4 bytes. */
int st_gpu_sim_scan(st_gpu *g, int gpu, int gi, int64_t *ret_bytes, int64_t *ret_found,
                    st_err *err);

/* X(id, name, least value, most value); no value is taken when both are 0. */
#define ST_GPU_FAULT_TABLE(X)                                   \
    X(ST_GPU_FAULT_XID, "xid", 1, 999)                          \
    X(ST_GPU_FAULT_ECC_CORRECTED, "ecc-corrected", 1, 1000000)  \
    X(ST_GPU_FAULT_ECC_UNCORRECTED, "ecc-uncorrected", 1, 1000) \
    X(ST_GPU_FAULT_REMAP_PENDING, "remap-pending", 0, 0)        \
    X(ST_GPU_FAULT_REMAP_FAILED, "remap-failed", 0, 0)          \
    X(ST_GPU_FAULT_RECOVERY, "recovery", 1, 4)                  \
    X(ST_GPU_FAULT_THERMAL, "thermal", 0, 1)                    \
    X(ST_GPU_FAULT_PCIE_WIDTH, "pcie-width", 1, 16)             \
    X(ST_GPU_FAULT_PCIE_REPLAY, "pcie-replay", 1, 1000000)      \
    X(ST_GPU_FAULT_LINKS_DOWN, "links-down", 0, 18)             \
    X(ST_GPU_FAULT_STUCK, "stuck", 0, 1)                        \
    X(ST_GPU_FAULT_MEMORY, "memory", 1, 10000000)               \
    X(ST_GPU_FAULT_PROCESS, "process", 0, 4194304)              \
    X(ST_GPU_FAULT_BUSY, "busy", 0, 1000)                       \
    X(ST_GPU_FAULT_WAITS, "waits", 0, 1000)                     \
    X(ST_GPU_FAULT_SLOW_PCIE, "slow-pcie", 1, 100)              \
    X(ST_GPU_FAULT_SLOW_MEMORY, "slow-memory", 1, 100)          \
    X(ST_GPU_FAULT_SLOW_PEER, "slow-peer", 1, 100)              \
    X(ST_GPU_FAULT_SLOW_COMPUTE, "slow-compute", 1, 100)        \
    X(ST_GPU_FAULT_BAD_WORDS, "bad-words", 1, 1000000)          \
    X(ST_GPU_FAULT_BAD_PRODUCTS, "bad-products", 1, 1000000)    \
    X(ST_GPU_FAULT_TEST_HANGS, "test-hangs", 0, 1)              \
    X(ST_GPU_FAULT_TEST_BREAKS, "test-breaks", 0, 255)          \
    X(ST_GPU_FAULT_LOST, "lost", 0, 0)                          \
    X(ST_GPU_FAULT_HEAL, "heal", 0, 0)
typedef enum st_gpu_fault {
#define X(id, name, least, most) id,
    ST_GPU_FAULT_TABLE(X)
#undef X
        ST_GPU_FAULT_COUNT
} st_gpu_fault;

/* Busy: thousandths of the time that a kernel of a job runs; 0: as jobs are. Waits: of that, without work for SMs. Slow: percent of what it reaches in tests. Test breaks: the program that tests ends with that status. Memory: who came last holds so many MiB, whether or not they were free. Process: that one uses the GPU, and is no job's; 0: it left. Lost: nothing answers, as after XID 79, which comes with it. Heal: as after a reset. */
int st_gpu_sim_fault(st_gpu *g, int gpu, st_gpu_fault fault, int64_t value, st_err *err);

/* One line of the control file; a line for another node does nothing. */
int st_gpu_sim_command(st_gpu *g, const char *line, st_err *err);

#endif
