/*
 * The readers of traces: what they make of good rows, and what they say of bad ones.
 */
#include "base/doc.h"
#include "base/testing.h"
#include "trace/read.h"

static st_csv *table(const char *name, const char *text)
{
    st_csv *csv = NULL;
    st_err err = {0};

    assert_ok(st_csv_parse(name, text, strlen(text), &csv, &err));
    return csv;
}

static void test_split(void **state)
{
    const int rows[][3] = {{1, 1, 1}, {8, 1, 8}, {16, 2, 8}, {12, 2, 6}, {9, 3, 3}, {11, 11, 1}};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_trace_job job = {0};

        st_trace_split(&job, rows[i][0], 8);
        assert_int_equal(job.tasks, rows[i][1]);
        assert_int_equal(job.shape.gpus, rows[i][2]);
    }
}

static void test_moments(void **state)
{
    const char *bad[] = {"",
                         "2017",
                         "2017-10-1",
                         "2017-13-01",
                         "2017-02-29",
                         "2017-10-01 24:00:00",
                         "2017-10-01T07:01:55",
                         "2017-10-01 07:01:55 ",
                         "1969-12-31"};
    st_err err = {0};
    int64_t s = 5;

    (void)state;
    assert_ok(st_parse_moment("1970-01-01", &s, &err));
    assert_int_equal(s, 0);
    assert_ok(st_parse_moment("2017-10-09 07:01:55", &s, &err));
    assert_int_equal(s, 1507532515);
    assert_ok(st_parse_moment("2016-02-29 23:59:59", &s, &err));
    assert_int_equal(s, 1456790399);
    assert_ok(st_parse_moment("2100-03-01", &s, &err));
    assert_int_equal(s, 4107542400);
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_true(st_parse_moment(bad[i], &s, &err) < 0);
    assert_int_equal(s, 4107542400);
}

/* ---- muri ------------------------------------------------------------------------------------------ */

static int muri(const char *jobs, const char *nodes, st_trace **ret, st_err *err)
{
    ST_CLEANUP(st_csv_freep) st_csv *j = table("jobs.csv", jobs);
    ST_CLEANUP(st_csv_freep) st_csv *n = nodes ? table("nodes.csv", nodes) : NULL;

    return st_trace_read_muri(j, n, ret, err);
}

static void test_muri(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    assert_ok(muri("job_id,num_gpu,submit_time,duration\n7,16,5000,100\n8,1,1000,200\n",
                   "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"
                   "2,3,4,10,20\n",
                   &t, &err));
    assert_int_equal(t->nodes.n, 6);
    assert_int_equal(t->nodes.v[5].ndevs, 4);
    assert_int_equal(t->nodes.v[5].cpu_m, 10000);
    assert_int_equal(t->nodes.v[5].ram_mib, 20 * 1024);
    assert_int_equal(t->jobs.n, 2);
    assert_string_equal(t->jobs.v[0].name, "job-8"); /* by time */
    assert_int_equal(t->jobs.v[1].tasks, 4);
    assert_int_equal(t->jobs.v[1].shape.gpus, 4);
    assert_int_equal(t->jobs.v[1].submit_ms, 5000);
    st_trace_scale(t, 1500000);
    assert_int_equal(t->jobs.v[1].run_ms, 150);
    st_trace_declare(t, 1000000);
    assert_int_equal(t->jobs.v[1].limit_ms, 1000); /* the next second */
    st_trace_declare(t, 0);
    assert_int_equal(t->jobs.v[1].limit_ms, ST_TIME_NEVER);
    st_trace_freep(&t);
    assert_ok(muri("num_gpu,submit_time,duration\n1,0,1\n", NULL, &t, &err));
    assert_int_equal(t->nodes.n, 8);
}

static void test_bad_muri(void **state)
{
    st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    assert_fails(muri("num_gpu,duration\n", NULL, &t, &err), ST_EPARSE,
                 "jobs.csv:1: the heading submit_time is missing");
    assert_fails(muri("num_gpu,submit_time,duration\n1,0,1\n0,0,1\n", NULL, &t, &err), ST_ERANGE,
                 "jobs.csv:3: num_gpu: ");
    assert_fails(muri("num_gpu,submit_time,duration\n1,0,1.5\n", NULL, &t, &err), ST_EPARSE,
                 "jobs.csv:2: duration: ");
    assert_fails(muri("num_gpu,submit_time,duration\n",
                      "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n", &t,
                      &err),
                 ST_EPARSE, "nodes.csv:2: the row");
    assert_null(t);
}

/* ---- philly ---------------------------------------------------------------------------------------- */

static const st_philly_take all = {.divide = 1, .to_s = INT64_MAX, .floors = true};

