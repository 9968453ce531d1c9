/*
 * How programs find the driver's functions: dlsym, dlvsym, and both forms of cuGetProcAddress. What the guard
 * stands for is answered with the guard's own; everything else is libc's or the driver's answer.
 *
 * dlsym with RTLD_NEXT depends on who calls. So libc's is not called but jumped to, with the caller's
 * return address in place.
 */
#include <dlfcn.h>

#include "guard/state.h"

typedef CUresult proc1_fn(const char *, void **, int, uint64_t);
typedef CUresult proc2_fn(const char *, void **, int, uint64_t, int *);

void *guard_pick(void *handle, const char *name);

/* Called by dlsym and dlvsym below, with everything saved. */
__attribute__((used)) void *guard_pick(void *handle, const char *name)
{
    (void)handle;
    if (!guard_dlsym_real)
        guard_dlsym_real = guard_libc_symbol("dlsym");
    if (!guard_dlvsym_real)
        guard_dlvsym_real = guard_libc_symbol("dlvsym");
    return guard_stands_for(name);
}

#if defined(__x86_64__)
/* NAME(handle, name, …): ours if guard_pick has one, else on to libc's as if it had been called. */
#define JUMP(name, real)                                                                 \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"             \
            ".cfi_startproc\nendbr64\n"                                                  \
            "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n" \
            "push %rdx\n.cfi_adjust_cfa_offset 8\n"                                      \
            "call guard_pick\n"                                                          \
            "pop %rdx\n.cfi_adjust_cfa_offset -8\npop %rsi\n.cfi_adjust_cfa_offset -8\n" \
            "pop %rdi\n.cfi_adjust_cfa_offset -8\n"                                      \
            "test %rax, %rax\njne 1f\njmp *" real "(%rip)\n1:\nret\n.cfi_endproc\n"      \
            ".size " name ", . - " name "\n")

JUMP("dlsym", "guard_dlsym_real");
JUMP("dlvsym", "guard_dlvsym_real");
#else
#error "dlsym needs its jump on this processor: see JUMP above"
#endif

static bool lookup_is(const char *name, void *pfn, int version, bool twin, void **ret)
{
    void *ours = name && pfn ? guard_stands_for_version(name, version, twin) : NULL;

    if (ours)
        *ret = ours;
    return ours != NULL;
}

GUARD_CALL(cuGetProcAddress, const char *symbol, void **pfn, int version, uint64_t flags)
{
    proc1_fn *real = GUARD_REAL(proc1_fn *, cuGetProcAddress);
    CUresult r = real ? real(symbol, pfn, version, flags) : CUDA_ERROR_NOT_INITIALIZED;

    if (r == CUDA_SUCCESS && pfn)
        lookup_is(symbol, *pfn, version, flags & CU_PROC_PER_THREAD, pfn);
    return r;
}

GUARD_CALL(cuGetProcAddress_v2, const char *symbol, void **pfn, int version, uint64_t flags,
           int *status)
{
    proc2_fn *real = GUARD_REAL(proc2_fn *, cuGetProcAddress_v2);
    CUresult r = real ? real(symbol, pfn, version, flags, status) : CUDA_ERROR_NOT_INITIALIZED;

    if (r == CUDA_SUCCESS && pfn)
        lookup_is(symbol, *pfn, version, flags & CU_PROC_PER_THREAD, pfn);
    return r;
}

/* Private tables: everybody asks, nobody says what is in them. Passed through. */
GUARD_CALL(cuGetExportTable, const void **table, const void *id)
{
    typedef CUresult fn(const void **, const void *);
    fn *real = GUARD_REAL(fn *, cuGetExportTable);

    return real ? real(table, id) : CUDA_ERROR_NOT_INITIALIZED;
}
