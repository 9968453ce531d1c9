/*
 * Simulation fuzzing: random fleets, trees, policies and events from a seed, played through
 * the core with every invariant checked after every step (check/check.h).
 *
 *   fuzz_tape.c    what was played: concrete events with their times, nothing random
 *   fuzz_world.c   from a seed: policy, fleet, tree
 *   fuzz_events.c  from a seed: what happens next, given where things stand
 *   fuzz_book.c    ... of bookings
 *   flow.c         ... of jobs that wait for others, holds, arrays, retries
 *   fuzz_run.c     plays moments: the core, its twin, a simulated engine, the checkers
 *   fuzz_meter.c   a meter beside the core
 *   fuzz_money.c   a ledger beside the meter
 *   fuzz_lens.c    how closely a world is looked at
 *   fuzz_guide.c   tapes that met something new, changed and played again
 *   fuzz.c         a seed from beginning to end
 *   fuzz_shrink.c  the shortest tape that still fails
 *   fuzz_yaml.c    a tape as a scenario for `stint sim run`
 *
 * Choices are made while playing, because good ones depend on the state; they are recorded, so
 * that a tape plays without the generator. Dropping entries from a tape leaves a tape.
 */
#ifndef ST_WORLDS_WORLDS_H
#define ST_WORLDS_WORLDS_H

#include <stdio.h>

#include "base/arena.h"
#include "base/rng.h"
#include "check/check.h"
#include "core/core.h"

/* Permissions of pools in random worlds: the first ones. With more of them all worlds would be others. */
#define ST_WORLD_ALLOWS 2

/* ---- tapes -------------------------------------------------------------------------- */

typedef struct st_tape_entry {
    int64_t at_ms;
    bool together;    /* one moment with the entry before: applied before the pass */
    bool late;        /* the clock jumps here, over timers and answers that were due */
    bool setup;       /* builds the world */
    st_event event;   /* its text belongs to the tape */
    const char *node; /* of a node_state: by name, since ids move when nodes are dropped */
    int64_t run_ms;   /* of a submit: it ends by itself after this much; ST_TIME_NEVER not */
    int64_t save_ms;  /* of a submit: how long it takes to save its work */
    int fails;        /* of a submit: how often it ends by itself and fails */
    int64_t gone_ms; /* of a submit: how long after it was told to stop its agents say it is gone */
} st_tape_entry;

/* How closely a world is looked at, in steps between two looks. To look at everything after every step
 * takes four times as long as the scheduler itself, so most worlds are played with a few lenses each, and
 * more worlds are played. What a lens looks at follows from the seed; looking changes nothing. */
typedef struct st_lens {
    int idle;     /* of steps in which nothing happened, one in so many counts */
    int check;    /* the state */
    int wait;     /* each of those who wait */
    int again;    /* the same moment again */
    int audit;    /* what the core keeps from pass to pass */
    int effort;   /* whether others would run with effort for everybody; 0 never */
    int twin;     /* one moment in so many a core is saved and loaded, and goes along; 0 never */
    bool metered; /* a meter goes along */
    bool billed;  /* ... and a ledger */
} st_lens;

st_lens st_lens_of(uint64_t seed);
/* Everything after every step. */
st_lens st_lens_close(uint64_t seed);

/* What a run has met (fuzz_guide.c). */
typedef struct st_cover {
    uint8_t bits[8192];
} st_cover;

typedef struct st_tape {
    uint64_t seed;
    st_cover *cover; /* NULL: nobody wants to know */
    st_lens lens;
    st_policy policy;
    ST_VEC(st_tape_entry) list;
    st_arena *arena;
    uint64_t must_start; /* this job must have started ... */
    int64_t must_by_ms;  /* ... by then; 0: no such job */
} st_tape;

void st_tape_init(st_tape *tape, uint64_t seed);
void st_tape_done(st_tape *tape);
const char *st_tape_text(st_tape *tape, const char *fmt, ...) ST_PRINTF(2, 3);
/* One line for people. */
void st_tape_tell(const st_tape_entry *entry, st_strbuf *out);

/* ---- playing ------------------------------------------------------------------------ */

typedef struct st_fuzz_run st_fuzz_run;

st_fuzz_run *st_fuzz_run_new(const st_tape *tape);
void st_fuzz_run_free(st_fuzz_run *run);
ST_DEFINE_FREEP(st_fuzz_run, st_fuzz_run_free)

/* Play entries [from, to) of the tape, which are one moment, after all that is due before. */
int st_fuzz_run_moment(st_fuzz_run *run, size_t from, size_t to, st_err *err);

/* No more events: nodes come back, endless jobs are cancelled, everything else must end. */
int st_fuzz_run_drain(st_fuzz_run *run, st_err *err);

st_core *st_fuzz_run_core(st_fuzz_run *run);
/* Whether the entry was refused when it was played. */
bool st_fuzz_run_refused(const st_fuzz_run *run, size_t entry);
/* Print every step to this file. */
void st_fuzz_run_trace(st_fuzz_run *run, FILE *trace);

typedef struct st_fuzz_counts {
    int64_t seeds, events, refused, steps, starts, preemptions;
    uint64_t hash;
} st_fuzz_counts;

void st_fuzz_run_count(const st_fuzz_run *run, st_fuzz_counts *counts);

/* ---- generating --------------------------------------------------------------------- */

