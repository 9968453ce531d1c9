/*
 * The tests of one device (gpu/cuda_test.h): copies, memory, matrix products. Sizes follow from how much memory it has.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "gpu/cuda_test.h"

#define MIB       (UINT64_C(1) << 20)
#define COPY_MOST (256 * MIB)  /* of host memory, pinned */
#define MOVE_MOST (2048 * MIB) /* within the device */
#define PIECE_MAX (16384 * MIB)
#define PIECE_MIN (1 * MIB)
#define PIECES    256
#define REPEATS   10
#define SIDE_MAX  8192 /* of a matrix, by cuBLAS */
#define SIDE_OWN  4096
#define SIDE_MIN  64

/* Each bit both ways, and words that tell their place. */
static const cu_pattern patterns[] = {
    {0, ~0u, 0}, {0, 0, 0}, {0, 0, ~0u}, {0, 0, 0xAAAAAAAA}, {0, 0, 0x55555555}, {77, ~0u, 0},
};

int64_t st_cuda_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

bool st_cuda_blames_device(int result)
{
    /* Called wrongly, no memory, no such device, a driver that does not suit, somebody else on it, not permitted, not supported. */
    static const int others[] = {CU_MISSING, 1,   2,   3,   4,   46,  100, 101, 200, 201, 209, 218,
                                 222,        223, 300, 301, 302, 303, 304, 400, 500, 800, 801, 803};

    for (size_t i = 0; i < ST_ARRAY_LEN(others); i++)
        if (result == others[i])
            return false;
    return result != CU_OK;
}

/* MB/s. */
static int64_t speed(uint64_t bytes, int64_t us)
{
    return (int64_t)(bytes / (uint64_t)ST_MAX(us, 1));
}

#define TRY(t, what, call)                                  \
    do {                                                    \
        int try_ = st_cuda_test_result(t, what, call, err); \
                                                            \
        if (try_ < 0)                                       \
            return try_;                                    \
    } while (0)

/* ---- copies --------------------------------------------------------------------------------- */

static int time_copies(cu_test *t, cu_ptr at, void *host, size_t n, st_test_figure *ret,
                       st_err *err)
{
    for (int out = 0; out < 2; out++) {
        int64_t since = 0;
        int r;

        for (int i = -1; i < REPEATS; i++) { /* once for nothing */
            if (i == 0 && (r = st_cuda_test_wait(t, err)) < 0)
                return r;
            since = i == 0 ? st_cuda_now_us() : since;
            TRY(t, "a copy fails",
                out ? CU(t->lib, copy_out, host, at, n, NULL)
                    : CU(t->lib, copy_in, at, host, n, NULL));
        }
        r = st_cuda_test_wait(t, err);
        if (r < 0)
            return r;
        ret->v[out ? ST_MEASURE_PCIE_OUT : ST_MEASURE_PCIE_IN] =
            speed(n * REPEATS, st_cuda_now_us() - since);
    }
    return 0;
}

static int copies(cu_test *t, size_t n, st_test_figure *ret, st_err *err)
{
    void *host = NULL;
    cu_ptr at = 0;
    int r;

    TRY(t, "no device memory for copies", CU(t->lib, alloc, &at, n));
    r = st_cuda_test_result(t, "no host memory for copies", CU(t->lib, host_alloc, &host, n), err);
    if (r == 0) {
        memset(host, 0x5a, n);
        r = time_copies(t, at, host, n, ret, err);
        (void)CU(t->lib, host_free, host);
    }
    (void)CU(t->lib, free, at);
    return r;
}

static int move(cu_test *t, cu_ptr from, cu_ptr to, size_t n, st_test_figure *ret, st_err *err)
{
    int64_t since = 0;
    int r;

    for (int i = -1; i < REPEATS; i++) {
        if (i == 0 && (r = st_cuda_test_wait(t, err)) < 0)
            return r;
        since = i == 0 ? st_cuda_now_us() : since;
        TRY(t, "a copy within the device fails", CU(t->lib, copy, to, from, n, NULL));
    }
    r = st_cuda_test_wait(t, err);
    if (r == 0) /* read, and written */
        ret->v[ST_MEASURE_MEMORY_SPEED] = speed(2 * n * REPEATS, st_cuda_now_us() - since);
    return r;
}

