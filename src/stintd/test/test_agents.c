/*
 * Agents and stintd, end to end over HTTP: joining, gangs, failures, preemption, restarts,
 * silence.
 */
#include <stdlib.h>
#include <time.h>

#include "base/testing.h"
#include "stintd/test/fake_agent.h"

#define NODES 2

typedef struct two {
    fake_world w;
    fake_agent *a[NODES];
    char join[ST_TOKEN_TEXT];
} two;

static void make_documents(fake_world *w)
{
    json_decref(
        fake_owner(w, "POST", "/v1/pools", "{\"name\":\"main\",\"allow\":[\"host-image\"]}", 201));
    json_decref(fake_owner(w, "POST", "/v1/accounts", "{\"name\":\"lab\"}", 201));
}

static void join_all(two *t)
{
    fake_join_token(&t->w, NODES, t->join);
    for (int i = 0; i < NODES; i++) {
        char name[8], machine[16];

        snprintf(name, sizeof name, "n%d", i + 1);
        snprintf(machine, sizeof machine, "m-%d", i + 1);
        t->a[i] = fake_new(t->w.port, name, machine);
        assert_int_equal(fake_register(t->a[i], t->join, "h100", 8), 201);
        fake_turn(t->a[i]);
    }
}

static int set_up_with(void **state, int64_t lease_ms)
{
    two *t = calloc(1, sizeof *t);

    fake_world_init(&t->w);
    t->w.config.agent_lease_ms = lease_ms;
    fake_world_start(&t->w);
    make_documents(&t->w);
    join_all(t);
    *state = t;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, 60000);
}

static int set_up_hasty(void **state)
{
    return set_up_with(state, 1500);
}

static int tear_down(void **state)
{
    two *t = *state;

    for (int i = 0; i < NODES; i++)
        fake_free(t->a[i]);
    fake_world_done(&t->w);
    free(t);
    return 0;
}

static void turn_all(two *t)
{
    for (int i = 0; i < NODES; i++)
        fake_turn(t->a[i]);
}

static const char gang[] = "{\"name\":\"wide\",\"account\":\"lab\",\"user\":\"ann\",\"tasks\":2,"
                           "\"gpus\":8,\"command\":[\"train\"],\"env\":{\"A\":\"b\"}}";

/* ---- joining ---------------------------------------------------------------------------------- */

static void joining_is_for_machines_that_may(void **state)
{
    two *t = *state;
    fake_agent *other = fake_new(t->w.port, "n1", "m-9"), *third = fake_new(t->w.port, "n3", "m-3");
    fake_agent *thief = fake_new(t->w.port, "n1", "m-1");
    json_t *types;

    /* The token was for two machines, and says no more to anybody; the owner's is none for agents. */
    assert_int_equal(fake_register(third, t->join, "h100", 8), 403);
    assert_int_equal(fake_register(other, t->join, "h100", 8), 403);
    assert_int_equal(fake_register(thief, t->join, "h100", 8), 403);
    assert_int_equal(fake_register(t->a[0], t->join, "h100", 8), 403);
    assert_int_equal(fake_register(third, t->w.owner, "h100", 8), 403);
    /* The name is taken, whatever the machine says it is, and only its key opens it. */
    fake_join_token(&t->w, 1, t->join);
    assert_int_equal(fake_register(other, t->join, "h100", 8), 409);
    assert_int_equal(fake_register(thief, t->join, "h100", 8), 409);
    assert_int_equal(fake_register(thief, NULL, "h100", 8), 401);
    assert_int_equal(fake_register(t->a[0], NULL, "h100", 8), 200);
    assert_int_equal(fake_status(t->a[0]), 200);
    /* With an owner's leave another key takes it; then the old one is worth nothing. */
    json_decref(fake_owner(&t->w, "POST", "/v1/nodes/n1/rejoin", NULL, 200));
    assert_int_equal(fake_register(thief, NULL, "h100", 8), 401);
    assert_int_equal(fake_register(thief, t->join, "h100", 8), 200);
    assert_int_equal(fake_status(t->a[0]), 401);
    assert_int_equal(fake_register(t->a[0], NULL, "h100", 8), 401);
    assert_int_equal(fake_status(thief), 200);
    assert_int_equal(fake_register(third, t->join, "h100", 8), 403);
    /* A node's key opens nothing else, a join token not even that. */
    assert_int_equal(fake_ask_as(thief, "GET", "/v1/jobs", NULL, NULL), 403);
    assert_int_equal(fake_ask(t->w.port, "GET", "/v1/agent/desired", t->join, NULL, NULL), 403);
    types = fake_owner(&t->w, "GET", "/v1/types", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(types, "types")), 1);
    json_decref(types);
    /* Nodes are not announced here. */
    json_decref(fake_owner(&t->w, "POST", "/v1/nodes", "{\"name\":\"x\",\"pool\":\"main\"}", 409));
    fake_free(other);
    fake_free(third);
    fake_free(thief);
}

