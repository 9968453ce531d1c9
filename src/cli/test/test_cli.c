/*
 * The frame of the CLI over a table of its own: options, verbs, help, exit
 * statuses, tables.
 */
#include "base/mem.h"
#include "base/testing.h"
#include "cli/cli.h"
#include "cli/table.h"

static int say_words(st_cli *cli, int argc, char **argv, st_err *err)
{
    for (int i = 0; i < argc; i++)
        fprintf(cli->out, "[%s]", argv[i]);
    (void)err;
    return 0;
}

static int fail_full(st_cli *cli, int argc, char **argv, st_err *err)
{
    (void)cli;
    (void)argc;
    return st_fail(err, ST_EQUOTA, "%s is full", argv[0]);
}

static int exit_three(st_cli *cli, int argc, char **argv, st_err *err)
{
    (void)cli;
    (void)argc;
    (void)argv;
    (void)err;
    return 3;
}

static const st_cli_verb inner_verbs[] = {
    {"words", "Says its words", "WORD...", "At length.\n", .fn = say_words},
    {0},
};

static const st_cli_verb verbs[] = {
    {"full", "Fails", "", NULL, .fn = fail_full},
    {"three", "Exits with 3", "", NULL, .fn = exit_three},
    {"group", "Has commands", "COMMAND ...", NULL, .sub = inner_verbs},
    {0},
};

typedef struct cli_run {
    const char *line; /* arguments, separated by blanks */
    int status;
    const char *out, *errors; /* what must be contained; NULL: nothing may be there */
} cli_run;

static const cli_run runs[] = {
    {"", 2, NULL, "stint: no command was given"},
    {"--version", 0, "stint " ST_VERSION "\n", NULL},
    {"--help", 0, "  group  Has commands\n", NULL},
    {"-h", 0, "Usage: stint COMMAND ...\n", NULL},
    {"help", 0, "  three  Exits with 3\n", NULL},
    {"help help", 0, "  three  Exits with 3\n", NULL},
    {"full", 6, NULL, "stint: full is full\n"},
    {"three", 3, NULL, NULL},
    {"thre", 2, NULL, "stint: stint has no command \"thre\" (did you mean \"three\"?)\n"},
    {"hepl", 2, NULL, "(did you mean \"help\"?)\n"},
    {"zzzzzz", 2, NULL, "(`stint --help` lists them)\n"},
    {"--zzzz", 2, NULL, "stint: stint has no command \"--zzzz\""},
    {"group", 2, NULL, "stint: no command was given (`stint group --help` lists them)\n"},
    {"group --help", 0, "  words  Says its words\n", NULL},
    {"help group words", 0, "Usage: stint group words WORD...\n\nSays its words.\n\nAt length.\n",
     NULL},
    {"group help words", 0, "At length.\n", NULL},
    {"group words -h", 0, "At length.\n", NULL},
    {"group wrods", 2, NULL, "stint group has no command \"wrods\" (did you mean \"words\"?)"},
    {"help group wrods", 2, NULL, "(did you mean \"words\"?)"},
    {"group words a b", 0, "[group words][a][b]", NULL},
    {"group words -- --help", 0, "[group words][--][--help]", NULL},
};

static int split(char *line, char **ret)
{
    int n = 0;
    char *save = NULL;

    ret[n++] = line + strlen(line); /* the program's own name, of no interest */
    for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
        ret[n++] = word;
    ret[n] = NULL;
    return n;
}

static void check_text(const char *line, const char *text, const char *want)
{
    if (want ? !strstr(text, want) : *text != '\0')
        fail_msg("\"%s\": got \"%s\", wanted \"%s\"", line, text, want ? want : "nothing");
}

static void test_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(runs); i++) {
        const cli_run *s = &runs[i];
        ST_CLEANUP(st_freep) char *line = st_xstrdup(s->line);
        char *argv[16], *out = NULL, *errors = NULL;
        size_t out_size, errors_size;
        st_cli cli = {open_memstream(&out, &out_size), open_memstream(&errors, &errors_size)};
        int status = st_cli_main(&cli, verbs, split(line, argv), argv);

        fclose(cli.out);
        fclose(cli.errors);
        if (status != s->status)
            fail_msg("\"%s\": exit status %d, wanted %d", s->line, status, s->status);
        check_text(s->line, out, s->out);
        check_text(s->line, errors, s->errors);
        free(out);
        free(errors);
    }
}

