/* Loading NVIDIA's management library, and its results as our errors. */
#include "gpu/nvml_lib.h"

#include <dlfcn.h>
#include <string.h>

/* POSIX promises that a function's address survives the way through void *; ISO C has no cast for
 * it, so the bytes are copied. */
static void resolve(void *handle, const char *symbol, void *slot)
{
    void *p = dlsym(handle, symbol);
    memcpy(slot, &p, sizeof(p));
}

int st_nvml_load(const char *path, nv_lib *lib, st_err *err)
{
    *lib = (nv_lib){0};
    lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib->handle)
        return st_fail(err, ST_EDOWN, "no NVIDIA driver: %s", dlerror());
    resolve(lib->handle, "nvmlErrorString", &lib->text);
#define X(name, symbol, params) resolve(lib->handle, #symbol, &lib->name);
    NV_SYMBOLS(X)
#undef X
    int r = lib->init ? lib->init() : NVML_FUNCTION_MISSING;
    if (r == NVML_OK)
        return 0;
    const char *text = lib->text ? lib->text(r) : "it lacks nvmlInit_v2";
    st_fail(err, ST_EDOWN, "%s does not start: %s (%d)", path, text, r);
    dlclose(lib->handle);
    *lib = (nv_lib){0};
    return -ST_EDOWN;
}

void st_nvml_unload(nv_lib *lib)
{
    if (!lib->handle)
        return;
    if (lib->shutdown)
        lib->shutdown();
    dlclose(lib->handle);
    *lib = (nv_lib){0};
}

int st_nvml_fail(const nv_lib *lib, int gpu, const char *what, int result, st_err *err)
{
    int code = ST_EDOWN;

    if (result == NVML_FUNCTION_MISSING)
        return st_fail(err, ST_EDOWN, "GPU %d: %s: the installed driver is too old for it", gpu,
                       what);
    if (result == NVML_IN_USE || result == NVML_NO_RESOURCES)
        code = ST_ESTATE;
    else if (result == NVML_NO_PERMISSION)
        code = ST_EPERM;
    else if (result == NVML_NOT_FOUND)
        code = ST_ENOENT;
    return st_fail(err, code, "GPU %d: %s: %s (NVML %d)", gpu, what,
                   lib->text ? lib->text(result) : "failed", result);
}
