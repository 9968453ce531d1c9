/*
 * `stint admin import`: makes a site's settings what files say (cli/site_files.h).
 *
 * 1 What differs is found first and can be looked at (--diff); where nothing does, nothing is sent.
 * 2 What is not in the files stays as it is: nothing is ever removed.
 * 3 All or nothing: the first change that is refused for good has those before it put back, in the other order. Plans and prices come
 *   last, since what was published stays.
 * 4 A change may wait for another one (a guarantee that grows for one that shrinks, a child for its parent): who is refused is tried
 *   again as long as others go on.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/doc.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"
#include "cli/admin_doc.h"
#include "cli/site_files.h"
#include "spec/spec.h"

#define ROWS_MAX  100000
#define NAME_ROOM 128

typedef struct change {
    const st_site_kind *kind;
    const char *name;       /* of `after` */
    json_t *before, *after; /* before NULL: it is new */
    bool done;
} change;

typedef struct import {
    st_cli *cli;
    st_client *client;
    const char *dir;
    ST_VEC(change) changes;
} import;

static void import_done(import *im)
{
    for (size_t i = 0; i < im->changes.n; i++) {
        json_decref(im->changes.v[i].before);
        json_decref(im->changes.v[i].after);
    }
    st_vec_free(&im->changes);
    st_client_free(im->client);
}

/* ---- files ------------------------------------------------------------------------------------- */

static int check_rows(const st_site_kind *kind, const char *path, const json_t *rows, st_err *err)
{
    const json_t *row;
    char q[ST_QUOTE_MAX];
    size_t i;

    if (!json_is_array(rows))
        return st_fail(err, ST_EINVAL, "%s: expected a list", path);
    if (json_array_size(rows) > ROWS_MAX)
        return st_fail(err, ST_ELIMIT, "%s: more than %d entries", path, ROWS_MAX);
    json_array_foreach(rows, i, row)
    {
        const char *name = st_site_name(kind, row);

        if (!json_is_object(row) || !*name)
            return st_fail(err, ST_EINVAL, "%s: entry %zu has no \"%s\"", path, i + 1,
                           kind->naming);
        if (st_site_find(kind, rows, name) != row)
            return st_fail(err, ST_EINVAL, "%s: %s %s is there twice", path, kind->one,
                           st_quote(q, name));
    }
    return 0;
}

/* JSON, or YAML that somebody wrote by hand. *ret NULL: there is no such file. */
static int read_rows(const char *dir, const st_site_kind *kind, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, text = {0}, json = {0};
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    json_error_t bad;
    struct stat st;
    int r;

    *ret = NULL;
    st_strbuf_addf(&path, "%s/%s.json", dir, kind->name);
    if (stat(path.s, &st) < 0 && errno == ENOENT)
        return 0;
    r = st_file_read(path.s, ST_SITE_FILE_MAX, &text, err);
    if (r == 0)
        r = st_doc_parse(path.s, st_strbuf_str(&text), text.n, &doc, err);
    if (r < 0)
        return r;
    st_spec_json(st_doc_root(doc), &json);
    *ret = json_loads(st_strbuf_str(&json), 0, &bad);
    if (!*ret)
        return st_fail(err, ST_EINVAL, "%s: cannot be sent as JSON: %s", path.s, bad.text);
    r = check_rows(kind, path.s, *ret, err);
    if (r < 0)
        json_decref(ST_TAKE(*ret));
    return r;
}

static int read_text(const char *dir, const st_site_kind *kind, const char *file, json_t *rows,
                     st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, text = {0};
    size_t n = strlen(file) - strlen(".lua");
    char name[NAME_ROOM + 1], q[ST_QUOTE_MAX];
    json_t *row;
    int r;

    st_strbuf_addf(&path, "%s/%s/%s", dir, kind->name, file);
    if (n > NAME_ROOM)
        return st_fail(err, ST_EINVAL, "%s: the name is too long", path.s);
    memcpy(name, file, n);
    name[n] = '\0';
    r = st_file_read(path.s, ST_SITE_FILE_MAX, &text, err);
    if (r < 0)
        return r;
    row = json_pack("{s:s, s:s}", "name", name, "text", st_strbuf_str(&text));
    if (!row)
        return st_fail(err, ST_EINVAL, "%s: %s is not UTF-8", path.s, st_quote(q, name));
    json_array_append_new(rows, row);
    return 0;
}

static int is_script(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && dot > entry->d_name && strcmp(dot, ".lua") == 0;
}

static int read_texts(const char *dir, const st_site_kind *kind, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    struct dirent **list = NULL;
    int n, r = 0;

    *ret = NULL;
    st_strbuf_addf(&path, "%s/%s", dir, kind->name);
    n = scandir(path.s, &list, is_script, alphasort);
    if (n < 0)
        return errno == ENOENT
                   ? 0
                   : st_fail(err, ST_EIO, "%s: cannot be read: %s", path.s, strerror(errno));
    *ret = json_array();
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = read_text(dir, kind, list[i]->d_name, *ret, err);
        free(list[i]);
    }
    free(list);
    if (r < 0)
        json_decref(ST_TAKE(*ret));
    return r;
}

