/*
 * The guard's files for tasks that share a GPU (guard/abi.h, doc/dev/guard.md), below DATA/guard, which is a small file
 * system in memory: a task may write its own pages, and must not fill a disk with them.
 *
 *   DATA/guard/preload             the line for /etc/ld.so.preload
 *   DATA/guard/gpu.N/seen/         all tasks on the GPU see it, and cannot write it: board, turn.K
 *   DATA/guard/gpu.N/own.K/        of the task in slot K: owner (its id), grant, book
 *
 * The folders are the truth: an agent that is started again finds who has which slot. A slot is free when the task that
 * its owner names has no process any more. A task at level mps or time without its guard is not started.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/helper.h"
#include "agent/host.h"
#include "agent/launch.h"
#include "agent/tenant.h"
#include "base/mem.h"
#include "base/num.h"
#include "guard/abi.h"

#define GUARD_LIBRARY "libstint-guard.so"
#define OPTIONS       "size=64m,mode=0711"
#define QUANTUM_US    5000
#define BOUND_US      150
#define TIDY_MS       1000
#define UUID_DIGITS   (2 * GUARD_UUID)

/* What a process takes on the device by having a context, so that the whole stays within the grant. */
static const int64_t context_mib[] = {[GUARD_LEVEL_TIME] = 528, [GUARD_LEVEL_MPS] = 64};

static bool wanted(const st_host *h, const st_task_place *p)
{
    const char *given = h->process->conf->guard;

    if ((p->level != ST_LEVEL_TIME && p->level != ST_LEVEL_MPS) || !p->devs)
        return false;
    if (!h->exec->ops->real || (given && strcmp(given, "none") == 0))
        return false;
    return !h->sim_gpus || given; /* with simulated GPUs only when it is asked for */
}

int st_guard_find(const char *given, char ret[PATH_MAX], st_err *err)
{
    st_helper_find(given, GUARD_LIBRARY, ret);
    if (!given && access(ret, R_OK) != 0)
        snprintf(ret, PATH_MAX, "%s", ST_GUARD_LIBRARY);
    if (access(ret, R_OK) != 0)
        return st_fail(
            err, ST_EDOWN,
            "%s is not there, and without it nothing limits what shares a GPU; install it, "
            "or start the agent with --guard FILE",
            ret);
    return 0;
}

/* ---- files ------------------------------------------------------------------------------------------ */

static int join(char ret[PATH_MAX], st_err *err, const char *fmt, ...) ST_PRINTF(3, 4);

static int join(char ret[PATH_MAX], st_err *err, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(ret, PATH_MAX, fmt, args);
    va_end(args);
    return n < PATH_MAX ? 0 : st_fail(err, ST_ERANGE, "a path is too long: %s", ret);
}

static int make_dir(const char *path, st_err *err)
{
    if ((mkdir(path, 0755) != 0 && errno != EEXIST) || chmod(path, 0755) != 0)
        return st_fail(err, ST_EIO, "cannot make %s: %s", path, strerror(errno));
    return 0;
}

/* Maps a file of that size, made if need be: all of it is there, so that nobody meets a hole in a full file system. */
static int map_file(const char *path, size_t size, bool make, void **ret, st_err *err)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0644);
    struct stat st;
    void *at = MAP_FAILED;
    int r = 0;

    if (fd < 0 || fstat(fd, &st) != 0 || (make && fchmod(fd, 0644) != 0))
        r = st_fail(err, ST_EIO, "cannot open %s: %s", path, strerror(errno));
    else if (!make && st.st_size < (off_t)size)
        r = st_fail(err, ST_EINVAL, "%s is cut short", path);
    else if (make && st.st_size < (off_t)size && (r = posix_fallocate(fd, 0, (off_t)size)) != 0)
        r = st_fail(err, ST_EFULL, "no room for %s: %s", path, strerror(r));
    if (r == 0) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED)
            r = st_fail(err, ST_EIO, "cannot map %s: %s", path, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    if (r == 0)
        *ret = at;
    return r;
}

/* A fresh file with the head that each has, handed to a user. `path` is replaced, never written over: who has the
 * old one mapped keeps that. */
static int fresh(const char *path, size_t size, uint32_t version, int64_t uid, void **ret,
                 st_err *err)
{
    int r = unlink(path) != 0 && errno != ENOENT
                ? st_fail(err, ST_EIO, "cannot remove %s: %s", path, strerror(errno))
                : map_file(path, size, true, ret, err);

    if (r < 0)
        return r;
    ((uint32_t *)*ret)[0] = GUARD_MAGIC;
    ((uint32_t *)*ret)[1] = version;
    if (uid >= 0 && chown(path, (uid_t)uid, (gid_t)uid) != 0) {
        munmap(*ret, size);
        return st_fail(err, ST_EIO, "cannot hand over %s: %s", path, strerror(errno));
    }
    return 0;
}

