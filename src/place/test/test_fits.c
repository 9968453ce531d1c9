/*
 * Feasibility is exact: random small fleets, against a search that tries every way to put the
 * tasks somewhere and keeps books of its own.
 */
#include "base/macros.h"
#include "base/rng.h"
#include "base/testing.h"
#include "place/place.h"

#define NODES     4
#define DEVS      3
#define RESIDENTS 12
#define TASKS     5
#define CLIENTS   16

/* ---- books of our own ---------------------------------------------------------------- */

typedef struct client {
    int account, share_m, vram_mib;
    bool latency_critical;
} client;

typedef struct gpu {
    int level; /* -1: free */
    client clients[CLIENTS];
    int nclients;
    unsigned slices;
    int compute;
    char link[16]; /* NVLink domain */
} gpu;

typedef struct host {
    int pool, type, ndevs, cpu_m, ram_mib;
    char zone[4], block[12], rack[16]; /* paths; "" none */
    bool ready;
    gpu gpus[DEVS];
} host;

typedef struct book {
    host hosts[NODES];
    int n;
} book;

typedef struct spot {
    int node, dev, start;
    unsigned devs; /* at WHOLE */
} spot;

/* Accounts 1 and 2 (below 1) are one trust domain, 3 is another. */
static int domain_of(int account)
{
    return account == 3 ? 3 : 1;
}

#define VRAM 1000 /* of every type */

static int vram_of(const st_shape *s)
{
    return s->vram_mib > 0 ? (int)s->vram_mib : (int)(VRAM * s->share_m / 1000);
}

static unsigned slices_of(st_mig p, int start)
{
    static const int memory[ST_MIG_COUNT] = {1, 2, 2, 4, 4, 8};
    return ((1u << memory[p]) - 1) << (unsigned)start;
}

static bool start_ok(st_mig p, int start)
{
    static const char *const legal[ST_MIG_COUNT] = {"0123456", "0246", "024", "04", "0", "0"};
    return strchr(legal[p], '0' + start) != NULL;
}

static int compute_of(st_mig p)
{
    static const int compute[ST_MIG_COUNT] = {1, 1, 2, 3, 4, 7};
    return compute[p];
}

static bool gpu_takes(const gpu *g, const st_job *job, int start, int factor_m)
{
    const st_shape *s = &job->shape;
    if (g->level >= 0 && (g->level != (int)s->level || g->level == ST_LEVEL_WHOLE))
        return false;
    if (s->level == ST_LEVEL_WHOLE)
        return true;
    if (s->level == ST_LEVEL_MIG)
        return start_ok(s->profile, start) && !(g->slices & slices_of(s->profile, start)) &&
               g->compute + compute_of(s->profile) <= 7;
    int share = (int)s->share_m, vram = vram_of(s);
    for (int i = 0; i < g->nclients; i++) {
        const client *c = &g->clients[i];
        share += c->share_m;
        vram += c->vram_mib;
        if (s->level == ST_LEVEL_MPS && domain_of(c->account) != domain_of(job->account))
            return false;
        if ((c->latency_critical || job->latency_critical) && c->account != job->account)
            return false;
        /* One latency-critical client wants them all from one account. */
        for (int k = 0; k < g->nclients; k++)
            if (g->clients[k].latency_critical && c->account != job->account)
                return false;
    }
    return share <= (s->level == ST_LEVEL_MPS ? 1000 : factor_m) && vram <= VRAM &&
           g->nclients < CLIENTS;
}

static void gpu_put(gpu *g, const st_job *job, int start)
{
    const st_shape *s = &job->shape;
    g->level = (int)s->level;
    if (s->level == ST_LEVEL_MIG) {
        g->slices |= slices_of(s->profile, start);
        g->compute += compute_of(s->profile);
    } else if (s->level != ST_LEVEL_WHOLE) {
        g->clients[g->nclients++] = (client){.account = job->account,
                                             .share_m = (int)s->share_m,
                                             .vram_mib = vram_of(s),
                                             .latency_critical = job->latency_critical};
    }
}

