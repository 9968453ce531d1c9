/* One job's turn. */
#include "core/turn.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/book.h"
#include "core/reserve.h"
#include "core/shadow.h"

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
    return (core->policy.rebalance || core->policy.swap || core->policy.urgent) &&
           !st_core_weight_zero(core, job->account, NULL);
}

/* Where the order is kept by force, inside an account or with homes for everybody (shadow.h). */
bool st_core_claims_at_once(const st_core *core)
{
    return core->policy.swap || core->policy.as_if_alone;
}

/* Whether it looks for somebody to displace in this pass, and for whom. An owner always does, a
 * borrower every minute: exchanges between borrowers are a matter of fairness, not of right, and with
 * many who wait, looking every time anything happens is most of the work. Who comes in between waits
 * with the others, or it would go before them; but its own account is its own business. */
static bool claims_now(const st_core *core, const st_job *job, bool guaranteed, st_claim_by *ret)
{
    *ret = guaranteed ? ST_CLAIM_OWNER : ST_CLAIM_BORROWER;
    if (guaranteed)
        return true;
    if (!st_core_may_rebalance(core, job))
        return false;
    if (st_core_claims_at_once(core) || core->exchange)
        return true;
    *ret = ST_CLAIM_OWN;
    return core->policy.urgent && job->queued_ms >= core->round_ms;
}

/* Whether it may not borrow for a while. */
bool st_core_rests(const st_core *core, const st_job *job)
{
    return job->rest_ms > st_core_moment(core);
}

#define CLAIM_RESULTS 8  /* how a claim came out is remembered below, whose it was above */
#define KEY_MOVES     77 /* tells the memory of moves from that of places */

/* ---- claims that came to nothing ---------------------------------------------------------- */

/* Try the claim again at a moment, if that is to come: at once where the job looks in every pass. Who
 * claims from the excess of its account stands with the borrowers, and looks when they do. */
static void wake_claim(st_core *core, const st_job *job, int32_t type, int64_t at_ms)
{
    if (at_ms <= st_core_moment(core))
        return;
    bool soon = st_core_claims_at_once(core) || st_core_is_guaranteed(core, job, type);
    int64_t *wake_ms = soon ? &core->wake_ms : &core->exchange_ms;
    *wake_ms = ST_MIN(*wake_ms, at_ms);
}

/* When a job has waited so long that a claim of its kind is held to less. */
static int64_t patience_ms(const st_core *core, const st_job *job, int times)
{
    return ST_MIN(job->queued_ms, st_core_moment(core)) + times * core->policy.patience_ms;
}

/* The same claim of the same account fails the same way while nothing is freed; but a shorter job may
 * swap with somebody a longer one may not, and how long each has waited is its own. */
static bool claim_failed(st_core *core, const st_job *job, int32_t type, st_claim_by by,
                         uint64_t *ret_key, bool *ret_later)
{
    uint64_t key =
        st_hash_u64(st_core_shape_key(job, type), (uint64_t)job->account * 4 + (uint64_t)by + 1);
    int64_t how = 0;
    if (core->freed)
        st_core_forget_misfits(core);
    int64_t once_ms = patience_ms(core, job, 1), now = st_core_moment(core);
    int64_t long_ms = patience_ms(core, job, ST_EXCHANGE_PATIENCE);
    key = st_hash_u64(key, (uint64_t)job->priority);
    key = st_hash_u64(key, job->meek);
    key = st_hash_u64(key, (uint64_t)st_order_swap_rank(core->tree, &core->policy, job, now));
    key = st_hash_u64(key, (uint64_t)((once_ms <= now) + (long_ms <= now)) * 2 +
                               (by == ST_CLAIM_BORROWER && st_core_may_fill(core, job)));
    /* Who has a place of its own claims that and no other. */
    *ret_key = by == ST_CLAIM_OWNER && job->shadow ? st_hash_u64(key, job->id) : key;
    if (!st_idmap_get(core->misfits, *ret_key, &how))
        return false;
    /* So is when a gang may fill. */
    if (by == ST_CLAIM_BORROWER && st_core_fill_ms(core, job) != ST_TIME_NEVER)
        wake_claim(core, job, type, st_core_fill_ms(core, job));
    /* When the bound no longer holds is for each to find out. */
    if (how % CLAIM_RESULTS == ST_CLAIM_BOUND && how / CLAIM_RESULTS != job->queued_ms)
        return false;
    *ret_later |= how % CLAIM_RESULTS == ST_CLAIM_PROTECTED;
    return true;
}

