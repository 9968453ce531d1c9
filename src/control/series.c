/*
 * The thread that gathers figures over time, and what it writes (control/series.h).
 */
#include "control/series.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "control/series_look.h"

#define NICE         10
#define STEP_MIN_MS  1000
#define LOOKS        6     /* in a bucket, but no further apart than */
#define LOOK_MS      10000 /* this */
#define LOOK_MIN_MS  50
#define SLACK_MS     3000   /* three looks and this: nobody was looking */
#define PENDING_MAX  20000  /* blobs that the store did not take; the oldest go */
#define MEASURES_MAX 262144 /* that wait for a state to look at; more are forgotten */
#define WINDOWS_MAX  32     /* wide buckets made in one go, when many are missing */
#define PRUNED_MAX   20     /* narrow buckets removed in one go */

struct st_gatherer {
    st_control *ctl;
    st_series_options o;
    st_store *reader;
    st_gathered now;
    st_measures measures;
    int64_t begin_ms, looked_ms;      /* of the bucket; of the last look, 0: none yet */
    int64_t until_ms;                 /* narrow buckets are written up to here */
    int64_t made_ms[ST_SERIES_TIERS]; /* those of a width are made up to here; 0: not known yet */
    ST_VEC(st_series_blob) pending;   /* packed, to be written; data is malloc'ed */
    bool closed;                      /* the last look ended a bucket */
};

struct st_series_thread {
    st_gatherer *g;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping, failing;
    pthread_t thread;
};

int64_t st_series_width(int64_t step_ms, int tier)
{
    static const int64_t times[ST_SERIES_TIERS] = {1, 10, 60};

    return step_ms * times[tier];
}

static int64_t width(const st_gatherer *g, int tier)
{
    return st_series_width(g->o.step_ms, tier);
}

/* ---- the command ---------------------------------------------------------------------------------- */

typedef struct write_cmd {
    st_cmd cmd;
    const st_series_blob *put, *prune; /* of what is pruned, at_ms is the moment before which */
    size_t nput, nprune;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    st_err err;
} write_cmd;

static int run_write(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const write_cmd *w = (write_cmd *)cmd;
    int r = st_tx_open(tx, err);

    for (size_t i = 0; r == 0 && i < w->nput; i++)
        r = st_tx_fault(tx, st_store_series_put(tx->ctl->store, &w->put[i], err), err);
    for (size_t i = 0; r == 0 && i < w->nprune; i++)
        r = st_tx_fault(
            tx, st_store_series_prune(tx->ctl->store, &w->prune[i], w->prune[i].at_ms, err), err);
    return r;
}

static void done_write(st_cmd *cmd, const st_err *err)
{
    write_cmd *w = (write_cmd *)cmd;

    pthread_mutex_lock(&w->lock);
    if (err)
        w->err = *err;
    w->done = true;
    pthread_cond_signal(&w->over);
    pthread_mutex_unlock(&w->lock);
}

static int write_rows(st_gatherer *g, const st_series_blob *put, size_t nput,
                      const st_series_blob *prune, size_t nprune, st_err *err)
{
    write_cmd w = {.cmd = {.lane = ST_LANE_AGENTS, .run = run_write, .done = done_write},
                   .put = put,
                   .prune = prune,
                   .nput = nput,
                   .nprune = nprune,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .over = PTHREAD_COND_INITIALIZER};

    if (nput + nprune == 0)
        return 0;
    if (!st_control_post(g->ctl, &w.cmd))
        return st_fail(err, ST_EDOWN, "the control loop takes no more");
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.over, &w.lock);
    pthread_mutex_unlock(&w.lock);
    if (w.err.code == 0)
        return 0;
    *err = w.err;
    return -err->code;
}

/* ---- packing -------------------------------------------------------------------------------------- */

static void drop_blobs(st_gatherer *g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)g->pending.v[i].data.p);
    for (size_t i = n; i < g->pending.n; i++)
        g->pending.v[i - n] = g->pending.v[i];
    g->pending.n -= n;
}

