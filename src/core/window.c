/* The window of a job: not before `begin`, over by `end_by`, or only inside the bookings of a series (its slot).
 *
 *   before it begins    the job is barred and has no turn
 *   notice + grace before end_by   it is told to leave and is not started any more: it saves, is paused or stops as it
 *                       was submitted, and has what it needs for that inside its window
 *   at end_by           it is over, wherever it is
 * It leaves by its own wish, so that is no preemption. A slot needs no clock of its own: the job waits for one booking
 * of the series after the other, and leaves each as everybody inside a booking does (book_clock.c). */
#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "core/book.h"
#include "core/flow.h"

/* The booking of a series that begins next; one that is about to end only where there is no other. */
static const st_booking *next_of(const st_core *core, uint64_t series)
{
    const st_booking *best = NULL;
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        if (b->series != series || b->over)
            continue;
        if (!best || (b->told ? best->told && b->from_ms < best->from_ms
                              : best->told || b->from_ms < best->from_ms))
            best = b;
    }
    return best;
}

/* The series whose bookings have the name, of the account or one above it: 0 none. ret_other: another one. */
static uint64_t series_named(const st_core *core, const char *name, int32_t account,
                             uint64_t *ret_other)
{
    uint64_t found = 0;
    *ret_other = 0;
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        if (b->series == 0 || b->over || strcmp(b->name, name) != 0 ||
            !st_tree_within(core->tree, account, b->account))
            continue;
        if (found && b->series != found)
            *ret_other = b->series;
        else
            found = b->series;
    }
    return found;
}

static uint64_t series_of(const st_core *core, const st_job_spec *spec, int32_t account)
{
    uint64_t other;
    if (spec->slot)
        return series_named(core, spec->slot, account, &other);
    const st_booking *b = spec->series ? st_book_find(core, spec->series) : NULL;
    return b ? b->series : spec->series; /* any of its bookings names it */
}

static int check_slot(const st_core *core, const st_job_spec *spec, int32_t account, st_err *err)
{
    uint64_t other = 0;
    char q[ST_QUOTE_MAX];
    if (spec->slot && series_named(core, spec->slot, account, &other) && other)
        return st_fail(err, ST_EINVAL,
                       "job %s: more than one series is called %s; give the number of one of its "
                       "bookings",
                       spec->name, st_quote(q, spec->slot));
    const st_booking *b = next_of(core, series_of(core, spec, account));
    if (spec->booking)
        return st_fail(err, ST_EINVAL, "job %s: it names a booking and a slot; give one of them",
                       spec->name);
    if (!b || b->series == 0 || !st_tree_within(core->tree, account, b->account))
        return st_fail(err, ST_ENOENT,
                       "job %s: there is no series of bookings %s with a window left", spec->name,
                       spec->slot ? st_quote(q, spec->slot) : "of that number");
    st_job_spec inside = *spec;
    inside.booking = b->id;
    return st_book_check_submit(core, &inside, account, err);
}

/* What is kept ahead of the end for a job to save. What a pause takes may yet be measured. */
static int64_t saving_ms(const st_core *core, st_yield yield, int64_t grace_ms)
{
    return yield == ST_YIELD_PAUSE ? st_core_longest_grace_ms(core)
                                   : ST_MAX(core->policy.grace_ms, grace_ms);
}

int st_window_check(const st_core *core, const st_job_spec *spec, int32_t account, st_err *err)
{
    int64_t begin_ms = ST_MAX(spec->begin_ms, core->now);
    if (spec->begin_ms < 0 || spec->end_by_ms < 0 || spec->begin_ms - core->now > ST_LIMIT_MAX_MS ||
        spec->end_by_ms - core->now > ST_LIMIT_MAX_MS)
        return st_fail(err, ST_ERANGE, "job %s: its window must be within 10 years", spec->name);
    if (spec->end_by_ms && spec->end_by_ms <= begin_ms)
        return st_fail(err, ST_EINVAL, "job %s: its window ends before it begins", spec->name);
    int64_t needs_ms = core->policy.notice_ms + saving_ms(core, spec->yield, spec->grace_ms);
    if (spec->end_by_ms && spec->end_by_ms - needs_ms <= begin_ms) {
        char needs[ST_FMT_MAX];
        st_fmt_duration(needs, needs_ms);
        return st_fail(err, ST_EINVAL,
                       "job %s: its window leaves it no time to run: %s of it are for its notice "
                       "and for saving",
                       spec->name, needs);
    }
    return spec->series || spec->slot ? check_slot(core, spec, account, err) : 0;
}

