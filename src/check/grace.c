/*
 * What jobs have to save when they must yield (core/grace.c), from outside: no less than they asked for, or the
 * policy gives; who pauses a quarter more than its last pause took; nobody more than the policy's longest.
 */
#include <inttypes.h>

#include "base/macros.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

int64_t st_watch_longest_ms(const st_core *core)
{
    const st_policy *p = st_core_policy(core);
    return ST_MAX(p->grace_ms, p->grace_limit_ms);
}

int64_t st_watch_grace_ms(const st_core *core, const st_track *t)
{
    const st_policy *p = st_core_policy(core);
    int64_t ms = t->job.grace_ms > 0 ? t->job.grace_ms : p->grace_ms;
    if (t->job.yield == ST_YIELD_PAUSE && p->grace_limit_ms > p->grace_ms)
        ms = ST_MAX(ms, t->job.pause_ms + t->job.pause_ms / 4);
    return ST_MIN(ms, st_watch_longest_ms(core));
}

bool st_watch_saves(const st_track *t)
{
    return t->job.yield == ST_YIELD_CHECKPOINT || t->job.yield == ST_YIELD_PAUSE;
}

int st_watch_saving(const st_step *step, const st_track *t, const st_effect *e, st_err *err)
{
    int64_t has_ms = e->until_ms - step->now, needs_ms = st_watch_grace_ms(step->core, t);
    if (has_ms > st_watch_longest_ms(step->core))
        return BAD("grace: job %" PRIu64 " has %" PRId64 " ms to save, the longest is %" PRId64,
                   e->job, has_ms, st_watch_longest_ms(step->core));
    if (has_ms < needs_ms && !st_watch_drains(step, t))
        return BAD("grace: job %" PRIu64 " has %" PRId64 " ms to save, it needs %" PRId64, e->job,
                   has_ms, needs_ms);
    return 0;
}

int st_watch_in_time(const st_step *step, const st_track *t, const st_effect *e,
                     const st_booking *b, st_err *err)
{
    int64_t soonest_ms = step->now + st_core_policy(step->core)->notice_ms;
    int64_t gone_ms = b->from_ms - ST_STOP_MS;
    int64_t most_ms = st_watch_saves(t) ? st_watch_grace_ms(step->core, t) : 0, least_ms = most_ms;
    if (t->job.yield == ST_YIELD_PAUSE) /* as it was measured */
        most_ms = st_watch_longest_ms(step->core);
    if (e->until_ms > ST_MAX(soonest_ms, gone_ms - least_ms))
        return BAD("booking: job %" PRIu64 " may stay until %" PRId64 " and needs %" PRId64
                   " ms to save; booking %" PRIu64 " begins at %" PRId64,
                   e->job, e->until_ms, least_ms, b->id, b->from_ms);
    if (e->until_ms < ST_MAX(soonest_ms, gone_ms - most_ms))
        return BAD("booking: job %" PRIu64 " must begin to leave at %" PRId64 " and needs %" PRId64
                   " ms; booking %" PRIu64 " begins at %" PRId64,
                   e->job, e->until_ms, most_ms, b->id, b->from_ms);
    return 0;
}
