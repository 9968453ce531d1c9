/* A pool allows other things, or goes, or a node does. Nobody is put off a device for it, and nobody may be left waiting for
 * what cannot come any more: where that would be, the change is refused and says who is in the
 * way. */
#include <inttypes.h>

#include "base/num.h"
#include "core/book.h"
#include "core/shadow.h"

static bool in_pool(const st_core *core, const st_grant *grants, int task, int32_t pool)
{
    return grants && core->fleet->nodes.v[grants[task].node]->pool == pool;
}

/* Whoever has a place in the pool, runs, is paused, is waited for or moves there, keeps its level
 * and what it needs. */
static int check_levels(const st_core *core, int32_t pool, uint32_t levels, uint32_t gives,
                        st_err *err)
{
    for (size_t i = 0; i < core->jobs.n; i++) {
        const st_job *job = core->jobs.v[i];
        bool level = job->shape.gpus == 0 || (levels >> job->shape.level & 1);
        uint32_t lacks = job->shape.needs & ~gives;
        if (level && !lacks)
            continue;
        for (int t = 0; t < job->tasks; t++)
            if (in_pool(core, job->grants, t, pool) || in_pool(core, job->to, t, pool))
                return st_fail(err, ST_ESTATE,
                               "pool %s: job %s has a place there %s %s; drain its nodes or "
                               "cancel it first",
                               core->fleet->pools.v[pool].name, job->name,
                               level ? "and needs" : "at level",
                               level ? st_need_name(lacks) : st_level_name(job->shape.level));
    }
    return 0;
}

/* Now, and once all plans have come true: seen together a GPU may look used in another way. */
static int check_shares(const st_core *core, int32_t pool, int64_t oversub_m, st_err *err)
{
    static const st_when moments[] = {ST_WHEN_NOW, ST_WHEN_NEXT};
    for (size_t i = 0; i < 2 * core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i / 2];
        char used[32], factor[32];
        st_view view;
        if (node->pool != pool)
            continue;
        st_view_build(core->fleet, core->tree, node, moments[i % 2], &view);
        for (int d = 0; d < node->ndevs; d++)
            if (view.dev[d].mode == ST_DEV_TIME && view.dev[d].used_m > oversub_m)
                return st_fail(err, ST_ESTATE,
                               "pool %s: GPU %d of node %s is shared by %s, more than %s; drain "
                               "the node first",
                               core->fleet->pools.v[pool].name, d, node->name,
                               st_fmt_milli(used, view.dev[d].used_m),
                               st_fmt_milli(factor, oversub_m));
    }
    return 0;
}

/* Homes on paper are kept as well (shadow.h): who has a right to a place there must find it. */
static int check_homes(const st_core *core, int32_t pool, uint32_t levels, uint32_t gives,
                       int64_t oversub_m, st_err *err)
{
    int32_t account;
    if (!st_shadow_uses(core, pool, levels, gives, oversub_m, &account))
        return 0;
    return st_fail(
        err, ST_ESTATE,
        "pool %s: account %s has the right to a place there at a level or share or with a "
        "permission that would go; try again when its jobs of that kind have ended",
        core->fleet->pools.v[pool].name, st_tree_account(core->tree, account)->name);
}

static bool still_possible(st_core *core, const st_job *job)
{
    ST_EACH_TYPE (core, job, t)
        if (st_core_possible(core, job, t, NULL))
            return true;
    return false;
}

void st_core_forget_possible(st_core *core)
{
    st_idmap_free(core->possible);
    core->possible = st_idmap_new();
}

/* Those who wait must still have somewhere to go. */
static int check_waiting(st_core *core, const char *what, const char *name, st_err *err)
{
    for (size_t i = 0; i < core->jobs.n; i++) {
        const st_job *job = core->jobs.v[i];
        if (!still_possible(core, job))
            return st_fail(err, ST_ESTATE, "%s %s: job %s could never start then; cancel it first",
                           what, name, job->name);
    }
    return 0;
}

