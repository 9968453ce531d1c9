/*
 * Jobs of one's own: a fleet and accounts from a scenario document, and one row per job. The table
 * below has every column; doc/reference/traces.md says the same for people.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "scenario/scenario.h"
#include "spec/spec.h"
#include "trace/read.h"

/* X(id, heading, whether it must be there) */
#define COLUMN_TABLE(X)                              \
    X(NAME, "name", false)                           \
    X(ACCOUNT, "account", true)                      \
    X(USER, "user", false)                           \
    X(SUBMIT, "submit", true)                        \
    X(RUN, "run", true)                              \
    X(LIMIT, "limit", false)                         \
    X(TASKS, "tasks", false)                         \
    X(GPUS, "gpus", true)                            \
    X(TYPE, "type", false)                           \
    X(LEVEL, "level", false)                         \
    X(SHARE, "share", false)                         \
    X(MIG, "mig", false)                             \
    X(VRAM, "vram", false)                           \
    X(CPU, "cpu", false)                             \
    X(RAM, "ram", false)                             \
    X(TOPOLOGY, "topology", false)                   \
    X(TOPOLOGY_REQUIRED, "topology_required", false) \
    X(LATENCY_CRITICAL, "latency_critical", false)   \
    X(PRIORITY, "priority", false)                   \
    X(YIELD, "yield", false)

enum {
#define X(id, heading, must) COLUMN_##id,
    COLUMN_TABLE(X)
#undef X
        COLUMN_COUNT
};

static const char *const headings[] = {
#define X(id, heading, must) heading,
    COLUMN_TABLE(X)
#undef X
        NULL,
};
static const bool required[] = {
#define X(id, heading, must) must,
    COLUMN_TABLE(X)
#undef X
};
static const char *const bool_words[] = {"false", "true", NULL};

typedef struct reader {
    st_trace *trace;
    st_csv *csv;
    st_map *accounts; /* name -> index */
    int column[COLUMN_COUNT];
    int node_gpus; /* of the largest node */
} reader;

/* ---- the world ------------------------------------------------------------------------------------- */

static const char *own(st_trace *trace, const char *s)
{
    return s ? st_arena_strdup(trace->arena, s) : NULL;
}

static void take_fleet(st_trace *trace, const st_scenario *s)
{
    for (size_t i = 0; i < s->types.n; i++) {
        const st_type_doc *type = &s->types.v[i].doc;

        st_vec_push(&trace->types,
                    (st_trace_type){own(trace, type->name), type->vram_mib, type->board});
    }
    for (size_t i = 0; i < s->pools.n; i++) {
        const st_pool_doc *pool = &s->pools.v[i].doc;

        st_vec_push(&trace->pools,
                    (st_trace_pool){own(trace, pool->name), pool->levels, pool->oversub_m});
    }
    for (size_t i = 0; i < s->nodes.n; i++) {
        st_node_spec node = s->nodes.v[i].spec;

        node.name = own(trace, node.name);
        node.nvlink_domain = own(trace, node.nvlink_domain);
        node.zone = own(trace, node.zone);
        node.block = own(trace, node.block);
        node.rack = own(trace, node.rack);
        st_vec_push(&trace->nodes, node);
    }
}

static void take_accounts(reader *rd, const st_scenario *s)
{
    st_trace *trace = rd->trace;
    st_tree *nobody = st_tree_new(); /* all of them are new */

    for (size_t i = 0; i < s->accounts.n; i++) {
        st_account_spec account;

        st_spec_account_lay(nobody, s->accounts.v[i], &account);
        account.name = own(trace, account.name);
        account.parent = own(trace, account.parent);
        st_map_put(rd->accounts, account.name, (int64_t)trace->accounts.n);
        st_vec_push(&trace->accounts, account);
    }
    st_tree_free(nobody);
}

static int take_world(reader *rd, const st_doc *world, st_policy *ret_policy, st_err *err)
{
    ST_CLEANUP(st_scenario_freep) st_scenario *s = NULL;
    st_trace *trace = rd->trace;
    int r = st_scenario_new(world, &s, err);

    if (r < 0)
        return r;
    if (s->actions.n > 0 || s->asserts)
        return st_doc_fail(world, NULL, err, ST_EINVAL,
                           "the world of a trace has no timeline: its jobs are in the CSV");
    trace->name = own(trace, s->name);
    take_fleet(trace, s);
    take_accounts(rd, s);
    for (size_t i = 0; i < trace->nodes.n; i++)
        rd->node_gpus = ST_MAX(rd->node_gpus, trace->nodes.v[i].ndevs);
    *ret_policy = s->policy;
    return 0;
}

/* ---- fields ---------------------------------------------------------------------------------------- */

/* The text of a column, NULL where the row says nothing. */
static const char *field(const reader *rd, int which)
{
    const char *s = st_csv_text(rd->csv, rd->column[which]);

    return *s ? s : NULL;
}

static int fail_field(const reader *rd, int which, const st_err *why, st_err *err)
{
    return st_csv_fail(rd->csv, err, why->code, "%s: %s", headings[which], why->msg);
}

