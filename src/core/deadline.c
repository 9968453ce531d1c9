/* Deadlines of jobs.
 *
 * A soft one orders the job among its equals, earliest first, and is told whether it was met. A hard one is admitted
 * only with a place in the calendar: a booking of the job's own that ends by the deadline and is as long as the job may
 * run, with what it takes to get there. Until the booking closes the job waits and runs like any other, so it may be done
 * long before. From then on:
 *   it waits                       it waits for its booking, where nobody displaces it
 *   it borrows, and would still    it is told to leave: what others displace it for later
 *   run when the booking begins    must not cost it the deadline
 *   it is guaranteed               it stays, and its limit strikes before the deadline
 * The booking goes with the job. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "core/book.h"

static const char *const names[] = {
#define X(id, name, about) [id] = name,
    ST_DEADLINE_TABLE(X)
#undef X
};

const char *st_deadline_name(st_deadline state)
{
    ST_ASSERT(state < ST_DEADLINE_COUNT);
    return names[state];
}

int st_deadline_check(const st_core *core, const st_job_spec *spec, st_err *err)
{
    if (!spec->hard && spec->by_ms == 0)
        return 0;
    if (spec->by_ms == 0)
        return st_fail(err, ST_EINVAL, "job %s: a hard deadline needs a time (--by)", spec->name);
    if (spec->by_ms <= ST_MAX(core->now, spec->begin_ms))
        return st_fail(err, ST_EINVAL, "job %s: its deadline is before it may begin", spec->name);
    if (spec->by_ms - core->now > ST_LIMIT_MAX_MS)
        return st_fail(err, ST_ERANGE, "job %s: its deadline must be within 10 years", spec->name);
    if (!spec->hard)
        return 0;
    if (spec->limit_ms == ST_TIME_NEVER)
        return st_fail(err, ST_EINVAL, "job %s: a hard deadline needs a time limit", spec->name);
    if (spec->shape.gpus == 0 || spec->shape.level != ST_LEVEL_WHOLE)
        return st_fail(err, ST_EINVAL, "job %s: a hard deadline is for jobs with whole GPUs",
                       spec->name);
    if (spec->booking || spec->series || spec->slot || spec->end_by_ms)
        return st_fail(err, ST_EINVAL,
                       "job %s: a job with a booking, a slot or --end-by has no hard deadline",
                       spec->name);
    if (core->policy.as_if_alone)
        return st_fail(err, ST_ESTATE,
                       "job %s: with the policy as_if_alone nothing can be kept for a deadline",
                       spec->name);
    if (spec->hold == 0 || spec->hold >= ST_BOOKING_BIT || st_book_find(core, spec->hold))
        return st_fail(err, ST_EINVAL, "job %s: the number of its booking is out of range",
                       spec->name);
    return 0;
}

/* How long it is kept: what it may run, and what it takes to get in, with others to be told to leave. */
static int64_t length_ms(const st_core *core, const st_job *job)
{
    return job->limit_ms + core->policy.notice_ms + st_core_longest_grace_ms(core) + 2 * ST_STOP_MS;
}

static void like_job(const st_core *core, const st_job *job, int32_t type, uint64_t id,
                     st_booking *ret)
{
    *ret = (st_booking){.id = id,
                        .account = job->account,
                        .user = -1,
                        .pool = job->pool,
                        .type = type,
                        .tasks = job->tasks,
                        .gpus = job->shape.gpus,
                        .topo = job->topo,
                        .topo_required = job->topo_required,
                        .cpu_m = job->shape.cpu_m,
                        .ram_mib = job->shape.ram_mib,
                        .no_show_ms = ST_TIME_NEVER,
                        .made_ms = core->now,
                        .job = job->id,
                        .needs = job->shape.needs,
                        .nodes = job->shape.nodes,
                        .state = ST_BOOKING_CONFIRMED};
}

static bool fits_at(st_core *core, st_booking *b, int64_t at_ms, int64_t length_ms)
{
    st_book_quote q;
    free(ST_TAKE(b->plan));
    return st_book_fit(core, b, (st_window){at_ms, at_ms + length_ms}, NULL, &q) == ST_BOOK_OK;
}

/* The first start that is found on GPUs of the type: now, when borrowers have left, or where others end. */
static int64_t first_start(st_core *core, const st_job *job, st_booking *b)
{
    int64_t from_ms = ST_MAX(core->now, job->begin_ms), length = length_ms(core, job);
    if (fits_at(core, b, from_ms, length))
        return from_ms;
    int64_t cleared_ms = core->now + st_core_book_lead_ms(core);
    if (cleared_ms > from_ms && fits_at(core, b, cleared_ms, length))
        return cleared_ms;
    st_book_quote q = {.earlier_ms = ST_TIME_NEVER, .later_ms = ST_TIME_NEVER};
    free(ST_TAKE(b->plan));
    st_book_starts(core, b, (st_window){from_ms, from_ms + length}, NULL, &q);
    return q.later_ms;
}

/* Whether the limits on bookings are what keeps it out: the first window it could have is too much. */
static bool over_limit(const st_core *core, const st_job *job, st_book_over *ret)
{
    int64_t from_ms = ST_MAX(core->now, job->begin_ms);
    st_booking b;
    like_job(core, job, -1, job->hold, &b);
    return st_book_over_limit(core, &b, (st_window){from_ms, from_ms + length_ms(core, job)}, NULL,
                              ret);
}

