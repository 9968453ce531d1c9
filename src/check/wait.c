/*
 * Those who wait: invariant 7 of core/core.h, and the truth of the reasons.
 *
 * "Could start" is decided here from scratch: by limits, ceilings, floor or weight, and by what
 * is free now and stays free once all holds have come true. The core may keep such a job
 * waiting only for somebody it names.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static bool borrows(const st_tree *tree, int32_t account)
{
    for (int32_t a = account; a > ST_ROOT; a = tree->accounts.v[a]->parent)
        if (tree->accounts.v[a]->weight_m == 0)
            return false;
    return true;
}

/* Everything waiting is judged against. */
typedef struct scene {
    const st_core *core;
    const st_fleet *fleet;
    const st_tree *tree;
    st_job_list jobs;
    st_room room;
    st_room lent; /* what bookings leave idle, and nothing else */
    st_tally tally;
} scene;

static bool allows(const st_job *job, int32_t type)
{
    if (job->shape.gpus == 0)
        return type < 0;
    if (type < 0)
        return false;
    if (job->state == ST_JOB_PAUSED)
        return type == job->type;
    return job->shape.types >> type & 1;
}

/* Whether an account holds more than it was promised of something, with a job in it or (NULL) as it
 * is; `by` is told by how much GPU. */
static bool over_floor(const scene *s, int32_t account, const st_job *job, int32_t type,
                       int64_t *ret_gpu_m)
{
    const st_account *a = s->tree->accounts.v[account];
    st_use use = s->tally.rows[account].next;
    int64_t sum = 0;
    if (job)
        st_tally_add(&use, job, type);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        sum += ST_MAX(use.type_m[t], ST_MAX(a->floor.type_m[t], 0));
    *ret_gpu_m = sum - st_tally_promised_m(&a->floor);
    bool gpu = st_tally_promises_gpu(&a->floor) && *ret_gpu_m > 0;
    return (gpu && (!job || job->shape.gpus > 0)) ||
           (a->floor.cpu_m != ST_UNSET && use.cpu_m > a->floor.cpu_m &&
            (!job || job->shape.cpu_m > 0)) ||
           (a->floor.ram_mib != ST_UNSET && use.ram_mib > a->floor.ram_mib &&
            (!job || job->shape.ram_mib > 0));
}

/* Inside its floor: it would be guaranteed, and what its account holds leaves room for it. */
static bool is_owner(const scene *s, const st_job *job, int32_t type)
{
    if (!st_tally_guaranteed_ok(&s->tally, &s->jobs, NULL, job, type))
        return false;
    const st_job *live = st_core_job(s->core, job->id);
    const st_grant *place;
    if (live && st_core_has_home(live, &place))
        return true;
    for (int32_t a = job->account; a > ST_ROOT; a = s->tree->accounts.v[a]->parent) {
        int64_t by;
        const st_quota *floor = &s->tree->accounts.v[a]->floor;
        if (over_floor(s, a, job, type, &by))
            return false;
        if (job->shape.gpus > 0 ? st_tally_promises_gpu(floor) : floor->cpu_m != ST_UNSET)
            return true;
    }
    return true;
}

/* The GPU type it could start on now: -1 without GPUs, -2 on none. Bit t + 1 of `excused`: on
 * type t it waits for somebody who was named. */
static int32_t could_start(const scene *s, const st_job *job, uint32_t excused)
{
    bool untrusted = st_room_untrusted(s->tree, job->account);
    if (job->shape.gpus > 0 && job->shape.level > ST_LEVEL_MIG && untrusted)
        return -2;
    for (int32_t t = -1; t < (int32_t)s->fleet->types.n; t++) {
        if ((excused >> (t + 1) & 1) || !allows(job, t) || !st_room_fits(&s->room, job, t, false) ||
            !st_tally_max_ok(&s->tally, job, t, ST_NOW | ST_NEXT) ||
            !st_tally_limits_ok(s->fleet, s->tree, &s->jobs, NULL, job, t, false))
            continue;
        if (borrows(s->tree, job->account) || is_owner(s, job, t))
            return t;
    }
    return -2;
}

