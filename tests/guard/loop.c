/* The watch on neighbours (src/neighbour) over the files that guard_pages made, without an agent: what it finds, and what it
 * orders.
 *
 *   guard_loop ROOT SECONDS [watch]
 *
 * Looks at each task of ROOT four times a second; with `watch` nothing is ordered. Prints a line for each note, and each second
 * one with each victim's p99 over its usual value. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "guard/abi.h"
#include "neighbour/neighbour.h"

#define LOOK_MS 250

static char root[2000];

/* A file of a task, or (-1) of all. */
static void *map(int k, const char *name, size_t size)
{
    char path[2100];
    int fd;
    void *p;

    if (k < 0)
        snprintf(path, sizeof path, "%s/%s", root, name);
    else
        snprintf(path, sizeof path, "%s/task.%d/%s", root, k, name);
    fd = open(path, O_RDWR);
    if (fd < 0)
        return NULL;
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

typedef struct task {
    guard_grant *grant;
    guard_usage *usage;
    uint64_t times[GUARD_TIMES];
} task;

/* Books that are there, and have somebody in them. */
static int sample(task *tasks, st_nb_sample *v)
{
    int n = 0;

    for (int k = 0; k < GUARD_SLOTS; k++) {
        task *t = &tasks[k];
        const _Atomic uint64_t *times;

        if (!t->grant && (t->grant = map(k, "grant", sizeof *t->grant)))
            t->usage = map(k, "own.0/book", sizeof *t->usage);
        if (!t->grant || !t->usage || atomic_load(&t->usage->nproc) == 0)
            continue;
        times = atomic_load(&t->usage->count[GUARD_COUNT_REQUESTS]) ? t->usage->request
                : t->grant->dev[0].latency                          ? t->usage->burst
                                                                    : NULL;
        for (int i = 0; times && i < GUARD_TIMES; i++)
            t->times[i] = atomic_load(&times[i]);
        v[n++] = (st_nb_sample){.id = (uint64_t)k + 1,
                                .gpu_ns = atomic_load(&t->usage->count[GUARD_COUNT_GPU_NS]),
                                .times = times ? t->times : NULL,
                                .share_pm = (int)t->grant->dev[0].share_pm,
                                .latency = t->grant->dev[0].latency,
                                .capable = !t->grant->dev[0].latency};
    }
    return n;
}

static void obey(const st_nb *nb, task *tasks, guard_board *board)
{
    for (int k = 0; k < GUARD_SLOTS; k++) {
        st_nb_order o = st_nb_order_of(nb, (uint64_t)k + 1);
        guard_limit *l = tasks[k].grant ? &tasks[k].grant->dev[0] : NULL;

        if (!l)
            continue;
        atomic_store(&l->cap_pm, (uint32_t)o.cap_pm);
        atomic_store(&l->protect, o.protect);
        atomic_store(&board->slot[k].latency, l->latency || o.protect);
    }
}

int main(int argc, char **argv)
{
    static task tasks[GUARD_SLOTS];
    double seconds = argc > 2 ? atof(argv[2]) : 0;
    int64_t began = now_ms(), said = began;
    st_nb *nb = st_nb_new(NULL);
    guard_board *board;

    snprintf(root, sizeof root, "%s", argc > 1 ? argv[1] : ".");
    board = map(-1, "board", sizeof *board);
    while (board && (double)(now_ms() - began) < seconds * 1000) {
        st_nb_sample v[GUARD_SLOTS];
        st_nb_note notes[32];
        int n = sample(tasks, v);
        size_t found;

        st_nb_feed(nb, now_ms(), v, (size_t)n);
        found = st_nb_notes(nb, notes, 32);
        for (size_t i = 0; i < found; i++)
            printf("note=%s action=%s victim=%d suspect=%d p99_percent=%d at_ms=%lld\n",
                   st_nb_kind_name(notes[i].kind), st_nb_rung_name(notes[i].rung),
                   (int)notes[i].victim - 1, (int)notes[i].suspect - 1, notes[i].ratio_pct,
                   (long long)(notes[i].at_ms - began));
        if (argc < 4)
            obey(nb, tasks, board);
        for (int i = 0; i < n && now_ms() - said >= 1000; i++)
            if (v[i].times)
                printf("at_ms=%lld victim=%d p99_percent=%d\n", (long long)(now_ms() - began),
                       (int)v[i].id - 1, st_nb_ratio_pct(nb, v[i].id));
        if (now_ms() - said >= 1000)
            said = now_ms();
        fflush(stdout);
        usleep(LOOK_MS * 1000);
    }
    st_nb_free(nb);
    return board ? 0 : 1;
}
