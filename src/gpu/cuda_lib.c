/* Loading NVIDIA's CUDA driver library, and its results as our errors. */
#include "gpu/cuda_lib.h"

#include <dlfcn.h>
#include <string.h>

/* See nvml_lib.c for why the bytes are copied. */
static void resolve(void *handle, const char *symbol, void *slot)
{
    void *p = dlsym(handle, symbol);

    memcpy(slot, &p, sizeof p);
}

int st_cuda_load(const char *path, cu_lib *ret, st_err *err)
{
    cu_lib lib = {0};
    int r;

    lib.handle = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib.handle)
        return st_fail(err, ST_EDOWN, "no CUDA driver: %s", dlerror());
#define X(name, symbol, params) resolve(lib.handle, #symbol, &lib.name);
    CU_SYMBOLS(X)
#undef X
    r = CU(&lib, init, 0);
    if (r != CU_OK) {
        st_err why = {0};

        st_cuda_fail(&lib, "the CUDA driver does not start", r, &why);
        dlclose(lib.handle);
        return st_fail(err, ST_EDOWN, "%s", why.msg);
    }
    *ret = lib;
    return 0;
}

int st_cuda_fail(const cu_lib *lib, const char *what, int result, st_err *err)
{
    const char *name = NULL, *text = NULL;

    if (result == CU_MISSING)
        return st_fail(err, ST_EDOWN, "%s: the installed driver is too old for it", what);
    if (CU(lib, error_name, result, &name) != CU_OK || !name)
        name = "unknown error";
    if (CU(lib, error_text, result, &text) != CU_OK || !text)
        text = "no description";
    return st_fail(err, ST_EIO, "%s: %s (%s, %d)", what, text, name, result);
}
