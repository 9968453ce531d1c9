/* Where accounts stand, kept from claim to claim.
 *
 * Every claim of a borrower compares its branch with many others, as they are and without this or that job. Between
 * two charges the answers are the same for all, so each is found out once. A claim thinks jobs away and back: while
 * it does, the tree has another print, and what is asked then is neither kept nor answered from here. */
#include "base/mem.h"
#include "core/state.h"

#define LEVELS (ST_DEPTH_MAX + 1)

static uint64_t print_of(const st_core *core)
{
    return core->tree->print * 4 + (uint64_t)core->policy.counts + 1;
}

void st_standings_begin(st_core *core)
{
    st_standings *s = &core->standings;
    static const st_noted none;
    const st_yielders *y = &core->yielders;
    if (s->print != print_of(core) || s->of != y->version || s->at_ms != y->now)
        s->generation++;
    s->print = print_of(core);
    s->of = y->version;
    s->at_ms = y->now;
    while (s->accounts.n < core->tree->accounts.n)
        st_vec_push(&s->accounts, none);
    while (s->without.n < core->yielders.all.n * LEVELS)
        st_vec_push(&s->without, none);
}

st_standing st_standings_of(st_core *core, int32_t account)
{
    st_standings *s = &core->standings;
    st_share_counts counts = (st_share_counts)core->policy.counts;
    if (s->print != print_of(core) || (size_t)account >= s->accounts.n)
        return st_share_standing(core->tree, account, counts, NULL);
    st_noted *had = &s->accounts.v[account];
    if (had->generation != s->generation)
        *had = (st_noted){s->generation, st_share_standing(core->tree, account, counts, NULL)};
    return had->standing;
}

static st_standing without(const st_core *core, int32_t account, const st_job *job)
{
    st_use less = {-st_job_gpu_m(job), -st_job_cpu_m(job), -st_job_ram_mib(job), {0}};
    if (job->type >= 0)
        less.type_m[job->type] = less.gpu_m;
    return st_share_standing(core->tree, account, (st_share_counts)core->policy.counts, &less);
}

st_standing st_standings_without(st_core *core, int32_t account, const st_job *job)
{
    st_standings *s = &core->standings;
    const st_yielders *y = &core->yielders;
    size_t at = (size_t)job->yields;
    if (s->print != print_of(core) || s->of != y->version || s->at_ms != y->now || at >= y->all.n ||
        y->all.v[at] != job || (at + 1) * LEVELS > s->without.n)
        return without(core, account, job);
    st_noted *had =
        &s->without.v[at * LEVELS + (size_t)st_tree_account(core->tree, account)->depth];
    if (had->generation != s->generation)
        *had = (st_noted){s->generation, without(core, account, job)};
    return had->standing;
}

void st_standings_done(st_core *core)
{
    st_vec_free(&core->standings.accounts);
    st_vec_free(&core->standings.without);
}
