/*
 * `stint account`, `quota` and `usage --recent`: what accounts are promised, may reach, hold and have used.
 */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/admin_doc.h"
#include "cli/table.h"
#include "cli/view.h"

#define FILE_MAX (1u << 20)

typedef struct account_flags {
    st_cli_format format;
    bool watch, service, force, dry_run;
    const char *parent, *guarantee, *max, *weight, *priority, *job_limits, *user_limits;
    const char *booking_limits, *trust, *trust_domain, *min_run, *file;
    int64_t if_version;
    /* for --watch */
    st_cli *cli;
    st_client *client;
    const char *account;
} account_flags;

#define OUTPUT_ROW(words, kind)                                      \
    {                                                                \
        "output", 'o', kind, offsetof(account_flags, format), words, \
            "output format (default: table)", 0, 0                   \
    }
#define WATCH_ROW                                                        \
    {                                                                    \
        "watch", 'w', ST_CLI_FLAG, offsetof(account_flags, watch), NULL, \
            "repeat every two seconds until Ctrl-C", 0, 0                \
    }
#define TEXT_ROW(name, field, value, about)                                        \
    {                                                                              \
        name, 0, ST_CLI_STRING, offsetof(account_flags, field), value, about, 0, 0 \
    }
#define CHANGE_ROWS                                                                                \
    TEXT_ROW("guarantee", guarantee, "gpu=8,h100=4,...", "guaranteed GPUs, in total and by type"), \
        TEXT_ROW("max", max, "gpu=16,...",                                                         \
                 "most that it may hold with borrowing; none: no limit"),                          \
        TEXT_ROW("weight", weight, "N", "share of idle GPUs among siblings (default: 1)"),         \
        TEXT_ROW("priority", priority, "N", "higher borrows before siblings (default: 0)"),        \
        TEXT_ROW("job-limits", job_limits, "gpu=8,run=24h,...", "limits of one job"),              \
        TEXT_ROW("user-limits", user_limits, "gpu=16,...", "limits of one user"),                  \
        TEXT_ROW("booking-limits", booking_limits, "gpu_hours=512,...",                            \
                 "limits of what it books: gpu_hours, concurrent, length, lead"),                  \
        TEXT_ROW("trust", trust, "inherit|trusted|untrusted",                                      \
                 "untrusted accounts get whole GPUs and MIG only (default: inherit)"),             \
        TEXT_ROW("trust-domain", trust_domain, "inherit|own",                                      \
                 "own: share GPUs by MPS only inside this account (default: inherit)"),            \
        TEXT_ROW("min-run", min_run, "DURATION",                                                   \
                 "time its jobs run before they can be preempted"),                                \
        TEXT_ROW("file", file, "FILE",                                                             \
                 "read YAML or JSON instead of options; - is standard input"),                     \
        {"dry-run",   0,                                                                           \
         ST_CLI_FLAG, offsetof(account_flags, dry_run),                                            \
         NULL,        "change nothing; show whose floors would shrink",                            \
         0,           0},                                                                          \
        {"force",     0,                                                                           \
         ST_CLI_FLAG, offsetof(account_flags, force),                                              \
         NULL,        "although the nodes cannot carry the guarantee, and floors shrink",          \
         0,           0},                                                                          \
        OUTPUT_ROW("table|json", ST_CLI_OUTPUT)

static const st_cli_row list_options[] = {
    WATCH_ROW, OUTPUT_ROW("table|json|csv", ST_CLI_LISTING), {0}};
static const st_cli_row show_options[] = {OUTPUT_ROW("table|json|csv", ST_CLI_LISTING), {0}};
static const st_cli_row create_options[] = {
    TEXT_ROW("parent", parent, "ACCOUNT", "parent account (default: yours)"), CHANGE_ROWS, {0}};
