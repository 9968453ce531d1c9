/*
 * Finding and running a verb, and help from the same table (cli/cli.h).
 *
 * All that a user sees of a failure passes through st_cli_main: one line on
 * standard error, "stint: sentence", and the exit status of the error's code.
 */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "cli/topics.h"

#define VERBS_MAX 64

static const st_cli_verb *find_verb(const st_cli_verb *verbs, const char *name)
{
    for (; verbs->name; verbs++)
        if (strcmp(verbs->name, name) == 0)
            return verbs;
    return NULL;
}

static int fail_unknown(const char *path, const st_cli_verb *verbs, const char *word, st_err *err)
{
    const char *names[VERBS_MAX + 2] = {NULL}, *nearest;
    char q[ST_QUOTE_MAX];
    int n = 0;

    for (; n < VERBS_MAX && verbs[n].name; n++)
        names[n] = verbs[n].name;
    names[n] = "help";
    nearest = st_suggest(word, names);
    if (nearest)
        return st_fail(err, ST_EINVAL, "%s has no command %s (did you mean \"%s\"?)", path,
                       st_quote(q, word), nearest);
    return st_fail(err, ST_EINVAL, "%s has no command %s (`%s --help` lists them)", path,
                   st_quote(q, word), path);
}

static void print_verbs(st_cli *cli, const char *path, const st_cli_verb *verbs)
{
    int width = 0;

    for (const st_cli_verb *v = verbs; v->name; v++)
        width = ST_MAX(width, (int)strlen(v->name));
    fprintf(cli->out, "\nCommands:\n");
    for (const st_cli_verb *v = verbs; v->name; v++)
        fprintf(cli->out, "  %-*s  %s\n", width, v->name, v->summary);
    fprintf(cli->out, "\n`%s COMMAND --help` explains one of them.\n", path);
}

static void print_help(st_cli *cli, const char *path, const st_cli_verb *verb)
{
    fprintf(cli->out, "Usage: %s %s\n\n%s.\n", path, verb->usage, verb->summary);
    if (verb->help)
        fprintf(cli->out, "\n%s", verb->help);
    if (verb->options) {
        fprintf(cli->out, "\nOptions:\n");
        st_cli_print_options(cli->out, verb->options);
    }
    if (verb->example)
        fprintf(cli->out, "\nExample:\n%s", verb->example);
    if (verb->sub)
        print_verbs(cli, path, verb->sub);
    if (!verb->name)
        st_cli_topic_list(cli->out);
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* Follows argv[1], argv[2], ... down the tables and runs what it finds, or says how it is used.
 * path is where in the tables we are, "stint" at first. */
static int run_verb(st_cli *cli, st_strbuf *path, const st_cli_verb *verb, int argc, char **argv,
                    bool help, st_err *err)
{
    while (verb->sub) {
        const st_cli_verb *next;

        /* One that does something by itself: `stint bill` beside `stint bill verify`. */
        if (verb->fn &&
            (argc < 2 || (strcmp(argv[1], "help") != 0 && !find_verb(verb->sub, argv[1]))))
            break;
        if (argc < 2 && !help)
            return st_fail(err, ST_EINVAL, "no command was given (`%s --help` lists them)",
                           st_strbuf_str(path));
        if (argc >= 2 && strcmp(argv[1], "help") == 0) {
            help = true;
            argc--;
            argv++;
            continue;
        }
        if (argc < 2 || (argv[1][0] == '-' && wants_help(argc, argv))) {
            print_help(cli, st_strbuf_str(path), verb);
            return 0;
        }
        next = find_verb(verb->sub, argv[1]);
        if (!next)
            return fail_unknown(st_strbuf_str(path), verb->sub, argv[1], err);
        st_strbuf_addf(path, " %s", next->name);
        verb = next;
        argc--;
        argv++;
    }
    if (help || wants_help(argc, argv)) {
        print_help(cli, st_strbuf_str(path), verb);
        return 0;
    }
    ST_ASSERT(verb->fn);
    /* Messages say "sim shares: ...", so the verb is told its whole path. */
    argv[0] = path->s + strlen("stint ");
    return verb->fn(cli, argc, argv, err);
}

/* Whatever was buffered must have arrived: a full disk or a closed pipe is a failure. */
static int flush_out(st_cli *cli, st_err *err)
{
    errno = 0;
    if (fflush(cli->out) == 0 && !ferror(cli->out))
        return 0;
    return st_fail(err, ST_EIO, "cannot write the output: %s",
                   errno ? strerror(errno) : "an earlier write failed");
}

int st_cli_main(st_cli *cli, const st_cli_verb *verbs, int argc, char **argv)
{
    const st_cli_verb top = {
        .usage = "COMMAND ...",
        .summary = "Share one GPU fleet among teams",
        .sub = verbs,
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_err err = {0}, lost = {0};
    int r = 0;

    st_strbuf_add(&path, "stint");
    if (argc >= 3 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--man") == 0)
        st_cli_man(cli->out, verbs);
    else if (argc >= 3 && strcmp(argv[1], "help") == 0 && strcmp(argv[2], "--reference") == 0)
        st_cli_reference(cli->out, verbs);
    else if (argc == 3 && strcmp(argv[1], "help") == 0 && st_cli_topic(cli->out, argv[2]))
        r = 0;
    else if (argc >= 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0))
        fprintf(cli->out, "stint %s\n", ST_VERSION);
    else
        r = run_verb(cli, &path, &top, argc, argv, false, &err);
    if (r < 0)
        fprintf(cli->errors, "stint: %s\n", err.msg);
    if (flush_out(cli, &lost) < 0) {
        fprintf(cli->errors, "stint: %s\n", lost.msg);
        if (r == 0)
            r = -lost.code;
    }
    return r < 0 ? st_err_exit(r) : r;
}
