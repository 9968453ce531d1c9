/*
 * `stint rule`, `stint size` and `stint admin join-token`: what a site sets up for its own.
 */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

#define RULE_MAX ((size_t)256 << 10)

typedef struct site_flags {
    st_cli_format format;
    const char *pool, *label, *expires;
    int64_t uses;
    bool new_types;
} site_flags;

static const st_cli_row list_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(site_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row no_options[] = {{0}};
const st_cli_row st_cli_join_options[] = {
    {"pool", 'p', ST_CLI_STRING, offsetof(site_flags, pool), "POOL",
     "pool of the machines (default: the first)", 0, 0},
    {"uses", 'n', ST_CLI_I64, offsetof(site_flags, uses), "N",
     "number of machines that may use it (default: 1)", 1, 100000},
    {"expires", 'e', ST_CLI_STRING, offsetof(site_flags, expires), "DURATION",
     "lifetime (default: 1d)", 0, 0},
    {"label", 'L', ST_CLI_STRING, offsetof(site_flags, label), "TEXT", "note about its purpose", 0,
     0},
    {"new-types", 0, ST_CLI_FLAG, offsetof(site_flags, new_types), NULL,
     "let machines add unknown GPU types", 0, 0},
    {0},
};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 site_flags *f, st_client **client, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, NULL, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

/* ---- rules -------------------------------------------------------------------------------------- */

static int rule_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"RULE", "name", ST_VIEW_TEXT, NULL},        {"CALLS", "calls", ST_VIEW_NUM, NULL},
        {"REFUSED", "refused", ST_VIEW_NUM, NULL},   {"FAILED", "failed", ST_VIEW_NUM, NULL},
        {"ERROR", "last_error", ST_VIEW_TEXT, NULL}, {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    site_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, err);

    return r < 0 ? r : st_view_list(cli, client, f.format, "/v1/rules", "rules", columns, err);
}

/* Sends a script from a file. */
static int send_rule(st_cli *cli, st_client *client, const char *method, const char *path,
                     const char *file, const char *said, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = st_file_read(file, RULE_MAX, &text, err);

    if (r < 0)
        return r;
    return st_admin_send(
        cli, client,
        &(st_request){
            .method = method, .path = path, .body = st_strbuf_str(&text), .type = "text/x-lua"},
        ST_CLI_TABLE, said, err);
}

static int rule_put(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    site_flags f = {0};
    int r = begin(cli, argc, argv, no_options, 2, 2, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "rules", argv[1]);
    st_strbuf_addf(&said, "rule %s is in force from the next submit on", argv[1]);
    return send_rule(cli, client, "PUT", st_strbuf_str(&path), argv[2], st_strbuf_str(&said), err);
}

static int rule_check(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    site_flags f = {0};
    int r = begin(cli, argc, argv, no_options, 1, 1, &f, &client, err);

    return r < 0 ? r
                 : send_rule(cli, client, "POST", "/v1/rules/check", argv[1], "it would be taken",
                             err);
}

static int remove_one(st_cli *cli, int argc, char **argv, const char *folder, const char *what,
                      st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    site_flags f = {0};
    int r = begin(cli, argc, argv, no_options, 1, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, folder, argv[1]);
    st_strbuf_addf(&said, "%s %s is removed", what, argv[1]);
    r = st_admin_send(cli, client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                      ST_CLI_TABLE, st_strbuf_str(&said), err);
    return r < 0 ? st_admin_near(client, folder, argv[1], r, err) : 0;
}

static int rule_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    return remove_one(cli, argc, argv, "rules", "rule", err);
}

const st_cli_verb st_cli_rule_verbs[] = {
    {"list", "List scripts", "[OPTION...]", .fn = rule_list, .options = list_options,
     .example = "  stint rule list\n"},
    {"put", "Create or replace a script", "NAME FILE",
     "FILE is Lua 5.4 with a function submit(job, who); doc/run/rules.md has examples. If it\n"
     "does not compile, the old version stays.\n",
     .fn = rule_put, .example = "  stint rule put limits limits.lua\n"},
    {"check", "Check a script without saving it", "FILE", .fn = rule_check,
     .example = "  stint rule check limits.lua\n"},
    {"remove", "Remove a script", "NAME", .fn = rule_remove,
     .example = "  stint rule remove limits\n"},
    {0},
};

/* ---- sizes -------------------------------------------------------------------------------------- */

static void size_shape(const json_t *row, st_strbuf *out)
{
    ST_CLEANUP(st_freep)
    char *text = json_dumps(st_view_at(row, "size"), JSON_COMPACT | JSON_REAL_PRECISION(6));

    st_strbuf_add(out, text ? text : "");
}

