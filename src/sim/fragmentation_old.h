/*
 * Private to sim: the policies Stint's own is compared with, as they were published.
 */
#ifndef ST_SIM_FRAGMENTATION_OLD_H
#define ST_SIM_FRAGMENTATION_OLD_H

#include "sim/fragmentation.h"

typedef struct st_old st_old;

st_old *st_old_new(const st_openb *trace, const st_openb_stream *stream, st_frag_policy policy,
                   uint64_t seed);
void st_old_free(st_old *o);

/* Places the pod and takes the room; false when it fits nowhere. */
bool st_old_place(st_old *o, int32_t pod);

#endif