/* The same as a borrower on what bookings leave idle. */
static int32_t could_be_lent(const scene *s, const st_job *job)
{
    if (!s->lent.nodes || job->state != ST_JOB_PENDING || job->shape.gpus == 0 ||
        !borrows(s->tree, job->account) ||
        (job->shape.level > ST_LEVEL_MIG && st_room_untrusted(s->tree, job->account)))
        return -2;
    for (int32_t t = 0; t < (int32_t)s->fleet->types.n; t++)
        if (allows(job, t) && st_room_fits(&s->lent, job, t, false) &&
            st_tally_max_ok(&s->tally, job, t, ST_NOW | ST_NEXT) &&
            st_tally_limits_ok(s->fleet, s->tree, &s->jobs, NULL, job, t, false) &&
            !is_owner(s, job, t))
            return t;
    return -2;
}

bool st_check_could_ever(const st_core *core, const st_job *job)
{
    scene s = {.core = core, .fleet = st_core_fleet(core), .tree = st_core_tree(core)};
    st_job alone = *job;
    alone.state = ST_JOB_PENDING;
    bool could = false;
    st_room_build(&s.room, s.fleet, s.tree, &s.jobs, NULL, ST_WHEN_EMPTY);
    st_tally_build(&s.tally, s.fleet, s.tree, &s.jobs, NULL);
    if (alone.shape.gpus > 0 && alone.shape.level > ST_LEVEL_MIG &&
        st_room_untrusted(s.tree, alone.account))
        alone.shape.types = 0;
    for (int32_t t = -1; !could && t < (int32_t)s.fleet->types.n; t++)
        could = allows(&alone, t) && st_room_fits(&s.room, &alone, t, true) &&
                st_tally_max_ok(&s.tally, &alone, t, 0) &&
                st_tally_limits_ok(s.fleet, s.tree, &s.jobs, NULL, &alone, t, true) &&
                (borrows(s.tree, alone.account) ||
                 st_tally_guaranteed_ok(&s.tally, &s.jobs, NULL, &alone, t));
    st_room_done(&s.room);
    st_tally_done(&s.tally);
    return could;
}

/* ---- reasons ------------------------------------------------------------------------ */

static int lie(const st_job *job, const st_reason *r, st_err *err)
{
    return BAD("reasons: job %" PRIu64 " is told %s (account %d, type %d, dim %d, used %" PRId64
               ", asked %" PRId64 ", bound %" PRId64 ", other %" PRIu64 "), which is not so",
               job->id, st_reason_name(r->code), r->account, r->type, r->dim, r->used, r->asked,
               r->bound, r->other);
}

static bool is_above(const st_tree *tree, int32_t account, int32_t below)
{
    for (int32_t a = below; a >= 0; a = tree->accounts.v[a]->parent)
        if (a == account)
            return true;
    return false;
}

static bool max_true(const scene *s, const st_job *job, const st_reason *r)
{
    if (!is_above(s->tree, r->account, job->account))
        return false;
    const st_quota *max = &s->tree->accounts.v[r->account]->max;
    int64_t bound = r->dim == ST_CPU   ? max->cpu_m
                    : r->dim == ST_RAM ? max->ram_mib
                    : r->type >= 0     ? max->type_m[r->type]
                                       : max->gpu_m;
    int64_t asked = r->dim == ST_CPU   ? job->shape.cpu_m * job->tasks
                    : r->dim == ST_RAM ? job->shape.ram_mib * job->tasks
                                       : st_tally_gpu_m(job);
    int64_t used = st_tally_used(&s->tally, r->account, (st_dim)r->dim, r->type);
    if (job->held) /* a plan is in the later moment already; its start must suit this one */
        used = st_tally_now(&s->tally, r->account, (st_dim)r->dim, r->type);
    return r->bound == bound && r->asked == asked && r->used == used && used + asked > bound;
}

