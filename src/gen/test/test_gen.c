/*
 * The promises of gen/gen.h: the same trace from the same seed, guarantees that fit, the load that
 * was asked for, jobs the core accepts; and files that say what the trace says.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/testing.h"
#include "gen/gen.h"
#include "scenario/scenario.h"
#include "trace/csv.h"
#include "trace/read.h"

#define DAY_MS INT64_C(86400000)

static st_trace *make(const st_gen_options *o)
{
    st_trace *trace = NULL;
    st_err err = {0};

    assert_ok(st_gen_trace(o, &trace, &err));
    return trace;
}

static char *written(const st_trace *trace, void (*write)(const st_trace *, FILE *))
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    assert_non_null(f);
    write(trace, f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void test_same_seed(void **state)
{
    st_gen_options o = st_gen_options_default();
    char *worlds[3], *jobs[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        o.seed = i < 2 ? 5 : 6;
        ST_CLEANUP(st_trace_freep) st_trace *t = make(&o);
        worlds[i] = written(t, st_gen_write_world);
        jobs[i] = written(t, st_gen_write_jobs);
    }
    assert_string_equal(worlds[0], worlds[1]);
    assert_string_equal(jobs[0], jobs[1]);
    assert_string_not_equal(worlds[0], worlds[2]);
    assert_string_not_equal(jobs[0], jobs[2]);
    for (int i = 0; i < 3; i++) {
        free(worlds[i]);
        free(jobs[i]);
    }
}

/* ---- promises ----------------------------------------------------------------------- */

static void check_guarantees(const st_trace *t, int64_t gpus)
{
    int64_t orgs_m = 0, teams_m = 0;

    for (size_t i = 0; i < t->accounts.n; i++) {
        const st_account_spec *a = &t->accounts.v[i];

        assert_true(a->guarantee.gpu_m >= 0 && a->weight_m > 0);
        *(a->parent ? &teams_m : &orgs_m) += a->guarantee.gpu_m;
    }
    assert_int_equal(orgs_m, teams_m);
    assert_in_range(teams_m, gpus * 800, gpus * 900);
}

static void check_jobs(const st_trace *t, const st_gen_options *o, int64_t gpus)
{
    st_i128 work = 0, load = (st_i128)gpus * 1000 * o->days * DAY_MS * o->load_pct / 100;

    assert_int_equal(t->jobs.n, o->jobs);
    for (size_t i = 0; i < t->jobs.n; i++) {
        const st_trace_job *j = &t->jobs.v[i];

        work += (st_i128)st_trace_job_gpu_m(j) * j->run_ms;
        assert_true(i == 0 || j->submit_ms >= t->jobs.v[i - 1].submit_ms);
        assert_true(j->submit_ms >= 0 && j->submit_ms < o->days * DAY_MS);
        assert_true(j->run_ms > 0 && j->limit_ms > j->run_ms);
        assert_non_null(t->accounts.v[j->account].parent);
    }
    assert_true(work * 100 >= load * 98 && work * 100 <= load * 102);
}

/* The core itself takes the fleet, the accounts and, without starting any, every job. */
static void check_accepted(const st_trace *t)
{
    st_policy policy = st_policy_default();
    st_core *core = st_core_new(&policy);
    st_effects fx = {0};
    st_err err = {0};

    for (size_t i = 0; i < t->types.n; i++) {
        st_event ev = {.kind = ST_EV_TYPE};
        ev.u.type.name = t->types.v[i].name;
        ev.u.type.vram_mib = t->types.v[i].vram_mib;
        ev.u.type.board = t->types.v[i].board;
        assert_ok(st_core_apply(core, &ev, 0, &fx, &err));
    }
    st_event pool = {.kind = ST_EV_POOL};
    pool.u.pool.name = "main";
    pool.u.pool.levels = (1u << ST_LEVEL_COUNT) - 1;
    pool.u.pool.oversub_m = 2000;
    assert_ok(st_core_apply(core, &pool, 0, &fx, &err));
    for (size_t i = 0; i < t->nodes.n; i++) {
        st_event ev = {.kind = ST_EV_NODE, .u.node = t->nodes.v[i]};
        assert_ok(st_core_apply(core, &ev, 0, &fx, &err));
    }
    for (size_t i = 0; i < t->accounts.n; i++) {
        st_event ev = {.kind = ST_EV_ACCOUNT, .u.account = t->accounts.v[i]};
        assert_ok(st_core_apply(core, &ev, 0, &fx, &err));
    }
    for (size_t i = 0; i < t->jobs.n; i++) {
        const st_trace_job *j = &t->jobs.v[i];
        st_event ev = {.kind = ST_EV_SUBMIT};

        ev.u.job = (st_job_spec){.id = i + 1,
                                 .name = j->name,
                                 .account = t->accounts.v[j->account].name,
                                 .user = j->user,
                                 .pool = -1,
                                 .tasks = j->tasks,
                                 .shape = j->shape,
                                 .topo = j->topo,
                                 .topo_required = j->topo_required,
                                 .priority = j->priority,
                                 .limit_ms = j->limit_ms,
                                 .yield = j->yield};
        assert_ok(st_core_apply(core, &ev, j->submit_ms, &fx, &err));
    }
    st_effects_done(&fx);
    st_core_free(core);
}

