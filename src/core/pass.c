/* One scheduling pass: who starts now, who claims, for whom capacity is gathered.
 *
 *   1 capacity, floors and classes are brought up to date;
 *   2 plans whose victims have left start (or start elsewhere, if that became free);
 *   3 gangs that lost a node are tried on what survives of their places;
 *   4 waiting jobs in order: first those inside their floors, least-used floor first, then
 *     borrowers by priority and standing. Who finds no place claims; who may not claim is
 *     gathered for; everybody behind may use the rest.
 * The pass repeats while claims with no notice free more than they take. Each round displaces
 * in strict order only, so it ends. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/state.h"

#define ROUNDS_MAX   1000
#define CLAIM_EFFORT 200000 /* candidates claims may look at in one pass */

int32_t st_core_next_type(const st_core *core, const st_job *job, int32_t after)
{
    if (job->shape.gpus == 0)
        return after == ST_TYPE_FIRST ? -1 : ST_TYPE_END;
    if (job->state == ST_JOB_PAUSED)
        return after == ST_TYPE_FIRST ? job->type : ST_TYPE_END;
    for (int32_t t = after == ST_TYPE_FIRST ? 0 : after + 1; t < (int32_t)core->fleet->types.n; t++)
        if (job->shape.types >> t & 1)
            return t;
    return ST_TYPE_END;
}

bool st_core_weight_zero(const st_core *core, int32_t account, int32_t *ret_account)
{
    for (int32_t i = account; i != ST_ROOT; i = st_tree_account(core->tree, i)->parent) {
        if (st_tree_account(core->tree, i)->weight_m == 0 && !ST_BROKEN(WEIGHT_ZERO)) {
            if (ret_account)
                *ret_account = i;
            return true;
        }
    }
    return false;
}

bool st_core_may_rebalance(const st_core *core, const st_job *job)
{
    return core->policy.rebalance && !st_core_weight_zero(core, job->account, NULL);
}

/* ---- shapes that found no place ---------------------------------------------------------- */

/* Everything a plain placement depends on besides what is free. Room only shrinks during a
 * round, so a shape that failed fails again. */
uint64_t st_core_shape_key(const st_job *job, int32_t type)
{
    const st_shape *s = &job->shape;
    bool shared = s->gpus > 0 && (s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME);
    const uint64_t words[] = {
        (uint64_t)type,
        (uint64_t)s->level,
        (uint64_t)s->gpus,
        (uint64_t)s->profile,
        (uint64_t)s->share_m,
        (uint64_t)s->vram_mib,
        (uint64_t)s->cpu_m,
        (uint64_t)s->ram_mib,
        (uint64_t)job->tasks,
        (uint64_t)job->topo,
        job->topo_required,
        (uint64_t)job->pool,
        shared ? (uint64_t)job->account : 0,
        shared && job->latency_critical,
    };
    uint64_t h = 1;
    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        h = st_hash_u64(h, words[i]);
    return job->state == ST_JOB_PAUSED ? st_hash_u64(h, job->id) : h;
}

static void forget_misfits(st_core *core)
{
    if (st_idmap_count(core->misfits) > 0) {
        st_idmap_free(core->misfits);
        core->misfits = st_idmap_new();
    }
    core->freed = false;
}

/* ---- one job ----------------------------------------------------------------------------- */

static bool within_limits(const st_core *core, const st_job *job, int32_t type)
{
    if (ST_BROKEN(USER_LIMIT))
        return true;
    return st_admit_user_limits(core->fleet, core->tree, job, type, false, NULL, 0) == 0;
}

static bool below_max(const st_core *core, const st_job *job, int32_t type, unsigned moments)
{
    st_need need = st_need_of(job, type);
    return ST_BROKEN(MAX) ||
           st_admit_over(core->tree, job->account, &need, moments, false, NULL, 0) == 0;
}

