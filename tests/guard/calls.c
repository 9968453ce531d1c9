/* A program under the guard, for tests: every way to look the driver's functions up, and every kind of memory. Each case
 * ends with 0 when all was as it should be, and says on stdout what was not.
 *
 *   guard_calls entries FILE   each row of FILE is answered by the guard: dlsym, dlvsym's sibling, cuGetProcAddress
 *   guard_calls lookup         what is not the guard's is found as without it, RTLD_NEXT too
 *   guard_calls memory MIB     with a grant of MIB: one of each kind, too much of each kind, all given back
 *   guard_calls forked         a child of a process that uses the GPU
 *   guard_calls children N MIB N forked processes want MIB each at once; prints how many got it
 *   guard_calls churn          allocates and frees until it is killed
 *   guard_calls load           does nothing */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/cuda.h"

#define MIB ((size_t)1 << 20)

static void *library;
static int wrong;

static void expect(bool ok, const char *what)
{
    if (ok)
        return;
    printf("wrong: %s\n", what);
    wrong++;
}

static void *find(const char *name)
{
    void *f = dlsym(library, name);

    if (!f) {
        printf("wrong: %s is not there\n", name);
        exit(1);
    }
    return f;
}

#define CALL(name, ...) ((int (*)())find(name))(__VA_ARGS__)

static bool ours(void *f)
{
    Dl_info at;

    return f && dladdr(f, &at) && at.dli_fname && strstr(at.dli_fname, "stint-guard");
}

static int entries(const char *file)
{
    char line[512], name[128], base[128];
    int (*proc1)(const char *, void **, int, uint64_t) = find("cuGetProcAddress");
    int (*proc2)(const char *, void **, int, uint64_t, int *) = find("cuGetProcAddress_v2");
    FILE *f = fopen(file, "r");
    int version, twin, n = 0;

    while (f && fgets(line, sizeof line, f)) {
        void *a = NULL, *b = NULL, *here, *all;

        if (line[0] == '#' || sscanf(line, "%127s %127s %d %d", name, base, &version, &twin) != 4)
            continue;
        n++;
        here = dlsym(library, name);
        all = dlsym(RTLD_DEFAULT, name);
        expect(ours(here), name);
        expect(all == here, name);
        expect(proc1(base, &a, version, twin ? 2 : 0) == 0 && a == here, line);
        expect(proc2(base, &b, version, twin ? 2 : 0, NULL) == 0 && b == here, line);
    }
    if (f)
        fclose(f);
    printf("entries=%d\n", n);
    return n > 60 ? wrong : 1;
}

static int lookup(void)
{
    Dl_info at;
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    void *next = dlsym(RTLD_NEXT, "qsort");

    expect(next && next == dlsym(libc, "qsort"), "RTLD_NEXT");
    expect(dlvsym(libc, "qsort", "GLIBC_2.2.5") == next, "dlvsym");
    expect(!dlvsym(libc, "qsort", "NONE_1"), "dlvsym of a version that is not there");
    expect(!dlsym(library, "cuThatIsNotThere"), "a name that is not there");
    expect(dlerror() != NULL, "dlerror");
    expect(dladdr(dlsym(library, "cuModuleLoadData"), &at) && strstr(at.dli_fname, "libcuda"),
           "what the guard does not stand for is the driver's");
    return wrong;
}

static size_t left(void)
{
    size_t a = 0, b = 0;

    CALL("cuMemGetInfo_v2", &a, &b);
    return a;
}

