/* Rooms per shape, kept up to date with the fleet.
 *
 * Invariants: total and sums[level][domain] are the sums of room[] over the nodes, some[] has a bit where it is not 0; after
 * st_rooms_of, room[] is what st_place_room says of every ready node's own view; cost[] of a node
 * that is not stale is what the target says of the view its room was set from, or ST_COST_NONE
 * without room; low[] of a block without stale nodes is the least cost in it. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "place/placer.h"

/* How many shapes are remembered: as many as fit the bytes, within bounds. */
#define SHAPES_BYTES ((size_t)256 << 20)
#define SHAPES_LEAST 96
#define SHAPES_MOST  2048

/* What is to be said of the node's kind in this look; NULL if the node is not seen as it is, or is
 * like no other. */
static st_place_answer *answer_of(st_placer *placer, const st_rooms *r, const st_ask *ask,
                                  size_t id)
{
    st_place_kinds *k = &placer->kinds;
    if (r->like.shape.nodes)
        return NULL; /* a kind has all names, and all labels */
    if (ask && ask->view) {
        const st_node *node = placer->fleet->nodes.v[id];
        if (ask->view(ask->ctx, node) != &node->view)
            return NULL;
    }
    return k->of[id] ? &k->answers[k->of[id]] : NULL;
}

static int16_t cost_of(st_placer *placer, const st_rooms *r, const st_node *node,
                       const st_view *view, bool learned)
{
    const st_job *job = &r->like;
    bool fresh = job->shape.level != ST_LEVEL_WHOLE && !view->shared;
    int empty = (fresh ? ST_DEVS_MAX + 1 : 0) + __builtin_popcount(view->free);
    if (!learned)
        return (int16_t)(empty * (ST_COST_STEP + 1));
    st_spot spot = {placer->fleet, placer->tree, node, view, st_all_devs(node)};
    int64_t cost_m = st_waste_cost(placer->waste, &spot, job);
    int64_t far_m = ST_COST_STEPS * ST_COST_STEP_M;
    int64_t steps =
        (ST_MAX(ST_MIN(cost_m, far_m), -far_m) + far_m + ST_COST_STEP_M / 2) / ST_COST_STEP_M -
        ST_COST_STEPS;
    return (int16_t)(steps * ST_COST_STEP + empty);
}

static int16_t cost_by_kind(st_placer *placer, const st_rooms *r, const st_ask *ask, size_t id,
                            bool learned)
{
    st_place_answer *had = answer_of(placer, r, ask, id);
    if (had && had->look == placer->kinds.look)
        return (int16_t)had->value;
    const st_node *node = placer->fleet->nodes.v[id];
    int16_t cost = cost_of(placer, r, node, st_ask_view(ask, node), learned);
    if (had)
        *had = (st_place_answer){placer->kinds.look, cost};
    return cost;
}

static void lower(st_rooms *r, size_t block)
{
    const int16_t *cost = r->cost + block * ST_BLOCK;
    int16_t low = ST_COST_NONE;
    for (int i = 0; i < ST_BLOCK; i++)
        low = ST_MIN(low, cost[i]);
    r->low[block] = low;
}

void st_rooms_reckon(st_placer *placer, st_rooms *r, const st_ask *ask)
{
    bool learned = !ask->plain && st_waste_ready(placer->waste, &placer->typical);
    size_t blocks = (r->n + ST_BLOCK - 1) / ST_BLOCK;
    if (r->epoch != placer->typical.epoch)
        memset(r->stale, 0xff, blocks * sizeof *r->stale);
    r->epoch = placer->typical.epoch;
    bool looking = false;
    for (size_t b = 0; b < blocks; b++) {
        if (r->stale[b] == 0)
            continue;
        if (!looking)
            st_kinds_look(&placer->kinds, placer->fleet);
        looking = true;
        for (uint64_t bits = r->stale[b]; bits; bits &= bits - 1) {
            size_t id = b * ST_BLOCK + (size_t)__builtin_ctzll(bits);
            if (id >= r->n)
                break;
            r->cost[id] = ST_COST_NONE;
            if (r->room[id] > 0)
                r->cost[id] = cost_by_kind(placer, r, ask, id, learned);
        }
        r->stale[b] = 0;
        lower(r, b);
    }
}

