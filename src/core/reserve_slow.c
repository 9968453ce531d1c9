/* Reserving where room is not a number of tasks to a node (reserve.h): for a paused gang, which must
 * go on where it is, for one NVLink domain, and for gangs of slices and shares. Those who will be
 * gone are thought away, more and more, until it fits. Few jobs are like that. For a paused one only those
 * on its own nodes count. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/reserve.h"

typedef struct release {
    int64_t at_ms;
    st_job *job;
} release;

/* A reservation in the making, by limits or by forecast; it sees the plans of those ahead by the same. */
typedef struct reserving {
    st_core *core;
    unsigned by;
    ST_VEC(release) list; /* in order of time */
} reserving;

static int by_time(const void *pa, const void *pb)
{
    const release *a = pa, *b = pb;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return a->job->id < b->job->id ? -1 : a->job->id > b->job->id;
}

static const st_view *planned_view(void *ctx, const st_node *node)
{
    const reserving *g = ctx;
    st_core *core = g->core;
    if (!st_reserve_planned(core, g->by, node->id))
        return st_whatif_view(core, node);
    /* Edited in place, and rebuilt the next time it is asked for. */
    core->whatif.stamp[node->id] = 0;
    st_view *view = st_whatif_edit(core, node);
    st_reserve_add_plans(core, g->by, node, view);
    return view;
}

/* Think releases [from, to) away, or back in. */
static void think(reserving *g, size_t from, size_t to, bool out, st_rooms *rooms)
{
    st_core *core = g->core;
    for (size_t i = from; i < to; i++)
        g->list.v[i].job->out = out ? ST_OUT_ENDED : ST_OUT_NOT;
    for (size_t i = from; i < to; i++) {
        const st_job *job = g->list.v[i].job;
        st_whatif_touch(core, job, NULL);
        for (int t = 0; rooms && t < job->tasks; t++) {
            const st_node *node = core->fleet->nodes.v[job->grants[t].node];
            if (t == 0 || job->grants[t - 1].node != node->id)
                st_rooms_set(core->placer, rooms, node, planned_view(g, node));
        }
    }
}

static void shift(reserving *g, size_t have, size_t want, st_rooms *rooms)
{
    if (want > have)
        think(g, have, want, true, rooms);
    else
        think(g, want, have, false, rooms);
}

/* Set the rooms of all nodes of reservations to their planned view, or back. */
static void plan_rooms(reserving *g, st_rooms *rooms, bool planned)
{
    st_core *core = g->core;
    for (size_t i = 0; i < core->resv.n; i++) {
        if (!(core->resv.v[i].by & g->by))
            continue;
        for (int t = 0; t < core->resv.v[i].ntasks; t++) {
            const st_node *node = core->fleet->nodes.v[core->resv.v[i].plan[t].node];
            st_rooms_set(core->placer, rooms, node, planned ? planned_view(g, node) : &node->view);
        }
    }
}

/* Whoever is to come counts from the beginning (ST_WHEN_ANY); or views and rooms as they are. */
static void count_holds(reserving *g, st_rooms *rooms, bool on)
{
    st_core *core = g->core;
    for (size_t i = 0; core->nheld > 0 && i < core->off.n; i++) {
        const st_job *job = core->off.v[i];
        if (!job->held)
            continue;
        if (on)
            st_whatif_touch(core, job, NULL);
        for (int t = 0; rooms && t < job->tasks; t++) {
            const st_node *node = core->fleet->nodes.v[job->grants[t].node];
            st_rooms_set(core->placer, rooms, node, on ? planned_view(g, node) : &node->view);
        }
    }
}

/* All that end in the same moment end together. */
static size_t whole_moment(const reserving *g, size_t n)
{
    while (n > 0 && n < g->list.n && g->list.v[n].at_ms == g->list.v[n - 1].at_ms)
        n++;
    return n;
}

/* How many releases, in order of time, until the job fits; n + 1 when not even all are enough.
 * Leaves that many thought away. */
static size_t fewest(reserving *g, const st_ask *ask)
{
    st_core *core = g->core;
    size_t have = 0, lo = 0, hi = 0, n = g->list.n;
    while (!st_place_fits(core->placer, ask)) {
        if (have == n)
            return n + 1;
        lo = have + 1;
        hi = ST_MIN(2 * have + 1, n);
        shift(g, have, hi, ask->rooms);
        have = hi;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        shift(g, have, mid, ask->rooms);
        have = mid;
        if (st_place_fits(core->placer, ask))
            hi = mid;
        else
            lo = mid + 1;
    }
    hi = whole_moment(g, hi);
    shift(g, have, hi, ask->rooms);
    return hi;
}

static void list_release(reserving *g, st_job *job, bool claims)
{
    int64_t at_ms = st_reserve_release_ms(g->core, job, g->by, claims);
    if (at_ms != ST_TIME_NEVER)
        st_vec_push(&g->list, (release){at_ms, job});
}

/* Those on the nodes of a paused gang. */
static void list_beside(reserving *g, const st_job *paused, bool claims)
{
    st_core *core = g->core;
    st_marks_begin(core);
    for (int t = 0; t < paused->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[paused->grants[t].node];
        bool first = st_marks_first(core, node->id);
        for (size_t i = 0; first && i < node->residents.n; i++)
            if (st_job_on_devices(node->residents.v[i].job))
                list_release(g, node->residents.v[i].job, claims);
    }
}

static void list_releases(reserving *g, const st_job *job, bool beside, bool claims)
{
    if (beside)
        list_beside(g, job, claims);
    else
        for (size_t i = 0; i < g->core->placed.n; i++)
            list_release(g, g->core->placed.v[i], claims);
    if (g->list.n > 1)
        qsort(g->list.v, g->list.n, sizeof *g->list.v, by_time);
    size_t n = 0; /* who has several tasks beside it was listed for each */
    for (size_t i = 0; i < g->list.n; i++)
        if (n == 0 || g->list.v[n - 1].job != g->list.v[i].job)
            g->list.v[n++] = g->list.v[i];
    g->list.n = n;
}

bool st_reserve_slowly(st_core *core, const st_job *job, bool all_leavers, st_reservation *r)
{
    reserving g = {.core = core, .by = r->by};
    bool paused = job->state == ST_JOB_PAUSED;
    list_releases(&g, job, paused && !all_leavers, r->claims);
    size_t all = g.list.n;
    st_whatif_begin(core, ST_WHEN_ANY);
    st_ask ask = {.job = job, .type = r->type, .view = planned_view, .ctx = &g};
    if (!paused) {
        ask.rooms = st_rooms_of(core->placer, job, r->type);
        plan_rooms(&g, ask.rooms, true);
    }
    count_holds(&g, ask.rooms, true);
    size_t n = fewest(&g, &ask);
    if (n <= all) {
        r->at_ms = n == 0 ? 0 : g.list.v[n - 1].at_ms;
        r->plan = st_xcalloc((size_t)job->tasks, sizeof *r->plan);
        bool ok = st_place_gang(core->placer, &ask, r->plan);
        ST_ASSERT(ok);
    }
    shift(&g, ST_MIN(n, all), 0, ask.rooms);
    if (!paused)
        plan_rooms(&g, ask.rooms, false);
    count_holds(&g, ask.rooms, false);
    st_vec_free(&g.list);
    return r->plan;
}
