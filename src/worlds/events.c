/*
 * What happens next: random events, chosen with an eye on where things stand, so that most of
 * them mean something, and some that mean nothing at all.
 */
#include "worlds/worlds.h"

#include "base/macros.h"

#define MINUTE    INT64_C(60000)
#define LIVE_MANY 40 /* from here on jobs must go before more come */

static int64_t pick(st_rng *rng, const int64_t *of, size_t n)
{
    return of[st_rng_below(rng, n)];
}

#define PICK(rng, ...)                          \
    pick((rng), (const int64_t[]){__VA_ARGS__}, \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

st_tape_entry *st_fuzz_record(st_fuzz_gen *gen, st_event_kind kind, bool together)
{
    st_tape_entry entry = {.at_ms = gen->now, .together = together, .run_ms = ST_TIME_NEVER};
    entry.event.kind = kind;
    st_vec_push(&gen->tape->list, entry);
    return &gen->tape->list.v[gen->tape->list.n - 1];
}

/* ---- jobs --------------------------------------------------------------------------- */

static int64_t unused_m(const st_account *a)
{
    return st_quota_gpu_m(&a->floor) - a->guaranteed.gpu_m;
}

/* Any account; often, where others may have borrowed it, the one with most of its floor unused. */
static const char *some_account(st_fuzz_gen *gen)
{
    const st_tree *tree = st_core_tree(st_fuzz_run_core(gen->run));
    if (tree->accounts.n < 2 || st_rng_chance(&gen->rng, 1, 200))
        return "nobody";
    size_t i = 1 + st_rng_below(&gen->rng, tree->accounts.n - 1);
    if (st_rng_chance(&gen->rng, 1, 3))
        for (size_t k = 1; k < tree->accounts.n; k++)
            if (unused_m(tree->accounts.v[k]) > unused_m(tree->accounts.v[i]))
                i = k;
    return st_tape_text(gen->tape, "%s", tree->accounts.v[i]->name);
}

static void random_shape(st_fuzz_gen *gen, st_job_spec *job)
{
    st_rng *rng = &gen->rng;
    st_shape *s = &job->shape;
    s->level = (st_level)PICK(rng, ST_LEVEL_WHOLE, ST_LEVEL_WHOLE, ST_LEVEL_WHOLE, ST_LEVEL_MIG,
                              ST_LEVEL_MIG, ST_LEVEL_MPS, ST_LEVEL_TIME);
    s->gpus = 1;
    if (s->level == ST_LEVEL_WHOLE)
        s->gpus = (int)PICK(rng, 0, 1, 1, 1, 1, 2, 2, 3, 4, 8);
    s->profile = (st_mig)st_rng_below(rng, ST_MIG_COUNT);
    s->share_m = PICK(rng, 50, 100, 250, 300, 500, 700, 1000);
    if (s->level >= ST_LEVEL_MPS && st_rng_chance(rng, 1, 3))
        s->vram_mib = 1024 * st_rng_range(rng, 1, 24);
    if (st_rng_chance(rng, 1, 2))
        s->types = (uint32_t)st_rng_range(rng, 1, (1 << gen->ntypes) - 1);
    int64_t per = ST_MAX(s->gpus, 1);
    s->cpu_m = st_rng_chance(rng, 1, 4) ? 0 : 500 * st_rng_range(rng, 1, 4) * per;
    s->ram_mib = st_rng_chance(rng, 1, 4) ? 0 : 512 * st_rng_range(rng, 1, 8) * per;
    if (gen->tight && st_rng_chance(rng, 1, 3))
        s->gpus = 0;
    if (s->gpus == 0) {
        s->level = ST_LEVEL_WHOLE;
        s->cpu_m = ST_MAX(s->cpu_m, 500);
    }
    job->tasks = (int)PICK(rng, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 6, 8);
    if (st_rng_chance(rng, 1, 3)) {
        job->topo = (st_topo)st_rng_range(rng, ST_TOPO_ZONE, ST_TOPO_NVLINK);
        job->topo_required = st_rng_chance(rng, 1, 2);
    }
}

/* Most gangs that are larger than the fleet become smaller: those that are not are refused. */
static void fit_fleet(st_fuzz_gen *gen, st_job_spec *job)
{
    int64_t have_m = st_core_tree(st_fuzz_run_core(gen->run))->capacity.gpu_m;
    if (job->shape.level != ST_LEVEL_WHOLE || st_rng_chance(&gen->rng, 1, 16))
        return;
    while (job->tasks > 1 && INT64_C(1000) * job->tasks * job->shape.gpus > have_m)
        job->tasks /= 2;
    while (job->shape.gpus > 1 && INT64_C(1000) * job->shape.gpus > have_m)
        job->shape.gpus /= 2;
}

/* One field that makes no sense. */
static void spoil(st_rng *rng, st_job_spec *job)
{
    switch (st_rng_below(rng, 9)) {
    case 0:
        job->tasks = (int)PICK(rng, 0, -1, ST_TASKS_MAX + 1);
        break;
    case 1:
        job->id = 0;
        break;
    case 2:
        job->name = "two words";
        break;
    case 3:
        job->shape.level = ST_LEVEL_COUNT;
        break;
    case 4:
        job->shape.cpu_m = PICK(rng, -1, INT64_MAX);
        break;
    case 5:
        job->shape.types = 1u << 20;
        break;
    case 6:
        job->pool = 60;
        break;
    case 7:
        job->limit_ms = PICK(rng, 0, -5);
        break;
    default:
        job->id = 1;
        break;
    }
}

/* Where jobs may be moved, half of them can go anywhere and keep their progress: otherwise there
 * is hardly a set that has somewhere to go. */
static void make_movable(const st_fuzz_gen *gen, st_job_spec *job)
{
    if (!gen->tape->policy.defrag || job->id % 2 == 0)
        return;
    job->yield = ST_YIELD_CHECKPOINT;
    job->topo = ST_TOPO_NONE;
    job->pool = -1;
    job->tasks = 1;
    job->shape.types = 0;
    job->shape.level = ST_LEVEL_WHOLE;
    job->shape.cpu_m /= 4;
    job->shape.ram_mib /= 4;
}

static void submit(st_fuzz_gen *gen, bool together)
{
    st_rng *rng = &gen->rng;
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_SUBMIT, together);
    st_job_spec *job = &entry->event.u.job;
    job->id = gen->next_job++;
    job->name = st_tape_text(gen->tape, "j%d", (int)job->id);
    job->account = some_account(gen);
    job->user = st_tape_text(gen->tape, "u%d", (int)st_rng_below(rng, 4));
    job->pool = st_rng_chance(rng, 1, 4) ? (int32_t)st_rng_below(rng, (uint64_t)gen->npools) : -1;
    random_shape(gen, job);
    fit_fleet(gen, job);
    job->latency_critical = st_rng_chance(rng, 1, 8);
    job->priority = (int)PICK(rng, 0, 0, 0, 1, 2, -1);
    job->yield = (st_yield)st_rng_below(rng, ST_YIELD_COUNT);
    bool carved = job->shape.level == ST_LEVEL_MIG || job->shape.level == ST_LEVEL_MPS;
    if (job->yield == ST_YIELD_PAUSE && carved && st_rng_chance(rng, 7, 8))
        job->yield = ST_YIELD_REQUEUE;
    make_movable(gen, job);
    if (st_rng_chance(rng, 1, 6))
        job->shape.needs = (uint32_t)st_rng_below(rng, 1u << ST_WORLD_ALLOWS);
    int64_t scale = PICK(rng, MINUTE / 2, 5 * MINUTE, 60 * MINUTE) * (gen->busy ? 4 : 1);
    job->limit_ms = st_rng_chance(rng, 1, 5) ? ST_TIME_NEVER : st_rng_range(rng, 1000, scale);
    entry->run_ms = st_rng_range(rng, 1000, scale + scale / 4);
    if (job->limit_ms == ST_TIME_NEVER && st_rng_chance(rng, 1, 3))
        entry->run_ms = ST_TIME_NEVER;
    entry->save_ms = PICK(rng, 0, 500, 5000, 30000, 10 * MINUTE);
    static const int64_t gone_ms[] = {0, 1000, 20000, 59000};
    entry->gone_ms = gone_ms[(entry->save_ms + entry->at_ms / 1000) % 4]; /* draws nothing */
    job->fails = gen->lives && job->id % 5 == 2;                          /* draws nothing */
    const st_policy *policy = &gen->tape->policy;
    if (policy->grace_limit_ms > policy->grace_ms && job->id % 3 == 0) { /* draws nothing */
        job->grace_ms = job->id % 6 == 0 ? policy->grace_limit_ms : 1 + policy->grace_ms / 2;
        if (job->yield == ST_YIELD_PAUSE) /* what it needs is known once it has paused */
            entry->save_ms = job->grace_ms - job->grace_ms / 10;
    }
    st_fuzz_book_job(gen, job);
    st_fuzz_window(gen, job);
    st_fuzz_pick(gen, job);
    st_fuzz_flow_job(gen, entry);
    uint64_t id = job->id;
    if (st_rng_chance(rng, 1, 40))
        spoil(rng, job);
    if (gen->flows && job->id != 0) /* who waits for a job means this one and no other */
        job->id = id;
}

