/*
 * What is said of an account: quotas by dimension or GPU type, limits, and changes that leave
 * alone what they do not mention (spec/spec.h).
 */
#include <string.h>

#include "spec/spec.h"

static const char *const trust_words[] = {[ST_TRUST_INHERIT] = "inherit",
                                          [ST_TRUST_TRUSTED] = "trusted",
                                          [ST_TRUST_UNTRUSTED] = "untrusted",
                                          NULL};
static const char *const domain_words[] = {"inherit", "own", NULL};

typedef struct account_fields {
    st_account_doc a;
    const st_doc_node *guarantee, *max, *limits, *children;
} account_fields;

#define NODE_ROW(word, field)                                                     \
    {                                                                             \
        .key = word, .kind = ST_F_NODE, .offset = offsetof(account_fields, field) \
    }

static const st_field account_rows[] = {
    {.key = "name", .kind = ST_F_NAME, .offset = offsetof(account_fields, a.name)},
    {.key = "parent", .kind = ST_F_NAME, .offset = offsetof(account_fields, a.parent)},
    NODE_ROW("guarantee", guarantee),
    NODE_ROW("max", max),
    {.key = "weight",
     .kind = ST_F_MILLI,
     .offset = offsetof(account_fields, a.weight_m),
     .lo = 0,
     .hi = ST_QTY_MAX},
    {.key = "priority",
     .kind = ST_F_I64,
     .offset = offsetof(account_fields, a.priority),
     .lo = -ST_PRIO_MAX,
     .hi = ST_PRIO_MAX},
    NODE_ROW("limits", limits),
    {.key = "trust",
     .kind = ST_F_WORD,
     .offset = offsetof(account_fields, a.trust),
     .words = trust_words},
    {.key = "trust_domain",
     .kind = ST_F_WORD,
     .offset = offsetof(account_fields, a.own_domain),
     .words = domain_words},
    {.key = "min_run",
     .kind = ST_F_DURATION,
     .offset = offsetof(account_fields, a.min_run_ms),
     .none = true},
    {.key = "force", .kind = ST_F_BOOL, .offset = offsetof(account_fields, a.force)},
    NODE_ROW("children", children),
    {0},
};

#define LIMIT_ROW(word, unit, field)                                              \
    {                                                                             \
        .key = word, .kind = unit, .offset = offsetof(st_limits, field), .lo = 0, \
        .hi = ST_QTY_MAX, .none = true                                            \
    }

static const st_field limit_rows[] = {
    LIMIT_ROW("gpu", ST_F_MILLI, gpu_m),
    LIMIT_ROW("vram", ST_F_MIB, vram_mib),
    LIMIT_ROW("share", ST_F_MILLI, share_m),
    LIMIT_ROW("run", ST_F_DURATION, run_ms),
    {0},
};

static const st_field book_limit_rows[] = {
#define X(id, field, word, unit)                \
    {.key = (word),                             \
     .kind = (unit),                            \
     .offset = offsetof(st_book_limits, field), \
     .lo = 0,                                   \
     .hi = ST_QTY_MAX,                          \
     .none = true},
    ST_BOOK_LIMIT_TABLE(X)
#undef X
        {0},
};

static void keep_quota(st_quota *q)
{
    q->gpu_m = q->cpu_m = q->ram_mib = ST_KEEP;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        q->type_m[t] = ST_KEEP;
}

/* {gpu: 16, h100: 8, cpu: 100, ram: 1Ti}; what is neither of the dimensions is a GPU type. */
static int read_quota(const st_doc *doc, const st_doc_node *map, const st_spec_names *names,
                      st_quota *q, st_err *err)
{
    int r = 0;

    if (map && map->kind == ST_DOC_SCALAR && strcmp(map->value, "none") == 0) {
        q->gpu_m = q->cpu_m = q->ram_mib = ST_UNSET;
        for (int t = 0; t < ST_TYPES_MAX; t++)
            q->type_m[t] = ST_UNSET;
        return 0;
    }
    if (map)
        r = st_doc_expect(doc, map, ST_DOC_MAP, err);
    for (const st_doc_node *n = map ? map->child : NULL; r == 0 && n; n = n->next) {
        st_field row = {.kind = ST_F_MILLI, .lo = 0, .hi = ST_QTY_MAX, .none = true};
        int64_t *into = NULL;

        if (strcmp(n->key, st_dim_name(ST_GPU)) == 0) {
            into = &q->gpu_m;
        } else if (strcmp(n->key, st_dim_name(ST_CPU)) == 0) {
            into = &q->cpu_m;
        } else if (strcmp(n->key, st_dim_name(ST_RAM)) == 0) {
            into = &q->ram_mib;
            row.kind = ST_F_MIB;
        } else {
            const st_doc_node key = {
                .kind = ST_DOC_SCALAR, .value = n->key, .line = n->key_line, .quoted = true};
            int32_t type;

            r = names->type(names->ctx, doc, &key, &type, err);
            if (r < 0)
                return r;
            into = &q->type_m[type];
        }
        r = st_field_read(doc, n, &row, into, err);
    }
    return r;
}