static const st_cli_row set_options[] = {
    CHANGE_ROWS,
    {"if-version", 0, ST_CLI_I64, offsetof(account_flags, if_version), "N",
     "fail unless the account has this version", 0, INT64_MAX},
    {0},
};
const st_cli_row st_cli_quota_options[] = {
    {"service", 0, ST_CLI_FLAG, offsetof(account_flags, service), NULL,
     "show the service quota: waiting jobs, tokens, streams and so on", 0, 0},
    WATCH_ROW,
    OUTPUT_ROW("table|json|csv", ST_CLI_LISTING),
    {0}};

static const st_view_column columns[] = {
    {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"PARENT", "parent", ST_VIEW_TEXT, NULL},
    {"GUARANTEE", "guarantee", ST_VIEW_WORDS, NULL},
    {"MAX", "max", ST_VIEW_WORDS, NULL},
    {"WEIGHT", "weight", ST_VIEW_NUM, NULL},
    {"PRIORITY", "priority", ST_VIEW_NUM, NULL},
    {"TRUST", "trust", ST_VIEW_TEXT, NULL},
    {"VERSION", "version", ST_VIEW_NUM, NULL},
    {0},
};

static const st_view_column facts[] = {
    {"Account", "name", ST_VIEW_TEXT, NULL},
    {"Parent", "parent", ST_VIEW_TEXT, NULL},
    {"Guarantee", "guarantee", ST_VIEW_WORDS, NULL},
    {"Max", "max", ST_VIEW_WORDS, NULL},
    {"Weight", "weight", ST_VIEW_NUM, NULL},
    {"Priority", "priority", ST_VIEW_NUM, NULL},
    {"Limits of a job", "limits.job", ST_VIEW_WORDS, NULL},
    {"Limits of a user", "limits.user", ST_VIEW_WORDS, NULL},
    {"Limits of bookings", "limits.booking", ST_VIEW_WORDS, NULL},
    {"Trust", "trust", ST_VIEW_TEXT, NULL},
    {"Trust domain", "trust_domain", ST_VIEW_TEXT, NULL},
    {"Minimum run", "min_run_seconds", ST_VIEW_SECONDS, NULL},
    {"Version", "version", ST_VIEW_NUM, NULL},
    {0},
};

/* Reads the options and opens the client. */
static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 account_flags *f, st_client **client, st_err *err)
{
    int n, r = st_cli_read(argc, argv, options, f, min, max, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, client, err);
    f->cli = cli;
    f->client = *client;
    f->account = n > 0 ? argv[1] : NULL;
    return r;
}

static int show_list(void *ctx, st_err *err)
{
    account_flags *f = ctx;

    return st_view_list(f->cli, f->client, f->format, "/v1/accounts", "accounts", columns, err);
}

int st_cli_account_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    account_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, err);

    return r < 0 ? r : st_view_watch(cli, f.watch, show_list, &f, err);
}

int st_cli_account_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    account_flags f = {0};
    int r = begin(cli, argc, argv, show_options, 1, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "accounts", argv[1]);
    r = st_view_one(cli, client, f.format, st_strbuf_str(&path), facts, err);
    return r < 0 ? st_admin_near(client, "accounts", argv[1], r, err) : 0;
}

/* ---- making and changing ----------------------------------------------------------------------- */

static int write_limits(st_body *b, const account_flags *f, st_err *err)
{
    ST_CLEANUP(st_body_done) st_body limits = {0};
    int r;

    if (!f->job_limits && !f->user_limits && !f->booking_limits)
        return 0;
    r = st_body_pairs(&limits, "job-limits", "job", f->job_limits, err);
    if (r == 0)
        r = st_body_pairs(&limits, "user-limits", "user", f->user_limits, err);
    if (r == 0)
        r = st_body_pairs(&limits, "booking-limits", "booking", f->booking_limits, err);
    if (r == 0)
        st_body_raw(b, "limits", st_body_end(&limits));
    return r;
}

static int write_account(st_body *b, const account_flags *f, st_err *err)
{
    int r = st_body_pairs(b, "guarantee", "guarantee", f->guarantee, err);

    if (r == 0)
        r = st_body_pairs(b, "max", "max", f->max, err);
    if (r == 0)
        r = write_limits(b, f, err);
    st_body_put(b, "weight", f->weight);
    st_body_put(b, "priority", f->priority);
    st_body_put(b, "trust", f->trust);
    st_body_put(b, "trust_domain", f->trust_domain);
    st_body_put(b, "min_run", f->min_run);
    if (f->force)
        st_body_raw(b, "force", "true");
    return r;
}

