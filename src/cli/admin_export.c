/*
 * `stint admin export`: what a site has set up, as files in a stable order, to be reviewed and kept. No secrets are among them: tokens,
 * keys and secrets have no place in what is listed (cli/site_files.c).
 *
 * A file is written beside its place and then put there, so a folder never has half of one. Names of rules come from the service: one
 * that is no plain file name is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/names.h"
#include "base/quote.h"
#include "cli/site_files.h"

#define NAME_MAX_BYTES 128

static int write_file(const char *path, const char *text, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf part = {0};
    size_t n = strlen(text), done = 0;
    int fd;

    st_strbuf_addf(&part, "%s.part", path);
    unlink(part.s);
    fd = open(part.s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    while (fd >= 0 && done < n) {
        ssize_t w = write(fd, text + done, n - done);

        if (w < 0)
            break;
        done += (size_t)w;
    }
    if (fd >= 0 && close(fd) == 0 && done == n && rename(part.s, path) == 0)
        return 0;
    st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    unlink(part.s);
    return -err->code;
}

static int make_folder(const char *path, st_err *err)
{
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        return 0;
    return st_fail(err, ST_EIO, "%s: cannot be made: %s", path, strerror(errno));
}

static int write_texts(const char *dir, const st_site_kind *kind, const json_t *rows, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    const json_t *row;
    size_t i;
    int r;

    st_strbuf_addf(&path, "%s/%s", dir, kind->name);
    r = make_folder(path.s, err);
    json_array_foreach(rows, i, row)
    {
        const char *name = st_site_name(kind, row);
        const char *text = json_string_value(json_object_get(row, "text"));
        char q[ST_QUOTE_MAX];

        if (r < 0)
            break;
        if (!st_plain_name(name, NAME_MAX_BYTES))
            return st_fail(err, ST_EINVAL, "%s %s cannot be the name of a file: rename it first",
                           kind->one, st_quote(q, name));
        st_strbuf_clear(&path);
        st_strbuf_addf(&path, "%s/%s/%s.lua", dir, kind->name, name);
        r = write_file(path.s, text ? text : "", err);
    }
    return r;
}

static int write_rows(const char *dir, const st_site_kind *kind, const json_t *rows, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, out = {0};
    char *text = json_dumps(rows, JSON_INDENT(2) | JSON_SORT_KEYS);

    st_strbuf_addf(&path, "%s/%s.json", dir, kind->name);
    st_strbuf_addf(&out, "%s\n", text ? text : "[]");
    free(text);
    return write_file(path.s, st_strbuf_str(&out), err);
}

int st_cli_admin_export(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 1, 1, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = make_folder(argv[1], err);
    for (const st_site_kind *kind = st_site_kinds; r == 0 && kind->name; kind++) {
        json_t *rows = NULL;

        r = st_site_fetch(client, kind, &rows, err);
        if (r == 0)
            r = kind->text ? write_texts(argv[1], kind, rows, err)
                           : write_rows(argv[1], kind, rows, err);
        if (r == 0)
            fprintf(cli->out, "%-9s %zu\n", kind->name, json_array_size(rows));
        json_decref(rows);
    }
    return r;
}
