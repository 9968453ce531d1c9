/*
 * The plain simulator of trace/private.h: free GPUs per node, a list of those who wait in the
 * order they came, and a heap of those who will end. Every part goes to the fullest node it fits.
 */
#include "trace/private.h"

#include <string.h>

#include "base/mem.h"
#include "trace/queue.h"

typedef struct cluster {
    const st_trace *trace;
    st_private *out;
    bool backfill;
    int nnodes;
    int *size, *free, *empty; /* GPUs per node; the last is scratch */
    int largest;              /* GPUs of the largest node */
    int64_t gpus, free_gpus;
    ST_VEC(size_t) waiting; /* in order; gaps are closed after every look */
    st_due_queue ends;
    int **taken;                          /* per job that runs: nodes of its tasks */
    int64_t now, held, at_ms;             /* GPUs held, integrated into ... */
    double allocated, allocated_arriving; /* GPU x ms */
} cluster;

static void add_node(cluster *c, int gpus)
{
    c->size[c->nnodes] = c->free[c->nnodes] = gpus;
    c->nnodes++;
    c->free_gpus += gpus;
    c->gpus += gpus;
}

/* An account's own nodes are as large as the fleet's largest; the last one may be smaller. */
static void add_nodes(cluster *c, int32_t account)
{
    for (size_t n = 0; n < c->trace->nodes.n; n++)
        c->largest = ST_MAX(c->largest, c->trace->nodes.v[n].ndevs);
    for (size_t n = 0; account < 0 && n < c->trace->nodes.n; n++)
        add_node(c, c->trace->nodes.v[n].ndevs);
    if (account < 0 || c->largest == 0)
        return;
    for (int64_t left = st_trace_own_m(c->trace, account) / ST_WHOLE_M; left > 0;
         left -= c->largest)
        add_node(c, (int)ST_MIN(left, c->largest));
}

static int find_node(const int *free, int nnodes, int gpus)
{
    int best = -1;

    for (int n = 0; n < nnodes; n++)
        if (free[n] >= gpus && (best < 0 || free[n] < free[best]))
            best = n;
    return best;
}

/* The GPUs of the t-th part of a job, 0 behind the last. A job of which only a number of GPUs is
 * known takes whole nodes and the rest of it in one more; others have their tasks. */
static int part(const cluster *c, const st_trace_job *job, int t)
{
    int64_t left = (int64_t)job->tasks * job->shape.gpus - (int64_t)t * c->largest;

    if (!job->split)
        return t < job->tasks ? job->shape.gpus : 0;
    return (int)ST_MAX(ST_MIN(left, c->largest), 0);
}

/* Places all parts and fills `taken`, or none. */
static bool place(cluster *c, const st_trace_job *job, int *taken)
{
    int t = 0, gpus;

    for (; (gpus = part(c, job, t)) > 0; t++) {
        taken[t] = find_node(c->free, c->nnodes, gpus);
        if (taken[t] < 0)
            break;
        c->free[taken[t]] -= gpus;
    }
    if (gpus == 0)
        return true;
    while (t-- > 0)
        c->free[taken[t]] += part(c, job, t);
    return false;
}

/* Whether empty nodes would hold it. */
static bool could_fit(cluster *c, const st_trace_job *job)
{
    ST_CLEANUP(st_freep) int *taken = st_xcalloc((size_t)job->tasks, sizeof(*taken));
    int *free_now = c->free;
    bool fits;

    if (job->shape.gpus == 0 || job->shape.level != ST_LEVEL_WHOLE || job->run_ms == ST_TIME_NEVER)
        return false;
    if ((int64_t)job->tasks * job->shape.gpus > c->gpus)
        return false;
    memcpy(c->empty, c->size, (size_t)c->nnodes * sizeof(*c->size));
    c->free = c->empty;
    fits = place(c, job, taken);
    c->free = free_now;
    return fits;
}

static void integrate(cluster *c, int64_t to_ms, int64_t last_submit_ms)
{
    double before = (double)(ST_MAX(ST_MIN(to_ms, last_submit_ms), c->at_ms) - c->at_ms);

    c->allocated_arriving += (double)c->held * before;
    c->allocated += (double)c->held * (double)(to_ms - c->at_ms);
    c->at_ms = c->now = to_ms;
}

