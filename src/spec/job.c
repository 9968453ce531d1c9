/*
 * What a job asks for (spec/spec.h).
 */
#include <string.h>

#include "base/quote.h"
#include "spec/spec.h"

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
const char *const st_level_words[] = {
#define X(id, name) name,
    ST_LEVEL_TABLE(X)
#undef X
        NULL,
};
const char *const st_yield_words[] = {
#define X(id, name, about) name,
    ST_YIELD_TABLE(X)
#undef X
        NULL,
};
const char *const st_fault_words[] = {"requeue", "fail", NULL};
const char *const st_topo_words[] = {
#define X(id, name) name,
    ST_TOPO_TABLE(X)
#undef X
        NULL,
};

int st_spec_priority(const st_doc *doc, const st_doc_node *node, int *ret, st_err *err)
{
    int64_t n;
    int word, r = st_doc_expect(doc, node, ST_DOC_SCALAR, err);

    if (r < 0)
        return r;
    if (node->value[0] != '\0' && strchr("-0123456789", node->value[0])) {
        r = st_doc_i64(doc, node, -ST_PRIO_MAX, ST_PRIO_MAX, &n, err);
        if (r == 0)
            *ret = (int)n;
        return r;
    }
    r = st_field_word(doc, node, priority_words, &word, err);
    if (r == 0)
        *ret = priorities[word];
    return r;
}

static int read_types(const st_doc *doc, const st_doc_node *node, const st_spec_names *names,
                      uint32_t *ret, st_err *err)
{
    uint32_t types = 0;

    for (const st_doc_node *n = NULL; (n = st_field_each(node, n));) {
        int32_t type;
        int r = names->type(names->ctx, doc, n, &type, err);

        if (r < 0)
            return r;
        types |= 1u << type;
    }
    if (types == 0)
        return st_doc_fail(doc, node, err, ST_EINVAL, "the list of types is empty");
    *ret = types;
    return 0;
}

static int read_topology(const st_doc *doc, const st_doc_node *map, st_job_spec *spec, st_err *err)
{
    static const char *const keys[] = {"require", "prefer", NULL};
    const st_doc_node *require, *prefer;
    int topo, r = st_doc_check_keys(doc, map, keys, err);

    if (r < 0)
        return r;
    require = st_doc_get(map, "require");
    prefer = st_doc_get(map, "prefer");
    if (!require == !prefer)
        return st_doc_fail(doc, map, err, ST_EINVAL,
                           "topology is either {require: LEVEL} or {prefer: LEVEL}");
    r = st_field_word(doc, require ? require : prefer, st_topo_words, &topo, err);
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
 * not do. */
static int read_profile(const st_doc *doc, const st_doc_node *map, const char *profile,
                        const st_spec_names *names, st_shape *shape, bool *ret_none, st_err *err)
{
    const st_doc_node *node = st_doc_get(map, "profile");
    uint32_t boards = boards_with(profile, &shape->profile);
    uint32_t types = 0, asked = shape->types ? shape->types : UINT32_MAX;
    char q[ST_QUOTE_MAX];

    if (boards == 0)
        return st_doc_fail(doc, node, err, ST_EINVAL,
                           "%s is no MIG profile; they are called 1g, 1g+, 2g, 3g, 4g, 7g or in "
                           "full, 3g.40gb",
                           st_quote(q, profile));
    if (!strchr(profile, '.'))
        return 0;
    for (size_t t = 0; t < names->ntypes(names->ctx); t++)
        if ((asked >> t & 1) && (boards >> names->board(names->ctx, (int32_t)t) & 1))
            types |= 1u << t;
    *ret_none = types == 0;
    if (types != 0)
        shape->types = types;
    return 0;
}

/* Level, profile and share belong together. */
static int read_level(const st_doc *doc, const st_doc_node *map, const st_job_fields *f,
                      st_shape *shape, st_err *err)
{
    int level = f->level >= 0 ? f->level : f->profile ? ST_LEVEL_MIG : ST_LEVEL_WHOLE;
    bool shares = level == ST_LEVEL_MPS || level == ST_LEVEL_TIME;

    shape->level = (st_level)level;
    shape->share_m = f->share_m;
    shape->vram_mib = f->vram_mib;
    shape->gpus = f->gpus >= 0 ? f->gpus : 1;
    if (f->share_m > 0 && f->level < 0)
        return st_doc_fail(doc, map, err, ST_EINVAL, "a share needs a level: mps or time");
    if (shares && f->share_m <= 0)
        return st_doc_fail(doc, map, err, ST_EINVAL, "level %s needs a share, for example 0.25",
                           st_level_words[level]);
    if (!shares && f->share_m > 0)
        return st_doc_fail(doc, map, err, ST_EINVAL,
                           "level %s takes no share; use level mps or time", st_level_words[level]);
    if (level == ST_LEVEL_MIG && !f->profile)
        return st_doc_fail(doc, map, err, ST_EINVAL, "level mig needs a profile, for example 1g");
    if (level != ST_LEVEL_MIG && f->profile)
        return st_doc_fail(doc, map, err, ST_EINVAL, "level %s takes no profile; use level mig",
                           st_level_words[level]);
    if (level != ST_LEVEL_WHOLE && shape->gpus != 1)
        return st_doc_fail(doc, map, err, ST_EINVAL,
                           "each %s task gets one %s; for %d of them use tasks: %d",
                           st_level_words[level], level == ST_LEVEL_MIG ? "slice" : "share",
                           shape->gpus, shape->gpus);
    return 0;
}

int st_spec_job(const st_doc *doc, const st_doc_node *map, const st_job_fields *f,
                const st_spec_names *names, st_job_spec *ret, bool *ret_none, st_err *err)
{
    st_job_spec spec = *ret;
    bool none = false;
    int r = 0;

    spec.pool = -1;
    if (f->type)
        r = read_types(doc, f->type, names, &spec.shape.types, err);
    if (r == 0)
        r = read_level(doc, map, f, &spec.shape, err);
    if (r == 0 && f->profile)
        r = read_profile(doc, map, f->profile, names, &spec.shape, &none, err);
    if (r == 0 && f->topology)
        r = read_topology(doc, f->topology, &spec, err);
    if (r == 0 && f->priority)
        r = st_spec_priority(doc, f->priority, &spec.priority, err);
    if (r == 0 && f->pool)
        r = names->pool(names->ctx, doc, f->pool, &spec.pool, err);
    if (r < 0)
        return r;
    spec.tasks = f->tasks;
    spec.shape.cpu_m = f->cpu_m;
    spec.shape.ram_mib = f->ram_mib;
    spec.latency_critical = f->latency_critical;
    spec.limit_ms = f->limit_ms;
    spec.yield = (st_yield)f->yield;
    spec.fails = f->on_fault == 1;
    spec.grace_ms = f->grace_ms;
    *ret = spec;
    *ret_none = none;
    return 0;
}
