/* Who could be displaced, and who is leaving already (claim.c).
 *
 * Both are kept as they change hands: borrowers by borrowers.c, those who leave here. What claims
 * want, borrowers by account in the order in which they would go, is made from them once for all
 * claims between two moves. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/state.h"

void st_core_leaves(st_core *core, st_job *job)
{
    st_vec_push(&core->leaving, job);
}

void st_core_left(st_core *core, const st_job *job)
{
    size_t i = 0;
    while (i < core->leaving.n && core->leaving.v[i] != job)
        i++;
    ST_ASSERT(i < core->leaving.n);
    st_vec_remove(&core->leaving, i);
}

/* Inside an account the lowest priority goes first, then (with `swap`) who is last in its order, then
 * the newest. */
static bool goes_before(const st_job *a, const st_job *b, int64_t moment)
{
    int64_t x = ST_MIN(a->start_ms, moment), y = ST_MIN(b->start_ms, moment);
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->key != b->key)
        return a->key > b->key;
    if (x != y)
        return x > y;
    return a->id > b->id;
}

/* Puts the jobs by account, and each account's in order: most have few. */
static void sort(const st_core *core, st_yielders *y)
{
    size_t accounts = core->tree->accounts.n, n = y->all.n;
    int64_t moment = st_core_moment(core);
    y->count = st_xreallocarray(y->count, accounts + 1, sizeof *y->count);
    memset(y->count, 0, (accounts + 1) * sizeof *y->count);
    for (size_t i = 0; i < n; i++)
        y->count[y->all.v[i]->account + 1]++;
    for (size_t a = 0; a < accounts; a++)
        y->count[a + 1] += y->count[a];
    st_vec_clear(&y->sorted);
    for (size_t i = 0; i < n; i++)
        st_vec_push(&y->sorted, NULL);
    for (size_t i = 0; i < n; i++) {
        st_job *job = y->all.v[i];
        y->sorted.v[y->count[job->account]++] = job;
    }
    for (size_t i = 1; i < n; i++) {
        st_job *job = y->sorted.v[i];
        size_t at = i;
        for (; at > 0 && y->sorted.v[at - 1]->account == job->account &&
               goes_before(job, y->sorted.v[at - 1], moment);
             at--)
            y->sorted.v[at] = y->sorted.v[at - 1];
        y->sorted.v[at] = job;
    }
    for (size_t i = 0; i < n; i++) {
        y->all.v[i] = y->sorted.v[i];
        y->all.v[i]->yields = (int32_t)i;
    }
}

static void collect(st_core *core, st_job *job)
{
    if (job->state != ST_JOB_RUNNING ||
        (job->class != ST_CLASS_BURSTABLE && !ST_BROKEN(VICTIM_GUARANTEED)))
        return;
    job->key = core->policy.swap
                   ? st_turn_of(core->tree, &core->policy, job, st_core_moment(core)).key
                   : 0;
    st_vec_push(&core->yielders.all, job);
}

/* What borrowers hold of each type, in each account and all below it. */
static void add_up(const st_core *core, st_yielders *y)
{
    size_t accounts = core->tree->accounts.n, cells = accounts * ST_TYPES_MAX;
    y->held_m = st_xreallocarray(y->held_m, cells, sizeof *y->held_m);
    memset(y->held_m, 0, cells * sizeof *y->held_m);
    y->in_branch = st_xreallocarray(y->in_branch, accounts, sizeof *y->in_branch);
    for (size_t a = 0; a < accounts; a++)
        y->in_branch[a] = y->count[a] - (a > 0 ? y->count[a - 1] : 0);
    for (size_t i = 0; i < y->all.n; i++) {
        const st_job *job = y->all.v[i];
        if (job->type >= 0)
            y->held_m[(size_t)job->account * ST_TYPES_MAX + (size_t)job->type] += st_job_gpu_m(job);
    }
    for (size_t a = accounts; a-- > 1;) { /* accounts come after their parents */
        size_t parent = (size_t)core->tree->accounts.v[a]->parent;
        y->in_branch[parent] += y->in_branch[a];
        for (size_t t = 0; t < core->fleet->types.n; t++)
            y->held_m[parent * ST_TYPES_MAX + t] += y->held_m[a * ST_TYPES_MAX + t];
    }
}