static const int factor_of_pool[2] = {2000, 1000};
static const unsigned levels_of_pool[2] = {0xf, 1u << ST_LEVEL_WHOLE | 1u << ST_LEVEL_MIG};

static bool host_takes(const host *h, const st_job *job, int type)
{
    if (!h->ready || (job->pool >= 0 && h->pool != job->pool))
        return false;
    if (h->cpu_m < job->shape.cpu_m || h->ram_mib < job->shape.ram_mib)
        return false;
    return job->shape.gpus == 0 ||
           (h->type == type && (levels_of_pool[h->pool] >> job->shape.level & 1));
}

/* Put one task there if it goes, by the rules; the caller keeps the copy to go back to. */
static bool book_put(book *b, const st_job *job, int type, const spot *at)
{
    host *h = &b->hosts[at->node];
    if (!host_takes(h, job, type))
        return false;
    if (job->shape.gpus > 0) {
        unsigned devs = job->shape.level == ST_LEVEL_WHOLE ? at->devs : 1u << at->dev;
        if (__builtin_popcount(devs) != job->shape.gpus || devs >> h->ndevs)
            return false;
        for (int d = 0; d < h->ndevs; d++)
            if ((devs >> d & 1) && !gpu_takes(&h->gpus[d], job, at->start, factor_of_pool[h->pool]))
                return false;
        for (int d = 0; d < h->ndevs; d++)
            if (devs >> d & 1)
                gpu_put(&h->gpus[d], job, at->start);
    }
    h->cpu_m -= (int)job->shape.cpu_m;
    h->ram_mib -= (int)job->shape.ram_mib;
    return true;
}

/* ---- every way ----------------------------------------------------------------------- */

/* Where the gang may go: per host the devices it may use, 0 none; bit 31 allows the host. */
typedef struct scope {
    unsigned devs[NODES];
} scope;

#define ALLOWED (1u << 31)

/* Tasks are alike, so spots are taken in rising order; `from` is where the last one went. */
static bool search(const book *b, const st_job *job, int type, const scope *s, int left,
                   unsigned from)
{
    if (left == 0)
        return true;
    for (unsigned at = from; at < NODES * 64; at++) {
        spot p = {.node = (int)(at / 64), .dev = (int)(at / 8 % 8), .start = (int)(at % 8)};
        unsigned in = p.node < b->n ? s->devs[p.node] : 0;
        if (!(in & ALLOWED))
            continue;
        in &= ~ALLOWED;
        unsigned devs = 1u << p.dev;
        if (job->shape.gpus == 0) {
            devs = 0;
            if (at % 64)
                continue;
        } else if (job->shape.level == ST_LEVEL_WHOLE) {
            devs = p.devs = at % 64; /* a set of devices */
        } else if (job->shape.level != ST_LEVEL_MIG && p.start > 0) {
            continue;
        }
        if (devs & ~in)
            continue;
        book next = *b;
        if (book_put(&next, job, type, &p) && search(&next, job, type, s, left - 1, at))
            return true;
    }
    return false;
}

static const char *path_of(const host *h, st_topo level)
{
    return level == ST_TOPO_ZONE ? h->zone : level == ST_TOPO_BLOCK ? h->block : h->rack;
}

static bool fits_scope(const book *b, const st_job *job, int type, const scope *s)
{
    return search(b, job, type, s, job->tasks, 0);
}

static bool fits_level(const book *b, const st_job *job, int type, st_topo level);

/* Whether the gang goes into one domain of the level, or into a tighter one, named or not:
 * one node is inside any, and so is one rack that stands in no block. */
static bool fits_within(const book *b, const st_job *job, int type, st_topo level)
{
    if (level == ST_TOPO_NVLINK)
        return fits_level(b, job, type, level);
    for (int l = (int)level; l <= ST_TOPO_NODE; l++)
        if (fits_level(b, job, type, (st_topo)l))
            return true;
    return false;
}

