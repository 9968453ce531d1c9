/* Rooms per shape, kept up to date with the fleet.
 *
 * Invariants: total and sums[level][domain] are the sums of room[] over the nodes; a node is
 * in bits[class] exactly when it has room; after st_rooms_of, room[] is what st_place_room
 * says of every ready node's own view. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "place/placer.h"

#define SHAPES_MAX 96

static int class_of(const st_job *job, const st_view *view)
{
    bool fresh = job->shape.level != ST_LEVEL_WHOLE && !view->shared;
    return (fresh ? ST_DEVS_MAX + 1 : 0) + __builtin_popcount(view->free);
}

static void put(st_rooms *r, const st_node *node, int32_t room, int class)
{
    int32_t id = node->id;
    int64_t more = room - r->room[id];
    if (r->room[id] > 0) {
        r->bits[r->class[id]][id / 64] &= ~(UINT64_C(1) << (id % 64));
        r->count[r->class[id]]--;
    }
    if (room > 0) {
        r->bits[class][id / 64] |= UINT64_C(1) << (id % 64);
        r->count[class]++;
    }
    r->class[id] = (uint8_t) class;
    r->room[id] = room;
    if (more == 0)
        return;
    r->total += more;
    for (int l = ST_TOPO_ZONE; l <= ST_TOPO_RACK; l++)
        if (node->place[l] >= 0)
            r->sums[l].v[node->place[l]] += more;
}

void st_rooms_set(st_placer *placer, st_rooms *rooms, const st_node *node, const st_view *view)
{
    int room = 0, class = 0;
    bool takes = node->state == ST_NODE_READY || ST_BROKEN(DRAIN);
    if ((rooms->ever || takes) && st_place_allowed(placer, node, &rooms->like, rooms->type)) {
        room = st_place_room(placer, node, &rooms->like, view, st_all_devs(node));
        class = room > 0 ? class_of(&rooms->like, view) : 0;
    }
    put(rooms, node, room, class);
}

void st_rooms_free(st_rooms *rooms)
{
    if (!rooms)
        return;
    free(rooms->room);
    free(rooms->class);
    for (int l = 0; l < ST_TOPO_NODE; l++)
        st_vec_free(&rooms->sums[l]);
    for (int c = 0; c < ST_CLASSES; c++)
        free(rooms->bits[c]);
    free(rooms);
}

/* Make room for every node and domain of the fleet; new ones start at nothing. */
static void cover(const st_placer *placer, st_rooms *r)
{
    size_t n = placer->fleet->nodes.n, old = r->n;
    for (int l = ST_TOPO_ZONE; l <= ST_TOPO_RACK; l++)
        while (r->sums[l].n < placer->fleet->domains[l].n)
            st_vec_push(&r->sums[l], 0);
    if (n == old)
        return;
    r->room = st_xreallocarray(r->room, n, sizeof *r->room);
    r->class = st_xreallocarray(r->class, n, sizeof *r->class);
    memset(r->room + old, 0, (n - old) * sizeof *r->room);
    memset(r->class + old, 0, (n - old) * sizeof *r->class);
    size_t words = (n + 63) / 64, had = (old + 63) / 64;
    for (int c = 0; c < ST_CLASSES; c++) {
        r->bits[c] = st_xreallocarray(r->bits[c], words, sizeof **r->bits);
        memset(r->bits[c] + had, 0, (words - had) * sizeof **r->bits);
    }
    r->n = n;
}

static void count_all(st_placer *placer, st_rooms *r, const st_ask *ask)
{
    cover(placer, r);
    for (size_t i = 0; i < r->n; i++) {
        const st_node *node = placer->fleet->nodes.v[i];
        st_rooms_set(placer, r, node, ask ? st_ask_view(ask, node) : &node->view);
    }
}

/* Everything the room of a node depends on, but the node. Whose the job is matters where it
 * would share: for MPS by its trust domain, and to the account beside latency-critical work. */
static uint64_t key_of(const st_placer *placer, const st_job *job, int32_t type)
{
    const st_shape *s = &job->shape;
    bool shared = s->gpus > 0 && (s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME);
    bool by_account = shared && (job->latency_critical || placer->fleet->latency_critical > 0);
    bool by_domain = shared && s->level == ST_LEVEL_MPS;
    const uint64_t words[] = {
        (uint64_t)type,
        (uint64_t)s->level,
        (uint64_t)s->gpus,
        s->level == ST_LEVEL_MIG ? (uint64_t)s->profile : 0,
        shared ? (uint64_t)s->share_m : 0,
        shared ? (uint64_t)s->vram_mib : 0,
        (uint64_t)s->cpu_m,
        (uint64_t)st_task_ram_mib(job),
        (uint64_t)job->pool,
        by_account ? (uint64_t)job->account : 0,
        by_domain ? (uint64_t)st_tree_domain(placer->tree, job->account) : 0,
        shared && job->latency_critical,
    };
    uint64_t h = 3;
    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        h = st_hash_u64(h, words[i]);
    return h;
}

static st_rooms *rooms_new(const st_job *job, int32_t type)
{
    st_rooms *r = st_xcalloc(1, sizeof *r);
    r->like = *job;
    r->like.name = NULL;
    r->like.grants = NULL;
    r->like.tasks = ST_ROOM_MAX;
    r->type = type;
    return r;
}

/* The kept rooms of that key, or the slot to keep new ones in. */
static st_rooms *find(st_placer *placer, uint64_t key)
{
    size_t oldest = 0;
    for (size_t i = 0; i < placer->shapes.n; i++) {
        if (placer->shapes.v[i]->key == key)
            return placer->shapes.v[i];
        if (placer->shapes.v[i]->used < placer->shapes.v[oldest]->used)
            oldest = i;
    }
    if (placer->shapes.n >= SHAPES_MAX) {
        st_rooms_free(placer->shapes.v[oldest]);
        st_vec_remove(&placer->shapes, oldest);
    }
    return NULL;
}

st_rooms *st_rooms_of(st_placer *placer, const st_job *job, int32_t type)
{
    const st_fleet *fleet = placer->fleet;
    uint64_t key = key_of(placer, job, type);
    st_rooms *r = find(placer, key);
    if (!r) {
        r = rooms_new(job, type);
        r->key = key;
        st_vec_push(&placer->shapes, r);
        count_all(placer, r, NULL);
    } else if (r->seen < fleet->changes_from) {
        count_all(placer, r, NULL);
    } else {
        size_t had = r->n;
        cover(placer, r);
        for (size_t i = had; i < r->n; i++)
            st_rooms_set(placer, r, fleet->nodes.v[i], &fleet->nodes.v[i]->view);
        for (size_t i = (size_t)(r->seen - fleet->changes_from); i < fleet->changes.n; i++) {
            const st_node *node = fleet->nodes.v[fleet->changes.v[i]];
            st_rooms_set(placer, r, node, &node->view);
        }
    }
    r->seen = st_fleet_changes(fleet);
    r->used = ++placer->tick;
    return r;
}

st_rooms *st_rooms_for(st_placer *placer, const st_ask *ask)
{
    if (ask->rooms)
        return ask->rooms;
    if (!ask->ever && !ask->view)
        return st_rooms_of(placer, ask->job, ask->type);
    st_rooms_free(placer->once);
    placer->once = rooms_new(ask->job, ask->type);
    placer->once->ever = ask->ever;
    count_all(placer, placer->once, ask);
    return placer->once;
}
