/* The queue of waiting jobs. */
#include "core/queue.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/turn.h"

#define AHEAD 8 /* jobs that are fetched ahead */
#define FAR   4 /* places that somebody may be off from where he belongs, on average */

static int by_turn(const void *pa, const void *pb)
{
    const st_queued *a = pa, *b = pb;
    if (ST_BROKEN(ORDER))
        return a->turn.job < b->turn.job ? -1 : 1;
    return st_turn_cmp(&a->turn, &b->turn);
}

bool st_job_waits(const st_job *job)
{
    return (job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED) && !job->held &&
           !job->stopping && job->booking == 0 && (!job->barred || ST_BROKEN(BAR));
}

/* Who waits in the round: when it goes on where it stopped, those who were there when it began. */
static bool takes_part(const st_core *core, const st_job *job, bool in_place)
{
    return st_job_waits(job) && (!in_place || job->joined == core->round);
}

static bool is_fresh(const st_core *core, uint64_t id)
{
    for (size_t i = 0; i < core->fresh.n; i++)
        if (core->fresh.v[i] == id)
            return true;
    return false;
}

static void clear_tops(st_core *core)
{
    size_t n = core->tree->accounts.n;
    core->tops = st_xreallocarray(core->tops, n, sizeof *core->tops);
    core->ntops = n;
    for (size_t i = 0; i < n; i++)
        core->tops[i] = INT_MIN;
}

/* The highest priority that waits in each account, without those who have just come. */
static void find_tops(st_core *core)
{
    clear_tops(core);
    for (size_t i = 0; i < core->off.n; i++) {
        const st_job *job = core->off.v[i];
        if (st_job_waits(job) && !is_fresh(core, job->id))
            core->tops[job->account] = ST_MAX(core->tops[job->account], job->priority);
    }
}

/* When a job counts for more. */
static int64_t ages_ms(const st_core *core, const st_job *job)
{
    bool alike = (size_t)job->account >= core->ntops || job->priority >= core->tops[job->account];
    if (core->policy.ageing_ms == 0 || alike)
        return ST_TIME_NEVER;
    return job->queued_ms + core->policy.ageing_ms;
}

/* Who has waited long counts as a level higher, up to whoever waits beside it: so a
 * stream of others does not keep it out for ever, and where all are equal nothing changes. */
static void count_age(const st_core *core, st_turn *turn)
{
    const st_job *job = turn->job;
    if (ST_BROKEN(PRIORITY))
        turn->priority = 0;
    if (ages_ms(core, job) <= st_core_moment(core) && !ST_BROKEN(AGEING))
        turn->priority = ST_MIN(job->priority + ST_PRIO_LEVEL, core->tops[job->account]);
}

static st_turn turn_of(const st_core *core, st_job *job)
{
    st_turn turn = st_turn_of(core->tree, &core->policy, job, st_core_moment(core));
    count_age(core, &turn);
    return turn;
}

/* A round that goes on has the order it began with: starts and ends in it changed what users have used. */
static void keep_turn(const st_turn *turn)
{
    turn->job->turn.priority = turn->priority;
    turn->job->turn.usage = turn->usage;
    turn->job->turn.key = turn->key;
}

static st_turn kept_turn(st_job *job)
{
    return (st_turn){
        .job = job, .priority = job->turn.priority, .usage = job->turn.usage, .key = job->turn.key};
}

/* A job's turn but for its age. What its user has used is the same as last time, as long as nothing of his account was
 * noted and no step of the decay came by. */
static st_turn young_turn(const st_core *core, st_job *job)
{
    const st_policy *policy = &core->policy;
    const st_account *account = st_tree_account(core->tree, job->account);
    uint64_t epoch = (uint64_t)st_usage_epoch(st_core_moment(core), policy->half_life_ms);
    uint64_t print =
        st_hash_u64(st_hash_u64(epoch, (uint64_t)policy->half_life_ms), account->noted + 1);
    st_turn turn = {.job = job, .priority = job->priority, .usage = job->turn.usage};
    if (policy->order != ST_ORDER_AGE || job->turn_print != print)
        turn = st_turn_of(core->tree, policy, job, st_core_moment(core));
    job->turn_print = print;
    return turn;
}

