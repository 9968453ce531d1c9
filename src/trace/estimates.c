/*
 * Estimates of starts in a play (trace/play.h): every so often those who wait are told when they should
 * start, each once for a wait, as stintd does, and when they start it is noted what became of it.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "trace/play.h"
#include "trace/stats.h"

static int tell_one(st_player *p, const st_estimate *e, st_err *err)
{
    st_player_job *j = &p->jobs[e->job - 1];
    const st_job *job = st_core_job(p->core, e->job);
    st_event ev = {.kind = ST_EV_TOLD};

    if (!job || job->state != ST_JOB_PENDING || job->told_at_ms >= 0 ||
        e->start_ms == ST_TIME_NEVER)
        return 0;
    ev.u.told.id = e->job;
    ev.u.told.start_ms = e->start_ms;
    j->told = p->run->told.n + 1;
    st_vec_push(&p->run->told, (st_trace_told){.job = e->job - 1,
                                               .at_ms = p->now,
                                               .said_ms = e->start_ms,
                                               .lo_ms = e->lo_ms,
                                               .hi_ms = e->hi_ms,
                                               .seen = e->seen,
                                               .real_ms = ST_UNSET});
    return st_core_apply(p->core, &ev, p->now, &p->fx, err);
}

int st_player_tell(st_player *p, st_err *err)
{
    st_estimates list = {0};
    int r = 0;

    if (p->options->tell_ms == 0 || p->now < p->next_tell_ms)
        return 0;
    p->next_tell_ms = p->now + p->options->tell_ms;
    if (p->waiting > 0)
        r = st_core_estimate(p->core, &list, err);
    for (size_t i = 0; r == 0 && i < list.n; i++)
        r = tell_one(p, &list.v[i], err);
    st_vec_free(&list);
    return r;
}

void st_player_came_true(st_player *p, size_t job)
{
    st_player_job *j = &p->jobs[job];

    if (j->told == 0)
        return;
    p->run->told.v[j->told - 1].real_ms = p->now;
    j->told = 0;
}

void st_run_told_stats(const st_trace_run *run, st_told_stats *ret)
{
    ST_CLEANUP(st_freep) int64_t *errors = st_xcalloc(run->told.n + 1, sizeof *errors);
    ST_CLEANUP(st_freep) int64_t *parts = st_xcalloc(run->told.n + 1, sizeof *parts);
    size_t n = 0;
    st_spread spread;

    *ret = (st_told_stats){0};
    for (size_t i = 0; i < run->told.n; i++) {
        const st_trace_told *t = &run->told.v[i];
        int64_t left = t->real_ms - t->at_ms, off = llabs(t->real_ms - t->said_ms);

        if (t->real_ms == ST_UNSET)
            continue;
        errors[n] = off;
        parts[n++] = off * 1000 / ST_MAX(left, 1);
        ret->early += t->said_ms < t->real_ms;
        if (t->seen == 0)
            continue;
        ret->with_interval++;
        ret->below += t->real_ms < t->lo_ms;
        ret->above += t->real_ms > t->hi_ms;
    }
    ret->told = n;
    st_spread_of(errors, n, &spread);
    ret->error_ms = spread.p50;
    ret->error_p90_ms = spread.p90;
    st_spread_of(parts, n, &spread);
    ret->part = (double)spread.p50 / 1000;
}
