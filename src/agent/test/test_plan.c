/*
 * The step from what is to what should be, situation by situation.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/steps.h"
#include "agent/tenant.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/testing.h"

#define NOW INT64_C(1000000)

typedef struct world {
    st_agent_list list;
    ST_VEC(st_task) tasks;
    st_agent_view view;
    st_acts acts;
    st_strbuf said;
} world;

static const st_board boards[ST_DEVS_MAX] = {ST_BOARD_H100_80, ST_BOARD_H100_80};

static void world_init(world *w)
{
    *w = (world){.view = {.stop_grace_ms = 10000}};
}

static void world_done(world *w)
{
    st_agent_list_done(&w->list);
    st_vec_free(&w->tasks);
    st_vec_free(&w->acts);
    st_strbuf_done(&w->said);
}

/* Numbers for those that the lists here call by name. */
static int64_t number_of(const char *name)
{
    return 1 + (int64_t)(st_hash_str(1, name) % 1000000);
}

static void tenant(const char *name, char ret[64])
{
    st_tenant_name(number_of(name), ret);
}

static void number(json_t *root)
{
    json_t *job;
    size_t i;

    json_array_foreach(json_object_get(root, "jobs"), i, job)
    {
        const char *account = json_string_value(json_object_get(job, "account"));
        const char *domain = json_string_value(json_object_get(job, "domain"));

        account = account ? account : "root";
        json_object_set_new(job, "tenant", json_pack("{s:I}", "id", number_of(account)));
        json_object_set_new(job, "domain_tenant",
                            json_pack("{s:I}", "id", number_of(domain ? domain : account)));
    }
}

static void hear(world *w, const char *jobs)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_err err = {0};
    json_t *root;

    st_strbuf_addf(&text, "{\"epoch\":4,\"revision\":7,\"jobs\":[%s]}", jobs);
    root = json_loads(st_strbuf_str(&text), 0, NULL);
    assert_non_null(root);
    st_agent_list_done(&w->list);
    number(root);
    assert_ok(st_list_read(root, boards, 0, &w->list, &err));
    json_decref(root);
    w->view.list = &w->list;
}

#define JOB(name, stay, want, more, devices)                                                  \
    "{\"job\":\"" name "\",\"stay\":" #stay ",\"want\":\"" want "\",\"level\":\"whole\"" more \
    ",\"document\":{},\"tasks\":[{\"task\":0,\"devices\":[" devices "]}]}"
#define DEV0 "{\"index\":0}"
#define DEV1 "{\"index\":1}"
#define MIG(name, start)                                                                   \
    "{\"job\":\"" name "\",\"stay\":1,\"want\":\"run\",\"level\":\"mig\",\"document\":{}," \
    "\"tasks\":[{\"task\":0,\"devices\":[{\"index\":0}],\"mig\":{\"profile\":\"3g.40gb\"," \
    "\"start\":" #start "}}]}"

static st_task *have(world *w, const char *job, int stay, st_agent_phase phase, uint16_t devs)
{
    st_task t = {.key = {.stay = stay}, .phase = phase, .place = {.devs = devs, .mig_profile = -1}};

    snprintf(t.key.job, sizeof t.key.job, "%s", job);
    st_vec_push(&w->tasks, t);
    return &w->tasks.v[w->tasks.n - 1];
}

/* What follows, in words: "kill a/1 start b/1 carve 0". */
static const char *plan(world *w, int64_t now)
{
    w->view.tasks = w->tasks.v;
    w->view.n = w->tasks.n;
    st_vec_clear(&w->acts);
    st_strbuf_clear(&w->said);
    st_plan(&w->view, now, &w->acts);
    for (size_t i = 0; i < w->acts.n; i++) {
        const st_act *a = &w->acts.v[i];

        st_strbuf_addf(&w->said, "%s%s ", i ? " " : "", st_act_name(a->kind));
        if (a->kind == ST_ACT_CARVE)
            st_strbuf_addf(&w->said, "%d", a->gpu);
        else
            st_strbuf_addf(&w->said, "%s/%d", a->key.job, a->key.stay);
    }
    return st_strbuf_str(&w->said);
}

