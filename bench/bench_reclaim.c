/* Reclaim by a large gang: a full fleet of N nodes with 8 GPUs, all of it borrowed, and an owner
 * who returns with a gang of N/10 nodes; and a gang that can never fit. Printed beside what KAI
 * publishes for its own: 241 ms at 100 nodes, 8.97 s at 500, not finished in 40 min at 1,000. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/err.h"
#include "core/core.h"

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void apply(st_core *core, const st_event *ev, int64_t now, st_effects *fx)
{
    st_err err;
    if (st_core_apply(core, ev, now, fx, &err) < 0) {
        fprintf(stderr, "bench_reclaim: %s\n", err.msg);
        exit(1);
    }
}

static st_core *build(int nodes, st_effects *fx)
{
    st_policy policy = st_policy_default();
    st_core *core = st_core_new(&policy);
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    ev.u.type.board = ST_BOARD_H100_80;
    apply(core, &ev, 0, fx);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = (1u << ST_LEVEL_COUNT) - 1;
    ev.u.pool.oversub_m = 2000;
    apply(core, &ev, 0, fx);
    for (int i = 0; i < nodes; i++) {
        char name[32], rack[32], block[32];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(rack, sizeof rack, "r%d", i / 16);
        snprintf(block, sizeof block, "b%d", i / 512);
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){.name = name,
                                   .ndevs = 8,
                                   .cpu_m = 128000,
                                   .ram_mib = 2097152,
                                   .rack = rack,
                                   .block = block};
        apply(core, &ev, 0, fx);
    }
    for (int i = 0; i < 11; i++) {
        char name[32];
        snprintf(name, sizeof name, i == 0 ? "owner" : "guest%d", i);
        ev = (st_event){.kind = ST_EV_ACCOUNT};
        st_account_spec_init(&ev.u.account);
        ev.u.account.name = name;
        if (i == 0)
            ev.u.account.guarantee.gpu_m = (int64_t)nodes * 8000;
        apply(core, &ev, 0, fx);
    }
    return core;
}

static st_event gang(uint64_t id, const char *account, int tasks, int gpus)
{
    st_event ev = {.kind = ST_EV_SUBMIT};
    ev.u.job = (st_job_spec){.id = id,
                             .name = "job",
                             .account = account,
                             .user = "user",
                             .pool = -1,
                             .tasks = tasks,
                             .shape = {.gpus = gpus, .cpu_m = 1000},
                             .limit_ms = ST_TIME_NEVER,
                             .yield = ST_YIELD_REQUEUE};
    return ev;
}

static size_t count(const st_effects *fx, st_effect_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < fx->list.n; i++)
        n += fx->list.v[i].kind == kind;
    return n;
}

static void run(int nodes, int gpus)
{
    st_effects fx = {0};
    st_err err;
    st_core *core = build(nodes, &fx);
    uint64_t id = 1;
    for (int i = 0; i < nodes * 8 / gpus; i++) {
        char account[32];
        snprintf(account, sizeof account, "guest%d", 1 + i % 10);
        st_event ev = gang(id++, account, 1, gpus);
        apply(core, &ev, 0, &fx);
    }
    st_core_pass(core, 0, &fx);
    st_effects_clear(&fx);
    st_event ev = gang(id++, "owner", nodes / 10, 8);
    double t = now_s();
    st_core_step(core, &ev, 3600000, &fx, &err);
    printf("  %5d nodes of %d-GPU borrowers: gang of %4d x 8 GPUs, %5zu victims, %8.2f ms\n", nodes,
           gpus, nodes / 10, count(&fx, ST_FX_NOTIFY), (now_s() - t) * 1e3);

    st_effects_clear(&fx);
    ev = gang(id++, "owner", nodes + 1, 8);
    t = now_s();
    int rc = st_core_step(core, &ev, 3600000, &fx, &err);
    printf("  %5d nodes: a gang of %d is told so in %.3f ms: %s\n", nodes, nodes + 1,
           (now_s() - t) * 1e3, rc < 0 ? err.msg : "accepted?");
    st_effects_done(&fx);
    st_core_free(core);
}

int main(void)
{
    const int sizes[] = {100, 500, 1000, 6250};
    printf("reclaim by a gang of a tenth of the fleet\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        run(sizes[i], 8);
        run(sizes[i], 1);
    }
    return 0;
}
