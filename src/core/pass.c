/* One scheduling pass: who starts now, who claims, for whom capacity is reserved.
 *
 *   1 capacity, floors and classes are brought up to date;
 *   2 plans whose victims have left start (or start elsewhere, if that became free);
 *   3 gangs that lost a node are tried on what survives of their places, and jobs that were
 *     moved for somebody on the places kept free for them;
 *   4 waiting jobs in order: first those inside their floors, least-used floor first, then
 *     borrowers by priority and standing. Who finds no place claims; who may not claim is
 *     reserved for; everybody behind may use the rest.
 * The pass repeats until a round changes nothing: then another pass changes nothing either.
 * Each round displaces in strict order only, so it ends.
 *
 * Looking for whom to displace is the costly part, and a pass has so much effort for it. Where that
 * is used up the pass stops in the middle of a round, and the next, a moment later, goes on there with
 * what claims have come to so far. So effort decides when somebody runs, and never who. A moment has
 * one such piece: what happens in it is for the next. If something happened in between, the round begins
 * anew, but those who have looked do not look again before everybody has: no stream of events keeps the
 * last in line out. Who is submitted in between changes nothing for the others, and joins when the round
 * is over. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/book.h"
#include "core/flow.h"
#include "core/shadow.h"
#include "core/turn.h"

#define ROUNDS_MAX  1000
#define EXCHANGE_MS 60000 /* how often borrowers who wait look for somebody to displace */
#define LATE_MAX_MS 1000  /* how long a round may take that counts as one moment */

/* Those who are in the round from its beginning; bookings have looked at who waits for them. Who comes later
 * is fresh. */
static void note_joined(st_core *core, const st_queue *q)
{
    for (size_t i = 0; i < q->entries.n; i++) {
        st_job *job = q->entries.v[i].turn.job;
        job->joined = core->round;
        job->beyond = false;
    }
    for (size_t i = 0; core->bookings.n > 0 && i < core->off.n; i++) {
        st_job *job = core->off.v[i];
        if (!job->booking)
            continue;
        job->joined = core->round;
        job->turn.priority = 0; /* it has none in the queue, though it may have had one */
        job->turn.usage = job->turn.key = 0;
        job->turn_print = 0;
    }
}

/* Everybody gets a turn in each phase; true when somebody could use it. Starts change the
 * standings that later turns and reservations go by, so the caller repeats until a round
 * changes nothing: then doing it again changes nothing either. */
static bool run_queue(st_core *core, bool in_place, st_effects *fx)
{
    st_queue q = {0};
    bool again = false;
    if (in_place) {
        st_core_keep_refusals(core);
    } else {
        st_core_forget_misfits(core);
        core->blocked = 0;
        st_core_reserve_clear(core);
        st_core_reserve_movers(core);
        st_vec_clear(&core->fresh); /* they are in the queue */
    }
    st_queue_build(core, &q, in_place);
    if (!in_place)
        note_joined(core, &q);
    for (st_phase phase = ST_PHASE_GUARANTEED; phase <= ST_PHASE_BURST; phase++) {
        st_queue_rewind(core, &q);
        st_job *job;
        int64_t most = phase == ST_PHASE_BURST ? core->policy.lookahead : 0;
        while ((job = st_queue_next(core, &q, phase))) {
            if (!st_job_waits(job))
                continue;
            if (core->stopped || (in_place && job->looked[phase] == core->round))
                continue;
            job->beyond = most > 0 && core->blocked >= most;
            if (job->beyond)
                continue;
            if (ST_BROKEN(CONSERVE) && job->id % 7 == 0)
                continue;
            bool later;
            if (st_core_turn(core, job, phase, NULL, &later, fx)) {
                st_queue_reorder(core, &q, phase);
                /* If it is displaced in this round, that was it. */
                job->looked[phase] = core->round;
                job->later[phase] = false;
                again = true;
            } else if (!core->stopped) {
                st_core_turn_reserve(core, job, phase, later);
                q.quiet = q.quiet || st_core_is_quiet(core);
                job->looked[phase] = core->round;
                job->later[phase] = later;
                /* Who lacks more than room may lack it for ever, and stands in nobody's way. */
                core->blocked +=
                    most > 0 && core->resv.n > 0 && st_core_lacks_room(core, job, phase);
            }
        }
    }
    if (core->stopped)
        st_queue_stop(core, &q);
    st_queue_done(&q);
    st_core_news_age(core);
    return again;
}