bool st_queue_joins(st_core *core, const st_job *job)
{
    if (core->ntops < core->tree->accounts.n)
        find_tops(core);
    int *top = &core->tops[job->account];
    if (*top != INT_MIN && job->priority > *top && core->policy.ageing_ms > 0)
        return false;
    *top = ST_MAX(*top, job->priority);
    core->age_ms = ST_MIN(core->age_ms, ages_ms(core, job));
    return true;
}

bool st_queue_parts(st_core *core, const st_job *job)
{
    int top = INT_MIN;
    for (size_t i = 0; i < core->off.n; i++) {
        const st_job *other = core->off.v[i];
        if (other != job && other->account == job->account && st_job_waits(other))
            top = ST_MAX(top, other->priority);
    }
    /* By who waits alone: what is known of the last order is not in a save. */
    if (top != INT_MIN && top < job->priority && core->policy.ageing_ms > 0)
        return false;
    if ((size_t)job->account < core->ntops)
        core->tops[job->account] = top;
    return true;
}

/* Puts those in order who are not, and says how far they had to go: mostly it is one look at each. */
static size_t sort_lane(st_queued *v, size_t n)
{
    size_t moves = 0;
    for (size_t i = 1; i < n; i++) {
        if (by_turn(&v[i - 1], &v[i]) < 0)
            continue;
        st_queued moved = v[i];
        size_t at = i;
        for (; at > 0 && by_turn(&moved, &v[at - 1]) < 0; at--)
            v[at] = v[at - 1];
        v[at] = moved;
        moves += i - at;
        if (moves > FAR * n) {
            qsort(v, n, sizeof *v, by_turn);
            return moves;
        }
    }
    return moves;
}

/* Each account's entries behind those of the one before it. */
static void gather_lanes(st_queue *q)
{
    size_t n = q->entries.n;
    ST_VEC(st_queued) sorted = {0};
    st_vec_reserve(&sorted, n);
    for (size_t i = 0; i < n; i++)
        sorted.v[q->lanes[q->entries.v[i].account].last++] = q->entries.v[i];
    free(q->entries.v);
    q->entries.v = sorted.v;
    q->entries.cap = sorted.cap;
}

/* The entries by account, and each account's in order; returns how far that was from how they were. */
static size_t put_in_lanes(const st_core *core, st_queue *q)
{
    size_t accounts = core->tree->accounts.n, n = q->entries.n, at = 0, moves = 0;
    q->lanes = st_xcalloc(accounts, sizeof *q->lanes);
    for (size_t i = 0; i < n; i++) {
        q->lanes[q->entries.v[i].account].last++;
        moves += i > 0 && q->entries.v[i].account < q->entries.v[i - 1].account;
    }
    for (size_t a = 0; a < accounts; a++) {
        q->lanes[a].first = at;
        at += q->lanes[a].last;
        q->lanes[a].last = moves > 0 ? q->lanes[a].first : at;
    }
    if (moves > 0)
        gather_lanes(q);
    for (size_t a = 0; a < accounts; a++)
        if (q->lanes[a].last > q->lanes[a].first + 1)
            moves +=
                sort_lane(q->entries.v + q->lanes[a].first, q->lanes[a].last - q->lanes[a].first);
    return moves;
}

/* Those who wait stand in the queue's order in the list of those who are off their devices, from now until some are
 * not: so most of the next queue is in order as it is. */
static void remember_order(st_core *core, const st_queue *q)
{
    for (size_t i = 0; i < q->entries.n; i++) {
        st_job *job = q->entries.v[i].turn.job, *other = core->off.v[i];
        core->off.v[job->slot] = other;
        other->slot = job->slot;
        core->off.v[i] = job;
        job->slot = (int32_t)i;
    }
}

/* The number of its shape; -1: it has none. Who is paused goes back to where it was, whatever its shape finds elsewhere. */
static int32_t number_of(const st_core *core, const st_job *job)
{
    bool has = job->state == ST_JOB_PENDING && job->numbered == core->numbering;
    return has ? job->number : -1;
}

