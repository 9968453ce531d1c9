/*
 * Reading a scenario: its sections in the order in which they need each other,
 * and the timeline.
 *
 * Invariants once st_scenario_new has returned 0:
 *  1 Entries and arrivals are each in order of time.
 *  2 Everything named exists somewhere in the document, except inside a refusal.
 *  3 Every index is in range: of types, pools, nodes (in the order they are
 *    announced to the core, so an index is the core's id) and jobs.
 */
#include "scenario/scenario.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "scenario/read.h"
#include "share/divide.h"

static const char *const order_words[] = {
#define X(id, name) [id] = name,
    ST_ORDER_TABLE(X)
#undef X
        NULL,
};
static const char *const basis_words[] = {
#define X(id, name) name,
    ST_SHARE_BASIS_TABLE(X)
#undef X
        NULL,
};

typedef enum policy_kind { DURATION, MILLI, COUNT, BOOL } policy_kind;

/* A key of the policy table, whatever it is, as an integer within the table's range. */
static int read_policy_value(const st_scenario *s, const st_doc_node *node, policy_kind kind,
                             int64_t lo, int64_t hi, int64_t *ret, st_err *err)
{
    char q[ST_QUOTE_MAX], a[ST_FMT_MAX], b[ST_FMT_MAX];
    bool flag = false;
    int64_t n = 0;
    int r = 0;

    switch (kind) {
    case DURATION:
        r = st_doc_duration_ms(s->doc, node, &n, err);
        if (r == 0 && (n < lo || n > hi))
            r = st_doc_fail(s->doc, node, err, ST_ERANGE,
                            "key \"%s\": %s is out of range: it must be from %s to %s", node->key,
                            st_quote(q, node->value), st_fmt_duration(a, lo),
                            st_fmt_duration(b, hi));
        break;
    case MILLI:
        r = st_doc_milli(s->doc, node, lo, hi, &n, err);
        break;
    case COUNT:
        r = st_doc_i64(s->doc, node, lo, hi, &n, err);
        break;
    case BOOL:
        r = st_doc_bool(s->doc, node, &flag, err);
        n = flag;
        break;
    }
    if (r == 0)
        *ret = n;
    return r;
}

static int read_policy(st_scenario *s, const st_doc_node *map, st_err *err)
{
#define X(field, key, kind, def, lo, hi, what) key,
    static const char *const keys[] = {ST_POLICY_TABLE(X) "basis", "order", NULL};
#undef X
    const st_doc_node *node;
    int r;

    s->policy = st_policy_default();
    if (!map)
        return 0;
    r = st_doc_check_keys(s->doc, map, keys, err);
#define X(field, key, kind, def, lo, hi, what)   \
    if (r == 0 && (node = st_doc_get(map, key))) \
        r = read_policy_value(s, node, kind, lo, hi, &s->policy.field, err);
    ST_POLICY_TABLE(X)
#undef X
    if (r == 0 && (node = st_doc_get(map, "basis")))
        r = st_field_word(s->doc, node, basis_words, &s->policy.counts, err);
    if (r == 0 && (node = st_doc_get(map, "order")))
        r = st_field_word(s->doc, node, order_words, &s->policy.order, err);
    return r;
}

typedef struct entry_fields {
    int64_t at_ms, after_ms;
    const st_doc_node *at, *todo, *expect;
    const char *zone; /* of `at`; NULL: it is a duration */
} entry_fields;

static const st_field entry_rows[] = {
    {.key = "at", .kind = ST_F_NODE, .offset = offsetof(entry_fields, at)},
    {.key = "zone", .kind = ST_F_TEXT, .offset = offsetof(entry_fields, zone)},
    {.key = "after", .kind = ST_F_DURATION, .offset = offsetof(entry_fields, after_ms)},
    {.key = "do", .kind = ST_F_NODE, .offset = offsetof(entry_fields, todo)},
    {.key = "expect", .kind = ST_F_NODE, .offset = offsetof(entry_fields, expect)},
    {0},
};

