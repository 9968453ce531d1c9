/*
 * The invariants of the meter (meter/meter.h), checked from outside.
 *
 * The audit keeps its own books: who is on which device, straight from the core's jobs, and what each
 * stay, each type and each floor must have come to, moment by moment. Records are held against these.
 *
 *   - at every instant a device is granted, idle, unhealthy or overhead, 1000 in all;
 *   - what stays have, together, is what was granted; all that was is accounted for;
 *   - a stay has its part of crowded devices, up to what rounding may leave, and exactly what it holds
 *     otherwise, up to when it really ended;
 *   - its pieces join; corrections name one; busy <= seen <= share <= held in each, after corrections;
 *   - what is seen in all is not more than telemetry told, however often;
 *   - guaranteed time is called so; floors are charged once.
 */
#ifndef ST_CHECK_METER_H
#define ST_CHECK_METER_H

#include "core/metering.h"

typedef struct st_audit st_audit;

st_audit *st_audit_new(int64_t now);
void st_audit_free(st_audit *a);
ST_DEFINE_FREEP(st_audit, st_audit_free)

/* It is `now`, and until now everybody was where they were. */
void st_audit_pass(st_audit *a, int64_t now);

/* The core has taken a step, and the meter will be told of it with this hint. Before its records. */
void st_audit_step(st_audit *a, const st_core *core, const st_effects *fx,
                   const st_metering_hint *hint);

/* The meter handed these out. `cut`: all that was open ended. */
int st_audit_records(st_audit *a, const st_records *records, bool cut, st_err *err);

/* Telemetry of the tasks of stay i comes, perhaps for the second time. */
void st_audit_used(st_audit *a, size_t i, int task, const st_sums *sums);

/* Everybody is where they are after the step: do the books agree? */
int st_audit_check(st_audit *a, const st_core *core, const st_meter *m, st_err *err);

/* Stays the audit knows, for those who make telemetry up: job, number, the start it belongs to, since when,
 * devices and tasks. */
typedef struct st_audit_stay {
    uint64_t job;
    int number, start, tasks, ndevs;
    int64_t start_ms;
    bool over;
} st_audit_stay;

size_t st_audit_nstays(const st_audit *a);
st_audit_stay st_audit_stay_at(const st_audit *a, size_t i);

#endif
