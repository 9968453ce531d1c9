/*
 * The reader of comma-separated values: what it takes apart, and what it says of bad files.
 */
#include "base/testing.h"
#include "trace/csv.h"

static int parse(const char *text, st_csv **ret, st_err *err)
{
    return st_csv_parse("in.csv", text, strlen(text), ret, err);
}

static void test_rows(void **state)
{
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    st_err err = {0};
    int64_t number = 0;
    int column = -1;

    (void)state;
    assert_ok(
        parse("\xef\xbb\xbfname,n,\"last, one\"\r\n\r\na,1,\r\n\"b, \"\"c\"\"\nd\",-2,\"\"\ne,3,x",
              &csv, &err));
    assert_ok(st_csv_need(csv, "n", &column, &err));
    assert_int_equal(column, 1);
    assert_int_equal(st_csv_find(csv, "last, one"), 2);
    assert_int_equal(st_csv_find(csv, "nothing"), -1);
    assert_int_equal(st_csv_next(csv, &err), 1);
    assert_string_equal(st_csv_text(csv, 0), "a");
    assert_string_equal(st_csv_text(csv, 2), "");
    assert_string_equal(st_csv_text(csv, -1), "");
    assert_int_equal(st_csv_next(csv, &err), 1);
    assert_string_equal(st_csv_text(csv, 0), "b, \"c\"\nd");
    assert_ok(st_csv_i64(csv, 1, -5, 5, &number, &err));
    assert_int_equal(number, -2);
    assert_string_equal(st_csv_text(csv, 2), "");
    assert_int_equal(st_csv_next(csv, &err), 1);
    assert_string_equal(st_csv_text(csv, 2), "x");
    /* The quoted line end counts: the last row is on line 6. */
    assert_fails(st_csv_i64(csv, 2, 0, 9, &number, &err), ST_EPARSE, "in.csv:6: last, one: ");
    assert_fails(st_csv_i64(csv, 1, 5, 9, &number, &err), ST_ERANGE, "in.csv:6: n: ");
    assert_int_equal(number, -2);
    assert_int_equal(st_csv_next(csv, &err), 0);
    assert_int_equal(st_csv_next(csv, &err), 0);
}

static void test_bad_headings(void **state)
{
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    st_err err = {0};
    int column = 7;

    (void)state;
    assert_fails(parse("", &csv, &err), ST_EPARSE, "in.csv:1: the file is empty");
    assert_fails(parse("\n\r\n", &csv, &err), ST_EPARSE, "the file is empty");
    assert_fails(parse("a,b,a\n", &csv, &err), ST_EPARSE,
                 "in.csv:1: the heading \"a\" stands twice");
    assert_fails(st_csv_parse("in.csv", "a\n1\n\0", 5, &csv, &err), ST_EPARSE, "in.csv:3: a NUL");
    assert_fails(st_csv_load("/nonexistent/x.csv", &csv, &err), ST_ENOENT, "/nonexistent/x.csv");
    assert_null(csv);
    assert_ok(parse("a,b", &csv, &err));
    assert_fails(st_csv_need(csv, "c", &column, &err), ST_EPARSE, "in.csv:1: the heading c is");
    assert_int_equal(column, 7);
    assert_int_equal(st_csv_next(csv, &err), 0);
}

static void row_fails(const char *text, int code, const char *message)
{
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    st_err err = {0};

    assert_ok(parse(text, &csv, &err));
    assert_fails(st_csv_next(csv, &err), code, message);
}

static void test_bad_rows(void **state)
{
    char wide[2 * ST_CSV_FIELDS_MAX + 8] = "a\n", longest[ST_CSV_FIELD_MAX + 8] = "a\n";

    (void)state;
    row_fails("a,b\n1\n", ST_EPARSE, "in.csv:2: 1 fields, but the heading has 2");
    row_fails("a,b\n\n1,2,3\n", ST_EPARSE, "in.csv:3: 3 fields, but the heading has 2");
    row_fails("a\n\"x", ST_EPARSE, "in.csv:2: the quote that opens");
    row_fails("a\n\"x\"y\n", ST_EPARSE, "in.csv:2: there is text behind");
    row_fails("a\nx\"y\n", ST_EPARSE, "in.csv:2: a quote inside");
    memset(wide + 2, ',', 2 * ST_CSV_FIELDS_MAX);
    row_fails(wide, ST_ERANGE, "in.csv:2: more than 256 fields");
    memset(longest + 2, 'x', ST_CSV_FIELD_MAX + 1);
    row_fails(longest, ST_ERANGE, "in.csv:2: a field of more than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_bad_headings),
        cmocka_unit_test(test_bad_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
