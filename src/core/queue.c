/* The queue of waiting jobs. */
#include "core/queue.h"

#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"

static int by_turn(const void *pa, const void *pb)
{
    const st_turn *a = pa, *b = pb;
    if (ST_BROKEN(ORDER))
        return a->job < b->job ? -1 : 1;
    return st_turn_cmp(a, b);
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

/* The highest priority that waits in each account; with `before`, without those who have just come. */
static void find_tops(st_core *core, bool in_place, bool before)
{
    size_t n = core->tree->accounts.n;
    core->tops = st_xreallocarray(core->tops, n, sizeof *core->tops);
    core->ntops = n;
    for (size_t i = 0; i < n; i++)
        core->tops[i] = INT_MIN;
    for (size_t i = 0; i < core->off.n; i++) {
        const st_job *job = core->off.v[i];
        if (takes_part(core, job, in_place) && !(before && is_fresh(core, job->id)))
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

/* A job's turn. Who has waited long counts as a level higher, up to whoever waits beside it: so a
 * stream of others does not keep it out for ever, and where all are equal nothing changes. */
static st_turn turn_of(const st_core *core, st_job *job)
{
    st_turn turn = st_turn_of(core->tree, &core->policy, job, st_core_moment(core));
    if (ST_BROKEN(PRIORITY))
        turn.priority = 0;
    if (ages_ms(core, job) <= st_core_moment(core) && !ST_BROKEN(AGEING))
        turn.priority = ST_MIN(job->priority + ST_PRIO_LEVEL, core->tops[job->account]);
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

bool st_queue_joins(st_core *core, const st_job *job)
{
    if (core->ntops < core->tree->accounts.n)
        find_tops(core, false, true);
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

/* The turns by account, and each account's in order: most have few. */
static void put_in_lanes(const st_core *core, st_queue *q)
{
    size_t accounts = core->tree->accounts.n, n = q->turns.n, at = 0;
    q->lanes = st_xcalloc(accounts, sizeof *q->lanes);
    st_turn *mixed = st_xcalloc(n + 1, sizeof *mixed);
    for (size_t i = 0; i < n; i++) {
        mixed[i] = q->turns.v[i];
        q->lanes[mixed[i].job->account].last++;
    }
    for (size_t a = 0; a < accounts; a++) {
        q->lanes[a].first = at;
        at += q->lanes[a].last;
        q->lanes[a].last = q->lanes[a].first;
    }
    for (size_t i = 0; i < n; i++)
        q->turns.v[q->lanes[mixed[i].job->account].last++] = mixed[i];
    for (size_t a = 0; a < accounts; a++)
        if (q->lanes[a].last > q->lanes[a].first + 1)
            qsort(q->turns.v + q->lanes[a].first, q->lanes[a].last - q->lanes[a].first,
                  sizeof *q->turns.v, by_turn);
    free(mixed);
}

void st_queue_build(st_core *core, st_queue *q, bool in_place)
{
    /* The order is that of the round's beginning, so whoever has aged since is yet to be put right. */
    int64_t since_ms = in_place ? core->round_ms : st_core_moment(core);
    find_tops(core, in_place, false);
    core->age_ms = ST_TIME_NEVER;
    for (size_t i = 0; i < core->off.n; i++) {
        st_job *job = core->off.v[i];
        if (!takes_part(core, job, in_place))
            continue;
        st_vec_push(&q->turns, in_place ? kept_turn(job) : turn_of(core, job));
        if (!in_place)
            keep_turn(&q->turns.v[q->turns.n - 1]);
        if (ages_ms(core, job) > since_ms)
            core->age_ms = ST_MIN(core->age_ms, ages_ms(core, job));
    }
    put_in_lanes(core, q);
}

void st_queue_rewind(const st_core *core, st_queue *q)
{
    for (size_t i = core->tree->accounts.n; i-- > 0;) {
        st_lane *l = &q->lanes[i];
        l->next = l->first;
        l->left = l->last - l->first;
        l->pick = -1;
        l->known = false;
        const st_account *a = core->tree->accounts.v[i];
        for (size_t c = 0; c < a->children.n; c++)
            l->left += q->lanes[a->children.v[c]].left;
    }
}

void st_queue_done(st_queue *q)
{
    st_vec_free(&q->turns);
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

/* The next job in order, taken from its lane; an account's own jobs go before its children's.
 * A child keeps its turn until something starts or it runs dry: only that changes an order. */
st_job *st_queue_next(const st_core *core, st_queue *q, st_phase phase)
{
    if (q->lanes[ST_ROOT].left == 0)
        return NULL;
    int32_t at = ST_ROOT;
    while (q->lanes[at].next == q->lanes[at].last) {
        st_lane *l = &q->lanes[at];
        if (l->pick < 0 || q->lanes[l->pick].left == 0)
            l->pick = best_child(core, q, at, phase);
        at = l->pick;
    }
    st_job *job = q->turns.v[q->lanes[at].next++].job;
    for (int32_t i = at; i >= 0; i = st_tree_account(core->tree, i)->parent)
        q->lanes[i].left--;
    return job;
}

void st_queue_reorder(const st_core *core, st_queue *q)
{
    for (size_t i = 0; i < core->tree->accounts.n; i++)
        q->lanes[i].pick = -1, q->lanes[i].known = false;
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
