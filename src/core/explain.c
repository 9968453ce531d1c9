/* Why a job waits: every constraint that blocks it now, asked of the same functions the pass
 * uses. One set of reasons per GPU type it allows. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/book.h"
#include "core/shadow.h"

static void say(st_reasons *ret, st_reason reason)
{
    st_vec_push(ret, reason);
}

static st_reason reason_of(st_why code, int32_t type)
{
    return (st_reason){.code = code, .account = -1, .type = type, .until_ms = ST_TIME_NEVER};
}

static void say_max(st_core *core, const st_job *job, int32_t type, unsigned moments,
                    st_reasons *ret)
{
    st_over over[4 * (ST_DEPTH_MAX + 1)];
    st_need need = st_need_of(job, type);
    int n =
        st_admit_over(core->tree, job->account, &need, moments, false, over, ST_ARRAY_LEN(over));
    for (int i = 0; i < ST_MIN(n, (int)ST_ARRAY_LEN(over)); i++) {
        st_reason r = reason_of(ST_WHY_MAX, over[i].type);
        r.account = over[i].account;
        r.dim = over[i].dim;
        r.used = over[i].used;
        r.asked = over[i].asked;
        r.bound = over[i].bound;
        say(ret, r);
    }
}

static void say_limits(st_core *core, const st_job *job, int32_t type, st_reasons *ret)
{
    st_limit_over over[ST_LIMIT_COUNT * (ST_DEPTH_MAX + 1)];
    int n =
        st_admit_user_limits(core->fleet, core->tree, job, type, false, over, ST_ARRAY_LEN(over));
    for (int i = 0; i < ST_MIN(n, (int)ST_ARRAY_LEN(over)); i++) {
        st_reason r = reason_of(ST_WHY_USER_LIMIT, type);
        r.account = over[i].account;
        r.dim = (int)over[i].kind;
        r.used = over[i].used;
        r.asked = over[i].asked;
        r.bound = over[i].bound;
        say(ret, r);
    }
}

/* Over its floor, and whether it may borrow at all. Returns whether it is inside. */
static bool say_floor(st_core *core, const st_job *job, int32_t type, st_reasons *ret)
{
    st_need need = st_need_of(job, type);
    int32_t at = job->account;
    int32_t full = job->shadow ? -1 : st_admit_full(core->tree, job->account, &need, true);
    bool counted = st_admit_guaranteed(core->tree, job->account, &need, &at);
    if (counted && full < 0 && st_shadow_entitled(job, type))
        return true;
    if (counted && full >= 0)
        at = full;
    while (job->shadow && at != ST_ROOT &&
           !st_quota_has_gpu(&st_tree_account(core->tree, at)->floor))
        at = st_tree_account(core->tree, at)->parent;
    const st_account *a = st_tree_account(core->tree, at);
    st_reason r = reason_of(ST_WHY_OVER_FLOOR, type);
    r.account = at;
    r.used = counted && full >= 0 ? a->next.gpu_m : a->guaranteed.gpu_m;
    r.asked = need.gpu_m;
    r.bound = at == ST_ROOT ? core->tree->capacity.gpu_m : st_quota_gpu_m(&a->floor);
    say(ret, r);
    if (st_core_weight_zero(core, job->account, &at)) {
        r = reason_of(ST_WHY_WEIGHT_ZERO, type);
        r.account = at;
        say(ret, r);
    }
    return false;
}

/* If it would fit but for plans of others: one that is in its way, 0 otherwise. All plans are
 * thought away and come back one by one, lowest id first; the first with which it fits no more
 * is in the way, whatever the others do. */
