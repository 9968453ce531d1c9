/*
 * Copies between the devices of a node, and sums over all of them (gpu/cuda_test.h): by NCCL where it is installed, and by a
 * ring of our own otherwise. Every device begins with its number, so that everybody knows the sum.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/macros.h"
#include "gpu/cuda_test.h"

#define MIB       (UINT64_C(1) << 20)
#define COPY_MOST (512 * MIB)
#define SUM_MOST  (4096 * MIB)
#define REPEATS   5

enum { NCCL_FLOAT = 7, NCCL_SUM = 0 };

typedef struct nccl {
    void *library;
    int (*init)(void **, int, const int *);
    int (*reduce)(const void *, void *, size_t, int, int, void *, void *);
    int (*begin)(void);
    int (*end)(void);
    int (*destroy)(void *);
    void *comm[ST_DEVS_MAX];
} nccl;

typedef struct links {
    cu_test *t;
    int n;
    size_t bytes; /* of what is summed */
    cu_ptr data[ST_DEVS_MAX], part[ST_DEVS_MAX];
    nccl nccl;
    bool by_nccl;
} links;

/* ---- copies --------------------------------------------------------------------------------- */

static int copy_between(cu_test *from, cu_test *to, cu_ptr a, cu_ptr b, size_t n, int64_t *ret,
                        st_err *err)
{
    int64_t since = 0;
    int r = st_cuda_test_use(from, err);

    for (int i = -1; r == 0 && i < REPEATS; i++) {
        r = i == 0 ? st_cuda_test_wait(from, err) : 0;
        since = i == 0 ? st_cuda_now_us() : since;
        if (r == 0)
            r = st_cuda_test_result(
                from, "a copy to another device fails",
                CU(from->lib, peer_copy, b, to->context, a, from->context, n, NULL), err);
    }
    if (r == 0)
        r = st_cuda_test_wait(from, err);
    if (r == 0)
        *ret = (int64_t)(n * REPEATS / (uint64_t)ST_MAX(st_cuda_now_us() - since, 1));
    return r;
}

/* Each to each; of a device the slowest counts. */
static int copies(links *l, st_test_figures *ret, st_err *err)
{
    size_t n = ST_MIN(COPY_MOST, l->bytes);
    int r = 0;

    for (int i = 0; r == 0 && i < l->n; i++) {
        for (int k = 0; r == 0 && k < l->n; k++) {
            int64_t *least = &ret->gpu[i].v[ST_MEASURE_PEER], speed = 0;

            if (i == k)
                continue;
            r = copy_between(&l->t[i], &l->t[k], l->data[i], l->part[k], n, &speed, err);
            if (r == 0 && (*least == ST_UNMEASURED || speed < *least))
                *least = speed;
        }
    }
    return r;
}

/* ---- sums ----------------------------------------------------------------------------------- */

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static int each_wait(links *l, st_err *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < l->n; i++) {
        r = st_cuda_test_use(&l->t[i], err);
        if (r == 0)
            r = st_cuda_test_wait(&l->t[i], err);
    }
    return r;
}

static int each_begin(links *l, st_err *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < l->n; i++) {
        cu_pattern own = {.bits = bits_of((float)(i + 1))};

        r = st_cuda_test_use(&l->t[i], err);
        if (r == 0)
            r = st_cuda_put(&l->t[i], l->data[i], l->bytes / 4, own, err);
    }
    return r == 0 ? each_wait(l, err) : r;
}

static void *symbol(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

static bool open_nccl(links *l)
{
    nccl *c = &l->nccl;
    const struct {
        const char *name;
        void *slot;
    } rows[] = {{"ncclCommInitAll", &c->init},
                {"ncclAllReduce", &c->reduce},
                {"ncclGroupStart", &c->begin},
                {"ncclGroupEnd", &c->end},
                {"ncclCommDestroy", &c->destroy}};
    int devices[ST_DEVS_MAX];

    c->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        void *p = symbol(c->library, rows[i].name);

        if (!p)
            return false;
        memcpy(rows[i].slot, &p, sizeof p);
    }
    for (int i = 0; i < l->n; i++)
        devices[i] = l->t[i].device;
    return c->init(c->comm, l->n, devices) == 0;
}

static void close_nccl(links *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->nccl.comm[i])
            (void)l->nccl.destroy(l->nccl.comm[i]);
    if (l->nccl.library)
        dlclose(l->nccl.library);
}

static int sum_nccl(links *l, st_err *err)
{
    int bad = l->nccl.begin();

    for (int i = 0; i < l->n; i++) {
        void *data;

        memcpy(&data, &l->data[i], sizeof data);
        bad |=
            l->nccl.reduce(data, data, l->bytes / 4, NCCL_FLOAT, NCCL_SUM, l->nccl.comm[i], NULL);
    }
    bad |= l->nccl.end();
    return bad ? st_fail(err, ST_EIO, "NCCL fails with %d", bad) : each_wait(l, err);
}

