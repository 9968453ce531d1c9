/*
 * The windows of jobs (core/window.c), from outside: by what was submitted and by the clock.
 */
#include <inttypes.h>

#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

/* When it must know that its window ends: with its notice and what it needs to save ahead. */
static int64_t told_by_ms(const st_core *core, const st_track *t)
{
    const st_policy *p = st_core_policy(core);
    int64_t saves_ms = t->job.yield == ST_YIELD_PAUSE ? st_watch_longest_ms(core)
                                                      : ST_MAX(p->grace_ms, t->job.grace_ms);
    return t->job.end_by_ms - p->notice_ms - saves_ms;
}

bool st_watch_closes(const st_step *step, const st_track *t)
{
    return t->job.end_by_ms && told_by_ms(step->core, t) <= step->now;
}

static int check_slot(const st_core *core, const st_track *t, const st_job *job, st_err *err)
{
    const st_booking *b = job->booking ? st_core_booking(core, job->booking) : NULL;
    if (b && b->series != t->job.series)
        return BAD("window: job %" PRIu64 " is in booking %" PRIu64 ", its slot is %" PRIu64,
                   job->id, b->id, t->job.series);
    bool there = (st_room_is_now(job) && !job->stopping) || job->held;
    if (there && job->class != ST_CLASS_BOOKED)
        return BAD("window: job %" PRIu64 " runs outside the windows of its slot", job->id);
    if (!b && !job->barred)
        return BAD("window: job %" PRIu64 " waits for nothing, and its slot has no window left",
                   job->id);
    return 0;
}

/* What happens to nodes, promises and limits is not in a job's deadline, nor that nobody was there when its place
 * came: the clock went past a moment at which the core wanted to be called. */
void st_watch_harm(const st_step *step, st_track *t)
{
    t->harmed |= t->job.hold && step->now > step->watch->due_ms;
    for (size_t i = 0; t->job.hold && i < step->nevents; i++) {
        switch (step->events[i]->kind) {
        case ST_EV_SUBMIT:
        case ST_EV_TIMER:
        case ST_EV_FINISH:
        case ST_EV_CANCEL:
        case ST_EV_CHECKPOINTED:
        case ST_EV_PRIORITY:
        case ST_EV_TOLD:
        case ST_EV_GONE:
        case ST_EV_BOOK:
        case ST_EV_BOOK_CONFIRM:
        case ST_EV_BOOK_CANCEL:
        case ST_EV_BOOK_CHANGE:
            break;
        default:
            t->harmed = true;
        }
    }
}

static int check_deadline(const st_core *core, const st_track *t, const st_job *job, st_err *err)
{
    const st_booking *b = st_core_booking(core, t->job.hold);
    if (t->harmed || job->stopping)
        return 0;
    if (!b || b->job != job->id || b->to_ms > t->job.by_ms || st_booking_degraded(b))
        return BAD("deadline: nothing is kept for job %" PRIu64 ", due by %" PRId64, job->id,
                   t->job.by_ms);
    for (int i = 0; i < b->tasks; i++) {
        const st_node *node = st_core_fleet(core)->nodes.v[b->plan[i].node];
        uint32_t gives = st_pool_gives(&st_core_fleet(core)->pools.v[node->pool].rules);
        if (t->job.shape.needs & ~gives)
            return BAD("deadline: what is kept for job %" PRIu64
                       " is on node %s, whose pool does not allow it",
                       job->id, node->name);
    }
    if (t->job.by_ms < st_core_now(core))
        return BAD("deadline: job %" PRIu64 " is %s at %" PRId64 ", it was promised by %" PRId64,
                   job->id, st_job_state_name(job->state), st_core_now(core), t->job.by_ms);
    return 0;
}

int st_watch_window(const st_core *core, const st_track *t, const st_job *job, st_err *err)
{
    int64_t now = st_core_now(core);
    bool on = st_room_is_now(job);
    if (t->job.begin_ms > now && (on || job->held))
        return BAD("window: job %" PRIu64 " has devices at %" PRId64
                   ", its window begins at %" PRId64,
                   job->id, now, t->job.begin_ms);
    if (t->job.end_by_ms && t->job.end_by_ms <= now && !job->stopping)
        return BAD("window: job %" PRIu64 " is %s at %" PRId64 ", its window ended at %" PRId64,
                   job->id, st_job_state_name(job->state), now, t->job.end_by_ms);
    if (t->job.end_by_ms && job->state == ST_JOB_RUNNING && told_by_ms(core, t) <= now)
        return BAD("window: job %" PRIu64 " was not told at %" PRId64
                   " that its window ends at %" PRId64,
                   job->id, now, t->job.end_by_ms);
    int bits = (t->job.begin_ms > now ? ST_BAR_BEGIN : 0) |
               (t->job.end_by_ms && told_by_ms(core, t) <= now ? ST_BAR_END : 0) |
               (t->job.series && !job->booking ? ST_BAR_SLOT : 0);
    if (((job->barred ^ bits) & ST_BAR_WINDOW) && !job->stopping)
        return BAD("window: job %" PRIu64 " is kept out by %d, by the clock it is %d", job->id,
                   job->barred & ST_BAR_WINDOW, bits);
    if (t->job.series)
        return check_slot(core, t, job, err);
    return t->job.hold ? check_deadline(core, t, job, err) : 0;
}
