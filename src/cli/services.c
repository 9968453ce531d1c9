/*
 * `stint service`: replicas of a job behind one address.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "cli/admin_doc.h"
#include "cli/service_flags.h"
#include "cli/view.h"

static const st_cli_row list_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(st_service_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row show_options[] = {
    {"output", 'o', ST_CLI_OUTPUT, offsetof(st_service_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row no_options[] = {{0}};

/* ---- documents ---------------------------------------------------------------------------------- */

static json_t *value_of(const char *text)
{
    int64_t n;

    return st_parse_i64(text, INT32_MIN, INT32_MAX, &n, NULL) == 0 ? json_integer(n)
                                                                   : json_string(text);
}

int st_service_doc(const st_service_flags *f, int ncommand, char **command, json_t **ret,
                   st_err *err)
{
    json_t *doc = NULL, *job;
    int r = f->job.dry_run
                ? st_fail(err, ST_EINVAL, "--dry-run is for jobs: try the job with `stint submit`")
                : st_job_doc(&f->job, ncommand, command, &job, err);

    if (r < 0)
        return r;
    if (json_object_get(job, "job")) { /* the file has a service */
        doc = job;
    } else {
        doc = json_object();
        if (json_object_get(job, "account"))
            json_object_set(doc, "account", json_object_get(job, "account"));
        json_object_del(job, "account");
        json_object_del(job, "name");
        json_object_set_new(doc, "job", job);
    }
#define X(field, option, value, about)                                   \
    if (f->field) {                                                      \
        json_t *v = value_of(f->field);                                  \
        if (!v || json_object_set_new(doc, #field, v) < 0) {             \
            json_decref(doc);                                            \
            return st_fail(err, ST_EINVAL, "--" option " is not UTF-8"); \
        }                                                                \
    }
    ST_SERVICE_FLAGS(X)
#undef X
    *ret = doc;
    return 0;
}

static int send(st_cli *cli, const char *method, const char *name, const char *tail,
                const json_t *doc, const char *said, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_freep)
    char *body = doc ? json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    char key[ST_KEY_MAX];
    int r = st_client_open(cli->errors, &client, err);

    if (r < 0)
        return r;
    st_client_key(key);
    if (name)
        st_admin_path(&path, "services", name);
    else
        st_strbuf_add(&path, "/v1/services");
    st_strbuf_add(&path, tail);
    r = st_admin_send(
        cli, client,
        &(st_request){.method = method, .path = st_strbuf_str(&path), .body = body, .key = key},
        ST_CLI_TABLE, said, err);
    return r < 0 && name ? st_admin_near(client, "services", name, r, err) : r;
}

/* ---- verbs --------------------------------------------------------------------------------------- */

static int service_create(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    st_service_flags f = {0};
    json_t *doc = NULL;
    int n, r = st_cli_read(argc, argv, st_cli_service_options, &f, 1, INT32_MAX, &n, err);

    if (r == 0)
        r = st_service_doc(&f, n - 1, argv + 2, &doc, err);
    if (r < 0)
        return r;
    json_object_set_new(doc, "name", json_string(argv[1]));
    if (f.job.print) {
        json_dumpf(doc, cli->out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        fputc('\n', cli->out);
        json_decref(doc);
        return 0;
    }
    st_strbuf_addf(&said, "service %s is created (`stint service show %s` says how it is)", argv[1],
                   argv[1]);
    r = send(cli, "POST", NULL, "", doc, st_strbuf_str(&said), err);
    json_decref(doc);
    return r;
}

static int service_set(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    st_service_flags f = {0};
    json_t *doc = NULL, *job;
    int n, r = st_cli_read(argc, argv, st_cli_service_options, &f, 1, INT32_MAX, &n, err);

    if (r == 0)
        r = st_service_doc(&f, n - 1, argv + 2, &doc, err);
    if (r < 0)
        return r;
    job = json_object_get(doc, "job");
    if (json_object_size(job) == 0)
        json_object_del(doc, "job");
    json_object_del(doc, "name");
    if (json_object_size(doc) == 0)
        r = st_fail(err, ST_EINVAL, "%s: what shall change? See `stint %s --help`", argv[0],
                    argv[0]);
    st_strbuf_addf(&said, "service %s is changed%s", argv[1],
                   json_object_get(doc, "job") ? "; its replicas are replaced" : "");
    if (r == 0)
        r = send(cli, "PATCH", argv[1], "", doc, st_strbuf_str(&said), err);
    json_decref(doc);
    return r;
}

static int service_scale(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    st_service_flags f = {0};
    json_t *doc;
    int64_t count;
    int n, r = st_cli_read(argc, argv, no_options, &f, 2, 2, &n, err);

    if (r == 0 && st_parse_i64(argv[2], 1, 256, &count, err) < 0)
        r = st_fail_prefix(err, "replicas: ");
    if (r < 0)
        return r;
    doc = json_pack("{s:I}", "replicas", (json_int_t)count);
    st_strbuf_addf(&said, "service %s gets %s replica%s", argv[1], argv[2], count == 1 ? "" : "s");
    r = send(cli, "PATCH", argv[1], "", doc, st_strbuf_str(&said), err);
    json_decref(doc);
    return r;
}

static int service_restart(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    st_service_flags f = {0};
    int n, r = st_cli_read(argc, argv, no_options, &f, 1, 1, &n, err);

    if (r < 0)
        return r;
    st_strbuf_addf(&said, "the replicas of service %s are replaced, one after the other", argv[1]);
    return send(cli, "POST", argv[1], "/restart", NULL, st_strbuf_str(&said), err);
}

static int service_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    st_service_flags f = {0};
    int n, r = st_cli_read(argc, argv, no_options, &f, 1, 1, &n, err);

    if (r < 0)
        return r;
    st_strbuf_addf(&said, "service %s is being removed; its replicas finish their requests and end",
                   argv[1]);
    return send(cli, "DELETE", argv[1], "", NULL, st_strbuf_str(&said), err);
}

