/*
 * The step from what is to what should be (agent/plan.h).
 */
#include "agent/plan.h"

#include <stdlib.h>
#include <string.h>

#include "agent/fence.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"

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

bool st_history_ok(const st_history *last, const st_history *at)
{
    return at->branch > last->branch ||
           (at->branch == last->branch && at->position >= last->position);
}

int st_scrub_policy_parse(const char *word)
{
    static const char *const words[] = {
#define X(id, name) name,
        ST_SCRUB_POLICY_TABLE(X)
#undef X
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        if (strcmp(words[i], word) == 0)
            return (int)i;
    return -1;
}

bool st_key_same(const st_task_key *a, const st_task_key *b)
{
    return a->stay == b->stay && a->task == b->task && strcmp(a->job, b->job) == 0;
}

uint64_t st_key_hash(const st_task_key *key)
{
    return st_hash_u64(st_hash_str((uint64_t)key->stay, key->job), (uint64_t)key->task);
}

/* Of one task whatever its stay. */
static uint64_t stays_hash(const st_task_key *key)
{
    return st_hash_u64(st_hash_str(3, key->job), (uint64_t)key->task);
}

typedef struct planner {
    const st_agent_view *view;
    int64_t now;
    st_acts *out;
    st_carved wanted; /* slices that somebody holds or is about to get */
    ST_VEC(const st_order *) starts;
    ST_VEC(const st_order *) claims; /* of those that start or go on in this plan, with devices */

    /* Thousands of tasks may be here, and each is asked for often. */
    st_idmap *orders, *tasks;           /* by key, to places */
    st_idmap *staying;                  /* how many of a task's stays are not gone */
    ST_VEC(const st_task *) holders;    /* with devices, and not clean */
    ST_VEC(const st_order *) expectant; /* with devices, and not here yet */
} planner;

static const st_order *order_of(const planner *p, const st_task_key *key)
{
    const st_agent_list *list = p->view->list;
    int64_t i;

    if (!list || !st_idmap_get(p->orders, st_key_hash(key), &i))
        return NULL;
    if (st_key_same(&list->orders.v[i].key, key))
        return &list->orders.v[i];
    for (size_t k = 0; k < list->orders.n; k++) /* two keys with one hash */
        if (st_key_same(&list->orders.v[k].key, key))
            return &list->orders.v[k];
    return NULL;
}

static const st_task *task_of(const planner *p, const st_task_key *key)
{
    int64_t i;

    if (!st_idmap_get(p->tasks, st_key_hash(key), &i))
        return NULL;
    if (st_key_same(&p->view->tasks[i].key, key))
        return &p->view->tasks[i];
    for (size_t k = 0; k < p->view->n; k++)
        if (st_key_same(&p->view->tasks[k].key, key))
            return &p->view->tasks[k];
    return NULL;
}

static void act(planner *p, st_act_kind kind, const st_task *t)
{
    st_vec_push(p->out, (st_act){.kind = kind, .key = t->key});
}

static void kill_it(planner *p, const st_task *t, const char *reason, bool fence)
{
    if (t->killed && t->now.kill_ms > 0 && p->now < t->now.kill_ms + ST_KILL_AGAIN_MS)
        return; /* it is dying */
    st_vec_push(p->out,
                (st_act){.kind = ST_ACT_KILL, .key = t->key, .reason = reason, .fence = fence});
}

/* ---- devices ----------------------------------------------------------------------------------- */

static bool shares(const st_task_place *a, const st_task_place *b)
{
    if (a->level != b->level || a->level == ST_LEVEL_WHOLE)
        return false;
    if (a->level == ST_LEVEL_MPS)
        return strcmp(a->domain, b->domain) == 0;
    if (a->level == ST_LEVEL_TIME)
        return true;
    return a->mig_profile >= 0 && b->mig_profile >= 0 &&
           !st_mig_overlaps(st_mig_mask((st_mig)b->mig_profile, b->mig_start),
                            (st_mig)a->mig_profile, a->mig_start);
}

static bool collide(const st_task_place *a, const st_task_place *b)
{
    return (a->devs & b->devs) != 0 && !shares(a, b);
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* Whether somebody at `next` leaves nothing of `place` to others. */
static bool covers(const st_task_place *next, const st_task_place *place)
{
    if (next->level == ST_LEVEL_MIG)
        return next->devs == place->devs && next->mig_profile == place->mig_profile &&
               next->mig_start == place->mig_start;
    return next->level == ST_LEVEL_WHOLE && (place->devs & ~next->devs) == 0;
}

/* The same tenant's next task on all of it: it may have what is in memory, for that is its own. */
static bool inherits(const planner *p, const char *tenant, const st_task_place *place,
                     const st_task *t)
{
    return p->view->scrub == ST_SCRUB_TENANT && t->tenant[0] && strcmp(tenant, t->tenant) == 0 &&
           covers(place, &t->place);
}

/* Others who are on its devices by right, so that there is no reading their memory now: whoever leaves
 * last is looked after. */
static bool shared_on(const planner *p, const st_task *t)
{
    if (t->place.level == ST_LEVEL_WHOLE || t->place.level == ST_LEVEL_MIG)
        return false;
    for (size_t i = 0; i < p->holders.n; i++) {
        const st_task *other = p->holders.v[i];

        if (other != t && st_task_live(other) && (other->place.devs & t->place.devs) != 0)
            return true;
    }
    return false;
}

/* The same tenant's, on a GPU that is shared. */
static bool joins(const st_order *o, const st_task *t)
{
    return t->place.level != ST_LEVEL_MIG && (o->place.devs & t->place.devs) != 0 &&
           shares(&o->place, &t->place) && strcmp(o->tenant, t->tenant) == 0;
}

static bool coming(const planner *p, const st_order *o)
{
    const st_task *t = task_of(p, &o->key);

    return !o->over && (o->want == ST_DO_RUN || o->want == ST_DO_NOTIFY) &&
           (!t || t->phase == ST_PHASE_PAUSED);
}

/* Somebody waits for devices of it. */
static bool awaited(const planner *p, const st_task *t)
{
    for (size_t i = 0; i < p->expectant.n; i++) {
        const st_order *o = p->expectant.v[i];

        if (!st_key_same(&o->key, &t->key) && (o->place.devs & t->place.devs) != 0)
            return true;
    }
    return false;
}

/* Reading a GPU takes half a second, in which nobody can begin there. So it waits a little for the same
 * tenant's next task, unless somebody else is waiting already. */
#define LINGER_MS 2000

static bool lingers(const planner *p, const st_task *t)
{
    return p->view->scrub == ST_SCRUB_TENANT && t->phase == ST_PHASE_ENDED &&
           p->now < t->ended_ms + LINGER_MS && !awaited(p, t);
}

/* Another stray may be on the same devices, and is there; or it is its turn to have their memory read. */
static bool crowded(const planner *p, const st_task *t)
{
    for (size_t i = 0; t->stray && i < p->holders.n; i++) {
        const st_task *other = p->holders.v[i];

        if (other != t && other->stray && (other->place.devs & t->place.devs) != 0 &&
            (!other->gone || other->scanning || other < t))
            return true;
    }
    return false;
}

/* Its processes are gone; what of its memory? */
static void plan_memory(planner *p, const st_task *t)
{
    st_act scrub = {.kind = ST_ACT_SCRUB, .key = t->key, .scan = true};

    if (t->scanning) { /* let it come to its end */
        st_vec_push(p->out, scrub);
        return;
    }
    if (crowded(p, t))
        return;
    if (p->view->scrub == ST_SCRUB_NEVER || t->place.devs == 0 || shared_on(p, t))
        scrub.scan = false;
    for (size_t i = 0; scrub.scan && i < p->holders.n; i++) {
        const st_task *next = p->holders.v[i];

        if (next != t && inherits(p, next->tenant, &next->place, t))
            scrub.scan = false; /* it is there already */
    }
    for (size_t i = 0; scrub.scan && i < p->expectant.n; i++) {
        const st_order *o = p->expectant.v[i];

        if (!st_key_same(&o->key, &t->key) && (inherits(p, o->tenant, &o->place, t) || joins(o, t)))
            return; /* it waits for something else: until it is there, nothing is decided */
    }
    if (!scrub.scan || !lingers(p, t))
        st_vec_push(p->out, scrub);
}

/* The last one has left a GPU that is shared: its memory is being read, or will be before somebody
 * else's task comes. */
static bool unread(const planner *p, const st_task *t, const st_order *o)
{
    if (!t->gone || (t->place.devs & o->place.devs) == 0 || t->place.level == ST_LEVEL_MIG)
        return false;
    return t->scanning || (strcmp(t->tenant, o->tenant) != 0 && !shared_on(p, t));
}

/* An older stay of the same task, on any device, or its own on none. */
static bool stays(const planner *p, const st_order *o)
{
    const st_task *own = task_of(p, &o->key);
    int64_t n = 0;

    if (!st_idmap_get(p->staying, stays_hash(&o->key), &n))
        return false;
    return n - (own && !own->gone && !own->clean) > 0;
}

/* What still stands in the way of an order. */
static bool blocked(const planner *p, const st_order *o)
{
    if (stays(p, o))
        return true;
    for (size_t i = 0; o->place.devs && i < p->holders.n; i++) {
        const st_task *t = p->holders.v[i];

        if (st_key_same(&t->key, &o->key))
            continue;
        if (collide(&t->place, &o->place) &&
            !(t->gone && !t->scanning && inherits(p, o->tenant, &o->place, t)))
            return true;
        if (unread(p, t, o))
            return true;
    }
    for (size_t i = 0; o->place.devs && i < p->claims.n; i++)
        if (collide(&p->claims.v[i]->place, &o->place))
            return true;
    return false;
}

static void claim(planner *p, const st_order *o)
{
    if (o->place.devs)
        st_vec_push(&p->claims, o);
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

/* Off its devices for now, with all it has in host memory. */
static void plan_paused(planner *p, const st_task *t, const st_order *o)
{
    if (!t->gone) {
        act(p, ST_ACT_VERIFY, t);
    } else if (o->want == ST_DO_RUN && !t->scanning && !blocked(p, o)) {
        st_vec_push(p->out, (st_act){.kind = ST_ACT_RESUME, .key = t->key, .order = o});
        claim(p, o);
    } else if (!t->clean) {
        plan_memory(p, t);
    }
}

static void plan_live(planner *p, const st_task *t, const st_order *o)
{
    if (p->view->lease_over) {
        kill_it(p, t, ST_FENCE_REASON, true);
        return;
    }
    if (t->stray) {
        kill_it(p, t, ST_STRAY_REASON, false);
        return;
    }
    if (t->killed) { /* whoever did: one kill may not be enough */
        kill_it(p, t, NULL, false);
        return;
    }
    if (!p->view->list)
        return;
    if (!o || o->over) {
        end_it(p, t, "it did not stop when it was told to");
        return;
    }
    if ((t->step == ST_STEP_LOAD || t->step == ST_STEP_UNDO) && o->want != ST_DO_STOP)
        return; /* it is being put back: what else is wanted of it comes then */
    switch (o->want) {
    case ST_DO_RUN:
        if (t->phase == ST_PHASE_PAUSED)
            plan_paused(p, t, o);
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
            plan_paused(p, t, o);
        else if (t->step == ST_STEP_NONE && (t->refused || !p->view->can_pause))
            save_it(p, t, o);
        else if (t->step == ST_STEP_NONE && t->phase == ST_PHASE_RUNNING)
            act(p, ST_ACT_PAUSE, t);
        break;
    case ST_DO_STOP:
        end_it(p, t, "another task of its job has failed");
        break;
    }
}

static void plan_ended(planner *p, const st_task *t, const st_order *o)
{
    bool heard = (t->log_done && t->told) ||
                 (t->unlisted_ms != 0 && p->now >= t->unlisted_ms + ST_LOG_WAIT_MS);

    if (!t->gone)
        act(p, ST_ACT_VERIFY, t);
    else if (!t->clean)
        plan_memory(p, t);
    else if (!o && p->view->list && heard)
        act(p, ST_ACT_REMOVE, t);
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

static void look_around(planner *p)
{
    const st_agent_view *view = p->view;

    p->orders = st_idmap_new();
    p->tasks = st_idmap_new();
    p->staying = st_idmap_new();
    for (size_t i = 0; i < view->n; i++) {
        const st_task *t = &view->tasks[i];
        int64_t n = 0;

        st_idmap_put(p->tasks, st_key_hash(&t->key), (int64_t)i);
        if (!t->clean && t->place.devs)
            st_vec_push(&p->holders, t);
        if (t->clean || t->gone)
            continue;
        st_idmap_get(p->staying, stays_hash(&t->key), &n);
        st_idmap_put(p->staying, stays_hash(&t->key), n + 1);
    }
    for (size_t i = 0; view->list && i < view->list->orders.n; i++) {
        const st_order *o = &view->list->orders.v[i];

        st_idmap_put(p->orders, st_key_hash(&o->key), (int64_t)i);
        if (o->place.devs && coming(p, o))
            st_vec_push(&p->expectant, o);
    }
}

typedef struct turn {
    int64_t rank; /* how many of its tenant come before it */
    size_t at;
} turn;

static int by_turn(const void *pa, const void *pb)
{
    const turn *a = pa, *b = pb;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Tenants take turns: who has thousands of tasks to start does not keep others waiting. */
static void push_starts(planner *p)
{
    ST_CLEANUP(st_map_freep) st_map *before = st_map_new();
    ST_VEC(turn) turns = {0};

    for (size_t i = 0; i < p->starts.n; i++) {
        turn t = {.at = i};

        st_map_get(before, p->starts.v[i]->tenant, &t.rank);
        st_map_put(before, p->starts.v[i]->tenant, t.rank + 1);
        st_vec_push(&turns, t);
    }
    if (turns.n > 1)
        qsort(turns.v, turns.n, sizeof *turns.v, by_turn);
    for (size_t i = 0; i < turns.n; i++) {
        const st_order *o = p->starts.v[turns.v[i].at];

        st_vec_push(p->out, (st_act){.kind = ST_ACT_START, .key = o->key, .order = o});
    }
    st_vec_free(&turns);
}

void st_plan(const st_agent_view *view, int64_t now_ms, st_acts *ret)
{
    planner p = {.view = view, .now = now_ms, .out = ret};

    look_around(&p);
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
            if (startable(&p, &view->list->orders.v[i])) {
                st_vec_push(&p.starts, &view->list->orders.v[i]);
                claim(&p, &view->list->orders.v[i]);
            }
    if (view->list && !view->uncarved)
        plan_slices(&p);
    push_starts(&p);
    st_idmap_free(p.orders);
    st_idmap_free(p.tasks);
    st_idmap_free(p.staying);
    st_vec_free(&p.holders);
    st_vec_free(&p.expectant);
    st_vec_free(&p.starts);
    st_vec_free(&p.claims);
}
