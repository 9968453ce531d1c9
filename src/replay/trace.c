/*
 * The demand as a trace that others may have (replay/replay.h): accounts, users, jobs, pools, nodes and places have
 * numbers for names, and time begins with 0. GPU types keep their names. `stint sim trace` reads what is written.
 */
#include <inttypes.h>

#include "base/num.h"
#include "replay/state.h"

static const char *numbered(st_trace *t, const char *word, size_t n)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};

    st_strbuf_addf(&name, "%s%zu", word, n);
    return st_arena_strdup(t->arena, st_strbuf_str(&name));
}

/* ---- the fleet -------------------------------------------------------------------------------------- */

static const char *place(const st_fleet *fleet, st_trace *t, const st_node *node, st_topo level,
                         const char *word)
{
    int32_t id = node->place[level];

    (void)fleet;
    return id < 0 ? NULL : numbered(t, word, (size_t)id + 1);
}

static void take_nvlink(const st_fleet *fleet, st_trace *t, const st_node *node, st_node_spec *spec)
{
    int same = 0;

    if (node->ndevs == 0)
        return;
    for (int d = 0; d < node->ndevs; d++)
        same += node->nvlink[d] == node->nvlink[0];
    if (same < node->ndevs)
        spec->nvlink_size = same;
    else if (node->nvlink[0] >= 0 && fleet->domains[ST_TOPO_NVLINK].v[node->nvlink[0]].nodes.n > 1)
        spec->nvlink_domain = numbered(t, "nvl", (size_t)node->nvlink[0] + 1);
}

static void take_fleet(const st_fleet *fleet, st_trace *t)
{
    for (size_t i = 0; i < fleet->types.n; i++)
        st_vec_push(&t->types,
                    (st_trace_type){st_arena_strdup(t->arena, fleet->types.v[i].name),
                                    fleet->types.v[i].vram_mib, fleet->types.v[i].board});
    for (size_t i = 0; i < fleet->pools.n; i++)
        st_vec_push(&t->pools, (st_trace_pool){numbered(t, "pool", i + 1), fleet->pools.v[i].levels,
                                               fleet->pools.v[i].oversub_m});
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[i];
        st_node_spec spec = {.name = numbered(t, "n", i + 1),
                             .pool = node->pool,
                             .type = node->type,
                             .ndevs = node->ndevs,
                             .cpu_m = node->cpu_m,
                             .ram_mib = node->ram_mib,
                             .zone = place(fleet, t, node, ST_TOPO_ZONE, "z"),
                             .block = place(fleet, t, node, ST_TOPO_BLOCK, "b"),
                             .rack = place(fleet, t, node, ST_TOPO_RACK, "r")};

        if (node->state == ST_NODE_REMOVED)
            continue;
        take_nvlink(fleet, t, node, &spec);
        st_vec_push(&t->nodes, spec);
    }
}

/* ---- accounts and jobs -------------------------------------------------------------------------------- */

/* By their numbers in the tree; those that are gone are nobody's. */
static void take_accounts(const st_tree *tree, st_trace *t, int32_t *at)
{
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        st_account_spec spec;

        at[i] = -1;
        if (a->gone)
            continue;
        at[i] = (int32_t)t->accounts.n;
        st_account_spec_init(&spec);
        spec.name = numbered(t, "team", i);
        spec.parent = a->parent > ST_ROOT ? numbered(t, "team", (size_t)a->parent) : NULL;
        spec.guarantee = a->guarantee;
        spec.max = a->max;
        spec.weight_m = a->weight_m;
        spec.priority = a->priority;
        spec.job_limits = a->job_limits;
        spec.user_limits = a->user_limits;
        spec.book_limits = a->book_limits;
        spec.min_run_ms = a->min_run_ms;
        st_vec_push(&t->accounts, spec);
    }
}

/* How long it needs: until it ended by itself, or as long as it was seen to run. */
static int64_t run_ms(const st_rerun_lab *lab, const st_rerun_job *job)
{
    const st_rerun_fate *was = &job->fate[ST_WAS];

    if (job->need_ms != ST_UNSET)
        return ST_MAX(job->need_ms, 1);
    if (was->start_ms == ST_UNSET)
        return ST_UNSET;
    return ST_MAX((was->end_ms == ST_UNSET ? lab->end_ms : was->end_ms) - was->start_ms, 1);
}