static int entry_time(const st_scenario *s, const st_doc_node *map, const entry_fields *f,
                      int64_t before, int64_t *ret, st_err *err)
{
    char a[ST_FMT_MAX], b[ST_FMT_MAX];
    int64_t at = f->at_ms != ST_UNSET ? f->at_ms : before + ST_MAX(f->after_ms, 0);

    if (f->at_ms != ST_UNSET && f->after_ms != ST_UNSET)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "give either at or after, not both");
    if (at < before)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "the timeline goes back, from %s to %s",
                           st_fmt_duration(a, before), st_fmt_duration(b, at));
    if (at > ST_DURATION_MAX_MS)
        return st_doc_fail(s->doc, map, err, ST_ERANGE, "the timeline goes on for too long");
    *ret = at;
    return 0;
}

static int read_entry(st_scenario *s, const st_doc_node *map, int64_t before, st_err *err)
{
    entry_fields f = {.at_ms = ST_UNSET, .after_ms = ST_UNSET};
    st_scn_entry e = {.line = map->line, .action = s->actions.n, .expect = s->expects.n};
    int r = st_fields_read(s->doc, map, entry_rows, &f, err);

    if (r == 0 && f.zone && !f.at)
        r = st_doc_fail(s->doc, map, err, ST_EINVAL, "zone needs an at: when is it there?");
    if (r == 0 && f.at)
        r = f.zone ? st_scn_read_moment(s, f.at, f.zone, &f.at_ms, err)
                   : st_doc_duration_ms(s->doc, f.at, &f.at_ms, err);
    if (r == 0)
        r = entry_time(s, map, &f, before, &e.at_ms, err);
    if (r == 0 && f.todo)
        r = st_doc_expect(s->doc, f.todo, ST_DOC_SEQ, err);
    for (const st_doc_node *n = f.todo ? f.todo->child : NULL; r == 0 && n; n = n->next)
        r = st_scn_read_action(s, n, e.at_ms, err);
    if (r == 0 && f.expect)
        r = st_doc_expect(s->doc, f.expect, ST_DOC_SEQ, err);
    for (const st_doc_node *n = f.expect ? f.expect->child : NULL; r == 0 && n; n = n->next)
        r = st_scn_read_expect(s, n, err);
    if (r < 0)
        return r;
    e.nactions = s->actions.n - e.action;
    e.nexpects = s->expects.n - e.expect;
    s->asserts |= e.nexpects > 0;
    st_vec_push(&s->entries, e);
    return 0;
}