static uint64_t held_by(st_core *core, const st_job *job, int32_t type)
{
    st_whatif_begin(core, ST_WHEN_EITHER);
    for (size_t i = 0; core->nheld > 0 && i < core->jobs.n; i++)
        if (core->jobs.v[i]->held && core->jobs.v[i] != job)
            core->jobs.v[i]->out = ST_OUT_ENDED;
    for (size_t i = 0; core->nheld > 0 && i < core->jobs.n; i++)
        if (core->jobs.v[i]->out)
            st_whatif_touch(core, core->jobs.v[i], NULL);
    st_ask ask = {.job = job, .type = type, .view = st_whatif_view, .ctx = core};
    bool fits = core->nheld > 0 && st_place_fits(core->placer, &ask);
    uint64_t found = 0;
    for (size_t i = 0; core->nheld > 0 && i < core->jobs.n; i++) {
        st_job *other = core->jobs.v[i];
        if (!other->out)
            continue;
        other->out = ST_OUT_NOT;
        if (!fits || found)
            continue;
        st_whatif_touch(core, other, NULL);
        if (!st_place_fits(core->placer, &ask))
            found = other->id;
    }
    return found;
}

/* What it allows keeps it out, and how many of its tasks fit there. */
static void say_nodes(const st_job *job, int32_t type, int64_t fit, st_reasons *ret)
{
    st_reason r = reason_of(ST_WHY_NODES, type);
    r.asked = job->tasks;
    r.used = fit;
    r.bound = (int64_t)job->shape.nodes;
    r.dim = job->shape.gpus;
    say(ret, r);
}

/* Whether it would fit if it allowed all nodes. */
static bool fits_elsewhere(st_core *core, const st_job *job, int32_t type)
{
    st_job any = *job;
    any.shape.nodes = 0;
    st_ask ask = {.job = &any, .type = type};
    return st_place_fits(core->placer, &ask);
}

static void say_no_room(st_core *core, const st_job *job, int32_t type, st_reasons *ret)
{
    st_ask ask = {.job = job, .type = type};
    st_place_why why;
    st_place_explain(core->placer, &ask, &why);
    st_need need = st_need_of(job, type);
    st_reason r = reason_of(ST_WHY_GPUS_BUSY, type);
    r.asked = job->tasks;
    uint64_t held = held_by(core, job, type);
    if (held) {
        r.code = ST_WHY_HELD;
        r.other = held;
        say(ret, r);
        return;
    }
    size_t before = ret->n;
    r.used = why.fit_now;
    if (job->state == ST_JOB_PAUSED) {
        r.code = ST_WHY_PINNED;
        say(ret, r);
        return;
    }
    if (job->shape.nodes && why.fit_now < job->tasks && fits_elsewhere(core, job, type)) {
        say_nodes(job, type, why.fit_now, ret);
        return;
    }
    if (why.fit_ready < job->tasks) {
        r.code = ST_WHY_NODES_DOWN;
        r.used = why.fit_ready;
        r.bound = why.fit_ever;
        say(ret, r);
        r.used = why.fit_now;
    }
    /* Where GPUs lack, their CPU and RAM mostly lack with them: those are named if they keep more tasks out than
     * the GPUs do. Where GPUs do, what lacks alone or beside them. */
    int64_t want = ST_MIN(job->tasks, why.fit_ready);
    bool gpus = why.fit_gpu >= want;
    if (!gpus) {
        r.code = why.gpu_free_m >= need.gpu_m ? ST_WHY_FRAGMENTED : ST_WHY_GPUS_BUSY;
        r.used = why.fit_gpu;
        r.bound = why.gpu_free_m;
        say(ret, r);
    }
    if (why.fit_cpu < ST_MIN(want, why.fit_gpu) || (gpus && why.fit_gpu_cpu < want)) {
        r.code = ST_WHY_CPU;
        r.used = ST_MIN(why.fit_cpu, why.fit_gpu_cpu);
        r.bound = why.fit_gpu;
        say(ret, r);
    }
    if (why.fit_ram < ST_MIN(want, why.fit_gpu) || (gpus && why.fit_gpu_ram < want)) {
        r.code = ST_WHY_RAM;
        r.used = ST_MIN(why.fit_ram, why.fit_gpu_ram);
        r.bound = why.fit_gpu;
        say(ret, r);
    }
    if (job->topo_required && why.fit_now >= job->tasks) {
        r.code = ST_WHY_TOPOLOGY;
        r.dim = job->topo;
        r.used = why.fit_domain;
        r.bound = why.fit_now;
        say(ret, r);
    } else if (ret->n == before) {
        r.code = ST_WHY_FRAGMENTED; /* CPU, RAM and GPUs are there, on different nodes */
        r.used = why.fit_now;
        r.bound = why.gpu_free_m;
        say(ret, r);
    }
}

