/*
 * The files that the agent made for this task (guard/abi.h): mapped when the program first asks for the driver. What
 * is missing or not as it should be is said on stderr, and the driver then refuses everything: a task without its
 * limits is never let run.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guard/guard.h"

#define READY  1
#define BROKEN 2

/* NULL where it is not there, too short, or of another version. */
static void *map_file(const char *path, size_t size, uint32_t version, bool write)
{
    int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    void *at = MAP_FAILED;

    /* Beyond the end of a file a page kills with SIGBUS: look first. */
    if (fd >= 0 && lseek(fd, 0, SEEK_END) >= (off_t)size)
        at = mmap(NULL, size, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return NULL;
    if (((const uint32_t *)at)[0] != GUARD_MAGIC || ((const uint32_t *)at)[1] != version) {
        munmap(at, size);
        return NULL;
    }
    return at;
}

static bool fail(const char *path)
{
    guard_say("GPU limits of this task are missing, so it gets no GPU: ", path);
    atomic_store(&guard.ready, BROKEN);
    return false;
}

/* Outside of a task, for tests, a variable says where they are; inside it has no say. */
static bool find_grant(void)
{
    char path[sizeof guard.dir + 16];
    const char *dir = GUARD_DIR;

    if (access(GUARD_DIR "/grant", F_OK) != 0 && getenv("STINT_GUARD_DIR"))
        dir = getenv("STINT_GUARD_DIR");
    snprintf(guard.dir, sizeof guard.dir, "%s", dir);
    snprintf(path, sizeof path, "%s/grant", guard.dir);
    guard.grant = map_file(path, sizeof(guard_grant), GUARD_VERSION, false);
    if (!guard.grant || guard.grant->ndev > GUARD_DEVICES)
        return fail(path);
    for (uint32_t i = 0; i < guard.grant->ndev; i++) {
        guard.dev[i].limit = &guard.grant->dev[i];
        guard.dev[i].me = -1;
    }
    return true;
}

bool guard_begin(void)
{
    uint32_t now = atomic_load_explicit(&guard.ready, memory_order_acquire);

    if (now)
        return now == READY;
    guard_lock(&guard.lock);
    if (!atomic_load(&guard.ready) && find_grant()) {
        pthread_atfork(NULL, NULL, guard_after_fork);
        atomic_store(&guard.ready, READY);
    }
    guard_unlock(&guard.lock);
    return atomic_load(&guard.ready) == READY;
}

/* ---- devices -------------------------------------------------------------------------------------- */

static int granted(const cu_uuid *uuid, int ordinal)
{
    static const uint8_t any[GUARD_UUID];

    for (uint32_t i = 0; i < guard.grant->ndev; i++) {
        const guard_limit *l = &guard.grant->dev[i];

        if (memcmp(l->uuid, any, sizeof any) == 0 ? (int)i == ordinal
                                                  : memcmp(l->uuid, uuid, sizeof *uuid) == 0)
            return (int)i;
    }
    return -1;
}

/* CUDA numbers what CUDA_VISIBLE_DEVICES shows, which the program may have changed: go by UUID. */
static void number_devices(void)
{
    typedef CUresult count_fn(int *);
    typedef CUresult uuid_fn(cu_uuid *, CUdevice);
    count_fn *count = GUARD_REAL(count_fn *, cuDeviceGetCount);
    uuid_fn *uuid = GUARD_REAL(uuid_fn *, cuDeviceGetUuid);
    int n = 0;

    if (!count || count(&n) != CUDA_SUCCESS)
        return;
    guard_lock(&guard.lock);
    for (int i = guard.nordinal; i < n && i < 64; i++) {
        cu_uuid u = {{0}};

        if (uuid)
            uuid(&u, i);
        guard.ordinal[i] = granted(&u, i);
    }
    guard.nordinal = n < 64 ? n : 64;
    guard_unlock(&guard.lock);
}

guard_device *guard_device_of(CUdevice device)
{
    guard_device *d;

    if (!guard_begin() || device < 0)
        return NULL;
    if (device >= guard.nordinal)
        number_devices();
    if (device >= guard.nordinal || guard.ordinal[device] < 0)
        return NULL;
    d = &guard.dev[guard.ordinal[device]];
    return guard_map(d) ? d : NULL;
}

guard_device *guard_device_now(void)
{
    typedef CUresult fn(CUdevice *);
    CUdevice device = 0;
    fn *get = GUARD_REAL(fn *, cuCtxGetDevice);

    /* One device, granted and known: nothing to ask. */
    if (guard.nordinal == 1 && guard.ordinal[0] == 0 && guard.dev[0].mapped && guard.dev[0].me >= 0)
        return &guard.dev[0];
    if (!guard_begin() || !get || get(&device) != CUDA_SUCCESS)
        return NULL;
    return guard_device_of(device);
}

CUresult guard_no_device(void)
{
    typedef CUresult fn(CUdevice *);
    CUdevice device = 0;
    fn *get = GUARD_REAL(fn *, cuCtxGetDevice);
    CUresult r;

    if (!guard_begin())
        return CUDA_ERROR_OPERATING_SYSTEM;
    r = get ? get(&device) : CUDA_ERROR_NOT_INITIALIZED;
    return r == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

/* ---- a device's pages ------------------------------------------------------------------------------ */

static uint64_t born(void)
{
    char text[512], *p;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), field = 2;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    p = strrchr(text, ')');
    for (; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

/* A record in the task's book; those of the dead are used again. */
static bool enlist(guard_device *d)
{
    uint32_t pid = (uint32_t)getpid();

    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < GUARD_PROCS; i++) {
            guard_proc *p = &d->usage->proc[i];
            uint32_t was = atomic_load(&p->pid), top = atomic_load(&d->usage->nproc);

            if (was != 0 && (round == 0 || guard_proc_lives(p)))
                continue;
            if (!atomic_compare_exchange_strong(&p->pid, &was, pid))
                continue;
            for (int k = 0; k < GUARD_KIND_COUNT; k++)
                atomic_store(&p->bytes[k], 0);
            atomic_store(&p->born, born());
            while (top <= i && !atomic_compare_exchange_weak(&d->usage->nproc, &top, i + 1))
                ;
            d->me = (int)i;
            return true;
        }
    }
    guard_say("too many processes of one task use a GPU", "");
    return false;
}

static bool map_all(guard_device *d)
{
    char path[sizeof guard.dir + 48];
    int n = (int)(d - guard.dev);

    snprintf(path, sizeof path, "%s/dev.%d/board", guard.dir, n);
    if (!d->board && !(d->board = map_file(path, sizeof(guard_board), GUARD_VERSION, false)))
        return fail(path);
    snprintf(path, sizeof path, "%s/own.%d/turn", guard.dir, n);
    if (!d->turn && !(d->turn = map_file(path, sizeof(guard_turn), GUARD_VERSION, true)))
        return fail(path);
    snprintf(path, sizeof path, "%s/own.%d/book", guard.dir, n);
    if (!d->usage && !(d->usage = map_file(path, sizeof(guard_usage), GUARD_USAGE, true)))
        return fail(path);
    return true;
}

bool guard_map(guard_device *d)
{
    bool ok;

    if (d->mapped && d->me >= 0)
        return true;
    guard_lock(&d->lock);
    ok = d->mapped || map_all(d);
    d->mapped = ok;
    if (ok && d->me < 0)
        ok = enlist(d);
    guard_unlock(&d->lock);
    return ok;
}

/* A neighbour's turn, mapped when it is first looked at; NULL: none there. */
static const guard_turn *neighbour(guard_device *d, int slot)
{
    char path[sizeof guard.dir + 48];

    if (!d->other[slot]) {
        snprintf(path, sizeof path, "%s/dev.%d/turn.%d", guard.dir, (int)(d - guard.dev), slot);
        d->other[slot] = map_file(path, sizeof(guard_turn), GUARD_VERSION, false);
    }
    return d->other[slot];
}

/* A neighbour's page, copied by the kernel: the file is the neighbour's, and one that is cut short under a mapping would
 * kill who reads it. False: there is none. */
bool guard_peek(const guard_device *d, int slot, guard_turn *ret)
{
    struct iovec to = {.iov_base = ret, .iov_len = sizeof *ret};
    struct iovec from = {.iov_len = sizeof *ret};
    int was = errno;
    long n;

    memcpy(&from.iov_base, &d->other[slot], sizeof from.iov_base);
    n = syscall(SYS_process_vm_readv, getpid(), &to, 1UL, &from, 1UL, 0UL);
    if (n < 0 && (errno == ENOSYS || errno == EPERM)) { /* not allowed here: trust it */
        memcpy(ret, from.iov_base, sizeof *ret);
        n = sizeof *ret;
    }
    errno = was;
    return n == sizeof *ret && ret->magic == GUARD_MAGIC && ret->version == GUARD_VERSION;
}

void guard_look_around(guard_device *d, uint64_t now)
{
    int n = 0;
    bool patient = false;

    d->looked_ns = now;
    for (int i = 0; i < GUARD_SLOTS; i++) {
        if (i == (int)d->limit->slot || !atomic_load(&d->board->slot[i].used) || !neighbour(d, i))
            continue;
        d->near[n++] = i;
        patient = patient || atomic_load(&d->board->slot[i].latency);
    }
    d->nnear = n;
    d->patient = patient && !guard_is_latency(d);
}

/* ---- ends ------------------------------------------------------------------------------------------ */

/* The child has none of the parent's memory on devices, nor its turn; what it does itself is counted for itself. */
void guard_after_fork(void)
{
    atomic_store(&guard.lock, 0);
    guard_table_forget();
    atomic_store(&guard.captures, 0);
    guard.graph_memory = false;
    guard.nordinal = 0;
    for (int i = 0; i < GUARD_DEVICES; i++) {
        guard_device *d = &guard.dev[i];
        guard_device fresh = {.limit = d->limit,
                              .mapped = d->mapped,
                              .board = d->board,
                              .turn = d->turn,
                              .usage = d->usage,
                              .me = -1};

        memcpy(fresh.other, d->other, sizeof fresh.other);
        memcpy(d, &fresh, sizeof *d);
    }
}

/* Nothing of the driver is called here: it may be gone already. */
__attribute__((destructor)) static void leave(void)
{
    for (int i = 0; i < GUARD_DEVICES; i++) {
        guard_device *d = &guard.dev[i];
        guard_proc *p = d->mapped && d->me >= 0 ? &d->usage->proc[d->me] : NULL;

        if (!p || atomic_load(&p->pid) != (uint32_t)getpid())
            continue;
        if (d->has_turn)
            guard_turn_pass(d, 0);
        for (int k = 0; k < GUARD_KIND_COUNT; k++)
            atomic_store(&p->bytes[k], 0);
        d->me = -1;
        atomic_store(&p->pid, 0);
    }
}