static bool limit_true(const scene *s, const st_job *job, const st_reason *r)
{
    if (!is_above(s->tree, r->account, job->account) || r->dim < 0 || r->dim >= ST_LIMIT_COUNT)
        return false;
    const st_account *a = s->tree->accounts.v[r->account];
    st_limit_kind kind = (st_limit_kind)r->dim;
    int64_t used =
        st_tally_user(s->fleet, s->tree, &s->jobs, NULL, job, r->account, job->user, kind);
    bool mine = r->bound == st_tally_bound(&a->job_limits, kind) && r->asked > r->bound;
    return mine || (r->bound == st_tally_bound(&a->user_limits, kind) && r->used == used &&
                    r->asked > r->bound - used);
}

static bool may_outstay(const scene *s, const st_job *job, const st_reason *r)
{
    if (job->limit_ms == ST_TIME_NEVER)
        return true;
    const st_job *own = st_core_job(s->core, job->id); /* tracks do not know what was saved */
    int64_t left_ms = job->limit_ms - own->saved_ms - own->kept_ms;
    return st_core_now(s->core) + left_ms > r->until_ms;
}

/* The job that is named has a plan, on a node where this one could be on this GPU type. */
static bool plans_there(const scene *s, const st_job *job, const st_reason *r)
{
    const st_job *other = st_core_job(s->core, r->other);
    if (!other || !other->held || !other->grants)
        return false;
    for (int t = 0; t < other->tasks; t++) {
        const st_node *node = s->fleet->nodes.v[other->grants[t].node];
        if ((job->pool < 0 || node->pool == job->pool) && (r->type < 0 || node->type == r->type))
            return true;
    }
    return false;
}

/* Something is reserved for the job that is named, or it is on the move and a place is kept free. */
static bool is_reserved_for(const scene *s, uint64_t id)
{
    const st_job *other = st_core_job(s->core, id);
    st_reserved_list list = {0};
    bool found = other && other->to;
    st_core_reserved(s->core, &list);
    for (size_t i = 0; i < list.n; i++)
        found |= list.v[i].job == id;
    st_vec_free(&list);
    return found;
}

/* How many others wait: at least as many as are said to be looked at before it. */
static int64_t waiting_room(const scene *s, const st_job *job)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->jobs.n; i++) {
        st_job_state state = s->jobs.v[i]->state;
        n += s->jobs.v[i]->id != job->id && !s->jobs.v[i]->held &&
             (state == ST_JOB_PENDING || state == ST_JOB_PAUSED);
    }
    return n;
}

/* What is named is among what it waits for, and nothing of that is over but what ended otherwise. */
static bool after_true(const st_job *job, const st_reason *r)
{
    bool named = false;
    for (int i = 0; i < job->nafters; i++)
        named |= job->afters[i].id == r->other && job->afters[i].array == (r->used == 1);
    return named && r->asked == job->nafters && (r->code == ST_WHY_NEVER) == (job->never != 0);
}