static void push_blob(st_gatherer *g, const st_series_blob *of, const st_series_set *set)
{
    st_strbuf data = {0};
    st_series_blob blob = *of;

    st_series_encode((st_series_kind)of->kind, set, &data);
    blob.data.n = data.n;
    blob.data.p = st_strbuf_take(&data);
    st_vec_push(&g->pending, blob);
}

/* What is damaged is a gap; it must not be one for good. */
static int add_blob(void *ctx, const st_series_blob *blob, st_err *err)
{
    ST_CLEANUP(st_series_set_done) st_series_set set = {0};

    (void)err;
    if (st_series_decode((st_series_kind)blob->kind, blob->data.p, blob->data.n, &set, NULL) == 0)
        st_series_merge(ctx, &set);
    return 0;
}

/* The rows of a bucket, and those that were written for it before. */
static int pack(st_gatherer *g, const st_series_blob *of, const st_series_row *rows, size_t n,
                st_err *err)
{
    ST_CLEANUP(st_series_set_done) st_series_set all = {0}, set = {0};
    int r = st_store_series_read(g->reader, of, of->at_ms, of->at_ms + 1, add_blob, &all, err);

    for (size_t i = 0; i < n; i++)
        st_vec_push(&set.rows, rows[i]);
    st_series_merge(&all, &set);
    if (r == 0)
        push_blob(g, of, &all);
    return r;
}

static int pack_all(st_gatherer *g, st_err *err)
{
    int r = 0;

    for (int k = 0; r == 0 && k < ST_SERIES_KINDS; k++) {
        ST_CLEANUP(st_series_set_done) st_series_set set = {0};

        st_gathered_take(&g->now, (st_series_kind)k, &set);
        for (size_t i = 0, end; r == 0 && i < set.rows.n; i = end) {
            st_series_blob of = {.width_ms = g->o.step_ms,
                                 .kind = k,
                                 .part = st_series_part((st_series_kind)k, set.rows.v[i].id),
                                 .at_ms = g->begin_ms};

            for (end = i; end < set.rows.n &&
                          st_series_part((st_series_kind)k, set.rows.v[end].id) == of.part;)
                end++;
            r = pack(g, &of, &set.rows.v[i], end - i, err);
        }
    }
    return r;
}

/* ---- wider buckets, and what is too old ----------------------------------------------------------- */

static st_series_blob cluster(const st_gatherer *g, int tier)
{
    return (st_series_blob){.width_ms = width(g, tier),
                            .kind = ST_SERIES_ACCOUNT,
                            .part = st_series_part(ST_SERIES_ACCOUNT, ST_ROOT)};
}

/* The first bucket of a width that is still to be made: wherever anything was gathered, there is a row of the cluster. */
static int begin_tier(st_gatherer *g, int tier, st_err *err)
{
    st_series_blob own = cluster(g, tier), finer = cluster(g, tier - 1);
    int64_t first, last, w = width(g, tier);
    int r = st_store_series_span(g->reader, &own, &first, &last, err);

    if (r == 0 && last >= 0) {
        g->made_ms[tier] = last + w;
        return 0;
    }
    if (r == 0)
        r = st_store_series_span(g->reader, &finer, &first, &last, err);
    if (r == 0 && first >= 0)
        g->made_ms[tier] = st_series_bucket(first, w);
    return r;
}

static int make_kind(st_gatherer *g, int tier, int kind, st_err *err)
{
    int64_t parts, w = width(g, tier);
    int r = st_store_series_parts(g->reader, width(g, tier - 1), kind, &parts, err);

    for (int64_t p = 0; r == 0 && p < parts; p++) {
        ST_CLEANUP(st_series_set_done) st_series_set set = {0};
        st_series_blob of = {.width_ms = width(g, tier - 1), .kind = kind, .part = p};

        r = st_store_series_read(g->reader, &of, g->made_ms[tier], g->made_ms[tier] + w, add_blob,
                                 &set, err);
        of.width_ms = w;
        of.at_ms = g->made_ms[tier];
        if (r == 0 && set.rows.n > 0)
            push_blob(g, &of, &set);
    }
    return r;
}

