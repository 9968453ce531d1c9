/*
 * The world of a made trace: 8-GPU nodes of three generations in racks, blocks and zones;
 * organisations with teams whose sizes have a heavy tail; users, each in one team.
 *
 * A rack is four nodes, a block (one fabric without a bottleneck) eight racks, so 256 GPUs; a zone
 * 64 blocks. Each generation has its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gen/plan.h"

#define GIB(n)       ((n)*INT64_C(1024))
#define RACK_NODES   4
#define BLOCK_RACKS  8
#define ZONE_BLOCKS  64
#define TEAMS_TO_ORG 6

typedef struct generation {
    st_trace_type type;
    int part_pct; /* of the nodes */
    int64_t cpu_m, ram_mib;
    bool large;
} generation;

/* The first gets what the others leave. */
static const generation generations[] = {
    {{"h100", GIB(80), ST_BOARD_H100_80}, 50, 224000, GIB(2048), true},
    {{"a100-80", GIB(80), ST_BOARD_A100_80}, 30, 256000, GIB(1024), false},
    {{"h200", GIB(141), ST_BOARD_H200_141}, 20, 224000, GIB(2048), true},
};

static const char *numbered(st_gen_plan *p, const char *head, const char *letter, int64_t n)
{
    char buf[ST_NAME_MAX];
    int len = snprintf(buf, sizeof(buf), "%s-%s%" PRId64, head, letter, n);

    return st_arena_strndup(p->trace->arena, buf, (size_t)len);
}

static void add_nodes(st_gen_plan *p, const generation *g, int32_t type, int64_t count)
{
    const char *head = g->type.name;
    st_node_spec spec = {
        .type = type, .ndevs = ST_GEN_NODE_GPUS, .cpu_m = g->cpu_m, .ram_mib = g->ram_mib};

    for (int64_t i = 0; i < count; i++) {
        int64_t unit = RACK_NODES;

        spec.name = numbered(p, head, "n", i + 1);
        if (i % unit == 0)
            spec.rack = numbered(p, head, "r", i / unit + 1);
        unit *= BLOCK_RACKS;
        if (i % unit == 0)
            spec.block = numbered(p, head, "b", i / unit + 1);
        unit *= ZONE_BLOCKS;
        if (i % unit == 0)
            spec.zone = numbered(p, head, "z", i / unit + 1);
        st_vec_push(&p->trace->nodes, spec);
    }
}

void st_gen_make_fleet(st_gen_plan *p)
{
    int64_t nodes = p->o->gpus / ST_GEN_NODE_GPUS, rest = nodes;

    for (size_t t = 1; t < ST_ARRAY_LEN(generations); t++)
        rest -= nodes * generations[t].part_pct / 100;
    for (size_t t = 0; t < ST_ARRAY_LEN(generations); t++) {
        const generation *g = &generations[t];
        int64_t count = t == 0 ? rest : nodes * g->part_pct / 100;

        st_vec_push(&p->trace->types, g->type);
        if (count == 0)
            continue;
        p->types_any |= 1u << t;
        p->types_large |= g->large ? 1u << t : 0;
        add_nodes(p, g, (int32_t)t, count);
    }
}

/* ---- accounts ----------------------------------------------------------------------- */

static const char *const org_words[] = {"research", "products", "platform",
                                        "science",  "labs",     "cloud"};
static const char *const team_words[] = {
    "vision", "speech",  "language", "robotics", "search",  "ranking", "safety",
    "maps",   "biology", "climate",  "video",    "codegen", "agents",  "recsys",
    "audio",  "theory",  "infra",    "finance",  "medical", "physics", "graphics"};

/* The word, with a number behind it from the second time on. */
static const char *name_of(st_gen_plan *p, const char *head, const char *const *words, size_t n,
                           int64_t i)
{
    char buf[ST_NAME_MAX];
    int64_t round = i / (int64_t)n;
    int len = round == 0 ? snprintf(buf, sizeof(buf), "%s%s", head, words[i])
                         : snprintf(buf, sizeof(buf), "%s%s-%" PRId64, head, words[i % (int64_t)n],
                                    round + 1);

    return st_arena_strndup(p->trace->arena, buf, (size_t)len);
}

/* The i-th largest of many: about 1/i, with noise. */
static uint64_t heavy_tail(st_rng *rng, int64_t i)
{
    return UINT64_C(1000000) / (uint64_t)(i + 3) * (60 + st_rng_below(rng, 81)) / 100;
}

static int64_t weight_m(st_rng *rng)
{
    static const int64_t weights_m[] = {1000, 1000, 1000, 1500, 2000, 2000, 4000};

    return weights_m[st_rng_below(rng, ST_ARRAY_LEN(weights_m))];
}

static st_account_spec new_account(st_gen_plan *p, const char *name, const char *parent)
{
    st_account_spec spec;

    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    spec.weight_m = weight_m(&p->rng);
    spec.guarantee.gpu_m = 0;
    return spec;
}

/* Divides `gpus` as the sizes say, in round numbers; what rounding took or gave, the next one
 * feels, so the sum is right. Some of the smaller teams are promised
 * nothing and live on what is idle. */