static bool fits_level(const book *b, const st_job *job, int type, st_topo level)
{
    scope s;
    if (level == ST_TOPO_NONE) {
        for (int i = 0; i < NODES; i++)
            s.devs[i] = ALLOWED | 0xff;
        return fits_scope(b, job, type, &s);
    }
    for (int i = 0; i < b->n; i++) {
        s = (scope){0};
        if (level == ST_TOPO_NVLINK) {
            for (int d = 0; d < b->hosts[i].ndevs; d++) {
                s = (scope){0};
                for (int k = 0; k < b->n; k++)
                    for (int e = 0; e < b->hosts[k].ndevs; e++)
                        if (strcmp(b->hosts[k].gpus[e].link, b->hosts[i].gpus[d].link) == 0)
                            s.devs[k] |= ALLOWED | 1u << e;
                if (fits_scope(b, job, type, &s))
                    return true;
            }
            continue;
        }
        const char *path = level == ST_TOPO_NODE ? "" : path_of(&b->hosts[i], level);
        for (int k = 0; k < b->n; k++)
            if (*path ? strcmp(path_of(&b->hosts[k], level), path) == 0
                      : level == ST_TOPO_NODE && k == i)
                s.devs[k] = ALLOWED | 0xff;
        if (fits_scope(b, job, type, &s))
            return true;
    }
    return false;
}

/* ---- random worlds ------------------------------------------------------------------- */

typedef struct world {
    st_fleet *fleet;
    st_tree *tree;
    st_placer *placer;
    book book;
    st_job residents[RESIDENTS];
    st_grant grants[RESIDENTS];
    int nresidents;
} world;

static void draw_node(st_rng *r, world *w, int i)
{
    static const char *const names[NODES] = {"n0", "n1", "n2", "n3"};
    static const char *const places[] = {"x", "x", "y", NULL};
    st_err err = {0};
    host *h = &w->book.hosts[i];
    *h = (host){.pool = st_rng_chance(r, 1, 6),
                .type = st_rng_chance(r, 1, 8),
                .ndevs = (int)st_rng_range(r, 0, DEVS),
                .cpu_m = (int)st_rng_range(r, 2, 12),
                .ram_mib = (int)st_rng_range(r, 2, 12)};
    st_node_spec spec = {.name = names[i],
                         .pool = h->pool,
                         .type = h->type,
                         .ndevs = h->ndevs,
                         .cpu_m = h->cpu_m,
                         .ram_mib = h->ram_mib,
                         .nvlink_size = (int)st_rng_range(r, 0, 2),
                         .nvlink_domain = st_rng_chance(r, 1, 3) ? "span" : NULL,
                         .zone = places[st_rng_below(r, 4)],
                         .block = places[st_rng_below(r, 4)],
                         .rack = places[st_rng_below(r, 4)]};
    const char *zone = spec.zone ? spec.zone : "", *block = spec.block ? spec.block : "";
    snprintf(h->zone, sizeof h->zone, "%s", zone);
    if (spec.block)
        snprintf(h->block, sizeof h->block, "%s:%s", zone, block);
    if (spec.rack)
        snprintf(h->rack, sizeof h->rack, "%s:%s:%s", zone, block, spec.rack);
    for (int d = 0; d < h->ndevs; d++) {
        h->gpus[d].level = -1;
        int size = spec.nvlink_size > 0 ? spec.nvlink_size : h->ndevs;
        if (spec.nvlink_domain)
            snprintf(h->gpus[d].link, sizeof h->gpus[d].link, "span");
        else
            snprintf(h->gpus[d].link, sizeof h->gpus[d].link, "%d/%d", i, d / size);
    }
    assert_ok(st_fleet_add_node(w->fleet, &spec, NULL, &err));
    h->ready = st_rng_chance(r, 7, 8);
}

static st_job draw_job(st_rng *r, int tasks)
{
    st_job job = {.account = (int32_t)st_rng_range(r, 1, 3), .tasks = tasks, .pool = -1};
    st_shape *s = &job.shape;
    s->level = (st_level)st_rng_below(r, ST_LEVEL_COUNT);
    s->gpus = s->level == ST_LEVEL_WHOLE ? (int)st_rng_range(r, 0, 2) : 1;
    s->profile = (st_mig)st_rng_below(r, ST_MIG_COUNT);
    s->share_m = 100 * st_rng_range(r, 1, 10);
    s->vram_mib = st_rng_chance(r, 1, 2) ? 100 * st_rng_range(r, 1, 4) : 0;
    s->cpu_m = st_rng_range(r, s->gpus == 0, 2);
    s->ram_mib = st_rng_range(r, 0, 2);
    s->types = 3;
    job.latency_critical = st_rng_chance(r, 1, 5);
    if (st_rng_chance(r, 1, 5))
        job.pool = (int32_t)st_rng_below(r, 2);
    return job;
}