void st_core_refresh_yielders(st_core *core)
{
    st_yielders *y = &core->yielders;
    if (y->version == core->version && y->now == st_core_moment(core))
        return;
    y->version = core->version;
    y->now = st_core_moment(core);
    st_vec_clear(&y->all);
    if (ST_BROKEN(VICTIM_GUARANTEED)) {
        for (size_t i = 0; i < core->placed.n; i++)
            collect(core, core->placed.v[i]);
    } else {
        for (size_t b = 0; b < core->borrowers.n; b++)
            for (size_t i = 0; i < core->borrowers.v[b].list.n; i++)
                collect(core, core->borrowers.v[b].list.v[i]);
    }
    sort(core, y);
    add_up(core, y);
    for (size_t t = 0; t < core->fleet->types.n; t++)
        y->on[t].known = false;
    int64_t moment = st_core_moment(core);
    for (int owner = 0; owner <= 1; owner++) {
        size_t accounts = core->tree->accounts.n;
        y->until_ms[owner] = ST_TIME_NEVER;
        st_vec_clear(&y->open[owner]);
        y->ends[owner] = st_xreallocarray(y->ends[owner], accounts, sizeof *y->ends[owner]);
        for (size_t a = 0, i = 0; a < accounts; a++) {
            for (; i < y->count[a]; i++) {
                int64_t until = st_core_protected_in_round(core, y->all.v[i], owner);
                if (until > moment)
                    y->until_ms[owner] = ST_MIN(y->until_ms[owner], until);
                else
                    st_vec_push(&y->open[owner], y->all.v[i]);
            }
            y->ends[owner][a] = y->open[owner].n;
        }
    }
}

/* Put an amount among those that are known, in order; there are few. */
static void note_size(st_core *core, int32_t type, int64_t size_m)
{
    st_yielders *y = &core->yielders;
    size_t i = y->on[type].sizes_m.n;
    while (i > 0 && y->on[type].sizes_m.v[i - 1] > size_m)
        i--;
    if (i > 0 && y->on[type].sizes_m.v[i - 1] == size_m)
        return;
    st_vec_push(&y->on[type].sizes_m, size_m);
    for (size_t k = y->on[type].sizes_m.n - 1; k > i; k--)
        y->on[type].sizes_m.v[k] = y->on[type].sizes_m.v[k - 1];
    y->on[type].sizes_m.v[i] = size_m;
}

const st_job_vec *st_core_yielders_on(st_core *core, int32_t type)
{
    st_yielders *y = &core->yielders;
    if (y->on[type].known)
        return &y->on[type].jobs;
    y->on[type].known = true;
    st_vec_clear(&y->on[type].jobs);
    st_vec_clear(&y->on[type].sizes_m);
    size_t accounts = core->tree->accounts.n;
    y->on[type].ends = st_xreallocarray(y->on[type].ends, accounts, sizeof *y->on[type].ends);
    for (size_t a = 0, i = 0; a < accounts; a++) {
        for (; i < y->count[a]; i++) {
            st_job *job = y->all.v[i];
            if (job->type >= 0 && job->type != type)
                continue;
            st_vec_push(&y->on[type].jobs, job);
            note_size(core, type, st_job_gpu_m(job));
        }
        y->on[type].ends[a] = y->on[type].jobs.n;
    }
    return &y->on[type].jobs;
}

st_job *const *st_core_yielders_of(st_core *core, int32_t type, int32_t account, size_t *ret_n)
{
    const st_job_vec *jobs = st_core_yielders_on(core, type);
    const size_t *ends = core->yielders.on[type].ends;
    size_t first = account > 0 ? ends[account - 1] : 0;
    *ret_n = ends[account] - first;
    return *ret_n > 0 ? jobs->v + first : NULL;
}

