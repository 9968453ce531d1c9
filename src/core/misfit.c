/* Shapes that found no place, and claims that came to nothing.
 *
 * Within a round room only shrinks: who failed fails again until something is freed. From round to round most
 * of the fleet stays as it was, so that a shape found no place on a GPU type is also remembered for as long
 * as no node of the type changes: where nothing is free for it at all, and, for whole GPUs, where what is free is
 * reserved for those ahead, as long as they are the same with the same plans. What is remembered so is what
 * would be found anew, so nothing of it is saved.
 *
 * Where nodes of the type have changed, what they have free says how many more tasks may fit than did. While that is
 * less than what lacked, the shape still finds no place. Most rounds begin with one node that has changed, so most
 * shapes need not be looked for. */
#include <string.h>

#include "base/hash.h"
#include "core/turn.h"

#define SHAPES_MAX 4096  /* that are numbered */
#define WALLED_MAX 16384 /* that are remembered behind reservations */
#define NEWS_MAX   128   /* changes that are looked through */
#define LOG_MAX    1024  /* the same, with those of other types, */
#define LOOKS_MAX  32    /* and those that are looked at, for one shape behind reservations */

/* Everything a plain placement depends on besides what is free. Room only shrinks during a
 * round, so a shape that failed fails again. */
uint64_t st_core_shape_key(const st_job *job, int32_t type)
{
    const st_shape *s = &job->shape;
    bool shared = s->gpus > 0 && (s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME);
    const uint64_t words[] = {
        (uint64_t)type,
        (uint64_t)s->level,
        (uint64_t)s->gpus,
        (uint64_t)s->profile,
        (uint64_t)s->share_m,
        (uint64_t)s->vram_mib,
        (uint64_t)s->cpu_m,
        (uint64_t)s->ram_mib,
        (uint64_t)job->tasks,
        (uint64_t)job->topo,
        job->topo_required,
        (uint64_t)job->pool,
        s->needs,
        shared ? (uint64_t)job->account : 0,
        shared && job->latency_critical,
    };
    uint64_t h = 1;
    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        h = st_hash_u64(h, words[i]);
    if (s->nodes) /* others have the keys that are saved since before */
        h = st_hash_u64(h, s->nodes);
    return job->state == ST_JOB_PAUSED ? st_hash_u64(h, job->id) : h;
}

void st_core_forget_misfits(st_core *core)
{
    if (st_idmap_count(core->misfits) > 0) {
        st_idmap_free(core->misfits);
        core->misfits = st_idmap_new();
    }
    st_vec_clear(&core->refusals);
    core->freed = false;
}

void st_core_keep_refusals(st_core *core)
{
    if (core->freed)
        st_vec_clear(&core->refusals);
    st_idmap_free(core->misfits);
    core->misfits = st_idmap_new();
    for (size_t i = 0; i < core->refusals.n; i++)
        st_idmap_put(core->misfits, core->refusals.v[i].key, core->refusals.v[i].how);
    core->freed = false;
}

void st_core_refuse(st_core *core, uint64_t key, int64_t how)
{
    st_idmap_put(core->misfits, key, how);
    st_vec_push(&core->refusals, (st_refusal){key, how});
}

/* ---- from round to round ----------------------------------------------------------------- */

/* What is remembered of the job's shape; NULL: nothing is, for it depends on more than the nodes of a type. */
static st_nowhere *nowhere_of(st_core *core, st_job *job)
{
    const st_shape *s = &job->shape;
    if (s->gpus == 0 || s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME ||
        job->state != ST_JOB_PENDING)
        return NULL;
    if (job->numbered == core->numbering)
        return &core->nowhere.v[job->number];
    uint64_t key = st_core_shape_key(job, ST_TYPE_FIRST);
    int64_t number;
    if (!st_idmap_get(core->numbers, key, &number)) {
        if (core->nowhere.n == SHAPES_MAX) {
            st_idmap_free(core->numbers);
            core->numbers = st_idmap_new();
            st_vec_clear(&core->nowhere);
            core->numbering++;
        }
        number = (int64_t)core->nowhere.n;
        st_vec_push(&core->nowhere, (st_nowhere){{0}, {0}});
        st_idmap_put(core->numbers, key, number);
    }
    job->number = (int32_t)number;
    job->numbered = core->numbering;
    return &core->nowhere.v[number];
}