static void show_ready(const json_t *row, st_strbuf *out)
{
    st_strbuf_addf(out, "%lld/%lld", (long long)json_integer_value(st_view_at(row, "ready")),
                   (long long)json_integer_value(st_view_at(row, "target")));
}

static int service_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"SERVICE", "name", ST_VIEW_TEXT, NULL},
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"USER", "user", ST_VIEW_TEXT, NULL},
        {"STATE", "state", ST_VIEW_TEXT, NULL},
        {"READY", NULL, ST_VIEW_FN, show_ready},
        {"REQUESTS", "requests", ST_VIEW_NUM, NULL},
        {"PORT", "port", ST_VIEW_NUM, NULL},
        {"AGE", "created", ST_VIEW_AGE, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    st_service_flags f = {0};
    int n, r = st_cli_read(argc, argv, list_options, &f, 0, 0, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    return r < 0 ? r
                 : st_view_list(cli, client, f.format, "/v1/services", "services", columns, err);
}

static int service_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column facts[] = {
        {"Service", "name", ST_VIEW_TEXT, NULL},
        {"Account", "account", ST_VIEW_TEXT, NULL},
        {"User", "user", ST_VIEW_TEXT, NULL},
        {"State", "state", ST_VIEW_TEXT, NULL},
        {"Ready", NULL, ST_VIEW_FN, show_ready},
        {"Requests", "requests", ST_VIEW_NUM, NULL},
        {"Port", "port", ST_VIEW_NUM, NULL},
        {"Created", "created", ST_VIEW_TIME, NULL},
        {"Next start", "next_start", ST_VIEW_TIME, NULL},
        {"Trouble", "trouble", ST_VIEW_TEXT, NULL},
        {0},
    };
    static const st_view_column replicas[] = {
        {"REPLICA", "replica", ST_VIEW_NUM, NULL},
        {"JOB", "job", ST_VIEW_TEXT, NULL},
        {"STATE", "state", ST_VIEW_TEXT, NULL},
        {"SINCE", "since", ST_VIEW_AGE, NULL},
        {"REVISION", "revision", ST_VIEW_NUM, NULL},
        {"REQUESTS", "requests", ST_VIEW_NUM, NULL},
        {"NODE", "node", ST_VIEW_TEXT, NULL},
        {"TROUBLE", "trouble", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_service_flags f = {0};
    json_t *s = NULL;
    int n, r = st_cli_read(argc, argv, show_options, &f, 1, 1, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_admin_path(&path, "services", argv[1]);
    r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &s, &response, err);
    if (r < 0)
        return st_admin_near(client, "services", argv[1], r, err);
    if (f.format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else {
        st_view_facts(cli, s, facts);
        fputc('\n', cli->out);
        st_view_rows(cli, ST_CLI_TABLE, st_view_at(s, "replicas"), replicas);
    }
    json_decref(s);
    return 0;
}

const st_cli_verb st_cli_service_verbs[] = {
    {"create", "Create a service", "NAME --port PORT [OPTION...] [-- COMMAND [ARG...]]",
     "A service is a number of replicas, each a job of your account, made from one template. "
     "Options\n"
     "of `stint submit` describe the template. A file (-f) has a job, or a service with its job\n"
     "under the key job.\n",
     .fn = service_create, .options = st_cli_service_options,
     .example = "  stint service create chat --port 8000 --replicas 2 --level mps --share 0.25 "
                "--image serve \\\n"
                "      --health http --path /health -- /opt/serve --port 8000\n"},
    {"list", "List services of your account and those below it", "[OPTION...]", .fn = service_list,
     .options = list_options, .example = "  stint service list\n"},
    {"show", "Show a service and its replicas", "[OPTION...] NAME", .fn = service_show,
     .options = show_options, .example = "  stint service show chat\n"},
    {"scale", "Set the number of replicas", "NAME N", .fn = service_scale,
     .example = "  stint service scale chat 4\n"},
    {"set", "Change a service; what you do not mention stays",
     "NAME [OPTION...] [-- COMMAND [ARG...]]",
     "Where the job changes, every replica is replaced: a new one starts, and an old one ends "
     "when\n"
     "the new one is healthy.\n",
     .fn = service_set, .options = st_cli_service_options,
     .example = "  stint service set chat --image serve-2\n"
                "  stint service set chat --scale requests --target 8 --max 6\n"},
    {"restart", "Replace all replicas, one after the other", "NAME", .fn = service_restart,
     .example = "  stint service restart chat\n"},
    {"remove", "Remove a service", "NAME",
     "Its replicas get no new requests, have the time of --drain for those that are open, and "
     "end.\n",
     .fn = service_remove, .example = "  stint service remove chat\n"},
    {0},
};
