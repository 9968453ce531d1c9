/*
 * What is to be different (replay/state.h): read once, and made so by events like those of people.
 */
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "replay/state.h"

/* ---- names of the fleet --------------------------------------------------------------------------- */

static const st_fleet *fleet_of(void *ctx)
{
    return st_core_fleet(((const st_rerun_side *)ctx)->core);
}

static int type_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    const st_fleet *fleet = fleet_of(ctx);
    const char *names[ST_TYPES_MAX + 1] = {0};

    for (size_t i = 0; i < fleet->types.n && i < ST_TYPES_MAX; i++)
        names[i] = fleet->types.v[i].name;
    *ret = node->value ? st_fleet_type(fleet, node->value) : -1;
    return *ret < 0 ? st_spec_missing(doc, node, "GPU type", names, err) : 0;
}

static int pool_named(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                      st_err *err)
{
    static const char *const none[] = {NULL};

    *ret = node->value ? st_fleet_pool(fleet_of(ctx), node->value) : -1;
    return *ret < 0 ? st_spec_missing(doc, node, "pool", none, err) : 0;
}

static size_t ntypes(void *ctx)
{
    return fleet_of(ctx)->types.n;
}

static st_board board_of(void *ctx, int32_t type)
{
    return fleet_of(ctx)->types.v[type].board;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Recursion is as deep as the document, which is bounded. */
static int read_accounts(st_rerun_side *side, const st_doc_node *list, const char *parent,
                         st_err *err)
{
    st_rerun_lab *lab = side->lab;
    const st_doc *doc = lab->options->accounts;
    const st_spec_names names = {side, type_named, pool_named, ntypes, board_of};
    int r = st_doc_expect(doc, list, ST_DOC_SEQ, err);

    for (const st_doc_node *n = list->child; r == 0 && n; n = n->next) {
        const st_doc_node *children = NULL;
        st_account_doc a;
        char q[ST_QUOTE_MAX];

        r = st_spec_account(doc, n, &names, true, &a, &children, err);
        if (r < 0)
            return r;
        if (st_map_get(lab->account_ids, a.name, NULL))
            return st_doc_fail(doc, n, err, ST_EEXIST, "account %s is there twice",
                               st_quote(q, a.name));
        a.parent = parent ? parent : a.parent;
        st_map_put(lab->account_ids, a.name, (int64_t)lab->accounts.n);
        st_vec_push(&lab->accounts, a);
        if (children)
            r = read_accounts(side, children, a.name, err);
    }
    return r;
}

int st_rerun_read_changes(st_rerun_lab *lab, st_err *err)
{
    const st_rerun_options *o = lab->options;
    int r = 0;

    if (o->fleet)
        r = st_scenario_fleet(o->fleet, &lab->fleet, err);
    if (r == 0 && o->prices) {
        st_price_book *book = st_arena_alloc(lab->arena, sizeof *book);

        r = st_price_book_read("the price book", o->prices, o->nprices, 0, book, err);
        lab->other = book;
    }
    return r;
}

/* ---- making it so --------------------------------------------------------------------------------------- */

static int apply(st_rerun_side *side, const st_event *ev, st_err *err)
{
    return st_core_apply(side->core, ev, side->now, &side->fx, err);
}

static int change_policy(st_rerun_side *side, st_err *err)
{
    const st_rerun_options *o = side->lab->options;
    st_event ev = {.kind = ST_EV_POLICY, .u.policy = *st_core_policy(side->core)};
    int r = o->policy ? o->policy(o->policy_ctx, &ev.u.policy, err) : 0;

    return r < 0 || !o->policy ? r : apply(side, &ev, err);
}

static int add_types(st_rerun_side *side, st_err *err)
{
    const st_scenario *s = side->lab->fleet;
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->types.n; i++) {
        const st_type_doc *t = &s->types.v[i].doc;
        st_event ev = {.kind = ST_EV_TYPE};

        if (st_fleet_type(st_core_fleet(side->core), t->name) >= 0)
            continue;
        ev.u.type.name = t->name;
        ev.u.type.vram_mib = t->vram_mib;
        ev.u.type.board = t->board;
        r = apply(side, &ev, err);
    }
    return r;
}

/* A pool that is named is as the document says. One that is not is as it was. */
static int set_pools(st_rerun_side *side, st_err *err)
{
    const st_scenario *s = side->lab->fleet;
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->pools.n; i++) {
        const st_pool_doc *p = &s->pools.v[i].doc;
        bool there = st_fleet_pool(st_core_fleet(side->core), p->name) >= 0;
        st_event ev = {.kind = there ? ST_EV_POOL_CHANGE : ST_EV_POOL};

        if (there && s->pools.v[i].line == 0)
            continue; /* the document names none */
        ev.u.pool.name = p->name;
        ev.u.pool.levels = p->levels;
        ev.u.pool.oversub_m = p->oversub_m;
        ev.u.pool.rules = p->rules;
        r = apply(side, &ev, err);
    }
    return r;
}

