/* Jobs that no pass looks at: they wait for something to happen, however long (core/flow.h).
 *
 * They are in neither of the lists a pass goes through, so that thirty thousand of them cost it nothing. One that
 * becomes idle gives up what was held for it and, on paper, its place at home: whoever does not want to run keeps
 * nobody else from running. Let go, it waits as if it had just come. */
#include "base/macros.h"
#include "core/flow.h"
#include "core/shadow.h"

void st_idle_set(st_core *core, st_job *job, unsigned bits, st_effects *fx)
{
    ST_ASSERT(job->state == ST_JOB_PENDING && !(bits & ~(unsigned)ST_BAR_IDLE));
    bool was = job->barred & ST_BAR_IDLE;
    job->barred |= (uint16_t)bits;
    if (was)
        return;
    if (job->held)
        st_core_unhold(core, job, fx);
    st_shadow_ended(core, job, ST_JOB_CANCELLED);
    job->promise_ms = ST_TIME_NEVER;
    st_core_put_aside(core, job);
    st_core_changed(core, ST_CHANGED_STANDING | ST_CHANGED_WAITING | ST_CHANGED_ROUND);
}

void st_idle_clear(st_core *core, st_job *job, unsigned bits)
{
    bool was = job->barred & ST_BAR_IDLE;
    job->barred &= (uint16_t)~bits;
    if (!was || (job->barred & ST_BAR_IDLE))
        return;
    job->queued_ms = core->now; /* until now it did not wait for others */
    st_core_put_aside(core, job);
    st_shadow_join(core, job);
    core->woken = true;
    st_vec_push(&core->fresh, job->id);
    st_core_changed(core, ST_CHANGED_STANDING | ST_CHANGED_WAITING | ST_CHANGED_ROUND);
}

void st_id_heap_push(st_id_heap *heap, uint64_t id)
{
    st_vec_push(heap, id);
    size_t i = heap->n - 1;
    for (; i > 0 && id < heap->v[(i - 1) / 2]; i = (i - 1) / 2)
        heap->v[i] = heap->v[(i - 1) / 2];
    heap->v[i] = id;
}

uint64_t st_id_heap_pop(st_id_heap *heap)
{
    uint64_t top = heap->v[0], moved = heap->v[--heap->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && heap->v[child + 1] < heap->v[child])
            child++;
        if (heap->v[child] >= moved)
            break;
        heap->v[i] = heap->v[child];
    }
    if (heap->n > 0)
        heap->v[i] = moved;
    return top;
}
