/* Arrays with a throttle: so many of their jobs run at a time (core/flow.h).
 *
 * A job of such an array has a turn in it or waits for one, and is out of every pass until then. A turn is kept over
 * preemption until the job is over; one that may not run for another reason (it waits for others, is on hold, is to be
 * tried again later) gives it back. Turns are given in order of ids. A throttle that is lowered ends nobody: turns of
 * those who have not started are taken back, and the others count until they are over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/flow.h"

/* What keeps it from running besides, for a time that nobody knows. */
#define ELSEWHERE (ST_BAR_AFTER | ST_BAR_HOLD | ST_BAR_BEGIN)

static bool waits(const st_job *job)
{
    return job->state == ST_JOB_PENDING && !job->held;
}

static bool has_turn(const st_job *job)
{
    return !(job->barred & ST_BAR_THROTTLE);
}

st_array *st_array_find(const st_core *core, uint64_t id)
{
    int64_t at;
    return st_idmap_get(core->array_ids, id, &at) ? (st_array *)(intptr_t)at : NULL;
}

static void note_dirty(st_core *core, st_array *a)
{
    if (!a->dirty)
        st_vec_push(&core->arrays_dirty, a->id);
    a->dirty = true;
}

static st_array *add_array(st_core *core, uint64_t id, int throttle)
{
    st_array *a = st_xcalloc(1, sizeof *a);
    *a = (st_array){.id = id, .throttle = throttle};
    size_t at = core->arrays.n;
    while (at > 0 && core->arrays.v[at - 1]->id > id) /* the newest is the last, nearly always */
        at--;
    st_vec_insert(&core->arrays, at, a);
    st_idmap_put(core->array_ids, id, (int64_t)(intptr_t)a);
    return a;
}

static void free_array(st_array *a)
{
    st_vec_free(&a->members);
    st_vec_free(&a->ready);
    free(a);
}

static void drop_array(st_core *core, st_array *a)
{
    size_t lo = 0, hi = core->arrays.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (core->arrays.v[mid]->id < a->id)
            lo = mid + 1;
        else
            hi = mid;
    }
    st_vec_remove(&core->arrays, lo);
    st_idmap_del(core->array_ids, a->id);
    free_array(a);
}

int st_array_check(const st_core *core, const st_job_spec *spec, st_err *err)
{
    if (spec->throttle < 0 || (spec->throttle > 0 && spec->array == 0))
        return st_fail(err, ST_ERANGE, "job %s: a throttle is a number of jobs of an array",
                       spec->name);
    if (spec->array != 0 && spec->array != spec->id && !st_array_find(core, spec->array) &&
        spec->array > spec->id)
        return st_fail(err, ST_EINVAL, "job %s: an array begins with its first job", spec->name);
    return 0;
}

void st_array_set(st_core *core, const st_job_spec *spec, st_job *job)
{
    job->array = spec->array;
    if (!spec->array)
        return;
    st_array *a = st_array_find(core, spec->array);
    if (!a)
        a = add_array(core, spec->array, spec->throttle);
    if (a->throttle > 0)
        job->barred |= ST_BAR_THROTTLE;
}

/* Those who are over are forgotten when there are more of them than of others. */
static void add_member(st_core *core, st_array *a, uint64_t id)
{
    if (a->members.n > 2 * a->live + 64) {
        size_t kept = 0;
        for (size_t i = 0; i < a->members.n; i++)
            if (st_core_find(core, a->members.v[i]))
                a->members.v[kept++] = a->members.v[i];
        a->members.n = kept;
    }
    size_t at = a->members.n;
    while (at > 0 && a->members.v[at - 1] > id)
        at--;
    st_vec_insert(&a->members, at, id);
    a->live++;
}

static void make_ready(st_core *core, st_array *a, st_job *job)
{
    if (a->ready.n > 2 * a->live + 64) { /* the same again and again */
        st_vec_clear(&a->ready);
        for (size_t i = 0; i < a->members.n; i++) {
            const st_job *other = st_core_find(core, a->members.v[i]);
            if (other && !has_turn(other) && !(other->barred & ELSEWHERE))
                st_id_heap_push(&a->ready, other->id);
        }
    }
    st_id_heap_push(&a->ready, job->id);
    note_dirty(core, a);
}

void st_array_join(st_core *core, st_job *job)
{
    st_array *a = job->array ? st_array_find(core, job->array) : NULL;
    if (!a)
        return;
    add_member(core, a, job->id);
    if (a->throttle == 0)
        return;
    if (has_turn(job))
        a->slots++;
    else if (!(job->barred & ELSEWHERE))
        make_ready(core, a, job);
}