static void promise(st_gen_plan *p, const uint64_t *sizes, int64_t teams, int64_t gpus)
{
    uint64_t sum = 0;
    int64_t owed_m = 0, left = gpus;

    for (int64_t i = 0; i < teams; i++)
        sum += sizes[i];
    for (int64_t i = 0; i < teams; i++) {
        st_account_spec *a = &p->trace->accounts.v[p->teams.v[i].account];
        int64_t unit, n;

        owed_m += (int64_t)((st_u128)gpus * 1000 * sizes[i] / sum);
        if (i >= (teams + 1) / 2 && st_rng_chance(&p->rng, 1, 5))
            continue;
        unit = owed_m >= 64000 ? 8 : owed_m >= 16000 ? 4 : 1;
        n = (owed_m / 1000 + unit / 2) / unit * unit;
        n = ST_MAX(n, 0);
        a->guarantee.gpu_m = n * 1000;
        owed_m -= n * 1000;
        left -= n;
    }
    /* Half a unit of the last one, or what those who are promised nothing left behind. */
    p->trace->accounts.v[p->teams.v[0].account].guarantee.gpu_m += left * 1000;
}

static void sum_up_orgs(st_gen_plan *p, int64_t orgs)
{
    for (size_t i = 0; i < p->teams.n; i++) {
        const st_account_spec *team = &p->trace->accounts.v[p->teams.v[i].account];

        for (int64_t k = 0; k < orgs; k++) {
            st_account_spec *org = &p->trace->accounts.v[k];
            if (team->parent == org->name)
                org->guarantee.gpu_m += team->guarantee.gpu_m;
        }
    }
}

void st_gen_make_accounts(st_gen_plan *p)
{
    int64_t teams = p->o->teams, orgs = (teams + TEAMS_TO_ORG - 1) / TEAMS_TO_ORG;
    uint64_t *sizes = st_arena_calloc(p->trace->arena, (size_t)teams, sizeof(*sizes));
    uint64_t demand = 0;
    int64_t gpus = (int64_t)p->trace->nodes.n * ST_GEN_NODE_GPUS;

    orgs = ST_MIN(orgs, 64);
    for (int64_t i = 0; i < orgs; i++)
        st_vec_push(
            &p->trace->accounts,
            new_account(p, name_of(p, "org-", org_words, ST_ARRAY_LEN(org_words), i), NULL));
    for (int64_t i = 0; i < teams; i++) {
        /* One team for each, then the first ones get more. */
        uint64_t org = i < orgs ? (uint64_t)i
                                : st_rng_below(&p->rng, st_rng_below(&p->rng, (uint64_t)orgs) + 1);
        st_account_spec team =
            new_account(p, name_of(p, "", team_words, ST_ARRAY_LEN(team_words), i),
                        p->trace->accounts.v[org].name);

        sizes[i] = heavy_tail(&p->rng, i);
        /* What a team asks for is not what it is promised. */
        demand += sizes[i] * (40 + st_rng_below(&p->rng, 121)) / 100 + 1;
        st_vec_push(&p->teams,
                    (st_gen_team){.account = (int32_t)p->trace->accounts.n, .demand = demand});
        st_vec_push(&p->trace->accounts, team);
    }
    promise(p, sizes, teams, (gpus * st_rng_range(&p->rng, 82, 88) + 50) / 100);
    sum_up_orgs(p, orgs);
}

/* ---- users -------------------------------------------------------------------------- */

/* A quarter of people know how long their jobs take; the rest are on the safe side. */
static st_gen_user new_user(st_gen_plan *p, int64_t n)
{
    st_gen_user u = {.limit_lo_pct = 105, .limit_hi_pct = 130};
    uint64_t habit = st_rng_below(&p->rng, 100);
    char buf[ST_NAME_MAX];
    int len = snprintf(buf, sizeof(buf), "u%" PRId64, n);

    if (habit >= 70) {
        u.limit_lo_pct = 400;
        u.limit_hi_pct = 1000;
    } else if (habit >= 25) {
        u.limit_lo_pct = 200;
        u.limit_hi_pct = 400;
    }
    u.name = st_arena_strndup(p->trace->arena, buf, (size_t)len);
    return u;
}

void st_gen_make_users(st_gen_plan *p)
{
    uint64_t all = p->teams.v[p->teams.n - 1].demand, before = 0;
    int64_t users = p->o->users;

    for (int64_t i = 0; i < users; i++)
        st_vec_push(&p->users, new_user(p, i + 1));
    for (size_t t = 0; t < p->teams.n; t++) {
        st_gen_team *team = &p->teams.v[t];

        /* In parts of the demand; where there are fewer users than teams, some work for several. */
        team->first_user = (int64_t)((st_u128)before * (uint64_t)users / all);
        team->users = (int64_t)((st_u128)team->demand * (uint64_t)users / all) - team->first_user;
        team->users = ST_MAX(team->users, 1);
        team->first_user = ST_MIN(team->first_user, users - team->users);
        before = team->demand;
    }
}
