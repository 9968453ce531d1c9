/* Every floor as a cluster of its own; see shadow.h. */
#include "core/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- the paper's view of nodes ----------------------------------------------------------- */

typedef struct paper {
    const st_shadow_cluster *cluster;
    st_view *views; /* by position in cluster->nodes */
    st_view none;   /* of everybody else's nodes */
} paper;

static const st_view *paper_view(void *ctx, const st_node *node)
{
    const paper *p = ctx;
    size_t lo = 0, hi = p->cluster->nodes.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->cluster->nodes.v[mid] < node->id)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool home = lo < p->cluster->nodes.n && p->cluster->nodes.v[lo] == node->id;
    return home ? &p->views[lo] : &p->none;
}

static st_view *paper_edit(paper *p, const st_node *node)
{
    return &p->views[paper_view(p, node) - p->views];
}

static void paper_add(const st_core *core, paper *p, const st_job *shadow)
{
    for (int t = 0; t < shadow->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[shadow->grants[t].node];
        int rc = st_view_add(core->fleet, core->tree, node, shadow, &shadow->grants[t],
                             paper_edit(p, node));
        ST_ASSERT(rc == 0);
    }
}

/* The home with its shadows, or empty. */
static void paper_init(const st_core *core, const st_shadow_cluster *cluster, bool empty,
                       paper *ret)
{
    *ret = (paper){.cluster = cluster};
    for (int d = 0; d < ST_DEVS_MAX; d++)
        ret->none.dev[d].mode = ST_DEV_WHOLE;
    ret->views = st_xcalloc(cluster->nodes.n + 1, sizeof *ret->views);
    for (size_t i = 0; i < cluster->nodes.n; i++)
        st_view_build(core->fleet, core->tree, core->fleet->nodes.v[cluster->nodes.v[i]],
                      ST_WHEN_EMPTY, &ret->views[i]);
    for (size_t i = 0; !empty && i < cluster->stand.n; i++)
        paper_add(core, ret, &cluster->stand.v[i]->job);
}

static bool paper_full(const paper *p)
{
    for (size_t i = 0; i < p->cluster->nodes.n; i++)
        if (p->views[i].free || p->views[i].shared)
            return false;
    return true;
}

/* ---- shadows ------------------------------------------------------------------------------ */

void st_shadow_job_free(struct st_shadow_job *shadow)
{
    if (!shadow)
        return;
    free(shadow->job.name);
    free(shadow->job.grants);
    free(shadow);
}

void st_shadow_free(st_shadow_cluster *cluster)
{
    if (!cluster)
        return;
    for (size_t i = 0; i < cluster->waits.n; i++)
        st_shadow_job_free(cluster->waits.v[i]);
    for (size_t i = 0; i < cluster->stand.n; i++)
        st_shadow_job_free(cluster->stand.v[i]);
    st_vec_free(&cluster->waits);
    st_vec_free(&cluster->stand);
    st_vec_free(&cluster->nodes);
    free(cluster);
}

static st_shadow_cluster *find_cluster(const st_core *core, int32_t account)
{
    for (size_t i = 0; i < core->shadows.n; i++)
        if (core->shadows.v[i]->account == account)
            return core->shadows.v[i];
    return NULL;
}

static st_shadow_cluster *cluster_of(const st_core *core, int32_t account)
{
    st_shadow_cluster *cluster = NULL;
    for (int32_t i = account; i > ST_ROOT && !cluster; i = st_tree_account(core->tree, i)->parent)
        cluster = find_cluster(core, i);
    return cluster;
}

static bool before(const st_job *a, const st_job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->submit_ms != b->submit_ms)
        return a->submit_ms < b->submit_ms;
    return a->id < b->id;
}

static void wait_in_turn(st_shadow_cluster *cluster, struct st_shadow_job *shadow)
{
    size_t lo = 0, hi = cluster->waits.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (before(&shadow->job, &cluster->waits.v[mid]->job))
            hi = mid;
        else
            lo = mid + 1;
    }
    st_vec_insert(&cluster->waits, lo, shadow);
    cluster->dirty = true;
}

