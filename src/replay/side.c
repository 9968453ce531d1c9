/*
 * One side (replay/state.h): a core, its meter, and what is counted of them.
 */
#include <math.h>

#include "base/mem.h"
#include "replay/state.h"
#include "share/divide.h"

/* ---- jobs and accounts -------------------------------------------------------------------------- */

size_t st_rerun_name(st_rerun_lab *lab, const char *name)
{
    int64_t at;

    if (!st_map_get(lab->name_ids, name, &at)) {
        at = (int64_t)lab->names.n;
        st_vec_push(&lab->names, st_arena_strdup(lab->arena, name));
        st_map_put(lab->name_ids, name, at);
    }
    return (size_t)at;
}

st_rerun_job *st_rerun_find(const st_rerun_lab *lab, uint64_t id)
{
    int64_t at;

    return st_idmap_get(lab->ids, id, &at) ? &lab->jobs.v[at] : NULL;
}

static const char *own(st_rerun_lab *lab, const char *text)
{
    return text ? st_arena_strdup(lab->arena, text) : NULL;
}

st_rerun_job *st_rerun_add(st_rerun_lab *lab, const st_job_spec *spec, int64_t submit_ms)
{
    st_rerun_job *job = st_rerun_find(lab, spec->id);

    if (job)
        return job;
    st_rerun_job new = {.spec = *spec,
                        .account = st_rerun_name(lab, spec->account),
                        .submit_ms = submit_ms,
                        .gpu_m = st_shape_gpu_m(&spec->shape) * spec->tasks,
                        .counted = true,
                        .need_ms = ST_UNSET,
                        .save_ms = ST_UNSET,
                        .asked_ms = ST_UNSET};

    new.spec.name = own(lab, spec->name);
    new.spec.account = lab->names.v[new.account];
    new.spec.user = own(lab, spec->user);
    new.spec.reader = NULL;
    for (int s = 0; s < ST_SIDES; s++)
        new.fate[s].start_ms = new.fate[s].end_ms = ST_UNSET;
    st_idmap_put(lab->ids, spec->id, (int64_t)lab->jobs.n);
    st_vec_push(&lab->jobs, new);
    return &lab->jobs.v[lab->jobs.n - 1];
}

st_rerun_count *st_rerun_of(st_rerun_side *side, size_t account)
{
    while (side->accounts.n <= account)
        st_vec_push(&side->accounts, (st_rerun_count){.at_ms = side->now});
    return &side->accounts.v[account];
}

/* ---- time --------------------------------------------------------------------------------------- */

static void integrate(st_rerun_side *side, st_rerun_count *c)
{
    c->held += (double)c->held_m * (double)(side->now - c->at_ms);
    c->at_ms = side->now;
}

/* What each account is entitled to now stands for the time until the next sample. */
static void sample(st_rerun_side *side, int64_t ms)
{
    st_rerun_lab *lab = side->lab;
    const st_tree *tree = st_core_tree(side->core);
    size_t n = tree->accounts.n;
    ST_CLEANUP(st_freep) st_divide_in *in = st_xcalloc(2 * n, sizeof *in);
    ST_CLEANUP(st_freep) st_divide_out *out = st_xcalloc(2 * n, sizeof *out);

    for (size_t i = 0; i < n; i++) {
        const st_account *a = tree->accounts.v[i];
        bool there = i > ST_ROOT && !a->gone;

        /* The root's row is nobody's, and so is that of one who is gone: they want nothing. */
        in[i] = (st_divide_in){
            .parent = there && a->parent > ST_ROOT ? a->parent : -1,
            .priority = a->priority,
            .name = a->name,
            .guarantee = there ? (double)st_quota_gpu_m(&a->guarantee) : 0,
            .max = !there || a->max.gpu_m == ST_UNSET ? (double)INFINITY : (double)a->max.gpu_m,
            .weight = there ? (double)a->weight_m / 1000 : 0,
        };
        in[n + i] = (st_divide_in){.parent = (int)i, .max = (double)INFINITY, .weight = 1};
        if (there)
            in[n + i].demand = (double)st_rerun_of(side, st_rerun_name(lab, a->name))->demand_m;
    }
    st_share_divide((double)tree->capacity.gpu_m,
                    (st_share_counts)st_core_policy(side->core)->counts, in, (int)(2 * n), out,
                    NULL, NULL);
    for (size_t i = 1; i < n; i++)
        if (!tree->accounts.v[i]->gone)
            st_rerun_of(side, st_rerun_name(lab, tree->accounts.v[i]->name))->entitled +=
                out[n + i].share * (double)ms;
}

void st_rerun_advance(st_rerun_side *side, int64_t now)
{
    int64_t step = side->lab->sample_ms;

    side->now = ST_MAX(side->now, now);
    if (!side->counting)
        return;
    while (step > 0 && side->next_sample_ms <= side->now) {
        sample(side, step);
        side->next_sample_ms += step;
    }
    double ms = (double)(side->now - side->at_ms);

    side->allocated += (double)side->allocated_m * ms;
    side->capacity += (double)st_core_tree(side->core)->capacity.gpu_m * ms;
    side->at_ms = side->now;
}

/* ---- effects ------------------------------------------------------------------------------------- */

