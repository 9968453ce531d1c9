/*
 * Fuzzes what an MPS daemon answers: pids that can be pids, percentages within a hundred, and a memory
 * limit that is never taken for two that differ by more than what is shown.
 */
#include <string.h>

#include "base/macros.h"
#include "base/mem.h"
#include "fuzz.h"
#include "run/mps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_freep) char *text = st_xstrndup((const char *)data, size);
    int64_t pids[8], percent = -1;
    bool same = false, twice = false;
    st_err err = {0};
    size_t n = st_mps_pids(text, pids, ST_ARRAY_LEN(pids));

    for (size_t i = 0; i < n && i < ST_ARRAY_LEN(pids); i++)
        ST_ASSERT(pids[i] > 1 && pids[i] <= 1 << 22);
    if (st_mps_percent(text, &percent, &err) == 0)
        ST_ASSERT(percent >= 0 && percent <= 100000);
    else
        ST_ASSERT(err.code == ST_EDOWN && err.msg[0] && percent == -1);
    if (st_mps_memory_is(text, 8192, &same, &err) == 0 &&
        st_mps_memory_is(text, 9216, &twice, &err) == 0)
        ST_ASSERT(!(same && twice));
    return 0;
}