static void test_promises(void **state)
{
    static const st_gen_options rows[] = {
        {.gpus = 1024, .teams = 24, .users = 200, .jobs = 3000, .days = 7, .load_pct = 95},
        {.gpus = 8, .teams = 1, .users = 1, .jobs = 1, .days = 1, .load_pct = 95},
        {.gpus = 20, .teams = 9, .users = 4, .jobs = 200, .days = 3, .load_pct = 50},
        {.gpus = 64, .teams = 40, .users = 10, .jobs = 2000, .days = 7, .load_pct = 120},
        {.gpus = 4096, .teams = 3, .users = 900, .jobs = 400, .days = 2, .load_pct = 95},
        {.gpus = 100, .teams = 5, .users = 50, .jobs = 2000, .days = 1, .load_pct = 10},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        for (uint64_t seed = 0; seed < 6; seed++) {
            st_gen_options o = rows[i];
            o.seed = seed;
            ST_CLEANUP(st_trace_freep) st_trace *t = make(&o);
            int64_t gpus = o.gpus / 8 * 8;

            assert_int_equal(t->nodes.n, o.gpus / 8);
            check_guarantees(t, gpus);
            check_jobs(t, &o, gpus);
            if (seed == 0)
                check_accepted(t);
        }
    }
}

/* What people would miss if it were not there. */
static void test_like_a_fleet(void **state)
{
    st_gen_options o = st_gen_options_default();
    st_i128 work[ST_GEN_KIND_COUNT] = {0}, all = 0;
    int64_t jobs[ST_GEN_KIND_COUNT] = {0}, levels[ST_LEVEL_COUNT] = {0}, office = 0, accurate = 0;
    int64_t declared = 0;

    (void)state;
    o.jobs = 20000;
    o.gpus = 4096;
    ST_CLEANUP(st_trace_freep) st_trace *t = make(&o);
    for (size_t i = 0; i < t->jobs.n; i++) {
        const st_trace_job *j = &t->jobs.v[i];
        st_gen_kind kind = st_gen_kind_of(j);
        int64_t hour = j->submit_ms / 3600000 % 24, day = j->submit_ms / DAY_MS;

        jobs[kind]++;
        work[kind] += (st_i128)st_trace_job_gpu_m(j) * j->run_ms;
        all += (st_i128)st_trace_job_gpu_m(j) * j->run_ms;
        levels[j->shape.level]++;
        office += kind == ST_GEN_NOTEBOOK && hour >= 8 && hour < 19 && day % 7 < 5;
        declared += kind == ST_GEN_TUNE;
        accurate += kind == ST_GEN_TUNE && j->limit_ms < 2 * j->run_ms;
    }
    for (int k = 0; k < ST_GEN_KIND_COUNT; k++)
        assert_true(jobs[k] > o.jobs / 50);
    for (int l = 0; l < ST_LEVEL_COUNT; l++)
        assert_true(levels[l] > o.jobs / 100);
    assert_true(work[ST_GEN_TRAIN] * 2 > all);
    assert_true(jobs[ST_GEN_TRAIN] * 5 < o.jobs);
    assert_true(office * 10 > jobs[ST_GEN_NOTEBOOK] * 7);
    assert_true(accurate * 10 > declared && accurate * 2 < declared);
}

static void test_refuses(void **state)
{
    st_gen_options o = st_gen_options_default();
    st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    o.gpus = 7;
    assert_fails(st_gen_trace(&o, &t, &err), ST_ERANGE, "8 to 2000000 GPUs, not 7");
    o = st_gen_options_default();
    o.gpus = 500000;
    o.jobs = 20;
    assert_fails(st_gen_trace(&o, &t, &err), ST_ERANGE, "20 jobs are too few to load 500000 GPUs");
    o.gpus = 8;
    o.jobs = 1000000;
    assert_fails(st_gen_trace(&o, &t, &err), ST_ERANGE, "1000000 jobs are too many");
    assert_null(t);
}

