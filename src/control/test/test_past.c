/*
 * A past moment is the same however it is come to: at once from the first row or a snapshot, or in the smallest steps,
 * forwards and backwards, by a player that has been elsewhere; and so is what was decided before it.
 */
#include <string.h>

#include "base/rng.h"
#include "control/past.h"
#include "control/test/money.h"

#define HOUR (DAY / 24)
#define TOLD (3 * HOUR)

static int begin_long(void **state)
{
    world *w;
    st_err err = {0};

    begin(state);
    w = *state;
    st_control_free(w->ctl);
    w->keep_log_ms = 30 * DAY;
    w->snap_rows = 64;
    assert_ok(open_control(w, &err));
    return 0;
}

/* Jobs come and go, an hour's in an hour. */
static void live(world *w, int hours)
{
    for (int i = 0; i < hours; i++) {
        uint64_t id = start_job(w, "{}");

        let_pass(w, HOUR / 2);
        nudge(w);
        end_job(w, id, 0);
        let_pass(w, HOUR / 2);
        nudge(w);
    }
}

static bool move_is(const st_past_view *a, size_t i, const st_past_view *b, size_t k)
{
    const st_past_move *x = &a->moves[i], *y = &b->moves[k];

    return x->at_ms == y->at_ms && x->kind == y->kind && x->seq == y->seq &&
           (x->job >= 0) == (y->job >= 0) &&
           (x->job < 0 || (a->jobs[x->job].id == b->jobs[y->job].id &&
                           strcmp(a->jobs[x->job].name, b->jobs[y->job].name) == 0));
}

static size_t first_told(const st_past_view *v)
{
    size_t i = v->nmoves;

    while (i > 0 && v->moves[i - 1].at_ms >= v->told_ms)
        i--;
    return i;
}

static void is_same(const st_past_view *a, const st_past_view *b)
{
    size_t i = first_told(a), k = first_told(b);

    assert_true(a->exact && b->exact);
    assert_true(st_core_hash(a->core) == st_core_hash(b->core));
    assert_int_equal(st_core_njobs(a->core), st_core_njobs(b->core));
    assert_int_equal(a->told_ms, b->told_ms);
    assert_int_equal(a->nmoves - i, b->nmoves - k);
    for (; i < a->nmoves; i++, k++)
        assert_true(move_is(a, i, b, k));
}

/* In as many calls as it takes; tells how many. */
static int step_to(st_past *p, st_store *reader, int64_t at_ms, st_past_view *ret)
{
    st_err err = {0};
    int n = 1, r;

    for (; (r = st_past_at(p, reader, at_ms, TOLD, ret, &err)) == -ST_EDOWN; n++)
        assert_true(n < 10000);
    assert_ok(r);
    return n;
}

static void however_it_is_come_to(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    st_past *wanders = st_past_new(-1);
    int64_t begun = w->now, first = 0, from = 0, at;
    bool whole = false;
    st_past_view a, b;
    st_rng rng;
    st_err err = {0};
    int steps = 0;

    make_fleet(w);
    live(w, 60);
    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_past_first(reader, &first, &whole, &err));
    assert_true(whole && first >= begun);
    st_rng_seed(&rng, 1);
    for (int i = 0; i < 60; i++) {
        static const int hours[] = {0, 6, 5, 3, 4, 6}; /* from somewhere on, and about there */
        st_past *fresh = st_past_new(600000);

        if (i % 6 == 0)
            from = first + (int64_t)st_rng_below(&rng, (uint64_t)(w->now - first - 6 * HOUR));
        at = from + hours[i % 6] * HOUR;
        steps += step_to(wanders, reader, at, &a);
        assert_int_equal(step_to(fresh, reader, at, &b), 1);
        is_same(&a, &b);
        st_past_free(fresh);
    }
    assert_true(steps > 60); /* it was cut short, and went on */
    assert_fails(st_past_at(wanders, reader, first - 1, TOLD, &a, &err), ST_ERANGE, "so far");
    st_past_free(wanders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(however_it_is_come_to, begin_long, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