static bool try_start(cluster *c, size_t i)
{
    const st_trace_job *job = &c->trace->jobs.v[i];
    int64_t gpus = (int64_t)job->tasks * job->shape.gpus;
    int *taken;

    if (gpus > c->free_gpus)
        return false;
    taken = st_xcalloc((size_t)job->tasks, sizeof(*taken));
    if (!place(c, job, taken)) {
        free(taken);
        return false;
    }
    c->taken[i] = taken;
    c->free_gpus -= gpus;
    c->held += gpus;
    c->out->start_ms.v[i] = c->now;
    c->out->end_ms.v[i] = c->now + job->run_ms;
    st_due_push(&c->ends, (st_due){.at_ms = c->now + job->run_ms, .job = i});
    return true;
}

static void look(cluster *c)
{
    size_t kept = 0, i = 0;
    int64_t hopeless = INT64_MAX; /* a single task of so many GPUs did not fit */

    for (; i < c->waiting.n && c->free_gpus > 0; i++) {
        const st_trace_job *job = &c->trace->jobs.v[c->waiting.v[i]];

        if (part(c, job, 0) < hopeless && try_start(c, c->waiting.v[i]))
            continue;
        if (!c->backfill)
            break;
        if (job->tasks == 1)
            hopeless = ST_MIN(hopeless, part(c, job, 0));
        c->waiting.v[kept++] = c->waiting.v[i];
    }
    if (kept == i)
        return; /* nobody started */
    for (; i < c->waiting.n; i++)
        c->waiting.v[kept++] = c->waiting.v[i];
    c->waiting.n = kept;
}

static void end_job(cluster *c, size_t i)
{
    const st_trace_job *job = &c->trace->jobs.v[i];

    for (int t = 0; part(c, job, t) > 0; t++)
        c->free[c->taken[i][t]] += part(c, job, t);
    c->free_gpus += (int64_t)job->tasks * job->shape.gpus;
    c->held -= (int64_t)job->tasks * job->shape.gpus;
    free(c->taken[i]);
    c->taken[i] = NULL;
}

/* Plays the jobs of one account, or of all for -1; adds up what was held. */
static void play(cluster *c, int32_t account)
{
    const st_trace *trace = c->trace;
    int64_t last_ms = trace->jobs.n > 0 ? trace->jobs.v[trace->jobs.n - 1].submit_ms : 0;
    size_t next = 0;

    add_nodes(c, account);
    for (;;) {
        const st_due *end = st_due_first(&c->ends);
        int64_t at_ms = end ? end->at_ms : ST_TIME_NEVER;

        while (next < trace->jobs.n && account >= 0 && trace->jobs.v[next].account != account)
            next++;
        if (next < trace->jobs.n)
            at_ms = ST_MIN(at_ms, trace->jobs.v[next].submit_ms);
        if (at_ms == ST_TIME_NEVER)
            break;
        integrate(c, at_ms, last_ms);
        while ((end = st_due_first(&c->ends)) && end->at_ms <= at_ms)
            end_job(c, st_due_pop(&c->ends).job);
        for (; next < trace->jobs.n && trace->jobs.v[next].submit_ms <= at_ms; next++) {
            if (account >= 0 && trace->jobs.v[next].account != account)
                continue;
            if (could_fit(c, &trace->jobs.v[next]))
                st_vec_push(&c->waiting, next);
            else
                c->out->misfits++;
        }
        look(c);
    }
}

static void cluster_done(cluster *c)
{
    free(c->size);
    free(c->free);
    free(c->empty);
    free(c->taken);
    st_vec_free(&c->waiting);
    st_due_done(&c->ends);
}

