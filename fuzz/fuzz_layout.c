/*
 * Fuzzes the documents of image layouts, as an index and as a manifest: digests that are one part of a path, sizes
 * that add up, or one sentence.
 */
#include <string.h>

#include "base/macros.h"
#include "fuzz.h"
#include "run/layout.h"

static void check_blob(const st_blob *blob)
{
    ST_ASSERT(strlen(blob->hex) == ST_DIGEST_HEX);
    ST_ASSERT(strspn(blob->hex, "0123456789abcdef") == ST_DIGEST_HEX);
    ST_ASSERT(blob->size >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    static st_manifest m;
    st_blob blob;
    st_err err = {0};
    int64_t bytes = 0;
    bool index;

    if (st_layout_index(text, size, &blob, &index, &err) == 0)
        check_blob(&blob);
    else
        ST_ASSERT(err.code != 0 && err.msg[0]);
    err = (st_err){0};
    if (st_layout_manifest(text, size, &m, &err) != 0) {
        ST_ASSERT(err.code != 0 && err.msg[0]);
        return 0;
    }
    ST_ASSERT(m.n > 0 && m.n <= ST_LAYERS_MAX);
    for (int i = 0; i < m.n; i++) {
        check_blob(&m.layer[i]);
        bytes += m.layer[i].size;
    }
    ST_ASSERT(bytes == m.bytes && bytes >= 0);
    return 0;
}
