/*
 * Fuzzes the meter. The first byte says how.
 *
 * 's': the rest is a save without its hash. It is refused, or it is a meter that agrees with
 * itself, is the same when saved and loaded again, and stays so when everything in it is cut and stopped.
 *
 * Otherwise: the rest is what happens on two nodes, four bytes at a time. Whatever it is, the meter agrees
 * with itself and its shares add up to what was granted.
 */
#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "fuzz.h"
#include "meter/meter.h"

#define SAVE_SEED 11 /* as in meter/save.c */
#define JOBS      12

static void check(const st_meter *m)
{
    st_err err = {0};
    ST_ASSERT(st_meter_check(m, &err) == 0);
}

/* ---- saves -------------------------------------------------------------------------------- */

typedef ST_VEC(uint64_t) job_list;

static int collect(void *ctx, const st_record *r)
{
    job_list *jobs = ctx;
    if (r->kind == ST_REC_GRANT)
        st_vec_push(jobs, r->job);
    return 0;
}

static void play_save(const char *data, size_t size)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0}, once = {0}, twice = {0};
    ST_CLEANUP(st_meter_freep) st_meter *m = NULL, *copy = NULL;
    st_err err = {0};
    uint64_t hash = st_hash_bytes(data, size, SAVE_SEED);
    st_strbuf_addn(&bytes, data, size);
    for (int i = 0; i < 8; i++)
        st_strbuf_addc(&bytes, (char)(hash >> (8 * i)));
    if (st_meter_load(bytes.s, bytes.n, &m, &err) < 0) {
        ST_ASSERT(err.code == ST_EPARSE && err.msg[0] && !strchr(err.msg, '\n') && !m);
        return;
    }
    check(m);
    st_meter_save(m, &once);
    ST_ASSERT(st_meter_load(once.s, once.n, &copy, &err) == 0);
    st_meter_save(copy, &twice);
    ST_ASSERT(once.n == twice.n && memcmp(once.s, twice.s, once.n) == 0);

    job_list jobs = {0};
    st_records out = {0};
    st_sums sums = {100, 50, 20, 1};
    st_meter_open(m, st_meter_now(m) + 10, collect, &jobs);
    st_meter_cut(m, st_meter_now(m) + 1000, &out);
    check(m);
    for (size_t i = 0; i < jobs.n; i++) {
        st_meter_used(m, jobs.v[i], 1, 0, &sums, &out);
        st_meter_stop(m, jobs.v[i], st_meter_now(m) + 1, st_meter_now(m) - 500, ST_CUT_ENDED, 0,
                      &out);
        check(m);
    }
    ST_ASSERT(st_meter_stays(m) == 0);
    st_vec_free(&jobs);
    st_vec_free(&out);
}

/* ---- happenings --------------------------------------------------------------------------- */

static st_job job_of(uint8_t shape, uint64_t id)
{
    st_job job = {.id = id, .account = 1, .tasks = 1 + shape / 128, .class = ST_CLASS_BURSTABLE};
    job.shape.gpus = 1;
    job.shape.level = (st_level)(shape % ST_LEVEL_COUNT);
    job.shape.profile = (st_mig)(shape / 4 % ST_MIG_COUNT);
    job.shape.share_m = 50 + shape * 3;
    if (job.shape.level == ST_LEVEL_WHOLE)
        job.shape.gpus = shape / 4 % 3;
    return job;
}

static void place(const st_job *job, uint8_t where, st_grant grants[2])
{
    for (int t = 0; t < job->tasks; t++) {
        unsigned devs = job->shape.gpus == 0 ? 0 : job->shape.gpus == 2 ? 3 : 1u << (where & 1);
        grants[t] = (st_grant){(where >> 1 & 1) ^ t, (uint16_t)devs, -1};
        if (job->shape.level == ST_LEVEL_MIG)
            grants[t].mig_start = st_mig_start_legal(job->shape.profile, where >> 2 & 7)
                                      ? (int8_t)(where >> 2 & 7)
                                      : 0;
    }
}

typedef struct game {
    st_meter *m;
    st_tree *tree;
    st_records out;
    int64_t now;
} game;

static void happen(game *g, const uint8_t b[4])
{
    uint64_t id = 1 + b[1] % JOBS;
    st_grant grants[2];
    st_job job = job_of(b[2], id);
    st_node node = {.id = b[1] & 1, .state = (st_node_state)(b[2] % ST_NODE_REMOVED)};
    st_sums sums = {b[2] * 10, b[3] * 10, b[2], ST_UNKNOWN};
    g->now += b[3];
    place(&job, b[3], grants);
    switch (b[0] % 8) {
    case 0:
    case 1:
        st_meter_start(g->m, g->tree, &job, job.shape.gpus > 0 ? 0 : -1, grants, g->now, &g->out);
        break;
    case 2:
        if (b[0] & 16)
            st_meter_pause(g->m, id, g->now, b[2], &g->out);
        else
            st_meter_stop(g->m, id, g->now, b[2] < 128 ? ST_UNSET : g->now - 4 * b[2],
                          ST_CUT_PREEMPTED, b[2], &g->out);
        break;
    case 3:
        st_meter_class(g->m, g->tree, id, b[2] & 1 ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE,
                       g->now - 5, &g->out);
        break;
    case 4:
        if (b[0] & 32)
            st_meter_began(g->m, id, g->now - b[2], g->now);
        st_meter_used(g->m, id, 1 + b[3] % 3, b[0] / 8 % 2, &sums, &g->out);
        break;
    case 5:
        st_meter_hold(g->m, id, b[2] & 1 ? grants : NULL, job.tasks, &job.shape, g->now);
        break;
    case 6:
        st_meter_node(g->m, &node, g->now);
        break;
    default:
        st_meter_agree(g->m, 1, b[2] < 10 ? ST_UNSET : b[2] * 20);
        st_meter_cut(g->m, g->now, &g->out);
        break;
    }
}

static int add(void *ctx, const st_record *r)
{
    *(int64_t *)ctx += r->kind == ST_REC_GRANT && r->type >= 0 ? r->share : 0;
    return 0;
}

static void play_game(const uint8_t *data, size_t size)
{
    game g = {.m = st_meter_new(0), .tree = st_tree_new()};
    st_account_spec spec;
    st_err err = {0};
    int64_t shares = 0;
    st_account_spec_init(&spec);
    spec.name = "a";
    ST_ASSERT(st_tree_set(g.tree, &spec, NULL, &err) == 0);
    for (int i = 0; i < 2; i++)
        st_meter_node(g.m, &(st_node){.id = i, .ndevs = 2}, 0);
    for (size_t at = 0; at + 4 <= size && at < 4000; at += 4) {
        happen(&g, data + at);
        check(g.m);
    }
    for (size_t i = 0; i < g.out.n; i++)
        if (g.out.v[i].kind == ST_REC_GRANT || g.out.v[i].kind == ST_REC_FIX)
            shares += g.out.v[i].share;
    st_meter_open(g.m, 0, add, &shares);
    st_record total;
    st_meter_totals(g.m, 0, &total);
    ST_ASSERT(shares == total.granted && total.total == 4000 * st_meter_now(g.m));
    st_vec_free(&g.out);
    st_meter_free(g.m);
    st_tree_free(g.tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 's')
        play_save((const char *)data + 1, size - 1);
    else if (size > 0)
        play_game(data + 1, size - 1);
    return 0;
}