/* Any job that is there; now and then one that is not. */
static uint64_t some_job(st_fuzz_gen *gen)
{
    const st_core *core = st_fuzz_run_core(gen->run);
    size_t n = st_core_njobs(core);
    if (n == 0 || st_rng_chance(&gen->rng, 1, 15))
        return st_rng_below(&gen->rng, gen->next_job + 3);
    return st_core_job_at(core, st_rng_below(&gen->rng, n))->id;
}

/* ---- the rest ----------------------------------------------------------------------- */

/* An engine says it, and of what kind it is. */
static void find_fault(const st_node *node, st_tape_entry *entry)
{
    static const st_fault kinds[] = {ST_FAULT_XID, ST_FAULT_GPU,    ST_FAULT_DRIVER,
                                     ST_FAULT_XID, ST_FAULT_SILENT, ST_FAULT_DISK,
                                     ST_FAULT_XID, ST_FAULT_PROGRAM};
    uint64_t at = (uint64_t)entry->at_ms;
    st_node_state state = entry->event.u.node_state.state;
    if (at / 11 % 4 == 0)
        return;
    if (state == ST_NODE_READY && node->fault.by) {
        entry->event.u.node_state.how = ST_HOW_HEALED;
    } else if (state == ST_NODE_FAILED || state == ST_NODE_DRAINING) {
        entry->event.u.node_state.how = ST_HOW_FAULT;
        entry->event.u.node_state.finding.kind = kinds[at / 13 % ST_ARRAY_LEN(kinds)];
        entry->event.u.node_state.finding.gpu = (int)(at / 17 % 2) - 1;
    }
}

