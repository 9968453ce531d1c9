/* The agent's part for tests of the guard: the files that tasks share (guard/abi.h), and what is in them.
 *
 *   guard_pages ROOT device MIB SWITCH_US CONTEXT_MIB   a device model for fake_driver.c, ROOT/model
 *   guard_pages ROOT task K NAME=VALUE...              ROOT/task.K for the task in slot K: vram (MiB), share (per mille),
 *                                                      hard, latency, level (0 time, 1 mps), quantum, bound (us), context (MiB)
 *   guard_pages ROOT set K NAME=VALUE...               changes them while it runs; cap (per mille) and protect as well
 *   guard_pages ROOT gone K                            slot K is free
 *   guard_pages ROOT show K                            its counters and memory
 *   guard_pages ROOT lie K runs|active|least|cut      slot K's page is written by a liar until it is killed
 *   guard_pages ROOT pretend SECONDS                   a service that is slow while the model has work; in a task
 *   guard_pages ROOT model                             what the model counted */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "guard/abi.h"
#include "model.h"

static char path[4096];

static const char *at(const char *root, const char *rest)
{
    snprintf(path, sizeof path, "%s/%s", root, rest);
    return path;
}

static void *map(const char *file, size_t size, int make)
{
    int fd = open(file, O_RDWR | (make ? O_CREAT : 0), 0666);
    void *p;

    if (fd < 0 || (make && ftruncate(fd, (off_t)size) != 0)) {
        fprintf(stderr, "%s: %s\n", file, strerror(errno));
        exit(1);
    }
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) {
        fprintf(stderr, "%s: cannot be mapped\n", file);
        exit(1);
    }
    if (make && size >= 2 * sizeof(uint32_t)) {
        ((uint32_t *)p)[0] = GUARD_MAGIC;
        ((uint32_t *)p)[1] = GUARD_VERSION;
    }
    return p;
}

static void limits(guard_limit *l, char **rest)
{
    for (; *rest; rest++) {
        const char *eq = strchr(*rest, '=');
        uint32_t v = eq ? (uint32_t)atoll(eq + 1) : 1;

        if (strncmp(*rest, "vram", 4) == 0)
            l->vram_bytes = (uint64_t)v << 20;
        else if (strncmp(*rest, "context", 7) == 0)
            l->context_bytes = (uint64_t)v << 20;
        else if (strncmp(*rest, "share", 5) == 0)
            l->share_pm = v;
        else if (strncmp(*rest, "hard", 4) == 0)
            l->hard = v;
        else if (strncmp(*rest, "latency", 7) == 0)
            l->latency = v;
        else if (strncmp(*rest, "level", 5) == 0)
            l->level = v;
        else if (strncmp(*rest, "quantum", 7) == 0)
            l->quantum_us = v;
        else if (strncmp(*rest, "bound", 5) == 0)
            l->bound_us = v;
        else if (strncmp(*rest, "protect", 7) == 0)
            l->protect = v;
        else if (strncmp(*rest, "cap", 3) == 0)
            l->cap_pm = v;
    }
}

static void task(const char *root, int k, char **rest)
{
    char dir[3000], file[4000], link[4000];
    guard_grant *g;
    guard_board *b = map(at(root, "board"), sizeof *b, 1);
    guard_turn *t;

    snprintf(dir, sizeof dir, "%s/task.%d", root, k);
    mkdir(dir, 0755);
    snprintf(file, sizeof file, "%s/grant", dir);
    g = map(file, sizeof *g, 1);
    g->ndev = 1;
    g->dev[0] = (guard_limit){.vram_bytes = UINT64_C(1) << 40,
                              .share_pm = 1000,
                              .slot = (uint32_t)k,
                              .quantum_us = 5000,
                              .bound_us = 150};
    limits(&g->dev[0], rest);
    snprintf(file, sizeof file, "%s/turn.%d", root, k);
    t = map(file, sizeof *t, 1);
    memset(t, 0, sizeof *t);
    t->magic = GUARD_MAGIC;
    t->version = GUARD_VERSION;
    snprintf(file, sizeof file, "%s/own.0", dir);
    mkdir(file, 0755);
    snprintf(file, sizeof file, "%s/own.0/book", dir);
    unlink(file);
    ((guard_usage *)map(file, sizeof(guard_usage), 1))->version = GUARD_USAGE;
    snprintf(link, sizeof link, "%s/own.0/turn", dir);
    snprintf(file, sizeof file, "../../turn.%d", k);
    unlink(link);
    if (symlink(file, link) != 0)
        perror(link);
    snprintf(link, sizeof link, "%s/dev.0", dir);
    unlink(link);
    if (symlink("..", link) != 0)
        perror(link);
    atomic_store(&b->slot[k].latency, g->dev[0].latency);
    atomic_store(&b->slot[k].used, 1);
}

/* Limits of a task that runs. */
static void set(const char *root, int k, char **rest)
{
    char file[4000];
    guard_grant *g;
    guard_board *b = map(at(root, "board"), sizeof *b, 0);

    snprintf(file, sizeof file, "task.%d/grant", k);
    g = map(at(root, file), sizeof *g, 0);
    limits(&g->dev[0], rest);
    atomic_store(&b->slot[k].latency, g->dev[0].latency || g->dev[0].protect);
}

static void times(const char *name, const _Atomic uint64_t *v)
{
    static const int permille[] = {500, 990, 999};
    uint64_t all = 0;

    for (int i = 0; i < GUARD_TIMES; i++)
        all += v[i];
    for (int q = 0; q < 3; q++) {
        uint64_t below = 0;
        int i = 0;

        while (i < GUARD_TIMES - 1 && (below += v[i]) * 1000 < all * (uint64_t)permille[q])
            i++;
        printf("%s_p%d_us=%.1f\n", name, permille[q], (double)guard_time_least(i + 1) / 1e3);
    }
}

