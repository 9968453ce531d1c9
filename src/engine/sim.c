/*
 * The simulated engine: nothing runs, but everything takes its time, ends as its document says and
 * has something to show. It makes stintd whole on a machine without a single GPU.
 *
 * A job's document may have `sim: {run: 90s, exit: 0, save: 2s}`. Without it a job runs for a while
 * that follows from its id, below its limit. An end is reported until it is heard: the order to
 * stop is the receipt.
 */
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "engine/engine.h"

#define RUN_MIN_MS    INT64_C(20000)
#define RUN_SPREAD_MS INT64_C(280000)
#define SAVE_MS       INT64_C(1000)
#define AGAIN_MS      INT64_C(2000) /* between two reports of the same thing */
#define LINE_MS       INT64_C(5000) /* between two lines of a job's log */

typedef struct sim_job {
    uint64_t id;
    int stay, exit_code, tasks;
    bool service, paused;
    int64_t run_ms;           /* in all */
    int64_t begun_ms, ran_ms; /* it had ran_ms behind it at begun_ms */
    int64_t end_ms, saved_ms; /* when to report; ST_TIME_NEVER: not */
    int64_t save_ms;
    char where[ST_NAME_MAX + 1]; /* first node */
} sim_job;

typedef struct sim_engine {
    st_engine base;
    pthread_mutex_t lock;
    ST_VEC(sim_job *) jobs;
    st_idmap *at;
    int64_t next_ms; /* the earliest report due */
} sim_engine;

static sim_job *find(const sim_engine *e, uint64_t id)
{
    int64_t i;

    return st_idmap_get(e->at, id, &i) ? e->jobs.v[i] : NULL;
}

static void drop(sim_engine *e, uint64_t id)
{
    int64_t i;

    if (!st_idmap_get(e->at, id, &i))
        return;
    free(e->jobs.v[i]);
    st_idmap_del(e->at, id);
    e->jobs.v[i] = e->jobs.v[e->jobs.n - 1];
    e->jobs.n--;
    if ((size_t)i < e->jobs.n)
        st_idmap_put(e->at, e->jobs.v[i]->id, i);
}

static int64_t duration(const json_t *map, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(map, key);
    int64_t ms;

    if (json_is_integer(v))
        return json_integer_value(v) * 1000;
    if (json_is_string(v) && st_parse_duration_ms(json_string_value(v), &ms, NULL) == 0)
        return ms;
    return otherwise;
}

static void read_doc(sim_job *job, const st_engine_order *o)
{
    json_t *root = json_loads(o->doc ? o->doc : "{}", 0, NULL);
    const json_t *sim = json_object_get(root, "sim");
    int64_t limit = o->spec ? o->spec->limit_ms : ST_TIME_NEVER;
    int64_t run = RUN_MIN_MS + (int64_t)(st_hash_u64(5, o->job) % RUN_SPREAD_MS);

    if (limit != ST_TIME_NEVER)
        run = ST_MIN(run, limit - limit / 5);
    job->run_ms = duration(sim, "run", run);
    job->save_ms = duration(sim, "save", SAVE_MS);
    job->exit_code = (int)json_integer_value(json_object_get(sim, "exit"));
    json_decref(root);
}

static void soon(sim_engine *e, int64_t ms)
{
    e->next_ms = ST_MIN(e->next_ms, ms);
}

static void begin(sim_engine *e, const st_engine_order *o)
{
    sim_job *job = find(e, o->job);

    if (job && job->stay == o->stay && !job->paused)
        return; /* heard already */
    if (!job) {
        job = st_xcalloc(1, sizeof *job);
        job->id = o->job;
        st_idmap_put(e->at, job->id, (int64_t)e->jobs.n);
        st_vec_push(&e->jobs, job);
        read_doc(job, o);
    }
    job->stay = o->stay;
    job->paused = false;
    job->tasks = o->ngrants;
    job->begun_ms = o->at_ms;
    job->ran_ms = o->ran_ms;
    job->saved_ms = ST_TIME_NEVER;
    job->end_ms = o->at_ms + ST_MAX(job->run_ms - o->ran_ms, 0);
    if (o->ngrants > 0 && o->fleet)
        strncpy(job->where, o->fleet->nodes.v[o->grants[0].node]->name, sizeof job->where - 1);
    soon(e, job->end_ms);
}

static void on_order(st_engine *engine, const st_engine_order *o)
{
    sim_engine *e = (sim_engine *)engine;
    sim_job *job;

    pthread_mutex_lock(&e->lock);
    job = find(e, o->job);
    switch (o->kind) {
    case ST_ENG_RUN:
    case ST_ENG_RESUME:
        begin(e, o);
        break;
    case ST_ENG_CHECKPOINT:
        if (job && job->stay == o->stay) {
            job->saved_ms = o->at_ms + job->save_ms;
            soon(e, job->saved_ms);
        }
        break;
    case ST_ENG_PAUSE:
        if (job) {
            job->paused = true;
            job->end_ms = job->saved_ms = ST_TIME_NEVER;
        }
        break;
    case ST_ENG_HALT: /* its nodes are taken at the core's word */
    case ST_ENG_STOP:
        drop(e, o->job);
        break;
    case ST_ENG_NOTIFY:
    case ST_ENG_LIMIT: /* it runs as long as it does; the core ends it */
    case ST_ENG_SPARE:
    case ST_ENG_COUNT:
        break;
    }
    pthread_mutex_unlock(&e->lock);
}

