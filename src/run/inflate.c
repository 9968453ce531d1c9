/*
 * A layer as it lies in the private copy, as a stream for the reader of tar: plain, or packed by gzip, which its
 * first bytes tell. What comes out is bounded by what goes in.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "run/os.h"
#include "run/unpack.h"

#define CHUNK ((size_t)1 << 16)

typedef struct layer {
    int fd;
    int64_t at, end; /* in the file */
    int64_t in, out; /* bytes so far */
    bool packed, over;
    z_stream z;
    unsigned char buf[CHUNK];
} layer;

static int refill(layer *l, st_err *err)
{
    size_t want = (size_t)ST_MIN((int64_t)CHUNK, l->end - l->at);
    ssize_t n = want > 0 ? pread(l->fd, l->buf, want, l->at) : 0;

    if (n < 0 || (n == 0 && want > 0))
        return st_fail(err, ST_EIO, "the copy of the image cannot be read: %s", strerror(errno));
    l->at += n;
    l->in += n;
    l->z.next_in = l->buf;
    l->z.avail_in = (unsigned)n;
    return 0;
}

static int unpack_some(layer *l, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    l->z.next_out = buf;
    l->z.avail_out = (unsigned)n;
    while (l->z.avail_out > 0 && !l->over) {
        int r = l->z.avail_in == 0 ? refill(l, err) : 0;

        if (r < 0)
            return r;
        if (l->z.avail_in == 0)
            return st_fail(err, ST_ECORRUPT, "a layer of the image ends too soon");
        r = inflate(&l->z, Z_NO_FLUSH);
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
            return st_fail(err, ST_ECORRUPT, "a layer of the image is not what gzip packs");
        if (r != Z_STREAM_END)
            continue;
        /* Several packed streams, one after the other, are one. */
        if (l->z.avail_in == 0 && (r = refill(l, err)) < 0)
            return r;
        l->over = l->z.avail_in == 0 || l->z.next_in[0] != 0x1f;
        if (!l->over)
            (void)inflateReset(&l->z);
    }
    *ret = n - l->z.avail_out;
    return 0;
}

static int pull(void *ctx, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    layer *l = ctx;
    size_t got = 0;
    int r = 0;

    if (l->packed) {
        r = unpack_some(l, buf, n, &got, err);
    } else {
        while (r == 0 && got < n && (l->z.avail_in > 0 || l->at < l->end)) {
            size_t some = ST_MIN(n - got, (size_t)l->z.avail_in);

            if (some == 0) {
                r = refill(l, err);
                continue;
            }
            memcpy(buf + got, l->z.next_in, some);
            l->z.next_in += some;
            l->z.avail_in -= (unsigned)some;
            got += some;
        }
    }
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

static int unpack_one(st_unpack *u, int fd, int64_t at, int64_t size, st_err *err)
{
    static const unsigned char zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    ST_CLEANUP(st_freep) layer *l = st_xcalloc(1, sizeof(*l));
    st_tar tar;
    int r;

    l->fd = fd;
    l->at = at;
    l->end = at + size;
    if ((r = refill(l, err)) < 0)
        return r;
    if (l->z.avail_in >= 4 && memcmp(l->buf, zstd, 4) == 0)
        return st_fail(err, ST_EINVAL,
                       "a layer is packed by zstd; convert the image: "
                       "skopeo copy --dest-compress-format gzip");
    l->packed = l->z.avail_in >= 2 && l->buf[0] == 0x1f && l->buf[1] == 0x8b;
    if (l->packed && inflateInit2(&l->z, 15 + 16) != Z_OK)
        return st_fail(err, ST_EINTERNAL, "zlib cannot be started");
    st_tar_init(&tar, pull, l);
    r = st_unpack_layer(u, &tar, err);
    if (l->packed)
        (void)inflateEnd(&l->z);
    return r;
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