static void take_out(st_shadow_cluster *cluster, const struct st_shadow_job *shadow)
{
    for (size_t i = 0; i < cluster->waits.n; i++) {
        if (cluster->waits.v[i] == shadow) {
            st_vec_remove(&cluster->waits, i);
            return;
        }
    }
    for (size_t i = 0; i < cluster->stand.n; i++) {
        if (cluster->stand.v[i] == shadow) {
            st_vec_remove(&cluster->stand, i);
            return;
        }
    }
}

/* Find a place on paper, on the first GPU type that has one; false when none has. */
static bool find_place(st_core *core, paper *p, st_job *shadow, bool ever)
{
    ST_EACH_TYPE (core, shadow, t) {
        /* Alone there is nobody beside, and what others submit is not known. */
        st_ask ask = {
            .job = shadow, .type = t, .ever = ever, .plain = true, .view = paper_view, .ctx = p};
        if (!st_place_fits(core->placer, &ask))
            continue;
        if (ever)
            return true;
        shadow->grants = st_xcalloc((size_t)shadow->tasks, sizeof *shadow->grants);
        bool ok = st_place_gang(core->placer, &ask, shadow->grants);
        ST_ASSERT(ok);
        shadow->type = t;
        return true;
    }
    return false;
}

void st_shadow_join(st_core *core, st_job *job)
{
    st_shadow_cluster *cluster = cluster_of(core, job->account);
    if (!cluster || job->shape.gpus == 0 || (job->barred & ST_BAR_IDLE))
        return;
    struct st_shadow_job *shadow = st_xcalloc(1, sizeof *shadow);
    st_job *s = &shadow->job;
    *s = *job;
    s->name = st_xstrdup("");
    s->grants = NULL;
    s->afters = NULL;
    s->nafters = 0;
    s->state = ST_JOB_PENDING;
    s->class = ST_CLASS_NONE;
    s->held = s->stopping = s->first = false;
    s->claimant = 0;
    s->type = -1;
    s->queued_ms = core->now;
    s->saved_ms = st_job_ran_ms(job, core->now);
    s->served_ms = s->kept_ms = s->deadline_ms = 0;
    s->out = ST_OUT_NOT;
    shadow->key = st_core_shape_key(s, -1);
    shadow->run_ms = ST_TIME_NEVER;
    paper p;
    paper_init(core, cluster, true, &p);
    bool fits = find_place(core, &p, s, true);
    free(p.views);
    if (!fits) { /* larger than its home: the floor carries it as it can */
        st_shadow_job_free(shadow);
        return;
    }
    job->shadow = shadow;
    wait_in_turn(cluster, shadow);
}

void st_shadow_priority(st_core *core, const st_job *job)
{
    if (!job->shadow)
        return;
    job->shadow->job.priority = job->priority;
    st_shadow_cluster *cluster = cluster_of(core, job->account);
    if (job->shadow->job.grants)
        return;
    take_out(cluster, job->shadow);
    wait_in_turn(cluster, job->shadow);
}

void st_shadow_ended(st_core *core, st_job *job, st_job_state state)
{
    struct st_shadow_job *shadow = ST_TAKE(job->shadow);
    if (!shadow)
        return;
    st_shadow_cluster *cluster = cluster_of(core, job->account);
    cluster->dirty = true;
    if (state == ST_JOB_CANCELLED) {
        take_out(cluster, shadow);
        st_shadow_job_free(shadow);
        return;
    }
    shadow->run_ms = st_job_ran_ms(job, core->now);
    shadow->ended_ms = core->now;
}

/* ---- time on paper ----------------------------------------------------------------------- */

static int64_t end_ms(const struct st_shadow_job *shadow)
{
    if (shadow->run_ms == ST_TIME_NEVER)
        return ST_TIME_NEVER;
    int64_t left = ST_MAX(shadow->run_ms - shadow->job.saved_ms, 0);
    return ST_MAX(shadow->job.start_ms + left, shadow->ended_ms);
}

