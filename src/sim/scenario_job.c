/*
 * A submit in a scenario: one job, or a stream of equal ones.
 */
#include <string.h>

#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "sim/scenario_fields.h"
#include "sim/scenario_read.h"

#define CHECKPOINT_DEFAULT_MS 10000
#define GPUS_MAX              4096 /* more than any node has, so that asking too much can be shown */

/* X(word, priority) */
#define PRIORITY_TABLE(X) \
    X("low", -100)        \
    X("normal", 0)        \
    X("high", 100)

static const char *const priority_words[] = {
#define X(word, priority) word,
    PRIORITY_TABLE(X)
#undef X
        NULL,
};
static const int priorities[] = {
#define X(word, priority) priority,
    PRIORITY_TABLE(X)
#undef X
};
static const char *const level_words[] = {
#define X(id, name) name,
    ST_LEVEL_TABLE(X)
#undef X
        NULL,
};
static const char *const yield_words[] = {
#define X(id, name) name,
    ST_YIELD_TABLE(X)
#undef X
        NULL,
};
static const char *const topo_words[] = {
#define X(id, name) name,
    ST_TOPO_TABLE(X)
#undef X
        NULL,
};

typedef struct job_fields {
    const char *job, *account, *user, *profile;
    const st_doc_node *type, *topology, *priority, *pool;
    int count, gpus, tasks, level, yield;
    int64_t every_ms, cpu_m, ram_mib, share_m, vram_mib, limit_ms, run_ms, checkpoint_ms;
    bool latency_critical;
} job_fields;

#define AT(field) .offset = offsetof(job_fields, field)

static const st_field job_rows[] = {
    {.key = "job", .kind = ST_F_NAME, AT(job)},
    {.key = "count", .kind = ST_F_INT, AT(count), .lo = 1, .hi = ST_SCN_JOBS_MAX},
    {.key = "every", .kind = ST_F_DURATION, AT(every_ms)},
    {.key = "account", .kind = ST_F_TEXT, AT(account), .required = true},
    {.key = "user", .kind = ST_F_NAME, AT(user)},
    {.key = "gpus", .kind = ST_F_INT, AT(gpus), .lo = 0, .hi = GPUS_MAX},
    {.key = "tasks", .kind = ST_F_INT, AT(tasks), .lo = 1, .hi = ST_TASKS_MAX},
    {.key = "type", .kind = ST_F_NODE, AT(type)},
    {.key = "cpu", .kind = ST_F_MILLI, AT(cpu_m), .lo = 0, .hi = ST_QTY_MAX},
    {.key = "ram", .kind = ST_F_MIB, AT(ram_mib)},
    {.key = "level", .kind = ST_F_WORD, AT(level), .words = level_words},
    {.key = "profile", .kind = ST_F_TEXT, AT(profile)},
    {.key = "share", .kind = ST_F_MILLI, AT(share_m), .lo = 1, .hi = ST_WHOLE_M},
    {.key = "vram", .kind = ST_F_MIB, AT(vram_mib)},
    {.key = "topology", .kind = ST_F_NODE, AT(topology)},
    {.key = "priority", .kind = ST_F_NODE, AT(priority)},
    {.key = "limit", .kind = ST_F_DURATION, AT(limit_ms)},
    {.key = "on_preempt", .kind = ST_F_WORD, AT(yield), .words = yield_words},
    {.key = "latency_critical", .kind = ST_F_BOOL, AT(latency_critical)},
    {.key = "pool", .kind = ST_F_NODE, AT(pool)},
    {.key = "run", .kind = ST_F_DURATION, AT(run_ms)},
    {.key = "checkpoint_time", .kind = ST_F_DURATION, AT(checkpoint_ms)},
    {0},
};