/* ---- floors that shrink -------------------------------------------------------------------------- */

static void show_floors(const account_flags *f, const json_t *answer)
{
    static const st_view_column floor_columns[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},    {"RESOURCE", "resource", ST_VIEW_TEXT, NULL},
        {"GUARANTEE", "guarantee", ST_VIEW_NUM, NULL}, {"FLOOR", "from", ST_VIEW_NUM, NULL},
        {"WOULD BE", "to", ST_VIEW_NUM, NULL},         {0},
    };
    const json_t *floors = json_object_get(answer, "floors");

    if (json_array_size(floors) == 0)
        fprintf(f->cli->out, "no floor shrinks\n");
    else
        st_view_rows(f->cli, f->format, floors, floor_columns);
    if (*st_view_text(answer, "detail"))
        fprintf(f->cli->out, "%s\n", st_view_text(answer, "detail"));
}

/* The same request as a trial; what it would cut is shown before it is done. */
static int try_first(const account_flags *f, const st_request *request, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_request q = *request;
    json_t *answer;
    int r;

    st_strbuf_addf(&path, "%s?dry_run=true", request->path);
    q.path = st_strbuf_str(&path);
    r = st_client_json(f->client, &q, &answer, &response, err);
    if (r < 0)
        return r;
    if (f->format != ST_CLI_JSON)
        show_floors(f, answer);
    else if (f->dry_run)
        st_view_raw(f->cli, &response);
    json_decref(answer);
    return 0;
}

/* Tries it, does it, or first one and then the other. */
static int send_change(const account_flags *f, const st_request *request, const char *said,
                       st_err *err)
{
    int r = f->dry_run || f->force ? try_first(f, request, err) : 0;

    return r < 0 || f->dry_run ? r
                               : st_admin_send(f->cli, f->client, request, f->format, said, err);
}

static bool is_yaml(const char *path)
{
    size_t n = strlen(path);

    return n < 5 || strcmp(path + n - 5, ".json") != 0;
}

int st_cli_account_create(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0}, said = {0};
    account_flags f = {0};
    st_request q = {.method = "POST", .path = "/v1/accounts"};
    int r = begin(cli, argc, argv, create_options, 0, 1, &f, &client, err);

    if (r < 0)
        return r;
    if (!f.account == !f.file)
        return st_fail(err, ST_EINVAL, "%s: give a name and flags, or --file", argv[0]);
    st_body_put(&body, "parent", f.parent);
    if (f.account) {
        st_body_put(&body, "name", f.account);
        r = write_account(&body, &f, err);
        q.body = st_body_end(&body);
    } else {
        r = st_body_empty(&body) ? st_file_read(f.file, FILE_MAX, &text, err)
                                 : st_fail(err, ST_EINVAL, "the parent stands in the file");
        q.body = st_strbuf_str(&text);
        q.type = is_yaml(f.file) ? "application/yaml" : NULL;
        q.file = f.file;
    }
    st_strbuf_addf(&said, "account %s made", f.account ? f.account : "of the file");
    return r < 0 ? r : send_change(&f, &q, st_strbuf_str(&said), err);
}

/* The tag of the account as it is now, if that is the version which was asked for. */
static int read_tag(st_client *client, const char *path, int64_t version, char ret[80], st_err *err)
{
    st_response response = {0};
    json_t *doc = NULL;
    int r = st_client_json(client, &(st_request){.path = path}, &doc, &response, err);

    if (r == 0 && version >= 0 && json_integer_value(json_object_get(doc, "version")) != version)
        r = st_fail(err, ST_EVERSION, "it has another version");
    if (r == 0)
        memcpy(ret, response.etag, sizeof response.etag);
    json_decref(doc);
    st_response_done(&response);
    return r;
}