/* What a claim that came to nothing leaves behind. */
static void note_claim(st_core *core, const st_job *job, int32_t type, uint64_t key,
                       const st_claim *claim, bool *ret_later)
{
    int64_t whose = claim->result == ST_CLAIM_BOUND ? job->queued_ms : 0;
    st_core_refuse(core, key, whose * CLAIM_RESULTS + claim->result);
    wake_claim(core, job, type, claim->until_ms);
    *ret_later |= claim->result == ST_CLAIM_PROTECTED;
}

/* ---- one job -----------------------------------------------------------------------------
 *
 * Without effects (fx NULL) nothing is done, and true says that something might be: a booking that would have to
 * move out of the way is not asked whether it can. */

static bool within_limits(const st_core *core, const st_job *job, int32_t type)
{
    if (ST_BROKEN(USER_LIMIT))
        return true;
    return st_admit_user_limits(core->fleet, core->tree, job, type, false, NULL, 0) == 0;
}

bool st_core_below_max(const st_core *core, const st_job *job, int32_t type, unsigned moments)
{
    st_need need = st_need_of(job, type);
    return ST_BROKEN(MAX) ||
           st_admit_over(core->tree, job->account, &need, moments, false, NULL, 0) == 0;
}

/* Whether it would be guaranteed, whatever else its account holds. */
static bool is_counted(const st_core *core, const st_job *job, int32_t type)
{
    st_need need = st_need_of(job, type);
    return st_shadow_entitled(job, type) &&
           st_admit_guaranteed(core->tree, job->account, &need, NULL);
}

bool st_core_may_sit(st_core *core, const st_job *job, st_class class, const st_grant *grants,
                     st_effects *fx)
{
    return core->bookings.n == 0 || class != ST_CLASS_GUARANTEED ||
           st_book_make_way(core, job, grants, fx) ||
           (!st_core_weight_zero(core, job->account, NULL) && !st_core_rests(core, job));
}

/* A job with a home place takes that first; wherever else it sits it borrows. */
static bool try_start(st_core *core, st_job *job, int32_t type, st_class class,
                      const uint8_t *prefer, st_effects *fx)
{
    if (!within_limits(core, job, type) || !st_core_below_max(core, job, type, ST_NOW | ST_NEXT))
        return false;
    if (class == ST_CLASS_GUARANTEED && job->shadow) {
        if (st_shadow_fits(core, job, NULL, NULL)) {
            if (fx)
                st_core_start(core, job, type, class, st_shadow_place(job), fx);
            return true;
        }
        class = ST_CLASS_BURSTABLE;
    }
    st_misfit m;
    if (st_core_is_misfit(core, job, type, &m))
        return false;
    st_grant *grants = fx ? st_xcalloc((size_t)job->tasks, sizeof *grants) : NULL;
    st_barrier barrier;
    if (!st_core_backfill(core, job, type, prefer, grants, &barrier)) {
        free(grants);
        st_core_note_misfit(core, job, type, &m, &barrier);
        return false;
    }
    if (!fx)
        return true;
    if (!st_core_may_sit(core, job, class, grants, fx) &&
        !st_book_place_clear(core, job, type, grants)) {
        free(grants);
        return false;
    }
    /* What kept it outside its floor is held by others of its account: the floor carries it all the
     * same. */
    if (class == ST_CLASS_BURSTABLE && is_counted(core, job, type))
        st_core_changed(core, ST_CHANGED_CLASSES);
    st_core_start(core, job, type, class, grants, fx);
    return true;
}

