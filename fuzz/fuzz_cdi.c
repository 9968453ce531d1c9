/*
 * Fuzzes the reader of CDI specs: edits that hold what they promise, or one sentence that names
 * the file.
 */
#include <string.h>

#include "base/macros.h"
#include "fuzz.h"
#include "run/cdi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"0", NULL};
    st_cdi_edits edits = {0};
    st_err err = {0};

    if (st_cdi_parse("spec.json", (const char *)data, size, names, &edits, &err) != 0) {
        ST_ASSERT(err.code != 0 && strncmp(err.msg, "spec.json", 9) == 0);
        ST_ASSERT(!edits.doc && !edits.env);
        return 0;
    }
    for (size_t i = 0; i < edits.ndevice; i++)
        ST_ASSERT(edits.devices[i].path);
    for (size_t i = 0; i < edits.nmount; i++)
        ST_ASSERT(edits.mounts[i].source && edits.mounts[i].target);
    for (size_t i = 0; i < edits.nenv; i++)
        ST_ASSERT(strchr(edits.env[i], '='));
    st_cdi_done(&edits);
    return 0;
}