static void add_entry(st_core *core, st_queue *q, st_job *job, bool in_place)
{
    st_vec_push(&q->entries, (st_queued){.turn = in_place ? kept_turn(job) : young_turn(core, job),
                                         .queued_ms = job->queued_ms,
                                         .account = job->account,
                                         .number = number_of(core, job),
                                         .types = job->shape.types,
                                         .inside = st_core_may_be_inside(core, job)});
}

/* Thirty thousand jobs are more than a cache holds: those that come next are on their way meanwhile. */
static void fetch(const st_job *job)
{
    for (size_t at = 0; at < offsetof(st_job, pool); at += 64)
        __builtin_prefetch((const char *)job + at);
}

void st_queue_build(st_core *core, st_queue *q, bool in_place)
{
    /* The order is that of the round's beginning, so whoever has aged since is yet to be put right. */
    int64_t since_ms = in_place ? core->round_ms : st_core_moment(core);
    q->numbering = core->numbering;
    q->loosened = core->loosened;
    clear_tops(core);
    core->age_ms = ST_TIME_NEVER;
    for (size_t i = 0; i < core->off.n; i++) {
        st_job *job = core->off.v[i];
        if (i + AHEAD < core->off.n)
            fetch(core->off.v[i + AHEAD]);
        if (!takes_part(core, job, in_place))
            continue;
        core->tops[job->account] = ST_MAX(core->tops[job->account], job->priority);
        add_entry(core, q, job, in_place);
    }
    for (size_t i = 0; i < q->entries.n; i++) {
        st_queued *e = &q->entries.v[i];
        const st_job *job = e->turn.job;
        int64_t at_ms = ages_ms(core, job);
        if (at_ms > since_ms)
            core->age_ms = ST_MIN(core->age_ms, at_ms);
        if (in_place)
            continue;
        count_age(core, &e->turn);
        keep_turn(&e->turn);
    }
    size_t moves = put_in_lanes(core, q);
    if (!in_place && moves > q->entries.n / FAR)
        remember_order(core, q);
}

/* Who may be inside his floor, of those whose turn has not come yet. */
static void look_inside(st_core *core, st_queue *q)
{
    for (size_t a = 0; a < core->tree->accounts.n; a++)
        for (size_t i = q->lanes[a].next; i < q->lanes[a].last; i++)
            q->entries.v[i].inside = st_core_may_be_inside(core, q->entries.v[i].turn.job);
    q->loosened = core->loosened;
}

void st_queue_rewind(const st_core *core, st_queue *q)
{
    for (size_t i = core->tree->accounts.n; i-- > 0;) {
        st_lane *l = &q->lanes[i];
        l->next = l->first;
        l->left = l->last - l->first;
        l->pick = -1;
        l->known = false;
        const st_account *a = st_tree_account(core->tree, (int32_t)i);
        for (size_t c = 0; c < a->children.n; c++)
            l->left += q->lanes[a->children.v[c]].left;
    }
}

void st_queue_done(st_queue *q)
{
    st_vec_free(&q->entries);
    free(q->lanes);
}

/* Whether a child goes before another as a borrower. */
static bool burst_before(const st_core *core, st_queue *q, int32_t a, int32_t b)
{
    st_share_counts counts = (st_share_counts)core->policy.counts;
    const int32_t ids[] = {a, b};
    for (int i = 0; i < 2; i++) {
        st_lane *l = &q->lanes[ids[i]];
        if (!l->known) {
            l->standing = st_share_standing(core->tree, ids[i], counts, NULL);
            l->total = st_share_standing(core->tree, ids[i], ST_COUNTS_TOTAL, NULL);
        }
        l->known = true;
    }
    const st_account *x = st_tree_account(core->tree, a), *y = st_tree_account(core->tree, b);
    if (x->priority != y->priority)
        return x->priority > y->priority;
    int cmp = st_standing_cmp(q->lanes[a].standing, q->lanes[b].standing);
    if (cmp == 0)
        cmp = st_standing_cmp(q->lanes[a].total, q->lanes[b].total);
    return cmp != 0 ? cmp < 0 : a < b;
}

