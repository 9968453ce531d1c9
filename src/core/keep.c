/* The earliest start of a blocked job, kept from pass to pass (reserve.h).
 *
 * A start T is right while too few tasks fit just before it, and enough do at it: in the fleet, or
 * in a domain of the level the job requires. Both numbers are kept for every node and summed over
 * each domain, so a node that changed costs a look at that node; only when the sums no longer say
 * T is the next start searched for, in the profile of the shape. The plan is made anew when
 * a node changed that has room at T; the nodes of other plans ahead count as changed. So what is
 * kept is what would be found anew, always.
 *
 * At T there is hardly more room than is needed, so a plan is chosen among few nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/reserve.h"

#define KEY_NEVER 78 /* tells this memory from that of places and moves */
#define KEPT_MORE 32 /* beyond those of a pass */

/* Tasks that fit a node just before the start, and at it. */
typedef struct room {
    int16_t before, then;
} room;

/* The same for one domain. */
typedef struct sum {
    int32_t before, then;
} sum;

/* A node, and what plans ahead there are on it. */
typedef struct planned {
    int32_t node;
    uint64_t ahead;
} planned;

struct st_kept {
    uint64_t job, ahead, profile, epoch, seen, used;
    unsigned by;
    int want;
    st_topo level; /* the widest domain that will do */
    size_t n;      /* nodes covered */
    int64_t at_ms; /* ST_TIME_NEVER: there will never be room */
    room *rooms;   /* by node */
    sum all;       /* of the fleet */
    sum *sums[ST_TOPO_NODE];
    size_t nsums[ST_TOPO_NODE];
    sum enough;              /* how many nodes and domains have room for all tasks */
    ST_VEC(planned) planned; /* nodes of the plans ahead */
    st_grant *plan;
    uint64_t typical; /* what was typical when it was made: slices begin by that */
    bool stale;       /* the plan is to be made anew */
};

void st_kept_free(st_kept *kept)
{
    if (!kept)
        return;
    for (int l = 0; l < ST_TOPO_NODE; l++)
        free(kept->sums[l]);
    free(kept->rooms);
    st_vec_free(&kept->planned);
    free(kept->plan);
    free(kept);
}

/* ---- counting ---------------------------------------------------------------------------- */

/* The moments of a node, beside the plans ahead. */
static const int64_t *moments(st_core *core, const st_profile *p, size_t id, int64_t *scratch)
{
    bool any = id < core->nlink_at && core->link_at[id] > 0;
    if (!any || !st_reserve_planned(core, p->by, (int32_t)id))
        return p->at_ms + id * (size_t)p->per;
    st_profile_count(core, p, core->fleet->nodes.v[id], true, scratch);
    return scratch;
}

static room room_at(const st_profile *p, const int64_t *at_ms, int64_t start_ms)
{
    room r = {0, 0};
    for (; r.before < p->per && at_ms[r.before] < start_ms; r.before++)
        ;
    for (r.then = r.before; r.then < p->per && at_ms[r.then] <= start_ms; r.then++)
        ;
    if (start_ms == ST_TIME_NEVER)
        r.then = r.before;
    return r;
}

static void add(st_kept *k, sum *s, room old, room new)
{
    sum had = *s;
    s->before += new.before - old.before;
    s->then += new.then - old.then;
    k->enough.before += (s->before >= k->want) - (had.before >= k->want);
    k->enough.then += (s->then >= k->want) - (had.then >= k->want);
}

static void set_room(const st_core *core, st_kept *k, size_t id, room new)
{
    room old = k->rooms[id];
    const st_node *node = core->fleet->nodes.v[id];
    k->stale |= old.then > 0 || new.then > 0;
    if (old.before == new.before && old.then == new.then)
        return;
    k->rooms[id] = new;
    if (k->level == ST_TOPO_NONE) {
        add(k, &k->all, old, new);
        return;
    }
    sum own = {old.before, old.then};
    add(k, &own, old, new);
    for (int l = (int)k->level; l < ST_TOPO_NODE; l++)
        if (node->place[l] >= 0)
            add(k, &k->sums[l][node->place[l]], old, new);
}

static bool still_right(const st_kept *k)
{
    if (k->at_ms == ST_TIME_NEVER)
        return k->enough.then == 0;
    return k->enough.before == 0 && k->enough.then > 0;
}

