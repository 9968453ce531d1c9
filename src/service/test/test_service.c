/*
 * What the controller of services decides, in a small world of its own: jobs start, become healthy, fail and end as the
 * test says.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "base/testing.h"
#include "service/service.h"

#define S(seconds) ((seconds)*INT64_C(1000))

typedef struct world {
    st_svc_spec spec;
    st_svc_memory memory;
    st_svc_figures figures;
    st_svc_seen seen[64];
    size_t n;
    int64_t now, next, serial;
    int starts, ends;
} world;

static const st_svc_spec usual = {.replicas = 2,
                                  .min = 1,
                                  .max = 4,
                                  .revision = 1,
                                  .surge = 1,
                                  .unavailable = 0,
                                  .wait_ms = S(5),
                                  .wait_max_ms = S(300),
                                  .start_ms = S(600),
                                  .drain_ms = S(30),
                                  .target = 10,
                                  .up_ms = S(30),
                                  .down_ms = S(300)};

static st_svc_seen *find(world *w, int64_t serial)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->seen[i].serial == serial)
            return &w->seen[i];
    fail_msg("there is no replica %d", (int)serial);
    return NULL;
}

static void set(world *w, int64_t serial, st_svc_state state)
{
    find(w, serial)->state = state;
    find(w, serial)->since_ms = w->now;
}

static int number(const world *w, st_svc_state state)
{
    int n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += w->seen[i].state == state;
    return n;
}

static void carry_out(world *w, const st_svc_action *a)
{
    st_svc_seen *s = a->what == ST_SVC_START ? NULL : find(w, a->serial);

    switch (a->what) {
    case ST_SVC_START:
        assert_true(w->n < ST_ARRAY_LEN(w->seen));
        w->seen[w->n++] = (st_svc_seen){.serial = ++w->serial,
                                        .revision = w->spec.revision,
                                        .state = ST_SVC_WAITING,
                                        .since_ms = w->now};
        w->starts++;
        break;
    case ST_SVC_RETIRE:
        assert_true(s->state != ST_SVC_LEAVING && s->state != ST_SVC_OVER);
        s->state = ST_SVC_LEAVING;
        s->since_ms = w->now;
        s->retired = true;
        break;
    case ST_SVC_END:
        assert_int_equal(s->state, ST_SVC_LEAVING);
        s->state = ST_SVC_OVER;
        w->ends++;
        break;
    case ST_SVC_FORGET:
        *s = w->seen[--w->n];
        break;
    }
}

/* One decision, carried out. How many actions there were. */
static size_t step(world *w)
{
    st_svc_actions actions = {0};
    size_t n;

    st_svc_decide(&w->spec, &w->figures, w->seen, w->n, w->now, &w->memory, &actions, &w->next);
    for (size_t i = 0; i < actions.n; i++)
        carry_out(w, &actions.v[i]);
    n = actions.n;
    st_vec_free(&actions);
    return n;
}

static void rest(world *w)
{
    for (int i = 0; step(w) > 0; i++)
        assert_true(i < 100);
}

static world with(int replicas)
{
    world w = {.spec = usual, .now = S(1000)};

    w.spec.replicas = replicas;
    rest(&w);
    assert_int_equal(w.n, replicas);
    for (size_t i = 0; i < w.n; i++)
        set(&w, (int64_t)i + 1, ST_SVC_READY);
    rest(&w);
    return w;
}

static void test_keeps_its_number(void **state)
{
    world w = with(3);

    (void)state;
    assert_int_equal(w.starts, 3);
    w.spec.replicas = 5;
    rest(&w);
    assert_int_equal(w.n, 5);
    /* Those that have not started leave first, then who has the fewest requests. */
    find(&w, 1)->open = 4;
    find(&w, 2)->open = 1;
    find(&w, 3)->open = 2;
    w.spec.replicas = 2;
    step(&w);
    assert_int_equal(find(&w, 4)->state, ST_SVC_LEAVING);
    assert_int_equal(find(&w, 5)->state, ST_SVC_LEAVING);
    assert_int_equal(find(&w, 2)->state, ST_SVC_LEAVING);
    assert_int_equal(number(&w, ST_SVC_READY), 2);
}

/* Requests that are open are waited for, and not for good. */
static void test_leaves_gently(void **state)
{
    world w = with(2);

    (void)state;
    find(&w, 1)->open = find(&w, 2)->open = 3;
    w.spec.replicas = 1;
    step(&w);
    assert_int_equal(number(&w, ST_SVC_LEAVING), 1);
    assert_int_equal(step(&w), 0);
    assert_true(w.next == w.now + S(30));
    w.now += S(29);
    assert_int_equal(step(&w), 0);
    w.now += S(1);
    step(&w);
    assert_int_equal(w.ends, 1);
    rest(&w);
    assert_int_equal(w.n, 1);
}