/* ---- what differs ------------------------------------------------------------------------------ */

/* Whether all that `want` says is so; what it does not say may be as it is. A map that it has is meant whole. */
static bool is_so(const json_t *have, const json_t *want)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)want, key,
                        value) if (!json_equal(value, json_object_get(have, key))) return false;
    return true;
}

static int find_changes(import *im, const st_site_kind *kind, st_err *err)
{
    json_t *want = NULL, *have = NULL, *row;
    size_t i;
    int r =
        kind->text ? read_texts(im->dir, kind, &want, err) : read_rows(im->dir, kind, &want, err);

    if (r < 0 || !want)
        return r;
    r = st_site_fetch(im->client, kind, &have, err);
    json_array_foreach(want, i, row)
    {
        const json_t *is = r == 0 ? st_site_find(kind, have, st_site_name(kind, row)) : NULL;
        change c = {.kind = kind};

        if (r < 0 || (is && is_so(is, row)))
            continue;
        c.before = is ? json_deep_copy(is) : NULL;
        c.after = json_deep_copy(row);
        c.name = st_site_name(kind, c.after);
        st_vec_push(&im->changes, c);
    }
    json_decref(want);
    json_decref(have);
    return r;
}

static void say_value(FILE *out, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

    fputs(text ? text : "nothing", out);
    free(text);
}

/* Names come from files and from the service: none may act on a terminal. */
static void say_change(FILE *out, const change *c)
{
    const char *key;
    char q[ST_QUOTE_MAX];
    json_t *value;

    fprintf(out, "%c %s %s\n", c->before ? '~' : '+', c->kind->one, st_quote(q, c->name));
    json_object_foreach(c->after, key, value)
    {
        if (strcmp(key, c->kind->naming) == 0 || json_equal(value, json_object_get(c->before, key)))
            continue;
        if (c->kind->text) {
            fprintf(out, "    another text\n");
            continue;
        }
        fprintf(out, "    %s: ", st_quote(q, key));
        if (c->before) {
            say_value(out, json_object_get(c->before, key));
            fputs(" -> ", out);
        }
        say_value(out, value);
        fputc('\n', out);
    }
}

/* ---- sending ----------------------------------------------------------------------------------- */

/* In a map that is changed, what is not named stays: what is to go is said. */
static json_t *whole_map(const json_t *was, const json_t *is)
{
    json_t *out = json_deep_copy(is), *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)was, key, value)
    {
        json_t *inner = json_object_get(out, key);

        if (!inner)
            json_object_set_new(out, key,
                                json_is_object(value) ? json_object() : json_string("none"));
        inner = json_object_get(out, key);
        if (json_is_object(value) && json_is_object(inner))
            json_object_set_new(out, key, whole_map(value, inner));
    }
    return out;
}

/* What of `to` is not so yet. */
static json_t *patch_of(const st_site_kind *kind, const json_t *from, const json_t *to)
{
    json_t *out = json_object(), *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)to, key, value)
    {
        const json_t *was = json_object_get(from, key);

        if (strcmp(key, kind->naming) == 0 || json_equal(was, value))
            continue;
        json_object_set_new(out, key,
                            json_is_object(value) ? whole_map(was, value) : json_deep_copy(value));
    }
    return out;
}

static json_t *without_name(const st_site_kind *kind, const json_t *row)
{
    json_t *out = json_deep_copy(row);

    json_object_del(out, kind->naming);
    return out;
}

static int send(const import *im, st_request *request, json_t *body, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    int r;

    if (text)
        request->body = text;
    r = st_client_call(im->client, request, &response, err);
    free(text);
    json_decref(body);
    return r;
}

/* Makes it `to`, which was `from`; NULL: there is none, or is to be none. */
static int put(const import *im, const change *c, const json_t *from, const json_t *to, st_err *err)
{
    const st_site_kind *kind = c->kind;
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0}, path = {0};
    st_request request = {.path = NULL};
    char tag[80];
    int r;

    st_strbuf_addf(&list, "/v1/%s", kind->name);
    st_site_path(kind, c->name, &path);
    request.path = st_strbuf_str(&path);
    if (!to) {
        request.method = "DELETE";
        return send(im, &request, NULL, err);
    }
    if (kind->put == ST_SITE_PUT) {
        request.method = "PUT";
        if (!kind->text)
            return send(im, &request, without_name(kind, to), err);
        request.type = "text/x-lua";
        request.body = json_string_value(json_object_get(to, "text"));
        return send(im, &request, NULL, err);
    }
    if (kind->of) {
        request.method = "PATCH";
        return send(im, &request, patch_of(kind, from, to), err);
    }
    if (!from || kind->put == ST_SITE_POST) {
        request.method = "POST";
        request.path = st_strbuf_str(&list);
        return send(im, &request, json_deep_copy(to), err);
    }
    r = st_admin_tag(im->client, st_strbuf_str(&path), tag, err);
    if (r < 0)
        return r;
    request.method = "PATCH";
    request.if_match = tag;
    return send(im, &request, patch_of(kind, from, to), err);
}