static void node_state(st_fuzz_gen *gen, bool together)
{
    st_rng *rng = &gen->rng;
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_NODE_STATE, together);
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    const st_node *node = fleet->nodes.v[st_rng_below(rng, fleet->nodes.n)];
    size_t away = 0;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        away += fleet->nodes.v[i]->state != ST_NODE_READY;
    size_t kinds = ST_NODE_REMOVED + st_rng_chance(rng, 1, 8); /* few go for good */
    /* A fleet that is down has little to show: from a third on, nodes mostly return. */
    if (3 * away > fleet->nodes.n && st_rng_chance(rng, 3, 4))
        while (node->state == ST_NODE_READY)
            node = fleet->nodes.v[st_rng_below(rng, fleet->nodes.n)];
    entry->node = st_rng_chance(rng, 1, 30) ? "nowhere" : st_tape_text(gen->tape, "%s", node->name);
    entry->event.u.node_state.state = node->state != ST_NODE_READY && st_rng_chance(rng, 3, 4)
                                          ? ST_NODE_READY
                                          : (st_node_state)st_rng_below(rng, kinds);
    /* What came later leaves the worlds of seeds as they were: it draws nothing. */
    static const st_node_state closed[] = {ST_NODE_DRAINING, ST_NODE_SUSPECT, ST_NODE_REPAIR,
                                           ST_NODE_SUSPECT, ST_NODE_RETIRED};
    if (gen->lives && entry->event.u.node_state.state == ST_NODE_DRAINING)
        entry->event.u.node_state.state =
            closed[(uint64_t)(entry->at_ms / 7) % ST_ARRAY_LEN(closed)];
    if (gen->lives)
        find_fault(node, entry);
    entry->event.u.node_state.force = gen->books && st_rng_chance(&gen->book_rng, 1, 3);
}

