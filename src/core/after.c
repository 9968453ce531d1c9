/* Jobs that wait for other jobs (core/flow.h).
 *
 * A job names others that are not over, or whole arrays, and how each must end. One that ends so is crossed off; when
 * none is left the job waits like any other. One that ends otherwise can never be crossed off: the job is cancelled,
 * or stays as it is where it was submitted so, and says why: nothing is crossed off any more, not even by an array
 * that ended, grew again and ends otherwise. Who is told so ends too, and tells those who wait for it: not more than ENDS_MAX at a moment, so that a chain of a hundred thousand stops nobody else.
 *
 * What has ended before a job comes is not known here; whoever submits it looks that up. There are no circles: a job
 * names only what was there before it, or before its array, which goes on growing. A job that is tried again has not
 * ended. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/flow.h"

#define ENDS_MAX 256

/* Under which those who wait for it are found. */
static uint64_t key_of(uint64_t id, bool array)
{
    return id << 1 | array;
}

/* Whatever waits comes after what it waits for in this order. */
static uint64_t rank_of(uint64_t id, uint64_t array)
{
    return array ? array : id;
}

static int check_one(const st_core *core, const st_job_spec *spec, const st_await *a, st_err *err)
{
    const st_array *array = a->array ? st_array_find(core, a->id) : NULL;
    const st_job *job = a->array ? NULL : st_core_find(core, a->id);
    if (a->how < 0 || a->how >= ST_AFTER_COUNT)
        return st_fail(err, ST_EINVAL, "job %s: unknown end to wait for (number %d)", spec->name,
                       (int)a->how);
    if (!array && !job)
        return st_fail(err, ST_ENOENT,
                       "job %s: %s %" PRIu64 ", which it waits for, does not exist or is over",
                       spec->name, a->array ? "array" : "job", a->id);
    if (rank_of(a->id, job ? job->array : a->id) >= rank_of(spec->id, spec->array))
        return st_fail(err, ST_EINVAL,
                       "job %s: it can wait for what was there before it and its array, not for "
                       "anything later",
                       spec->name);
    if (array && array->failed > 0 && a->how == ST_AFTER_OK)
        return st_fail(err, ST_ESTATE,
                       "job %s: a job of array %" PRIu64 " has not ended well, so waiting for all "
                       "to be done is in vain",
                       spec->name, a->id);
    return 0;
}

int st_after_check(const st_core *core, const st_job_spec *spec, st_err *err)
{
    int rc = 0;
    if (spec->nafters < 0 || spec->nafters > ST_AFTER_MAX)
        return st_fail(err, ST_ERANGE, "job %s: it may wait for at most %d jobs or arrays",
                       spec->name, ST_AFTER_MAX);
    if (spec->held_by < 0)
        return st_fail(err, ST_ERANGE, "job %s: nobody is weaker than nobody", spec->name);
    if (spec->hard && (spec->nafters > 0 || spec->held_by > 0 || spec->throttle > 0))
        return st_fail(err, ST_EINVAL,
                       "job %s: a promised deadline goes with neither --after, --hold nor a "
                       "throttle: nobody can promise when others end",
                       spec->name);
    for (int i = 0; rc == 0 && i < spec->nafters; i++)
        rc = check_one(core, spec, &spec->afters[i], err);
    return rc;
}

void st_after_set(st_core *core, const st_job_spec *spec, st_job *job)
{
    (void)core;
    job->keeps = spec->keeps;
    job->held_by = spec->held_by;
    if (spec->held_by > 0 && !ST_BROKEN(ON_HOLD))
        job->barred |= ST_BAR_HOLD;
    if (spec->nafters == 0)
        return;
    job->nafters = spec->nafters;
    job->afters = st_xcalloc((size_t)spec->nafters, sizeof *job->afters);
    memcpy(job->afters, spec->afters, (size_t)spec->nafters * sizeof *job->afters);
    if (!ST_BROKEN(AFTER))
        job->barred |= ST_BAR_AFTER;
}

/* ---- who waits for whom ------------------------------------------------------------------ */

static void add_waiter(st_core *core, uint64_t key, uint64_t job)
{
    st_waiters *w = &core->waiters;
    int64_t next = -1;
    st_idmap_get(w->first, key, &next);
    st_idmap_put(w->first, key, (int64_t)w->rows.n);
    st_vec_push(&w->rows, (st_waiter){job, next});
}

