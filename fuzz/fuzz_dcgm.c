/* What dcgmi says of its tests, as the agent reads it. */
#include "agent/dcgm.h"
#include "base/macros.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_dcgm d;
    st_err err;

    if (st_dcgm_read((const char *)data, size, 8, &d, &err) == 0)
        for (int i = 0; i < ST_DEVS_MAX; i++)
            ST_ASSERT(d.failed[i] <= d.made[i] && (i < 8 || d.made[i] == 0));
    return 0;
}
