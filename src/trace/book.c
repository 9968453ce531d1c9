/*
 * Jobs of a trace that are planned ahead (trace/trace.h): which they are, and how they are played: with a booking each, on
 * GPUs that are fenced off from the day before and stand idle until then, or as jobs like all others.
 */
#include "base/map.h"
#include "base/mem.h"
#include "trace/play.h"

#define TAIL_MS INT64_C(60000) /* a window is so much longer than what its job needs */

/* Whole GPUs of one type, with an end, that come late enough to be planned. */
static bool can_be_booked(const st_trace *trace, const st_trace_job *job, int64_t lead_ms)
{
    bool one = trace->types.n == 1 || __builtin_popcountll(job->shape.types) == 1;

    return one && job->shape.gpus > 0 && job->shape.level == ST_LEVEL_WHOLE &&
           job->run_ms != ST_TIME_NEVER && job->run_ms > 0 && job->submit_ms >= lead_ms;
}

uint64_t st_trace_plan_share(st_trace *trace, int64_t share_m, int64_t lead_ms)
{
    st_i128 all = 0, planned = 0;
    uint64_t n = 0;

    for (size_t i = 0; i < trace->jobs.n; i++) {
        st_trace_job *job = &trace->jobs.v[i];
        st_i128 need =
            job->run_ms == ST_TIME_NEVER ? 0 : (st_i128)st_trace_job_gpu_m(job) * job->run_ms;

        all += need;
        job->planned =
            can_be_booked(trace, job, lead_ms) && (planned + need) * 1000 <= all * share_m;
        planned += job->planned ? need : 0;
        n += job->planned;
    }
    return n;
}

uint64_t st_trace_plan_named(st_trace *trace, const st_map *names, int64_t lead_ms)
{
    uint64_t n = 0;

    for (size_t i = 0; i < trace->jobs.n; i++) {
        st_trace_job *job = &trace->jobs.v[i];
        int64_t at;

        job->planned =
            job->name && st_map_get(names, job->name, &at) && can_be_booked(trace, job, lead_ms);
        n += job->planned;
    }
    return n;
}

/* ---- while it is played ---------------------------------------------------------------------- */

static bool is_ahead(const st_player *p, size_t i)
{
    return p->trace->jobs.v[i].planned && p->options->planned != ST_PLANNED_JOBS;
}

static int64_t plan_ms(const st_player *p, size_t i)
{
    return p->trace->jobs.v[i].submit_ms - p->options->lead_ms;
}

int64_t st_player_next_plan(st_player *p)
{
    while (p->next_plan < p->trace->jobs.n && !is_ahead(p, p->next_plan))
        p->next_plan++;
    return p->next_plan < p->trace->jobs.n ? plan_ms(p, p->next_plan) : ST_TIME_NEVER;
}

bool st_player_is_fenced(const st_player *p, size_t i)
{
    return is_ahead(p, i) && p->options->planned == ST_PLANNED_FENCED;
}

static void book(st_player *p, size_t i)
{
    const st_trace_job *job = &p->trace->jobs.v[i];
    st_window window = {job->submit_ms, job->submit_ms + job->run_ms + TAIL_MS};
    st_event ev = {.kind = ST_EV_BOOK};
    st_err why = {0};

    ev.u.book.spec = (st_booking_spec){
        .id = i + 1,
        .name = "planned",
        .account = p->trace->accounts.v[job->account].name,
        .user = job->user,
        .pool = -1,
        .type = job->shape.types ? __builtin_ctzll(job->shape.types) : 0,
        .tasks = job->tasks,
        .gpus = job->shape.gpus,
        .topo = job->topo,
        .topo_required = job->topo_required,
        .cpu_m = job->shape.cpu_m,
        .ram_mib = job->shape.ram_mib,
        .no_show_ms = ST_TIME_NEVER,
    };
    ev.u.book.windows = &window;
    ev.u.book.nwindows = 1;
    ev.u.book.confirm = true;
    p->jobs[i].booked = st_player_apply(p, &ev, &why) == 0;
    if (p->jobs[i].booked)
        p->run->plans.made++;
    else if (p->run->plans.refused++ == 0)
        p->run->plans.why = st_xstrdup(why.msg);
}

bool st_player_plan(st_player *p)
{
    bool any = false;

    for (; st_player_next_plan(p) <= p->now; any = true) {
        size_t i = p->next_plan++;

        if (st_player_is_fenced(p, i)) {
            p->run->plans.made++;
            st_player_submit(p, i);
        } else {
            book(p, i);
        }
    }
    return any;
}

/* ---- what became of them ---------------------------------------------------------------------- */

void st_player_count_plans(st_player *p)
{
    st_trace_plans *plans = &p->run->plans;
    double sum[2] = {0};
    uint64_t n[2] = {0};

    for (size_t i = 0; i < p->run->jobs.n; i++) {
        const st_run_job *out = &p->run->jobs.v[i];
        const st_trace_job *job = &p->trace->jobs.v[i];

        if (job->planned) {
            plans->planned++;
            plans->on_time += out->start_ms != ST_UNSET && out->start_ms <= job->submit_ms &&
                              (p->jobs[i].booked || p->options->planned != ST_PLANNED_BOOKED);
        }
        if (out->state != ST_JOB_DONE && out->state != ST_JOB_TIMEOUT)
            continue;
        sum[job->planned] += (double)(out->end_ms - job->submit_ms);
        n[job->planned]++;
    }
    plans->rest_s = n[0] > 0 ? sum[0] / (double)n[0] / 1000 : 0;
    plans->planned_s = n[1] > 0 ? sum[1] / (double)n[1] / 1000 : 0;
}