static int changed(const char *account, st_err *err)
{
    return st_fail(err, ST_EVERSION,
                   "account %s was changed by somebody else meanwhile, and yours was not made: "
                   "look at `stint account show %s` and repeat it",
                   account, account);
}

int st_cli_account_set(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, text = {0}, said = {0};
    account_flags f = {.if_version = -1};
    st_request q = {.method = "PATCH"};
    char tag[80];
    int r = begin(cli, argc, argv, set_options, 1, 1, &f, &client, err);

    if (r == 0)
        r = write_account(&body, &f, err);
    if (r == 0 && f.file && !st_body_empty(&body))
        r = st_fail(err, ST_EINVAL, "%s: give flags, or --file", argv[0]);
    else if (r == 0 && f.file)
        r = st_file_read(f.file, FILE_MAX, &text, err);
    else if (r == 0 && st_body_empty(&body))
        r = st_fail(err, ST_EINVAL, "%s: what shall change? (see `stint %s --help`)", argv[0],
                    argv[0]);
    if (r < 0)
        return r;
    st_admin_path(&path, "accounts", argv[1]);
    r = read_tag(client, st_strbuf_str(&path), f.if_version, tag, err);
    if (r < 0 && r != -ST_EVERSION)
        return st_admin_near(client, "accounts", argv[1], r, err);
    if (r < 0)
        return changed(argv[1], err);
    q.path = st_strbuf_str(&path);
    q.if_match = tag;
    q.body = f.file ? st_strbuf_str(&text) : st_body_end(&body);
    q.type = f.file && is_yaml(f.file) ? "application/yaml" : NULL;
    q.file = f.file;
    st_strbuf_addf(&said, "account %s changed", argv[1]);
    r = send_change(&f, &q, st_strbuf_str(&said), err);
    return r == -ST_EVERSION ? changed(argv[1], err) : r;
}

int st_cli_account_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    account_flags f = {0};
    int r = begin(cli, argc, argv, no_options, 1, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "accounts", argv[1]);
    st_strbuf_addf(&said, "account %s removed", argv[1]);
    r = st_admin_send(cli, client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                      f.format, st_strbuf_str(&said), err);
    return r < 0 ? st_admin_near(client, "accounts", argv[1], r, err) : 0;
}

/* ---- quota and usage ---------------------------------------------------------------------------- */

/* The accounts in question: the one named, the caller's own, or for owners all (only those at the
 * top, where what is below counts in). The result is a list of names, the caller's. */
static int names_of(const account_flags *f, bool tops, json_t **ret, st_err *err)
{
    const char *own;
    json_t *doc, *account, *names = json_array();
    size_t i;
    int r;

    if (f->account) {
        json_array_append_new(names, json_string(f->account));
        *ret = names;
        return 0;
    }
    r = st_client_get(f->client, "/v1/whoami", &doc, err);
    own = r == 0 ? st_view_text(doc, "account") : "";
    if (r == 0 && *own) {
        json_array_append_new(names, json_string(own));
        json_decref(doc);
    } else if (r == 0) {
        json_decref(doc);
        r = st_client_get(f->client, "/v1/accounts", &doc, err);
        json_array_foreach(r == 0 ? json_object_get(doc, "accounts") : NULL, i,
                           account) if (!tops || !st_view_at(account, "parent"))
            json_array_append(names, json_object_get(account, "name"));
        if (r == 0)
            json_decref(doc);
    }
    if (r < 0)
        json_decref(names);
    else
        *ret = names;
    return r;
}

