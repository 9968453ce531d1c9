/*
 * The index that makes a choice cheap. Each class keeps its score for every node, in blocks with
 * their least, and catches up from the log of changed nodes when it is asked again; the target's
 * tables change only each time the arrivals have doubled. So a decision costs what changed since
 * its class was last asked, and a look at one number per 64 nodes. Prices of types are added at the
 * very end and cost nothing to change. frag_state.h has the invariants.
 */
#include "place/frag.h"

#include "base/hash.h"
#include "base/mem.h"
#include "place/frag_state.h"

st_frag *st_frag_new(void)
{
    st_frag *f = st_xcalloc(1, sizeof(*f));

    f->by_key = st_idmap_new();
    f->next_target = ST_FRAG_FIRST;
    return f;
}

static void forget_scores(frag_class *c)
{
    free(c->score);
    free(c->low);
    c->score = c->low = NULL;
    c->nslots = 0;
    c->epoch = 0;
}

void st_frag_free(st_frag *f)
{
    if (!f)
        return;
    for (int32_t i = 0; i < f->nclasses; i++)
        forget_scores(&f->classes[i]);
    st_idmap_free(f->by_key);
    st_frag_target_done(&f->target);
    st_vec_free(&f->nodes);
    st_vec_free(&f->node_of);
    st_vec_free(&f->block_type);
    st_vec_free(&f->kinds);
    st_vec_free(&f->log);
    free(f);
}

/* ---- nodes ---- */

static int32_t new_slot(st_frag *f, int32_t type, int32_t node)
{
    int32_t slot = f->fill[type];

    if (slot % ST_FRAG_BLOCK == 0) {
        slot = (int32_t)f->node_of.n;
        for (int i = 0; i < ST_FRAG_BLOCK; i++)
            st_vec_push(&f->node_of, -1);
        st_vec_push(&f->block_type, type);
    }
    f->node_of.v[slot] = node;
    f->fill[type] = slot + 1;
    return slot;
}

static int32_t kind_of(st_frag *f, const frag_node *n)
{
    for (size_t i = 0; i < f->kinds.n; i++) {
        const frag_node *k = &f->kinds.v[i];

        if (k->type == n->type && k->cpu_m == n->cpu_m && k->ram_mib == n->ram_mib &&
            k->gpus == n->gpus)
            return (int32_t)i;
    }
    st_vec_push(&f->kinds, *n);
    return (int32_t)f->kinds.n - 1;
}

int32_t st_frag_add(st_frag *f, int32_t type, int32_t cpu_m, int64_t ram_mib, int32_t gpus)
{
    int32_t id = (int32_t)f->nodes.n;
    frag_node n = {.ram_mib = ram_mib, .cpu_m = cpu_m, .type = type, .gpus = (int16_t)gpus};

    ST_ASSERT(type >= 0 && type < ST_FRAG_TYPES_MAX && gpus >= 0 && gpus <= ST_FRAG_GPUS_MAX);
    ST_ASSERT(cpu_m >= 0 && cpu_m <= ST_FRAG_CPU_MAX && ram_mib >= 0);
    n.total_m = gpus * 1000;
    for (int32_t i = 0; i < gpus; i++)
        n.free_m[i] = 1000;
    n.kind = kind_of(f, &n);
    n.slot = new_slot(f, type, id);
    st_vec_push(&f->nodes, n);
    st_vec_push(&f->log, 0);
    f->type_free_m[type] += n.total_m;
    /* Tables and scores do not know the node yet. */
    f->ntypes = ST_MAX(f->ntypes, type + 1);
    f->epoch++;
    if (f->target.n > 0)
        st_frag_target_derive(f);
    return id;
}

/* The node is as it will be; those who remember scores will hear of it. */
static void note_change(st_frag *f, frag_node *n)
{
    n->touched = true;
    n->measure = st_frag_measure_raw(f, n);
    n->changed = f->changes;
    f->log.v[f->changes % f->log.n] = (int32_t)(n - f->nodes.v);
    f->changes++;
}

