/*
 * `stint-cuda measure`: the tests of all devices that are shown. Each device is tested by a process of its own, which is given
 * up when it does not come to an end: a device that hangs is a fault of that device, and all others are tested all the same.
 *
 * 1 This process has no context and never calls the driver: what it says does not depend on what a device does.
 * 2 A failure is the device's only if the driver's result says so (st_cuda_blames_device); any other is the test's own.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "gpu/cuda_test.h"

#define HANG_MS   15000 /* for copies and memory of one device */
#define LINKS_MS  45000
#define LONG_S    300
#define BURN_S    6600
#define BURN_TURN 20    /* seconds of products between two looks at memory */
#define FIRST_MS  30000 /* for the driver to come up */

/* What a process says in the end, in one write. */
typedef struct part {
    bool done, blames; /* it came to its end; it failed, and that is the device's */
    bool blas;
    int devices, version;
    st_test_figure one;
    st_test_figures all; /* of links */
    char error[160];
} part;

typedef struct child {
    pid_t pid;
    int fd;
    size_t got;
    bool over;
} child;

typedef struct job {
    const st_cuda_measure *how;
    int device, devices;
    int64_t seconds; /* of products */
} job;

typedef void work_fn(const job *j, cu_lib *lib, part *p);

/* ---- in a process of its own ----------------------------------------------------------------- */

static void failed(part *p, int result, const st_err *err)
{
    p->blames = st_cuda_blames_device(result);
    snprintf(p->error, sizeof p->error, "%.150s", err->msg);
}

static void count(const job *j, cu_lib *lib, part *p)
{
    st_err err = {0};
    int r = CU(lib, count, &p->devices);

    (void)j;
    (void)CU(lib, version, &p->version);
    if (r != CU_OK) {
        st_cuda_fail(lib, "devices cannot be counted", r, &err);
        failed(p, CU_MISSING, &err);
    }
}

static void with_device(const job *j, cu_lib *lib, part *p,
                        int (*fn)(const job *j, cu_test *t, part *p, st_err *err))
{
    cu_test t = {.lib = lib};
    st_err err = {0};
    int r = st_cuda_test_open(lib, j->device, &t, &err);

    if (r == 0)
        r = fn(j, &t, p, &err);
    p->one.v[ST_MEASURE_WORKS] = r == 0;
    if (r < 0)
        failed(p, t.result, &err);
    st_cuda_test_close(&t);
}

static int test_memory(const job *j, cu_test *t, part *p, st_err *err)
{
    (void)j;
    return st_cuda_measure_memory(t, &p->one, err);
}

static void memory(const job *j, cu_lib *lib, part *p)
{
    with_device(j, lib, p, test_memory);
}

/* Of several turns the slowest counts, and all that was wrong. */
static void add_turn(st_test_figure *all, const st_test_figure *turn)
{
    int64_t *speed = &all->v[ST_MEASURE_PRODUCT_SPEED], now = turn->v[ST_MEASURE_PRODUCT_SPEED];

    *speed = *speed == ST_UNMEASURED ? now : ST_MIN(*speed, now);
    all->v[ST_MEASURE_PRODUCT] =
        ST_MAX(all->v[ST_MEASURE_PRODUCT], 0) + turn->v[ST_MEASURE_PRODUCT];
}

static int test_products(const job *j, cu_test *t, part *p, st_err *err)
{
    bool burn = j->how->depth == ST_DEPTH_BURN;
    int64_t left = j->seconds;
    int r = 0;

    while (r == 0 && left > 0) {
        st_test_figure turn = p->one;
        int64_t now = burn ? ST_MIN(left, BURN_TURN) : left;

        r = st_cuda_measure_products(t, now * 1000, &turn, &p->blas, err);
        if (r == 0)
            add_turn(&p->one, &turn);
        if (r == 0 && burn)
            r = st_cuda_measure_memory(t, &p->one, err);
        left -= now;
    }
    return r;
}

static void products(const job *j, cu_lib *lib, part *p)
{
    with_device(j, lib, p, test_products);
}

static void links(const job *j, cu_lib *lib, part *p)
{
    cu_test t[ST_DEVS_MAX] = {0};
    st_err err = {0};
    int n = 0, r = 0;

    for (; r == 0 && n < j->devices; n++)
        r = st_cuda_test_open(lib, n, &t[n], &err);
    if (r == 0)
        r = st_cuda_measure_links(t, n, &p->all, &err);
    for (int i = 0; r < 0 && i < n; i++)
        if (t[i].result != CU_OK) {
            p->all.gpu[i].v[ST_MEASURE_WORKS] = !st_cuda_blames_device(t[i].result);
            failed(p, t[i].result, &err);
        }
    if (r < 0 && !p->error[0])
        failed(p, CU_MISSING, &err);
    for (int i = 0; i < n; i++)
        st_cuda_test_close(&t[i]);
}