static void test_start(void **state)
{
    world w;

    (void)state;
    world_init(&w);
    assert_string_equal(plan(&w, NOW), "");
    hear(&w, JOB("a", 1, "run", "", DEV0) "," JOB("b", 1, "notify", "", DEV1));
    assert_string_equal(plan(&w, NOW), "start a/1 start b/1");
    assert_ptr_equal(w.acts.v[0].order, &w.list.orders.v[0]);
    /* Said again once it runs: nothing. */
    have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    have(&w, "b", 1, ST_PHASE_NOTED, 2)->notified = true;
    assert_string_equal(plan(&w, NOW), "");
    world_done(&w);
    /* Neither what is over nor what should stop, save or pause is started. */
    world_init(&w);
    hear(&w, JOB("a", 1, "stop", "", DEV0) "," JOB("b", 1, "checkpoint", "",
                                                   DEV1) "," JOB("c", 1, "pause", "", ""));
    assert_string_equal(plan(&w, NOW), "");
    hear(&w, "{\"job\":\"a\",\"stay\":1,\"want\":\"run\",\"level\":\"whole\",\"tasks\":"
             "[{\"task\":0,\"over\":true,\"devices\":[]}]}");
    assert_string_equal(plan(&w, NOW), "");
    world_done(&w);
}

static void test_at_most_once(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    hear(&w, JOB("a", 1, "run", "", DEV0));
    t = have(&w, "a", 1, ST_PHASE_ENDED, 1);
    t->gone = t->clean = true;
    /* An exit, reported until it is off the list, also when the list says run once more. */
    assert_string_equal(plan(&w, NOW), "");
    t->phase = ST_PHASE_UNSTARTED;
    assert_string_equal(plan(&w, NOW), "");
    t->phase = ST_PHASE_ENDED;
    t->saved = true;
    assert_string_equal(plan(&w, NOW), "start a/1");
    t->gone = t->clean = false;
    assert_string_equal(plan(&w, NOW), "verify a/1");
    world_done(&w);
}

static void test_receipt(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_ENDED, 1);
    assert_string_equal(plan(&w, NOW), "verify a/1");
    t->gone = t->clean = t->log_done = t->told = true;
    assert_string_equal(plan(&w, NOW), ""); /* no list was heard: nothing is known */
    hear(&w, "");
    t->unlisted_ms = NOW;
    assert_string_equal(plan(&w, NOW), "remove a/1");
    t->log_done = false; /* its last lines are on their way */
    assert_string_equal(plan(&w, NOW), "");
    assert_string_equal(plan(&w, NOW + ST_LOG_WAIT_MS), "remove a/1");
    world_done(&w);
}

static void test_unknown(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    assert_string_equal(plan(&w, NOW), ""); /* stintd is away: it runs on */
    hear(&w, "");
    assert_string_equal(plan(&w, NOW), "stop a/1");
    t->stopped = true;
    t->stop_ms = NOW;
    assert_string_equal(plan(&w, NOW + 9999), "");
    assert_string_equal(plan(&w, NOW + 10000), "kill a/1");
    /* Back on the list too late: the signal cannot be taken back. */
    hear(&w, JOB("a", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW + 10000), "kill a/1");
    world_done(&w);
}

static void test_newer_stay(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    hear(&w, JOB("a", 2, "run", "", DEV1)); /* other devices, but one job is not here twice */
    assert_string_equal(plan(&w, NOW), "stop a/1");
    t->phase = ST_PHASE_ENDED;
    assert_string_equal(plan(&w, NOW), "verify a/1");
    t->gone = t->clean = t->log_done = t->told = true;
    assert_string_equal(plan(&w, NOW), "remove a/1 start a/2");
    world_done(&w);
}

