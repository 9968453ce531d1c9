/*
 * What tasks that share a GPU say of themselves (guard/abi.h): counters and times of their books as metrics, and the end of a task
 * that has used the GPU time it may.
 *
 * A book is the tenant's file. It is read, never mapped: one that is cut short under a mapping kills who reads it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/host.h"
#include "base/mem.h"
#include "guard/abi.h"

bool st_guard_read_usage(const char *dir, guard_usage *ret)
{
    char path[PATH_MAX];
    ssize_t n = -1;
    int fd;

    if (snprintf(path, sizeof path, "%s/book", dir) >= (int)sizeof path)
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        n = pread(fd, ret, sizeof *ret, 0);
        close(fd);
    }
    return n == (ssize_t)sizeof *ret && ret->magic == GUARD_MAGIC && ret->version == GUARD_USAGE;
}

/* ---- metrics ----------------------------------------------------------------------------------------- */

typedef struct one {
    const st_host *h;
    guard_usage *usage;
    st_strbuf *out;
    int what; /* a counter, then kinds of memory, bursts, requests */
} one;

static void counter(const guard_usage *b, const char *labels, int what, st_strbuf *out)
{
    static const char *const names[] = {
#define NAME(name, text, about) "stint_guard_" text "_total",
        GUARD_COUNTERS(NAME)
#undef NAME
    };

    st_strbuf_addf(out, "%s{%s} %" PRIu64 "\n", names[what], labels,
                   (uint64_t)atomic_load(&b->count[what]));
}

static void kinds(const guard_usage *b, const char *labels, st_strbuf *out)
{
    static const char *const names[] = {
#define NAME(name, text) text,
        GUARD_KINDS(NAME)
#undef NAME
    };

    for (int k = 0; k < GUARD_KIND_COUNT; k++) {
        uint64_t sum = 0;

        for (int i = 0; i < GUARD_PROCS; i++)
            sum += atomic_load(&b->proc[i].pid) ? atomic_load(&b->proc[i].bytes[k]) : 0;
        st_strbuf_addf(out, "stint_guard_memory_bytes{%s,kind=\"%s\"} %" PRIu64 "\n", labels,
                       names[k], sum);
    }
}

/* A histogram with a bucket for each fourfold, from 16 us to 17 s: enough for a p99 on a page, and few enough for thousands of
 * tasks. */
static void times(const _Atomic uint64_t *v, const char *name, const char *labels, uint64_t sum_ns,
                  st_strbuf *out)
{
    uint64_t all = 0;
    int i = 0;

    for (int e = 14; e <= 34; e++) { /* 2^e ns */
        for (; i < GUARD_TIMES && guard_time_least(i) < UINT64_C(1) << e; i++)
            all += atomic_load(&v[i]);
        st_strbuf_addf(out, "%s_bucket{%s,le=\"%.9g\"} %" PRIu64 "\n", name, labels,
                       (double)(UINT64_C(1) << e) / 1e9, all);
    }
    for (; i < GUARD_TIMES; i++)
        all += atomic_load(&v[i]);
    st_strbuf_addf(
        out, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n%s_sum{%s} %.9g\n%s_count{%s} %" PRIu64 "\n",
        name, labels, all, name, labels, (double)sum_ns / 1e9, name, labels, all);
}

static void write_one(void *ctx, const st_task *t, int gpu, int slot, const char *dir)
{
    one *o = ctx;
    char labels[512];

    (void)slot;
    if (!st_guard_read_usage(dir, o->usage))
        return;
    snprintf(labels, sizeof labels,
             "node=\"%s\",gpu=\"%d\",tenant=\"%s\",job=\"%s\",grant=\"%s/%d/%d\"", o->h->name, gpu,
             t->tenant, t->key.job, t->key.job, t->key.stay, t->key.task);
    if (o->what < GUARD_COUNT_COUNT)
        counter(o->usage, labels, o->what, o->out);
    else if (o->what == GUARD_COUNT_COUNT)
        kinds(o->usage, labels, o->out);
    else
        times(o->usage->request, "stint_guard_request_seconds", labels,
              atomic_load(&o->usage->count[GUARD_COUNT_REQUEST_NS]), o->out);
}

void st_host_guard_metrics(const st_hosts *hosts, st_strbuf *out)
{
    static const char *const heads[] = {
#define HEAD(name, text, about) \
    "# HELP stint_guard_" text "_total " about "\n# TYPE stint_guard_" text "_total counter\n",
        GUARD_COUNTERS(HEAD)
#undef HEAD
            ("# HELP stint_guard_memory_bytes GPU memory a task says it holds, by kind.\n"
             "# TYPE stint_guard_memory_bytes gauge\n"),
        ("# HELP stint_guard_request_seconds Time of the requests a task marked.\n"
         "# TYPE stint_guard_request_seconds histogram\n")};
    ST_CLEANUP(st_freep) guard_usage *b = st_xcalloc(1, sizeof *b);

    for (int what = 0; what < (int)ST_ARRAY_LEN(heads); what++) {
        st_strbuf_add(out, heads[what]);
        for (size_t i = 0; i < hosts->n; i++)
            st_host_guard_each(hosts->v[i], write_one,
                               &(one){.h = hosts->v[i], .usage = b, .out = out, .what = what});
    }
}

/* ---- limits on GPU time ------------------------------------------------------------------------------ */

typedef struct spent {
    st_host *h;
    guard_usage *usage;
    int64_t now;
} spent;

static void end_spent(void *ctx, const st_task *found, int gpu, int slot, const char *dir)
{
    spent *s = ctx;
    st_task *t = st_journal_find(&s->h->journal, &found->key);
    char reason[ST_TASK_REASON_MAX];
    guard_limit l;
    uint64_t used_s;

    (void)slot;
    if (!t || t->phase != ST_PHASE_RUNNING || t->killed || !st_host_guard_limit(s->h, t, gpu, &l) ||
        l.limit_s == 0 || !st_guard_read_usage(dir, s->usage))
        return;
    used_s = atomic_load(&s->usage->count[GUARD_COUNT_GPU_NS]) / UINT64_C(1000000000);
    if (used_s < l.limit_s)
        return;
    snprintf(reason, sizeof reason,
             "it used %" PRIu64 " s of GPU time, and gpu_time allows %" PRIu32 " s", used_s,
             l.limit_s);
    st_host_kill(s->h, t, reason, s->now);
}

void st_host_guard_limits(st_host *h, int64_t now_ms)
{
    ST_CLEANUP(st_freep) guard_usage *b = NULL;

    if (!h->guards)
        return;
    b = st_xcalloc(1, sizeof *b);
    st_host_guard_each(h, end_spent, &(spent){.h = h, .usage = b, .now = now_ms});
}