/* A verb that succeeded but whose output was lost did not succeed. */
static void test_lost_output(void **state)
{
    char line[] = "group words a", *argv[16], *errors = NULL;
    size_t errors_size;
    st_cli cli = {fopen("/dev/full", "w"), open_memstream(&errors, &errors_size)};

    (void)state;
    assert_non_null(cli.out);
    assert_int_equal(st_cli_main(&cli, verbs, split(line, argv), argv), 7);
    fclose(cli.out);
    fclose(cli.errors);
    assert_non_null(strstr(errors, "stint: cannot write the output: "));
    free(errors);
}

typedef struct settings {
    st_cli_format format;
    bool quiet;
    const char *name;
    int64_t seed;
    int operands;
    char *argv[16];
} settings;

static int read_options(char *line, settings *ret, st_err *err)
{
    const st_cli_opt opts[] = {
        ST_CLI_OPT_OUTPUT(&ret->format),
        {"quiet", 'q', ST_CLI_FLAG, &ret->quiet, 0, 0},
        {"name", 0, ST_CLI_STRING, &ret->name, 0, 0},
        {"seed", 's', ST_CLI_I64, &ret->seed, 0, 99},
        {0},
    };

    return st_cli_options(split(line, ret->argv), ret->argv, opts, 1, 2, &ret->operands, err);
}

static void test_options(void **state)
{
    char defaults[] = "f", all[] = "-q f --name=x=y -s7 -o json g", ended[] = "--name --z -- -q";
    char spelled[] = "--output=json --seed 8 -";
    settings s = {.seed = 5};
    st_err err = {0};

    (void)state;
    assert_ok(read_options(defaults, &s, &err));
    assert_int_equal(s.format, ST_CLI_TABLE);
    assert_int_equal(s.seed, 5);
    assert_null(s.name);

    assert_ok(read_options(all, &s, &err));
    assert_true(s.quiet);
    assert_string_equal(s.name, "x=y");
    assert_int_equal(s.seed, 7);
    assert_int_equal(s.format, ST_CLI_JSON);
    assert_int_equal(s.operands, 2);
    assert_string_equal(s.argv[1], "f");
    assert_string_equal(s.argv[2], "g");

    s = (settings){0};
    assert_ok(read_options(ended, &s, &err));
    assert_string_equal(s.name, "--z");
    assert_false(s.quiet);
    assert_string_equal(s.argv[1], "-q");

    assert_ok(read_options(spelled, &s, &err));
    assert_int_equal(s.seed, 8);
    assert_int_equal(s.format, ST_CLI_JSON);
    assert_string_equal(s.argv[1], "-");
}

static void test_bad_options(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"", "an argument is missing"},
        {"a b c", "\"c\" is one too many"},
        {"-o xml f", "the output is table or json, not \"xml\""},
        {"f -o", "option -o needs a value"},
        {"--quiet=yes f", "\"--quiet=yes\" takes no value"},
        {"-qs f", "\"-qs\" takes no value"},
        {"--sede=1 f", "unknown option \"--sede=1\" (did you mean --seed?)"},
        {"-x f", "unknown option \"-x\""},
        {"--seed 100 f", "option --seed: \"100\" is out of range: it must be from 0 to 99"},
        {"--seed=x f", "\"x\" is not a whole number"},
        {"--=x f", "unknown option"},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(cases); i++) {
        ST_CLEANUP(st_freep) char *line = st_xstrdup(cases[i].line);
        settings s = {0};
        st_err err = {0};

        assert_true(read_options(line, &s, &err) < 0);
        check_text(cases[i].line, err.msg, cases[i].message);
        assert_int_equal(st_err_exit(err.code), 2);
    }
}

static void test_table(void **state)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    st_table_column(&t, "NAME", false);
    st_table_column(&t, "N", true);
    st_table_column(&t, "NOTE", false);
    st_table_cell(&t, "équipe");
    st_table_cell(&t, "%d", 7);
    st_table_cell(&t, "long enough");
    st_table_cell(&t, "b");
    st_table_cell(&t, "%d", 1234);
    st_table_cell(&t, "x");
    st_table_print(&t, out);
    fclose(out);
    assert_string_equal(text, "NAME       N  NOTE\n"
                              "équipe     7  long enough\n"
                              "b       1234  x\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),    cmocka_unit_test(test_lost_output),
        cmocka_unit_test(test_options), cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
