/* A device with a service and its neighbours, drawn from a seed (world.h). */
#include <math.h>
#include <string.h>

#include "base/macros.h"
#include "neighbour/test/world.h"

#define DAY_MS  86400000.0
#define BASE_NS 900000.0
#define PI      3.14159265358979

static double normal(st_rng *r)
{
    return sqrt(-2 * log(1 - st_rng_unit(r))) * cos(2 * PI * st_rng_unit(r));
}

void world_init(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    st_rng_seed(&w->rng, seed);
    w->nb = st_nb_new(NULL);
    w->now_ms = 1000;
    w->rate = 60 * pow(16, st_rng_unit(&w->rng)); /* 60 to 960 */
    w->swing = 0.5 * st_rng_unit(&w->rng);
    w->sigma = 0.05 + 0.3 * st_rng_unit(&w->rng);
    w->hiccup = 0.004 * st_rng_unit(&w->rng);
    for (int i = 0; i < WORLD_SHAPE; i++) {
        double ns = BASE_NS * exp(w->sigma * normal(&w->rng));

        w->shape[i] = (uint32_t)(ns / 16);
    }
    w->host = 1;
}

void world_add(world *w, world_task t)
{
    if (w->ntask < ST_NB_TASKS)
        w->task[w->ntask++] = t;
}

static int step_of(uint64_t ns)
{
    uint64_t v = ns / 64;
    int e = v ? 63 - __builtin_clzll(v) : 0;

    if (v < 16)
        return (int)v;
    return ST_MIN((e - 3) * 16 + (int)(v >> (e - 4) & 15), ST_NB_TIMES - 1);
}

/* Times of slowness that have nothing to do with neighbours. */
static void host(world *w)
{
    if (w->per_day <= 0)
        return;
    if (w->host_at_ms == 0)
        w->host_at_ms = w->now_ms + (int64_t)(-log(1 - st_rng_unit(&w->rng)) * DAY_MS / w->per_day);
    if (w->now_ms >= w->host_at_ms) {
        w->host = 1.2 + 1.8 * st_rng_unit(&w->rng);
        w->host_to_ms = w->now_ms + 2000 + (int64_t)(60000 * st_rng_unit(&w->rng));
        w->host_at_ms = 0;
    }
    if (w->now_ms >= w->host_to_ms)
        w->host = 1;
}

static void requests(world *w, double factor)
{
    double day = sin(2 * PI * (double)w->now_ms / DAY_MS), rate = w->rate * (1 + w->swing * day);
    double load = 1 + 0.1 * w->swing * day;
    int64_t n;

    w->owed += rate * (0.9 + 0.2 * st_rng_unit(&w->rng)) * WORLD_TICK_MS / 1000;
    n = (int64_t)w->owed;
    w->owed -= (double)n;
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = st_rng_u64(&w->rng);
        double ns = w->shape[x % WORLD_SHAPE] * 16.0 * factor * load;

        if ((double)(x >> 40) < w->hiccup * 16777216.0)
            ns *= 3;
        w->times[step_of((uint64_t)ns)]++;
        w->gpu_ns += (uint64_t)(ns / 2);
    }
}

void world_tick(world *w)
{
    st_nb_sample v[ST_NB_TASKS + 1];
    st_nb_order mine = st_nb_order_of(w->nb, 1);
    double factor;
    size_t n = 0;

    w->now_ms += WORLD_TICK_MS;
    host(w);
    factor = w->host;
    v[n++] = (st_nb_sample){.id = 1, .share_pm = 500, .times = w->times, .capable = true};
    for (int i = 0; i < w->ntask; i++) {
        world_task *t = &w->task[i];
        st_nb_order o = st_nb_order_of(w->nb, t->id);
        double runs = o.cap_pm ? ST_MIN(o.cap_pm / 1000.0, t->part) : t->part;

        if (w->now_ms < t->from_ms || w->now_ms >= t->to_ms)
            continue;
        t->gpu_ns += (uint64_t)(runs * WORLD_TICK_MS * 1e6);
        /* A cap makes it rarer, not milder: the slowest of a hundred requests still meets it. */
        if (runs > 0.02)
            factor *= mine.protect ? t->eased : t->factor;
        v[n++] = (st_nb_sample){.id = t->id, .gpu_ns = t->gpu_ns, .share_pm = 500, .capable = true};
        if (n == ST_NB_TASKS)
            break;
    }
    requests(w, factor);
    v[0].gpu_ns = w->gpu_ns;
    st_nb_feed(w->nb, w->now_ms, v, n);
}

void world_done(world *w)
{
    st_nb_free(w->nb);
}