/* How often the nodes of the type have changed, never 0. */
static uint64_t changes_of(const st_core *core, int32_t type)
{
    return st_fleet_changes_of(core->fleet, type) + 1;
}

/* ---- what has changed -------------------------------------------------------------------- */

/* How many tasks the type's nodes that changed since then have room for: at most, for each time a node changed
 * counts. A node whose GPUs are shared, or one that the log does not have, has room for anything. */
static void count_news(const st_fleet *fleet, int32_t type, uint64_t at, uint64_t changes,
                       int32_t ret[ST_DEVS_MAX + 1])
{
    uint64_t end = st_fleet_changes(fleet);
    bool any = at < fleet->changes_from || end - at > NEWS_MAX;
    memset(ret, 0, (ST_DEVS_MAX + 1) * sizeof *ret);
    for (uint64_t i = at; i < end && !any; i++) {
        st_node_change c = fleet->changes.v[i - fleet->changes_from];
        if (c.type != type)
            continue;
        const st_view *view = &fleet->nodes.v[c.node]->view;
        int gpus = __builtin_popcount(view->free);
        any = view->shared;
        for (int g = 1; g <= gpus; g++)
            ret[g] += gpus / g;
        changes--;
    }
    any |= changes > 0; /* nodes that came are in no log */
    for (int g = 1; g <= ST_DEVS_MAX && any; g++)
        ret[g] = INT32_MAX;
    ret[0] = ret[1] > 0 ? INT32_MAX : 0;
}

/* How many more tasks of the shape may fit the type than did then. */
static int32_t news_of(st_core *core, const st_shape *shape, int32_t type, uint64_t then)
{
    st_news *n = &core->news[type];
    uint64_t now = st_fleet_changes_of(core->fleet, type);
    if (n->to != now) {
        n->to = now;
        count_news(core->fleet, type, n->from_at, now - n->from, n->room);
    }
    bool whole = shape->level == ST_LEVEL_WHOLE && shape->gpus <= ST_DEVS_MAX;
    return then > n->from ? n->room[whole ? shape->gpus : 0] : INT32_MAX;
}

void st_core_news_age(st_core *core)
{
    for (size_t t = 0; t < core->fleet->types.n; t++) {
        st_news *n = &core->news[t];
        n->from = n->mid;
        n->from_at = n->mid_at;
        n->mid = st_fleet_changes_of(core->fleet, (int32_t)t);
        n->mid_at = st_fleet_changes(core->fleet);
        n->to = UINT64_MAX; /* to be looked through anew */
    }
}

/* Whether the type's nodes that changed since leave room for so many of the job's tasks, beside what is reserved; or it
 * would be much to find out. */
static bool may_serve(st_core *core, st_job *job, int32_t type, st_walled *since)
{
    const st_fleet *fleet = core->fleet;
    uint64_t end = st_fleet_changes(fleet), left = changes_of(core, type) - since->changes;
    if (since->at < fleet->changes_from || end - since->at > LOG_MAX || left > LOOKS_MAX)
        return true;
    int64_t lacks = since->lacks;
    for (uint64_t i = since->at; i < end && lacks > 0; i++) {
        st_node_change c = fleet->changes.v[i - fleet->changes_from];
        if (c.type != type)
            continue;
        left--;
        lacks -= st_core_room_behind(core, job, type, fleet->nodes.v[c.node]);
    }
    if (lacks <= 0 || left > 0) /* nodes that came are in no log */
        return true;
    if (lacks == since->lacks) {
        since->changes = changes_of(core, type);
        since->at = end;
    }
    return false;
}

