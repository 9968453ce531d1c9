/*
 * Bookings: the rules of core/book.h, from outside.
 *
 *   - on no device do two bookings overlap;
 *   - at every moment guarantees, what is booked and the reserve add up to no more than there is;
 *   - who is guaranteed is not where a booking closes before it ends;
 *   - while a booking runs, only its own jobs and borrowers are on its devices, and it is whole or says that it is not;
 *   - a job of a booking that has room for it does not wait;
 *   - its GPUs have room for the slices or shares that were booked, in pools that give them;
 *   - its nodes have the labels it requires; where it is dedicated nobody else begins or sleeps on them;
 *   - nobody has to leave for a booking but those in its way, and nobody inside before its end;
 *   - who has to leave has its notice and what it needs to save, and is gone in time where there is time (grace.c).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static bool meets(const st_booking *b, const st_job *job)
{
    for (int t = 0; t < b->tasks; t++)
        for (int u = 0; u < job->tasks; u++)
            if (b->plan[t].node == job->grants[u].node && (b->plan[t].devs & job->grants[u].devs))
                return true;
    return false;
}

/* CPU and RAM of a node count too. */
static bool on_a_node_of(const st_booking *b, const st_job *job)
{
    for (int t = 0; t < b->tasks; t++)
        for (int u = 0; u < job->tasks; u++)
            if (b->plan[t].node == job->grants[u].node)
                return true;
    return false;
}

/* Whether it was in the way of a plan that the booking had during the step: several things may happen in one. */
static bool was_in_the_way(const st_step *step, uint64_t id, const st_job *job)
{
    const st_effects *fx = step->fx;
    for (size_t i = 0; i < fx->list.n; i++) {
        const st_effect *e = &fx->list.v[i];
        st_booking had = {.plan = fx->grants.v + e->grants_at, .tasks = e->ngrants};
        if (e->kind == ST_FX_BOOKING && e->other == id && e->ngrants > 0 && on_a_node_of(&had, job))
            return true;
    }
    return false;
}

int st_watch_booking_victim(const st_step *step, const st_track *t, const st_effect *e, st_err *err)
{
    uint64_t id = e->other & ~ST_BOOKING_BIT;
    const st_booking *b = st_core_booking(step->core, id);
    if (t->job.class == ST_CLASS_BOOKED) {
        if (t->job.booking != id)
            return BAD("booking: job %" PRIu64 " inside booking %" PRIu64
                       " must leave for %" PRIu64,
                       e->job, t->job.booking, id);
        if (b && e->until_ms < b->to_ms)
            return BAD("booking: job %" PRIu64 " must leave by %" PRId64 ", its booking %" PRIu64
                       " ends at %" PRId64,
                       e->job, e->until_ms, id, b->to_ms);
        return 0;
    }
    if (t->job.class == ST_CLASS_GUARANTEED)
        return BAD("booking: guaranteed job %" PRIu64 " must leave for booking %" PRIu64, e->job,
                   id);
    if (b && b->job != e->job && !on_a_node_of(b, &t->job) && !was_in_the_way(step, id, &t->job))
        return BAD("booking: job %" PRIu64 " must leave for booking %" PRIu64
                   " and is not in its way",
                   e->job, id);
    if (e->until_ms < step->now + st_core_policy(step->core)->notice_ms)
        return BAD("notice: job %" PRIu64 " is given %" PRId64 " ms for a booking", e->job,
                   e->until_ms - step->now);
    return b && b->job != e->job ? st_watch_in_time(step, t, e, b, err) : 0;
}

int st_watch_lent_victim(const st_step *step, const st_track *t, const st_track *claimant,
                         st_err *err)
{
    const st_job *live = st_core_job(step->core, claimant->job.id);
    const st_booking *b = live ? st_core_booking(step->core, live->booking) : NULL;
    if (t->job.class != ST_CLASS_BURSTABLE || (b && !meets(b, &t->job)))
        return BAD("booking: job %" PRIu64 " (%s) must yield to job %" PRIu64
                   " and has nothing of its booking",
                   t->job.id, st_class_name(t->job.class), claimant->job.id);
    return 0;
}

/* ---- a state ------------------------------------------------------------------------------ */

/* Every line that is required is a line of the node, or the beginning of one up to a dot. */
static bool has_labels(const st_node *node, const char *require)
{
    const char *labels = node->labels ? node->labels : "";
    for (const char *want = require; want && *want; want += strcspn(want, "\n") + 1) {
        size_t n = strcspn(want, "\n");
        bool found = false;
        for (const char *s = labels; *s && !found; s += strcspn(s, "\n") + 1)
            found = strncmp(s, want, n) == 0 && (s[n] == '\n' || s[n] == '.');
        if (!found)
            return false;
    }
    return true;
}

