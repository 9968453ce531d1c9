/*
 * Frame lists and index lists: "1-240,300-310x2" is the frames 1 to 240, then every second one
 * from 300 to 310. Ranges are in order and do not overlap; nothing is repaired, a list that is
 * not exactly this is refused. Chunks never go across two ranges, so that each chunk is a first,
 * a last and a step.
 */
#ifndef ST_RULES_FRAMES_H
#define ST_RULES_FRAMES_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

#define ST_FRAME_MAX  INT64_C(1000000000) /* the largest number of a frame */
#define ST_CHUNKS_MAX 10000               /* jobs out of one submit */

typedef struct st_frames {
    int64_t first, last, step; /* last is a member of it */
} st_frames;

typedef ST_VEC(st_frames) st_frames_vec;

/* Appends the ranges of the list to *ret. */
int st_frames_parse(const char *text, st_frames_vec *ret, st_err *err);

int64_t st_frames_count(const st_frames *range);

/* Cuts ranges into pieces of at most `chunk` frames; fails when there are too many. */
int st_frames_chunk(const st_frames_vec *ranges, int64_t chunk, st_frames_vec *ret, st_err *err);

#endif
