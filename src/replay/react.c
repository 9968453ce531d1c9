/*
 * What jobs do by themselves once the changed side has gone its own way (replay/state.h): they end after the time they
 * really needed, and save as fast as they really did. What came from outside still comes when it came.
 */
#include <inttypes.h>

#include "replay/state.h"

#define ROUNDS_MAX \
    100000 /* steps in a row without time going on; the core would have lost its way */

static void push(st_rerun_side *side, st_rerun_job *job, st_due_kind kind, int64_t at_ms)
{
    st_due_push(&side->due, (st_due){.at_ms = ST_MAX(at_ms, side->now),
                                     .kind = kind,
                                     .generation = job->generation,
                                     .job = (size_t)(job - side->lab->jobs.v)});
}

static void runs(st_rerun_side *side, st_rerun_job *job, const st_job *j)
{
    if (job->need_ms != ST_UNSET)
        push(side, job, ST_DUE_FINISH, side->now + job->need_ms - st_job_ran_ms(j, side->now));
}

static void saves(st_rerun_side *side, st_rerun_job *job)
{
    push(side, job, ST_DUE_SAVED,
         side->now + (job->save_ms != ST_UNSET ? job->save_ms : side->lab->save_ms));
}

void st_rerun_react(st_rerun_side *side)
{
    if (side->reacts)
        return;
    side->reacts = true;
    side->lab->differ_ms = side->now;
    for (size_t i = 0; i < st_core_njobs(side->core); i++) {
        const st_job *j = st_core_job_at(side->core, i);
        st_rerun_job *job = st_rerun_find(side->lab, j->id);

        if (!job || !st_job_on_devices(j))
            continue;
        runs(side, job, j);
        if (j->state == ST_JOB_CHECKPOINTING)
            saves(side, job);
    }
}

void st_rerun_due(st_rerun_side *side, const st_effect *fx)
{
    st_rerun_job *job = st_rerun_find(side->lab, fx->job);
    const st_job *j = st_core_job(side->core, fx->job);

    if (!job)
        return;
    switch (fx->kind) {
    case ST_FX_START:
    case ST_FX_RESUME:
        job->generation++;
        if (j && st_job_on_devices(j))
            runs(side, job, j);
        break;
    case ST_FX_CHECKPOINT:
        if (j && j->state == ST_JOB_CHECKPOINTING)
            saves(side, job);
        break;
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
    case ST_FX_RETRY:
    case ST_FX_END:
        job->generation++;
        break;
    default:
        break;
    }
}

/* A refusal is an entry that has become stale: the core knows better. */
static bool apply(st_rerun_side *side, const st_event *ev)
{
    return st_core_apply(side->core, ev, side->now, &side->fx, NULL) == 0;
}

/* What jobs do at this moment. */
static bool apply_due(st_rerun_side *side)
{
    const st_event timer = {.kind = ST_EV_TIMER};
    const st_due *first;
    bool any = false;

    while ((first = st_due_first(&side->due)) && first->at_ms <= side->now) {
        const st_due due = st_due_pop(&side->due);
        const st_rerun_job *job = &side->lab->jobs.v[due.job];
        st_event ev = {.kind = ST_EV_CHECKPOINTED, .u.id = job->spec.id};

        if (due.generation != job->generation)
            continue;
        if (due.kind == ST_DUE_FINISH) {
            ev.kind = ST_EV_FINISH;
            ev.u.finish.id = job->spec.id;
            ev.u.finish.failed = job->failed;
        }
        any = apply(side, &ev) || any;
    }
    if (st_core_next_timer(side->core) <= side->now)
        any = apply(side, &timer) || any;
    return any;
}

static void settle(st_rerun_side *side, st_notes *notes)
{
    st_core_settle(side->core, side->now, &side->fx);
    st_rerun_follow(side, notes, side->now);
}

int st_rerun_react_until(st_rerun_side *side, int64_t until_ms, st_err *err)
{
    int rounds = 0;

    for (;;) {
        const st_due *first = st_due_first(&side->due);
        int64_t at = ST_MIN(first ? first->at_ms : ST_TIME_NEVER, st_core_next_timer(side->core));

        at = ST_MAX(at, side->now);
        if (at >= until_ms)
            return 0;
        rounds = at == side->now ? rounds + 1 : 0;
        if (rounds > ROUNDS_MAX)
            return st_fail(err, ST_EINTERNAL, "the core does not come to rest at %" PRId64, at);
        st_rerun_advance(side, at);
        apply_due(side);
        settle(side, NULL);
    }
}

static bool from_outside(st_event_kind kind)
{
    switch (kind) {
    case ST_EV_TIMER:
    case ST_EV_FINISH:
    case ST_EV_CHECKPOINTED:
    case ST_EV_UNSTARTED:
    case ST_EV_TOLD:
        return false;
    default:
        return true;
    }
}

static void refuse(st_rerun_side *side, const st_event *ev)
{
    st_rerun_job *job = ev->kind == ST_EV_SUBMIT ? st_rerun_find(side->lab, ev->u.job.id) : NULL;

    if (job)
        job->fate[side->which].refused = true;
}

int st_rerun_react_row(st_rerun_side *side, st_err *err)
{
    st_rerun_row *row = &side->lab->row;
    size_t kept = 0;
    int r = st_rerun_react_until(side, row->at_ms, err);

    if (r < 0)
        return r;
    st_rerun_advance(side, row->at_ms);
    apply_due(side);
    for (size_t i = 0; i < row->events.n; i++) {
        const char *why = NULL;
        st_event ev;

        if (!from_outside(row->events.v[i].kind))
            continue;
        if (!st_rerun_translate(side, &row->events.v[i], &ev, &why)) {
            if (why)
                refuse(side, &row->events.v[i]);
            continue;
        }
        if (!apply(side, &ev))
            refuse(side, &ev);
    }
    /* Telemetry is of stays that are not these. */
    for (size_t i = 0; i < row->notes.n; i++)
        if (row->notes.v[i].kind != ST_NOTE_USED && row->notes.v[i].kind != ST_NOTE_STARTED &&
            row->notes.v[i].kind != ST_NOTE_ENDED)
            row->notes.v[kept++] = row->notes.v[i];
    row->notes.n = kept;
    st_rerun_translate_notes(side, &row->notes);
    settle(side, &row->notes);
    return 0;
}