/* Displace others for the job: the victims are told, and their place is held for it.
 * *ret_later: it could, but for protections that end. */
static bool try_claim(st_core *core, st_job *job, int32_t type, st_claim_by by, bool *ret_later,
                      st_effects *fx)
{
    if (!within_limits(core, job, type))
        return false;
    uint64_t key;
    if (claim_failed(core, job, type, by, &key, ret_later))
        return false;
    st_claim claim;
    st_core_claim(core, job, type, by, false, &claim);
    if (claim.result != ST_CLAIM_OK) {
        note_claim(core, job, type, key, &claim, ret_later);
        st_claim_done(&claim);
        return false;
    }
    if (!fx) {
        st_claim_done(&claim);
        return true;
    }
    st_class class = by == ST_CLAIM_OWNER && !claim.away ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE;
    if (class == ST_CLASS_GUARANTEED && core->bookings.n > 0 &&
        !st_book_make_way(core, job, claim.plan, fx)) {
        /* Nobody is put out for a place that is booked. */
        claim.result = ST_CLAIM_BOOKED;
        note_claim(core, job, type, key, &claim, ret_later);
        st_claim_done(&claim);
        return false;
    }
    st_core_hold(core, job, type, class, ST_TAKE(claim.plan), fx);
    for (size_t i = 0; i < claim.victims.n; i++)
        st_core_notify(core, claim.victims.v[i], job, NULL, fx);
    st_claim_done(&claim);
    return true;
}

/* Whether others might be moved for the job, were there a place. Who was displaced itself waits
 * for its turn, or moves would never end. */
static bool may_have_moves(const st_core *core, const st_job *job, int32_t type)
{
    return core->policy.defrag && job->preemptions == 0 && within_limits(core, job, type) &&
           st_core_below_max(core, job, type, ST_NOW | ST_NEXT);
}

/* The same shape fails the same way while nothing is freed. */
static bool find_moves(st_core *core, const st_job *job, int32_t type, st_claim *ret)
{
    *ret = (st_claim){.until_ms = ST_TIME_NEVER};
    uint64_t key = st_hash_u64(st_core_shape_key(job, type), KEY_MOVES);
    if (core->freed)
        st_core_forget_misfits(core);
    if (st_idmap_get(core->misfits, key, NULL))
        return false;
    if (st_core_defrag(core, job, type, ret))
        return true;
    st_core_refuse(core, key, 1);
    if (ret->until_ms > st_core_moment(core))
        core->wake_ms = ST_MIN(core->wake_ms, ret->until_ms);
    return false;
}

/* Have others move, so that the job gets the place they leave. */
static bool try_defrag(st_core *core, st_job *job, int32_t type, bool guaranteed, st_effects *fx)
{
    if (!may_have_moves(core, job, type))
        return false;
    st_claim moves;
    bool found = find_moves(core, job, type, &moves);
    if (found && fx) {
        /* Where there is room now, which is not its home. */
        st_class class = guaranteed && !job->shadow ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE;
        st_core_hold(core, job, type, class, ST_TAKE(moves.plan), fx);
        for (size_t i = 0; i < moves.victims.n; i++)
            st_core_notify(core, moves.victims.v[i], job, ST_TAKE(moves.places.v[i]), fx);
    }
    st_claim_done(&moves);
    return found;
}

bool st_core_is_guaranteed(const st_core *core, const st_job *job, int32_t type)
{
    st_need need = st_need_of(job, type);
    return is_counted(core, job, type) &&
           (job->shadow || st_admit_full(core->tree, job->account, &need, true) < 0);
}

/* The same of all its types, as bits of type + 1. Both phases ask, and nothing is charged in between but where
 * somebody starts. */
static uint32_t inside_of(const st_core *core, st_job *job)
{
    st_need need = st_need_of(job, ST_TYPE_FIRST);
    uint64_t print = st_admit_inside_print(core->tree, job->account, &need) + core->fleet->types.n;
    if (job->state == ST_JOB_PAUSED)
        print += (uint64_t)(job->type + 2) << 32;
    if (job->inside_print == print && !job->shadow && core->shadows.n == 0)
        return job->inside;
    job->inside = 0;
    job->inside_print = print;
    ST_EACH_TYPE (core, job, t)
        job->inside |= (uint32_t)st_core_is_guaranteed(core, job, t) << (t + 1);
    return job->inside;
}