/* Plays and adds its amounts to those of the fleet. */
static void play_cluster(const st_trace *trace, bool backfill, int32_t account, st_private *ret,
                         double *ret_allocated, double *ret_arriving, int64_t *ret_end_ms)
{
    size_t nodes = trace->nodes.n + 1;
    cluster c = {.trace = trace, .out = ret, .backfill = backfill};

    if (account >= 0)
        nodes += (size_t)(st_trace_own_m(trace, account) / ST_WHOLE_M);
    c.size = st_xcalloc(nodes, sizeof(*c.size));
    c.free = st_xcalloc(nodes, sizeof(*c.free));
    c.empty = st_xcalloc(nodes, sizeof(*c.empty));
    c.taken = st_xcalloc(trace->jobs.n + 1, sizeof(*c.taken));
    play(&c, account);
    *ret_allocated += c.allocated;
    *ret_arriving += c.allocated_arriving;
    *ret_end_ms = ST_MAX(*ret_end_ms, c.now);
    cluster_done(&c);
}

static void summarise(const st_trace *trace, st_private *p)
{
    size_t n = 0;
    ST_CLEANUP(st_freep) int64_t *wait = st_xcalloc(trace->jobs.n + 1, sizeof(*wait));
    ST_CLEANUP(st_freep) int64_t *end = st_xcalloc(trace->jobs.n + 1, sizeof(*end));

    for (size_t i = 0; i < trace->jobs.n; i++) {
        if (p->end_ms.v[i] == ST_UNSET)
            continue;
        wait[n] = p->start_ms.v[i] - trace->jobs.v[i].submit_ms;
        end[n++] = p->end_ms.v[i] - trace->jobs.v[i].submit_ms;
    }
    st_spread_of(wait, n, &p->queueing);
    st_spread_of(end, n, &p->completion);
}

static const struct {
    const char *name;
    bool alone, backfill;
} kinds[] = {
#define X(id, name, private, backfill) [id] = {name, private, backfill},
    ST_PRIVATE_TABLE(X)
#undef X
};

const char *st_private_name(st_private_kind kind)
{
    ST_ASSERT(kind < ST_PRIVATE_COUNT);
    return kinds[kind].name;
}

void st_private_play(const st_trace *trace, st_private_kind kind, st_private *ret)
{
    double allocated = 0, arriving = 0, gpus = 0;
    int64_t end_ms = 0, last_ms = 0;

    ST_ASSERT(kind < ST_PRIVATE_COUNT);
    *ret = (st_private){0};
    for (size_t i = 0; i < trace->jobs.n; i++) {
        st_vec_push(&ret->start_ms, ST_UNSET);
        st_vec_push(&ret->end_ms, ST_UNSET);
        last_ms = trace->jobs.v[i].submit_ms;
    }
    for (size_t n = 0; n < trace->nodes.n; n++)
        gpus += trace->nodes.v[n].ndevs;
    if (kinds[kind].alone)
        for (size_t a = 0; a < trace->accounts.n; a++)
            play_cluster(trace, kinds[kind].backfill, (int32_t)a, ret, &allocated, &arriving,
                         &end_ms);
    else
        play_cluster(trace, kinds[kind].backfill, -1, ret, &allocated, &arriving, &end_ms);
    summarise(trace, ret);
    if (gpus > 0 && end_ms > 0)
        ret->allocation = allocated / (gpus * (double)end_ms);
    if (gpus > 0 && last_ms > 0)
        ret->allocation_arriving = arriving / (gpus * (double)last_ms);
}

void st_private_done(st_private *p)
{
    st_vec_free(&p->start_ms);
    st_vec_free(&p->end_ms);
}

void st_private_compare(const st_trace_run *run, const st_private *p, st_private_diff *ret)
{
    *ret = (st_private_diff){0};
    for (size_t i = 0; i < run->jobs.n; i++) {
        int64_t late_ms = run->jobs.v[i].end_ms - p->end_ms.v[i];

        if (run->jobs.v[i].end_ms == ST_UNSET || p->end_ms.v[i] == ST_UNSET)
            continue;
        ret->compared++;
        if (late_ms <= 0)
            continue;
        ret->later++;
        ret->late_ms += late_ms;
        if (late_ms > ret->worst_ms) {
            ret->worst_ms = late_ms;
            ret->worst = i;
        }
    }
}