static void reset(const st_core *core, st_kept *k)
{
    size_t n = core->fleet->nodes.n;
    k->rooms = st_xreallocarray(k->rooms, n + 1, sizeof *k->rooms);
    memset(k->rooms, 0, n * sizeof *k->rooms);
    k->n = n;
    k->all = k->enough = (sum){0, 0};
    for (int l = ST_MAX((int)k->level, ST_TOPO_ZONE); l < ST_TOPO_NODE; l++) {
        k->nsums[l] = core->fleet->domains[l].n;
        k->sums[l] = st_xreallocarray(k->sums[l], k->nsums[l] + 1, sizeof *k->sums[l]);
        memset(k->sums[l], 0, k->nsums[l] * sizeof *k->sums[l]);
    }
    k->stale = true;
}

/* ---- searching --------------------------------------------------------------------------- */

typedef ST_VEC(int64_t) times;

/* The want-th smallest; ST_TIME_NEVER when there are not so many. Reorders them. */
static int64_t nth(int64_t *v, size_t n, size_t want)
{
    if (n < want)
        return ST_TIME_NEVER;
    size_t lo = 0, hi = n - 1, at = want - 1;
    while (lo < hi) {
        int64_t pivot = v[lo + (hi - lo) / 2];
        size_t i = lo, j = hi;
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            int64_t swap = v[i];
            v[i++] = v[j];
            v[j--] = swap;
        }
        if (at <= j)
            hi = j;
        else
            lo = j + 1;
    }
    return v[at];
}

/* The next node from `id` on that has any moment; p->n when there is none. */
static size_t next_some(const st_profile *p, size_t id)
{
    for (; id < p->n; id = (id / 64 + 1) * 64) {
        uint64_t bits = p->some[id / 64] >> (id % 64);
        if (bits)
            return id + (size_t)__builtin_ctzll(bits);
    }
    return p->n;
}

/* The moments of nodes before the best start so far; later ones are of no use. */
static void collect(st_core *core, const st_profile *p, size_t id, int64_t before_ms, times *ret)
{
    int64_t scratch[ST_DEVS_MAX];
    const int64_t *at_ms = moments(core, p, id, scratch);
    for (int s = 0; s < p->per && at_ms[s] < before_ms; s++)
        st_vec_push(ret, at_ms[s]);
}

/* The earliest start, which is before `best_ms` if that is not ST_TIME_NEVER. */
static int64_t search(st_core *core, const st_profile *p, const st_kept *k, int64_t best_ms)
{
    const st_fleet *fleet = core->fleet;
    times list = {0};
    if (k->level == ST_TOPO_NONE) {
        for (size_t i = next_some(p, 0); i < p->n; i = next_some(p, i + 1))
            collect(core, p, i, best_ms, &list);
        best_ms = nth(list.v, list.n, (size_t)k->want);
        st_vec_free(&list);
        return best_ms;
    }
    int64_t scratch[ST_DEVS_MAX];
    for (size_t i = next_some(p, 0); i < p->n && k->want <= p->per; i = next_some(p, i + 1))
        best_ms = ST_MIN(best_ms, moments(core, p, i, scratch)[k->want - 1]);
    for (int l = (int)k->level; l < ST_TOPO_NODE; l++) {
        for (size_t d = 0; d < fleet->domains[l].n; d++) {
            const st_domain *dom = &fleet->domains[l].v[d];
            st_vec_clear(&list);
            for (size_t i = 0; i < dom->nodes.n; i++)
                if (p->some[dom->nodes.v[i] / 64] >> (dom->nodes.v[i] % 64) & 1)
                    collect(core, p, (size_t)dom->nodes.v[i], best_ms, &list);
            best_ms = ST_MIN(best_ms, nth(list.v, list.n, (size_t)k->want));
        }
    }
    st_vec_free(&list);
    return best_ms;
}

static void search_anew(st_core *core, const st_profile *p, st_kept *k, int64_t before_ms)
{
    int64_t scratch[ST_DEVS_MAX];
    reset(core, k);
    k->at_ms = search(core, p, k, before_ms);
    if (before_ms != ST_TIME_NEVER && k->at_ms >= before_ms)
        k->at_ms = search(core, p, k, ST_TIME_NEVER);
    for (size_t i = next_some(p, 0); i < p->n; i = next_some(p, i + 1))
        set_room(core, k, i, room_at(p, moments(core, p, i, scratch), k->at_ms));
    ST_ASSERT(still_right(k));
}