static int size_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"SIZE", "name", ST_VIEW_TEXT, NULL},
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"SHAPE", NULL, ST_VIEW_FN, size_shape},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    site_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, err);

    return r < 0 ? r : st_view_list(cli, client, f.format, "/v1/sizes", "sizes", columns, err);
}

static int size_put(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    ST_CLEANUP(st_body_done) st_body body = {0};
    site_flags f = {0};
    int n = 0, r = st_cli_read(argc, argv, no_options, &f, 2, INT32_MAX, &n, err);

    for (int i = 2; r == 0 && i <= n; i++) {
        char *equals = strchr(argv[i], '=');

        if (!equals) {
            r = st_fail(err, ST_EINVAL, "%s is not KEY=VALUE, such as gpus=4", argv[i]);
        } else {
            ST_CLEANUP(st_freep) char *key = st_xstrndup(argv[i], (size_t)(equals - argv[i]));

            st_body_put(&body, key, equals + 1);
        }
    }
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_admin_path(&path, "sizes", argv[1]);
    st_strbuf_addf(&said, "size %s is known in your account and below", argv[1]);
    return st_admin_send(
        cli, client,
        &(st_request){.method = "PUT", .path = st_strbuf_str(&path), .body = st_body_end(&body)},
        ST_CLI_TABLE, st_strbuf_str(&said), err);
}

static int size_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    return remove_one(cli, argc, argv, "sizes", "size", err);
}

const st_cli_verb st_cli_size_verbs[] = {
    {"list", "List sizes", "[OPTION...]", .fn = size_list, .options = list_options,
     .example = "  stint size list\n"},
    {"put", "Create or replace a size of your account", "NAME KEY=VALUE...", .fn = size_put,
     .example = "  stint size put quad gpus=4 cpu=48 ram=256Gi\n"},
    {"remove", "Remove a size of your account", "NAME", .fn = size_remove,
     .example = "  stint size remove quad\n"},
    {0},
};

/* ---- join tokens ---------------------------------------------------------------------------------- */

int st_cli_admin_join(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    site_flags f = {0};
    char uses[24];
    json_t *made = NULL;
    int r = begin(cli, argc, argv, st_cli_join_options, 0, 0, &f, &client, err);

    if (r < 0)
        return r;
    snprintf(uses, sizeof uses, "%lld", (long long)f.uses);
    st_body_put(&body, "pool", f.pool);
    st_body_put(&body, "label", f.label);
    st_body_put(&body, "expires_in", f.expires);
    st_body_put(&body, "uses", f.uses > 0 ? uses : NULL);
    if (f.new_types)
        st_body_raw(&body, "new_types", "true");
    r = st_client_json(client,
                       &(st_request){.method = "POST",
                                     .path = "/v1/admin/join-tokens",
                                     .body = st_body_empty(&body) ? "{}" : st_body_end(&body)},
                       &made, &response, err);
    if (r < 0)
        return r;
    fprintf(cli->out, "%s\n", st_view_text(made, "token"));
    fprintf(cli->errors,
            "join token %s; it is shown this once: put it into a file for stint-agent\n",
            st_view_text(made, "id"));
    json_decref(made);
    return 0;
}

/* ---- the clock ------------------------------------------------------------------------------------ */

static void show_clock(st_cli *cli, const json_t *clock)
{
    fprintf(cli->out,
            "Time of stintd    %s\nMachine's clock   %s, %s s ahead\nBelieved          %s\n",
            st_view_text(clock, "now"), st_view_text(clock, "machine"),
            st_view_text(clock, "ahead_seconds"),
            json_is_true(json_object_get(clock, "believed"))
                ? "yes"
                : "no; if it is right: stint admin clock accept");
}

int st_cli_admin_clock(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_response_done) st_response response = {0}, second = {0};
    site_flags f = {0};
    json_t *clock = NULL, *now = NULL;
    char body[64];
    int r = begin(cli, argc, argv, no_options, 0, 1, &f, &client, err);

    if (r == 0 && argc > 1 && strcmp(argv[1], "accept") != 0)
        r = st_fail(err, ST_EINVAL, "%s: accept, or nothing to look at it", argv[0]);
    if (r == 0)
        r = st_client_json(client, &(st_request){.method = "GET", .path = "/v1/admin/clock"},
                           &clock, &response, err);
    if (r == 0 && argc > 1) {
        snprintf(body, sizeof body, "{\"ahead_seconds\": %lld}",
                 (long long)json_integer_value(json_object_get(clock, "ahead_seconds")));
        r = st_client_json(client,
                           &(st_request){.method = "POST", .path = "/v1/admin/clock", .body = body},
                           &now, &second, err);
    }
    if (r == 0)
        show_clock(cli, now ? now : clock);
    json_decref(clock);
    json_decref(now);
    return r;
}
