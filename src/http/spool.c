/*
 * Answers that are too long for memory: they are written piece by piece into a file without a name, packed on the way where
 * the caller takes that, and sent from there. Nothing is answered before the last piece, so a fault halfway is a
 * problem document and never half an answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "http/call.h"
#include "http/gzip.h"

#define PIECE_BYTES (64 * 1024)

struct st_spool {
    int fd;
    st_strbuf buf; /* not written yet */
    gzFile packed; /* has a file descriptor of its own; NULL: not packed */
};

void st_spool_free(st_spool *s)
{
    if (!s)
        return;
    if (s->packed)
        gzclose(s->packed);
    if (s->fd >= 0)
        close(s->fd);
    st_strbuf_done(&s->buf);
    free(s);
}

static int fault(st_err *err)
{
    return st_fail(err, ST_EDOWN, "the answer cannot be kept on the disk: %s", strerror(errno));
}

/* Not every file system has files without a name from the start. */
static int nameless(const char *dir)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    st_strbuf_addf(&path, "%s/.answer-XXXXXX", dir);
    fd = mkostemp(path.s, O_CLOEXEC);
    if (fd >= 0)
        unlink(path.s);
    return fd;
}

int st_spool_new(const st_call *call, const char *dir, st_spool **ret, st_err *err)
{
    ST_CLEANUP(st_spool_freep) st_spool *s = st_xcalloc(1, sizeof *s);

    s->fd = nameless(dir);
    if (s->fd < 0)
        return fault(err);
    if (call->takes_gzip && strcmp(call->method, "GET") == 0) {
        int own = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);

        s->packed = own < 0 ? NULL : gzdopen(own, "wb1");
        if (!s->packed && own >= 0)
            close(own);
    }
    *ret = ST_TAKE(s);
    return 0;
}

static int write_all(st_spool *s, st_err *err)
{
    size_t done = 0;

    if (s->packed) {
        if (s->buf.n > 0 && gzwrite(s->packed, s->buf.s, (unsigned)s->buf.n) != (int)s->buf.n)
            return fault(err);
        st_strbuf_clear(&s->buf);
        return 0;
    }
    while (done < s->buf.n) {
        ssize_t n = write(s->fd, s->buf.s + done, s->buf.n - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fault(err);
        done += (size_t)n;
    }
    st_strbuf_clear(&s->buf);
    return 0;
}

st_strbuf *st_spool_buf(st_spool *s)
{
    return &s->buf;
}

int st_spool_flush(st_spool *s, st_err *err)
{
    ST_ASSERT(s->buf.n < INT_MAX);
    return s->buf.n < PIECE_BYTES ? 0 : write_all(s, err);
}

int st_call_reply_spool(st_call *call, int status, const char *type, st_spool *s, st_err *err)
{
    struct MHD_Response *response;
    off_t size;
    int r = write_all(s, err);

    if (r == 0 && s->packed) {
        gzFile packed = ST_TAKE(s->packed);

        if (gzclose(packed) != Z_OK)
            r = fault(err);
        else
            st_call_set_header(call, "Content-Encoding", "gzip");
    }
    size = r == 0 ? lseek(s->fd, 0, SEEK_END) : -1;
    if (r == 0 && size < 0)
        r = fault(err);
    if (r < 0)
        return r;
    st_call_set_header(call, "Vary", "Accept-Encoding");
    response = MHD_create_response_from_fd64((uint64_t)size, s->fd);
    ST_ASSERT(response);
    s->fd = -1; /* the response's */
    st_spool_free(s);
    st_call_send(call, status, type, response, (size_t)size);
    return 0;
}