/* Start on what is free, if it may and fits. */
static bool try_start(st_core *core, st_job *job, int32_t type, st_class class,
                      const uint8_t *prefer, st_effects *fx)
{
    if (!within_limits(core, job, type) || !below_max(core, job, type, ST_NOW | ST_NEXT))
        return false;
    if (core->freed)
        forget_misfits(core);
    uint64_t key = st_core_shape_key(job, type);
    uint64_t bound_key = st_hash_u64(key, st_core_bound_by(core, job));
    if (st_idmap_get(core->misfits, key, NULL) || st_idmap_get(core->misfits, bound_key, NULL))
        return false;
    st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
    int blocker;
    if (!st_core_backfill(core, job, type, prefer, grants, &blocker)) {
        free(grants);
        st_idmap_put(core->misfits, blocker < 0 ? key : bound_key, 1);
        return false;
    }
    st_core_start(core, job, type, class, grants, fx);
    return true;
}

/* Displace others for the job: the victims are told, and their place is held for it.
 * *ret_later: it could, but for protections that end. */
static bool try_claim(st_core *core, st_job *job, int32_t type, bool sure, bool *ret_later,
                      st_effects *fx)
{
    if (!within_limits(core, job, type))
        return false;
    /* The same claim of the same account fails the same way while nothing is freed. */
    uint64_t key = st_hash_u64(st_core_shape_key(job, type), (uint64_t)job->account * 2 + sure + 1);
    key = st_hash_u64(key, (uint64_t)job->priority);
    if (core->freed)
        forget_misfits(core);
    int64_t later = 0;
    if (core->effort <= 0 || st_idmap_get(core->misfits, key, &later)) {
        *ret_later |= later != 0;
        return false;
    }
    st_claim claim;
    st_core_claim(core, job, type, sure, &claim);
    if (claim.result != ST_CLAIM_OK) {
        st_idmap_put(core->misfits, key, claim.result == ST_CLAIM_PROTECTED);
        if (claim.result == ST_CLAIM_PROTECTED) {
            core->wake_ms = ST_MIN(core->wake_ms, claim.until_ms);
            *ret_later = true;
        }
        st_claim_done(&claim);
        return false;
    }
    st_class class = sure ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE;
    st_core_hold(core, job, type, class, ST_TAKE(claim.plan), fx);
    for (size_t i = 0; i < claim.victims.n; i++)
        st_core_notify(core, claim.victims.v[i], job, fx);
    st_claim_done(&claim);
    return true;
}

typedef enum st_phase { PHASE_SURE, PHASE_BURST } st_phase;

static bool is_sure(const st_core *core, const st_job *job, int32_t type)
{
    st_need need = st_need_of(job, type);
    return st_admit_sure(core->tree, job->account, &need, NULL);
}

/* Give the job its turn in a phase; true when something happened. *ret_later as above. */
static bool turn(st_core *core, st_job *job, st_phase phase, const uint8_t *prefer, bool *ret_later,
                 st_effects *fx)
{
    *ret_later = false;
    bool sure = phase == PHASE_SURE;
    st_class class = sure ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE;
    if (!sure && st_core_weight_zero(core, job->account, NULL))
        return false;
    int32_t t;
    bool any = false;
    for (t = st_core_next_type(core, job, ST_TYPE_FIRST); t != ST_TYPE_END;
         t = st_core_next_type(core, job, t)) {
        if (is_sure(core, job, t) != sure)
            continue;
        any = true;
        if (try_start(core, job, t, class, prefer, fx))
            return true;
    }
    if (!any || (!sure && !st_core_may_rebalance(core, job)))
        return false;
    for (t = st_core_next_type(core, job, ST_TYPE_FIRST); t != ST_TYPE_END;
         t = st_core_next_type(core, job, t))
        if (is_sure(core, job, t) == sure && try_claim(core, job, t, sure, ret_later, fx))
            return true;
    return false;
}

/* Gather for a blocked job, if it is only room that it lacks; with `later` it will get room
 * from borrowers once their protections end. */
