/*
 * Calls that wait: each answers once, by what happens to its key, when its time is over, or when all is closed.
 */
#include <pthread.h>

#include "api/park.h"
#include "base/mem.h"
#include "base/testing.h"

/* What somebody waits for. */
typedef struct board {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int news; /* there is something to say */
    int looked, answered, late;
} board;

typedef struct waiter {
    st_parked parked; /* first */
    board *board;
} waiter;

static bool look(st_parked *p, bool late)
{
    board *b = ((waiter *)p)->board;
    bool done;

    pthread_mutex_lock(&b->lock);
    b->looked++;
    done = late || b->news > 0;
    b->answered += done;
    b->late += late;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return done;
}

static void add(st_park *park, board *b, uint64_t key, int64_t wait_ms)
{
    waiter *w = st_xcalloc(1, sizeof *w);

    *w = (waiter){{.key = key, .wait_ms = wait_ms, .look = look}, b};
    st_park_add(park, &w->parked);
}

#define BOARD                                                                  \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }
#define LONG_MS INT64_C(3600000)

static void who_need_not_wait_does_not(void **state)
{
    st_park *park = st_park_new();
    board b = BOARD;

    (void)state;
    b.news = 1;
    add(park, &b, 1, LONG_MS);
    assert_int_equal(b.answered, 1);
    assert_int_equal(b.late, 0);
    st_park_close(park);
    st_park_free(park);
    assert_int_equal(b.looked, 1);
}

static void only_its_own_key_wakes_it(void **state)
{
    st_park *park = st_park_new();
    board one = BOARD, two = BOARD;

    (void)state;
    add(park, &one, ST_PARK_NODE(5), LONG_MS);
    add(park, &one, ST_PARK_NODE(5), LONG_MS);
    add(park, &two, ST_PARK_JOB(5), LONG_MS);
    st_park_wake(park, ST_PARK_NODE(5), false); /* nothing to say yet: it goes on waiting */
    assert_int_equal(one.answered, 0);
    assert_int_equal(two.looked, 1);
    one.news = two.news = 1;
    st_park_wake(park, ST_PARK_NODE(5), false);
    assert_int_equal(one.answered, 2);
    assert_int_equal(two.answered, 0);
    st_park_wake(park, ST_PARK_NODE(5), false); /* nobody is there any more */
    assert_int_equal(one.answered, 2);
    st_park_wake(park, ST_PARK_JOB(5), true);
    assert_int_equal(two.answered, 1);
    assert_int_equal(two.late, 1);
    st_park_close(park);
    st_park_free(park);
}

static void its_time_ends(void **state)
{
    st_park *park = st_park_new();
    board b = BOARD;

    (void)state;
    add(park, &b, 1, 1);
    pthread_mutex_lock(&b.lock);
    while (b.answered == 0)
        pthread_cond_wait(&b.changed, &b.lock);
    pthread_mutex_unlock(&b.lock);
    assert_int_equal(b.late, 1);
    st_park_close(park);
    st_park_free(park);
    assert_int_equal(b.answered, 1);
}

static void all_are_answered_in_the_end(void **state)
{
    st_park *park = st_park_new();
    board b = BOARD;

    (void)state;
    for (uint64_t key = 0; key < 20; key++)
        add(park, &b, key / 2, LONG_MS);
    assert_int_equal(b.answered, 0);
    st_park_close(park);
    assert_int_equal(b.answered, 20);
    assert_int_equal(b.late, 20);
    add(park, &b, 99, LONG_MS); /* what comes later is not kept */
    assert_int_equal(b.answered, 21);
    st_park_free(park);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_need_not_wait_does_not),
        cmocka_unit_test(only_its_own_key_wakes_it),
        cmocka_unit_test(its_time_ends),
        cmocka_unit_test(all_are_answered_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
