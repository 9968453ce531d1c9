/*
 * Who found no place is not looked for again while what has changed cannot make room (misfit.c): at its edges, a gang
 * starts with the very change that makes enough, whatever kind of change that is.
 */
#include "core/test/world.h"

enum { GANG = 50 };

static st_policy plain(void)
{
    st_policy policy = st_policy_default();
    policy.rebalance = policy.urgent = policy.defrag = 0;
    policy.reservations = 0; /* nobody keeps others off what is free */
    return policy;
}

static void gang(world *w, uint64_t id, int tasks, int gpus)
{
    st_event ev = job_event(id, "a");
    ev.u.job.tasks = tasks;
    ev.u.job.shape.gpus = gpus;
    step(w, &ev);
}

/* Nodes of four GPUs with `each` jobs on every node, numbered from 1; and a gang that waits. */
static void begin_full(world *w, int nodes, int each, int tasks, int gpus)
{
    st_policy policy = plain();
    begin(w, &policy, nodes, 4);
    account(w, "a", ST_UNSET);
    for (int i = 0; i < nodes * each; i++)
        gang(w, (uint64_t)i + 1, 1, 4 / each);
    w->now += SEC;
    gang(w, GANG, tasks, gpus);
    in_state(w, GANG, ST_JOB_PENDING);
}

/* Nothing happens to the gang for some rounds: what was remembered two rounds ago is looked at by what changed since. */
static void idle_rounds(world *w, int n)
{
    for (int i = 0; i < n; i++) {
        tick(w, w->now + 60 * SEC);
        in_state(w, GANG, ST_JOB_PENDING);
    }
}

static void finish(world *w, uint64_t id)
{
    w->now += SEC;
    tell(w, ST_EV_FINISH, id);
}

/* Three tasks of two GPUs: two finishes make room for one each, with rounds in between or without. */
static void test_starts_with_the_last_one(void **state)
{
    (void)state;
    for (int rounds = 0; rounds <= 4; rounds++) {
        world w;
        begin_full(&w, 3, 2, 3, 2);
        finish(&w, 1);
        idle_rounds(&w, rounds);
        finish(&w, 3);
        idle_rounds(&w, rounds);
        finish(&w, 5);
        in_state(&w, GANG, ST_JOB_RUNNING);
        end(&w);
    }
}

/* Single GPUs of a node make room for nobody but together. */
static void test_room_grows_by_parts(void **state)
{
    (void)state;
    for (int rounds = 0; rounds <= 3; rounds++) {
        world w;
        begin_full(&w, 1, 4, 1, 4);
        for (uint64_t id = 1; id <= 3; id++) {
            finish(&w, id);
            idle_rounds(&w, rounds);
        }
        finish(&w, 4);
        in_state(&w, GANG, ST_JOB_RUNNING);
        end(&w);
    }
}

/* What came free and was taken again is no room; and the same node may come free once more. */
static void test_taken_in_between(void **state)
{
    (void)state;
    world w;
    begin_full(&w, 2, 1, 2, 4);
    for (uint64_t id = 1; id < 20; id++) {
        st_event ev = job_event(id + 2, "a"); /* takes what this finish frees */
        ev.u.job.shape.gpus = 4;
        ev.u.job.priority = 100;
        step(&w, &ev);
        finish(&w, id);
        in_state(&w, id + 2, ST_JOB_RUNNING);
        in_state(&w, GANG, ST_JOB_PENDING);
    }
    finish(&w, 20);
    in_state(&w, GANG, ST_JOB_PENDING);
    finish(&w, 21);
    in_state(&w, GANG, ST_JOB_RUNNING);
    end(&w);
}

/* Nodes that come, or come back, free nothing that somebody had. */
static void test_nodes_that_come(void **state)
{
    (void)state;
    world w;
    begin_full(&w, 2, 1, 2, 4);
    idle_rounds(&w, 3);
    st_event ev = node_event("n2", 4);
    step(&w, &ev);
    in_state(&w, GANG, ST_JOB_PENDING);
    idle_rounds(&w, 3);
    ev = node_event("n3", 4);
    step(&w, &ev);
    in_state(&w, GANG, ST_JOB_RUNNING);
    end(&w);

    begin_full(&w, 1, 1, 1, 4);
    set_node(&w, 0, ST_NODE_DRAINING);
    finish(&w, 1);
    in_state(&w, GANG, ST_JOB_PENDING);
    idle_rounds(&w, 3);
    set_node(&w, 0, ST_NODE_READY);
    in_state(&w, GANG, ST_JOB_RUNNING);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_with_the_last_one),
        cmocka_unit_test(test_room_grows_by_parts),
        cmocka_unit_test(test_taken_in_between),
        cmocka_unit_test(test_nodes_that_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