/* ---- the plan ---------------------------------------------------------------------------- */

typedef struct planning {
    st_core *core;
    const st_profile *profile;
    int64_t at_ms;
} planning;

/* A node at the start, beside the plans ahead. */
static const st_view *view_then(void *ctx, const st_node *node)
{
    const planning *g = ctx;
    st_core *core = g->core;
    if (core->whatif.stamp[node->id] == core->whatif.gen)
        return &core->whatif.views[node->id];
    for (size_t i = 0; i < node->residents.n; i++) {
        st_job *job = node->residents.v[i].job;
        if (st_job_on_devices(job) &&
            ST_MAX(st_reserve_release_ms(core, job, g->profile->by, g->profile->claims), 1) <=
                g->at_ms)
            job->out = ST_OUT_ENDED;
    }
    st_view *view = st_whatif_edit(core, node);
    for (size_t i = 0; i < node->residents.n; i++)
        node->residents.v[i].job->out = ST_OUT_NOT;
    st_reserve_add_plans(core, g->profile->by, node, view);
    return view;
}

/* Whether the node stands in a domain that has room for all. */
static bool will_do(const st_kept *k, const st_node *node)
{
    if (k->level == ST_TOPO_NONE || k->rooms[node->id].then >= k->want)
        return true;
    for (int l = (int)k->level; l < ST_TOPO_NODE; l++)
        if (node->place[l] >= 0 && k->sums[l][node->place[l]].then >= k->want)
            return true;
    return false;
}

static void make_plan(st_core *core, const st_job *job, const st_profile *p, st_kept *k)
{
    planning g = {core, p, k->at_ms};
    st_whatif_begin(core, ST_WHEN_ANY);
    st_ask ask = {.job = job, .type = p->type, .plain = true, .view = view_then, .ctx = &g};
    ask.rooms = st_rooms_blank(core->placer, job, p->type);
    for (size_t i = 0; i < k->n; i++)
        if (k->rooms[i].then > 0 && will_do(k, core->fleet->nodes.v[i]))
            st_rooms_put(core->placer, ask.rooms, core->fleet->nodes.v[i], k->rooms[i].then);
    k->plan = st_xreallocarray(k->plan, (size_t)job->tasks, sizeof *k->plan);
    memset(k->plan, 0, (size_t)job->tasks * sizeof *k->plan);
    bool ok = st_place_gang(core->placer, &ask, k->plan);
    ST_ASSERT(ok);
    k->stale = false;
}

/* ---- keeping ----------------------------------------------------------------------------- */

static st_kept *find(st_core *core, uint64_t job, unsigned by)
{
    for (size_t i = 0; i < core->kept.n; i++)
        if (core->kept.v[i]->job == job && core->kept.v[i]->by == by)
            return core->kept.v[i];
    while (core->kept.n >= 2 * (size_t)core->policy.reservations + KEPT_MORE) {
        size_t oldest = 0;
        for (size_t i = 1; i < core->kept.n; i++)
            if (core->kept.v[i]->used < core->kept.v[oldest]->used)
                oldest = i;
        st_kept_free(core->kept.v[oldest]);
        st_vec_remove(&core->kept, oldest);
    }
    st_kept *k = st_xcalloc(1, sizeof *k);
    k->job = job;
    k->by = by;
    st_vec_push(&core->kept, k);
    return k;
}

/* The nodes of the plans ahead. */
static void note_ahead(st_core *core, st_kept *k)
{
    st_marks_begin(core);
    st_vec_clear(&k->planned);
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_reservation *r = &core->resv.v[i];
        for (int t = 0; (r->by & k->by) && t < r->ntasks; t++)
            if (st_marks_first(core, r->plan[t].node))
                st_vec_push(
                    &k->planned,
                    (planned){r->plan[t].node, st_reserve_ahead_at(core, k->by, r->plan[t].node)});
    }
}

static void look_at(st_core *core, const st_profile *p, st_kept *k, size_t id)
{
    int64_t scratch[ST_DEVS_MAX];
    set_room(core, k, id, room_at(p, moments(core, p, id, scratch), k->at_ms));
}