/* ---- plans and restarts ------------------------------------------------------------------ */

static int by_job(const void *pa, const void *pb)
{
    const st_job *const *a = pa, *const *b = pb;
    return ((*a)->id > (*b)->id) - ((*a)->id < (*b)->id);
}

/* Who holds a plan, by id: none of them is on devices. */
static void list_held(const st_core *core, st_job_vec *ret)
{
    for (size_t i = 0; core->nheld > 0 && i < core->off.n; i++)
        if (core->off.v[i]->held)
            st_vec_push(ret, core->off.v[i]);
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_job);
}

/* Start plans whose place is free; a plan that could start elsewhere by now does, and its
 * victims are spared. True when a plan was given up or came true. */
static bool run_held(st_core *core, st_effects *fx)
{
    bool moved = false;
    st_job_vec held = {0};
    list_held(core, &held);
    for (size_t i = 0; i < held.n; i++) {
        st_job *job = held.v[i];
        if (!job->held)
            continue;
        if (job->class == ST_CLASS_BOOKED) {
            if (st_core_ready(core, job)) {
                st_core_start_held(core, job, fx);
                moved = true;
            }
            continue;
        }
        if (st_core_plan_over(core, job)) {
            st_core_unhold(core, job, fx); /* a max was lowered below it */
            moved = true;
            continue;
        }
        if (st_core_ready(core, job)) {
            if (st_core_below_max(core, job, job->type, ST_NOW)) {
                if (st_core_may_sit(core, job, job->class, job->grants, fx))
                    st_core_start_held(core, job, fx);
                else
                    st_core_unhold(core, job, fx);
                moved = true;
            }
            continue;
        }
        st_ask ask = {.job = job, .type = job->type};
        if (job->state == ST_JOB_PENDING && st_core_below_max(core, job, job->type, ST_NOW) &&
            st_place_fits(core->placer, &ask)) {
            st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
            bool ok = st_place_gang(core->placer, &ask, grants);
            ST_ASSERT(ok);
            if (!st_core_may_sit(core, job, job->class, grants, fx)) {
                free(grants);
                continue;
            }
            st_core_start_elsewhere(core, job, grants, fx);
            moved = true;
        }
    }
    st_vec_free(&held);
    return moved;
}

/* Make room for a mark on every node. */
static void cover_prefer(st_core *core)
{
    size_t n = core->fleet->nodes.n;
    if (core->nprefer >= n)
        return;
    core->prefer = st_xreallocarray(core->prefer, n, 1);
    memset(core->prefer + core->nprefer, 0, n - core->nprefer);
    core->nprefer = n;
}

void st_core_prefer(st_core *core, int32_t node)
{
    cover_prefer(core);
    core->prefer[node] = 1;
}

