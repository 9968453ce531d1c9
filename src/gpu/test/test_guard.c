/*
 * A driver that hangs: who asks is answered in time, hears what hangs, and is served again when it is over.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing.h"
#include "gpu/guard.h"
#include "gpu/sim.h"

/* One GPU whose samples wait for the door to open. */
typedef struct door {
    st_gpu gpu;
    st_gpu *sim;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool shut, opening;
    int inside, samples, freed;
} door;

static void pass(door *d)
{
    pthread_mutex_lock(&d->lock);
    d->inside++;
    pthread_cond_broadcast(&d->moved);
    while (d->shut)
        pthread_cond_wait(&d->moved, &d->lock);
    d->inside--;
    d->samples++;
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->lock);
}

static void set(door *d, bool shut)
{
    pthread_mutex_lock(&d->lock);
    d->shut = shut;
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->lock);
}

static void wait_until(door *d, int samples, int freed)
{
    pthread_mutex_lock(&d->lock);
    while (d->samples < samples || d->freed < freed)
        pthread_cond_wait(&d->moved, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static int door_sample(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err)
{
    door *d = (door *)g;

    pass(d);
    return st_gpu_sample_get(d->sim, gpu, gi, now_ms, ret, err);
}

static int door_inventory(st_gpu *g, st_gpu_inventory *ret, st_err *err)
{
    return st_gpu_inventory_get(((door *)g)->sim, ret, err);
}

static int door_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err)
{
    return st_gpu_procs(((door *)g)->sim, gpu, buf, room, ret_n, err);
}

static int door_set_mode(st_gpu *g, int gpu, st_gpu_mode mode, st_err *err)
{
    (void)g;
    (void)mode;
    return st_fail(err, ST_ESTATE, "GPU %d: not in this mood", gpu);
}

static void door_free(st_gpu *g)
{
    door *d = (door *)g;

    pthread_mutex_lock(&d->lock);
    d->freed++;
    pthread_cond_broadcast(&d->moved);
    pthread_mutex_unlock(&d->lock);
}

static const st_gpu_ops ops = {
    .name = "door",
    .free = door_free,
    .inventory = door_inventory,
    .sample = door_sample,
    .procs = door_procs,
    .set_mode = door_set_mode,
};

static int door_open(const void *ctx, st_gpu **ret, st_err *err)
{
    door *d = (door *)(uintptr_t)ctx;

    (void)err;
    if (d->opening)
        pass(d);
    *ret = &d->gpu;
    return 0;
}

static door *new_door(void)
{
    st_gpu_sim_options options = {.profile = "h200x2", .node = "n1"};
    door *d = calloc(1, sizeof *d);
    st_err err = {0};

    assert_ok(st_gpu_sim_open(&options, &d->sim, &err));
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->moved, NULL);
    d->gpu = (st_gpu){.ops = &ops, .n = 2};
    return d;
}

static void free_door(door *d)
{
    st_gpu_free(d->sim);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->moved);
    free(d);
}

static const st_gpu_limits soon = {.read_ms = 500, .change_ms = 500};
static const st_gpu_limits late = {.read_ms = 60000, .change_ms = 60000};

static void what_goes_through_is_the_driver_s(void **state)
{
    st_gpu_load load = {.pid = 4711, .mem_mib = 100, .busy_m = 500};
    door *d = new_door();
    st_gpu_inventory inv;
    st_gpu_sample sample;
    st_gpu_proc procs[2];
    char what[64];
    st_err err = {0};
    size_t n = 0;
    st_gpu *g;

    (void)state;
    assert_ok(st_gpu_sim_load(d->sim, 1, ST_GPU_WHOLE, 7, &load, 1000, &err));
    assert_ok(st_gpu_guard_open(door_open, d, &late, &g, &err));
    assert_string_equal(st_gpu_driver(g), "door");
    assert_int_equal(g->n, 2);
    assert_ok(st_gpu_inventory_get(g, &inv, &err));
    assert_string_equal(inv.gpu[1].type, "h200");
    assert_ok(st_gpu_sample_get(g, 0, ST_GPU_WHOLE, 2000, &sample, &err));
    assert_int_equal(sample.at_ms, 2000);
    assert_ok(st_gpu_procs(g, 1, procs, 2, &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(procs[0].pid, 4711);
    assert_fails(st_gpu_set_mode(g, 0, ST_GPU_MODE_EXCLUSIVE, &err), ST_ESTATE, "not in this mood");
    assert_fails(st_gpu_sample_get(g, 2, ST_GPU_WHOLE, 2000, &sample, &err), ST_ENOENT, "no GPU 2");
    st_gpu_hangs(g, what);
    assert_string_equal(what, "");
    st_gpu_hangs(d->sim, what); /* of one that is not guarded, too */
    assert_string_equal(what, "");
    st_gpu_free(g);
    wait_until(d, 1, 1);
    free_door(d);
}

static void what_hangs_is_given_up_and_named(void **state)
{
    door *d = new_door();
    st_gpu_sample sample = {.at_ms = -5};
    st_gpu_inventory inv;
    char what[64];
    st_err err = {0};
    st_gpu *g;

    (void)state;
    assert_ok(st_gpu_guard_open(door_open, d, &soon, &g, &err));
    set(d, true);
    assert_fails(st_gpu_sample_get(g, 1, ST_GPU_WHOLE, 1, &sample, &err), ST_EDOWN,
                 "does not answer: sample of GPU 1");
    assert_int_equal(sample.at_ms, -5);
    st_gpu_hangs(g, what);
    assert_string_equal(what, "sample of GPU 1");
    /* Others do not even try. */
    assert_fails(st_gpu_inventory_get(g, &inv, &err), ST_EDOWN, "sample of GPU 1");
    assert_int_equal(d->inside, 1);
    set(d, false);
    wait_until(d, 1, 0);
    while (st_gpu_hangs(g, what), what[0]) /* until the thread has seen it */
        ;
    assert_ok(st_gpu_inventory_get(g, &inv, &err));
    st_gpu_free(g);
    wait_until(d, 1, 1);
    free_door(d);
}

/* Nobody waits for the driver, not even at the end. */
static void a_driver_may_hang_for_good(void **state)
{
    door *d = new_door();
    st_gpu_sample sample;
    st_err err = {0};
    st_gpu *g;

    (void)state;
    d->opening = d->shut = true;
    assert_fails(st_gpu_guard_open(door_open, d, &soon, &g, &err), ST_EDOWN, "not answer: opening");
    set(d, false); /* what it opened after all is closed */
    wait_until(d, 1, 1);
    d->opening = false;
    assert_ok(st_gpu_guard_open(door_open, d, &soon, &g, &err));
    set(d, true);
    assert_fails(st_gpu_sample_get(g, 0, ST_GPU_WHOLE, 1, &sample, &err), ST_EDOWN, "sample");
    st_gpu_free(g);
    assert_int_equal(d->freed, 1);
    set(d, false);
    wait_until(d, 1, 2); /* what it was given up for may never have begun */
    free_door(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_through_is_the_driver_s),
        cmocka_unit_test(what_hangs_is_given_up_and_named),
        cmocka_unit_test(a_driver_may_hang_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
