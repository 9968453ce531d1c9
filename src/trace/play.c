/*
 * Playing a trace (trace/trace.h): the fleet and the accounts are announced, then time goes from one
 * thing that is due to the next, as it would in stintd.
 *
 * At one moment everything that is due is applied in this order: jobs that are through, jobs that
 * have saved themselves, jobs that arrive, what the core itself waits for. One pass schedules, the
 * effects are followed, and if they made more things due at this moment, once more.
 *
 * Nothing here looks at all jobs in a step: what is due comes from a heap, amounts are kept as
 * counters, and integrals are brought up to date only where something changes.
 */
#include "trace/play.h"

#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "spec/spec.h"

#define ROUNDS_MAX     1000000 /* passes at one moment; the core would have lost its way */
#define IDLE_STEPS_MAX 10000   /* timers of the core in a row after which nothing happened */
#define PROGRESS_STEPS 256
#define HOUR_MS        INT64_C(3600000)

/* A limit leaves room for what so many preemptions cost; the core counts all time on devices. */
#define PREEMPTIONS_ALLOWED 16

static int64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int st_player_apply(st_player *p, const st_event *ev, st_err *err)
{
    int64_t from = clock_ns();
    int r = st_core_apply(p->core, ev, p->now, &p->fx, err);

    p->core_ns += clock_ns() - from;
    p->run->steps++;
    return r;
}

static void pass(st_player *p)
{
    int64_t from = clock_ns();

    st_core_pass(p->core, p->now, &p->fx);
    p->core_ns += clock_ns() - from;
}

/* ---- the beginning -------------------------------------------------------------------------- */

static int announce_fleet(st_player *p, st_err *err)
{
    const st_trace *trace = p->trace;
    int r = 0;

    for (size_t i = 0; r == 0 && i < trace->types.n; i++) {
        st_event ev = {.kind = ST_EV_TYPE};

        ev.u.type.name = trace->types.v[i].name;
        ev.u.type.vram_mib = trace->types.v[i].vram_mib;
        ev.u.type.board = trace->types.v[i].board;
        r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    }
    for (size_t i = 0; r == 0 && i < ST_MAX(trace->pools.n, 1); i++) {
        st_event ev = {.kind = ST_EV_POOL};

        ev.u.pool.name = trace->pools.n > 0 ? trace->pools.v[i].name : "all";
        ev.u.pool.levels = trace->pools.n > 0 ? trace->pools.v[i].levels : ST_POOL_LEVELS;
        ev.u.pool.oversub_m = trace->pools.n > 0 ? trace->pools.v[i].oversub_m : ST_POOL_OVERSUB_M;
        r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    }
    for (size_t i = 0; r == 0 && i < trace->nodes.n; i++) {
        st_event ev = {.kind = ST_EV_NODE, .u.node = trace->nodes.v[i]};

        r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    }
    return r;
}

static int announce(st_player *p, st_err *err)
{
    int r = announce_fleet(p, err);

    for (size_t i = 0; r == 0 && i < p->trace->accounts.n; i++) {
        st_event ev = {.kind = ST_EV_ACCOUNT, .u.account = p->trace->accounts.v[i]};

        r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    }
    if (r < 0)
        return r;
    st_core_pass(p->core, 0, &p->fx);
    st_effects_clear(&p->fx);
    p->capacity_m = st_core_tree(p->core)->capacity.gpu_m;
    return 0;
}

/* ---- one moment ------------------------------------------------------------------------------ */

static int64_t limit_ms(const st_player *p, const st_trace_job *job)
{
    const st_run_cost *c = &p->options->cost;
    int64_t gib = 0;

    if (job->limit_ms == ST_TIME_NEVER)
        return ST_TIME_NEVER;
    for (size_t t = 0; t < p->trace->types.n; t++)
        gib = ST_MAX(gib, (p->trace->types.v[t].vram_mib + 1023) / 1024);
    return job->limit_ms +
           PREEMPTIONS_ALLOWED *
               (c->save_ms + c->restore_ms + gib * (c->save_ms_per_gib + c->restore_ms_per_gib));
}

void st_player_submit(st_player *p, size_t i)
{
    const st_trace_job *job = &p->trace->jobs.v[i];
    st_run_job *out = &p->run->jobs.v[i];
    st_event ev = {.kind = ST_EV_SUBMIT};
    st_err why = {0};

    ev.u.job = (st_job_spec){
        .id = i + 1,
        .name = job->name,
        .account = p->trace->accounts.v[job->account].name,
        .user = job->user,
        .pool = -1,
        .tasks = job->tasks,
        .shape = job->shape,
        .topo = job->topo,
        .topo_required = job->topo_required,
        .latency_critical = job->latency_critical,
        .priority = job->priority,
        .limit_ms = limit_ms(p, job),
        .yield = job->yield,
        .booking = p->jobs[i].booked && st_core_booking(p->core, i + 1) ? i + 1 : 0,
    };
    if (st_player_is_fenced(p, i) && ev.u.job.limit_ms != ST_TIME_NEVER)
        ev.u.job.limit_ms += p->options->lead_ms;
    p->run->accounts.v[job->account].jobs++;
    if (st_player_apply(p, &ev, &why) == 0) {
        st_player_queued(p, i);
        return;
    }
    out->refused = true;
    out->state = ST_JOB_CANCELLED;
    p->ended++;
    p->run->decisions++;
    if (p->run->refused++ == 0)
        p->run->refused_why = st_xstrdup(why.msg);
}

