/*
 * `stint admin restore`: what a restore from a backup would adopt, end and run again, and the owner's word for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/spinner.h"
#include "cli/view.h"

#define PATH     "/v1/admin/restore"
#define AGAIN_MS 300
#define WAIT_S   600

typedef struct restore_flags {
    st_cli_format format;
    bool yes;
} restore_flags;

const st_cli_row st_cli_restore_options[] = {
    {"output", 'o', ST_CLI_OUTPUT, offsetof(restore_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {"yes", 'y', ST_CLI_FLAG, offsetof(restore_flags, yes), NULL, "accept without asking", 0, 0},
    {0},
};

static int count(const json_t *rows, const char *word)
{
    const json_t *row;
    size_t i;
    int n = 0;

    json_array_foreach(rows, i, row) n += strcmp(st_view_text(row, "becomes"), word) == 0;
    return n;
}

static void show_nodes(const st_cli *cli, const json_t *nodes)
{
    const json_t *node, *task;
    size_t i, t;

    json_array_foreach(nodes, i, node)
    {
        const json_t *tasks = json_object_get(node, "tasks");

        if (!json_is_true(json_object_get(node, "heard"))) {
            fprintf(cli->out, "  %-20s has not been heard; its lease is over in %lld s\n",
                    st_view_text(node, "node"),
                    (long long)json_integer_value(json_object_get(node, "lease_seconds")));
            continue;
        }
        fprintf(cli->out, "  %-20s %d adopted, %d over, %d ended, %d forgotten\n",
                st_view_text(node, "node"), count(tasks, "adopted"), count(tasks, "over"),
                count(tasks, "ended"), count(tasks, "forgotten"));
        json_array_foreach(tasks, t, task)
        {
            if (strcmp(st_view_text(task, "becomes"), "ended") != 0)
                continue;
            fprintf(cli->out, "    ends %s task %lld: %s\n", st_view_text(task, "job"),
                    (long long)json_integer_value(json_object_get(task, "task")),
                    st_view_text(task, "why"));
        }
    }
}

static void show_jobs(const st_cli *cli, const json_t *jobs)
{
    const json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job)
    {
        const char *becomes = st_view_text(job, "becomes");

        fprintf(cli->out, "  %s  %-20s %-16s %s%s%s\n", st_view_text(job, "job"),
                st_view_text(job, "name"), st_view_text(job, "account"),
                strcmp(becomes, "again") == 0   ? "runs again"
                : strcmp(becomes, "stops") == 0 ? "was about to leave, and has left"
                                                : "adopted",
                json_object_get(job, "why") ? ": " : "", st_view_text(job, "why"));
    }
}

static void show(const st_cli *cli, const json_t *doc)
{
    const json_t *jobs = json_object_get(doc, "jobs");

    if (strcmp(st_view_text(doc, "state"), "none") == 0) {
        fprintf(cli->out, "No restore waits.\n");
        if (st_view_at(doc, "restored_at"))
            fprintf(cli->out, "The last one was of %s, at %s.\n", st_view_text(doc, "from"),
                    st_view_text(doc, "restored_at"));
        return;
    }
    fprintf(cli->out,
            "State          %s\nRestored from  %s\nRestored at    %s\nKnows up to    %s\n",
            st_view_text(doc, "state"), st_view_text(doc, "from"), st_view_text(doc, "restored_at"),
            st_view_text(doc, "backup_at"));
    fprintf(cli->out, "Nodes\n");
    show_nodes(cli, json_object_get(doc, "nodes"));
    fprintf(cli->out, "Jobs on nodes: %d adopted, %d run again\n", count(jobs, "adopted"),
            count(jobs, "again"));
    show_jobs(cli, jobs);
    fprintf(cli->out,
            "%lld jobs wait; those that have run since the backup run again.\n"
            "%lld tokens are valid; those revoked since the backup are valid again.\n"
            "What was submitted, changed, billed or closed since the backup is void.\n",
            (long long)json_integer_value(json_object_get(doc, "waiting_jobs")),
            (long long)json_integer_value(json_object_get(doc, "valid_tokens")));
}

static int get(st_client *client, json_t **ret, st_err *err)
{
    json_decref(*ret);
    *ret = NULL;
    return st_client_json(client, &(st_request){.method = "GET", .path = PATH}, ret, NULL, err);
}

/* Nodes end what is to end; that takes as long as tasks take to stop. */
static int follow(const st_cli *cli, st_client *client, json_t **doc, st_err *err)
{
    int64_t until = st_cli_clock_ms() + WAIT_S * 1000;
    int r = 0;

    while (r == 0 && strcmp(st_view_text(*doc, "state"), "accepted") == 0) {
        if (st_cli_clock_ms() > until)
            return st_fail(err, ST_EDOWN,
                           "nodes still have tasks that are to end; see `stint admin restore`");
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
        r = get(client, doc, err);
    }
    if (r == 0)
        fprintf(cli->out, "The restore is done: stintd decides again.\n");
    return r;
}

static int accept(const st_cli *cli, st_client *client, const restore_flags *f, json_t **doc,
                  st_err *err)
{
    char body[128];
    int r;

    if (strcmp(st_view_text(*doc, "state"), "none") == 0)
        return st_fail(err, ST_ESTATE, "no restore waits to be accepted");
    r = f->yes ? 0
               : st_cli_agree(cli, "Accept this? It cannot be undone.",
                              "look at `stint admin restore`", err);
    if (r == 0 && strcmp(st_view_text(*doc, "state"), "waiting") == 0) {
        snprintf(body, sizeof body, "{\"plan\": \"%s\"}", st_view_text(*doc, "plan"));
        json_decref(*doc);
        *doc = NULL;
        r = st_client_json(client, &(st_request){.method = "POST", .path = PATH, .body = body}, doc,
                           NULL, err);
    }
    return r < 0 ? r : follow(cli, client, doc, err);
}

int st_cli_admin_restore(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    restore_flags f = {0};
    json_t *doc = NULL;
    int n = 0, r = st_cli_read(argc, argv, st_cli_restore_options, &f, 0, 1, &n, err);

    if (r == 0 && n > 0 && strcmp(argv[1], "accept") != 0)
        r = st_fail(err, ST_EINVAL, "%s: accept, or nothing to look at it", argv[0]);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = get(client, &doc, err);
    if (r == 0 && f.format == ST_CLI_JSON)
        json_dumpf(doc, cli->out, JSON_INDENT(2));
    else if (r == 0)
        show(cli, doc);
    if (r == 0 && f.format == ST_CLI_JSON)
        fputc('\n', cli->out);
    if (r == 0 && n > 0)
        r = accept(cli, client, &f, &doc, err);
    json_decref(doc);
    return r;
}
