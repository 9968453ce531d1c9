/*
 * Options from a table (cli/cli.h): -o json, -ojson, --output json and
 * --output=json all mean the same, wherever they stand.
 */
#include "cli/cli.h"

#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"

#define OPTIONS_MAX 96
#define WIDEST      34 /* of an option and its value, with what it does on the same line */

static int set_output(const char *arg, const char *value, bool csv, st_cli_format *into,
                      st_err *err)
{
    static const char *const words[] = {"table", "json", "csv"};
    char q[ST_QUOTE_MAX];

    for (int i = 0; i < (csv ? 3 : 2); i++) {
        if (strcmp(value, words[i]) == 0) {
            *into = (st_cli_format)i;
            return 0;
        }
    }
    return st_fail(err, ST_EINVAL, "option %s: the output is %s, not %s", arg,
                   csv ? "table, json or csv" : "table or json", st_quote(q, value));
}

static int add_word(const char *arg, const char *value, st_cli_words *into, st_err *err)
{
    if (into->n == ST_CLI_WORDS_MAX)
        return st_fail(err, ST_ERANGE, "option %s may be given %d times at most", arg,
                       ST_CLI_WORDS_MAX);
    into->v[into->n++] = value;
    return 0;
}

static int set_value(const st_cli_opt *opt, const char *arg, const char *value, st_err *err)
{
    int r;

    switch (opt->kind) {
    case ST_CLI_FLAG:
        *(bool *)opt->into = true;
        return 0;
    case ST_CLI_STRING:
        *(const char **)opt->into = value;
        return 0;
    case ST_CLI_OUTPUT:
        return set_output(arg, value, false, opt->into, err);
    case ST_CLI_LISTING:
        return set_output(arg, value, true, opt->into, err);
    case ST_CLI_MANY:
        return add_word(arg, value, opt->into, err);
    case ST_CLI_I64:
        r = st_parse_i64(value, opt->lo, opt->hi, opt->into, err);
        return r < 0 ? st_fail_prefix(err, "option %s: ", arg) : 0;
    }
    return st_fail(err, ST_EINTERNAL, "option %s is of no kind", arg);
}

/* -it: what people type as one; a name of two letters that stands before others. */
static bool is_pair(const st_cli_opt *opt, const char *arg)
{
    return strlen(opt->name) == 2 && strcmp(arg + 1, opt->name) == 0;
}

static const st_cli_opt *find_option(const st_cli_opt *opts, const char *arg, size_t len)
{
    for (; opts->name; opts++) {
        if (arg[1] != '-' && (opts->letter == arg[1] || is_pair(opts, arg)))
            return opts;
        if (arg[1] == '-' && strlen(opts->name) == len - 2 &&
            strncmp(opts->name, arg + 2, len - 2) == 0)
            return opts;
    }
    return NULL;
}

static int fail_unknown(const char *verb, const st_cli_opt *opts, const char *arg, st_err *err)
{
    const char *names[OPTIONS_MAX + 1] = {NULL}, *nearest = NULL;
    char q[ST_QUOTE_MAX], word[ST_QUOTE_MAX];

    for (int i = 0; i < OPTIONS_MAX && opts[i].name; i++)
        names[i] = opts[i].name;
    if (arg[1] == '-') {
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
        nearest = st_suggest(word, names);
    }
    return st_fail(err, ST_EINVAL, "%s: unknown option %s%s%s%s", verb, st_quote(q, arg),
                   nearest ? " (did you mean --" : "", nearest ? nearest : "", nearest ? "?)" : "");
}

