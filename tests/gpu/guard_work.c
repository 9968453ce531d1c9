/* Workloads for the guard, by the driver's own interface: no CUDA compiler and no runtime are needed, and the same
 * program runs on a GPU and on the device model of tests/guard. PTX is compiled by the driver.
 *
 *   guard_work vram [wait]               1 MiB at a time until the driver refuses; then waits for its input to end
 *   guard_work units copy|fma US         how much work takes that long here, for the others: =UNITS instead of US
 *   guard_work hold MIB                  takes so much, says so, waits for its input to end
 *   guard_work hog SECONDS copy|fma US [AHEAD]
 *                                        kernels of about US each, AHEAD in flight (20); work done, by 200 ms
 *   guard_work victim SECONDS PERIOD_US [FMA_US]
 *                                        a copy of 128 MB (or an fma kernel) each period, waited for; -PERIOD_US: a
 *                                        pause of so long behind each. Marks requests if the guard is there
 *   guard_work rate SECONDS US [graph]   launches a second of small kernels, alone
 *
 * Prints lines of name=value. GUARD_START_NS: all begin at that time of CLOCK_MONOTONIC. GUARD_AROUND: the driver's functions are
 * taken from its own table of symbols, past the linker and the guard. GUARD_URGENT: on a stream of the highest priority. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long ptr_t;
typedef void *handle_t;

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry copy(.param .u64 to, .param .u64 from, .param .u64 n)\n{\n"
    " .reg .pred %p;\n .reg .b32 %r<8>;\n .reg .b64 %d<12>;\n .reg .f32 %f<4>;\n"
    " ld.param.u64 %d1, [to];\n ld.param.u64 %d2, [from];\n ld.param.u64 %d3, [n];\n"
    " cvta.to.global.u64 %d1, %d1;\n cvta.to.global.u64 %d2, %d2;\n"
    " mov.u32 %r1, %ctaid.x;\n mov.u32 %r2, %ntid.x;\n mov.u32 %r3, %tid.x;\n"
    " mov.u32 %r4, %nctaid.x;\n cvt.u64.u32 %d4, %r3;\n mul.wide.u32 %d5, %r1, %r2;\n"
    " add.u64 %d4, %d4, %d5;\n mul.wide.u32 %d6, %r4, %r2;\n"
    "again:\n setp.ge.u64 %p, %d4, %d3;\n @%p bra done;\n shl.b64 %d7, %d4, 4;\n"
    " add.u64 %d8, %d2, %d7;\n ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d8];\n"
    " add.u64 %d9, %d1, %d7;\n st.global.v4.f32 [%d9], {%f0, %f1, %f2, %f3};\n"
    " add.u64 %d4, %d4, %d6;\n bra again;\ndone:\n ret;\n}\n"
    ".visible .entry fma(.param .u64 out, .param .u64 rounds)\n{\n"
    " .reg .pred %p;\n .reg .b32 %r<8>;\n .reg .b64 %d<8>;\n .reg .f32 %f<6>;\n"
    " ld.param.u64 %d1, [out];\n ld.param.u64 %d2, [rounds];\n cvta.to.global.u64 %d1, %d1;\n"
    " mov.u32 %r1, %ctaid.x;\n mov.u32 %r2, %ntid.x;\n mov.u32 %r3, %tid.x;\n"
    " mad.lo.u32 %r4, %r1, %r2, %r3;\n cvt.rn.f32.u32 %f1, %r3;\n"
    " mov.f32 %f2, 0f3F800347;\n mov.f32 %f3, 0f3F000000;\n mov.f32 %f4, 0f40000000;\n"
    " mov.u64 %d3, 0;\n"
    "more:\n setp.ge.u64 %p, %d3, %d2;\n @%p bra out_;\n"
    " fma.rn.f32 %f1, %f1, %f2, %f3;\n fma.rn.f32 %f4, %f4, %f2, %f1;\n"
    " add.u64 %d3, %d3, 1;\n bra more;\n"
    "out_:\n add.f32 %f1, %f1, %f4;\n mul.wide.u32 %d4, %r4, 4;\n add.u64 %d5, %d1, %d4;\n"
    " st.global.f32 [%d5], %f1;\n ret;\n}\n";

#define FUNCTIONS(X)                                                                         \
    X(cuInit, (unsigned))                                                                    \
    X(cuDeviceGet, (int *, int))                                                             \
    X(cuDevicePrimaryCtxRetain, (handle_t *, int))                                           \
    X(cuCtxSetCurrent, (handle_t))                                                           \
    X(cuCtxSynchronize, (void))                                                              \
    X(cuModuleLoadData, (handle_t *, const void *))                                          \
    X(cuModuleGetFunction, (handle_t *, handle_t, const char *))                             \
    X(cuMemAlloc_v2, (ptr_t *, size_t))                                                      \
    X(cuMemFree_v2, (ptr_t))                                                                 \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                 \
    X(cuDeviceTotalMem_v2, (size_t *, int))                                                  \
    X(cuStreamCreate, (handle_t *, unsigned))                                                \
    X(cuStreamCreateWithPriority, (handle_t *, unsigned, int))                               \
    X(cuStreamSynchronize, (handle_t))                                                       \
    X(cuEventCreate, (handle_t *, unsigned))                                                 \
    X(cuEventRecord, (handle_t, handle_t))                                                   \
    X(cuEventSynchronize, (handle_t))                                                        \
    X(cuEventElapsedTime, (float *, handle_t, handle_t))                                     \
    X(cuLaunchKernel, (handle_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, handle_t, void **, void **))                                \
    X(cuStreamBeginCapture_v2, (handle_t, int))                                              \
    X(cuStreamEndCapture, (handle_t, handle_t *))                                            \
    X(cuGraphInstantiateWithFlags, (handle_t *, handle_t, unsigned long long))               \
    X(cuGraphLaunch, (handle_t, handle_t))

#define DECLARE(name, args) static int(*name) args;
FUNCTIONS(DECLARE)
static void *library;

#define COPY_BYTES ((size_t)128 << 20)
#define BLOCKS     528
#define THREADS    256
#define WINDOWS    4096

static handle_t copy_fn, fma_fn, stream;
static ptr_t memory;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(int r, const char *what)
{
    if (r == 0)
        return;
    printf("failed=%s error=%d\n", what, r);
    exit(1);
}

/* How many symbols a library has, by its hash table. */
static uint32_t symbols(const uint32_t *hash)
{
    uint32_t nbuckets = hash[0], first = hash[1], last = 0;
    const uint32_t *buckets = hash + 4 + 2 * hash[2], *chain = buckets + nbuckets;

    for (uint32_t i = 0; i < nbuckets; i++)
        last = buckets[i] > last ? buckets[i] : last;
    if (last < first)
        return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

/* As a program does that goes around the guard. */
static void *take(const char *name)
{
    const struct link_map *map = NULL;
    const ElfW(Sym) *table = NULL;
    const char *names = NULL;
    const uint32_t *hash = NULL;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            table = (const void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_STRTAB)
            names = (const void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_GNU_HASH)
            hash = (const void *)d->d_un.d_ptr;
    }
    for (uint32_t i = 0; table && names && hash && i < symbols(hash); i++)
        if (table[i].st_shndx != SHN_UNDEF && strcmp(names + table[i].st_name, name) == 0)
            return (char *)map->l_addr + table[i].st_value;
    return NULL;
}

