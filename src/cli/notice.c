/*
 * `stint notice`: be told by webhook or mail what jobs, budgets and bookings do. An address may have a token in it, so it may come from
 * standard input; the key that webhooks are signed with is shown once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

#define ADDRESS_MAX 4096
#define STEP_MS     200
#define TEST_MS     20000 /* an attempt takes ten seconds at most */

typedef struct notice_flags {
    st_cli_format format;
    const char *account, *webhook, *mail, *on;
    bool all;
} notice_flags;

#define ACCOUNT_ROW                                                                \
    {                                                                              \
        "account", 'A', ST_CLI_STRING, offsetof(notice_flags, account), "ACCOUNT", \
            "account (default: yours)", 0, 0                                       \
    }

static const st_cli_row list_options[] = {
    ACCOUNT_ROW,
    {"output", 'o', ST_CLI_LISTING, offsetof(notice_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row show_options[] = {
    ACCOUNT_ROW,
    {"output", 'o', ST_CLI_LISTING, offsetof(notice_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row add_options[] = {
    ACCOUNT_ROW,
    {"webhook", 'w', ST_CLI_STRING, offsetof(notice_flags, webhook), "URL",
     "where to post; - reads it from standard input, where others do not see it", 0, 0},
    {"mail", 'm', ST_CLI_STRING, offsetof(notice_flags, mail), "ADDRESS", "or whom to mail", 0, 0},
    {"on", 0, ST_CLI_STRING, offsetof(notice_flags, on), "WORD,...",
     "start, end, fail, preempt, budget, incident, booking (default: end,fail,preempt)", 0, 0},
    {"all", 'a', ST_CLI_FLAG, offsetof(notice_flags, all), NULL,
     "all jobs of the account and those below it, not yours alone; budgets and bookings need it", 0,
     0},
    {0},
};
static const st_cli_row one_options[] = {ACCOUNT_ROW, {0}};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 notice_flags *f, st_client **client, int *ret_n, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, ret_n, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

/* "/v1/accounts/ACCOUNT/notices/NAME". */
static int path_of(st_client *client, const notice_flags *f, const char *name, st_strbuf *out,
                   st_err *err)
{
    json_t *who = NULL;
    const char *account = f->account;
    int r = account ? 0 : st_client_get(client, "/v1/whoami", &who, err);

    if (r == 0 && !account)
        account = st_view_text(who, "account");
    if (r == 0 && !*account)
        r = st_fail(err, ST_EINVAL, "whose notice? Name the account with --account");
    if (r == 0) {
        st_admin_path(out, "accounts", account);
        st_strbuf_add(out, "/notices/");
        st_url_add(out, name);
    }
    json_decref(who);
    return r;
}

static int notice_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"NOTICE", "name", ST_VIEW_TEXT, NULL}, {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"BY", "by", ST_VIEW_TEXT, NULL},       {"ON", "on", ST_VIEW_WORDS, NULL},
        {"JOBS", "jobs", ST_VIEW_TEXT, NULL},   {"WAY", "by_way_of", ST_VIEW_TEXT, NULL},
        {"TO", "to", ST_VIEW_TEXT, NULL},       {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    notice_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, NULL, err);

    if (r < 0)
        return r;
    st_strbuf_add(&path, "/v1/notices");
    if (f.account) {
        st_strbuf_add(&path, "?account=");
        st_url_add(&path, f.account);
    }
    return st_view_list(cli, client, f.format, st_strbuf_str(&path), "notices", columns, err);
}

static void print_deliveries(st_cli *cli, st_cli_format format, const json_t *doc)
{
    static const st_view_column columns[] = {
        {"DELIVERY", "id", ST_VIEW_TEXT, NULL},
        {"STATE", "state", ST_VIEW_TEXT, NULL},
        {"TRIES", "tries", ST_VIEW_NUM, NULL},
        {"STATUS", "status", ST_VIEW_NUM, NULL},
        {"CHANGED", "changed", ST_VIEW_AGE, NULL},
        {"WHAT", "text", ST_VIEW_TEXT, NULL},
        {0},
    };

    st_view_rows(cli, format, json_object_get(doc, "deliveries"), columns);
}

static int notice_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column facts[] = {
        {"Notice", "name", ST_VIEW_TEXT, NULL},
        {"Account", "account", ST_VIEW_TEXT, NULL},
        {"Added by", "by", ST_VIEW_TEXT, NULL},
        {"On", "on", ST_VIEW_WORDS, NULL},
        {"Jobs", "jobs", ST_VIEW_TEXT, NULL},
        {"Way", "by_way_of", ST_VIEW_TEXT, NULL},
        {"To", "to", ST_VIEW_TEXT, NULL},
        {"Created", "created", ST_VIEW_TIME, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    notice_flags f = {0};
    json_t *doc = NULL;
    int r = begin(cli, argc, argv, show_options, 1, 1, &f, &client, NULL, err);

    if (r == 0)
        r = path_of(client, &f, argv[1], &path, err);
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON)
        return st_view_one(cli, client, f.format, st_strbuf_str(&path), facts, err);
    r = st_client_get(client, st_strbuf_str(&path), &doc, err);
    if (r == 0) {
        st_view_facts(cli, doc, facts);
        fputc('\n', cli->out);
        print_deliveries(cli, f.format, doc);
    }
    json_decref(doc);
    return r;
}

/* From standard input, where it is not to be seen. */
static int read_url(notice_flags *f, st_strbuf *out, st_err *err)
{
    int r;

    if (!f->webhook || strcmp(f->webhook, "-") != 0)
        return 0;
    r = st_file_read("-", ADDRESS_MAX, out, err);
    if (r < 0)
        return r;
    st_strbuf_addc(out, '\0');
    out->s[strcspn(out->s, "\r\n")] = '\0';
    f->webhook = out->s;
    return 0;
}

static void write_body(const notice_flags *f, st_body *body)
{
    if (f->webhook)
        st_body_put(body, "webhook", f->webhook);
    if (f->mail)
        st_body_put(body, "mail", f->mail);
    if (f->on)
        st_body_list(body, "on", f->on);
    st_body_put(body, "jobs", f->all ? "all" : "mine");
}

static int notice_add(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, url = {0};
    ST_CLEANUP(st_body_done) st_body body = {0};
    notice_flags f = {0};
    json_t *doc = NULL;
    int r = begin(cli, argc, argv, add_options, 1, 1, &f, &client, NULL, err);

    if (r == 0 && !f.webhook == !f.mail)
        r = st_fail(err, ST_EINVAL, "say where the notice goes: --webhook URL or --mail ADDRESS");
    if (r == 0)
        r = read_url(&f, &url, err);
    if (r == 0)
        r = path_of(client, &f, argv[1], &path, err);
    if (r < 0)
        return r;
    write_body(&f, &body);
    r = st_client_json(
        client,
        &(st_request){.method = "PUT", .path = st_strbuf_str(&path), .body = st_body_end(&body)},
        &doc, NULL, err);
    if (r < 0)
        return r;
    if (f.webhook)
        fprintf(cli->out, "%s\n", st_view_text(doc, "secret"));
    fprintf(cli->errors, "notice %s is added%s; try it: stint notice test %s\n", argv[1],
            f.webhook ? "; what is posted is signed with the secret, which is shown only once" : "",
            argv[1]);
    json_decref(doc);
    return 0;
}

/* What came of a delivery; "" while nothing has. */
static int look(st_client *client, const char *path, const char *id, st_strbuf *state,
                st_strbuf *text, st_err *err)
{
    const json_t *row;
    json_t *doc = NULL;
    size_t i;
    int r = st_client_get(client, path, &doc, err);

    json_array_foreach(json_object_get(doc, "deliveries"), i, row)
    {
        if (strcmp(st_view_text(row, "id"), id) != 0)
            continue;
        st_strbuf_add(state, st_view_text(row, "state"));
        st_strbuf_add(text, st_view_text(row, "text"));
    }
    json_decref(doc);
    return r;
}

static int wait_for(st_cli *cli, st_client *client, const char *path, const char *id,
                    const char *name, st_err *err)
{
    st_signals_block();
    for (int waited = 0; waited < TEST_MS; waited += STEP_MS) {
        ST_CLEANUP(st_strbuf_done) st_strbuf state = {0}, text = {0};
        int r = look(client, path, id, &state, &text, err);

        if (r < 0)
            return r;
        if (strcmp(st_strbuf_str(&state), "delivered") == 0) {
            fprintf(cli->out, "notice %s: the receiver took the test\n", name);
            return 0;
        }
        if (state.n > 0)
            return st_fail(err, ST_EIO, "notice %s: the receiver did not take the test: %s", name,
                           st_strbuf_str(&text));
        if (st_signals_wait(STEP_MS))
            break;
    }
    return st_fail(err, ST_EIO,
                   "notice %s: the test waits behind other deliveries (stint notice show %s)", name,
                   name);
}

static int notice_test(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, test = {0};
    notice_flags f = {0};
    json_t *doc = NULL;
    int r = begin(cli, argc, argv, one_options, 1, 1, &f, &client, NULL, err);

    if (r == 0)
        r = path_of(client, &f, argv[1], &path, err);
    if (r < 0)
        return r;
    st_strbuf_addf(&test, "%s/test", st_strbuf_str(&path));
    r = st_client_json(client, &(st_request){.method = "POST", .path = st_strbuf_str(&test)}, &doc,
                       NULL, err);
    if (r == 0)
        r = wait_for(cli, client, st_strbuf_str(&path), st_view_text(doc, "delivery"), argv[1],
                     err);
    json_decref(doc);
    return r;
}

static int notice_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    notice_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, one_options, 1, INT32_MAX, &f, &client, &n, err);

    for (int i = 1; r == 0 && i <= n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};

        r = path_of(client, &f, argv[i], &path, err);
        st_strbuf_addf(&said, "notice %s is removed", argv[i]);
        if (r == 0)
            r = st_admin_send(cli, client,
                              &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                              ST_CLI_TABLE, st_strbuf_str(&said), err);
    }
    return r;
}

const st_cli_verb st_cli_notice_verbs[] = {
    {"list", "List notices of your account and those below it", "[OPTION...]", .fn = notice_list,
     .options = list_options, .example = "  stint notice list\n"},
    {"show", "Show a notice and what came of its last deliveries", "[OPTION...] NAME",
     .fn = notice_show, .options = show_options, .example = "  stint notice show team-chat\n"},
    {"add", "Be told by webhook or mail", "[OPTION...] NAME",
     "Prints the secret that webhooks are signed with, once. The site's admin lists the hosts\n"
     "and the domains of mail that notices may go to.\n",
     .fn = notice_add, .options = add_options,
     .example = "  stint notice add me --mail ada@example.com\n"
                "  stint notice add team-chat --webhook https://hooks.example.com/T1 --all \\\n"
                "    --on fail,budget,incident\n"},
    {"test", "Send a test and wait for what comes of it", "[OPTION...] NAME", .fn = notice_test,
     .options = one_options, .example = "  stint notice test team-chat\n"},
    {"remove", "Remove notices and their deliveries that wait", "[OPTION...] NAME...",
     .fn = notice_remove, .options = one_options, .example = "  stint notice remove team-chat\n"},
    {0},
};