/* Those who were guaranteed first, then by priority and id. */
static int by_right(const void *pa, const void *pb)
{
    const st_restart *a = pa, *b = pb;
    if (a->guaranteed != b->guaranteed)
        return a->guaranteed ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

/* Who can do nothing has its turn in the queue as well: what it waits for is found out there, behind
 * those who are reserved for, and the same in a pass that nobody restarts in. */
static bool run_restarts(st_core *core, st_effects *fx)
{
    bool moved = false;
    int64_t wake_ms = core->wake_ms, exchange_ms = core->exchange_ms;
    if (core->restart.n > 0) {
        cover_prefer(core);
        qsort(core->restart.v, core->restart.n, sizeof *core->restart.v, by_right);
    }
    for (size_t i = 0; i < core->restart.n; i++) {
        st_job *job = st_core_find(core, core->restart.v[i].job);
        if (!job || !st_job_waits(job))
            continue;
        bool later;
        moved |= st_core_turn(core, job, ST_PHASE_GUARANTEED, core->prefer, &later, fx) ||
                 st_core_turn(core, job, ST_PHASE_BURST, core->prefer, &later, fx);
    }
    st_vec_clear(&core->restart);
    core->wake_ms = wake_ms;
    core->exchange_ms = exchange_ms;
    for (size_t i = 0; i < core->nprefer; i++)
        core->prefer[i] = 0;
    return moved;
}

static bool anybody_waits(const st_core *core, const st_job *but)
{
    for (size_t i = 0; i < core->off.n; i++)
        if (core->off.v[i] != but && st_job_waits(core->off.v[i]))
            return true; /* nearly always the first */
    return false;
}

/* When borrowers look for whom to displace, after a moment. */
static int64_t exchanges_ms(const st_core *core, int64_t moment)
{
    if ((!core->policy.rebalance && !core->policy.urgent) || !anybody_waits(core, NULL))
        return ST_TIME_NEVER;
    int64_t again = core->stirred ? moment + 1 : core->exchange_ms;
    return again == ST_TIME_NEVER ? again : (again + EXCHANGE_MS - 1) / EXCHANGE_MS * EXCHANGE_MS;
}

/* Time alone moves the order now and then: users' usage decays, and with it the reservations
 * move; running jobs reach levels at which those who wait may take their place. */
static void wake_for_order(st_core *core, int64_t moment)
{
    int64_t half_life_ms = core->policy.half_life_ms;
    int64_t next = st_usage_epoch(moment, half_life_ms) + half_life_ms / ST_USAGE_STEPS;
    if (core->resv.n > 0)
        core->wake_ms = ST_MIN(core->wake_ms, ST_MIN(next, core->age_ms));
    core->wake_ms = ST_MIN(core->wake_ms, exchanges_ms(core, moment));
    core->wake_ms = ST_MIN(core->wake_ms, st_shadow_next_ms(core));
    if (core->policy.order != ST_ORDER_ATTAINED)
        return;
    for (size_t i = 0; i < core->placed.n; i++) {
        int64_t stage = st_order_next_stage_ms(&core->policy, core->placed.v[i], moment);
        core->wake_ms = ST_MIN(core->wake_ms, stage);
    }
}

/* Those who run have outlived some more stages. */
static void note_lives(st_core *core)
{
    if (core->policy.order != ST_ORDER_ATTAINED)
        return;
    for (size_t i = 0; i < core->placed.n; i++) {
        st_job *job = core->placed.v[i];
        st_life_note(st_tree_account(core->tree, job->account), job, core->now);
    }
}

void st_core_advance(st_core *core, int64_t now)
{
    if (now <= core->now)
        return;
    bool minute = now / EXCHANGE_MS != core->now / EXCHANGE_MS;
    core->minute |= minute;
    /* By time alone only where the timer says so; what happens may let them as well (st_core_apply). A
     * minute that begins in the middle of a round is for the next: all look then, or none. */
    core->exchange |= minute && !core->unfinished && st_core_next_timer(core) <= now;
    core->now = now;
}

/* ---- submits into a settled state -------------------------------------------------------- */

/* A submit frees nothing, and everybody else was just found to have nothing to do: a new job
 * behind all those who are reserved for, that can do nothing either, leaves a full pass
 * nothing to change but its own reservation. That holds for owners ahead whose room comes from
 * borrowers once their protections end, too: the new job is none of those. True when that was so. */
static bool pass_one(st_core *core, st_job *job)
{
    st_shadow_run(core);
    if (job->barred)
        return true;
    if (job->booking)
        return false;
    if (!st_queue_joins(core, job))
        return false;
    st_phase first = st_queue_phase(core, job);
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_reservation *r = &core->resv.v[i];
        if (r->moves)
            return false;
        st_phase phase = r->guaranteed ? ST_PHASE_GUARANTEED : ST_PHASE_BURST;
        st_job *ahead = st_core_find(core, r->job);
        bool before = phase == first ? st_queue_before(core, phase, ahead, job) : r->guaranteed;
        if (!before || r->at_ms <= core->now)
            return false;
    }
    for (st_phase phase = ST_PHASE_GUARANTEED; phase <= ST_PHASE_BURST; phase++) {
        bool later;
        if (st_core_turn(core, job, phase, NULL, &later, NULL))
            return false;
        st_core_turn_reserve(core, job, phase, later);
    }
    return true;
}

