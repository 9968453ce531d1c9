/*
 * The frame every verb of `stint` is hung in: a table of verbs, options, help,
 * and one way to fail.
 *
 * To add a verb: write cli/VERB.c with an `int st_cli_VERB(...)` of type
 * st_cli_fn, declare it below, and add one row to the table in verbs.c (or, for
 * `stint sim VERB`, in sim.c). Help, suggestions, completion and the manual
 * follow the rows.
 */
#ifndef ST_CLI_CLI_H
#define ST_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
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
    const struct st_cli_row *options; /* or NULL */
    const char *example;              /* command lines, or NULL */
} st_cli_verb;

/* Tables of verbs end with a row of NULLs. */
extern const st_cli_verb st_cli_verbs[], st_cli_sim_verbs[];
extern const st_cli_verb st_cli_account_verbs[], st_cli_token_verbs[], st_cli_user_verbs[];
extern const st_cli_verb st_cli_notice_verbs[], st_cli_volume_verbs[], st_cli_secret_verbs[],
    st_cli_witness_verbs[];
extern const st_cli_verb st_cli_node_verbs[], st_cli_pool_verbs[], st_cli_type_verbs[];
extern const st_cli_verb st_cli_admin_verbs[], st_cli_price_verbs[], st_cli_bill_verbs[],
    st_cli_invoice_verbs[], st_cli_fleet_verbs[], st_cli_calendar_verbs[], st_cli_book_verbs[];
extern const st_cli_verb st_cli_rule_verbs[], st_cli_size_verbs[], st_cli_image_verbs[],
    st_cli_class_verbs[], st_cli_service_verbs[];

