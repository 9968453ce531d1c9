/*
 * Faults and tests of nodes in a scenario: what engines and agents find, for one node or for a storm of them.
 */
#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "scenario/read.h"

#define TIMES_MAX 100000

typedef struct fault_fields {
    const st_doc_node *node;
    const char *kind;
    int count, times, gpu;
    int64_t code, every_ms;
    bool hold, passed, alone;
} fault_fields;

static const st_field rows[] = {
    {.key = "node", .kind = ST_F_NODE, .offset = offsetof(fault_fields, node), .required = true},
    {.key = "kind", .kind = ST_F_NAME, .offset = offsetof(fault_fields, kind)},
    {.key = "count",
     .kind = ST_F_INT,
     .offset = offsetof(fault_fields, count),
     .lo = 1,
     .hi = ST_NODES_MAX},
    {.key = "times",
     .kind = ST_F_INT,
     .offset = offsetof(fault_fields, times),
     .lo = 1,
     .hi = TIMES_MAX},
    {.key = "gpu",
     .kind = ST_F_INT,
     .offset = offsetof(fault_fields, gpu),
     .lo = -1,
     .hi = ST_DEVS_MAX - 1},
    {.key = "code", .kind = ST_F_I64, .offset = offsetof(fault_fields, code), .lo = 0, .hi = 999},
    {.key = "every", .kind = ST_F_DURATION, .offset = offsetof(fault_fields, every_ms)},
    {.key = "hold", .kind = ST_F_BOOL, .offset = offsetof(fault_fields, hold)},
    {.key = "alone", .kind = ST_F_BOOL, .offset = offsetof(fault_fields, alone)},
    {.key = "passed", .kind = ST_F_BOOL, .offset = offsetof(fault_fields, passed)},
    {0},
};

static int check(const st_scenario *s, const st_doc_node *map, const fault_fields *f, int32_t node,
                 const st_scn_action *base, st_err *err)
{
    char q[ST_QUOTE_MAX];
    bool failed = base->kind == ST_DO_FAULT || (base->kind == ST_DO_TESTED && !f->passed);

    if ((size_t)node + (size_t)f->count > s->nodes.n)
        return st_doc_fail(s->doc, map, err, ST_ERANGE, "there are not %d nodes from %s on",
                           f->count, s->nodes.v[node].spec.name);
    if (failed && f->kind && st_fault_parse(f->kind) == ST_FAULT_NONE)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "%s is no kind of fault",
                           st_quote(q, f->kind));
    if (base->kind == ST_DO_FAULT && !f->kind)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "key \"kind\" is missing");
    if (f->alone && f->gpu < 0)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "key \"gpu\" is missing");
    if (f->every_ms > ST_DURATION_MAX_MS / f->times ||
        base->at_ms > ST_DURATION_MAX_MS - f->every_ms * f->times)
        return st_doc_fail(s->doc, map, err, ST_ERANGE, "the last of them comes too late");
    return 0;
}

/* One for each of `count` nodes, over and over; with `every` one after the other. */
static void push(st_scenario *s, const fault_fields *f, int32_t node, const st_scn_action *base)
{
    for (int i = 0; i < f->times; i++) {
        st_scn_action action = *base;

        action.node = node + i % f->count;
        action.at_ms += i * f->every_ms;
        if (i > 0 && f->every_ms > 0)
            st_vec_push(&s->arrivals, action);
        else
            st_vec_push(&s->actions, action);
    }
}

static int read_map(st_scenario *s, const st_doc_node *map, const st_scn_action *base, st_err *err)
{
    fault_fields f = {.count = 1, .gpu = -1};
    st_scn_action action = *base;
    int32_t node = -1;
    int r = st_fields_read(s->doc, map, rows, &f, err);

    if (r == 0)
        r = st_scn_find_node(s, f.node, &node, err);
    f.times = f.times > 0 ? f.times : f.count;
    if (r == 0)
        r = check(s, map, &f, node, base, err);
    if (r < 0)
        return r;
    action.state = f.hold ? ST_NODE_DRAINING : ST_NODE_FAILED;
    action.part = f.alone ? f.gpu + 1 : 0;
    action.passed = f.passed;
    action.finding = (st_finding){
        .kind = f.kind ? st_fault_parse(f.kind) : ST_FAULT_TEST, .gpu = f.gpu, .code = f.code};
    if (base->kind == ST_DO_HEALED)
        action.state = ST_NODE_READY;
    push(s, &f, node, &action);
    return 0;
}

int st_scn_read_fault(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                      st_err *err)
{
    int r = 0;

    if (node->kind == ST_DOC_MAP)
        return read_map(s, node, base, err);
    if (base->kind != ST_DO_HEALED && base->kind != ST_DO_TESTER)
        return st_doc_expect(s->doc, node, ST_DOC_MAP, err);
    for (const st_doc_node *n = NULL; r == 0 && (n = st_field_each(node, n));) {
        st_scn_action action = *base;

        r = st_scn_find_node(s, n, &action.node, err);
        if (r == 0)
            st_vec_push(&s->actions, action);
    }
    return r;
}

int st_scn_read_reset(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                      st_err *err)
{
    st_scn_action action = *base;
    int r = st_doc_i64(s->doc, node, 1, INT64_MAX, &action.incident, err);

    if (r == 0)
        st_vec_push(&s->actions, action);
    return r;
}