static bool reason_true(const scene *s, const st_job *job, const st_reason *r)
{
    switch (r->code) {
    case ST_WHY_MAX:
        return max_true(s, job, r);
    case ST_WHY_USER_LIMIT:
        return limit_true(s, job, r);
    case ST_WHY_WEIGHT_ZERO:
        return is_above(s->tree, r->account, job->account) &&
               s->tree->accounts.v[r->account]->weight_m == 0;
    case ST_WHY_HELD:
        return r->other != job->id && plans_there(s, job, r);
    case ST_WHY_LOOKAHEAD:
        return r->bound > 0 && waiting_room(s, job) >= r->bound;
    case ST_WHY_RESERVED: /* who is gone by then at the latest is in nobody's way */
        return r->other != job->id && is_reserved_for(s, r->other) && may_outstay(s, job, r);
    case ST_WHY_GPUS_BUSY:
        return r->used < r->asked;
    case ST_WHY_YIELDING:
        return job->held;
    case ST_WHY_STOPPING: /* its own last stay, or somebody it waits for */
        return (r->other == job->id && job->stopping) ||
               (job->held && st_core_job(s->core, r->other)->stopping);
    case ST_WHY_CAP:
        return job->barred & ST_BAR_ORDER;
    case ST_WHY_WINDOW:
        return (job->barred & r->dim & ST_BAR_WINDOW) &&
               r->until_ms == (r->dim == ST_BAR_BEGIN ? job->begin_ms
                               : r->dim == ST_BAR_END ? job->end_by_ms
                                                      : ST_TIME_NEVER);
    case ST_WHY_AFTER:
    case ST_WHY_NEVER:
        return after_true(job, r);
    case ST_WHY_ON_HOLD:
        return job->held_by > 0 && r->used == job->held_by;
    case ST_WHY_THROTTLE:
        return (job->barred & ST_BAR_THROTTLE) && r->bound > 0;
    case ST_WHY_RETRY:
        return job->tries > 0 && r->used == job->tries && r->until_ms == job->begin_ms &&
               r->until_ms > st_core_now(s->core);
    case ST_WHY_COOLDOWN:
        return st_core_job(s->core, job->id)->rest_ms == r->until_ms &&
               r->until_ms > st_core_now(s->core);
    case ST_WHY_UNSEEN:
        return st_core_resumes(s->core);
    case ST_WHY_RECLAIM_RESERVED:
        return r->other != job->id && is_reserved_for(s, r->other);
    case ST_WHY_RECLAIM_BOUND:
        return r->used > r->bound;
    case ST_WHY_MEEK:
        return job->meek && r->used > 0 && r->used < (int64_t)s->jobs.n;
    case ST_WHY_PINNED:
        return job->state == ST_JOB_PAUSED;
    case ST_WHY_CPU:
        return job->shape.cpu_m > 0;
    case ST_WHY_RAM:
        return job->shape.ram_mib > 0;
    case ST_WHY_TOPOLOGY:
        return job->topo_required;
    case ST_WHY_NODES:
        return job->shape.nodes != 0 && r->used < r->asked;
    default:
        return true;
    }
}

/* ---- owners --------------------------------------------------------------------------- */

/* Whether a branch can lend all its burstable jobs, in whatever order: the floor is touched by the last
 * of them at most. */
static bool lends_all(const scene *s, int32_t branch)
{
    int64_t by, sum = 0, least = INT64_MAX;
    if (!over_floor(s, branch, NULL, -1, &by) && by <= 0)
        return false;
    for (size_t i = 0; i < s->jobs.n; i++) {
        const st_job *job = s->jobs.v[i];
        if (job->state != ST_JOB_RUNNING || job->class != ST_CLASS_BURSTABLE ||
            job->shape.gpus == 0 || !is_above(s->tree, branch, job->account))
            continue;
        sum += st_tally_gpu_m(job);
        least = ST_MIN(least, st_tally_gpu_m(job));
    }
    return sum == 0 || sum - least < by;
}

/* Whether a job that borrows may be taken from by an owner, as far as this is beyond doubt. */
static bool lends(const scene *s, const st_job *owner, const st_job *other)
{
    const st_job *live = st_core_job(s->core, other->id);
    const st_grant *place;
    if (other->state != ST_JOB_RUNNING || other->class != ST_CLASS_BURSTABLE || !live ||
        (st_core_has_home(live, &place) && place))
        return false;
    if (other->account == owner->account)
        return !owner->meek && other->priority < owner->priority;
    int32_t branch = other->account;
    while (!is_above(s->tree, s->tree->accounts.v[branch]->parent, owner->account))
        branch = s->tree->accounts.v[branch]->parent;
    if (is_above(s->tree, branch, owner->account))
        return false; /* above the owner itself */
    const st_quota *floor = &s->tree->accounts.v[branch]->floor;
    if (other->shape.gpus == 0)
        return (floor->cpu_m == ST_UNSET && owner->shape.cpu_m > 0) ||
               (floor->ram_mib == ST_UNSET && owner->shape.ram_mib > 0 && other->shape.ram_mib > 0);
    return lends_all(s, branch);
}

