/*
 * A month of 50,000 GPUs and 900,000 jobs through the meter alone: what it costs to know who had what.
 *
 * Jobs are one to eight whole GPUs, slices and shares, with telemetry at the end of each; every day is a
 * cut, and one job in ten changes between guaranteed and burstable on the way. The numbers come from a
 * fixed seed.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "meter/meter.h"

#define NODES 6250
#define DEVS  8
#define JOBS  900000
#define DAY   INT64_C(86400000)
#define MONTH (30 * DAY)

/* Of the processor: one thread does all of it. */
static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double heap_mb(void)
{
    return (double)mallinfo2().uordblks / 1e6;
}

/* A device is free, has one whole resident, or up to four shares of 350: crowded from the third on. */
typedef struct place {
    uint8_t shares;
    bool whole;
} place;

typedef struct happening {
    int64_t at_ms;
    uint32_t job;
    uint8_t what; /* 0 ends, 1 changes class */
} happening;

typedef struct month {
    st_meter *m;
    st_tree *tree;
    st_rng rng;
    place *places;
    st_grant *grant; /* by job */
    uint8_t *gpus;   /* by job; 0: a share */
    ST_VEC(happening) heap;
    st_records out;
    int64_t records, fixes, share, refused;
} month;

/* ---- what ends next ----------------------------------------------------------------------- */

static bool sooner(const happening *a, const happening *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->job < b->job;
}

