/*
 * What a task of a gang is told of the others (agent/launch.h): by the network they share, on one node and on several.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch.h"
#include "base/testing.h"

static json_t *kept[16];
static size_t nkept;
static char dir[] = "/tmp/stint-launch-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[64];

    (void)state;
    for (size_t i = 0; i < nkept; i++)
        json_decref(kept[i]);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* Task `task` of a job with these rows of hosts, on node n1. */
static int spec_of(st_arena *arena, const char *network, const char *more, const char *hosts,
                   int task, st_run_spec *ret, st_err *err)
{
    static const st_gpu_inventory none;
    st_order o = {.key = {"j1", 1, task}};
    st_launch l = {.order = &o, .node = "n1", .inv = &none, .dir = dir, .segment_port = 14789};
    st_task t = {.key = o.key, .signal = SIGTERM, .place = {.mig_profile = -1}, .tenant = "t.17"};
    char text[2048];
    json_t *job;
    int r;

    snprintf(text, sizeof text,
             "{\"cpu\":1,\"ram_mib\":64,\"image\":{\"kind\":\"host\"},%s\"hosts\":[%s],"
             "\"document\":{\"command\":[\"x\"],\"network\":\"%s\"}}",
             more, hosts, network);
    job = json_loads(text, 0, NULL);
    assert_non_null(job);
    o.job = job;
    r = st_launch_spec(arena, &t, &l, 0, ret, err);
    kept[nkept++] = job; /* the spec has texts of it */
    return r;
}

#define ON(n) "{\"node\":\"n" n "\",\"address\":\"192.0.2." n "\",\"inside\":\"10.0.0." n "\"}"

static void one_node(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    st_run_spec s;
    st_err err = {0};

    (void)state;
    assert_ok(spec_of(a, "tenant", "", ON("1") "," ON("1"), 1, &s, &err));
    assert_string_equal(s.gang.master_addr, "127.0.0.1");
    assert_string_equal(s.gang.hostfile, "127.0.0.1 slots=2\n");
    assert_string_equal(s.gang.hosts, "127.0.0.1 task-0\n127.0.0.1 task-1\n");
    assert_string_equal(s.gang.addresses, "127.0.0.1,127.0.0.1");
    assert_int_equal(s.segment.number, 0);
    assert_ok(spec_of(a, "host", "", ON("1") "," ON("1"), 1, &s, &err));
    assert_string_equal(s.gang.master_addr, "192.0.2.1");
}

static void several_nodes(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    st_run_spec s;
    st_err err = {0};

    (void)state;
    assert_ok(spec_of(a, "tenant", "\"segment\":17,", ON("2") "," ON("1") "," ON("1") "," ON("3"),
                      2, &s, &err));
    assert_string_equal(s.gang.master_addr, "10.0.0.2");
    assert_string_equal(s.gang.self, "10.0.0.1");
    assert_string_equal(s.gang.hostfile, "10.0.0.2 slots=1\n10.0.0.1 slots=2\n10.0.0.3 slots=1\n");
    assert_string_equal(s.gang.addresses, "10.0.0.2,10.0.0.1,10.0.0.1,10.0.0.3");
    assert_int_equal(s.gang.node_rank, 1);
    assert_int_equal(s.segment.number, 17);
    assert_int_equal(s.segment.port, 14789);
    assert_string_equal(s.segment.here.outside, "192.0.2.1");
    assert_string_equal(s.segment.here.inside, "10.0.0.1");
    assert_int_equal(s.segment.npeer, 2);
    assert_string_equal(s.segment.peers[1].outside, "192.0.2.3");
    /* With the nodes' own network there is no segment. */
    assert_ok(spec_of(a, "host", "\"segment\":17,", ON("2") "," ON("1"), 1, &s, &err));
    assert_string_equal(s.gang.master_addr, "192.0.2.2");
    assert_int_equal(s.segment.number, 0);
    /* Without a segment it is said, and not tried. */
    assert_fails(spec_of(a, "tenant", "", ON("2") "," ON("1"), 1, &s, &err), ST_ESTATE,
                 "no segment");
}

/* A node says of itself what it likes; it becomes no line of a file of somebody else's task. */
static void an_address_that_is_none(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    static const char evil[] = "{\"node\":\"n2\",\"address\":\"192.0.2.9 task-0\\n192.0.2.9\"}";
    char rows[256];
    st_run_spec s;
    st_err err = {0};

    (void)state;
    snprintf(rows, sizeof rows, "%s,%s", ON("1"), evil);
    assert_ok(spec_of(a, "host", "", rows, 0, &s, &err));
    assert_string_equal(s.gang.hosts, "192.0.2.1 task-0\n");
    assert_string_equal(s.gang.hostfile, "192.0.2.1 slots=1\nn2 slots=1\n");
    assert_fails(spec_of(a, "tenant", "\"segment\":17,", rows, 0, &s, &err), ST_EINVAL,
                 "no address there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node),
        cmocka_unit_test(several_nodes),
        cmocka_unit_test(an_address_that_is_none),
    };

    if (geteuid() != 0) {
        printf("SKIP: only root can make a tenant's storage\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
