/* How long jobs should run, learned from those that ended.
 *
 * What is expected of a running job is set when it starts and stays until it has outlived it:
 * reserved starts move when something happened, not because somebody else's job ended a bit
 * sooner than usual. With the policy's `forecast` off nothing is expected of anybody, but the
 * learning goes on, so that switching it on has an effect at once.
 *
 * Those who start in one round start in one moment, in however many passes: otherwise of two with the same
 * forecast the second would end later than the first, and be kept off what is reserved on the first's end. */
#include "base/macros.h"
#include "core/state.h"

static st_guess guess(const st_core *core, const st_job *job, int64_t *ret_ran_ms)
{
    *ret_ran_ms = st_job_ran_ms(job, core->now);
    if (!core->policy.forecast)
        return (st_guess){false, ST_TIME_NEVER, ST_TIME_NEVER};
    return st_forecast_run(core->forecast, job, *ret_ran_ms);
}

int64_t st_core_likely_end_ms(const st_core *core, const st_job *job)
{
    int64_t ran_ms, limit_ms = st_job_end_ms(job, core->now);
    st_guess g = guess(core, job, &ran_ms);
    return g.known ? ST_MIN(core->now + g.p50_ms - ran_ms, limit_ms) : limit_ms;
}

/* When so much of its run time is over, counted from the beginning of the round. */
static int64_t over_ms(const st_core *core, int64_t left_ms)
{
    return core->now + ST_MAX(left_ms - core->late_ms, ST_MIN(left_ms, 1));
}

int64_t st_core_safe_end_ms(const st_core *core, st_job *job)
{
    int64_t ran_ms = st_job_ran_ms(job, core->now), limit_ms = st_job_end_ms(job, core->now);
    if (!core->policy.forecast)
        return limit_ms;
    uint64_t version = core->forecast->version;
    if (job->guess.version != version || job->guess.ran_ms != ran_ms ||
        job->guess.limit_ms != job->limit_ms) {
        job->guess.version = version;
        job->guess.ran_ms = ran_ms;
        job->guess.limit_ms = job->limit_ms;
        job->guess.p90_ms = guess(core, job, &ran_ms).p90_ms;
    }
    int64_t p90_ms = job->guess.p90_ms;
    return p90_ms == ST_TIME_NEVER ? limit_ms : ST_MIN(over_ms(core, p90_ms - ran_ms), limit_ms);
}

void st_core_expect(const st_core *core, st_job *job)
{
    int64_t ran_ms;
    st_guess g = guess(core, job, &ran_ms);
    job->expect_ms = g.known ? over_ms(core, g.p90_ms - ran_ms) : ST_TIME_NEVER;
}

void st_core_learn(st_core *core, const st_job *job)
{
    st_forecast_ended(core->forecast, job, st_job_ran_ms(job, core->now));
}

void st_core_came_true(st_core *core, st_job *job)
{
    if (job->told_at_ms >= 0)
        st_forecast_waited(core->forecast, job->told_ms - job->told_at_ms,
                           core->now - job->told_at_ms, core->now);
    job->told_at_ms = -1;
    job->told_ms = 0;
}