static void *find(const char *name)
{
    return getenv("GUARD_AROUND") ? take(name) : dlsym(library, name);
}

static void begin(void)
{
    handle_t context, module;
    int device;

    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("failed=libcuda.so.1\n");
        exit(1);
    }
#define LOAD(name, args) *(void **)&name = find(#name);
    FUNCTIONS(LOAD)
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
    check(cuModuleGetFunction(&copy_fn, module, "copy"), "copy");
    check(cuModuleGetFunction(&fma_fn, module, "fma"), "fma");
    if (getenv("GUARD_URGENT") && cuStreamCreateWithPriority)
        check(cuStreamCreateWithPriority(&stream, 1, -5), "cuStreamCreateWithPriority");
    else
        check(cuStreamCreate(&stream, 1), "cuStreamCreate");
}

static void start_line(void)
{
    const char *at = getenv("GUARD_START_NS");
    uint64_t then = at ? strtoull(at, NULL, 10) : 0, now = now_ns();

    if (then > now) {
        struct timespec t = {.tv_sec = (time_t)((then - now) / 1000000000u),
                             .tv_nsec = (long)((then - now) % 1000000000u)};

        nanosleep(&t, NULL);
    }
}

static void launch_copy(uint64_t bytes)
{
    ptr_t to = memory, from = memory + COPY_BYTES;
    uint64_t n = bytes / 16;
    void *params[] = {&to, &from, &n};

    check(cuLaunchKernel(copy_fn, 2048, 1, 1, THREADS, 1, 1, 0, stream, params, NULL), "copy");
}

