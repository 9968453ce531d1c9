/*
 * `stint exec`: a command in a job that runs, beside the job's own, with a terminal where there is one here.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/shell.h"

#define TASK_MAX 1000000

typedef struct exec_flags {
    int64_t task;
    bool tty, plain;
} exec_flags;

const st_cli_row st_cli_exec_options[] = {
    {"task", 't', ST_CLI_I64, offsetof(exec_flags, task), "N", "task number (default: 0)", 0,
     TASK_MAX},
    {"tty", 0, ST_CLI_FLAG, offsetof(exec_flags, tty), NULL,
     "give the command a terminal (default: if standard input and output are one)", 0, 0},
    {"no-tty", 0, ST_CLI_FLAG, offsetof(exec_flags, plain), NULL,
     "give it none: standard output and error stay apart, and end of input is passed on", 0, 0},
    {0},
};

static json_t *spec(const exec_flags *f, bool tty, char **command, int n)
{
    json_t *args = json_array(), *body;
    const char *term = getenv("TERM");
    int rows, cols;

    for (int i = 0; i < n; i++)
        json_array_append_new(args, json_string(command[i]));
    body =
        json_pack("{s:s, s:I, s:o}", "kind", "exec", "task", (json_int_t)f->task, "command", args);
    if (!tty)
        return body;
    st_shell_size(&rows, &cols);
    json_object_set_new(body, "tty", json_true());
    json_object_set_new(body, "rows", json_integer(rows));
    json_object_set_new(body, "cols", json_integer(cols));
    if (term && *term && strlen(term) <= 32)
        json_object_set_new(body, "term", json_string(term));
    return body;
}

int st_cli_exec(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_dial_closep) st_dial *d = NULL;
    exec_flags f = {0};
    st_tunnel tunnel;
    json_t *body;
    int n = 0, r = st_cli_read(argc, argv, st_cli_exec_options, &f, 2, INT32_MAX, &n, err);
    bool tty = f.tty || (!f.plain && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));

    if (r == 0 && f.tty && f.plain)
        r = st_fail(err, ST_EINVAL, "give --tty or --no-tty, not both");
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    body = spec(&f, tty, argv + 2, n - 1);
    r = st_tunnel_open(client, argv[1], body, &tunnel, err);
    json_decref(body);
    if (r == 0)
        r = st_tunnel_connect(client, &tunnel, &d, err);
    return r < 0 ? r : st_shell_join(&(st_shell){.cli = cli, .d = d, .raw = tty}, err);
}
