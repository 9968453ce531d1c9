/*
 * Fuzzes the reader of tar streams: every entry's name stays beneath the root, sizes are no smaller than nothing, and
 * what comes out is no more than what went in.
 */
#include <string.h>

#include "base/macros.h"
#include "fuzz.h"
#include "run/tar.h"

typedef struct stream {
    const uint8_t *at;
    size_t left;
} stream;

static int pull(void *ctx, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    stream *s = ctx;

    (void)err;
    *ret = ST_MIN(n, s->left);
    memcpy(buf, s->at, *ret);
    s->at += *ret;
    s->left -= *ret;
    return 0;
}

static void check_name(const char *name)
{
    ST_ASSERT(name[0] != '/' && strlen(name) < PATH_MAX && !strstr(name, "//"));
    for (const char *part = name; *part;) {
        size_t n = strcspn(part, "/");

        ST_ASSERT(n > 0 && n <= ST_TAR_PART_MAX);
        ST_ASSERT(!(n == 1 && part[0] == '.') && !(n == 2 && part[0] == '.' && part[1] == '.'));
        part += n + (part[n] == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stream s = {data, size};
    st_tar_entry e;
    st_err err = {0};
    unsigned char buf[512];
    size_t all = 0;
    st_tar tar;
    int r;

    st_tar_init(&tar, pull, &s);
    while ((r = st_tar_next(&tar, &e, &err)) > 0) {
        size_t n = 1;

        check_name(e.name);
        if (e.kind == ST_TAR_HARDLINK)
            check_name(e.link);
        ST_ASSERT(e.size >= 0 && e.mtime_s >= 0 && e.mode <= 07777);
        ST_ASSERT(e.size == 0 || e.kind == ST_TAR_FILE || e.kind == ST_TAR_OTHER);
        /* Every other body is passed over. */
        while (all % 2 == 0 && n > 0 && r > 0) {
            r = st_tar_body(&tar, buf, sizeof(buf), &n, &err) < 0 ? -1 : 1;
            all += r > 0 ? n : 0;
        }
        if (r < 0)
            break;
    }
    ST_ASSERT(r >= 0 || (err.code != 0 && err.msg[0]));
    ST_ASSERT(all <= size);
    return 0;
}