/* Asks /v1/accounts/NAME/WHAT for each. One account: the server's own bytes with -o json. */
static int each(const account_flags *f, const char *what, bool tops, json_t **ret, st_err *err)
{
    json_t *names = NULL, *name, *all = json_array();
    size_t i;
    int r = names_of(f, tops, &names, err);

    json_array_foreach(r == 0 ? names : NULL, i, name)
    {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
        ST_CLEANUP(st_response_done) st_response response = {0};
        json_t *one;

        st_admin_path(&path, "accounts", json_string_value(name));
        st_strbuf_addf(&path, "/%s", what);
        r = st_client_json(f->client, &(st_request){.path = st_strbuf_str(&path)}, &one, &response,
                           err);
        if (r < 0) {
            r = st_admin_near(f->client, "accounts", json_string_value(name), r, err);
            break;
        }
        if (f->format == ST_CLI_JSON)
            st_view_raw(f->cli, &response);
        json_array_append_new(all, one);
    }
    json_decref(names);
    if (r < 0)
        json_decref(all);
    else
        *ret = all;
    return r;
}

/* People read memory as they type it, 64Gi; programs get the number, and a name that has its unit. */
static void resource_row(json_t *rows, const json_t *quota, const char *resource, bool people)
{
    static const char *const parts[] = {"guarantee", "floor", "max", "held"};
    bool memory = people && strcmp(resource, "ram_mib") == 0;
    json_t *row = json_object();
    char buf[ST_FMT_MAX];

    json_object_set(row, "account", json_object_get(quota, "account"));
    json_object_set_new(row, "resource", json_string(memory ? "ram" : resource));
    for (size_t i = 0; i < ST_ARRAY_LEN(parts); i++) {
        json_t *v = json_object_get(json_object_get(quota, parts[i]), resource);

        if (v && memory && json_is_integer(v))
            json_object_set_new(row, parts[i], json_string(st_fmt_mib(buf, json_integer_value(v))));
        else if (v)
            json_object_set(row, parts[i], v);
    }
    if (strcmp(resource, "gpu") == 0) {
        json_object_set(row, "inside", json_object_get(quota, "inside_gpu"));
        json_object_set(row, "borrowed", json_object_get(quota, "borrowed_gpu"));
    }
    json_array_append_new(rows, row);
}

/* A row per resource that is promised, bounded or held. */
static json_t *quota_rows(const json_t *all, bool people)
{
    static const char *const parts[] = {"guarantee", "max", "held"};
    json_t *rows = json_array(), *quota, *v;
    const char *key;
    size_t i;

    json_array_foreach(all, i, quota)
    {
        json_t *seen = json_object();

        json_object_set_new(seen, "gpu", json_true());
        for (size_t p = 0; p < ST_ARRAY_LEN(parts); p++)
            json_object_foreach(json_object_get(quota, parts[p]), key,
                                v) if (p < 2 ||
                                       st_view_milli(json_object_get(quota, parts[p]), key) != 0)
                json_object_set_new(seen, key, json_true());
        json_object_foreach(seen, key, v) resource_row(rows, quota, key, people);
        json_decref(seen);
    }
    return rows;
}

static int show_quota(void *ctx, st_err *err)
{
    static const st_view_column quota_columns[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"RESOURCE", "resource", ST_VIEW_TEXT, NULL},
        {"GUARANTEE", "guarantee", ST_VIEW_NUM, NULL},
        {"FLOOR", "floor", ST_VIEW_NUM, NULL},
        {"MAX", "max", ST_VIEW_NUM, NULL},
        {"HELD", "held", ST_VIEW_NUM, NULL},
        {"INSIDE", "inside", ST_VIEW_NUM, NULL},
        {"BORROWED", "borrowed", ST_VIEW_NUM, NULL},
        {0},
    };
    account_flags *f = ctx;
    json_t *all, *rows;
    int r = each(f, "quota", false, &all, err);

    if (r < 0)
        return r;
    if (f->format != ST_CLI_JSON) {
        rows = quota_rows(all, f->format == ST_CLI_TABLE);
        st_view_rows(f->cli, f->format, rows, quota_columns);
        json_decref(rows);
    }
    json_decref(all);
    return 0;
}

