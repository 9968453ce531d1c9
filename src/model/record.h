/* Usage records: what was held and used over an interval, as the meter (meter/meter.h) counts it and
 * the ledger (ledger/ledger.h) prices it.
 *
 * GPU time is counted in milli-GPU x milliseconds of device share: `share` in names. The shares of all
 * residents of a device together with its idle, unhealthy and overhead time are the device, exactly;
 * where residents hold more than there is (time-slicing, 4g + 3g), shares are scaled down to it. So
 * nobody pays for more GPU than existed. `held` is what the grant nominally has: never less. */
#ifndef ST_MODEL_RECORD_H
#define ST_MODEL_RECORD_H

#include "base/vec.h"
#include "model/job.h"
#include "model/types.h"

#define ST_UNKNOWN (-1) /* nobody measured it */

/* By what right a grant has its devices: this is what decides its price.
 * X(id, name) */
#define ST_BASIS_TABLE(X)                                                             \
    X(ST_BASIS_GUARANTEED, "guaranteed") /* inside the floor, which is paid anyway */ \
    X(ST_BASIS_BURST, "burst")           /* borrowed */                               \
    X(ST_BASIS_ON_DEMAND, "on_demand")   /* borrowed beyond what the plan agreed */   \
    X(ST_BASIS_BOOKED, "booked")         /* on a booking, which is paid anyway */
typedef enum st_basis {
#define X(id, name) id,
    ST_BASIS_TABLE(X)
#undef X
        ST_BASIS_COUNT
} st_basis;

/* Why an interval ends. X(id, name, whether the work lost is somebody else's fault) */
#define ST_CUT_TABLE(X)                                                                        \
    X(ST_CUT_GOES_ON, "goes_on", false)    /* a day, a price or its basis ends; it does not */ \
    X(ST_CUT_ENDED, "ended", false)        /* by itself, its limit or its owner */             \
    X(ST_CUT_PREEMPTED, "preempted", true) /* had to yield */                                  \
    X(ST_CUT_FAULT, "fault", true)         /* its node failed */
typedef enum st_cut {
#define X(id, name, blameless) id,
    ST_CUT_TABLE(X)
#undef X
        ST_CUT_COUNT
} st_cut;

/* What telemetry counted. Sums since the stay began, per task; ST_UNKNOWN where not measured.
 * `seen` is the time samples cover: the rest of the held time says nothing. */
typedef struct st_sums {
    int64_t seen_gpu_ms, busy_gpu_ms; /* whole devices x ms */
    int64_t energy_mj;
    int64_t mem_peak_mib;
} st_sums;

#define ST_RECORD_TABLE(X)                                                            \
    X(ST_REC_GRANT, "grant")     /* a job's stay on devices, or a part of it */       \
    X(ST_REC_RESERVE, "reserve") /* an account's floor, whether used or not */        \
    X(ST_REC_FIX, "fix")         /* a later truth about an earlier record: deltas */  \
    X(ST_REC_LOST, "lost")       /* of an earlier record, what is to be done again */ \
    X(ST_REC_FLEET, "fleet")     /* where the devices of a type were */
typedef enum st_record_kind {
#define X(id, name) id,
    ST_RECORD_TABLE(X)
#undef X
        ST_REC_COUNT
} st_record_kind;

/* One interval [from_ms, to_ms). Which fields mean something depends on the kind.
 *
 * The last GRANT of a stay may be empty (from_ms == to_ms): it says that the stay is over.
 * A FIX has the job's fields as in the record it corrects, its interval is the part of that record
 * it is about, and its amounts are deltas: plain numbers, often negative, never ST_UNKNOWN (which
 * counts as 0 in what they are added to).
 * A LOST has the job's fields too; its interval is the part of that record whose work is gone, `lost` what
 * the stay had then, `cut` whose doing it is. No time of a job is lost twice.
 * A FLEET with total 0 is a correction too: so much that was granted turned out to be overhead. */
typedef struct st_record {
    st_record_kind kind;
    int64_t from_ms, to_ms;
    int32_t account; /* -1 for the fleet */
    int32_t type;    /* GPU type; -1: none, or any for a floor that names none */

    /* GRANT, FIX, LOST */
    uint64_t job;
    int stay;  /* which time on devices, from 1 */
    int piece; /* which interval of the stay, from 1 */
    int32_t user;
    st_level level;
    int profile; /* st_mig, or -1 */
    st_basis basis;
    st_topo topo; /* that it required; ST_TOPO_NONE: none */
    int tasks;
    st_cut cut;
    int64_t gpu_m;  /* nominal, of the gang */
    int64_t share;  /* milli-GPU x ms */
    int64_t held;   /* likewise, nominal */
    int64_t inside; /* burst, on demand: of `share`, what lay in floors, which are paid anyway */
    int64_t inside_idle;    /* ... and of seen - busy */
    int64_t cpu, ram;       /* milli-CPU x ms, MiB x ms */
    int64_t seen, busy;     /* milli-GPU x ms, of `share`; ST_UNKNOWN */
    int64_t energy_mj;      /* ST_UNKNOWN */
    int64_t lost;           /* LOST: of `share`, what is to be done again; else 0 */
    int fixes;              /* FIX, LOST: the piece it is about, as in `piece`; else 0 */
    const st_grant *grants; /* GRANT: `tasks` of them, of the meter, good until time moves */

    /* RESERVE: `share` is the floor x time; gpu_m the floor. */

    /* FLEET, milli-GPU x ms: granted + idle + unhealthy + overhead == total */
    int64_t total, granted, idle, unhealthy, overhead;
} st_record;

typedef ST_VEC(st_record) st_records;

const char *st_basis_name(st_basis basis);
const char *st_cut_name(st_cut cut);
const char *st_record_name(st_record_kind kind);
bool st_cut_blameless(st_cut cut);
/* All fields, grants one by one. */
bool st_record_same(const st_record *a, const st_record *b);

#endif