static void change_account(st_fuzz_gen *gen, bool together)
{
    st_rng *rng = &gen->rng;
    const st_tree *tree = st_core_tree(st_fuzz_run_core(gen->run));
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_ACCOUNT, together);
    st_account_spec *spec = &entry->event.u.account;
    st_account_spec_init(spec);
    if (tree->accounts.n < 2 || st_rng_chance(rng, 1, 20)) {
        spec->name = st_rng_chance(rng, 1, 2) ? "cluster" : "a b";
        return;
    }
    const st_account *a = tree->accounts.v[1 + st_rng_below(rng, tree->accounts.n - 1)];
    spec->name = st_tape_text(gen->tape, "%s", a->name);
    if (a->parent != ST_ROOT)
        spec->parent = st_tape_text(gen->tape, "%s", tree->accounts.v[a->parent]->name);
    spec->own_domain = a->own_domain;
    if (st_rng_chance(rng, 1, 3)) {
        st_fuzz_random_account(gen, spec, true);
        return;
    }
    /* A small change to what is there. */
    spec->guarantee = a->guarantee;
    spec->max = a->max;
    spec->weight_m = a->weight_m;
    spec->priority = a->priority;
    spec->job_limits = a->job_limits;
    spec->user_limits = a->user_limits;
    spec->book_limits = a->book_limits;
    spec->trust = a->trust;
    spec->min_run_ms = a->min_run_ms;
    switch (st_rng_below(rng, 4)) {
    case 0:
        spec->guarantee.gpu_m = 1000 * st_rng_range(rng, 0, 8);
        break;
    case 1:
        spec->max.gpu_m = st_rng_chance(rng, 1, 3) ? ST_UNSET : 1000 * st_rng_range(rng, 0, 16);
        break;
    case 2:
        spec->weight_m = PICK(rng, 0, 1000, 4000);
        break;
    default:
        spec->priority = (int)st_rng_range(rng, -2, 2);
        break;
    }
}

/* Another factor, or other levels: half the time one more than there are. */
static void change_pool(st_fuzz_gen *gen, bool together)
{
    st_rng *rng = &gen->rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    const st_pool *pool = &fleet->pools.v[st_rng_below(rng, fleet->pools.n)];
    st_event *ev = &st_fuzz_record(gen, ST_EV_POOL_CHANGE, together)->event;
    uint32_t level = 1u << st_rng_below(rng, ST_LEVEL_COUNT);
    ev->u.pool.name =
        st_rng_chance(rng, 1, 30) ? "nowhere" : st_tape_text(gen->tape, "%s", pool->name);
    ev->u.pool.levels = st_rng_chance(rng, 1, 2) ? pool->levels | level : pool->levels & ~level;
    ev->u.pool.rules = pool->rules;
    ev->u.pool.force = gen->books && st_rng_chance(&gen->book_rng, 1, 3);
    if (st_rng_chance(rng, 1, 3))
        ev->u.pool.rules.allow ^= 1u << st_rng_below(rng, ST_WORLD_ALLOWS);
    ev->u.pool.oversub_m =
        st_rng_chance(rng, 1, 2) ? pool->oversub_m : PICK(rng, 999, 1000, 1500, 2000, 3000, 4000);
}

/* Mostly one that has nobody below; some are made again under the same name (change_account). */
static void remove_account(st_fuzz_gen *gen, bool together)
{
    const st_tree *tree = st_core_tree(st_fuzz_run_core(gen->run));
    st_event *ev = &st_fuzz_record(gen, ST_EV_ACCOUNT_REMOVE, together)->event;
    size_t i = st_rng_below(&gen->rng, tree->accounts.n);
    for (size_t k = 0; k < 8 && tree->accounts.v[i]->children.n > 0; k++)
        i = st_rng_below(&gen->rng, tree->accounts.n);
    ev->u.account.name = st_tape_text(gen->tape, "%s", tree->accounts.v[i]->name);
}

/* A job that the event could be about; now and then any. */
static uint64_t some_job_for(st_fuzz_gen *gen, st_event_kind kind)
{
    const st_core *core = st_fuzz_run_core(gen->run);
    for (int tries = 0; st_core_njobs(core) > 0 && tries < 20; tries++) {
        const st_job *job = st_core_job_at(core, st_rng_below(&gen->rng, st_core_njobs(core)));
        if (kind == ST_EV_LATE   ? job->state == ST_JOB_PENDING && job->stay > 0
            : kind == ST_EV_GONE ? job->stopping
            : kind == ST_EV_BAR  ? job->barred || tries > 2
                                 : job->state == ST_JOB_RUNNING)
            return job->id;
    }
    return some_job(gen);
}