static int memory(size_t mib)
{
    size_t before = left(), half = mib / 2 * MIB, much = mib * 2 * MIB, pitch = 0;
    cu_alloc_prop prop = {.type = 1, .location = {.type = CU_LOCATION_DEVICE}};
    cu_array2d flat = {
        .width = mib * MIB / 2 / 4096, .height = 1024, .format = 0x20, .channels = 1};
    cu_array2d flat_much = {
        .width = mib * MIB / 2 / 512, .height = 1024, .format = 0x20, .channels = 1};
    cu_array3d deep = {
        .width = 1024, .height = 1024, .depth = mib / 8, .format = 0x20, .channels = 1};
    cu_array3d deep_much = {
        .width = 1024, .height = 1024, .depth = mib, .format = 0x20, .channels = 1};
    cu_external_desc ext = {.type = 1, .size = half};
    cu_alloc_node node = {.pool.location.type = CU_LOCATION_DEVICE, .bytes = half};
    CUdeviceptr p = 0, q = 0;
    CUhandle h = 0, again = 0;
    void *o = NULL;

#define ALL_BACK(what)   expect(left() == before, what " is not given back")
#define REFUSED(what, r) expect((r) == CUDA_ERROR_OUT_OF_MEMORY, what ": too much is not refused")
#define FINE(what, r)    expect((r) == 0, what)

    /* Without a context the driver's own answer comes back: the runtime makes one and calls again. */
    CALL("fake_context", 0);
    expect(CALL("cuMemAllocAsync", &p, half, NULL) == 201, "async without a context");
    expect(CALL("cuMemAllocFromPoolAsync", &p, half, NULL, NULL) == 201,
           "from pool without a context");
    CALL("fake_context", 1);
    FINE("plain", CALL("cuMemAlloc_v2", &p, half));
    expect(before - left() == half, "plain memory is not counted");
    REFUSED("plain", CALL("cuMemAlloc_v2", &q, half + 2 * MIB));
    FINE("free", CALL("cuMemFree_v2", p));
    ALL_BACK("plain");
    for (int i = 0; i < 64; i++)
        FINE("small", CALL("cuMemAlloc_v2", &p, (size_t)1000));
    expect(before - left() == 2 * MIB, "small allocations share a page");
    before = left();
    REFUSED("plain", CALL("cuMemAlloc_v2", &p, much));
    REFUSED("plain", CALL("cuMemAlloc_v2", &p, (size_t)-1));
    FINE("pitch", CALL("cuMemAllocPitch_v2", &p, &pitch, (size_t)1000, half / 2048, 4u));
    CALL("cuMemFree_v2", p);
    REFUSED("pitch", CALL("cuMemAllocPitch_v2", &p, &pitch, (size_t)1000, much / 1024, 4u));
    ALL_BACK("pitch");
    FINE("managed", CALL("cuMemAllocManaged", &p, half, 1u));
    expect(left() < before, "managed memory is not counted");
    CALL("cuMemFree_v2", p);
    REFUSED("managed", CALL("cuMemAllocManaged", &p, much, 1u));
    ALL_BACK("managed");
    FINE("array", CALL("cuArrayCreate_v2", &o, &flat));
    expect(left() < before, "an array is not counted");
    CALL("cuArrayDestroy", o);
    REFUSED("array", CALL("cuArrayCreate_v2", &o, &flat_much));
    FINE("3d array", CALL("cuArray3DCreate_v2", &o, &deep));
    CALL("cuArrayDestroy", o);
    REFUSED("3d array", CALL("cuArray3DCreate_v2", &o, &deep_much));
    FINE("mipmap", CALL("cuMipmappedArrayCreate", &o, &deep, 4u));
    expect(left() < before, "a mipmap is not counted");
    CALL("cuMipmappedArrayDestroy", o);
    REFUSED("mipmap", CALL("cuMipmappedArrayCreate", &o, &deep_much, 4u));
    ALL_BACK("array");
    FINE("external", CALL("cuImportExternalMemory", &o, &ext));
    expect(left() < before, "external memory is not counted");
    CALL("cuDestroyExternalMemory", o);
    ext.size = much;
    REFUSED("external", CALL("cuImportExternalMemory", &o, &ext));
    ALL_BACK("external");
    /* By handle: released while it is mapped, and retained again from its address. */
    FINE("create", CALL("cuMemCreate", &h, half, &prop, 0ULL));
    FINE("map", CALL("cuMemMap", (CUdeviceptr)0x1000000, half, (size_t)0, h, 0ULL));
    FINE("release", CALL("cuMemRelease", h));
    expect(before - left() == half,
           "memory that is mapped is not counted after its handle is released");
    FINE("retain", CALL("cuMemRetainAllocationHandle", &again, (void *)0x1000000));
    FINE("unmap", CALL("cuMemUnmap", (CUdeviceptr)0x1000000, half));
    expect(before - left() == half, "memory with a handle is not counted after it is unmapped");
    FINE("release", CALL("cuMemRelease", again));
    REFUSED("create", CALL("cuMemCreate", &h, much, &prop, 0ULL));
    ALL_BACK("by handle");
    /* A pool keeps what is freed; it is counted until the pool lets go, and lets go when there is need. */
    FINE("async", CALL("cuMemAllocAsync", &p, half, NULL));
    expect(before - left() >= half, "a pool is not counted");
    FINE("free async", CALL("cuMemFreeAsync", p, NULL));
    expect(before - left() >= half, "what a pool keeps is not counted");
    FINE("plain after pool", CALL("cuMemAlloc_v2", &q, half / 2));
    CALL("cuMemFree_v2", q);
    REFUSED("async", CALL("cuMemAllocAsync", &p, much, NULL));
    CALL("cuDeviceGetMemPool", &o, 0);
    FINE("from pool", CALL("cuMemAllocFromPoolAsync", &p, half, o, NULL));
    CALL("cuMemFreeAsync", p, NULL);
    CALL("cuMemPoolTrimTo", o, (size_t)0);
    ALL_BACK("a pool");
    FINE("node", CALL("cuGraphAddMemAllocNode", &o, (void *)0x77, NULL, (size_t)0, &node));
    expect(before - left() == half, "a graph's allocation is not counted");
    REFUSED("node", CALL("cuGraphAddMemAllocNode", &o, (void *)0x77, NULL, (size_t)0, &node) ||
                            CALL("cuGraphAddMemAllocNode", &o, (void *)0x77, NULL, (size_t)0, &node)
                        ? CUDA_ERROR_OUT_OF_MEMORY
                        : 0);
    CALL("cuGraphDestroy", (void *)0x77);
    ALL_BACK("a graph");
    expect(((int (*)(void))find("cuMemAlloc"))() == CUDA_ERROR_NOT_SUPPORTED,
           "the old form is refused");
    return wrong;
}

