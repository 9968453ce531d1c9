/* MIG geometry: which slices of a GPU may be carved where, and what they count for.
 *
 * A GPU has eight memory slices and seven compute slices. A profile takes a run of memory
 * slices that begins at one of a few legal starts, and some compute slices. Two numbers
 * follow from a profile and must not be confused:
 *   charge     max(compute/7, memory/8) of a GPU, rounded down to a milli: what quota counts;
 *   footprint  memory/8 of a GPU: what physical conservation counts. 4g + 3g fill a GPU and
 *              charge 1071 milli; their footprints are 500 + 500.
 * The state of a carved GPU is a mask of memory slices and a count of compute slices.
 *
 * The agent trusts what the driver answers over this table; the core plans with it. */
#ifndef ST_MODEL_MIG_H
#define ST_MODEL_MIG_H

#include <stdbool.h>
#include <stdint.h>

typedef enum st_board {
    ST_BOARD_NONE, /* cannot be carved */
    ST_BOARD_A100_40,
    ST_BOARD_A100_80,
    ST_BOARD_H100_80,
    ST_BOARD_H200_141,
    ST_BOARD_COUNT
} st_board;

typedef enum st_mig {
    ST_MIG_1G,
    ST_MIG_1G2, /* one compute slice, two memory slices */
    ST_MIG_2G,
    ST_MIG_3G,
    ST_MIG_4G,
    ST_MIG_7G,
    ST_MIG_COUNT
} st_mig;

#define ST_MIG_COMPUTE 7
#define ST_MIG_MEMORY  8

/* "a100-40" and so on; -1 when unknown. */
const char *st_board_name(st_board board);

/* The vendor's name of a profile on a board ("3g.40gb"); NULL on a board without MIG. */
const char *st_mig_name(st_board board, st_mig profile);

/* "3g.40gb" (must exist on the board) or the short "3g", "1g+" for 1g with double memory.
 * -1 when the board has no such profile. */
int st_mig_parse(st_board board, const char *name);

int st_mig_compute(st_mig profile);
int st_mig_memory(st_mig profile);
int64_t st_mig_charge_m(st_mig profile);
int64_t st_mig_footprint_m(st_mig profile);
int64_t st_mig_vram_mib(st_board board, st_mig profile);

/* Whether `profile` may begin at memory slice `start` on an empty GPU. */
bool st_mig_start_legal(st_mig profile, int start);
uint8_t st_mig_mask(st_mig profile, int start);
/* Whether a slice there would lie on one that is in `mask`. */
bool st_mig_overlaps(uint8_t mask, st_mig profile, int start);

/* How many more instances of `profile` fit a GPU in this state; exact. */
int st_mig_room(uint8_t mask, int compute, st_mig profile);

/* The legal start that promises most (ties: the highest start); -1 when there is none. */
int st_mig_best_start(uint8_t mask, int compute, st_mig profile);

/* What a state promises: first of all the place of a 4g slice, if that is free; then
 * how many layouts of classic slices can be reached. */
int st_mig_promise(uint8_t mask, int compute);

#define ST_MIG_DOORS_MAX 1000 /* more than there are layouts */

/* How many placed layouts can still be reached from a state, itself included; with
 * `classic`, 1g+ is left out. */
int st_mig_doors(uint8_t mask, int compute, bool classic);

#endif