/* One step of a ring: each device hands a part to the next, which adds it, or takes it as it is. */
static int step(links *l, int at, bool add, st_err *err)
{
    size_t part = l->bytes / 4 / (size_t)l->n * 4;
    int r = 0;

    for (int i = 0; r == 0 && i < l->n; i++) {
        int next = (i + 1) % l->n, which = ((i - at) % l->n + l->n + !add) % l->n;
        cu_ptr from = l->data[i] + (cu_ptr)which * part;
        cu_ptr to = add ? l->part[next] : l->data[next] + (cu_ptr)which * part;

        r = st_cuda_test_use(&l->t[i], err);
        if (r == 0)
            r = st_cuda_test_result(
                &l->t[i], "a copy to another device fails",
                CU(l->t->lib, peer_copy, to, l->t[next].context, from, l->t[i].context, part, NULL),
                err);
    }
    if (r == 0)
        r = each_wait(l, err);
    for (int i = 0; add && r == 0 && i < l->n; i++) {
        int which = ((i - 1 - at) % l->n + l->n) % l->n;

        r = st_cuda_test_use(&l->t[i], err);
        if (r == 0)
            r = st_cuda_add(&l->t[i], l->data[i] + (cu_ptr)which * part, l->part[i], part / 4, err);
    }
    return r == 0 ? each_wait(l, err) : r;
}

static int sum_ring(links *l, st_err *err)
{
    int r = 0;

    for (int at = 0; r == 0 && at < l->n - 1; at++)
        r = step(l, at, true, err);
    for (int at = 0; r == 0 && at < l->n - 1; at++)
        r = step(l, at, false, err);
    return r;
}

static int check_sums(links *l, int64_t *ret, st_err *err)
{
    size_t words = l->by_nccl ? l->bytes / 4 : l->bytes / 4 / (size_t)l->n * (size_t)l->n;
    cu_pattern sum = {.bits = bits_of((float)(l->n * (l->n + 1) / 2))};
    uint64_t all = 0;
    int r = 0;

    for (int i = 0; r == 0 && i < l->n; i++) {
        uint64_t bad = 0;

        r = st_cuda_test_use(&l->t[i], err);
        if (r == 0)
            r = st_cuda_count_begin(&l->t[i], err);
        if (r == 0)
            r = st_cuda_check(&l->t[i], l->data[i], words, sum, err);
        if (r == 0)
            r = st_cuda_count_end(&l->t[i], &bad, err);
        all += bad;
    }
    if (r == 0)
        *ret = (int64_t)all;
    return r;
}

/* Once for the result, and again for the time. */
static int sums(links *l, st_test_figures *ret, st_err *err)
{
    int (*sum)(links *, st_err *);
    int64_t since;
    int r = each_begin(l, err);

    ret->nccl = l->by_nccl = open_nccl(l);
    sum = l->by_nccl ? sum_nccl : sum_ring;
    if (r == 0)
        r = sum(l, err);
    if (r == 0)
        r = check_sums(l, &ret->sums, err);
    since = st_cuda_now_us();
    for (int i = 0; r == 0 && i < REPEATS; i++)
        r = sum(l, err);
    if (r == 0) { /* what each link carries, whatever the number of devices */
        uint64_t carried = 2 * (uint64_t)(l->n - 1) * l->bytes / (uint64_t)l->n * REPEATS;

        ret->all_reduce = (int64_t)(carried / (uint64_t)ST_MAX(st_cuda_now_us() - since, 1));
    }
    close_nccl(l);
    return r;
}

/* ---- both ----------------------------------------------------------------------------------- */

static int prepare(links *l, st_err *err)
{
    size_t least = SUM_MOST;
    int r = 0;

    for (int i = 0; r == 0 && i < l->n; i++) {
        size_t left = 0, total = 0;

        r = st_cuda_test_use(&l->t[i], err);
        if (r == 0)
            r = st_cuda_test_result(&l->t[i], "how much memory there is cannot be told",
                                    CU(l->t->lib, memory, &left, &total), err);
        least = ST_MIN(least, left / 8);
        for (int k = 0; r == 0 && k < l->n; k++) {
            int can = 0;

            if (k != i && CU(l->t->lib, peer_can, &can, l->t[i].device, l->t[k].device) == CU_OK &&
                can)
                (void)CU(l->t->lib, peer_open, l->t[k].context, 0);
        }
    }
    l->bytes = least / 4096 * 4096;
    for (int i = 0; r == 0 && i < l->n; i++) {
        r = st_cuda_test_use(&l->t[i], err);
        if (r == 0)
            r = st_cuda_test_result(&l->t[i], "no memory for links",
                                    CU(l->t->lib, alloc, &l->data[i], l->bytes), err);
        if (r == 0)
            r = st_cuda_test_result(&l->t[i], "no memory for links",
                                    CU(l->t->lib, alloc, &l->part[i], l->bytes), err);
    }
    return r;
}

int st_cuda_measure_links(cu_test *t, int n, st_test_figures *ret, st_err *err)
{
    links l = {.t = t, .n = n};
    int r = prepare(&l, err);

    if (r == 0)
        r = copies(&l, ret, err);
    if (r == 0)
        r = sums(&l, ret, err);
    for (int i = 0; i < n; i++) {
        if (st_cuda_test_use(&t[i], NULL) < 0)
            continue;
        if (l.data[i])
            (void)CU(t->lib, free, l.data[i]);
        if (l.part[i])
            (void)CU(t->lib, free, l.part[i]);
    }
    return r;
}