int st_scn_read_priority(const st_scenario *s, const st_doc_node *node, int *ret, st_err *err)
{
    int64_t n;
    int word, r = st_doc_expect(s->doc, node, ST_DOC_SCALAR, err);

    if (r < 0)
        return r;
    if (strchr("-0123456789", node->value[0])) {
        r = st_doc_i64(s->doc, node, -ST_PRIO_MAX, ST_PRIO_MAX, &n, err);
        if (r == 0)
            *ret = (int)n;
        return r;
    }
    r = st_scn_word(s, node, priority_words, &word, err);
    if (r == 0)
        *ret = priorities[word];
    return r;
}

static int read_types(st_scenario *s, const st_doc_node *node, uint32_t *ret, st_err *err)
{
    uint32_t types = 0;

    for (const st_doc_node *n = NULL; (n = st_scn_each(node, n));) {
        int32_t type;
        int r = st_scn_find_type(s, n, &type, err);

        if (r < 0)
            return r;
        types |= 1u << type;
    }
    if (types == 0)
        return st_doc_fail(s->doc, node, err, ST_EINVAL, "the list of types is empty");
    *ret = types;
    return 0;
}

static int read_topology(const st_scenario *s, const st_doc_node *map, st_job_spec *spec,
                         st_err *err)
{
    static const char *const keys[] = {"require", "prefer", NULL};
    const st_doc_node *require, *prefer;
    int topo, r = st_doc_check_keys(s->doc, map, keys, err);

    if (r < 0)
        return r;
    require = st_doc_get(map, "require");
    prefer = st_doc_get(map, "prefer");
    if (!require == !prefer)
        return st_doc_fail(s->doc, map, err, ST_EINVAL,
                           "topology is either {require: LEVEL} or {prefer: LEVEL}");
    r = st_scn_word(s, require ? require : prefer, topo_words, &topo, err);
    if (r < 0)
        return r;
    spec->topo = (st_topo)topo;
    spec->topo_required = require != NULL;
    return 0;
}

/* The boards that have a profile of this name, as bits of st_board. */
static uint32_t boards_with(const char *profile, st_mig *ret)
{
    uint32_t boards = 0;

    for (int b = 0; b < ST_BOARD_COUNT; b++) {
        int p = st_mig_parse((st_board)b, profile);

        if (p >= 0) {
            boards |= 1u << b;
            *ret = (st_mig)p;
        }
    }
    return boards;
}

/* A vendor's name ("3g.40gb") says more than the slice: types whose board calls it otherwise will
 * not do. Where none is left the job is refused as it is submitted, like anything else that can
 * never run. */
static int read_profile(st_scenario *s, const st_doc_node *map, const char *profile,
                        st_scn_job *job, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, "profile");
    uint32_t boards = boards_with(profile, &job->spec.shape.profile);
    uint32_t types = 0, asked = job->spec.shape.types ? job->spec.shape.types : UINT32_MAX;
    char q[ST_QUOTE_MAX];

    if (boards == 0)
        return st_doc_fail(s->doc, node, err, ST_EINVAL,
                           "%s is no MIG profile; they are called 1g, 1g+, 2g, 3g, 4g, 7g or in "
                           "full, 3g.40gb",
                           st_quote(q, profile));
    if (!strchr(profile, '.'))
        return 0;
    for (size_t t = 0; t < s->types.n; t++)
        if ((asked >> t & 1) && (boards >> s->types.v[t].board & 1))
            types |= 1u << t;
    if (types == 0) {
        ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};

        st_strbuf_addf(&why, "job %s: none of the GPU types it may use has a MIG profile %s",
                       job->spec.name, st_quote(q, profile));
        job->impossible = st_arena_strdup(s->arena, st_strbuf_str(&why));
        return 0;
    }
    job->spec.shape.types = types;
    return 0;
}