static int64_t first_end_ms(const st_shadow_cluster *cluster)
{
    int64_t first = ST_TIME_NEVER;
    for (size_t i = 0; i < cluster->stand.n; i++)
        first = ST_MIN(first, end_ms(cluster->stand.v[i]));
    return first;
}

static void end_shadows(st_shadow_cluster *cluster, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < cluster->stand.n; i++) {
        struct st_shadow_job *shadow = cluster->stand.v[i];
        if (end_ms(shadow) <= now)
            st_shadow_job_free(shadow);
        else
            cluster->stand.v[kept++] = shadow;
    }
    cluster->stand.n = kept;
}

/* Those who wait, in order, onto what is free; nobody stands in anybody's way. */
static void start_shadows(st_core *core, st_shadow_cluster *cluster, int64_t now)
{
    paper p;
    paper_init(core, cluster, false, &p);
    st_idmap *misfits = st_idmap_new();
    size_t kept = 0, i = 0;
    for (bool full = paper_full(&p); i < cluster->waits.n && !full; i++) {
        struct st_shadow_job *shadow = cluster->waits.v[i];
        bool late = shadow->job.queued_ms > now;
        if (late || st_idmap_get(misfits, shadow->key, NULL) ||
            !find_place(core, &p, &shadow->job, false)) {
            if (!late)
                st_idmap_put(misfits, shadow->key, 1);
            cluster->waits.v[kept++] = shadow;
            continue;
        }
        shadow->job.start_ms = now;
        shadow->job.state = ST_JOB_RUNNING;
        st_vec_push(&cluster->stand, shadow);
        paper_add(core, &p, &shadow->job);
        full = paper_full(&p);
        const st_job *job = st_core_find(core, shadow->job.id);
        if (job && job->shadow == shadow && job->grants)
            st_core_changed(core, ST_CHANGED_CLASSES);
    }
    if (kept < i) {
        size_t rest = cluster->waits.n - i;
        memmove(cluster->waits.v + kept, cluster->waits.v + i, rest * sizeof *cluster->waits.v);
        cluster->waits.n = kept + rest;
    }
    st_idmap_free(misfits);
    free(p.views);
}

void st_shadow_run(st_core *core)
{
    for (size_t i = 0; i < core->shadows.n; i++) {
        st_shadow_cluster *cluster = core->shadows.v[i];
        int64_t at;
        do {
            while ((at = first_end_ms(cluster)) <= core->now) {
                end_shadows(cluster, at);
                start_shadows(core, cluster, at);
            }
            if (cluster->dirty)
                start_shadows(core, cluster, core->now);
            cluster->dirty = false;
            /* Who lost its place, and has all behind it that it needed, ends where it starts. */
        } while (first_end_ms(cluster) <= core->now);
    }
}

int64_t st_shadow_next_ms(const st_core *core)
{
    int64_t next = ST_TIME_NEVER;
    for (size_t i = 0; i < core->shadows.n; i++)
        next = ST_MIN(next, first_end_ms(core->shadows.v[i]));
    return next;
}

/* ---- homes ------------------------------------------------------------------------------- */

/* Whether anybody below has promises of its own, or may not borrow. */
static bool divided(const st_core *core, const st_account *a)
{
    for (size_t i = 0; i < a->children.n; i++) {
        const st_account *child = st_tree_account(core->tree, a->children.v[i]);
        if (st_quota_has_gpu(&child->floor) || child->weight_m == 0 || divided(core, child))
            return true;
    }
    return false;
}

/* What of an account's floor may be turned into nodes: an untyped promise that is not divided
 * any further. Who may not borrow keeps to the count: sharing cannot make it late. */
static int64_t homes_m(const st_core *core, const st_account *a)
{
    if (!st_quota_has_gpu(&a->floor) || divided(core, a) || st_core_weight_zero(core, a->id, NULL))
        return 0;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        if (a->floor.type_m[t] != ST_UNSET)
            return 0;
    return st_quota_gpu_m(&a->floor);
}

/* Nodes stay with their account while its floor covers them; what is missing comes from those
 * that are nobody's, lowest ids first. */