static void test_devices(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    hear(&w, JOB("b", 1, "run", "", DEV0) "," JOB("c", 1, "run", "", DEV1));
    assert_string_equal(plan(&w, NOW), "stop a/1 start c/1");
    t->phase = ST_PHASE_ENDED; /* but not verified */
    assert_string_equal(plan(&w, NOW), "verify a/1 start c/1");
    t->gone = t->clean = true;
    assert_string_equal(plan(&w, NOW), "start b/1 start c/1");
    /* Two at once for one device: the first. */
    hear(&w, JOB("b", 1, "run", "", DEV0) "," JOB("c", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW), "start b/1");
    world_done(&w);
}

static void test_checkpoint(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    hear(&w, JOB("a", 1, "notify", "", DEV0));
    assert_string_equal(plan(&w, NOW), "notify a/1");
    t->notified = true;
    assert_string_equal(plan(&w, NOW), "");
    hear(&w, JOB("a", 1, "checkpoint", ",\"until_ms\":1005000", DEV0));
    assert_string_equal(plan(&w, NOW), "checkpoint a/1");
    t->asked = true;
    assert_string_equal(plan(&w, NOW + 5000), "");
    assert_string_equal(plan(&w, NOW + 5000 + ST_SAVE_SLACK_MS), "kill a/1");
    /* Spared: it runs on, whatever the time. */
    hear(&w, JOB("a", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW + 60000), "");
    world_done(&w);
}

static void test_pause(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    hear(&w, JOB("a", 1, "pause", ",\"until_ms\":1005000", DEV0));
    assert_string_equal(plan(&w, NOW), "checkpoint a/1"); /* where it cannot be paused */
    w.view.can_pause = true;
    t->refused = true; /* or this one cannot */
    assert_string_equal(plan(&w, NOW), "checkpoint a/1");
    t->refused = false;
    assert_string_equal(plan(&w, NOW), "pause a/1");
    t->step = ST_STEP_SAVE; /* under way, and no less so when it is not wanted any more */
    assert_string_equal(plan(&w, NOW), "");
    hear(&w, JOB("a", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW), "");
    t->step = ST_STEP_NONE;
    t->phase = ST_PHASE_PAUSED;
    hear(&w, JOB("a", 1, "pause", "", DEV0));
    assert_string_equal(plan(&w, NOW), "verify a/1");
    t->gone = true;
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    hear(&w, JOB("a", 1, "run", "", DEV0)); /* wanted back at once: nobody reads its memory now */
    assert_string_equal(plan(&w, NOW), "resume a/1");
    t->scanning = true; /* unless somebody does already */
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    t->scanning = false;
    t->clean = true;
    hear(&w, JOB("a", 1, "pause", "", DEV0));
    assert_string_equal(plan(&w, NOW), "");
    hear(&w, JOB("a", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW), "resume a/1");
    assert_ptr_equal(w.acts.v[0].order, &w.list.orders.v[0]);
    t->step = ST_STEP_LOAD;
    t->gone = t->clean = false;
    t->phase = ST_PHASE_RUNNING;
    assert_string_equal(plan(&w, NOW), "");
    hear(&w, JOB("a", 1, "stop", "", DEV0));
    assert_string_equal(plan(&w, NOW), "stop a/1");
    t->step = ST_STEP_NONE;
    t->phase = ST_PHASE_PAUSED;
    hear(&w, "");
    t->stopped = true; /* what is paused hears no signal */
    t->stop_ms = NOW;
    assert_string_equal(plan(&w, NOW), "kill a/1");
    world_done(&w);
}

