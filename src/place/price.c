/* Prices of GPU types: what a GPU of a type is worth to those who can use no other.
 *
 * Whether a type is scarce is a matter of the whole fleet, which no node's waste can tell. The
 * demand counted so far (place/typical.h) is scaled to what is free now. Tasks that allow the same
 * types spread over them, more to the cheap and to those with much free, and a type that attracts
 * more than it has becomes dearer, a few rounds long. Where nobody insists on a type, all prices
 * are equal and say nothing.
 *
 * Prices follow from what is counted and what is free, and from nothing else: a core that was
 * loaded has those of the one that was saved. */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/mem.h"
#include "place/placer.h"

#define ROUNDS    32
#define PRICE_ONE 1024 /* a price of one GPU for a GPU; loads are counted in the same parts */
#define STEP_MAX  PRICE_ONE
#define PRICE_MAX ((int64_t)8 * PRICE_ONE)
#define STILL     (PRICE_ONE / 128) /* prices that move less have converged */
#define WILL_BITS 16                /* of the full will to pay */
#define PART_BITS 14                /* of all demand */
#define LOAD_MAX  (INT64_C(1) << 30)

/* Tasks that allow the same types. */
typedef struct group {
    uint32_t types;
    int64_t demand; /* then its part of all */
} group;

/* ---- what is free, by type --------------------------------------------------------------- */

static void count_node(st_place_prices *p, const st_node *node)
{
    st_place_free *had = &p->nodes[node->id];
    if (had->type >= 0)
        p->free_m[had->type] -= had->free_m;
    bool open = node->type >= 0 && node->state == ST_NODE_READY;
    *had = (st_place_free){open ? node->type : -1, open ? st_free_m(&node->view) : 0};
    if (open)
        p->free_m[had->type] += had->free_m;
}

static void count_free(st_place_prices *p, const st_fleet *fleet)
{
    size_t had = p->n, n = fleet->nodes.n;
    if (p->seen < fleet->changes_from || st_fleet_changes(fleet) - p->seen > n)
        had = 0;
    if (n > p->n) {
        p->nodes = st_xreallocarray(p->nodes, n, sizeof *p->nodes);
        for (size_t i = p->n; i < n; i++)
            p->nodes[i] = (st_place_free){-1, 0};
        p->n = n;
    }
    for (size_t i = had; i < n; i++)
        count_node(p, fleet->nodes.v[i]);
    if (had > 0)
        for (size_t i = (size_t)(p->seen - fleet->changes_from); i < fleet->changes.n; i++)
            count_node(p, fleet->nodes.v[fleet->changes.v[i].node]);
    p->seen = st_fleet_changes(fleet);
}

int64_t st_place_free_m(st_placer *placer, int32_t type)
{
    st_place_prices *p = &placer->prices;
    if (!p->nodes || p->seen != st_fleet_changes(placer->fleet) || p->n != placer->fleet->nodes.n) {
        count_free(p, placer->fleet);
        p->types = -1; /* the prices are of what was free before */
    }
    return p->free_m[type];
}

/* ---- what is asked for ------------------------------------------------------------------- */

/* All classes that are counted, not only the heaviest: who insists on a type is often rare. */
static int gather(const st_typical *t, uint32_t known, group *ret)
{
    int n = 0;
    int64_t all = 0;
    for (int i = 0; i < t->nseen; i++) {
        const st_kind *k = &t->seen[i];
        if (k->gpus == 0 || !(k->types & known))
            continue;
        int at = 0;
        while (at < n && ret[at].types != (k->types & known))
            at++;
        if (at == n)
            ret[n++] = (group){k->types & known, 0};
        /* A class has counted as often as its tasks have GPUs. */
        int64_t demand = k->weight * st_kind_gpu_m(k) / k->gpus;
        ret[at].demand += demand;
        all += demand;
    }
    for (int i = 0; i < n; i++)
        ret[i].demand = (ret[i].demand << PART_BITS) / ST_MAX(all, 1);
    return n;
}

/* ---- the market -------------------------------------------------------------------------- */

/* About e^-price: how willing tasks are to pay it. */
static int64_t will(int64_t price)
{
    const int64_t one = PRICE_ONE, cube = one * one * one;
    int64_t below =
        6 * cube + 6 * one * one * price + 3 * one * price * price + price * price * price;
    return ((6 * cube) << WILL_BITS) / below;
}