/* Reads the option at argv[*at] and its value, and moves *at to the last argument used. */
static int read_option(int argc, char **argv, const st_cli_opt *opts, int *at, st_err *err)
{
    const char *arg = argv[*at], *value = NULL;
    bool is_long = arg[1] == '-';
    size_t len = is_long ? strcspn(arg, "=") : 2;
    const st_cli_opt *opt = find_option(opts, arg, len);
    char q[ST_QUOTE_MAX];

    if (!opt)
        return fail_unknown(argv[0], opts, arg, err);
    if (!is_long && is_pair(opt, arg))
        len++;
    if (arg[len] != '\0')
        value = arg + len + is_long;
    if (opt->kind == ST_CLI_FLAG && value)
        return st_fail(err, ST_EINVAL, "%s: option %s takes no value", argv[0], st_quote(q, arg));
    if (opt->kind != ST_CLI_FLAG && !value) {
        if (*at + 1 >= argc)
            return st_fail(err, ST_EINVAL, "%s: option %s needs a value", argv[0], arg);
        value = argv[++*at];
    }
    return set_value(opt, arg, value, err);
}

int st_cli_options(int argc, char **argv, const st_cli_opt *opts, int min, int max,
                   int *ret_operands, st_err *err)
{
    bool ended = false;
    int n = 0;
    char q[ST_QUOTE_MAX];

    ST_ASSERT(argc > 0 && min <= max);
    for (int i = 1; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!ended && argv[i][0] == '-' && argv[i][1] != '\0') {
            int r = read_option(argc, argv, opts, &i, err);

            if (r < 0)
                return r;
        } else {
            argv[++n] = argv[i];
        }
    }
    if (n < min)
        return st_fail(err, ST_EINVAL, "%s: %s is missing (see `stint %s --help`)", argv[0],
                       n == 0 ? "an argument" : "another argument", argv[0]);
    if (n > max)
        return st_fail(err, ST_EINVAL, "%s: the argument %s is one too many", argv[0],
                       st_quote(q, argv[max + 1]));
    *ret_operands = n;
    return 0;
}

int st_cli_read(int argc, char **argv, const st_cli_row *rows, void *into, int min, int max,
                int *ret_operands, st_err *err)
{
    st_cli_opt opts[OPTIONS_MAX + 1] = {0};
    int operands;

    for (int i = 0; rows[i].name; i++) {
        ST_ASSERT(i < OPTIONS_MAX);
        opts[i] = (st_cli_opt){.name = rows[i].name,
                               .letter = rows[i].letter,
                               .kind = rows[i].kind,
                               .into = (char *)into + rows[i].offset,
                               .lo = rows[i].lo,
                               .hi = rows[i].hi};
    }
    return st_cli_options(argc, argv, opts, min, max, ret_operands ? ret_operands : &operands, err);
}

int st_cli_operand(int argc, char **argv, const st_cli_row *rows)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *arg = argv[i];
        bool is_long = arg[0] == '-' && arg[1] == '-';
        size_t len = is_long ? strcspn(arg, "=") : 2;
        const st_cli_row *row = rows;

        if (arg[0] != '-' || arg[1] == '\0')
            return i;
        while (row->name &&
               (is_long ? strlen(row->name) != len - 2 || strncmp(row->name, arg + 2, len - 2) != 0
                        : row->letter != arg[1]))
            row++;
        if (!row->name)
            return 0;
        if (row->kind != ST_CLI_FLAG && arg[len] == '\0')
            i++;
    }
    return 0;
}

static int row_width(const st_cli_row *r)
{
    return (int)(strlen(r->name) + (r->value ? strlen(r->value) + 1 : 0));
}

void st_cli_print_options(FILE *out, const st_cli_row *rows)
{
    int width = 0;

    for (const st_cli_row *r = rows; r->name; r++)
        if (row_width(r) <= WIDEST)
            width = ST_MAX(width, row_width(r));
    for (const st_cli_row *r = rows; r->name; r++) {
        if (r->letter)
            fprintf(out, "  -%c, ", r->letter);
        else
            fprintf(out, "      ");
        fprintf(out, "--%s%s%s", r->name, r->value ? " " : "", r->value ? r->value : "");
        if (row_width(r) <= width)
            fprintf(out, "%*s", width - row_width(r), "");
        else
            fprintf(out, "\n%*s", width + 8, "");
        fprintf(out, "  %s\n", r->about);
    }
}