static void hold(st_rerun_side *side, const st_rerun_job *job, int64_t gpu_m)
{
    st_rerun_count *c = st_rerun_of(side, job->account);

    integrate(side, c);
    c->held_m += gpu_m;
    side->allocated_m += gpu_m;
}

static void leave(st_rerun_side *side, const st_rerun_job *job, st_rerun_fate *fate,
                  const st_effect *fx)
{
    st_rerun_count *c = st_rerun_of(side, job->account);

    if (fate->on)
        hold(side, job, -job->gpu_m);
    fate->on = false;
    if (fx->kind != ST_FX_PAUSE && side->counting) {
        fate->lost += fx->lost_gpu_ms;
        c->lost += (double)fx->lost_gpu_ms;
        side->lost += (double)fx->lost_gpu_ms;
    }
    if (fx->other != 0 && side->counting) {
        fate->preemptions++;
        c->preemptions++;
    }
}

static void follow_one(st_rerun_side *side, const st_effect *fx)
{
    st_rerun_job *job = fx->job ? st_rerun_find(side->lab, fx->job) : NULL;
    st_rerun_fate *fate = job ? &job->fate[side->which] : NULL;

    if (!job)
        return;
    switch (fx->kind) {
    case ST_FX_QUEUED:
        fate->there = true;
        st_rerun_of(side, job->account)->demand_m += job->gpu_m;
        break;
    case ST_FX_START:
    case ST_FX_RESUME:
        if (!fate->on)
            hold(side, job, job->gpu_m);
        fate->on = true;
        if (fate->start_ms == ST_UNSET)
            fate->start_ms = fx->at_ms;
        break;
    case ST_FX_CHECKPOINT:
        if (side->which == ST_WAS)
            job->asked_ms = fx->at_ms;
        break;
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
    case ST_FX_RETRY:
        leave(side, job, fate, fx);
        break;
    case ST_FX_END:
        leave(side, job, fate, fx);
        fate->end_ms = fx->at_ms;
        st_rerun_of(side, job->account)->demand_m -= job->gpu_m;
        break;
    default:
        break;
    }
    if (side->reacts)
        st_rerun_due(side, fx);
}

void st_rerun_follow(st_rerun_side *side, st_notes *notes, int64_t now)
{
    static const st_notes none;
    st_notes empty = none;

    st_log_meter(side->core, &side->fx, notes ? notes : &empty, now, &side->meter, &side->records);
    st_rerun_price(side);
    for (size_t i = 0; i < side->fx.list.n; i++)
        follow_one(side, &side->fx.list.v[i]);
    st_effects_clear(&side->fx);
}

/* ---- the time that is counted ------------------------------------------------------------------------ */

/* Jobs that are there already: known from the core. */
static void take_job(st_rerun_side *side, const st_job *j)
{
    st_rerun_lab *lab = side->lab;
    const st_tree *tree = st_core_tree(side->core);
    const st_job_spec spec = {.id = j->id,
                              .name = j->name,
                              .account = st_tree_account(tree, j->account)->name,
                              .user = tree->users.v[j->user],
                              .pool = j->pool,
                              .tasks = j->tasks,
                              .shape = j->shape,
                              .topo = j->topo,
                              .topo_required = j->topo_required,
                              .latency_critical = j->latency_critical,
                              .priority = j->priority,
                              .limit_ms = j->limit_ms,
                              .yield = j->yield};
    st_rerun_job *job = st_rerun_add(lab, &spec, j->submit_ms);
    st_rerun_fate *fate = &job->fate[side->which];

    /* What it has behind it is not what is looked at. */
    fate->there = true;
    job->counted = j->state == ST_JOB_PENDING && j->preemptions == 0 && j->served_ms == 0 &&
                   fate->start_ms == ST_UNSET;
    if (fate->on != st_job_on_devices(j)) {
        fate->on = st_job_on_devices(j);
        hold(side, job, fate->on ? job->gpu_m : -job->gpu_m);
    }
}

void st_rerun_count_from(st_rerun_side *side, int64_t now)
{
    st_rerun_advance(side, now);
    if (side->meter)
        st_meter_cut(side->meter, side->now, &side->records);
    st_rerun_price(side);
    side->counting = true;
    side->at_ms = side->next_sample_ms = side->now;
    side->allocated_m = 0;
    for (size_t i = 0; i < side->accounts.n; i++)
        side->accounts.v[i] = (st_rerun_count){.at_ms = side->now};
    for (size_t i = 0; i < side->lab->jobs.n; i++)
        side->lab->jobs.v[i].fate[side->which].on = false;
    for (size_t i = 0; i < st_core_njobs(side->core); i++) {
        const st_job *j = st_core_job_at(side->core, i);

        take_job(side, j);
        st_rerun_of(side, st_rerun_find(side->lab, j->id)->account)->demand_m += st_job_gpu_m(j);
    }
}

void st_rerun_count_to(st_rerun_side *side, int64_t now)
{
    st_rerun_advance(side, now);
    if (side->meter)
        st_meter_cut(side->meter, side->now, &side->records);
    st_rerun_price(side);
    for (size_t i = 0; i < side->accounts.n; i++)
        integrate(side, &side->accounts.v[i]);
}