static void launch_fma(uint64_t rounds)
{
    void *params[] = {&memory, &rounds};

    check(cuLaunchKernel(fma_fn, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, params, NULL), "fma");
}

/* How many units (bytes or rounds) take that long. Measured by events, the best of five. */
static uint64_t calibrate(int copies, const char *text)
{
    double us = text[0] == '=' ? 0 : atof(text);
    uint64_t units = copies ? (uint64_t)16 << 20 : 20000, most = copies ? COPY_BYTES : UINT64_MAX;
    float best = 1e9f;
    handle_t a, b;

    if (text[0] == '=')
        return strtoull(text + 1, NULL, 10);
    check(cuEventCreate(&a, 0), "cuEventCreate");
    check(cuEventCreate(&b, 0), "cuEventCreate");
    for (int i = 0; i < 5; i++) {
        float ms = 0;

        check(cuEventRecord(a, stream), "cuEventRecord");
        for (int k = 0; k < 10; k++)
            copies ? launch_copy(units) : launch_fma(units);
        check(cuEventRecord(b, stream), "cuEventRecord");
        check(cuEventSynchronize(b), "cuEventSynchronize");
        check(cuEventElapsedTime(&ms, a, b), "cuEventElapsedTime");
        if (ms < best)
            best = ms;
    }
    double each = (double)best * 100; /* ten launches, ms to us */
    uint64_t want = (uint64_t)((double)units * us / (each > 0.1 ? each : 0.1));

    want = want < 1024 ? 1024 : want;
    return want > most ? most : want;
}

static void get_memory(void)
{
    check(cuMemAlloc_v2(&memory, 2 * COPY_BYTES), "cuMemAlloc");
}

static void info(void)
{
    size_t left = 0, total = 0, device = 0;

    check(cuMemGetInfo_v2(&left, &total), "cuMemGetInfo");
    check(cuDeviceTotalMem_v2(&device, 0), "cuDeviceTotalMem");
    printf("total_mib=%zu free_mib=%zu device_mib=%zu\n", total >> 20, left >> 20, device >> 20);
}

static void wait_for_end(void)
{
    char c;

    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
}

static int vram(int wait)
{
    uint64_t n = 0;
    ptr_t p;
    int r;

    info();
    while ((r = cuMemAlloc_v2(&p, (size_t)1 << 20)) == 0)
        n++;
    printf("got_mib=%llu error=%d\n", (unsigned long long)n, r);
    info();
    if (wait)
        wait_for_end();
    return 0;
}

static int hold(int mib)
{
    ptr_t p;
    int r = cuMemAlloc_v2(&p, (size_t)mib << 20);

    printf("held=%d error=%d\n", r == 0 ? mib : 0, r);
    wait_for_end();
    return 0;
}

