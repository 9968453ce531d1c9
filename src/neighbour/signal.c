/*
 * What is usual for a job, and whether it is slow (neighbour/neighbour.h).
 *
 * Requests are looked at in windows. The 99th percentile of a window is compared with what is usual for this job under
 * such a load; a job that has rare slow requests by itself has to have more of them. Slow windows teach nothing, so that
 * a slowdown does not become usual while it is being looked into.
 */
#include <math.h>
#include <string.h>

#include "base/macros.h"
#include "neighbour/state.h"

#define SETTLE    32.0 /* windows that a usual value goes back */
#define LONG      64.0
#define LATE      0.005 /* requests beyond the limit that a job has by itself, before more is known */
#define LEAST     0.001
#define LIKELY    0.002 /* slow by chance */
#define CLEAR     1e-7
#define DOUBT     1e-5 /* the same for several windows together */
#define SURE      5.3  /* logarithm of odds of 200 to 1 */
#define WELL      0.01 /* parts of the requests, of a job that is well */
#define WELL90    0.2
#define FEW       30  /* requests, at least */
#define TESTED    3   /* windows, at most, until a test is clear */
#define FAST      4.0 /* samples of GPU time, lately */
#define SLOW      120.0
#define IDLE      10 /* of the longest windows: too few requests to say anything */
#define LITTLE_PM 20.0
#define LOW_PM    1000000.0 /* ns in a ms, over 1000 */

uint64_t st_nb_time_least(int step)
{
    if (step < 16)
        return (uint64_t)step * 64;
    return (uint64_t)(16 + step % 16) << (step / 16 - 1) << 6;
}

/* Interpolated inside of its step. */
static double percentile_ns(const uint32_t *v, int64_t count, double part)
{
    double want = (double)count * part, below = 0;
    int i = 0;

    for (; i < ST_NB_TIMES - 1 && below + v[i] < want; i++)
        below += v[i];
    return (double)st_nb_time_least(i) +
           (v[i] ? (want - below) / v[i] : 0) *
               (double)(st_nb_time_least(i + 1) - st_nb_time_least(i));
}

/* ---- GPU time ------------------------------------------------------------------------------- */

/* Whether it uses more of the device than it did: an arrival, or growth. */
static void see_gpu(const st_nb *nb, nb_task *t, uint64_t gpu_ns, int64_t now)
{
    int64_t ms = now - t->gpu_ms;
    double pm;

    if (ms <= 0)
        return;
    pm = gpu_ns > t->gpu_ns ? (double)(gpu_ns - t->gpu_ns) / (double)ms / (LOW_PM / 1000.0) : 0;
    t->gpu_ns = gpu_ns;
    if (pm > LITTLE_PM)
        t->busy_ms = now;
    t->gpu_ms = now;
    t->fast_pm += (pm - t->fast_pm) / FAST;
    t->slow_pm += (t->fast_pm - t->slow_pm) / SLOW;
    if (t->fast_pm > t->slow_pm * 1.5 + (double)nb->policy.grow_pm) {
        t->grew_ms = now;
        t->slow_pm = t->fast_pm;
    }
}

void st_nb_see(st_nb *nb, nb_task *t, const st_nb_sample *s, int64_t now)
{
    see_gpu(nb, t, s->gpu_ns, now);
    t->share_pm = s->share_pm;
    t->latency = s->latency;
    t->capable = s->capable;
    t->has_times = s->times != NULL;
    for (int i = 0; s->times && i < ST_NB_TIMES; i++) {
        uint64_t more = s->times[i] >= t->before[i] ? s->times[i] - t->before[i] : 0;

        more = ST_MIN(more, (uint64_t)UINT32_MAX / 2 - ST_MIN(t->window[i], UINT32_MAX / 2));
        t->before[i] = s->times[i];
        if (now <= t->window_ms) /* it has not begun */
            continue;
        t->window[i] += (uint32_t)more;
        t->count += (int64_t)more;
    }
}

/* ---- requests --------------------------------------------------------------------------------- */

void st_nb_fresh_window(nb_task *t, int64_t now)
{
    memset(t->window, 0, sizeof t->window);
    t->count = 0;
    t->window_ms = now;
}

static int load_of(int64_t count, int64_t ms)
{
    double rate = (double)count * 1000.0 / (double)ST_MAX(ms, 1);
    int l = rate < 1 ? 0 : (int)floor(log2(rate)) + 1;

    return ST_MIN(l, NB_LOADS - 1);
}

/* What is usual under this load, or one half as heavy, or a heavier one: who is slow has fewer requests. NULL: not known. */
static const nb_usual *usual(const st_nb *nb, const nb_task *t, int load)
{
    for (int i = 0; i <= NB_LOADS; i++) {
        int l = i == 0 ? load : i == 1 ? load - 1 : load + i - 1;

        if (l >= 0 && l < NB_LOADS && t->usual[l].windows >= nb->policy.learn)
            return &t->usual[l];
    }
    return NULL;
}

/* How likely it is to see so many or more where so many are expected (Poisson). */
static double chance(double expected, double seen)
{
    double term = exp(-expected), below = 0;

    for (double i = 0; i < seen; i++) {
        below += term;
        term *= expected / (i + 1);
        if (i > expected && term < below * 1e-12)
            break;
    }
    return below < 1 ? 1 - below : 0;
}

/* Requests beyond a time; those of its step in proportion. */
static double beyond(const uint32_t *v, double ns)
{
    double n = 0;

    for (int i = ST_NB_TIMES - 1; i >= 0; i--) {
        double from = (double)st_nb_time_least(i), to = (double)st_nb_time_least(i + 1);

        if (to <= ns)
            break;
        n += from >= ns ? v[i] : v[i] * (to - ns) / (to - from);
    }
    return n;
}

