/* What happens to bookings in time (book.h). */
#include <stdlib.h>

#include "base/mem.h"
#include "core/book.h"

static uint64_t name_of(const st_booking *b)
{
    return b->id | ST_BOOKING_BIT;
}

/* ---- when -------------------------------------------------------------------------------- */

static int64_t due_ms(const st_core *core, const st_booking *b)
{
    if (b->over)
        return ST_TIME_NEVER; /* it waits for those inside, not for a moment */
    switch (b->state) {
    case ST_BOOKING_QUOTED:
        return b->hold_ms;
    case ST_BOOKING_CONFIRMED:
        return b->close_ms;
    case ST_BOOKING_PREPARING:
        return b->from_ms;
    default:
        break;
    }
    int64_t at = b->told ? b->to_ms : ST_MAX(b->from_ms, b->to_ms - core->policy.notice_ms);
    if (!b->used && b->no_show_ms != ST_TIME_NEVER)
        at = ST_MIN(at, b->from_ms + b->no_show_ms);
    return at;
}

void st_book_set_due(st_core *core)
{
    core->calendar_ms = ST_TIME_NEVER;
    core->nopen = core->ndegraded = core->nover = core->nkept = 0;
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        core->calendar_ms = ST_MIN(core->calendar_ms, due_ms(core, b));
        core->nopen += b->open;
        core->nover += b->over;
        core->nkept += b->job != 0;
        core->ndegraded += !b->over && st_booking_degraded(b);
    }
}

/* ---- who is there ------------------------------------------------------------------------ */

static bool is_on(const st_booking *b, const st_job *job)
{
    for (int t = 0; t < b->tasks; t++)
        for (int u = 0; u < job->tasks; u++)
            if (job->grants[u].node == b->plan[t].node && (job->grants[u].devs & b->plan[t].devs))
                return true;
    return false;
}

/* When its notice ends. A booking closes with time for whoever needs most to save; who needs less runs on until it
 * must begin to leave. */
static int64_t leaves_ms(const st_core *core, const st_booking *b, const st_job *job)
{
    int64_t soonest_ms = core->now + core->policy.notice_ms;
    int64_t needs_ms =
        st_core_saves(job) && !ST_BROKEN(BOOK_NEED) ? st_core_grace_ms(core, job) : 0;
    return ST_MAX(soonest_ms, b->from_ms - ST_STOP_MS - needs_ms);
}

/* Told to go, unless it must not be. */
static void put_out(st_core *core, const st_booking *b, st_job *job, st_effects *fx)
{
    if (job->class == ST_CLASS_BURSTABLE && !ST_BROKEN(BOOK_TELL))
        st_core_tell_off(core, job, name_of(b), leaves_ms(core, b, job), fx);
}

/* The borrower on the node, and not on fenced devices, that came last. */
static st_job *last_borrower(const st_node *node)
{
    st_job *last = NULL;
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_resident *r = &node->residents.v[i];
        st_job *job = r->job;
        if (job->state != ST_JOB_RUNNING || job->class != ST_CLASS_BURSTABLE ||
            (job->grants[r->task].devs & node->fence) ||
            (job->shape.cpu_m == 0 && job->shape.ram_mib == 0))
            continue;
        if (!last || job->start_ms > last->start_ms ||
            (job->start_ms == last->start_ms && job->id > last->id))
            last = job;
    }
    return last;
}

/* CPU and RAM beside the fence, once those have left who are leaving. */
static bool is_crowded(const st_core *core, const st_node *node)
{
    st_view view;
    st_view_build(core->fleet, core->tree, node, ST_WHEN_NEXT, &view);
    return view.cpu_free_m < 0 || view.ram_free_mib < 0;
}

void st_book_clear_out(st_core *core, const st_booking *b, st_effects *fx)
{
    ST_VEC(uint64_t) ids = {0};
    for (size_t i = 0; i < core->jobs.n; i++) {
        const st_job *job = core->jobs.v[i];
        if (job->grants && job->class != ST_CLASS_BOOKED && is_on(b, job))
            st_vec_push(&ids, job->id);
    }
    for (size_t i = 0; i < ids.n; i++) {
        st_job *job = st_core_find(core, ids.v[i]);
        if (job && job->held)
            st_core_unhold(core, job, fx);
        bool stays = job && job->state == ST_JOB_RUNNING && b->state == ST_BOOKING_PREPARING;
        if (stays && st_job_end_ms(job, core->now) > b->from_ms)
            put_out(core, b, job, fx);
    }
    st_vec_free(&ids);
    for (int t = 0; t < b->tasks; t++) {
        if (b->plan[t].node < 0 || (t > 0 && b->plan[t].node == b->plan[t - 1].node))
            continue;
        const st_node *node = core->fleet->nodes.v[b->plan[t].node];
        st_job *job;
        while (is_crowded(core, node) && (job = last_borrower(node)))
            st_core_tell_off(core, job, name_of(b), leaves_ms(core, b, job), fx);
    }
}