static void a_message_counts_once(void **state)
{
    two *t = *state;
    static const char path[] = "/v1/agent/status", body[] = "{\"tasks\":[]}";
    char proof[1024];

    snprintf(proof, sizeof proof, "%s", fake_proof(t->a[0], "POST", path, body));
    assert_int_equal(fake_ask(t->w.port, "POST", path, proof, body, NULL), 200);
    assert_int_equal(fake_ask(t->w.port, "POST", path, proof, body, NULL), 401);
    /* Another body, another path, another node's name. */
    snprintf(proof, sizeof proof, "%s", fake_proof(t->a[0], "POST", path, body));
    assert_int_equal(fake_ask(t->w.port, "POST", path, proof, "{\"tasks\": []}", NULL), 401);
    snprintf(proof, sizeof proof, "%s", fake_proof(t->a[0], "GET", path, NULL));
    assert_int_equal(fake_ask(t->w.port, "GET", "/v1/agent/desired", proof, NULL, NULL), 401);
    snprintf(proof, sizeof proof, "%s", fake_proof(t->a[0], "POST", path, body));
    proof[strcspn(proof, "1") + 2] ^= 1;
    assert_int_equal(fake_ask(t->w.port, "POST", path, proof, body, NULL), 401);
    assert_int_equal(fake_status(t->a[0]), 200);
}

/* Two agents with one key: the second waits, and when the first proves that it is alive nobody gets work. */
static void two_voices_freeze_a_node(void **state)
{
    two *t = *state;
    fake_agent *clone = fake_new(t->w.port, "n1", "m-1");
    json_t *row;
    char job[32];

    fake_submit(&t->w,
                "{\"name\":\"kept\",\"account\":\"lab\",\"user\":\"ann\",\"gpus\":8,"
                "\"tasks\":2,\"command\":[\"x\"]}",
                job);
    for (int i = 0; i < NODES; i++)
        fake_turn(t->a[i]);
    memcpy(clone->secret, t->a[0]->secret, sizeof clone->secret);
    memcpy(clone->key, t->a[0]->key, sizeof clone->key);
    memcpy(clone->machine, t->a[0]->machine, sizeof clone->machine);
    assert_int_equal(fake_register(clone, NULL, "h100", 8), 200);
    /* It is answered; that it has no task fails nobody, and it gets no list. */
    assert_int_equal(fake_status(clone), 200);
    assert_false(fake_poll(clone, 0));
    fake_job_is(&t->w, job, "running");
    assert_int_equal(fake_status(t->a[0]), 401);
    assert_int_equal(fake_register(t->a[0], NULL, "h100", 8), 200);
    fake_node_is(&t->w, "n1", "draining");
    row = fake_owner(&t->w, "GET", "/v1/nodes/n1", NULL, 200);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(row, "flags"), 0), "flag")),
                        "two-voices");
    json_decref(row);
    /* The first goes on with what it has, the other with nothing. */
    fake_turn(t->a[0]);
    assert_non_null(fake_task_of(t->a[0], job, 0));
    assert_int_equal(fake_status(clone), 200);
    assert_false(fake_poll(clone, 0));
    assert_int_equal(clone->tasks.n, 0);
    for (int i = 0; i < NODES; i++) {
        fake_exit(t->a[i], job, i, 0);
        fake_status(t->a[i]);
    }
    fake_job_is(&t->w, job, "done");
    /* An owner takes it back; while both are there it is found out again. */
    json_decref(fake_owner(&t->w, "PATCH", "/v1/nodes/n1", "{\"state\":\"ready\"}", 200));
    fake_node_is(&t->w, "n1", "ready");
    assert_int_equal(fake_status(t->a[0]), 200);
    assert_int_equal(fake_status(clone), 401);
    assert_int_equal(fake_register(clone, NULL, "h100", 8), 200);
    assert_int_equal(fake_status(t->a[0]), 401);
    assert_int_equal(fake_register(t->a[0], NULL, "h100", 8), 200);
    fake_node_is(&t->w, "n1", "draining");
    fake_free(clone);
}