static int read_limits(const st_doc *doc, const st_doc_node *map, st_account_doc *a, st_err *err)
{
    static const char *const keys[] = {"job", "user", "booking", NULL};
    const st_doc_node *job, *user, *booking;
    int r;

    if (!map)
        return 0;
    r = st_doc_check_keys(doc, map, keys, err);
    if (r < 0)
        return r;
    job = st_doc_get(map, "job");
    user = st_doc_get(map, "user");
    booking = st_doc_get(map, "booking");
    if (job)
        r = st_fields_read(doc, job, limit_rows, &a->job_limits, err);
    if (r == 0 && user)
        r = st_fields_read(doc, user, limit_rows, &a->user_limits, err);
    if (r == 0 && booking)
        r = st_fields_read(doc, booking, book_limit_rows, &a->book_limits, err);
    return r;
}

int st_spec_account(const st_doc *doc, const st_doc_node *map, const st_spec_names *names,
                    bool need_name, st_account_doc *ret, const st_doc_node **ret_children,
                    st_err *err)
{
    const st_limits keep = {ST_KEEP, ST_KEEP, ST_KEEP, ST_KEEP};
    account_fields f = {.a = {.job_limits = keep,
                              .user_limits = keep,
                              .book_limits = {ST_KEEP, ST_KEEP, ST_KEEP, ST_KEEP},
                              .weight_m = ST_KEEP,
                              .priority = ST_KEEP,
                              .min_run_ms = ST_KEEP,
                              .trust = -1,
                              .own_domain = -1,
                              .line = map->line}};
    int r;

    keep_quota(&f.a.guarantee);
    keep_quota(&f.a.max);
    r = st_fields_read(doc, map, account_rows, &f, err);
    if (r == 0 && need_name && !f.a.name)
        r = st_doc_fail(doc, map, err, ST_EINVAL, "key \"name\" is missing");
    if (r == 0)
        r = read_quota(doc, f.guarantee, names, &f.a.guarantee, err);
    if (r == 0)
        r = read_quota(doc, f.max, names, &f.a.max, err);
    if (r == 0)
        r = read_limits(doc, f.limits, &f.a, err);
    if (r < 0)
        return r;
    *ret = f.a;
    *ret_children = f.children;
    return 0;
}

static void lay(int64_t *into, int64_t said)
{
    if (said != ST_KEEP)
        *into = said;
}

static void lay_quota(st_quota *into, const st_quota *said)
{
    lay(&into->gpu_m, said->gpu_m);
    lay(&into->cpu_m, said->cpu_m);
    lay(&into->ram_mib, said->ram_mib);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        lay(&into->type_m[t], said->type_m[t]);
}

static void lay_limits(st_limits *into, const st_limits *said)
{
    lay(&into->gpu_m, said->gpu_m);
    lay(&into->vram_mib, said->vram_mib);
    lay(&into->share_m, said->share_m);
    lay(&into->run_ms, said->run_ms);
}

void st_spec_account_lay(const st_tree *tree, const st_account_doc *said, st_account_spec *ret)
{
    int32_t id = st_tree_find(tree, said->name);

    st_account_spec_init(ret);
    if (id > ST_ROOT) {
        const st_account *a = st_tree_account(tree, id);

        *ret = (st_account_spec){
            .parent = a->parent == ST_ROOT ? NULL : st_tree_account(tree, a->parent)->name,
            .guarantee = a->guarantee,
            .max = a->max,
            .weight_m = a->weight_m,
            .priority = a->priority,
            .job_limits = a->job_limits,
            .user_limits = a->user_limits,
            .book_limits = a->book_limits,
            .trust = a->trust,
            .own_domain = a->own_domain,
            .min_run_ms = a->min_run_ms,
        };
    }
    ret->name = said->name;
    if (said->parent)
        ret->parent = said->parent;
    lay_quota(&ret->guarantee, &said->guarantee);
    lay_quota(&ret->max, &said->max);
    lay_limits(&ret->job_limits, &said->job_limits);
    lay_limits(&ret->user_limits, &said->user_limits);
#define X(id, field, key, kind) lay(&ret->book_limits.field, said->book_limits.field);
    ST_BOOK_LIMIT_TABLE(X)
#undef X
    lay(&ret->weight_m, said->weight_m);
    lay(&ret->min_run_ms, said->min_run_ms);
    if (said->priority != ST_KEEP)
        ret->priority = (int)said->priority;
    if (said->trust >= 0)
        ret->trust = (st_trust)said->trust;
    if (said->own_domain >= 0)
        ret->own_domain = said->own_domain;
}
