/*
 * The player of traces from inside: what it knows of every job and account while it plays.
 * Private to trace_play.c (time and events), trace_follow.c (what effects mean) and trace_sample.c
 * (looking at the state now and then).
 */
#ifndef ST_TRACE_PLAY_H
#define ST_TRACE_PLAY_H

#include "trace/queue.h"
#include "trace/trace.h"

typedef enum st_player_phase {
    ST_PLAYER_WAITING, /* or not there yet, or gone */
    ST_PLAYER_RUNNING, /* on devices, restoring at first */
    ST_PLAYER_SAVING,  /* on devices without progress */
} st_player_phase;

/* Progress is run time that brought the job forward. */
typedef struct st_player_job {
    st_player_phase phase;
    uint32_t generation; /* entries of the queue with another one are stale */
    int32_t type;        /* of its GPUs at its last start */
    int64_t begin_ms;    /* of this stay on devices */
    int64_t since_ms;    /* progress is made from then on */
    int64_t stop_ms;     /* SAVING: none since then */
    int64_t kept_ms;     /* progress of earlier stays that it comes back with */
    size_t told;         /* what it was told in this wait, + 1; 0: nothing */
    int64_t saved_ms;    /* of that, what survives being started again */
    bool booked;         /* it has a booking, of its own number */
} st_player_job;

/* The accounts' demands and holdings now; integrated up to at_ms. */
typedef struct st_player_account {
    int64_t held_m, demand_m;
    int64_t at_ms;
} st_player_account;

/* A shape many jobs have, with its part of all jobs with GPUs. */
typedef struct st_player_class {
    st_shape shape;
    uint64_t jobs;
} st_player_class;

#define ST_PLAYER_CLASSES_MAX 16

typedef struct st_player {
    const st_trace *trace;
    const st_run_options *options;
    st_trace_run *run;
    st_core *core;
    st_effects fx;   /* of the moment at hand */
    size_t followed; /* as many of them have been followed */
    st_due_queue queue;
    st_player_job *jobs;
    st_player_account *accounts;
    int64_t now;
    size_t next_submit, next_plan;
    uint64_t ended;
    int64_t allocated_m, capacity_m, at_ms; /* the whole fleet, integrated up to at_ms */
    int64_t waiting, waiting_m, running;
    int64_t core_ns;
    int64_t hour, hour_ns; /* the hour at hand, with core_ns and decisions when it began */
    uint64_t hour_decisions;
    int64_t next_tell_ms;
    /* Samples. */
    int64_t sample_ms, next_sample_ms;
    bool thin; /* samples may be thinned out when there are many */
    st_player_class classes[ST_PLAYER_CLASSES_MAX];
    int nclasses;
    struct st_divide_in *divide_in;
    struct st_divide_out *divide_out;
} st_player;

/* trace_play.c */
int st_player_apply(st_player *p, const st_event *ev, st_err *err);
void st_player_submit(st_player *p, size_t job);

/* trace_book.c: bookings that are made ahead, and what is fenced. */
int64_t st_player_next_plan(st_player *p);
bool st_player_is_fenced(const st_player *p, size_t job);
bool st_player_plan(st_player *p); /* whether anything was due */
void st_player_count_plans(st_player *p);

/* trace_follow.c: takes note of effects that came since the last call, and queues what follows. */
void st_player_follow(st_player *p);
/* A job the core accepted. */
void st_player_queued(st_player *p, size_t job);
/* A job reports that it is saved; call it before the core is told. */
void st_player_saved(st_player *p, size_t job);
/* Brings the integrals of the fleet up to now. */
void st_player_integrate(st_player *p);
void st_player_integrate_account(st_player *p, int32_t account);

/* trace_estimates.c: tells those who wait when they should start, if it is time to. */
int st_player_tell(st_player *p, st_err *err);
/* A job starts. */
void st_player_came_true(st_player *p, size_t job);

/* trace_idle.c: what of a sample is free while jobs wait. */
void st_player_idle(st_player *p, st_run_sample *s);

/* trace_sample.c */
void st_player_sample_begin(st_player *p);
/* Takes the samples that are due before `until_ms`. */
void st_player_sample(st_player *p, int64_t until_ms);
/* ... and the last one, now. */
void st_player_sample_end(st_player *p);
void st_player_sample_done(st_player *p);

#endif
