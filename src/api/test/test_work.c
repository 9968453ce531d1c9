/*
 * Work in threads of its own: so many at a time and so many that wait, and whoever ends it waits for all of them.
 */
#include <pthread.h>

#include "api/work.h"
#include "base/testing.h"

/* Errands that wait until they are let go. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    int inside, done;
} gate;

static void errand(void *arg)
{
    gate *g = arg;

    pthread_mutex_lock(&g->lock);
    g->inside++;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    g->inside--;
    g->done++;
    pthread_mutex_unlock(&g->lock);
}

static void wait_inside(gate *g, int n)
{
    pthread_mutex_lock(&g->lock);
    while (g->inside < n)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void let_go(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void no_more_than_so_many(void **state)
{
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    st_work *w = st_work_new(2, 1, 0);

    (void)state;
    assert_true(st_work_run(w, errand, &g));
    assert_true(st_work_run(w, errand, &g));
    wait_inside(&g, 2);
    assert_true(st_work_run(w, errand, &g)); /* waits */
    assert_false(st_work_run(w, errand, &g));
    let_go(&g);
    st_work_free(w); /* waits for all three */
    assert_int_equal(g.done, 3);
}

typedef struct ending {
    st_work *w;
    gate *g;
    bool over;
} ending;

static void *end_it(void *arg)
{
    ending *e = arg;

    st_work_free(e->w);
    pthread_mutex_lock(&e->g->lock);
    e->over = true;
    pthread_mutex_unlock(&e->g->lock);
    return NULL;
}

static void the_end_waits_for_what_runs(void **state)
{
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    ending e = {.w = st_work_new(1, 0, 0), .g = &g};
    pthread_t thread;

    (void)state;
    assert_true(st_work_run(e.w, errand, &g));
    wait_inside(&g, 1);
    assert_int_equal(pthread_create(&thread, NULL, end_it, &e), 0);
    pthread_mutex_lock(&g.lock);
    assert_false(e.over); /* it cannot be while the errand is inside */
    pthread_mutex_unlock(&g.lock);
    let_go(&g);
    pthread_join(thread, NULL);
    assert_true(e.over);
    assert_int_equal(g.done, 1);
    st_work_free(NULL);
}

static void room_again_when_one_is_done(void **state)
{
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open = true};
    st_work *w = st_work_new(1, 0, 0);
    int began = 0;

    (void)state;
    while (began < 50)
        began += st_work_run(w, errand, &g);
    st_work_free(w);
    assert_int_equal(g.done, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_so_many),
        cmocka_unit_test(the_end_waits_for_what_runs),
        cmocka_unit_test(room_again_when_one_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
