/*
 * What the pools a job may land in say of it: whether it may, and what it gets that it did not ask for
 * (spec/spec.h).
 *
 * A task must have a part of its node's CPUs, one in `tasks_per_node` of them: so many tasks at most
 * fit on a node, whatever they ask for.
 */
#include <inttypes.h>

#include "base/num.h"
#include "spec/spec.h"

/* Where the job may land. */
static bool may_land(const st_fleet *fleet, const st_job_spec *spec, size_t pool)
{
    return (spec->pool < 0 || (size_t)spec->pool == pool) && st_pool_there(&fleet->pools.v[pool]) &&
           !(spec->shape.needs & ~st_pool_gives(&fleet->pools.v[pool].rules));
}

/* X(permission, what needs it, what to do without it) */
#define LACK_TABLE(X)                                                                 \
    X(ST_ALLOW_HOST_IMAGE, "it names no image, so it runs on the node's own files",   \
      "name an image")                                                                \
    X(ST_ALLOW_HOST_NETWORK, "it uses the node's own network", "use another network") \
    X(ST_ALLOW_RDMA, "it uses RDMA", "leave out rdma")

static int refuse(const st_fleet *fleet, const st_job_spec *spec, st_err *err)
{
    static const char *const why[] = {
#define X(id, what, instead) [id] = (what),
        LACK_TABLE(X)
#undef X
    };
    static const char *const otherwise[] = {
#define X(id, what, instead) [id] = (instead),
        LACK_TABLE(X)
#undef X
    };
    const char *pool = spec->pool >= 0 ? fleet->pools.v[spec->pool].name : NULL;
    uint32_t given = 0, lacks;
    int p;

    for (size_t i = 0; i < fleet->pools.n; i++)
        if (spec->pool < 0 || (size_t)spec->pool == i)
            given |= st_pool_gives(&fleet->pools.v[i].rules);
    /* Each may be given somewhere, and all of them together nowhere. */
    lacks = spec->shape.needs & ~given ? spec->shape.needs & ~given : spec->shape.needs;
    if (lacks & ST_NEED_WAYS)
        return st_fail(err, ST_EINVAL,
                       "job %s: %s%s%s %s jobs; choose another way to yield (on_preempt: requeue)",
                       spec->name, pool ? "pool " : "no pool that it may use can", pool ? pool : "",
                       pool ? " cannot" : "", st_need_name(lacks & ST_NEED_WAYS));
    p = __builtin_ctz(lacks);
    return st_fail(err, ST_EINVAL,
                   "job %s: %s, which %s%s; %s, or ask an owner for `stint pool set %s --allow %s`",
                   spec->name, why[p], pool ? "is not allowed in pool " : "no pool allows",
                   pool ? pool : "", otherwise[p], pool ? pool : "POOL",
                   st_allow_name((st_allow)p));
}

/* A default as it holds for a pool's jobs: said, or what `part` of the node has. */
typedef struct defaults {
    int64_t cpu_m, ram_mib; /* of one task of the job; 0: no node to take them from */
    int64_t least_m;        /* CPU a task must have */
} defaults;

/* At least one, so that it is never nothing; whole CPUs where it is more than one. */
static int64_t round_cpu(int64_t cpu_m)
{
    return cpu_m >= 1000 ? cpu_m / 1000 * 1000 : ST_MAX(cpu_m, 1);
}

static void smaller(int64_t *least, int64_t value)
{
    if (value > 0 && (*least == 0 || value < *least))
        *least = value;
}

/* The part of a node that belongs to one task of the job, where the pool does not say. Of RAM half of
 * it: a task that was paused stays in memory beside the one that took its GPUs. */
static void even_part(const st_node *node, const st_shape *shape, int64_t cpu_m, defaults *d)
{
    int64_t gpu_m = st_shape_gpu_m(shape);

    if (shape->gpus > 0 && node->ndevs > 0) {
        smaller(&d->cpu_m, round_cpu(node->cpu_m * gpu_m / (1000 * node->ndevs)));
        smaller(&d->ram_mib, ST_MAX(node->ram_mib * gpu_m / (2000 * node->ndevs), 1));
    } else if (shape->gpus == 0 && node->cpu_m > 0) {
        smaller(&d->ram_mib,
                ST_MAX(node->ram_mib * ST_MIN(cpu_m, node->cpu_m) / (2 * node->cpu_m), 1));
    }
}

static defaults of_pool(const st_fleet *fleet, size_t pool, const st_shape *shape)
{
    const st_pool_rules rules = st_pool_rules_of(&fleet->pools.v[pool]);
    int64_t cpu_m = shape->cpu_m > 0 ? shape->cpu_m : rules.task_cpu_m;
    int64_t gpu_m = st_shape_gpu_m(shape);
    defaults d = {0};

    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[i];

        if (node->pool != (int32_t)pool)
            continue;
        even_part(node, shape, cpu_m, &d);
        d.least_m = ST_MAX(d.least_m, (node->cpu_m + rules.node_tasks - 1) / rules.node_tasks);
    }
    if (shape->gpus == 0) {
        d.cpu_m = rules.task_cpu_m;
        d.ram_mib = rules.cpu_ram_mib > 0 ? ST_MAX(rules.cpu_ram_mib * cpu_m / 1000, 1) : d.ram_mib;
        return d;
    }
    if (rules.gpu_cpu_m > 0)
        d.cpu_m = round_cpu(rules.gpu_cpu_m * gpu_m / 1000);
    if (rules.gpu_ram_mib > 0)
        d.ram_mib = ST_MAX(rules.gpu_ram_mib * gpu_m / 1000, 1);
    return d;
}

int st_spec_fill(const st_fleet *fleet, st_job_spec *spec, st_err *err)
{
    st_shape *shape = &spec->shape;
    defaults all = {0};
    bool lands = false;

    if (spec->pool >= 0 && (size_t)spec->pool >= fleet->pools.n)
        return st_fail(err, ST_ENOENT, "job %s: its pool does not exist", spec->name);
    for (size_t p = 0; p < fleet->pools.n; p++) {
        const st_pool_rules rules = st_pool_rules_of(&fleet->pools.v[p]);
        defaults d;

        if (!may_land(fleet, spec, p))
            continue;
        lands = true;
        if (spec->tasks > rules.job_tasks)
            return st_fail(err, ST_ELIMIT,
                           "job %s: it has %d tasks, pool %s allows %" PRId64
                           " in a job; submit several jobs, or ask an owner for `stint pool set %s "
                           "--tasks-per-job N`",
                           spec->name, spec->tasks, fleet->pools.v[p].name, rules.job_tasks,
                           fleet->pools.v[p].name);
        d = of_pool(fleet, p, shape);
        smaller(&all.cpu_m, d.cpu_m);
        smaller(&all.ram_mib, d.ram_mib);
        all.least_m = ST_MAX(all.least_m, d.least_m);
    }
    if (!lands && fleet->pools.n > 0)
        return refuse(fleet, spec, err);
    if (shape->cpu_m == 0)
        shape->cpu_m = all.cpu_m;
    if (shape->ram_mib == 0)
        shape->ram_mib = all.ram_mib;
    shape->cpu_m = ST_MAX(shape->cpu_m, all.least_m);
    return 0;
}