static int philly(const char *jobs, const char *clusters, const st_philly_take *take,
                  st_trace **ret, st_err *err)
{
    ST_CLEANUP(st_csv_freep) st_csv *j = table("jobs.csv", jobs);
    ST_CLEANUP(st_csv_freep) st_csv *c = table("vc.csv", clusters);

    return st_trace_read_philly(j, c, take, ret, err);
}

#define PHILLY "timestamp,duration,num_gpus,gpu_time,cluster\n"

static void test_philly(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *t = NULL;
    st_philly_take take = all;
    st_err err = {0};

    (void)state;
    take.divide = 4;
    take.from_s = 1506816000; /* 2017-10-01 */
    take.to_s = 1506816000 + 86400;
    assert_ok(philly(PHILLY "2017-10-01 00:01:00,66.0,16,0,b\n"
                            "2017-09-30 23:59:59,66.0,1,0,b\n" /* before */
                            "2017-10-01 00:00:30,1.5,12,0,a\n"
                            "2017-10-02 00:00:00,66.0,1,0,b\n" /* after */
                            "2017-10-01 00:02:00,66.0,1,0,x\n" /* no such cluster */
                            "2017-10-01 00:02:00,66.0,128,0,a\n",
                     "vc,node num\na,16\nb,6\n", &take, &t, &err));
    assert_int_equal(t->epoch_s, 1506816000);
    assert_int_equal(t->nodes.n, 4 + 2); /* 6 / 4 is rounded up */
    assert_int_equal(t->accounts.n, 2);
    assert_int_equal(t->accounts.v[1].guarantee.gpu_m, 16000);
    assert_int_equal(st_trace_own_m(t, 0), 32000);
    assert_int_equal(t->jobs.n, 2);
    assert_int_equal(t->jobs.v[0].submit_ms, 30000);
    assert_int_equal(t->jobs.v[0].run_ms, 1500);
    assert_int_equal(t->jobs.v[0].account, 0);
    assert_int_equal(t->jobs.v[0].tasks * t->jobs.v[0].shape.gpus, 12);
    assert_int_equal(t->jobs.v[1].tasks, 2);
    assert_int_equal(t->dropped, 2);
    assert_string_equal(t->dropped_why, "the cluster \"x\" has no nodes");
    st_trace_freep(&t);
    take = all;
    take.floors = false;
    assert_ok(
        philly(PHILLY "2017-10-01 00:01:00,66.0,16,0,b\n", "vc,node num\nb,6\n", &take, &t, &err));
    assert_int_equal(t->accounts.v[0].guarantee.gpu_m, ST_UNSET);
    assert_int_equal(st_trace_own_m(t, 0), 48000);
    assert_int_equal(t->jobs.v[0].submit_ms, 0); /* from the first job on */
}

static void test_bad_philly(void **state)
{
    st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    assert_fails(philly(PHILLY, "vc,nodes\na,1\n", &all, &t, &err), ST_EPARSE,
                 "vc.csv:1: the heading node num is missing");
    assert_fails(philly(PHILLY, "vc,node num\n", &all, &t, &err), ST_EINVAL, "no clusters");
    assert_fails(philly(PHILLY, "vc,node num\na,1\na,2\n", &all, &t, &err), ST_EPARSE,
                 "vc.csv:3: the cluster \"a\" stands twice");
    assert_fails(philly(PHILLY, "vc,node num\na b,1\n", &all, &t, &err), ST_EPARSE,
                 "vc.csv:2: \"a b\" cannot be the name");
    assert_fails(philly(PHILLY, "vc,node num\na,0\n", &all, &t, &err), ST_ERANGE, "vc.csv:2: ");
    assert_fails(philly(PHILLY "yesterday,1,1,1,a\n", "vc,node num\na,1\n", &all, &t, &err),
                 ST_EPARSE, "jobs.csv:2: timestamp: \"yesterday\" is not a moment");
    assert_fails(
        philly(PHILLY "2017-10-01 00:00:00,-1,1,1,a\n", "vc,node num\na,1\n", &all, &t, &err),
        ST_ERANGE, "jobs.csv:2: duration: ");
    assert_fails(
        philly(PHILLY "2017-10-01 00:00:00,1,1.0,1,a\n", "vc,node num\na,1\n", &all, &t, &err),
        ST_EPARSE, "jobs.csv:2: num_gpus: ");
    assert_null(t);
}

/* ---- openb ----------------------------------------------------------------------------------------- */

static int openb(const char *pods, const char *nodes, st_trace **ret, st_err *err)
{
    ST_CLEANUP(st_csv_freep) st_csv *p = table("pods.csv", pods);
    ST_CLEANUP(st_csv_freep) st_csv *n = table("nodes.csv", nodes);

    return st_trace_read_openb(p, n, ret, err);
}

