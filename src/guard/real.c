/*
 * The table of entries: which of ours stands for which name, and the driver's own behind each.
 */
#include <dlfcn.h>
#include <string.h>

#include "guard/state.h"

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlopen_fn(const char *file, int flags);

typedef struct row {
    const char *name, *base; /* base NULL: by dlsym only */
    int version;
    bool twin;
    guard_fn fn;
    void *ours; /* NULL: only the driver's is wanted */
} row;

#define DECLARE_CALL(name, ...) CUresult name();
#define DECLARE_NVML(name)      int name();
/* What they take is known where they are defined; here only where they are. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
GUARD_CALLS(DECLARE_CALL)
GUARD_WORK(DECLARE_CALL)
GUARD_REFUSED(DECLARE_CALL)
GUARD_NVML(DECLARE_NVML)
#pragma GCC diagnostic pop

#define ROW_CALL(name, base, version, twin, ...) \
    {#name, #base, version, twin, GUARD_FN_##name, (void *)name},
#define ROW_NVML(name)   {#name, NULL, 0, false, GUARD_FN_##name, (void *)name},
#define ROW_HELPER(name) {#name, NULL, 0, false, GUARD_FN_##name, NULL},

static const row rows[] = {
    /* clang-format off */
    GUARD_CALLS(ROW_CALL)
    GUARD_WORK(ROW_CALL)
    GUARD_REFUSED(ROW_CALL)
    GUARD_NVML(ROW_NVML)
    GUARD_HELPERS(ROW_HELPER)
    {"nvmlDeviceGetUUID", NULL, 0, false, GUARD_FN_nvmlDeviceGetUUID, NULL},
    /* clang-format on */
};
static const row also[] = {GUARD_ALSO(ROW_CALL)};

#define NROW (sizeof rows / sizeof rows[0])

static void *library(void **kept, const char *file)
{
    dlopen_fn *open = (dlopen_fn *)guard_libc_symbol("dlopen");

    if (!*kept && open)
        *kept = open(file, RTLD_LAZY | RTLD_NOLOAD);
    if (!*kept && open)
        *kept = open(file, RTLD_LAZY);
    return *kept;
}

void *guard_real(guard_fn fn)
{
    const row *r = NULL;
    void *lib, *found = guard.real[fn];

    if (found)
        return found;
    for (size_t i = 0; i < NROW && !r; i++)
        r = rows[i].fn == fn ? &rows[i] : NULL;
    if (!guard_dlsym_real)
        guard_dlsym_real = guard_libc_symbol("dlsym");
    if (!r || !guard_dlsym_real)
        return NULL;
    lib = strncmp(r->name, "nvml", 4) == 0 ? library(&guard.libnvml, "libnvidia-ml.so.1")
                                           : library(&guard.libcuda, "libcuda.so.1");
    found = lib ? ((dlsym_fn *)guard_dlsym_real)(lib, r->name) : NULL;
    /* The guard's own, if the library found was somehow ours: never call ourselves. */
    if (found == r->ours)
        found = NULL;
    guard.real[fn] = found;
    return found;
}

void *guard_stands_for(const char *name)
{
    if (!name || (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0))
        return NULL;
    for (size_t i = 0; i < NROW; i++)
        if (rows[i].ours && strcmp(rows[i].name, name) == 0)
            return guard_real(rows[i].fn) ? rows[i].ours : NULL;
    return NULL;
}

/* The newest entry of that name that is not newer than asked for; the twin if asked for and there is one. */
static const row *pick(const row *list, size_t n, const char *base, int version, bool per_thread,
                       const row *best)
{
    for (size_t i = 0; i < n; i++) {
        const row *r = &list[i];

        if (!r->ours || !r->base || strcmp(r->base, base) != 0 || r->version > version ||
            (r->twin && !per_thread))
            continue;
        if (!best || r->twin > best->twin || (r->twin == best->twin && r->version > best->version))
            best = r;
    }
    return best;
}

void *guard_stands_for_version(const char *base, int version, bool per_thread)
{
    const row *best = pick(rows, NROW, base, version, per_thread, NULL);

    best = pick(also, sizeof also / sizeof also[0], base, version, per_thread, best);
    return best && guard_real(best->fn) ? best->ours : NULL;
}
