/*
 * `stint sim fragmentation`: plays one seed of an openb trace (trace/fragmentation.h) and prints how
 * much of the fleet stayed unused.
 */
#include "base/quote.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "trace/fragmentation.h"

static void print_json(FILE *out, st_frag_policy policy, int64_t seed, const st_fragmentation *r)
{
    fprintf(out,
            "{\"policy\": \"%s\", \"seed\": %lld, \"unallocated_pct_at_100\": %.4f, "
            "\"allocated_pct_at_130\": %.4f, \"decisions\": %lld, \"seconds\": %.6f, "
            "\"decision_p99_us\": %.3f}\n",
            st_frag_policy_name(policy), (long long)seed, r->unallocated_pct_at_100,
            r->allocated_pct_at_130, (long long)r->decisions, r->seconds, r->decision_p99_us);
}

static void print_table(FILE *out, st_frag_policy policy, int64_t seed, const st_fragmentation *r)
{
    ST_CLEANUP(st_table_done) st_table t = {0};

    st_table_column(&t, "POLICY", false);
    st_table_column(&t, "SEED", true);
    st_table_column(&t, "UNALLOCATED % AT 100 %", true);
    st_table_column(&t, "ALLOCATED % AT 130 %", true);
    st_table_column(&t, "DECISIONS", true);
    st_table_column(&t, "SECONDS", true);
    st_table_column(&t, "P99 us", true);
    st_table_cell(&t, "%s", st_frag_policy_name(policy));
    st_table_cell(&t, "%lld", (long long)seed);
    st_table_cell(&t, "%.2f", r->unallocated_pct_at_100);
    st_table_cell(&t, "%.2f", r->allocated_pct_at_130);
    st_table_cell(&t, "%lld", (long long)r->decisions);
    st_table_cell(&t, "%.3f", r->seconds);
    st_table_cell(&t, "%.1f", r->decision_p99_us);
    st_table_print(&t, out);
}

static int check(const char *nodes, const char *pods, const char *policy, int *ret, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (!nodes || !pods)
        return st_fail(err, ST_EINVAL, "sim fragmentation: --%s FILE is missing",
                       nodes ? "pods" : "nodes");
    *ret = st_frag_policy_find(policy);
    if (*ret < 0)
        return st_fail(err, ST_EINVAL,
                       "option --policy: the policy is stint, fgd, bestfit or random, not %s",
                       st_quote(q, policy));
    return 0;
}

int st_cli_sim_fragmentation(st_cli *cli, int argc, char **argv, st_err *err)
{
    st_cli_format format = ST_CLI_TABLE;
    const char *nodes = NULL, *pods = NULL, *name = "stint";
    int64_t seed = 42;
    const st_cli_opt opts[] = {ST_CLI_OPT_OUTPUT(&format),
                               {"nodes", 0, ST_CLI_STRING, &nodes, 0, 0},
                               {"pods", 0, ST_CLI_STRING, &pods, 0, 0},
                               {"seed", 0, ST_CLI_I64, &seed, 0, INT64_MAX},
                               {"policy", 0, ST_CLI_STRING, &name, 0, 0},
                               {0}};
    ST_CLEANUP(st_openb_freep) st_openb *trace = NULL;
    st_fragmentation result;
    int policy = -1, r, n;

    r = st_cli_options(argc, argv, opts, 0, 0, &n, err);
    if (r == 0)
        r = check(nodes, pods, name, &policy, err);
    if (r == 0)
        r = st_openb_load(nodes, pods, &trace, err);
    if (r == 0)
        r = st_fragmentation_run(trace, (st_frag_policy)policy, (uint64_t)seed, 1, &result, err);
    if (r < 0)
        return r;
    if (format == ST_CLI_JSON)
        print_json(cli->out, (st_frag_policy)policy, seed, &result);
    else
        print_table(cli->out, (st_frag_policy)policy, seed, &result);
    return 0;
}
