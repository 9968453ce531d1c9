/*
 * A layer as it lies in the private copy, as a stream for the reader of tar: plain, or packed by gzip or zstd, which
 * its first bytes tell. What comes out is bounded by what goes in, and memory by a window.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "run/os.h"
#include "run/unpack.h"

#define CHUNK      ((size_t)1 << 16)
#define WINDOW_LOG 27 /* what zstd unpacks without being asked: 128 MiB */

typedef enum { PLAIN, GZIP, ZSTD } packing;

struct st_layer {
    int fd;
    int64_t at, end; /* in the file */
    int64_t in, out; /* bytes so far */
    packing how;
    bool over;
    bool between; /* zstd: a frame has ended, and the next has not begun */
    const unsigned char *next;
    size_t left; /* of what was read */
    z_stream z;
    ZSTD_DStream *zstd;
    unsigned char buf[CHUNK];
};

static int refill(st_layer *l, st_err *err)
{
    size_t want = (size_t)ST_MIN((int64_t)CHUNK, l->end - l->at);
    ssize_t n = want > 0 ? pread(l->fd, l->buf, want, l->at) : 0;

    if (n < 0 || (n == 0 && want > 0))
        return st_fail(err, ST_EIO, "the copy of the image cannot be read: %s", strerror(errno));
    l->at += n;
    l->in += n;
    l->next = l->buf;
    l->left = (size_t)n;
    return 0;
}

static int too_soon(st_err *err)
{
    return st_fail(err, ST_ECORRUPT, "a layer of the image ends too soon");
}

static int pull_gzip(st_layer *l, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    l->z.next_out = buf;
    l->z.avail_out = (unsigned)n;
    while (l->z.avail_out > 0 && !l->over) {
        int r = l->left == 0 ? refill(l, err) : 0, did;

        if (r < 0)
            return r;
        if (l->left == 0)
            return too_soon(err);
        l->z.next_in = (unsigned char *)(uintptr_t)l->next;
        l->z.avail_in = (unsigned)l->left;
        did = inflate(&l->z, Z_NO_FLUSH);
        l->next = l->z.next_in;
        l->left = l->z.avail_in;
        if (did != Z_OK && did != Z_STREAM_END && did != Z_BUF_ERROR)
            return st_fail(err, ST_ECORRUPT, "a layer of the image is not what gzip packs");
        if (did != Z_STREAM_END)
            continue;
        /* Several packed streams, one after the other, are one. */
        if (l->left == 0 && (r = refill(l, err)) < 0)
            return r;
        l->over = l->left == 0 || l->next[0] != 0x1f;
        if (!l->over)
            (void)inflateReset(&l->z);
    }
    *ret = n - l->z.avail_out;
    return 0;
}

/* Frames one after the other are one stream; those that are to be skipped are. */
static int pull_zstd(st_layer *l, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    ZSTD_outBuffer to = {.dst = buf, .size = n};

    while (to.pos < n && !l->over) {
        int r = l->left == 0 ? refill(l, err) : 0;
        ZSTD_inBuffer from = {.src = l->next, .size = l->left};
        size_t had = to.pos, did;

        if (r < 0)
            return r;
        from = (ZSTD_inBuffer){.src = l->next, .size = l->left};
        if (l->left == 0 && l->between) {
            l->over = true;
            break;
        }
        did = ZSTD_decompressStream(l->zstd, &to, &from);
        if (ZSTD_isError(did))
            return st_fail(err, ST_ECORRUPT, "a layer of the image is not what zstd packs: %s",
                           ZSTD_getErrorName(did));
        /* Without more to read, what it still had may have come out. */
        if (l->left == 0 && to.pos == had && did != 0)
            return too_soon(err);
        l->next += from.pos;
        l->left -= from.pos;
        l->between = did == 0;
    }
    *ret = to.pos;
    return 0;
}

static int pull_plain(st_layer *l, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    size_t got = 0;
    int r = 0;

    while (r == 0 && got < n && (l->left > 0 || l->at < l->end)) {
        size_t some = ST_MIN(n - got, l->left);

        if (some == 0) {
            r = refill(l, err);
            continue;
        }
        memcpy(buf + got, l->next, some);
        l->next += some;
        l->left -= some;
        got += some;
    }
    *ret = got;
    return r;
}

int st_layer_pull(void *layer, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    st_layer *l = layer;
    size_t got = 0;
    int r = l->how == GZIP   ? pull_gzip(l, buf, n, &got, err)
            : l->how == ZSTD ? pull_zstd(l, buf, n, &got, err)
                             : pull_plain(l, buf, n, &got, err);

    if (r < 0)
        return r;
    l->out += (int64_t)got;
    if (l->out > ST_UNPACK_RATIO_FREE + l->in * ST_UNPACK_RATIO_MAX)
        return st_fail(err, ST_ELIMIT,
                       "a layer of the image unpacks to more than %d times its size",
                       ST_UNPACK_RATIO_MAX);
    *ret = got;
    return 0;
}

static packing packing_of(const unsigned char *head, size_t n)
{
    static const unsigned char zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    static const unsigned char skipped[] = {0x2a, 0x4d, 0x18}; /* behind 0x50 to 0x5f */

    if (n >= 2 && head[0] == 0x1f && head[1] == 0x8b)
        return GZIP;
    if (n >= 4 && (memcmp(head, zstd, 4) == 0 ||
                   ((head[0] & 0xf0) == 0x50 && memcmp(head + 1, skipped, 3) == 0)))
        return ZSTD;
    return PLAIN;
}

int st_layer_open(int fd, int64_t at, int64_t size, st_layer **ret, st_err *err)
{
    ST_CLEANUP(st_layer_freep) st_layer *l = st_xcalloc(1, sizeof(*l));
    int r;

    l->fd = fd;
    l->at = at;
    l->end = at + size;
    if ((r = refill(l, err)) < 0)
        return r;
    l->how = packing_of(l->next, l->left);
    if (l->how == GZIP && inflateInit2(&l->z, 15 + 16) != Z_OK)
        return st_fail(err, ST_EINTERNAL, "zlib cannot be started");
    if (l->how == ZSTD) {
        l->zstd = ZSTD_createDStream();
        if (!l->zstd ||
            ZSTD_isError(ZSTD_DCtx_setParameter(l->zstd, ZSTD_d_windowLogMax, WINDOW_LOG)))
            return st_fail(err, ST_EINTERNAL, "zstd cannot be started");
    }
    *ret = ST_TAKE(l);
    return 0;
}

void st_layer_free(st_layer *l)
{
    if (!l)
        return;
    if (l->how == GZIP)
        (void)inflateEnd(&l->z);
    ZSTD_freeDStream(l->zstd);
    free(l);
}

static int unpack_one(st_unpack *u, int fd, int64_t at, int64_t size, st_err *err)
{
    ST_CLEANUP(st_layer_freep) st_layer *l = NULL;
    st_tar tar;
    int r = st_layer_open(fd, at, size, &l, err);

    if (r < 0)
        return r;
    st_tar_init(&tar, st_layer_pull, l);
    return st_unpack_layer(u, &tar, err);
}

int st_unpack_image(st_unpack *u, int blobs, const st_manifest *m, st_err *err)
{
    int64_t at = 0;
    int r = 0;

    for (int i = 0; r == 0 && i < m->n; i++) {
        r = unpack_one(u, blobs, at, m->layer[i].size, err);
        at += m->layer[i].size;
    }
    return r;
}