static void push(month *w, happening h)
{
    st_vec_push(&w->heap, h);
    size_t i = w->heap.n - 1;
    while (i > 0 && sooner(&h, &w->heap.v[(i - 1) / 2])) {
        w->heap.v[i] = w->heap.v[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap.v[i] = h;
}

static happening pop(month *w)
{
    happening top = w->heap.v[0], last = st_vec_pop(&w->heap);
    size_t i = 0, n = w->heap.n;
    while (n > 0) {
        size_t k = 2 * i + 1;
        if (k + 1 < n && sooner(&w->heap.v[k + 1], &w->heap.v[k]))
            k++;
        if (k >= n || !sooner(&w->heap.v[k], &last))
            break;
        w->heap.v[i] = w->heap.v[k];
        i = k;
    }
    if (n > 0)
        w->heap.v[i] = last;
    return top;
}

/* ---- places ------------------------------------------------------------------------------- */

/* The first node from a random one on with room; devs 0: none in a while. */
static st_grant find_room(month *w, int gpus)
{
    int32_t node = (int32_t)st_rng_below(&w->rng, NODES);
    for (int tries = 0; tries < 200; tries++, node = (node + 1) % NODES) {
        unsigned devs = 0;
        int left = gpus > 0 ? gpus : 1;
        for (int d = 0; d < DEVS && left > 0; d++) {
            const place *p = &w->places[node * DEVS + d];
            bool fits = gpus > 0 ? !p->whole && p->shares == 0 : !p->whole && p->shares < 4;
            devs |= fits ? 1u << d : 0;
            left -= fits;
        }
        if (left == 0)
            return (st_grant){node, (uint16_t)devs, -1};
    }
    return (st_grant){0, 0, -1};
}

static void occupy(month *w, st_grant g, int gpus, bool on)
{
    for (int d = 0; d < DEVS; d++) {
        place *p = &w->places[g.node * DEVS + d];
        if (!(g.devs >> d & 1))
            continue;
        if (gpus > 0)
            p->whole = on;
        else
            p->shares = (uint8_t)(p->shares + (on ? 1 : -1));
    }
}

/* ---- the month ---------------------------------------------------------------------------- */

static void drain(month *w)
{
    for (size_t i = 0; i < w->out.n; i++) {
        const st_record *r = &w->out.v[i];
        w->share += r->kind == ST_REC_GRANT || r->kind == ST_REC_FIX ? r->share : 0;
        w->fixes += r->kind == ST_REC_FIX;
    }
    w->records += (int64_t)w->out.n;
    st_vec_clear(&w->out);
}

static void happen(month *w, happening h)
{
    uint64_t id = h.job + 1;
    if (h.what == 1) {
        st_meter_class(w->m, w->tree, id, ST_CLASS_GUARANTEED, h.at_ms, &w->out);
    } else {
        st_sums sums = {st_rng_range(&w->rng, 0, DAY), 0, 1000, 100};
        sums.busy_gpu_ms = sums.seen_gpu_ms / 2;
        st_meter_used(w->m, id, 1, 0, &sums, &w->out);
        st_meter_stop(w->m, id, h.at_ms, h.at_ms - 500, ST_CUT_ENDED, 0, &w->out);
        st_meter_forget(w->m, id);
        occupy(w, w->grant[h.job], w->gpus[h.job], false);
    }
    drain(w);
}

static void submit(month *w, uint32_t job, int64_t now)
{
    static const uint8_t sizes[] = {0, 0, 0, 1, 1, 1, 1, 2, 4, 8};
    int gpus = sizes[st_rng_below(&w->rng, sizeof sizes)];
    st_grant g = find_room(w, gpus);
    if (g.devs == 0) {
        w->refused++;
        return;
    }
    w->grant[job] = g;
    w->gpus[job] = (uint8_t)gpus;
    occupy(w, g, gpus, true);
    st_job j = {.id = job + 1, .account = 1 + (int32_t)(job % 300), .tasks = 1};
    j.shape = (st_shape){.level = gpus ? ST_LEVEL_WHOLE : ST_LEVEL_TIME,
                         .gpus = gpus ? gpus : 1,
                         .share_m = 350,
                         .cpu_m = 8000,
                         .ram_mib = 65536};
    j.class = ST_CLASS_BURSTABLE;
    st_meter_start(w->m, w->tree, &j, 0, &g, now, &w->out);
    int64_t ms = st_rng_range(&w->rng, 60000, 2 * DAY);
    push(w, (happening){now + ms, job, 0});
    if (job % 10 == 0)
        push(w, (happening){now + ms / 2, job, 1});
    drain(w);
}

static void begin(month *w)
{
    *w = (month){.m = st_meter_new(0), .tree = st_tree_new()};
    st_rng_seed(&w->rng, 1);
    w->places = st_xcalloc((size_t)NODES * DEVS, sizeof *w->places);
    w->grant = st_xcalloc(JOBS, sizeof *w->grant);
    w->gpus = st_xcalloc(JOBS, sizeof *w->gpus);
    for (int i = 0; i < 300; i++) {
        st_account_spec spec;
        st_err err = {0};
        char name[16];
        snprintf(name, sizeof name, "team%d", i);
        st_account_spec_init(&spec);
        spec.name = name;
        ST_ASSERT(st_tree_set(w->tree, &spec, NULL, &err) == 0);
        w->tree->accounts.v[i + 1]->floor.gpu_m = 100000;
    }
    for (int32_t i = 0; i < NODES; i++)
        st_meter_node(w->m, &(st_node){.id = i, .ndevs = DEVS}, 0);
    st_meter_floors(w->m, w->tree, 0, &w->out);
}

static void finish(month *w)
{
    st_meter_free(w->m);
    st_tree_free(w->tree);
    free(w->places);
    free(w->grant);
    free(w->gpus);
    st_vec_free(&w->heap);
    st_vec_free(&w->out);
}

static void save_and_load(const month *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_meter *loaded = NULL;
    st_err err = {0};
    double start = now_s();
    st_meter_save(w->m, &bytes);
    double saved = now_s();
    ST_ASSERT(st_meter_load(bytes.s, bytes.n, &loaded, &err) == 0);
    printf("  save       %8.1f ms, %.1f MB; load %.1f ms\n", 1e3 * (saved - start),
           (double)bytes.n / 1e6, 1e3 * (now_s() - saved));
    st_meter_free(loaded);
}

static int one_account(void *ctx, const st_record *r)
{
    *(int64_t *)ctx += r->account == 7;
    return 0;
}

int main(void)
{
    double empty = heap_mb(), cuts = 0, most = 0;
    month w;
    begin(&w);
    double own = heap_mb() - empty, start = now_s();
    int64_t next_cut = DAY, hits = 0;
    for (uint32_t job = 0; job < JOBS; job++) {
        int64_t now = MONTH / JOBS * job;
        while (w.heap.n > 0 && w.heap.v[0].at_ms <= now)
            happen(&w, pop(&w));
        if (now >= next_cut) {
            double from = now_s();
            st_meter_cut(w.m, next_cut, &w.out);
            drain(&w);
            cuts += now_s() - from;
            next_cut += DAY;
            most = heap_mb() - empty - own > most ? heap_mb() - empty - own : most;
        }
        submit(&w, job, now);
    }
    st_meter_cut(w.m, MONTH, &w.out);
    drain(&w);
    double took = now_s() - start;
    printf("50,000 GPUs, 900,000 jobs (%lld not started), 30 days\n", (long long)w.refused);
    printf("  all of it  %8.2f s of one core, %lld records (%lld corrections)\n", took,
           (long long)w.records, (long long)w.fixes);
    printf("  a cut      %8.1f ms, %zu stays open\n", 1e3 * cuts / 29, st_meter_stays(w.m));
    printf("  memory     %8.1f MB of open and remembered stays\n", most);
    start = now_s();
    st_meter_open(w.m, MONTH + 1, one_account, &hits);
    printf("  open       %8.1f ms to go through all that is open\n", 1e3 * (now_s() - start));
    save_and_load(&w);
    st_record total;
    st_meter_totals(w.m, 0, &total);
    ST_ASSERT(total.total == INT64_C(50000000) * MONTH && total.granted == w.share);
    printf("  granted    %8.1f %% of the month, to the last milli-GPU x ms\n",
           100.0 * (double)total.granted / (double)total.total);
    finish(&w);
    return 0;
}