static void say_claim(st_core *core, const st_job *job, int32_t type, bool guaranteed,
                      st_reasons *ret)
{
    st_claim claim;
    st_core_claim(core, job, type, guaranteed ? ST_CLAIM_OWNER : ST_CLAIM_BORROWER, true, &claim);
    st_reason r = reason_of(ST_WHY_RECLAIM_NONE, type);
    r.asked = st_job_gpu_m(job);
    if (claim.result == ST_CLAIM_PROTECTED) {
        r.code = ST_WHY_RECLAIM_PROTECTED;
        r.until_ms = claim.until_ms;
    } else if (claim.result == ST_CLAIM_BOUND) {
        r.code = ST_WHY_RECLAIM_BOUND;
        r.used = claim.evict_m;
        r.until_ms = claim.until_ms;
        r.bound = claim.bound_m;
    } else if (claim.result == ST_CLAIM_RESERVED) {
        r.code = ST_WHY_RECLAIM_RESERVED;
        r.other = core->resv.v[claim.blocker].job;
        r.until_ms = core->resv.v[claim.blocker].at_ms;
    }
    if (claim.result == ST_CLAIM_OK && guaranteed && core->bookings.n > 0) {
        r = reason_of(ST_WHY_BOOKED, type); /* else it would have */
        r.until_ms = core->calendar_ms;
        say(ret, r);
    }
    if (claim.result != ST_CLAIM_OK)
        say(ret, r);
    st_claim_done(&claim);
}

/* Where its class alone keeps it from a claim: as another job it would take the place of others. */
static void say_meek(st_core *core, uint64_t id, int32_t type, bool guaranteed, st_reasons *ret)
{
    st_job *job = st_core_find(core, id);
    st_claim claim;
    job->meek = false;
    if (guaranteed || st_core_may_rebalance(core, job)) {
        st_core_claim(core, job, type, guaranteed ? ST_CLAIM_OWNER : ST_CLAIM_BORROWER, true,
                      &claim);
        st_reason r = reason_of(ST_WHY_MEEK, type);
        r.used = (int64_t)claim.victims.n;
        if (claim.result == ST_CLAIM_OK && claim.victims.n > 0)
            say(ret, r);
        st_claim_done(&claim);
    }
    job->meek = true;
}

/* What defragmentation would need, where it is off and would help. */
static void say_moves(st_core *core, const st_job *job, int32_t type, st_reasons *ret)
{
    bool scattered = false;
    for (size_t i = 0; i < ret->n; i++)
        scattered |= ret->v[i].code == ST_WHY_FRAGMENTED && ret->v[i].type == type;
    if (!scattered || core->policy.defrag || job->preemptions > 0)
        return;
    st_claim moves;
    if (st_core_defrag(core, job, type, &moves)) {
        st_reason r = reason_of(ST_WHY_MOVES, type);
        r.used = (int64_t)moves.victims.n;
        r.bound = moves.evict_m;
        say(ret, r);
    }
    st_claim_done(&moves);
}

/* Where it would fit beside what it is told, were it not for bookings. */
static void say_booked(const st_core *core, const st_job *job, int32_t type, st_reasons *ret)
{
    st_reason r = reason_of(ST_WHY_BOOKED, type);
    r.until_ms = ST_TIME_NEVER;
    for (size_t i = 0; job->shape.gpus > 0 && i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        if (!b->open || b->type != type || (job->pool >= 0 && b->pool >= 0 && job->pool != b->pool))
            continue;
        r.until_ms = ST_MIN(r.until_ms, ST_MAX(b->clear_ms, core->now));
        r.bound += b->tasks * b->gpus * ST_WHOLE_M;
    }
    if (r.bound > 0)
        say(ret, r);
}

/* It runs inside its booking, or not at all before that ends. */
static void say_booking(const st_core *core, const st_job *job, st_reasons *ret)
{
    const st_booking *b = st_book_find(core, job->booking);
    st_reason r = reason_of(ST_WHY_BOOKING, b->type);
    r.until_ms = ST_MAX(b->from_ms, core->now) == core->now ? b->to_ms : b->from_ms;
    r.other = b->id;
    r.used = b->from_ms > core->now; /* it has not begun */
    say(ret, r);
}