/* How many slices or shares of its size a GPU has room for: by compute and memory, or by parts of a whole. */
static int parts_of(const st_booking *b)
{
    const st_parts *p = &b->parts;
    if (p->level == ST_LEVEL_MIG)
        return ST_MIN(ST_MIG_COMPUTE / st_mig_compute(p->profile),
                      ST_MIG_MEMORY / st_mig_memory(p->profile));
    return p->share_m > 0 ? (int)(1000 / p->share_m) : 0;
}

static int check_plan(const st_core *core, const st_booking *b, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    int lost = 0;
    for (int t = 0; t < b->tasks; t++) {
        const st_grant *g = &b->plan[t];
        if (g->node < 0) {
            lost++;
            continue;
        }
        const st_node *node = fleet->nodes.v[g->node];
        if (node->state != ST_NODE_READY && !b->over)
            return BAD("booking: %" PRIu64 " counts on node %s, which is %s", b->id, node->name,
                       st_node_state_name(node->state));
        if ((node->out & g->devs) && !b->over)
            return BAD("booking: %" PRIu64 " counts on GPUs of node %s that are out", b->id,
                       node->name);
        if (__builtin_popcount(g->devs) != b->gpus || node->type != b->type ||
            (b->pool >= 0 && b->pool != node->pool))
            return BAD("booking: %" PRIu64 " has %d GPUs of type %d on node %s for a task", b->id,
                       __builtin_popcount(g->devs), node->type, node->name);
        if (!b->over && !has_labels(node, b->require))
            return BAD("booking: %" PRIu64 " requires labels that node %s has not", b->id,
                       node->name);
        if (!(fleet->pools.v[node->pool].levels >> b->parts.level & 1) && !b->over)
            return BAD("booking: %" PRIu64
                       " is of level %s, which the pool of node %s does not give",
                       b->id, st_level_name(b->parts.level), node->name);
        if (b->dedicated && node->ndevs != b->gpus)
            return BAD("booking: %" PRIu64 " is dedicated and has %d of the %d GPUs of node %s",
                       b->id, b->gpus, node->ndevs, node->name);
        if (b->open && (node->fence & g->devs) != g->devs)
            return BAD("booking: %" PRIu64 " is open and its GPUs on node %s are not fenced", b->id,
                       node->name);
        for (int u = 0; u < t; u++)
            if (b->plan[u].node == g->node && (b->plan[u].devs & g->devs))
                return BAD("booking: %" PRIu64 " has a GPU of node %s twice", b->id, node->name);
    }
    if (b->parts.level != ST_LEVEL_WHOLE && (b->gpus != 1 || b->parts.n > b->tasks * parts_of(b)))
        return BAD("booking: %" PRIu64 " has %d tasks of %d GPUs for %d slices or shares", b->id,
                   b->tasks, b->gpus, b->parts.n);
    st_job like = {.tasks = b->tasks, .topo = b->topo, .topo_required = b->topo_required};
    like.shape.gpus = b->gpus;
    if (lost == 0 && !st_room_together(fleet, &like, b->plan))
        return BAD("booking: %" PRIu64 " requires one %s and is not inside one", b->id,
                   st_topo_name(b->topo));
    return 0;
}

/* Whatever was done to it, its end is behind its beginning. */
static int check_window(const st_booking *b, st_err *err)
{
    if (b->to_ms <= b->from_ms || b->close_ms > b->from_ms || b->clear_ms < b->to_ms)
        return BAD("booking: %" PRIu64 " closes at %" PRId64 ", begins at %" PRId64
                   ", ends at %" PRId64 " and is clear at %" PRId64,
                   b->id, b->close_ms, b->from_ms, b->to_ms, b->clear_ms);
    return 0;
}

static int check_apart(const st_booking *a, const st_booking *b, st_err *err)
{
    if (a->from_ms >= b->clear_ms || b->from_ms >= a->clear_ms)
        return 0;
    for (int t = 0; t < a->tasks; t++)
        for (int u = 0; u < b->tasks; u++)
            if (a->plan[t].node >= 0 && a->plan[t].node == b->plan[u].node &&
                (a->plan[t].devs & b->plan[u].devs))
                return BAD("booking: %" PRIu64 " and %" PRIu64 " have a GPU of node %d at one time",
                           a->id, b->id, a->plan[t].node);
    return 0;
}

