/*
 * A made trace as files. Equal nodes that are numbered in a row become one row of the document;
 * this reads the rows off the nodes, so it also holds for a fleet that was changed since.
 */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "gen/plan.h"

/* ---- the fleet ---------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* How many nodes from `first` on share the place that `field` of node i names. */
#define RUN_OF(t, first, end, field)                                                             \
    __extension__({                                                                              \
        size_t st_i_ = (first);                                                                  \
        while (st_i_ < (end) && same_text((t)->nodes.v[st_i_].field, (t)->nodes.v[first].field)) \
            st_i_++;                                                                             \
        st_i_ - (first);                                                                         \
    })

/* "a100-80-r7" -> "a100-80-r%d". */
static void pattern(FILE *out, const char *key, const char *name)
{
    size_t n = strlen(name);

    while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9')
        n--;
    fprintf(out, ", %s: \"%.*s%%d\"", key, (int)n, name);
}

static void write_row(const st_trace *t, size_t first, size_t end, FILE *out)
{
    const st_node_spec *n = &t->nodes.v[first];
    size_t rack = RUN_OF(t, first, end, rack), block = RUN_OF(t, first, end, block);
    size_t zone = RUN_OF(t, first, end, zone);
    char cpu[ST_FMT_MAX], ram[ST_FMT_MAX];

    fprintf(out, "  - {count: %zu, gpu: %s, gpus: %d, cpu: %s, ram: %s", end - first,
            t->types.v[n->type].name, n->ndevs, st_fmt_milli(cpu, n->cpu_m),
            st_fmt_mib(ram, n->ram_mib));
    pattern(out, "name", n->name);
    fputs(",\n    ", out);
    /* The last place of a kind may be half empty, but the first is not, unless it is the only. */
    fprintf(out, "rack_size: %zu", rack);
    pattern(out, "rack", n->rack);
    fprintf(out, ", block_size: %zu", (block + rack - 1) / rack);
    pattern(out, "block", n->block);
    fprintf(out, ", zone_size: %zu", (zone + block - 1) / block);
    pattern(out, "zone", n->zone);
    fputs("}\n", out);
}

static void write_fleet(const st_trace *t, FILE *out)
{
    fputs("fleet:\n", out);
    for (size_t first = 0, end; first < t->nodes.n; first = end) {
        end = first + 1;
        while (end < t->nodes.n && t->nodes.v[end].type == t->nodes.v[first].type)
            end++;
        write_row(t, first, end, out);
    }
}

/* ---- accounts ----------------------------------------------------------------------- */

static void write_account(const st_account_spec *a, FILE *out)
{
    char gpu[ST_FMT_MAX], weight[ST_FMT_MAX];

    fprintf(out, "  - {name: %s", a->name);
    if (a->parent)
        fprintf(out, ", parent: %s", a->parent);
    fprintf(out, ", guarantee: {gpu: %s}, weight: %s}\n", st_fmt_milli(gpu, a->guarantee.gpu_m),
            st_fmt_milli(weight, a->weight_m));
}

void st_gen_write_world(const st_trace *trace, FILE *out)
{
    fprintf(out,
            "# A made-up fleet and its accounts; the jobs are in jobs.csv. The keys are those of"
            " a scenario.\n");
    fprintf(out, "name: %s\n", trace->name);
    fputs("policy: {}\n", out);
    write_fleet(trace, out);
    fputs("accounts:\n", out);
    for (size_t i = 0; i < trace->accounts.n; i++)
        write_account(&trace->accounts.v[i], out);
}

/* ---- jobs --------------------------------------------------------------------------- */

static void seconds(FILE *out, int64_t ms)
{
    char buf[ST_FMT_MAX];

    if (ms != ST_TIME_NEVER)
        fputs(st_fmt_milli(buf, ms), out);
    putc(',', out);
}

static void types(const st_trace *t, uint32_t mask, FILE *out)
{
    const char *bar = "";

    for (size_t i = 0; i < t->types.n; i++) {
        if (!(mask >> i & 1))
            continue;
        fprintf(out, "%s%s", bar, t->types.v[i].name);
        bar = "|";
    }
    putc(',', out);
}

/* level, share, mig, vram, cpu, ram */
static void shape(const st_shape *s, FILE *out)
{
    static const char *const profiles[ST_MIG_COUNT] = {"1g", "1g+", "2g", "3g", "4g", "7g"};
    char buf[ST_FMT_MAX];
    bool shared = s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME;

    fprintf(out, "%s,", st_level_name(s->level));
    fprintf(out, "%s,", shared ? st_fmt_milli(buf, s->share_m) : "");
    fprintf(out, "%s,", s->level == ST_LEVEL_MIG ? profiles[s->profile] : "");
    fprintf(out, "%s,", s->vram_mib > 0 ? st_fmt_mib(buf, s->vram_mib) : "");
    fprintf(out, "%s,", st_fmt_milli(buf, s->cpu_m));
    fprintf(out, "%s,", st_fmt_mib(buf, s->ram_mib));
}

void st_gen_write_jobs(const st_trace *trace, FILE *out)
{
    fputs(
        "name,account,user,submit,run,limit,tasks,gpus,type,level,share,mig,vram,cpu,ram,topology,"
        "topology_required,priority,yield\n",
        out);
    for (size_t i = 0; i < trace->jobs.n; i++) {
        const st_trace_job *j = &trace->jobs.v[i];

        fprintf(out, "%s,%s,%s,", j->name, trace->accounts.v[j->account].name, j->user);
        seconds(out, j->submit_ms);
        seconds(out, j->run_ms);
        seconds(out, j->limit_ms);
        fprintf(out, "%d,%d,", j->tasks, j->shape.gpus);
        types(trace, j->shape.types, out);
        shape(&j->shape, out);
        fprintf(out, "%s,%s,%d,%s\n", j->topo == ST_TOPO_NONE ? "" : st_topo_name(j->topo),
                j->topo_required ? "true" : "false", j->priority, st_yield_name(j->yield));
    }
}
