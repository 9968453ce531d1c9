/* Every floor as a cluster of its own; see alone.h. */
#include "core/alone.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- the paper's view of nodes ----------------------------------------------------------- */

typedef struct paper {
    const st_alone *alone;
    st_view *views; /* by position in alone->nodes */
    st_view none;   /* of everybody else's nodes */
} paper;

static const st_view *paper_view(void *ctx, const st_node *node)
{
    const paper *p = ctx;
    size_t lo = 0, hi = p->alone->nodes.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->alone->nodes.v[mid] < node->id)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool home = lo < p->alone->nodes.n && p->alone->nodes.v[lo] == node->id;
    return home ? &p->views[lo] : &p->none;
}

static st_view *paper_edit(paper *p, const st_node *node)
{
    return &p->views[paper_view(p, node) - p->views];
}

static void paper_add(const st_core *core, paper *p, const st_job *shade)
{
    for (int t = 0; t < shade->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[shade->grants[t].node];
        int rc = st_view_add(core->fleet, core->tree, node, shade, &shade->grants[t],
                             paper_edit(p, node));
        ST_ASSERT(rc == 0);
    }
}

/* The home with its shades, or empty. */
static void paper_init(const st_core *core, const st_alone *alone, bool empty, paper *ret)
{
    *ret = (paper){.alone = alone};
    for (int d = 0; d < ST_DEVS_MAX; d++)
        ret->none.dev[d].mode = ST_DEV_WHOLE;
    ret->views = st_xcalloc(alone->nodes.n + 1, sizeof *ret->views);
    for (size_t i = 0; i < alone->nodes.n; i++)
        st_view_build(core->fleet, core->tree, core->fleet->nodes.v[alone->nodes.v[i]],
                      ST_WHEN_EMPTY, &ret->views[i]);
    for (size_t i = 0; !empty && i < alone->stand.n; i++)
        paper_add(core, ret, &alone->stand.v[i]->job);
}

static bool paper_full(const paper *p)
{
    for (size_t i = 0; i < p->alone->nodes.n; i++)
        if (p->views[i].free || p->views[i].shared)
            return false;
    return true;
}

/* ---- shades ------------------------------------------------------------------------------ */

void st_shade_free(struct st_shade *shade)
{
    if (!shade)
        return;
    free(shade->job.name);
    free(shade->job.grants);
    free(shade);
}

void st_alone_free(st_alone *alone)
{
    if (!alone)
        return;
    for (size_t i = 0; i < alone->waits.n; i++)
        st_shade_free(alone->waits.v[i]);
    for (size_t i = 0; i < alone->stand.n; i++)
        st_shade_free(alone->stand.v[i]);
    st_vec_free(&alone->waits);
    st_vec_free(&alone->stand);
    st_vec_free(&alone->nodes);
    free(alone);
}

static st_alone *find_alone(const st_core *core, int32_t account)
{
    for (size_t i = 0; i < core->alone.n; i++)
        if (core->alone.v[i]->account == account)
            return core->alone.v[i];
    return NULL;
}

static st_alone *alone_of(const st_core *core, int32_t account)
{
    st_alone *alone = NULL;
    for (int32_t i = account; i > ST_ROOT && !alone; i = st_tree_account(core->tree, i)->parent)
        alone = find_alone(core, i);
    return alone;
}

static bool before(const st_job *a, const st_job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->submit_ms != b->submit_ms)
        return a->submit_ms < b->submit_ms;
    return a->id < b->id;
}

static void wait_in_turn(st_alone *alone, struct st_shade *shade)
{
    size_t lo = 0, hi = alone->waits.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (before(&shade->job, &alone->waits.v[mid]->job))
            hi = mid;
        else
            lo = mid + 1;
    }
    st_vec_insert(&alone->waits, lo, shade);
    alone->dirty = true;
}

static void take_out(st_alone *alone, const struct st_shade *shade)
{
    for (size_t i = 0; i < alone->waits.n; i++) {
        if (alone->waits.v[i] == shade) {
            st_vec_remove(&alone->waits, i);
            return;
        }
    }
    for (size_t i = 0; i < alone->stand.n; i++) {
        if (alone->stand.v[i] == shade) {
            st_vec_remove(&alone->stand, i);
            return;
        }
    }
}