static int nothing_there(void *ctx, const st_series_blob *blob, st_err *err)
{
    (void)blob;
    (void)err;
    *(bool *)ctx = false;
    return 1;
}

static int write_pending(st_gatherer *g, st_err *err)
{
    int r = write_rows(g, g->pending.v, g->pending.n, NULL, 0, err);

    if (r == 0)
        drop_blobs(g, g->pending.n);
    else if (g->pending.n > PENDING_MAX)
        drop_blobs(g, g->pending.n - PENDING_MAX);
    return r;
}

static int make_tier(st_gatherer *g, int tier, st_err *err)
{
    int64_t finer_ms = tier == 1 ? g->until_ms : g->made_ms[tier - 1], w = width(g, tier);
    int r = g->made_ms[tier] == 0 ? begin_tier(g, tier, err) : 0;

    for (int n = 0;
         r == 0 && n < WINDOWS_MAX && g->made_ms[tier] > 0 && g->made_ms[tier] + w <= finer_ms;) {
        st_series_blob of = cluster(g, tier - 1);
        bool empty = true;

        r = st_store_series_read(g->reader, &of, g->made_ms[tier], g->made_ms[tier] + w,
                                 nothing_there, &empty, err);
        for (int k = 0; r == 0 && !empty && k < ST_SERIES_KINDS; k++)
            r = make_kind(g, tier, k, err);
        if (r == 0)
            r = write_pending(g, err);
        if (r == 0)
            g->made_ms[tier] += w;
        n += !empty;
    }
    return r;
}

/* A few buckets of a part in one go, so that nobody waits for a long pause to be made up. */
static int prune_kind(st_gatherer *g, int64_t w, int kind, int64_t cut, st_err *err)
{
    ST_VEC(st_series_blob) list = {0};
    int64_t parts;
    int r = st_store_series_parts(g->reader, w, kind, &parts, err);

    for (int64_t p = 0; r == 0 && p < parts; p++) {
        st_series_blob of = {.width_ms = w, .kind = kind, .part = p};
        int64_t first, last;

        r = st_store_series_span(g->reader, &of, &first, &last, err);
        of.at_ms = ST_MIN(cut, first + PRUNED_MAX * w);
        if (r == 0 && first >= 0 && first < cut)
            st_vec_push(&list, of);
    }
    if (r == 0)
        r = write_rows(g, NULL, 0, list.v, list.n, err);
    st_vec_free(&list);
    return r;
}

/* Jobs that are forgotten need no figures. */
static int prune_width(st_gatherer *g, int64_t w, int64_t cut, st_err *err)
{
    int64_t keep_jobs = g->ctl->options.keep_jobs_ms;
    int r = 0;

    for (int k = 0; r == 0 && k < ST_SERIES_KINDS; k++) {
        int64_t from = k == ST_SERIES_JOB && keep_jobs > 0 && w == width(g, ST_SERIES_TIERS - 1)
                           ? ST_MAX(cut, g->until_ms - keep_jobs)
                           : cut;

        r = prune_kind(g, w, k, st_series_bucket(ST_MAX(from, 0), w), err);
    }
    return r;
}

/* Never before the wider one that it is in was made. */
static int prune_tier(st_gatherer *g, int tier, st_err *err)
{
    int64_t cut = g->until_ms - g->o.keep_ms[tier];

    if (tier + 1 < ST_SERIES_TIERS)
        cut = ST_MIN(cut, g->made_ms[tier + 1]);
    return prune_width(g, width(g, tier), cut, err);
}

