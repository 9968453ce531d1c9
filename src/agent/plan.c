/*
 * The step from what is to what should be (agent/plan.h).
 */
#include "agent/plan.h"

#include <string.h>

#include "agent/fence.h"

static const char *const act_names[] = {
#define X(id, name) name,
    ST_ACT_TABLE(X)
#undef X
};

const char *st_act_name(st_act_kind kind)
{
    return act_names[kind];
}

bool st_epoch_ok(int64_t highest, int64_t epoch)
{
    return epoch >= highest;
}

bool st_key_same(const st_task_key *a, const st_task_key *b)
{
    return a->stay == b->stay && a->task == b->task && strcmp(a->job, b->job) == 0;
}

typedef struct planner {
    const st_view *view;
    int64_t now;
    st_acts *out;
    st_carved wanted; /* slices that somebody holds or is about to get */
    ST_VEC(const st_order *) starts;
} planner;

static const st_order *order_of(const planner *p, const st_task_key *key)
{
    const st_list *list = p->view->list;

    for (size_t i = 0; list && i < list->orders.n; i++)
        if (st_key_same(&list->orders.v[i].key, key))
            return &list->orders.v[i];
    return NULL;
}

static const st_task *task_of(const planner *p, const st_task_key *key)
{
    for (size_t i = 0; i < p->view->n; i++)
        if (st_key_same(&p->view->tasks[i].key, key))
            return &p->view->tasks[i];
    return NULL;
}

static void act(planner *p, st_act_kind kind, const st_task *t)
{
    st_vec_push(p->out, (st_act){.kind = kind, .key = t->key});
}

static void kill_it(planner *p, const st_task *t, const char *reason, bool fence)
{
    st_vec_push(p->out,
                (st_act){.kind = ST_ACT_KILL, .key = t->key, .reason = reason, .fence = fence});
}

/* ---- tasks that are here ------------------------------------------------------------------- */

static void end_it(planner *p, const st_task *t, const char *reason)
{
    if (!t->stopped)
        act(p, ST_ACT_STOP, t);
    else if (p->now >= t->stop_ms + p->view->stop_grace_ms || t->phase == ST_PHASE_PAUSED)
        kill_it(p, t, reason, false);
}

/* Ask once; what has not left by then is killed. */
static void save_it(planner *p, const st_task *t, const st_order *o)
{
    int64_t until = o->until_ms > 0 ? o->until_ms : t->stop_ms + p->view->stop_grace_ms;

    if (!t->asked)
        act(p, ST_ACT_CHECKPOINT, t);
    else if (p->now >= until + ST_SAVE_SLACK_MS)
        kill_it(p, t, "it did not leave in the time it had to save", false);
}

static void plan_live(planner *p, const st_task *t, const st_order *o)
{
    if (p->view->lease_over) {
        kill_it(p, t, ST_FENCE_REASON, true);
        return;
    }
    if (!p->view->list)
        return;
    if (!o || o->over) {
        end_it(p, t, "it did not stop when it was told to");
        return;
    }
    switch (o->want) {
    case ST_DO_RUN:
        if (t->phase == ST_PHASE_PAUSED)
            act(p, ST_ACT_RESUME, t);
        else if (t->stopped) /* a signal cannot be taken back */
            end_it(p, t, "it did not stop when it was told to");
        break;
    case ST_DO_NOTIFY:
        if (!t->notified && t->phase == ST_PHASE_RUNNING)
            act(p, ST_ACT_NOTIFY, t);
        break;
    case ST_DO_CHECKPOINT:
        save_it(p, t, o);
        break;
    case ST_DO_PAUSE:
        if (t->phase == ST_PHASE_PAUSED)
            break;
        if (p->view->can_pause)
            act(p, ST_ACT_PAUSE, t);
        else
            save_it(p, t, o);
        break;
    case ST_DO_STOP:
        end_it(p, t, "another task of its job has failed");
        break;
    }
}

#define LOG_WAIT_MS 30000 /* to be heard, after it left the list: its output, what it used */

