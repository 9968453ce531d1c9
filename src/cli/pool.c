/*
 * `stint pool`: which nodes belong together, how their GPUs may be shared, and what a job may do there.
 */
#include <string.h>

#include "cli/admin_doc.h"
#include "cli/view.h"

#define JOBS_SHOWN 8 /* of those that a change is about */

typedef struct pool_flags {
    st_cli_format format;
    bool watch, force, dry_run;
    const char *levels, *oversubscribe, *engine;
    const char *tasks_per_job, *tasks_per_node, *cpu_per_gpu, *ram_per_gpu, *cpu_per_task,
        *ram_per_cpu, *booking_horizon, *booking_share;
    st_cli_words allow;
    /* for --watch */
    st_cli *cli;
    st_client *client;
} pool_flags;

#define TEXT_ROW(name, field, value, about)                                     \
    {                                                                           \
        name, 0, ST_CLI_STRING, offsetof(pool_flags, field), value, about, 0, 0 \
    }
#define OUTPUT_ROW                                                                     \
    {                                                                                  \
        "output", 'o', ST_CLI_LISTING, offsetof(pool_flags, format), "table|json|csv", \
            "output format (default: table)", 0, 0                                     \
    }

static const st_cli_row list_options[] = {
    {"watch", 'w', ST_CLI_FLAG, offsetof(pool_flags, watch), NULL,
     "repeat every two seconds until Ctrl-C", 0, 0},
    OUTPUT_ROW,
    {0},
};
static const st_cli_row show_options[] = {OUTPUT_ROW, {0}};
#define POOL_ROWS                                                                             \
    TEXT_ROW("levels", levels, "whole,mig,mps,time",                                          \
             "isolation levels of its GPUs (default: all)"),                                  \
        TEXT_ROW("oversubscribe", oversubscribe, "N",                                         \
                 "how far time-slicing may oversubscribe a GPU, 1 to 4 (default: 2)"),        \
        {"allow",                                                                             \
         0,                                                                                   \
         ST_CLI_MANY,                                                                         \
         offsetof(pool_flags, allow),                                                         \
         "host-image|host-network|rdma|none",                                                 \
         "what jobs may use of the node itself; repeatable (default: none)",                  \
         0,                                                                                   \
         0},                                                                                  \
        TEXT_ROW("engine", engine, "NAME",                                                    \
                 "who runs its jobs: native, sim, or auto (default: auto, each node's own)"), \
        TEXT_ROW("tasks-per-job", tasks_per_job, "N", "most tasks in a job"),                 \
        TEXT_ROW("tasks-per-node", tasks_per_node, "N", "most tasks on a node"),              \
        TEXT_ROW("cpu-per-gpu", cpu_per_gpu, "N",                                             \
                 "default CPUs per GPU; 0: an even part of the node"),                        \
        TEXT_ROW("ram-per-gpu", ram_per_gpu, "SIZE",                                          \
                 "default RAM per GPU; 0: half of an even part of the node"),                 \
        TEXT_ROW("cpu-per-task", cpu_per_task, "N",                                           \
                 "default CPUs per task without GPUs (default: 1)"),                          \
        TEXT_ROW("ram-per-cpu", ram_per_cpu, "SIZE",                                          \
                 "default RAM per CPU without GPUs; 0: half of an even part of the node"),    \
        TEXT_ROW("booking-horizon", booking_horizon, "DURATION",                              \
                 "how far ahead bookings there may begin; 0: as the policy says"),            \
        TEXT_ROW("booking-share", booking_share, "N",                                         \
                 "part of its GPUs that bookings may have; 0: as the policy says")
static const st_cli_row pool_options[] = {POOL_ROWS, {0}};