/* Whether it will be gone, whatever happens: who has only been told may be let stay. */
static bool goes(const st_job *job)
{
    return job->state == ST_JOB_CHECKPOINTING || job->state == ST_JOB_STOPPING;
}

static int check_there(const st_core *core, const st_booking *b, const st_job *job, st_err *err)
{
    int64_t now = st_core_now(core);
    bool on = st_room_is_now(job);
    if (!job->grants || !(on || job->held) || !meets(b, job))
        return 0;
    /* While a plan waits its end moves on; whether it is clear is seen when it starts. */
    if (on && job->class == ST_CLASS_GUARANTEED && !goes(job) &&
        st_job_end_ms(job, now) > b->close_ms && b->clear_ms > now && !b->over)
        return BAD("booking: job %" PRIu64 " is guaranteed until %" PRId64 " where booking %" PRIu64
                   " closes at %" PRId64,
                   job->id, st_job_end_ms(job, now), b->id, b->close_ms);
    if (b->state != ST_BOOKING_ACTIVE || b->over || b->open == false)
        return 0;
    if (job->class == ST_CLASS_GUARANTEED &&
        !goes(job)) /* a booking may have moved to where it was */
        return BAD("booking: job %" PRIu64 " is guaranteed on what booking %" PRIu64 " has now",
                   job->id, b->id);
    /* Everybody was told when it closed, with time enough if there was (grace.c); who is there was lent it since. */
    bool stays = job->state == ST_JOB_RUNNING && job->class == ST_CLASS_BURSTABLE &&
                 job->start_ms < b->close_ms;
    if (stays && b->close_ms >= b->made_ms && !b->moved)
        return BAD("booking: job %" PRIu64 " (%s) came before booking %" PRIu64
                   " closed and is still there at %" PRId64 ", it began at %" PRId64,
                   job->id, st_job_state_name(job->state), b->id, now, b->from_ms);
    return 0;
}

/* On the nodes of a dedicated booking nobody else begins, with GPUs or without. */
static int check_alone(const st_core *core, const st_booking *b, const st_job *job, st_err *err)
{
    if (!b->dedicated || b->state != ST_BOOKING_ACTIVE || b->over || b->moved ||
        job->booking == b->id || !job->grants || !on_a_node_of(b, job))
        return 0;
    bool came = st_room_is_now(job) && job->start_ms >= b->from_ms;
    if (came)
        return BAD("dedicated: job %" PRIu64 " (%s) has begun on a node that booking %" PRIu64
                   " has for itself",
                   job->id, st_class_name(job->class), b->id);
    if (job->state == ST_JOB_PAUSED && !job->held && !job->stopping && !b->told &&
        !st_core_resumes(core) && b->from_ms < st_core_now(core))
        return BAD("dedicated: job %" PRIu64 " sleeps in the memory of a node that booking %" PRIu64
                   " has for itself",
                   job->id, b->id);
    return 0;
}

/* A booking of slices or shares may be on nodes that give no whole GPUs. */
static bool may_be_whole(const st_core *core, const st_job *job, int32_t id)
{
    const st_fleet *fleet = st_core_fleet(core);
    const st_node *node = fleet->nodes.v[id];
    return fleet->pools.v[node->pool].levels >> ST_LEVEL_WHOLE & 1 &&
           st_fleet_picks(fleet, job->shape.nodes, node);
}

/* Who waits for its booking could not be inside, even with all borrowers gone; once the pass is over. */
static int check_waits(const st_core *core, const st_job_list *jobs, const st_job *job, st_err *err)
{
    const st_booking *b = st_core_booking(core, job->booking);
    if (!b)
        return BAD("booking: job %" PRIu64 " waits for booking %" PRIu64 ", which is not there",
                   job->id, job->booking);
    bool waits = (job->state == ST_JOB_PENDING && !job->held && !job->barred && !job->stopping);
    if (!waits || st_core_resumes(core) || b->state != ST_BOOKING_ACTIVE || b->told || b->over ||
        b->from_ms >= st_core_now(core) || job->shape.level != ST_LEVEL_WHOLE ||
        job->topo_required || job->shape.needs || job->shape.cpu_m > 0 || job->shape.ram_mib > 0 ||
        job->pool >= 0)
        return 0;
    int64_t room = 0;
    for (int t = 0; t < b->tasks; t++) {
        bool first = b->plan[t].node >= 0;
        uint16_t devs = 0;
        for (int u = 0; u < b->tasks; u++) {
            first &= u >= t || b->plan[u].node != b->plan[t].node;
            devs |= b->plan[u].node == b->plan[t].node ? b->plan[u].devs : 0;
        }
        if (!first || !may_be_whole(core, job, b->plan[t].node))
            continue;
        devs &= (uint16_t)~st_core_fleet(core)->nodes.v[b->plan[t].node]->out;
        for (size_t i = 0; i < jobs->n; i++) {
            const st_job *other = jobs->v[i];
            bool lent = other->state == ST_JOB_RUNNING && other->class == ST_CLASS_BURSTABLE;
            for (int u = 0; other->grants && !lent && u < other->tasks; u++)
                if (other->grants[u].node == b->plan[t].node &&
                    (other->state != ST_JOB_PAUSED || other->held))
                    devs &= (uint16_t)~other->grants[u].devs;
        }
        room += __builtin_popcount(devs) / job->shape.gpus;
    }
    if (room >= job->tasks)
        return BAD("booking: job %" PRIu64 " waits, and booking %" PRIu64 " has room for it",
                   job->id, b->id);
    return 0;
}