/* Its device goes to somebody else when it was read, and comes back when they are gone. */
static void test_pause_hands_over(void **state)
{
    world w;
    st_task *a, *b;

    (void)state;
    world_init(&w);
    w.view.can_pause = true;
    a = have(&w, "a", 1, ST_PHASE_PAUSED, 1);
    a->gone = true;
    hear(&w, JOB("a", 1, "pause", "", DEV0) "," JOB("b", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    a->clean = true;
    assert_string_equal(plan(&w, NOW), "start b/1");
    b = have(&w, "b", 1, ST_PHASE_RUNNING, 1);
    a = &w.tasks.v[0];
    hear(&w, JOB("a", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW), "stop b/1");
    b->phase = ST_PHASE_ENDED;
    assert_string_equal(plan(&w, NOW), "verify b/1");
    b->gone = true;
    assert_string_equal(plan(&w, NOW), "scrub b/1");
    b->clean = true;
    assert_string_equal(plan(&w, NOW), "resume a/1");
    /* Two at once: who goes on was here first. */
    hear(&w, JOB("c", 1, "run", "", DEV0) "," JOB("a", 1, "run", "", DEV0));
    assert_string_equal(plan(&w, NOW), "resume a/1");
    world_done(&w);
}

#define OF(tenant) ",\"account\":\"" tenant "\""

static void test_scrub(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_ENDED, 1);
    tenant("acme", t->tenant);
    t->gone = true;
    /* Somebody else waits for it, or nobody does. */
    hear(&w, JOB("b", 1, "run", OF("other"), DEV0));
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    assert_true(w.acts.v[0].scan);
    hear(&w, "");
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    assert_true(w.acts.v[0].scan);
    /* Just ended: the same tenant's next task may be on its way; nobody else is kept waiting. */
    t->ended_ms = NOW - 1999;
    assert_string_equal(plan(&w, NOW), "");
    assert_string_equal(plan(&w, NOW + 1), "scrub a/1");
    hear(&w, JOB("b", 1, "run", OF("other"), DEV0));
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    w.view.scrub = ST_SCRUB_ALWAYS;
    hear(&w, "");
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    w.view.scrub = ST_SCRUB_TENANT;
    t->ended_ms = 0;
    /* The same tenant may have it as it is; that is decided when its task is there. */
    hear(&w, JOB("b", 1, "run", OF("acme"), DEV0));
    assert_string_equal(plan(&w, NOW), "start b/1");
    w.view.scrub = ST_SCRUB_ALWAYS;
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    w.view.scrub = ST_SCRUB_TENANT;
    t->scanning = true; /* memory that is being read is not to be had */
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    t->scanning = false;
    t = have(&w, "b", 1, ST_PHASE_NOTED, 1);
    tenant("acme", t->tenant);
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    assert_false(w.acts.v[0].scan);
    /* Of two GPUs the same tenant gets one: both are read. */
    w.tasks.n = 1;
    w.tasks.v[0].place.devs = 3;
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    assert_true(w.acts.v[0].scan);
    w.view.scrub = ST_SCRUB_NEVER;
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    assert_false(w.acts.v[0].scan);
    world_done(&w);
}

#define TIME(name, tenant)                                                                       \
    "{\"job\":\"" name "\",\"stay\":1,\"want\":\"run\",\"level\":\"time\",\"account\":\"" tenant \
    "\",\"tasks\":[{\"task\":0,\"devices\":[{\"index\":0}]}]}"

static void test_scrub_shared(void **state)
{
    world w;
    st_task *a, *b;

    (void)state;
    world_init(&w);
    have(&w, "a", 1, ST_PHASE_ENDED, 1);
    b = have(&w, "b", 1, ST_PHASE_RUNNING, 1);
    a = &w.tasks.v[0];
    a->gone = true;
    a->place.level = b->place.level = ST_LEVEL_TIME;
    hear(&w, TIME("b", "acme"));
    assert_string_equal(plan(&w, NOW), "scrub a/1");
    assert_false(w.acts.v[0].scan); /* b is on it, and will be read when it leaves */
    b->phase = ST_PHASE_ENDED;
    b->gone = true;
    assert_string_equal(plan(&w, NOW), "scrub a/1 scrub b/1");
    assert_true(w.acts.v[1].scan);
    /* Then others wait; more of the same tenant only while it is being read. */
    a->gone = a->clean = true;
    tenant("acme", b->tenant);
    hear(&w, TIME("c", "other"));
    assert_string_equal(plan(&w, NOW), "scrub b/1");
    hear(&w, TIME("c", "acme"));
    assert_string_equal(plan(&w, NOW), "start c/1");
    b->scanning = true;
    assert_string_equal(plan(&w, NOW), "scrub b/1");
    b->clean = true;
    assert_string_equal(plan(&w, NOW), "start c/1");
    world_done(&w);
}

/* Every way out of every step, from begin to end. */
static void test_steps(void **state)
{
    (void)state;
    assert_int_equal(st_step_after(ST_STEP_SAVE, ST_OUTCOME_WAIT, 1).step, ST_STEP_SAVE);
    assert_int_equal(st_step_after(ST_STEP_SAVE, ST_OUTCOME_OK, 1).step, ST_STEP_FREEZE);
    assert_true(st_step_after(ST_STEP_SAVE, ST_OUTCOME_UNDONE, 1).refused);
    assert_int_equal(st_step_after(ST_STEP_SAVE, ST_OUTCOME_UNDONE, 1).step, ST_STEP_NONE);
    assert_int_equal(st_step_after(ST_STEP_SAVE, ST_OUTCOME_FAILED, 1).step, ST_STEP_UNDO);
    assert_true(st_step_after(ST_STEP_SAVE, ST_OUTCOME_DIED, 1).again);
    assert_int_equal(st_step_after(ST_STEP_SAVE, ST_OUTCOME_DIED, ST_STEP_TRIES).step,
                     ST_STEP_UNDO);
    assert_true(st_step_after(ST_STEP_FREEZE, ST_OUTCOME_OK, 1).paused);
    assert_int_equal(st_step_after(ST_STEP_FREEZE, ST_OUTCOME_FAILED, 1).step, ST_STEP_UNDO);
    assert_true(st_step_after(ST_STEP_UNDO, ST_OUTCOME_OK, 1).refused);
    assert_true(st_step_after(ST_STEP_UNDO, ST_OUTCOME_FAILED, 1).lost);
    assert_true(st_step_after(ST_STEP_UNDO, ST_OUTCOME_DIED, 2).again);
    assert_true(st_step_after(ST_STEP_LOAD, ST_OUTCOME_OK, 1).running);
    assert_true(st_step_after(ST_STEP_LOAD, ST_OUTCOME_FAILED, 1).lost);
    assert_true(st_step_after(ST_STEP_LOAD, ST_OUTCOME_DIED, ST_STEP_TRIES).lost);
    /* Nothing that is over goes on by itself, and nothing is two things at once. */
    for (int step = 0; step < ST_STEP_COUNT; step++)
        for (int outcome = 0; outcome <= ST_OUTCOME_DIED; outcome++)
            for (int tries = 1; tries <= ST_STEP_TRIES; tries++) {
                st_after a = st_step_after((st_agent_step)step, (st_outcome)outcome, tries);
                int ends = a.paused + a.running + a.refused + a.lost;

                assert_true(step == ST_STEP_NONE || outcome == ST_OUTCOME_WAIT ||
                            ends + (a.step != ST_STEP_NONE) == 1);
            }
}

static void test_stop(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_STARTING, 1);
    hear(&w, JOB("a", 1, "stop", "", DEV0));
    assert_string_equal(plan(&w, NOW), "stop a/1");
    t->stopped = true;
    t->stop_ms = NOW;
    assert_string_equal(plan(&w, NOW + 10000), "kill a/1");
    t->phase = ST_PHASE_ENDED;
    t->gone = t->clean = true;
    assert_string_equal(plan(&w, NOW), ""); /* kept until it is off the list */
    world_done(&w);
}