/* Whether a job inside its floor on a type would fit if all were gone that it may displace. Where an
 * account above is full of its own, that comes first, and other rules with it. */
static bool would_fit(const scene *s, const st_job *job, int32_t type)
{
    for (int32_t a = job->account; a > ST_ROOT; a = s->tree->accounts.v[a]->parent) {
        int64_t by;
        if (over_floor(s, a, job, type, &by))
            return false;
    }
    ST_CLEANUP(st_freep) uint8_t *out = st_xcalloc(s->jobs.n + 1, 1);
    for (size_t i = 0; i < s->jobs.n; i++)
        out[i] = lends(s, job, s->jobs.v[i]);
    st_room room;
    st_tally tally;
    st_room_build(&room, s->fleet, s->tree, &s->jobs, out, ST_WHEN_NEXT);
    st_tally_build(&tally, s->fleet, s->tree, &s->jobs, out);
    bool ok = st_room_fits(&room, job, type, false) &&
              st_tally_max_ok(&tally, job, type, ST_NEXT) &&
              st_tally_limits_ok(s->fleet, s->tree, &s->jobs, NULL, job, type, false);
    st_room_done(&room);
    st_tally_done(&tally);
    return ok;
}

/* A job inside its floor waits only if thinking all permitted burstables away would not place it, or
 * if a protection or bound applies to that very job and it is told so. */
static int judge_owner(const scene *s, const st_job *job, const st_reasons *reasons, st_err *err)
{
    const st_job *live = st_core_job(s->core, job->id);
    const st_grant *place;
    if (st_core_has_home(live, &place))
        return 0; /* its floor carries it at home only */
    if (st_core_resumes(s->core))
        return 0; /* the pass is not over */
    for (int32_t t = -1; t < (int32_t)s->fleet->types.n; t++) {
        if (!allows(job, t) || !is_owner(s, job, t))
            continue;
        bool named = false;
        for (size_t i = 0; i < reasons->n; i++) {
            const st_reason *r = &reasons->v[i];
            named |= r->type == t &&
                     (r->code == ST_WHY_RECLAIM_PROTECTED || r->code == ST_WHY_RECLAIM_BOUND ||
                      r->code == ST_WHY_RECLAIM_RESERVED || r->code == ST_WHY_UNSEEN ||
                      r->code == ST_WHY_RESERVED || r->code == ST_WHY_BOOKED);
            int64_t patience_ms = st_core_policy(s->core)->patience_ms;
            if (r->type == t && r->code == ST_WHY_RECLAIM_BOUND &&
                st_core_now(s->core) >= live->queued_ms + patience_ms)
                return BAD("patience: job %" PRIu64
                           " is inside its floor, has waited longer than that, and is told %s",
                           job->id, st_reason_name(r->code));
        }
        if (!named && would_fit(s, job, t)) {
            ST_CLEANUP(st_strbuf_done) st_strbuf told = {0};
            for (size_t i = 0; i < reasons->n; i++)
                st_strbuf_addf(&told, "%s%s", i ? ", " : "", st_reason_name(reasons->v[i].code));
            return BAD(
                "lock-out: job %" PRIu64
                " is inside its floor, those it may displace would make room on GPU type %d, and "
                "all it is told is %s",
                job->id, t, st_strbuf_str(&told));
        }
    }
    return 0;
}

