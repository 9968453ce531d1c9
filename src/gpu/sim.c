/* The sim driver: opening, inventory, events, and its table. */
#include "gpu/sim.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "gpu/sim_state.h"

#define CONTROL_LOOK_MS 20 /* a plain file cannot be polled */

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void sim_free(st_gpu *g)
{
    st_gpu_sim *s = st_sim_of(g);

    for (int i = 0; i < g->n; i++) {
        st_vec_free(&s->gpu[i].loads);
        st_vec_free(&s->gpu[i].residue);
    }
    st_vec_free(&s->events);
    st_strbuf_done(&s->line);
    close_fd(s->control_fd);
    close_fd(s->poll_fd);
    close_fd(s->wake_fd);
    pthread_mutex_destroy(&s->lock);
    free(s->control);
    free(s->node);
    free(s);
}

int st_sim_lost(const st_gpu_sim *s, int gpu, st_err *err)
{
    if (!s->gpu[gpu].lost)
        return 0;
    return st_fail(err, ST_EDOWN, "GPU %d is lost: it does not answer", gpu);
}

void st_sim_uuid(const st_gpu_sim *s, const char *prefix, uint64_t a, uint64_t b,
                 char ret[ST_GPU_UUID_MAX])
{
    uint64_t h = st_hash_u64(st_hash_u64(st_hash_str(s->seed, s->node), a), b);
    uint64_t l = st_hash_u64(h, 1);
    snprintf(ret, ST_GPU_UUID_MAX, "%s-%08x-%04x-5%03x-a%03x-%012llx", prefix, (unsigned)(h >> 32),
             (unsigned)(h >> 16 & 0xffff), (unsigned)(h & 0xfff), (unsigned)(l >> 48 & 0xfff),
             (unsigned long long)(l & 0xffffffffffff));
}

/* ---- inventory -------------------------------------------------------------------------- */

/* Two sockets, GPUs spread over them, 16 CPUs for each. */
static void describe(const st_gpu_sim *s, int i, st_gpu_info *info)
{
    const sim_gpu *gpu = &s->gpu[i];
    const st_gpu_product *p = gpu->product;
    int half = (s->base.n + 1) / 2, linked = 0;

    info->index = info->minor = i;
    st_sim_uuid(s, "GPU", (uint64_t)i, 0, info->uuid);
    snprintf(info->bus_id, sizeof(info->bus_id), "00000000:%02X:00.0", 0x10 + i * 8);
    snprintf(info->name, sizeof(info->name), "%s", p->name);
    snprintf(info->serial, sizeof(info->serial), "sim%05d", i);
    snprintf(info->type, sizeof(info->type), "%s", p->type);
    snprintf(info->node, sizeof(info->node), "/dev/nvidia%d", i);
    info->vram_mib = p->vram_mib;
    info->cc = p->cc;
    info->board = p->board;
    info->mig_capable = p->board != ST_BOARD_NONE;
    info->mig_on = info->mig_pending = gpu->mig;
    info->mode = gpu->mode;
    info->numa = i / half;
    snprintf(info->cpus, sizeof(info->cpus), "%d-%d", info->numa * half * 16,
             (info->numa + 1) * half * 16 - 1);
    info->pcie_gen = info->pcie_gen_max = p->pcie_gen;
    info->pcie_width_max = 16;
    info->pcie_width = gpu->lanes > 0 ? (int)gpu->lanes : info->pcie_width_max;
    info->power_limit_mw = p->most_w * INT64_C(1000);
    info->lost = gpu->lost;
    memset(info->ancestor, -1, sizeof(info->ancestor));
    for (int k = 0; k < s->base.n; k++) {
        info->ancestor[k] = k == i ? 0 : k / half == info->numa ? 40 : 50;
        linked += s->gpu[k].linked && s->gpu[k].product == p;
    }
    if (!gpu->linked)
        return;
    info->links = (int)ST_MAX(p->links - gpu->links_down, 0);
    /* Eight GPUs meet in switches; fewer are wired to each other. */
    if (linked > 4)
        info->links_switch = p->links;
    for (int k = 0; linked <= 4 && k < s->base.n; k++)
        if (k != i && s->gpu[k].linked && s->gpu[k].product == p)
            info->peer[k] = (uint8_t)(p->links / ST_MAX(linked - 1, 1));
}

