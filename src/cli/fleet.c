/*
 * `stint node` and `type`: what the fleet is made of. Pools: pool.c.
 */
#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "cli/admin_doc.h"
#include "cli/node_facts.h"
#include "cli/view.h"
#include "cli/when_flags.h"

typedef struct fleet_flags {
    st_cli_format format;
    bool watch, force;
    /* node add */
    const char *gpu, *gpus, *pool, *cpu, *ram, *rack, *block, *zone, *nvlink, *nvlink_domain;
    /* type add */
    const char *vram, *mig, *reason;
    /* node drain */
    const char *by, *within, *then; /* and zone: a time zone */
    const char *level;              /* node test */
    const char *one_gpu;
    /* for --watch */
    st_cli *cli;
    st_client *client;
} fleet_flags;

#define TEXT_ROW(name, field, value, about)                                      \
    {                                                                            \
        name, 0, ST_CLI_STRING, offsetof(fleet_flags, field), value, about, 0, 0 \
    }
#define OUTPUT_ROW                                                                      \
    {                                                                                   \
        "output", 'o', ST_CLI_LISTING, offsetof(fleet_flags, format), "table|json|csv", \
            "output format (default: table)", 0, 0                                      \
    }

static const st_cli_row list_options[] = {
    {"watch", 'w', ST_CLI_FLAG, offsetof(fleet_flags, watch), NULL,
     "repeat every two seconds until Ctrl-C", 0, 0},
    OUTPUT_ROW,
    {0},
};
static const st_cli_row show_options[] = {OUTPUT_ROW, {0}};
static const st_cli_row node_add_options[] = {
    TEXT_ROW("gpu", gpu, "TYPE", "GPU type"),
    TEXT_ROW("gpus", gpus, "N", "number of GPUs (default: 8)"),
    TEXT_ROW("pool", pool, "POOL", "pool of the node (default: the first)"),
    TEXT_ROW("cpu", cpu, "N", "CPUs for jobs (default: 128)"),
    TEXT_ROW("ram", ram, "SIZE", "memory for jobs (default: 2Ti)"),
    TEXT_ROW("rack", rack, "NAME", "rack of the node"),
    TEXT_ROW("block", block, "NAME", "block of the network fabric"),
    TEXT_ROW("zone", zone, "NAME", "zone of the node"),
    TEXT_ROW("nvlink", nvlink, "N", "GPUs in one NVLink domain"),
    TEXT_ROW("nvlink-domain", nvlink_domain, "NAME", "name of an NVLink domain that spans nodes"),
    {0},
};
static const st_cli_row type_add_options[] = {
    TEXT_ROW("vram", vram, "SIZE", "memory of one GPU; known types need no options"),
    TEXT_ROW("mig", mig, "BOARD", "board whose MIG profiles it has"),
    {0},
};

static const st_view_column node_columns[] = {
    {"NAME", "name", ST_VIEW_TEXT, NULL},  {"STATE", "state", ST_VIEW_TEXT, NULL},
    {"POOL", "pool", ST_VIEW_TEXT, NULL},  {"TYPE", "type", ST_VIEW_TEXT, NULL},
    {"GPUS", "gpus", ST_VIEW_NUM, NULL},   {"FREE", "gpus_free", ST_VIEW_NUM, NULL},
    {"CPU", "cpu", ST_VIEW_NUM, NULL},     {"RAM", "ram_mib", ST_VIEW_MIB, NULL},
    {"RACK", "rack", ST_VIEW_TEXT, NULL},  {"BLOCK", "block", ST_VIEW_TEXT, NULL},
    {"JOBS", "jobs", ST_VIEW_WORDS, NULL}, {0},
};
static const st_view_column type_columns[] = {
    {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"VRAM", "vram_mib", ST_VIEW_MIB, NULL},
    {"MIG", "mig", ST_VIEW_TEXT, NULL},
    {0},
};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 fleet_flags *f, st_client **client, int *ret_n, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, ret_n, err);

    if (r == 0)
        r = st_client_open(cli->errors, client, err);
    f->cli = cli;
    f->client = *client;
    return r;
}

