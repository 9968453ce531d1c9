/*
 * What a node must not forget survives being written and read; what makes no sense is refused. And
 * what the simulated executor and the launch of a task make of their records.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/exec.h"
#include "agent/files.h"
#include "agent/journal.h"
#include "agent/launch.h"
#include "base/testing.h"

static void test_round_trip(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    st_journal a = {.epoch = 9}, b = {0};
    st_task t = {.key = {"j1", 2, 3},
                 .attempt = 1,
                 .phase = ST_PHASE_ENDED,
                 .place = {.devs = 0x81,
                           .level = ST_LEVEL_MIG,
                           .mig_profile = 3,
                           .mig_start = 4,
                           .domain = "lab",
                           .share_m = 250,
                           .vram_mib = 4096},
                 .signal = 15,
                 .tenant = "acme",
                 .cpu_m = 2500,
                 .pin = {.own = {.w = {0x3}}, .common = {.w = {0, 1}}},
                 .asked = true,
                 .saved = true,
                 .gone = true,
                 .clean = true,
                 .step = ST_STEP_LOAD,
                 .npids = 2,
                 .pid = {{77, 123456789}, {78, 2}},
                 .exit_code = 7,
                 .ended_ms = 1234567890123,
                 .log_sent = 99,
                 .used = {.sum = {.has = 5, .v = {1000, 0, 30}}, .rest = {0, 0, 7}, .at_ms = 12},
                 .scrub = {.result = ST_SCRUB_CLEAN, .bytes = 4096, .ms = 3},
                 .reason = "a \"reason\"\n"};
    st_err err = {0};

    (void)state;
    st_vec_push(&a.tasks, t);
    st_journal_write(&a, &text);
    assert_ok(st_journal_read(text.s, text.n, &b, &err));
    assert_int_equal(b.epoch, 9);
    assert_int_equal(b.tasks.n, 1);
    st_journal_write(&b, &again);
    assert_string_equal(again.s, text.s);
    assert_int_equal(b.tasks.v[0].phase, ST_PHASE_ENDED);
    assert_int_equal(b.tasks.v[0].place.devs, 0x81);
    assert_int_equal(b.tasks.v[0].place.mig_start, 4);
    assert_int_equal(b.tasks.v[0].cpu_m, 2500);
    assert_memory_equal(&b.tasks.v[0].pin, &t.pin, sizeof t.pin);
    assert_string_equal(b.tasks.v[0].place.domain, "lab");
    assert_int_equal(b.tasks.v[0].place.share_m, 250);
    assert_int_equal(b.tasks.v[0].place.vram_mib, 4096);
    assert_int_equal(b.tasks.v[0].ended_ms, t.ended_ms);
    assert_true(b.tasks.v[0].saved && b.tasks.v[0].clean && !b.tasks.v[0].killed);
    assert_memory_equal(&b.tasks.v[0].used, &t.used, sizeof t.used);
    assert_int_equal(b.tasks.v[0].scrub.bytes, 4096);
    assert_int_equal(b.tasks.v[0].step, ST_STEP_LOAD);
    assert_int_equal(b.tasks.v[0].npids, 2);
    assert_int_equal(b.tasks.v[0].pid[0].birth, 123456789);
    assert_string_equal(b.tasks.v[0].reason, t.reason);
    assert_ptr_equal(st_journal_find(&b, &t.key), &b.tasks.v[0]);
    t.key.stay = 1;
    assert_null(st_journal_find(&b, &t.key));
    st_journal_done(&a);
    st_journal_done(&b);
}

static size_t size_of(const char *dir, const char *name)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    return st_file_whole(dir, name, &text, NULL) == 0 ? text.n : 0;
}

/* What a change costs does not grow with what is there; what was cut short by a crash is left out. */
static void test_log(void **state)
{
    char dir[] = "/tmp/stint-journal-XXXXXX", command[80];
    st_journal a = {.epoch = 1}, b = {0};
    st_task t = {.key = {"j", 1, 0}, .place = {.mig_profile = -1}};
    size_t whole, first;
    st_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    for (t.key.task = 0; t.key.task < 500; t.key.task++)
        st_journal_add(&a, &t);
    assert_ok(st_journal_save(&a, dir, true, &err));
    whole = size_of(dir, "tasks.json");
    a.tasks.v[7].phase = ST_PHASE_ENDED;
    assert_ok(st_journal_save(&a, dir, true, &err));
    first = size_of(dir, "tasks.1.log");
    assert_true(first > 0 && first < whole / 100);
    assert_int_equal(size_of(dir, "tasks.json"), whole);
    assert_ok(st_journal_save(&a, dir, true, &err)); /* nothing has changed */
    assert_int_equal(size_of(dir, "tasks.1.log"), first);
    st_journal_remove(&a, st_journal_find(&a, &a.tasks.v[3].key));
    assert_ok(st_journal_save(&a, dir, true, &err));
    /* A line that has no end, as a crash leaves it. */
    assert_ok(st_file_append(dir, "tasks.1.log", (int64_t)size_of(dir, "tasks.1.log"), "{\"ta", 4,
                             true, &err));
    assert_ok(st_journal_load(dir, &b, &err));
    assert_int_equal(b.tasks.n, 499);
    assert_int_equal(b.tasks.v[6].phase, ST_PHASE_ENDED);
    b.tasks.v[0].phase = ST_PHASE_PAUSED;
    assert_ok(st_journal_save(&b, dir, true, &err));
    st_journal_done(&a);
    assert_ok(st_journal_load(dir, &a, &err));
    assert_int_equal(a.tasks.v[0].phase, ST_PHASE_PAUSED);
    /* The log is folded when it is longer than the rest. */
    for (int i = 0; i < 3000; i++) {
        a.tasks.v[1].ended_ms = i + 1;
        assert_ok(st_journal_save(&a, dir, false, &err));
    }
    assert_int_equal(size_of(dir, "tasks.1.log"), 0);
    assert_true(size_of(dir, "tasks.2.log") < 3 * whole);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    st_journal_done(&a);
    st_journal_done(&b);
}