static int moves(cu_test *t, size_t n, st_test_figure *ret, st_err *err)
{
    cu_ptr from = 0, to = 0;
    int r;

    TRY(t, "no device memory for copies", CU(t->lib, alloc, &from, n));
    r = st_cuda_test_result(t, "no device memory for copies", CU(t->lib, alloc, &to, n), err);
    if (r == 0) {
        r = move(t, from, to, n, ret, err);
        (void)CU(t->lib, free, to);
    }
    (void)CU(t->lib, free, from);
    return r;
}

/* ---- patterns ------------------------------------------------------------------------------- */

typedef struct pieces {
    int n;
    cu_ptr at[PIECES];
    size_t size[PIECES];
    uint64_t bytes;
} pieces;

static int take_all(cu_test *t, pieces *p, st_err *err)
{
    size_t piece = PIECE_MAX;

    while (piece >= PIECE_MIN && p->n < PIECES) {
        int r = CU(t->lib, alloc, &p->at[p->n], piece);

        if (r == CU_OK) {
            p->size[p->n++] = piece;
            p->bytes += piece;
        } else if (r == CU_OUT_OF_MEMORY) {
            piece /= 2;
        } else {
            return st_cuda_test_result(t, "device memory cannot be had", r, err);
        }
    }
    return 0;
}

/* All of it is written before the first is read. */
static int one_pattern(cu_test *t, const pieces *p, cu_pattern of, uint64_t *ret_bad, st_err *err)
{
    uint64_t bad = 0;
    int r = st_cuda_count_begin(t, err);

    for (int pass = 0; r == 0 && pass < 2; pass++) {
        for (int i = 0; r == 0 && i < p->n; i++) {
            cu_pattern own = {of.seed + (uint32_t)i * 1000003, of.mask, of.bits};

            r = pass == 0 ? st_cuda_put(t, p->at[i], p->size[i] / 4, own, err)
                          : st_cuda_check(t, p->at[i], p->size[i] / 4, own, err);
        }
    }
    if (r == 0)
        r = st_cuda_count_end(t, &bad, err);
    *ret_bad += bad;
    return r;
}

static int all_patterns(cu_test *t, size_t total, st_test_figure *ret, st_err *err)
{
    uint64_t bad = (uint64_t)ST_MAX(ret->v[ST_MEASURE_PATTERN], 0);
    pieces p = {0};
    int r = take_all(t, &p, err);

    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(patterns); i++)
        r = one_pattern(t, &p, patterns[i], &bad, err);
    for (int i = 0; i < p.n; i++)
        (void)CU(t->lib, free, p.at[i]);
    if (r == 0) {
        ret->v[ST_MEASURE_PATTERN_SHARE] = (int64_t)(p.bytes * 100 / ST_MAX(total, 1));
        ret->v[ST_MEASURE_PATTERN] = (int64_t)bad;
    }
    return r;
}

int st_cuda_measure_memory(cu_test *t, st_test_figure *ret, st_err *err)
{
    size_t total = 0, left = 0;
    int r;

    TRY(t, "how much memory there is cannot be told", CU(t->lib, memory, &left, &total));
    r = copies(t, ST_MIN(COPY_MOST, total / 8), ret, err);
    if (r == 0)
        r = moves(t, ST_MIN(MOVE_MOST, total / 8), ret, err);
    return r == 0 ? all_patterns(t, total, ret, err) : r;
}

/* ---- products ------------------------------------------------------------------------------- */

enum { BLAS_BF16 = 14, BLAS_SUM_F32 = 68, BLAS_DEFAULT = -1 };

typedef struct blas {
    void *library, *handle;
    int (*create)(void **);
    int (*destroy)(void *);
    int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *,
                int, int, const void *, void *, int, int, int, int);
} blas;

static void *symbol(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

/* False: there is none that works. */
static bool open_blas(blas *b)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    void *p;

    for (size_t i = 0; !b->library && i < ST_ARRAY_LEN(names); i++)
        b->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    p = symbol(b->library, "cublasCreate_v2");
    memcpy(&b->create, &p, sizeof p);
    p = symbol(b->library, "cublasDestroy_v2");
    memcpy(&b->destroy, &p, sizeof p);
    p = symbol(b->library, "cublasGemmEx");
    memcpy(&b->gemm, &p, sizeof p);
    if (b->create && b->destroy && b->gemm && b->create(&b->handle) == 0)
        return true;
    b->handle = NULL;
    return false;
}

