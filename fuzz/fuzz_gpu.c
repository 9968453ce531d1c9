/*
 * Fuzzes what src/gpu reads as text. The first byte says which: 'p' a profile of simulated GPUs,
 * 'm' the kernel's list of MIG capabilities, anything else lines of a control file. What is not
 * refused with one sentence makes a node that answers.
 */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "gpu/nodes.h"
#include "gpu/sim.h"

static void check_refusal(const st_err *err)
{
    ST_ASSERT(err->code > 0 && err->msg[0] && !strchr(err->msg, '\n'));
}

static void fuzz_profile(const char *text)
{
    ST_CLEANUP(st_gpu_freep) st_gpu *g = NULL;
    ST_CLEANUP(st_freep) st_gpu_inventory *inv = st_xcalloc(1, sizeof(*inv));
    st_gpu_sim_options options = {.profile = text, .node = "f"};
    st_gpu_sample s;
    st_err err = {0};

    if (st_gpu_sim_open(&options, &g, &err) < 0) {
        check_refusal(&err);
        return;
    }
    ST_ASSERT(st_gpu_inventory_get(g, inv, &err) == 0 && inv->n >= 1 && inv->n <= ST_DEVS_MAX);
    for (int i = 0; i < inv->n; i++)
        ST_ASSERT(st_gpu_sample_get(g, i, ST_GPU_WHOLE, 0, &s, &err) == 0);
}

static void fuzz_commands(char *text)
{
    ST_CLEANUP(st_gpu_freep) st_gpu *g = NULL;
    st_gpu_sim_options options = {.profile = "h100x2,mig", .node = "f"};
    st_gpu_event e;
    st_err err = {0};
    char *save = NULL;
    int r = st_gpu_sim_open(&options, &g, &err);

    ST_ASSERT(r == 0);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (st_gpu_sim_command(g, line, &err) < 0)
            check_refusal(&err);
    while (st_gpu_wait(g, 0, &e, &err) == 1)
        ST_ASSERT(e.gpu >= 0 && e.gpu < 2 && e.kind < ST_GPU_EVENT_COUNT);
}

static void fuzz_minors(const char *text)
{
    for (int gi = 0; gi < 3; gi++)
        for (int ci = ST_GPU_UNKNOWN; ci < 2; ci++)
            ST_ASSERT(st_gpu_cap_minor(text, 0, gi, ci) >= ST_GPU_UNKNOWN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    ST_CLEANUP(st_freep) char *text = st_xstrndup((const char *)data + 1, size - 1);
    if (data[0] == 'p')
        fuzz_profile(text);
    else if (data[0] == 'm')
        fuzz_minors(text);
    else
        fuzz_commands(text);
    return 0;
}