static int show_service(void *ctx, st_err *err)
{
    static const st_view_column service_columns[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"QUOTA", "name", ST_VIEW_TEXT, NULL},
        {"USED", "used", ST_VIEW_NUM, NULL},
        {"LIMIT", "limit", ST_VIEW_NUM, NULL},
        {"SET HERE", "set", ST_VIEW_NUM, NULL},
        {"ABOUT", "about", ST_VIEW_TEXT, NULL},
        {0},
    };
    account_flags *f = ctx;
    json_t *all, *one, *row, *rows = json_array();
    size_t i, k;
    int r = each(f, "service-quota", true, &all, err);

    if (r == 0 && f->format != ST_CLI_JSON) {
        json_array_foreach(all, i, one)
        {
            json_array_foreach(json_object_get(one, "quota"), k, row)
                json_object_set(row, "account", json_object_get(one, "account"));
            json_array_extend(rows, json_object_get(one, "quota"));
        }
        st_view_rows(f->cli, f->format, rows, service_columns);
    }
    json_decref(rows);
    if (r == 0)
        json_decref(all);
    return r;
}

int st_cli_quota(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    account_flags f = {0};
    int r = begin(cli, argc, argv, st_cli_quota_options, 0, 1, &f, &client, err);

    return r < 0 ? r : st_view_watch(cli, f.watch, f.service ? show_service : show_quota, &f, err);
}

static int show_usage(void *ctx, st_err *err)
{
    static const st_view_column usage_columns[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"USER", "user", ST_VIEW_TEXT, NULL},
        {"HELD GPUS", "held_gpu", ST_VIEW_NUM, NULL},
        {"GPU HOURS", "decayed_gpu_hours", ST_VIEW_NUM, NULL},
        {0},
    };
    account_flags *f = ctx;
    json_t *all, *one, *rows = json_array();
    size_t i;
    int r = each(f, "usage", true, &all, err);

    if (r == 0 && f->format != ST_CLI_JSON) {
        json_array_foreach(all, i, one) json_array_extend(rows, json_object_get(one, "users"));
        st_view_rows(f->cli, f->format, rows, usage_columns);
    }
    json_decref(rows);
    if (r == 0)
        json_decref(all);
    return r;
}

int st_cli_recent(st_cli *cli, st_client *client, st_cli_format format, const char *account,
                  bool watch, st_err *err)
{
    account_flags f = {.format = format, .cli = cli, .client = client, .account = account};

    return st_view_watch(cli, watch, show_usage, &f, err);
}

const st_cli_verb st_cli_account_verbs[] = {
    {"list", "List your account and those below it", "[OPTION...]", .fn = st_cli_account_list,
     .options = list_options, .example = "  stint account list\n"},
    {"show", "Show one account", "[OPTION...] ACCOUNT", .fn = st_cli_account_show,
     .options = show_options, .example = "  stint account show vision\n"},
    {"create", "Create an account below yours", "[OPTION...] ACCOUNT",
     "What it is promised comes out of what its parent is promised, and at the top out of what "
     "all\n"
     "nodes together have. An owner can force more than that; then everybody's floor shrinks, "
     "which\n"
     "is shown first.\n",
     .fn = st_cli_account_create, .options = create_options,
     .example = "  stint account create robotics --parent acme --guarantee gpu=8 --weight 2\n"},
    {"set", "Change an account", "[OPTION...] ACCOUNT",
     "What you do not mention stays. The change fails if somebody else changed the account\n"
     "at the same time.\n",
     .fn = st_cli_account_set, .options = set_options,
     .example = "  stint account set vision --guarantee gpu=40 --max gpu=96\n"},
    {"limit", "Set the service quota of an account", "[OPTION...] ACCOUNT NAME=N...",
     "`stint quota --service` lists the names. What you do not mention stays; none removes\n"
     "the account's own limit. The limits of the accounts above still apply.\n",
     .fn = st_cli_account_limit, .options = st_cli_account_limit_options,
     .example = "  stint account limit vision pending=1000 tokens=none\n"},
    {"remove", "Remove an empty account", "ACCOUNT",
     "The account must have no accounts below it, no waiting or running jobs, no sizes and no\n"
     "secrets. stintd revokes its tokens and keeps its books. A later account of the same\n"
     "name gets nothing of this one.\n",
     .fn = st_cli_account_remove, .example = "  stint account remove robotics\n"},
    {0},
};
