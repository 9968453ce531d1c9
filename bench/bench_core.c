/* The core at the size it is built for: 6,250 nodes of 8 GPUs, 300 teams, 5,000 users and
 * 30,000 waiting jobs. Prints the time of one full pass, one submit and one reclaim, and the
 * peak of memory. bench/README.md keeps the numbers, with the command. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/err.h"
#include "base/rng.h"
#include "core/core.h"

#define NODES 6250
#define ORGS  10
#define TEAMS 300
#define USERS 5000
#define JOBS  30000

/* Of this process: other work on the machine does not count. */
static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void must(int rc, const st_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_core: %s\n", err->msg);
        exit(1);
    }
}

static void apply(st_core *core, const st_event *ev, st_effects *fx)
{
    st_err err;
    must(st_core_apply(core, ev, 0, fx, &err), &err);
}

static void build_fleet(st_core *core, st_effects *fx)
{
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    ev.u.type.board = ST_BOARD_H100_80;
    apply(core, &ev, fx);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = (1u << ST_LEVEL_COUNT) - 1;
    ev.u.pool.oversub_m = 2000;
    apply(core, &ev, fx);
    for (int i = 0; i < NODES; i++) {
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
                                   .block = block,
                                   .zone = "z"};
        apply(core, &ev, fx);
    }
}

static void build_tree(st_core *core, st_effects *fx)
{
    for (int i = 0; i < ORGS + TEAMS; i++) {
        char name[32], parent[32];
        st_event ev = {.kind = ST_EV_ACCOUNT};
        st_account_spec_init(&ev.u.account);
        bool org = i < ORGS;
        snprintf(name, sizeof name, org ? "org%d" : "team%d", org ? i : i - ORGS);
        snprintf(parent, sizeof parent, "org%d", (i - ORGS) % ORGS);
        ev.u.account.name = name;
        ev.u.account.parent = org ? NULL : parent;
        ev.u.account.guarantee.gpu_m = org ? 3000000 : 100000;
        apply(core, &ev, fx);
    }
}

/* Gangs of 8 to 512 GPUs for hours to days, single GPUs, MIG slices and shares. */
static void random_job(st_rng *rng, uint64_t id, int team, st_event *ev, char text[3][32])
{
    snprintf(text[0], 32, "job%llu", (unsigned long long)id);
    snprintf(text[1], 32, "team%d", team);
    snprintf(text[2], 32, "user%d", (int)st_rng_below(rng, USERS));
    *ev = (st_event){.kind = ST_EV_SUBMIT};
    st_job_spec *s = &ev->u.job;
    *s = (st_job_spec){.id = id, .name = text[0], .account = text[1], .user = text[2], .pool = -1};
    s->tasks = 1;
    s->shape.gpus = 1;
    s->limit_ms = (int64_t)(1 + st_rng_below(rng, 72)) * 3600000;
    s->yield = ST_YIELD_REQUEUE;
    uint64_t dice = st_rng_below(rng, 100);
    if (dice < 25) {
        s->tasks = 1 << st_rng_below(rng, 7);
        s->shape.gpus = 8;
        s->topo = s->tasks > 1 ? ST_TOPO_BLOCK : ST_TOPO_NONE;
    } else if (dice < 60) {
        s->shape.gpus = 1 << st_rng_below(rng, 3);
    } else if (dice < 75) {
        s->shape.level = ST_LEVEL_MIG;
        s->shape.profile = (st_mig)st_rng_below(rng, ST_MIG_COUNT);
    } else if (dice < 90) {
        s->shape.level = ST_LEVEL_MPS;
        s->shape.share_m = 125 * (int64_t)(1 + st_rng_below(rng, 4));
    } else {
        s->limit_ms = ST_TIME_NEVER;
    }
    s->shape.cpu_m = 4000 * s->shape.gpus;
    s->shape.ram_mib = 32768 * s->shape.gpus;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t count(const st_effects *fx, st_effect_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < fx->list.n; i++)
        n += fx->list.v[i].kind == kind;
    return n;
}

enum { SAMPLES = 200 };

static void print_times(const char *what, double *took, int n)
{
    qsort(took, (size_t)n, sizeof *took, by_value);
    printf("%s: p50 %.3f ms, p99 %.3f ms\n", what, took[n / 2] * 1e3, took[n * 99 / 100] * 1e3);
}

/* One event with its decisions. */
static double timed_step(st_core *core, const st_event *ev, int64_t at_ms, st_effects *fx)
{
    st_err err;
    st_effects_clear(fx);
    double t = now_s();
    must(st_core_step(core, ev, at_ms, fx, &err), &err);
    return now_s() - t;
}

static void time_submits(st_core *core, const char *what, int64_t at_ms, st_rng *rng, uint64_t *id,
                         st_effects *fx)
{
    double took[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        st_event ev;
        char text[3][32];
        random_job(rng, (*id)++, (int)st_rng_below(rng, TEAMS), &ev, text);
        took[i] = timed_step(core, &ev, at_ms, fx);
    }
    print_times(what, took, SAMPLES);
}

/* Goes on until the round is over; the longest pass in ret_most_s. */
static int finish_round(st_core *core, int64_t *at_ms, st_effects *fx, double *ret_most_s)
{
    int passes = 0;
    for (*ret_most_s = 0; st_core_resumes(core); passes++) {
        st_effects_clear(fx);
        double t = now_s();
        st_core_pass(core, ++*at_ms, fx);
        t = now_s() - t;
        *ret_most_s = t > *ret_most_s ? t : *ret_most_s;
    }
    return passes;
}