int st_deadline_admit(st_core *core, const st_job_spec *spec, st_job *job, st_err *err)
{
    job->by_ms = spec->by_ms;
    job->hold = spec->hard ? spec->hold : 0;
    if (!spec->hard || ST_BROKEN(DEADLINE))
        return 0;
    int64_t length = length_ms(core, job), best_ms = ST_TIME_NEVER;
    int32_t type = -1, reader = spec->reader ? st_tree_find(core->tree, spec->reader) : ST_ROOT;
    st_book_over over;
    char text[ST_BOOK_OVER_TEXT];
    for (int32_t t = st_core_next_type(core, job, ST_TYPE_FIRST); t != ST_TYPE_END;
         t = st_core_next_type(core, job, t)) {
        st_booking b;
        like_job(core, job, t, job->hold, &b);
        int64_t at_ms = first_start(core, job, &b);
        free(b.plan);
        if (at_ms < best_ms) {
            best_ms = at_ms;
            type = t;
        }
    }
    if (best_ms == ST_TIME_NEVER && over_limit(core, job, &over))
        return st_fail(err, ST_ELIMIT, "job %s: no place in the calendar can be kept for it: %s",
                       job->name, st_core_book_over_text(core, &over, reader, text));
    if (best_ms == ST_TIME_NEVER)
        return st_fail(err, ST_EOVER,
                       "job %s: the calendar has no place for it, however late its deadline",
                       job->name);
    if (best_ms + length > job->by_ms) {
        char in[ST_FMT_MAX];
        st_fmt_duration(in, best_ms + length - core->now);
        return st_fail(err, ST_EOVER,
                       "job %s: it cannot be done by its deadline for certain; the earliest that "
                       "would work is %s from now",
                       job->name, in);
    }
    st_booking *own = st_xmalloc(sizeof *own);
    like_job(core, job, type, job->hold, own);
    own->name = st_xstrdup(job->name);
    bool ok = fits_at(core, own, best_ms, length);
    ST_ASSERT(ok);
    st_book_insert(core, own);
    return 0;
}

void st_deadline_keep(st_core *core, const st_job *job, st_effects *fx)
{
    st_booking *b = job->hold ? st_book_find(core, job->hold) : NULL;
    if (!b)
        return;
    b->user = job->user;
    st_book_open_soon(core, b);
    st_book_tell(core, b, b->state, fx);
    st_book_set_due(core);
}

/* The booking is closed: nobody but the job comes there any more. */
static bool turn_to(st_core *core, st_booking *b, st_job *job, st_effects *fx)
{
    if (job->booking == b->id || job->stopping)
        return false;
    if (job->state == ST_JOB_RUNNING && job->class == ST_CLASS_BURSTABLE &&
        st_job_end_ms(job, core->now) > b->from_ms) {
        st_core_tell_off(core, job, b->id | ST_BOOKING_BIT, core->now + core->policy.notice_ms, fx);
        return true;
    }
    if (st_job_on_devices(job))
        return false;
    if (job->held)
        st_core_unhold(core, job, fx);
    if (job->state == ST_JOB_PAUSED) { /* in the memory of other nodes */
        st_core_requeue(core, job, fx);
        return true;
    }
    job->booking = b->id;
    return true;
}

bool st_deadline_run(st_core *core, st_effects *fx)
{
    bool any = false;
    for (size_t i = 0; core->nkept > 0 && i < core->bookings.n; i++) {
        st_booking *b = core->bookings.v[i];
        if (b->job == 0 || b->over)
            continue;
        st_job *job = st_core_find(core, b->job);
        if (job) {
            any |= b->open && turn_to(core, b, job, fx);
            continue;
        }
        st_book_drop(core, b, b->from_ms <= core->now ? ST_BOOKING_ENDED : ST_BOOKING_CANCELLED,
                     fx);
        any = true;
        i--;
    }
    return any;
}

st_deadline st_core_deadline(const st_core *core, const st_job *job)
{
    if (job->by_ms == 0)
        return ST_DEADLINE_NONE;
    if (job->by_ms < core->now)
        return ST_DEADLINE_MISSED;
    bool on = st_job_on_devices(job);
    if (job->hold) {
        const st_booking *b = st_book_find(core, job->hold);
        bool runs = on && !st_job_leaving(job) && job->class != ST_CLASS_BURSTABLE &&
                    st_job_end_ms(job, core->now) <= job->by_ms;
        return runs || (b && !st_booking_degraded(b)) ? ST_DEADLINE_PROMISED : ST_DEADLINE_AT_RISK;
    }
    if (job->limit_ms == ST_TIME_NEVER)
        return ST_DEADLINE_OPEN;
    int64_t rest_ms = ST_MAX(job->limit_ms - st_job_ran_ms(job, core->now), 0);
    int64_t start_ms = on || job->told_at_ms < 0 ? core->now : ST_MAX(job->told_ms, core->now);
    start_ms = ST_MAX(start_ms, job->begin_ms);
    return start_ms + rest_ms > job->by_ms ? ST_DEADLINE_AT_RISK : ST_DEADLINE_OPEN;
}