static void test_lease(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    w.view.lease_over = true; /* even before any list was heard */
    assert_string_equal(plan(&w, NOW), "kill a/1");
    assert_true(w.acts.v[0].fence);
    hear(&w, JOB("a", 1, "run", "", DEV0) "," JOB("b", 1, "run", "", DEV1));
    assert_string_equal(plan(&w, NOW), "kill a/1");
    t->phase = ST_PHASE_ENDED;
    t->gone = t->clean = true;
    assert_string_equal(plan(&w, NOW), ""); /* and nothing is started */
    w.view.lease_over = false;
    assert_string_equal(plan(&w, NOW), "start b/1");
    world_done(&w);
}

static void test_slices(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    hear(&w, MIG("a", 0) "," MIG("b", 4));
    assert_string_equal(plan(&w, NOW), "carve 0 start a/1 start b/1");
    assert_int_equal(w.acts.v[0].carve[ST_MIG_3G], 1 << 0 | 1 << 4);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    t->place = w.list.orders.v[0].place;
    w.view.carved.at[0][ST_MIG_3G] = 1 << 0;
    assert_string_equal(plan(&w, NOW), "carve 0 start b/1");
    assert_int_equal(w.acts.v[0].carve[ST_MIG_3G], 1 << 0 | 1 << 4);
    w.view.carved.at[0][ST_MIG_3G] = 1 << 0;
    /* A slice goes when its task is verified gone, not before. */
    hear(&w, "");
    t->phase = ST_PHASE_ENDED;
    assert_string_equal(plan(&w, NOW), "verify a/1");
    t->gone = t->clean = true;
    assert_string_equal(plan(&w, NOW), "carve 0");
    assert_int_equal(w.acts.v[0].carve[ST_MIG_3G], 0);
    /* One that lies across it waits. */
    t->gone = t->clean = false;
    hear(&w, MIG("c", 0));
    assert_string_equal(plan(&w, NOW), "verify a/1");
    world_done(&w);
}