static int sim_inventory(st_gpu *g, st_gpu_inventory *ret, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);

    (void)err;
    *ret = (st_gpu_inventory){.driver = "simulated", .cuda = 13000, .n = g->n};
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < g->n; i++)
        describe(s, i, &ret->gpu[i]);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int sim_set_mode(st_gpu *g, int gpu, st_gpu_mode mode, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);

    pthread_mutex_lock(&s->lock);
    int r = st_sim_lost(s, gpu, err);
    if (r == 0)
        s->gpu[gpu].mode = (int)mode;
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- events ----------------------------------------------------------------------------- */

void st_sim_push(st_gpu_sim *s, st_gpu_event event)
{
    uint64_t one = 1;

    st_vec_push(&s->events, event);
    /* The counter of an eventfd cannot overflow here; there is nothing else to fail. */
    if (s->wake_fd >= 0 && write(s->wake_fd, &one, sizeof(one)) < 0)
        ST_ASSERT(errno == EAGAIN);
}

/* Makes the descriptors, if they are not there. */
static int need_fds(st_gpu_sim *s, st_err *err)
{
    struct epoll_event watch = {.events = EPOLLIN};

    if (s->poll_fd >= 0)
        return 0;
    s->wake_fd = eventfd((unsigned)s->events.n, EFD_CLOEXEC | EFD_NONBLOCK);
    s->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->wake_fd < 0 || s->poll_fd < 0 ||
        epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, s->wake_fd, &watch) < 0 ||
        (s->fifo && epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, s->control_fd, &watch) < 0)) {
        int r =
            st_fail(err, ST_EIO, "node %s: no descriptor for events: %s", s->node, strerror(errno));
        close_fd(s->poll_fd);
        close_fd(s->wake_fd);
        s->poll_fd = s->wake_fd = -1;
        return r;
    }
    return 0;
}

/* 1 and the oldest event, 0 when there is none. */
static int pop(st_gpu_sim *s, st_gpu_event *ret, st_err *err)
{
    uint64_t count;
    int r = st_sim_control_read(s, err);

    if (r < 0 || s->events.n == 0)
        return r;
    *ret = s->events.v[0];
    st_vec_remove(&s->events, 0);
    if (s->events.n == 0 && s->wake_fd >= 0 && read(s->wake_fd, &count, sizeof(count)) < 0)
        ST_ASSERT(errno == EAGAIN);
    return 1;
}

static int sim_wait(st_gpu *g, int timeout_ms, st_gpu_event *ret, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    bool look = s->control && !s->fifo;

    for (;;) {
        pthread_mutex_lock(&s->lock);
        int r = pop(s, ret, err);
        if (r == 0 && timeout_ms > 0)
            r = need_fds(s, err);
        int fd = s->poll_fd;
        pthread_mutex_unlock(&s->lock);
        if (r != 0 || timeout_ms <= 0)
            return r;
        int step = look ? ST_MIN(timeout_ms, CONTROL_LOOK_MS) : timeout_ms;
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        if (poll(&pfd, 1, step) < 0 && errno != EINTR)
            return st_fail(err, ST_EIO, "node %s: waiting for events: %s", s->node,
                           strerror(errno));
        timeout_ms = pfd.revents ? 0 : timeout_ms - step;
    }
}

/* ---- opening ---------------------------------------------------------------------------- */

static const st_gpu_ops sim_ops = {
    .name = "sim",
    .free = sim_free,
    .inventory = sim_inventory,
    .sample = st_sim_sample,
    .procs = st_sim_procs,
    .wait = sim_wait,
    .set_mode = sim_set_mode,
    .mig_mode = st_sim_mig_mode,
    .mig_profiles = st_sim_mig_profiles,
    .mig_list = st_sim_mig_list,
    .mig_create = st_sim_mig_create,
    .mig_destroy = st_sim_mig_destroy,
};

int st_gpu_sim_open(const st_gpu_sim_options *options, st_gpu **ret, st_err *err)
{
    ST_CLEANUP(st_gpu_freep) st_gpu *g = NULL;
    st_gpu_sim *s = st_xcalloc(1, sizeof(*s));
    int r;

    g = &s->base;
    s->base.ops = &sim_ops;
    s->wake_fd = s->poll_fd = s->control_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->node = st_xstrdup(options->node ? options->node : "sim");
    s->seed = options->seed;
    s->now_ms = ST_UNSET;
    if ((r = st_sim_profile(s, options->profile, err)) < 0)
        return r;
    if (options->control && (r = st_sim_control_open(s, options->control, err)) < 0)
        return r;
    *ret = ST_TAKE(g);
    return 0;
}
