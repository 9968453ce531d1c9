/*
 * From what was counted to a report (replay/replay.h).
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "replay/state.h"

#define GPU_HOUR (1000.0 * 3600 * 1000) /* in milli-GPU x ms */
#define NOTHING  0.01                   /* of a mean: less is no difference */
#define MOMENT   1000.0                 /* ms; likewise */

static bool is_counted(const st_rerun_job *job)
{
    return job->counted && (job->fate[ST_WAS].there || job->fate[ST_WAS].refused);
}

/* Of one that has not started, or ended, it is at least that. */
static int64_t wait_ms(const st_rerun_lab *lab, const st_rerun_job *job, int side)
{
    int64_t at = job->fate[side].start_ms;

    if (at == ST_UNSET)
        at = job->fate[side].end_ms;
    return (at == ST_UNSET ? lab->end_ms : at) - job->submit_ms;
}

static int64_t turn_ms(const st_rerun_lab *lab, const st_rerun_job *job, int side)
{
    int64_t at = job->fate[side].end_ms;

    return (at == ST_UNSET ? lab->end_ms : at) - job->submit_ms;
}

static void count_side(st_rerun_lab *lab, int which, st_rerun_figures *f)
{
    st_rerun_side *side = &lab->side[which];
    ST_CLEANUP(st_freep) int64_t *waits = st_xcalloc(lab->jobs.n + 1, sizeof *waits);
    ST_CLEANUP(st_freep) double *ratios = st_xcalloc(lab->names.n + 1, sizeof *ratios);
    size_t n = 0, accounts = 0;

    for (size_t i = 0; i < lab->jobs.n; i++) {
        const st_rerun_job *job = &lab->jobs.v[i];
        const st_rerun_fate *fate = &job->fate[which];

        if (!is_counted(job))
            continue;
        f->refused += fate->refused;
        f->started += fate->start_ms != ST_UNSET;
        f->ended += fate->end_ms != ST_UNSET;
        if (!fate->refused)
            waits[n++] = wait_ms(lab, job, which);
    }
    st_spread_of(waits, n, &f->wait);
    for (size_t i = 0; i < lab->names.n; i++) {
        const st_rerun_count *c = st_rerun_of(side, i);

        f->preemptions += c->preemptions;
        f->bill_udollars += c->own_udollars;
        if (c->entitled > 0)
            ratios[accounts++] = c->held / c->entitled;
    }
    f->jain = st_jain(ratios, accounts);
    f->allocated_gpu_hours = side->allocated / GPU_HOUR;
    f->capacity_gpu_hours = side->capacity / GPU_HOUR;
    f->lost_gpu_hours = side->lost / GPU_HOUR;
    f->hash = st_core_hash(side->core);
}

/* ---- accounts ---------------------------------------------------------------------------------------- */

static const char *parent_of(const st_core *core, const char *name)
{
    const st_tree *tree = st_core_tree(core);
    int32_t id = st_tree_find(tree, name);
    int32_t parent = id > ST_ROOT ? st_tree_account(tree, id)->parent : ST_ROOT;

    return parent > ST_ROOT ? st_tree_account(tree, parent)->name : NULL;
}

/* With all below: each account's own is added to those above it. */
static void add_bills(st_rerun_lab *lab, int which, st_rerun_account *all)
{
    st_rerun_side *side = &lab->side[which];

    for (size_t i = 0; i < lab->names.n; i++) {
        int64_t own = st_rerun_of(side, i)->own_udollars, at = (int64_t)i;
        const char *name = lab->names.v[i];

        for (int depth = 0; depth <= ST_DEPTH_MAX; depth++) {
            all[at].side[which].bill_udollars += own;
            name = parent_of(side->core, name);
            if (!name || !st_map_get(lab->name_ids, name, &at))
                break;
        }
    }
}