typedef struct st_fuzz_gen {
    st_rng rng;
    st_tape *tape;
    st_fuzz_run *run;
    int64_t now;
    uint64_t next_job;
    int ntypes, npools, nnodes, naccounts;
    bool stream; /* small jobs without end around one large one */
    bool early;  /* in a stream: most of them end long before their limits */
    bool alike;  /* in a stream: all are of one account */
    bool busy;   /* a small fleet, long jobs, little time between events: a fight for room */
    bool tight;  /* CPU and RAM are scarce, promised, and asked for without GPUs */
    bool crowd;  /* more wait than could ever run */
    bool storm;  /* quotas, weights and ceilings change all the time */
    bool jumps;  /* the clock jumps, over minutes or days */
    bool
        odd; /* ends that are heard late, nodes that could not start a job, other times in the policy */
    bool bars;    /* jobs are barred and let go again */
    bool pressed; /* a pass has effort for hardly anybody */
    bool books;   /* bookings come and go */
    bool lives;   /* nodes are suspected, tested, repaired and retired */
    bool windows; /* jobs have windows, and slots where there are bookings */
    st_rng book_rng, window_rng;
    bool labelled;
    bool clocks; /* zones change their rules */
    bool labels; /* nodes have labels that change, and bookings require some, or whole nodes */
    st_rng label_rng, clock_rng;
    bool picks; /* jobs choose among nodes */
    st_rng pick_rng;
    bool drains; /* nodes drain by a time */
    st_rng drain_rng;
    bool gpus; /* single GPUs fail, drain and come back */
    st_rng gpu_rng;
    uint64_t next_booking;
    bool flows; /* jobs wait for others, are on hold and tried again, arrays have throttles */
    st_rng flow_rng;
    uint64_t array; /* the last one */
    int throttle;
} st_fuzz_gen;

void st_fuzz_policy(st_rng *rng, st_policy *ret);
/* Records and plays what builds the world. */
int st_fuzz_world(st_fuzz_gen *gen, st_err *err);
/* Records and plays the next moment; *ret_n: how many events. */
int st_fuzz_next(st_fuzz_gen *gen, int *ret_n, st_err *err);
st_tape_entry *st_fuzz_record(st_fuzz_gen *gen, st_event_kind kind, bool together);
/* Perhaps something about bookings in the same moment; and perhaps the job is to run in one (fuzz_book.c). */
void st_fuzz_book(st_fuzz_gen *gen);
void st_fuzz_book_job(st_fuzz_gen *gen, st_job_spec *job);
/* Perhaps it has a window (window.c). */
void st_fuzz_window(st_fuzz_gen *gen, st_job_spec *job);
/* Perhaps the job allows some nodes only; perhaps a node has other labels (pick.c). */
void st_fuzz_pick(st_fuzz_gen *gen, st_job_spec *job);
void st_fuzz_pick_labels(st_fuzz_gen *gen);
/* Perhaps a node is to drain by some time, in the same moment (drain.c). */
void st_fuzz_drain(st_fuzz_gen *gen);
/* Perhaps a GPU goes out of service alone, or comes back (gpus.c). */
void st_fuzz_gpus(st_fuzz_gen *gen);
/* Perhaps it waits for others, is on hold, is one of an array, is tried again; and what else happens to such (flow.c). */
void st_fuzz_flow_job(st_fuzz_gen *gen, st_tape_entry *entry);
void st_fuzz_flow(st_fuzz_gen *gen);
/* What accounts and pools let be booked, where bookings come and go. */
void st_fuzz_book_limits(st_fuzz_gen *gen, st_book_limits *limits);
void st_fuzz_book_pool(st_fuzz_gen *gen, st_pool_rules *rules);
void st_fuzz_random_account(st_fuzz_gen *gen, st_account_spec *spec, bool change);

/* ---- a seed ------------------------------------------------------------------------- */

/* Plays a seed; the tape is the caller's and holds what was played. 0, or a broken invariant. Looks at
 * it by `lens`; NULL: by st_lens_of. */
int st_fuzz_seed(uint64_t seed, int steps, const st_lens *lens, FILE *trace, st_tape *ret,
                 st_fuzz_counts *counts, st_err *err);

/* Plays a tape from the beginning; `keep` (may be NULL) says which entries. Those that were
 * refused are marked in ret_refused (may be NULL). */
int st_fuzz_replay(const st_tape *tape, const uint8_t *keep, FILE *trace, uint8_t *ret_refused,
                   st_err *err);

/* The same for a whole tape, counted. */
int st_fuzz_play(const st_tape *tape, FILE *trace, st_fuzz_counts *counts, st_err *err);
/* A seed, and what it met. */
int st_fuzz_seed_met(uint64_t seed, int steps, st_cover *cover, FILE *trace, st_tape *ret,
                     st_fuzz_counts *counts, st_err *err);

/* ---- guided ------------------------------------------------------------------------- */

/* Keeps tapes that met something new, and plays changed ones in turn with seeds. */
typedef struct st_guide st_guide;

st_guide *st_guide_new(void);
void st_guide_free(st_guide *g);
ST_DEFINE_FREEP(st_guide, st_guide_free)
/* One turn; like st_fuzz_seed. The tape must not outlive the guide. */
int st_guide_play(st_guide *g, uint64_t turn, int steps, FILE *trace, st_tape *ret,
                  st_fuzz_counts *counts, st_err *err);
size_t st_guide_kept(const st_guide *g);
/* How much was met: bits of the map. */
size_t st_guide_met(const st_guide *g);

/* Drops entries of a failing tape while it fails in the same way, for at most so many tries.
 * Leaves the shorter tape in place and its sentence in err. */
void st_fuzz_shrink(st_tape *tape, int tries, st_err *err);

/* Writes a tape as a scenario. */
void st_fuzz_yaml(const st_tape *tape, const char *why, st_strbuf *out);

#endif