void st_book_spare(st_core *core, const st_booking *b, st_effects *fx)
{
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *job = core->jobs.v[i];
        if (job->claimant != name_of(b) || job->state != ST_JOB_NOTIFIED || job->barred)
            continue;
        if (st_core_stay(core, job))
            st_fx(core, fx, st_fx_of(core, ST_FX_SPARE, job), NULL, 0);
    }
}

/* ---- steps ------------------------------------------------------------------------------- */

static void prepare(st_core *core, st_booking *b, st_effects *fx)
{
    st_book_open(core, b);
    b->state = ST_BOOKING_PREPARING;
    st_book_fence(core, b);
    st_book_tell(core, b, b->state, fx);
    st_book_clear_out(core, b, fx);
    st_core_changed(core, ST_CHANGED_FLOORS);
}

/* Those inside have their notice before the end, and what they need to save behind it. */
static void tell_end(st_core *core, st_booking *b, st_effects *fx)
{
    int64_t deadline_ms = ST_MAX(b->to_ms, core->now + core->policy.notice_ms);
    if (ST_BROKEN(BOOK_END))
        deadline_ms = core->now;
    b->told = true;
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *job = core->jobs.v[i];
        if (job->booking != b->id || job->class != ST_CLASS_BOOKED)
            continue;
        if (job->held)
            st_core_unhold(core, job, fx);
        else if (job->state == ST_JOB_RUNNING)
            st_core_tell_off(core, job, name_of(b), deadline_ms, fx);
    }
}

static bool is_empty(const st_core *core, const st_booking *b)
{
    for (size_t i = 0; i < core->placed.n; i++)
        if (core->placed.v[i]->class == ST_CLASS_BOOKED && core->placed.v[i]->booking == b->id)
            return false;
    return true;
}

static void finish(st_core *core, st_booking *b, st_effects *fx)
{
    b->over = true;
    st_book_tell(core, b, ST_BOOKING_ENDED, fx);
    for (size_t i = 0; i < core->jobs.n; i++)
        if (core->jobs.v[i]->booking == b->id && core->jobs.v[i]->class != ST_CLASS_BOOKED)
            st_window_next(core, core->jobs.v[i]);
}

/* One step of one booking; whether there was any. */
static bool step(st_core *core, st_booking *b, st_effects *fx)
{
    if (due_ms(core, b) > core->now)
        return false;
    if (b->state == ST_BOOKING_QUOTED)
        st_book_drop(core, b, ST_BOOKING_CANCELLED, fx);
    else if (b->state == ST_BOOKING_CONFIRMED)
        prepare(core, b, fx);
    else if (b->state == ST_BOOKING_PREPARING) {
        b->state = ST_BOOKING_ACTIVE;
        st_book_tell(core, b, b->state, fx);
    } else if (b->to_ms <= core->now && b->told)
        finish(core, b, fx);
    else if (!b->used && b->no_show_ms != ST_TIME_NEVER && b->from_ms + b->no_show_ms <= core->now)
        st_book_drop(core, b, ST_BOOKING_NO_SHOW, fx);
    else
        tell_end(core, b, fx);
    return true;
}

void st_book_expire(st_core *core, st_effects *fx)
{
    bool any = false;
    if (core->bookings.n == 0)
        return;
    while (core->calendar_ms <= core->now) {
        any = true;
        for (size_t i = 0; i < core->bookings.n;) {
            st_booking *b = core->bookings.v[i];
            size_t n = core->bookings.n;
            step(core, b, fx);
            i += core->bookings.n == n;
        }
        st_book_set_due(core);
    }
    for (size_t i = 0; core->nover > 0 && i < core->bookings.n; i++) {
        st_booking *b = core->bookings.v[i];
        if (!b->over || !is_empty(core, b))
            continue;
        st_book_drop(core, b, ST_BOOKING_STATE_COUNT, fx); /* its end was told */
        any = true;
        i--;
    }
    while (st_deadline_run(core, fx))
        any = true;
    /* What a pass has left room for that stopped in the middle of a round is for the next moment. */
    bool stopped = core->unfinished && core->now <= core->stopped_ms;
    if (core->ndegraded > 0 && !stopped)
        any |= st_book_mend(core, fx);
    if (!any)
        return;
    st_core_changed(core, ST_CHANGED_WAITING | ST_CHANGED_ROUND);
    st_book_set_due(core);
}