static void add_waits(st_core *core, const st_job *job)
{
    for (int i = 0; i < job->nafters; i++)
        add_waiter(core, key_of(job->afters[i].id, job->afters[i].array), job->id);
}

/* Rows of those who are over stay until there are more of them than of others. */
static void tidy_waiters(st_core *core)
{
    st_waiters *w = &core->waiters;
    if (w->rows.n <= 2 * w->live + 1024)
        return;
    st_idmap_free(w->first);
    w->first = st_idmap_new();
    st_vec_clear(&w->rows);
    for (size_t i = 0; i < core->jobs.n; i++)
        add_waits(core, core->jobs.v[i]);
}

void st_after_join(st_core *core, st_job *job)
{
    core->waiters.live += (size_t)job->nafters;
    add_waits(core, job);
    tidy_waiters(core);
    if (!job->never || job->keeps)
        return;
    core->ndoomed++;
    st_id_heap_push(&core->doomed, job->id);
}

void st_after_leave(st_core *core, const st_job *job)
{
    core->waiters.live -= (size_t)job->nafters;
    core->ndoomed -= job->never && !job->keeps;
    if (core->ndoomed == 0)
        st_vec_clear(&core->doomed);
}

static bool comes_true(st_after_how how, st_job_state state)
{
    return how == ST_AFTER_ANY || (how == ST_AFTER_OK) == (state == ST_JOB_DONE);
}

static void doom(st_core *core, st_job *job, uint64_t never)
{
    if (job->never)
        return;
    job->never = never;
    if (job->keeps)
        return;
    if (core->ndoomed++ == 0)
        core->doomed_ms = core->now;
    st_id_heap_push(&core->doomed, job->id);
}

/* Crosses off what has come true of what the job waits for. */
static void settle(st_core *core, st_job *job, uint64_t id, bool array, st_job_state state)
{
    int kept = 0;
    if (job->never)
        return;
    for (int i = 0; i < job->nafters; i++) {
        const st_await a = job->afters[i];
        bool it = a.id == id && a.array == array;
        if (it && comes_true(a.how, state)) {
            core->waiters.live--;
            continue;
        }
        if (it)
            doom(core, job, id);
        job->afters[kept++] = a;
    }
    bool free_now = job->nafters > 0 && kept == 0 && !ST_BROKEN(AFTER_KEPT);
    job->nafters = kept;
    if (!free_now)
        return;
    st_idle_clear(core, job, ST_BAR_AFTER);
    st_array_note(core, job, NULL);
}

void st_after_ended(st_core *core, uint64_t id, bool array, st_job_state state)
{
    st_waiters *w = &core->waiters;
    int64_t at;
    if (!st_idmap_get(w->first, key_of(id, array), &at))
        return;
    st_idmap_del(w->first, key_of(id, array));
    for (; at >= 0; at = w->rows.v[at].next) {
        st_job *job = st_core_find(core, w->rows.v[at].job);
        if (job)
            settle(core, job, id, array, state);
    }
}

void st_after_spoilt(st_core *core, uint64_t array)
{
    const st_waiters *w = &core->waiters;
    int64_t at = -1;
    st_idmap_get(w->first, key_of(array, true), &at);
    for (; at >= 0; at = w->rows.v[at].next) {
        st_job *job = st_core_find(core, w->rows.v[at].job);
        for (int i = 0; job && i < job->nafters; i++)
            if (job->afters[i].array && job->afters[i].id == array &&
                job->afters[i].how == ST_AFTER_OK)
                doom(core, job, array);
    }
}

/* ---- what can never come true ------------------------------------------------------------ */

void st_after_expire(st_core *core, st_effects *fx)
{
    if (core->ndoomed == 0 || core->doomed_ms > core->now)
        return;
    for (int n = 0; core->ndoomed > 0 && n < ENDS_MAX; n++) {
        st_job *job = st_core_find(core, st_id_heap_pop(&core->doomed));
        if (job)
            st_core_end(core, job, ST_JOB_CANCELLED, fx);
    }
    st_after_defer(core);
}

void st_after_defer(st_core *core)
{
    if (core->ndoomed > 0)
        core->doomed_ms = ST_MAX(core->doomed_ms, core->now + 1);
}

int64_t st_after_due_ms(const st_core *core)
{
    return core->ndoomed > 0 ? core->doomed_ms : ST_TIME_NEVER;
}

void st_after_done(st_core *core)
{
    st_idmap_free(core->waiters.first);
    st_vec_free(&core->waiters.rows);
    st_vec_free(&core->doomed);
}
