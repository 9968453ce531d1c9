/*
 * The kernels of tests, in PTX that the driver compiles for its GPU, and their launches (gpu/cuda_test.h). All go over words of
 * 4 bytes, each thread from its own number in steps of all threads. The word at i that a pattern puts is
 *
 *     h = (i + seed) * 0x9E3779B1;  ((h ^ h >> 15) & mask) | bits
 */
#include "gpu/cuda_test.h"

#define BLOCKS  2048
#define THREADS 256

/* put: writes a pattern. check: counts words that are not as it wrote them. differ: counts words of a and b that differ. add: sums of
 * floats. product: C = A B of n x n floats, by rows. */
static const char kernels_words[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry put(.param .u64 at, .param .u64 n, .param .u32 seed, .param .u32 mask, .param "
    ".u32 or)\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b32 %r<12>;\n"
    ".reg .b64 %d<8>;\n"
    "ld.param.u64 %d1, [at];\n"
    "ld.param.u64 %d2, [n];\n"
    "ld.param.u32 %r5, [seed];\n"
    "ld.param.u32 %r6, [mask];\n"
    "ld.param.u32 %r7, [or];\n"
    "cvta.to.global.u64 %d1, %d1;\n"
    "mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\n"
    "mov.u32 %r4, %nctaid.x;\n"
    "mul.wide.u32 %d4, %r1, %r2;\n"
    "cvt.u64.u32 %d5, %r3;\n"
    "add.u64 %d4, %d4, %d5;\n"
    "mul.wide.u32 %d5, %r4, %r2;\n"
    "NEXT:\n"
    "setp.ge.u64 %p1, %d4, %d2;\n"
    "@%p1 bra DONE;\n"
    "cvt.u32.u64 %r8, %d4;\n"
    "add.u32 %r8, %r8, %r5;\n"
    "mul.lo.u32 %r8, %r8, 0x9E3779B1;\n"
    "shr.u32 %r9, %r8, 15;\n"
    "xor.b32 %r8, %r8, %r9;\n"
    "and.b32 %r8, %r8, %r6;\n"
    "or.b32 %r8, %r8, %r7;\n"
    "shl.b64 %d6, %d4, 2;\n"
    "add.u64 %d6, %d1, %d6;\n"
    "st.global.u32 [%d6], %r8;\n"
    "add.u64 %d4, %d4, %d5;\n"
    "bra NEXT;\n"
    "DONE:\n"
    "ret;\n"
    "}\n"
    ".visible .entry check(.param .u64 at, .param .u64 n, .param .u32 seed, .param .u32 mask, "
    ".param .u32 or, .param .u64 out)\n"
    "{\n"
    ".reg .pred %p<3>;\n"
    ".reg .b32 %r<12>;\n"
    ".reg .b64 %d<10>;\n"
    "ld.param.u64 %d1, [at];\n"
    "ld.param.u64 %d2, [n];\n"
    "ld.param.u32 %r5, [seed];\n"
    "ld.param.u32 %r6, [mask];\n"
    "ld.param.u32 %r7, [or];\n"
    "ld.param.u64 %d3, [out];\n"
    "cvta.to.global.u64 %d1, %d1;\n"
    "cvta.to.global.u64 %d3, %d3;\n"
    "mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\n"
    "mov.u32 %r4, %nctaid.x;\n"
    "mul.wide.u32 %d4, %r1, %r2;\n"
    "cvt.u64.u32 %d5, %r3;\n"
    "add.u64 %d4, %d4, %d5;\n"
    "mul.wide.u32 %d5, %r4, %r2;\n"
    "mov.u64 %d7, 0;\n"
    "NEXT:\n"
    "setp.ge.u64 %p1, %d4, %d2;\n"
    "@%p1 bra DONE;\n"
    "cvt.u32.u64 %r8, %d4;\n"
    "add.u32 %r8, %r8, %r5;\n"
    "mul.lo.u32 %r8, %r8, 0x9E3779B1;\n"
    "shr.u32 %r9, %r8, 15;\n"
    "xor.b32 %r8, %r8, %r9;\n"
    "and.b32 %r8, %r8, %r6;\n"
    "or.b32 %r8, %r8, %r7;\n"
    "shl.b64 %d6, %d4, 2;\n"
    "add.u64 %d6, %d1, %d6;\n"
    "ld.global.u32 %r10, [%d6];\n"
    "add.u64 %d4, %d4, %d5;\n"
    "setp.eq.u32 %p2, %r10, %r8;\n"
    "@%p2 bra NEXT;\n"
    "add.u64 %d7, %d7, 1;\n"
    "bra NEXT;\n"
    "DONE:\n"
    "setp.eq.u64 %p1, %d7, 0;\n"
    "@%p1 bra OUT;\n"
    "red.global.add.u64 [%d3], %d7;\n"
    "OUT:\n"
    "ret;\n"
    "}\n"
    ".visible .entry differ(.param .u64 a, .param .u64 b, .param .u64 n, .param .u64 out)\n"
    "{\n"
    ".reg .pred %p<3>;\n"
    ".reg .b32 %r<12>;\n"
    ".reg .b64 %d<12>;\n"
    "ld.param.u64 %d1, [a];\n"
    "ld.param.u64 %d8, [b];\n"
    "ld.param.u64 %d2, [n];\n"
    "ld.param.u64 %d3, [out];\n"
    "cvta.to.global.u64 %d1, %d1;\n"
    "cvta.to.global.u64 %d8, %d8;\n"
    "cvta.to.global.u64 %d3, %d3;\n"
    "mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\n"
    "mov.u32 %r4, %nctaid.x;\n"
    "mul.wide.u32 %d4, %r1, %r2;\n"
    "cvt.u64.u32 %d5, %r3;\n"
    "add.u64 %d4, %d4, %d5;\n"
    "mul.wide.u32 %d5, %r4, %r2;\n"
    "mov.u64 %d7, 0;\n"
    "NEXT:\n"
    "setp.ge.u64 %p1, %d4, %d2;\n"
    "@%p1 bra DONE;\n"
    "shl.b64 %d6, %d4, 2;\n"
    "add.u64 %d9, %d1, %d6;\n"
    "add.u64 %d10, %d8, %d6;\n"
    "ld.global.u32 %r5, [%d9];\n"
    "ld.global.u32 %r6, [%d10];\n"
    "add.u64 %d4, %d4, %d5;\n"
    "setp.eq.u32 %p2, %r5, %r6;\n"
    "@%p2 bra NEXT;\n"
    "add.u64 %d7, %d7, 1;\n"
    "bra NEXT;\n"
    "DONE:\n"
    "setp.eq.u64 %p1, %d7, 0;\n"
    "@%p1 bra OUT;\n"
    "red.global.add.u64 [%d3], %d7;\n"
    "OUT:\n"
    "ret;\n"
    "}\n";

static const char kernels_numbers[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry add(.param .u64 to, .param .u64 from, .param .u64 n)\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b32 %r<6>;\n"
    ".reg .f32 %f<4>;\n"
    ".reg .b64 %d<12>;\n"
    "ld.param.u64 %d1, [to];\n"
    "ld.param.u64 %d8, [from];\n"
    "ld.param.u64 %d2, [n];\n"
    "cvta.to.global.u64 %d1, %d1;\n"
    "cvta.to.global.u64 %d8, %d8;\n"
    "mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\n"
    "mov.u32 %r4, %nctaid.x;\n"
    "mul.wide.u32 %d4, %r1, %r2;\n"
    "cvt.u64.u32 %d5, %r3;\n"
    "add.u64 %d4, %d4, %d5;\n"
    "mul.wide.u32 %d5, %r4, %r2;\n"
    "NEXT:\n"
    "setp.ge.u64 %p1, %d4, %d2;\n"
    "@%p1 bra DONE;\n"
    "shl.b64 %d6, %d4, 2;\n"
    "add.u64 %d9, %d1, %d6;\n"
    "add.u64 %d10, %d8, %d6;\n"
    "ld.global.f32 %f1, [%d9];\n"
    "ld.global.f32 %f2, [%d10];\n"
    "add.f32 %f1, %f1, %f2;\n"
    "st.global.f32 [%d9], %f1;\n"
    "add.u64 %d4, %d4, %d5;\n"
    "bra NEXT;\n"
    "DONE:\n"
    "ret;\n"
    "}\n"
    ".visible .entry product(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b32 %r<12>;\n"
    ".reg .f32 %f<4>;\n"
    ".reg .b64 %d<12>;\n"
    "ld.param.u64 %d1, [a];\n"
    "ld.param.u64 %d2, [b];\n"
    "ld.param.u64 %d3, [c];\n"
    "ld.param.u32 %r5, [n];\n"
    "cvta.to.global.u64 %d1, %d1;\n"
    "cvta.to.global.u64 %d2, %d2;\n"
    "cvta.to.global.u64 %d3, %d3;\n"
    "mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r6, %r1, %r2, %r3;\n"
    "mov.u32 %r7, %ctaid.y;\n"
    "setp.ge.u32 %p1, %r6, %r5;\n"
    "@%p1 bra DONE;\n"
    "mul.wide.u32 %d4, %r7, %r5;\n"
    "shl.b64 %d4, %d4, 2;\n"
    "add.u64 %d4, %d1, %d4;\n"
    "mul.wide.u32 %d5, %r6, 4;\n"
    "add.u64 %d5, %d2, %d5;\n"
    "mul.wide.u32 %d6, %r5, 4;\n"
    "mov.f32 %f1, 0f00000000;\n"
    "mov.u32 %r8, 0;\n"
    "NEXT:\n"
    "ld.global.f32 %f2, [%d4];\n"
    "ld.global.f32 %f3, [%d5];\n"
    "fma.rn.f32 %f1, %f2, %f3, %f1;\n"
    "add.u64 %d4, %d4, 4;\n"
    "add.u64 %d5, %d5, %d6;\n"
    "add.u32 %r8, %r8, 1;\n"
    "setp.lt.u32 %p1, %r8, %r5;\n"
    "@%p1 bra NEXT;\n"
    "mul.wide.u32 %d7, %r7, %r5;\n"
    "cvt.u64.u32 %d8, %r6;\n"
    "add.u64 %d7, %d7, %d8;\n"
    "shl.b64 %d7, %d7, 2;\n"
    "add.u64 %d7, %d3, %d7;\n"
    "st.global.f32 [%d7], %f1;\n"
    "DONE:\n"
    "ret;\n"
    "}\n";

int st_cuda_test_result(cu_test *t, const char *what, int result, st_err *err)
{
    if (result == CU_OK)
        return 0;
    t->result = result;
    return st_cuda_fail(t->lib, what, result, err);
}

int st_cuda_test_open(const cu_lib *lib, int at, cu_test *ret, st_err *err)
{
    cu_test t = {.lib = lib};
    const struct {
        const char *text, *name;
        cu_function *slot;
    } rows[] = {{kernels_words, "put", &t.put},
                {kernels_words, "check", &t.check},
                {kernels_words, "differ", &t.differ},
                {kernels_numbers, "add", &t.add},
                {kernels_numbers, "product", &t.product}};
    cu_module module = NULL;
    int r = st_cuda_test_result(&t, "no such device", CU(lib, device, &t.device, at), err);

    if (r == 0)
        r = st_cuda_test_result(&t, "no context on the device",
                                CU(lib, retain, &t.context, t.device), err);
    if (r < 0) {
        ret->result = t.result;
        return r;
    }
    r = st_cuda_test_use(&t, err);
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(rows); i++) {
        if (i == 0 || rows[i].text != rows[i - 1].text)
            r = st_cuda_test_result(&t, "the kernels are refused",
                                    CU(lib, load, &module, rows[i].text), err);
        if (r == 0)
            r = st_cuda_test_result(&t, "a kernel is not found",
                                    CU(lib, function, rows[i].slot, module, rows[i].name), err);
    }
    if (r == 0)
        r = st_cuda_test_result(&t, "no memory for a counter",
                                CU(lib, alloc, &t.counter, sizeof(uint64_t)), err);
    *ret = t;
    if (r < 0)
        st_cuda_test_close(ret);
    return r;
}

void st_cuda_test_close(cu_test *t)
{
    if (t->counter)
        (void)CU(t->lib, free, t->counter);
    t->counter = 0;
    if (t->context)
        (void)CU(t->lib, release, t->device);
    t->context = NULL;
}

int st_cuda_test_use(cu_test *t, st_err *err)
{
    return st_cuda_test_result(t, "no context on the device", CU(t->lib, current, t->context), err);
}

int st_cuda_test_wait(cu_test *t, st_err *err)
{
    int r = t->lib->sync ? t->lib->sync() : CU_MISSING;

    return st_cuda_test_result(t, "the device did not do what it was told", r, err);
}

static int launch(cu_test *t, cu_function f, unsigned width, unsigned height, void **args,
                  st_err *err)
{
    return st_cuda_test_result(
        t, "a kernel does not start",
        CU(t->lib, launch, f, width, height, 1, THREADS, 1, 1, 0, NULL, args, NULL), err);
}

int st_cuda_put(cu_test *t, cu_ptr at, uint64_t words, cu_pattern p, st_err *err)
{
    void *args[] = {&at, &words, &p.seed, &p.mask, &p.bits};

    return launch(t, t->put, BLOCKS, 1, args, err);
}

int st_cuda_check(cu_test *t, cu_ptr at, uint64_t words, cu_pattern p, st_err *err)
{
    void *args[] = {&at, &words, &p.seed, &p.mask, &p.bits, &t->counter};

    return launch(t, t->check, BLOCKS, 1, args, err);
}

int st_cuda_differ(cu_test *t, cu_ptr a, cu_ptr b, uint64_t words, st_err *err)
{
    void *args[] = {&a, &b, &words, &t->counter};

    return launch(t, t->differ, BLOCKS, 1, args, err);
}

int st_cuda_add(cu_test *t, cu_ptr to, cu_ptr from, uint64_t floats, st_err *err)
{
    void *args[] = {&to, &from, &floats};

    return launch(t, t->add, BLOCKS, 1, args, err);
}

int st_cuda_product(cu_test *t, cu_ptr a, cu_ptr b, cu_ptr c, uint32_t n, st_err *err)
{
    void *args[] = {&a, &b, &c, &n};

    return launch(t, t->product, (n + THREADS - 1) / THREADS, n, args, err);
}

int st_cuda_count_begin(cu_test *t, st_err *err)
{
    return st_cuda_test_result(t, "a counter cannot be cleared", CU(t->lib, fill, t->counter, 0, 2),
                               err);
}

int st_cuda_count_end(cu_test *t, uint64_t *ret, st_err *err)
{
    int r = st_cuda_test_wait(t, err);

    return r < 0 ? r
                 : st_cuda_test_result(t, "a counter cannot be read",
                                       CU(t->lib, read, ret, t->counter, sizeof *ret), err);
}