static void gather(st_core *core, const st_job *job, st_phase phase, bool later)
{
    bool sure = phase == PHASE_SURE;
    if (core->resv.n >= (size_t)core->policy.reservations)
        return;
    for (size_t i = 0; i < core->resv.n; i++)
        if (core->resv.v[i].job == job->id)
            return;
    if (!sure && st_core_weight_zero(core, job->account, NULL))
        return;
    for (int32_t t = st_core_next_type(core, job, ST_TYPE_FIRST); t != ST_TYPE_END;
         t = st_core_next_type(core, job, t)) {
        if (is_sure(core, job, t) != sure || !within_limits(core, job, t) ||
            !below_max(core, job, t, ST_NOW | ST_NEXT))
            continue;
        size_t before = core->resv.n;
        st_core_gather(core, job, t, later);
        if (core->resv.n > before)
            return;
    }
}

/* ---- the queue --------------------------------------------------------------------------- */

/* An account's waiting jobs in order, and how many are left in it and below. */
typedef struct lane {
    size_t first, next, last;
    size_t left;
    int32_t pick; /* the child whose turn it is; -1 not known */
} lane;

typedef struct queue {
    ST_VEC(st_turn) turns;
    lane *lanes;
} queue;

static int by_account_turn(const void *pa, const void *pb)
{
    const st_turn *a = pa, *b = pb;
    if (a->job->account != b->job->account)
        return a->job->account < b->job->account ? -1 : 1;
    if (ST_BROKEN(ORDER))
        return a->job < b->job ? -1 : 1;
    return st_turn_cmp(a, b);
}

static bool waits(const st_job *job)
{
    return (job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED) && !job->held;
}

static void queue_build(st_core *core, queue *q)
{
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *job = core->jobs.v[i];
        if (!waits(job))
            continue;
        int64_t usage = st_usage_read(core->tree, job->account, job->user, core->now,
                                      core->policy.half_life_ms);
        st_vec_push(&q->turns, (st_turn){job, usage});
    }
    if (q->turns.n > 1)
        qsort(q->turns.v, q->turns.n, sizeof *q->turns.v, by_account_turn);
    q->lanes = st_xcalloc(core->tree->accounts.n, sizeof *q->lanes);
    for (size_t i = 0; i < q->turns.n; i++) {
        lane *l = &q->lanes[q->turns.v[i].job->account];
        if (l->last == 0)
            l->first = i;
        l->last = i + 1;
    }
}

static void queue_rewind(const st_core *core, queue *q)
{
    for (size_t i = core->tree->accounts.n; i-- > 0;) {
        lane *l = &q->lanes[i];
        l->next = l->first;
        l->left = l->last - l->first;
        l->pick = -1;
        const st_account *a = core->tree->accounts.v[i];
        for (size_t c = 0; c < a->children.n; c++)
            l->left += q->lanes[a->children.v[c]].left;
    }
}

static void queue_done(queue *q)
{
    st_vec_free(&q->turns);
    free(q->lanes);
}

static int32_t best_child(const st_core *core, const queue *q, int32_t account, st_phase phase)
{
    const st_account *a = st_tree_account(core->tree, account);
    st_basis basis = (st_basis)core->policy.basis;
    int32_t best = -1;
    for (size_t i = 0; i < a->children.n; i++) {
        int32_t id = a->children.v[i];
        if (q->lanes[id].left == 0)
            continue;
        if (best < 0 || (phase == PHASE_SURE ? st_share_sure_before(core->tree, id, best)
                                             : st_share_burst_before(core->tree, id, best, basis)))
            best = id;
    }
    return best;
}

/* The next job in order, taken from its lane; an account's own jobs go before its children's.
 * A child keeps its turn until something starts or it runs dry: only that changes an order. */
static st_job *queue_next(const st_core *core, queue *q, st_phase phase)
{
    if (q->lanes[ST_ROOT].left == 0)
        return NULL;
    int32_t at = ST_ROOT;
    while (q->lanes[at].next == q->lanes[at].last) {
        lane *l = &q->lanes[at];
        if (l->pick < 0 || q->lanes[l->pick].left == 0)
            l->pick = best_child(core, q, at, phase);
        at = l->pick;
    }
    st_job *job = q->turns.v[q->lanes[at].next++].job;
    for (int32_t i = at; i >= 0; i = st_tree_account(core->tree, i)->parent)
        q->lanes[i].left--;
    return job;
}