/* The file system, mounted when it is first needed. It outlives the agent, as tasks do. */
static int make_root(const st_host *h, char ret[PATH_MAX], st_err *err)
{
    static const char line[] = GUARD_DIR "/" GUARD_LIBRARY "\n";
    struct statfs fs;
    int r = join(ret, err, "%s/guard", h->dir);

    if (r == 0)
        r = make_dir(ret, err);
    if (r == 0 && (statfs(ret, &fs) != 0 || fs.f_type != TMPFS_MAGIC) &&
        mount("tmpfs", ret, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, OPTIONS) != 0)
        r = st_fail(err, ST_EIO, "cannot mount a tmpfs on %s: %s", ret, strerror(errno));
    if (r == 0)
        r = st_file_replace(ret, "preload", line, sizeof line - 1, false, err);
    if (r == 0) {
        char path[PATH_MAX];

        r = join(path, err, "%s/preload", ret);
        if (r == 0 && chmod(path, 0644) != 0)
            r = st_fail(err, ST_EIO, "cannot open %s to tasks: %s", path, strerror(errno));
    }
    return r;
}

static int open_board(const char *root, int gpu, guard_board **ret, st_err *err)
{
    char path[PATH_MAX];
    void *at = NULL;
    int r = join(path, err, "%s/gpu.%d", root, gpu);

    if (r == 0 && (r = make_dir(path, err)) == 0)
        r = join(path, err, "%s/gpu.%d/seen", root, gpu);
    if (r == 0 && (r = make_dir(path, err)) == 0)
        r = join(path, err, "%s/gpu.%d/seen/board", root, gpu);
    if (r == 0)
        r = map_file(path, sizeof(guard_board), true, &at, err);
    if (r < 0)
        return r;
    *ret = at;
    (*ret)->magic = GUARD_MAGIC;
    (*ret)->version = GUARD_VERSION;
    return 0;
}

/* ---- slots ------------------------------------------------------------------------------------------ */

static const st_task *owner_of(const st_host *h, const char *root, int gpu, int slot)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf who = {0};
    char dir[PATH_MAX], id[ST_RUN_ID_MAX];

    if (join(dir, NULL, "%s/gpu.%d/own.%d", root, gpu, slot) < 0 ||
        st_file_load(dir, "owner", &who, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < h->journal.tasks.n; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        st_launch_id(t, id);
        if (!t->gone && strcmp(id, st_strbuf_str(&who)) == 0)
            return t;
    }
    return NULL;
}

static int free_slot(const st_host *h, const char *root, int gpu, const guard_board *b)
{
    for (int k = 0; k < GUARD_SLOTS; k++)
        if (!atomic_load(&b->slot[k].used) || !owner_of(h, root, gpu, k))
            return k;
    return -1;
}

/* GPU-8f6e…, as sixteen bytes; what is not one is left zero: any device. */
static void uuid_bytes(const char *text, uint8_t ret[GUARD_UUID])
{
    int n = 0;

    memset(ret, 0, GUARD_UUID);
    for (const char *p = strncmp(text, "GPU-", 4) == 0 ? text + 4 : text; *p && n < UUID_DIGITS;
         p++) {
        const char *digits = "0123456789abcdef", *at = strchr(digits, *p);

        if (at)
            ret[n / 2] = (uint8_t)(ret[n / 2] << 4 | (at - digits)), n++;
    }
    if (n < UUID_DIGITS)
        memset(ret, 0, GUARD_UUID);
}

static bool is_latency(const st_order *o)
{
    const json_t *doc = json_object_get(o->job, "document");
    const char *workload = json_string_value(json_object_get(doc, "workload"));

    return json_is_true(json_object_get(doc, "latency_critical")) ||
           (workload && strcmp(workload, "inference") == 0);
}

/* As it was submitted, and looked at there. */
static uint32_t gpu_seconds(const st_order *o)
{
    const json_t *v = json_object_get(json_object_get(o->job, "document"), "gpu_time");
    int64_t ms = 0;
    st_err err;

    if (json_is_integer(v))
        ms = json_integer_value(v) * 1000;
    else if (json_is_string(v) && st_parse_duration_ms(json_string_value(v), &ms, &err) < 0)
        ms = 0;
    return (uint32_t)ST_MIN(ST_MAX(ms / 1000, 0), (int64_t)UINT32_MAX);
}

