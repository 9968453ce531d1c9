/*
 * `stint neighbours`: jobs that a neighbour on a shared GPU slows, and those that slow one.
 */
#include "base/mem.h"
#include "cli/view.h"

typedef struct neighbours_flags {
    st_cli_format format;
    bool all;
    const char *job;
} neighbours_flags;

const st_cli_row st_cli_neighbours_options[] = {
    {"job", 'j', ST_CLI_STRING, offsetof(neighbours_flags, job), "ID", "this job alone", 0, 0},
    {"all", 'a', ST_CLI_FLAG, offsetof(neighbours_flags, all), NULL, "show what is over, too", 0,
     0},
    {"output", 'o', ST_CLI_LISTING, offsetof(neighbours_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

int st_cli_neighbours(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"JOB", "job", ST_VIEW_TEXT, NULL},          {"NAME", "name", ST_VIEW_TEXT, NULL},
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},  {"SIDE", "side", ST_VIEW_TEXT, NULL},
        {"STATE", "state", ST_VIEW_TEXT, NULL},      {"P99", "p99_ratio", ST_VIEW_NUM, NULL},
        {"NOW", "p99_ratio_now", ST_VIEW_NUM, NULL}, {"SINCE", "since", ST_VIEW_AGE, NULL},
        {"WHAT", "text", ST_VIEW_TEXT, NULL},        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    neighbours_flags f = {0};
    int r = st_cli_read(argc, argv, st_cli_neighbours_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_addf(&path, "/v1/neighbours?all=%s", f.all ? "true" : "false");
    if (f.job) {
        st_strbuf_add(&path, "&job=");
        st_url_add(&path, f.job);
    }
    return st_view_list(cli, client, f.format, st_strbuf_str(&path), "neighbours", columns, err);
}
