/* Keys, what is learned under them, and who is asked. */
#include "forecast/forecast.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "base/mem.h"

#define LEVELS  4
#define FAR_MS  60000 /* the nearest estimates; each further kind reaches four times as far */
#define ENOUGH  (ST_FORECAST_SEEN * ST_SKETCH_UNIT)
#define LOW_PCT 10
#define TOP_PCT 90
#define MISSED \
    180 /* thousandths of an octave that one outcome beyond the interval adds to its reach, */
#define HELD  20   /* and that one inside takes away: a tenth of both together */
#define WORST 1000 /* times as long as estimated: longer is not told apart */

#define WAIT_MAX_MS (INT64_C(10) * 366 * 86400 * 1000)

st_forecast *st_forecast_new(void)
{
    st_forecast *f = st_xcalloc(1, sizeof *f);
    f->by_key = st_idmap_new();
    f->newest = f->oldest = -1;
    f->version = 1;
    return f;
}

void st_forecast_free(st_forecast *f)
{
    if (!f)
        return;
    st_vec_free(&f->known);
    st_idmap_free(f->by_key);
    free(f);
}

/* ---- keys -------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_joint(char c)
{
    return c == '-' || c == '_' || c == '.' || c == ':' || c == '/' || c == '#';
}

size_t st_forecast_stem(const char *name)
{
    size_t all = strlen(name), n = all;
    for (bool first = true;; first = false) {
        size_t digits = n, joints;
        while (digits > 0 && is_digit(name[digits - 1]))
            digits--;
        joints = digits;
        while (joints > 0 && is_joint(name[joints - 1]))
            joints--;
        /* The 50 of resnet50-3 belongs to the name, the 3 of train3 does not. */
        if (digits == n || joints == 0 || (joints == digits && !first))
            break;
        n = joints;
    }
    return n > 0 ? n : all;
}

/* The job's keys, the most specific first. A key is only ever compared: two kinds that share
 * one by accident share what they learn, on every machine alike. */
static void keys_of(const st_job *job, uint64_t ret[LEVELS])
{
    uint64_t account = st_hash_u64(2, (uint64_t)job->account);
    uint64_t user = st_hash_u64(st_hash_u64(1, (uint64_t)job->account), (uint64_t)job->user);
    uint64_t stem = st_hash_bytes(job->name, st_forecast_stem(job->name), user);
    ret[0] = st_hash_u64(stem, (uint64_t)st_job_gpu_m(job));
    ret[1] = user;
    ret[2] = account;
    ret[3] = 3;
}

/* ---- in order of learning ---------------------------------------------------------------- */

static void unlink_known(st_forecast *f, int32_t at)
{
    const st_known *k = &f->known.v[at];
    if (k->newer >= 0)
        f->known.v[k->newer].older = k->older;
    else
        f->newest = k->older;
    if (k->older >= 0)
        f->known.v[k->older].newer = k->newer;
    else
        f->oldest = k->newer;
}

static void link_newest(st_forecast *f, int32_t at)
{
    st_known *k = &f->known.v[at];
    k->newer = -1;
    k->older = f->newest;
    if (f->newest >= 0)
        f->known.v[f->newest].newer = at;
    else
        f->oldest = at;
    f->newest = at;
}

st_known *st_forecast_learn(st_forecast *f, uint64_t key)
{
    int64_t at;
    if (st_idmap_get(f->by_key, key, &at)) {
        unlink_known(f, (int32_t)at);
    } else {
        if (f->known.n < ST_FORECAST_KEYS) {
            at = (int64_t)f->known.n;
            st_vec_push(&f->known, (st_known){.key = key});
        } else {
            at = f->oldest;
            unlink_known(f, (int32_t)at);
            st_idmap_del(f->by_key, f->known.v[at].key);
            f->known.v[at] = (st_known){.key = key};
        }
        st_idmap_put(f->by_key, key, at);
    }
    link_newest(f, (int32_t)at);
    return &f->known.v[at];
}

/* ---- run times --------------------------------------------------------------------------- */

void st_forecast_ended(st_forecast *f, const st_job *job, int64_t ran_ms)
{
    uint64_t keys[LEVELS];
    keys_of(job, keys);
    f->version++;
    ran_ms = ST_MAX(ran_ms, 0);
    for (int level = 0; level < LEVELS; level++) {
        st_known *k = st_forecast_learn(f, keys[level]);
        st_sketch_note(&k->run, ran_ms / ST_FORECAST_TICK);
        if (job->limit_ms != ST_TIME_NEVER)
            st_sketch_note(&k->part,
                           ST_MIN(ran_ms, job->limit_ms) * ST_FORECAST_ONE / job->limit_ms);
    }
}

/* What a value of a sketch is worth in ms: ticks, or parts of the limit. */
static int64_t worth_ms(int64_t value, int64_t limit_ms)
{
    if (limit_ms == ST_TIME_NEVER)
        return value * ST_FORECAST_TICK;
    return ST_MIN(value, ST_FORECAST_ONE) * limit_ms / ST_FORECAST_ONE;
}