/* After a reboot, and from journals that had UTC. */
static void test_clock(void **state)
{
    st_journal j = {.clock = {.boot = "old", .wall_of_ms = 1000000}};
    st_journal_clock now = {.boot = "new", .wall_of_ms = 1600000};

    (void)state;
    st_vec_push(&j.tasks, (st_task){.started_ms = 500, .ended_ms = 600000, .stop_ms = 0});
    st_journal_rebase(&j, &now);
    assert_int_equal(j.tasks.v[0].started_ms, 500 - 600000);
    assert_int_equal(j.tasks.v[0].ended_ms, -1); /* 0 would stand for none */
    assert_int_equal(j.tasks.v[0].stop_ms, 0);
    st_journal_rebase(&j, &now);
    assert_int_equal(j.tasks.v[0].started_ms, 500 - 600000);
    st_journal_done(&j);
}

static void test_bad(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"tasks\":[{}]}",
        "{\"tasks\":[{\"job\":\"a\",\"phase\":\"asleep\"}]}",
        "{\"tasks\":[{\"job\":\"a\",\"phase\":\"ended\",\"mig\":77}]}",
    };
    st_journal j;
    st_err err;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_int_equal(st_journal_read(bad[i], strlen(bad[i]), &j, &err), -ST_ECORRUPT);
}

static void test_files(void **state)
{
    char dir[] = "/tmp/stint-journal-XXXXXX", deep[64], command[80];
    st_journal a = {.epoch = 3}, b = {0};
    st_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(deep, sizeof deep, "%s/a/b", dir);
    assert_ok(st_dir_make(deep, &err));
    assert_ok(st_journal_load(deep, &b, &err)); /* none yet */
    assert_int_equal(b.epoch, 0);
    assert_ok(st_journal_save(&a, deep, true, &err));
    assert_ok(st_journal_load(deep, &b, &err));
    assert_int_equal(b.epoch, 3);
    assert_ok(st_file_replace(deep, "tasks.json", "x", 1, false, &err));
    assert_fails(st_journal_load(deep, &b, &err), ST_ECORRUPT, "tasks.json");
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* ---- the simulated executor ---------------------------------------------------------------- */

static void begin(st_exec *e, st_task *t, const char *sim)
{
    char text[128];
    json_t *job;
    st_order o = {0};
    st_launch l = {.order = &o};
    st_err err = {0};

    snprintf(text, sizeof text, "{\"document\":{\"sim\":%s}}", sim);
    job = json_loads(text, 0, NULL);
    assert_non_null(job);
    o.job = job;
    *t = (st_task){.key = {"j", 1, 0}, .signal = SIGTERM};
    assert_ok(e->ops->start(e, t, &l, 1000, &err));
    json_decref(job);
}

static void test_sim(void **state)
{
    ST_CLEANUP(st_exec_freep) st_exec *e = st_exec_sim_new();
    st_err err = {0};
    st_task t;

    (void)state;
    begin(e, &t, "{\"run\":\"2s\",\"exit\":3}");
    assert_false(e->ops->look(e, &t, 2999));
    assert_int_equal(e->ops->due(e, &t, 2999), 3000);
    assert_true(e->ops->look(e, &t, 99000)); /* nobody looked; its end is the true one */
    assert_int_equal(t.ended_ms, 3000);
    assert_int_equal(t.exit_code, 3);
    assert_false(t.saved);

    begin(e, &t, "{\"run\":100,\"save\":\"1s\"}");
    t.asked = true;
    assert_ok(e->ops->signal(e, &t, SIGTERM, 5000, &err));
    assert_true(e->ops->look(e, &t, 6000));
    assert_true(t.saved);

    begin(e, &t, "{\"run\":100}");
    t.asked = t.killed = true;
    assert_ok(e->ops->kill(e, &t, "late", 6000, &err));
    assert_false(t.saved);
    assert_int_equal(t.exit_signal, SIGKILL);
    assert_string_equal(t.reason, "late");

    begin(e, &t, "{\"run\":10}"); /* pauses do not count */
    assert_ok(e->ops->pause(e, &t, 4000, &err));
    assert_false(e->ops->look(e, &t, 500000));
    assert_ok(e->ops->resume(e, &t, 600000, &err));
    assert_false(e->ops->look(e, &t, 606999));
    assert_true(e->ops->look(e, &t, 607000));

    t = (st_task){.key = {"j", 1, 0}, .phase = ST_PHASE_NOTED};
    assert_true(e->ops->look(e, &t, 1));
    assert_int_equal(t.exit_code, ST_EXIT_LOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_bad),   cmocka_unit_test(test_log),
        cmocka_unit_test(test_clock),      cmocka_unit_test(test_files), cmocka_unit_test(test_sim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