#define PODS                                                                            \
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time," \
    "scheduled_time\n"
#define NODES "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,1024,2,T4\nn1,64000,1024,8,G2\n"

static void test_openb(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    assert_ok(openb(PODS "p0,1000,512,1,460,,10,100,40\n"
                         "p1,2000,512,2,1000,G2|V100,5,50,5\n"
                         "p2,2000,512,1,1000,,5,50,\n"
                         "p3,2000,512,1,1000,V100,5,50,5\n"
                         "p4,2000,512,1,1000,,5,50,50\n"
                         "p5,2000,512,0,0,,7,50,8\n",
                    NODES, &t, &err));
    assert_int_equal(t->nodes.n, 2);
    assert_int_equal(t->types.n, 2);
    assert_int_equal(t->dropped, 3);
    assert_string_equal(t->dropped_why, "pod p2 was never scheduled");
    assert_int_equal(t->jobs.n, 3);
    assert_string_equal(t->jobs.v[0].name, "p1");
    assert_int_equal(t->jobs.v[0].shape.types, 1u << 1);
    assert_int_equal(t->jobs.v[0].shape.gpus, 2);
    assert_int_equal(t->jobs.v[1].shape.gpus, 0);
    assert_int_equal(t->jobs.v[2].shape.level, ST_LEVEL_MPS);
    assert_int_equal(t->jobs.v[2].shape.share_m, 460);
    assert_int_equal(t->jobs.v[2].submit_ms, 10000);
    assert_int_equal(t->jobs.v[2].run_ms, 60000);
}

static void test_bad_openb(void **state)
{
    st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    assert_fails(openb("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", NODES, &t, &err), ST_EINVAL,
                 "pods.csv:1: this list has no times");
    assert_fails(openb(PODS "p0,1000,512,1,0,,10,100,40\n", NODES, &t, &err), ST_EPARSE,
                 "pods.csv:2: num_gpu is 1, but gpu_milli is 0");
    assert_fails(openb(PODS "p0,1000,512,1,1000,,x,100,40\n", NODES, &t, &err), ST_EPARSE,
                 "pods.csv:2: creation_time: ");
    assert_fails(openb(PODS, "cpu_milli,memory_mib,gpu,model\n1,1,1,a b\n", &t, &err), ST_EPARSE,
                 "nodes.csv:2: model: ");
    assert_fails(openb(PODS, "cpu_milli,memory_mib,gpu,model\n1,1,0,T4\n", &t, &err), ST_EINVAL,
                 "the nodes have no GPUs");
    assert_null(t);
}

/* ---- jobs of one's own ----------------------------------------------------------------------------- */

#define WORLD                                                               \
    "policy: {order: shortest, notice: 5s}\n"                               \
    "fleet: [{count: 2, gpu: h100, gpus: 8, rack: \"r%d\", rack_size: 1}, " \
    "{count: 1, gpu: a100-40, gpus: 4}]\n"                                  \
    "accounts: [{name: org, guarantee: {gpu: 16}}, {name: t, parent: org, weight: 2}]\n"

static int own(const char *jobs, const char *world, st_trace **ret, st_err *err)
{
    ST_CLEANUP(st_csv_freep) st_csv *j = table("jobs.csv", jobs);
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_policy policy = {0};
    int r;

    assert_int_equal(st_doc_parse("world.yaml", world, strlen(world), &doc, err), 0);
    r = st_trace_read_csv(j, doc, &policy, ret, err);
    if (r == 0)
        assert_int_equal(policy.notice_ms, 5000);
    return r;
}

