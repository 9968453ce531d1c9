/* What is kept from pass to pass is what would be found anew: for the simulation, which asks after
 * its steps. The list of reservations is made once more from nothing, and each start also in the
 * slow way, which shares neither profiles nor sums with the other. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/reserve.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

typedef ST_VEC(st_reservation) resvs;

static int compare_slowly(st_core *core, const st_reservation *r, st_err *err)
{
    const st_job *job = st_core_find(core, r->job);
    st_reservation slow = {.by = r->by & ST_BY_LIMITS ? ST_BY_LIMITS : ST_BY_FORECAST,
                           .type = r->type,
                           .claims = r->claims};
    if (!st_reserve_slowly(core, job, true, &slow))
        return BAD("reserved: job %" PRIu64 " is to start by %" PRId64 ", and there is never room",
                   r->job, r->at_ms);
    free(slow.plan);
    if (ST_MAX(slow.at_ms, core->now) != ST_MAX(r->at_ms, core->now))
        return BAD("reserved: job %" PRIu64 " is to start by %" PRId64 ", counted slowly %" PRId64,
                   r->job, r->at_ms, slow.at_ms);
    return 0;
}

/* Makes the reservations of a job again behind those that are there. */
static int reserve_again(st_core *core, const resvs *had, st_err *err)
{
    const st_reservation *first = &had->v[core->resv.n];
    const st_job *job = st_core_find(core, first->job);
    size_t n = core->resv.n;
    if (!first->moves && (st_profile_serves(job) || job->state == ST_JOB_PAUSED)) {
        int rc = compare_slowly(core, first, err);
        if (rc < 0)
            return rc;
    }
    if (first->moves)
        st_core_reserve_place(core, job);
    else
        st_core_reserve(core, job, first->type, first->guaranteed, first->claims);
    if (core->resv.n == n)
        return BAD("reserved: nothing, looked at anew, for job %" PRIu64, first->job);
    for (; n < core->resv.n; n++) {
        const st_reservation *a = n < had->n ? &had->v[n] : NULL, *b = &core->resv.v[n];
        if (!a || a->job != b->job || a->by != b->by || ST_MAX(a->at_ms, core->now) != b->at_ms ||
            a->print != b->print)
            return BAD("reserved: kept for job %" PRIu64 " is another start or plan than anew: by "
                       "%" PRId64 ", anew by %" PRId64,
                       b->job, a ? a->at_ms : -1, b->at_ms);
    }
    return 0;
}

static void forget(st_core *core)
{
    core->resv.v = NULL;
    core->links.v = NULL;
    core->profiles.v = NULL;
    core->kept.v = NULL;
    core->leavers.v = NULL;
    core->resv.n = core->links.n = core->profiles.n = core->kept.n = core->leavers.n = 0;
    core->nreservers = 0;
    core->resv.cap = core->links.cap = core->profiles.cap = core->kept.cap = core->leavers.cap = 0;
    core->link_at = NULL;
    core->nlink_at = 0;
    core->marks = (st_marks){0};
}

int st_core_audit(st_core *core, st_err *err)
{
    const st_core had = *core;
    resvs list = {had.resv.v, had.resv.n, had.resv.cap};
    int rc = 0;
    forget(core);
    while (rc == 0 && core->resv.n < list.n)
        rc = reserve_again(core, &list, err);
    st_core_reserve_done(core);
    core->resv = had.resv;
    core->nreservers = had.nreservers;
    core->links = had.links;
    core->profiles = had.profiles;
    core->kept = had.kept;
    core->leavers = had.leavers;
    core->link_at = had.link_at;
    core->nlink_at = had.nlink_at;
    core->marks = had.marks;
    return rc;
}