static int by_time(const void *pa, const void *pb)
{
    const st_scn_action *a = pa, *b = pb;

    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

static int read_timeline(st_scenario *s, const st_doc_node *list, st_err *err)
{
    int64_t before = 0;
    int r = list ? st_doc_expect(s->doc, list, ST_DOC_SEQ, err) : 0;

    /* Without a timeline nothing happens, but the fleet and the accounts are checked. */
    for (const st_doc_node *n = list ? list->child : NULL; r == 0 && n; n = n->next) {
        r = read_entry(s, n, before, err);
        if (r == 0)
            before = s->entries.v[s->entries.n - 1].at_ms;
    }
    if (r == 0 && s->entries.n == 0)
        st_vec_push(&s->entries, (st_scn_entry){.line = 1});
    if (r == 0 && s->arrivals.n > 0)
        qsort(s->arrivals.v, s->arrivals.n, sizeof(*s->arrivals.v), by_time);
    return r;
}

typedef struct top_fields {
    const char *name;
    int64_t until_ms;
    const st_doc_node *policy, *types, *pools, *fleet, *accounts, *timeline, *zones, *start;
} top_fields;

#define TOP_ROW(word, field, must)                                                              \
    {                                                                                           \
        .key = word, .kind = ST_F_NODE, .offset = offsetof(top_fields, field), .required = must \
    }

static const st_field top_rows[] = {
    {.key = "name", .kind = ST_F_TEXT, .offset = offsetof(top_fields, name)},
    {.key = "until", .kind = ST_F_DURATION, .offset = offsetof(top_fields, until_ms)},
    TOP_ROW("policy", policy, false),
    TOP_ROW("types", types, false),
    TOP_ROW("pools", pools, false),
    TOP_ROW("fleet", fleet, true),
    TOP_ROW("accounts", accounts, true),
    TOP_ROW("timeline", timeline, false),
    TOP_ROW("zones", zones, false),
    TOP_ROW("start", start, false),
    {0},
};

static int read_scenario(st_scenario *s, st_err *err)
{
    top_fields f = {.until_ms = ST_UNSET};
    int r = st_fields_read(s->doc, st_doc_root(s->doc), top_rows, &f, err);

    if (r == 0)
        r = read_policy(s, f.policy, err);
    if (r == 0)
        r = st_scn_read_types(s, f.types, err);
    if (r == 0)
        r = st_scn_read_pools(s, f.pools, err);
    if (r == 0)
        r = st_scn_read_fleet(s, f.fleet, err);
    if (r == 0)
        r = st_scn_read_accounts(s, f.accounts, err);
    if (r == 0)
        r = st_scn_read_zones(s, f.zones, f.start, err);
    if (r == 0)
        r = read_timeline(s, f.timeline, err);
    s->name = f.name ? f.name : st_doc_name(s->doc);
    s->until_ms = f.until_ms;
    return r;
}

static int read_fleet_alone(st_scenario *s, st_err *err)
{
    static const char *const keys[] = {"name", "types", "pools", "fleet", NULL};
    const st_doc_node *root = st_doc_root(s->doc), *fleet = NULL;
    int r = st_doc_check_keys(s->doc, root, keys, err);

    if (r == 0)
        r = st_scn_read_types(s, st_doc_get(root, "types"), err);
    if (r == 0)
        r = st_scn_read_pools(s, st_doc_get(root, "pools"), err);
    if (r == 0)
        r = st_doc_need(s->doc, root, "fleet", &fleet, err);
    return r < 0 ? r : st_scn_read_fleet(s, fleet, err);
}

static int new_scenario(const st_doc *doc, int (*read)(st_scenario *, st_err *), st_scenario **ret,
                        st_err *err)
{
    ST_CLEANUP(st_scenario_freep) st_scenario *s = st_xcalloc(1, sizeof(*s));
    int r;

    ST_ASSERT(doc && ret);
    s->doc = doc;
    s->arena = st_arena_new();
    s->job_ids = st_map_new();
    s->node_ids = st_map_new();
    s->account_ids = st_map_new();
    s->booking_ids = st_map_new();
    r = read(s, err);
    if (r < 0)
        return r;
    *ret = ST_TAKE(s);
    return 0;
}

int st_scenario_new(const st_doc *doc, st_scenario **ret, st_err *err)
{
    return new_scenario(doc, read_scenario, ret, err);
}

int st_scenario_fleet(const st_doc *doc, st_scenario **ret, st_err *err)
{
    return new_scenario(doc, read_fleet_alone, ret, err);
}

void st_scenario_free(st_scenario *s)
{
    if (!s)
        return;
    st_vec_free(&s->types);
    st_vec_free(&s->pools);
    st_vec_free(&s->nodes);
    st_vec_free(&s->accounts);
    st_vec_free(&s->jobs);
    st_vec_free(&s->actions);
    st_vec_free(&s->arrivals);
    st_vec_free(&s->expects);
    st_vec_free(&s->entries);
    st_vec_free(&s->account_names);
    for (size_t i = 0; i < s->zones.n; i++)
        st_tz_free(s->zones.v[i]);
    for (size_t i = 0; i < s->clocks.n; i++)
        st_tz_free(s->clocks.v[i]);
    st_vec_free(&s->zones);
    st_vec_free(&s->clocks);
    st_map_free(s->job_ids);
    st_map_free(s->node_ids);
    st_map_free(s->account_ids);
    st_map_free(s->booking_ids);
    st_arena_free(s->arena);
    free(s);
}