int64_t st_core_yielders_size_m(st_core *core, int32_t type, int64_t most_m)
{
    (void)st_core_yielders_on(core, type);
    const int64_t *sizes_m = core->yielders.on[type].sizes_m.v;
    size_t n = core->yielders.on[type].sizes_m.n;
    while (n > 0 && sizes_m[n - 1] > most_m)
        n--;
    return n > 0 ? sizes_m[n - 1] : -1;
}

const st_job *st_core_first_yielder(const st_core *core, int32_t account)
{
    const st_yielders *y = &core->yielders;
    size_t first = account > 0 ? y->count[account - 1] : 0;
    return first < y->count[account] ? y->all.v[first] : NULL;
}

/* Add the GPUs of a job to what its nodes could have free. */
static void tally(st_core *core, const st_job *job, int32_t type)
{
    st_whatif *w = &core->whatif;
    if (job->type >= 0 && job->type != type)
        return;
    for (int t = 0; t < job->tasks; t++) {
        const st_grant *g = &job->grants[t];
        if (w->due[g->node] != w->gen) {
            w->due[g->node] = w->gen;
            st_vec_push(&w->later, g->node);
            w->could[g->node] = core->fleet->nodes.v[g->node]->view.free;
        }
        w->could[g->node] |= g->devs;
    }
}

/* Whether a node that the job is on could have more room than it has. */
static bool is_useful(const st_core *core, const st_job *job, int32_t type)
{
    if (job->type >= 0 && job->type != type)
        return false;
    for (int t = 0; t < job->tasks; t++)
        if (core->whatif.could[job->grants[t].node])
            return true;
    return false;
}

bool st_core_yield_enough(st_core *core, const st_job *job, int32_t type, st_job *const *jobs,
                          size_t n, uint8_t *ret_useful)
{
    memset(ret_useful, 1, n);
    if (job->shape.gpus == 0 || job->shape.level != ST_LEVEL_WHOLE || job->state != ST_JOB_PENDING)
        return true;
    const st_rooms *rooms = st_rooms_of(core->placer, job, type);
    st_whatif *w = &core->whatif;
    int64_t room = st_rooms_total(rooms);
    st_whatif_begin(core, ST_WHEN_NEXT);
    for (size_t i = 0; i < n; i++)
        tally(core, jobs[i], type);
    for (size_t i = 0; i < core->leaving.n; i++)
        tally(core, core->leaving.v[i], type);
    for (size_t i = 0; i < w->later.n; i++) {
        const st_node *node = core->fleet->nodes.v[w->later.v[i]];
        int more = __builtin_popcount(w->could[node->id]) / job->shape.gpus;
        more -=
            node->type == type && node->state == ST_NODE_READY ? st_rooms_at(rooms, node) : more;
        w->could[node->id] = more > 0;
        room += ST_MAX(more, 0);
    }
    st_vec_clear(&w->later);
    /* Inside a node's NVLink domains it matters which GPUs are free, not only how many. */
    bool nvlink = job->topo == ST_TOPO_NVLINK && job->topo_required;
    for (size_t i = 0; i < n && room >= job->tasks && !nvlink; i++)
        ret_useful[i] = is_useful(core, jobs[i], type);
    return room >= job->tasks;
}

void st_core_yielders_done(st_core *core)
{
    st_yielders *y = &core->yielders;
    st_vec_free(&core->leaving);
    st_vec_free(&y->all);
    st_vec_free(&y->open[0]);
    st_vec_free(&y->open[1]);
    st_vec_free(&y->sorted);
    free(y->count);
    free(y->ends[0]);
    free(y->ends[1]);
    free(y->held_m);
    free(y->in_branch);
    st_vec_free(&y->left);
    for (size_t t = 0; t < ST_TYPES_MAX; t++) {
        st_vec_free(&y->on[t].jobs);
        st_vec_free(&y->on[t].sizes_m);
        free(y->on[t].ends);
    }
    st_standings_done(core);
    st_vec_free(&core->hopes.list);
    free(y->views);
}
