/*
 * Accounts in a scenario: quotas by dimension or GPU type, limits, and changes
 * that leave alone what they do not mention.
 */
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "sim/scenario_fields.h"
#include "sim/scenario_read.h"

static const char *const trust_words[] = {[ST_TRUST_INHERIT] = "inherit",
                                          [ST_TRUST_TRUSTED] = "trusted",
                                          [ST_TRUST_UNTRUSTED] = "untrusted",
                                          NULL};
static const char *const domain_words[] = {"inherit", "own", NULL};

typedef struct account_fields {
    st_scn_account a;
    const st_doc_node *guarantee, *max, *limits, *children;
} account_fields;

#define NODE_ROW(word, field)                                                     \
    {                                                                             \
        .key = word, .kind = ST_F_NODE, .offset = offsetof(account_fields, field) \
    }

static const st_field account_rows[] = {
    {.key = "name",
     .kind = ST_F_NAME,
     .offset = offsetof(account_fields, a.name),
     .required = true},
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

static void keep_quota(st_quota *q)
{
    q->gpu_m = q->cpu_m = q->ram_mib = ST_SCN_KEEP;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        q->type_m[t] = ST_SCN_KEEP;
}

/* {gpu: 16, h100: 8, cpu: 100, ram: 1Ti}; what is neither of the dimensions is a GPU type. */
static int read_quota(st_scenario *s, const st_doc_node *map, st_quota *q, st_err *err)
{
    int r = map ? st_doc_expect(s->doc, map, ST_DOC_MAP, err) : 0;

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
            const st_doc_node key = {.kind = ST_DOC_SCALAR, .value = n->key, .line = n->key_line};
            int32_t type;

            r = st_scn_find_type(s, &key, &type, err);
            if (r < 0)
                return r;
            into = &q->type_m[type];
        }
        r = st_field_read(s, n, &row, into, err);
    }
    return r;
}

static int read_limits(st_scenario *s, const st_doc_node *map, st_scn_account *a, st_err *err)
{
    static const char *const keys[] = {"job", "user", NULL};
    const st_doc_node *job, *user;
    int r;

    if (!map)
        return 0;
    r = st_doc_check_keys(s->doc, map, keys, err);
    if (r < 0)
        return r;
    job = st_doc_get(map, "job");
    user = st_doc_get(map, "user");
    if (job)
        r = st_fields_read(s, job, limit_rows, &a->job_limits, err);
    if (r == 0 && user)
        r = st_fields_read(s, user, limit_rows, &a->user_limits, err);
    return r;
}

static int read_one(st_scenario *s, const st_doc_node *map, st_scn_account **ret,
                    const st_doc_node **ret_children, st_err *err)
{
    const st_limits keep = {ST_SCN_KEEP, ST_SCN_KEEP, ST_SCN_KEEP, ST_SCN_KEEP};
    account_fields f = {.a = {.job_limits = keep,
                              .user_limits = keep,
                              .weight_m = ST_SCN_KEEP,
                              .priority = ST_SCN_KEEP,
                              .min_run_ms = ST_SCN_KEEP,
                              .trust = -1,
                              .own_domain = -1,
                              .line = map->line}};
    int r;

    keep_quota(&f.a.guarantee);
    keep_quota(&f.a.max);
    r = st_fields_read(s, map, account_rows, &f, err);
    if (r == 0)
        r = read_quota(s, f.guarantee, &f.a.guarantee, err);
    if (r == 0)
        r = read_quota(s, f.max, &f.a.max, err);
    if (r == 0)
        r = read_limits(s, f.limits, &f.a, err);
    if (r < 0)
        return r;
    *ret = st_arena_alloc(s->arena, sizeof(**ret));
    **ret = f.a;
    *ret_children = f.children;
    return 0;
}

int st_scn_read_account(st_scenario *s, const st_doc_node *map, st_scn_account **ret, st_err *err)
{
    const st_doc_node *children = NULL;
    int r = read_one(s, map, ret, &children, err);

    if (r == 0 && children)
        r = st_doc_fail(s->doc, children, err, ST_EINVAL,
                        "accounts are changed one by one: \"children\" has no place here");
    return r;
}

/* Recursion is as deep as the document, which is bounded. */
static int read_list(st_scenario *s, const st_doc_node *list, const char *parent, st_err *err)
{
    int r = st_doc_expect(s->doc, list, ST_DOC_SEQ, err);

    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        const st_doc_node *children = NULL;
        st_scn_account *a;
        char q[ST_QUOTE_MAX];

        r = read_one(s, n, &a, &children, err);
        if (r < 0)
            return r;
        if (parent && a->parent && strcmp(a->parent, parent) != 0)
            return st_doc_fail(s->doc, n, err, ST_EINVAL,
                               "account %s stands below %s but names another parent",
                               st_quote(q, a->name), parent);
        if (st_map_get(s->account_ids, a->name, NULL))
            return st_doc_fail(s->doc, n, err, ST_EEXIST, "there is an account %s already",
                               st_quote(q, a->name));
        a->parent = parent ? parent : a->parent;
        st_scn_note_account(s, a->name);
        st_vec_push(&s->accounts, a);
        if (children)
            r = read_list(s, children, a->name, err);
    }
    return r;
}

static int cycle(const st_scenario *s, const st_map *at, size_t from, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    char q[ST_QUOTE_MAX];
    int64_t i = (int64_t)from;

    /* Whoever cannot be placed leads into the cycle; one round of it is told. */
    for (size_t n = 0; n < s->accounts.n; n++)
        st_map_get(at, s->accounts.v[i]->parent, &i);
    const st_scn_account *first = s->accounts.v[i];
    do {
        st_strbuf_addf(&text, "%s, child of ", st_quote(q, s->accounts.v[i]->name));
        st_map_get(at, s->accounts.v[i]->parent, &i);
    } while (s->accounts.v[i] != first);
    st_strbuf_add(&text, st_quote(q, first->name));
    const st_doc_node place = {.line = first->line};
    return st_doc_fail(s->doc, &place, err, ST_EINVAL, "accounts form a cycle: %s",
                       st_strbuf_str(&text));
}

/* Parents before children, otherwise in the order of the file. */
static int order(st_scenario *s, st_err *err)
{
    ST_CLEANUP(st_map_freep) st_map *at = st_map_new();
    ST_CLEANUP(st_freep) bool *done = st_xcalloc(s->accounts.n + 1, sizeof *done);
    ST_VEC(st_scn_account *) sorted = {0};

    for (size_t i = 0; i < s->accounts.n; i++)
        st_map_put(at, s->accounts.v[i]->name, (int64_t)i);
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < s->accounts.n; i++) {
            const char *parent = s->accounts.v[i]->parent;
            int64_t p;
            if (done[i] || (parent && st_map_get(at, parent, &p) && !done[p]))
                continue;
            st_vec_push(&sorted, s->accounts.v[i]);
            done[i] = moved = true;
        }
    }
    for (size_t i = 0; i < s->accounts.n; i++) {
        if (done[i])
            continue;
        st_vec_free(&sorted);
        return cycle(s, at, i, err);
    }
    for (size_t i = 0; i < s->accounts.n; i++)
        s->accounts.v[i] = sorted.v[i];
    st_vec_free(&sorted);
    return 0;
}

int st_scn_read_accounts(st_scenario *s, const st_doc_node *list, st_err *err)
{
    int r = read_list(s, list, NULL, err);
    return r < 0 ? r : order(s, err);
}