void st_array_note(st_core *core, st_job *job, st_effects *fx)
{
    st_array *a = job->array ? st_array_find(core, job->array) : NULL;
    if (!a || a->throttle == 0 || !waits(job))
        return;
    bool elsewhere = job->barred & ELSEWHERE;
    if (elsewhere && has_turn(job)) {
        a->slots--;
        st_idle_set(core, job, ST_BAR_THROTTLE, fx);
        note_dirty(core, a);
    } else if (!elsewhere && !has_turn(job)) {
        make_ready(core, a, job);
    }
}

void st_array_leave(st_core *core, const st_job *job, st_job_state state)
{
    st_array *a = job->array ? st_array_find(core, job->array) : NULL;
    if (!a)
        return;
    if (a->throttle > 0 && has_turn(job)) {
        a->slots--;
        note_dirty(core, a);
    }
    a->live--;
    if (state != ST_JOB_DONE && a->failed++ == 0)
        st_after_spoilt(core, a->id);
    if (a->live > 0)
        return;
    uint64_t id = a->id;
    bool well = a->failed == 0;
    drop_array(core, a);
    st_after_ended(core, id, true, well ? ST_JOB_DONE : ST_JOB_FAILED);
}

static void give_turns(st_core *core, st_array *a)
{
    while (a->ready.n > 0 && (a->slots < a->throttle || ST_BROKEN(THROTTLE))) {
        st_job *job = st_core_find(core, st_id_heap_pop(&a->ready));
        if (!job || has_turn(job) || (job->barred & ELSEWHERE))
            continue;
        a->slots++;
        st_idle_clear(core, job, ST_BAR_THROTTLE);
    }
}

void st_arrays_run(st_core *core)
{
    for (size_t i = 0; i < core->arrays_dirty.n; i++) {
        st_array *a = st_array_find(core, core->arrays_dirty.v[i]);
        if (!a)
            continue; /* over by now */
        a->dirty = false;
        give_turns(core, a);
    }
    st_vec_clear(&core->arrays_dirty);
}

/* ---- another throttle -------------------------------------------------------------------- */

static void take_turn(st_core *core, st_array *a, st_job *job, st_effects *fx)
{
    if (has_turn(job))
        st_idle_set(core, job, ST_BAR_THROTTLE, fx);
    if (!(job->barred & ELSEWHERE))
        make_ready(core, a, job);
}

int st_core_throttle(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_array *a = st_array_find(core, ev->u.array.id);
    if (!a)
        return st_fail(err, ST_ENOENT, "array %" PRIu64 " does not exist or is over",
                       ev->u.array.id);
    if (ev->u.array.throttle < 0)
        return st_fail(err, ST_ERANGE,
                       "a throttle is a number of jobs; 0: as many as there is room "
                       "for");
    a->throttle = ev->u.array.throttle;
    a->slots = 0;
    st_vec_clear(&a->ready);
    for (size_t i = 0; a->throttle > 0 && i < a->members.n; i++) {
        const st_job *job = st_core_find(core, a->members.v[i]);
        a->slots += job && !waits(job);
    }
    for (size_t i = 0; i < a->members.n; i++) {
        st_job *job = st_core_find(core, a->members.v[i]);
        if (!job)
            continue;
        if (a->throttle == 0)
            st_idle_clear(core, job, ST_BAR_THROTTLE);
        else if (waits(job) && has_turn(job) && !(job->barred & ELSEWHERE) &&
                 a->slots < a->throttle)
            a->slots++; /* it has had one, and keeps it */
        else if (waits(job))
            take_turn(core, a, job, fx);
    }
    note_dirty(core, a);
    return 0;
}

bool st_core_array(const st_core *core, uint64_t id, int *ret_throttle, bool *ret_spoilt)
{
    const st_array *a = st_array_find(core, id);
    if (a && ret_throttle)
        *ret_throttle = a->throttle;
    if (a && ret_spoilt)
        *ret_spoilt = a->failed > 0;
    return a != NULL;
}

void st_arrays_done(st_core *core)
{
    for (size_t i = 0; i < core->arrays.n; i++)
        free_array(core->arrays.v[i]);
    st_vec_free(&core->arrays);
    st_vec_free(&core->arrays_dirty);
    st_idmap_free(core->array_ids);
}