bool st_core_may_be_inside(const st_core *core, st_job *job)
{
    return core->shadows.n > 0 || inside_of(core, job) != 0;
}

/* Whether the job may use its turn as a borrower at all. */
static bool may_borrow(const st_core *core, const st_job *job)
{
    return !st_core_weight_zero(core, job->account, NULL) && !st_core_rests(core, job);
}

/* Whether only what its account holds too much keeps the job outside its floor: then it claims as an
 * owner, from that first. */
static bool takes_excess(const st_core *core, const st_job *job, int32_t type, bool guaranteed)
{
    return !guaranteed && !job->shadow && is_counted(core, job, type);
}

/* Displace others, or have them move. */
static bool look(st_core *core, st_job *job, bool guaranteed, bool moves, bool *ret_later,
                 st_effects *fx)
{
    st_claim_by by;
    bool claims = claims_now(core, job, guaranteed, &by);
    ST_EACH_TYPE (core, job, t) {
        if (!claims)
            break;
        if (st_core_is_guaranteed(core, job, t) != guaranteed)
            continue;
        if (takes_excess(core, job, t, guaranteed) &&
            try_claim(core, job, t, ST_CLAIM_OWNER, ret_later, fx))
            return true;
        if (try_claim(core, job, t, by, ret_later, fx))
            return true;
    }
    ST_EACH_TYPE (core, job, t)
        if (moves && st_core_is_guaranteed(core, job, t) == guaranteed &&
            try_defrag(core, job, t, guaranteed, fx))
            return true;
    return false;
}

/* The same, as far as this pass has effort for it. Who looked before the round was interrupted has done
 * so; at one for whom nothing is left the pass stops, so that nobody behind goes before it. Those who
 * just lost their nodes come before the queue, and are not many: they look in any case. */
static bool make_room(st_core *core, st_job *job, st_phase phase, bool restarts, bool *ret_later,
                      st_effects *fx)
{
    bool moves = !restarts;
    st_claim_by by;
    bool guaranteed = phase == ST_PHASE_GUARANTEED;
    if (!claims_now(core, job, guaranteed, &by) && !(moves && core->policy.defrag))
        return false;
    if (!fx)
        return look(core, job, guaranteed, moves, ret_later, fx);
    if (core->unfinished && job->looked[phase] == core->round) {
        *ret_later = job->later[phase];
        return false;
    }
    if (core->effort <= 0 && !restarts) {
        core->stopped = !ST_BROKEN(EFFORT);
        return false;
    }
    core->effort--;
    return look(core, job, guaranteed, moves, ret_later, fx);
}

/* The types the job may start on in a phase, less those it is known to find no place on.
 * *ret_any: whether there were any before that. */
static int types_to_try(st_core *core, st_job *job, bool guaranteed, int32_t *ret, bool *ret_any)
{
    int n = 0;
    st_misfit m;
    uint32_t inside = inside_of(core, job);
    *ret_any = false;
    ST_EACH_TYPE (core, job, t) {
        if ((inside >> (t + 1) & 1) != guaranteed)
            continue;
        *ret_any = true;
        bool home = guaranteed && job->shadow; /* its home is not a place like others */
        if (home || !st_core_is_misfit(core, job, t, &m))
            ret[n++] = t;
    }
    return n;
}

static bool enter_own(st_core *core, st_job *job, st_effects *fx)
{
    return fx ? st_book_enter_own(core, job, fx) : st_book_could_enter(core, job);
}

static bool lend(st_core *core, st_job *job, int32_t type, st_effects *fx)
{
    return fx ? st_book_lend(core, job, type, fx) : st_book_could_lend(core, job, type);
}

