/* The meter: who held which devices, for how long and by what right.
 *
 * It is told what happens to nodes, grants and floors, and hands out records (model/record.h) when an
 * interval ends: the stay ends, its basis changes, or st_meter_cut() is called because a day, a month or a
 * price does. A record never spans such a moment.
 *
 * Invariants:
 *  1 For each device at every instant: the shares of its residents + idle + unhealthy + overhead = 1000
 *    milli-GPU, exactly. Integers only; what division leaves over is given to somebody.
 *  2 The records of a stay join without gap or overlap, from its start, or since its tasks really ran, to its end.
 *  3 Time does not run backwards: a call with an earlier moment than the last is taken as at the last.
 *  4 What telemetry says changes no share and no held time. What comes after a record was handed out
 *    comes out as a FIX; what comes twice or out of order changes nothing.
 *  5 The same calls give the same records; a meter saved and loaded goes on the same way.
 *
 * idle: free and could be granted. overhead: free and could not: on a draining node, held for
 * somebody who waits for the rest, slices no profile fits, the time between a start and the moment from which its tasks
 * really ran, and the time between a task's real end and the moment that became known. unhealthy: of a failed node.
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
/* It is that late now, and nothing else has happened. */
void st_meter_advance(st_meter *m, int64_t now);

/* A node is new or its state has changed. */
void st_meter_node(st_meter *m, const st_node *node, int64_t now);
/* One of its GPUs alone is out, or serves again (READY). */
void st_meter_gpu(st_meter *m, int32_t id, int gpu, st_node_state state, int64_t now);
st_node_state st_meter_gpu_state(const st_meter *m, int32_t id, int gpu);

/* A stay begins: the job is on these devices, one grant per task. `type` is the GPU type it got, -1
 * none. A job that is on devices already is moved (its old stay ends as preempted); a plan kept for it
 * is dropped. Whether it is burst or on demand is decided here. */
void st_meter_start(st_meter *m, const st_tree *tree, const st_job *job, int32_t type,
                    const st_grant *grants, int64_t now, st_records *out);
/* Its tasks have really run since began_ms, at most ST_METER_READY_MS after the start: the time before was spent on making
 * them ready and is overhead, not the tenant's. Counts once, and only while nothing of the stay was handed out: what a cut
 * has ended stays. Nothing for a job that was resumed. */
#define ST_METER_READY_MS 120000
void st_meter_began(st_meter *m, uint64_t job, int64_t began_ms, int64_t now);
/* The same of a job that goes on after a pause: its tasks are those that were paused, and what they say they
 * have seen goes on counting. In records each time on devices has a number of its own (job->times); telemetry
 * is by starts (job->stay), as agents count them. */
void st_meter_resume(st_meter *m, const st_tree *tree, const st_job *job, int32_t type,
                     const st_grant *grants, int64_t now, st_records *out);
/* The number of its newest record; 0 none. */
int st_meter_times(const st_meter *m, uint64_t job);
/* It is guaranteed or burstable from now on. */
void st_meter_class(st_meter *m, const st_tree *tree, uint64_t job, st_class class, int64_t now,
                    st_records *out);
/* The booking it runs in is paid for: its time is told as booked from now on, as long as its class is. */
void st_meter_booked(st_meter *m, uint64_t job, int64_t now, st_records *out);
/* An interval of it ends here, and another begins. */
void st_meter_split(st_meter *m, uint64_t job, int64_t now, st_records *out);
/* It is off its devices. ended_ms is when its work really ended, at most now (the time after it is
 * overhead, not the tenant's; ST_UNSET: now). For pieces that were handed out and lie behind the real
 * end, FIX records come first, then the GRANT that ends the stay.
 *
 * lost_ms: so much of its time on devices up to now is to be done again. A LOST record comes for each piece
 * that lies in it, oldest first, with what the stay had there and then; time after the real end is none. It
 * reaches into stays before this one as far as their work was kept in memory (st_meter_pause). A job that
 * is off its devices already only loses: a paused one whose memory is gone.
 *
 * Exact for the last 64 changes of who shares a device; what is older is interpolated. A stay remembers
 * its last 256 pieces; it cannot have ended before these, and nothing before them is lost. */
void st_meter_stop(st_meter *m, uint64_t job, int64_t now, int64_t ended_ms, st_cut why,
                   int64_t lost_ms, st_records *out);
/* It is off its devices and the work of the last unsaved_ms on them, in this stay and those before it, is kept in
 * memory: it is not lost, but may be. */
void st_meter_pause(st_meter *m, uint64_t job, int64_t now, int64_t unsaved_ms, st_records *out);
/* It will not come back: its stays need not be counted on. */
void st_meter_forget(st_meter *m, uint64_t job);

/* Capacity is kept free for a job that waits for the rest of its plan; NULL: no more. */
void st_meter_hold(st_meter *m, uint64_t job, const st_grant *grants, int n, const st_shape *shape,
                   int64_t now);

/* The floors as they are from now on: each account is charged its own less its children's. What is
 * promised of a type counts there, as far as its children have not been promised it; the rest is of any
 * type (-1). */
void st_meter_floors(st_meter *m, const st_tree *tree, int64_t now, st_records *out);

/* From now on what borrows and lies inside floors is told as such (`inside` in records): as far as guaranteed work leaves
 * room at every account above that has a floor, accounts in order, the oldest job first. A new meter does not: those who play
 * a log of before must get the records of before. */