static void put(st_rooms *r, size_t id, const int32_t *place, int32_t room)
{
    int64_t more = room - r->room[id];
    if (more == 0 && room == 0)
        return; /* its cost is none, and stays so */
    r->stale[id / ST_BLOCK] |= UINT64_C(1) << (id % ST_BLOCK);
    r->room[id] = room;
    if (more == 0)
        return;
    uint64_t bit = UINT64_C(1) << (id % 64);
    r->some[id / 64] = room > 0 ? r->some[id / 64] | bit : r->some[id / 64] & ~bit;
    r->total += more;
    for (int l = ST_TOPO_ZONE; l <= ST_TOPO_RACK; l++)
        if (place[l] >= 0)
            r->sums[l].v[place[l]] += more;
}

static int room_of(const st_placer *placer, const st_rooms *rooms, const st_node *node,
                   const st_view *view)
{
    bool takes = node->state == ST_NODE_READY || ST_BROKEN(DRAIN);
    if (!(rooms->ever || takes) || !st_place_allowed(placer, node, &rooms->like, rooms->type))
        return 0;
    if (rooms->like.shape.gpus > 0 && view->free == 0 && view->shared == 0)
        return 0; /* most nodes of a busy fleet */
    return st_place_room(placer, node, &rooms->like, view, st_all_devs(node));
}

void st_rooms_set(st_placer *placer, st_rooms *rooms, const st_node *node, const st_view *view)
{
    put(rooms, (size_t)node->id, node->place, room_of(placer, rooms, node, view));
}

bool st_rooms_outlined(const st_rooms *rooms)
{
    return rooms->like.shape.gpus == 0 || rooms->like.shape.level == ST_LEVEL_WHOLE;
}

int64_t st_rooms_total(const st_rooms *rooms)
{
    return rooms->total;
}

int st_rooms_at(const st_rooms *rooms, const st_node *node)
{
    return rooms->room[node->id];
}

size_t st_rooms_next(const st_rooms *rooms, size_t id)
{
    for (; id < rooms->n; id = (id / 64 + 1) * 64) {
        uint64_t bits = rooms->some[id / 64] >> (id % 64);
        if (bits)
            return id + (size_t)__builtin_ctzll(bits);
    }
    return rooms->n;
}

void st_rooms_free(st_rooms *rooms)
{
    if (!rooms)
        return;
    free(rooms->room);
    free(rooms->some);
    free(rooms->cost);
    free(rooms->low);
    free(rooms->stale);
    for (int l = 0; l < ST_TOPO_NODE; l++)
        st_vec_free(&rooms->sums[l]);
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
    memset(r->room + old, 0, (n - old) * sizeof *r->room);
    size_t words = n / 64 + 1, were = r->some ? old / 64 + 1 : 0;
    r->some = st_xreallocarray(r->some, words, sizeof *r->some);
    memset(r->some + were, 0, (words - were) * sizeof *r->some);
    size_t blocks = (n + ST_BLOCK - 1) / ST_BLOCK, had = (old + ST_BLOCK - 1) / ST_BLOCK;
    r->cost = st_xreallocarray(r->cost, blocks * ST_BLOCK, sizeof *r->cost);
    r->low = st_xreallocarray(r->low, blocks, sizeof *r->low);
    r->stale = st_xreallocarray(r->stale, blocks, sizeof *r->stale);
    for (size_t i = old; i < blocks * ST_BLOCK; i++)
        r->cost[i] = ST_COST_NONE;
    for (size_t b = had; b < blocks; b++) {
        r->low[b] = ST_COST_NONE;
        r->stale[b] = 0;
    }
    r->n = n;
}

/* Count one node; a look must have begun. */
static void count_one(st_placer *placer, st_rooms *r, const st_ask *ask, size_t id)
{
    const st_place_kinds *k = &placer->kinds;
    if (r->type >= 0 && k->place[id].type != r->type && r->room[id] == 0)
        return; /* most changes of a fleet with many types */
    st_place_answer *had = answer_of(placer, r, ask, id);
    if (had && had->look == k->look) {
        put(r, id, k->place[id].v, had->value);
        return;
    }
    const st_node *node = placer->fleet->nodes.v[id];
    int32_t room = room_of(placer, r, node, ask ? st_ask_view(ask, node) : &node->view);
    if (had)
        *had = (st_place_answer){k->look, room};
    put(r, id, k->place[id].v, room);
}

static void count_all(st_placer *placer, st_rooms *r, const st_ask *ask)
{
    st_kinds_look(&placer->kinds, placer->fleet);
    cover(placer, r);
    for (size_t i = 0; i < r->n; i++)
        count_one(placer, r, ask, i);
}

/* How often the nodes have changed that it may have room on. */
static uint64_t changed_for(const st_fleet *fleet, const st_rooms *r)
{
    return r->type < 0 ? st_fleet_changes(fleet) : st_fleet_changes_of(fleet, r->type);
}