void st_frag_set(st_frag *f, int32_t node, int32_t cpu_m, int64_t ram_mib, const int16_t *free_m)
{
    frag_node *n = &f->nodes.v[node];

    f->type_free_m[n->type] -= n->total_m;
    n->cpu_m = cpu_m;
    n->ram_mib = ram_mib;
    n->total_m = 0;
    for (int i = 0; i < n->gpus; i++) {
        ST_ASSERT(free_m[i] >= 0 && free_m[i] <= 1000);
        n->free_m[i] = free_m[i];
        n->total_m += free_m[i];
    }
    f->type_free_m[n->type] += n->total_m;
    note_change(f, n);
}

static void move(st_frag *f, const st_frag_ask *ask, const st_frag_spot *spot, int32_t sign)
{
    frag_node *n = &f->nodes.v[spot->node];

    for (int i = 0; i < n->gpus; i++) {
        int32_t now = n->free_m[i] - (spot->devs >> i & 1) * sign * ask->gpu_m;

        ST_ASSERT(now >= 0 && now <= 1000);
        n->free_m[i] = (int16_t)now;
    }
    n->total_m -= sign * ask->gpus * ask->gpu_m;
    f->type_free_m[n->type] -= sign * ask->gpus * ask->gpu_m;
    n->cpu_m -= sign * ask->cpu_m;
    n->ram_mib -= sign * ask->ram_mib;
    ST_ASSERT(n->cpu_m >= 0 && n->ram_mib >= 0);
    note_change(f, n);
}

void st_frag_take(st_frag *f, const st_frag_ask *ask, const st_frag_spot *spot)
{
    move(f, ask, spot, 1);
}

void st_frag_give(st_frag *f, const st_frag_ask *ask, const st_frag_spot *spot)
{
    move(f, ask, spot, -1);
}

int64_t st_frag_measure(const st_frag *f, int32_t node)
{
    return f->nodes.v[node].measure / ST_FRAG_ONE;
}

/* ---- classes ---- */

static bool same_ask(const st_frag_ask *a, const st_frag_ask *b)
{
    return a->cpu_m == b->cpu_m && a->ram_mib == b->ram_mib && a->gpus == b->gpus &&
           a->gpu_m == b->gpu_m && a->types == b->types;
}

/* A new class takes the place of the lightest when all are taken, and inherits its weight: what is
 * frequent is never crowded out by many that are rare. */
static int32_t new_class(st_frag *f, const st_frag_ask *ask, uint64_t key)
{
    int32_t at = f->nclasses;

    if (at < ST_FRAG_CLASSES) {
        f->nclasses++;
    } else {
        at = 0;
        for (int32_t i = 1; i < ST_FRAG_CLASSES; i++)
            if (f->classes[i].weight < f->classes[at].weight)
                at = i;
        st_idmap_del(f->by_key, f->classes[at].key);
        forget_scores(&f->classes[at]);
    }
    f->classes[at].ask = *ask;
    f->classes[at].key = key;
    st_idmap_put(f->by_key, key, at);
    return at;
}

static int32_t find_class(st_frag *f, const st_frag_ask *ask)
{
    uint64_t key = st_hash_u64((uint64_t)ask->cpu_m, (uint64_t)ask->ram_mib);
    int64_t at;

    key = st_hash_u64(key, (uint64_t)ask->gpus << 32 | (uint64_t)ask->gpu_m);
    key = st_hash_u64(key, ask->types);
    for (; st_idmap_get(f->by_key, key, &at); key++)
        if (same_ask(&f->classes[at].ask, ask))
            return (int32_t)at;
    return new_class(f, ask, key);
}

int32_t st_frag_learn(st_frag *f, const st_frag_ask *ask)
{
    int32_t cls = find_class(f, ask);

    ST_ASSERT(ask->gpus >= 0 && ask->gpu_m >= 0 && ask->gpu_m <= 1000);
    ST_ASSERT(ask->gpus == 0 ? ask->gpu_m == 0 : ask->gpu_m == 1000 || ask->gpus == 1);
    ST_ASSERT(ask->gpus == 0 || ask->gpu_m > 0);
    f->classes[cls].weight += 2;
    f->arrivals++;
    if (f->arrivals % ST_FRAG_HALVE == 0)
        for (int32_t i = 0; i < f->nclasses; i++)
            f->classes[i].weight /= 2;
    if (f->arrivals >= f->next_target) {
        st_frag_target_derive(f);
        f->next_target += ST_MIN(f->arrivals, ST_FRAG_HALVE / 2);
        f->next_price = f->arrivals;
    }
    if (f->target.n > 0 && f->arrivals >= f->next_price) {
        st_frag_price_derive(f);
        f->next_price = f->arrivals + ST_FRAG_PRICE_IN;
    }
    return cls;
}

