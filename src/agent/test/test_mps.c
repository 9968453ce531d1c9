/*
 * MPS daemons of a node, with simulated GPUs and tests/lib/fake_mps_control.py for the vendor's program: when they
 * come and go, what their servers are told, the mode of the GPU, what is refused. Needs root, for mounts.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/testing.h"
#include "gpu/sim.h"

typedef struct world {
    st_agent_conf conf;
    st_process process;
    st_host host;
    st_exec exec;
    char dir[32], control[64];
} world;

static const st_exec_ops real_ops = {.name = "test", .real = true};

/* Until no worker is at it. */
static void pump(world *w)
{
    for (bool busy = true; busy;) {
        busy = false;
        st_workers_turn(w->process.workers);
        for (size_t i = 0; i < w->host.daemons.n; i++)
            busy = busy || w->host.daemons.v[i].work != ST_DAEMON_IDLE;
        if (busy)
            st_poll_wait(w->process.poll, 20);
    }
}

/* As the turns of a node do: tried again until it is there, or refused. */
static int ready(world *w, const st_task *t, st_mps_client *ret, st_err *err)
{
    int r;

    while ((r = st_host_mps_ready(&w->host, &t->place, err)) > 0)
        pump(w);
    return r < 0 ? r : st_host_mps_client(&w->host, t, ret, err);
}

static int cleared(world *w, const st_task_place *p, st_err *err)
{
    int r;

    while ((r = st_host_mps_clear(&w->host, p, err)) > 0)
        pump(w);
    return r;
}

static void left(world *w, const st_task *t)
{
    while (!st_host_mps_leave(&w->host, t))
        pump(w);
}

/* Nobody waits to start any more. */
static void tidy(world *w)
{
    for (size_t i = 0; i < w->host.daemons.n; i++)
        w->host.daemons.v[i].wanted_ms = 0;
    st_host_mps_tidy(&w->host, 1);
    pump(w);
}

/* With what the journal of an earlier agent has. */
static void reopen_host(world *w, st_task kept)
{
    st_host *h = &w->host;
    st_gpu_sim_options sim = {.profile = "h100x2", .node = "t"};
    st_err err = {0};

    *h = (st_host){.process = &w->process, .name = "t", .exec = &w->exec, .sim_gpus = true};
    snprintf(h->dir, sizeof h->dir, "%s", w->dir);
    assert_ok(st_gpu_sim_open(&sim, &h->gpu, &err));
    assert_ok(st_gpu_inventory_get(h->gpu, &h->inv, &err));
    if (kept.key.job[0])
        st_vec_push(&h->journal.tasks, kept);
    assert_ok(st_host_mps_open(h, &err));
}

static void open_host(world *w)
{
    reopen_host(w, (st_task){0});
}

static void close_host(world *w)
{
    st_gpu_free(w->host.gpu);
    st_journal_done(&w->host.journal);
    st_vec_free(&w->host.daemons);
}

