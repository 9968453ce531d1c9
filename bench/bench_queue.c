/* The queue that Slurm was measured with: 10,000 jobs submitted to an empty cluster of 8-GPU nodes.
 * Prints the pass that fills the fleet, one more pass with its backfill, and a start estimate for
 * every waiting job, at 64, 625 and 6,250 nodes. The queue comes from queue/make_queue.py in the
 * traces ($STINT_TRACES, or ../shared/traces from the sources); without it nothing is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "core/core.h"

typedef struct row {
    int nodes, gpus, cpus, mem_mb, limit_min;
} row;

typedef ST_VEC(row) row_vec;

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void must(int rc, const st_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_queue: %s\n", err->msg);
        exit(1);
    }
}

static bool read_queue(row_vec *ret)
{
    const char *traces = getenv("STINT_TRACES"), *source = getenv("STINT_SOURCE");
    st_strbuf path = {0}, command = {0};
    st_strbuf_addf(&path, "%s%s/queue/make_queue.py",
                   traces   ? ""
                   : source ? source
                            : ".",
                   traces ? traces : "/../shared/traces");
    bool there = access(st_strbuf_str(&path), R_OK) == 0;
    if (there) {
        st_strbuf_addf(&command, "python3 '%s' 10000 2>/dev/null", st_strbuf_str(&path));
        FILE *in = popen(st_strbuf_str(&command), "r");
        char line[256];
        while (in && fgets(line, sizeof line, in)) {
            row r;
            if (sscanf(line, "%*d,%d,%d,%d,%d,%d", &r.nodes, &r.gpus, &r.cpus, &r.mem_mb,
                       &r.limit_min) == 5)
                st_vec_push(ret, r);
        }
        if (in)
            pclose(in);
    } else {
        printf("queue: skipped, there is no %s\n", st_strbuf_str(&path));
    }
    st_strbuf_done(&path);
    st_strbuf_done(&command);
    return there && ret->n > 0;
}

static st_core *build(int nodes, int cpus, st_effects *fx)
{
    st_err err;
    st_core *core = st_core_new(NULL);
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "gpu8";
    ev.u.type.vram_mib = 81920;
    must(st_core_apply(core, &ev, 0, fx, &err), &err);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = 1u << ST_LEVEL_WHOLE;
    ev.u.pool.oversub_m = 1000;
    must(st_core_apply(core, &ev, 0, fx, &err), &err);
    for (int i = 0; i < nodes; i++) {
        char name[32], rack[32];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(rack, sizeof rack, "r%d", i / 16);
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){
            .name = name, .ndevs = 8, .cpu_m = cpus * 1000, .ram_mib = 500000, .rack = rack};
        must(st_core_apply(core, &ev, 0, fx, &err), &err);
    }
    ev = (st_event){.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "all";
    must(st_core_apply(core, &ev, 0, fx, &err), &err);
    st_core_pass(core, 0, fx);
    return core;
}

static size_t submit(st_core *core, const row_vec *rows, int nodes, st_effects *fx)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const row *r = &rows->v[i];
        st_err err;
        st_event ev = {.kind = ST_EV_SUBMIT};
        if (r->nodes > nodes)
            continue;
        ev.u.job =
            (st_job_spec){.id = i + 1,
                          .name = "job",
                          .account = "all",
                          .user = "user",
                          .pool = -1,
                          .tasks = r->nodes,
                          .shape = {.gpus = r->gpus, .cpu_m = r->cpus * 1000, .ram_mib = r->mem_mb},
                          .limit_ms = (int64_t)r->limit_min * 60000,
                          .yield = ST_YIELD_REQUEUE};
        must(st_core_apply(core, &ev, 0, fx, &err), &err);
        n++;
    }
    return n;
}

static void run(const row_vec *rows, int nodes)
{
    st_effects fx = {0};
    st_err err;
    st_core *core = build(nodes, 64, &fx);
    double t = now_s();
    size_t jobs = submit(core, rows, nodes, &fx);
    double submitted = now_s() - t;

    st_effects_clear(&fx);
    t = now_s();
    st_core_pass(core, 0, &fx);
    double full = now_s() - t;
    size_t started = 0;
    for (size_t i = 0; i < fx.list.n; i++)
        started += fx.list.v[i].kind == ST_FX_START;

    t = now_s();
    st_core_pass(core, 1000, &fx);
    double again = now_s() - t;
    st_estimates estimates = {0};
    t = now_s();
    must(st_core_estimate(core, &estimates, &err), &err);
    double estimated = now_s() - t;
    size_t known = 0;
    for (size_t i = 0; i < estimates.n; i++)
        known += estimates.v[i].start_ms != ST_TIME_NEVER;
    printf("  %5d nodes: %5zu jobs accepted in %5.1f ms; %4zu started until full in %6.1f ms; "
           "another pass %6.1f ms; %zu of %zu start estimates in %7.1f ms\n",
           nodes, jobs, submitted * 1e3, started, full * 1e3, again * 1e3, known, estimates.n,
           estimated * 1e3);
    st_vec_free(&estimates);
    st_effects_done(&fx);
    st_core_free(core);
}

int main(void)
{
    row_vec rows = {0};
    if (read_queue(&rows)) {
        printf("10,000 jobs of make_queue.py; Slurm 22.05 on a like machine at 6,250 nodes: 2,323 "
               "started in 105 s, backfill pass 722 s, 1,590 of 7,677 estimates\n");
        run(&rows, 64);
        run(&rows, 625);
        run(&rows, 6250);
    }
    st_vec_free(&rows);
    return 0;
}