static int show_nodes(void *ctx, st_err *err)
{
    fleet_flags *f = ctx;

    return st_view_list(f->cli, f->client, f->format, "/v1/nodes", "nodes", node_columns, err);
}

static int show_types(void *ctx, st_err *err)
{
    fleet_flags *f = ctx;

    return st_view_list(f->cli, f->client, f->format, "/v1/types", "types", type_columns, err);
}

static int list(st_cli *cli, int argc, char **argv, st_view_fn *show, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    fleet_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, NULL, err);

    return r < 0 ? r : st_view_watch(cli, f.watch, show, &f, err);
}

int st_cli_node_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    return list(cli, argc, argv, show_nodes, err);
}

int st_cli_type_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    return list(cli, argc, argv, show_types, err);
}

static int show(st_cli *cli, int argc, char **argv, const char *folder,
                const st_view_column *columns, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    fleet_flags f = {0};
    int r = begin(cli, argc, argv, show_options, 1, 1, &f, &client, NULL, err);

    if (r < 0)
        return r;
    st_admin_path(&path, folder, argv[1]);
    r = st_view_one(cli, client, f.format, st_strbuf_str(&path), columns, err);
    return r < 0 ? st_admin_near(client, folder, argv[1], r, err) : 0;
}

int st_cli_node_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    return show(cli, argc, argv, "nodes", st_cli_node_facts, err);
}

/* ---- changing ----------------------------------------------------------------------------------- */

static const st_cli_row part_options[] = {
    {"reason", 0, ST_CLI_STRING, offsetof(fleet_flags, reason), "TEXT",
     "why, for whoever looks at the node", 0, 0},
    TEXT_ROW("gpu", one_gpu, "N", "this GPU alone, numbered from 0; the others go on"),
    {"force", 'f', ST_CLI_FLAG, offsetof(fleet_flags, force), NULL,
     "although bookings lose their place there", 0, 0},
    {0},
};

static const st_cli_row state_options[] = {
    {"reason", 0, ST_CLI_STRING, offsetof(fleet_flags, reason), "TEXT",
     "why, for whoever looks at the node", 0, 0},
    {"force", 'f', ST_CLI_FLAG, offsetof(fleet_flags, force), NULL,
     "although bookings lose their place there", 0, 0},
    {0},
};

static const st_cli_row drain_options[] = {
    {"reason", 0, ST_CLI_STRING, offsetof(fleet_flags, reason), "TEXT",
     "why, for whoever looks at the node", 0, 0},
    TEXT_ROW("by", by, "TIME", "when its jobs must be off it: 2026-12-01 18:00, tomorrow 09:00"),
    TEXT_ROW("within", within, "DURATION", "the same, from now on: 2h"),
    TEXT_ROW("then", then, "requeue|pause|wait",
             "what becomes of those that still run then (default: requeue)"),
    TEXT_ROW("zone", zone, "ZONE", "time zone of --by (default: this machine's)"),
    TEXT_ROW("gpu", one_gpu, "N", "this GPU alone, numbered from 0; the others go on"),
    {"force", 'f', ST_CLI_FLAG, offsetof(fleet_flags, force), NULL,
     "although bookings lose their place there", 0, 0},
    {0},
};

/* As JSON has it; what is none is refused by the other side. */
static const char *number(const char *text)
{
    size_t n = strspn(text, "0123456789");

    return n > 0 && n < 3 && text[n] == '\0' ? text : "-1";
}

