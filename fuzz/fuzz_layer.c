/*
 * Fuzzes the unpacking of layers, plain, gzip and zstd: whatever the bytes are, it ends, and what comes out is within
 * the bounds of run/unpack.h.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/macros.h"
#include "fuzz.h"
#include "run/unpack.h"

#define ENOUGH (INT64_C(4) << 20) /* of one input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char buf[4096];
    st_layer *l = NULL;
    int64_t all = 0;
    st_err err = {0};
    int fd = memfd_create("layer", MFD_CLOEXEC), r;

    ST_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    r = st_layer_open(fd, 0, (int64_t)size, &l, &err);
    while (r == 0 && all < ENOUGH) {
        size_t n = 0;

        r = st_layer_pull(l, buf, sizeof(buf), &n, &err);
        ST_ASSERT(n <= sizeof(buf));
        all += (int64_t)n;
        if (r == 0 && n < sizeof(buf))
            break;
    }
    ST_ASSERT(r >= 0 || (err.code != 0 && err.msg[0]));
    ST_ASSERT(all <= ST_UNPACK_RATIO_FREE + (int64_t)size * ST_UNPACK_RATIO_MAX);
    st_layer_free(l);
    close(fd);
    return 0;
}
