/* Forecast: how long jobs really run, and how wrong estimates of their start have been.
 *
 * Learned from ended jobs under four keys, from the most to the least specific:
 *
 *     account, user, stem of the name, GPUs  ->  account, user  ->  account  ->  everybody
 *
 * Each key has a sketch of run times, and one of run time over limit for those that declared
 * one. The first key that has seen enough jobs run longer than this one has so far answers:
 * so a job that outlives what its kind does is judged by a wider kind, and in the end by
 * nobody, which leaves its limit.
 *
 * Invariants
 *  1 The same events in the same order give the same answers; asking changes nothing.
 *  2 At most ST_FORECAST_KEYS keys: who learned least recently is forgotten first.
 *  3 A guess is later than what the job has run and never beyond its limit.
 *
 * Place in the law: base <- model <- forecast <- core. */
#ifndef ST_FORECAST_FORECAST_H
#define ST_FORECAST_FORECAST_H

#include "base/map.h"
#include "base/vec.h"
#include "model/job.h"

/* ---- sketches ----------------------------------------------------------------------- */

/* A histogram of whole numbers with four buckets to an octave: bucket edges are 1, 2, 3, 4, 5,
 * 6, 7, 8, 10, 12, 14, 16, 20, ... and a value is known to a quarter. One observation weighs
 * ST_SKETCH_UNIT; when all weigh more than ST_SKETCH_FULL, every weight is halved. So the last
 * few dozen count, and what happened once is gone after three halvings. */
#define ST_SKETCH_BUCKETS 96
#define ST_SKETCH_UNIT    4
#define ST_SKETCH_FULL    (64 * ST_SKETCH_UNIT)

typedef struct st_sketch {
    uint32_t total; /* of all weights */
    uint16_t weight[ST_SKETCH_BUCKETS];
} st_sketch;

int st_sketch_bucket(int64_t value);
int64_t st_sketch_low(int bucket); /* its smallest value; that of the next is its edge */
void st_sketch_note(st_sketch *s, int64_t value);
/* The weight in buckets from `from` on. */
uint32_t st_sketch_above(const st_sketch *s, int from);
/* The bucket at or below which `pct` percent of the weight from bucket `from` on lies; -1 when
 * there is none. */
int st_sketch_quantile(const st_sketch *s, int from, int pct);

/* ---- run times ---------------------------------------------------------------------- */

#define ST_FORECAST_KEYS 4096
#define ST_FORECAST_SEEN 5    /* jobs a key must have seen run longer, to answer */
#define ST_FORECAST_TICK 256  /* ms: run times are told apart to this */
#define ST_FORECAST_ONE  1024 /* run time over limit: the limit itself */

typedef struct st_known {
    uint64_t key;
    st_sketch run;        /* in ticks */
    st_sketch part;       /* of the limit, ST_FORECAST_ONE is all of it */
    int32_t newer, older; /* neighbours in order of learning; -1 none */
} st_known;

/* How far ahead an estimate looks: up to 1, 4, 16, ... minutes. */
#define ST_FORECAST_FAR 10

/* How many outcomes have come lately. Jobs that wait together start together and are wrong together: a few of
 * them say what all would, and more would make the others forgotten. */
typedef struct st_lately {
    int64_t at; /* by the clock, in ST_FORECAST_LATELY_MS */
    int32_t n;
} st_lately;

#define ST_FORECAST_LATELY_MS  600000
#define ST_FORECAST_LATELY_MAX 4

/* How much further an interval reaches than what the sketch says, on either side, in thousandths of an octave: a
 * little less after each outcome that it held, much more after one that it did not, so that one in ten is missed on
 * that side. Never less than the sketch says. What it learns from comes late and in bursts, and intervals that were
 * drawn in after a good hour missed the next. */
typedef struct st_reach {
    int32_t lo, hi;
} st_reach;

#define ST_FORECAST_OCTAVE    1000
#define ST_FORECAST_REACH_MAX (10 * ST_FORECAST_OCTAVE)

typedef struct st_forecast {
    ST_VEC(st_known) known;
    st_idmap *by_key;
    int32_t newest, oldest;
    uint64_t version;                 /* counts what was learned, from 1 */
    st_sketch error[ST_FORECAST_FAR]; /* real wait over estimated wait, ST_FORECAST_ONE is right */
    st_lately lately[ST_FORECAST_FAR];
    st_reach reach[ST_FORECAST_FAR];
} st_forecast;

st_forecast *st_forecast_new(void);
void st_forecast_free(st_forecast *f);

/* The job ended by itself, by failing or by its limit, after running `ran_ms` in all. */
void st_forecast_ended(st_forecast *f, const st_job *job, int64_t ran_ms);

/* How long the job will have run in all. */
typedef struct st_guess {
    bool known;
    int64_t p50_ms, p90_ms; /* ST_TIME_NEVER when not known */
} st_guess;

/* Of a job that has run `ran_ms` so far. */
st_guess st_forecast_run(const st_forecast *f, const st_job *job, int64_t ran_ms);

/* A name without its number: train-0012 and train-0013 are of one kind. Returns the length. */
size_t st_forecast_stem(const char *name);

/* For saves: take a key in as the one that learned last. */
st_known *st_forecast_learn(st_forecast *f, uint64_t key);

/* ---- estimates of starts ------------------------------------------------------------ */

/* A job that was to wait `told_ms` from when it was told did wait `real_ms`, until now. */
void st_forecast_waited(st_forecast *f, int64_t told_ms, int64_t real_ms, int64_t now);

/* What became of estimates like this one: eight in ten of the real waits were from lo to hi. */
typedef struct st_margin {
    int seen; /* estimates that count; 0: too few to say, lo = hi = the estimate */
    int64_t lo_ms, hi_ms;
} st_margin;

st_margin st_forecast_margin(const st_forecast *f, int64_t wait_ms);

#endif