/* Ask one sketch. The bucket the job is in counts whole: its edge is still ahead. */
static bool ask(const st_sketch *s, int64_t limit_ms, int64_t ran_ms, st_guess *ret)
{
    int from = 0;
    if (s->total < ENOUGH)
        return false;
    while (from < ST_SKETCH_BUCKETS && worth_ms(st_sketch_low(from + 1), limit_ms) <= ran_ms)
        from++;
    if (st_sketch_above(s, from) < ENOUGH)
        return false;
    int half = st_sketch_quantile(s, from, 50), most = st_sketch_quantile(s, from, 90);
    int64_t middle = worth_ms(st_sketch_low(half), limit_ms) / 2 +
                     worth_ms(st_sketch_low(half + 1), limit_ms) / 2;
    ret->p50_ms = middle > ran_ms ? middle : worth_ms(st_sketch_low(half + 1), limit_ms);
    ret->p90_ms = worth_ms(st_sketch_low(most + 1), limit_ms);
    ret->known = true;
    return true;
}

st_guess st_forecast_run(const st_forecast *f, const st_job *job, int64_t ran_ms)
{
    st_guess guess = {false, ST_TIME_NEVER, ST_TIME_NEVER};
    uint64_t keys[LEVELS];
    if (f->known.n == 0)
        return guess;
    keys_of(job, keys);
    for (int level = 0; level < LEVELS && !guess.known; level++) {
        int64_t at;
        if (!st_idmap_get(f->by_key, keys[level], &at))
            continue;
        const st_known *k = &f->known.v[at];
        /* The same job again runs as long as the last ones. Of different jobs the limits tell
         * which is the longer. */
        bool parts = level > 0 && job->limit_ms != ST_TIME_NEVER;
        if (!parts || !ask(&k->part, job->limit_ms, ran_ms, &guess))
            ask(&k->run, ST_TIME_NEVER, ran_ms, &guess);
    }
    guess.p50_ms = ST_MIN(guess.p50_ms, job->limit_ms);
    guess.p90_ms = ST_MIN(guess.p90_ms, job->limit_ms);
    return guess;
}

/* ---- estimates of starts ----------------------------------------------------------------- */

static int far_of(int64_t wait_ms)
{
    int far = 0;
    for (int64_t ms = FAR_MS; far < ST_FORECAST_FAR - 1 && wait_ms > ms; ms *= 4)
        far++;
    return far;
}

/* What errors are measured by: waits below a minute are all alike. */
static int64_t whole(int64_t wait_ms)
{
    return ST_MIN(ST_MAX(wait_ms, FAR_MS), WAIT_MAX_MS);
}

/* Whether there have been few enough lately for another one to count. */
static bool counts(st_lately *l, int64_t now)
{
    if (l->at != now / ST_FORECAST_LATELY_MS) {
        l->at = now / ST_FORECAST_LATELY_MS;
        l->n = 0;
    }
    if (l->n >= ST_FORECAST_LATELY_MAX)
        return false;
    l->n++;
    return true;
}

static void adjust(int32_t *reach, bool missed)
{
    *reach = ST_MIN(ST_MAX(*reach + (missed ? MISSED : -HELD), 0), ST_FORECAST_REACH_MAX);
}

/* Two to the power of so many thousandths, times 1000; between octaves on a straight line. */
static int64_t power(int32_t thousandths)
{
    int64_t octaves = thousandths / ST_FORECAST_OCTAVE, rest = thousandths % ST_FORECAST_OCTAVE;
    return (int64_t)(ST_FORECAST_OCTAVE + rest) << octaves;
}

void st_forecast_waited(st_forecast *f, int64_t told_ms, int64_t real_ms, int64_t now)
{
    int64_t unit = whole(told_ms), real = ST_MIN(ST_MAX(real_ms, 0), WORST * unit);
    int far = far_of(told_ms);
    if (!counts(&f->lately[far], now))
        return;
    st_margin m = st_forecast_margin(f, told_ms);
    if (m.seen > 0) {
        adjust(&f->reach[far].lo, real_ms < m.lo_ms);
        adjust(&f->reach[far].hi, real_ms > m.hi_ms);
    }
    st_sketch_note(&f->error[far], real * ST_FORECAST_ONE / unit);
}

st_margin st_forecast_margin(const st_forecast *f, int64_t wait_ms)
{
    int far = far_of(wait_ms);
    const st_sketch *s = &f->error[far];
    if (s->total < ENOUGH)
        return (st_margin){0, wait_ms, wait_ms};
    int64_t unit = whole(wait_ms), one = ST_FORECAST_OCTAVE;
    int64_t lo = st_sketch_low(st_sketch_quantile(s, 0, LOW_PCT)) * unit / ST_FORECAST_ONE;
    int64_t hi = st_sketch_low(st_sketch_quantile(s, 0, TOP_PCT) + 1) * unit / ST_FORECAST_ONE;
    lo = lo * one / power(f->reach[far].lo);
    hi = ST_MIN(hi, WAIT_MAX_MS) * power(f->reach[far].hi) / one;
    return (st_margin){
        .seen = (int)(s->total / ST_SKETCH_UNIT),
        .lo_ms = ST_MIN(lo, wait_ms),
        .hi_ms = ST_MAX(hi, wait_ms),
    };
}