/* Booked and guaranteed at one moment, by the definition: all types of one account and below. */
static int64_t booked_m(const st_core *core, int32_t account, int type, int64_t at)
{
    int64_t sum = 0;
    for (size_t i = 0; i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        if (b->account == account && (type < 0 || b->type == type) && b->close_ms <= at &&
            at < b->clear_ms)
            sum += INT64_C(1000) * b->tasks * b->gpus;
    }
    return sum;
}

static int64_t need_m(const st_core *core, int32_t account, int type, int64_t at)
{
    const st_account *a = st_core_tree(core)->accounts.v[account];
    int64_t below = booked_m(core, account, type, at), typed = 0, own = 0;
    for (size_t i = 0; i < a->children.n; i++)
        below += need_m(core, a->children.v[i], type, at);
    for (int t = 0; type < 0 && t < ST_TYPES_MAX; t++)
        typed += need_m(core, account, t, at);
    if (account != ST_ROOT)
        own = type < 0 ? st_tally_promised_m(&a->guarantee) : ST_MAX(a->guarantee.type_m[type], 0);
    return ST_MAX(own, ST_MAX(below, typed));
}

/* Only of one that was made in this moment: nodes that fail later are nobody's fault. */
static int check_carried(const st_core *core, const st_booking *b, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    int64_t have_m[ST_TYPES_MAX + 1] = {0};
    if (b->made_ms != st_core_now(core) ||
        b->job) /* which may come before a node fails in one moment */
        return 0;
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[i];
        if (node->state != ST_NODE_READY || node->type < 0)
            continue;
        int64_t gpus_m = INT64_C(1000) * (node->ndevs - __builtin_popcount(node->out));
        have_m[node->type] += gpus_m;
        have_m[ST_TYPES_MAX] += gpus_m;
    }
    for (size_t i = 0; i < st_core_nbookings(core); i++) {
        int64_t at = ST_MAX(st_core_booking_at(core, i)->close_ms, b->close_ms);
        if (at >= b->clear_ms)
            continue;
        int64_t typed = need_m(core, ST_ROOT, b->type, at), all = need_m(core, ST_ROOT, -1, at);
        if (typed > have_m[b->type] || all > have_m[ST_TYPES_MAX])
            return BAD("booking: with %" PRIu64 " %" PRId64 " milli-GPU of its type and %" PRId64
                       " in all are booked or guaranteed at %" PRId64 ", there are %" PRId64
                       " and %" PRId64,
                       b->id, typed, all, at, have_m[b->type], have_m[ST_TYPES_MAX]);
    }
    return 0;
}

int st_check_bookings(const st_core *core, const st_job_list *jobs, st_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        rc = check_window(b, err);
        if (rc == 0)
            rc = check_plan(core, b, err);
        for (size_t k = 0; rc == 0 && k < i; k++)
            rc = check_apart(st_core_booking_at(core, k), b, err);
        for (size_t k = 0; rc == 0 && k < jobs->n; k++)
            rc = check_there(core, b, jobs->v[k], err);
        for (size_t k = 0; rc == 0 && k < jobs->n; k++)
            rc = check_alone(core, b, jobs->v[k], err);
        if (rc == 0)
            rc = check_carried(core, b, err);
    }
    for (size_t i = 0; rc == 0 && i < jobs->n; i++)
        if (jobs->v[i]->booking)
            rc = check_waits(core, jobs, jobs->v[i], err);
    return rc;
}
