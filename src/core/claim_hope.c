/* Whether a claim can come to anything, before anybody is asked whom he may displace (claim.c).
 *
 * For whole GPUs room is a number: what the nodes of a type could have free, if everybody left who borrows there
 * or is leaving already. Less than the job asks for: it cannot claim, whoever may displace whom. While it is held
 * to a bound, nobody who holds more than that can be among the victims; so the same number, made of the
 * others alone, says that every choice breaks the bound.
 *
 * Each number is a look at all borrowers, and good until one of them or their nodes change: many claims of one round
 * ask for the same. */
#include "base/mem.h"
#include "core/claim.h"

#define HOPES_MAX 64 /* numbers that are kept */

/* Add what a job holds to what its nodes could have free; returns how many more tasks of so many GPUs each that is
 * room for. */
static int64_t add(st_core *core, const st_job *job, int32_t type, int gpus)
{
    st_whatif *w = &core->whatif;
    int64_t more = 0;
    for (int t = 0; t < job->tasks; t++) {
        const st_grant *g = &job->grants[t];
        const st_node *node = core->fleet->nodes.v[g->node];
        if (node->type != type || node->state != ST_NODE_READY)
            continue;
        if (w->due[g->node] == w->gen) {
            more -= __builtin_popcount(w->could[g->node]) / gpus;
        } else {
            w->due[g->node] = w->gen;
            st_vec_push(&w->later, g->node);
            w->could[g->node] = node->view.free;
        }
        w->could[g->node] |= g->devs;
        more += __builtin_popcount(w->could[g->node]) / gpus;
    }
    return more;
}

/* How many nodes of the type could have so many GPUs free, without those who hold more than `most_m`; or, as soon as
 * there is room for so many tasks of so many GPUs each, that there is: true. */
static bool count(st_core *core, st_hope *hope, int gpus, int64_t want)
{
    const st_job_vec *all = st_core_yielders_on(core, hope->type);
    st_whatif *w = &core->whatif;
    st_whatif_begin(core, ST_WHEN_NEXT);
    for (size_t i = 0; i < core->leaving.n && want > 0; i++)
        if (core->leaving.v[i]->type < 0 || core->leaving.v[i]->type == hope->type)
            want -= add(core, core->leaving.v[i], hope->type, gpus);
    for (size_t i = all->n; i-- > 0 && want > 0;)
        if (st_job_gpu_m(all->v[i]) <= hope->most_m)
            want -= add(core, all->v[i], hope->type, gpus);
    for (size_t i = 0; i < w->later.n; i++)
        hope->nodes[__builtin_popcount(w->could[w->later.v[i]])]++;
    st_vec_clear(&w->later);
    return want <= 0;
}

/* The number that is known; NULL none. */
static const st_hope *find(st_core *core, int32_t type, int64_t most_m)
{
    st_hopes *h = &core->hopes;
    uint64_t seen = st_fleet_changes(core->fleet);
    if (h->version != core->yielders.version || h->now != core->yielders.now || h->seen != seen ||
        h->list.n == HOPES_MAX)
        st_vec_clear(&h->list);
    h->version = core->yielders.version;
    h->now = core->yielders.now;
    h->seen = seen;
    for (size_t i = 0; i < h->list.n; i++)
        if (h->list.v[i].type == type && h->list.v[i].most_m == most_m)
            return &h->list.v[i];
    return NULL;
}

/* Whether the job could fit with those gone who hold no more than that; false is certain. Most could, and that a few
 * borrowers say; who could not has looked at all of them, which others need not do again. */
static bool could_fit(const st_claim_ctx *c, int64_t most_m)
{
    st_core *core = c->core;
    int gpus = c->job->shape.gpus;
    int64_t room = st_rooms_total(st_rooms_of(core->placer, c->job, c->type));
    if (room >= c->job->tasks)
        return true;
    most_m = st_core_yielders_size_m(core, c->type, most_m); /* nobody holds anything in between */
    const st_hope *hope = find(core, c->type, most_m);
    if (!hope) {
        st_hope new = {.type = c->type, .most_m = most_m};
        if (count(core, &new, gpus, c->job->tasks - room))
            return true;
        st_vec_push(&core->hopes.list, new);
        return false;
    }
    for (int n = gpus; n <= ST_DEVS_MAX; n++)
        room += (int64_t)hope->nodes[n] * (n / gpus);
    return room >= c->job->tasks;
}

