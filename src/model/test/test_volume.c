/* What jobs say of volumes: places that may be mounted on, and the ways to say it wrong. */
#include <string.h>

#include "base/testing.h"
#include "model/volume.h"

static void test_asks(void **state)
{
    st_volume_ask a;
    st_err err;

    (void)state;
    assert_ok(st_volume_ask_read("sets:/mnt/sets", &a, &err));
    assert_string_equal(a.name, "sets");
    assert_string_equal(a.path, "/mnt/sets");
    assert_false(a.ro);
    assert_ok(st_volume_ask_read("a.b-c_1:/x:ro", &a, &err));
    assert_true(a.ro);
    assert_ok(st_volume_ask_read("sets:/x:rw", &a, &err));
    assert_false(a.ro);
}

static void test_bad(void **state)
{
    static const char *const asks[] = {"sets",
                                       "sets:",
                                       "sets:x",
                                       ":/x",
                                       "../x:/x",
                                       ".x:/x",
                                       "a/b:/x",
                                       "sets:/x:wo",
                                       "sets:/x:ro:ro",
                                       "sets:/",
                                       "sets:/x/",
                                       "sets:/x//y",
                                       "sets:/x/../y",
                                       "sets:/x/..",
                                       "sets:/./x",
                                       "sets:/x/.",
                                       "sets:/proc",
                                       "sets:/proc/self",
                                       "sets:/run/stint/init",
                                       "sets:/etc",
                                       "sets:/etc/ld.so.preload",
                                       "sets:/dev/shm",
                                       "sets:/usr/lib",
                                       "sets:/data/x",
                                       "sets:/tmp",
                                       "sets:/a\nb",
                                       "sets:/a,b",
                                       "sets:/a\\b",
                                       "sets:/\xff",
                                       ""};
    char longest[400] = "sets:/";
    st_volume_ask a = {0};
    st_err err;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(asks); i++)
        assert_fails(st_volume_ask_read(asks[i], &a, &err), ST_EINVAL, "");
    memset(longest + 6, 'a', 300);
    assert_fails(st_volume_ask_read(longest, &a, &err), ST_EINVAL, "longer");
    memset(longest, 'a', 300);
    assert_fails(st_volume_ask_read(longest, &a, &err), ST_EINVAL, "NAME");
    assert_string_equal(a.name, "");
}

static void test_meet(void **state)
{
    (void)state;
    assert_true(st_volume_paths_meet("/a", "/a"));
    assert_true(st_volume_paths_meet("/a/b", "/a"));
    assert_true(st_volume_paths_meet("/a", "/a/b/c"));
    assert_false(st_volume_paths_meet("/ab", "/a"));
    assert_false(st_volume_paths_meet("/a", "/ab"));
    assert_true(st_volume_id_ok("0123456789abcdef"));
    assert_false(st_volume_id_ok("0123456789abcde"));
    assert_false(st_volume_id_ok("../../../../../x"));
    assert_false(st_volume_id_ok("0123456789ABCDEF"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_meet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