static int set_state_by(st_cli *cli, int argc, char **argv, const st_cli_row *options,
                        const char *state, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    fleet_flags f = {0};
    char zone[ST_CLI_ZONE_MAX];
    int n = 0, r = begin(cli, argc, argv, options, 1, INT32_MAX, &f, &client, &n, err);

    st_body_put(&body, "state", state);
    st_body_put(&body, "reason", f.reason);
    st_body_put(&body, "by", f.by);
    if (f.by)
        st_body_put(&body, "zone", st_when_flags_zone(&(st_when_flags){.zone = f.zone}, zone));
    st_body_put(&body, "within", f.within);
    st_body_put(&body, "then", f.then);
    if (f.one_gpu)
        st_body_raw(&body, "gpu", number(f.one_gpu));
    st_body_end(&body);
    for (int i = 1; r == 0 && i <= n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};

        st_admin_path(&path, "nodes", argv[i]);
        if (f.force)
            st_strbuf_add(&path, "?force=true");
        if (f.one_gpu)
            st_strbuf_addf(&said, "GPU %s of ", f.one_gpu);
        st_strbuf_addf(&said, "node %s is %s", argv[i], state);
        r = st_admin_send(cli, client,
                          &(st_request){.method = "PATCH",
                                        .path = st_strbuf_str(&path),
                                        .body = st_strbuf_str(&body.text)},
                          ST_CLI_TABLE, st_strbuf_str(&said), err);
        if (r < 0)
            r = st_admin_near(client, "nodes", argv[i], r, err);
    }
    return r;
}

static int set_state(st_cli *cli, int argc, char **argv, const char *state, st_err *err)
{
    return set_state_by(cli, argc, argv, state_options, state, err);
}

/* One request about each of the things that were named; `said` has a %s for its name. */
static int act(st_cli *cli, int argc, char **argv, const st_cli_row *options, const char *method,
               const char *folder, const char *verb, const char *said, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    fleet_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, options, 1, INT32_MAX, &f, &client, &n, err);

    for (int i = 1; r == 0 && i <= n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, text = {0};

        st_admin_path(&path, folder, argv[i]);
        st_strbuf_add(&path, verb);
        if (f.force)
            st_strbuf_add(&path, "?force=true");
        st_strbuf_addf(&text, "%.*s %s %s", (int)strlen(folder) - 1, folder, argv[i], said);
        r = st_admin_send(cli, client,
                          &(st_request){.method = method, .path = st_strbuf_str(&path)},
                          ST_CLI_TABLE, st_strbuf_str(&text), err);
        if (r < 0)
            r = st_admin_near(client, folder, argv[i], r, err);
    }
    return r;
}

static const st_cli_row none[] = {{0}};

static const st_cli_row label_options[] = {
    {"force", 'f', ST_CLI_FLAG, offsetof(fleet_flags, force), NULL,
     "although bookings lose their place there", 0, 0},
    {0},
};

/* NAME=VALUE adds one, NAME- takes it away. */
static int label_body(int n, char **words, st_body *body, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf set = {0}, gone = {0};

    for (int i = 0; i < n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};
        const char *value = strchr(words[i], '=');
        size_t len = value ? (size_t)(value - words[i]) : strlen(words[i]) - (*words[i] != 0);
        st_strbuf *out = value ? &set : &gone;
        char q[ST_QUOTE_MAX];

        if (len == 0 || (!value && words[i][len] != '-'))
            return st_fail(err, ST_EINVAL, "%s is neither NAME=VALUE nor NAME-",
                           st_quote(q, words[i]));
        st_strbuf_addn(&name, words[i], len);
        st_strbuf_add(out, out->n > 0 ? "," : value ? "{" : "[");
        st_quote_json(out, st_strbuf_str(&name));
        if (value) {
            st_strbuf_addc(out, ':');
            st_quote_json(out, value + 1);
        }
    }
    if (set.n > 0) {
        st_strbuf_addc(&set, '}');
        st_body_raw(body, "set", st_strbuf_str(&set));
    }
    if (gone.n > 0) {
        st_strbuf_addc(&gone, ']');
        st_body_raw(body, "remove", st_strbuf_str(&gone));
    }
    return 0;
}

