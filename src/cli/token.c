/*
 * `stint token` and `stint user`: who may come in, and as what.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

typedef struct token_flags {
    st_cli_format format;
    const char *user, *role, *account, *label, *expires, *save;
} token_flags;

#define ROLES "owner|admin|member|viewer|auditor|node"

static const st_cli_row list_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(token_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

static const st_cli_row create_options[] = {
    {"user", 'u', ST_CLI_STRING, offsetof(token_flags, user), "USER", "user of the token", 0, 0},
    {"role", 'r', ST_CLI_STRING, offsetof(token_flags, role), ROLES, "role of the token", 0, 0},
    {"account", 'A', ST_CLI_STRING, offsetof(token_flags, account), "ACCOUNT",
     "account the token belongs to (default: yours)", 0, 0},
    {"label", 'L', ST_CLI_STRING, offsetof(token_flags, label), "TEXT", "note about its purpose", 0,
     0},
    {"expires", 'e', ST_CLI_STRING, offsetof(token_flags, expires), "DURATION",
     "lifetime, for example 90d (default: no end)", 0, 0},
    {"save", 's', ST_CLI_STRING, offsetof(token_flags, save), "FILE",
     "write the secret to this file (mode 0600), not to standard output", 0, 0},
    {"output", 'o', ST_CLI_OUTPUT, offsetof(token_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 token_flags *f, st_client **client, int *ret_n, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, ret_n, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

int st_cli_token_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"ID", "id", ST_VIEW_TEXT, NULL},           {"USER", "user", ST_VIEW_TEXT, NULL},
        {"ROLE", "role", ST_VIEW_TEXT, NULL},       {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"LABEL", "label", ST_VIEW_TEXT, NULL},     {"AGE", "created", ST_VIEW_AGE, NULL},
        {"USED", "last_used", ST_VIEW_AGE, NULL},   {"EXPIRES", "expires", ST_VIEW_TIME, NULL},
        {"REVOKED", "revoked", ST_VIEW_TIME, NULL}, {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    token_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, NULL, err);

    return r < 0 ? r : st_view_list(cli, client, f.format, "/v1/tokens", "tokens", columns, err);
}

int st_cli_user_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"USER", "user", ST_VIEW_TEXT, NULL},
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"ROLE", "role", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    token_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, NULL, err);

    return r < 0 ? r : st_view_list(cli, client, f.format, "/v1/users", "users", columns, err);
}

/* The file is opened before the token is made: a secret that could not be kept is of no use. */
static int open_secret(const char *path, int *ret, st_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return st_fail(err, errno == EEXIST ? ST_EEXIST : ST_EIO, "%s: cannot be made: %s", path,
                       strerror(errno));
    *ret = fd;
    return 0;
}

static int tell_token(st_cli *cli, const token_flags *f, const json_t *made, int fd, st_err *err)
{
    const char *secret = st_view_text(made, "token"), *account = st_view_text(made, "account");

    if (fd >= 0 && dprintf(fd, "%s\n", secret) < 0)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s; revoke token %s", f->save,
                       strerror(errno), st_view_text(made, "id"));
    if (fd < 0)
        fprintf(cli->out, "%s\n", secret);
    fprintf(cli->errors, "token %s for %s, %s of %s; the secret %s%s\n", st_view_text(made, "id"),
            st_view_text(made, "user"), st_view_text(made, "role"),
            *account ? account : "the cluster", fd >= 0 ? "is in " : "is shown this once",
            fd >= 0 ? f->save : "");
    return 0;
}

int st_cli_token_create(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    token_flags f = {0};
    json_t *made = NULL;
    int64_t expires_ms;
    int fd = -1, r = begin(cli, argc, argv, create_options, 0, 0, &f, &client, NULL, err);

    if (r == 0 && (!f.user || !f.role))
        r = st_fail(err, ST_EINVAL, "%s: --user and --role are needed", argv[0]);
    if (r == 0 && f.expires && st_parse_duration_ms(f.expires, &expires_ms, err) < 0)
        r = st_fail_prefix(err, "--expires: ");
    if (r == 0 && f.save)
        r = open_secret(f.save, &fd, err);
    if (r < 0)
        return r;
    st_body_put(&body, "user", f.user);
    st_body_put(&body, "role", f.role);
    st_body_put(&body, "account", f.account);
    st_body_put(&body, "label", f.label);
    st_body_put(&body, "expires_in", f.expires);
    r = st_client_json(
        client, &(st_request){.method = "POST", .path = "/v1/tokens", .body = st_body_end(&body)},
        &made, &response, err);
    if (r == 0 && f.format == ST_CLI_JSON && fd < 0)
        st_view_raw(cli, &response);
    else if (r == 0)
        r = tell_token(cli, &f, made, fd, err);
    if (fd >= 0)
        close(fd);
    if (r < 0 && f.save && !made)
        unlink(f.save);
    json_decref(made);
    return r;
}

static int delete_token(st_cli *cli, st_client *client, const char *id, bool remove, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    int r;

    st_admin_path(&path, "tokens", id);
    if (remove)
        st_strbuf_add(&path, "?remove=true");
    st_strbuf_addf(&said, "token %s %s", id, remove ? "removed" : "revoked");
    r = st_admin_send(cli, client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                      ST_CLI_TABLE, st_strbuf_str(&said), err);
    return r < 0 ? st_admin_near(client, "tokens", id, r, err) : 0;
}

static int delete_tokens(st_cli *cli, int argc, char **argv, bool remove, st_err *err)
{
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    token_flags f = {0};
    int n = 0, r = begin(cli, argc, argv, no_options, 1, INT32_MAX, &f, &client, &n, err);

    for (int i = 1; r == 0 && i <= n; i++)
        r = delete_token(cli, client, argv[i], remove, err);
    return r;
}

int st_cli_token_revoke(st_cli *cli, int argc, char **argv, st_err *err)
{
    return delete_tokens(cli, argc, argv, false, err);
}

static int token_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    return delete_tokens(cli, argc, argv, true, err);
}

const st_cli_verb st_cli_token_verbs[] = {
    {"list", "List your tokens; admins see those of accounts below too", "[OPTION...]",
     .fn = st_cli_token_list, .options = list_options, .example = "  stint token list\n"},
    {"create", "Create a token and print its secret, once", "--user USER --role ROLE [OPTION...]",
     .fn = st_cli_token_create, .options = create_options,
     .example = "  stint token create --user ada --role member --account vision --expires 90d\n"},
    {"revoke", "Revoke tokens", "TOKEN...", .fn = st_cli_token_revoke,
     .example = "  stint token revoke t4k2m9x1p\n"},
    {"remove", "Remove revoked or expired tokens from the list", "TOKEN...", .fn = token_remove,
     .example = "  stint token remove t4k2m9x1p\n"},
    {0},
};

const st_cli_verb st_cli_user_verbs[] = {
    {"list", "List users with a token, and their roles", "[OPTION...]", .fn = st_cli_user_list,
     .options = list_options, .example = "  stint user list -o csv\n"},
    {0},
};
