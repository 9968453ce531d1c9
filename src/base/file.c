/*
 * Reading a whole file, up to a limit.
 */
#include "base/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *st_file_name(const char *path)
{
    return is_stdin(path) ? "stdin" : path;
}

static int read_all(FILE *f, const char *name, size_t limit, st_strbuf *text, st_err *err)
{
    char chunk[65536];
    size_t n;

    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        if (n > limit - text->n)
            return st_fail(err, ST_ELIMIT, "%s: the file is too large (at most %zu bytes)", name,
                           limit);
        st_strbuf_addn(text, chunk, n);
    }
    if (ferror(f))
        return st_fail(err, ST_EIO, "%s: cannot read the file: %s", name, strerror(errno));
    return 0;
}

int st_file_read(const char *path, size_t limit, st_strbuf *text, st_err *err)
{
    FILE *f = is_stdin(path) ? stdin : fopen(path, "re");
    int r;

    if (!f)
        return st_fail(err, errno == ENOENT ? ST_ENOENT : ST_EIO, "%s: cannot open the file: %s",
                       st_file_name(path), strerror(errno));
    r = read_all(f, st_file_name(path), limit, text, err);
    if (!is_stdin(path))
        fclose(f);
    return r;
}