/* The verbs, one file each. */
int st_cli_sim_run(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_exhaust(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_fuzz(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_gen(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_fragmentation(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_shares(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_replay(st_cli *cli, int argc, char **argv, st_err *err);
int st_cli_sim_trace(st_cli *cli, int argc, char **argv, st_err *err);

/* The verbs that talk to stintd; tables of options are beside them. */
st_cli_fn st_cli_login, st_cli_logout, st_cli_whoami, st_cli_console;
st_cli_fn st_cli_submit, st_cli_run, st_cli_ps, st_cli_show, st_cli_why, st_cli_logs, st_cli_whatif;
st_cli_fn st_cli_array, st_cli_admin_join, st_cli_cp;
st_cli_fn st_cli_hold, st_cli_release;
st_cli_fn st_cli_cancel, st_cli_priority, st_cli_limit, st_cli_wait, st_cli_top, st_cli_stats;
st_cli_fn st_cli_forward, st_cli_exec, st_cli_attach;
st_cli_fn st_cli_notebook;
st_cli_fn st_cli_quota, st_cli_metered, st_cli_budget;
st_cli_fn st_cli_bill, st_cli_bill_list, st_cli_bill_fleet, st_cli_bill_key, st_cli_bill_verify;
st_cli_fn st_cli_bill_log;
st_cli_fn st_cli_admin_plan, st_cli_admin_credit, st_cli_admin_reconcile;
st_cli_fn st_cli_admin_issuer, st_cli_admin_billing, st_cli_bill_trial;
st_cli_fn st_cli_account_limit, st_cli_book, st_cli_calendar;
st_cli_fn st_cli_account_list, st_cli_account_show, st_cli_account_create, st_cli_account_set,
    st_cli_account_remove;
st_cli_fn st_cli_admin_rotate, st_cli_admin_clock, st_cli_admin_restore;
st_cli_fn st_cli_token_list, st_cli_token_create, st_cli_token_revoke, st_cli_user_list;
st_cli_fn st_cli_node_list, st_cli_node_show, st_cli_node_drain, st_cli_node_ready;
st_cli_fn st_cli_node_fail, st_cli_node_add;
st_cli_fn st_cli_pool_list, st_cli_pool_show, st_cli_pool_add, st_cli_pool_set, st_cli_pool_remove,
    st_cli_type_list, st_cli_type_add;
st_cli_fn st_cli_series, st_cli_incidents, st_cli_neighbours, st_cli_events, st_cli_audit,
    st_cli_admin_backup, st_cli_admin_reload, st_cli_admin_export, st_cli_admin_import,
    st_cli_completion;

/* Runs the program over a table; the result is the exit status. */
int st_cli_main(st_cli *cli, const st_cli_verb *verbs, int argc, char **argv);

/* Options. */
typedef enum { ST_CLI_TABLE, ST_CLI_JSON, ST_CLI_CSV } st_cli_format;

typedef enum {
    ST_CLI_FLAG,    /* no value; into a bool */
    ST_CLI_STRING,  /* into a const char * */
    ST_CLI_I64,     /* into an int64_t, from lo to hi */
    ST_CLI_OUTPUT,  /* table or json; into an st_cli_format */
    ST_CLI_LISTING, /* table, json or csv; into an st_cli_format */
    ST_CLI_MANY,    /* may be given several times; into an st_cli_words */
} st_cli_opt_kind;

/* What an option that is given several times holds. The words are the arguments' own. */
#define ST_CLI_WORDS_MAX 256

typedef struct st_cli_words {
    int n;
    const char *v[ST_CLI_WORDS_MAX];
} st_cli_words;

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

/* Options as a table that is not tied to one call: `offset` says where in the verb's struct the
 * value goes; help, completion and the manual read the same rows. The last row has no name. */
typedef struct st_cli_row {
    const char *name;
    char letter;
    st_cli_opt_kind kind;
    size_t offset;
    const char *value; /* what the value is called: "N"; words to choose from: "a|b|c" */
    const char *about;
    int64_t lo, hi; /* of numbers */
} st_cli_row;

/* Options of the verbs that stand in st_cli_verbs. */
extern const st_cli_row st_cli_cp_options[];
extern const st_cli_row st_cli_login_options[], st_cli_logout_options[], st_cli_whoami_options[],
    st_cli_console_options[], st_cli_submit_options[], st_cli_run_options[],
    st_cli_whatif_options[], st_cli_ps_options[], st_cli_job_options[], st_cli_cancel_options[],
    st_cli_priority_options[], st_cli_hold_options[], st_cli_array_options[], st_cli_wait_options[],
    st_cli_stats_options[], st_cli_logs_options[], st_cli_top_options[], st_cli_quota_options[],
    st_cli_incidents_options[], st_cli_neighbours_options[], st_cli_series_options[],
    st_cli_account_limit_options[], st_cli_events_options[], st_cli_audit_options[];
extern const st_cli_row st_cli_completion_options[], st_cli_import_options[], st_cli_join_options[],
    st_cli_bill_options[], st_cli_usage_options[], st_cli_budget_options[],
    st_cli_reconcile_options[], st_cli_bill_fleet_options[], st_cli_bill_log_options[],
    st_cli_plan_options[], st_cli_credit_options[], st_cli_issuer_options[],
    st_cli_billing_options[], st_cli_trial_options[], st_cli_restore_options[],
    st_cli_book_options[], st_cli_calendar_options[];

extern const st_cli_row st_cli_forward_options[], st_cli_exec_options[], st_cli_attach_options[];
extern const st_cli_row st_cli_notebook_options[];

/* st_cli_options over such a table; `into` is the verb's struct. */
int st_cli_read(int argc, char **argv, const st_cli_row *rows, void *into, int min, int max,
                int *ret_operands, st_err *err);

/* Where the first operand stands that is not behind "--"; 0: there is none, or an option before it is wrong. */
int st_cli_operand(int argc, char **argv, const st_cli_row *rows);

/* What `stint help VERB` prints about the options and the example. */
void st_cli_print_options(FILE *out, const st_cli_row *rows);

/* The manual, as troff, from a table of verbs. */
void st_cli_man(FILE *out, const st_cli_verb *verbs);

/* Completion for a shell, from a table of verbs; fails for a shell nobody knows. */
int st_cli_complete(FILE *out, const char *shell, const st_cli_verb *verbs, st_err *err);

/* A public key: 64 hex digits, or a file with them. */
int st_cli_public_key(const char *given, unsigned char ret[32], st_err *err);

#endif
