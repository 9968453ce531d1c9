/*
 * The experiment of sim/fragmentation.h: draws the arrivals, has a policy place them, and counts.
 */
#include "sim/fragmentation.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "sim/fragmentation_peers.h"

static const char *const names[] = {
#define NAME(name, text) #name,
    ST_FRAG_POLICIES(NAME)
#undef NAME
};

const char *st_frag_policy_name(st_frag_policy policy)
{
    return names[policy];
}

int st_frag_policy_find(const char *name)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

/* A policy at work: one of the two is set. */
typedef struct player {
    const st_openb *trace;
    st_frag *own;
    st_peer *old;
} player;

static void begin(player *p, const st_openb_stream *stream, st_frag_policy policy, uint64_t seed)
{
    if (policy != ST_FRAG_POLICY_stint) {
        p->old = st_peer_new(p->trace, stream, policy, seed);
        return;
    }
    p->own = st_frag_new();
    for (size_t i = 0; i < stream->nodes.n; i++) {
        const st_openb_node *n = &p->trace->nodes.v[stream->nodes.v[i]];

        st_frag_add(p->own, n->type, n->cpu_m, n->ram_mib, n->gpus);
    }
}

static bool place(player *p, int32_t pod)
{
    const st_frag_ask *ask = &p->trace->pods.v[pod].ask;
    st_frag_spot spot;

    if (p->old)
        return st_peer_place(p->old, pod);
    if (!st_frag_choose(p->own, st_frag_learn(p->own, ask), &spot))
        return false;
    st_frag_take(p->own, ask, &spot);
    return true;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* What has arrived and what of it was placed. */
typedef struct tally {
    int64_t capacity_m, arrived_m, placed_m;
    int64_t at_100;       /* arrivals that round to 100 % */
    double placed_at_100; /* summed over them */
    double first_above;   /* placed when 100 % were first passed, where none rounds to it */
} tally;

static void count(tally *t, int64_t gpu_m, bool placed)
{
    int64_t pct;

    t->arrived_m += gpu_m;
    t->placed_m += placed ? gpu_m : 0;
    pct = llround(100.0 * (double)t->arrived_m / (double)t->capacity_m);
    if (pct == 100) {
        t->at_100++;
        t->placed_at_100 += (double)t->placed_m;
    }
    if (pct > 100 && t->first_above < 0)
        t->first_above = (double)t->placed_m;
}

void st_fragmentation_run(const st_openb *trace, st_frag_policy policy, uint64_t seed,
                          int32_t times, st_fragmentation *ret)
{
    ST_CLEANUP(st_openb_stream_done) st_openb_stream stream = {0};
    ST_CLEANUP(st_freep) int64_t *took_ns = NULL;
    tally t = {.capacity_m = trace->capacity_m * times, .first_above = -1};
    player p = {.trace = trace};
    int64_t start_ns, last_ns;
    size_t n;

    st_openb_draw(trace, seed, times, &stream);
    begin(&p, &stream, policy, seed);
    n = stream.arrivals.n;
    took_ns = st_xcalloc(n, sizeof(*took_ns));
    start_ns = last_ns = now_ns();
    for (size_t i = 0; i < n; i++) {
        const st_openb_pod *pod = &trace->pods.v[stream.arrivals.v[i]];
        bool placed = place(&p, stream.arrivals.v[i]);
        int64_t ns = now_ns();

        took_ns[i] = ns - last_ns;
        last_ns = ns;
        count(&t, (int64_t)pod->ask.gpus * pod->gpu_m, placed);
    }
    qsort(took_ns, n, sizeof(*took_ns), compare_ns);
    *ret = (st_fragmentation){
        .unallocated_pct_at_100 =
            100 -
            100 * (t.at_100 > 0 ? t.placed_at_100 / (double)t.at_100 : ST_MAX(t.first_above, 0)) /
                (double)t.capacity_m,
        .allocated_pct_at_130 = 100.0 * (double)t.placed_m / (double)t.capacity_m,
        .decisions = (int64_t)n,
        .seconds = (double)(last_ns - start_ns) * 1e-9,
        .decision_p99_us = (double)took_ns[(n * 99 + 99) / 100 - 1] * 1e-3,
    };
    st_frag_free(p.own);
    st_peer_free(p.old);
}