static const st_cli_row set_options[] = {
    POOL_ROWS,
    {"force", 'f', ST_CLI_FLAG, offsetof(pool_flags, force), NULL,
     "although bookings lose their place there", 0, 0},
    {"dry-run", 0, ST_CLI_FLAG, offsetof(pool_flags, dry_run), NULL,
     "show what would change, and for which jobs; change nothing", 0, 0},
    {"output", 'o', ST_CLI_OUTPUT, offsetof(pool_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

static const st_view_column pool_columns[] = {
    {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"NODES", "nodes", ST_VIEW_NUM, NULL},
    {"GPUS", "gpus", ST_VIEW_NUM, NULL},
    {"READY", "gpus_ready", ST_VIEW_NUM, NULL},
    {"OVERSUBSCRIBE", "oversubscribe", ST_VIEW_NUM, NULL},
    {"LEVELS", "levels", ST_VIEW_WORDS, NULL},
    {"ALLOW", "allow", ST_VIEW_WORDS, NULL},
    {0},
};
static const st_view_column pool_facts[] = {
    {"Pool", "name", ST_VIEW_TEXT, NULL},
    {"Nodes", "nodes", ST_VIEW_NUM, NULL},
    {"GPUs", "gpus", ST_VIEW_NUM, NULL},
    {"Ready", "gpus_ready", ST_VIEW_NUM, NULL},
    {"Oversubscribe", "oversubscribe", ST_VIEW_NUM, NULL},
    {"Levels", "levels", ST_VIEW_WORDS, NULL},
    {"Allow", "allow", ST_VIEW_WORDS, NULL},
    {"Engine", "engine", ST_VIEW_TEXT, NULL},
    {"Ways to yield", "yields", ST_VIEW_WORDS, NULL},
    {"Tasks per job", "tasks_per_job", ST_VIEW_NUM, NULL},
    {"Tasks per node", "tasks_per_node", ST_VIEW_NUM, NULL},
    {"CPU per GPU", "cpu_per_gpu", ST_VIEW_NUM, NULL},
    {"RAM per GPU", "ram_per_gpu_mib", ST_VIEW_MIB, NULL},
    {"CPU per task", "cpu_per_task", ST_VIEW_NUM, NULL},
    {"RAM per CPU", "ram_per_cpu_mib", ST_VIEW_MIB, NULL},
    {"Booking horizon", "booking_horizon_seconds", ST_VIEW_SECONDS, NULL},
    {"Booking share", "booking_share", ST_VIEW_NUM, NULL},
    {0},
};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 pool_flags *f, st_client **client, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, client, err);
    f->cli = cli;
    f->client = *client;
    return r;
}

static int show_pools(void *ctx, st_err *err)
{
    pool_flags *f = ctx;

    return st_view_list(f->cli, f->client, f->format, "/v1/pools", "pools", pool_columns, err);
}

int st_cli_pool_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    pool_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, err);

    return r < 0 ? r : st_view_watch(cli, f.watch, show_pools, &f, err);
}

int st_cli_pool_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    pool_flags f = {0};
    int r = begin(cli, argc, argv, show_options, 1, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "pools", argv[1]);
    r = st_view_one(cli, client, f.format, st_strbuf_str(&path), pool_facts, err);
    return r < 0 ? st_admin_near(client, "pools", argv[1], r, err) : 0;
}

/* ---- changing ----------------------------------------------------------------------------------- */

static void write_pool(st_body *body, const pool_flags *f)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf words = {0};

    st_body_list(body, "levels", f->levels);
    st_body_put(body, "oversubscribe", f->oversubscribe);
    for (int i = 0; i < f->allow.n; i++)
        if (strcmp(f->allow.v[i], "none") != 0)
            st_strbuf_addf(&words, "%s%s", words.n ? "," : "", f->allow.v[i]);
    if (words.n > 0)
        st_body_list(body, "allow", st_strbuf_str(&words));
    else if (f->allow.n > 0)
        st_body_raw(body, "allow", "[]");
    st_body_put(body, "engine", f->engine);
    st_body_put(body, "tasks_per_job", f->tasks_per_job);
    st_body_put(body, "tasks_per_node", f->tasks_per_node);
    st_body_put(body, "cpu_per_gpu", f->cpu_per_gpu);
    st_body_put(body, "ram_per_gpu", f->ram_per_gpu);
    st_body_put(body, "cpu_per_task", f->cpu_per_task);
    st_body_put(body, "ram_per_cpu", f->ram_per_cpu);
    st_body_put(body, "booking_horizon", f->booking_horizon);
    st_body_put(body, "booking_share", f->booking_share);
}

