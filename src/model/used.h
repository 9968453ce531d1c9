/*
 * What a task did with its devices, and what was found on them when it left. Agents count, the
 * engine hands on, stintd keeps: one table for all.
 *
 * Sums are cumulative over one stay of one task. What was not measured is unknown, not zero: its
 * bit in `has` is not set.
 */
#ifndef ST_MODEL_USED_H
#define ST_MODEL_USED_H

#include <stdbool.h>
#include <stdint.h>

/* X(id, key, meaning): over the devices of a grant. */
#define ST_USED_TABLE(X)                                                                 \
    X(ST_USED_HELD, "held_gpu_ms") /* devices x time */                                  \
    X(ST_USED_SEEN, "seen_gpu_ms") /* of that, with samples around it */                 \
    X(ST_USED_BUSY, "busy_gpu_ms") /* a kernel was running */                            \
    X(ST_USED_SM, "sm_gpu_ms")     /* SMs had work, averaged over SMs */                 \
    X(ST_USED_DRAM, "dram_gpu_ms") /* device memory was busy */                          \
    X(ST_USED_PCIE, "pcie_bytes")                                                        \
    X(ST_USED_NVLINK, "nvlink_bytes")                                                    \
    X(ST_USED_ENERGY, "energy_mj")                                                       \
    X(ST_USED_MEM_PEAK, "mem_peak_mib") /* the most on all devices at once; not a sum */ \
    X(ST_USED_MEM, "mem_mib_s")         /* memory in use x time, in what was seen */     \
    X(ST_USED_HEAT, "heat_c_s")         /* temperature in C x time, in what was seen */
typedef enum st_used_kind {
#define X(id, key) id,
    ST_USED_TABLE(X)
#undef X
        ST_USED_COUNT
} st_used_kind;

typedef struct st_used {
    uint32_t has; /* bit per kind */
    int64_t v[ST_USED_COUNT];
} st_used;

const char *st_used_key(st_used_kind kind);
bool st_used_same(const st_used *a, const st_used *b);
/* What two grants used together; what one of them did not measure is the other's alone. */
void st_used_add(st_used *to, const st_used *more);

/* What became of the memory of a grant's devices before they went on. */
#define ST_SCRUB_TABLE(X)                                                            \
    X(ST_SCRUB_PENDING, "pending")         /* not known yet */                       \
    X(ST_SCRUB_NONE, "none")               /* not looked at: nobody else gets it */  \
    X(ST_SCRUB_CLEAN, "clean")             /* all of it was read, and was zero */    \
    X(ST_SCRUB_OVERWRITTEN, "overwritten") /* it was not; now it is, and was read */ \
    X(ST_SCRUB_FAILED, "failed")           /* could not be told; nobody gets it */
typedef enum st_scrub_result {
#define X(id, word) id,
    ST_SCRUB_TABLE(X)
#undef X
        ST_SCRUB_COUNT
} st_scrub_result;

typedef struct st_scrub {
    st_scrub_result result;
    int64_t bytes; /* read */
    int64_t found; /* words of 4 bytes that were not zero */
    int64_t ms;
} st_scrub;

const char *st_scrub_name(st_scrub_result result);
int st_scrub_parse(const char *word); /* -1: none of them */

#endif