/* The first entry of the queue that still means something, or NULL. */
static const st_due *first_due(st_player *p)
{
    const st_due *due;

    while ((due = st_due_first(&p->queue)) && due->generation != p->jobs[due->job].generation)
        (void)st_due_pop(&p->queue);
    return due;
}

static int apply_due(st_player *p, const st_due *due, st_err *err)
{
    st_event ev = {.kind = ST_EV_FINISH};

    if (due->kind == ST_DUE_FINISH) {
        ev.u.finish.id = due->job + 1;
    } else {
        ev.kind = ST_EV_CHECKPOINTED;
        ev.u.id = due->job + 1;
        st_player_saved(p, due->job);
    }
    return st_player_apply(p, &ev, err);
}

/* Applies what is due now; whether anything was. */
static int apply_all(st_player *p, bool *ret_any, st_err *err)
{
    const st_due *due;
    int r = 0;

    *ret_any = false;
    while (r == 0 && (due = first_due(p)) && due->at_ms <= p->now) {
        st_due now = st_due_pop(&p->queue);

        r = apply_due(p, &now, err);
        st_player_follow(p); /* what is due with it may be so no more */
        *ret_any = true;
    }
    *ret_any |= r == 0 && st_player_plan(p);
    for (; r == 0 && p->next_submit < p->trace->jobs.n &&
           p->trace->jobs.v[p->next_submit].submit_ms <= p->now;
         *ret_any = true, p->next_submit++)
        if (!st_player_is_fenced(p, p->next_submit))
            st_player_submit(p, p->next_submit);
    /* Any event makes the core see to its own deadlines as well. */
    if (r == 0 && !*ret_any && st_core_next_timer(p->core) <= p->now) {
        r = st_player_apply(p, &(st_event){.kind = ST_EV_TIMER}, err);
        *ret_any = true;
    }
    st_player_follow(p);
    return r;
}

static int play_moment(st_player *p, st_err *err)
{
    bool any = true;
    int r = 0;

    st_effects_clear(&p->fx);
    p->followed = 0;
    for (int round = 0; r == 0; round++) {
        r = apply_all(p, &any, err);
        if (r < 0 || !any)
            break;
        if (round == ROUNDS_MAX)
            return st_fail(err, ST_EINTERNAL, "the scheduler does not come to rest at %lld ms",
                           (long long)p->now);
        pass(p);
        st_player_follow(p);
    }
    return r;
}

/* ---- time ------------------------------------------------------------------------------------- */

static int64_t next_ms(st_player *p)
{
    const st_due *due = first_due(p);
    int64_t next = st_core_next_timer(p->core);

    if (due)
        next = ST_MIN(next, due->at_ms);
    if (p->next_submit < p->trace->jobs.n)
        next = ST_MIN(next, p->trace->jobs.v[p->next_submit].submit_ms);
    next = ST_MIN(next, st_player_next_plan(p));
    if (p->options->tell_ms > 0 && p->waiting > 0 && next != ST_TIME_NEVER)
        next = ST_MIN(next, p->next_tell_ms);
    return next == ST_TIME_NEVER ? next : ST_MAX(next, p->now);
}

/* The hour at hand is over; of those in which something was decided the slowest is told. */
static void end_hour(st_player *p, int64_t next)
{
    st_trace_run *run = p->run;
    double decisions = (double)(run->decisions - p->hour_decisions);
    double seconds = (double)(p->core_ns - p->hour_ns) * 1e-9;

    if (decisions > 0 && seconds > 0 &&
        (run->slowest_hour < 0 || decisions / seconds < run->slowest_per_s)) {
        run->slowest_hour = p->hour;
        run->slowest_per_s = decisions / seconds;
    }
    p->hour = next;
    p->hour_ns = p->core_ns;
    p->hour_decisions = run->decisions;
}

/* Integrals of oversubscribed GPUs, too, must stay below 2^63. */
static int advance(st_player *p, int64_t to_ms, st_err *err)
{
    if (to_ms > INT64_MAX / 8 / ST_MAX(p->capacity_m, 1))
        return st_fail(err, ST_ERANGE,
                       "the trace goes on for %lld days, too long to add up the time of %lld GPUs",
                       (long long)(to_ms / 86400000), (long long)(p->capacity_m / ST_WHOLE_M));
    st_player_sample(p, to_ms);
    if (to_ms / HOUR_MS != p->hour)
        end_hour(p, to_ms / HOUR_MS);
    if (p->now < p->run->last_submit_ms && to_ms >= p->run->last_submit_ms) {
        p->now = p->run->last_submit_ms;
        st_player_integrate(p);
        p->run->allocated_till_then = p->run->allocated;
    }
    p->now = to_ms;
    return 0;
}

