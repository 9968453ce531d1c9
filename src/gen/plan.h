/*
 * Inside the maker of traces only: what its parts hand to each other.
 *
 *     gen.c         checks, makes the load come out right, puts everything in order
 *     gen_world.c   the fleet, the tree of accounts, who works where
 *     gen_rhythm.c  when people submit
 *     gen_jobs.c    what they submit
 *     gen_write.c   the files
 */
#ifndef ST_GEN_PLAN_H
#define ST_GEN_PLAN_H

#include "base/rng.h"
#include "gen/gen.h"

#define ST_GEN_NODE_GPUS 8
#define ST_GEN_MINUTE_MS INT64_C(60000)
#define ST_GEN_HOUR_MS   (60 * ST_GEN_MINUTE_MS)
#define ST_GEN_DAY_MS    (24 * ST_GEN_HOUR_MS)
#define ST_GEN_GANG_MAX  512 /* GPUs */

/* How far a user's declared limits are from the truth, in per cent of it. */
typedef struct st_gen_user {
    const char *name;
    int limit_lo_pct, limit_hi_pct;
} st_gen_user;

/* A team is an account without children. Its users are first_user .. first_user + users - 1. */
typedef struct st_gen_team {
    int32_t account;
    int64_t first_user, users;
    uint64_t demand; /* Σ of the demands up to and including this team's */
} st_gen_team;

/* How the submits of a kind lie over day and week. */
typedef enum st_gen_rhythm {
    ST_GEN_STEADY,  /* machines submit */
    ST_GEN_WORKING, /* people submit, what they leave behind runs at night */
    ST_GEN_OFFICE,  /* people sit in front of it */
    ST_GEN_RHYTHM_COUNT
} st_gen_rhythm;

typedef struct st_gen_plan {
    const st_gen_options *o;
    st_trace *trace;
    st_rng rng;
    int64_t window_ms;
    int gang_max; /* GPUs of the largest gang this fleet is used for */
    ST_VEC(st_gen_team) teams;
    ST_VEC(st_gen_user) users;
    ST_VEC(uint32_t) hours[ST_GEN_RHYTHM_COUNT]; /* Σ of the weights up to each hour */
    ST_VEC(int64_t) deadlines_ms;
    uint32_t types_any, types_large; /* masks: every type; those with most memory and network */
} st_gen_plan;

void st_gen_make_fleet(st_gen_plan *p);
void st_gen_make_accounts(st_gen_plan *p);
void st_gen_make_users(st_gen_plan *p);

void st_gen_make_rhythm(st_gen_plan *p);
int64_t st_gen_when(st_gen_plan *p, st_gen_rhythm rhythm);
/* A moment in the rush before a deadline. */
int64_t st_gen_before_deadline(st_gen_plan *p);

/* A whole number from lo to hi whose logarithm is about normal: most small, few large. */
int64_t st_gen_skewed(st_rng *rng, int64_t lo, int64_t hi);

/* Appends `count` jobs of a kind. They are not finished yet: `name` is the word of the kind and
 * `limit_ms` what the owner declares in per cent of the run time (ST_TIME_NEVER: nothing), because
 * run times still change. `mean_gpus` matters for gangs only. */
void st_gen_draw(st_gen_plan *p, st_gen_kind kind, int64_t count, int64_t mean_gpus);

#endif