static void queue_reorder(const st_core *core, queue *q)
{
    for (size_t i = 0; i < core->tree->accounts.n; i++)
        q->lanes[i].pick = -1;
}

/* Everybody gets a turn in each phase; true when somebody could use it. Starts change the
 * standings that later turns and reservations go by, so the caller repeats until a round
 * changes nothing: then doing it again changes nothing either. */
static bool run_queue(st_core *core, st_effects *fx)
{
    queue q = {0};
    bool again = false;
    st_core_gather_clear(core);
    forget_misfits(core);
    queue_build(core, &q);
    for (st_phase phase = PHASE_SURE; phase <= PHASE_BURST; phase++) {
        queue_rewind(core, &q);
        st_job *job;
        while ((job = queue_next(core, &q, phase))) {
            if (!waits(job))
                continue;
            if (ST_BROKEN(CONSERVE) && job->id % 7 == 0)
                continue;
            bool later;
            if (turn(core, job, phase, NULL, &later, fx)) {
                queue_reorder(core, &q);
                again = true;
            } else {
                gather(core, job, phase, later);
            }
        }
    }
    queue_done(&q);
    return again;
}

/* ---- plans and restarts ------------------------------------------------------------------ */

/* Start plans whose place is free; a plan that could start elsewhere by now does, and its
 * victims are spared. True when a plan was given up or came true. */
static bool run_held(st_core *core, st_effects *fx)
{
    bool moved = false;
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *job = core->jobs.v[i];
        if (!job->held)
            continue;
        if (st_core_ready(core, job)) {
            if (below_max(core, job, job->type, ST_NOW)) {
                st_core_start_held(core, job, fx);
                moved = true;
            }
            continue;
        }
        st_ask ask = {.job = job, .type = job->type};
        if (job->state == ST_JOB_PENDING && below_max(core, job, job->type, ST_NOW) &&
            st_place_fits(core->placer, &ask)) {
            st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
            bool ok = st_place_gang(core->placer, &ask, grants);
            ST_ASSERT(ok);
            st_core_start_elsewhere(core, job, grants, fx);
            moved = true;
        }
    }
    return moved;
}

static bool run_restarts(st_core *core, st_effects *fx)
{
    bool moved = false;
    for (size_t i = 0; i < core->restart.n; i++) {
        st_job *job = st_core_find(core, core->restart.v[i]);
        if (!job || !waits(job))
            continue;
        bool later;
        moved |= turn(core, job, PHASE_SURE, core->prefer, &later, fx) ||
                 turn(core, job, PHASE_BURST, core->prefer, &later, fx);
    }
    st_vec_clear(&core->restart);
    for (size_t i = 0; i < core->nprefer; i++)
        core->prefer[i] = 0;
    return moved;
}

/* Users' decayed usage moves the order once in a while, and with it the reservations. */
static void wake_for_order(st_core *core)
{
    int64_t half_life_ms = core->policy.half_life_ms;
    int64_t next = st_usage_epoch(core->now, half_life_ms) + half_life_ms / ST_USAGE_STEPS;
    if (core->resv.n > 0)
        core->wake_ms = ST_MIN(core->wake_ms, next);
}

void st_core_pass(st_core *core, int64_t now, st_effects *fx)
{
    core->now = ST_MAX(core->now, now);
    st_core_expire(core, fx);
    int round = 0;
    bool again = true;
    core->effort = CLAIM_EFFORT;
    while (again) {
        ST_ASSERT(round++ < ROUNDS_MAX);
        core->wake_ms = ST_TIME_NEVER;
        st_core_reclass(core, fx);
        while (run_held(core, fx))
            st_core_reclass(core, fx);
        st_core_gather_clear(core);
        forget_misfits(core);
        again = run_restarts(core, fx);
        again |= run_queue(core, fx);
        again |= core->floors_dirty || core->class_dirty;
    }
    wake_for_order(core);
    st_core_set_due(core);
    core->settled = true;
}