static void other_hardware_is_a_fault(void **state)
{
    two *t = *state;
    json_t *row;

    assert_int_equal(fake_register(t->a[0], NULL, "h100", 7), 409);
    fake_node_is(&t->w, "n1", "failed");
    row = fake_owner(&t->w, "GET", "/v1/nodes/n1", NULL, 200);
    assert_non_null(strstr(json_string_value(json_object_get(row, "reason")), "8 h100"));
    json_decref(row);
    assert_int_equal(fake_register(t->a[0], NULL, "h100", 8), 200);
    fake_turn(t->a[0]);
    fake_node_is(&t->w, "n1", "ready");
}

/* ---- gangs ------------------------------------------------------------------------------------ */

static void a_gang_runs_and_ends(void **state)
{
    two *t = *state;
    char job[32], path[64];
    const json_t *row, *hosts;
    json_t *done;

    fake_submit(&t->w, gang, job);
    turn_all(t);
    assert_string_equal(fake_want(t->a[0], job), "run");
    row = json_array_get(json_object_get(t->a[1]->desired, "jobs"), 0);
    hosts = json_object_get(row, "hosts");
    assert_int_equal(json_array_size(hosts), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(hosts, 0), "address")),
                        "192.0.2.7");
    assert_int_equal(json_integer_value(json_object_get(row, "world_size")), 2);
    assert_string_equal(
        json_string_value(json_object_get(
            json_array_get(
                json_object_get(json_array_get(json_object_get(row, "tasks"), 0), "devices"), 3),
            "uuid")),
        "GPU-m-2-3");
    fake_exit(t->a[0], job, 0, 0);
    fake_status(t->a[0]);
    fake_job_is(&t->w, job, "running");
    fake_exit(t->a[1], job, 1, 0);
    t->a[1]->tasks.v[0].ended_ms -= 30; /* it ended a while ago */
    fake_status(t->a[1]);
    fake_job_is(&t->w, job, "done");
    turn_all(t);
    assert_int_equal(t->a[0]->tasks.n, 0);
    snprintf(path, sizeof path, "/v1/jobs/%s", job);
    done = fake_owner(&t->w, "GET", path, NULL, 200);
    assert_int_equal(json_integer_value(json_object_get(done, "exit_code")), 0);
    json_decref(done);
}

static void one_failure_ends_the_gang(void **state)
{
    two *t = *state;
    char job[32], path[64];
    json_t *row;

    fake_submit(&t->w, gang, job);
    turn_all(t);
    fake_exit(t->a[1], job, 1, 3);
    fake_status(t->a[1]);
    fake_status(t->a[1]);                /* again: the same */
    fake_job_is(&t->w, job, "stopping"); /* the other task is still there */
    turn_all(t);
    fake_job_is(&t->w, job, "failed");
    assert_int_equal(t->a[0]->tasks.n, 0);
    snprintf(path, sizeof path, "/v1/jobs/%s", job);
    row = fake_owner(&t->w, "GET", path, NULL, 200);
    assert_int_equal(json_integer_value(json_object_get(row, "exit_code")), 3);
    assert_string_equal(json_string_value(json_object_get(row, "reason")),
                        "task 1 on n2 exited with 3");
    json_decref(row);
}

