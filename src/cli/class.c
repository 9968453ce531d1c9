/*
 * `stint class`: names for how urgent jobs are.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

typedef struct class_flags {
    st_cli_format format;
    const char *lowest, *highest, *priority, *accounts, *roles, *about;
    bool no_preempt;
} class_flags;

#define TEXT(option, letter, field, value, about)                                       \
    {                                                                                   \
        option, letter, ST_CLI_STRING, offsetof(class_flags, field), value, about, 0, 0 \
    }

static const st_cli_row list_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(class_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row no_options[] = {{0}};
static const st_cli_row set_options[] = {
    TEXT("lowest", 0, lowest, "N", "lowest priority of its jobs"),
    TEXT("highest", 0, highest, "N", "highest priority of its jobs"),
    TEXT("priority", 0, priority, "N", "priority of jobs that name none (default: the lowest)"),
    TEXT("for", 'F', accounts, "all|ACCOUNT,...",
         "accounts that may use it, with all below them (default: all)"),
    TEXT("roles", 0, roles, "all|ROLE,...", "roles that may use it (default: all)"),
    {"no-preempt", 0, ST_CLI_FLAG, offsetof(class_flags, no_preempt), NULL,
     "its jobs preempt nobody of their account, and nobody while they borrow", 0, 0},
    TEXT("about", 'a', about, "TEXT", "description"),
    {0},
};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int operands,
                 class_flags *f, st_client **client, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, operands, operands, NULL, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

static void show_names(const json_t *said, st_strbuf *out)
{
    const json_t *one;
    size_t i;

    if (json_is_string(said))
        st_strbuf_add(out, json_string_value(said));
    json_array_foreach(said, i, one)
    {
        st_strbuf_addf(out, "%s%s", i ? "," : "", json_string_value(one));
    }
}

static void show_roles(const json_t *row, st_strbuf *out)
{
    show_names(st_view_at(row, "roles"), out);
}

static void show_accounts(const json_t *row, st_strbuf *out)
{
    show_names(st_view_at(row, "accounts"), out);
}

static void show_range(const json_t *row, st_strbuf *out)
{
    st_strbuf_addf(out, "%lld to %lld",
                   (long long)json_integer_value(json_object_get(row, "lowest")),
                   (long long)json_integer_value(json_object_get(row, "highest")));
}

static void show_preempt(const json_t *row, st_strbuf *out)
{
    st_strbuf_add(out, json_is_true(json_object_get(row, "preempt")) ? "yes" : "no");
}

static int class_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"CLASS", "name", ST_VIEW_TEXT, NULL},
        {"PRIORITY", "priority", ST_VIEW_NUM, NULL},
        {"FROM TO", NULL, ST_VIEW_FN, show_range},
        {"PREEMPTS", NULL, ST_VIEW_FN, show_preempt},
        {"PRICE", "price", ST_VIEW_TEXT, NULL},
        {"ROLES", NULL, ST_VIEW_FN, show_roles},
        {"FOR", NULL, ST_VIEW_FN, show_accounts},
        {"ABOUT", "about", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    class_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, &f, &client, err);

    return r < 0 ? r : st_view_list(cli, client, f.format, "/v1/classes", "classes", columns, err);
}

static void put_names(st_body *body, const char *key, const char *text)
{
    if (text && strcmp(text, "all") == 0)
        st_body_put(body, key, "all");
    else
        st_body_list(body, key, text);
}

static int class_set(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    ST_CLEANUP(st_body_done) st_body body = {0};
    class_flags f = {0};
    int r = begin(cli, argc, argv, set_options, 1, &f, &client, err);

    if (r == 0 && (!f.lowest || !f.highest))
        r = st_fail(err, ST_EINVAL, "%s: say which priorities it has: --lowest N --highest N",
                    argv[0]);
    if (r < 0)
        return r;
    st_body_put(&body, "lowest", f.lowest);
    st_body_put(&body, "highest", f.highest);
    st_body_put(&body, "priority", f.priority ? f.priority : f.lowest);
    if (f.no_preempt)
        st_body_raw(&body, "preempt", "false");
    put_names(&body, "accounts", f.accounts);
    put_names(&body, "roles", f.roles);
    st_body_put(&body, "about", f.about);
    st_admin_path(&path, "classes", argv[1]);
    st_strbuf_addf(&said, "class %s is set", argv[1]);
    return st_admin_send(
        cli, client,
        &(st_request){.method = "PUT", .path = st_strbuf_str(&path), .body = st_body_end(&body)},
        ST_CLI_TABLE, st_strbuf_str(&said), err);
}

static int class_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    class_flags f = {0};
    int r = begin(cli, argc, argv, no_options, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "classes", argv[1]);
    st_strbuf_addf(&said, "class %s is removed; jobs that have it keep their priority", argv[1]);
    return st_admin_send(cli, client,
                         &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                         ST_CLI_TABLE, st_strbuf_str(&said), err);
}

const st_cli_verb st_cli_class_verbs[] = {
    {"list", "List classes that your jobs may name", "[OPTION...]", .fn = class_list,
     .options = list_options, .example = "  stint class list\n"},
    {"set", "Create or replace a class", "[OPTION...] NAME --lowest N --highest N",
     "What its jobs pay is in the price book, under `classes`.\n", .fn = class_set,
     .options = set_options,
     .example = "  stint class set critical --lowest 200 --highest 999 --roles owner,admin\n"
                "  stint class set nightly --lowest -50 --highest -10 --for render --no-preempt\n"},
    {"remove", "Remove a class; a built-in one is as it was", "NAME", .fn = class_remove,
     .example = "  stint class remove nightly\n"},
    {0},
};
