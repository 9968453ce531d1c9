/*
 * st_gen_trace: draws the world and the jobs, makes the load come out right, and finishes the
 * jobs: limits, order, names.
 *
 * The load is made right by run times, because people know what job sizes look like but not what
 * a mean run time should be. Small jobs keep what they drew unless they exceed their part; gangs
 * are first drawn in sizes that suit what is left for each, then stretched by one factor.
 */
#include "gen/gen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gen/plan.h"

#define MONDAY_S        INT64_C(1767571200) /* 2026-01-05 00:00 UTC */
#define SMALL_PART_PCT  55                  /* of the load, at most */
#define RUN_MIN_MS      INT64_C(10000)
#define RUN_MAX_MS      (45 * ST_GEN_DAY_MS)
#define GANG_RUN_MS     (18 * ST_GEN_HOUR_MS)
#define GANGS_IN_FLEET  12  /* so many of half the largest size find room */
#define SHORTEN_MAX     200 /* small jobs are shortened to a 200th at most */
#define TOLERANCE_PER_M 10

static const int kind_per_m[ST_GEN_KIND_COUNT] = {
#define X(id, word, part) [id] = part,
    ST_GEN_KIND_TABLE(X)
#undef X
};

st_gen_options st_gen_options_default(void)
{
    return (st_gen_options){.gpus = 1024,
                            .teams = 24,
                            .users = 200,
                            .jobs = 5000,
                            .seed = 42,
                            .days = 7,
                            .load_pct = 95};
}