static int read_i64(const reader *rd, int which, int64_t lo, int64_t hi, int64_t *ret, st_err *err)
{
    const char *s = field(rd, which);
    st_err why = {0};

    return s && st_parse_i64(s, lo, hi, ret, &why) < 0 ? fail_field(rd, which, &why, err) : 0;
}

static int read_milli(const reader *rd, int which, int64_t hi, int64_t *ret, st_err *err)
{
    const char *s = field(rd, which);
    st_err why = {0};

    return s && st_parse_milli(s, 0, hi, ret, &why) < 0 ? fail_field(rd, which, &why, err) : 0;
}

static int read_duration(const reader *rd, int which, int64_t *ret, st_err *err)
{
    const char *s = field(rd, which);
    st_err why = {0};

    /* Traces have seconds, as the public ones do. */
    if (s && st_parse_milli(s, 0, ST_DURATION_MAX_MS, ret, &why) == 0)
        return 0;
    return s && st_parse_duration_ms(s, ret, &why) < 0 ? fail_field(rd, which, &why, err) : 0;
}

static int read_mib(const reader *rd, int which, int64_t *ret, st_err *err)
{
    const char *s = field(rd, which);
    st_err why = {0};

    return s && st_parse_mib(s, ret, &why) < 0 ? fail_field(rd, which, &why, err) : 0;
}

static int read_word(const reader *rd, int which, const char *const *words, int *ret, st_err *err)
{
    const char *s = field(rd, which), *nearest;
    char q[ST_QUOTE_MAX];

    if (!s)
        return 0;
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], s) == 0) {
            *ret = i;
            return 0;
        }
    nearest = st_suggest(s, words);
    return st_csv_fail(rd->csv, err, ST_EPARSE, "%s: there is no %s%s%s%s", headings[which],
                       st_quote(q, s), nearest ? " (did you mean " : "", nearest ? nearest : "",
                       nearest ? "?)" : "");
}

static int find_type(const reader *rd, const char *s, size_t len)
{
    for (size_t t = 0; t < rd->trace->types.n; t++) {
        const char *name = rd->trace->types.v[t].name;

        if (strlen(name) == len && strncmp(name, s, len) == 0)
            return (int)t;
    }
    return -1;
}

/* "a100-80|h100" */
static int read_types(const reader *rd, uint32_t *ret, st_err *err)
{
    const char *s = field(rd, COLUMN_TYPE);
    char q[ST_QUOTE_MAX];

    while (s && *s) {
        size_t len = strcspn(s, "|");
        int type = find_type(rd, s, len);

        if (type < 0)
            return st_csv_fail(rd->csv, err, ST_ENOENT, "type: the fleet has no GPU type %s",
                               st_quote(q, s));
        *ret |= 1u << type;
        s += len + (s[len] == '|');
    }
    return 0;
}