/* Count what has changed since the rooms were last seen; where that is more than there is, all. */
static void catch_up(st_placer *placer, st_rooms *r)
{
    const st_fleet *fleet = placer->fleet;
    if (r->seen < fleet->changes_from || st_fleet_changes(fleet) - r->seen > fleet->nodes.n) {
        count_all(placer, r, NULL);
        return;
    }
    size_t had = r->n, from = (size_t)(r->seen - fleet->changes_from);
    if (had == fleet->nodes.n && (from == fleet->changes.n || r->changed == changed_for(fleet, r)))
        return;
    st_kinds_look(&placer->kinds, fleet);
    cover(placer, r);
    for (size_t i = had; i < r->n; i++)
        count_one(placer, r, NULL, i);
    for (size_t i = from; i < fleet->changes.n; i++)
        if (r->type < 0 || fleet->changes.v[i].type == r->type)
            count_one(placer, r, NULL, (size_t)fleet->changes.v[i].node);
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
        s->needs,
        s->nodes,
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

/* The kept rooms of that key. */
static st_rooms *find(const st_placer *placer, uint64_t key)
{
    int64_t i;
    return st_idmap_get(placer->shape_at, key, &i) ? placer->shapes.v[i] : NULL;
}

static void forget(st_placer *placer, size_t i)
{
    st_idmap_del(placer->shape_at, placer->shapes.v[i]->key);
    st_rooms_free(placer->shapes.v[i]);
    placer->shapes.v[i] = placer->shapes.v[placer->shapes.n - 1];
    placer->shapes.n--;
    if (i < placer->shapes.n)
        st_idmap_put(placer->shape_at, placer->shapes.v[i]->key, (int64_t)i);
}

/* Keeps the rooms; those that were used longest ago make way. */
static void keep(st_placer *placer, st_rooms *r)
{
    size_t each = placer->fleet->nodes.n * (sizeof *r->room + sizeof *r->cost) + sizeof *r;
    size_t most = ST_MAX(SHAPES_LEAST, ST_MIN(SHAPES_BYTES / each, (size_t)SHAPES_MOST));
    while (placer->shapes.n >= most) {
        size_t oldest = 0;
        for (size_t i = 1; i < placer->shapes.n; i++)
            if (placer->shapes.v[i]->used < placer->shapes.v[oldest]->used)
                oldest = i;
        forget(placer, oldest);
    }
    st_idmap_put(placer->shape_at, r->key, (int64_t)placer->shapes.n);
    st_vec_push(&placer->shapes, r);
}

st_rooms *st_rooms_of(st_placer *placer, const st_job *job, int32_t type)
{
    uint64_t key = key_of(placer, job, type);
    st_rooms *r = find(placer, key);
    if (!r) {
        r = rooms_new(job, type);
        r->key = key;
        keep(placer, r);
        count_all(placer, r, NULL);
    } else {
        catch_up(placer, r);
    }
    r->seen = st_fleet_changes(placer->fleet);
    r->changed = changed_for(placer->fleet, r);
    r->used = ++placer->tick;
    return r;
}

/* Picks were swept out: what is known of them may be of another one some day. */
void st_placer_forget_picks(st_placer *placer)
{
    for (size_t i = 0; i < placer->shapes.n;) {
        uint64_t nodes = placer->shapes.v[i]->like.shape.nodes;
        if (nodes && !st_fleet_picked_text(placer->fleet, nodes))
            forget(placer, i);
        else
            i++;
    }
}

st_rooms *st_rooms_blank(st_placer *placer, const st_job *job, int32_t type)
{
    st_rooms *r = placer->blank;
    if (!r)
        placer->blank = r = rooms_new(job, type);
    cover(placer, r);
    for (size_t i = 0; i < placer->filled.n; i++) {
        size_t id = (size_t)placer->filled.v[i];
        put(r, id, placer->fleet->nodes.v[id]->place, 0);
    }
    st_vec_clear(&placer->filled);
    r->like = *job;
    r->like.name = NULL;
    r->like.grants = NULL;
    r->like.tasks = ST_ROOM_MAX;
    r->type = type;
    r->epoch = placer->typical.epoch; /* it is all stale that has room */
    return r;
}

void st_rooms_put(st_placer *placer, st_rooms *rooms, const st_node *node, int32_t room)
{
    ST_ASSERT(rooms == placer->blank);
    st_vec_push(&placer->filled, node->id);
    put(rooms, (size_t)node->id, node->place, room);
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