static void assign_homes(st_core *core)
{
    size_t n = core->tree->accounts.n;
    int64_t *left_m = st_xcalloc(n, sizeof *left_m);
    for (size_t i = 1; i < n; i++)
        left_m[i] = homes_m(core, core->tree->accounts.v[i]);
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        st_node *node = core->fleet->nodes.v[i];
        int64_t gpu_m = node->ndevs * ST_WHOLE_M;
        if (node->home > 0 && (st_node_away(node) || node->out || left_m[node->home] < gpu_m))
            node->home = 0;
        left_m[node->home] -= gpu_m;
    }
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        st_node *node = core->fleet->nodes.v[i];
        int64_t gpu_m = node->ndevs * ST_WHOLE_M;
        if (node->home > 0 || gpu_m == 0 || node->state != ST_NODE_READY || node->out)
            continue;
        size_t a = 1;
        while (a < n && left_m[a] < (ST_BROKEN(SETTLE) ? 1 : gpu_m))
            a++;
        if (a == n)
            continue;
        node->home = (int32_t)a;
        left_m[a] -= gpu_m;
    }
    free(left_m);
}

/* Shadows that lost their place wait again, with what they have behind them. */
static void uproot(st_core *core, st_shadow_cluster *cluster)
{
    size_t kept = 0;
    for (size_t i = 0; i < cluster->stand.n; i++) {
        struct st_shadow_job *shadow = cluster->stand.v[i];
        st_job *s = &shadow->job;
        bool stays = true;
        for (int t = 0; t < s->tasks; t++)
            stays &= core->fleet->nodes.v[s->grants[t].node]->home == cluster->account;
        if (stays) {
            cluster->stand.v[kept++] = shadow;
            continue;
        }
        s->saved_ms += core->now - s->start_ms;
        s->state = ST_JOB_PENDING;
        s->type = -1;
        free(ST_TAKE(s->grants));
        wait_in_turn(cluster, shadow);
    }
    cluster->stand.n = kept;
}

/* Shadows that will never find a place on what is left are given up. */
static void give_up(st_core *core, st_shadow_cluster *cluster)
{
    paper p;
    paper_init(core, cluster, true, &p);
    size_t kept = 0;
    for (size_t i = 0; i < cluster->waits.n; i++) {
        struct st_shadow_job *shadow = cluster->waits.v[i];
        if (cluster->nodes.n > 0 && find_place(core, &p, &shadow->job, true)) {
            cluster->waits.v[kept++] = shadow;
            continue;
        }
        st_job *job = st_core_find(core, shadow->job.id);
        if (job && job->shadow == shadow)
            job->shadow = NULL;
        st_shadow_job_free(shadow);
    }
    cluster->waits.n = kept;
    free(p.views);
}

void st_shadow_list_nodes(const st_core *core, st_shadow_cluster *cluster)
{
    st_vec_clear(&cluster->nodes);
    for (size_t i = 0; i < core->fleet->nodes.n; i++)
        if (core->fleet->nodes.v[i]->home == cluster->account)
            st_vec_push(&cluster->nodes, (int32_t)i);
}

void st_shadow_floors(st_core *core)
{
    if (!core->policy.as_if_alone)
        return;
    assign_homes(core);
    size_t kept = 0;
    for (size_t i = 0; i < core->shadows.n; i++) {
        st_shadow_cluster *cluster = core->shadows.v[i];
        st_shadow_list_nodes(core, cluster);
        uproot(core, cluster);
        give_up(core, cluster);
        cluster->dirty = true;
        if (cluster->nodes.n > 0)
            core->shadows.v[kept++] = cluster;
        else
            st_shadow_free(cluster);
    }
    core->shadows.n = kept;
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        int32_t home = core->fleet->nodes.v[i]->home;
        if (home == 0 || find_cluster(core, home))
            continue;
        st_shadow_cluster *cluster = st_xcalloc(1, sizeof *cluster);
        cluster->account = home;
        st_shadow_list_nodes(core, cluster);
        st_vec_push(&core->shadows, cluster);
    }
    for (size_t i = 0; i < core->jobs.n; i++)
        if (!core->jobs.v[i]->shadow)
            st_shadow_join(core, core->jobs.v[i]);
}