static int play_all(st_player *p, st_err *err)
{
    int64_t until_ms = p->options->until_ms, next;
    int idle = 0, r = 0;

    for (uint64_t step = 0; r == 0 && (next = next_ms(p)) <= until_ms && next != ST_TIME_NEVER;
         step++) {
        bool nothing_to_come = !first_due(p) && p->next_submit == p->trace->jobs.n;

        if (nothing_to_come && idle > IDLE_STEPS_MAX)
            break;
        r = advance(p, next, err);
        if (r == 0)
            r = play_moment(p, err);
        if (r == 0)
            r = st_player_tell(p, err);
        idle = p->fx.list.n > 0 ? 0 : idle + 1;
        if (p->options->progress && step % PROGRESS_STEPS == 0)
            p->options->progress(p->options->ctx,
                                 (int)(p->ended * 1000 / ST_MAX(p->trace->jobs.n, 1)));
    }
    if (r == 0 && until_ms != ST_TIME_NEVER && next_ms(p) != ST_TIME_NEVER)
        r = advance(p, until_ms, err);
    return r;
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void conclude(st_player *p)
{
    st_trace_run *run = p->run;
    struct rusage usage;

    end_hour(p, 0);
    st_player_sample_end(p);
    st_player_integrate(p);
    run->end_ms = p->now;
    if (run->end_ms < run->last_submit_ms) { /* it was stopped before */
        run->last_submit_ms = run->end_ms;
        run->allocated_till_then = run->allocated;
    }
    for (size_t i = 0; i < run->accounts.n; i++)
        st_player_integrate_account(p, (int32_t)i);
    for (size_t i = 0; i < run->jobs.n; i++) {
        const st_trace_job *job = &p->trace->jobs.v[i];
        st_run_account *account = &run->accounts.v[job->account];

        account->lost += run->jobs.v[i].lost_ms * st_trace_job_gpu_m(job);
        if (run->jobs.v[i].start_ms != ST_UNSET)
            account->late_ms_sum += run->jobs.v[i].start_ms - job->submit_ms;
    }
    st_player_count_plans(p);
    run->hash = st_core_hash(p->core);
    run->seconds = (double)p->core_ns * 1e-9;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        run->peak_kib = (size_t)usage.ru_maxrss;
}

static void player_done(st_player *p)
{
    st_trace_run_free(p->run);
    st_core_free(p->core);
    st_effects_done(&p->fx);
    st_due_done(&p->queue);
    st_player_sample_done(p);
    free(p->jobs);
    free(p->accounts);
}

static void player_begin(st_player *p)
{
    size_t njobs = p->trace->jobs.n, naccounts = p->trace->accounts.n;

    p->run = st_xcalloc(1, sizeof(*p->run));
    p->run->trace = p->trace;
    p->run->slowest_hour = -1;
    p->core = st_core_new(&p->options->policy);
    p->jobs = st_xcalloc(njobs + 1, sizeof(*p->jobs));
    p->accounts = st_xcalloc(naccounts + 1, sizeof(*p->accounts));
    st_vec_reserve(&p->run->jobs, njobs + 1);
    for (size_t i = 0; i < njobs; i++) {
        p->jobs[i].type = -1;
        st_vec_push(&p->run->jobs, (st_run_job){.start_ms = ST_UNSET, .end_ms = ST_UNSET});
    }
    for (size_t i = 0; i < naccounts; i++)
        st_vec_push(&p->run->accounts, (st_run_account){0});
    p->run->last_submit_ms = njobs > 0 ? p->trace->jobs.v[njobs - 1].submit_ms : 0;
}

int st_trace_play(const st_trace *trace, const st_run_options *options, st_trace_run **ret,
                  st_err *err)
{
    ST_CLEANUP(player_done) st_player p = {.trace = trace, .options = options};
    int r;

    ST_ASSERT(trace && options && ret);
    player_begin(&p);
    r = announce(&p, err);
    if (r < 0)
        return r;
    st_player_sample_begin(&p);
    r = play_all(&p, err);
    if (r < 0)
        return r;
    conclude(&p);
    *ret = ST_TAKE(p.run);
    return 0;
}

void st_trace_run_free(st_trace_run *run)
{
    if (!run)
        return;
    st_vec_free(&run->jobs);
    st_vec_free(&run->samples);
    st_vec_free(&run->held_m);
    st_vec_free(&run->entitled_m);
    st_vec_free(&run->accounts);
    st_vec_free(&run->told);
    free(run->refused_why);
    free(run->plans.why);
    free(run);
}