/* Where numbers decide. Who wants its home place needs those there to go, and nobody else. */
static bool is_number(const st_claim_ctx *c)
{
    const st_shape *s = &c->job->shape;
    return !c->told && !c->home && s->gpus > 0 && s->gpus <= ST_DEVS_MAX &&
           s->level == ST_LEVEL_WHOLE && c->job->state == ST_JOB_PENDING;
}

bool st_claim_has_hope(const st_claim_ctx *c)
{
    return !is_number(c) || could_fit(c, INT64_MAX);
}

/* What all those hold of a type who are in an account, or below it. */
static int64_t held_m(const st_claim_ctx *c, int32_t account)
{
    return c->core->yielders.held_m[(size_t)account * ST_TYPES_MAX + (size_t)c->type];
}

/* The same of everybody whom a borrower may displace, and more: of its own account, and of all branches that
 * stand high enough where they part from its own. */
static int64_t victims_m(const st_claim_ctx *c)
{
    const st_tree *tree = c->core->tree;
    int64_t sum_m = held_m(c, c->job->account);
    for (int32_t i = c->job->account; i != ST_ROOT && !c->own;
         i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i), *up = st_tree_account(tree, a->parent);
        for (size_t k = 0; k < up->children.n; k++) {
            const st_account *b = st_tree_account(tree, up->children.v[k]);
            int64_t more_m = held_m(c, b->id);
            if (b == a || more_m == 0 || b->priority > a->priority)
                continue;
            if (b->priority < a->priority ||
                st_standing_cmp(c->mine[a->depth], st_standings_of(c->core, b->id)) < 0)
                sum_m += more_m;
        }
    }
    return sum_m;
}

bool st_claim_lacks_victims(const st_claim_ctx *c)
{
    st_core *core = c->core;
    if (!is_number(c) || c->guaranteed || ST_BROKEN(STRICT))
        return false;
    if (c->fills)
        return !could_fit(c, st_claim_fill_m(c));
    int64_t sum_m = victims_m(c) + st_place_free_m(core->placer, c->type);
    for (size_t i = 0; i < core->leaving.n; i++)
        if (core->leaving.v[i]->type == c->type)
            sum_m += st_job_gpu_m(core->leaving.v[i]);
    return sum_m < c->need.gpu_m;
}

/* What lacks while those who may go are gone, one after the other. */
typedef struct places {
    const st_claim_ctx *c;
    const st_rooms *rooms;
    int64_t want;
} places;

/* One is gone: his nodes may have room for more. */
static void leave(places *p, const st_job *job)
{
    st_whatif *w = &p->c->core->whatif;
    int gpus = p->c->job->shape.gpus;
    for (int t = 0; t < job->tasks && p->want > 0; t++) {
        const st_grant *g = &job->grants[t];
        const st_node *node = p->c->core->fleet->nodes.v[g->node];
        if (node->type != p->c->type || node->state != ST_NODE_READY)
            continue;
        int before = st_rooms_at(p->rooms, node);
        if (w->due[g->node] == w->gen) {
            before = ST_MAX(before, __builtin_popcount(w->could[g->node]) / gpus);
        } else {
            w->due[g->node] = w->gen;
            w->could[g->node] = node->view.free;
        }
        w->could[g->node] |= g->devs;
        p->want -= ST_MAX(__builtin_popcount(w->could[g->node]) / gpus - before, 0);
    }
}

/* Those of an account, of a branch where it parts from the claimant's. */
static void leave_account(places *p, int32_t account, const st_parting *parting)
{
    const st_claim_ctx *c = p->c;
    size_t n;
    st_job *const *jobs = st_core_yielders_of(c->core, c->type, account, &n);
    for (size_t i = 0; i < n && p->want > 0; i++)
        if (st_claim_may_displace(c, parting, jobs[i]))
            leave(p, jobs[i]);
}