/* Of widths that were configured before: they go like the widest there is now. */
static int prune_others(st_gatherer *g, st_err *err)
{
    int64_t w = 0, keep = g->o.keep_ms[ST_SERIES_TIERS - 1];
    int r = 0;

    while (r == 0 && (r = st_store_series_next_width(g->reader, w, &w, err)) == 0 && w > 0) {
        bool ours = false;

        for (int tier = 0; tier < ST_SERIES_TIERS; tier++)
            ours |= width(g, tier) == w;
        if (!ours)
            r = prune_width(g, w, g->until_ms - keep, err);
    }
    return r;
}

static int tidy_up(st_gatherer *g, st_err *err)
{
    int r = 0;

    for (int tier = 1; r == 0 && tier < ST_SERIES_TIERS; tier++)
        r = make_tier(g, tier, err);
    /* Removing costs a statement for each part, whether it has anything to go or not. */
    for (int tier = 0; r == 0 && tier < ST_SERIES_TIERS; tier++)
        if (g->until_ms % width(g, ST_MIN(tier + 1, ST_SERIES_TIERS - 1)) == 0)
            r = prune_tier(g, tier, err);
    if (r == 0 && g->until_ms % width(g, ST_SERIES_TIERS - 1) == 0)
        r = prune_others(g, err);
    return r;
}

/* ---- looking -------------------------------------------------------------------------------------- */

static int64_t look_ms(const st_series_options *o)
{
    return ST_MAX(ST_MIN(o->step_ms / LOOKS, LOOK_MS), LOOK_MIN_MS);
}

static bool is_pause(const st_gatherer *g, int64_t ms)
{
    return ms > 3 * look_ms(&g->o) + SLACK_MS;
}

static int look(void *ctx, st_tx *tx, st_err *err)
{
    st_gatherer *g = ctx;
    const st_core *core = st_tx_core(tx);
    int64_t now = tx->now, end = g->begin_ms + g->o.step_ms;

    (void)err;
    if (g->looked_ms == 0 || is_pause(g, now - g->looked_ms)) {
        /* What was gathered before the pause stays in its bucket. */
        g->closed = g->looked_ms > 0 && now >= end;
        if (!g->closed) {
            g->begin_ms = g->looked_ms > 0 ? g->begin_ms : st_series_bucket(now, g->o.step_ms);
            g->looked_ms = now;
        }
        return 0;
    }
    g->closed = now >= end;
    now = ST_MIN(now, end);
    if (now > g->looked_ms)
        st_gather_state(&g->now, core, now - g->looked_ms);
    g->looked_ms = ST_MAX(g->looked_ms, now);
    st_gather_measures(&g->now, core, &g->measures);
    st_vec_clear(&g->measures.list);
    if (g->closed)
        st_gather_spent(&g->now, tx);
    return 0;
}

int st_gatherer_flush(st_gatherer *g, st_err *err)
{
    int r = pack_all(g, err);

    return r == 0 ? write_pending(g, err) : r;
}

static int close_bucket(st_gatherer *g, int64_t now, st_err *err)
{
    int64_t end = g->begin_ms + g->o.step_ms;
    int r = st_gatherer_flush(g, err);

    /* Whatever became of it, the next one begins: where time was lost, in the middle of one. */
    g->begin_ms = end;
    if (is_pause(g, now - end))
        g->looked_ms = 0;
    if (r < 0)
        return r;
    g->until_ms = end;
    return tidy_up(g, err);
}

int st_gatherer_look(st_gatherer *g, st_err *err)
{
    st_engine *engine = g->ctl->options.engine;
    int r;

    if (engine && engine->ops->measures)
        engine->ops->measures(engine, &g->measures);
    r = st_control_read(g->ctl, ST_READ_SHARED, 0, look, g, NULL, err);
    /* Nobody knows whose they are while there is no state to look at. */
    if (r < 0 && g->measures.list.n > MEASURES_MAX)
        st_vec_clear(&g->measures.list);
    if (r < 0 || !g->closed)
        return r;
    g->closed = false;
    return close_bucket(g, g->ctl->options.clock(g->ctl->options.ctx), err);
}

