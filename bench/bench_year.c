/* A year of a fleet of 16,384 GPUs whose parts fail as published: what Stint finds, how fast, what it takes out for nothing, and
 * what a job of 4,096 GPUs gets done, by how often it saves and what it starts again on.
 *
 *     bench_year [DAYS [SEED]]        30 days unless said; 365 takes minutes
 *
 * The fleet, the faults and the repairs are drawn here; every decision is the core's (core/core.h), and what an XID means is
 * health's. Published: Llama 3's 54 days on 16,384 H100s had 148 faults of GPUs, 72 of their memory, 19 of SRAM, 17 of the
 * GPU system processor and some 50 of hosts and networks; three of 466 needed hands. Errors that programs cause (XID 13, 31) and
 * that follow from others (45) come ten times as often, and once a month 77 nodes report XID 45 together.
 *
 * What is assumed: an agent sees an XID within 3 s, a silent node is lost after the lease of a minute. A reset takes 5 min, a
 * reboot 15 min, hands 2 days. A test takes 10 s; one in thirty fails at first. One fault in twenty is an error of the
 * agent's own and gone after half a minute. The job needs 5 min from its start until it computes, and stands still for 30 s
 * while it saves. Others fill what it leaves, with jobs of 64 GPUs and a day on average. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/rng.h"
#include "base/vec.h"
#include "core/core.h"
#include "health/health.h"

#define NODES    2048
#define GPUS     8
#define JOB      512 /* nodes of the large job */
#define FILLERS  8   /* nodes of another */
#define ACCOUNTS 16
#define WAITING  40 /* others that wait at any time */
#define SEC      INT64_C(1000)
#define MINUTE   (60 * SEC)
#define HOUR     (60 * MINUTE)
#define DAY      (24 * HOUR)
#define BIG      UINT64_C(1)

typedef enum todo_kind { FAULT, NOISE, STORM, SEEN, MENDED, ANSWER, ENDS, GONE } todo_kind;

typedef struct todo {
    int64_t at;
    uint64_t order; /* of those at one moment */
    todo_kind what;
    int32_t node;
    uint64_t id; /* a job; of ANSWER the test */
    int stay;
    st_finding finding;
    int64_t repair;
    int64_t began; /* of SEEN: when it was broken */
    bool real;
} todo;

typedef struct year {
    st_core *core;
    st_effects fx;
    st_rng rng;
    ST_VEC(todo) heap;
    uint64_t order, next_id;
    int64_t now, end;
    size_t waiting;
    bool *down; /* a node that is broken, or thought to be */
    /* of the large job */
    int64_t save_ms, up_ms, done_ms, wait_ms,
        left_ms; /* up_ms: it computes from then on; -1: it does not */
    int starts, hits;
    /* of the fleet */
    int faults, found, taken, held, false_out, noise, noise_out, untested, retired, incidents,
        tests;
    int64_t found_ms, down_ms; /* sums; node x ms */
    int64_t ready_ms;
} year;

static void die(const char *where, const st_err *err)
{
    fprintf(stderr, "bench_year: %s: %s\n", where, err ? err->msg : "");
    exit(1);
}

/* ---- what is to happen --------------------------------------------------------------------- */