/* Slices and shares may collide where numbers say that they fit. */
static bool is_walled(st_core *core, st_job *job, int32_t type, uint64_t key)
{
    int64_t at;
    if (job->shape.level != ST_LEVEL_WHOLE || !st_idmap_get(core->walled, key, &at))
        return false;
    st_walled *w = &core->walls.v[at];
    return w->changes == changes_of(core, type) || ST_BROKEN(WALLED) ||
           !may_serve(core, job, type, w);
}

static bool is_nowhere(st_core *core, const st_job *job, int32_t type, st_nowhere *nowhere)
{
    uint64_t then = nowhere->changes[type];
    if (then == 0)
        return false;
    if (then == changes_of(core, type) || ST_BROKEN(NOWHERE))
        return true;
    int32_t more = news_of(core, &job->shape, type, then);
    if (more >= nowhere->lacks[type])
        return false;
    nowhere->changes[type] = changes_of(core, type);
    nowhere->lacks[type] -= more;
    return true;
}

bool st_core_is_nowhere(const st_core *core, int32_t number, uint32_t types)
{
    const st_nowhere *nowhere = &core->nowhere.v[number];
    types &= (uint32_t)((UINT64_C(1) << core->fleet->types.n) - 1);
    for (uint32_t left = types; left; left &= left - 1) {
        int32_t t = __builtin_ctz(left);
        if (nowhere->changes[t] != changes_of(core, t) &&
            (nowhere->changes[t] == 0 || !ST_BROKEN(NOWHERE)))
            return false;
    }
    return types != 0;
}

/* ---- within a round ---------------------------------------------------------------------- */

bool st_core_is_misfit(st_core *core, st_job *job, int32_t type, st_misfit *ret)
{
    if (core->freed)
        st_core_forget_misfits(core);
    st_nowhere *nowhere = nowhere_of(core, job);
    if (nowhere && is_nowhere(core, job, type, nowhere))
        return true;
    ret->key = st_core_shape_key(job, type);
    if (st_idmap_get(core->misfits, ret->key, NULL))
        return true;
    /* Most find no place at all: whom they are bound by, and in what order they would try types, need not be known. */
    st_ask ask = {.job = job, .type = type};
    if (nowhere)
        ask.rooms = st_rooms_of(core->placer, job, type);
    if (!st_place_fits(core->placer, &ask)) {
        st_idmap_put(core->misfits, ret->key, 1);
        if (nowhere) {
            nowhere->changes[type] = changes_of(core, type);
            nowhere->lacks[type] = ST_MAX(job->tasks - st_rooms_total(ask.rooms), 1);
        }
        return true;
    }
    ret->bound_key = st_hash_u64(ret->key, st_core_bound_by(core, job, type));
    return st_idmap_get(core->misfits, ret->bound_key, NULL) ||
           (nowhere && is_walled(core, job, type, ret->bound_key));
}

void st_core_note_misfit(st_core *core, const st_job *job, int32_t type, const st_misfit *m,
                         const st_barrier *barrier)
{
    st_idmap_put(core->misfits, barrier->blocker < 0 ? m->key : m->bound_key, 1);
    if (barrier->lacks == 0 || job->shape.gpus == 0 || job->shape.level != ST_LEVEL_WHOLE ||
        job->state != ST_JOB_PENDING)
        return;
    if (core->walls.n >= WALLED_MAX) {
        st_idmap_free(core->walled);
        core->walled = st_idmap_new();
        st_vec_clear(&core->walls);
    }
    st_walled new = {changes_of(core, type), st_fleet_changes(core->fleet), barrier->lacks};
    int64_t at = (int64_t)core->walls.n;
    if (st_idmap_get(core->walled, m->bound_key, &at))
        core->walls.v[at] = new;
    else
        st_vec_push(&core->walls, new);
    st_idmap_put(core->walled, m->bound_key, at);
}