static void test_list(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"epoch\":1}",
        "{\"epoch\":1,\"jobs\":[{}]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"x\",\"want\":\"run\",\"account\":\"a\",\"tasks\":[]}]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"x\",\"want\":\"run\",\"tenant\":{\"id\":0},\"tasks\":[]}"
        "]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"x\",\"want\":\"run\",\"tenant\":{\"id\":4294967295},"
        "\"tasks\":[]}]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"../x\",\"want\":\"run\"}]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"x\",\"want\":\"fly\"}]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"x\",\"want\":\"run\",\"level\":\"whole\","
        "\"tasks\":[{\"task\":0,\"devices\":[{\"index\":16}]}]}]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"x\",\"want\":\"run\",\"level\":\"mig\",\"tasks\":"
        "[{\"task\":0,\"devices\":[{\"index\":0}],\"mig\":{\"profile\":\"9g\",\"start\":0}}]}]}",
        "{\"epoch\":1,\"jobs\":[{\"job\":\"x\",\"want\":\"run\",\"level\":\"mps\","
        "\"share\":1e300,\"tasks\":[{\"task\":0,\"devices\":[{\"index\":0}]}]}]}",
    };
    world w;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        json_t *root = json_loads(bad[i], 0, NULL);
        st_agent_list list;
        st_err err = {0};

        assert_non_null(root);
        assert_true(st_list_read(root, boards, 0, &list, &err) < 0);
        assert_true(strstr(err.msg, "list") != NULL);
        json_decref(root);
    }
    world_init(&w);
    hear(&w, "{\"job\":\"x\",\"stay\":3,\"want\":\"run\",\"level\":\"time\",\"deadline_ms\":9000,"
             "\"document\":{\"signal\":\"USR1\",\"env\":{\"STINT_NOTIFY_SIGNAL\":\"SIGUSR2\"}},"
             "\"tasks\":[{\"task\":5,\"local_rank\":1,\"devices\":[{\"index\":1}]}]}");
    assert_int_equal(w.list.orders.v[0].signal, SIGUSR1);
    assert_int_equal(w.list.orders.v[0].notify_signal, SIGUSR2);
    assert_int_equal(w.list.orders.v[0].key.task, 5);
    assert_int_equal(w.list.orders.v[0].place.devs, 2);
    assert_int_equal(w.list.orders.v[0].deadline_ms, 9000);
    hear(&w, "{\"job\":\"a\",\"stay\":1,\"want\":\"run\",\"level\":\"whole\","
             "\"document\":{\"notify_signal\":\"HUP\",\"env\":{\"STINT_NOTIFY_SIGNAL\":\"USR2\"}},"
             "\"tasks\":[{\"task\":0,\"devices\":[{\"index\":0}]}]}");
    assert_int_equal(w.list.orders.v[0].notify_signal, SIGHUP); /* the document's own key counts */
    world_done(&w);
    assert_int_equal(st_signal_parse("TERM"), SIGTERM);
    assert_int_equal(st_signal_parse("12"), 12);
    assert_int_equal(st_signal_parse("12x"), -1);
    assert_int_equal(st_signal_parse("SIGNOPE"), -1);
}