static _Noreturn void be(const job *j, work_fn *fn, int out)
{
    part *p = calloc(1, sizeof *p);
    const char *at = (const char *)p;
    st_err err = {0};
    cu_lib lib;

    if (!p)
        _exit(1);
    p->all.n = 1;
    st_test_figures_none(&p->all);
    p->one = p->all.gpu[0];
    if (st_cuda_load(j->how->library, &lib, &err) < 0)
        failed(p, CU_MISSING, &err);
    else
        fn(j, &lib, p);
    p->done = true;
    for (size_t left = sizeof *p; left > 0;) {
        ssize_t n = write(out, at, left);

        if (n < 0 && errno != EINTR)
            _exit(1);
        at += ST_MAX(n, 0);
        left -= (size_t)ST_MAX(n, 0);
    }
    _exit(0);
}

/* ---- around them ------------------------------------------------------------------------------ */

static int start(const job *j, work_fn *fn, child *ret, st_err *err)
{
    int fds[2];

    if (pipe(fds) != 0)
        return st_fail(err, ST_EIO, "a test cannot be started: %s", strerror(errno));
    fflush(stdout);
    ret->pid = fork();
    if (ret->pid == 0) {
        close(fds[0]);
        be(j, fn, fds[1]);
    }
    close(fds[1]);
    ret->fd = fds[0];
    if (ret->pid > 0)
        return 0;
    close(fds[0]);
    return st_fail(err, ST_EIO, "a test cannot be started: %s", strerror(errno));
}

static void take(child *c, part *p)
{
    ssize_t n = read(c->fd, (char *)p + c->got, sizeof *p - c->got);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    c->over = n <= 0;
    c->got += (size_t)ST_MAX(n, 0);
}

/* All of them, or those that come to an end in time. */
static void wait_for(child *c, part *parts, int n, int64_t ms)
{
    int64_t until = st_cuda_now_us() / 1000 + ms;

    for (;;) {
        struct pollfd fds[ST_DEVS_MAX];
        int64_t left = until - st_cuda_now_us() / 1000;
        bool any = false;

        for (int i = 0; i < n; i++) {
            fds[i] = (struct pollfd){.fd = c[i].over ? -1 : c[i].fd, .events = POLLIN};
            any |= !c[i].over;
        }
        if (!any || left <= 0)
            break;
        if (poll(fds, (nfds_t)n, (int)ST_MIN(left, 1000)) > 0)
            for (int i = 0; i < n; i++)
                if (fds[i].revents)
                    take(&c[i], &parts[i]);
    }
    for (int i = 0; i < n; i++) {
        int status;

        kill(c[i].pid, SIGKILL);
        /* One that hangs in the kernel is not waited for. */
        while (waitpid(c[i].pid, &status, c[i].over ? 0 : WNOHANG) < 0 && errno == EINTR)
            ;
        close(c[i].fd);
        if (c[i].got == sizeof *parts && parts[i].done)
            continue;
        parts[i].done = false;
        parts[i].blames = true;
        snprintf(parts[i].error, sizeof parts[i].error,
                 c[i].over ? "the test of it ended without a word"
                           : "what it was told to do came to no end");
    }
}

/* The figures of a part that were measured. */
static void add_part(st_test_figure *all, const part *p)
{
    const bool works = p->done && !p->error[0];

    for (int k = 0; p->done && k < ST_MEASURE_COUNT; k++)
        if (k != ST_MEASURE_WORKS && p->one.v[k] != ST_UNMEASURED)
            all->v[k] = p->one.v[k];
    if (all->v[ST_MEASURE_WORKS] != 0 && (works || p->blames))
        all->v[ST_MEASURE_WORKS] = works;
    if (!works && !all->error[0])
        snprintf(all->error, sizeof all->error, "%s", p->error);
}

/* -ST_EDOWN: it failed, and for no device's sake. */
static int sort(const part *p, int n, int first, st_test_figures *ret, st_err *err)
{
    for (int i = 0; i < n; i++)
        if (p[i].error[0] && !p[i].blames)
            return st_fail(err, ST_EDOWN, "GPU %d: %s", first + i, p[i].error);
    for (int i = 0; i < n; i++)
        add_part(&ret->gpu[first + i], &p[i]);
    return 0;
}