static void say_type(st_core *core, const st_job *job, int32_t type, st_reasons *ret)
{
    size_t before = ret->n;
    int64_t most = 0;
    /* Whoever is paused has its place, and waits for that alone until it is given up. */
    if (job->state != ST_JOB_PAUSED && !st_core_possible(core, job, type, &most)) {
        /* Nothing else matters where it can never run. */
        st_reason r = reason_of(ST_WHY_NO_NODES, type);
        if (job->shape.nodes && most < job->tasks) {
            say_nodes(job, type, most, ret);
            return;
        }
        r.asked = job->tasks;
        r.bound = most;
        r.dim = job->pool + 1;
        say(ret, r);
        return;
    }
    say_limits(core, job, type, ret);
    say_max(core, job, type, ST_NOW | ST_NEXT, ret);
    bool barred = ret->n > before; /* whomever it may preempt */
    bool guaranteed = say_floor(core, job, type, ret);
    barred |= !guaranteed && st_core_weight_zero(core, job->account, NULL);
    if (!guaranteed && st_core_rests(core, job)) {
        barred = true;
        st_reason r = reason_of(ST_WHY_COOLDOWN, type);
        r.until_ms = job->rest_ms;
        say(ret, r);
    }
    st_ask ask = {.job = job, .type = type};
    st_barrier barrier;
    bool fits = st_place_fits(core->placer, &ask);
    if (!fits) {
        say_no_room(core, job, type, ret);
        say_booked(core, job, type, ret);
        say_moves(core, job, type, ret);
    } else if (guaranteed && core->bookings.n > 0 &&
               (st_core_weight_zero(core, job->account, NULL) || st_core_rests(core, job))) {
        st_reason r =
            reason_of(ST_WHY_BOOKED, type); /* it may not be where it would have to leave */
        r.until_ms = core->calendar_ms;
        say(ret, r);
    } else if (!st_core_backfill(core, job, type, NULL, NULL, &barrier)) {
        st_reason r = reason_of(ST_WHY_RESERVED, type);
        r.other = core->resv.v[barrier.blocker].job;
        r.until_ms = core->resv.v[barrier.blocker].at_ms;
        say(ret, r);
    }
    if (core->unfinished || !core->settled || core->fresh.n > 0) {
        say(ret, reason_of(ST_WHY_UNSEEN, type));
        barred = true;
    }
    if (job->beyond && !guaranteed) {
        barred = true;
        st_reason r = reason_of(ST_WHY_LOOKAHEAD, type);
        r.bound = core->policy.lookahead;
        say(ret, r);
    }
    bool others = core->policy.rebalance || core->policy.swap || job->priority > core->lowest;
    bool claims =
        guaranteed ? !fits || ret->n > before : !fits && others && st_core_may_rebalance(core, job);
    if (claims)
        say_claim(core, job, type, guaranteed, ret);
    if (job->meek && !fits && !barred && (guaranteed || others))
        say_meek(core, job->id, type, guaranteed, ret);
}

static bool shares_a_node(const st_job *a, const st_job *b)
{
    for (int t = 0; t < a->tasks; t++)
        for (int u = 0; u < b->tasks; u++)
            if (a->grants[t].node == b->grants[u].node)
                return true;
    return false;
}

/* A plan waits for its victims, the slowest of which decides. */
static void say_yielding(st_core *core, const st_job *job, st_reasons *ret)
{
    st_reason r = reason_of(ST_WHY_YIELDING, job->type);
    st_reason stop = reason_of(ST_WHY_STOPPING, job->type);
    r.until_ms = core->now;
    for (size_t i = 0; i < core->jobs.n; i++) {
        const st_job *victim = core->jobs.v[i];
        if (!st_job_leaving(victim) || !shares_a_node(job, victim))
            continue;
        if (victim->stopping) {
            stop.other = victim->id;
            stop.asked++;
            continue;
        }
        r.other = victim->id;
        r.asked++;
        bool saves = victim->yield == ST_YIELD_CHECKPOINT || victim->yield == ST_YIELD_PAUSE;
        int64_t until = victim->deadline_ms;
        if (victim->state == ST_JOB_NOTIFIED && saves)
            until += st_core_grace_ms(core, victim);
        r.until_ms = ST_MAX(r.until_ms, until);
    }
    if (stop.asked > 0)
        say(ret, stop);
    if (r.asked > 0 || stop.asked == 0)
        say(ret, r);
    say_max(core, job, job->type, ST_NOW, ret);
}