/* Somebody to be in the way, where the books allow it. */
static void draw_resident(st_rng *r, world *w)
{
    st_job *job = &w->residents[w->nresidents];
    st_grant *grant = &w->grants[w->nresidents];
    *job = draw_job(r, 1);
    job->state = ST_JOB_RUNNING;
    job->grants = grant;
    spot p = {.node = (int)st_rng_below(r, (uint64_t)w->book.n),
              .dev = (int)st_rng_below(r, DEVS),
              .start = (int)st_rng_below(r, 8),
              .devs = (unsigned)st_rng_below(r, 1u << DEVS)};
    host *h = &w->book.hosts[p.node];
    if (p.dev >= h->ndevs)
        return;
    bool ready = h->ready;
    h->ready = true; /* it came while the node was up */
    bool ok = book_put(&w->book, job, h->type, &p);
    h->ready = ready;
    if (!ok)
        return;
    bool whole = job->shape.level == ST_LEVEL_WHOLE;
    unsigned devs = job->shape.gpus == 0 ? 0 : whole ? p.devs : 1u << p.dev;
    *grant = (st_grant){.node = p.node,
                        .devs = (uint16_t)devs,
                        .mig_start = (int8_t)(job->shape.level == ST_LEVEL_MIG ? p.start : -1)};
    w->nresidents++;
    st_node_add(w->fleet, w->tree, job, 0);
}

