/*
 * The frame every verb of `stint` is hung in: a table of verbs, options, help,
 * and one way to fail.
 *
 * To add a verb: write cli/VERB.c with an `int st_cli_VERB(...)` of type
 * st_cli_fn, declare it below, and add one row to the table in main.c (or, for
 * `stint sim VERB`, in sim.c). Help and suggestions follow the rows.
 */
#ifndef ST_CLI_CLI_H
#define ST_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* What a verb is given. It writes results to out and speaks to people on errors; that writing to
 * out failed is noticed by st_cli_main, so verbs need not look. */
typedef struct st_cli {
    FILE *out;
    FILE *errors;
} st_cli;

/* argv[0] is the verb, "sim shares". Returns 0, a negative code with err filled, which is printed and turned
 * into the exit status of base/err.h's table, or a positive exit status when the verb has itself
 * said what there is to say. */
typedef int st_cli_fn(st_cli *cli, int argc, char **argv, st_err *err);

typedef struct st_cli_verb {
    const char *name;
    const char *summary; /* one line, without a full stop */
    const char *usage;   /* what follows the verb: "[-o table|json] FILE" */
    const char *help;    /* paragraphs for `stint help VERB`, or NULL */
    st_cli_fn *fn;       /* NULL when sub is set */
    const struct st_cli_verb *sub;
} st_cli_verb;

/* Tables of verbs end with a row of NULLs. */
extern const st_cli_verb st_cli_sim_verbs[];

/* The verbs, one file each. */
int st_cli_sim_run(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_fuzz(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_gen(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_fragmentation(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_shares(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_trace(st_cli *cli, int argc, char **argv, st_err *err);

/* Runs the program over a table; the result is the exit status. */
int st_cli_main(st_cli *cli, const st_cli_verb *verbs, int argc, char **argv);

/* Options. */
typedef enum { ST_CLI_TABLE, ST_CLI_JSON } st_cli_format;

typedef enum {
    ST_CLI_FLAG,   /* no value; into a bool */
    ST_CLI_STRING, /* into a const char * */
    ST_CLI_I64,    /* into an int64_t, from lo to hi */
    ST_CLI_OUTPUT, /* table or json; into an st_cli_format */
} st_cli_opt_kind;

typedef struct st_cli_opt {
    const char *name; /* --output */
    char letter;      /* -o; 0: none */
    st_cli_opt_kind kind;
    void *into; /* untouched unless the option is given */
    int64_t lo, hi;
} st_cli_opt;

/* The row most verbs begin with. */
#define ST_CLI_OPT_OUTPUT(format_ptr)                    \
    {                                                    \
        "output", 'o', ST_CLI_OUTPUT, (format_ptr), 0, 0 \
    }

/* Reads the options, which may stand before and after the operands ("--" ends them), and moves the
 * operands to argv[1 ..]; fails unless there are min to max of them. opts ends with a row without
 * a name. */
int st_cli_options(int argc, char **argv, const st_cli_opt *opts, int min, int max,
                   int *ret_operands, st_err *err);

#endif
