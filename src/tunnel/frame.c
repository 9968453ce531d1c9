/* Frames; see the header. */
#include "tunnel/frame.h"

#include <string.h>

#include "base/macros.h"

static const struct row {
    st_frame_kind kind;
    size_t most, least;
} rows[] = {
#define X(id, number, most, least) {id, most, least},
    ST_FRAME_TABLE(X)
#undef X
};

static const struct row *row_of(unsigned kind)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if ((unsigned)rows[i].kind == kind)
            return &rows[i];
    return NULL;
}

void st_frame_add(st_strbuf *out, st_frame_kind kind, const void *bytes, size_t n)
{
    const struct row *row = row_of((unsigned)kind);

    ST_ASSERT(row && n <= row->most && n >= row->least);
    st_strbuf_addc(out, (char)kind);
    for (int shift = 24; shift >= 0; shift -= 8)
        st_strbuf_addc(out, (char)(n >> shift & 0xff));
    if (n > 0)
        st_strbuf_addn(out, bytes, n);
}

int st_frame_read(const char *text, size_t n, bool from_command, st_frame *ret, size_t *ret_used)
{
    const unsigned char *b = (const unsigned char *)text;
    const struct row *row;
    size_t len;

    if (n == 0)
        return 0;
    row = row_of(b[0]);
    if (!row || (b[0] > 16) != from_command)
        return -1;
    if (n < ST_FRAME_HEAD)
        return 0;
    len = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    if (len > row->most || len < row->least)
        return -1;
    if (n - ST_FRAME_HEAD < len)
        return 0;
    *ret = (st_frame){.kind = row->kind, .bytes = b + ST_FRAME_HEAD, .n = len};
    *ret_used = ST_FRAME_HEAD + len;
    return 1;
}