static void a_list_wakes_who_waits(void **state)
{
    two *t = *state;
    char job[32];

    fake_poll_say(t->a[0], 60);
    assert_false(fake_heard(&t->a[0]->poll, 100));
    fake_submit(&t->w, gang, job);
    assert_true(fake_poll_hear(t->a[0]));
    assert_string_equal(fake_want(t->a[0], job), "run");
    assert_false(fake_poll(t->a[0], 1)); /* nothing new: 204 after a second */
}

/* ---- preemption ------------------------------------------------------------------------------- */

static void a_borrower_saves_and_comes_back(void **state)
{
    two *t = *state;
    char borrower[32], owner[32];

    fake_submit(&t->w,
                "{\"name\":\"lent\",\"account\":\"lab\",\"user\":\"ann\",\"gpus\":8,\"tasks\":2,"
                "\"on_preempt\":\"checkpoint\",\"command\":[\"x\"]}",
                borrower);
    turn_all(t);
    fake_submit(&t->w,
                "{\"name\":\"due\",\"account\":\"firm\",\"user\":\"bob\",\"gpus\":8,"
                "\"command\":[\"y\"]}",
                owner);
    fake_job_is(&t->w, borrower, "checkpointing");
    fake_poll(t->a[0], 5);
    fake_poll(t->a[1], 5);
    assert_string_equal(fake_want(t->a[0], borrower), "checkpoint");
    fake_status(t->a[0]);
    fake_job_is(&t->w, borrower, "checkpointing");
    fake_status(t->a[1]);
    /* It is saved, and still there: nobody is on its devices before its agents have said that it is gone. */
    fake_job_is(&t->w, borrower, "stopping");
    fake_job_is(&t->w, owner, "pending");
    fake_turn(t->a[0]);
    fake_status(t->a[0]);
    fake_job_is(&t->w, borrower, "stopping");
    turn_all(t);
    fake_job_is(&t->w, owner, "running");
    fake_job_is(&t->w, borrower, "pending");
    turn_all(t);
    assert_int_equal(t->a[0]->tasks.n + t->a[1]->tasks.n, 1);
    fake_agent *on = t->a[0]->tasks.n ? t->a[0] : t->a[1];
    fake_exit(on, owner, 0, 0);
    fake_status(on);
    fake_job_is(&t->w, owner, "done");
    fake_job_is(&t->w, borrower, "running");
    turn_all(t);
    assert_int_equal(t->a[0]->tasks.v[0].stay, 2);
    assert_string_equal(t->a[0]->tasks.v[0].state, "running");
}

static int set_up_firm(void **state)
{
    int r = set_up(state);
    two *t = *state;

    json_decref(fake_owner(&t->w, "POST", "/v1/accounts",
                           "{\"name\":\"firm\",\"guarantee\":{\"gpu\":8}}", 201));
    return r;
}

/* ---- restarts, silence ------------------------------------------------------------------------- */

static void restart(two *t)
{
    fake_world_stop(&t->w);
    fake_world_start(&t->w);
    for (int i = 0; i < NODES; i++)
        fake_move(t->a[i], t->w.port);
}

static void stintd_restarts_under_tasks(void **state)
{
    two *t = *state;
    int64_t revision, epoch;
    char job[32];

    fake_submit(&t->w, gang, job);
    turn_all(t);
    revision = t->a[0]->revision;
    epoch = t->a[0]->epoch;
    fake_exit(t->a[0], job, 0, 0); /* while stintd is away */
    restart(t);
    turn_all(t);
    assert_true(t->a[0]->revision > revision);
    assert_int_equal(t->a[0]->epoch, epoch + 1);
    assert_int_equal(fake_task_of(t->a[1], job, 1)->stay, 1);
    assert_string_equal(fake_task_of(t->a[1], job, 1)->state, "running");
    assert_string_equal(fake_task_of(t->a[0], job, 0)->state, "exited");
    fake_job_is(&t->w, job, "running");
    fake_exit(t->a[1], job, 1, 0);
    fake_status(t->a[1]);
    fake_job_is(&t->w, job, "done");
    /* One who has heard of a newer stintd is not answered by an older. */
    t->a[0]->epoch += 5;
    assert_int_equal(fake_status(t->a[0]), 409);
}