static void test_csv(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    assert_ok(own("name,account,user,submit,run,limit,tasks,gpus,type,level,share,mig,vram,cpu,ram,"
                  "topology,topology_required,latency_critical,priority,yield\n"
                  "late,t,ann,1h,30m,1h,2,8,h100|a100-40,,,,,1.5,64Gi,rack,true,false,5,pause\n"
                  "part,t,bob,10,20,,,1,,time,0.25,,10Gi,,,,,true,,\n"
                  "slice,t,bob,10,20,,,1,,,,3g.40gb,,,,,,,,\n"
                  ",org,,10,,,,16,,,,,,,,,,,,\n",
                  WORLD, &t, &err));
    assert_int_equal(t->nodes.n, 3);
    assert_string_equal(t->nodes.v[0].rack, "r1");
    assert_int_equal(t->accounts.v[1].weight_m, 2000);
    assert_string_equal(t->accounts.v[1].parent, "org");
    assert_int_equal(t->jobs.n, 4);
    assert_int_equal(t->jobs.v[0].shape.level, ST_LEVEL_TIME);
    assert_int_equal(t->jobs.v[0].shape.share_m, 250);
    assert_int_equal(t->jobs.v[0].shape.vram_mib, 10 * 1024);
    assert_true(t->jobs.v[0].latency_critical);
    assert_int_equal(t->jobs.v[0].submit_ms, 10000);
    assert_int_equal(t->jobs.v[1].shape.level, ST_LEVEL_MIG);
    assert_int_equal(t->jobs.v[1].shape.types, 1); /* an A100 with 40 GB has none of that name */
    assert_string_equal(t->jobs.v[2].name, "job-4");
    assert_string_equal(t->jobs.v[2].user, "org");
    assert_int_equal(t->jobs.v[2].tasks, 2); /* as no tasks were given, over whole nodes */
    assert_int_equal(t->jobs.v[2].run_ms, ST_TIME_NEVER);
    assert_int_equal(t->jobs.v[2].yield, ST_YIELD_REQUEUE);
    assert_string_equal(t->jobs.v[3].name, "late");
    assert_int_equal(t->jobs.v[3].shape.types, 3);
    assert_int_equal(t->jobs.v[3].shape.cpu_m, 1500);
    assert_int_equal(t->jobs.v[3].topo, ST_TOPO_RACK);
    assert_true(t->jobs.v[3].topo_required);
    assert_int_equal(t->jobs.v[3].priority, 5);
    assert_int_equal(t->jobs.v[3].yield, ST_YIELD_PAUSE);
}

static void test_bad_csv(void **state)
{
    static const struct {
        const char *jobs;
        int code;
        const char *text;
    } rows[] = {
        {"account,submit,run,gpu\n", ST_EPARSE, "jobs.csv:1: unknown heading \"gpu\""},
        {"account,submit,run\n", ST_EPARSE, "jobs.csv:1: the heading gpus is missing"},
        {"account,submit,run,gpus\nx,0,1,1\n", ST_ENOENT, "jobs.csv:2: account: there is no"},
        {"account,submit,run,gpus\nt,0,1,1\nt,,1,1\n", ST_EPARSE, "jobs.csv:3: submit: "},
        {"account,submit,run,gpus\nt,soon,1,1\n", ST_EPARSE, "jobs.csv:2: submit: "},
        {"account,submit,run,gpus\nt,0,1,-1\n", ST_ERANGE, "jobs.csv:2: gpus: "},
        {"account,submit,run,gpus,type\nt,0,1,1,b200\n", ST_ENOENT, "jobs.csv:2: type: "},
        {"account,submit,run,gpus,level\nt,0,1,1,msp\n", ST_EPARSE, "did you mean mps?"},
        {"account,submit,run,gpus,level\nt,0,1,1,mps\n", ST_EINVAL, "have a share"},
        {"account,submit,run,gpus,level\nt,0,1,1,mig\n", ST_EINVAL, "go together"},
        {"account,submit,run,gpus,mig\nt,0,1,1,9g\n", ST_EINVAL, "jobs.csv:2: mig: no GPU type"},
        {"account,submit,run,gpus,share\nt,0,1,1,1.5\n", ST_ERANGE, "jobs.csv:2: share: "},
        {"account,submit,run,gpus,ram\nt,0,1,1,lots\n", ST_EPARSE, "jobs.csv:2: ram: "},
        {"account,submit,run,gpus,yield\nt,0,1,1,never\n", ST_EPARSE, "jobs.csv:2: yield: "},
        {"account,submit,run,gpus,priority\nt,0,1,1,9999999\n", ST_ERANGE, "jobs.csv:2: priority"},
        {"account,submit,run,gpus,name\nt,0,1,1,a b\n", ST_EPARSE, "jobs.csv:2: \"a b\" cannot"},
    };
    st_trace *t = NULL;
    st_err err = {0};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_fails(own(rows[i].jobs, WORLD, &t, &err), rows[i].code, rows[i].text);
    assert_fails(own("account,submit,run,gpus\n", "fleet: [{gpu: h100}]\n", &t, &err), ST_EINVAL,
                 "world.yaml:");
    assert_fails(own("account,submit,run,gpus\n",
                     WORLD "timeline: [{at: 0, do: [{submit: {job: j, account: t}}]}]\n", &t, &err),
                 ST_EINVAL, "has no timeline");
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),  cmocka_unit_test(test_moments),
        cmocka_unit_test(test_muri),   cmocka_unit_test(test_bad_muri),
        cmocka_unit_test(test_philly), cmocka_unit_test(test_bad_philly),
        cmocka_unit_test(test_openb),  cmocka_unit_test(test_bad_openb),
        cmocka_unit_test(test_csv),    cmocka_unit_test(test_bad_csv),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