static bool is_hard(const st_order *o)
{
    return json_is_true(json_object_get(json_object_get(o->job, "document"), "hard_share"));
}

typedef struct claim {
    const st_task *task;
    const st_order *order;
    const char *root;
    int64_t uid;
    guard_grant grant;
} claim;

static int claim_gpu(st_host *h, claim *c, int gpu, st_guard_client *client, st_err *err)
{
    char dir[PATH_MAX], path[PATH_MAX], id[ST_RUN_ID_MAX];
    const st_task_place *p = &c->task->place;
    guard_limit *l = &c->grant.dev[client->n];
    guard_board *b;
    void *at;
    int slot, r = open_board(c->root, gpu, &b, err);

    if (r < 0)
        return r;
    slot = free_slot(h, c->root, gpu, b);
    if (slot < 0)
        r = st_fail(err, ST_EDOWN, "%d tasks share GPU %d, and more cannot", GUARD_SLOTS, gpu);
    if (r == 0)
        atomic_store(&b->slot[slot].used, 0);
    if (r == 0 && (r = join(dir, err, "%s/gpu.%d/own.%d", c->root, gpu, slot)) == 0)
        r = make_dir(dir, err);
    st_launch_id(c->task, id);
    if (r == 0)
        r = st_file_replace(dir, "owner", id, strlen(id), false, err);
    if (r == 0 && (r = join(path, err, "%s/gpu.%d/seen/turn.%d", c->root, gpu, slot)) == 0 &&
        (r = fresh(path, sizeof(guard_turn), GUARD_VERSION, c->uid, &at, err)) == 0)
        munmap(at, sizeof(guard_turn));
    if (r == 0 && (r = join(path, err, "%s/book", dir)) == 0 &&
        (r = fresh(path, sizeof(guard_usage), GUARD_USAGE, c->uid, &at, err)) == 0)
        munmap(at, sizeof(guard_usage));
    if (r == 0) {
        int64_t share = p->share_m > 0 ? p->share_m : ST_WHOLE_M;

        *l = (guard_limit){.vram_bytes = (uint64_t)st_host_granted_mib(h, p, gpu) << 20,
                           .share_pm = (uint32_t)ST_MIN(share, ST_WHOLE_M),
                           .hard = is_hard(c->order),
                           .latency = is_latency(c->order),
                           .limit_s = gpu_seconds(c->order),
                           .level = p->level == ST_LEVEL_MPS ? GUARD_LEVEL_MPS : GUARD_LEVEL_TIME,
                           .slot = (uint32_t)slot,
                           .quantum_us = QUANTUM_US,
                           .bound_us = BOUND_US};
        l->context_bytes = (uint64_t)context_mib[l->level] << 20;
        uuid_bytes(h->inv.gpu[gpu].uuid, l->uuid);
        client->gpu[client->n] = gpu;
        client->slot[client->n++] = slot;
        atomic_store(&b->slot[slot].latency, l->latency);
        atomic_store(&b->slot[slot].used, 1);
    }
    munmap(b, sizeof *b);
    return r;
}

int st_host_guard_client(st_host *h, const st_task *t, const st_order *o, int64_t uid,
                         st_guard_client *ret, st_err *err)
{
    claim c = {.task = t, .order = o, .root = ret->root, .uid = uid};
    char path[PATH_MAX];
    void *at;
    int r;

    ret->n = 0;
    ret->latency = is_latency(o);
    if (!wanted(h, &t->place))
        return 0;
    r = st_guard_find(h->process->conf->guard, ret->library, err);
    if (r == 0)
        r = make_root(h, ret->root, err);
    if (r == 0 && uid < 0)
        r = st_tenant_uid(h->dir, t->tenant, &c.uid, err);
    for (int d = 0; r == 0 && d < h->inv.n; d++)
        if (t->place.devs >> d & 1)
            r = claim_gpu(h, &c, d, ret, err);
    if (r == 0)
        r = join(path, err, "%s/gpu.%d/own.%d/grant", ret->root, ret->gpu[0], ret->slot[0]);
    if (r == 0 && (r = fresh(path, sizeof c.grant, GUARD_VERSION, -1, &at, err)) == 0) {
        c.grant.magic = GUARD_MAGIC;
        c.grant.version = GUARD_VERSION;
        c.grant.ndev = (uint32_t)ret->n;
        memcpy(at, &c.grant, sizeof c.grant);
        munmap(at, sizeof c.grant);
    }
    h->guards = h->guards || r == 0;
    return r < 0 ? st_fail_prefix(err, "its limits: ") : 0;
}