static int32_t best_child(const st_core *core, st_queue *q, int32_t account, st_phase phase)
{
    const st_account *a = st_tree_account(core->tree, account);
    int32_t best = -1;
    for (size_t i = 0; i < a->children.n; i++) {
        int32_t id = a->children.v[i];
        if (q->lanes[id].left == 0)
            continue;
        if (best < 0 ||
            (phase == ST_PHASE_GUARANTEED ? st_share_guaranteed_before(core->tree, id, best)
                                          : burst_before(core, q, id, best)))
            best = id;
    }
    return best;
}

/* Whether a turn would change nothing, and not find out anything either. */
static bool is_idle(const st_core *core, const st_queue *q, st_phase phase, const st_queued *e)
{
    if (phase == ST_PHASE_GUARANTEED)
        return !e->inside;
    return q->quiet && e->number >= 0 && q->numbering == core->numbering &&
           !(core->policy.urgent && e->queued_ms >= core->round_ms) &&
           st_core_is_nowhere(core, e->number, e->types);
}

/* So many of an account's own have had their turn. */
static void take(const st_core *core, st_queue *q, int32_t account, size_t n)
{
    q->lanes[account].next += n;
    for (int32_t i = account; i >= 0 && n > 0; i = st_tree_account(core->tree, i)->parent)
        q->lanes[i].left -= n;
}

/* Take those in front of an account's own who can do nothing. */
static void skip_idle(const st_core *core, st_queue *q, int32_t account, st_phase phase)
{
    const st_lane *l = &q->lanes[account];
    size_t n = 0;
    for (; l->next + n < l->last; n++) {
        st_queued *e = &q->entries.v[l->next + n];
        if (!is_idle(core, q, phase, e))
            break;
        e->passed[phase] = !core->stopped; /* whom a pass that has stopped would not have come to */
    }
    take(core, q, account, n);
}

/* The next job in order, taken from its lane; an account's own jobs go before its children's.
 * A child keeps its turn until something starts or it runs dry: only that changes an order. */
st_job *st_queue_next(const st_core *core, st_queue *q, st_phase phase)
{
    while (q->lanes[ST_ROOT].left > 0) {
        int32_t at = ST_ROOT;
        while (q->lanes[at].next == q->lanes[at].last) {
            st_lane *l = &q->lanes[at];
            if (l->pick < 0 || q->lanes[l->pick].left == 0)
                l->pick = best_child(core, q, at, phase);
            at = l->pick;
        }
        skip_idle(core, q, at, phase);
        if (q->lanes[at].next == q->lanes[at].last)
            continue;
        st_job *job = q->entries.v[q->lanes[at].next].turn.job;
        take(core, q, at, 1);
        return job;
    }
    return NULL;
}

void st_queue_reorder(st_core *core, st_queue *q, st_phase phase)
{
    for (size_t i = 0; i < core->tree->accounts.n; i++)
        q->lanes[i].pick = -1, q->lanes[i].known = false;
    if (phase == ST_PHASE_GUARANTEED && q->loosened != core->loosened)
        look_inside(core, q);
}

void st_queue_stop(const st_core *core, st_queue *q)
{
    for (size_t i = 0; i < q->entries.n; i++) {
        const st_queued *e = &q->entries.v[i];
        for (int p = 0; p < 2; p++) {
            st_job *job = e->turn.job;
            if (!e->passed[p] || job->looked[p] == core->round)
                continue;
            job->looked[p] = core->round;
            job->later[p] = false;
        }
    }
}

st_phase st_queue_phase(const st_core *core, const st_job *job)
{
    ST_EACH_TYPE (core, job, t)
        if (st_core_is_guaranteed(core, job, t))
            return ST_PHASE_GUARANTEED;
    return ST_PHASE_BURST;
}

bool st_queue_before(const st_core *core, st_phase phase, st_job *a, st_job *b)
{
    const st_tree *tree = core->tree;
    int32_t x, y, meet = st_tree_meet(tree, a->account, b->account, &x, &y);
    if (a->account != b->account) {
        if (a->account == meet || b->account == meet)
            return a->account == meet;
        return phase == ST_PHASE_GUARANTEED
                   ? st_share_guaranteed_before(tree, x, y)
                   : st_share_burst_before(tree, x, y, (st_share_counts)core->policy.counts);
    }
    st_turn ta = turn_of(core, a), tb = turn_of(core, b);
    return st_turn_cmp(&ta, &tb) < 0;
}
