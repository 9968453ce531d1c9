/*
 * How things look: ages, moments, numbers, tables that fit, CSV; and what follows from the tables
 * of verbs and options: rows, help, completion, the manual.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/testing.h"
#include "cli/bill_explain.h"
#include "cli/jobs.h"
#include "cli/table.h"
#include "cli/view.h"

static void test_ages(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {-5, "0s"},         {0, "0s"},          {999, "0s"},        {59000, "59s"},
        {61500, "1m1s"},    {3600000, "1h"},    {5400000, "1h30m"}, {5459000, "1h30m"},
        {90000000, "1d1h"}, {90059000, "1d1h"}, {864000000, "10d"}, {172800000, "2d"},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        char buf[ST_FMT_MAX];

        st_fmt_age(buf, rows[i].ms);
        assert_string_equal(buf, rows[i].text);
    }
}

static void test_moments(void **state)
{
    static const char *const bad[] = {"", "2026", "2026-11-15T08:04:20",
                                      "2026-11-15T08:04:20.1+01:00", "2026-11-15T08:04:20Zx"};
    int64_t ms = 7;

    (void)state;
    assert_true(st_time_parse("2026-11-15T08:04:20.229Z", &ms));
    assert_int_equal(ms, INT64_C(1794729860229));
    assert_true(st_time_parse("1970-01-01T00:00:00Z", &ms));
    assert_int_equal(ms, 0);
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_false(st_time_parse(bad[i], &ms));
}

static char *cell(const json_t *row, const char *key, st_view_kind kind, bool raw)
{
    const st_view_column c = {"X", key, kind, NULL};
    st_strbuf out = {0};

    st_view_cell(row, &c, raw, INT64_C(1794729920229), &out);
    return st_strbuf_take(&out);
}

static void test_cells(void **state)
{
    json_t *row = json_loads("{\"t\":\"x\",\"n\":0.25,\"z\":null,\"e\":\"\",\"m\":81920,"
                             "\"at\":\"2026-11-15T08:04:20.229Z\",\"l\":[\"a\",1],"
                             "\"o\":{\"gpu\":8,\"cpu\":1.5},\"in\":{\"b\":true}}",
                             0, NULL);
    static const struct {
        const char *key;
        st_view_kind kind;
        bool raw;
        const char *text;
    } rows[] = {
        {"t", ST_VIEW_TEXT, false, "x"},
        {"n", ST_VIEW_NUM, false, "0.25"},
        {"z", ST_VIEW_TEXT, false, "-"},
        {"z", ST_VIEW_AGE, false, "-"},
        {"e", ST_VIEW_TEXT, false, "-"},
        {"e", ST_VIEW_TEXT, true, ""},
        {"m", ST_VIEW_MIB, false, "80Gi"},
        {"at", ST_VIEW_AGE, false, "1m"},
        {"at", ST_VIEW_AGE, true, "2026-11-15T08:04:20.229Z"},
        {"at", ST_VIEW_TIME, false, "2026-11-15 08:04:20"},
        {"l", ST_VIEW_WORDS, false, "a, 1"},
        {"o", ST_VIEW_WORDS, false, "gpu 8, cpu 1.5"},
        {"in.b", ST_VIEW_TEXT, false, "yes"},
        {"in.c.d", ST_VIEW_TEXT, false, "-"},
        {"n", ST_VIEW_SECONDS, false, "250ms"},
    };

    (void)state;
    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        ST_CLEANUP(st_freep) char *text = cell(row, rows[i].key, rows[i].kind, rows[i].raw);

        assert_string_equal(text, rows[i].text);
    }
    json_decref(row);
}

static void test_where(void **state)
{
    json_t *job = json_loads("{\"state\":\"failed\",\"exit_code\":257,\"placement\":{\"grants\":["
                             "{\"node\":\"a\",\"gpus\":[0,1,2,5]},{\"node\":\"b\",\"gpus\":[3],"
                             "\"mig_start\":4}]}}",
                             0, NULL);
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    json_t *other;

    (void)state;
    st_job_where(job, &out);
    assert_string_equal(st_strbuf_str(&out), "a:0-2,5 b:3@4");
    assert_int_equal(st_job_status(job), 1);
    json_decref(job);
    other = json_pack("{s:s}", "state", "timeout");
    assert_int_equal(st_job_status(other), 124);
    json_decref(other);
    other = json_pack("{s:s, s:n}", "state", "done", "exit_code");
    assert_int_equal(st_job_status(other), 0);
    json_decref(other);
}

typedef void print_fn(st_table *t, FILE *out);

static void print_csv(st_table *t, FILE *out)
{
    st_table_csv(t, out);
}

static void print_20(st_table *t, FILE *out)
{
    st_table_print_fitted(t, out, 20);
}

static void print_30(st_table *t, FILE *out)
{
    st_table_print_fitted(t, out, 30);
}

static char *printed(print_fn *print)
{
    static const char *const cells[] = {"j1", "a, \"long\" name here", "7", "x\033\xc2\x9b\xc3\xa9",
                                        "end of it"};
    ST_CLEANUP(st_table_done) st_table t = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    st_table_column(&t, "ID", false);
    st_table_column(&t, "NAME", false);
    st_table_column(&t, "N", true);
    st_table_column(&t, "C", false);
    st_table_column(&t, "LAST", false);
    for (size_t i = 0; i < ST_ARRAY_LEN(cells); i++)
        st_table_cell(&t, "%s", cells[i]);
    print(&t, out);
    fclose(out);
    return text;
}

static void test_tables(void **state)
{
    ST_CLEANUP(st_freep) char *csv = printed(print_csv);
    ST_CLEANUP(st_freep) char *narrow = printed(print_20);
    ST_CLEANUP(st_freep) char *wide = printed(print_30);

    (void)state;
    assert_string_equal(
        csv,
        "id,name,n,c,last\nj1,\"a, \"\"long\"\" name here\",7,x\033\xc2\x9b\xc3\xa9,end of it\n");
    assert_string_equal(wide, "ID  NAME          N  C\nj1  a, \"long\" n~  7  x??\xc3\xa9\n");
    assert_string_equal(narrow, "ID  NAME     N  C\nj1  a, \"lo~  7  x??\xc3\xa9\n");
}

typedef struct rows_into {
    st_cli_words many;
    const char *text;
    st_cli_format format;
    bool flag;
} rows_into;

static const st_cli_row rows[] = {
    {"env", 'e', ST_CLI_MANY, offsetof(rows_into, many), "K=V", "many", 0, 0},
    {"text", 0, ST_CLI_STRING, offsetof(rows_into, text), "TEXT", "one", 0, 0},
    {"output", 'o', ST_CLI_LISTING, offsetof(rows_into, format), "table|json|csv", "how", 0, 0},
    {"flag", 'f', ST_CLI_FLAG, offsetof(rows_into, flag), NULL, "yes", 0, 0},
    {0},
};

static int read_line(const char *line, rows_into *into, char **argv, int *n, char **buffer,
                     st_err *err)
{
    char *save = NULL;
    int argc = 0;

    *buffer = st_xstrdup(line);
    for (char *w = strtok_r(*buffer, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    return st_cli_read(argc, argv, rows, into, 0, 9, n, err);
}

static void test_rows(void **state)
{
    rows_into into = {0};
    char *argv[16], *buffer;
    st_err err = {0};
    int n;

    (void)state;
    assert_ok(read_line("verb -e A=1 x --env=B=2 -f -ocsv --text t -- -e --flag", &into, argv, &n,
                        &buffer, &err));
    assert_int_equal(into.many.n, 2);
    assert_string_equal(into.many.v[1], "B=2");
    assert_int_equal(into.format, ST_CLI_CSV);
    assert_true(into.flag);
    assert_int_equal(n, 3);
    assert_string_equal(argv[1], "x");
    assert_string_equal(argv[2], "-e");
    free(buffer);
    assert_fails(read_line("verb -o xml", &into, argv, &n, &buffer, &err), ST_EINVAL,
                 "table, json or csv");
    free(buffer);
    assert_fails(read_line("verb --txet x", &into, argv, &n, &buffer, &err), ST_EINVAL,
                 "did you mean --text?");
    free(buffer);
}

/* Where a gang was: devices as ranges, tasks that share them counted, large gangs cut short. */
static void test_grants(void **state)
{
    static const struct {
        const char *grants, *some, *all;
    } cases[] = {
        {"[]", "-", "-"},
        {"[[\"n1\",255,-1,1]]", "n1:0-7", "n1:0-7"},
        {"[[\"n1\",77,-1,1],[\"n2\",32769,0,7]]", "n1:0,2-3,6 n2:0,15(7 tasks)",
         "n1:0,2-3,6 n2:0,15(7 tasks)"},
        {"[[\"n1\",0,-1,4]]", "n1(4 tasks)", "n1(4 tasks)"},
        {"[[\"a\",1,-1,1],[\"b\",1,-1,1],[\"c\",1,-1,1]]", "a:0 b:0 c:0", "a:0 b:0 c:0"},
        {"[[\"a\",1,-1,1],[\"b\",1,-1,1],[\"c\",1,-1,1],[\"d\",1,-1,1]]", "a:0 b:0 and 2 more",
         "a:0 b:0 c:0 d:0"},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(cases); i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf some = {0}, all = {0};
        json_t *entry = json_pack("{s:o}", "grants", json_loads(cases[i].grants, 0, NULL));

        st_bill_grants(entry, false, &some);
        st_bill_grants(entry, true, &all);
        assert_string_equal(st_strbuf_str(&some), cases[i].some);
        assert_string_equal(st_strbuf_str(&all), cases[i].all);
        json_decref(entry);
    }
}

