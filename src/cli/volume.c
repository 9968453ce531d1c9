/*
 * `stint volume`: folders that an account's jobs share, with a size.
 */
#include "cli/volume.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

typedef struct volume_flags {
    st_cli_format format;
    const char *account, *size, *below, *about;
} volume_flags;

#define ACCOUNT_ROW                                                                \
    {                                                                              \
        "account", 'A', ST_CLI_STRING, offsetof(volume_flags, account), "ACCOUNT", \
            "account (default: yours)", 0, 0                                       \
    }
#define SET_ROWS                                                                                  \
    {"size",                                                                                      \
     's',                                                                                         \
     ST_CLI_STRING,                                                                               \
     offsetof(volume_flags, size),                                                                \
     "SIZE",                                                                                      \
     "how large it may get, for example 100Gi",                                                   \
     0,                                                                                           \
     0},                                                                                          \
        {"below",                                                                                 \
         0,                                                                                       \
         ST_CLI_STRING,                                                                           \
         offsetof(volume_flags, below),                                                           \
         "none|read|write",                                                                       \
         "what jobs of accounts below may do with it (default: none)",                            \
         0,                                                                                       \
         0},                                                                                      \
    {                                                                                             \
        "about", 0, ST_CLI_STRING, offsetof(volume_flags, about), "TEXT", "a line about it", 0, 0 \
    }

static const st_cli_row list_options[] = {
    ACCOUNT_ROW,
    {"output", 'o', ST_CLI_LISTING, offsetof(volume_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row show_options[] = {
    ACCOUNT_ROW,
    {"output", 'o', ST_CLI_OUTPUT, offsetof(volume_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row set_options[] = {ACCOUNT_ROW, SET_ROWS, {0}};
static const st_cli_row remove_options[] = {ACCOUNT_ROW, {0}};

int st_volume_account(st_client *client, const char *given, char **ret, st_err *err)
{
    json_t *who = NULL;
    int r = given ? 0 : st_client_get(client, "/v1/whoami", &who, err);

    if (r == 0 && !given && !*st_view_text(who, "account"))
        r = st_fail(err, ST_EINVAL, "whose volume? Name the account with --account");
    if (r == 0)
        *ret = st_xstrdup(given ? given : st_view_text(who, "account"));
    json_decref(who);
    return r;
}

void st_volume_route(st_strbuf *out, const char *account, const char *name)
{
    st_admin_path(out, "accounts", account);
    st_strbuf_add(out, "/volumes");
    if (name) {
        st_strbuf_addc(out, '/');
        st_url_add(out, name);
    }
}

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 volume_flags *f, st_client **client, char **ret_account, int *ret_n, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, ret_n, err);

    if (r == 0)
        r = st_client_open(cli->errors, client, err);
    return r == 0 ? st_volume_account(*client, f->account, ret_account, err) : r;
}

static int volume_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"VOLUME", "name", ST_VIEW_TEXT, NULL},     {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"SIZE", "size_mib", ST_VIEW_MIB, NULL},    {"BELOW", "below", ST_VIEW_TEXT, NULL},
        {"CREATED", "created", ST_VIEW_TIME, NULL}, {"BY", "by", ST_VIEW_TEXT, NULL},
        {"ABOUT", "about", ST_VIEW_TEXT, NULL},     {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_freep) char *account = NULL;
    volume_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, &account, NULL, err);

    if (r < 0)
        return r;
    st_volume_route(&path, account, NULL);
    return st_view_list(cli, client, f.format, st_strbuf_str(&path), "volumes", columns, err);
}

static int volume_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_freep) char *account = NULL;
    char used[ST_FMT_MAX], size[ST_FMT_MAX];
    volume_flags f = {0};
    json_t *v = NULL;
    int64_t bytes;
    int r = begin(cli, argc, argv, show_options, 1, 1, &f, &client, &account, NULL, err);

    if (r == 0) {
        st_volume_route(&path, account, argv[1]);
        r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &v, &response, err);
    }
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
        json_decref(v);
        return 0;
    }
    bytes = json_integer_value(st_view_at(v, "used_bytes"));
    fprintf(cli->out, "Volume     %s of %s\n", st_view_text(v, "name"), st_view_text(v, "account"));
    fprintf(cli->out, "Used       %s of %s, %lld files of %lld\n",
            st_fmt_mib(used, (bytes + (1 << 20) - 1) >> 20),
            st_fmt_mib(size, json_integer_value(st_view_at(v, "size_mib"))),
            (long long)json_integer_value(st_view_at(v, "files")),
            (long long)json_integer_value(st_view_at(v, "files_max")));
    fprintf(cli->out, "Below      %s\n", st_view_text(v, "below"));
    if (*st_view_text(v, "about"))
        fprintf(cli->out, "About      %s\n", st_view_text(v, "about"));
    if (json_integer_value(st_view_at(v, "private_folders")) > 0)
        fprintf(cli->out, "Private    %lld folders that jobs have closed are not counted\n",
                (long long)json_integer_value(st_view_at(v, "private_folders")));
    json_decref(v);
    return 0;
}

