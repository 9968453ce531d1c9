/*
 * `stint attach`: this terminal joined to a job's own, or to what it writes. Several may be at a time. Who may not enter the
 * job watches it.
 */
#include "cli/attach.h"

#include <poll.h>
#include <string.h>

#include "base/mem.h"
#include "cli/spinner.h"

#define TASK_MAX 1000000
#define LAST     4096 /* bytes of what was written before, to begin with */
#define AGAIN_MS 500
#define OVER_MS  5000  /* for a job whose connection ended to be over */
#define BEGIN_MS 20000 /* so long a task may take to begin on its node */

typedef struct attach_flags {
    int64_t task;
    bool read_only, all;
} attach_flags;

const st_cli_row st_cli_attach_options[] = {
    {"task", 't', ST_CLI_I64, offsetof(attach_flags, task), "N", "task number (default: 0)", 0,
     TASK_MAX},
    {"read-only", 'r', ST_CLI_FLAG, offsetof(attach_flags, read_only), NULL,
     "only watch: nothing is sent to the job", 0, 0},
    {"all", 0, ST_CLI_FLAG, offsetof(attach_flags, all), NULL,
     "begin with all of the output that is kept (default: with the last of it)", 0, 0},
    {0},
};

/* ---- one connection -------------------------------------------------------------------------------- */

/* Whether there is something to send to; a job that has neither a terminal nor input is watched. */
static int look(const st_attach_to *to, bool *ret_terminal, bool *ret_input, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *job = NULL;
    int r;

    st_job_path(&path, to->id, "");
    r = st_client_get(to->client, st_strbuf_str(&path), &job, err);
    if (r < 0)
        return st_job_near(to->client, to->id, r, err);
    *ret_terminal = json_is_true(st_view_at(job, "spec.terminal"));
    *ret_input = *ret_terminal || json_is_true(st_view_at(job, "spec.stdin"));
    json_decref(job);
    return 0;
}

static int open_one(const st_attach_to *to, bool read_only, st_tunnel *ret, st_err *err)
{
    json_t *body = json_pack("{s:s, s:I, s:b, s:I}", "kind", "attach", "task", (json_int_t)to->task,
                             "read_only", read_only, "from", (json_int_t)to->from);
    int r = st_tunnel_open(to->client, to->id, body, ret, err);

    json_decref(body);
    return r;
}

int st_attach_join(st_attach_to *to, st_err *err)
{
    ST_CLEANUP(st_dial_closep) st_dial *d = NULL;
    bool terminal = false, input = false;
    st_shell shell = {.cli = to->cli, .attached = true};
    st_tunnel tunnel = {0};
    int r = look(to, &terminal, &input, err);

    if (r < 0)
        return r;
    shell.mute = to->read_only || !input;
    r = open_one(to, shell.mute, &tunnel, err);
    if (r == -ST_EPERM && !shell.mute) {
        fprintf(to->cli->errors, "stint: %s; watching it\n", err->msg);
        shell.mute = to->read_only = true;
        r = open_one(to, true, &tunnel, err);
    }
    if (r == 0)
        r = st_tunnel_connect(to->client, &tunnel, &d, err);
    if (r < 0)
        return r;
    to->joined = true;
    to->stay = tunnel.stay;
    shell.d = d;
    shell.raw = terminal;
    r = st_shell_join(&shell, err);
    to->from = ST_MAX(to->from, 0) + shell.got;
    to->left = shell.left;
    return r;
}

/* ---- the verb -------------------------------------------------------------------------------------- */

/* The connection ended before its end was told: the job may be over all the same. 1: it is, and *ret_status is its. */
static int look_after(const st_attach_to *to, int *ret_status)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    int64_t until = st_cli_clock_ms() + OVER_MS;
    st_err quiet;

    st_job_path(&path, to->id, "");
    do {
        json_t *job = NULL;
        int r = st_client_get(to->client, st_strbuf_str(&path), &job, &quiet);
        int over = r == 0 && st_job_over(st_view_text(job, "state"));

        if (over) {
            fprintf(to->cli->errors, "job %s is %s\n", to->id, st_view_text(job, "state"));
            *ret_status = st_job_status(job);
        }
        json_decref(job);
        if (over || (r < 0 && r != -ST_EDOWN))
            return over;
    } while (st_cli_clock_ms() < until && !st_signals_wait(AGAIN_MS));
    return 0;
}

/* Running is what stintd has decided: the node may still be starting the task. */
static bool begins(const st_attach_to *to, int r)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *job = NULL;
    st_err quiet;

    if (r != -ST_ESTATE || to->joined)
        return false;
    st_job_path(&path, to->id, "");
    bool runs = st_client_get(to->client, st_strbuf_str(&path), &job, &quiet) == 0 &&
                strcmp(st_view_text(job, "state"), "running") == 0;
    json_decref(job);
    return runs;
}

static int attach(st_attach_to *to, st_err *err)
{
    int64_t until = st_cli_clock_ms() + BEGIN_MS;
    int status = 0, r = st_attach_join(to, err);

    while (begins(to, r) && st_cli_clock_ms() < until) {
        poll(NULL, 0, AGAIN_MS);
        r = st_attach_join(to, err);
    }
    if (to->left) {
        fprintf(to->cli->errors, "\njob %s goes on; `stint attach %s` joins it again\n", to->id,
                to->id);
        return 0;
    }
    if (r == -ST_EDOWN && to->joined) {
        st_signals_block();
        if (look_after(to, &status))
            return status;
    }
    return r;
}

int st_cli_attach(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    attach_flags f = {0};
    st_attach_to to = {.cli = cli, .from = -LAST};
    int r = st_cli_read(argc, argv, st_cli_attach_options, &f, 1, 1, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    to.client = client;
    to.id = argv[1];
    to.task = f.task;
    to.read_only = f.read_only;
    if (f.all)
        to.from = 0;
    return attach(&to, err);
}
