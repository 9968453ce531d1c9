/*
 * The gate for what nodes say. A node is somebody else's machine: whatever it reports that money or decisions
 * depend on comes through here and is bounded by physics. What is beyond is cut to what can be; the caller flags
 * the node.
 *
 *     held <= devices x time on them          seen <= held; busy, sm, dram <= seen
 *     energy <= board power x held            memory <= that of the devices
 *     traffic <= the fastest links x held     counters of a stay never fall
 *
 * Pure.
 */
#ifndef ST_MODEL_SAID_H
#define ST_MODEL_SAID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/used.h"

/* What a node can be flagged with: X(id, word) */
#define ST_FLAG_TABLE(X)                                                   \
    X(ST_FLAG_VOICES, "two-voices")          /* two agents have its key */ \
    X(ST_FLAG_FIGURES, "impossible-figures") /* use, energy, memory or time */
typedef enum st_flag {
#define X(id, word) id,
    ST_FLAG_TABLE(X)
#undef X
        ST_FLAG_COUNT
} st_flag;

const char *st_flag_name(st_flag flag);

/* What one task of a stay can have used. */
typedef struct st_bounds {
    int devs;
    int64_t time_ms; /* since it got them */
    int64_t watts;   /* of one device, at most */
    int64_t part_m;  /* of a device that is its own: slices of MIG; 1000 otherwise */
    int64_t vram_mib;
} st_bounds;

/* Of a GPU type; of one that is not in the table ST_WATTS_MOST. */
#define ST_WATTS_MOST 1500
int64_t st_watts_of(const char *type);

/* Cuts *used to what is possible and to no less than *before, which was said earlier (NULL: nothing). Returns the
 * kinds (bits) that were beyond it by more than clocks and samples explain. */
uint32_t st_said_used(const st_bounds *bounds, const st_used *before, st_used *used);

/* How a task ended. A code is 0 to 255, a signal 0 to 64; false: it was neither, and was replaced by 255 or 9. */
bool st_said_exit(int64_t code, int64_t signal, int *ret_code, int *ret_signal);

/* A sentence of a node, fit for a line of a log and for people: at most `size` - 1 bytes, control characters and
 * what changes the direction of text replaced. */
void st_said_text(const char *text, char *ret, size_t size);

/* What may be said of a machine: letters, digits and a few marks, 1 to `max` bytes. */
bool st_said_word(const char *text, size_t max);

#define ST_NODE_CPU_M_MAX   (INT64_C(16384) * 1000)
#define ST_NODE_RAM_MIB_MAX (INT64_C(256) << 20) /* 256 TiB */
#define ST_TYPE_VRAM_MAX    (INT64_C(4) << 20)   /* 4 TiB */

#endif