static int put(st_cli *cli, int argc, char **argv, bool make, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_freep) char *account = NULL;
    volume_flags f = {0};
    int r = begin(cli, argc, argv, set_options, 1, 1, &f, &client, &account, NULL, err);

    if (r == 0 && make && !f.size)
        f.size = "100Gi";
    if (r == 0 && !f.size && !f.below && !f.about)
        r = st_fail(err, ST_EINVAL, "what shall change? Give --size, --below or --about");
    if (r < 0)
        return r;
    if (f.size && strspn(f.size, "0123456789") == strlen(f.size))
        return st_fail(err, ST_EINVAL, "--size %s has no unit; write %sGi, for example", f.size,
                       f.size);
    st_volume_route(&path, account, argv[1]);
    if (make)
        st_strbuf_add(&path, "?make=true");
    st_body_put(&body, "size", f.size);
    st_body_put(&body, "below", f.below);
    st_body_put(&body, "about", f.about);
    st_strbuf_addf(&said,
                   make ? "volume %s is made; jobs get it with --volume %s:/PATH"
                        : "volume %s is changed",
                   argv[1], argv[1]);
    return st_admin_send(
        cli, client,
        &(st_request){.method = "PUT", .path = st_strbuf_str(&path), .body = st_body_end(&body)},
        ST_CLI_TABLE, st_strbuf_str(&said), err);
}

static int volume_create(st_cli *cli, int argc, char **argv, st_err *err)
{
    return put(cli, argc, argv, true, err);
}

static int volume_set(st_cli *cli, int argc, char **argv, st_err *err)
{
    return put(cli, argc, argv, false, err);
}

static int volume_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_freep) char *account = NULL;
    volume_flags f = {0};
    int n = 0,
        r = begin(cli, argc, argv, remove_options, 1, INT32_MAX, &f, &client, &account, &n, err);

    for (int i = 1; r == 0 && i <= n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};

        st_volume_route(&path, account, argv[i]);
        st_strbuf_addf(&said, "volume %s is removed, with all that was in it", argv[i]);
        r = st_admin_send(cli, client,
                          &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                          ST_CLI_TABLE, st_strbuf_str(&said), err);
    }
    return r;
}

const st_cli_verb st_cli_volume_verbs[] = {
    {"list", "List volumes that your jobs may use", "[OPTION...]", .fn = volume_list,
     .options = list_options, .example = "  stint volume list\n"},
    {"show", "Show a volume and how full it is", "[OPTION...] NAME", .fn = volume_show,
     .options = show_options, .example = "  stint volume show sets\n"},
    {"create", "Create a volume", "[OPTION...] NAME",
     "A volume is a folder that the jobs of an account share, on every node. A job gets it with\n"
     "--volume NAME:/PATH, or :ro to read only. Without --size it may get 100Gi.\n",
     .fn = volume_create, .options = set_options,
     .example = "  stint volume create sets --size 2Ti --below read\n"},
    {"set", "Change a volume", "[OPTION...] NAME", .fn = volume_set, .options = set_options,
     .example = "  stint volume set sets --size 4Ti\n"},
    {"remove", "Remove volumes with all that is in them", "[OPTION...] NAME...",
     .fn = volume_remove, .options = remove_options, .example = "  stint volume remove sets\n"},
    {0},
};
