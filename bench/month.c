/*
 * The made-up month: see month.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "month.h"

#define JOBS_PER_NODE 144

/* A device is free, has one whole resident, or up to four shares of 350: crowded from the third on. */
struct month_place {
    uint8_t shares;
    bool whole;
};

enum { ENDS, CHANGES };

/* ---- what ends next ----------------------------------------------------------------------- */

static bool sooner(const month_event *a, const month_event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->job < b->job;
}

static void push(month *w, month_event h)
{
    st_vec_push(&w->heap, h);
    size_t i = w->heap.n - 1;
    while (i > 0 && sooner(&h, &w->heap.v[(i - 1) / 2])) {
        w->heap.v[i] = w->heap.v[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap.v[i] = h;
}

static month_event pop(month *w)
{
    month_event top = w->heap.v[0], last = st_vec_pop(&w->heap);
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

/* The first node from a random one on with room; devs 0: none. */
static st_grant find_room(month *w, int gpus)
{
    int32_t node = (int32_t)st_rng_below(&w->rng, (uint64_t)w->nodes);
    for (int tries = 0; tries < w->nodes; tries++, node = (node + 1) % w->nodes) {
        unsigned devs = 0;
        int left = gpus > 0 ? gpus : 1;
        for (int d = 0; d < MONTH_DEVS && left > 0; d++) {
            const month_place *p = &w->places[node * MONTH_DEVS + d];
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
    for (int d = 0; d < MONTH_DEVS; d++) {
        month_place *p = &w->places[g.node * MONTH_DEVS + d];
        if (!(g.devs >> d & 1))
            continue;
        if (gpus > 0)
            p->whole = on;
        else
            p->shares = (uint8_t)(p->shares + (on ? 1 : -1));
    }
}

/* ---- what happens ------------------------------------------------------------------------- */

static void drain(month *w, int64_t now)
{
    for (size_t i = 0; i < w->out.n; i++)
        w->ears.record(w->ears.ctx, &w->out.v[i], now);
    st_vec_clear(&w->out);
}

int32_t month_account_of(uint32_t job)
{
    return 1 + MONTH_ORGS + (int32_t)(job % MONTH_TEAMS);
}

/* Telemetry: nineteen of twenty moments were seen, and most of those were busy. */
static void tell(month *w, uint32_t job, int64_t now)
{
    int64_t ms = (now - w->start_ms[job]) * ST_MAX(w->gpus[job], 1);
    st_sums sums = {ms / 20 * 19, ms / 20 * (10 + job % 9), ms / 2, 40000};
    st_meter_used(w->m, job + 1, 1, 0, &sums, &w->out);
}

static void happen(month *w, month_event h)
{
    uint64_t id = h.job + 1;
    if (h.what == CHANGES) {
        st_meter_class(w->m, w->tree, id, ST_CLASS_GUARANTEED, h.at_ms, &w->out);
        drain(w, h.at_ms);
        return;
    }
    bool late = h.job % 10 == 1;
    if (!late)
        tell(w, h.job, h.at_ms);
    st_meter_stop(w->m, id, h.at_ms, h.at_ms - 500, ST_CUT_ENDED, 0, &w->out);
    if (late)
        tell(w, h.job, h.at_ms);
    drain(w, h.at_ms);
    st_meter_forget(w->m, id);
    occupy(w, w->grant[h.job], w->gpus[h.job], false);
    if (w->ears.ends)
        w->ears.ends(w->ears.ctx, id, month_account_of(h.job), h.at_ms);
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
    w->start_ms[job] = now;
    w->gpus[job] = (uint8_t)gpus;
    occupy(w, g, gpus, true);
    st_job j = {.id = job + 1, .account = month_account_of(job), .user = -1, .tasks = 1};
    j.limit_ms = MONTH_LIMIT;
    j.shape = (st_shape){.level = gpus ? ST_LEVEL_WHOLE : ST_LEVEL_TIME,
                         .gpus = gpus ? gpus : 1,
                         .share_m = 350,
                         .cpu_m = 8000,
                         .ram_mib = 65536};
    j.class = ST_CLASS_BURSTABLE;
    if (w->ears.begins)
        w->ears.begins(w->ears.ctx, &j, now);
    st_meter_start(w->m, w->tree, &j, 0, &g, now, &w->out);
    int64_t ms = st_rng_range(&w->rng, 60000, MONTH_LONG);
    push(w, (month_event){now + ms, job, ENDS});
    if (job % 10 == 0)
        push(w, (month_event){now + ms / 2, job, CHANGES});
    drain(w, now);
}

void month_until(month *w, int64_t at_ms)
{
    for (;;) {
        int64_t each = MONTH_DAYS * MONTH_DAY / w->jobs;
        int64_t comes = w->next < w->jobs ? w->from_ms + each * w->next : ST_TIME_NEVER;
        int64_t due = w->heap.n > 0 ? w->heap.v[0].at_ms : ST_TIME_NEVER;
        if (ST_MIN(comes, due) >= at_ms)
            return;
        if (due <= comes)
            happen(w, pop(w));
        else
            submit(w, w->next++, comes);
    }
}

void month_cut(month *w, int64_t at_ms)
{
    for (size_t i = 0; i < w->heap.n; i++)
        if (w->heap.v[i].what == ENDS)
            tell(w, w->heap.v[i].job, at_ms);
    st_meter_cut(w->m, at_ms, &w->out);
    drain(w, at_ms);
}

/* ---- beginning and end -------------------------------------------------------------------- */

static void add_account(month *w, const char *name, const char *parent, int64_t floor_m)
{
    st_account_spec spec;
    st_err err = {0};
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    ST_ASSERT(st_tree_set(w->tree, &spec, NULL, &err) == 0);
    w->tree->accounts.v[w->tree->accounts.n - 1]->floor.gpu_m = floor_m;
}

static void make_tree(month *w)
{
    int64_t floor_m = (int64_t)w->nodes * MONTH_DEVS * ST_WHOLE_M / 500;
    char name[16], org[16];
    for (int i = 0; i < MONTH_ORGS; i++) {
        snprintf(name, sizeof name, "org-%02d", i);
        add_account(w, name, NULL, floor_m * (MONTH_TEAMS / MONTH_ORGS));
    }
    for (int i = 0; i < MONTH_TEAMS; i++) {
        snprintf(name, sizeof name, "team-%03d", i);
        snprintf(org, sizeof org, "org-%02d", i % MONTH_ORGS);
        add_account(w, name, org, floor_m);
    }
}

static void make_fleet(month *w)
{
    st_err err = {0};
    char name[24];
    ST_ASSERT(st_fleet_add_type(w->fleet, "h100", 81920, ST_BOARD_H100_80, &err) == 0);
    ST_ASSERT(st_fleet_add_pool(w->fleet, "main", (1u << ST_LEVEL_COUNT) - 1, 4000, &err) == 0);
    for (int32_t i = 0; i < w->nodes; i++) {
        st_node_spec spec = {
            .name = name, .ndevs = MONTH_DEVS, .cpu_m = 128000, .ram_mib = 1048576};
        int32_t id;
        snprintf(name, sizeof name, "gpu-node-%04d", i);
        ST_ASSERT(st_fleet_add_node(w->fleet, &spec, &id, &err) == 0);
        st_meter_node(w->m, w->fleet->nodes.v[id], w->from_ms);
    }
}

void month_begin(month *w, uint32_t jobs, int64_t from_ms, const month_ears *ears)
{
    *w = (month){.from_ms = from_ms, .jobs = jobs, .ears = *ears};
    w->nodes = (int32_t)(jobs / JOBS_PER_NODE);
    w->m = st_meter_new(from_ms);
    w->tree = st_tree_new();
    w->fleet = st_fleet_new();
    st_rng_seed(&w->rng, 1);
    w->places = st_xcalloc((size_t)w->nodes * MONTH_DEVS, sizeof *w->places);
    w->grant = st_xcalloc(jobs, sizeof *w->grant);
    w->gpus = st_xcalloc(jobs, sizeof *w->gpus);
    w->start_ms = st_xcalloc(jobs, sizeof *w->start_ms);
    make_fleet(w);
    make_tree(w);
    st_meter_floors(w->m, w->tree, from_ms, &w->out);
}

void month_done(month *w)
{
    st_meter_free(w->m);
    st_tree_free(w->tree);
    st_fleet_free(w->fleet);
    free(w->places);
    free(w->grant);
    free(w->gpus);
    free(w->start_ms);
    st_vec_free(&w->heap);
    st_vec_free(&w->out);
}