/* Find a place on paper, on the first GPU type that has one; false when none has. */
static bool find_place(st_core *core, paper *p, st_job *shade, bool ever)
{
    ST_EACH_TYPE (core, shade, t) {
        /* Alone there is nobody beside, and what others submit is not known. */
        st_ask ask = {
            .job = shade, .type = t, .ever = ever, .plain = true, .view = paper_view, .ctx = p};
        if (!st_place_fits(core->placer, &ask))
            continue;
        if (ever)
            return true;
        shade->grants = st_xcalloc((size_t)shade->tasks, sizeof *shade->grants);
        bool ok = st_place_gang(core->placer, &ask, shade->grants);
        ST_ASSERT(ok);
        shade->type = t;
        return true;
    }
    return false;
}

void st_alone_join(st_core *core, st_job *job)
{
    st_alone *alone = alone_of(core, job->account);
    if (!alone || job->shape.gpus == 0)
        return;
    struct st_shade *shade = st_xcalloc(1, sizeof *shade);
    st_job *s = &shade->job;
    *s = *job;
    s->name = st_xstrdup("");
    s->grants = NULL;
    s->state = ST_JOB_PENDING;
    s->class = ST_CLASS_NONE;
    s->held = s->stopping = s->first = false;
    s->claimant = 0;
    s->type = -1;
    s->queued_ms = core->now;
    s->saved_ms = st_job_ran_ms(job, core->now);
    s->served_ms = s->kept_ms = s->deadline_ms = 0;
    s->out = ST_OUT_NOT;
    shade->key = st_core_shape_key(s, -1);
    shade->run_ms = ST_TIME_NEVER;
    paper p;
    paper_init(core, alone, true, &p);
    bool fits = find_place(core, &p, s, true);
    free(p.views);
    if (!fits) { /* larger than its home: the floor carries it as it can */
        st_shade_free(shade);
        return;
    }
    job->shade = shade;
    wait_in_turn(alone, shade);
}

void st_alone_priority(st_core *core, const st_job *job)
{
    if (!job->shade)
        return;
    job->shade->job.priority = job->priority;
    st_alone *alone = alone_of(core, job->account);
    if (job->shade->job.grants)
        return;
    take_out(alone, job->shade);
    wait_in_turn(alone, job->shade);
}

void st_alone_ended(st_core *core, st_job *job, st_job_state state)
{
    struct st_shade *shade = ST_TAKE(job->shade);
    if (!shade)
        return;
    st_alone *alone = alone_of(core, job->account);
    alone->dirty = true;
    if (state == ST_JOB_CANCELLED) {
        take_out(alone, shade);
        st_shade_free(shade);
        return;
    }
    shade->run_ms = st_job_ran_ms(job, core->now);
    shade->ended_ms = core->now;
}

/* ---- time on paper ----------------------------------------------------------------------- */

static int64_t end_ms(const struct st_shade *shade)
{
    if (shade->run_ms == ST_TIME_NEVER)
        return ST_TIME_NEVER;
    int64_t left = ST_MAX(shade->run_ms - shade->job.saved_ms, 0);
    return ST_MAX(shade->job.start_ms + left, shade->ended_ms);
}

static int64_t first_end_ms(const st_alone *alone)
{
    int64_t first = ST_TIME_NEVER;
    for (size_t i = 0; i < alone->stand.n; i++)
        first = ST_MIN(first, end_ms(alone->stand.v[i]));
    return first;
}

static void end_shades(st_alone *alone, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < alone->stand.n; i++) {
        struct st_shade *shade = alone->stand.v[i];
        if (end_ms(shade) <= now)
            st_shade_free(shade);
        else
            alone->stand.v[kept++] = shade;
    }
    alone->stand.n = kept;
}