static void silence_loses_a_node(void **state)
{
    two *t = *state;
    char job[32];

    fake_submit(&t->w,
                "{\"name\":\"one\",\"account\":\"lab\",\"user\":\"ann\",\"gpus\":8,"
                "\"command\":[\"x\"]}",
                job);
    turn_all(t);
    fake_agent *lost = t->a[0]->tasks.n ? t->a[0] : t->a[1];
    fake_agent *left = lost == t->a[0] ? t->a[1] : t->a[0];
    for (int i = 0; i < 200 && !fake_task_of(left, job, 0); i++) {
        fake_turn(left);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    assert_int_equal(fake_task_of(left, job, 0)->stay, 2);
    fake_node_is(&t->w, lost->name, "failed");
    /* That it was lost, and not taken out, is remembered. */
    restart(t);
    fake_turn(left);
    fake_node_is(&t->w, lost->name, "failed");
    /* It still has the task, and says how that went: nobody cares about that stay any more. */
    fake_exit(lost, job, 0, 1);
    fake_status(lost);
    assert_string_equal(lost->state, "failed");
    lost->tasks.v[0].state = "running";
    fake_status(lost);
    assert_string_equal(lost->state, "failed");
    fake_poll(lost, 0);
    assert_int_equal(lost->tasks.n, 0);
    for (int i = 0; i < 200 && strcmp(lost->state, "ready") != 0; i++) {
        fake_status(lost);
        fake_turn(left);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    assert_string_equal(lost->state, "ready");
    fake_job_is(&t->w, job, "running");
}

static void who_decides_about_a_node(void **state)
{
    two *t = *state;

    /* A node that drains and is lost comes back draining. */
    json_decref(fake_owner(&t->w, "PATCH", "/v1/nodes/n1", "{\"state\":\"draining\"}", 200));
    t->a[0]->health = "failed";
    fake_status(t->a[0]);
    fake_node_is(&t->w, "n1", "failed");
    t->a[0]->health = "ok";
    fake_turn(t->a[0]);
    fake_node_is(&t->w, "n1", "draining");
    /* What an owner says is failed is not taken back by its agent, even if it was failed before. */
    t->a[1]->health = "failed";
    fake_status(t->a[1]);
    fake_node_is(&t->w, "n2", "failed");
    json_decref(fake_owner(&t->w, "PATCH", "/v1/nodes/n2", "{\"state\":\"failed\"}", 200));
    t->a[1]->health = "ok";
    for (int i = 0; i < 5; i++)
        fake_turn(t->a[1]);
    json_decref(fake_owner(&t->w, "GET", "/v1/pools/main", NULL, 200)); /* a turn of the loop */
    fake_status(t->a[1]);
    assert_string_equal(t->a[1]->state, "failed");
}

/* Agents and simulated nodes under one stintd, each in its pool. */
static void both_engines_together(void **state)
{
    two *t = *state;
    char real[32], paper[32], path[64];
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    fake_line line;

    fake_world_stop(&t->w);
    t->w.config.engine = "auto";
    fake_world_start(&t->w);
    line = (fake_line){t->w.port, -1};
    for (int i = 0; i < NODES; i++)
        fake_move(t->a[i], t->w.port);
    json_decref(fake_owner(&t->w, "POST", "/v1/pools",
                           "{\"name\":\"paper\",\"allow\":[\"host-image\"]}", 201));
    json_decref(fake_owner(&t->w, "POST", "/v1/nodes",
                           "{\"name\":\"s1\",\"pool\":\"paper\",\"gpu\":\"h100\"}", 201));
    fake_submit(&t->w, gang, real);
    fake_submit(&t->w,
                "{\"name\":\"paper\",\"account\":\"lab\",\"user\":\"ann\",\"gpus\":1,"
                "\"pool\":\"paper\",\"sim\":{\"run\":\"1s\"}}",
                paper);
    turn_all(t);
    assert_string_equal(fake_want(t->a[0], real), "run");
    snprintf(path, sizeof path, "/v1/jobs/%s/logs?follow=true", paper);
    fake_say(&line, "GET", path, t->w.owner, NULL);
    assert_int_equal(fake_hear(&line, 5000, NULL, &text), 200);
    assert_non_null(strstr(st_strbuf_str(&text), "simulated"));
    fake_job_is(&t->w, paper, "done");
    fake_job_is(&t->w, real, "running");
    fake_hang_up(&line);
}

/* ---- logs ------------------------------------------------------------------------------------- */

static void logs_come_through(void **state)
{
    two *t = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    fake_line line = {t->w.port, -1};
    char job[32], path[128], agent_path[128];

    fake_submit(&t->w, gang, job);
    turn_all(t);
    snprintf(path, sizeof path, "/v1/jobs/%s/logs?task=1&follow=true", job);
    fake_say(&line, "GET", path, t->w.owner, NULL);
    assert_false(fake_heard(&line, 50));
    snprintf(agent_path, sizeof agent_path, "/v1/agent/logs/%s/1/1?offset=0", job);
    assert_int_equal(fake_ask_as(t->a[1], "POST", agent_path, "hello\n", NULL), 200);
    assert_int_equal(fake_hear(&line, 5000, NULL, &text), 200);
    assert_string_equal(st_strbuf_str(&text), "hello\n");
    /* Another node's task is not there; nor is an invented one. */
    assert_int_equal(fake_ask_as(t->a[0], "POST", agent_path, "x", NULL), 404);
    snprintf(agent_path, sizeof agent_path, "/v1/agent/logs/%s/1/7?offset=0", job);
    assert_int_equal(fake_ask_as(t->a[1], "POST", agent_path, "x", NULL), 404);
    fake_hang_up(&line);
}

/* ---- many --------------------------------------------------------------------------------------- */

#define MANY 500

static void five_hundred_nodes(void **state)
{
    two *t = *state;
    char join[ST_TOKEN_TEXT], job[32];
    fake_agent *many[MANY];
    int ran = 0;

    fake_join_token(&t->w, MANY, join);
    for (int i = 0; i < MANY; i++) {
        char name[16];

        snprintf(name, sizeof name, "x%d", i);
        many[i] = fake_new(t->w.port, name, name);
        assert_int_equal(fake_register(many[i], join, "l40s", 4), 201);
        fake_hang_up(&many[i]->status);
        fake_poll(many[i], 0);
        fake_poll_say(many[i], 60);
    }
    fake_submit(&t->w,
                "{\"name\":\"huge\",\"account\":\"lab\",\"user\":\"ann\",\"gpus\":4,"
                "\"tasks\":500,\"type\":\"l40s\",\"command\":[\"x\"]}",
                job);
    for (int i = 0; i < MANY; i++) {
        assert_true(fake_poll_hear(many[i]));
        fake_hang_up(&many[i]->poll);
        ran += (int)many[i]->tasks.n;
    }
    assert_int_equal(ran, MANY);
    for (int i = 0; i < MANY; i++) {
        many[i]->tasks.v[0].state = "exited";
        assert_int_equal(fake_status(many[i]), 200);
        fake_free(many[i]);
    }
    fake_job_is(&t->w, job, "done");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(joining_is_for_machines_that_may, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_message_counts_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_voices_freeze_a_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_hardware_is_a_fault, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_gang_runs_and_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_failure_ends_the_gang, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_wakes_who_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_borrower_saves_and_comes_back, set_up_firm, tear_down),
        cmocka_unit_test_setup_teardown(stintd_restarts_under_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(silence_loses_a_node, set_up_hasty, tear_down),
        cmocka_unit_test_setup_teardown(who_decides_about_a_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(both_engines_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(logs_come_through, set_up, tear_down),
        cmocka_unit_test_setup_teardown(five_hundred_nodes, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
