/*
 * FGD, BestFit and Random over an openb trace.
 *
 * FGD knows the whole list, as its authors' artefact does: its target workload is the list's
 * classes, most popular first up to 95 % of the pods. The increase of fragmentation depends only on
 * the node's state and the pod's class, so it is kept in a table of fixed size.
 */
#include "trace/fragmentation_peers.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"

#define CACHE    (1u << 20)
#define TARGET   0.95
#define CPU_MOST 128000.0 /* what BestFit measures by */
#define GPU_MOST 8000.0

typedef struct node {
    int64_t ram_mib;
    int32_t cpu_m, gpus, type;
    uint32_t version;
    int16_t free_m[ST_DEVS_MAX]; /* descending: which GPU it is does not matter here */
} node;

typedef struct popular {
    st_openb_ask ask;
    double share;
} popular;

typedef struct entry {
    uint64_t key; /* class, node and version, never 0 */
    int32_t score;
    int32_t gpu;
} entry;

struct st_frag_peer {
    const st_openb *trace;
    st_frag_policy policy;
    st_rng rng;
    ST_VEC(node) nodes;
    ST_VEC(popular) target;
    entry *cache;
};

void st_peer_free(st_frag_peer *o)
{
    if (!o)
        return;
    st_vec_free(&o->nodes);
    st_vec_free(&o->target);
    free(o->cache);
    free(o);
}

/* ---- FGD's target ---- */

static int compare_asks(const void *a, const void *b)
{
    const st_openb_ask *x = &((const popular *)a)->ask, *y = &((const popular *)b)->ask;

#define COMPARE(field)        \
    if (x->field != y->field) \
    return x->field < y->field ? -1 : 1
    COMPARE(cpu_m);
    COMPARE(gpus);
    COMPARE(gpu_m);
    COMPARE(types);
#undef COMPARE
    return 0;
}

static int compare_shares(const void *a, const void *b)
{
    const popular *x = a, *y = b;

    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    return compare_asks(a, b);
}

static void choose_target(st_frag_peer *o)
{
    size_t npods = o->trace->pods.n, kept = 0, n = 0;
    popular *all = st_xcalloc(npods, sizeof(*all));
    double sum = 0;

    for (size_t i = 0; i < npods; i++)
        all[i] = (popular){o->trace->pods.v[i].ask, 1};
    qsort(all, npods, sizeof(*all), compare_asks);
    for (size_t i = 0; i < npods; i++) {
        if (n > 0 && compare_asks(&all[n - 1], &all[i]) == 0)
            all[n - 1].share += 1;
        else
            all[n++] = all[i];
    }
    qsort(all, n, sizeof(*all), compare_shares);
    while (kept < n && sum < TARGET * (double)npods)
        sum += all[kept++].share;
    for (size_t i = 0; i < kept; i++) {
        all[i].share /= sum;
        st_vec_push(&o->target, all[i]);
    }
    free(all);
}

st_frag_peer *st_peer_new(const st_openb *trace, const st_openb_stream *stream,
                          st_frag_policy policy, uint64_t seed)
{
    st_frag_peer *o = st_xcalloc(1, sizeof(*o));

    o->trace = trace;
    o->policy = policy;
    st_rng_seed(&o->rng, ~seed);
    for (size_t i = 0; i < stream->nodes.n; i++) {
        const st_openb_node *from = &trace->nodes.v[stream->nodes.v[i]];
        node n = {from->ram_mib, from->cpu_m, from->gpus, from->type, 0, {0}};

        for (int g = 0; g < from->gpus; g++)
            n.free_m[g] = 1000;
        st_vec_push(&o->nodes, n);
    }
    if (policy == ST_FRAG_POLICY_fgd) {
        choose_target(o);
        o->cache = st_xcalloc(CACHE, sizeof(*o->cache));
    }
    return o;
}

/* ---- nodes ---- */

static bool fits(const node *n, const st_openb_ask *ask)
{
    int32_t enough = 0;

    if (n->cpu_m < ask->cpu_m || n->ram_mib < ask->ram_mib)
        return false;
    if (ask->gpus == 0)
        return true;
    for (int g = 0; g < n->gpus; g++)
        enough += n->free_m[g] >= ask->gpu_m;
    return enough >= ask->gpus && (ask->types >> n->type & 1);
}

/* The pod takes GPU `gpu` and those behind it. */
static void take(node *n, const st_openb_ask *ask, int32_t gpu)
{
    n->cpu_m -= ask->cpu_m;
    n->ram_mib -= ask->ram_mib;
    n->version++;
    for (int32_t g = gpu; g < gpu + ask->gpus; g++)
        n->free_m[g] = (int16_t)(n->free_m[g] - ask->gpu_m);
    for (int32_t i = 1; i < n->gpus; i++)
        for (int32_t k = i; k > 0 && n->free_m[k] > n->free_m[k - 1]; k--) {
            int16_t x = n->free_m[k];

            n->free_m[k] = n->free_m[k - 1];
            n->free_m[k - 1] = x;
        }
}