/* Level, share and mig go together; a vendor's name of a profile leaves types whose board has it. */
static int read_level(const reader *rd, st_shape *shape, st_err *err)
{
    const char *mig = field(rd, COLUMN_MIG);
    int level = mig ? ST_LEVEL_MIG : field(rd, COLUMN_SHARE) ? ST_LEVEL_MPS : ST_LEVEL_WHOLE;
    uint32_t types = 0, asked = shape->types ? shape->types : UINT32_MAX;
    char q[ST_QUOTE_MAX];
    int r = read_word(rd, COLUMN_LEVEL, st_level_words, &level, err);

    if (r == 0)
        r = read_milli(rd, COLUMN_SHARE, ST_WHOLE_M, &shape->share_m, err);
    if (r < 0)
        return r;
    shape->level = (st_level)level;
    if ((level == ST_LEVEL_MIG) != (mig != NULL))
        return st_csv_fail(rd->csv, err, ST_EINVAL, "level mig and a profile in mig go together");
    if ((level == ST_LEVEL_MPS || level == ST_LEVEL_TIME) != (shape->share_m > 0))
        return st_csv_fail(rd->csv, err, ST_EINVAL,
                           "levels mps and time have a share, the others have none");
    if (!mig)
        return 0;
    for (size_t t = 0; t < rd->trace->types.n; t++) {
        int profile = st_mig_parse(rd->trace->types.v[t].board, mig);

        if (profile < 0 || !(asked >> t & 1))
            continue;
        shape->profile = (st_mig)profile;
        types |= 1u << t;
    }
    if (types == 0)
        return st_csv_fail(rd->csv, err, ST_EINVAL, "mig: no GPU type it may use has a profile %s",
                           st_quote(q, mig));
    shape->types = types;
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static int read_who(const reader *rd, st_trace_job *job, st_err *err)
{
    const char *name = field(rd, COLUMN_NAME), *user = field(rd, COLUMN_USER);
    const char *account = field(rd, COLUMN_ACCOUNT);
    char q[ST_QUOTE_MAX], numbered[32];
    int64_t id;

    if (!account || !st_map_get(rd->accounts, account, &id))
        return st_csv_fail(rd->csv, err, ST_ENOENT, "account: there is no account %s",
                           st_quote(q, account ? account : ""));
    snprintf(numbered, sizeof(numbered), "job-%zu", rd->trace->jobs.n + 1);
    if ((name && !st_name_ok(name)) || (user && !st_name_ok(user)))
        return st_csv_fail(rd->csv, err, ST_EPARSE, "%s cannot be the name of a job or user",
                           st_quote(q, name && !st_name_ok(name) ? name : user));
    job->account = (int32_t)id;
    job->name = st_arena_strdup(rd->trace->arena, name ? name : numbered);
    job->user = user ? st_arena_strdup(rd->trace->arena, user) : rd->trace->accounts.v[id].name;
    return 0;
}

static int read_shape(const reader *rd, st_trace_job *job, st_err *err)
{
    st_shape *shape = &job->shape;
    int64_t gpus = 1, tasks = 0;
    int r = read_i64(rd, COLUMN_GPUS, 0, (int64_t)ST_DEVS_MAX * ST_TASKS_MAX, &gpus, err);

    if (r == 0)
        r = read_i64(rd, COLUMN_TASKS, 1, ST_TASKS_MAX, &tasks, err);
    if (r == 0)
        r = read_types(rd, &shape->types, err);
    if (r == 0)
        r = read_level(rd, shape, err);
    if (r == 0)
        r = read_mib(rd, COLUMN_VRAM, &shape->vram_mib, err);
    if (r == 0)
        r = read_milli(rd, COLUMN_CPU, ST_QTY_MAX, &shape->cpu_m, err);
    if (r == 0)
        r = read_mib(rd, COLUMN_RAM, &shape->ram_mib, err);
    if (r < 0)
        return r;
    job->tasks = (int)ST_MAX(tasks, 1);
    shape->gpus = (int)gpus;
    if (tasks == 0 && gpus > 0 && rd->node_gpus > 0)
        st_trace_split(job, gpus, rd->node_gpus);
    return 0;
}

static int read_job(const reader *rd, st_trace_job *job, st_err *err)
{
    int topo = ST_TOPO_NONE, topo_required = 0, critical = 0, yield = ST_YIELD_REQUEUE, r;
    int64_t priority = 0;

    job->run_ms = job->limit_ms = ST_TIME_NEVER;
    r = read_who(rd, job, err);
    if (r == 0 && !field(rd, COLUMN_SUBMIT))
        return st_csv_fail(rd->csv, err, ST_EPARSE, "submit: it is not said when the job came");
    if (r == 0)
        r = read_duration(rd, COLUMN_SUBMIT, &job->submit_ms, err);
    if (r == 0)
        r = read_duration(rd, COLUMN_RUN, &job->run_ms, err);
    if (r == 0)
        r = read_duration(rd, COLUMN_LIMIT, &job->limit_ms, err);
    if (r == 0)
        r = read_shape(rd, job, err);
    if (r == 0)
        r = read_word(rd, COLUMN_TOPOLOGY, st_topo_words, &topo, err);
    if (r == 0)
        r = read_word(rd, COLUMN_TOPOLOGY_REQUIRED, bool_words, &topo_required, err);
    if (r == 0)
        r = read_word(rd, COLUMN_LATENCY_CRITICAL, bool_words, &critical, err);
    if (r == 0)
        r = read_i64(rd, COLUMN_PRIORITY, -ST_PRIO_MAX, ST_PRIO_MAX, &priority, err);
    if (r == 0)
        r = read_word(rd, COLUMN_YIELD, st_yield_words, &yield, err);
    if (r < 0)
        return r;
    job->run_ms = ST_MAX(job->run_ms, 1);
    job->topo = (st_topo)topo;
    job->topo_required = topo_required;
    job->latency_critical = critical;
    job->priority = (int)priority;
    job->yield = (st_yield)yield;
    return st_trace_add_job(rd->trace, rd->csv, job, err);
}

static int read_rows(reader *rd, st_err *err)
{
    int r = st_csv_check(rd->csv, headings, err);

    for (int c = 0; r == 0 && c < COLUMN_COUNT; c++) {
        rd->column[c] = st_csv_find(rd->csv, headings[c]);
        if (rd->column[c] < 0 && required[c])
            r = st_csv_need(rd->csv, headings[c], &rd->column[c], err);
    }
    if (r < 0)
        return r;
    while ((r = st_csv_next(rd->csv, err)) > 0) {
        st_trace_job job = {0};

        r = read_job(rd, &job, err);
        if (r < 0)
            return r;
    }
    return r;
}

int st_trace_read_csv(st_csv *jobs, const st_doc *world, st_policy *ret_policy, st_trace **ret,
                      st_err *err)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = st_trace_new("csv");
    ST_CLEANUP(st_map_freep) st_map *accounts = st_map_new();
    reader rd = {.trace = trace, .csv = jobs, .accounts = accounts};
    st_policy policy;
    int r = take_world(&rd, world, &policy, err);

    if (r == 0)
        r = read_rows(&rd, err);
    if (r < 0)
        return r;
    st_trace_sort(trace);
    *ret_policy = policy;
    *ret = ST_TAKE(trace);
    return 0;
}