/* Level, profile and share belong together. */
static int read_level(st_scenario *s, const st_doc_node *map, const job_fields *f, st_scn_job *job,
                      st_err *err)
{
    int level = f->level >= 0 ? f->level : f->profile ? ST_LEVEL_MIG : ST_LEVEL_WHOLE;
    bool shares = level == ST_LEVEL_MPS || level == ST_LEVEL_TIME;
    st_shape *shape = &job->spec.shape;

    shape->level = (st_level)level;
    shape->share_m = f->share_m;
    shape->vram_mib = f->vram_mib;
    shape->gpus = f->gpus >= 0 ? f->gpus : 1;
    if (f->share_m > 0 && f->level < 0)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "a share needs a level: mps or time");
    if (shares != (f->share_m > 0))
        return st_doc_fail(s->doc, map, err, ST_EINVAL,
                           "level %s and share do not go together: mps and time have one, the "
                           "others have none",
                           level_words[level]);
    if ((level == ST_LEVEL_MIG) != (f->profile != NULL))
        return st_doc_fail(s->doc, map, err, ST_EINVAL,
                           "level mig and a profile go together, always");
    if (level != ST_LEVEL_WHOLE && shape->gpus != 1)
        return st_doc_fail(s->doc, map, err, ST_EINVAL,
                           "a task at level %s has one part of one GPU: more of them are tasks",
                           level_words[level]);
    return f->profile ? read_profile(s, map, f->profile, job, err) : 0;
}

static int read_names(st_scenario *s, const st_doc_node *map, bool refuse, const job_fields *f,
                      st_scn_job *job, st_err *err)
{
    const st_doc_node *account = st_doc_get(map, "account");
    int r = st_scn_find_account(s, account, &job->spec.account, err);

    /* A refusal may be about the account itself. */
    if (r < 0 && !refuse)
        return r;
    job->spec.account = f->account;
    job->spec.user = f->user ? f->user : f->account;
    job->spec.name = f->job ? f->job : "refused";
    if (!f->job && !refuse)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "key \"job\" is missing");
    return f->job ? st_scn_check_pattern(s, st_doc_get(map, "job"), f->job, err) : 0;
}

int st_scn_read_job(st_scenario *s, const st_doc_node *map, bool refuse, st_scn_job *ret,
                    int *ret_count, int64_t *ret_every_ms, st_err *err)
{
    job_fields f = {
        .count = 1,
        .gpus = -1,
        .tasks = 1,
        .level = -1,
        .yield = ST_YIELD_REQUEUE,
        .every_ms = ST_UNSET,
        .limit_ms = ST_TIME_NEVER,
        .run_ms = ST_TIME_NEVER,
        .checkpoint_ms = CHECKPOINT_DEFAULT_MS,
    };
    st_scn_job job = {.line = map->line, .spec.pool = -1};
    int r = st_fields_read(s, map, job_rows, &f, err);

    if (r == 0)
        r = read_names(s, map, refuse, &f, &job, err);
    if (r == 0 && f.type)
        r = read_types(s, f.type, &job.spec.shape.types, err);
    if (r == 0)
        r = read_level(s, map, &f, &job, err);
    if (r == 0 && f.topology)
        r = read_topology(s, f.topology, &job.spec, err);
    if (r == 0 && f.priority)
        r = st_scn_read_priority(s, f.priority, &job.spec.priority, err);
    if (r == 0 && f.pool)
        r = st_scn_find_pool(s, f.pool, &job.spec.pool, err);
    if (r == 0 && f.every_ms != ST_UNSET && f.count == 1)
        r = st_doc_fail(s->doc, map, err, ST_EINVAL, "every needs a count above 1");
    if (r < 0)
        return r;
    job.spec.tasks = f.tasks;
    job.spec.shape.cpu_m = f.cpu_m;
    job.spec.shape.ram_mib = f.ram_mib;
    job.spec.latency_critical = f.latency_critical;
    job.spec.limit_ms = f.limit_ms;
    job.spec.yield = (st_yield)f.yield;
    job.run_ms = f.run_ms;
    job.checkpoint_ms = f.checkpoint_ms;
    *ret = job;
    *ret_count = f.count;
    *ret_every_ms = f.every_ms;
    return 0;
}
