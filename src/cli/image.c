/*
 * `stint image`: the catalogue of images that jobs may name.
 */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/admin_doc.h"
#include "cli/spinner.h"
#include "cli/view.h"

#define INDEX_MAX ((size_t)4 << 20)

typedef struct image_flags {
    st_cli_format format;
    const char *folder, *layout, *digest, *accounts, *about;
    bool untrusted;
} image_flags;

#define WHOSE_ROWS                                                                             \
    {"for",                                                                                    \
     'F',                                                                                      \
     ST_CLI_STRING,                                                                            \
     offsetof(image_flags, accounts),                                                          \
     "all|ACCOUNT,...",                                                                        \
     "accounts that may use it, with all below them",                                          \
     0,                                                                                        \
     0},                                                                                       \
        {"untrusted", 'u',                                                                     \
         ST_CLI_FLAG, offsetof(image_flags, untrusted),                                        \
         NULL,        "refuse jobs with this image at levels mps and time",                    \
         0,           0},                                                                      \
    {                                                                                          \
        "about", 'a', ST_CLI_STRING, offsetof(image_flags, about), "TEXT", "description", 0, 0 \
    }

static const st_cli_row list_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(image_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row show_options[] = {
    {"output", 'o', ST_CLI_OUTPUT, offsetof(image_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};
static const st_cli_row no_options[] = {{0}};
static const st_cli_row add_options[] = {
    {"folder", 'f', ST_CLI_STRING, offsetof(image_flags, folder), "PATH",
     "root file system on the nodes, used as it is", 0, 0},
    {"layout", 'l', ST_CLI_STRING, offsetof(image_flags, layout), "PATH",
     "OCI image layout on the nodes, unpacked once on each", 0, 0},
    {"digest", 'd', ST_CLI_STRING, offsetof(image_flags, digest), "sha256:HEX",
     "digest of the layout's manifest (default: read from PATH/index.json on this machine)", 0, 0},
    WHOSE_ROWS,
    {0},
};
static const st_cli_row pull_options[] = {WHOSE_ROWS, {0}};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min,
                 image_flags *f, st_client **client, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, min, NULL, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

static void show_accounts(const json_t *row, st_strbuf *out)
{
    const json_t *said = st_view_at(row, "accounts"), *one;
    size_t i;

    if (json_is_string(said))
        st_strbuf_add(out, json_string_value(said));
    json_array_foreach(said, i, one)
    {
        st_strbuf_addf(out, "%s%s", i ? "," : "", json_string_value(one));
    }
}

static int image_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"IMAGE", "name", ST_VIEW_TEXT, NULL},
        {"KIND", "kind", ST_VIEW_TEXT, NULL},
        {"TRUST", "trust", ST_VIEW_TEXT, NULL},
        {"FOR", NULL, ST_VIEW_FN, show_accounts},
        {"DIGEST", "digest", ST_VIEW_TEXT, NULL},
        {"ABOUT", "about", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    image_flags f = {0};
    int r = begin(cli, argc, argv, list_options, 0, &f, &client, err);

    return r < 0 ? r : st_view_list(cli, client, f.format, "/v1/images", "images", columns, err);
}

static int image_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column rows[] = {
        {"Image", "name", ST_VIEW_TEXT, NULL},  {"Kind", "kind", ST_VIEW_TEXT, NULL},
        {"Path", "path", ST_VIEW_TEXT, NULL},   {"Digest", "digest", ST_VIEW_TEXT, NULL},
        {"Trust", "trust", ST_VIEW_TEXT, NULL}, {"For", NULL, ST_VIEW_FN, show_accounts},
        {"About", "about", ST_VIEW_TEXT, NULL}, {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    image_flags f = {0};
    int r = begin(cli, argc, argv, show_options, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "images", argv[1]);
    r = st_view_one(cli, client, f.format, st_strbuf_str(&path), rows, err);
    return r < 0 ? st_admin_near(client, "images", argv[1], r, err) : 0;
}

/* The digest that PATH/index.json names first; malloc'ed. */
static int read_digest(const char *layout, char **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, text = {0};
    const char *digest;
    json_t *index;
    int r;

    st_strbuf_addf(&path, "%s/index.json", layout);
    r = st_file_read(st_strbuf_str(&path), INDEX_MAX, &text, err);
    if (r < 0)
        return st_fail(err, err->code, "%s; give --digest", err->msg);
    index = json_loads(st_strbuf_str(&text), 0, NULL);
    digest = json_string_value(
        json_object_get(json_array_get(json_object_get(index, "manifests"), 0), "digest"));
    if (digest)
        *ret = st_xstrdup(digest);
    json_decref(index);
    return digest ? 0
                  : st_fail(err, ST_EPARSE, "%s names no manifest; give --digest",
                            st_strbuf_str(&path));
}

static void put_image(st_body *body, const image_flags *f, const char *layout, const char *digest)
{
    st_body_put(body, "folder", f->folder);
    st_body_put(body, "layout", layout);
    st_body_put(body, "digest", digest);
    st_body_put(body, "about", f->about);
    st_body_put(body, "trust", f->untrusted ? "untrusted" : "trusted");
    if (strcmp(f->accounts, "all") == 0)
        st_body_put(body, "accounts", "all");
    else
        st_body_list(body, "accounts", f->accounts);
}

static int image_add(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    ST_CLEANUP(st_freep) char *found = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    image_flags f = {0};
    int r = begin(cli, argc, argv, add_options, 1, &f, &client, err);

    if (r == 0 && !f.folder == !f.layout)
        r = st_fail(err, ST_EINVAL, "give --folder PATH or --layout PATH, one of the two");
    if (r == 0 && !f.accounts)
        r = st_fail(err, ST_EINVAL, "say who may use it: --for all, or --for ACCOUNT,...");
    if (r == 0 && f.layout && !f.digest)
        r = read_digest(f.layout, &found, err);
    if (r < 0)
        return r;
    put_image(&body, &f, f.layout, f.digest ? f.digest : found);
    st_admin_path(&path, "images", argv[1]);
    st_strbuf_addf(&said, "image %s is in the catalogue", argv[1]);
    return st_admin_send(
        cli, client,
        &(st_request){.method = "PUT", .path = st_strbuf_str(&path), .body = st_body_end(&body)},
        ST_CLI_TABLE, st_strbuf_str(&said), err);
}

/* Asked again until it is there. */
static int pull(st_cli *cli, st_client *client, const char *from, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_spinner_done) st_spinner spinner;
    ST_CLEANUP(st_body_done) st_body body = {0};
    const char *text;
    int r = 0;

    st_body_put(&body, "from", from);
    text = st_body_end(&body);
    st_spinner_begin(&spinner, cli->errors, "pulling");
    while (r == 0) {
        json_t *said = NULL;

        r = st_client_json(client,
                           &(st_request){.method = "POST", .path = "/v1/image-pulls", .body = text},
                           &said, NULL, err);
        if (r == 0 && strcmp(st_view_text(said, "state"), "done") == 0) {
            *ret = said;
            return 0;
        }
        json_decref(said);
        for (int i = 0; r == 0 && i < 5; i++) {
            st_spinner_turn(&spinner, NULL);
            usleep(100000);
        }
    }
    return r;
}

static int image_pull(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, told = {0};
    ST_CLEANUP(st_body_done) st_body body = {0};
    image_flags f = {0};
    json_t *said = NULL;
    int r = begin(cli, argc, argv, pull_options, 2, &f, &client, err);

    if (r == 0 && !f.accounts)
        r = st_fail(err, ST_EINVAL, "say who may use it: --for all, or --for ACCOUNT,...");
    if (r == 0)
        r = pull(cli, client, argv[2], &said, err);
    if (r < 0)
        return r;
    put_image(&body, &f, st_view_text(said, "layout"), st_view_text(said, "digest"));
    st_admin_path(&path, "images", argv[1]);
    st_strbuf_addf(&told, "image %s is in the catalogue, %s", argv[1],
                   st_view_text(said, "digest"));
    r = st_admin_send(
        cli, client,
        &(st_request){.method = "PUT", .path = st_strbuf_str(&path), .body = st_body_end(&body)},
        ST_CLI_TABLE, st_strbuf_str(&told), err);
    json_decref(said);
    return r;
}

static int image_remove(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    image_flags f = {0};
    int r = begin(cli, argc, argv, no_options, 1, &f, &client, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "images", argv[1]);
    st_strbuf_addf(&said, "image %s is removed; jobs that run from it go on", argv[1]);
    r = st_admin_send(cli, client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                      ST_CLI_TABLE, st_strbuf_str(&said), err);
    return r < 0 ? st_admin_near(client, "images", argv[1], r, err) : 0;
}

const st_cli_verb st_cli_image_verbs[] = {
    {"list", "List images you may use", "[OPTION...]", .fn = image_list, .options = list_options,
     .example = "  stint image list\n"},
    {"show", "Show one image", "[OPTION...] NAME", .fn = image_show, .options = show_options,
     .example = "  stint image show torch\n"},
    {"add", "Add or replace an image", "NAME --folder PATH|--layout PATH --for all|ACCOUNT,...",
     "The path must be the same on every node. A node uses a folder as it is; it checks a\n"
     "layout against its digest and unpacks it once.\n",
     .fn = image_add, .options = add_options,
     .example = "  stint image add torch --layout /srv/images/torch --for all\n"
                "  stint image add tools --folder /srv/tools --for vision,speech\n"},
    {"pull", "Pull an image from a registry of the site into the catalogue",
     "NAME HOST/IMAGE:TAG --for all|ACCOUNT,...",
     "stintd's configuration says which registries it asks (registries). Pull again to bring a\n"
     "newer image of the same tag; jobs that run go on with what they have.\n",
     .fn = image_pull, .options = pull_options,
     .example = "  stint image pull torch:2.4 registry.example/ml/torch:2.4 --for all\n"},
    {"remove", "Remove an image from the catalogue", "NAME", .fn = image_remove,
     .example = "  stint image remove torch\n"},
    {0},
};