static int node_label(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    fleet_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, label_options, 2, INT32_MAX, &f, &client, &n, err);

    if (r == 0)
        r = label_body(n - 1, argv + 2, &body, err);
    if (r < 0)
        return r;
    st_body_end(&body);
    st_admin_path(&path, "nodes", argv[1]);
    st_strbuf_add(&path, f.force ? "/labels?force=true" : "/labels");
    st_strbuf_addf(&said, "node %s has other labels", argv[1]);
    r = st_admin_send(cli, client,
                      &(st_request){.method = "PATCH",
                                    .path = st_strbuf_str(&path),
                                    .body = st_strbuf_str(&body.text)},
                      ST_CLI_TABLE, st_strbuf_str(&said), err);
    return r < 0 ? st_admin_near(client, "nodes", argv[1], r, err) : 0;
}

static int node_rejoin(st_cli *cli, int argc, char **argv, st_err *err)
{
    return act(cli, argc, argv, none, "POST", "nodes", "/rejoin",
               "may join again: start its agent with a join token of its pool", err);
}

static const st_cli_row remove_options[] = {
    {"force", 'f', ST_CLI_FLAG, offsetof(fleet_flags, force), NULL,
     "remove a failed node too: its machine is off, or its lease has ended", 0, 0},
    {0},
};

static int node_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    return act(cli, argc, argv, remove_options, "DELETE", "nodes", "", "is removed", err);
}

int st_cli_pool_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    return act(cli, argc, argv, none, "DELETE", "pools", "", "is removed", err);
}

int st_cli_node_drain(st_cli *cli, int argc, char **argv, st_err *err)
{
    return set_state_by(cli, argc, argv, drain_options, "draining", err);
}

int st_cli_node_ready(st_cli *cli, int argc, char **argv, st_err *err)
{
    return set_state_by(cli, argc, argv, part_options, "ready", err);
}

int st_cli_node_fail(st_cli *cli, int argc, char **argv, st_err *err)
{
    return set_state_by(cli, argc, argv, part_options, "failed", err);
}

static int node_suspect(st_cli *cli, int argc, char **argv, st_err *err)
{
    return set_state(cli, argc, argv, "suspect", err);
}

static int node_repair(st_cli *cli, int argc, char **argv, st_err *err)
{
    return set_state(cli, argc, argv, "repair", err);
}

static int node_retire(st_cli *cli, int argc, char **argv, st_err *err)
{
    return set_state_by(cli, argc, argv, part_options, "retired", err);
}

static const st_cli_row test_options[] = {
    TEXT_ROW("level", level, "quick|short|long|burn", "what is tested (default: quick)"),
    {"force", 'f', ST_CLI_FLAG, offsetof(fleet_flags, force), NULL,
     "although bookings lose their place there", 0, 0},
    {0},
};

static int node_test(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    fleet_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, test_options, 1, INT32_MAX, &f, &client, &n, err);

    st_body_put(&body, "level", f.level);
    st_body_end(&body);
    for (int i = 1; r == 0 && i <= n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};

        st_admin_path(&path, "nodes", argv[i]);
        st_strbuf_add(&path, f.force ? "/test?force=true" : "/test");
        st_strbuf_addf(&said, "node %s is being tested: stint node tests %s", argv[i], argv[i]);
        r = st_admin_send(cli, client,
                          &(st_request){.method = "POST",
                                        .path = st_strbuf_str(&path),
                                        .body = st_strbuf_str(&body.text)},
                          ST_CLI_TABLE, st_strbuf_str(&said), err);
        if (r < 0)
            r = st_admin_near(client, "nodes", argv[i], r, err);
    }
    return r;
}

/* What failed, or how many checks there were. */
static void add_checks(const json_t *row, st_strbuf *out)
{
    const json_t *results = json_object_get(row, "results"), *check;
    const char *why = json_string_value(json_object_get(row, "reason"));
    size_t i, skipped = 0;

    json_array_foreach(results, i, check) skipped +=
        strcmp(st_view_text(check, "verdict"), "skip") == 0;
    if (why && why[0])
        st_strbuf_add(out, why);
    else
        st_strbuf_addf(out, "%zu checks, %zu skipped", json_array_size(results), skipped);
}