void st_meter_inside(st_meter *m, const st_tree *tree, int64_t now);
bool st_meter_knows_inside(const st_meter *m);

/* Burst of an account and all below it beyond `gpu_m` is on demand; ST_UNSET: never. Counts for
 * intervals that begin later. A stay is all one or the other, but for what is inside floors: it is burst if all of
 * that fits beside those that are. At a cut those that are burst have the first right to stay so, in order of job. */
void st_meter_agree(st_meter *m, int32_t account, int64_t gpu_m);
/* What somebody of the account who comes to borrow so much now would be charged as. */
st_basis st_meter_borrows_as(const st_meter *m, int32_t id, int64_t gpu_m);

/* Telemetry of one task, sums since its job started for the `stay`th time, over pauses. Late, repeated and
 * reordered ones are fine: the largest counts.
 *
 * In a record, of D = devices x length device-milliseconds, with what came in since the last one:
 *
 *     seen = share x min(seen_gpu_ms, D) / D        busy likewise, at most seen
 *
 * so busy <= seen <= share, and for whole GPUs seen is 1000 x seen_gpu_ms. What exceeds D was seen
 * before the interval began and goes to the piece before it that has room, as a FIX; energy goes where
 * the seen time went. Stays that have ended are remembered for ST_METER_LATE_MS, the last
 * ST_METER_LATE_STAYS of them; what comes later is dropped. */
#define ST_METER_LATE_MS    3600000
#define ST_METER_LATE_STAYS 16384
void st_meter_used(st_meter *m, uint64_t job, int stay, int task, const st_sums *sums,
                   st_records *out);
/* Whether the stay is not over: telemetry about it gives no record now. */
bool st_meter_watches(const st_meter *m, uint64_t job, int stay);
/* What a record that was stored says about telemetry: for a meter that is brought up to date by playing a log
 * in which there is none, so that sums that come again are not counted again. GRANT and FIX, in order, each
 * after the call that gave it. */
void st_meter_recall(st_meter *m, const st_record *stored);

/* Ends all intervals here and begins new ones; adds a FLEET record for each type (and a RESERVE for
 * each floor). Records come in a fixed order: fleet by type, floors by account, grants by job. */
void st_meter_cut(st_meter *m, int64_t now, st_records *out);

/* What the open intervals would be if they ended now, without ending them, in the same order.
 * Telemetry as known. Ends early when fn returns other than 0, with that. */
typedef int (*st_record_fn)(void *ctx, const st_record *record);
int st_meter_open(const st_meter *m, int64_t now, st_record_fn fn, void *ctx);

/* Where the devices of a type have been since the meter began, up to the last call. */
void st_meter_totals(const st_meter *m, int32_t type, st_record *ret);

/* The same finer: by pool, and why a device is not granted. X(id, place, cause) */
#define ST_WHERE_TABLE(X)                                                                     \
    X(ST_WHERE_GRANTED, "granted", "work")                                                    \
    X(ST_WHERE_IDLE, "idle", "free")             /* anybody could have it */                  \
    X(ST_WHERE_FAILED, "unhealthy", "failed")    /* its node has failed */                    \
    X(ST_WHERE_DRAINING, "overhead", "draining") /* its node takes nothing new */             \
    X(ST_WHERE_KEPT, "overhead", "kept")         /* for a job that waits for the rest */      \
    X(ST_WHERE_LEFTOVER, "overhead", "leftover") /* slices that no profile fits */            \
    X(ST_WHERE_ENDED, "overhead", "ended")       /* the work was over, and nobody knew yet */ \
    X(ST_WHERE_STARTING, "overhead", "starting") /* tasks were being made ready */
typedef enum st_where {
#define X(id, place, cause) id,
    ST_WHERE_TABLE(X)
#undef X
        ST_WHERE_COUNT
} st_where;
const char *st_where_place(st_where where);
const char *st_where_cause(st_where where);

typedef struct st_meter_part {
    int32_t type, pool;         /* pool -1: not known, from a meter of before there was this */
    int64_t at[ST_WHERE_COUNT]; /* milli-GPU x ms since the meter began, or since there is this */
} st_meter_part;
/* By type and pool, up to a moment that is not before the last call; the caller frees *ret. */
size_t st_meter_parts(const st_meter *m, int64_t now, st_meter_part **ret);
/* A meter that was saved before there were parts learns which pool its nodes are in. */
void st_meter_pools(st_meter *m, const st_fleet *fleet);

/* For those who compare: how many nodes and open stays it knows, and the grants of one (NULL: it is
 * not on devices). */
size_t st_meter_nodes(const st_meter *m);
size_t st_meter_stays(const st_meter *m);
const st_grant *st_meter_grants(const st_meter *m, uint64_t job, int *ret_tasks);
st_node_state st_meter_node_state(const st_meter *m, int32_t node);
/* One of the job's nodes has failed. */
bool st_meter_failed(const st_meter *m, uint64_t job);
/* For those who check: where a device is at this instant, milli-GPU; and what it counts on itself. */
typedef struct st_meter_dev {
    int64_t granted_m, idle_m, unhealthy_m, overhead_m;
    int residents;
} st_meter_dev;
st_meter_dev st_meter_device(const st_meter *m, int32_t node, int dev);
int st_meter_check(const st_meter *m, st_err *err);

/* Everything, as bytes; damaged ones are refused. */
void st_meter_save(const st_meter *m, st_strbuf *out);
int st_meter_load(const char *data, size_t len, st_meter **ret, st_err *err);

#endif
