/*
 * `stint incidents`: what is wrong with nodes and why, as far as it concerns who asks.
 */
#include "base/mem.h"
#include "cli/view.h"

typedef struct incidents_flags {
    st_cli_format format;
    bool all, reset;
    const char *node, *job;
} incidents_flags;

const st_cli_row st_cli_incidents_options[] = {
    {"all", 'a', ST_CLI_FLAG, offsetof(incidents_flags, all), NULL, "show what is over, too", 0, 0},
    {"node", 'n', ST_CLI_STRING, offsetof(incidents_flags, node), "NODE", "of this node alone", 0,
     0},
    {"job", 'j', ST_CLI_STRING, offsetof(incidents_flags, job), "ID",
     "of nodes that this job was on", 0, 0},
    {"reset", 'r', ST_CLI_FLAG, offsetof(incidents_flags, reset), NULL,
     "you have looked: faults take nodes out of service again", 0, 0},
    {"output", 'o', ST_CLI_LISTING, offsetof(incidents_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

static void add_nodes(const json_t *row, st_strbuf *out)
{
    const json_t *nodes = json_object_get(row, "nodes"), *node;
    size_t i, n = json_array_size(nodes);

    json_array_foreach(nodes, i, node)
    {
        if (i == 3 && n > 4) {
            st_strbuf_addf(out, " and %zu more", n - i);
            break;
        }
        st_strbuf_addf(out, "%s%s", i > 0 ? " " : "", st_view_text(node, "node"));
    }
}

static void add_states(const json_t *row, st_strbuf *out)
{
    const json_t *node;
    size_t i;

    json_array_foreach(json_object_get(row, "nodes"), i, node)
        st_strbuf_addf(out, "%s%s %s%s", i > 0 ? ", " : "", st_view_text(node, "node"),
                       st_view_text(node, "state"),
                       json_is_true(json_object_get(node, "held")) ? " (held back)" : "");
}

static void add_count(const json_t *row, st_strbuf *out)
{
    st_strbuf_addf(out, "%zu", json_array_size(json_object_get(row, "jobs")));
}

static void add_jobs(const json_t *row, st_strbuf *out)
{
    const json_t *job;
    size_t i;

    json_array_foreach(json_object_get(row, "jobs"), i, job) st_strbuf_addf(
        out, "%s%s on %s", i > 0 ? ", " : "", st_view_text(job, "job"), st_view_text(job, "node"));
    if (out->n == 0)
        st_strbuf_addc(out, '-');
}

/* What was said first; tenants are told what such faults are. */
static void add_what(const json_t *row, st_strbuf *out)
{
    const char *reason = st_view_text(row, "reason");

    if (json_is_true(json_object_get(row, "breaker")))
        st_strbuf_add(out, "LOOK: its nodes are held back; ");
    st_strbuf_add(out, reason[0] ? reason : st_view_text(row, "about"));
}

static int list(st_cli *cli, st_client *client, const incidents_flags *f, st_err *err)
{
    static const st_view_column columns[] = {
        {"INCIDENT", "id", ST_VIEW_TEXT, NULL}, {"STATE", "state", ST_VIEW_TEXT, NULL},
        {"CAUSE", "cause", ST_VIEW_TEXT, NULL}, {"FAULT", "fault", ST_VIEW_TEXT, NULL},
        {"SCOPE", "scope", ST_VIEW_TEXT, NULL}, {"SINCE", "opened", ST_VIEW_AGE, NULL},
        {"NODES", NULL, ST_VIEW_FN, add_nodes}, {"JOBS", NULL, ST_VIEW_FN, add_count},
        {"WHAT", NULL, ST_VIEW_FN, add_what},   {0},
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

    st_strbuf_addf(&path, "/v1/incidents?all=%s", f->all ? "true" : "false");
    if (f->node) {
        st_strbuf_add(&path, "&node=");
        st_url_add(&path, f->node);
    }
    if (f->job) {
        st_strbuf_add(&path, "&job=");
        st_url_add(&path, f->job);
    }
    return st_view_list(cli, client, f->format, st_strbuf_str(&path), "incidents", columns, err);
}

static int show(st_cli *cli, st_client *client, const incidents_flags *f, const char *id,
                st_err *err)
{
    static const st_view_column facts[] = {
        {"Incident", "id", ST_VIEW_TEXT, NULL},       {"State", "state", ST_VIEW_TEXT, NULL},
        {"Cause", "cause", ST_VIEW_TEXT, NULL},       {"Fault", "about", ST_VIEW_TEXT, NULL},
        {"Reason", "reason", ST_VIEW_TEXT, NULL},     {"Scope", "scope", ST_VIEW_TEXT, NULL},
        {"Pool", "pool", ST_VIEW_TEXT, NULL},         {"Opened", "opened", ST_VIEW_TIME, NULL},
        {"Closed", "closed", ST_VIEW_TIME, NULL},     {"Found", "times", ST_VIEW_NUM, NULL},
        {"Held back", "breaker", ST_VIEW_TEXT, NULL}, {"Nodes", NULL, ST_VIEW_FN, add_states},
        {"Your jobs", NULL, ST_VIEW_FN, add_jobs},    {0},
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

    st_strbuf_add(&path, "/v1/incidents/");
    st_url_add(&path, id);
    return st_view_one(cli, client, f->format, st_strbuf_str(&path), facts, err);
}

static int reset(const st_cli *cli, st_client *client, const char *id, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_request request = {.method = "POST"};
    json_t *answer = NULL;
    int r;

    st_strbuf_add(&path, "/v1/incidents/");
    st_url_add(&path, id);
    st_strbuf_add(&path, "/reset");
    request.path = st_strbuf_str(&path);
    r = st_client_json(client, &request, &answer, NULL, err);
    json_decref(answer);
    if (r == 0)
        fprintf(cli->out, "%s: faults take nodes out of service again\n", id);
    return r;
}

int st_cli_incidents(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    incidents_flags f = {0};
    int n, r = st_cli_read(argc, argv, st_cli_incidents_options, &f, 0, 1, &n, err);

    if (r == 0 && f.reset && n == 0)
        r = st_fail(err, ST_EINVAL, "--reset needs an incident: stint incidents --reset ID");
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    if (f.reset)
        return reset(cli, client, argv[1], err);
    return n > 0 ? show(cli, client, &f, argv[1], err) : list(cli, client, &f, err);
}