static const st_view_column test_columns[] = {
    {"AT", "at", ST_VIEW_TIME, NULL},        {"TEST", "test", ST_VIEW_NUM, NULL},
    {"LEVEL", "level", ST_VIEW_TEXT, NULL},  {"PASSED", "passed", ST_VIEW_TEXT, NULL},
    {"FOUND", NULL, ST_VIEW_FN, add_checks}, {0},
};
static const st_view_column history_columns[] = {
    {"AT", "at", ST_VIEW_TIME, NULL},         {"STATE", "state", ST_VIEW_TEXT, NULL},
    {"GPU", "gpu", ST_VIEW_NUM, NULL},        {"BY", "by", ST_VIEW_TEXT, NULL},
    {"REASON", "reason", ST_VIEW_TEXT, NULL}, {0},
};

static const st_view_column remedy_columns[] = {
    {"AT", "at", ST_VIEW_TIME, NULL},
    {"INCIDENT", "incident", ST_VIEW_TEXT, NULL},
    {"FAULT", "fault", ST_VIEW_TEXT, NULL},
    {"REMEDY", "remedy", ST_VIEW_TEXT, NULL},
    {"STATE", "state", ST_VIEW_TEXT, NULL},
    {"WHAT", "text", ST_VIEW_TEXT, NULL},
    {0},
};

static int show_past(st_cli *cli, int argc, char **argv, const char *what,
                     const st_view_column *columns, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    fleet_flags f = {0};
    int r = begin(cli, argc, argv, show_options, 1, 1, &f, &client, NULL, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "nodes", argv[1]);
    st_strbuf_addf(&path, "/%s", what);
    r = st_view_list(cli, client, f.format, st_strbuf_str(&path), what, columns, err);
    return r < 0 ? st_admin_near(client, "nodes", argv[1], r, err) : 0;
}

static int node_tests(st_cli *cli, int argc, char **argv, st_err *err)
{
    return show_past(cli, argc, argv, "tests", test_columns, err);
}

static int node_remedies(st_cli *cli, int argc, char **argv, st_err *err)
{
    return show_past(cli, argc, argv, "remedies", remedy_columns, err);
}

static int node_history(st_cli *cli, int argc, char **argv, st_err *err)
{
    return show_past(cli, argc, argv, "history", history_columns, err);
}

static int add(st_cli *cli, int argc, char **argv, const st_cli_row *options, const char *folder,
               const char *what, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0}, path = {0};
    fleet_flags f = {0};
    int r = begin(cli, argc, argv, options, 1, 1, &f, &client, NULL, err);

    if (r < 0)
        return r;
    st_body_put(&body, "name", argv[1]);
    st_body_put(&body, "pool", f.pool);
    st_body_put(&body, "gpu", f.gpu);
    st_body_put(&body, "gpus", f.gpus);
    st_body_put(&body, "cpu", f.cpu);
    st_body_put(&body, "ram", f.ram);
    st_body_put(&body, "rack", f.rack);
    st_body_put(&body, "block", f.block);
    st_body_put(&body, "zone", f.zone);
    st_body_put(&body, "nvlink", f.nvlink);
    st_body_put(&body, "nvlink_domain", f.nvlink_domain);
    st_body_put(&body, "vram", f.vram);
    st_body_put(&body, "mig", f.mig);
    st_strbuf_addf(&path, "/v1/%s", folder);
    st_strbuf_addf(&said, "%s %s added", what, argv[1]);
    return st_admin_send(
        cli, client,
        &(st_request){.method = "POST", .path = st_strbuf_str(&path), .body = st_body_end(&body)},
        ST_CLI_TABLE, st_strbuf_str(&said), err);
}

int st_cli_node_add(st_cli *cli, int argc, char **argv, st_err *err)
{
    return add(cli, argc, argv, node_add_options, "nodes", "node", err);
}

