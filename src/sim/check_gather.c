/*
 * What is gathered by limits is a promise: forecasts may be wrong, but whoever is let in on one
 * must not make the first in line wait beyond what the limits of those before it allow, and
 * `overstay` in all.
 *
 * The core says when that is (st_core_gathered). It must not move back further in a step in which
 * nothing happened but that jobs came, ended, or started behind the first in line: in its own
 * account, of its own user, queued later, with no higher priority and no better right, and below
 * no ceiling.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/check_watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static bool ordinary(const st_step *step)
{
    for (size_t i = 0; i < step->nevents; i++) {
        st_event_kind kind = step->events[i]->kind;
        if (kind != ST_EV_SUBMIT && kind != ST_EV_FINISH && kind != ST_EV_CANCEL &&
            kind != ST_EV_TIMER && kind != ST_EV_TOLD)
            return false;
    }
    for (size_t i = 0; i < step->fx->list.n; i++) {
        st_effect_kind kind = step->fx->list.v[i].kind;
        if (kind != ST_FX_QUEUED && kind != ST_FX_START && kind != ST_FX_END)
            return false;
    }
    return true;
}

/* Below a ceiling a job may come into the line when somebody ends and drop out of it again when
 * somebody starts, all in one step; who was let in behind it then stays. */
static bool capped(const st_step *step, int32_t account)
{
    const st_tree *tree = st_core_tree(step->core);
    for (; account > ST_ROOT; account = st_tree_account(tree, account)->parent) {
        const st_quota *max = &st_tree_account(tree, account)->max;
        bool any = st_quota_has_gpu(max) || max->cpu_m != ST_UNSET || max->ram_mib != ST_UNSET;
        if (any)
            return true;
    }
    return false;
}

static bool all_behind(const st_step *step, const st_gathered *first)
{
    const st_track *ahead = st_watch_find(step->watch, first->job);
    if (!ahead || st_core_policy(step->core)->order != ST_ORDER_AGE ||
        capped(step, ahead->job.account))
        return false;
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        const st_track *t = st_watch_find(step->watch, e->job);
        if (e->kind != ST_FX_START || (t && t->held_before))
            continue;
        /* Who started and ended in one step is no longer known. */
        if (!t || t->job.account != ahead->job.account || t->job.user != ahead->job.user ||
            t->job.priority > ahead->job.priority || t->job.queued_ms < ahead->job.queued_ms ||
            t->job.id < first->job || (e->class == ST_CLASS_GUARANTEED && !first->sure))
            return false;
    }
    return true;
}

int st_watch_gathered(const st_step *step, st_err *err)
{
    st_gathered_list list = {0};
    st_core_gathered(step->core, &list);
    st_gathered before = step->watch->first, now = {0};
    if (list.n > 0)
        now = list.v[0];
    st_vec_free(&list);
    step->watch->first = now;
    bool same = now.job != 0 && now.job == before.job && now.type == before.type &&
                now.sure == before.sure && !now.claims && !before.claims;
    int64_t overstay_ms = st_core_policy(step->core)->overstay_ms,
            *by_ms = &step->watch->first_by_ms;
    int64_t promise_ms = now.by_ms == ST_TIME_NEVER ? now.by_ms : now.by_ms + overstay_ms;
    int64_t allowed_ms = ST_MAX(before.by_ms, *by_ms);
    *by_ms = same ? ST_MIN(*by_ms, promise_ms) : promise_ms;
    if (!same || now.by_ms <= allowed_ms || !ordinary(step) || !all_behind(step, &now))
        return 0;
    return BAD("promise: by the limits of those before it job %" PRIu64 " was to start by %" PRId64
               ", and now by %" PRId64,
               now.job, allowed_ms, now.by_ms);
}
