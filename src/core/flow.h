/* Private to core: what keeps a job that waits out of every pass until something happens.
 *
 *   idle.c    into the list that no pass looks at, and out of it
 *   after.c   it waits for other jobs, or for whole arrays
 *   hold.c    somebody holds it back
 *   array.c   as many of its array as may are running or in line
 *   retry.c   it failed and is tried again
 *
 *  1 What happens costs as much as there are jobs that it concerns; a pass does not see those who are idle.
 *  2 In which order jobs are let go does not depend on the order in which it was found out that they may: a core
 *    that was loaded, which finds out anew, goes on the same way. */
#ifndef ST_CORE_FLOW_H
#define ST_CORE_FLOW_H

#include "core/state.h"

/* idle.c */
/* It waits (PENDING); `bits` of ST_BAR_IDLE. What is held for it is given up. */
void st_idle_set(st_core *core, st_job *job, unsigned bits, st_effects *fx);
/* Where nothing is left that keeps it idle it waits from now on. */
void st_idle_clear(st_core *core, st_job *job, unsigned bits);
/* The least is on top. */
void st_id_heap_push(st_id_heap *heap, uint64_t id);
uint64_t st_id_heap_pop(st_id_heap *heap);

/* after.c */
int st_after_check(const st_core *core, const st_job_spec *spec, st_err *err);
void st_after_set(st_core *core, const st_job_spec *spec, st_job *job);
/* The job is there, new or loaded: those it waits for will tell. */
void st_after_join(st_core *core, st_job *job);
/* A job is over, or a whole array: `state` is ST_JOB_DONE or any other end. */
void st_after_ended(st_core *core, uint64_t id, bool array, st_job_state state);
/* One of an array has not ended well, and others are not over. */
void st_after_spoilt(st_core *core, uint64_t array);
/* It is over itself. */
void st_after_leave(st_core *core, const st_job *job);
/* Ends those who wait for what can never come true; so many at a time. */
void st_after_expire(st_core *core, st_effects *fx);
/* What is left of that is for a moment later. */
void st_after_defer(st_core *core);
int64_t st_after_due_ms(const st_core *core);
void st_after_done(st_core *core);

/* hold.c */
int st_core_hold_job(st_core *core, const st_event *ev, st_effects *fx, st_err *err);

/* array.c */
struct st_array {
    uint64_t id;
    int throttle; /* how many at a time; 0: any number */
    int failed;   /* how many have not ended well */
    /* Derived. */
    int slots; /* how many may run: all whom the throttle does not keep out */
    size_t live;
    bool dirty;
    ST_VEC(uint64_t) members; /* some may be over */
    st_id_heap ready;         /* whom nothing but the throttle keeps out, and some others */
};

int st_array_check(const st_core *core, const st_job_spec *spec, st_err *err);
void st_array_set(st_core *core, const st_job_spec *spec, st_job *job);
/* The job is there, new or loaded. */
void st_array_join(st_core *core, st_job *job);
/* Something about a job that waits has changed: it may need a turn in its array, or none. */
void st_array_note(st_core *core, st_job *job, st_effects *fx);
void st_array_leave(st_core *core, const st_job *job, st_job_state state);
/* Lets as many go as may. */
void st_arrays_run(st_core *core);
int st_core_throttle(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
st_array *st_array_find(const st_core *core, uint64_t id);
void st_arrays_done(st_core *core);

/* retry.c */
int st_retry_check(const st_core *core, const st_job_spec *spec, st_err *err);
/* Whether an end like this is not the job's last. */
bool st_retry_may(const st_core *core, const st_job *job, st_job_state state);
/* It leaves its devices and will be tried again; `there`: some of its tasks are still running. */
void st_core_retry(st_core *core, st_job *job, bool there, st_effects *fx);
/* It has left them. */
void st_core_retry_now(st_core *core, st_job *job, st_effects *fx);

/* save.c's part */
typedef struct codec codec;
void st_save_flow(codec *c, const st_core *core, st_job *job);
void st_save_arrays(codec *c, st_core *core);

#endif