static bool same_node(const st_rerun_side *side, const st_node *node, const st_node_spec *spec)
{
    const st_scenario *s = side->lab->fleet;
    const st_fleet *fleet = st_core_fleet(side->core);
    const char *type = spec->type >= 0 ? s->types.v[spec->type].doc.name : "";

    return node->ndevs == spec->ndevs && node->cpu_m == spec->cpu_m &&
           node->ram_mib == spec->ram_mib &&
           strcmp(node->type >= 0 ? fleet->types.v[node->type].name : "", type) == 0;
}

/* Jobs on it wait again, as if it had failed. */
static int drop_node(st_rerun_side *side, int32_t id, st_err *err)
{
    st_event ev = {.kind = ST_EV_NODE_STATE, .u.node_state = {.node = id, .state = ST_NODE_FAILED}};
    int r = apply(side, &ev, err);

    ev.u.node_state.state = ST_NODE_REMOVED;
    return r < 0 ? r : apply(side, &ev, err);
}

static int add_node(st_rerun_side *side, const st_node_spec *spec, st_err *err)
{
    const st_scenario *s = side->lab->fleet;
    const st_fleet *fleet = st_core_fleet(side->core);
    int32_t id = st_fleet_node(fleet, spec->name);
    st_event ev = {.kind = ST_EV_NODE, .u.node = *spec};
    int r = 0;

    if (id >= 0 && same_node(side, fleet->nodes.v[id], spec))
        return 0;
    if (id >= 0)
        r = drop_node(side, id, err);
    ev.u.node.pool = st_fleet_pool(fleet, s->pools.v[spec->pool].doc.name);
    if (s->pools.v[spec->pool].line == 0 && fleet->pools.n > 0)
        ev.u.node.pool = 0; /* the document names no pool: the first */
    ev.u.node.type = spec->type < 0 ? -1 : st_fleet_type(fleet, s->types.v[spec->type].doc.name);
    return r < 0 ? r : apply(side, &ev, err);
}

static int change_fleet(st_rerun_side *side, st_err *err)
{
    const st_scenario *s = side->lab->fleet;
    const st_fleet *fleet = st_core_fleet(side->core);
    size_t was = fleet->nodes.n;
    int r = add_types(side, err);

    if (r == 0)
        r = set_pools(side, err);
    for (size_t i = 0; r == 0 && i < was; i++) {
        const st_node *node = fleet->nodes.v[i];

        if (node->state != ST_NODE_REMOVED && !st_map_get(s->node_ids, node->name, NULL))
            r = drop_node(side, (int32_t)i, err);
    }
    for (size_t i = 0; r == 0 && i < s->nodes.n; i++)
        r = add_node(side, &s->nodes.v[i].spec, err);
    return r;
}

/* Parents come first; floors that rise wait for those that fall, so whoever is refused is tried once more. */
static int change_accounts(st_rerun_side *side, st_err *err)
{
    st_rerun_lab *lab = side->lab;
    const st_doc_node *root = st_doc_root(lab->options->accounts);
    const st_doc_node *list =
        root && root->kind == ST_DOC_MAP ? st_doc_get(root, "accounts") : root;
    size_t left;
    int r;

    if (!list)
        return st_doc_fail(lab->options->accounts, NULL, err, ST_EINVAL,
                           "there is no key \"accounts\"");
    lab->account_ids = st_map_new();
    r = read_accounts(side, list, NULL, err);
    if (r < 0)
        return r;
    ST_CLEANUP(st_freep) bool *done = st_xcalloc(lab->accounts.n + 1, sizeof *done);

    left = lab->accounts.n;
    for (bool moved = true; left > 0 && moved;) {
        moved = false;
        for (size_t i = 0; i < lab->accounts.n; i++) {
            st_event ev = {.kind = ST_EV_ACCOUNT};

            if (done[i])
                continue;
            st_spec_account_lay(st_core_tree(side->core), &lab->accounts.v[i], &ev.u.account);
            if (apply(side, &ev, err) < 0)
                continue;
            done[i] = moved = true;
            left--;
        }
    }
    return left > 0 ? -err->code : 0;
}

int st_rerun_change(st_rerun_side *side, st_err *err)
{
    st_rerun_lab *lab = side->lab;
    int r = change_policy(side, err);

    if (r == 0 && lab->fleet)
        r = change_fleet(side, err);
    if (r == 0 && lab->options->accounts)
        r = change_accounts(side, err);
    if (r < 0)
        return r;
    if (lab->options->policy || lab->fleet || lab->options->accounts) {
        st_core_settle(side->core, side->now, &side->fx);
        st_rerun_follow(side, NULL, side->now);
    }
    return 0;
}
