/*
 * Labels (model/labels.h): what is well-formed, how they are put, and what meets what.
 */
#include <string.h>

#include "base/testing.h"
#include "model/labels.h"

static void what_is_well_formed(void **state)
{
    static const char *const good[] = {"", "a=1\n", "a=1\nb=2\n", "a=1\nab=1\nb=x/y:z+1\n"};
    static const char *const bad[] = {
        "a=1", "a\n",     "=1\n",    "a=\n",   "b=1\na=1\n", "a=1\na=2\n", "a=1\n\n",
        "\n",  "a=1 2\n", "a b=1\n", "a=1\n ", "a=1=2\n",    "a=\x01\n",   "a=\xc3\xa9\n"};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++)
        assert_true(st_labels_ok(good[i]));
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_false(st_labels_ok(bad[i]));
}

static void words_have_bounds(void **state)
{
    char longest[ST_LABEL_MAX + 2];

    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[ST_LABEL_MAX + 1] = '\0';
    assert_false(st_label_word(longest));
    longest[ST_LABEL_MAX] = '\0';
    assert_true(st_label_word(longest));
    assert_false(st_label_word(""));
    assert_false(st_label_word("a\n"));
}

static void they_are_put_in_order(void **state)
{
    st_strbuf b = {0}, said = {0};
    st_err err;
    char name[24];

    (void)state;
    assert_int_equal(st_labels_set(&b, "storage", "nvme", &err), 0);
    assert_int_equal(st_labels_set(&b, "driver", "550.54.15", &err), 0);
    assert_int_equal(st_labels_set(&b, "rack", "7", &err), 0);
    assert_string_equal(st_strbuf_str(&b), "driver=550.54.15\nrack=7\nstorage=nvme\n");
    assert_int_equal(st_labels_set(&b, "rack", "8", &err), 0);
    assert_int_equal(st_labels_set(&b, "driver", NULL, &err), 0);
    assert_int_equal(st_labels_set(&b, "nobody", NULL, &err), 0);
    assert_string_equal(st_strbuf_str(&b), "rack=8\nstorage=nvme\n");
    st_labels_say(st_strbuf_str(&b), &said);
    assert_string_equal(st_strbuf_str(&said), "rack=8, storage=nvme");
    assert_int_equal(st_labels_set(&b, "a b", "1", &err), -ST_EINVAL);
    assert_int_equal(st_labels_set(&b, "a", "1\nb=2", &err), -ST_EINVAL);
    for (int i = 0; i < ST_LABELS_MAX - 2; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(st_labels_set(&b, name, "1", &err), 0);
    }
    assert_true(st_labels_ok(st_strbuf_str(&b)));
    assert_int_equal(st_labels_set(&b, "one-more", "1", &err), -ST_ELIMIT);
    assert_int_equal(st_labels_set(&b, "rack", "9", &err), 0); /* in the place of the old one */
    st_strbuf_done(&b);
    st_strbuf_done(&said);
}

static void who_meets_what(void **state)
{
    const char *have = "driver=550.54.15\nrack=7\nstorage=nvme\n";

    (void)state;
    assert_true(st_labels_meet(have, NULL));
    assert_true(st_labels_meet(NULL, NULL));
    assert_true(st_labels_meet(have, ""));
    assert_true(st_labels_meet(have, "driver=550\n"));
    assert_true(st_labels_meet(have, "driver=550.54\nstorage=nvme\n"));
    assert_true(st_labels_meet(have, have));
    assert_false(st_labels_meet(have, "driver=55\n"));
    assert_false(st_labels_meet(have, "driver=550.54.15.1\n"));
    assert_false(st_labels_meet(have, "driver=535\n"));
    assert_false(st_labels_meet(have, "driver=550\nzone=1\n"));
    assert_false(st_labels_meet(have, "a=1\n"));
    assert_false(st_labels_meet(NULL, "rack=7\n"));
    assert_false(st_labels_meet("rack2=7\n", "rack=7\n"));
}

static void they_can_be_read_one_by_one(void **state)
{
    char name[ST_LABEL_MAX + 1], value[ST_LABEL_MAX + 1];
    size_t at = 0;

    (void)state;
    assert_true(st_labels_next("a=1\nb=2\n", &at, name, value));
    assert_string_equal(name, "a");
    assert_true(st_labels_next("a=1\nb=2\n", &at, name, value));
    assert_string_equal(value, "2");
    assert_false(st_labels_next("a=1\nb=2\n", &at, name, value));
    at = 0;
    assert_false(st_labels_next(NULL, &at, name, value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_well_formed),         cmocka_unit_test(words_have_bounds),
        cmocka_unit_test(they_are_put_in_order),       cmocka_unit_test(who_meets_what),
        cmocka_unit_test(they_can_be_read_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
