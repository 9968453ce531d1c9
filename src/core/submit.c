/* What a job must satisfy to be accepted. Refused here is only what could never run as the
 * fleet and the quotas are; everything else waits, with its reasons. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "core/book.h"
#include "core/flow.h"
#include "core/reserve.h"
#include "core/shadow.h"
#include "model/pick.h"

static int check_shape(const st_core *core, const st_job_spec *s, st_err *err)
{
    const st_shape *shape = &s->shape;
    if (s->tasks < 1 || s->tasks > ST_TASKS_MAX)
        return st_fail(err, ST_ERANGE, "job %s: %d tasks, it must be 1 to %d", s->name, s->tasks,
                       ST_TASKS_MAX);
    if (shape->gpus < 0 || shape->gpus > ST_DEVS_MAX)
        return st_fail(err, ST_ERANGE, "job %s: %d GPUs a task, it must be 0 to %d", s->name,
                       shape->gpus, ST_DEVS_MAX);
    if (shape->cpu_m < 0 || shape->cpu_m > ST_QTY_MAX / s->tasks || shape->ram_mib < 0 ||
        shape->ram_mib > ST_QTY_MAX / s->tasks || shape->vram_mib < 0 ||
        shape->vram_mib > ST_QTY_MAX / s->tasks)
        return st_fail(err, ST_ERANGE, "job %s: CPU, RAM or VRAM is out of range", s->name);
    if (shape->gpus == 0 && shape->cpu_m == 0)
        return st_fail(err, ST_EINVAL, "job %s: it asks for neither GPU nor CPU", s->name);
    const struct {
        const char *name;
        int value, count;
    } words[] = {{"level", (int)shape->level, ST_LEVEL_COUNT},
                 {"MIG profile", (int)shape->profile, ST_MIG_COUNT},
                 {"topology", (int)s->topo, ST_TOPO_COUNT},
                 {"on_preempt", (int)s->yield, ST_YIELD_COUNT}};
    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        if (words[i].value < 0 || words[i].value >= words[i].count)
            return st_fail(err, ST_EINVAL, "job %s: unknown %s (number %d)", s->name, words[i].name,
                           words[i].value);
    if (shape->level != ST_LEVEL_WHOLE && shape->gpus != 1)
        return st_fail(err, ST_EINVAL,
                       "job %s: a task takes one slice or share; ask for more tasks instead",
                       s->name);
    bool shared = shape->level == ST_LEVEL_MPS || shape->level == ST_LEVEL_TIME;
    if (shared && (shape->share_m < 1 || shape->share_m > ST_WHOLE_M))
        return st_fail(err, ST_ERANGE, "job %s: its share must be above 0 and at most 1", s->name);
    if (shape->gpus > 0 && shape->types >> core->fleet->types.n)
        return st_fail(err, ST_ENOENT, "job %s: it names a GPU type that does not exist", s->name);
    if ((shape->needs & ~ST_NEED_WAYS) >> ST_ALLOW_COUNT)
        return st_fail(err, ST_EINVAL, "job %s: it needs a permission that does not exist",
                       s->name);
    if (s->pool < -1 || (s->pool >= 0 && ((size_t)s->pool >= core->fleet->pools.n ||
                                          !st_pool_there(&core->fleet->pools.v[s->pool]))))
        return st_fail(err, ST_ENOENT, "job %s: its pool does not exist", s->name);
    if (s->limit_ms != ST_TIME_NEVER && (s->limit_ms < 1 || s->limit_ms > ST_LIMIT_MAX_MS))
        return st_fail(err, ST_ERANGE, "job %s: its time limit must be 1 ms to 10 years", s->name);
    if (s->priority < -ST_PRIO_MAX || s->priority > ST_PRIO_MAX)
        return st_fail(err, ST_ERANGE, "job %s: its priority is out of range", s->name);
    if (s->yield == ST_YIELD_PAUSE && shape->gpus > 0 && shape->level != ST_LEVEL_WHOLE &&
        shape->level != ST_LEVEL_TIME)
        return st_fail(err, ST_EINVAL,
                       "job %s: a GPU can be paused whole or time-sliced, not under %s; "
                       "use checkpoint or requeue",
                       s->name, st_level_name(shape->level));
    return 0;
}

/* Which nodes it allows: named ones are there, and nobody else says where it runs. */
static int check_nodes(const st_core *core, const st_job_spec *s, st_err *err)
{
    if (!s->nodes || !s->nodes[0])
        return 0;
    if (!st_pick_ok(s->nodes))
        return st_fail(err, ST_EINVAL, "job %s: what it says of its nodes is not well-formed",
                       s->name);
    if (s->booking || s->series || s->slot || s->hard)
        return st_fail(err, ST_EINVAL,
                       "job %s: its nodes are those of a booking; say which labels they need when "
                       "you book (--require)",
                       s->name);
    for (const char *at = s->nodes; *at; at = strchr(at, '\n') + 1) {
        char name[ST_NAME_MAX + 1], q[ST_QUOTE_MAX];
        if (at[0] != '-')
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\n") - 1, at + 1);
        if (st_fleet_node(core->fleet, name) < 0)
            return st_fail(err, ST_ENOENT, "job %s: there is no node %s to leave out", s->name,
                           st_quote(q, name));
    }
    return 0;
}