/* Reports go out after the lock is released: whoever hears them may give orders at once. */
static void on_tick(st_engine *engine, int64_t now)
{
    sim_engine *e = (sim_engine *)engine;
    ST_VEC(st_report) due = {0};

    pthread_mutex_lock(&e->lock);
    if (e->next_ms <= now) {
        e->next_ms = ST_TIME_NEVER;
        for (size_t i = 0; i < e->jobs.n; i++) {
            sim_job *job = e->jobs.v[i];
            st_report r = {.job = job->id, .stay = job->stay};

            if (job->end_ms <= now) {
                r.kind = ST_REPORT_ENDED;
                r.exit_code = job->exit_code;
                st_vec_push(&due, r);
                job->end_ms = now + AGAIN_MS;
            } else if (job->saved_ms <= now) {
                r.kind = ST_REPORT_CHECKPOINTED;
                st_vec_push(&due, r);
                job->saved_ms = now + AGAIN_MS;
            }
            soon(e, ST_MIN(job->end_ms, job->saved_ms));
        }
    }
    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < due.n; i++)
        e->base.report(e->base.ctx, &due.v[i]);
    st_vec_free(&due);
}

static int64_t on_next(st_engine *engine)
{
    sim_engine *e = (sim_engine *)engine;
    int64_t next;

    pthread_mutex_lock(&e->lock);
    next = e->next_ms;
    pthread_mutex_unlock(&e->lock);
    return next;
}

/* As many lines as it has had time for, the same ones each time they are asked for. */
static void write_log(const sim_job *job, int task, int64_t now, st_strbuf *out)
{
    int64_t ran = job->ran_ms + (job->paused ? 0 : ST_MAX(now - job->begun_ms, 0));
    int64_t lines = ST_MIN(ran / LINE_MS, 10000);

    st_strbuf_addf(out, "task %d of %d started on %s (simulated)\n", task, job->tasks, job->where);
    for (int64_t i = 1; i <= lines; i++)
        st_strbuf_addf(out, "step %" PRId64 " loss %" PRId64 ".%03" PRId64 "\n", i * 100,
                       INT64_C(9) / (i + 3), INT64_C(7919) * i % 1000);
}

/* Where in its log that begins which is asked for: `since` and `tail` as a real log has them. */
static size_t log_start(const sim_job *job, const st_log_ask *ask, const st_strbuf *all)
{
    const char *text = st_strbuf_str(all);
    int64_t lines = 0, line = 0, from = ST_MAX(ask->offset, 0), tail = 0;

    for (size_t i = 0; i < all->n; i++)
        lines += text[i] == '\n';
    for (size_t i = 0; i < all->n; i++) {
        if (text[i] != '\n')
            continue;
        if (ask->since_ms > job->begun_ms - job->ran_ms + line * LINE_MS)
            from = ST_MAX(from, (int64_t)i + 1);
        line++;
        if (ask->tail > 0 && line <= lines - ask->tail)
            tail = (int64_t)i + 1;
    }
    return (size_t)ST_MIN(ST_MAX(from, tail), (int64_t)all->n);
}

static int on_logs(st_engine *engine, const st_log_ask *ask, st_log_got *ret, st_err *err)
{
    sim_engine *e = (sim_engine *)engine;
    ST_CLEANUP(st_strbuf_done) st_strbuf all = {0};
    size_t from, n;
    sim_job *job;

    pthread_mutex_lock(&e->lock);
    job = find(e, ask->job);
    if (job) {
        write_log(job, ask->task, ask->now, &all);
        from = log_start(job, ask, &all);
        n = ST_MIN(all.n - from, ask->max);
        st_strbuf_addn(&ret->text, st_strbuf_str(&all) + from, n);
        ret->next = (int64_t)(from + n);
        ret->stay = ret->newest = job->stay;
    }
    pthread_mutex_unlock(&e->lock);
    return job ? 0
               : st_fail(err, ST_ENOENT,
                         "this job is not running, and simulated jobs keep no output");
}

static void on_free(st_engine *engine)
{
    sim_engine *e = (sim_engine *)engine;

    for (size_t i = 0; i < e->jobs.n; i++)
        free(e->jobs.v[i]);
    st_vec_free(&e->jobs);
    st_idmap_free(e->at);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static const st_engine_ops ops = {
    .name = "sim",
    .order = on_order,
    .tick = on_tick,
    .next_ms = on_next,
    .logs = on_logs,
    .free = on_free,
};

st_engine *st_engine_sim_new(void)
{
    sim_engine *e = st_xcalloc(1, sizeof *e);

    e->base.ops = &ops;
    e->at = st_idmap_new();
    e->next_ms = ST_TIME_NEVER;
    ST_ASSERT(pthread_mutex_init(&e->lock, NULL) == 0);
    return &e->base;
}
