/* For the tests of the meter: a small fleet, jobs written in a line, records looked up. */
#ifndef ST_METER_TEST_BENCH_H
#define ST_METER_TEST_BENCH_H

#include <stdlib.h>

#include "base/macros.h"
#include "base/mem.h"
#include "base/testing.h"
#include "meter/meter.h"

#define SEC  INT64_C(1000)
#define HOUR (3600 * SEC)

typedef struct bench {
    st_meter *m;
    st_tree *tree;
    st_records out; /* of the last call */
    int nnodes;
} bench;

static inline void add_node(bench *b, int type, int ndevs, int64_t now)
{
    st_node node = {.id = b->nnodes++, .type = type, .ndevs = ndevs};
    st_meter_node(b->m, &node, now);
}

static inline void set_node(bench *b, int id, st_node_state state, int64_t now)
{
    st_node node = {.id = id, .state = state};
    st_meter_node(b->m, &node, now);
}

static inline int32_t add_account(bench *b, const char *name, const char *parent)
{
    st_account_spec spec;
    st_err err = {0};
    int32_t id = -1;
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    assert_ok(st_tree_set(b->tree, &spec, &id, &err));
    return id;
}

/* Accounts 1 "a" and 2 "b"; nodes of type 0 with so many GPUs. */
static inline void begin(bench *b, int nodes, int ndevs)
{
    *b = (bench){.m = st_meter_new(0), .tree = st_tree_new()};
    add_account(b, "a", NULL);
    add_account(b, "b", NULL);
    for (int i = 0; i < nodes; i++)
        add_node(b, 0, ndevs, 0);
}

static inline void end(bench *b)
{
    st_err err = {0};
    assert_ok(st_meter_check(b->m, &err));
    st_meter_free(b->m);
    st_tree_free(b->tree);
    st_vec_free(&b->out);
}

/* One task of account 1, burstable. */
static inline st_job whole(uint64_t id, int gpus)
{
    return (st_job){.id = id,
                    .account = 1,
                    .tasks = 1,
                    .shape = {.level = ST_LEVEL_WHOLE, .gpus = gpus, .cpu_m = 2000, .ram_mib = 10},
                    .class = ST_CLASS_BURSTABLE};
}

static inline st_job slice(uint64_t id, st_mig profile)
{
    st_job job = whole(id, 1);
    job.shape.level = ST_LEVEL_MIG;
    job.shape.profile = profile;
    return job;
}

static inline st_job shared(uint64_t id, st_level level, int64_t share_m)
{
    st_job job = whole(id, 1);
    job.shape.level = level;
    job.shape.share_m = share_m;
    return job;
}

static inline void start_on(bench *b, const st_job *job, const st_grant *grants, int64_t now)
{
    st_vec_clear(&b->out);
    st_meter_start(b->m, b->tree, job, 0, grants, now, &b->out);
}

/* It goes on after a pause. */
static inline void resume(bench *b, const st_job *job, unsigned devs, int64_t now)
{
    st_grant g = {0, (uint16_t)devs, -1};
    st_vec_clear(&b->out);
    st_meter_resume(b->m, b->tree, job, 0, &g, now, &b->out);
}

/* All tasks at one place of node 0. */
static inline void start(bench *b, const st_job *job, unsigned devs, int mig_start, int64_t now)
{
    st_grant *g = st_xcalloc((size_t)job->tasks, sizeof *g);
    for (int t = 0; t < job->tasks; t++)
        g[t] = (st_grant){0, (uint16_t)devs, (int8_t)mig_start};
    start_on(b, job, g, now);
    free(g);
}

static inline void stop(bench *b, uint64_t job, int64_t now, int64_t ended_ms)
{
    st_vec_clear(&b->out);
    st_meter_stop(b->m, job, now, ended_ms, ST_CUT_ENDED, 0, &b->out);
}

static inline void cut(bench *b, int64_t now)
{
    st_vec_clear(&b->out);
    st_meter_cut(b->m, now, &b->out);
}

static inline void used(bench *b, uint64_t job, int stay, int task, int64_t seen, int64_t busy)
{
    st_sums sums = {seen, busy, 2 * seen, ST_UNKNOWN};
    st_vec_clear(&b->out);
    st_meter_used(b->m, job, stay, task, &sums, &b->out);
}

/* The n-th record of a kind for that job (0: of the fleet or floors) of the last call. */
static inline const st_record *nth(const bench *b, st_record_kind kind, uint64_t job, int n)
{
    for (size_t i = 0; i < b->out.n; i++)
        if (b->out.v[i].kind == kind && b->out.v[i].job == job && n-- == 0)
            return &b->out.v[i];
    fail_msg("there is no such %s record of job %d", st_record_name(kind), (int)job);
    return NULL;
}

static inline const st_record *grant(const bench *b, uint64_t job)
{
    return nth(b, ST_REC_GRANT, job, 0);
}

static inline void is_at(const bench *b, int dev, int64_t granted, int64_t idle, int64_t unhealthy,
                         int64_t overhead)
{
    st_meter_dev d = st_meter_device(b->m, 0, dev);
    assert_int_equal(d.granted_m, granted);
    assert_int_equal(d.idle_m, idle);
    assert_int_equal(d.unhealthy_m, unhealthy);
    assert_int_equal(d.overhead_m, overhead);
}

/* Where the type has been so far. */
static inline void totals(const bench *b, int64_t granted, int64_t idle, int64_t unhealthy,
                          int64_t overhead)
{
    st_record r;
    st_meter_totals(b->m, 0, &r);
    assert_int_equal(r.granted, granted);
    assert_int_equal(r.idle, idle);
    assert_int_equal(r.unhealthy, unhealthy);
    assert_int_equal(r.overhead, overhead);
    assert_int_equal(r.total, granted + idle + unhealthy + overhead);
}

#endif