static void show(const char *root, int k)
{
    char file[4000];
    guard_usage *b;
    uint64_t kinds[GUARD_KIND_COUNT] = {0};
    int n = 0;

    snprintf(file, sizeof file, "task.%d/own.0/book", k);
    b = map(at(root, file), sizeof *b, 0);
#define SHOW(name, text, about) \
    printf("%s=%llu\n", text, (unsigned long long)atomic_load(&b->count[GUARD_COUNT_##name]));
    GUARD_COUNTERS(SHOW)
    for (int i = 0; i < GUARD_PROCS; i++) {
        n += atomic_load(&b->proc[i].pid) != 0;
        for (int q = 0; atomic_load(&b->proc[i].pid) && q < GUARD_KIND_COUNT; q++)
            kinds[q] += atomic_load(&b->proc[i].bytes[q]);
    }
#define KIND(name, text) printf("%s=%llu\n", text, (unsigned long long)kinds[GUARD_##name]);
    GUARD_KINDS(KIND)
    printf("processes=%d\n", n);
    times("burst", b->burst);
    times("request", b->request);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Once the task in slot 0 is at work, and so has looked at this page. */
static void cut(const char *root, const char *file, guard_turn *own)
{
    const guard_turn *first = map(at(root, "turn.0"), sizeof *first, 0);
    uint64_t began = now_ns();

    while (atomic_load(&first->seen_ns) < began)
        usleep(1000);
    atomic_store(&own->seen_ns, now_ns());
    usleep(50000);
    if (truncate(at(root, file), 0) != 0)
        exit(1);
    for (;;)
        pause();
}

static void lie(const char *root, int k, const char *how)
{
    char file[64];
    guard_turn *t;

    snprintf(file, sizeof file, "turn.%d", k);
    t = map(at(root, file), sizeof *t, 0);
    if (strcmp(how, "cut") == 0)
        cut(root, file, t);
    for (;; usleep(200)) {
        atomic_store(&t->seen_ns, now_ns());
        if (strcmp(how, "runs") == 0)
            atomic_store(&t->state, GUARD_RUNS);
        else if (strcmp(how, "active") == 0)
            atomic_store(&t->active_ns, now_ns());
        else
            atomic_store(&t->state, GUARD_WANTS);
        atomic_store(&t->vtime, 0);
    }
}

/* A service inside a task, for the watch on neighbours: it marks requests that took 1 ms, or 4 ms while the model has work of
 * another and this task is not protected from it. So what is measured does not depend on how busy the machine is. */
static int pretend(const char *root, double seconds)
{
    uint64_t (*mark)(uint64_t) = NULL;
    const model *m = map(at(root, "model"), sizeof *m, 0);
    const char *dir = access(GUARD_DIR, F_OK) == 0 ? GUARD_DIR : getenv("STINT_GUARD_DIR");
    int fd = open(at(dir ? dir : "", "grant"), O_RDONLY);
    const guard_grant *g =
        fd >= 0 ? mmap(NULL, sizeof *g, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);

    *(void **)&mark = dlsym(RTLD_DEFAULT, "stint_guard_mark");
    if (!mark || g == MAP_FAILED)
        return 1;
    while (now_ns() < end) {
        uint64_t now = now_ns();
        bool slow = m->busy_until_ns > now && !g->dev[0].protect;

        mark(now - (slow ? 4000000 : 1000000));
        usleep(1000);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *root = argc > 2 ? argv[1] : "", *what = argc > 2 ? argv[2] : "";
    int k = argc > 3 ? atoi(argv[3]) : 0;

    if (strcmp(what, "device") == 0 && argc > 5) {
        model *m = map(at(root, "model"), sizeof *m, 1);

        m->magic = MODEL_MAGIC;
        atomic_store(&m->lock, 0);
        m->total = (uint64_t)atoll(argv[3]) << 20;
        m->switch_ns = (uint64_t)atoll(argv[4]) * 1000;
        m->context_bytes = (uint64_t)atoll(argv[5]) << 20;
        return 0;
    }
    if (strcmp(what, "pretend") == 0 && argc > 3)
        return pretend(root, atof(argv[3]));
    if (strcmp(what, "model") == 0) {
        const model *m = map(at(root, "model"), sizeof *m, 0);

        for (int i = 0; i < 8; i++) {
            uint64_t all = 0, below = 0;
            int q = 0;

            for (int n = 0; n < MODEL_QUEUED; n++)
                all += m->queued[i][n];
            for (; q < MODEL_QUEUED && (below += m->queued[i][q]) < all * 99 / 100;)
                q++;
            printf("queued_p99_us_%d=%d\n", i, q * (MODEL_STEP_NS / 1000));
            printf("work_ns_%d=%llu\npeak_%d=%llu\n", i, (unsigned long long)m->work_ns[i], i,
                   (unsigned long long)m->peak[i]);
        }
        return 0;
    }
    if (argc < 4 || k < 0 || k >= GUARD_SLOTS) {
        fprintf(stderr, "usage: see the top of pages.c\n");
        return 2;
    }
    if (strcmp(what, "task") == 0)
        task(root, k, argv + 4);
    else if (strcmp(what, "gone") == 0)
        atomic_store(&((guard_board *)map(at(root, "board"), sizeof(guard_board), 0))->slot[k].used,
                     0);
    else if (strcmp(what, "set") == 0)
        set(root, k, argv + 4);
    else if (strcmp(what, "show") == 0)
        show(root, k);
    else if (strcmp(what, "lie") == 0 && argc > 4)
        lie(root, k, argv[4]);
    else
        return 2;
    return 0;
}
