/*
 * `stint fleet cost`: where the GPUs were in a month, what that is worth, and who wasted most.
 */
#include <string.h>

#include "cli/admin_doc.h"
#include "cli/view.h"

typedef struct cost_flags {
    st_cli_format format;
} cost_flags;

static const st_cli_row cost_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(cost_flags, format), "table|json|csv",
     "output format (default: table); csv has the rows by type, pool and cause", 0, 0},
    {0},
};

static const st_view_column row_columns[] = {
    {"TYPE", "type", ST_VIEW_TEXT, NULL},
    {"POOL", "pool", ST_VIEW_TEXT, NULL},
    {"PLACE", "place", ST_VIEW_TEXT, NULL},
    {"CAUSE", "cause", ST_VIEW_TEXT, NULL},
    {"GPU HOURS", "gpu_hours", ST_VIEW_NUM, NULL},
    {"WORTH", "worth", ST_VIEW_NUM, NULL},
    {0},
};

/* A list with a line above it; nothing where it is empty. */
static void put_list(st_cli *cli, const json_t *doc, const char *key, const char *title,
                     const st_view_column *columns)
{
    const json_t *rows = json_object_get(doc, key);

    if (json_array_size(rows) == 0)
        return;
    fprintf(cli->out, "\n%s\n", title);
    st_view_rows(cli, ST_CLI_TABLE, rows, columns);
}

static void put_report(st_cli *cli, const json_t *doc)
{
    static const st_view_column places[] = {
        {"PLACE", "place", ST_VIEW_TEXT, NULL},
        {"GPU HOURS", "gpu_hours", ST_VIEW_NUM, NULL},
        {"WORTH", "worth", ST_VIEW_NUM, NULL},
        {0},
    };
    static const st_view_column floors[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"RESERVED", "reserved_gpu_hours", ST_VIEW_NUM, NULL},
        {"UNUSED", "unused_gpu_hours", ST_VIEW_NUM, NULL},
        {"COST", "cost", ST_VIEW_NUM, NULL},
        {"FLOOR", "floor_gpus", ST_VIEW_NUM, NULL},
        {"CHEAPEST", "cheapest_floor_gpus", ST_VIEW_NUM, NULL},
        {"WOULD SAVE", "saved", ST_VIEW_NUM, NULL},
        {0},
    };
    static const st_view_column bookings[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"BOOKED", "booked_gpu_hours", ST_VIEW_NUM, NULL},
        {"UNUSED", "unused_gpu_hours", ST_VIEW_NUM, NULL},
        {"COST", "cost", ST_VIEW_NUM, NULL},
        {0},
    };
    static const st_view_column wasters[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"USER", "user", ST_VIEW_TEXT, NULL},
        {"HELD", "held_gpu_hours", ST_VIEW_NUM, NULL},
        {"MEASURED", "measured_gpu_hours", ST_VIEW_NUM, NULL},
        {"NOT BUSY", "not_busy_gpu_hours", ST_VIEW_NUM, NULL},
        {"COST", "cost", ST_VIEW_NUM, NULL},
        {0},
    };

    static const st_view_column anomalies[] = {
        {"DAY", "day", ST_VIEW_TEXT, NULL},    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"USER", "user", ST_VIEW_TEXT, NULL},  {"COST", "cost", ST_VIEW_NUM, NULL},
        {"USUAL", "usual", ST_VIEW_NUM, NULL}, {0},
    };

    fprintf(cli->out, "%s%s, all GPUs\n\n", st_view_text(doc, "period"),
            json_is_true(json_object_get(doc, "closed")) ? "" : " so far");
    st_view_rows(cli, ST_CLI_TABLE, json_object_get(doc, "places"), places);
    put_list(cli, doc, "rows", "By type, pool and cause", row_columns);
    put_list(cli, doc, "idle_reservations", "Reserved and unused", floors);
    put_list(cli, doc, "idle_bookings", "Booked and unused", bookings);
    put_list(cli, doc, "wasters", "Held and not busy", wasters);
    put_list(cli, doc, "anomalies", "Days that cost much more than usual", anomalies);
}