static void close_blas(blas *b)
{
    if (b->handle)
        (void)b->destroy(b->handle);
    if (b->library)
        dlclose(b->library);
}

typedef struct work {
    blas blas;
    int n;
    cu_ptr m[4]; /* two factors, the first product, every later one */
    uint64_t words;
} work;

static int multiply(cu_test *t, const work *w, cu_ptr to, st_err *err)
{
    const float one = 1, none = 0;
    const void *a, *b;
    void *c;
    int r;

    if (!w->blas.handle)
        return st_cuda_product(t, w->m[0], w->m[1], to, (uint32_t)w->n, err);
    memcpy(&a, &w->m[0], sizeof a);
    memcpy(&b, &w->m[1], sizeof b);
    memcpy(&c, &to, sizeof c);
    r = w->blas.gemm(w->blas.handle, 0, 0, w->n, w->n, w->n, &one, a, BLAS_BF16, w->n, b, BLAS_BF16,
                     w->n, &none, c, BLAS_BF16, w->n, BLAS_SUM_F32, BLAS_DEFAULT);
    return r == 0 ? 0 : st_fail(err, ST_EIO, "cuBLAS fails with %d", r);
}

static int prepare(cu_test *t, work *w, st_err *err)
{
    /* Numbers from 1 to 2 of either sign: two of 16 bits in a word, or one of 32. */
    cu_pattern of = w->blas.handle ? (cu_pattern){1, 0x807f807f, 0x3f803f80}
                                   : (cu_pattern){1, 0x807fffff, 0x3f800000};
    size_t left = 0, total = 0;
    int r = 0;

    TRY(t, "how much memory there is cannot be told", CU(t->lib, memory, &left, &total));
    w->n = w->blas.handle ? SIDE_MAX : SIDE_OWN;
    while (w->n > SIDE_MIN && (uint64_t)w->n * (uint64_t)w->n * 32 > left)
        w->n /= 2;
    w->words = (uint64_t)w->n * (uint64_t)w->n / (w->blas.handle ? 2 : 1);
    for (int i = 0; r == 0 && i < 4; i++)
        r = st_cuda_test_result(t, "no memory for matrices",
                                CU(t->lib, alloc, &w->m[i], w->words * 4), err);
    for (int i = 0; r == 0 && i < 2; i++) {
        of.seed = (uint32_t)i + 1;
        r = st_cuda_put(t, w->m[i], w->words, of, err);
    }
    if (r == 0)
        r = multiply(t, w, w->m[2], err);
    return r == 0 ? st_cuda_test_wait(t, err) : r;
}

/* Until the time is over, and at least once. */
static int repeat(cu_test *t, const work *w, int64_t ms, st_test_figure *ret, st_err *err)
{
    int64_t until = st_cuda_now_us() + ms * 1000, us = 0, times = 0;
    uint64_t bad = 0;
    int r = 0;

    do {
        int64_t since = st_cuda_now_us();
        uint64_t found = 0;

        for (int i = 0; r == 0 && i < REPEATS; i++)
            r = multiply(t, w, w->m[3], err);
        if (r == 0)
            r = st_cuda_test_wait(t, err);
        us += st_cuda_now_us() - since;
        times += REPEATS;
        if (r == 0)
            r = st_cuda_count_begin(t, err);
        if (r == 0)
            r = st_cuda_differ(t, w->m[2], w->m[3], w->words, err);
        if (r == 0)
            r = st_cuda_count_end(t, &found, err);
        bad += found;
    } while (r == 0 && st_cuda_now_us() < until);
    if (r == 0) {
        double flop = 2.0 * w->n * w->n * w->n * (double)times;

        ret->v[ST_MEASURE_PRODUCT_SPEED] = (int64_t)(flop / 1000 / (double)ST_MAX(us, 1));
        ret->v[ST_MEASURE_PRODUCT] = (int64_t)bad;
    }
    return r;
}

int st_cuda_measure_products(cu_test *t, int64_t ms, st_test_figure *ret, bool *ret_blas,
                             st_err *err)
{
    work w = {0};
    int r;

    *ret_blas = open_blas(&w.blas);
    r = prepare(t, &w, err);
    if (r == 0)
        r = repeat(t, &w, ms, ret, err);
    for (int i = 0; i < 4; i++)
        if (w.m[i])
            (void)CU(t->lib, free, w.m[i]);
    close_blas(&w.blas);
    return r;
}
