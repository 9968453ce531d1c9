/* The meter: who held which devices, for how long and by what right.
 *
 * It is told what happens to nodes, grants and floors, and hands out records (model/record.h) when an
 * interval ends: the stay ends, its basis changes, or st_meter_cut() is called because a day, a month or a
 * price does. A record never spans such a moment.
 *
 * Invariants:
 *  1 For each device at every instant: the shares of its residents + idle + unhealthy + overhead = 1000
 *    milli-GPU, exactly. Integers only; what division leaves over is given to somebody.
 *  2 The records of a stay join without gap or overlap, from its start to its end.
 *  3 Time does not run backwards: a call with an earlier moment than the last is taken as at the last.
 *  4 What telemetry says changes no share and no held time. What comes after a record was handed out
 *    comes out as a FIX; what comes twice or out of order changes nothing.
 *  5 The same calls give the same records; a meter saved and loaded goes on the same way.
 *
 * idle: free and could be granted. overhead: free and could not: on a draining node, held for
 * somebody who waits for the rest, slices no profile fits, and the time between a task's real end and the
 * moment that became known. unhealthy: of a failed node.
 *
 * Place in the law: base <- model <- meter. Pure. core/metering.c feeds it from the core's effects. */
#ifndef ST_METER_METER_H
#define ST_METER_METER_H

#include "base/strbuf.h"
#include "model/fleet.h"
#include "model/record.h"
#include "model/tree.h"

typedef struct st_meter st_meter;

st_meter *st_meter_new(int64_t now);
void st_meter_free(st_meter *m);
ST_DEFINE_FREEP(st_meter, st_meter_free)

int64_t st_meter_now(const st_meter *m);

/* A node is new or its state has changed. */
void st_meter_node(st_meter *m, const st_node *node, int64_t now);

/* A stay begins: the job is on these devices. `type` is the GPU type it got, -1 none. A job that is
 * known already is moved (its old stay ends). Whether it is burst or on demand is decided here. */
void st_meter_start(st_meter *m, const st_tree *tree, const st_job *job, int32_t type,
                    const st_grant *grants, int64_t now, st_records *out);
/* It is guaranteed or burstable from now on. */
void st_meter_class(st_meter *m, const st_tree *tree, uint64_t job, st_class class, int64_t now,
                    st_records *out);
/* It is off its devices. ended_ms is when its work really ended, at most now (the time after it is
 * overhead, not the tenant's); `lost` as in the record. */
void st_meter_stop(st_meter *m, uint64_t job, int64_t now, int64_t ended_ms, st_cut why,
                   int64_t lost, st_records *out);

/* Capacity is kept free for a job that waits for the rest of its plan; NULL: no more. */
void st_meter_hold(st_meter *m, uint64_t job, const st_grant *grants, int n, const st_shape *shape,
                   int64_t now);

/* The floors as they are from now on: each account is charged its own less its children's. */
void st_meter_floors(st_meter *m, const st_tree *tree, int64_t now, st_records *out);

/* Burst of an account and all below it beyond `gpu_m` is on demand; ST_UNSET: never. Counts for
 * intervals that begin later. */
void st_meter_agree(st_meter *m, int32_t account, int64_t gpu_m);

/* Telemetry of one task of the stay: sums since it began. Late, repeated and reordered ones are fine. */
void st_meter_used(st_meter *m, uint64_t job, int stay, int task, const st_sums *sums,
                   st_records *out);

/* Ends all intervals here and begins new ones; adds a FLEET record for each type (and a RESERVE for
 * each floor). Records come in a fixed order: fleet by type, floors by account, grants by job. */
void st_meter_cut(st_meter *m, int64_t now, st_records *out);

/* What the open intervals would be if they ended now, without ending them. Telemetry as known. */
typedef int (*st_record_fn)(void *ctx, const st_record *record);
int st_meter_open(const st_meter *m, int64_t now, st_record_fn fn, void *ctx);

/* Where the devices of a type have been since the meter began, up to the last call. */
void st_meter_totals(const st_meter *m, int32_t type, st_record *ret);

/* Everything, as bytes; damaged ones are refused. */
void st_meter_save(const st_meter *m, st_strbuf *out);
int st_meter_load(const char *data, size_t len, st_meter **ret, st_err *err);

#endif
