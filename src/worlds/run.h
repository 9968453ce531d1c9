/*
 * Private to sim: a run of the fuzzer, shared by the file that plays it (fuzz_run.c) and the one
 * that looks at every moment of it (fuzz_moment.c).
 */
#ifndef ST_WORLDS_RUN_H
#define ST_WORLDS_RUN_H

#include "base/map.h"
#include "meter/meter.h"
#include "worlds/worlds.h"

/* What the tape knows about a job and the core does not. */
typedef struct st_fuzz_plan {
    int64_t run_ms, save_ms, gone_ms;
    int fails;
} st_fuzz_plan;

typedef ST_VEC(const st_event *) st_event_list;

/* A meter beside the core, with an audit (fuzz_meter.c). */
typedef struct st_fuzz_meter st_fuzz_meter;
st_fuzz_meter *st_fuzz_meter_new(uint64_t seed, bool billed);
void st_fuzz_meter_free(st_fuzz_meter *f);
/* The core has taken a step at `now`, with these effects. */
int st_fuzz_meter_moment(st_fuzz_meter *f, const st_core *core, const st_effects *fx, int64_t now,
                         st_err *err);

/* No more moments: everything is cut and looked at once more. */
int st_fuzz_meter_close(st_fuzz_meter *f, const st_core *core, st_err *err);

/* A ledger beside the meter (fuzz_money.c). In a moment: cuts as they come and whatever is due, the beginning, records, the
 * end. */
typedef struct st_fuzz_money st_fuzz_money;
st_fuzz_money *st_fuzz_money_new(uint64_t seed);
void st_fuzz_money_free(st_fuzz_money *f);
/* When all intervals must be cut: a month ends, or prices or plans change. */
int64_t st_fuzz_money_due(const st_fuzz_money *f);
int st_fuzz_money_begin(st_fuzz_money *f, const st_core *core, const st_effects *fx, int64_t now,
                        st_err *err);
int st_fuzz_money_records(st_fuzz_money *f, const st_core *core, const st_records *records,
                          int64_t now, st_err *err);
/* Behind the records of a cut. */
int st_fuzz_money_cut(st_fuzz_money *f, const st_core *core, const st_meter *m, st_err *err);
int st_fuzz_money_end(st_fuzz_money *f, const st_core *core, const st_meter *m,
                      const st_effects *fx, st_err *err);
int st_fuzz_money_close(st_fuzz_money *f, st_err *err);

/* By job: whether it may wait for ever, with every node ready: there is no place for it, it was leaving when it could
 * have been lifted, or it waits for such a one, or for what can never come true. The caller frees it. */
bool *st_fuzz_flow_stuck(const st_core *core);

/* What a step has met (fuzz_guide.c). */
void st_cover_step(st_cover *cover, const st_core *core, const st_event *const *events,
                   size_t nevents, const st_effects *fx);

struct st_fuzz_run {
    const st_tape *tape;
    st_core *core, *twin;
    st_watch *watch;
    st_fuzz_meter *meter;
    st_effects fx, twin_fx;
    st_idmap *plan_of; /* by job, into `plans` */
    ST_VEC(st_fuzz_plan) plans;
    int64_t now;
    st_rng rng; /* when to save; a stream of its own, so that looking changes nothing */
    int64_t events, refused, steps;
    int64_t looks, idle; /* steps that count for the lens, and those in which nothing happened */
    ST_VEC(size_t) refusals;   /* which events of the last moment */
    ST_VEC(size_t) refused_at; /* which entries of the tape */
    bool must_done;
    FILE *trace;
};

/* One moment: the events of one time, a pass, and everything that must hold after it. */
int st_fuzz_moment(st_fuzz_run *run, const st_event_list *events, int64_t now, st_err *err);

/* The core and the one loaded from an earlier save of it must still be the same. */
int st_fuzz_compare_twin(st_fuzz_run *run, st_err *err);

#endif