/* Who waits, is not reserved for and holds nothing stands in nobody's way: without it a full pass finds what
 * the last one found. */
bool st_core_parts_quietly(st_core *core, const st_job *job)
{
    if (job->barred & ST_BAR_IDLE)
        return core->settled && !core->unfinished && core->fresh.n == 0;
    if (!core->settled || core->unfinished || core->fresh.n > 0 || core->bookings.n > 0 ||
        core->policy.lookahead > 0 || core->policy.as_if_alone ||
        core->policy.order == ST_ORDER_ATTAINED)
        return false;
    if (job->state != ST_JOB_PENDING || !st_job_waits(job) || job->grants)
        return false;
    for (size_t i = 0; i < core->resv.n; i++)
        if (core->resv.v[i].job == job->id)
            return false;
    if (!anybody_waits(core, job)) /* then nobody is to be woken up for any more */
        return false;
    return st_queue_parts(core, job);
}

static int by_id(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return (a > b) - (a < b);
}

/* The same for all of them; false when there must be a round. */
static bool join_fresh(st_core *core)
{
    int64_t exchange_ms = core->exchange_ms;
    if (core->fresh.n == 0)
        return true;
    if (core->policy.lookahead > 0 || core->age_ms <= st_core_moment(core))
        return false;
    /* A save has no order of them. */
    qsort(core->fresh.v, core->fresh.n, sizeof *core->fresh.v, by_id);
    for (size_t i = 0; i < core->fresh.n; i++) {
        if (pass_one(core, st_core_find(core, core->fresh.v[i])))
            continue;
        core->exchange_ms = exchange_ms; /* a round finds out for itself when to look again */
        return false;
    }
    st_vec_clear(&core->fresh);
    return true;
}

/* ---- the pass ---------------------------------------------------------------------------- */

/* What a round begins with; true when somebody could use it. */
static bool begin_round(st_core *core, st_effects *fx)
{
    st_core_reclass(core, fx);
    while (run_held(core, fx))
        st_core_reclass(core, fx);
    /* Those who have just lost their floors may have made room for a booking that has none: before anybody else
     * takes it. */
    if (core->ndegraded > 0 && st_book_mend(core, fx))
        st_core_reclass(core, fx);
    bool moved = st_book_run(core, fx);
    st_core_reserve_clear(core);
    st_core_forget_misfits(core);
    return run_restarts(core, fx) || moved;
}

/* One round, or the rest of one: true when there must be another. */
static bool run_round(st_core *core, st_effects *fx)
{
    bool in_place = core->unfinished && !core->heard;
    if (!core->unfinished) {
        core->round++;
        core->again = false;
        core->wake_ms = ST_TIME_NEVER;
    } else {
        core->wake_ms = core->round_wake_ms;
        core->again |= core->heard;
    }
    core->woken = false;
    if (!in_place)
        core->again |= begin_round(core, fx);
    core->again |= run_queue(core, in_place, fx);
    st_arrays_run(core);
    core->unfinished = core->stopped;
    core->round_wake_ms = core->wake_ms;
    core->heard = false;
    core->again |= core->woken; /* they have had no turn in it: as if they had been submitted */
    return core->again || core->floors_dirty || core->class_dirty;
}