/* Jobs that run are finished, jobs that wait are cancelled; each when the round is over, or all in one. */
static void time_ends(st_core *core, const char *what, bool finish, bool over, int64_t *at_ms,
                      st_rng *rng, st_effects *fx)
{
    double took[SAMPLES], most_s;
    int n = SAMPLES;
    for (int i = 0; i < n;) {
        const st_job *job = st_core_job_at(core, st_rng_below(rng, st_core_njobs(core)));
        if (job->state != (finish ? ST_JOB_RUNNING : ST_JOB_PENDING) || job->held)
            continue;
        st_event ev = {.kind = finish ? ST_EV_FINISH : ST_EV_CANCEL};
        if (finish)
            ev.u.finish.id = job->id;
        else
            ev.u.id = job->id;
        took[i++] = timed_step(core, &ev, *at_ms, fx);
        if (over)
            finish_round(core, at_ms, fx, &most_s);
    }
    print_times(what, took, n);
}

static size_t count_waiting(const st_core *core)
{
    size_t n = 0;
    for (size_t i = 0; i < st_core_njobs(core); i++)
        n += st_core_job_at(core, i)->state == ST_JOB_PENDING;
    return n;
}

int main(void)
{
    st_policy policy = st_policy_default();
    st_core *core = st_core_new(&policy);
    st_effects fx = {0};
    st_rng rng;
    st_rng_seed(&rng, 1);
    build_fleet(core, &fx);
    build_tree(core, &fx);
    st_core_pass(core, 0, &fx);

    /* Team 0 stays away, to come back as an owner later. */
    uint64_t id = 1;
    double t = now_s();
    for (int i = 0; i < JOBS; i++) {
        st_event ev;
        char text[3][32];
        random_job(&rng, id++, 1 + (int)st_rng_below(&rng, TEAMS - 1), &ev, text);
        apply(core, &ev, &fx);
    }
    printf("accepting %d jobs: %.1f us each\n", JOBS, (now_s() - t) / JOBS * 1e6);

    st_effects_clear(&fx);
    t = now_s();
    st_core_pass(core, 0, &fx);
    printf("full pass, empty fleet, %d waiting: %.1f ms, %zu started\n", JOBS, (now_s() - t) * 1e3,
           count(&fx, ST_FX_START));
    size_t waiting = st_core_njobs(core) - count(&fx, ST_FX_START);
    st_effects_clear(&fx);
    t = now_s();
    st_core_pass(core, 3600000, &fx);
    printf("full pass, full fleet, %zu waiting: %.1f ms, %zu claims\n", waiting,
           (now_s() - t) * 1e3, count(&fx, ST_FX_HOLD));
    /* What the effort of one pass was not enough for is done in the next moments. */
    int64_t at_ms = 3600000;
    double most_s;
    st_err err;
    st_rng aside;
    st_rng_seed(&aside, 2);
    if (st_core_resumes(core))
        time_submits(core, "submit, round unfinished", at_ms, &aside, &id, &fx);
    t = now_s();
    int passes = finish_round(core, &at_ms, &fx, &most_s);
    printf("the round is over after %d more passes, %.1f ms, the longest %.1f ms\n", passes,
           (now_s() - t) * 1e3, most_s * 1e3);
    time_submits(core, "submit, round over", at_ms, &rng, &id, &fx);

    /* The owner returns with a gang of 12 nodes, inside its guarantee. */
    st_event ev;
    char text[3][32];
    random_job(&rng, id++, 0, &ev, text);
    ev.u.job.tasks = 12;
    ev.u.job.topo = ST_TOPO_NONE;
    ev.u.job.shape = (st_shape){.gpus = 8, .cpu_m = 32000, .ram_mib = 262144};
    t = timed_step(core, &ev, at_ms, &fx);
    printf("reclaim of 96 GPUs by a returning owner: %.1f ms, %zu victims\n", t * 1e3,
           count(&fx, ST_FX_NOTIFY));

    finish_round(core, &at_ms, &fx, &most_s);
    time_ends(core, "cancel, round over", false, true, &at_ms, &aside, &fx);
    finish_round(core, &at_ms, &fx, &most_s);
    time_ends(core, "finish, round over", true, true, &at_ms, &aside, &fx);
    /* The next minute, in which borrowers look too. */
    finish_round(core, &at_ms, &fx, &most_s);
    at_ms += 60000;
    st_core_pass(core, at_ms, &fx);
    if (st_core_resumes(core)) {
        time_ends(core, "cancel, round unfinished", false, false, &at_ms, &aside, &fx);
        time_ends(core, "finish, round unfinished", true, false, &at_ms, &aside, &fx);
    }

    /* As many starts as may be reserved for, made anew and then kept, with as many waiting as came at first. */
    for (size_t n = count_waiting(core); n < JOBS; n++) {
        random_job(&aside, id++, 1 + (int)st_rng_below(&aside, TEAMS - 1), &ev, text);
        must(st_core_apply(core, &ev, at_ms, &fx, &err), &err);
    }
    st_core_pass(core, ++at_ms, &fx);
    policy.reservations = 64;
    ev = (st_event){.kind = ST_EV_POLICY, .u.policy = policy};
    must(st_core_apply(core, &ev, at_ms, &fx, &err), &err);
    for (int again = 0; again <= 1; again++) {
        finish_round(core, &at_ms, &fx, &most_s);
        t = now_s();
        st_core_pass(core, ++at_ms, &fx);
        t = now_s() - t;
        st_reserved_list list = {0};
        st_core_reserved(core, &list);
        printf("full pass, %zu waiting, %zu starts reserved, %s%s: %.1f ms\n", count_waiting(core),
               list.n, again ? "once more" : "anew", st_core_resumes(core) ? ", not over" : "",
               t * 1e3);
        st_vec_free(&list);
    }

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak memory: %.0f MB\n", (double)usage.ru_maxrss / 1024);
    st_effects_done(&fx);
    st_core_free(core);
    return 0;
}