void st_window_set(const st_core *core, const st_job_spec *spec, st_job *job)
{
    job->begin_ms = spec->begin_ms;
    job->end_by_ms = spec->end_by_ms;
    if (spec->end_by_ms)
        job->close_ms =
            spec->end_by_ms - core->policy.notice_ms - saving_ms(core, spec->yield, spec->grace_ms);
    if (ST_BROKEN(WINDOW_END))
        job->close_ms = spec->end_by_ms;
    if (spec->begin_ms > core->now && !ST_BROKEN(WINDOW_BEGIN))
        job->barred |= ST_BAR_BEGIN;
    job->series = series_of(core, spec, job->account);
    if (job->series)
        st_window_next(core, job);
}

void st_window_next(const st_core *core, st_job *job)
{
    const st_booking *b = job->series ? next_of(core, job->series) : NULL;
    job->booking = b ? b->id : 0;
    job->barred &= (uint16_t)~ST_BAR_SLOT;
    if (job->series && !b && !ST_BROKEN(WINDOW_SLOT))
        job->barred |= ST_BAR_SLOT;
}

int64_t st_window_open_ms(const st_core *core, const st_job *job)
{
    if (job->barred & ~ST_BAR_BEGIN)
        return ST_TIME_NEVER;
    const st_booking *b = job->booking ? st_book_find(core, job->booking) : NULL;
    return ST_MAX(job->begin_ms, b ? b->from_ms : 0);
}

int64_t st_window_due_ms(const st_job *job)
{
    int64_t due = ST_TIME_NEVER;
    if (job->barred & ST_BAR_BEGIN)
        due = job->begin_ms;
    if (!job->end_by_ms || job->stopping)
        return due;
    if (!(job->barred & ST_BAR_END)) /* also of one that waits for another try */
        due = ST_MIN(due, job->close_ms);
    return st_job_on_devices(job) ? due : ST_MIN(due, job->end_by_ms);
}

static void close_window(st_core *core, st_job *job, st_effects *fx)
{
    const st_policy *p = &core->policy;
    st_core_changed(core, ST_CHANGED_STANDING);
    job->barred |= ST_BAR_END;
    if (job->held)
        st_core_unhold(core, job, fx);
    /* Who needs less to save runs on until then; and all of it may have been shorter when it came. */
    int64_t grace_ms = ST_MAX(p->grace_ms, st_core_grace_ms(core, job));
    int64_t notice_ms = job->end_by_ms - core->now - grace_ms;
    if (job->state == ST_JOB_RUNNING)
        st_core_order_out(core, job, ST_MAX(notice_ms, 0), fx);
}

void st_window_expire(st_core *core, st_job *job, st_effects *fx)
{
    if ((job->barred & ST_BAR_BEGIN) && job->begin_ms <= core->now) {
        job->barred &= (uint16_t)~ST_BAR_BEGIN;
        job->queued_ms = core->now; /* until now it did not wait for others */
        st_core_changed(core, ST_CHANGED_STANDING);
        st_array_note(core, job, fx);
    }
    if (!job->end_by_ms || job->stopping)
        return;
    if (job->end_by_ms <= core->now) {
        if (st_job_on_devices(job))
            return; /* it ends as at its limit */
        if (job->held)
            st_core_unhold(core, job, fx);
        st_core_end(core, job, ST_JOB_TIMEOUT, fx);
        return;
    }
    if (!(job->barred & ST_BAR_END) && job->close_ms <= core->now)
        close_window(core, job, fx);
}