/* ---- choosing ---- */

static void lower(frag_class *c, size_t block)
{
    const int16_t *score = c->score + block * ST_FRAG_BLOCK;
    int16_t low = ST_FRAG_NOWHERE;

    for (int i = 0; i < ST_FRAG_BLOCK; i++)
        low = ST_MIN(low, score[i]);
    c->low[block] = low;
}

/* All scores anew. Nodes nobody has used since they were added score as their kind. */
static void score_all(st_frag *f, frag_class *c)
{
    ST_CLEANUP(st_freep) int16_t *fresh = st_xcalloc(f->kinds.n + 1, sizeof(*fresh));
    uint16_t devs;

    if (c->nslots != f->node_of.n) {
        c->nslots = f->node_of.n;
        c->score = st_xreallocarray(c->score, c->nslots, sizeof(*c->score));
        c->low = st_xreallocarray(c->low, c->nslots / ST_FRAG_BLOCK, sizeof(*c->low));
    }
    for (size_t i = 0; i < f->kinds.n; i++)
        fresh[i] = st_frag_score(f, &f->kinds.v[i], &c->ask, &devs);
    for (size_t slot = 0; slot < c->nslots; slot++) {
        const frag_node *n = f->node_of.v[slot] < 0 ? NULL : &f->nodes.v[f->node_of.v[slot]];

        c->score[slot] = !n           ? (int16_t)ST_FRAG_NOWHERE
                         : n->touched ? st_frag_score(f, n, &c->ask, &devs)
                                      : fresh[n->kind];
    }
    for (size_t b = 0; b < c->nslots / ST_FRAG_BLOCK; b++)
        lower(c, b);
}

static void rescore(st_frag *f, frag_class *c, const frag_node *n)
{
    size_t block = (size_t)n->slot / ST_FRAG_BLOCK;
    uint16_t devs;
    int16_t had = c->score[n->slot], has = st_frag_score(f, n, &c->ask, &devs);

    c->score[n->slot] = has;
    if (has <= c->low[block])
        c->low[block] = has;
    else if (had == c->low[block])
        lower(c, block);
}

static void catch_up(st_frag *f, frag_class *c)
{
    if (c->epoch != f->epoch + 1 || c->nslots != f->node_of.n ||
        f->changes - c->seen > f->log.n / 2) {
        score_all(f, c);
    } else {
        for (uint64_t p = c->seen; p < f->changes; p++) {
            const frag_node *n = &f->nodes.v[f->log.v[p % f->log.n]];

            if (n->changed == p)
                rescore(f, c, n);
        }
    }
    c->seen = f->changes;
    c->epoch = f->epoch + 1;
}

static int32_t first_in_block(const st_frag *f, const frag_class *c, size_t block)
{
    size_t slot = block * ST_FRAG_BLOCK;

    while (c->score[slot] != c->low[block])
        slot++;
    return f->node_of.v[slot];
}

bool st_frag_choose(st_frag *f, int32_t cls, st_frag_spot *ret)
{
    frag_class *c = &f->classes[cls];
    int32_t price[ST_FRAG_TYPES_MAX], best = INT32_MAX, node = -1;
    uint16_t devs = 0;

    ST_ASSERT(cls >= 0 && cls < f->nclasses);
    catch_up(f, c);
    for (int32_t t = 0; t < f->ntypes; t++)
        price[t] = st_frag_price(f, &c->ask, t);
    for (size_t b = 0; b < f->block_type.n; b++) {
        int32_t total = c->low[b] + price[f->block_type.v[b]], first;

        if (c->low[b] == ST_FRAG_NOWHERE || total > best)
            continue;
        first = first_in_block(f, c, b);
        if (total < best || first < node) {
            best = total;
            node = first;
        }
    }
    if (node < 0)
        return false;
    st_frag_score(f, &f->nodes.v[node], &c->ask, &devs);
    *ret = (st_frag_spot){node, devs};
    return true;
}