/* Root, and a root that may mount. */
static bool can_mount(void)
{
    pid_t pid = fork();
    int status = 1;

    if (pid == 0)
        _exit(unshare(CLONE_NEWNS) != 0 ||
              mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    const char *source = getenv("STINT_SOURCE");
    char copy[512];

    if (!can_mount() || !source) {
        printf("no MPS daemons are tried: not allowed to mount here\n");
        free(w);
        *state = NULL;
        return 0;
    }
    strcpy(w->dir, "/tmp/stint-test-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->control, sizeof w->control, "%s/control", w->dir);
    snprintf(copy, sizeof copy, "cp '%s/tests/lib/fake_mps_control.py' %s", source, w->control);
    assert_int_equal(system(copy), 0);
    assert_int_equal(chmod(w->control, 0755), 0);
    w->conf.mps_control = w->control;
    w->process.conf = &w->conf;
    w->process.poll = st_poll_new();
    w->process.workers = st_workers_new(w->process.poll);
    w->exec.ops = &real_ops;
    open_host(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    char command[64];

    if (!w)
        return 0;
    w->host.journal.tasks.n = 0;
    tidy(w);
    close_host(w);
    st_workers_free(w->process.workers);
    st_poll_free(w->process.poll);
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    assert_int_equal(system(command), 0);
    free(w);
    return 0;
}

#define WORLD             \
    world *w = *state;    \
    st_host *h;           \
    st_mps_client client; \
    st_err err = {0};     \
    if (!w)               \
        skip();           \
    h = &w->host

static st_task task_of(const char *job, const char *domain, int gpu, int share_m)
{
    st_task t = {.phase = ST_PHASE_RUNNING,
                 .place = {.devs = (uint16_t)(1u << gpu),
                           .level = ST_LEVEL_MPS,
                           .mig_profile = -1,
                           .share_m = share_m}};

    snprintf(t.key.job, sizeof t.key.job, "%s", job);
    snprintf(t.place.domain, sizeof t.place.domain, "%s", domain);
    return t;
}

static st_task *task(world *w, const char *job, const char *domain, int gpu, int share_m)
{
    st_vec_push(&w->host.journal.tasks, task_of(job, domain, gpu, share_m));
    return &w->host.journal.tasks.v[w->host.journal.tasks.n - 1];
}

static int mode(world *w, int gpu)
{
    st_gpu_inventory inv;
    st_err err = {0};

    assert_ok(st_gpu_inventory_get(w->host.gpu, &inv, &err));
    return inv.gpu[gpu].mode;
}

static bool told(world *w, const char *line)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_err err = {0};

    assert_ok(st_file_load(w->dir, "control.log", &text, &err));
    return strstr(st_strbuf_str(&text), line) != NULL;
}

static void the_gpu_is_exclusive_as_long_as_a_daemon_has_it(void **state)
{
    WORLD;
    st_task *t = task(w, "a", "t.1", 0, 500);

    assert_ok(st_host_mps_check(h, &t->place, &err));
    assert_ok(ready(w, t, &client, &err));
    assert_int_equal(h->daemons.n, 1);
    assert_int_equal(mode(w, 0), ST_GPU_MODE_EXCLUSIVE);
    assert_int_equal(mode(w, 1), ST_GPU_MODE_DEFAULT);
    assert_int_equal(client.limits.percent, 50);
    assert_int_equal(client.limits.mem_mib, h->inv.gpu[0].vram_mib / 2);
    assert_false(st_host_mps_leave(h, t)); /* a worker is at it */
    left(w, t);
    assert_int_equal(h->daemons.n, 0);
    assert_int_equal(mode(w, 0), ST_GPU_MODE_DEFAULT);
    assert_true(told(w, "0-t.1: quit"));
}

static void the_server_has_the_largest_grant_of_those_who_are_there(void **state)
{
    WORLD;
    st_task *t = task(w, "a", "t.1", 0, 255);

    t->place.vram_mib = 4096;
    assert_ok(ready(w, t, &client, &err));
    assert_int_equal(client.limits.percent, 25); /* never more than was granted */
    t = task(w, "b", "t.1", 0, 500);
    t->place.vram_mib = 1024;
    assert_ok(ready(w, t, &client, &err));
    assert_int_equal(client.limits.mem_mib, 1024);
    assert_int_equal(h->daemons.v[0].limits.percent, 50);
    assert_int_equal(h->daemons.v[0].limits.mem_mib, 4096);
    assert_true(told(w, "0-t.1: set_default_active_thread_percentage 50\n"));
    /* The larger one goes, and the rest is tightened. */
    t->phase = ST_PHASE_ENDED;
    assert_true(st_host_mps_leave(h, t)); /* the other still needs it */
    t->clean = true;
    tidy(w);
    assert_int_equal(h->daemons.n, 1);
    assert_int_equal(h->daemons.v[0].limits.percent, 25);
}

static void what_an_earlier_agent_left_is_found_or_ended(void **state)
{
    WORLD;

    assert_ok(ready(w, task(w, "a", "t.1", 0, 500), &client, &err));
    assert_ok(ready(w, task(w, "b", "t.2", 1, 500), &client, &err));
    close_host(w);
    reopen_host(w, task_of("b", "t.2", 1, 500));
    assert_int_equal(h->daemons.n, 2);
    tidy(w);
    assert_int_equal(h->daemons.n, 1); /* nobody needs the other one */
    assert_string_equal(h->daemons.v[0].domain, "t.2");
    assert_int_equal(h->daemons.v[0].limits.percent, 50); /* set again, and read back */
    assert_int_equal(mode(w, 0), ST_GPU_MODE_DEFAULT);
}

static void another_domain_and_other_levels_find_the_gpu_free(void **state)
{
    WORLD;
    st_task_place whole = {.devs = 2, .level = ST_LEVEL_WHOLE, .mig_profile = -1};
    st_task *t = task(w, "a", "t.1", 0, 500);

    assert_ok(ready(w, t, &client, &err));
    assert_ok(cleared(w, &whole, &err)); /* on the other GPU */
    assert_ok(cleared(w, &t->place, &err));
    assert_int_equal(h->daemons.n, 1);
    whole.devs = 1;
    assert_ok(cleared(w, &whole, &err));
    assert_int_equal(h->daemons.n, 0);
    assert_int_equal(mode(w, 0), ST_GPU_MODE_DEFAULT);
    /* Time slices take it out of a mode that somebody left. */
    assert_ok(st_gpu_set_mode(h->gpu, 0, ST_GPU_MODE_EXCLUSIVE, &err));
    assert_ok(st_gpu_inventory_get(h->gpu, &h->inv, &err));
    whole.level = ST_LEVEL_TIME;
    assert_ok(st_host_mps_check(h, &whole, &err));
    assert_int_equal(mode(w, 0), ST_GPU_MODE_DEFAULT);
}

static void what_the_node_lacks_is_refused(void **state)
{
    WORLD;
    st_task *t = task(w, "a", "t.1", 0, 500);

    t->place.devs = 3;
    assert_fails(st_host_mps_check(h, &t->place, &err), ST_EINVAL, "one GPU");
    t->place.devs = 1;
    h->inv.cuda = 11040;
    assert_fails(st_host_mps_check(h, &t->place, &err), ST_EDOWN, "CUDA 11.4");
    h->inv.cuda = 13000;
    h->inv.gpu[0].cc = 61;
    assert_fails(st_host_mps_check(h, &t->place, &err), ST_EDOWN, "6.1");
    h->inv.gpu[0].cc = 90;
    w->conf.mps_control = "/no/such/program";
    assert_fails(st_host_mps_check(h, &t->place, &err), ST_ENOENT, "/no/such/program");
    w->conf.mps_control = w->control;
    assert_ok(st_file_replace(w->dir, "control.mood", "lie", 3, false, &err));
    assert_ok(st_host_mps_check(h, &t->place, &err));
    assert_fails(ready(w, t, &client, &err), ST_EDOWN, "and has 1M");
    pump(w);
    assert_int_equal(h->daemons.n, 0); /* and nothing of it is left */
    assert_int_equal(mode(w, 0), ST_GPU_MODE_DEFAULT);
}

/* What takes the vendor's program for ever takes us no time at all. */
static void a_program_that_hangs_keeps_nobody_waiting(void **state)
{
    WORLD;
    st_task *t = task(w, "a", "t.1", 0, 500);
    int64_t began = st_boot_ms();
    int turns = 0;

    (void)client;
    assert_ok(st_file_replace(w->dir, "control.mood", "hang", 4, false, &err));
    t->clean = true; /* it is not noted yet */
    while (st_host_mps_ready(h, &t->place, &err) == 1) {
        st_host_mps_tidy(h, st_boot_ms());
        st_workers_turn(w->process.workers);
        st_poll_wait(w->process.poll, 10);
        turns++;
    }
    assert_int_equal(err.code, ST_EDOWN);
    assert_non_null(strstr(err.msg, "did not answer"));
    /* Turns of ten milliseconds went on all the while; half of them may be lost to a busy machine. */
    assert_true(turns > (st_boot_ms() - began) / 20);
    while (h->daemons.n > 0)
        tidy(w);
    assert_int_equal(mode(w, 0), ST_GPU_MODE_DEFAULT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_gpu_is_exclusive_as_long_as_a_daemon_has_it),
        TEST(the_server_has_the_largest_grant_of_those_who_are_there),
        TEST(what_an_earlier_agent_left_is_found_or_ended),
        TEST(another_domain_and_other_levels_find_the_gpu_free),
        TEST(what_the_node_lacks_is_refused),
        TEST(a_program_that_hangs_keeps_nobody_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
