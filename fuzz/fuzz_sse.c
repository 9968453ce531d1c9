/*
 * Fuzzes the reader of event streams: however the bytes are cut into pieces, the same events come
 * out, and none has an end of line in its id or kind.
 */
#include <string.h>

#include "cli/sse.h"
#include "fuzz.h"

static void check(const st_sse *a, const st_sse *b)
{
    ST_ASSERT(a->ready.n == b->ready.n);
    for (size_t i = 0; i < a->ready.n; i++) {
        ST_ASSERT(strcmp(a->ready.v[i].id, b->ready.v[i].id) == 0);
        ST_ASSERT(strcmp(a->ready.v[i].kind, b->ready.v[i].kind) == 0);
        ST_ASSERT(strcmp(a->ready.v[i].data, b->ready.v[i].data) == 0);
        ST_ASSERT(!strpbrk(a->ready.v[i].id, "\r\n") && !strpbrk(a->ready.v[i].kind, "\r\n"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_sse_done) st_sse whole = {0}, pieces = {0};
    st_err err = {0};
    int r = st_sse_feed(&whole, (const char *)data, size, &err), s = 0;

    for (size_t i = 0; s == 0 && i < size; i++)
        s = st_sse_feed(&pieces, (const char *)data + i, 1, &err);
    ST_ASSERT(r == s);
    check(&whole, &pieces);
    return 0;
}