static void plan_ended(planner *p, const st_task *t, const st_order *o)
{
    bool heard =
        (t->log_done && t->told) || (t->unlisted_ms > 0 && p->now >= t->unlisted_ms + LOG_WAIT_MS);

    if (!t->clean)
        act(p, ST_ACT_VERIFY, t);
    else if (!o && p->view->list && heard)
        act(p, ST_ACT_REMOVE, t);
}

/* ---- devices ----------------------------------------------------------------------------------- */

static bool shares(const st_task_place *a, const st_task_place *b)
{
    if (a->level != b->level || a->level == ST_LEVEL_WHOLE)
        return false;
    if (a->level != ST_LEVEL_MIG)
        return true;
    return a->mig_profile >= 0 && b->mig_profile >= 0 &&
           !st_mig_overlaps(st_mig_mask((st_mig)b->mig_profile, b->mig_start),
                            (st_mig)a->mig_profile, a->mig_start);
}

static bool collide(const st_task_place *a, const st_task_place *b)
{
    return (a->devs & b->devs) != 0 && !shares(a, b);
}

/* What still stands in the way of an order; an older stay of the same task is, on any device. */
static bool blocked(const planner *p, const st_order *o)
{
    for (size_t i = 0; i < p->view->n; i++) {
        const st_task *t = &p->view->tasks[i];

        if (t->clean || st_key_same(&t->key, &o->key))
            continue;
        if (collide(&t->place, &o->place) ||
            (t->key.task == o->key.task && strcmp(t->key.job, o->key.job) == 0))
            return true;
    }
    for (size_t i = 0; i < p->starts.n; i++)
        if (collide(&p->starts.v[i]->place, &o->place))
            return true;
    return false;
}

static bool startable(const planner *p, const st_order *o)
{
    const st_task *t = task_of(p, &o->key);

    if (o->over || (o->want != ST_DO_RUN && o->want != ST_DO_NOTIFY))
        return false;
    if (t && !(t->saved && t->phase == ST_PHASE_ENDED && t->clean && o->want == ST_DO_RUN))
        return false;
    return !blocked(p, o);
}

static void want_slice(st_carved *c, const st_task_place *place)
{
    if (place->mig_profile < 0)
        return;
    for (int d = 0; d < ST_DEVS_MAX; d++)
        if (place->devs >> d & 1)
            c->at[d][place->mig_profile] |= (uint8_t)(1u << place->mig_start);
}

/* Slices of tasks that are not verified gone stay; all others of ours go, and new ones come. */
static void plan_slices(planner *p)
{
    for (size_t i = 0; i < p->view->n; i++)
        if (!p->view->tasks[i].clean)
            want_slice(&p->wanted, &p->view->tasks[i].place);
    for (size_t i = 0; i < p->starts.n; i++)
        want_slice(&p->wanted, &p->starts.v[i]->place);
    for (int d = 0; d < ST_DEVS_MAX; d++) {
        st_act a = {.kind = ST_ACT_CARVE, .gpu = d};

        if (memcmp(p->wanted.at[d], p->view->carved.at[d], ST_MIG_COUNT) == 0)
            continue;
        memcpy(a.carve, p->wanted.at[d], ST_MIG_COUNT);
        st_vec_push(p->out, a);
    }
}

void st_plan(const st_view *view, int64_t now_ms, st_acts *ret)
{
    planner p = {.view = view, .now = now_ms, .out = ret};

    for (size_t i = 0; i < view->n; i++) {
        const st_task *t = &view->tasks[i];
        const st_order *o = order_of(&p, &t->key);

        if (st_task_live(t))
            plan_live(&p, t, o);
        else
            plan_ended(&p, t, o);
    }
    if (view->list && !view->lease_over)
        for (size_t i = 0; i < view->list->orders.n; i++)
            if (startable(&p, &view->list->orders.v[i]))
                st_vec_push(&p.starts, &view->list->orders.v[i]);
    if (view->list)
        plan_slices(&p);
    for (size_t i = 0; i < p.starts.n; i++)
        st_vec_push(
            ret, (st_act){.kind = ST_ACT_START, .key = p.starts.v[i]->key, .order = p.starts.v[i]});
    st_vec_free(&p.starts);
}