static void begin(st_rng *r, world *w)
{
    st_err err = {0};
    memset(w, 0, sizeof *w);
    w->fleet = st_fleet_new();
    w->tree = st_tree_new();
    static const char *const accounts[][2] = {{"a", NULL}, {"a1", "a"}, {"b", NULL}};
    for (size_t i = 0; i < ST_ARRAY_LEN(accounts); i++) {
        st_account_spec spec;
        st_account_spec_init(&spec);
        spec.name = accounts[i][0];
        spec.parent = accounts[i][1];
        assert_ok(st_tree_set(w->tree, &spec, NULL, &err));
    }
    assert_ok(st_fleet_add_type(w->fleet, "t0", VRAM, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_type(w->fleet, "t1", VRAM, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p0", levels_of_pool[0], factor_of_pool[0], &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p1", levels_of_pool[1], factor_of_pool[1], &err));
    w->placer = st_placer_new(w->fleet, w->tree);
    w->book.n = (int)st_rng_range(r, 1, NODES);
    for (int i = 0; i < w->book.n; i++)
        draw_node(r, w, i);
    for (int k = (int)st_rng_below(r, 30); k > 0 && w->nresidents < RESIDENTS; k--)
        draw_resident(r, w);
    for (int i = 0; i < w->book.n; i++) {
        w->fleet->nodes.v[i]->state = w->book.hosts[i].ready ? ST_NODE_READY : ST_NODE_DRAINING;
        st_node_refresh(w->fleet, w->tree, w->fleet->nodes.v[i]);
    }
}

static void end(world *w)
{
    st_placer_free(w->placer);
    st_fleet_free(w->fleet);
    st_tree_free(w->tree);
}

/* ---- what must hold ------------------------------------------------------------------ */

/* All tasks go by the books, one after the other. */
static void check_legal(const world *w, const st_job *job, int type, const st_grant *grants)
{
    book b = w->book;
    for (int t = 0; t < job->tasks; t++) {
        assert_in_range(grants[t].node, 0, b.n - 1);
        spot p = {.node = grants[t].node,
                  .dev = grants[t].devs ? __builtin_ctz(grants[t].devs) : 0,
                  .start = grants[t].mig_start,
                  .devs = grants[t].devs};
        assert_int_equal(__builtin_popcount(grants[t].devs), job->shape.gpus);
        if (!book_put(&b, job, type, &p))
            fail_msg("task %d does not go on node %d devices %x start %d", t, p.node, p.devs,
                     p.start);
    }
}

static bool together_at(const world *w, const st_job *job, int level, const st_grant *grants)
{
    const host *first = &w->book.hosts[grants[0].node];
    for (int t = 0; t < job->tasks; t++) {
        const host *h = &w->book.hosts[grants[t].node];
        if (level == ST_TOPO_NVLINK) {
            const char *link = first->gpus[__builtin_ctz(grants[0].devs)].link;
            for (int d = 0; d < h->ndevs; d++)
                if ((grants[t].devs >> d & 1) && strcmp(h->gpus[d].link, link) != 0)
                    return false;
        } else if (level == ST_TOPO_NODE) {
            if (h != first)
                return false;
        } else if (level != ST_TOPO_NONE) {
            const char *path = path_of(h, (st_topo)level);
            if (!*path || strcmp(path, path_of(first, (st_topo)level)) != 0)
                return false;
        }
    }
    return true;
}

/* In one domain of the level or of a tighter one. */
static bool together(const world *w, const st_job *job, int level, const st_grant *grants)
{
    bool ok = together_at(w, job, level, grants);
    for (int l = level + 1; l <= ST_TOPO_NODE && level != ST_TOPO_NVLINK; l++)
        ok |= together_at(w, job, l, grants);
    return ok;
}

static void test_against_every_way(void **state)
{
    (void)state;
    int yes = 0, no = 0, apart = 0;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        st_rng r;
        world w;
        st_rng_seed(&r, seed);
        begin(&r, &w);
        st_job job = draw_job(&r, (int)st_rng_range(&r, 1, TASKS));
        if (job.shape.level == ST_LEVEL_MIG)
            job.tasks = ST_MIN(job.tasks, 3); /* so many ways */
        job.topo = (st_topo)st_rng_below(&r, ST_TOPO_COUNT);
        if (job.shape.gpus == 0 && job.topo == ST_TOPO_NVLINK)
            job.topo = ST_TOPO_NODE;
        job.topo_required = job.topo != ST_TOPO_NONE && st_rng_chance(&r, 1, 2);
        int type = job.shape.gpus == 0 ? -1 : st_rng_chance(&r, 1, 5);
        st_grant grants[TASKS];
        st_ask ask = {.job = &job, .type = type};
        bool want = fits_within(&w.book, &job, type, job.topo_required ? job.topo : ST_TOPO_NONE);
        if (st_place_fits(w.placer, &ask) != want)
            fail_msg("seed %d: it %s", (int)seed, want ? "would fit" : "does not fit");
        assert_int_equal(st_place_gang(w.placer, &ask, grants), want);
        yes += want;
        no += !want;
        if (want) {
            check_legal(&w, &job, type, grants);
            if (job.topo_required)
                assert_true(together(&w, &job, job.topo, grants));
            apart += !together(&w, &job, ST_TOPO_NODE, grants);
        }
        end(&w);
    }
    assert_true(yes > 1000 && no > 1000 && apart > 200); /* all sides were met */
}

/* Without a wish, nothing tighter than what was chosen would have done. */
static void test_nothing_tighter(void **state)
{
    (void)state;
    int met[ST_TOPO_COUNT] = {0};
    for (uint64_t seed = 1; seed <= 10000; seed++) {
        st_rng r;
        world w;
        st_rng_seed(&r, seed + 100000);
        begin(&r, &w);
        st_job job = draw_job(&r, (int)st_rng_range(&r, 2, TASKS));
        if (job.shape.level == ST_LEVEL_MIG)
            job.tasks = 2;
        int type = job.shape.gpus == 0 ? -1 : 0;
        st_grant grants[TASKS];
        st_ask ask = {.job = &job, .type = type};
        if (st_place_gang(w.placer, &ask, grants)) {
            int level = ST_TOPO_NODE;
            while (level > ST_TOPO_NONE && !fits_level(&w.book, &job, type, (st_topo)level))
                level--;
            check_legal(&w, &job, type, grants);
            if (!together(&w, &job, level, grants))
                fail_msg("seed %d: it fits one %s", (int)seed, st_topo_name((st_topo)level));
            met[level]++;
        }
        end(&w);
    }
    assert_true(met[ST_TOPO_NODE] > 100);
    assert_true(met[ST_TOPO_RACK] > 10 && met[ST_TOPO_BLOCK] > 10 && met[ST_TOPO_ZONE] > 10);
}

