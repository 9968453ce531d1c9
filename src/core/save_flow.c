/* What keeps jobs out of passes, to bytes and back (save.c). */
#include "base/mem.h"
#include "core/flow.h"
#include "model/codec.h"

static void io_afters(codec *c, st_job *j)
{
    size_t n = io_count(c, (size_t)j->nafters, ST_AFTER_MAX);
    if (!c->out) {
        j->nafters = (int)n;
        j->afters = n > 0 ? st_xcalloc(n, sizeof *j->afters) : NULL;
    }
    for (size_t i = 0; i < n && !c->bad; i++) {
        io_u64(c, &j->afters[i].id);
        IO_IN(c, j->afters[i].how, 0, ST_AFTER_COUNT - 1);
        IO_BOOL(c, j->afters[i].array);
    }
}

void st_save_flow(codec *c, const st_core *core, st_job *j)
{
    (void)core;
    io_afters(c, j);
    IO_BOOL(c, j->keeps);
    io_u64(c, &j->never);
    IO_IN(c, j->held_by, 0, INT32_MAX);
    io_u64(c, &j->array);
    IO_IN(c, j->retry.times, 0, ST_RETRY_MAX);
    IO_IN(c, j->retry.wait_ms, 0, ST_RETRY_WAIT_MAX_MS);
    IO_IN(c, j->retry.most_ms, 0, ST_RETRY_WAIT_MAX_MS);
    IO_BOOL(c, j->retry.timeout);
    IO_IN(c, j->tries, 0, INT32_MAX);
    IO_BOOL(c, j->again);
    c->bad |= (j->barred & ST_BAR_IDLE) && (j->state != ST_JOB_PENDING || j->held);
    c->bad |= ((j->barred & ST_BAR_AFTER) && j->nafters == 0) ||
              ((j->barred & ST_BAR_HOLD) && j->held_by == 0) ||
              ((j->barred & ST_BAR_THROTTLE) && j->array == 0);
}

void st_save_arrays(codec *c, st_core *core)
{
    int64_t doomed_ms = core->ndoomed > 0 ? core->doomed_ms : 0;
    io_i64(c, &doomed_ms);
    if (!c->out)
        core->doomed_ms = doomed_ms;
    size_t n = io_count(c, core->arrays.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        st_array *a = c->out ? core->arrays.v[i] : st_xcalloc(1, sizeof *a);
        if (!c->out)
            st_vec_push(&core->arrays, a);
        io_u64(c, &a->id);
        IO_IN(c, a->throttle, 0, INT32_MAX);
        IO_IN(c, a->failed, 0, INT32_MAX);
        if (c->out)
            continue;
        c->bad |= i > 0 && a->id <= core->arrays.v[i - 1]->id;
        st_idmap_put(core->array_ids, a->id, (int64_t)(intptr_t)a);
    }
    for (size_t i = 0; i < core->jobs.n && !c->bad; i++)
        c->bad |= core->jobs.v[i]->array && !st_array_find(core, core->jobs.v[i]->array);
}