/* The round is over. Whether it took so long that something has come meanwhile which somebody waits for:
 * then there is another one, of this moment. */
static bool moved_on(st_core *core)
{
    int64_t moment = st_core_moment(core);
    if (moment == core->now)
        return core->wake_ms <= core->now;
    if (core->exchange)
        core->stirred = false;
    core->exchange = exchanges_ms(core, core->round_ms) <= core->now;
    wake_for_order(core, core->round_ms); /* by then the order was made */
    if (core->wake_ms > core->now && !core->exchange)
        return false;
    if (core->exchange)
        core->exchange_ms = ST_TIME_NEVER;
    core->round_ms = core->now;
    core->late_ms = 0;
    note_lives(core);
    return true;
}

void st_core_pass(st_core *core, int64_t now, st_effects *fx)
{
    st_core_advance(core, now);
    st_core_expire(core, fx);
    /* The same moment again changes nothing; what has happened in it is for the next. Only those who have
     * just lost their nodes are looked after at once. */
    if (core->unfinished && core->now <= core->stopped_ms && core->restart.n == 0) {
        core->settled = true;
        st_core_set_due(core);
        return;
    }
    int round = 0;
    bool again = true;
    core->stopped = false;
    core->effort = core->policy.claim_effort;
    if (!core->unfinished)
        core->round_ms = core->now;
    core->late_ms = ST_MIN(core->now - core->round_ms, LATE_MAX_MS);
    if (core->late_ms == 0)
        note_lives(core);
    if (core->exchange && !core->unfinished)
        core->exchange_ms = ST_TIME_NEVER;
    while (again && !core->stopped && round++ < ROUNDS_MAX) {
        again = run_round(core, fx);
        if (!again && !core->stopped)
            again = !join_fresh(core) || core->floors_dirty || core->class_dirty;
        /* Those who have just lost their floors may have made room for a booking that has none. */
        if (!again && !core->stopped && core->ndegraded > 0)
            again = st_book_mend(core, fx);
        if (!again && !core->stopped)
            again = moved_on(core);
    }
    if (core->stopped) {
        core->stopped_ms = core->now;
        core->wake_ms = core->now + 1;
    } else {
        if (core->exchange)
            core->stirred = false;
        core->exchange = false;
        st_core_promise(core);
        wake_for_order(core, core->now);
        core->wake_ms = ST_MAX(core->wake_ms, core->now + 1); /* a long round may have passed it */
        if (again) /* never seen; the rest can wait a moment, the tenants' jobs must not */
            core->wake_ms = ST_MIN(core->wake_ms, core->now + 1000);
    }
    core->late_ms = 0;
    st_after_defer(core);
    st_core_set_due(core);
    st_core_free_ended(core);
    core->settled = true;
    core->parted = false;
    core->minute = false;
}

/* Whether nothing happened since the last pass but submits that ask for no other, and cancels of who waited. */
static bool pass_fresh(st_core *core)
{
    if (!core->settled || core->exchange || core->unfinished || core->wake_ms <= core->now)
        return false;
    bool any = core->fresh.n > 0 || core->parted;
    if (!join_fresh(core))
        return false;
    if (any) {
        st_core_promise(core);
        wake_for_order(core, core->now);
    }
    if (core->parted) {
        st_core_set_due(core);
        st_core_free_ended(core);
        core->parted = false;
    }
    return true;
}

void st_core_settle(st_core *core, int64_t now, st_effects *fx)
{
    st_core_advance(core, now);
    st_core_expire(core, fx);
    if (!pass_fresh(core))
        st_core_pass(core, now, fx);
    core->exchange &= core->unfinished;
    core->minute = false;
}

int st_core_step(st_core *core, const st_event *event, int64_t now, st_effects *fx, st_err *err)
{
    int rc = st_core_apply(core, event, now, fx, err);
    if (rc < 0)
        return rc;
    st_core_settle(core, now, fx);
    return 0;
}