/* Those who wait, in order, onto what is free; nobody stands in anybody's way. */
static void start_shades(st_core *core, st_alone *alone, int64_t now)
{
    paper p;
    paper_init(core, alone, false, &p);
    st_idmap *misfits = st_idmap_new();
    size_t kept = 0, i = 0;
    for (bool full = paper_full(&p); i < alone->waits.n && !full; i++) {
        struct st_shade *shade = alone->waits.v[i];
        bool late = shade->job.queued_ms > now;
        if (late || st_idmap_get(misfits, shade->key, NULL) ||
            !find_place(core, &p, &shade->job, false)) {
            if (!late)
                st_idmap_put(misfits, shade->key, 1);
            alone->waits.v[kept++] = shade;
            continue;
        }
        shade->job.start_ms = now;
        shade->job.state = ST_JOB_RUNNING;
        st_vec_push(&alone->stand, shade);
        paper_add(core, &p, &shade->job);
        full = paper_full(&p);
        const st_job *job = st_core_find(core, shade->job.id);
        if (job && job->shade == shade && job->grants)
            st_core_changed(core, ST_CHANGED_CLASSES);
    }
    if (kept < i) {
        size_t rest = alone->waits.n - i;
        memmove(alone->waits.v + kept, alone->waits.v + i, rest * sizeof *alone->waits.v);
        alone->waits.n = kept + rest;
    }
    st_idmap_free(misfits);
    free(p.views);
}

void st_alone_run(st_core *core)
{
    for (size_t i = 0; i < core->alone.n; i++) {
        st_alone *alone = core->alone.v[i];
        int64_t at;
        do {
            while ((at = first_end_ms(alone)) <= core->now) {
                end_shades(alone, at);
                start_shades(core, alone, at);
            }
            if (alone->dirty)
                start_shades(core, alone, core->now);
            alone->dirty = false;
            /* Who lost its place, and has all behind it that it needed, ends where it starts. */
        } while (first_end_ms(alone) <= core->now);
    }
}

int64_t st_alone_next_ms(const st_core *core)
{
    int64_t next = ST_TIME_NEVER;
    for (size_t i = 0; i < core->alone.n; i++)
        next = ST_MIN(next, first_end_ms(core->alone.v[i]));
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
static int64_t to_settle_m(const st_core *core, const st_account *a)
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
static void settle_homes(st_core *core)
{
    size_t n = core->tree->accounts.n;
    int64_t *left_m = st_xcalloc(n, sizeof *left_m);
    for (size_t i = 1; i < n; i++)
        left_m[i] = to_settle_m(core, core->tree->accounts.v[i]);
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        st_node *node = core->fleet->nodes.v[i];
        int64_t gpu_m = node->ndevs * ST_WHOLE_M;
        if (node->home > 0 && (st_node_away(node) || left_m[node->home] < gpu_m))
            node->home = 0;
        left_m[node->home] -= gpu_m;
    }
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        st_node *node = core->fleet->nodes.v[i];
        int64_t gpu_m = node->ndevs * ST_WHOLE_M;
        if (node->home > 0 || gpu_m == 0 || node->state != ST_NODE_READY)
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

/* Shades that lost their place wait again, with what they have behind them. */
static void uproot(st_core *core, st_alone *alone)
{
    size_t kept = 0;
    for (size_t i = 0; i < alone->stand.n; i++) {
        struct st_shade *shade = alone->stand.v[i];
        st_job *s = &shade->job;
        bool stays = true;
        for (int t = 0; t < s->tasks; t++)
            stays &= core->fleet->nodes.v[s->grants[t].node]->home == alone->account;
        if (stays) {
            alone->stand.v[kept++] = shade;
            continue;
        }
        s->saved_ms += core->now - s->start_ms;
        s->state = ST_JOB_PENDING;
        s->type = -1;
        free(ST_TAKE(s->grants));
        wait_in_turn(alone, shade);
    }
    alone->stand.n = kept;
}

/* Shades that will never find a place on what is left are given up. */
static void give_up(st_core *core, st_alone *alone)
{
    paper p;
    paper_init(core, alone, true, &p);
    size_t kept = 0;
    for (size_t i = 0; i < alone->waits.n; i++) {
        struct st_shade *shade = alone->waits.v[i];
        if (alone->nodes.n > 0 && find_place(core, &p, &shade->job, true)) {
            alone->waits.v[kept++] = shade;
            continue;
        }
        st_job *job = st_core_find(core, shade->job.id);
        if (job && job->shade == shade)
            job->shade = NULL;
        st_shade_free(shade);
    }
    alone->waits.n = kept;
    free(p.views);
}

void st_alone_list_nodes(const st_core *core, st_alone *alone)
{
    st_vec_clear(&alone->nodes);
    for (size_t i = 0; i < core->fleet->nodes.n; i++)
        if (core->fleet->nodes.v[i]->home == alone->account)
            st_vec_push(&alone->nodes, (int32_t)i);
}

void st_alone_floors(st_core *core)
{
    if (!core->policy.as_if_alone)
        return;
    settle_homes(core);
    size_t kept = 0;
    for (size_t i = 0; i < core->alone.n; i++) {
        st_alone *alone = core->alone.v[i];
        st_alone_list_nodes(core, alone);
        uproot(core, alone);
        give_up(core, alone);
        alone->dirty = true;
        if (alone->nodes.n > 0)
            core->alone.v[kept++] = alone;
        else
            st_alone_free(alone);
    }
    core->alone.n = kept;
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        int32_t home = core->fleet->nodes.v[i]->home;
        if (home == 0 || find_alone(core, home))
            continue;
        st_alone *alone = st_xcalloc(1, sizeof *alone);
        alone->account = home;
        st_alone_list_nodes(core, alone);
        st_vec_push(&core->alone, alone);
    }
    for (size_t i = 0; i < core->jobs.n; i++)
        if (!core->jobs.v[i]->shade)
            st_alone_join(core, core->jobs.v[i]);
}