static void leave_branch(places *p, int32_t account, const st_parting *parting)
{
    const st_account *a = st_tree_account(p->c->core->tree, account);
    leave_account(p, account, parting);
    for (size_t i = 0; i < a->children.n && p->want > 0; i++)
        if (p->c->core->yielders.in_branch[a->children.v[i]] > 0)
            leave_branch(p, a->children.v[i], parting);
}

bool st_claim_lacks_places(const st_claim_ctx *c)
{
    st_core *core = c->core;
    const st_tree *tree = core->tree;
    if (!is_number(c) || c->guaranteed)
        return false;
    places p = {c, st_rooms_of(core->placer, c->job, c->type), c->job->tasks};
    p.want -= st_rooms_total(p.rooms);
    st_whatif_begin(core, ST_WHEN_NEXT);
    for (size_t i = 0; i < core->leaving.n && p.want > 0; i++)
        if (core->leaving.v[i]->type < 0 || core->leaving.v[i]->type == c->type)
            leave(&p, core->leaving.v[i]);
    st_parting own = st_claim_part_from(c, c->job->account, NULL);
    leave_account(&p, c->job->account, &own);
    for (int32_t i = c->job->account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        const st_account *up = st_tree_account(tree, st_tree_account(tree, i)->parent);
        for (size_t k = 0; k < up->children.n && p.want > 0; k++) {
            int32_t branch = up->children.v[k];
            if (branch == i || core->yielders.in_branch[branch] == 0)
                continue;
            st_parting parting = st_claim_part_from(c, branch, NULL);
            if (st_claim_may_displace_of(c, &parting) != ST_CLAIM_NOBODY)
                leave_branch(&p, branch, &parting);
        }
    }
    return p.want > 0;
}

/* When a claim is no longer held to the bound, if not all victims are of its own account. */
int64_t st_claim_unbound_ms(const st_claim_ctx *c)
{
    bool owner = c->guaranteed && (c->home || !c->job->shadow);
    int64_t since_ms = ST_MIN(c->job->queued_ms, st_core_moment(c->core));
    return owner ? since_ms + c->core->policy.patience_ms : ST_TIME_NEVER;
}

/* When a borrower may displace more than it takes. A large gang that yields to a small job leaves
 * the rest idle and is the last to find such a place again; an exchange that only makes things fairer
 * waits with that, longer than an owner keeps to the bound. */
int64_t st_claim_exchange_ms(const st_claim_ctx *c)
{
    if (c->guaranteed || st_core_claims_at_once(c->core) || ST_BROKEN(EXCHANGE))
        return 0;
    int64_t since_ms = ST_MIN(c->job->queued_ms, st_core_moment(c->core));
    return since_ms + ST_EXCHANGE_PATIENCE * c->core->policy.patience_ms;
}

bool st_claim_bound_decides(const st_claim_ctx *c, st_claim *ret)
{
    const st_policy *policy = &c->core->policy;
    /* With `swap` it matters whose they are. */
    if (!is_number(c) || c->fills || policy->swap || ST_BROKEN(BOUND))
        return false;
    int64_t now = st_core_moment(c->core), free_ms = st_claim_unbound_ms(c);
    int64_t bound_m = policy->bound_m * c->need.gpu_m / 1000, most_m = bound_m;
    bool exchanges = now < st_claim_exchange_ms(c);
    if (exchanges) {
        free_ms = st_claim_exchange_ms(c);
        most_m = c->need.gpu_m;
    }
    if (now >= free_ms || could_fit(c, most_m))
        return false;
    /* What the bound will not allow even then is not worth waking up for. */
    if (exchanges && !could_fit(c, bound_m))
        free_ms = ST_TIME_NEVER;
    ret->result = ST_CLAIM_BOUND;
    ret->bound_m = most_m;
    ret->until_ms = free_ms;
    return true;
}
