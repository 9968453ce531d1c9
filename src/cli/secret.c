/*
 * `stint secret`: what an account's jobs need to know and nobody else may. A value comes from a file or standard input,
 * never from the command line, where others would see it; and it never comes back.
 */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

#define VALUE_MAX ((size_t)65536 + 1)

typedef struct secret_flags {
    st_cli_format format;
    const char *account;
    bool below, raw;
} secret_flags;

#define ACCOUNT_ROW                                                                \
    {                                                                              \
        "account", 'A', ST_CLI_STRING, offsetof(secret_flags, account), "ACCOUNT", \
            "account (default: yours)", 0, 0                                       \
    }

static const st_cli_row list_options[] = {
    ACCOUNT_ROW,
    {"output", 'o', ST_CLI_LISTING, offsetof(secret_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row put_options[] = {
    ACCOUNT_ROW,
    {"below", 0, ST_CLI_FLAG, offsetof(secret_flags, below), NULL,
     "let jobs of accounts below use it", 0, 0},
    {"raw", 0, ST_CLI_FLAG, offsetof(secret_flags, raw), NULL,
     "keep the line end after the last line", 0, 0},
    {0},
};
static const st_cli_row remove_options[] = {ACCOUNT_ROW, {0}};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 secret_flags *f, st_client **client, int *ret_n, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, ret_n, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

/* "/v1/accounts/ACCOUNT/secrets[/NAME]". */
static int path_of(st_client *client, const secret_flags *f, const char *name, st_strbuf *out,
                   st_err *err)
{
    json_t *who = NULL;
    const char *account = f->account;
    int r = account ? 0 : st_client_get(client, "/v1/whoami", &who, err);

    if (r == 0 && !account)
        account = st_view_text(who, "account");
    if (r == 0 && !*account)
        r = st_fail(err, ST_EINVAL, "whose secret? Name the account with --account");
    if (r == 0) {
        st_admin_path(out, "accounts", account);
        st_strbuf_add(out, "/secrets");
        if (name) {
            st_strbuf_addc(out, '/');
            st_url_add(out, name);
        }
    }
    json_decref(who);
    return r;
}

static int secret_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"SECRET", "name", ST_VIEW_TEXT, NULL},
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"BELOW", "below", ST_VIEW_TEXT, NULL},
        {"VERSION", "version", ST_VIEW_NUM, NULL},
        {"CHANGED", "changed", ST_VIEW_TIME, NULL},
        {"BY", "by", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    secret_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, NULL, err);

    if (r == 0)
        r = path_of(client, &f, NULL, &path, err);
    return r < 0
               ? r
               : st_view_list(cli, client, f.format, st_strbuf_str(&path), "secrets", columns, err);
}

static void wipe(st_strbuf *b)
{
    if (b->s)
        explicit_bzero(b->s, b->cap);
    st_strbuf_done(b);
}

static int secret_put(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    ST_CLEANUP(wipe) st_strbuf value = {0};
    secret_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, put_options, 1, 2, &f, &client, &n, err);

    if (r == 0)
        r = path_of(client, &f, argv[1], &path, err);
    if (r == 0 && n < 2 && isatty(STDIN_FILENO))
        fprintf(cli->errors, "The value of %s, then Ctrl-D:\n", argv[1]);
    if (r == 0)
        r = st_file_read(n == 2 ? argv[2] : "-", VALUE_MAX, &value, err);
    if (r < 0)
        return r;
    if (!f.raw && value.n > 0 && value.s[value.n - 1] == '\n')
        value.s[--value.n] = '\0';
    if (value.n == 0)
        return st_fail(err, ST_EINVAL, "secret %s: the value is empty", argv[1]);
    if (f.below)
        st_strbuf_add(&path, "?below=true");
    st_strbuf_addf(&said, "secret %s is put; jobs get it from their next start on", argv[1]);
    return st_admin_send(cli, client,
                         &(st_request){.method = "PUT",
                                       .path = st_strbuf_str(&path),
                                       .body = value.s,
                                       .n = value.n,
                                       .type = "application/octet-stream"},
                         ST_CLI_TABLE, st_strbuf_str(&said), err);
}

static int secret_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    secret_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, remove_options, 1, INT32_MAX, &f, &client, &n, err);

    for (int i = 1; r == 0 && i <= n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};

        r = path_of(client, &f, argv[i], &path, err);
        st_strbuf_addf(&said, "secret %s is removed; what runs keeps what it was given", argv[i]);
        if (r == 0)
            r = st_admin_send(cli, client,
                              &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                              ST_CLI_TABLE, st_strbuf_str(&said), err);
    }
    return r;
}

const st_cli_verb st_cli_secret_verbs[] = {
    {"list", "List the names of secrets", "[OPTION...]", .fn = secret_list, .options = list_options,
     .example = "  stint secret list\n"},
    {"put", "Create or replace a secret from a file or standard input", "[OPTION...] NAME [FILE]",
     "A job with `secrets: {HF_TOKEN: hf}` finds it in /run/stint/secrets/HF_TOKEN; with\n"
     "{secret: hf, as: env} also in the variable HF_TOKEN.\n",
     .fn = secret_put, .options = put_options, .example = "  stint secret put hf hf.token\n"},
    {"remove", "Remove secrets", "[OPTION...] NAME...", .fn = secret_remove,
     .options = remove_options, .example = "  stint secret remove hf\n"},
    {0},
};

int st_cli_admin_rotate(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    json_t *doc = NULL;
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_json(client,
                           &(st_request){.method = "POST", .path = "/v1/admin/rotate-secrets-key"},
                           &doc, NULL, err);
    if (r < 0)
        return r;
    fprintf(cli->out, "everything is sealed under the new key %s; keep a copy of its file\n",
            st_view_text(doc, "key"));
    json_decref(doc);
    return 0;
}