/* Texts that no job has any more make way, now and then. */
static void sweep_picks(st_core *core)
{
    st_fleet *fleet = core->fleet;
    if (fleet->picks.n < 2 * core->jobs.n + 64)
        return;
    for (size_t i = 0; i < core->jobs.n; i++)
        st_fleet_use_pick(fleet, core->jobs.v[i]->shape.nodes);
    for (size_t i = 0; i < core->ended.n; i++)
        st_fleet_use_pick(fleet, core->ended.v[i]->shape.nodes);
    st_shadow_use_picks(core);
    st_fleet_sweep_picks(fleet);
    st_placer_forget_picks(core->placer);
    st_profiles_forget_picks(core);
    st_core_forget_possible(core);
}

static int check_who(const st_core *core, const st_job_spec *s, int32_t *ret_account, st_err *err)
{
    if (s->id == 0)
        return st_fail(err, ST_EINVAL, "a job's id must not be 0");
    if (st_core_find(core, s->id))
        return st_fail(err, ST_EEXIST, "job %" PRIu64 " exists already", s->id);
    if (!s->name || !st_name_ok(s->name))
        return st_fail(err, ST_EINVAL, "a job's name must be 1 to %d bytes without spaces",
                       ST_NAME_MAX);
    if (!s->user || !st_name_ok(s->user))
        return st_fail(err, ST_EINVAL,
                       "job %s: the user's name must be 1 to 128 bytes without spaces", s->name);
    int32_t account = s->account ? st_tree_find(core->tree, s->account) : -1;
    if (account < 0)
        return st_fail(err, ST_ENOENT, "job %s: account %s does not exist", s->name,
                       s->account ? s->account : "(none)");
    if (account == ST_ROOT)
        return st_fail(err, ST_EINVAL, "job %s: choose an account (--account NAME)", s->name);
    *ret_account = account;
    return 0;
}

/* Types of `mask` whose board has the profile and whose GPUs have the memory. */
static uint32_t able_types(const st_core *core, const st_shape *shape, uint32_t mask)
{
    uint32_t able = 0;
    for (uint32_t t = 0; t < core->fleet->types.n; t++) {
        const st_gpu_type *type = &core->fleet->types.v[t];
        if (!(mask >> t & 1))
            continue;
        int64_t have = type->vram_mib;
        if (shape->level == ST_LEVEL_MIG) {
            if (type->board == ST_BOARD_NONE)
                continue;
            have = st_mig_vram_mib(type->board, shape->profile);
        }
        if (shape->vram_mib <= have)
            able |= 1u << t;
    }
    return able;
}

static const st_view *empty_view(void *ctx, const st_node *node)
{
    return st_whatif_edit(ctx, node);
}

/* An account as the reader of a refusal may know it; what it has is said only of those known. */
static bool may_know(const st_core *core, int32_t account, int32_t reader)
{
    return st_tree_within(core->tree, account, reader);
}