static bool shade_uses(const st_core *core, const st_job *shade, int32_t pool, uint32_t levels,
                       uint32_t gives)
{
    if ((levels >> shade->shape.level & 1) && !(shade->shape.needs & ~gives))
        return false;
    for (int t = 0; t < shade->tasks; t++)
        if (core->fleet->nodes.v[shade->grants[t].node]->pool == pool)
            return true;
    return false;
}

bool st_alone_uses(const st_core *core, int32_t pool, uint32_t levels, uint32_t allow,
                   int64_t oversub_m, int32_t *ret_account)
{
    bool uses = false;
    for (size_t i = 0; i < core->alone.n && !uses; i++) {
        const st_alone *alone = core->alone.v[i];
        paper p;
        paper_init(core, alone, false, &p);
        for (size_t s = 0; s < alone->stand.n; s++)
            uses |= shade_uses(core, &alone->stand.v[s]->job, pool, levels, allow);
        for (size_t n = 0; n < alone->nodes.n; n++) {
            const st_node *node = core->fleet->nodes.v[alone->nodes.v[n]];
            for (int d = 0; node->pool == pool && d < node->ndevs; d++)
                uses |=
                    p.views[n].dev[d].mode == ST_DEV_TIME && p.views[n].dev[d].used_m > oversub_m;
        }
        free(p.views);
        *ret_account = alone->account;
    }
    return uses;
}

/* ---- rights ------------------------------------------------------------------------------ */

bool st_alone_at_home(const st_job *job)
{
    if (!job->shade || ST_BROKEN(HOME))
        return true;
    const st_grant *home = job->shade->job.grants;
    if (!home || !job->grants)
        return false;
    for (int t = 0; t < job->tasks; t++)
        if (home[t].node != job->grants[t].node || home[t].devs != job->grants[t].devs ||
            home[t].mig_start != job->grants[t].mig_start)
            return false;
    return true;
}

bool st_alone_stands(const st_job *job)
{
    return job->shade && job->shade->job.grants && !ST_BROKEN(SPARE);
}

bool st_alone_entitled(const st_job *job, int32_t type)
{
    if (!job->shade)
        return true;
    const st_job *s = &job->shade->job;
    return s->grants && s->type == type && job->state != ST_JOB_PAUSED;
}

bool st_alone_fits(const st_core *core, const st_job *job,
                   const st_view *(*view)(void *ctx, const st_node *node), void *ctx)
{
    const st_grant *home = job->shade->job.grants;
    st_view seen;
    for (int t = 0; t < job->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[home[t].node];
        if (node->state != ST_NODE_READY)
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
    *ret_place = job->shade ? job->shade->job.grants : NULL;
    return job->shade;
}

st_grant *st_alone_place(const st_job *job)
{
    size_t n = (size_t)job->tasks;
    st_grant *place = st_xcalloc(n, sizeof *place);
    memcpy(place, job->shade->job.grants, n * sizeof *place);
    return place;
}