static void add_job(const st_rerun_lab *lab, const st_rerun_job *job, st_rerun_account *a,
                    st_rerun *ret)
{
    int64_t turn[ST_SIDES];

    a->jobs++;
    ret->jobs++;
    for (int s = 0; s < ST_SIDES; s++) {
        st_rerun_share *sh = &a->side[s];

        turn[s] = turn_ms(lab, job, s);
        sh->refused += job->fate[s].refused;
        sh->wait_ms += (double)wait_ms(lab, job, s);
        sh->turn_ms += (double)turn[s];
    }
    if (job->fate[ST_WOULD].refused && !job->fate[ST_WAS].refused)
        turn[ST_WOULD] = INT64_MAX;
    a->sooner += turn[ST_WOULD] < turn[ST_WAS];
    a->later += turn[ST_WOULD] > turn[ST_WAS];
    ret->sooner += turn[ST_WOULD] < turn[ST_WAS];
    ret->later += turn[ST_WOULD] > turn[ST_WAS];
    ret->alike += turn[ST_WOULD] == turn[ST_WAS];
}

/* Better off is who gets its work back sooner on the whole and is refused nothing new. */
static int verdict(const st_rerun_account *a)
{
    double was = a->side[ST_WAS].turn_ms, would = a->side[ST_WOULD].turn_ms;

    if (a->side[ST_WOULD].refused > a->side[ST_WAS].refused)
        return -1;
    if (fabs(would - was) < ST_MAX(MOMENT, was * NOTHING))
        return 0;
    return would < was ? 1 : -1;
}

static int by_name(const void *pa, const void *pb)
{
    return strcmp(((const st_rerun_account *)pa)->name, ((const st_rerun_account *)pb)->name);
}

static const char *own(st_rerun *run, const char *text)
{
    return text ? st_arena_strdup(run->arena, text) : NULL;
}

static void finish_account(st_rerun_lab *lab, size_t i, st_rerun_account *a, st_rerun *ret)
{
    const char *parent = parent_of(lab->side[ST_WAS].core, lab->names.v[i]);

    if (!parent)
        parent = parent_of(lab->side[ST_WOULD].core, lab->names.v[i]);
    for (int s = 0; s < ST_SIDES; s++) {
        const st_rerun_count *c = st_rerun_of(&lab->side[s], i);

        if (a->jobs > 0) {
            a->side[s].wait_ms /= (double)a->jobs;
            a->side[s].turn_ms /= (double)a->jobs;
        }
        a->side[s].gpu_hours = c->held / GPU_HOUR;
        a->side[s].lost_gpu_hours = c->lost / GPU_HOUR;
        a->side[s].preemptions = c->preemptions;
    }
    a->name = own(ret, lab->names.v[i]);
    a->parent = own(ret, parent);
    a->verdict = verdict(a);
    if (a->jobs > 0 || a->side[ST_WAS].bill_udollars != 0 || a->side[ST_WOULD].bill_udollars != 0 ||
        a->side[ST_WAS].gpu_hours > 0 || a->side[ST_WOULD].gpu_hours > 0)
        st_vec_push(&ret->accounts, *a);
}

void st_rerun_figures_of(st_rerun_lab *lab, st_rerun *ret)
{
    ST_CLEANUP(st_freep) st_rerun_account *all = st_xcalloc(lab->names.n + 1, sizeof *all);

    ret->from_ms = lab->from_ms;
    ret->to_ms = lab->end_ms;
    ret->rows = lab->rows;
    ret->same = !lab->side[ST_WOULD].reacts;
    ret->differ_ms = lab->differ_ms;
    ret->parted = lab->parted;
    ret->written_by = own(ret, lab->written_by);
    for (int s = 0; s < ST_SIDES; s++) {
        count_side(lab, s, &ret->side[s]);
        add_bills(lab, s, all);
    }
    for (size_t i = 0; i < lab->jobs.n; i++)
        if (is_counted(&lab->jobs.v[i]))
            add_job(lab, &lab->jobs.v[i], &all[lab->jobs.v[i].account], ret);
    for (size_t i = 0; i < lab->names.n; i++)
        finish_account(lab, i, &all[i], ret);
    if (ret->accounts.n > 0)
        qsort(ret->accounts.v, ret->accounts.n, sizeof *ret->accounts.v, by_name);
}