/* ---- files -------------------------------------------------------------------------- */

static void test_world(void **state)
{
    static const int64_t fleets[] = {8, 40, 1000, 20000};

    (void)state;
    for (size_t f = 0; f < ST_ARRAY_LEN(fleets); f++) {
        st_gen_options o = st_gen_options_default();
        ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
        ST_CLEANUP(st_scenario_freep) st_scenario *s = NULL;
        st_err err = {0};

        o.gpus = fleets[f];
        o.jobs = 1000;
        ST_CLEANUP(st_trace_freep) st_trace *t = make(&o);
        ST_CLEANUP(st_freep) char *text = written(t, st_gen_write_world);
        assert_ok(st_doc_parse("world.yaml", text, strlen(text), &doc, &err));
        assert_ok(st_scenario_new(doc, &s, &err));
        ST_ASSERT(s);
        assert_int_equal(s->nodes.n, t->nodes.n);
        for (size_t i = 0; i < t->nodes.n; i++) {
            const st_node_spec *a = &t->nodes.v[i], *b = &s->nodes.v[i].spec;
            assert_string_equal(a->name, b->name);
            assert_string_equal(a->rack, b->rack);
            assert_string_equal(a->block, b->block);
            assert_string_equal(a->zone, b->zone);
            assert_string_equal(t->types.v[a->type].name, s->types.v[b->type].doc.name);
            assert_int_equal(t->types.v[a->type].vram_mib, s->types.v[b->type].doc.vram_mib);
            assert_true(a->cpu_m == b->cpu_m && a->ram_mib == b->ram_mib && a->ndevs == b->ndevs);
        }
        assert_int_equal(s->accounts.n, t->accounts.n);
        for (size_t i = 0; i < t->accounts.n; i++) {
            assert_string_equal(s->accounts.v[i]->name, t->accounts.v[i].name);
            assert_int_equal(s->accounts.v[i]->guarantee.gpu_m, t->accounts.v[i].guarantee.gpu_m);
            assert_int_equal(s->accounts.v[i]->weight_m, t->accounts.v[i].weight_m);
        }
    }
}

/* Read back, the files are the trace again. */
static void test_read_back(void **state)
{
    st_gen_options o = st_gen_options_default();
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_trace_freep) st_trace *back = NULL;
    st_policy policy;
    st_err err = {0};

    (void)state;
    ST_CLEANUP(st_trace_freep) st_trace *t = make(&o);
    ST_CLEANUP(st_freep) char *jobs = written(t, st_gen_write_jobs);
    ST_CLEANUP(st_freep) char *world = written(t, st_gen_write_world);
    assert_ok(st_csv_parse("jobs.csv", jobs, strlen(jobs), &csv, &err));
    assert_ok(st_doc_parse("world.yaml", world, strlen(world), &doc, &err));
    assert_ok(st_trace_read_csv(csv, doc, &policy, &back, &err));
    ST_ASSERT(back);
    assert_int_equal(back->dropped, 0);
    assert_int_equal(back->jobs.n, t->jobs.n);
    for (size_t i = 0; i < t->jobs.n; i++) {
        const st_trace_job *a = &t->jobs.v[i], *b = &back->jobs.v[i];

        assert_string_equal(a->name, b->name);
        assert_string_equal(a->user, b->user);
        assert_string_equal(t->accounts.v[a->account].name, back->accounts.v[b->account].name);
        assert_true(a->submit_ms == b->submit_ms && a->run_ms == b->run_ms);
        assert_true(a->limit_ms == b->limit_ms && a->tasks == b->tasks);
        assert_true(a->shape.level == b->shape.level && a->shape.gpus == b->shape.gpus);
        assert_true(a->shape.share_m == b->shape.share_m && a->shape.cpu_m == b->shape.cpu_m);
        assert_true(a->shape.profile == b->shape.profile && a->shape.ram_mib == b->shape.ram_mib);
        assert_true(a->topo == b->topo && a->topo_required == b->topo_required);
        assert_true(a->priority == b->priority && a->yield == b->yield);
        /* Any type may be told as all of them. */
        for (size_t k = 0; a->shape.types != 0 && k < t->types.n; k++)
            for (size_t l = 0; l < back->types.n; l++)
                if (strcmp(t->types.v[k].name, back->types.v[l].name) == 0)
                    assert_int_equal(a->shape.types >> k & 1, b->shape.types >> l & 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed),    cmocka_unit_test(test_promises),
        cmocka_unit_test(test_like_a_fleet), cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_world),        cmocka_unit_test(test_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