int st_core_pool_change(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    const char *name = ev->u.pool.name;
    int32_t pool = name ? st_fleet_pool(core->fleet, name) : -1;
    if (pool < 0)
        return st_fail(err, ST_ENOENT, "pool %s does not exist", name ? name : "(none)");
    const st_pool old = core->fleet->pools.v[pool];
    const uint32_t gives = st_pool_gives(&ev->u.pool.rules);
    int rc = 0;
    if (!ST_BROKEN(POOL_CHANGE))
        rc = check_levels(core, pool, ev->u.pool.levels, gives, err);
    if (rc == 0 && !ST_BROKEN(POOL_CHANGE))
        rc = check_shares(core, pool, ev->u.pool.oversub_m, err);
    if (rc == 0)
        rc = check_homes(core, pool, ev->u.pool.levels, gives, ev->u.pool.oversub_m, err);
    if (rc == 0)
        rc = st_fleet_set_rules(core->fleet, pool, &ev->u.pool.rules, err);
    if (rc == 0)
        rc = st_fleet_set_pool(core->fleet, core->tree, pool, ev->u.pool.levels,
                               ev->u.pool.oversub_m, err);
    if (rc < 0) {
        core->fleet->pools.v[pool].rules = old.rules;
        return rc;
    }
    st_core_forget_possible(core);
    bool less = (old.levels & ~ev->u.pool.levels) || ev->u.pool.oversub_m < old.oversub_m ||
                (st_pool_gives(&old.rules) & ~gives);
    rc = less ? check_waiting(core, "pool", name, err) : 0;
    if (rc == 0 && less)
        rc = st_book_leave_pool(core, pool, ev->u.pool.force, fx, err);
    if (rc < 0) {
        core->fleet->pools.v[pool].rules = old.rules;
        int back =
            st_fleet_set_pool(core->fleet, core->tree, pool, old.levels, old.oversub_m, NULL);
        ST_ASSERT(back == 0);
        st_core_forget_possible(core);
        return rc;
    }
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM); /* homes carry others now */
    st_core_retime_all(core);
    st_book_set_due(core); /* bookings may have lost their place */
    return 0;
}

/* ---- for good ------------------------------------------------------------------------------ */

static const st_job *who_is_on(const st_core *core, int32_t node)
{
    for (size_t i = 0; i < core->jobs.n; i++) {
        const st_job *job = core->jobs.v[i];
        for (int t = 0; t < job->tasks; t++)
            if ((job->grants && job->grants[t].node == node) ||
                (job->to && job->to[t].node == node))
                return job;
    }
    return NULL;
}

/* Nobody is on it, and nobody is left waiting for it alone. Its number stays: the past has it. */
int st_core_node_remove(st_core *core, st_node *node, bool force, st_effects *fx, st_err *err)
{
    const st_job *job = who_is_on(core, node->id);
    st_node_state was = node->state;
    if (job)
        return st_fail(err, ST_ESTATE,
                       "node %s: job %s has a place there; drain the node and wait, or cancel the "
                       "job",
                       node->name, job->name);
    st_node_set_state(core->fleet, node, ST_NODE_REMOVED);
    st_core_forget_possible(core);
    int rc = check_waiting(core, "node", node->name, err);
    if (rc == 0)
        rc = st_book_leave_node(core, node, force, fx, err);
    if (rc < 0) {
        st_node_set_state(core->fleet, node, was);
        st_core_forget_possible(core);
        return rc;
    }
    st_fleet_remove_node(core->fleet, node);
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM | ST_CHANGED_YIELDERS);
    st_effect e = st_fx_of(core, ST_FX_NODE, NULL);
    e.node = node->id;
    e.node_state = ST_NODE_REMOVED;
    st_fx(core, fx, e, NULL, 0);
    return 0;
}

int st_core_pool_remove(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    const char *name = ev->u.pool.name;
    int32_t pool = name ? st_fleet_pool(core->fleet, name) : -1;
    if (pool < 0)
        return st_fail(err, ST_ENOENT, "pool %s does not exist", name ? name : "(none)");
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (node->pool == pool && node->state != ST_NODE_REMOVED)
            return st_fail(err, ST_ESTATE, "pool %s: node %s is in it; remove its nodes first",
                           name, node->name);
    }
    for (size_t i = 0; i < core->jobs.n; i++)
        if (core->jobs.v[i]->pool == pool)
            return st_fail(err, ST_ESTATE, "pool %s: job %s waits for it; cancel it first", name,
                           core->jobs.v[i]->name);
    for (size_t i = 0; i < core->bookings.n; i++)
        if (core->bookings.v[i]->pool == pool)
            return st_fail(err, ST_ESTATE, "pool %s: booking %s is in it; cancel it first", name,
                           core->bookings.v[i]->name);
    st_fleet_remove_pool(core->fleet, pool);
    st_core_forget_possible(core);
    st_core_changed(core, ST_CHANGED_YIELDERS);
    return 0;
}