static int run(job *j, work_fn *fn, int first, int n, int64_t ms, part *parts, st_err *err)
{
    child c[ST_DEVS_MAX] = {0};
    int started = 0, r = 0;

    for (; r == 0 && started < n; started += r == 0) {
        j->device = first + started;
        memset(&parts[started], 0, sizeof *parts);
        r = start(j, fn, &c[started], err);
    }
    wait_for(c, parts, started, r == 0 ? ms : 0);
    return r;
}

static int all_memory(job *j, part *parts, st_test_figures *ret, st_err *err)
{
    int64_t ms = j->how->hang_ms > 0 ? j->how->hang_ms : HANG_MS;
    int r = 0;

    for (int i = 0; r == 0 && i < ret->n; i++) { /* one after the other: they share buses */
        r = run(j, memory, i, 1, ms, parts, err);
        if (r == 0)
            r = sort(parts, 1, i, ret, err);
    }
    return r;
}

static int all_products(job *j, part *parts, st_test_figures *ret, st_err *err)
{
    int64_t hang = j->how->hang_ms > 0 ? j->how->hang_ms : 2 * HANG_MS, usual;
    int r;

    usual = j->how->depth == ST_DEPTH_BURN ? BURN_S : LONG_S;
    j->seconds = j->how->seconds > 0 ? j->how->seconds : usual;
    r = run(j, products, 0, ret->n, j->seconds * 1250 + hang, parts, err); /* together: for heat */
    ret->blas = r == 0;
    for (int i = 0; r == 0 && i < ret->n; i++)
        ret->blas = ret->blas && (parts[i].blas || !parts[i].done);
    return r == 0 ? sort(parts, ret->n, 0, ret, err) : r;
}

static bool all_work(const st_test_figures *figures)
{
    for (int i = 0; i < figures->n; i++)
        if (figures->gpu[i].v[ST_MEASURE_WORKS] != 1)
            return false;
    return true;
}

static int all_links(job *j, part *p, st_test_figures *ret, st_err *err)
{
    int r = run(j, links, 0, 1, j->how->hang_ms > 0 ? j->how->hang_ms : LINKS_MS, p, err);

    if (r < 0)
        return r;
    if (p->done && p->error[0] && !p->blames)
        return st_fail(err, ST_EDOWN, "%s", p->error);
    ret->nccl = p->done && p->all.nccl;
    if (!p->done || p->error[0]) { /* which it is, nobody knows: the sum of all is not there */
        ret->all_reduce = 0;
        ret->sums = ST_UNMEASURED;
    } else {
        ret->all_reduce = p->all.all_reduce;
        ret->sums = p->all.sums;
    }
    for (int i = 0; p->done && i < ret->n; i++) {
        if (p->all.gpu[i].v[ST_MEASURE_PEER] != ST_UNMEASURED)
            ret->gpu[i].v[ST_MEASURE_PEER] = p->all.gpu[i].v[ST_MEASURE_PEER];
        if (p->all.gpu[i].v[ST_MEASURE_WORKS] == 0)
            ret->gpu[i].v[ST_MEASURE_WORKS] = 0;
    }
    return 0;
}

int st_cuda_measure_all(const st_cuda_measure *how, st_test_figures *ret, char with[128],
                        st_err *err)
{
    part *parts = calloc(ST_DEVS_MAX, sizeof *parts);
    job j = {.how = how};
    int r, version;

    if (!parts)
        return st_fail(err, ST_EIO, "no memory");
    st_test_figures_none(ret);
    r = run(&j, count, 0, 1, how->hang_ms > 0 ? how->hang_ms : FIRST_MS, parts, err);
    if (r == 0 && parts[0].error[0])
        r = st_fail(err, ST_EDOWN, "%s", parts[0].error);
    if (r == 0 && parts[0].devices < 1)
        r = st_fail(err, ST_ENOENT, "CUDA_VISIBLE_DEVICES shows no device");
    version = parts[0].version;
    ret->n = j.devices = ST_MIN(parts[0].devices, ST_DEVS_MAX);
    if (r == 0)
        r = all_memory(&j, parts, ret, err);
    if (r == 0 && how->depth > ST_DEPTH_SHORT)
        r = all_products(&j, parts, ret, err);
    if (r == 0 && ret->n > 1 && all_work(ret))
        r = all_links(&j, parts, ret, err);
    snprintf(with, 128, "cuda %d.%d%s%s", version / 1000, version % 1000 / 10,
             ret->blas ? ", cublas" : "", ret->nccl ? ", nccl" : "");
    free(parts);
    return r;
}