/* In a booking of its account; or, as a borrower, on what others leave idle of theirs. */
static bool use_bookings(st_core *core, st_job *job, bool guaranteed, st_effects *fx)
{
    if (core->nopen == 0)
        return false;
    if (enter_own(core, job, fx))
        return true;
    ST_EACH_TYPE (core, job, t)
        if (!guaranteed && !st_core_is_guaranteed(core, job, t) && within_limits(core, job, t) &&
            st_core_below_max(core, job, t, ST_NOW | ST_NEXT) && lend(core, job, t, fx))
            return true;
    return false;
}

bool st_core_turn(st_core *core, st_job *job, st_phase phase, const uint8_t *prefer,
                  bool *ret_later, st_effects *fx)
{
    *ret_later = false;
    bool guaranteed = phase == ST_PHASE_GUARANTEED;
    st_class class = guaranteed ? ST_CLASS_GUARANTEED : ST_CLASS_BURSTABLE;
    if (!guaranteed && !may_borrow(core, job))
        return enter_own(core, job, fx); /* what is booked is not borrowed */
    int32_t types[ST_TYPES_MAX];
    bool any;
    int n = types_to_try(core, job, guaranteed, types, &any);
    /* Who comes back to places it knows takes the types as they are. */
    if (n > 1 && !prefer && fx)
        st_place_sort_types(core->placer, job, types, n);
    for (int i = 0; i < n; i++)
        if (try_start(core, job, types[i], class, prefer, fx))
            return true;
    if (any && use_bookings(core, job, guaranteed, fx))
        return true;
    return any && make_room(core, job, phase, prefer != NULL, ret_later, fx);
}

bool st_core_is_quiet(const st_core *core)
{
    const st_policy *policy = &core->policy;
    return core->nopen == 0 && !core->exchange && !st_core_claims_at_once(core) &&
           !policy->defrag && policy->lookahead == 0 && core->shadows.n == 0 &&
           st_core_reservers(core) >= (size_t)policy->reservations;
}

bool st_core_lacks_room(const st_core *core, const st_job *job, st_phase phase)
{
    bool guaranteed = phase == ST_PHASE_GUARANTEED;
    if (!guaranteed && !may_borrow(core, job))
        return false;
    ST_EACH_TYPE (core, job, t)
        if (st_core_is_guaranteed(core, job, t) == guaranteed && within_limits(core, job, t) &&
            st_core_below_max(core, job, t, ST_NOW | ST_NEXT))
            return true;
    return false;
}

/* Whether what was just reserved is free by now, and only a booking keeps the job out, which may not borrow
 * there: nobody can say when that ends. */
static bool is_booked(const st_core *core, const st_job *job, bool guaranteed)
{
    const st_reservation *r = &core->resv.v[core->resv.n - 1];
    return core->bookings.n > 0 && guaranteed && !r->claims && r->at_ms <= core->now &&
           !may_borrow(core, job);
}

/* With `later` an owner will get room from borrowers once their protections end. */
void st_core_turn_reserve(st_core *core, st_job *job, st_phase phase, bool later)
{
    bool guaranteed = phase == ST_PHASE_GUARANTEED;
    if (st_core_reservers(core) >= (size_t)core->policy.reservations)
        return;
    for (size_t i = 0; i < core->resv.n; i++)
        if (core->resv.v[i].job == job->id)
            return;
    if (!guaranteed && !may_borrow(core, job))
        return;
    uint32_t inside = inside_of(core, job);
    ST_EACH_TYPE (core, job, t) {
        if ((inside >> (t + 1) & 1) != guaranteed || !within_limits(core, job, t) ||
            !st_core_below_max(core, job, t, ST_NOW | ST_NEXT))
            continue;
        size_t before = core->resv.n;
        st_core_reserve(core, job, t, guaranteed,
                        later && (guaranteed || st_core_claims_at_once(core)));
        if (core->resv.n == before)
            continue;
        if (!is_booked(core, job, guaranteed))
            return;
        while (core->resv.n > before)
            free(st_reserve_pop(core).plan);
    }
}
