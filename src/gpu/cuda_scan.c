/*
 * Reading all of a device's memory, and clearing what is not zero (gpu/cuda.h).
 *
 * Nearly all that is free is allocated, in pieces that halve until none fits, and every word of it is
 * looked at by a kernel of our own. What the driver keeps for itself and for this context's own
 * needs is never handed to anybody, and cannot be looked at.
 */
#include <string.h>

#include "gpu/cuda.h"

#define PIECE_MAX ((size_t)16 << 30)
#define PIECE_MIN ((size_t)2 << 20)
#define PIECES    256
#define BLOCKS    2048
#define THREADS   256

/* count(at, n, out): adds to *out how many words of the n x 16 bytes are not zero. Any device from
 * Volta on compiles it when it is loaded. */
static const char kernel[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry count(.param .u64 at, .param .u64 n, .param .u64 out)\n"
    "{\n"
    ".reg .pred %p<3>;\n"
    ".reg .b32 %r<12>;\n"
    ".reg .b64 %d<10>;\n"
    "ld.param.u64 %d1, [at];\n"
    "ld.param.u64 %d2, [n];\n"
    "ld.param.u64 %d3, [out];\n"
    "cvta.to.global.u64 %d1, %d1;\n"
    "cvta.to.global.u64 %d3, %d3;\n"
    "mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\n"
    "mov.u32 %r4, %nctaid.x;\n"
    "mul.wide.u32 %d4, %r1, %r2;\n"
    "cvt.u64.u32 %d5, %r3;\n"
    "add.u64 %d4, %d4, %d5;\n"      /* the vector this thread begins with */
    "mul.wide.u32 %d5, %r4, %r2;\n" /* and how far it is to its next */
    "mov.u64 %d6, 0;\n"             /* words it found */
    "NEXT:\n"
    "setp.ge.u64 %p1, %d4, %d2;\n"
    "@%p1 bra DONE;\n"
    "shl.b64 %d7, %d4, 4;\n"
    "add.u64 %d7, %d1, %d7;\n"
    "add.u64 %d4, %d4, %d5;\n"
    "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d7];\n"
    "or.b32 %r9, %r5, %r6;\n"
    "or.b32 %r10, %r7, %r8;\n"
    "or.b32 %r9, %r9, %r10;\n"
    "setp.eq.u32 %p2, %r9, 0;\n"
    "@%p2 bra NEXT;\n"
    "min.u32 %r5, %r5, 1;\n"
    "min.u32 %r6, %r6, 1;\n"
    "min.u32 %r7, %r7, 1;\n"
    "min.u32 %r8, %r8, 1;\n"
    "add.u32 %r5, %r5, %r6;\n"
    "add.u32 %r7, %r7, %r8;\n"
    "add.u32 %r5, %r5, %r7;\n"
    "cvt.u64.u32 %d8, %r5;\n"
    "add.u64 %d6, %d6, %d8;\n"
    "bra NEXT;\n"
    "DONE:\n"
    "setp.eq.u64 %p1, %d6, 0;\n"
    "@%p1 bra OUT;\n"
    "red.global.add.u64 [%d3], %d6;\n"
    "OUT:\n"
    "ret;\n"
    "}\n";

typedef struct scan {
    const cu_lib *lib;
    cu_function count;
    cu_ptr counts; /* one word of 8 bytes per piece */
    int n;
    cu_ptr at[PIECES];
    size_t size[PIECES];
    uint64_t found[PIECES];
} scan;

#define TRY(s, what, name, ...)                                \
    do {                                                       \
        int result_ = CU((s)->lib, name, __VA_ARGS__);         \
                                                               \
        if (result_ != CU_OK)                                  \
            return st_cuda_fail((s)->lib, what, result_, err); \
    } while (0)

static int count_piece(scan *s, int i, st_err *err)
{
    uint64_t at = s->at[i], n = s->size[i] / 16, out = s->counts + (uint64_t)i * sizeof(uint64_t);
    void *args[] = {&at, &n, &out};

    TRY(s, "device memory cannot be read", launch, s->count, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL,
        args, NULL);
    return 0;
}

static int count_all(scan *s, st_err *err)
{
    int r = 0;

    TRY(s, "counters cannot be cleared", fill, s->counts, 0, PIECES * 2);
    for (int i = 0; r == 0 && i < s->n; i++)
        r = count_piece(s, i, err);
    if (r < 0)
        return r;
    if (!s->lib->sync)
        return st_cuda_fail(s->lib, "device memory cannot be read", CU_MISSING, err);
    r = s->lib->sync();
    if (r != CU_OK)
        return st_cuda_fail(s->lib, "device memory cannot be read", r, err);
    TRY(s, "counters cannot be read", read, s->found, s->counts, sizeof s->found);
    return 0;
}

/* The counters first, so that there is room for them; and everything once on nothing, for drivers load
 * what they need when it is first used. */
static int take_all(scan *s, size_t *ret_total, size_t *ret_left, st_err *err)
{
    size_t piece = PIECE_MAX;
    int r;

    TRY(s, "no memory for counters", alloc, &s->counts, PIECES * sizeof(uint64_t));
    s->at[0] = s->counts;
    s->size[0] = 16;
    s->n = 1;
    r = count_all(s, err);
    s->n = 0;
    if (r < 0)
        return r;
    while (piece >= PIECE_MIN && s->n < PIECES) {
        r = CU(s->lib, alloc, &s->at[s->n], piece);

        if (r == CU_OK)
            s->size[s->n++] = piece;
        else if (r == CU_OUT_OF_MEMORY)
            piece /= 2;
        else
            return st_cuda_fail(s->lib, "device memory cannot be had", r, err);
    }
    TRY(s, "how much memory is left cannot be told", memory, ret_left, ret_total);
    return 0;
}

static uint64_t sum(const scan *s)
{
    uint64_t all = 0;

    for (int i = 0; i < s->n; i++)
        all += s->found[i];
    return all;
}

static int scan_memory(scan *s, st_cuda_scan *ret, st_err *err)
{
    size_t total = 0, left = 0;
    uint64_t found, still;
    int r = take_all(s, &total, &left, err);

    if (r == 0)
        r = count_all(s, err);
    if (r < 0)
        return r;
    found = sum(s);
    for (int i = 0; i < s->n; i++)
        if (s->found[i] > 0)
            TRY(s, "device memory cannot be overwritten", fill, s->at[i], 0, s->size[i] / 4);
    if (found > 0) {
        r = count_all(s, err);
        still = r == 0 ? sum(s) : 0;
        if (r == 0 && still > 0)
            r = st_fail(err, ST_EIO, "%llu words of device memory cannot be cleared",
                        (unsigned long long)still);
        if (r < 0)
            return r;
    }
    for (int i = 0; i < s->n; i++)
        ret->bytes += s->size[i];
    ret->total += total;
    ret->left += left;
    ret->found += found;
    ret->overwritten = ret->overwritten || found > 0;
    ret->devices++;
    return 0;
}

static int open_kernel(scan *s, st_err *err)
{
    cu_module module;

    TRY(s, "the kernel that reads memory is refused", load, &module, kernel);
    TRY(s, "the kernel that reads memory is not found", function, &s->count, module, "count");
    return 0;
}

static int scan_device(const cu_lib *lib, int at, st_cuda_scan *ret, st_err *err)
{
    scan s = {.lib = lib};
    cu_context context;
    int device = 0, r;

    TRY(&s, "no such device", device, &device, at);
    TRY(&s, "no context on the device", retain, &context, device);
    r = CU(lib, current, context);
    r = r == CU_OK ? open_kernel(&s, err) : st_cuda_fail(lib, "no context on the device", r, err);
    if (r == 0)
        r = scan_memory(&s, ret, err);
    for (int i = 0; i < s.n; i++)
        (void)CU(lib, free, s.at[i]);
    if (s.counts)
        (void)CU(lib, free, s.counts);
    (void)CU(lib, release, device);
    return r;
}

int st_cuda_scan_all(const cu_lib *lib, st_cuda_scan *ret, st_err *err)
{
    st_cuda_scan all = {0};
    int n = 0, r = CU(lib, count, &n);

    if (r != CU_OK)
        return st_cuda_fail(lib, "devices cannot be counted", r, err);
    if (n == 0)
        return st_fail(err, ST_ENOENT, "CUDA_VISIBLE_DEVICES shows no device");
    r = 0;
    for (int i = 0; r == 0 && i < n; i++) {
        r = scan_device(lib, i, &all, err);
        if (r < 0 && err)
            st_fail_prefix(err, "device %d: ", i);
    }
    if (r == 0)
        *ret = all;
    return r;
}
