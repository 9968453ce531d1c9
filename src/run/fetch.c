/* Out of a layout into a private file; see the header. */
#include "run/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/quote.h"
#include "run/os.h"

#define CHUNK     ((size_t)1 << 20)
#define NESTED    2  /* indexes in indexes */
#define SPARE_PER 16 /* this part of the disk stays free */
#define LOOK_EACH 64 /* chunks between two looks at the disk */

static int beneath(int dir, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC | O_NOFOLLOW,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static int cannot_open(const char *path, int why, st_err *err)
{
    char q[ST_QUOTE_MAX];

    st_quote(q, path);
    switch (why) {
    case ENOENT:
    case ENOTDIR:
        return st_fail(err, ST_ENOENT, "the image has no %s", q);
    case ELOOP:
    case EXDEV:
        return st_fail(err, ST_EINVAL, "%s of the image is, or is behind, a link; copy the files",
                       q);
    case EACCES:
        return st_fail(err, ST_EPERM, "%s of the image cannot be read: chmod -R u+rX,o+rX it", q);
    case EAGAIN:
        return st_fail(err, ST_ESTATE, "%s of the image is locked by a lease", q);
    default:
        return st_fail(err, ST_EIO, "%s of the image cannot be opened: %s", q, strerror(why));
    }
}

/* Looked at before it is opened: opening a device may do something. And again afterwards, for names can change. */
int st_fetch_open(int dir, const char *path, bool folder, int *ret, st_err *err)
{
    ST_CLEANUP(st_os_closep) int seen = beneath(dir, path, O_PATH);
    ST_CLEANUP(st_os_closep) int fd = -1;
    char q[ST_QUOTE_MAX];
    struct stat st;

    if (seen < 0)
        return cannot_open(path, errno, err);
    for (int look = 0; look < 2; look++) {
        if (fstat(look == 0 ? seen : fd, &st) != 0)
            return cannot_open(path, errno, err);
        if (S_ISLNK(st.st_mode))
            return cannot_open(path, ELOOP, err);
        if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
            return st_fail(err, ST_EINVAL, "%s of the image is not a %s", st_quote(q, path),
                           folder ? "folder" : "plain file");
        if (look == 0)
            fd = beneath(dir, path, O_RDONLY | O_NONBLOCK | (folder ? O_DIRECTORY : O_NOCTTY));
        if (fd < 0)
            return cannot_open(path, errno, err);
    }
    *ret = fd;
    fd = -1;
    return 0;
}

static int wrong(const char *hex, const char *what, st_err *err)
{
    return st_fail(err, ST_ECORRUPT, "blob sha256:%.12s... of the image is damaged: %s", hex, what);
}

static bool sum_is(crypto_hash_sha256_state *state, const char *hex)
{
    unsigned char sum[crypto_hash_sha256_BYTES];
    char text[2 * sizeof(sum) + 1];

    crypto_hash_sha256_final(state, sum);
    sodium_bin2hex(text, sizeof(text), sum, sizeof(sum));
    return strcmp(text, hex) == 0;
}

/* A document, whole, in memory; `hex` NULL: not compared with anything. malloc'ed. */
static int read_document(int layout, const char *path, const char *hex, int64_t size, char **ret,
                         size_t *ret_n, st_err *err)
{
    ST_CLEANUP(st_os_closep) int fd = -1;
    ST_CLEANUP(st_freep) char *text = NULL;
    crypto_hash_sha256_state state;
    size_t n = 0;
    ssize_t got = 1;
    struct stat st;
    int r = st_fetch_open(layout, path, false, &fd, err);

    if (r < 0)
        return r;
    if (fstat(fd, &st) != 0 || st.st_size > (off_t)ST_LAYOUT_DOC_MAX)
        return st_fail(err, ST_ELIMIT, "a document of the image is larger than %zu MiB",
                       ST_LAYOUT_DOC_MAX >> 20);
    text = st_xmalloc(ST_LAYOUT_DOC_MAX + 1);
    while (got > 0 && n <= ST_LAYOUT_DOC_MAX) {
        got = read(fd, text + n, ST_LAYOUT_DOC_MAX + 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    if (got < 0 || n > ST_LAYOUT_DOC_MAX)
        return st_fail(err, ST_EIO, "a document of the image cannot be read whole");
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (unsigned char *)text, n);
    if (hex && size >= 0 && (int64_t)n != size)
        return wrong(hex, "its size is another", err);
    if (hex && !sum_is(&state, hex))
        return wrong(hex, "its digest is another", err);
    *ret = ST_TAKE(text);
    *ret_n = n;
    return 0;
}

static void blob_path(const char *hex, char ret[128])
{
    snprintf(ret, 128, "blobs/sha256/%s", hex);
}

/* From index.json to the manifest's descriptor, through indexes of indexes. */
static int find_manifest(int layout, st_blob *ret, st_err *err)
{
    char path[128] = "index.json";
    bool index = true;
    st_blob at = {.size = -1};

    for (int depth = 0; index; depth++) {
        ST_CLEANUP(st_freep) char *text = NULL;
        size_t n = 0;
        int r;

        if (depth > NESTED)
            return st_fail(err, ST_EINVAL, "the image's index leads to an index again and again");
        r = read_document(layout, path, depth > 0 ? at.hex : NULL, at.size, &text, &n, err);
        if (r == 0)
            r = st_layout_index(text, n, &at, &index, err);
        if (r < 0)
            return r;
        blob_path(at.hex, path);
    }
    *ret = at;
    return 0;
}

int st_fetch_manifest(const st_fetch *f, st_manifest *ret, char ret_hex[ST_DIGEST_HEX + 1],
                      int *ret_layout, st_err *err)
{
    ST_CLEANUP(st_os_closep) int layout = -1;
    ST_CLEANUP(st_freep) char *text = NULL;
    st_blob at = {.size = -1};
    char path[128];
    size_t n = 0;
    int r = st_fetch_open(f->root, f->path, true, &layout, err);

    if (r < 0)
        return r;
    if (f->digest[0])
        memcpy(at.hex, f->digest + 7, sizeof(at.hex));
    else if ((r = find_manifest(layout, &at, err)) < 0)
        return r;
    blob_path(at.hex, path);
    r = read_document(layout, path, at.hex, at.size, &text, &n, err);
    if (r == 0)
        r = st_layout_manifest(text, n, ret, err);
    if (r == 0 && ret->bytes > f->max_bytes)
        r = st_fail(err, ST_ELIMIT, "the image's layers have %lld MiB, at most %lld",
                    (long long)(ret->bytes >> 20), (long long)(f->max_bytes >> 20));
    if (r < 0)
        return r;
    memcpy(ret_hex, at.hex, sizeof(at.hex));
    *ret_layout = layout;
    layout = -1;
    return 0;
}

static int put(int fd, const unsigned char *buf, size_t n, st_err *err)
{
    while (n > 0) {
        ssize_t done = write(fd, buf, n);

        if (done < 0 && errno != EINTR)
            return st_fail(err, ST_EFULL, "the image cannot be copied: %s", strerror(errno));
        if (done > 0) {
            buf += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

static int room_left(int fd, int64_t more, st_err *err)
{
    struct statfs st;

    if (fstatfs(fd, &st) == 0 &&
        (int64_t)st.f_bavail * st.f_bsize - more < (int64_t)st.f_blocks / SPARE_PER * st.f_bsize)
        return st_fail(err, ST_EFULL, "the node's disk is too full for the image (%lld MiB needed)",
                       (long long)(more >> 20));
    return 0;
}

static int copy_layer(int layout, const st_blob *blob, int to, unsigned char *buf, st_err *err)
{
    ST_CLEANUP(st_os_closep) int fd = -1;
    crypto_hash_sha256_state state;
    int64_t left = blob->size;
    char path[128];
    struct stat st;
    int r;

    blob_path(blob->hex, path);
    if ((r = st_fetch_open(layout, path, false, &fd, err)) < 0)
        return r;
    if (fstat(fd, &st) != 0 || st.st_size != blob->size)
        return wrong(blob->hex, "its size is another", err);
    crypto_hash_sha256_init(&state);
    for (int i = 0; left > 0; i++) {
        ssize_t n = read(fd, buf, (size_t)ST_MIN((int64_t)CHUNK, left));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return wrong(blob->hex, n < 0 ? strerror(errno) : "it ends too soon", err);
        crypto_hash_sha256_update(&state, buf, (unsigned long long)n);
        if ((i % LOOK_EACH == 0 && (r = room_left(to, left, err)) < 0) ||
            (r = put(to, buf, (size_t)n, err)) < 0)
            return r;
        left -= n;
    }
    return sum_is(&state, blob->hex) ? 0 : wrong(blob->hex, "its digest is another", err);
}

int st_fetch_layers(int layout, const st_manifest *m, int to, st_err *err)
{
    ST_CLEANUP(st_freep) unsigned char *buf = st_xmalloc(CHUNK);
    int r = room_left(to, m->bytes, err);

    for (int i = 0; r == 0 && i < m->n; i++)
        r = copy_layer(layout, &m->layer[i], to, buf, err);
    return r;
}