/* A new template: one more starts, and an old one leaves only when the new one is ready. */
static void test_rolls(void **state)
{
    world w = with(2);

    (void)state;
    w.spec.revision = 2;
    rest(&w);
    assert_int_equal(w.n, 3);
    assert_int_equal(number(&w, ST_SVC_READY), 2);
    set(&w, 3, ST_SVC_STARTING);
    assert_int_equal(step(&w), 0);
    set(&w, 3, ST_SVC_READY);
    rest(&w);
    assert_int_equal(number(&w, ST_SVC_READY), 2);
    set(&w, 4, ST_SVC_READY);
    rest(&w);
    assert_int_equal(w.n, 2);
    assert_int_equal(find(&w, 3)->revision, 2);
    assert_int_equal(find(&w, 4)->revision, 2);
}

/* Without room for one more: an old one leaves first. */
static void test_rolls_without_room(void **state)
{
    world w = with(3);

    (void)state;
    w.spec.surge = 0;
    w.spec.unavailable = 1;
    w.spec.revision = 2;
    rest(&w);
    assert_int_equal(number(&w, ST_SVC_READY), 2);
    assert_int_equal(w.n, 3);
    set(&w, 4, ST_SVC_READY);
    rest(&w);
    set(&w, 5, ST_SVC_READY);
    rest(&w);
    set(&w, 6, ST_SVC_READY);
    rest(&w);
    assert_int_equal(w.n, 3);
    for (size_t i = 0; i < w.n; i++)
        assert_int_equal(w.seen[i].revision, 2);
}

/* A template that never becomes healthy: the old replicas stay as they are. */
static void test_a_bad_template_replaces_nothing(void **state)
{
    world w = with(2);

    (void)state;
    w.spec.revision = 2;
    for (int i = 0; i < 20; i++) {
        rest(&w);
        assert_int_equal(number(&w, ST_SVC_READY), 2);
        for (size_t k = 0; k < w.n; k++)
            if (w.seen[k].state == ST_SVC_WAITING)
                w.seen[k].state = ST_SVC_OVER;
        w.now += S(100);
    }
    assert_true(w.starts < 2 + 15);
    /* Back to the old one: nothing is left of the new. */
    w.spec.revision = 1;
    rest(&w);
    assert_int_equal(w.n, 2);
}

/* Its node drains, or it was told to yield: the next is ready before it leaves, surge or not. */
static void test_moves(void **state)
{
    world w = with(1);

    (void)state;
    w.spec.surge = 0;
    find(&w, 1)->moving = true;
    rest(&w);
    assert_int_equal(w.n, 2);
    assert_int_equal(find(&w, 1)->state, ST_SVC_READY);
    set(&w, 2, ST_SVC_READY);
    rest(&w);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.seen[0].serial, 2);
}

/* What ends by itself is started again, later each time, and soon again once it has been well. */
static void test_backs_off(void **state)
{
    world w = with(1);
    int64_t waits[12];

    (void)state;
    for (int i = 0; i < 12; i++) {
        int64_t began = w.now;

        w.seen[0].state = ST_SVC_OVER;
        rest(&w);
        assert_int_equal(w.n, 0);
        assert_true(w.next > w.now && w.next < INT64_MAX);
        w.now = w.next - 1;
        assert_int_equal(step(&w), 0);
        w.now++;
        rest(&w);
        assert_int_equal(w.n, 1);
        waits[i] = w.now - began;
        assert_true(i == 0 || waits[i] == ST_MIN(2 * waits[i - 1], S(300)));
    }
    assert_true(waits[0] == S(5));
    set(&w, w.serial, ST_SVC_READY);
    rest(&w);
    w.now += S(300);
    rest(&w);
    assert_int_equal(w.memory.fails, 0);
}

/* An old replica that is well says nothing about new ones that fail. */
static void test_an_old_one_forgives_nothing(void **state)
{
    world w = with(2);

    (void)state;
    w.now += S(10000);
    find(&w, 2)->state = ST_SVC_OVER;
    rest(&w);
    assert_int_equal(w.memory.fails, 1);
    w.now += S(5);
    rest(&w);
    assert_int_equal(w.memory.fails, 1);
}