void st_rerun_trace_of(st_rerun_lab *lab, st_trace *t)
{
    const st_core *core = lab->side[ST_WAS].core;
    const st_tree *tree = st_core_tree(core);
    int32_t *at = st_arena_alloc(lab->arena, (tree->accounts.n + 1) * sizeof *at);
    ST_CLEANUP(st_map_freep) st_map *users = st_map_new();

    take_fleet(st_core_fleet(core), t);
    take_accounts(tree, t, at);
    for (size_t i = 0; i < lab->jobs.n; i++) {
        const st_rerun_job *job = &lab->jobs.v[i];
        int32_t account = st_tree_find(tree, lab->names.v[job->account]);
        int64_t user = (int64_t)st_map_count(users) + 1;

        if (!job->counted)
            continue;
        if (account <= ST_ROOT || at[account] < 0) {
            st_trace_drop(t, "its account was removed");
            continue;
        }
        if (run_ms(lab, job) == ST_UNSET) {
            st_trace_drop(t, "it never ran");
            continue;
        }
        if (!st_map_get(users, job->spec.user ? job->spec.user : "", &user))
            st_map_put(users, job->spec.user ? job->spec.user : "", user);
        st_vec_push(&t->jobs, (st_trace_job){.name = numbered(t, "job-", i + 1),
                                             .account = at[account],
                                             .user = numbered(t, "user", (size_t)user),
                                             .tasks = job->spec.tasks,
                                             .shape = job->spec.shape,
                                             .topo = job->spec.topo,
                                             .topo_required = job->spec.topo_required,
                                             .latency_critical = job->spec.latency_critical,
                                             .priority = job->spec.priority,
                                             .submit_ms = ST_MAX(job->submit_ms - lab->from_ms, 0),
                                             .run_ms = run_ms(lab, job),
                                             .limit_ms = job->spec.limit_ms,
                                             .yield = job->spec.yield});
    }
    st_trace_sort(t);
}

/* ---- writing -------------------------------------------------------------------------------------------- */

static void write_types(const st_trace *t, FILE *out)
{
    fputs("types:\n", out);
    for (size_t i = 0; i < t->types.n; i++) {
        char vram[ST_FMT_MAX];

        fprintf(out, "  %s: {vram: %s, mig: %s}\n", t->types.v[i].name,
                st_fmt_mib(vram, t->types.v[i].vram_mib), st_board_name(t->types.v[i].board));
    }
}

static void write_pools(const st_trace *t, FILE *out)
{
    char over[ST_FMT_MAX];

    fputs("pools:\n", out);
    for (size_t i = 0; i < t->pools.n; i++) {
        const st_trace_pool *p = &t->pools.v[i];
        const char *comma = "";

        fprintf(out, "  %s: {oversubscribe: %s, levels: [", p->name,
                st_fmt_milli(over, p->oversub_m));
        for (int l = 0; l < ST_LEVEL_COUNT; l++) {
            if (!(p->levels >> l & 1))
                continue;
            fprintf(out, "%s%s", comma, st_level_name((st_level)l));
            comma = ", ";
        }
        fputs("]}\n", out);
    }
}

static void text(FILE *out, const char *key, const char *value)
{
    if (value)
        fprintf(out, ", %s: %s", key, value);
}

static void write_nodes(const st_trace *t, FILE *out)
{
    char cpu[ST_FMT_MAX], ram[ST_FMT_MAX];

    fputs("fleet:\n", out);
    for (size_t i = 0; i < t->nodes.n; i++) {
        const st_node_spec *n = &t->nodes.v[i];

        fprintf(out, "  - {name: %s, pool: %s, cpu: %s, ram: %s", n->name, t->pools.v[n->pool].name,
                st_fmt_milli(cpu, n->cpu_m), st_fmt_mib(ram, n->ram_mib));
        if (n->type >= 0)
            fprintf(out, ", gpu: %s, gpus: %d", t->types.v[n->type].name, n->ndevs);
        if (n->nvlink_size > 0)
            fprintf(out, ", nvlink: %d", n->nvlink_size);
        text(out, "nvlink_domain", n->nvlink_domain);
        text(out, "rack", n->rack);
        text(out, "block", n->block);
        text(out, "zone", n->zone);
        fputs("}\n", out);
    }
}

static void write_quota(const st_trace *t, const char *key, const st_quota *q, FILE *out)
{
    char buf[ST_FMT_MAX];
    const char *comma = "";

    fprintf(out, ", %s: {", key);
    if (q->gpu_m != ST_UNSET)
        fprintf(out, "gpu: %s", st_fmt_milli(buf, q->gpu_m)), comma = ", ";
    if (q->cpu_m != ST_UNSET)
        fprintf(out, "%scpu: %s", comma, st_fmt_milli(buf, q->cpu_m)), comma = ", ";
    if (q->ram_mib != ST_UNSET)
        fprintf(out, "%sram: %s", comma, st_fmt_mib(buf, q->ram_mib)), comma = ", ";
    for (size_t i = 0; i < t->types.n; i++)
        if (q->type_m[i] != ST_UNSET) {
            fprintf(out, "%s%s: %s", comma, t->types.v[i].name, st_fmt_milli(buf, q->type_m[i]));
            comma = ", ";
        }
    fputs("}", out);
}

void st_rerun_write_world(const st_trace *t, FILE *out)
{
    char weight[ST_FMT_MAX];

    fputs("# A recorded fleet and its accounts, with numbers for names; the jobs are in jobs.csv.\n"
          "name: recorded\npolicy: {}\n",
          out);
    write_types(t, out);
    write_pools(t, out);
    write_nodes(t, out);
    fputs("accounts:\n", out);
    for (size_t i = 0; i < t->accounts.n; i++) {
        const st_account_spec *a = &t->accounts.v[i];

        fprintf(out, "  - {name: %s", a->name);
        text(out, "parent", a->parent);
        write_quota(t, "guarantee", &a->guarantee, out);
        write_quota(t, "max", &a->max, out);
        fprintf(out, ", weight: %s, priority: %d}\n", st_fmt_milli(weight, a->weight_m),
                a->priority);
    }
}
