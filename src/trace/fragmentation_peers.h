/*
 * Private to sim: the policies Stint's own is compared with, as they were published.
 */
#ifndef ST_TRACE_FRAGMENTATION_PEERS_H
#define ST_TRACE_FRAGMENTATION_PEERS_H

#include "trace/fragmentation.h"

typedef struct st_frag_peer st_frag_peer;

st_frag_peer *st_peer_new(const st_openb *trace, const st_openb_stream *stream,
                          st_frag_policy policy, uint64_t seed);
void st_peer_free(st_frag_peer *o);

/* Places the pod and takes the room; false when it fits nowhere. */
bool st_peer_place(st_frag_peer *o, int32_t pod);

#endif