int st_cli_pool_add(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    pool_flags f = {0};
    int r = begin(cli, argc, argv, pool_options, 1, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_body_put(&body, "name", argv[1]);
    write_pool(&body, &f);
    st_strbuf_addf(&said, "pool %s added", argv[1]);
    return st_admin_send(
        cli, client,
        &(st_request){.method = "POST", .path = "/v1/pools", .body = st_body_end(&body)},
        ST_CLI_TABLE, st_strbuf_str(&said), err);
}

/* Of the facts of a pool those that differ. False: none does. */
static bool say_changes(FILE *out, const json_t *before, const json_t *after)
{
    bool any = false;

    for (const st_view_column *c = pool_facts; c->heading; c++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf was = {0}, is = {0};

        st_view_cell(before, c, false, 0, &was);
        st_view_cell(after, c, false, 0, &is);
        if (strcmp(st_strbuf_str(&was), st_strbuf_str(&is)) == 0)
            continue;
        fprintf(out, "%-15s  %s -> %s\n", c->heading, st_strbuf_str(&was), st_strbuf_str(&is));
        any = true;
    }
    return any;
}

static void say_jobs(FILE *out, const json_t *jobs, const char *what)
{
    size_t n = json_array_size(jobs);

    if (n == 0)
        return;
    fprintf(out, "%zu job%s %s:", n, n == 1 ? "" : "s", what);
    for (size_t i = 0; i < n && i < JOBS_SHOWN; i++)
        fprintf(out, " %s", st_view_text(json_array_get(jobs, i), "job"));
    fprintf(out, "%s\n", n > JOBS_SHOWN ? " ..." : "");
}

/* Asks what the change would do, and says so. *ret: whether anything would differ. */
static int try_set(st_cli *cli, const pool_flags *f, const st_request *request, bool *ret,
                   st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_request trial = *request;
    json_t *doc;
    int64_t bookings;
    int r;

    st_strbuf_addf(&path, "%s%sdry_run=true", request->path, f->force ? "&" : "?");
    trial.path = st_strbuf_str(&path);
    r = st_client_json(f->client, &trial, &doc, &response, err);
    if (r < 0)
        return r;
    if (f->format == ST_CLI_JSON) {
        if (f->dry_run)
            st_view_raw(cli, &response);
        *ret = !json_equal(st_view_at(doc, "before"), st_view_at(doc, "after"));
    } else {
        *ret = say_changes(cli->out, st_view_at(doc, "before"), st_view_at(doc, "after"));
        say_jobs(cli->out, st_view_at(doc, "starts"), "would start at once");
        say_jobs(cli->out, st_view_at(doc, "displaces"), "would have to leave");
        bookings = st_view_milli(doc, "bookings_degraded") / 1000;
        if (bookings > 0)
            fprintf(cli->out, "%lld booking%s would lose their place\n", (long long)bookings,
                    bookings == 1 ? "" : "s");
    }
    json_decref(doc);
    return 0;
}

/* What it changes is shown first, and made only to the pool as it was then. */
int st_cli_pool_set(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0}, path = {0};
    st_request request = {.method = "PATCH"};
    pool_flags f = {0};
    bool differs = false;
    char tag[80];
    int r = begin(cli, argc, argv, set_options, 1, 1, &f, &client, err);

    if (r < 0)
        return r;
    write_pool(&body, &f);
    if (st_body_empty(&body))
        return st_fail(err, ST_EINVAL, "%s: what shall change? (see `stint %s --help`)", argv[0],
                       argv[0]);
    st_admin_path(&path, "pools", argv[1]);
    r = st_admin_tag(client, st_strbuf_str(&path), tag, err);
    if (r < 0)
        return st_admin_near(client, "pools", argv[1], r, err);
    if (f.force)
        st_strbuf_add(&path, "?force=true");
    request.path = st_strbuf_str(&path);
    request.if_match = tag;
    request.body = st_body_end(&body);
    r = try_set(cli, &f, &request, &differs, err);
    if (r < 0)
        return r;
    st_strbuf_addf(&said, "pool %s %s", argv[1],
                   !differs    ? "is so already"
                   : f.dry_run ? "is as it was"
                               : "changed");
    if (differs && !f.dry_run)
        return st_admin_send(cli, client, &request, f.format, st_strbuf_str(&said), err);
    if (f.format == ST_CLI_TABLE)
        fprintf(cli->out, "%s\n", st_strbuf_str(&said));
    return 0;
}

const st_cli_verb st_cli_pool_verbs[] = {
    {"list", "List pools", "[OPTION...]", .fn = st_cli_pool_list, .options = list_options,
     .example = "  stint pool list\n"},
    {"show", "Show one pool", "[OPTION...] POOL", .fn = st_cli_pool_show, .options = show_options,
     .example = "  stint pool show main\n"},
    {"add", "Create a pool", "[OPTION...] POOL",
     "Without --allow, jobs in the pool cannot use the node's own files or network.\n",
     .fn = st_cli_pool_add, .options = pool_options,
     .example = "  stint pool add secure --levels whole,mig\n"
                "  stint pool add lab --allow host-image --allow host-network\n"},
    {"set", "Change a pool", "[OPTION...] POOL",
     "What you do not mention stays; --allow replaces all permissions. What changes is shown, old "
     "and\n"
     "new, with the jobs that start or have to leave by it. A change is refused where a job that "
     "runs\n"
     "or waits would lose its place.\n",
     .fn = st_cli_pool_set, .options = set_options,
     .example = "  stint pool set main --levels whole,mig --dry-run\n"
                "  stint pool set main --allow host-image --tasks-per-node 128\n"},
    {"remove", "Remove pools without nodes", "POOL...", .fn = st_cli_pool_remove,
     .example = "  stint pool remove lab\n"},
    {0},
};