static void test_sick_and_slow(void **state)
{
    world w = with(2);

    (void)state;
    set(&w, 1, ST_SVC_SICK);
    step(&w);
    assert_int_equal(find(&w, 1)->state, ST_SVC_LEAVING);
    assert_int_equal(w.memory.fails, 1);
    rest(&w);
    w.now += S(5);
    rest(&w);
    assert_int_equal(w.n, 2);
    set(&w, 3, ST_SVC_STARTING);
    step(&w);
    assert_true(w.next <= w.now + S(600));
    w.now += S(600);
    step(&w);
    assert_int_equal(w.memory.fails, 2);
}

static void test_scales(void **state)
{
    world w = with(2);

    (void)state;
    w.spec.scale = ST_SVC_SCALE_REQUESTS;
    w.figures.requests = 35;
    rest(&w);
    assert_int_equal(w.n, 2);
    assert_true(w.next == w.now + S(30));
    w.now += S(30);
    rest(&w);
    assert_int_equal(w.n, 4);
    /* Down to the most that was asked for within the time. */
    w.figures.requests = 0;
    rest(&w);
    w.now += S(100);
    w.figures.requests = 21;
    rest(&w);
    w.now += S(100);
    w.figures.requests = 0;
    rest(&w);
    assert_int_equal(w.memory.target, 4);
    w.now += S(100);
    rest(&w);
    assert_int_equal(w.memory.target, 3);
    w.now += S(300);
    rest(&w);
    w.now += S(300);
    rest(&w);
    assert_int_equal(w.memory.target, 1);
    /* What it does not tell of changes nothing. */
    w.spec.scale = ST_SVC_SCALE_QUEUE;
    w.figures.queue = 1000;
    w.now += S(1000);
    rest(&w);
    assert_int_equal(w.memory.target, 1);
    w.figures.told = true;
    rest(&w);
    w.now += S(30);
    rest(&w);
    assert_int_equal(w.memory.target, 4);
}

static void test_wanted(void **state)
{
    st_svc_spec spec = usual;
    st_svc_figures f = {.told = true, .latency_ms = 30};

    (void)state;
    assert_int_equal(st_svc_wanted(&spec, &f, 2), 0);
    spec.scale = ST_SVC_SCALE_LATENCY;
    assert_int_equal(st_svc_wanted(&spec, &f, 0), 0);
    assert_int_equal(st_svc_wanted(&spec, &f, 1), 2);
    f.latency_ms = INT64_MAX;
    assert_int_equal(st_svc_wanted(&spec, &f, 2), 4);
    f.latency_ms = 0;
    assert_int_equal(st_svc_wanted(&spec, &f, 2), 1);
    spec.scale = ST_SVC_SCALE_QUEUE;
    f.queue = INT64_MAX;
    assert_int_equal(st_svc_wanted(&spec, &f, 2), 4);
    spec.target = 0;
    assert_int_equal(st_svc_wanted(&spec, &f, 2), 4);
}

static void test_ends_when_idle(void **state)
{
    world w = with(1);

    (void)state;
    w.spec.idle_ms = S(3600);
    w.figures.requests = 1;
    w.now += S(7200);
    rest(&w);
    assert_int_equal(w.n, 1);
    w.figures.requests = 0;
    w.figures.last_ms = w.now + S(10);
    w.now += S(3600);
    rest(&w);
    assert_int_equal(w.n, 1);
    w.now += S(10);
    rest(&w);
    assert_int_equal(w.n, 0);
    assert_true(w.memory.ended);
    /* One that takes long to come up is not idle. */
    w = (world){.spec = usual, .now = S(1000)};
    w.spec.idle_ms = S(60);
    rest(&w);
    w.now += S(500);
    rest(&w);
    assert_int_equal(w.n, 2);
    set(&w, 1, ST_SVC_READY);
    set(&w, 2, ST_SVC_READY);
    rest(&w);
    assert_int_equal(w.n, 2);
    w.now += S(60);
    rest(&w);
    assert_int_equal(w.n, 0);
    /* A moment that is still to come is none. */
    w = with(1);
    w.spec.idle_ms = S(60);
    w.figures.last_ms = INT64_MAX;
    rest(&w);
    w.figures.last_ms = 0;
    w.now += S(60);
    rest(&w);
    assert_int_equal(w.n, 0);
}

static void test_removed(void **state)
{
    world w = with(3);

    (void)state;
    find(&w, 2)->open = 1;
    w.spec.removed = true;
    rest(&w);
    assert_int_equal(w.n, 1);
    w.now += S(30);
    rest(&w);
    assert_int_equal(w.n, 0);
}

/* ---- random worlds ----------------------------------------------------------------------------- */

