/* Capacity, floors, and which running jobs are inside them.
 *
 * A guaranteed job stays guaranteed as long as the floors allow; when they shrink, those with
 * the lowest priority and the latest start lose it first. Room that appears goes to burstable
 * jobs, highest priority and earliest start first. */
#include <stdlib.h>
#include <string.h>

#include "core/book.h"
#include "core/shadow.h"

/* GPUs of a node that jobs have now. */
static unsigned in_use(const st_node *node)
{
    unsigned devs = 0;
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_resident *r = &node->residents.v[i];
        devs |= st_job_on_devices(r->job) ? r->job->grants[r->task].devs : 0u;
    }
    return devs;
}

/* What is there: ready nodes whole, those that take no new jobs as far as they are in use; of GPUs likewise. */
static void measure(const st_core *core, st_use *ret)
{
    *ret = (st_use){0};
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (st_node_away(node))
            continue;
        st_view now;
        bool closed = st_node_closed(node->state);
        if (closed)
            st_view_outline(node, ST_WHEN_NOW, &now);
        unsigned used = closed || node->out ? in_use(node) : 0;
        for (int d = 0; d < node->ndevs; d++) {
            if (node->fence >> d & 1)
                continue; /* booked */
            bool out = node->out >> d & 1;
            if ((out && st_gpu_away(node, d)) || ((out || closed) && !(used >> d & 1)))
                continue;
            ret->gpu_m += ST_WHOLE_M;
            ret->type_m[node->type] += ST_WHOLE_M;
        }
        bool all = node->state == ST_NODE_READY;
        ret->cpu_m += (all ? node->cpu_m : node->cpu_m - now.cpu_free_m) - node->fence_cpu_m;
        ret->ram_mib +=
            (all ? node->ram_mib : node->ram_mib - now.ram_free_mib) - node->fence_ram_mib;
    }
}

static void tell_floors(st_core *core, const st_quota *before, size_t n, st_effects *fx)
{
    for (size_t i = 1; i < n; i++) {
        const st_account *a = core->tree->accounts.v[i];
        if (memcmp(&before[i], &a->floor, sizeof a->floor) == 0)
            continue;
        st_effect e = st_fx_of(core, ST_FX_FLOOR, NULL);
        e.account = a->id;
        e.floor_m = st_quota_gpu_m(&a->floor);
        st_fx(core, fx, e, NULL, 0);
    }
}

/* Guaranteed before burstable (who was until its floor shrank counts as if it still were when floors
 * change again: with capacity back, classes are what they would have been), then priority, then start (plans last), then id. */
static int by_right(const void *pa, const void *pb)
{
    const st_job *a = *(st_job *const *)pa, *b = *(st_job *const *)pb;
    if (a->by_right != b->by_right)
        return a->by_right ? -1 : 1;
    if (a->held != b->held)
        return a->held ? 1 : -1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (!a->held && a->start_ms != b->start_ms)
        return a->start_ms < b->start_ms ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void set_class(st_core *core, st_job *job, st_class class, st_effects *fx)
{
    if (job->class == class)
        return;
    job->class = class;
    st_core_retime(core, job);
    if (!job->held)
        st_fx(core, fx, st_fx_of(core, ST_FX_CLASS, job), NULL, 0);
}

static bool counts(const st_job *job)
{
    return (job->state == ST_JOB_RUNNING || job->held) && job->class != ST_CLASS_BOOKED;
}

/* Everybody whose class may change: with `all` all jobs, otherwise borrowers. Where homes decide
 * too (shadow.h) that may be any of them. */
static void collect(st_core *core, bool all, st_job_vec *ret)
{
    if (!all && core->shadows.n == 0) {
        st_core_take_borrowers(core, ret);
        return;
    }
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *job = core->jobs.v[i];
        if (counts(job) && (all || job->class == ST_CLASS_BURSTABLE))
            st_vec_push(ret, job);
    }
}

/* Go through the jobs by right and give each the class it can have. With `all`, guaranteed
 * ones must prove themselves again; with `floors` these have changed. */
static void assign_classes(st_core *core, bool all, bool floors, st_effects *fx)
{
    st_job_vec list = {0};
    collect(core, all, &list);
    for (size_t i = 0; i < list.n; i++)
        list.v[i]->by_right =
            list.v[i]->class == ST_CLASS_GUARANTEED || (floors && list.v[i]->demoted);
    if (list.n > 1)
        qsort(list.v, list.n, sizeof *list.v, by_right);
    if (all) {
        for (size_t i = 0; i < list.n; i++) {
            if (list.v[i]->class != ST_CLASS_GUARANTEED)
                continue;
            st_need need = st_need_of(list.v[i], list.v[i]->type);
            st_admit_charge(core->tree, list.v[i]->account, &need, ST_GUARANTEED, -1);
        }
    }
    for (size_t i = 0; i < list.n; i++) {
        st_job *job = list.v[i];
        if (!counts(job))
            continue; /* it is leaving, and fresh should it stay */
        st_need need = st_need_of(job, job->type);
        int32_t at = job->account;
        bool carried =
            st_shadow_at_home(job) && st_admit_guaranteed(core->tree, job->account, &need, &at);
        bool guaranteed = carried && st_book_make_way(core, job, job->grants, fx);
        if (guaranteed) {
            st_admit_charge(core->tree, job->account, &need, ST_GUARANTEED, 1);
            st_core_unlist(core, job);
        } else if (carried) {
            st_core_list_fresh(core, job); /* a booking is in its way, which no floor will tell */
        } else {
            st_core_list_at(core, job, at);
        }
        bool was = job->class == ST_CLASS_GUARANTEED;
        bool lost = job->held && !guaranteed && was;
        job->demoted = !guaranteed && !job->shadow && (job->demoted || (was && all));
        set_class(core, job, guaranteed ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE, fx);
        if (lost)
            st_core_unhold(core, job, fx); /* its claim rested on the floor */
    }
    st_vec_free(&list);
}

void st_core_reclass(st_core *core, st_effects *fx)
{
    bool all = core->floors_dirty, floors = false;
    if (core->floors_dirty) {
        core->floors_dirty = false;
        ST_VEC(st_quota) before = {0};
        for (size_t i = 0; i < core->tree->accounts.n; i++)
            st_vec_push(&before, core->tree->accounts.v[i]->floor);
        measure(core, &core->tree->capacity);
        st_book_promises(core);
        st_admit_floors(core->tree);
        tell_floors(core, before.v, before.n, fx);
        for (size_t i = 0; i < before.n; i++)
            floors |=
                memcmp(&before.v[i], &core->tree->accounts.v[i]->floor, sizeof before.v[i]) != 0;
        st_shadow_floors(core);
        st_vec_free(&before);
        st_core_changed(core, ST_CHANGED_CLASSES);
    }
    st_shadow_run(core);
    if (core->class_dirty) {
        core->class_dirty = false;
        assign_classes(core, all, floors, fx);
    }
}
