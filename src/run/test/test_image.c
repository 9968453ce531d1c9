/*
 * Images: what the reader of tar makes of streams, what the unpacker leaves in a folder, how the cache keeps its bound.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/testing.h"
#include "run/cache.h"
#include "run/os.h"
#include "run/unpack.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MIB   (INT64_C(1) << 20)

/* ---- streams ---------------------------------------------------------------------------- */

static void add_block(st_strbuf *out, const char *data, size_t n)
{
    static const char zeros[ST_TAR_BLOCK] = {0};

    st_strbuf_addn(out, data, n);
    st_strbuf_addn(out, zeros, (size_t)(-(int64_t)n & (ST_TAR_BLOCK - 1)));
}

static void add_entry(st_strbuf *out, const char *name, char kind, unsigned mode, const char *link,
                      const char *data)
{
    char head[ST_TAR_BLOCK] = {0};
    unsigned sum = 0;

    snprintf(head, 100, "%s", name);
    snprintf(head + 100, 8, "%07o", mode);
    snprintf(head + 124, 12, "%011o", (unsigned)strlen(data));
    snprintf(head + 136, 12, "%011o", 1000000);
    head[156] = kind;
    snprintf(head + 157, 100, "%s", link);
    memcpy(head + 257, "ustar\00000", 8);
    memset(head + 148, ' ', 8);
    for (size_t i = 0; i < sizeof(head); i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    add_block(out, head, sizeof(head));
    if (data[0])
        add_block(out, data, strlen(data));
}

typedef struct source {
    const char *at;
    size_t left;
} source;

static int pull(void *ctx, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    source *s = ctx;

    (void)err;
    *ret = ST_MIN(n, s->left);
    memcpy(buf, s->at, *ret);
    s->at += *ret;
    s->left -= *ret;
    return 0;
}

/* ---- a folder --------------------------------------------------------------------------- */

typedef struct bench {
    char dir[PATH_MAX];
    int fd;
    st_unpack *u;
} bench;

static bench bench_new(int64_t max_bytes)
{
    bench b = {.dir = "/tmp/stint-image-XXXXXX"};

    assert_non_null(mkdtemp(b.dir));
    b.fd = open(b.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    b.u = st_unpack_new(b.fd, max_bytes);
    return b;
}

static void bench_done(bench *b)
{
    st_err err = {0};

    st_unpack_free(b->u);
    close(b->fd);
    assert_ok(st_os_remove_tree(b->dir, &err));
}

static int layer(bench *b, st_strbuf *stream, st_err *err)
{
    source s = {stream->s, stream->n};
    st_tar tar;
    int r;

    st_tar_init(&tar, pull, &s);
    r = st_unpack_layer(b->u, &tar, err);
    st_strbuf_done(stream);
    *stream = (st_strbuf){0};
    return r;
}

static bool there(const bench *b, const char *name, struct stat *ret)
{
    return fstatat(b->fd, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

static void layers_lie_over_each_other(void **state)
{
    bench b = bench_new(64 * MIB);
    st_strbuf s = {0};
    struct stat st, two;
    st_unpacked sum;
    st_err err = {0};
    (void)state;

    add_entry(&s, "./", '5', 0755, "", "");
    add_entry(&s, "a/", '5', 0555, "", "");
    add_entry(&s, "a/one", '0', 06755, "", "first");
    add_entry(&s, "a/two", '1', 0644, "a/one", "");
    add_entry(&s, "gone", '0', 0644, "", "x");
    add_entry(&s, "link", '2', 0777, "/etc", "");
    add_entry(&s, "null", '3', 0666, "", "");
    add_entry(&s, "pipe", '6', 0666, "", "");
    add_entry(&s, "deep/er/file", '0', 0600, "", "y");
    assert_int_equal(layer(&b, &s, &err), 0);
    assert_true(there(&b, "a", &st) && (st.st_mode & 07777) == 0755);
    assert_true(there(&b, "a/one", &st) && (st.st_mode & 07777) == 0755);
    assert_int_equal(st.st_mtime, 1000000);
    assert_true(there(&b, "a/two", &two) && two.st_ino == st.st_ino);
    assert_false(there(&b, "null", &st) || there(&b, "pipe", &st));
    st_unpack_sum(b.u, &sum);
    assert_int_equal(sum.left_out, 2);

    add_entry(&s, "a/three", '0', 0644, "", "z");
    add_entry(&s, "a/.wh..wh..opq", '0', 0644, "", "");
    add_entry(&s, ".wh.gone", '0', 0644, "", "");
    add_entry(&s, "link/inside", '0', 0644, "", "w"); /* through /etc of the image, not ours */
    add_entry(&s, "deep", '0', 0644, "", "a file now");
    assert_fails(layer(&b, &s, &err), ST_EINVAL, "link"); /* it has no /etc */
    assert_true(there(&b, "a/three", &st) && !there(&b, "a/one", &st) && !there(&b, "gone", &st));

    add_entry(&s, "etc/", '5', 0755, "", "");
    add_entry(&s, "link/inside", '0', 0644, "", "w");
    add_entry(&s, "deep", '0', 0644, "", "a file now");
    assert_int_equal(layer(&b, &s, &err), 0);
    assert_true(there(&b, "etc/inside", &st) && access("/etc/inside", F_OK) != 0);
    assert_true(there(&b, "deep", &st) && S_ISREG(st.st_mode));
    bench_done(&b);
}

static void what_leads_outside_is_refused(void **state)
{
    static const struct {
        const char *name;
        char kind;
        const char *link, *says;
    } rows[] = {
        {"../x", '0', "", "upwards"},
        {"a/../../x", '0', "", "upwards"},
        {"x", '1', "../etc/passwd", "upwards"},
        {"x", '1', "/etc/passwd", "no file"},
        {"x", '1', "", "no file"},
        {".wh...", '0', "", "none has"},
        {".wh.", '0', "", "none has"},
        {"x", 'S', "", "sparse"},
        {"x", '2', "", "cannot be unpacked"},
    };
    (void)state;

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        bench b = bench_new(MIB);
        st_strbuf s = {0};
        st_err err = {0};

        add_entry(&s, rows[i].name, rows[i].kind, 0644, rows[i].link, "");
        assert_fails(layer(&b, &s, &err), ST_EINVAL, rows[i].says);
        bench_done(&b);
    }
}

static void what_is_too_much_is_refused(void **state)
{
    bench b = bench_new(64 << 10);
    char name[100];
    st_strbuf s = {0};
    st_err err = {0};
    (void)state;

    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        add_entry(&s, name, '0', 0644, "", "x");
    }
    assert_fails(layer(&b, &s, &err), ST_ELIMIT, "when it is unpacked");
    bench_done(&b);
    b = bench_new(MIB);
    add_entry(&s, "cut", '0', 0644, "", "some bytes");
    s.n -= ST_TAR_BLOCK;
    assert_fails(layer(&b, &s, &err), ST_ECORRUPT, "in the middle");
    st_strbuf_add(&s, "noise that is no header, and not as long as one");
    assert_fails(layer(&b, &s, &err), ST_ECORRUPT, "in the middle");
    bench_done(&b);
}

/* ---- documents -------------------------------------------------------------------------- */

static void documents_say_what_they_mean(void **state)
{
    static st_manifest m;
    st_blob blob;
    bool index;
    st_err err = {0};
    (void)state;

#define INDEX(text)    st_layout_index(text, strlen(text), &blob, &index, &err)
#define MANIFEST(text) st_layout_manifest(text, strlen(text), &m, &err)
    assert_ok(INDEX("{\"manifests\":[{\"digest\":\"sha256:" HEX_A "\",\"size\":7}]}"));
    assert_string_equal(blob.hex, HEX_A);
    assert_false(index);
    assert_ok(INDEX("{\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.index.v1+json\","
                    "\"digest\":\"sha256:" HEX_A "\",\"size\":7}]}"));
    assert_true(index);
    assert_fails(INDEX("[]"), ST_EPARSE, "not a JSON object");
    assert_fails(INDEX("{\"manifests\":[]}"), ST_EPARSE, "0 manifests");
    assert_fails(INDEX("{\"manifests\":[{\"digest\":\"sha256:../../x\",\"size\":1}]}"), ST_EPARSE,
                 "no sha256 digest");
    assert_ok(MANIFEST("{\"layers\":[{\"digest\":\"sha256:" HEX_A "\",\"size\":7},{\"digest\":"
                       "\"sha256:" HEX_B "\",\"size\":5}]}"));
    assert_int_equal(m.n, 2);
    assert_int_equal(m.bytes, 12);
    assert_fails(MANIFEST("{\"layers\":[{\"digest\":\"sha256:" HEX_A "\"}]}"), ST_EPARSE,
                 "no size");
    assert_fails(MANIFEST("{\"layers\":[{\"digest\":\"sha256:" HEX_A
                          "\",\"size\":9223372036854775807},{\"digest\":\"sha256:" HEX_A
                          "\",\"size\":1}]}"),
                 ST_ERANGE, "larger than any disk");
}

/* ---- the cache -------------------------------------------------------------------------- */

static void keep(const char *scope, const char *hex, int64_t bytes)
{
    char part[PATH_MAX];
    st_err err = {0};

    assert_ok(st_cache_part(scope, hex, part, &err));
    assert_ok(st_cache_keep(scope, hex, part, bytes, &err));
}

static bool kept(const char *scope, const char *hex)
{
    int use = -1;
    bool there_is = st_cache_use(scope, hex, &use);

    st_os_closep(&use);
    return there_is;
}

static void the_cache_keeps_its_bound(void **state)
{
    char dir[PATH_MAX] = "/tmp/stint-cache-XXXXXX", red[PATH_MAX], blue[PATH_MAX], site[PATH_MAX];
    st_err err = {0};
    int use = -1;
    (void)state;

    assert_non_null(mkdtemp(dir));
    assert_ok(st_cache_scope(dir, "red", red, &err));
    assert_ok(st_cache_scope(dir, "blue", blue, &err));
    assert_ok(st_cache_scope(dir, "", site, &err));
    keep(red, HEX_A, 30 * MIB);
    keep(red, HEX_B, 10 * MIB);
    keep(blue, HEX_A, 10 * MIB);
    assert_true(st_cache_use(red, HEX_A, &use)); /* a task runs from it */
    assert_false(kept(site, HEX_A));

    /* Another of red's goes for red's next: it may have half, and what runs stays. */
    assert_ok(st_cache_room(dir, red, 15 * MIB, 100 * MIB, &err));
    assert_true(kept(red, HEX_A) && !kept(red, HEX_B) && kept(blue, HEX_A));
    assert_fails(st_cache_room(dir, red, 25 * MIB, 100 * MIB, &err), ST_EFULL, "no room");
    assert_true(kept(blue, HEX_A)); /* red's hunger is not blue's loss */

    /* The site's takes from who has most, and in the end from everybody but who runs. */
    assert_ok(st_cache_room(dir, site, 65 * MIB, 100 * MIB, &err));
    assert_true(kept(red, HEX_A) && !kept(blue, HEX_A));
    assert_fails(st_cache_room(dir, site, 75 * MIB, 100 * MIB, &err), ST_EFULL, "no room");
    close(use);
    assert_ok(st_cache_room(dir, site, 75 * MIB, 100 * MIB, &err));
    assert_false(kept(red, HEX_A));
    assert_ok(st_os_remove_tree(dir, &err));
}

/* ---- of earlier versions ------------------------------------------------------------------ */

static void old_layers_are_removed(void **state)
{
    char dir[] = "/tmp/stint-tidy-XXXXXX", line[512];
    st_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(line, sizeof(line),
             "cd %s && mkdir -p " HEX_A "/usr/bin " HEX_B ".123/x site/" HEX_A "/root of-t.7/" HEX_B
             "/root && "
             "touch " HEX_A "/usr/bin/su site/" HEX_A "/root/f",
             dir);
    assert_int_equal(system(line), 0);
    assert_ok(st_cache_tidy(dir, &err));
    snprintf(line, sizeof(line),
             "cd %s && test \"$(echo *)\" = 'of-t.7 site' && test -e site/" HEX_A "/root/f", dir);
    assert_int_equal(system(line), 0);
    assert_ok(st_cache_tidy("/nonexistent/images", &err));
    snprintf(line, sizeof(line), "rm -rf %s", dir);
    assert_int_equal(system(line), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_lie_over_each_other),
        cmocka_unit_test(what_leads_outside_is_refused),
        cmocka_unit_test(what_is_too_much_is_refused),
        cmocka_unit_test(documents_say_what_they_mean),
        cmocka_unit_test(the_cache_keeps_its_bound),
        cmocka_unit_test(old_layers_are_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