bool st_core_possible(st_core *core, const st_job *job, int32_t type, int64_t *ret_most)
{
    st_job anybody = *job; /* on empty nodes it does not matter whose it is */
    anybody.account = ST_ROOT;
    uint64_t key = st_core_shape_key(&anybody, type);
    if (st_idmap_get(core->possible, key, NULL))
        return true;
    st_ask now = {.job = job, .type = type};
    st_ask ask = {.job = job, .type = type, .ever = true, .view = empty_view, .ctx = core};
    bool fits = st_place_fits(core->placer, &now); /* it will be asked anyway */
    if (!fits) {
        st_whatif_begin(core, ST_WHEN_EMPTY);
        fits = st_place_fits(core->placer, &ask);
    }
    if (!fits) {
        if (ret_most)
            *ret_most = st_place_most(core->placer, &ask);
        return false;
    }
    /* It stays true until a pool changes or a node is removed. */
    st_idmap_put(core->possible, key, 1);
    return true;
}

#define AMOUNT_MAX 64

/* What a limit counts, in the words and units of whoever set it. */
static const char *limit_text(char buf[AMOUNT_MAX], st_limit_kind kind, int64_t n, bool unit)
{
    char number[ST_FMT_MAX];
    const char *what = "";
    switch (kind) {
    case ST_LIMIT_GPU:
        st_fmt_milli(number, n);
        what = n == 1000 ? " GPU" : " GPUs";
        break;
    case ST_LIMIT_VRAM:
        st_fmt_mib(number, n);
        what = " of GPU memory";
        break;
    case ST_LIMIT_SHARE:
        st_fmt_milli(number, n);
        what = n == 1000 ? " GPU in shares" : " GPUs in shares";
        break;
    default:
        st_fmt_duration(number, n);
        what = " of run time";
        break;
    }
    snprintf(buf, AMOUNT_MAX, "%s%s", number, unit ? what : "");
    return buf;
}

static const char *dim_text(st_dim dim)
{
    return dim == ST_GPU ? "GPUs" : dim == ST_CPU ? "CPUs" : "RAM";
}

static void dim_amount(char buf[AMOUNT_MAX], st_dim dim, int64_t n)
{
    if (dim == ST_RAM)
        st_fmt_mib(buf, n);
    else
        st_fmt_milli(buf, n);
}

/* The most GPUs of one node that the job may use; no node of another pool or type counts. */
static int largest_node(const st_core *core, const st_job *job, int32_t type)
{
    int most = 0;
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if ((job->pool < 0 || node->pool == job->pool) && node->type == type)
            most = ST_MAX(most, node->ndevs);
    }
    return most;
}

/* Whether a pool that the job may use allows its level; and its permissions, where those are asked for. */
static bool pool_allows(const st_core *core, const st_job *job, bool needs)
{
    for (size_t i = 0; i < core->fleet->pools.n; i++) {
        const st_pool *pool = &core->fleet->pools.v[i];
        if (job->pool >= 0 && (size_t)job->pool != i)
            continue;
        if ((pool->levels >> job->shape.level & 1) &&
            !(needs && (job->shape.needs & ~st_pool_gives(&pool->rules))))
            return true;
    }
    return false;
}