/* Times and bounds that an admin changes while jobs run. */
static void change_policy(st_fuzz_gen *gen, bool together)
{
    st_rng *rng = &gen->rng;
    st_policy *p = &st_fuzz_record(gen, ST_EV_POLICY, together)->event.u.policy;
    *p = *st_core_policy(st_fuzz_run_core(gen->run));
    switch (st_rng_below(rng, 6)) {
    case 0:
        p->min_run_ms = PICK(rng, 0, 20000, 5 * MINUTE, -1);
        break;
    case 1:
        p->cooldown_ms = PICK(rng, 0, MINUTE, 10 * MINUTE);
        break;
    case 2:
        p->bound_m = PICK(rng, 1000, 1500, 4000, 1);
        break;
    case 3:
        p->patience_ms = PICK(rng, 0, MINUTE, 60 * MINUTE);
        break;
    case 4:
        p->reservations = PICK(rng, 0, 1, 4, 65);
        break;
    default:
        p->rebalance = !p->rebalance;
        break;
    }
}

static void bar_job(st_fuzz_gen *gen, bool together)
{
    uint64_t id = some_job_for(gen, ST_EV_BAR);
    st_event *ev = &st_fuzz_record(gen, ST_EV_BAR, together)->event;
    ev->u.bar.id = id;
    ev->u.bar.on = st_rng_chance(&gen->rng, 1, 2);
    ev->u.bar.notice_ms = PICK(&gen->rng, 0, 5000, MINUTE, -1);
}

static void odd_event(st_fuzz_gen *gen, bool together)
{
    static const st_event_kind kinds[] = {ST_EV_LATE, ST_EV_UNSTARTED, ST_EV_GONE, ST_EV_POLICY,
                                          ST_EV_BAR};
    st_event_kind kind = kinds[st_rng_below(&gen->rng, ST_ARRAY_LEN(kinds))];
    if (kind == ST_EV_POLICY) {
        change_policy(gen, together);
        return;
    }
    if (kind == ST_EV_BAR) {
        bar_job(gen, together);
        return;
    }
    uint64_t id = some_job_for(gen, kind);
    st_event *ev = &st_fuzz_record(gen, kind, together)->event;
    if (kind == ST_EV_LATE) {
        ev->u.finish.id = id;
        ev->u.finish.failed = st_rng_chance(&gen->rng, 1, 3);
    } else if (kind == ST_EV_GONE) {
        ev->u.gone.id = id;
        ev->u.gone.done = st_rng_chance(&gen->rng, 1, 3);
    } else {
        ev->u.id = id;
    }
}

static void one_event(st_fuzz_gen *gen, bool together)
{
    st_rng *rng = &gen->rng;
    if (gen->odd && st_rng_chance(rng, 1, 8)) {
        odd_event(gen, together);
        return;
    }
    if (gen->bars && st_rng_chance(rng, 1, gen->pressed ? 5 : 12)) {
        bar_job(gen, together);
        return;
    }
    size_t live = st_core_njobs(st_fuzz_run_core(gen->run));
    uint64_t roll = st_rng_below(rng, 100);
    if (gen->storm && st_rng_chance(rng, 1, 4))
        roll = 90; /* an account changes */
    if (gen->crowd && st_rng_chance(rng, 1, 2))
        roll = 0;
    if (roll < 55) {
        if (live < (gen->crowd ? 2 : 1) * LIVE_MANY)
            submit(gen, together);
        else
            st_fuzz_record(gen, ST_EV_TIMER, together);
    } else if (roll < 63) {
        st_event *ev = &st_fuzz_record(gen, ST_EV_FINISH, together)->event;
        ev->u.finish.id = some_job(gen);
        ev->u.finish.failed = st_rng_chance(rng, 1, 3);
    } else if (roll < 70) {
        st_fuzz_record(gen, ST_EV_CANCEL, together)->event.u.id = some_job(gen);
    } else if (roll < 75) {
        st_fuzz_record(gen, ST_EV_CHECKPOINTED, together)->event.u.id = some_job(gen);
    } else if (roll < 81) {
        st_event *ev = &st_fuzz_record(gen, ST_EV_PRIORITY, together)->event;
        ev->u.priority.id = some_job(gen);
        ev->u.priority.priority =
            st_rng_chance(rng, 1, 30) ? ST_PRIO_MAX + 1 : (int)st_rng_range(rng, -3, 3);
    } else if (roll < 82) {
        st_event *ev = &st_fuzz_record(gen, ST_EV_LIMIT, together)->event;
        ev->u.limit.id = some_job(gen);
        ev->u.limit.limit_ms =
            st_rng_chance(rng, 1, 8) ? ST_TIME_NEVER : st_rng_range(rng, 0, 20 * MINUTE);
    } else if (roll < 89) {
        node_state(gen, together);
    } else if (roll < 94) {
        change_account(gen, together);
    } else if (roll < 97) {
        st_event *ev = &st_fuzz_record(gen, ST_EV_TOLD, together)->event;
        ev->u.told.id = some_job(gen);
        ev->u.told.start_ms =
            st_rng_chance(rng, 1, 20) ? -1 : gen->now + st_rng_range(rng, 0, MINUTE);
    } else if (roll < 98) {
        change_pool(gen, together);
    } else if (st_rng_chance(rng, 1, 2)) {
        remove_account(gen, together);
    } else {
        st_fuzz_record(gen, ST_EV_TIMER, together);
    }
}