static void test_epoch(void **state)
{
    (void)state;
    assert_true(st_epoch_ok(0, 1));
    assert_true(st_epoch_ok(4, 4));
    assert_true(st_epoch_ok(4, 5));
    assert_false(st_epoch_ok(4, 3));
}

#define MPS(name, more)                                                                  \
    "{\"job\":\"" name "\",\"stay\":1,\"want\":\"run\",\"level\":\"mps\",\"share\":0.5," \
    "\"document\":{}" more ",\"tasks\":[{\"task\":0,\"devices\":[{\"index\":0}]}]}"

static void mps_is_shared_within_a_trust_domain_only(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    t->place.level = ST_LEVEL_MPS;
    tenant("acme", t->place.domain);
    hear(&w, MPS("a", "") "," MPS("b", ",\"account\":\"vision\",\"domain\":\"acme\""));
    assert_string_equal(plan(&w, NOW), "start b/1");
    hear(&w, MPS("a", "") "," MPS("b", ",\"account\":\"acme\""));
    assert_string_equal(plan(&w, NOW), "start b/1");
    hear(&w, MPS("a", "") "," MPS("b", ",\"account\":\"acme\",\"domain\":\"other\""));
    assert_string_equal(plan(&w, NOW), "");
    /* Two that start at once, likewise; and time slices are nobody's domain. */
    w.tasks.n = 0;
    hear(&w, MPS("b", ",\"domain\":\"x\"") "," MPS("c", ",\"domain\":\"y\""));
    assert_string_equal(plan(&w, NOW), "start b/1");
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    t->place.level = ST_LEVEL_TIME;
    hear(&w, "{\"job\":\"a\",\"stay\":1,\"want\":\"run\",\"level\":\"time\",\"share\":0.5,"
             "\"domain\":\"x\",\"tasks\":[{\"task\":0,\"devices\":[{\"index\":0}]}]},"
             "{\"job\":\"b\",\"stay\":1,\"want\":\"run\",\"level\":\"time\",\"share\":0.5,"
             "\"domain\":\"y\",\"tasks\":[{\"task\":0,\"devices\":[{\"index\":0}]}]}");
    assert_string_equal(plan(&w, NOW), "start b/1");
    world_done(&w);
}

static void a_share_is_read_exactly(void **state)
{
    world w;

    (void)state;
    world_init(&w);
    hear(&w, MPS("a", ",\"vram_mib\":20480,\"account\":\"a b/../c\""));
    assert_int_equal(w.list.orders.v[0].place.share_m, 500);
    assert_int_equal(w.list.orders.v[0].place.vram_mib, 20480);
    /* It becomes a folder's name. */
    assert_memory_equal(w.list.orders.v[0].place.domain, "t.", 2);
    assert_memory_equal(w.list.orders.v[0].place.domain, "t.", 2);
    world_done(&w);
}

/* Whoever killed it, and whatever the list wants of it. */
static void what_survives_a_kill_is_killed_again(void **state)
{
    world w;
    st_task *t;

    (void)state;
    world_init(&w);
    hear(&w, JOB("a", 1, "run", "", DEV0));
    t = have(&w, "a", 1, ST_PHASE_RUNNING, 1);
    t->killed = true;
    t->now.kill_ms = NOW;
    assert_string_equal(plan(&w, NOW + ST_KILL_AGAIN_MS - 1), "");
    assert_string_equal(plan(&w, NOW + ST_KILL_AGAIN_MS), "kill a/1");
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_survives_a_kill_is_killed_again),
        cmocka_unit_test(mps_is_shared_within_a_trust_domain_only),
        cmocka_unit_test(a_share_is_read_exactly),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_at_most_once),
        cmocka_unit_test(test_receipt),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_newer_stay),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_hands_over),
        cmocka_unit_test(test_scrub),
        cmocka_unit_test(test_scrub_shared),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_lease),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_epoch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