/* More are late than this job has late by itself, and p99 is above the limit. */
static double slow_by_chance(const nb_usual *u, double late, double n)
{
    return late < 2 || late * 100 < n ? 1 : chance(u->late * n, floor(late));
}

static void learn(const st_nb *nb, const nb_task *t, nb_usual *u)
{
    double p99 = percentile_ns(t->window, t->count, 0.99);
    double step = 1.0 / ST_MIN((double)u->windows + 1, SETTLE), late;

    if (u->windows == 0)
        u->late = LATE;
    u->p99_ns += (p99 - u->p99_ns) * step;
    u->p90_ns += (percentile_ns(t->window, t->count, 0.9) - u->p90_ns) * step;
    late = beyond(t->window, u->p99_ns * (double)nb->policy.ratio_pct / 100) / (double)t->count;
    u->late = ST_MAX(u->late + (late - u->late) / LONG, LEAST);
    u->windows++;
}

static void note_past(nb_task *t, nb_past now)
{
    memmove(t->past + 1, t->past, sizeof t->past - sizeof t->past[0]);
    t->past[0] = now;
    t->slow_windows = now.slow ? t->slow_windows + 1 : 0;
}

/* The window as it is so far. */
static nb_past look(const st_nb *nb, const nb_task *t, int64_t now)
{
    const nb_usual *known = usual(nb, t, load_of(t->count, now - t->window_ms));
    nb_past p = {.at_ms = now, .count = (double)t->count};

    if (!known || t->count == 0)
        return p;
    p.ratio = percentile_ns(t->window, t->count, 0.99) / known->p99_ns;
    p.late = beyond(t->window, known->p99_ns * (double)nb->policy.ratio_pct / 100);
    p.above = beyond(t->window, known->p90_ns);
    p.usual = known->late;
    p.by_chance = slow_by_chance(known, p.late, p.count);
    p.slow = p.by_chance < LIKELY;
    return p;
}

bool st_nb_window(st_nb *nb, nb_task *t, int64_t now)
{
    const st_nb_policy *p = &nb->policy;
    bool tested = nb->step != NB_WATCH && nb->step != NB_HELD && t->id == nb->victim;
    int64_t ms = now - t->window_ms;
    nb_past past;

    if (!t->has_times || ms < p->window_ms || t->count < FEW || tested)
        return false;
    past = look(nb, t, now);
    if (t->count < p->requests && (ms < p->window_max_ms || t->count < p->requests / 3) &&
        !(past.slow && past.by_chance < CLEAR)) {
        if (ms > IDLE * p->window_max_ms)
            st_nb_fresh_window(t, now);
        return false;
    }
    if (!past.slow && nb->step == NB_WATCH && !st_nb_suspect(nb, t, now))
        learn(nb, t, &t->usual[load_of(t->count, ms)]);
    note_past(t, past);
    st_nb_fresh_window(t, now);
    return true;
}

/* What a request says on average, in a test between these two parts. */
static double worth(double before, double well)
{
    return before > well ? before * log(before / well) - (before - well) : 0;
}

/* Whether the victim is better now than with the suspect at large, or as slow: as soon as that is clear. Late requests
 * are what counts; where most requests are slower, those beyond the usual p90 show it sooner. */
nb_verdict st_nb_verdict(const st_nb *nb, const nb_task *t, int64_t now)
{
    int64_t ms = now - t->window_ms;
    nb_past past = look(nb, t, now);
    double well = ST_MAX(2 * past.usual, WELL), before = nb->late, seen = past.late, odds;

    if (t->count < FEW || ms < nb->policy.window_ms / 2)
        return NB_UNCLEAR;
    if (worth(nb->above, WELL90) > worth(before, well)) {
        before = nb->above;
        seen = past.above;
        well = WELL90;
    }
    if (past.ratio <= 0 || before <= well)
        return NB_NEITHER;
    /* How much more likely it is that it is as slow as before than that it is well: a sequential test. */
    odds = seen * log(before / well) - past.count * (before - well);
    if (fabs(odds) > SURE)
        return odds > 0 ? NB_SLOW : NB_BETTER;
    return t->count > TESTED * nb->policy.requests || ms > TESTED * nb->policy.window_max_ms
               ? NB_NEITHER
               : NB_UNCLEAR;
}

bool st_nb_enough(const st_nb *nb, const nb_task *t, int64_t now, double *ret_ratio)
{
    int64_t ms = now - t->window_ms;

    if (ms < nb->policy.window_ms || t->count < nb->policy.requests / 3)
        return false;
    *ret_ratio = look(nb, t, now).ratio;
    return true;
}

/* What it is now becomes usual. */
void st_nb_forget(nb_task *t)
{
    memset(t->usual, 0, sizeof t->usual);
    memset(t->past, 0, sizeof t->past);
    t->slow_windows = 0;
}

/* So many of the latest windows are, or the latest together are beyond doubt. */
bool st_nb_is_slow(const st_nb *nb, const nb_task *t)
{
    double late = 0, n = 0, expected = 0;
    int slow = 0;

    for (int i = 0; i < NB_PAST && t->past[i].ratio > 0; i++) {
        const nb_past *p = &t->past[i];

        slow += p->slow && i < nb->policy.of;
        late += p->late;
        n += p->count;
        expected += p->usual * p->count;
        if (i > 0 && late * 100 >= n && chance(expected, floor(late)) < DOUBT)
            return true;
    }
    return slow >= nb->policy.slow;
}
