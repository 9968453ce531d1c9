/* Who is due when: deadlines of those who leave or are paused, limits and expected ends of those
 * who run.
 *
 * A heap of moments. Whoever may be due sooner is pushed again; a moment that is no longer true,
 * because its job has ended or is due later by now, is put right when it comes up. So the heap
 * always has a moment for each job that is no later than its true one. */
#include <stdlib.h>

#include "core/state.h"

static bool before(const st_due_row *a, const st_due_row *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->job < b->job;
}

static void sift_down(st_core *core, size_t i)
{
    st_due_row *v = core->due.v, moved = v[i];
    for (size_t child; (child = 2 * i + 1) < core->due.n; i = child) {
        if (child + 1 < core->due.n && before(&v[child + 1], &v[child]))
            child++;
        if (!before(&v[child], &moved))
            break;
        v[i] = v[child];
    }
    v[i] = moved;
}

static void push(st_core *core, st_due_row d)
{
    st_vec_push(&core->due, d);
    size_t i = core->due.n - 1;
    for (; i > 0 && before(&d, &core->due.v[(i - 1) / 2]); i = (i - 1) / 2)
        core->due.v[i] = core->due.v[(i - 1) / 2];
    core->due.v[i] = d;
}

static void pop(st_core *core)
{
    core->due.v[0] = core->due.v[core->due.n - 1];
    core->due.n--;
    if (core->due.n > 0)
        sift_down(core, 0);
}

/* Leaves one true moment for each job. */
static void rebuild(st_core *core)
{
    st_vec_clear(&core->due);
    for (size_t i = 0; i < core->jobs.n; i++) {
        int64_t at_ms = st_job_due_ms(core->jobs.v[i]);
        if (at_ms != ST_TIME_NEVER)
            st_vec_push(&core->due, (st_due_row){at_ms, core->jobs.v[i]->id});
    }
    for (size_t i = core->due.n / 2; i-- > 0;)
        sift_down(core, i);
}

void st_core_due(st_core *core, const st_job *job)
{
    int64_t at_ms = st_job_due_ms(job);
    if (at_ms == ST_TIME_NEVER)
        return;
    if (core->due.n > 4 * core->jobs.n + 64)
        rebuild(core);
    push(core, (st_due_row){at_ms, job->id});
    core->due_ms = ST_MIN(core->due_ms, at_ms);
}

/* Puts the first moment right until it is true. */
static void put_right(st_core *core)
{
    while (core->due.n > 0) {
        st_due_row top = core->due.v[0];
        const st_job *job = st_core_find(core, top.job);
        int64_t at_ms = job ? st_job_due_ms(job) : ST_TIME_NEVER;
        if (at_ms == top.at_ms)
            break;
        pop(core);
        if (at_ms != ST_TIME_NEVER)
            push(core, (st_due_row){at_ms, top.job});
    }
}

void st_core_set_due(st_core *core)
{
    put_right(core);
    core->due_ms = core->due.n > 0 ? core->due.v[0].at_ms : ST_TIME_NEVER;
}

void st_core_take_due(st_core *core, st_due_jobs *ret)
{
    for (put_right(core); core->due.n > 0 && core->due.v[0].at_ms <= core->now; put_right(core)) {
        uint64_t id = core->due.v[0].job;
        /* Pushed more than once, it comes up more than once, one behind the other. */
        if (ret->n == 0 || ret->v[ret->n - 1] != id)
            st_vec_push(ret, id);
        pop(core);
    }
}