/* Its own last stay may not be over. */
static void say_stopping(const st_job *job, st_reasons *ret)
{
    st_reason r = reason_of(ST_WHY_STOPPING, -1);
    r.other = job->id;
    r.used = r.asked = 1;
    say(ret, r);
}

/* One of those it waits for, and how many they are. */
static void say_after(const st_job *job, st_reasons *ret)
{
    const st_await *a = &job->afters[0];
    for (int i = 0; job->never && i < job->nafters; i++)
        if (job->afters[i].id == job->never)
            a = &job->afters[i];
    st_reason r = reason_of(job->never ? ST_WHY_NEVER : ST_WHY_AFTER, -1);
    r.other = a->id;
    r.asked = job->nafters;
    r.used = a->array;
    r.dim = (int)a->how;
    say(ret, r);
}

/* What makes it idle. */
static void say_idle(const st_core *core, const st_job *job, st_reasons *ret)
{
    if (job->barred & ST_BAR_HOLD) {
        st_reason r = reason_of(ST_WHY_ON_HOLD, -1);
        r.used = job->held_by;
        say(ret, r);
    }
    if (job->barred & ST_BAR_AFTER)
        say_after(job, ret);
    if ((job->barred & ST_BAR_THROTTLE) && !(job->barred & (ST_BAR_HOLD | ST_BAR_AFTER))) {
        int throttle = 0;
        st_reason r = reason_of(ST_WHY_THROTTLE, -1);
        st_core_array(core, job->array, &throttle, NULL);
        r.bound = throttle;
        say(ret, r);
    }
}

static void say_retry(const st_job *job, st_reasons *ret)
{
    st_reason r = reason_of(ST_WHY_RETRY, -1);
    r.used = job->tries;
    r.bound = job->retry.times;
    r.until_ms = job->begin_ms;
    say(ret, r);
}

static void say_barred(const st_core *core, const st_job *job, st_reasons *ret)
{
    say_idle(core, job, ret);
    if ((job->barred & ST_BAR_BEGIN) && job->tries > 0) {
        say_retry(job, ret);
        return;
    }
    if (job->barred & ST_BAR_ORDER)
        say(ret, reason_of(ST_WHY_CAP, -1));
    if (!(job->barred & ST_BAR_WINDOW))
        return;
    st_reason r = reason_of(ST_WHY_WINDOW, -1);
    r.dim = job->barred & ST_BAR_BEGIN ? ST_BAR_BEGIN
            : job->barred & ST_BAR_END ? ST_BAR_END
                                       : ST_BAR_SLOT;
    if (r.dim != ST_BAR_SLOT)
        r.until_ms = r.dim == ST_BAR_BEGIN ? job->begin_ms : job->end_by_ms;
    say(ret, r);
}

int st_core_explain(st_core *core, uint64_t id, st_reasons *ret, st_err *err)
{
    const st_job *job = st_core_find(core, id);
    if (!job)
        return st_fail(err, ST_ENOENT, "job %" PRIu64 " does not exist or has ended", id);
    if (ST_BROKEN(REASONS))
        return 0;
    if (job->stopping)
        say_stopping(job, ret);
    if ((job->state != ST_JOB_PENDING && job->state != ST_JOB_PAUSED) || job->stopping)
        return 0;
    if (job->held) {
        say_yielding(core, job, ret);
        return 0;
    }
    if (job->barred) {
        say_barred(core, job, ret);
        return 0;
    }
    if (job->booking) {
        say_booking(core, job, ret);
        return 0;
    }
    ST_EACH_TYPE (core, job, t)
        say_type(core, job, t, ret);
    return 0;
}