static const st_cli_verb leaf[] = {
    {"inner", "Does it", "[OPTION...]", .options = rows, .example = "  stint group inner\n"},
    {"old", "Is 'quoted'", "[--seed N]", "  --steps N  so many\n.not a request\n", .sub = NULL},
    {0},
};
static int do_nothing(st_cli *cli, int argc, char **argv, st_err *err)
{
    (void)cli;
    (void)argc;
    (void)argv;
    (void)err;
    return 0;
}

static const st_cli_verb verbs[] = {
    {"group", "Has commands", "COMMAND ...", .sub = leaf},
    {"both", "Does it, and has commands", "[OPTION...]", .fn = do_nothing, .sub = leaf,
     .options = rows},
    {0},
};

static void test_generated(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    st_err err = {0};

    (void)state;
    assert_ok(st_cli_complete(out, "bash", verbs, &err));
    assert_ok(st_cli_complete(out, "fish", verbs, &err));
    st_cli_man(out, verbs);
    st_cli_print_options(out, rows);
    fclose(out);
    assert_non_null(strstr(text, "' group') offer=' inner old --help'"));
    assert_non_null(strstr(text,
                           "' group inner' | ' group inner '*) offer=\" --env --text --output "
                           "--flag --help\""));
    assert_non_null(strstr(text, "' both' | ' both '*) offer=' inner old --env --text --output "
                                 "--flag --help'"));
    assert_non_null(strstr(text, ".SS \"stint both [OPTION...]\""));
    assert_non_null(strstr(text, ".SS \"stint both inner [OPTION...]\""));
    assert_null(strstr(text, ".SS \"stint group COMMAND ...\""));
    assert_non_null(strstr(text, "--seed  --steps  --help"));
    assert_non_null(strstr(text, "--output | -o) offer=\"table json csv\""));
    assert_non_null(strstr(text, "-a old -d 'Is \\'quoted\\''"));
    assert_non_null(strstr(text, "\n\\&.not a request"));
    assert_non_null(strstr(text, "\\fB\\-e\\fR, \\fB\\-\\-env\\fR \\fIK=V\\fR"));
    assert_non_null(strstr(text, "  -o, --output table|json|csv  how\n"));
    assert_fails(st_cli_complete(stdout, "bsh", verbs, &err), ST_EINVAL, "did you mean bash?");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ages),   cmocka_unit_test(test_moments),
        cmocka_unit_test(test_cells),  cmocka_unit_test(test_where),
        cmocka_unit_test(test_tables), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_grants), cmocka_unit_test(test_generated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