/* Says what of a job does not fit on empty nodes; `most` of its tasks do. */
static int fail_room(const st_core *core, const st_job *job, int32_t type, int64_t most,
                     st_err *err)
{
    const char *name = type >= 0 ? core->fleet->types.v[type].name : NULL;
    int largest = type >= 0 ? largest_node(core, job, type) : 0, gpus = job->shape.gpus;
    char cpu[ST_FMT_MAX], ram[ST_FMT_MAX];
    const char *pool = job->pool >= 0 ? core->fleet->pools.v[job->pool].name : NULL;
    if (name && !pool_allows(core, job, false))
        return st_fail(err, ST_EINVAL, "job %s: %s%s %s level %s", job->name,
                       pool ? "pool " : "no pool", pool ? pool : "",
                       pool ? "does not allow" : "allows", st_level_name(job->shape.level));
    if (job->shape.nodes) {
        ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
        st_pick_say(st_fleet_picked_text(core->fleet, job->shape.nodes), &said);
        st_fmt_milli(cpu, job->shape.cpu_m);
        if (most > 0)
            return st_fail(err, ST_EINVAL,
                           "job %s: only %" PRId64 " of %d tasks fit on nodes with %s, even empty",
                           job->name, most, job->tasks, st_strbuf_str(&said));
        if (gpus > 0)
            return st_fail(err, ST_EINVAL, "job %s: no node with %s could take a task with %d %s%s",
                           job->name, st_strbuf_str(&said), gpus, name ? name : "GPU",
                           gpus == 1 ? "" : "s");
        return st_fail(err, ST_EINVAL, "job %s: no node with %s could take a task with %s CPUs",
                       job->name, st_strbuf_str(&said), cpu);
    }
    if (!pool_allows(core, job, true))
        return st_fail(err, ST_EINVAL, "job %s: no pool allows the image or network it uses",
                       job->name);
    if (name && largest == 0 && pool)
        return st_fail(err, ST_EINVAL, "job %s: pool %s has no %s", job->name, pool, name);
    if (name && largest == 0)
        return st_fail(err, ST_EINVAL, "job %s: no node has %s GPUs", job->name, name);
    if (name && gpus > largest)
        return st_fail(err, ST_EINVAL,
                       "job %s: no node has %d %s GPUs; the largest has %d. Ask for fewer GPUs per "
                       "task and more tasks",
                       job->name, gpus, name, largest);
    if (job->topo_required)
        return st_fail(err, ST_EINVAL, "job %s: only %" PRId64 " of %d tasks fit inside one %s",
                       job->name, most, job->tasks, st_topo_name(job->topo));
    if (most > 0)
        return st_fail(err, ST_EINVAL,
                       "job %s: only %" PRId64 " of %d tasks fit, even with every node empty",
                       job->name, most, job->tasks);
    st_fmt_milli(cpu, job->shape.cpu_m);
    st_fmt_mib(ram, job->shape.ram_mib);
    return st_fail(err, ST_EINVAL,
                   "job %s: no node has room for one task (%d GPU%s, %s CPUs, %s RAM), even empty",
                   job->name, gpus, gpus == 1 ? "" : "s", cpu, ram);
}

/* Refusals that depend on the type: the job is refused when every type it allows refuses it,
 * with what the last one said. */
static int check_type(st_core *core, const st_job *job, int32_t type, int32_t reader, st_err *err)
{
    const st_tree *tree = core->tree;
    st_limit_over limit;
    if (st_admit_job_limits(core->fleet, tree, job, type, &limit, 1) > 0 ||
        st_admit_user_limits(core->fleet, tree, job, type, true, &limit, 1) > 0) {
        const char *whose = limit.per_user ? "user" : "job";
        const char *account = st_tree_account(tree, limit.account)->name;
        char asked[AMOUNT_MAX], bound[AMOUNT_MAX];
        if (!may_know(core, limit.account, reader))
            return st_fail(err, ST_ELIMIT,
                           "job %s: asks for more %s than an account above yours allows per %s",
                           job->name, st_limit_name(limit.kind), whose);
        if (limit.asked == ST_TIME_NEVER)
            return st_fail(err, ST_ELIMIT,
                           "job %s: account %s allows %s of run time per %s, so the job needs a "
                           "time limit",
                           job->name, account, limit_text(bound, limit.kind, limit.bound, false),
                           whose);
        return st_fail(err, ST_ELIMIT, "job %s: asks for %s; account %s allows %s per %s",
                       job->name, limit_text(asked, limit.kind, limit.asked, true), account,
                       limit_text(bound, limit.kind, limit.bound, false), whose);
    }
    st_need need = st_need_of(job, type);
    st_over over;
    if (!job->booking && st_admit_over(tree, job->account, &need, 0, true, &over, 1) > 0) {
        char asked[AMOUNT_MAX], bound[AMOUNT_MAX];
        const char *what = over.type >= 0 ? core->fleet->types.v[over.type].name : NULL;
        if (!may_know(core, over.account, reader))
            return st_fail(err, ST_EQUOTA,
                           "job %s: asks for more %s than an account above yours may ever hold",
                           job->name, dim_text(over.dim));
        dim_amount(asked, over.dim, over.asked);
        dim_amount(bound, over.dim, over.bound);
        return st_fail(err, ST_EQUOTA,
                       "job %s: asks for %s %s; account %s may hold at most %s (its max)",
                       job->name, asked, what ? what : dim_text(over.dim),
                       st_tree_account(tree, over.account)->name, bound);
    }
    int64_t most;
    if (!st_core_possible(core, job, type, &most))
        return fail_room(core, job, type, most, err);
    return 0;
}