int st_cli_type_add(st_cli *cli, int argc, char **argv, st_err *err)
{
    return add(cli, argc, argv, type_add_options, "types", "type", err);
}

const st_cli_verb st_cli_node_verbs[] = {
    {"list", "List nodes, with your own jobs on them", "[OPTION...]", .fn = st_cli_node_list,
     .options = list_options, .example = "  stint node list --watch\n"},
    {"show", "Show one node", "[OPTION...] NODE", .fn = st_cli_node_show, .options = show_options,
     .example = "  stint node show node07\n"},
    {"drain", "Take nodes out of service once their jobs have ended", "[OPTION...] NODE...",
     "With a time the nodes are empty by then. Their jobs are told at once when that is, and are\n"
     "told to leave so early that notice and grace are over by then. requeue: each saves, if it\n"
     "can, and waits for another place. pause: jobs that can be paused stay in host memory and go\n"
     "on when the node is ready again. wait: jobs stay.\n",
     .fn = st_cli_node_drain, .options = drain_options,
     .example = "  stint node drain node07 node08\n"
                "  stint node drain node07 --within 2h --reason 'new fans'\n"
                "  stint node drain node07 --by \"tomorrow 09:00\" --then pause\n"},
    {"ready", "Take nodes back into service", "[OPTION...] NODE...", .fn = st_cli_node_ready,
     .options = part_options,
     .example = "  stint node ready node07\n"
                "  stint node ready --gpu 3 node07\n"},
    {"fail", "Declare nodes failed: their jobs restart elsewhere", "[OPTION...] NODE...",
     "With --gpu only that GPU is out of service: jobs that have it restart elsewhere, and all\n"
     "others on the node go on.\n",
     .fn = st_cli_node_fail, .options = part_options,
     .example = "  stint node fail node07\n"
                "  stint node fail --gpu 3 --reason 'ECC errors' node07\n"},
    {"suspect", "Give nodes no new jobs until they have been tested", "[--reason TEXT] NODE...",
     "Jobs on the nodes go on. After the policy suspect (10m) the agent tests its node, which\n"
     "is ready again if it passes.\n",
     .fn = node_suspect, .example = "  stint node suspect node07 --reason 'slow in two jobs'\n"},
    {"repair", "Take nodes out for repair once their jobs have ended", "[--reason TEXT] NODE...",
     "`stint node ready` brings a node back: its agent tests it first.\n", .fn = node_repair,
     .example = "  stint node repair node07 --reason 'fan'\n"},
    {"retire", "Take nodes out of service for good, and keep their names", "[OPTION...] NODE...",
     .fn = node_retire, .options = part_options,
     .example = "  stint node retire node07 --reason 'third memory fault'\n"},
    {"test", "Have nodes tested by their agents", "[OPTION...] NODE...",
     "quick reads what the GPUs say of themselves, and runs nothing on them. short (2 minutes)\n"
     "copies, and writes and reads device memory; long (15 minutes) also makes matrix products;\n"
     "burn does that for 2 hours. For these the node takes no new jobs, and they begin when its\n"
     "last job with GPUs has ended. A node that fails goes to repair; its jobs go on.\n",
     .fn = node_test, .options = test_options,
     .example = "  stint node test node07\n  stint node test --level short node07 node08\n"},
    {"tests", "Show the last tests of a node", "[OPTION...] NODE", .fn = node_tests,
     .options = show_options, .example = "  stint node tests node07\n"},
    {"remedies", "Show what was done to mend a node (owners)", "[OPTION...] NODE",
     .fn = node_remedies, .options = show_options, .example = "  stint node remedies node07\n"},
    {"history", "Show what became of a node", "[OPTION...] NODE", .fn = node_history,
     .options = show_options, .example = "  stint node history node07\n"},
    {"label", "Add labels to a node, or take them away", "[--force] NODE NAME=VALUE|NAME- ...",
     "Bookings can require labels: stint book --require NAME=VALUE. What the node's agent says of\n"
     "its machine, the driver above all, cannot be changed.\n",
     .fn = node_label, .options = label_options,
     .example = "  stint node label node07 storage=nvme network=ib\n"
                "  stint node label node07 network-\n"},
    {"rejoin", "Let a machine take a node's place with a join token and a new key", "NODE...",
     "The node's old key is invalid from then on. Use this when a machine lost its key, was\n"
     "replaced, or when somebody may have a copy of the key.\n",
     .fn = node_rejoin, .example = "  stint node rejoin node07\n"},
    {"remove", "Remove nodes for good and free their names", "[OPTION...] NODE...",
     "Drain a node with jobs first.\n", .fn = node_remove, .options = remove_options,
     .example = "  stint node remove node07\n"},
    {"add", "Add a simulated node", "[OPTION...] NODE", .fn = st_cli_node_add,
     .options = node_add_options,
     .example = "  stint node add node17 --gpu h100 --gpus 8 --rack rack5 --block block1\n"},
    {0},
};