/* What a child takes is its own, and goes with it. */
static int forked(void)
{
    CUdeviceptr p;
    size_t before;
    pid_t child;

    FINE("parent", CALL("cuMemAlloc_v2", &p, 100 * MIB));
    before = left();
    child = fork();
    if (child == 0) {
        void *context;
        int r = CALL("cuInit", 0u) || CALL("cuDevicePrimaryCtxRetain", &context, 0);

        _exit(r || CALL("cuMemAlloc_v2", &p, 100 * MIB) || before - left() != 100 * MIB);
    }
    int status = 1;

    expect(waitpid(child, &status, 0) == child && status == 0, "a child takes its own");
    expect(left() == before, "what a child had is not given back");
    FINE("parent's free", CALL("cuMemFree_v2", p));
    expect(left() == before + 100 * MIB, "the parent's own is not given back");
    return wrong;
}

static int children(int n, size_t mib)
{
    int got = 0, go[2], done[2], answer;
    char c = 0;

    if (pipe(go) != 0 || pipe(done) != 0)
        return 1;
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            CUdeviceptr p;
            void *context;

            close(go[1]);
            if (read(go[0], &c, 1) < 0)
                _exit(1);
            CALL("cuInit", 0u);
            answer = CALL("cuDevicePrimaryCtxRetain", &context, 0);
            if (answer == 0)
                answer = CALL("cuMemAlloc_v2", &p, mib * MIB);
            if (write(done[1], &answer, sizeof answer) != sizeof answer)
                _exit(1);
            while (read(STDIN_FILENO, &c, 1) > 0) /* holds it until the test has looked */
                ;
            _exit(0);
        }
    close(go[0]);
    close(go[1]); /* all at once */
    for (int i = 0; i < n; i++)
        if (read(done[0], &answer, sizeof answer) == sizeof answer)
            got += answer == 0;
    printf("got=%d of=%d\n", got, n);
    fflush(stdout);
    while (wait(NULL) > 0)
        ;
    return 0;
}

__attribute__((noreturn)) static void churn(void)
{
    CUdeviceptr p[16];

    for (unsigned i = 0;; i++) {
        for (int k = 0; k < 16; k++)
            if (CALL("cuMemAlloc_v2", &p[k], (size_t)(1 + (i + (unsigned)k) % 5) * MIB) != 0)
                p[k] = 0;
        for (int k = 0; k < 16; k++)
            if (p[k])
                CALL("cuMemFree_v2", p[k]);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "load";
    void *context;

    if (strcmp(what, "load") == 0)
        return 0;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return 1;
    if (strcmp(what, "children") == 0 && argc > 3)
        return children(atoi(argv[2]), (size_t)atol(argv[3]));
    wrong = CALL("cuInit", 0u);
    if (wrong)
        printf("cuInit=%d\n", wrong);
    if (wrong || CALL("cuDevicePrimaryCtxRetain", &context, 0) != 0)
        return 1;
    if (strcmp(what, "entries") == 0 && argc > 2)
        return entries(argv[2]);
    if (strcmp(what, "lookup") == 0)
        return lookup();
    if (strcmp(what, "memory") == 0 && argc > 2)
        return memory((size_t)atol(argv[2]));
    if (strcmp(what, "forked") == 0)
        return forked();
    if (strcmp(what, "churn") == 0)
        churn();
    return 2;
}