/* How much each type attracts, in parts of what it has free. */
static void spread(const st_place_prices *p, const group *groups, int n, int types, int64_t *ret)
{
    int64_t wills[ST_TYPES_MAX], all_m = 0;
    for (int t = 0; t < types; t++) {
        wills[t] = will(p->price[t]);
        all_m += p->free_m[t];
        ret[t] = 0;
    }
    for (int g = 0; g < n; g++) {
        int64_t open_m = 0;
        for (int t = 0; t < types; t++)
            if (groups[g].types >> t & 1)
                open_m += p->free_m[t] * wills[t] >> WILL_BITS;
        int64_t load = ST_MIN(groups[g].demand * all_m / ST_MAX(open_m, 1), LOAD_MAX);
        for (int t = 0; t < types; t++)
            if (groups[g].types >> t & 1)
                ret[t] += load * wills[t] >> WILL_BITS;
    }
    for (int t = 0; t < types; t++)
        ret[t] = ret[t] * PRICE_ONE >> PART_BITS;
}

/* One round; whether a price moved. Only differences matter: the cheapest type costs nothing. */
static bool move(st_place_prices *p, const int64_t *load, int types)
{
    int64_t next[ST_TYPES_MAX], least = INT64_MAX;
    bool moved = false;
    for (int t = 0; t < types; t++) {
        next[t] = p->price[t] + ST_MIN((load[t] - PRICE_ONE) / 2, STEP_MAX);
        least = ST_MIN(least, next[t]);
    }
    for (int t = 0; t < types; t++) {
        next[t] = ST_MIN(next[t] - least, PRICE_MAX);
        moved |= llabs(next[t] - p->price[t]) >= STILL;
        p->price[t] = next[t];
    }
    return moved;
}

const int64_t *st_prices_now(st_placer *placer)
{
    st_place_prices *p = &placer->prices;
    int types = (int)placer->fleet->types.n;
    if (p->nodes && p->seen == st_fleet_changes(placer->fleet) && p->n == placer->fleet->nodes.n &&
        p->types == types && p->arrivals == placer->typical.arrivals)
        return p->price;
    count_free(p, placer->fleet);
    p->types = types;
    p->arrivals = placer->typical.arrivals;
    memset(p->price, 0, sizeof p->price);
    group groups[ST_TYPICAL_SEEN];
    int n = gather(&placer->typical, (UINT32_C(1) << types) - 1, groups);
    bool moved = n > 1;
    for (int round = 0; moved && round < ROUNDS; round++) {
        int64_t load[ST_TYPES_MAX];
        spread(p, groups, n, types, load);
        moved = move(p, load, types);
    }
    return p->price;
}

void st_prices_done(st_place_prices *p)
{
    free(p->nodes);
}

/* ---- the order of types ------------------------------------------------------------------ */

/* What a task costs those who come later where it costs least, with the price of the type. */
static int64_t type_cost(st_placer *placer, const st_job *job, int32_t type, int64_t price)
{
    st_rooms *rooms = st_rooms_of(placer, job, type);
    if (rooms->total < job->tasks)
        return INT64_MAX;
    st_ask ask = {.job = job, .type = type};
    st_rooms_reckon(placer, rooms, &ask);
    int16_t least = ST_COST_NONE;
    for (size_t b = 0; b * ST_BLOCK < rooms->n; b++)
        least = ST_MIN(least, rooms->low[b]);
    int64_t price_m = price * st_shape_gpu_m(&job->shape) / PRICE_ONE;
    return least + (price_m + ST_COST_STEP_M / 2) / ST_COST_STEP_M * ST_COST_STEP;
}

void st_place_sort_types(st_placer *placer, const st_job *job, int32_t *types, int n)
{
    int64_t cost[ST_TYPES_MAX];
    if (!st_waste_ready(placer->waste, &placer->typical))
        return;
    const int64_t *price = st_prices_now(placer);
    for (int i = 0; i < n; i++) {
        int32_t type = types[i];
        int64_t this = type_cost(placer, job, type, price[type]);
        int at = i;
        for (; at > 0 && cost[at - 1] > this; at--) {
            cost[at] = cost[at - 1];
            types[at] = types[at - 1];
        }
        cost[at] = this;
        types[at] = type;
    }
}
