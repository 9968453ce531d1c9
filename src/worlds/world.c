/*
 * Worlds from a seed: a policy with short times, a small fleet with everything in it that
 * fleets have, and a tree of accounts. Small, because small worlds fill up, and a full fleet
 * is where the rules meet.
 */
#include "worlds/worlds.h"

#include "base/macros.h"
#include "share/divide.h"

static int64_t pick(st_rng *rng, const int64_t *of, size_t n)
{
    return of[st_rng_below(rng, n)];
}

#define PICK(rng, ...)                          \
    pick((rng), (const int64_t[]){__VA_ARGS__}, \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

void st_fuzz_policy(st_rng *rng, st_policy *ret)
{
    *ret = st_policy_default();
    ret->notice_ms = PICK(rng, 0, 0, 1000, 5000, 30000);
    ret->grace_ms = PICK(rng, 0, 1000, 10000, 60000);
    ret->min_run_ms = PICK(rng, 0, 0, 5000, 60000, 300000);
    ret->cooldown_ms = PICK(rng, 0, 0, 10000, 120000, 600000);
    ret->pause_limit_ms = PICK(rng, 0, 10000, 120000, 1800000);
    ret->half_life_ms = PICK(rng, 3600000, 21600000, 604800000);
    ret->bound_m = PICK(rng, 1000, 1500, 2000, 2000, 4000);
    ret->patience_ms = PICK(rng, 0, 60000, 600000, 3600000, 3600000);
    ret->reservations = PICK(rng, 0, 1, 2, 4);
    ret->rebalance = PICK(rng, 0, 1, 1);
    ret->counts = (int)PICK(rng, ST_COUNTS_BORROWED, ST_COUNTS_TOTAL);
    ret->order = (int)PICK(rng, ST_ORDER_AGE, ST_ORDER_SHORTEST, ST_ORDER_ATTAINED);
    ret->swap = st_rng_chance(rng, 1, 3);
    ret->forecast = st_rng_chance(rng, 3, 4);
    ret->lookahead = PICK(rng, 0, 0, 0, 0, 1, 3, 8);
    ret->overstay_ms = PICK(rng, 0, 0, 10000, 60000, 3600000);
    ret->as_if_alone = st_rng_chance(rng, 1, 3);
    st_rng aside = *rng; /* what came later leaves the worlds of seeds as they were */
    ret->defrag = st_rng_chance(&aside, 1, 3);
    ret->defrag_horizon_ms = PICK(&aside, 1000, 10000, 600000, 14400000);
    ret->defrag_restore_ms = PICK(&aside, 0, 10000, 60000);
    ret->urgent = st_rng_chance(&aside, 3, 4);
    ret->ageing_ms = PICK(&aside, 0, 60000, 600000, 43200000);
    ret->claim_effort = st_rng_chance(&aside, 1, 8) ? PICK(&aside, 1, 4, 16) : 200000;
    if (ret->defrag) { /* moves are rare enough without many who may not move */
        ret->grace_ms = PICK(&aside, 1000, 10000, 60000);
        ret->min_run_ms = 0;
    }
    ret->suspect_ms = PICK(&aside, 1000, 10000, 60000);
    ret->retest_ms = PICK(&aside, 1000, 10000, 60000);
    ret->breaker_nodes = PICK(&aside, 1, 1, 2, 3);
    ret->breaker_share_m = PICK(&aside, 0, 100, 500);
    ret->breaker_window_ms = PICK(&aside, 60000, 600000, 3600000);
    ret->unavailable_share_m = PICK(&aside, 0, 500, 1000);
    ret->incident_quiet_ms = PICK(&aside, 1000, 60000, 600000);
    ret->grace_limit_ms = st_rng_chance(&aside, 1, 4) ? PICK(&aside, 30000, 120000, 300000) : 0;
    ret->fill_m = PICK(&aside, 0, 500, 750, 1000);
}

/* ---- the fleet ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    int64_t vram_mib;
    st_board board;
} type_rows[] = {
    {"l4", 24576, ST_BOARD_NONE},
    {"a100", 40960, ST_BOARD_A100_40},
    {"h100", 81920, ST_BOARD_H100_80},
    {"h200", 144384, ST_BOARD_H200_141},
};

static int play(st_fuzz_gen *gen, st_err *err)
{
    size_t n = gen->tape->list.n;
    gen->tape->list.v[n - 1].setup = true;
    return st_fuzz_run_moment(gen->run, n - 1, n, err);
}

static int add_types(st_fuzz_gen *gen, st_err *err)
{
    int rc = 0;
    gen->ntypes = (int)st_rng_range(&gen->rng, 1, gen->stream ? 1 : ST_ARRAY_LEN(type_rows));
    size_t first = st_rng_below(&gen->rng, ST_ARRAY_LEN(type_rows));
    for (int i = 0; rc == 0 && i < gen->ntypes; i++) {
        size_t k = (first + (size_t)i) % ST_ARRAY_LEN(type_rows);
        st_event *ev = &st_fuzz_record(gen, ST_EV_TYPE, false)->event;
        ev->u.type.name = type_rows[k].name;
        ev->u.type.vram_mib = type_rows[k].vram_mib;
        ev->u.type.board = type_rows[k].board;
        rc = play(gen, err);
    }
    gen->npools = (int)st_rng_range(&gen->rng, 1, gen->stream ? 1 : 3);
    for (int i = 0; rc == 0 && i < gen->npools; i++) {
        st_event *ev = &st_fuzz_record(gen, ST_EV_POOL, false)->event;
        ev->u.pool.name = st_tape_text(gen->tape, "p%d", i);
        ev->u.pool.levels = i == 0 ? 15 : (uint32_t)st_rng_range(&gen->rng, 1, 15);
        ev->u.pool.oversub_m = PICK(&gen->rng, 1000, 2000, 2500, 4000);
        ev->u.pool.rules.allow = (uint32_t)st_rng_below(&gen->rng, 1u << ST_WORLD_ALLOWS);
        st_fuzz_book_pool(gen, &ev->u.pool.rules);
        rc = play(gen, err);
    }
    return rc;
}

static void random_place(st_fuzz_gen *gen, st_node_spec *node)
{
    st_rng *rng = &gen->rng;
    if (st_rng_chance(rng, 4, 5))
        node->zone = st_tape_text(gen->tape, "z%d", (int)st_rng_below(rng, 2));
    if (st_rng_chance(rng, 4, 5))
        node->block = st_tape_text(gen->tape, "b%d", (int)st_rng_below(rng, 2));
    if (st_rng_chance(rng, 4, 5))
        node->rack = st_tape_text(gen->tape, "r%d", (int)st_rng_below(rng, 3));
    node->nvlink_size = (int)PICK(rng, 0, 0, 1, 2, 4);
    if (st_rng_chance(rng, 1, 8))
        node->nvlink_domain = st_tape_text(gen->tape, "nv%d", (int)st_rng_below(rng, 2));
}

static int add_node(st_fuzz_gen *gen, int i, int same_devs, st_err *err)
{
    st_rng *rng = &gen->rng;
    st_node_spec *node = &st_fuzz_record(gen, ST_EV_NODE, false)->event.u.node;
    node->name = st_tape_text(gen->tape, "n%d", i);
    node->pool = (int32_t)st_rng_below(rng, (uint64_t)gen->npools);
    node->type = (int32_t)st_rng_below(rng, (uint64_t)gen->ntypes);
    node->ndevs = same_devs ? same_devs : (int)PICK(rng, 0, 1, 2, 2, 4, 4, 8);
    if (node->ndevs == 0)
        node->type = -1;
    bool scarce = gen->tight || (!gen->stream && st_rng_chance(rng, 1, 3));
    int64_t per = ST_MAX(node->ndevs, 1);
    node->cpu_m = per * 1000 * (scarce ? st_rng_range(rng, 1, 3) : st_rng_range(rng, 8, 16));
    node->ram_mib = per * 1024 * (scarce ? st_rng_range(rng, 2, 8) : st_rng_range(rng, 32, 128));
    random_place(gen, node);
    return play(gen, err);
}

static int add_nodes(st_fuzz_gen *gen, st_err *err)
{
    st_rng *rng = &gen->rng;
    int same = gen->stream ? (int)PICK(rng, 2, 4) : 0;
    int most = (int)(gen->busy ? PICK(rng, 3, 4, 6) : PICK(rng, 3, 6, 12, 24));
    gen->nnodes = (int)st_rng_range(rng, gen->busy ? 2 : 1, most);
    if (gen->stream)
        gen->nnodes = (int)st_rng_range(rng, 2, 4);
    int rc = 0;
    for (int i = 0; rc == 0 && i < gen->nnodes; i++)
        rc = add_node(gen, i, same, err);
    return rc;
}

/* Some fleets have agents, whose word must be waited for. */
static int add_agents(st_fuzz_gen *gen, st_err *err)
{
    st_rng aside = gen->rng; /* what came later leaves the worlds of seeds as they were */
    int rc = 0;
    (void)st_rng_u64(&aside);
    bool some = st_rng_chance(&aside, 1, 2), all = st_rng_chance(&aside, 1, 2);
    st_rng later = aside;
    gen->lives = st_rng_chance(&later, 1, 3);
    for (int i = 0; some && rc == 0 && i < gen->nnodes; i++) {
        if (!all && st_rng_chance(&aside, 1, 2))
            continue;
        st_tape_entry *entry = st_fuzz_record(gen, ST_EV_AGENT, false);
        entry->node = st_tape_text(gen->tape, "n%d", i);
        entry->event.u.node_state.tests = gen->lives;
        rc = st_fuzz_run_moment(gen->run, gen->tape->list.n - 1, gen->tape->list.n, err);
    }
    return rc;
}

/* ---- the tree ----------------------------------------------------------------------- */

static int64_t some_gpu_m(st_fuzz_gen *gen, int64_t most_m)
{
    if (most_m <= 0)
        return 0;
    int64_t v = st_rng_range(&gen->rng, 0, most_m);
    return st_rng_chance(&gen->rng, 3, 4) ? v / 1000 * 1000 : v;
}

static void random_guarantee(st_fuzz_gen *gen, const st_account_spec *spec, st_quota *g)
{
    st_rng *rng = &gen->rng;
    const st_core *core = st_fuzz_run_core(gen->run);
    const st_tree *tree = st_core_tree(core);
    int32_t parent = spec->parent ? st_tree_find(tree, spec->parent) : ST_ROOT;
    int64_t have_m = tree->capacity.gpu_m;
    if (parent > ST_ROOT)
        have_m = ST_MAX(tree->accounts.v[parent]->guarantee.gpu_m, 0);
    /* Mostly a part that leaves something for siblings; now and then too much. */
    int64_t most_m = have_m / (parent > ST_ROOT ? 2 : PICK(rng, 1, 2, 3));
    if (st_rng_chance(rng, 2, 3))
        g->gpu_m = some_gpu_m(gen, most_m);
    if (st_rng_chance(rng, 1, 4)) {
        int t = (int)st_rng_below(rng, (uint64_t)gen->ntypes);
        int64_t typed = ST_MIN(g->gpu_m == ST_UNSET ? most_m : g->gpu_m, tree->capacity.type_m[t]);
        g->type_m[t] = some_gpu_m(gen, typed);
    }
    if (st_rng_chance(rng, gen->tight ? 4 : 1, 6))
        g->cpu_m = some_gpu_m(gen, tree->capacity.cpu_m / 3);
    if (st_rng_chance(rng, gen->tight ? 4 : 1, 8))
        g->ram_mib = some_gpu_m(gen, tree->capacity.ram_mib / 3);
}

static void random_max(st_fuzz_gen *gen, st_account_spec *spec)
{
    st_rng *rng = &gen->rng;
    const st_use *cap = &st_core_tree(st_fuzz_run_core(gen->run))->capacity;
    if (st_rng_chance(rng, 1, 3))
        spec->max.gpu_m =
            ST_MAX(spec->guarantee.gpu_m, 0) + some_gpu_m(gen, cap->gpu_m) + PICK(rng, 0, 1000);
    if (st_rng_chance(rng, 1, 8)) {
        int t = (int)st_rng_below(rng, (uint64_t)gen->ntypes);
        spec->max.type_m[t] =
            ST_MAX(spec->guarantee.type_m[t], 0) + some_gpu_m(gen, cap->type_m[t]);
    }
    if (st_rng_chance(rng, 1, 8))
        spec->max.cpu_m = ST_MAX(spec->guarantee.cpu_m, 0) + some_gpu_m(gen, cap->cpu_m);
    if (st_rng_chance(rng, 1, 8))
        spec->max.ram_mib = ST_MAX(spec->guarantee.ram_mib, 0) + some_gpu_m(gen, cap->ram_mib);
}

static void random_limits(st_fuzz_gen *gen, st_limits *limits)
{
    st_rng *rng = &gen->rng;
    if (st_rng_chance(rng, 1, 2))
        limits->gpu_m = 1000 * st_rng_range(rng, 1, 12);
    if (st_rng_chance(rng, 1, 6))
        limits->vram_mib = 1024 * st_rng_range(rng, 20, 400);
    if (st_rng_chance(rng, 1, 6))
        limits->share_m = 100 * st_rng_range(rng, 2, 40);
    if (st_rng_chance(rng, 1, 6))
        limits->run_ms = 60000 * st_rng_range(rng, 10, 200);
}

void st_fuzz_random_account(st_fuzz_gen *gen, st_account_spec *spec, bool change)
{
    st_rng *rng = &gen->rng;
    random_guarantee(gen, spec, &spec->guarantee);
    random_max(gen, spec);
    spec->weight_m = PICK(rng, 1000, 1000, 1000, 1000, 500, 2000, 3000, 6000, 0);
    spec->priority = (int)PICK(rng, 0, 0, 0, 0, 1, -1);
    if (st_rng_chance(rng, 1, 8))
        random_limits(gen, &spec->job_limits);
    if (st_rng_chance(rng, 1, 5))
        random_limits(gen, &spec->user_limits);
    if (st_rng_chance(rng, 1, 5))
        spec->trust = (st_trust)st_rng_below(rng, 3);
    if (!change)
        spec->own_domain = st_rng_chance(rng, 1, 6);
    spec->min_run_ms = PICK(rng, ST_UNSET, ST_UNSET, ST_UNSET, 0, 20000);
    st_fuzz_book_limits(gen, &spec->book_limits);
}

static int add_account(st_fuzz_gen *gen, int i, st_err *err)
{
    st_account_spec *spec = &st_fuzz_record(gen, ST_EV_ACCOUNT, false)->event.u.account;
    const st_tree *tree = st_core_tree(st_fuzz_run_core(gen->run));
    st_account_spec_init(spec);
    spec->name = st_tape_text(gen->tape, "a%d", i);
    if (tree->accounts.n > 1 && st_rng_chance(&gen->rng, 3, 5) && !gen->stream) {
        const st_account *parent =
            tree->accounts.v[1 + st_rng_below(&gen->rng, tree->accounts.n - 1)];
        if (parent->depth < 5)
            spec->parent = st_tape_text(gen->tape, "%s", parent->name);
    }
    if (!gen->stream)
        st_fuzz_random_account(gen, spec, false);
    return play(gen, err);
}

int st_fuzz_world(st_fuzz_gen *gen, st_err *err)
{
    int rc = add_types(gen, err);
    if (rc == 0)
        rc = add_nodes(gen, err);
    if (rc == 0)
        rc = add_agents(gen, err);
    int most = gen->stream ? 3 : gen->busy ? 7 : 14;
    gen->naccounts = (int)st_rng_range(&gen->rng, 2, most);
    for (int i = 0; rc == 0 && i < gen->naccounts; i++)
        rc = add_account(gen, i, err);
    return rc;
}