/* Slots of tasks that are gone; the whole, when no task has one. */
void st_host_guard_tidy(st_host *h, int64_t now)
{
    char root[PATH_MAX], path[PATH_MAX];
    int used = 0;

    if (!h->guards || now < h->guard_ms || join(root, NULL, "%s/guard", h->dir) < 0)
        return;
    h->guard_ms = now + TIDY_MS;
    for (int d = 0; d < h->inv.n; d++) {
        guard_board *b;

        if (join(path, NULL, "%s/gpu.%d/seen/board", root, d) < 0 || access(path, F_OK) != 0 ||
            open_board(root, d, &b, NULL) < 0)
            continue;
        for (int k = 0; k < GUARD_SLOTS; k++) {
            if (!atomic_load(&b->slot[k].used))
                continue;
            if (owner_of(h, root, d, k))
                used++;
            else
                atomic_store(&b->slot[k].used, 0);
        }
        munmap(b, sizeof *b);
    }
    if (used > 0)
        return;
    h->guards = false;
    if (umount2(root, MNT_DETACH) == 0 || errno == EINVAL)
        rmdir(root);
}

void st_host_guard_open(st_host *h)
{
    char root[PATH_MAX];

    h->guards = join(root, NULL, "%s/guard", h->dir) == 0 && access(root, F_OK) == 0;
}

/* ---- who has slots ------------------------------------------------------------------------------------ */

void st_host_guard_each(const st_host *h, st_guard_slot_fn fn, void *ctx)
{
    char root[PATH_MAX], dir[PATH_MAX];

    if (!h->guards || join(root, NULL, "%s/guard", h->dir) < 0)
        return;
    for (int d = 0; d < h->inv.n; d++) {
        guard_board *b;

        if (join(dir, NULL, "%s/gpu.%d/seen/board", root, d) < 0 || access(dir, F_OK) != 0 ||
            open_board(root, d, &b, NULL) < 0)
            continue;
        for (int k = 0; k < GUARD_SLOTS; k++) {
            const st_task *t = atomic_load(&b->slot[k].used) ? owner_of(h, root, d, k) : NULL;

            if (t && join(dir, NULL, "%s/gpu.%d/own.%d", root, d, k) == 0)
                fn(ctx, t, d, k, dir);
        }
        munmap(b, sizeof *b);
    }
}

bool st_host_guard_dir(const st_host *h, const st_task *t, int gpu, char ret[PATH_MAX])
{
    char root[PATH_MAX];

    if (!h->guards || join(root, NULL, "%s/guard", h->dir) < 0)
        return false;
    for (int k = 0; k < GUARD_SLOTS; k++)
        if (owner_of(h, root, gpu, k) == t)
            return join(ret, NULL, "%s/gpu.%d/own.%d", root, gpu, k) == 0;
    return false;
}

/* The grant is beside the book of the task's first GPU. */
static int open_grant(const st_host *h, const st_task *t, guard_grant **ret)
{
    char dir[PATH_MAX], path[PATH_MAX];
    void *at;

    if (!st_host_guard_dir(h, t, __builtin_ctz(t->place.devs), dir) ||
        join(path, NULL, "%s/grant", dir) < 0 || map_file(path, sizeof **ret, false, &at, NULL) < 0)
        return -ST_ENOENT;
    *ret = at;
    return 0;
}

static int index_of(const st_task *t, int gpu)
{
    return __builtin_popcount(t->place.devs & ((1u << gpu) - 1));
}

bool st_host_guard_limit(const st_host *h, const st_task *t, int gpu, guard_limit *ret)
{
    guard_grant *g;

    if (!t->place.devs || open_grant(h, t, &g) < 0)
        return false;
    memcpy(ret, &g->dev[index_of(t, gpu)], sizeof *ret);
    munmap(g, sizeof *g);
    return true;
}

void st_host_guard_order(const st_host *h, const st_task *t, int gpu, int cap_pm, bool protect)
{
    char root[PATH_MAX];
    guard_limit *l;
    guard_grant *g;
    guard_board *b;

    if (!t->place.devs || open_grant(h, t, &g) < 0)
        return;
    l = &g->dev[index_of(t, gpu)];
    atomic_store(&l->cap_pm, (uint32_t)cap_pm);
    atomic_store(&l->protect, protect);
    if (join(root, NULL, "%s/guard", h->dir) == 0 && open_board(root, gpu, &b, NULL) == 0) {
        atomic_store(&b->slot[l->slot % GUARD_SLOTS].latency, l->latency || protect);
        munmap(b, sizeof *b);
    }
    munmap(g, sizeof *g);
}
