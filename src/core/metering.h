/* From the core's effects to the meter (meter/meter.h): who is told what, and when.
 *
 * The meter is a function of the effects: fed with all of them, in order, it knows who is on which
 * device since when. Playing a log again therefore gives the meter again. */
#ifndef ST_CORE_METERING_H
#define ST_CORE_METERING_H

#include "core/core.h"
#include "meter/meter.h"

/* When the work of a job that has just ended, or left its devices, really ended; ST_UNSET: not known,
 * so it is now. */
typedef struct st_metering_hint {
    int64_t (*started_ms)(void *ctx,
                          uint64_t job); /* likewise, since when it really ran; NULL: never known */
    int64_t (*ended_ms)(void *ctx, uint64_t job);
    void *ctx;
} st_metering_hint;

/* Effects `from` and on, of steps the core has just taken; `hint` may be NULL. Those of each step are best
 * handed over before the next: of a job that started and ended in between there is nothing left to read.
 *
 *   START, RESUME           a stay begins
 *   CLASS                   guaranteed or burstable from now on
 *   PAUSE, REQUEUE          it ends: at fault is a node of the job that has failed, or else whom it yields to
 *   END                     likewise, for good; preempted if the job was one that is cancelled to yield
 *   HOLD, UNHOLD            capacity is kept for a plan
 *   NODE, FLOOR             nodes and floors as they are from now on */
void st_core_meter(const st_core *core, const st_effects *fx, size_t from, int64_t now,
                   const st_metering_hint *hint, st_meter *m, st_records *out);

/* Makes a fresh meter agree with a core that has been running: stays begin now. */
void st_core_meter_seed(const st_core *core, st_meter *m, int64_t now, st_records *out);

/* Whether the meter's idea of who is on which device is the core's. */
int st_core_meter_check(const st_core *core, const st_meter *m, st_err *err);

#endif