/* ---- streams ------------------------------------------------------------------------ */

/* One gang that wants most of the fleet among small jobs that never stop coming. They all have
 * limits, so it must find its place soon after the ones before it have reached theirs. */
static void stream_event(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    const int64_t limit = 2 * MINUTE;
    bool gang = gen->tape->must_start == 0 && gen->now > limit;
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_SUBMIT, false);
    st_job_spec *job = &entry->event.u.job;
    job->id = gen->next_job++;
    job->name = st_tape_text(gen->tape, "j%d", (int)job->id);
    job->user = "u";
    job->account = gang || gen->alike ? "a0"
                                      : st_tape_text(gen->tape, "a%d",
                                                     1 + (int)(job->id % 2) % (gen->naccounts - 1));
    job->pool = -1;
    job->shape.gpus = gang ? fleet->nodes.v[0]->ndevs : 1;
    job->tasks = gang ? gen->nnodes : 1;
    job->limit_ms = gang ? limit : st_rng_range(rng, limit / 2, limit);
    job->yield = ST_YIELD_REQUEUE;
    /* One in ten shows that a forecast is none. */
    if (gen->early && !gang && !st_rng_chance(rng, 1, 10))
        entry->run_ms = st_rng_range(rng, job->limit_ms / 10, job->limit_ms / 3);
    if (gang) {
        gen->tape->must_start = job->id;
        gen->tape->must_by_ms = gen->now + 3 * limit + gen->tape->policy.overstay_ms;
    }
}

/* Twice as many arrive as the fleet can serve. */
static int64_t stream_gap(st_fuzz_gen *gen)
{
    int64_t gpus = st_core_tree(st_fuzz_run_core(gen->run))->capacity.gpu_m / 1000;
    return ST_MAX((gen->early ? MINUTE : 2 * MINUTE) / ST_MAX(gpus * 2, 1), 1);
}

int st_fuzz_next(st_fuzz_gen *gen, int *ret_n, st_err *err)
{
    st_rng *rng = &gen->rng;
    size_t from = gen->tape->list.n;
    int n = 1;
    bool late = false;
    if (gen->stream && st_core_njobs(st_fuzz_run_core(gen->run)) < 2 * LIVE_MANY) {
        gen->now += stream_gap(gen);
        stream_event(gen);
    } else {
        int64_t gap = gen->busy ? PICK(rng, 1, 1, 1000, 5000, 20000, MINUTE)
                                : PICK(rng, 1, 1, 1000, 10000, MINUTE, 5 * MINUTE);
        gen->now += st_rng_range(rng, 1, gap);
        if (gen->jumps && st_rng_chance(rng, 1, 12))
            gen->now += st_rng_range(rng, 0, PICK(rng, 10 * MINUTE, 600 * MINUTE, 20000 * MINUTE));
        n = st_rng_chance(rng, 1, 8) ? (int)st_rng_range(rng, 2, 5) : 1;
        late = st_rng_chance(rng, 1, gen->jumps ? 6 : 50);
        for (int i = 0; i < n; i++)
            one_event(gen, i > 0);
        st_fuzz_drain(gen);
        st_fuzz_gpus(gen);
        st_fuzz_pick_labels(gen);
        st_fuzz_book(gen);
        st_fuzz_flow(gen);
    }
    gen->tape->list.v[from].late = late;
    *ret_n = n;
    return st_fuzz_run_moment(gen->run, from, gen->tape->list.n, err);
}