static bool shadow_uses(const st_core *core, const st_job *shadow, int32_t pool, uint32_t levels,
                        uint32_t gives)
{
    if ((levels >> shadow->shape.level & 1) && !(shadow->shape.needs & ~gives))
        return false;
    for (int t = 0; t < shadow->tasks; t++)
        if (core->fleet->nodes.v[shadow->grants[t].node]->pool == pool)
            return true;
    return false;
}

bool st_shadow_uses(const st_core *core, int32_t pool, uint32_t levels, uint32_t allow,
                    int64_t oversub_m, int32_t *ret_account)
{
    bool uses = false;
    for (size_t i = 0; i < core->shadows.n && !uses; i++) {
        const st_shadow_cluster *cluster = core->shadows.v[i];
        paper p;
        paper_init(core, cluster, false, &p);
        for (size_t s = 0; s < cluster->stand.n; s++)
            uses |= shadow_uses(core, &cluster->stand.v[s]->job, pool, levels, allow);
        for (size_t n = 0; n < cluster->nodes.n; n++) {
            const st_node *node = core->fleet->nodes.v[cluster->nodes.v[n]];
            for (int d = 0; node->pool == pool && d < node->ndevs; d++)
                uses |=
                    p.views[n].dev[d].mode == ST_DEV_TIME && p.views[n].dev[d].used_m > oversub_m;
        }
        free(p.views);
        *ret_account = cluster->account;
    }
    return uses;
}

/* ---- rights ------------------------------------------------------------------------------ */

bool st_shadow_at_home(const st_job *job)
{
    if (!job->shadow || ST_BROKEN(HOME))
        return true;
    const st_grant *home = job->shadow->job.grants;
    if (!home || !job->grants)
        return false;
    for (int t = 0; t < job->tasks; t++)
        if (home[t].node != job->grants[t].node || home[t].devs != job->grants[t].devs ||
            home[t].mig_start != job->grants[t].mig_start)
            return false;
    return true;
}

bool st_shadow_stands(const st_job *job)
{
    return job->shadow && job->shadow->job.grants && !ST_BROKEN(SPARE);
}

bool st_shadow_entitled(const st_job *job, int32_t type)
{
    if (!job->shadow)
        return true;
    const st_job *s = &job->shadow->job;
    return s->grants && s->type == type && job->state != ST_JOB_PAUSED;
}

bool st_shadow_fits(const st_core *core, const st_job *job,
                    const st_view *(*view)(void *ctx, const st_node *node), void *ctx)
{
    const st_grant *home = job->shadow->job.grants;
    st_view seen;
    for (int t = 0; t < job->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[home[t].node];
        /* Labels may have changed since its shadow came there. */
        if (node->state != ST_NODE_READY || !st_place_allowed(core->placer, node, job, node->type))
            return false;
        if (t == 0 || home[t - 1].node != node->id)
            seen = view ? *view(ctx, node) : node->view;
        if (st_view_add(core->fleet, core->tree, node, job, &home[t], &seen) < 0)
            return false;
    }
    return true;
}

bool st_core_has_home(const st_job *job, const st_grant **ret_place)
{
    *ret_place = job->shadow ? job->shadow->job.grants : NULL;
    return job->shadow;
}

st_grant *st_shadow_place(const st_job *job)
{
    size_t n = (size_t)job->tasks;
    st_grant *place = st_xcalloc(n, sizeof *place);
    memcpy(place, job->shadow->job.grants, n * sizeof *place);
    return place;
}

void st_shadow_use_picks(st_core *core)
{
    for (size_t i = 0; i < core->shadows.n; i++) {
        const st_shadow_cluster *cluster = core->shadows.v[i];
        for (size_t k = 0; k < cluster->waits.n; k++)
            st_fleet_use_pick(core->fleet, cluster->waits.v[k]->job.shape.nodes);
        for (size_t k = 0; k < cluster->stand.n; k++)
            st_fleet_use_pick(core->fleet, cluster->stand.v[k]->job.shape.nodes);
    }
}
