/*
 * Reading a document from a file: the only place in base with I/O. It stops at
 * the size limit, so a device or a pipe without an end does no harm.
 */
#include "base/doc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

static int read_all(FILE *f, const char *name, st_strbuf *text, st_err *err)
{
    char chunk[65536];
    size_t n;

    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        if (text->n + n > st_doc_limits_default.bytes)
            return st_fail(err, ST_ELIMIT, "%s: the file is too large (at most %zu bytes)", name,
                           st_doc_limits_default.bytes);
        st_strbuf_addn(text, chunk, n);
    }
    if (ferror(f))
        return st_fail(err, ST_EIO, "%s: cannot read the file: %s", name, strerror(errno));
    return 0;
}

int st_doc_load(const char *path, st_doc **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    bool from_stdin = strcmp(path, "-") == 0;
    const char *name = from_stdin ? "stdin" : path;
    FILE *f = from_stdin ? stdin : fopen(path, "re");
    int r;

    if (!f)
        return st_fail(err, errno == ENOENT ? ST_ENOENT : ST_EIO, "%s: cannot open the file: %s",
                       name, strerror(errno));
    r = read_all(f, name, &text, err);
    if (!from_stdin)
        fclose(f);
    if (r < 0)
        return r;
    return st_doc_parse(name, st_strbuf_str(&text), text.n, ret, err);
}