static void happens(world *w, st_rng *rng)
{
    st_svc_seen *s = w->n > 0 ? &w->seen[st_rng_below(rng, w->n)] : NULL;

    w->now += st_rng_range(rng, 0, S(20));
    w->figures.requests = st_rng_range(rng, 0, 60);
    if (st_rng_chance(rng, 1, 40))
        w->spec.revision++;
    if (st_rng_chance(rng, 1, 40))
        w->spec.replicas = (int)st_rng_range(rng, 1, 6);
    if (!s || s->state == ST_SVC_LEAVING || s->state == ST_SVC_OVER)
        return;
    s->open = (int)st_rng_below(rng, 3);
    if (st_rng_chance(rng, 1, 20)) {
        s->state = st_rng_chance(rng, 1, 2) ? ST_SVC_OVER : ST_SVC_SICK;
    } else if (st_rng_chance(rng, 1, 10)) {
        s->moving = !s->moving;
    } else if (s->state < ST_SVC_READY) {
        s->state++;
        s->since_ms = w->now;
    }
}

static void look(const world *w, const world *before, uint64_t seed)
{
    int staying = 0, ready_before = 0, ready = 0, least;
    bool moving = false;

    for (size_t i = 0; i < w->n; i++) {
        const st_svc_seen *s = &w->seen[i];

        staying += s->state <= ST_SVC_READY;
        ready += s->state == ST_SVC_READY;
        moving = moving || s->moving;
    }
    for (size_t i = 0; i < before->n; i++)
        ready_before += before->seen[i].state == ST_SVC_READY;
    least = w->memory.target - w->spec.unavailable;
    if (ready < ready_before && ready < least)
        fail_msg("seed %d: %d of %d ready were taken off the route, %d are wanted", (int)seed,
                 ready_before - ready, ready_before, least);
    if (w->starts > before->starts &&
        staying > w->memory.target + ST_MAX(w->spec.surge, moving ? 1 : 0))
        fail_msg("seed %d: %d replicas, %d are wanted", (int)seed, staying, w->memory.target);
    if (w->starts > before->starts && w->now < before->memory.retry_ms)
        fail_msg("seed %d: started before it was time to", (int)seed);
    for (size_t i = 0; i < before->n; i++) {
        const st_svc_seen *b = &before->seen[i];

        for (size_t k = 0; k < w->n; k++)
            if (w->seen[k].serial == b->serial && w->seen[k].state == ST_SVC_OVER &&
                b->state != ST_SVC_OVER &&
                (b->state != ST_SVC_LEAVING ||
                 (b->open > 0 && w->now < b->since_ms + w->spec.drain_ms)))
                fail_msg("seed %d: replica %d was ended too early", (int)seed, (int)b->serial);
    }
}

static void test_random_worlds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        world w = {.spec = usual, .now = S(1000)};
        st_rng rng;

        st_rng_seed(&rng, seed);
        w.spec.surge = (int)st_rng_below(&rng, 3);
        w.spec.unavailable = (int)st_rng_below(&rng, 2) + (w.spec.surge == 0);
        w.spec.scale = st_rng_chance(&rng, 1, 2) ? ST_SVC_SCALE_REQUESTS : ST_SVC_SCALE_NONE;
        for (int i = 0; i < 300; i++) {
            world before;

            happens(&w, &rng);
            before = w;
            step(&w);
            look(&w, &before, seed);
        }
        /* All goes well from here on: it comes to what is wanted. */
        for (int i = 0; i < 200; i++) {
            w.now += S(60);
            for (size_t k = 0; k < w.n; k++) {
                w.seen[k].open = 0;
                w.seen[k].moving = false;
                if (w.seen[k].state < ST_SVC_READY) {
                    w.seen[k].state = ST_SVC_READY;
                    w.seen[k].since_ms = w.now;
                }
            }
            step(&w);
        }
        if ((int)w.n != w.memory.target || number(&w, ST_SVC_READY) != w.memory.target)
            fail_msg("seed %d: %d replicas in the end, %d are wanted", (int)seed, (int)w.n,
                     w.memory.target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps_its_number),
        cmocka_unit_test(test_leaves_gently),
        cmocka_unit_test(test_rolls),
        cmocka_unit_test(test_rolls_without_room),
        cmocka_unit_test(test_a_bad_template_replaces_nothing),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_backs_off),
        cmocka_unit_test(test_an_old_one_forgives_nothing),
        cmocka_unit_test(test_sick_and_slow),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_ends_when_idle),
        cmocka_unit_test(test_removed),
        cmocka_unit_test(test_random_worlds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