/* ---- what GPUs must reach ----------------------------------------------------------------------- */

static const st_view_column limit_columns[] = {
    {"LIMIT", "limit", ST_VIEW_TEXT, NULL},    {"VALUE", "value", ST_VIEW_NUM, NULL},
    {"DEFAULT", "default", ST_VIEW_NUM, NULL}, {"UNIT", "unit", ST_VIEW_TEXT, NULL},
    {"ABOUT", "about", ST_VIEW_TEXT, NULL},    {0},
};

/* LIMIT=NUMBER, or LIMIT- for the default. */
static int limits_body(int n, char **words, st_body *body, st_err *err)
{
    for (int i = 0; i < n; i++) {
        char *at = strpbrk(words[i], "=-"), *last = words[i] + strlen(words[i]) - 1;
        char *equals = strchr(words[i], '=');
        int64_t value;

        if (!equals && at && *last == '-') {
            *last = '\0';
            st_body_raw(body, words[i], "null");
            continue;
        }
        if (!equals || st_parse_i64(equals + 1, 0, INT64_MAX, &value, err) < 0)
            return st_fail(err, ST_EINVAL, "%s is not LIMIT=NUMBER or LIMIT-", words[i]);
        *equals = '\0';
        st_body_raw(body, words[i], equals + 1);
    }
    return 0;
}

static int type_limits(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    fleet_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, show_options, 1, INT32_MAX, &f, &client, &n, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "types", argv[1]);
    st_strbuf_add(&path, "/limits");
    if (n == 1)
        return st_view_list(cli, client, f.format, st_strbuf_str(&path), "limits", limit_columns,
                            err);
    r = limits_body(n - 1, argv + 2, &body, err);
    if (r < 0)
        return r;
    st_body_end(&body);
    st_strbuf_addf(&said, "tests of %s have other limits", argv[1]);
    return st_admin_send(cli, client,
                         &(st_request){.method = "PATCH",
                                       .path = st_strbuf_str(&path),
                                       .body = st_strbuf_str(&body.text)},
                         ST_CLI_TABLE, st_strbuf_str(&said), err);
}

const st_cli_verb st_cli_type_verbs[] = {
    {"limits", "Show or change what GPUs of a type must reach in tests",
     "[OPTION...] TYPE [LIMIT=N|LIMIT- ...]",
     "Without LIMIT the limits are shown. LIMIT- restores the default. A speed with limit 0 is\n"
     "measured but not judged. New limits apply from a node's next test.\n",
     .fn = type_limits, .options = show_options,
     .example = "  stint type limits h200\n"
                "  stint type limits h200 pcie-in=45000 temperature=85\n"
                "  stint type limits h200 pcie-in-\n"},
    {"list", "List GPU types", "[OPTION...]", .fn = st_cli_type_list, .options = list_options,
     .example = "  stint type list\n"},
    {"add", "Add a GPU type; common ones need only a name", "[OPTION...] TYPE",
     .fn = st_cli_type_add, .options = type_add_options, .example = "  stint type add h200\n"},
    {0},
};