int st_gatherer_new(st_control *ctl, const st_series_options *o, st_gatherer **ret, st_err *err)
{
    st_gatherer *g = st_xcalloc(1, sizeof *g);
    int r = st_store_open_reader(ctl->store, &g->reader, err);

    g->ctl = ctl;
    g->o = *o;
    st_gathered_init(&g->now);
    if (r < 0) {
        st_gatherer_free(g);
        return r;
    }
    *ret = g;
    return 0;
}

void st_gatherer_free(st_gatherer *g)
{
    if (!g)
        return;
    drop_blobs(g, g->pending.n);
    st_vec_free(&g->pending);
    st_vec_free(&g->measures.list);
    st_gathered_done(&g->now);
    st_store_close(g->reader);
    free(g);
}

/* ---- the thread ----------------------------------------------------------------------------------- */

/* Once when it begins and once when it ends. */
static void say(st_series_thread *t, int r, const st_err *err)
{
    if (t->failing == (r < 0))
        return;
    t->failing = r < 0;
    if (r < 0)
        st_control_say(t->g->ctl, "event=series_stopped reason=\"%s\"", err->msg);
    else
        st_control_say(t->g->ctl, "event=series_go_on");
}

static int64_t sleep_ms(const st_gatherer *g)
{
    int64_t now = g->ctl->options.clock(g->ctl->options.ctx);
    int64_t left = g->begin_ms + g->o.step_ms - now;

    return ST_MAX(ST_MIN(look_ms(&g->o), left), 1);
}

static void *gather(void *arg)
{
    st_series_thread *t = arg;
    struct timespec until;
    st_err err = {0};

    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
    pthread_mutex_lock(&t->lock);
    while (!t->stopping) {
        int64_t ms;
        int r;

        pthread_mutex_unlock(&t->lock);
        r = st_gatherer_look(t->g, &err);
        say(t, r, &err);
        ms = r < 0 ? look_ms(&t->g->o) : sleep_ms(t->g);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += ms / 1000;
        until.tv_nsec += ms % 1000 * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_mutex_lock(&t->lock);
        while (!t->stopping && pthread_cond_timedwait(&t->wake, &t->lock, &until) != ETIMEDOUT)
            continue;
    }
    pthread_mutex_unlock(&t->lock);
    /* What there is of this bucket is added to after the next start. */
    if (st_gatherer_look(t->g, &err) < 0 || st_gatherer_flush(t->g, &err) < 0)
        st_control_say(t->g->ctl, "event=series_stopped reason=\"%s\"", err.msg);
    return NULL;
}

const st_series_options *st_control_series(const st_control *ctl)
{
    return &ctl->options.series;
}

int st_series_start(st_control *ctl, st_err *err)
{
    st_series_thread *t;
    pthread_condattr_t clock;
    int r;

    if (ctl->options.series.step_ms == 0)
        return 0;
    if (ctl->options.series.step_ms < STEP_MIN_MS)
        return st_fail(err, ST_EINVAL,
                       "series_step: buckets are at least 1s wide; 0 keeps no figures over time");
    t = st_xcalloc(1, sizeof *t);
    ST_ASSERT(pthread_mutex_init(&t->lock, NULL) == 0);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&t->wake, &clock) == 0);
    pthread_condattr_destroy(&clock);
    r = st_gatherer_new(ctl, &ctl->options.series, &t->g, err);
    if (r == 0 && pthread_create(&t->thread, NULL, gather, t) != 0)
        r = st_fail(err, ST_EINTERNAL, "the thread for figures over time cannot be started");
    if (r == 0) {
        ctl->series = t;
        return 0;
    }
    st_gatherer_free(t->g);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->wake);
    free(t);
    return r;
}

void st_series_stop(st_control *ctl)
{
    st_series_thread *t = ctl->series;

    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    ctl->series = NULL;
    st_gatherer_free(t->g);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->wake);
    free(t);
}