static int judge(const scene *s, const st_job *job, const st_reasons *reasons, st_err *err)
{
    bool blocked = false, hindered = false;
    uint32_t excused = 0;
    for (size_t i = 0; i < reasons->n; i++) {
        const st_reason *r = &reasons->v[i];
        if (!reason_true(s, job, r))
            return lie(job, r, err);
        blocked |= st_reason_blocks(r->code);
        hindered |= r->code == ST_WHY_LOOKAHEAD || r->code == ST_WHY_COOLDOWN ||
                    r->code == ST_WHY_UNSEEN || r->code == ST_WHY_USER_LIMIT;
        if (r->code == ST_WHY_HELD || r->code == ST_WHY_RESERVED || r->code == ST_WHY_LOOKAHEAD ||
            r->code == ST_WHY_COOLDOWN || r->code == ST_WHY_UNSEEN ||
            (r->code == ST_WHY_BOOKED &&
             (!borrows(s->tree, job->account) ||
              st_core_job(s->core, job->id)->rest_ms > st_core_now(s->core))))
            excused |= 1u << (r->type + 1);
    }
    int32_t type = job->held || job->stopping || job->barred || job->booking
                       ? -2
                       : could_start(s, job, excused);
    if (type != -2)
        return BAD("work conservation: job %" PRIu64 " (%d tasks, %s) could start on GPU type %d "
                   "and waits%s%s",
                   job->id, job->tasks, st_level_name(job->shape.level), type,
                   reasons->n ? ", told " : "",
                   reasons->n ? st_reason_name(reasons->v[0].code) : "");
    if (type == -2 && !job->held && !job->stopping && !job->barred && !job->booking && !hindered) {
        type = could_be_lent(s, job);
        if (type != -2)
            return BAD("lending: job %" PRIu64 " could borrow what bookings leave idle on GPU type "
                       "%d, and waits",
                       job->id, type);
    }
    if (!blocked)
        return BAD("reasons: job %" PRIu64 " waits and is told nothing that keeps it waiting",
                   job->id);
    return job->held || job->barred || job->booking || job->state != ST_JOB_PENDING
               ? 0
               : judge_owner(s, job, reasons, err);
}

/* Devices that active bookings have, but for those another is about to have. */
static void open_lent(scene *s)
{
    st_room_bare(&s->lent, s->fleet, s->tree, &s->jobs, NULL, ST_WHEN_EITHER);
    for (size_t i = 0; i < s->lent.n; i++)
        for (int d = 0; d < ST_DEVS_MAX; d++)
            s->lent.nodes[i].dev[d].fenced = true;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < st_core_nbookings(s->core); i++) {
            const st_booking *b = st_core_booking_at(s->core, i);
            bool runs = b->state == ST_BOOKING_ACTIVE && !b->over;
            if (pass == 0 ? !runs || b->told || b->dedicated : runs || !b->open)
                continue;
            for (int t = 0; t < b->tasks; t++)
                for (int d = 0; b->plan[t].node >= 0 && d < ST_DEVS_MAX; d++)
                    if (b->plan[t].devs >> d & 1)
                        s->lent.nodes[b->plan[t].node].dev[d].fenced = pass == 1;
        }
    }
}

static bool has_turn(const st_track *track, int every, int64_t turn)
{
    const st_job *job = &track->job;
    return (job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED) &&
           ((int64_t)job->id + turn) % every == 0;
}

int st_watch_waiting(st_watch *watch, st_core *core, int every, int64_t turn, st_err *err)
{
    bool any = false;
    for (size_t i = 0; i < watch->tracks.n && !any; i++)
        any = has_turn(watch->tracks.v[i], every, turn);
    if (!any)
        return 0;
    scene s = {.core = core, .fleet = st_core_fleet(core), .tree = st_core_tree(core)};
    s.jobs = st_watch_jobs(watch);
    st_room_build(&s.room, s.fleet, s.tree, &s.jobs, NULL, ST_WHEN_EITHER);
    st_tally_build(&s.tally, s.fleet, s.tree, &s.jobs, NULL);
    if (st_core_nbookings(core) > 0)
        open_lent(&s);
    st_reasons reasons = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s.jobs.n; i++) {
        const st_job *job = s.jobs.v[i];
        if (!has_turn(watch->tracks.v[i], every, turn))
            continue;
        st_vec_clear(&reasons);
        rc = st_core_explain(core, job->id, &reasons, err);
        if (rc == 0)
            rc = judge(&s, job, &reasons, err);
    }
    st_vec_free(&reasons);
    st_room_done(&s.room);
    st_room_done(&s.lent);
    st_tally_done(&s.tally);
    st_vec_free(&s.jobs);
    return rc;
}
