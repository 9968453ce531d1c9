/*
 * Frame lists: what is read, what is refused, how it is cut.
 */
#include "base/testing.h"
#include "rules/frames.h"

static void test_lists(void **state)
{
    st_frames_vec v = {0};
    st_err err = {0};

    (void)state;
    assert_ok(st_frames_parse("1-240,300-310x2,400", &v, &err));
    assert_int_equal(v.n, 3);
    assert_int_equal(st_frames_count(&v.v[0]), 240);
    assert_int_equal(v.v[1].first, 300);
    assert_int_equal(v.v[1].last, 310);
    assert_int_equal(st_frames_count(&v.v[1]), 6);
    assert_int_equal(st_frames_count(&v.v[2]), 1);
    st_vec_clear(&v);
    assert_ok(st_frames_parse("0-10x4", &v, &err)); /* 0 4 8: the last is one that is made */
    assert_int_equal(v.v[0].last, 8);
    assert_int_equal(st_frames_count(&v.v[0]), 3);
    st_vec_free(&v);
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"",     "-",    "a",    "1-",     "1-2-3",  "1,",   ",1",
                                      "1 -2", "1-2x", " 1",   "1-2 ",   "+1",     "0x10", "1.5",
                                      "1x2",  "-1-2", "1--2", "1-2x-1", "1-2xx2", "1;2"};
    st_frames_vec v = {0};
    st_err err = {0};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_frames_parse(bad[i], &v, &err), ST_EPARSE, "is no list like 1-240");
    assert_fails(st_frames_parse("1-240;5", &v, &err), ST_EPARSE, "at character 6");
    assert_fails(st_frames_parse("10-1", &v, &err), ST_EINVAL, "10-1 runs backwards");
    assert_fails(st_frames_parse("1-9x0", &v, &err), ST_EINVAL, "a step is at least 1");
    assert_fails(st_frames_parse("1-10,10-20", &v, &err), ST_EINVAL, "10 comes behind 10");
    assert_fails(st_frames_parse("5,4", &v, &err), ST_EINVAL, "in order");
    assert_fails(st_frames_parse("1-1000000001", &v, &err), ST_ERANGE, "up to 1000000000");
    assert_fails(st_frames_parse("99999999999999999999999", &v, &err), ST_ERANGE, "up to");
    st_vec_free(&v);
}

static void test_chunks(void **state)
{
    st_frames_vec v = {0}, c = {0};
    st_err err = {0};

    (void)state;
    assert_ok(st_frames_parse("1-10,21-25x2", &v, &err));
    assert_ok(st_frames_chunk(&v, 4, &c, &err));
    /* 1-4 5-8 9-10, then 21 23 25: a chunk stays inside its range. */
    assert_int_equal(c.n, 4);
    assert_int_equal(c.v[0].first, 1);
    assert_int_equal(c.v[0].last, 4);
    assert_int_equal(c.v[2].first, 9);
    assert_int_equal(c.v[2].last, 10);
    assert_int_equal(c.v[3].first, 21);
    assert_int_equal(c.v[3].last, 25);
    assert_int_equal(c.v[3].step, 2);
    st_vec_clear(&v);
    st_vec_clear(&c);
    assert_ok(st_frames_parse("1-10000", &v, &err));
    assert_ok(st_frames_chunk(&v, 1, &c, &err));
    assert_int_equal(c.n, 10000);
    st_vec_clear(&v);
    st_vec_clear(&c);
    assert_ok(st_frames_parse("1-10001", &v, &err));
    assert_fails(st_frames_chunk(&v, 1, &c, &err), ST_ERANGE, "10001 jobs; at most 10000");
    assert_int_equal(c.n, 0);
    st_vec_clear(&v);
    assert_ok(st_frames_parse("0-1000000000x1000000000", &v, &err));
    assert_ok(st_frames_chunk(&v, ST_FRAME_MAX, &c, &err)); /* no overflow at the far end */
    assert_int_equal(c.n, 1);
    st_vec_free(&v);
    st_vec_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