static int check(const st_gen_options *o, st_err *err)
{
    const struct {
        const char *what;
        int64_t value, lo, hi;
    } rows[] = {
        {"GPUs", o->gpus, ST_GEN_NODE_GPUS, ST_GEN_GPUS_MAX},
        {"teams", o->teams, 1, ST_GEN_TEAMS_MAX},
        {"users", o->users, 1, ST_GEN_USERS_MAX},
        {"jobs", o->jobs, 1, ST_GEN_JOBS_MAX},
        {"days", o->days, 1, ST_GEN_DAYS_MAX},
        {"per cent of load", o->load_pct, 1, ST_GEN_LOAD_MAX},
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (rows[i].value < rows[i].lo || rows[i].value > rows[i].hi)
            return st_fail(err, ST_ERANGE,
                           "a trace has %" PRId64 " to %" PRId64 " %s, not %" PRId64, rows[i].lo,
                           rows[i].hi, rows[i].what, rows[i].value);
    return 0;
}

/* ---- load --------------------------------------------------------------------------- */

static st_i128 work_of(const st_trace_job *j)
{
    return (st_i128)st_trace_job_gpu_m(j) * j->run_ms;
}

/* Stretches the jobs from `first` on until their work is `target`; in rounds, because run times
 * are whole seconds and have bounds. Returns what it came to. */
static st_i128 stretch(st_trace *t, size_t first, st_i128 target)
{
    st_i128 sum = 0;

    for (int round = 0;; round++) {
        sum = 0;
        for (size_t i = first; i < t->jobs.n; i++)
            sum += work_of(&t->jobs.v[i]);
        if (round == 6 || sum == 0)
            return sum;
        for (size_t i = first; i < t->jobs.n; i++) {
            st_trace_job *j = &t->jobs.v[i];
            int64_t ms = (int64_t)(((st_i128)j->run_ms * (target >> 20)) / ((sum >> 20) + 1));

            j->run_ms = ST_MIN(ST_MAX((ms + 500) / 1000 * 1000, RUN_MIN_MS), RUN_MAX_MS);
        }
    }
}

static int fail_load(const st_gen_options *o, const char *how, const char *what, st_err *err)
{
    return st_fail(err, ST_ERANGE,
                   "%" PRId64 " jobs are too %s to load %" PRId64 " GPUs for %" PRId64
                   " days to %" PRId64 " per cent: give %s",
                   o->jobs, how, o->gpus, o->days, o->load_pct, what);
}

/* How many gangs: their usual part of the jobs, or as many as the load needs. */
static int64_t count_gangs(const st_gen_plan *p, st_i128 load)
{
    int64_t usual = p->o->jobs * kind_per_m[ST_GEN_TRAIN] / 1000;
    st_i128 each = (st_i128)p->gang_max * 1000 / 4 * GANG_RUN_MS;
    int64_t needed = (int64_t)(load * 8 / 10 / each);

    return ST_MAX(ST_MIN(ST_MAX(usual, needed), p->o->jobs * 8 / 10), 1);
}

static int draw_jobs(st_gen_plan *p, st_err *err)
{
    const st_gen_options *o = p->o;
    st_trace *t = p->trace;
    st_i128 load = (st_i128)t->nodes.n * ST_GEN_NODE_GPUS * 1000 * p->window_ms * o->load_pct / 100;
    st_i128 small = 0, rest, done;
    int64_t gangs = count_gangs(p, load), left = o->jobs - gangs;
    size_t first;

    st_vec_reserve(&t->jobs, (size_t)o->jobs);
    for (int k = ST_GEN_TRAIN + 1; k < ST_GEN_KIND_COUNT; k++) {
        int64_t n = (o->jobs - gangs) * kind_per_m[k] / (1000 - kind_per_m[ST_GEN_TRAIN]);

        if (k == ST_GEN_KIND_COUNT - 1)
            n = left;
        st_gen_draw(p, (st_gen_kind)k, n, 0);
        left -= n;
    }
    for (size_t i = 0; i < t->jobs.n; i++)
        small += work_of(&t->jobs.v[i]);
    if (small * 100 > load * SMALL_PART_PCT) {
        st_i128 target = load * SMALL_PART_PCT / 100;

        if (small / SHORTEN_MAX > target)
            return fail_load(o, "many", "fewer, or more days", err);
        small = stretch(t, 0, target);
    }
    rest = load - small;
    if (rest <= 0)
        return fail_load(o, "many", "fewer, or more days", err);
    first = t->jobs.n;
    st_gen_draw(p, ST_GEN_TRAIN, gangs, (int64_t)(rest / gangs / GANG_RUN_MS / 1000));
    done = stretch(t, first, rest);
    if ((rest - done) * 1000 > load * TOLERANCE_PER_M)
        return fail_load(o, "few", "more, or fewer days", err);
    if ((done - rest) * 1000 > load * TOLERANCE_PER_M)
        return fail_load(o, "many", "fewer, or more days", err);
    return 0;
}

/* ---- finishing ---------------------------------------------------------------------- */

/* People declare quarters of an hour, hours, half days, days: always more than it takes. */
static int64_t declared(int64_t run_ms, int64_t pct)
{
    int64_t ms = (int64_t)((st_i128)run_ms * pct / 100), unit;

    if (ms <= 2 * ST_GEN_HOUR_MS)
        unit = 15 * ST_GEN_MINUTE_MS;
    else if (ms <= 12 * ST_GEN_HOUR_MS)
        unit = ST_GEN_HOUR_MS;
    else if (ms <= 2 * ST_GEN_DAY_MS)
        unit = ST_GEN_DAY_MS / 2;
    else
        unit = ST_GEN_DAY_MS;
    return (ms / unit + 1) * unit;
}

static void finish(st_trace *t)
{
    int64_t counts[ST_GEN_KIND_COUNT] = {0};

    st_trace_sort(t);
    for (size_t i = 0; i < t->jobs.n; i++) {
        st_trace_job *j = &t->jobs.v[i];
        char name[ST_NAME_MAX];
        int n = snprintf(name, sizeof(name), "%s-%" PRId64, j->name, ++counts[st_gen_kind_of(j)]);

        j->name = st_arena_strndup(t->arena, name, (size_t)n);
        if (j->limit_ms != ST_TIME_NEVER)
            j->limit_ms = declared(j->run_ms, j->limit_ms);
    }
}

static void plan_done(st_gen_plan *p)
{
    st_vec_free(&p->teams);
    st_vec_free(&p->users);
    st_vec_free(&p->deadlines_ms);
    for (int r = 0; r < ST_GEN_RHYTHM_COUNT; r++)
        st_vec_free(&p->hours[r]);
}

int st_gen_trace(const st_gen_options *o, st_trace **ret, st_err *err)
{
    ST_CLEANUP(st_trace_freep) st_trace *t = NULL;
    ST_CLEANUP(plan_done) st_gen_plan p = {.o = o};
    int r = check(o, err);

    if (r < 0)
        return r;
    t = st_trace_new("made");
    t->epoch_s = MONDAY_S;
    p.trace = t;
    p.window_ms = o->days * ST_GEN_DAY_MS;
    p.gang_max = ST_GEN_NODE_GPUS;
    while (p.gang_max < ST_GEN_GANG_MAX && p.gang_max * GANGS_IN_FLEET <= o->gpus)
        p.gang_max *= 2;
    st_rng_seed(&p.rng, o->seed);
    st_gen_make_fleet(&p);
    st_gen_make_accounts(&p);
    st_gen_make_users(&p);
    st_gen_make_rhythm(&p);
    r = draw_jobs(&p, err);
    if (r < 0)
        return r;
    finish(t);
    *ret = ST_TAKE(t);
    return 0;
}