static bool sooner(const todo *a, const todo *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(year *y, todo t)
{
    size_t i = y->heap.n;
    t.order = y->order++;
    st_vec_push(&y->heap, t);
    for (; i > 0 && sooner(&t, &y->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        y->heap.v[i] = y->heap.v[(i - 1) / 2];
    y->heap.v[i] = t;
}

static todo pop(year *y)
{
    todo top = y->heap.v[0], last = y->heap.v[--y->heap.n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < y->heap.n; i = k) {
        k += k + 1 < y->heap.n && sooner(&y->heap.v[k + 1], &y->heap.v[k]);
        if (!sooner(&y->heap.v[k], &last))
            break;
        y->heap.v[i] = y->heap.v[k];
    }
    y->heap.v[i] = last;
    return top;
}

/* Time until the next of what happens `times` a day on average. */
static int64_t after(year *y, double times)
{
    double u = ((double)st_rng_below(&y->rng, UINT64_C(1) << 53) + 1) / 9007199254740993.0;
    return 1 + (int64_t)(-log(u) / times * (double)DAY);
}

/* ---- the core --------------------------------------------------------------------------------- */

static void submit(year *y, uint64_t id, const char *account, int tasks);

static void started(year *y, const st_effect *e)
{
    if (e->job == BIG) {
        y->wait_ms += y->now - y->left_ms;
        y->up_ms = y->now + 5 * MINUTE;
        y->starts++;
        return;
    }
    y->waiting--;
    push(y, (todo){.at = y->now + after(y, 1), .what = ENDS, .id = e->job, .stay = e->stay});
}

/* Whatever was computed since it last saved is lost. */
static void left(year *y)
{
    if (y->up_ms >= 0 && y->now > y->up_ms)
        y->done_ms += (y->now - y->up_ms) / (y->save_ms + 30 * SEC) * y->save_ms;
    y->up_ms = -1;
    y->left_ms = y->now;
}

static void after_step(year *y)
{
    for (size_t i = 0; i < y->fx.list.n; i++) {
        const st_effect *e = &y->fx.list.v[i];
        if (e->kind == ST_FX_START || e->kind == ST_FX_RESUME)
            started(y, e);
        else if (e->kind == ST_FX_STOP)
            push(y, (todo){.at = y->now + 2 * SEC, .what = GONE, .id = e->job});
        else if (e->kind == ST_FX_REQUEUE && e->job != BIG)
            y->waiting++;
        if (e->job == BIG && (e->kind == ST_FX_STOP || e->kind == ST_FX_REQUEUE) && y->up_ms >= 0) {
            left(y);
            y->hits++;
        }
        if (e->kind == ST_FX_INCIDENT)
            y->incidents += e->news == ST_INCIDENT_OPENED;
        if (e->kind == ST_FX_NODE) {
            const st_node *n = st_core_fleet(y->core)->nodes.v[e->node];
            y->retired += n->state == ST_NODE_RETIRED;
            y->untested += n->state == ST_NODE_READY && n->unproven;
        }
    }
    st_effects_clear(&y->fx);
    while (y->waiting < WAITING) {
        char account[16];
        snprintf(account, sizeof account, "a%d", (int)st_rng_below(&y->rng, ACCOUNTS));
        submit(y, ++y->next_id, account, FILLERS);
    }
}

static int step(year *y, const st_event *ev)
{
    st_err err;
    int r = st_core_step(y->core, ev, y->now, &y->fx, &err);
    if (r < 0 && ev->kind != ST_EV_FINISH && ev->kind != ST_EV_GONE)
        die(st_event_name(ev->kind), &err);
    return r;
}

static void submit(year *y, uint64_t id, const char *account, int tasks)
{
    st_event ev = {.kind = ST_EV_SUBMIT};
    ev.u.job = (st_job_spec){.id = id,
                             .name = id == BIG ? "train" : "other",
                             .account = account,
                             .user = "u",
                             .pool = -1,
                             .tasks = tasks,
                             .shape = {.gpus = GPUS, .cpu_m = 1000},
                             .limit_ms = ST_TIME_NEVER,
                             .yield = ST_YIELD_REQUEUE};
    if (id != BIG)
        y->waiting++;
    step(y, &ev);
    /* Effects are looked at by whoever made the step that this belongs to, or by the caller. */
}

static void fleet(year *y, int floor, int spares)
{
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    ev.u.type.board = ST_BOARD_H100_80;
    step(y, &ev);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = 1u << ST_LEVEL_WHOLE;
    ev.u.pool.oversub_m = 1000;
    step(y, &ev);
    for (int i = 0; i < NODES; i++) {
        char name[16], rack[16], block[16];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(rack, sizeof rack, "r%d", i / 4);
        snprintf(block, sizeof block, "b%d", i / 128);
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){.name = name,
                                   .ndevs = GPUS,
                                   .cpu_m = 128000,
                                   .ram_mib = 2097152,
                                   .rack = rack,
                                   .block = block};
        step(y, &ev);
        ev = (st_event){.kind = ST_EV_AGENT};
        ev.u.node_state.node = i;
        ev.u.node_state.tests = true;
        step(y, &ev);
    }
    for (int i = -1; i < ACCOUNTS; i++) {
        char name[16];
        ev = (st_event){.kind = ST_EV_ACCOUNT};
        st_account_spec_init(&ev.u.account);
        snprintf(name, sizeof name, i < 0 ? "train" : "a%d", i);
        ev.u.account.name = name;
        if (i < 0)
            ev.u.account.guarantee.gpu_m = (int64_t)floor * GPUS * 1000;
        else if (spares > 0)
            ev.u.account.max.gpu_m =
                (int64_t)(NODES - JOB - spares) / ACCOUNTS / FILLERS * FILLERS * GPUS * 1000;
        step(y, &ev);
    }
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static bool serves(const st_node *n)
{
    return n->state == ST_NODE_READY || n->state == ST_NODE_SUSPECT;
}

static void see(year *y, const todo *t)
{
    const st_node *n = st_core_fleet(y->core)->nodes.v[t->node];
    st_event ev = {.kind = ST_EV_NODE_STATE};
    bool held;
    if (t->real) {
        y->found++;
        y->found_ms += y->now - t->began;
    }
    ev.u.node_state.node = t->node;
    ev.u.node_state.state = ST_NODE_FAILED;
    ev.u.node_state.how = ST_HOW_FAULT;
    ev.u.node_state.by = "agent";
    ev.u.node_state.reason = "a fault";
    ev.u.node_state.finding = t->finding;
    step(y, &ev);
    held = serves(n);
    y->held += held;
    y->taken += !held;
    y->false_out += !held && !t->real;
    push(y, (todo){.at = y->now + t->repair, .what = MENDED, .node = t->node, .real = t->real});
}

/* What a test is asked for is answered; a node that nobody asks about goes on. */
static void ask(year *y, int32_t node)
{
    const st_node *n = st_core_fleet(y->core)->nodes.v[node];
    if (n->test > n->tested)
        push(
            y,
            (todo){.at = y->now + 10 * SEC, .what = ANSWER, .node = node, .id = (uint64_t)n->test});
}

static void mended(year *y, const todo *t)
{
    st_event ev = {.kind = ST_EV_NODE_STATE};
    ev.u.node_state.node = t->node;
    ev.u.node_state.state = ST_NODE_READY;
    ev.u.node_state.how = ST_HOW_HEALED;
    ev.u.node_state.by = "agent";
    step(y, &ev);
    y->down[t->node] = false;
    ask(y, t->node);
}

static void answer(year *y, const todo *t)
{
    const st_node *n = st_core_fleet(y->core)->nodes.v[t->node];
    st_event ev = {.kind = ST_EV_TESTED};
    if (n->test != (int64_t)t->id || n->test <= n->tested)
        return;
    ev.u.tested.node = t->node;
    ev.u.tested.test = n->test;
    ev.u.tested.passed = st_rng_below(&y->rng, 30) > 0;
    ev.u.tested.reason = ev.u.tested.passed ? NULL : "memory";
    ev.u.tested.finding = (st_finding){.kind = ST_FAULT_TEST, .gpu = 0};
    step(y, &ev);
    y->tests++;
    /* A node that failed is looked at again when the core asks for it. */
    if (!ev.u.tested.passed)
        push(y, (todo){.at = y->now + 11 * MINUTE,
                       .what = ANSWER,
                       .node = t->node,
                       .id = (uint64_t)n->test + 1});
}

/* Which fault, by how often each was published. */
static void fault(year *y)
{
    static const struct {
        int share;
        int64_t xid; /* 0: the node falls silent */
    } kinds[] = {{148, 79}, {72, 95}, {19, 95}, {17, 119}, {50, 0}};
    int at = (int)st_rng_below(&y->rng, 306), k = 0;
    int32_t node = (int32_t)st_rng_below(&y->rng, NODES);
    todo t = {.what = SEEN, .node = node, .began = y->now, .real = true};
    push(y, (todo){.at = y->now + after(y, 306.0 / 54), .what = FAULT});
    /* What is broken does not break. */
    if (y->down[node] || !serves(st_core_fleet(y->core)->nodes.v[node]))
        return;
    while (at >= kinds[k].share)
        at -= kinds[k++].share;
    y->faults++;
    y->down[node] = true;
    t.at = y->now + (kinds[k].xid ? 1 + (int64_t)st_rng_below(&y->rng, 3000) : MINUTE);
    t.finding = (st_finding){.kind = kinds[k].xid ? ST_FAULT_XID : ST_FAULT_SILENT,
                             .gpu = kinds[k].xid ? (int)st_rng_below(&y->rng, GPUS) : -1,
                             .code = kinds[k].xid};
    if (kinds[k].xid && !st_xid_fatal(st_xid_of(NULL, kinds[k].xid)))
        die("an XID that is no fault", NULL);
    t.repair = st_remedy_of(&t.finding) == ST_REMEDY_RESET ? 5 * MINUTE : 15 * MINUTE;
    if (st_rng_below(&y->rng, 466) < 3)
        t.repair = 2 * DAY;
    push(y, t);
    if (st_rng_below(&y->rng, 20) == 0) { /* somewhere else an agent is wrong */
        node = (int32_t)st_rng_below(&y->rng, NODES);
        if (y->down[node] || !serves(st_core_fleet(y->core)->nodes.v[node]))
            return;
        y->down[node] = true;
        push(y, (todo){.at = y->now,
                       .what = SEEN,
                       .node = node,
                       .repair = 30 * SEC,
                       .finding = {.kind = ST_FAULT_DRIVER, .gpu = -1}});
    }
}

/* Errors that take no node out: what the agent would report of them. */
static void noise(year *y, int nodes, const int64_t *xids, int n)
{
    for (int i = 0; i < nodes; i++) {
        y->noise++;
        y->noise_out += st_xid_fatal(st_xid_of(NULL, xids[st_rng_below(&y->rng, (uint64_t)n)]));
    }
}

/* ---- a year --------------------------------------------------------------------------------------- */

static void happens(year *y, const todo *t)
{
    static const int64_t programs[] = {13, 31, 43, 45, 94}, follow[] = {45};
    st_event ev = {.kind = ST_EV_TIMER};
    switch (t->what) {
    case FAULT:
        fault(y);
        return;
    case NOISE:
        noise(y, 1, programs, ST_ARRAY_LEN(programs));
        push(y, (todo){.at = y->now + after(y, 3060.0 / 54), .what = NOISE});
        return;
    case STORM:
        noise(y, 77, follow, 1);
        push(y, (todo){.at = y->now + 30 * DAY, .what = STORM});
        return;
    case SEEN:
        see(y, t);
        return;
    case MENDED:
        mended(y, t);
        return;
    case ANSWER:
        answer(y, t);
        return;
    case ENDS: {
        const st_job *job = st_core_job(y->core, t->id);
        if (!job || !st_job_on_devices(job) || job->stay != t->stay)
            return;
        ev.kind = ST_EV_FINISH;
        ev.u.finish.id = t->id;
        step(y, &ev);
        return;
    }
    case GONE:
        ev.kind = ST_EV_GONE;
        ev.u.gone.id = t->id;
        step(y, &ev);
        return;
    }
}

static void count(year *y, int64_t to)
{
    const st_fleet *fleet = st_core_fleet(y->core);
    int64_t ready = 0;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        ready += serves(fleet->nodes.v[i]);
    y->ready_ms += ready * (to - y->now);
    y->now = to;
}

static void play(const char *name, int days, uint64_t seed, int floor, int spares, int64_t save_ms,
                 bool first)
{
    st_policy policy = st_policy_default();
    year y = {.core = st_core_new(&policy),
              .end = days * DAY,
              .save_ms = save_ms,
              .up_ms = -1,
              .next_id = BIG};
    struct timespec a, b;
    int64_t last;
    clock_gettime(CLOCK_MONOTONIC, &a);
    st_rng_seed(&y.rng, seed);
    y.down = calloc(NODES, sizeof *y.down);
    fleet(&y, floor, spares);
    submit(&y, BIG, "train", JOB);
    after_step(&y);
    push(&y, (todo){.at = after(&y, 306.0 / 54), .what = FAULT});
    push(&y, (todo){.at = after(&y, 3060.0 / 54), .what = NOISE});
    push(&y, (todo){.at = 15 * DAY, .what = STORM});
    for (;;) {
        int64_t timer = st_core_next_timer(y.core), at = y.heap.v[0].at;
        bool is_timer = timer < at;
        last = y.now;
        at = ST_MAX(is_timer ? timer : at, last);
        if (at >= y.end)
            break;
        count(&y, at);
        if (is_timer) {
            step(&y, &(st_event){.kind = ST_EV_TIMER});
            for (int32_t i = 0; i < NODES; i++) { /* tests that its clock has asked for */
                const st_node *n = st_core_fleet(y.core)->nodes.v[i];
                if (n->test > n->tested && !y.down[i])
                    ask(&y, i);
            }
        } else {
            todo t = pop(&y);
            happens(&y, &t);
        }
        after_step(&y);
    }
    count(&y, y.end);
    left(&y);
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (first)
        printf("%d days, %d nodes of %d GPUs: %d faults, found after %.1f s on average, %d took a "
               "node out, %d were held by a "
               "limit; %d of nodes that were well, each back by itself; %d errors of programs took "
               "%d nodes out; "
               "%d incidents, %d tests, %d nodes came back untested, %d were retired; %.3f %% of "
               "the time nodes served\n\n"
               "| 4,096 GPUs | saves every | starts | mean wait to start again | goodput "
               "|\n|---|---|---|---|---|\n",
               days, NODES, GPUS, y.faults, (double)y.found_ms / 1e3 / ST_MAX(y.found, 1), y.taken,
               y.held, y.false_out, y.noise, y.noise_out, y.incidents, y.tests, y.untested,
               y.retired, 100.0 * (double)y.ready_ms / ((double)NODES * (double)y.end));
    printf("| %s | %" PRId64 " min | %d | %.0f s | %.2f %% |\n", name, save_ms / MINUTE, y.starts,
           (double)y.wait_ms / 1e3 / ST_MAX(y.starts, 1),
           100.0 * (double)y.done_ms / (double)y.end);
    fflush(stdout);
    fprintf(stderr, "bench_year: %.1f s\n",
            (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
    st_vec_free(&y.heap);
    free(y.down);
    st_effects_done(&y.fx);
    st_core_free(y.core);
}

int main(int argc, char **argv)
{
    int days = argc > 1 ? atoi(argv[1]) : 30;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static const int64_t saves[] = {10, 60, 240};
    static const struct {
        const char *name;
        int floor, spares;
    } rows[] = {{"no floor: it waits for its turn", 0, 0},
                {"a floor: others are preempted", JOB, 0},
                {"a floor, and 16 nodes are nobody's", JOB, 16}};
    if (days < 1) {
        fprintf(stderr, "usage: bench_year [DAYS [SEED]]\n");
        return 2;
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        for (size_t k = 0; k < ST_ARRAY_LEN(saves); k++)
            play(rows[i].name, days, seed, rows[i].floor, rows[i].spares, saves[k] * MINUTE,
                 i + k == 0);
    return 0;
}