/* Other plans are ahead than before: look at the nodes where that makes a difference. */
static void look_ahead(st_core *core, const st_profile *p, st_kept *k)
{
    for (size_t i = 0; i < k->planned.n; i++) { /* where they were */
        const planned *had = &k->planned.v[i];
        if (st_reserve_ahead_at(core, k->by, had->node) != had->ahead)
            look_at(core, p, k, (size_t)had->node);
    }
    st_marks_begin(core);
    for (size_t i = 0; i < k->planned.n; i++)
        st_marks_first(core, k->planned.v[i].node);
    for (size_t i = 0; i < core->resv.n; i++) { /* and where they are */
        const st_reservation *r = &core->resv.v[i];
        for (int t = 0; (r->by & k->by) && t < r->ntasks; t++)
            if (st_marks_first(core, r->plan[t].node))
                look_at(core, p, k, (size_t)r->plan[t].node);
    }
    note_ahead(core, k);
}

/* Look at what has changed since; false when everything must be counted anew: before *ret_before_ms, if that is known. */
static bool catch_up(st_core *core, const st_profile *p, st_kept *k, bool others_ahead,
                     int64_t *ret_before_ms)
{
    const st_fleet *fleet = core->fleet;
    if (k->n != fleet->nodes.n || k->seen < fleet->changes_from ||
        p->seen - k->seen > 4 * fleet->nodes.n)
        return false;
    st_marks_begin(core);
    for (uint64_t i = k->seen; i < p->seen && !ST_BROKEN(KEPT); i++) {
        st_node_change c = fleet->changes.v[i - fleet->changes_from];
        if ((p->type < 0 || c.type == p->type) && st_marks_first(core, c.node))
            look_at(core, p, k, (size_t)c.node);
    }
    if (others_ahead)
        look_ahead(core, p, k);
    if (k->at_ms != ST_TIME_NEVER && k->enough.then > 0)
        *ret_before_ms = k->at_ms + 1;
    return still_right(k);
}

/* What a search depends on. Thousands of one shape may wait where there is never room behind those ahead: the first of
 * them finds that out. */
static uint64_t never_key(const st_core *core, const st_job *job, const st_profile *p,
                          uint64_t ahead)
{
    const uint64_t parts[] = {p->epoch,
                              p->seen,
                              ahead,
                              (uint64_t)core->now,
                              (uint64_t)job->tasks,
                              job->topo_required ? (uint64_t)job->topo + 1 : 0};
    uint64_t key = st_hash_u64(KEY_NEVER, p->key);

    for (size_t i = 0; i < ST_ARRAY_LEN(parts); i++)
        key = st_hash_u64(key, parts[i]);
    return key;
}

bool st_reserve_kept(st_core *core, const st_job *job, st_reservation *r)
{
    const st_profile *p = st_profile_of(core, job, r->type, r->by, r->claims);
    uint64_t ahead = st_reserve_ahead(core, r->by), never = never_key(core, job, p, ahead);
    if (st_idmap_get(core->misfits, never, NULL))
        return false;
    st_kept *k = find(core, job->id, r->by);
    bool same =
        k->used > 0 && k->profile == p->key && k->epoch == p->epoch && k->want == job->tasks;
    int64_t before_ms = ST_TIME_NEVER;
    if (!same || !catch_up(core, p, k, k->ahead != ahead, &before_ms)) {
        bool required = job->topo_required && !ST_BROKEN(TOPOLOGY);
        k->profile = p->key;
        k->epoch = p->epoch;
        k->want = job->tasks;
        k->level = required ? job->topo : ST_TOPO_NONE;
        search_anew(core, p, k, before_ms);
        note_ahead(core, k);
    }
    k->ahead = ahead;
    k->seen = p->seen;
    k->used = ++core->reserve_tick;
    if (k->at_ms == ST_TIME_NEVER) {
        st_idmap_put(core->misfits, never, 1);
        return false;
    }
    uint64_t typical = st_placer_typical(core->placer)->epoch;
    if (k->stale || k->typical != typical)
        make_plan(core, job, p, k);
    k->typical = typical;
    r->at_ms = k->at_ms;
    r->plan = st_xcalloc((size_t)job->tasks, sizeof *r->plan);
    memcpy(r->plan, k->plan, (size_t)job->tasks * sizeof *r->plan);
    return true;
}
