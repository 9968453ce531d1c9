/* Jobs that wait for others: what a step costs while many of them wait, what their ends cost, and a chain that breaks.
 *
 * A full fleet of 1,000 nodes with 8 GPUs; in every step a job ends, another is submitted and starts. Beside them wait none
 * or 30,000 dependents of one job that runs. Then that job ends: the step that lets them all go. Last, a chain of 100,000
 * whose first job fails, with the longest step on the way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/err.h"
#include "core/core.h"

#define NODES   1000
#define STEPS   400
#define WAITING 30000
#define CHAIN   100000

typedef struct bench {
    st_core *core;
    st_effects fx;
    uint64_t next;
    int64_t now;
} bench;

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double step(bench *b, const st_event *ev)
{
    st_err err = {0};
    st_effects_clear(&b->fx);
    double began = now_s();
    if (st_core_step(b->core, ev, b->now, &b->fx, &err) < 0) {
        fprintf(stderr, "bench_flow: %s\n", err.msg);
        exit(1);
    }
    return now_s() - began;
}

static double submit(bench *b, uint64_t after, st_after_how how)
{
    st_await a = {.id = after, .how = how};
    st_event ev = {.kind = ST_EV_SUBMIT};
    ev.u.job = (st_job_spec){.id = ++b->next,
                             .name = "job",
                             .account = "a",
                             .user = "u",
                             .pool = -1,
                             .tasks = 1,
                             .shape = {.gpus = 1},
                             .limit_ms = INT64_C(86400000),
                             .afters = &a,
                             .nafters = after ? 1 : 0,
                             .yield = ST_YIELD_REQUEUE};
    return step(b, &ev);
}

static double finish(bench *b, uint64_t id, bool failed)
{
    st_event ev = {.kind = ST_EV_FINISH};
    ev.u.finish.id = id;
    ev.u.finish.failed = failed;
    return step(b, &ev);
}

static void begin(bench *b)
{
    st_event ev = {.kind = ST_EV_TYPE};
    *b = (bench){.core = st_core_new(NULL)};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    step(b, &ev);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = 1u << ST_LEVEL_WHOLE;
    ev.u.pool.oversub_m = 1000;
    step(b, &ev);
    for (int i = 0; i < NODES; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%d", i);
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){.name = name, .ndevs = 8, .cpu_m = 64000, .ram_mib = 1 << 20};
        step(b, &ev);
    }
    ev = (st_event){.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "a";
    step(b, &ev);
}

static void done(bench *b)
{
    st_effects_done(&b->fx);
    st_core_free(b->core);
}

static void waiting(int n)
{
    bench b;
    double joins = 0, turns = 0;
    begin(&b);
    for (int i = 0; i < NODES * 8; i++)
        submit(&b, 0, ST_AFTER_ANY);
    for (int i = 0; i < n; i++)
        joins += submit(&b, 1, ST_AFTER_ANY);
    for (uint64_t i = 0; i < STEPS; i++) {
        b.now += 1000;
        turns += finish(&b, 2 + i, false) + submit(&b, 0, ST_AFTER_ANY);
    }
    printf("flow: %d wait: an end and a start %.1f us", n, turns / STEPS * 1e6);
    if (n > 0) {
        printf(", a submit that waits %.1f us", joins / n * 1e6);
        b.now += 1000;
        printf(", all let go in %.1f ms", finish(&b, 1, false) * 1e3);
    }
    printf("\n");
    done(&b);
}

static void chain(void)
{
    bench b;
    double longest, all;
    int steps = 1;
    begin(&b);
    submit(&b, 0, ST_AFTER_ANY);
    for (uint64_t i = 1; i < CHAIN; i++)
        submit(&b, i, ST_AFTER_OK);
    b.now += 1000;
    longest = all = finish(&b, 1, true);
    for (; st_core_njobs(b.core) > 0; steps++) {
        st_event ev = {.kind = ST_EV_TIMER};
        b.now++;
        double took = step(&b, &ev);
        longest = took > longest ? took : longest;
        all += took;
    }
    printf("flow: a chain of %d breaks: %d steps, %.1f ms in all, the longest %.2f ms\n", CHAIN,
           steps, all * 1e3, longest * 1e3);
    done(&b);
}

int main(void)
{
    waiting(0);
    waiting(WAITING);
    chain();
    return 0;
}