/* What a PATCH would leave, where it was not set before. */
static json_t *undone(const change *c)
{
    json_t *out = c->before ? json_deep_copy(c->before) : json_object(), *value;
    const char *key;

    json_object_foreach(c->after, key, value) if (!json_object_get(out, key))
        json_object_set_new(out, key,
                            json_is_object(value)                 ? json_object()
                            : strcmp(c->kind->name, "pools") == 0 ? json_integer(0)
                                                                  : json_string("none"));
    return out;
}

/* The last that was done is put back first; who depends on another goes before it. */
static int put_back(import *im, const size_t *order, size_t n)
{
    int left = 0;

    for (size_t i = n; i > 0; i--) {
        change *c = &im->changes.v[order[i - 1]];
        bool quota = c->kind->of && c->kind->put == ST_SITE_PATCH; /* there always is one */
        json_t *to = c->before && c->kind->put == ST_SITE_PUT ? json_deep_copy(c->before)
                     : c->before || quota                     ? undone(c)
                                                              : NULL;
        char q[ST_QUOTE_MAX];
        st_err err = {0};

        if (put(im, c, c->after, to, &err) < 0) {
            fprintf(im->cli->errors, "stint: %s %s could not be put back: %s\n", c->kind->one,
                    st_quote(q, c->name), err.msg);
            left++;
        }
        json_decref(to);
    }
    return left;
}

/* What is published or agreed on is in the books, and is not taken back. */
static bool stays(const st_site_kind *kind)
{
    return kind->put == ST_SITE_POST || strcmp(kind->name, "plans") == 0;
}

/* Each is tried until a round changes nothing. */
static int apply(import *im, st_err *err)
{
    ST_CLEANUP(st_freep) size_t *order = st_xcalloc(im->changes.n + 1, sizeof *order);
    const change *refused = NULL;
    size_t n = 0;
    st_err first = {0};
    char q[ST_QUOTE_MAX];

    for (bool more = true; more && n < im->changes.n;) {
        more = false;
        refused = NULL;
        for (size_t i = 0; i < im->changes.n; i++) {
            change *c = &im->changes.v[i];
            st_err why = {0};

            if (c->done || (refused && stays(c->kind)))
                continue;
            if (put(im, c, c->before, c->after, &why) == 0) {
                c->done = more = true;
                order[n++] = i;
            } else if (!refused) {
                refused = c;
                first = why;
            }
        }
    }
    if (n == im->changes.n)
        return 0;
    *err = first;
    st_fail_prefix(err, "%s %s: ", refused->kind->one, st_quote(q, refused->name));
    if (put_back(im, order, n) == 0)
        fprintf(im->cli->errors, "stint: nothing was changed%s\n",
                n > 0 ? ": what had been is put back" : "");
    return -err->code;
}

/* ---- the verb ---------------------------------------------------------------------------------- */

typedef struct import_flags {
    bool diff;
} import_flags;

const st_cli_row st_cli_import_options[] = {
    {"diff", 'd', ST_CLI_FLAG, offsetof(import_flags, diff), NULL,
     "show what would change; change nothing", 0, 0},
    {0},
};

static int check_folder(const char *path, st_err *err)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return st_fail(err, ST_EINVAL, "%s is no folder: name one that stint admin export has written",
                   path);
}

int st_cli_admin_import(st_cli *cli, int argc, char **argv, st_err *err)
{
import im = {.cli = cli };
    import_flags f = {0};
    int r = st_cli_read(argc, argv, st_cli_import_options, &f, 1, 1, NULL, err);

    im.dir = argv[1];
    if (r == 0)
        r = check_folder(im.dir, err);
    if (r == 0)
        r = st_client_open(cli->errors, &im.client, err);
    for (const st_site_kind *kind = st_site_kinds; r == 0 && kind->name; kind++)
        r = find_changes(&im, kind, err);
    for (size_t i = 0; r == 0 && i < im.changes.n; i++)
        say_change(cli->out, &im.changes.v[i]);
    if (r == 0 && im.changes.n == 0)
        fprintf(cli->out, "nothing differs\n");
    if (r == 0 && im.changes.n > 0 && !f.diff) {
        fflush(cli->out);
        r = apply(&im, err);
        if (r == 0)
            fprintf(cli->out, "%zu changed\n", im.changes.n);
    }
    import_done(&im);
    return r;
}