static int32_t free_gpu(const node *n)
{
    int32_t sum = 0;

    for (int g = 0; g < n->gpus; g++)
        sum += n->free_m[g];
    return sum;
}

/* The fullest GPU with room for a part; where whole ones are taken, the first. */
static int32_t fullest(const node *n, const st_openb_ask *ask)
{
    int32_t g = n->gpus - 1;

    if (ask->gpus != 1 || ask->gpu_m == 1000)
        return 0;
    while (g > 0 && n->free_m[g] < ask->gpu_m)
        g--;
    return g;
}

/* ---- scores: lower is better ---- */

static double fragmentation(const st_frag_peer *o, const node *n)
{
    int32_t total = free_gpu(n);
    double sum = 0;

    for (size_t i = 0; i < o->target.n; i++) {
        const st_openb_ask *m = &o->target.v[i].ask;
        int32_t enough = 0, small = 0;

        for (int g = 0; g < n->gpus; g++) {
            enough += n->free_m[g] >= m->gpu_m;
            small += n->free_m[g] >= m->gpu_m ? 0 : n->free_m[g];
        }
        if (m->gpus == 0 || !(m->types >> n->type & 1) || n->cpu_m < m->cpu_m || enough < m->gpus)
            small = total;
        sum += o->target.v[i].share * small;
    }
    return sum;
}

static int32_t score_fgd(const st_frag_peer *o, const node *n, const st_openb_ask *ask,
                         int32_t *ret_gpu)
{
    bool shares = ask->gpus == 1 && ask->gpu_m < 1000;
    double before = fragmentation(o, n);
    int32_t best = INT32_MAX;

    for (int32_t g = 0; g < (shares ? n->gpus : 1); g++) {
        node after = *n;
        int32_t score;

        if (shares && (n->free_m[g] < ask->gpu_m || (g > 0 && n->free_m[g] == n->free_m[g - 1])))
            continue;
        take(&after, ask, g);
        score = -(int32_t)(100 / (1 + exp((fragmentation(o, &after) - before) / 1000)));
        if (score <= best) {
            best = score;
            *ret_gpu = g;
        }
    }
    return best;
}

static int32_t score_cached(st_frag_peer *o, const node *n, const st_openb_ask *ask,
                            int32_t *ret_gpu)
{
    uint64_t key = st_hash_u64((uint64_t)(n - o->nodes.v), n->version);
    entry *e;

    key = st_hash_u64(key, (uint64_t)ask->cpu_m << 32 | (uint64_t)(ask->gpus * 1001 + ask->gpu_m));
    key = st_hash_u64(key, ask->types) | 1;
    e = &o->cache[key >> 44];
    if (e->key != key) {
        e->score = score_fgd(o, n, ask, &e->gpu);
        e->key = key;
    }
    *ret_gpu = e->gpu;
    return e->score;
}

static int32_t score_bestfit(const node *n, const st_openb_ask *ask, int32_t *ret_gpu)
{
    double spare =
        (n->cpu_m - ask->cpu_m) / CPU_MOST + (free_gpu(n) - ask->gpus * ask->gpu_m) / GPU_MOST;

    *ret_gpu = fullest(n, ask);
    return (int32_t)(spare * 500000);
}

static int32_t random_gpu(st_frag_peer *o, const node *n, const st_openb_ask *ask)
{
    int32_t enough = 0;

    if (ask->gpus != 1 || ask->gpu_m == 1000)
        return 0;
    while (enough < n->gpus && n->free_m[enough] >= ask->gpu_m)
        enough++;
    return (int32_t)st_rng_below(&o->rng, (uint64_t)enough);
}

bool st_peer_place(st_frag_peer *o, int32_t pod)
{
    const st_openb_ask *ask = &o->trace->pods.v[pod].ask;
    int32_t best = INT32_MAX, gpu = 0, at = -1, nfits = 0;

    for (int32_t i = 0; i < (int32_t)o->nodes.n; i++) {
        const node *n = &o->nodes.v[i];
        int32_t score = 0, g = 0;

        if (!fits(n, ask))
            continue;
        nfits++;
        if (o->policy == ST_FRAG_POLICY_fgd)
            score = score_cached(o, n, ask, &g);
        else if (o->policy == ST_FRAG_POLICY_bestfit)
            score = score_bestfit(n, ask, &g);
        else
            score = st_rng_below(&o->rng, (uint64_t)nfits) == 0 ? -nfits : 0;
        if (at < 0 || score < best) {
            best = score;
            at = i;
            gpu = g;
        }
    }
    if (at < 0)
        return false;
    if (o->policy == ST_FRAG_POLICY_random)
        gpu = random_gpu(o, &o->nodes.v[at], ask);
    take(&o->nodes.v[at], ask, gpu);
    return true;
}