/* More free is never worse: take a resident away and what fitted still fits. */
static void test_monotone(void **state)
{
    (void)state;
    int gained = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        st_rng r;
        world w;
        st_rng_seed(&r, seed + 200000);
        begin(&r, &w);
        st_job job = draw_job(&r, (int)st_rng_range(&r, 1, TASKS));
        job.topo = (st_topo)st_rng_below(&r, job.shape.gpus ? ST_TOPO_COUNT : ST_TOPO_NVLINK);
        job.topo_required = st_rng_chance(&r, 1, 2);
        st_ask ask = {.job = &job, .type = job.shape.gpus == 0 ? -1 : 0};
        bool before = st_place_fits(w.placer, &ask);
        while (w.nresidents > 0) {
            w.nresidents--;
            st_node_remove(w.fleet, w.tree, &w.residents[w.nresidents], 0);
            bool after = st_place_fits(w.placer, &ask);
            if (before && !after)
                fail_msg("seed %d: it no longer fits with one less there", (int)seed);
            gained += after && !before;
            before = after;
        }
        end(&w);
    }
    assert_true(gained > 200);
}

/* Something happens to the fleet: a resident goes or comes, a node changes its state. */
static void shake(st_rng *r, world *w)
{
    int32_t n = (int32_t)st_rng_below(r, (uint64_t)w->book.n);
    st_node *node = w->fleet->nodes.v[n];
    if (st_rng_chance(r, 1, 4)) {
        node->state = node->state == ST_NODE_READY ? ST_NODE_FAILED : ST_NODE_READY;
        w->book.hosts[n].ready = node->state == ST_NODE_READY;
        st_node_refresh(w->fleet, w->tree, node);
    } else if (w->nresidents < RESIDENTS && st_rng_chance(r, 1, 2)) {
        draw_resident(r, w);
    } else if (w->nresidents > 0) {
        w->nresidents--; /* its place in the books stays taken, which only means less is drawn */
        st_node_remove(w->fleet, w->tree, &w->residents[w->nresidents], 0);
    }
}

/* A placer that has seen everything happen answers as one that has just come. */
static void test_nothing_is_stale(void **state)
{
    (void)state;
    int yes = 0, no = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        st_rng r;
        world w;
        st_rng_seed(&r, seed + 300000);
        begin(&r, &w);
        for (int round = 0; round < 200; round++) {
            shake(&r, &w);
            st_placer *fresh = st_placer_new(w.fleet, w.tree);
            for (int k = 0; k < 3; k++) {
                st_job job = draw_job(&r, (int)st_rng_range(&r, 1, TASKS));
                job.topo = (st_topo)st_rng_below(&r, job.shape.gpus ? ST_TOPO_COUNT : ST_TOPO_NODE);
                job.topo_required = st_rng_chance(&r, 1, 3);
                st_ask ask = {.job = &job, .type = job.shape.gpus == 0 ? -1 : 0};
                st_grant a[TASKS], b[TASKS];
                bool old = st_place_gang(w.placer, &ask, a);
                assert_int_equal(old, st_place_gang(fresh, &ask, b));
                for (int t = 0; old && t < job.tasks; t++) {
                    assert_int_equal(a[t].node, b[t].node);
                    assert_int_equal(a[t].devs, b[t].devs);
                    assert_int_equal(a[t].mig_start, b[t].mig_start);
                }
                yes += old;
                no += !old;
            }
            st_placer_free(fresh);
        }
        end(&w);
    }
    assert_true(yes > 1000 && no > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_every_way),
        cmocka_unit_test(test_nothing_tighter),
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_nothing_is_stale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