static int fleet_cost(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    cost_flags f = {0};
    json_t *doc = NULL;
    int n, r = st_cli_read(argc, argv, cost_options, &f, 0, 1, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_add(&path, "/v1/fleet/cost");
    if (n > 0) {
        st_strbuf_add(&path, "?period=");
        st_url_add(&path, argv[1]);
    }
    r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &doc, &response, err);
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else if (f.format == ST_CLI_CSV)
        st_view_rows(cli, f.format, json_object_get(doc, "rows"), row_columns);
    else
        put_report(cli, doc);
    json_decref(doc);
    return 0;
}

static const st_view_column part_columns[] = {
    {"POOL", "pool", ST_VIEW_TEXT, NULL},
    {"TYPE", "type", ST_VIEW_TEXT, NULL},
    {"NODES", "nodes", ST_VIEW_NUM, NULL},
    {"OUT", "nodes_out", ST_VIEW_NUM, NULL},
    {"SPARE", "spare_nodes", ST_VIEW_NUM, NULL},
    {"GPUS", "gpus", ST_VIEW_NUM, NULL},
    {"READY", "gpus_ready", ST_VIEW_NUM, NULL},
    {"GPUS OUT", "gpus_out", ST_VIEW_NUM, NULL},
    {"FAILURES", "failures", ST_VIEW_NUM, NULL},
    {"NODE-HOURS EACH", "node_hours_between_failures", ST_VIEW_NUM, NULL},
    {0},
};

static int fleet_health(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column causes[] = {
        {"CAUSE", "cause", ST_VIEW_TEXT, NULL},
        {"INCIDENTS", "incidents", ST_VIEW_NUM, NULL},
        {"NODES", "nodes", ST_VIEW_NUM, NULL},
        {"NODE-HOURS OUT", "node_hours_out", ST_VIEW_NUM, NULL},
        {"SECONDS TO RETURN", "seconds_to_return", ST_VIEW_NUM, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_response_done) st_response response = {0};
    cost_flags f = {0};
    json_t *doc = NULL;
    int n, r = st_cli_read(argc, argv, cost_options, &f, 0, 0, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_json(client, &(st_request){.path = "/v1/fleet/health"}, &doc, &response, err);
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else {
        st_view_rows(cli, f.format, json_object_get(doc, "parts"), part_columns);
        if (f.format == ST_CLI_TABLE)
            put_list(cli, doc, "causes",
                     json_object_get(doc, "from") ? "By cause, in the incidents that are kept"
                                                  : "By cause; there was no incident yet",
                     causes);
    }
    json_decref(doc);
    return 0;
}

const st_cli_verb st_cli_fleet_verbs[] = {
    {"cost", "Show where the GPUs were in a month, and what that is worth", "[OPTION...] [MONTH]",
     "For owners and auditors of the cluster. WORTH is GPU time at the price of a reservation.\n"
     "granted, idle, unhealthy and overhead add up to all GPUs at all times. CHEAPEST: the floor\n"
     "that would have cost least, if all above it had been borrowed at the burst price.\n",
     .fn = fleet_cost, .options = cost_options,
     .example = "  stint fleet cost\n  stint fleet cost 2026-10 -o csv\n"},
    {"health", "Show what serves, is out or spare, and what was out and why", "[OPTION...]",
     "For owners and auditors of the cluster. SPARE: nodes that are ready and of which nobody has\n"
     "or booked anything. FAILURES of the hardware, and how many node-hours there were for each,\n"
     "are reckoned from the incidents that are kept: those that are open and the last 128.\n",
     .fn = fleet_health, .options = cost_options,
     .example = "  stint fleet health\n  stint fleet health -o json\n"},
    {0},
};