static int hog(double seconds, int copies, const char *us, int ahead)
{
    static unsigned windows[WINDOWS];
    handle_t marks[64];
    uint64_t units, began, end, now, n = 0;

    get_memory();
    units = calibrate(copies, us);
    ahead = ahead < 1 ? 1 : ahead > 64 ? 64 : ahead;
    for (int i = 0; i < ahead; i++)
        check(cuEventCreate(&marks[i], 2), "cuEventCreate");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    start_line();
    began = now_ns();
    end = began + (uint64_t)(seconds * 1e9);
    for (now = began; now < end; n++) {
        int slot = (int)(n % (uint64_t)ahead);

        if (n >= (uint64_t)ahead) {
            check(cuEventSynchronize(marks[slot]), "cuEventSynchronize");
            now = now_ns();
            if ((now - began) / 200000000u < WINDOWS)
                windows[(now - began) / 200000000u]++;
        }
        copies ? launch_copy(units) : launch_fma(units);
        check(cuEventRecord(marks[slot], stream), "cuEventRecord");
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    now = now_ns();
    printf("launches=%llu seconds=%.3f per_s=%.1f units=%llu units_per_s=%.0f\nwindows=",
           (unsigned long long)n, (double)(now - began) / 1e9,
           (double)n / ((double)(now - began) / 1e9), (unsigned long long)units,
           (double)n * (double)units / ((double)(now - began) / 1e9));
    for (int i = 0; i < (int)(seconds * 5) && i < WINDOWS; i++)
        printf("%s%u", i ? "," : "", windows[i]);
    printf("\n");
    return 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* A negative period is a pause behind each request; else requests begin so far apart, whatever they take. */
static int victim(double seconds, double period_us, const char *fma_us)
{
    unsigned long long (*mark)(unsigned long long) = NULL;
    bool pauses = period_us < 0;

    size_t room = (size_t)(seconds * 1e6 / (period_us > 20 ? period_us : 20)) + 1000, n = 0;
    double *us = malloc(room * sizeof *us);
    uint64_t rounds = 0, end, next;

    *(void **)&mark = dlsym(RTLD_DEFAULT, "stint_guard_mark");
    period_us = pauses ? -period_us : period_us;
    get_memory();
    if (fma_us)
        rounds = calibrate(0, fma_us);
    for (int i = 0; i < 200; i++) {
        rounds ? launch_fma(rounds) : launch_copy(COPY_BYTES);
        check(cuStreamSynchronize(stream), "warm");
    }
    start_line();
    next = now_ns();
    end = next + (uint64_t)(seconds * 1e9);
    while (us && n < room && now_ns() < end) {
        uint64_t began;
        unsigned long long request;

        while (now_ns() < next)
            ; /* the period is kept to the microsecond */
        began = now_ns();
        request = mark ? mark(0) : 0;
        rounds ? launch_fma(rounds) : launch_copy(COPY_BYTES);
        check(cuStreamSynchronize(stream), "victim");
        if (request)
            mark(request);
        us[n++] = (double)(now_ns() - began) / 1e3;
        next = (pauses ? now_ns() : next) + (uint64_t)(period_us * 1e3);
        if (next < now_ns())
            next = now_ns();
    }
    if (n == 0)
        return 1;
    qsort(us, n, sizeof *us, by_size);
    printf("n=%zu p50_us=%.1f p99_us=%.1f p999_us=%.1f max_us=%.1f\n", n, us[n / 2],
           us[n * 99 / 100], us[n * 999 / 1000], us[n - 1]);
    free(us);
    return 0;
}

static int rate(double seconds, const char *us, int graph)
{
    uint64_t rounds, began, n = 0;
    handle_t g = NULL, exec = NULL;

    get_memory();
    rounds = calibrate(0, us);
    if (graph) {
        check(cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture");
        for (int i = 0; i < 20; i++)
            launch_fma(rounds);
        check(cuStreamEndCapture(stream, &g), "cuStreamEndCapture");
        check(cuGraphInstantiateWithFlags(&exec, g, 0), "cuGraphInstantiate");
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    began = now_ns();
    while (now_ns() - began < (uint64_t)(seconds * 1e9)) {
        for (int i = 0; i < 100; i++, n++)
            graph ? check(cuGraphLaunch(exec, stream), "cuGraphLaunch") : launch_fma(rounds);
        if (n % 2000 == 0)
            check(cuStreamSynchronize(stream), "rate");
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    printf("launches=%llu per_s=%.0f\n", (unsigned long long)n,
           (double)n / ((double)(now_ns() - began) / 1e9));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double a = argc > 2 ? atof(argv[2]) : 0, b = argc > 3 ? atof(argv[3]) : 0;

    begin();
    if (strcmp(what, "vram") == 0)
        return vram(argc > 2);
    if (strcmp(what, "units") == 0 && argc > 3) {
        get_memory();
        printf("units=%llu\n",
               (unsigned long long)calibrate(strcmp(argv[2], "copy") == 0, argv[3]));
        return 0;
    }
    if (strcmp(what, "hold") == 0)
        return hold((int)a);
    if (strcmp(what, "hog") == 0 && argc > 4)
        return hog(a, strcmp(argv[3], "copy") == 0, argv[4], argc > 5 ? atoi(argv[5]) : 20);
    if (strcmp(what, "victim") == 0)
        return victim(a, b, argc > 4 ? argv[4] : NULL);
    if (strcmp(what, "rate") == 0 && argc > 3)
        return rate(a, argv[3], argc > 4);
    fprintf(stderr, "usage: see the top of guard_work.c\n");
    return 2;
}