int st_core_submit(st_core *core, const st_job_spec *spec, st_effects *fx, st_err *err)
{
    int32_t account = -1;
    int rc = check_who(core, spec, &account, err);
    if (rc == 0)
        rc = check_shape(core, spec, err);
    if (rc == 0)
        rc = check_nodes(core, spec, err);
    if (rc == 0 && spec->booking)
        rc = st_book_check_submit(core, spec, account, err);
    if (rc == 0)
        rc = st_core_check_grace(core, spec, err);
    if (rc == 0)
        rc = st_window_check(core, spec, account, err);
    if (rc == 0)
        rc = st_deadline_check(core, spec, err);
    if (rc == 0)
        rc = st_after_check(core, spec, err);
    if (rc == 0)
        rc = st_array_check(core, spec, err);
    if (rc == 0)
        rc = st_retry_check(core, spec, err);
    if (rc < 0)
        return rc;
    bool fenced = spec->shape.level == ST_LEVEL_WHOLE || spec->shape.level == ST_LEVEL_MIG;
    if (!fenced && st_tree_untrusted(core->tree, account) && !ST_BROKEN(UNTRUSTED))
        return st_fail(err, ST_EINVAL,
                       "job %s: account %s is untrusted and gets whole GPUs or MIG slices, not %s",
                       spec->name, spec->account, st_level_name(spec->shape.level));

    st_job job = {
        .id = spec->id,
        .account = account,
        .pool = spec->pool,
        .tasks = spec->tasks,
        .shape = spec->shape,
        .topo = spec->topo,
        .topo_required = spec->topo != ST_TOPO_NONE && spec->topo_required,
        .latency_critical = spec->latency_critical,
        .priority = spec->priority,
        .meek = spec->meek,
        .fails = spec->fails,
        .limit_ms = spec->limit_ms,
        .yield = spec->yield,
        .grace_ms = spec->grace_ms,
        .booking = spec->booking,
        .retry = spec->retry,
        .type = -1,
        .submit_ms = core->now,
        .queued_ms = core->now,
        .preempted_ms = -1,
        .expect_ms = ST_TIME_NEVER,
        .promise_ms = ST_TIME_NEVER,
        .told_at_ms = -1,
    };
    st_window_set(core, spec, &job);
    job.shape.nodes = 0;
    if (spec->nodes && spec->nodes[0]) {
        sweep_picks(core);
        job.shape.nodes = st_fleet_pick(core->fleet, spec->nodes);
    }
    if (fenced || job.shape.gpus == 0)
        job.shape.share_m = 0;
    int32_t reader = spec->reader ? st_tree_find(core->tree, spec->reader) : ST_ROOT;
    st_err first = {0};
    if (job.shape.gpus > 0) {
        uint32_t all = core->fleet->types.n == 32 ? ~0u : (1u << core->fleet->types.n) - 1;
        job.shape.types = able_types(core, &job.shape, job.shape.types ? job.shape.types : all);
        if (job.shape.types == 0)
            return st_fail(err, ST_EINVAL,
                           "job %s: none of the GPU types it allows has the profile or memory it "
                           "asks for",
                           spec->name);
    } else {
        job.shape.types = 0;
    }
    job.name = st_xstrdup(spec->name);
    rc = -ST_EINVAL;
    ST_EACH_TYPE (core, &job, t) {
        rc = check_type(core, &job, t, reader, first.code ? NULL : &first);
        if (rc == 0)
            break;
    }
    if (rc < 0) {
        free(job.name);
        if (err)
            *err = first;
        return -first.code;
    }
    rc = st_deadline_admit(core, spec, &job, err);
    if (rc < 0) {
        free(job.name);
        return rc;
    }
    job.user = st_tree_user(core->tree, spec->user);
    st_job *own = st_xmalloc(sizeof *own);
    *own = job;
    st_after_set(core, spec, own);
    st_array_set(core, spec, own);
    st_core_add_job(core, own);
    st_core_put_aside(core, own);
    st_after_join(core, own);
    st_array_join(core, own);
    st_core_due(core, own);
    st_shadow_join(core, own);
    if (core->policy.learn && st_typical_learn(st_placer_typical(core->placer), own)) {
        st_core_changed(core, ST_CHANGED_WAITING); /* another choice of places may suit them */
        core->again = true;
    }
    st_fx(core, fx, st_fx_of(core, ST_FX_QUEUED, own), NULL, 0);
    st_deadline_keep(core, own, fx);
    return 0;
}