/* ---- a submit into a settled state ------------------------------------------------------- */

static st_phase phase_of(const st_core *core, const st_job *job)
{
    for (int32_t t = st_core_next_type(core, job, ST_TYPE_FIRST); t != ST_TYPE_END;
         t = st_core_next_type(core, job, t))
        if (is_sure(core, job, t))
            return PHASE_SURE;
    return PHASE_BURST;
}

/* Whether a's turn comes before b's, as the queue would have it. */
static bool goes_before(const st_core *core, st_job *a, st_job *b)
{
    st_phase phase = phase_of(core, a);
    if (phase != phase_of(core, b))
        return phase == PHASE_SURE;
    const st_tree *tree = core->tree;
    int32_t x, y, meet = st_tree_meet(tree, a->account, b->account, &x, &y);
    if (a->account != b->account) {
        if (a->account == meet || b->account == meet)
            return a->account == meet;
        return phase == PHASE_SURE
                   ? st_share_sure_before(tree, x, y)
                   : st_share_burst_before(tree, x, y, (st_basis)core->policy.basis);
    }
    int64_t half_life_ms = core->policy.half_life_ms;
    st_turn ta = {a, st_usage_read(tree, a->account, a->user, core->now, half_life_ms)};
    st_turn tb = {b, st_usage_read(tree, b->account, b->user, core->now, half_life_ms)};
    return st_turn_cmp(&ta, &tb) < 0;
}

/* Whether the job could do anything with a turn; changes nothing but the time to wake. */
static bool could_move(st_core *core, const st_job *job, st_phase phase, bool *ret_later)
{
    bool sure = phase == PHASE_SURE;
    *ret_later = false;
    if (!sure && st_core_weight_zero(core, job->account, NULL))
        return false;
    for (int32_t t = st_core_next_type(core, job, ST_TYPE_FIRST); t != ST_TYPE_END;
         t = st_core_next_type(core, job, t)) {
        if (is_sure(core, job, t) != sure || !within_limits(core, job, t))
            continue;
        int blocker;
        if (below_max(core, job, t, ST_NOW | ST_NEXT) &&
            st_core_backfill(core, job, t, NULL, NULL, &blocker))
            return true;
        if (!sure && !st_core_may_rebalance(core, job))
            continue;
        st_claim claim;
        st_core_claim(core, job, t, sure, &claim);
        if (claim.result == ST_CLAIM_PROTECTED) {
            core->wake_ms = ST_MIN(core->wake_ms, claim.until_ms);
            *ret_later = true;
        }
        st_claim_done(&claim);
        if (claim.result == ST_CLAIM_OK)
            return true;
    }
    return false;
}

/* A submit frees nothing, and everybody else was just found to have nothing to do: a new job
 * behind all those who are gathered for, that can do nothing either, leaves a full pass
 * nothing to change but its own reservation. True when that was so. */
static bool pass_one(st_core *core, st_job *job)
{
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        if (r->claims || r->at_ms <= core->now ||
            !goes_before(core, st_core_find(core, r->job), job))
            return false;
    }
    for (st_phase phase = PHASE_SURE; phase <= PHASE_BURST; phase++) {
        bool later;
        if (could_move(core, job, phase, &later))
            return false;
        gather(core, job, phase, later);
    }
    wake_for_order(core);
    return true;
}

int st_core_step(st_core *core, const st_event *event, int64_t now, st_effects *fx, st_err *err)
{
    int rc = st_core_apply(core, event, now, fx, err);
    if (rc < 0 && core->settled)
        return rc; /* refused, and nothing was due */
    bool quiet = core->settled && core->wake_ms > core->now;
    bool submitted = rc == 0 && event->kind == ST_EV_SUBMIT;
    if (!submitted || !quiet || !pass_one(core, st_core_find(core, event->u.job.id)))
        st_core_pass(core, now, fx);
    return rc;
}
