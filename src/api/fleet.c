/*
 * GPU types, pools and nodes. Tenants see what there is; who sits where they see only of
 * themselves.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/quote.h"
#include "calendar/calendar.h"
#include "zones/zones.h"

/* ---- types --------------------------------------------------------------------------------- */

static int fill_types(st_question *q, st_core *core, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);

    (void)err;
    st_strbuf_add(&q->out, "{\"types\":[");
    for (size_t t = 0; t < fleet->types.n; t++) {
        const st_gpu_type *type = &fleet->types.v[t];

        st_strbuf_add(&q->out, t ? ",{" : "{");
        st_out_text(&q->out, "name", type->name);
        st_out_int(&q->out, "vram_mib", type->vram_mib);
        if (type->board == ST_BOARD_NONE)
            st_out_raw(&q->out, "mig", "null");
        else
            st_out_text(&q->out, "mig", st_board_name(type->board));
        st_strbuf_addc(&q->out, '}');
    }
    st_strbuf_add(&q->out, "]}");
    return 0;
}

void st_api_types_list(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_types, NULL, 0);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void place_json(const st_fleet *fleet, const st_node *n, st_topo level, st_strbuf *out)
{
    const char *name, *own;

    if (n->place[level] < 0)
        return;
    /* A domain's name has those above it in front, each behind a separator. */
    name = fleet->domains[level].v[n->place[level]].name;
    own = strrchr(name, '\x1f');
    st_out_text(out, st_topo_name(level), own ? own + 1 : name);
}

static void jobs_json(const st_question *q, const st_core *core, const st_node *n, st_strbuf *out)
{
    const st_tree *tree = st_core_tree(core);
    int32_t root = st_question_root(q, core);
    const char *sep = "";
    uint64_t last = 0;

    st_out_raw(out, "jobs", "[");
    for (size_t i = 0; i < n->residents.n; i++) {
        const st_job *job = n->residents.v[i].job;
        char id[ST_ID_TEXT];

        if (job->id == last || !st_tree_within(tree, job->account, root) || !st_job_on_devices(job))
            continue;
        last = job->id;
        st_control_id_text(q->api->control, job->id, id);
        st_strbuf_addf(out, "%s\"%s\"", sep, id);
        sep = ",";
    }
    st_strbuf_addc(out, ']');
}

/* Why it was taken out; for owners, by whom and since when. What a person wrote is for owners alone. */
static void fault_json(const st_question *q, const st_node *n, st_strbuf *out)
{
    const st_node_note *note = st_node_note_of(n);
    bool owner = st_question_owner(q);

    if (note && owner) {
        st_out_time(out, "since", note->since_ms);
        st_out_text(out, "by", note->by);
    }
    if (note && note->reason[0] && (owner || strcmp(note->by, "stintd") == 0))
        st_out_text(out, "reason", note->reason);
}

static void tests_json(const st_node *n, st_strbuf *out)
{
    if (n->passed_ms > 0)
        st_out_time(out, "passed", n->passed_ms);
    if (n->due_ms > 0)
        st_out_time(out, "test_at", n->due_ms);
    if (n->tests)
        st_out_raw(out, "tested", n->test > n->tested ? "false" : "true");
}

static void flag_json(void *ctx, st_flag flag, const char *reason, int64_t since_ms,
                      int64_t last_ms)
{
    st_strbuf *out = ctx;

    if (out->s[out->n - 1] == '}')
        st_strbuf_addc(out, ',');
    st_strbuf_addc(out, '{');
    st_out_text(out, "flag", st_flag_name(flag));
    st_out_text(out, "reason", reason ? reason : "");
    st_out_time(out, "since", since_ms);
    st_out_time(out, "last", last_ms);
    st_strbuf_addc(out, '}');
}

/* What concerns who runs the fleet: its key, and what is wrong with what it says. */
static void trust_json(const st_question *q, const st_node *n, st_strbuf *out)
{
    char key[ST_KEY_TEXT];
    bool rejoin;

    st_tx_key_of(q->tx, n->name, key, &rejoin);
    if (key[0])
        st_out_text(out, "key", key);
    if (rejoin)
        st_out_raw(out, "may_rejoin", "true");
    st_out_raw(out, "flags", "[");
    st_tx_flags_of(q->tx, n->name, flag_json, out);
    st_strbuf_addc(out, ']');
}

static void node_json(const st_question *q, const st_core *core, const st_node *n, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);

    st_strbuf_addc(out, '{');
    st_out_text(out, "name", n->name);
    st_out_text(out, "pool", fleet->pools.v[n->pool].name);
    if (n->type >= 0)
        st_out_text(out, "type", fleet->types.v[n->type].name);
    else
        st_out_raw(out, "type", "null");
    st_out_int(out, "gpus", n->ndevs);
    st_out_milli(out, "cpu", n->cpu_m);
    st_out_int(out, "ram_mib", n->ram_mib);
    st_out_text(out, "state", st_node_state_name(n->state));
    if (n->state != ST_NODE_READY) {
        fault_json(q, n, out);
        st_out_text(out, "next", st_api_node_next(n));
    }
    st_api_node_gpus(q, n, out);
    if (n->state == ST_NODE_DRAINING && n->drain_ms > 0) {
        st_out_time(out, "drain_by", n->drain_ms);
        st_out_text(out, "drain_then", st_drain_name(n->drain_then));
    }
    tests_json(n, out);
    place_json(fleet, n, ST_TOPO_RACK, out);
    place_json(fleet, n, ST_TOPO_BLOCK, out);
    place_json(fleet, n, ST_TOPO_ZONE, out);
    st_out_labels(out, "labels", n->labels);
    if (st_question_owner(q))
        st_out_int(out, "gpus_free", __builtin_popcount(n->view.free));
    if (st_question_owner(q) && q->name[0])
        trust_json(q, n, out);
    jobs_json(q, core, n, out);
    st_strbuf_addc(out, '}');
}

static int fill_nodes(st_question *q, st_core *core, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);

    (void)err;
    st_strbuf_add(&q->out, "{\"nodes\":[");
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        if (fleet->nodes.v[i]->state == ST_NODE_REMOVED)
            continue;
        if (q->out.s[q->out.n - 1] == '}')
            st_strbuf_addc(&q->out, ',');
        node_json(q, core, fleet->nodes.v[i], &q->out);
    }
    st_strbuf_add(&q->out, "]}");
    return 0;
}

static int fill_node(st_question *q, st_core *core, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    char text[ST_QUOTE_MAX];
    int64_t id;

    if (!st_map_get(fleet->node_ids, q->name, &id))
        return st_fail(err, ST_ENOENT, "there is no node %s", st_quote(text, q->name));
    node_json(q, core, fleet->nodes.v[id], &q->out);
    snprintf(q->version, sizeof q->version, "%lld",
             (long long)st_tx_version(q->tx, "node", q->name));
    return 0;
}

void st_api_nodes_list(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_nodes, NULL, 0);
}

void st_api_node_get(st_call *call, void *ctx)
{
    st_api_ask(ctx, call, fill_node, st_call_param(call, "name"), 0);
}

/* ---- changing -------------------------------------------------------------------------------- */

typedef struct fleet_change {
    st_cmd_event ev;
    st_api *api;
    st_call *call;
    st_doc *doc;
    int status;
    char target[ST_NAME_MAX + 2]; /* one too long for a name is still none */
    st_node_state state;
    st_strbuf detail;                                    /* of a node's state */
    int (*resolve)(st_tx *tx, st_cmd *cmd, st_err *err); /* what st_cmd_event_init gave */
} fleet_change;

static void change_free(fleet_change *c)
{
    st_doc_free(c->doc);
    st_strbuf_done(&c->detail);
    free(c);
}

static void change_done(st_cmd *cmd, const st_err *err)
{
    fleet_change *c = (fleet_change *)cmd;
    st_strbuf out = {0};

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", c->target);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, c->status, NULL, &out);
    }
    st_strbuf_done(&out);
    change_free(c);
}

static fleet_change *change_new(st_call *call, st_api *api, const char *verb, int status)
{
    fleet_change *c = st_xcalloc(1, sizeof *c);

    c->api = api;
    c->call = call;
    c->status = status;
    c->ev.who = *st_api_who(call);
    c->ev.verb = verb;
    st_cmd_event_init(&c->ev);
    c->ev.cmd.done = change_done;
    return c;
}

static void change_post(fleet_change *c, int r, const st_err *err)
{
    if (r < 0) {
        st_call_fail(c->call, err);
        change_free(c);
        return;
    }
    c->ev.target = c->target;
    st_call_defer(c->call);
    st_api_post(c->api, c->call, &c->ev.cmd);
}

typedef struct named {
    const char *name;
} named;

/* The name of what is made stands beside its fields; it is taken out before they are read. */
static int read_name(const st_doc *doc, st_doc_node *map, char *ret, st_err *err)
{
    st_doc_node **at = &map->child;
    const st_field row = {.key = "name", .kind = ST_F_NAME, .offset = 0};
    named n = {NULL};
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r < 0)
        return r;
    while (*at && strcmp((*at)->key, "name") != 0)
        at = &(*at)->next;
    if (!*at)
        return st_doc_fail(doc, map, err, ST_EINVAL, "key \"name\" is missing");
    r = st_field_read(doc, *at, &row, &n, err);
    if (r < 0)
        return r;
    strncpy(ret, n.name, ST_NAME_MAX);
    *at = (*at)->next;
    map->nchild--;
    return 0;
}

static st_doc_node *root_of(st_doc *doc)
{
    union {
        const st_doc_node *from;
        st_doc_node *to;
    } same = {.from = st_doc_root(doc)};
    return same.to; /* the document is this request's own */
}

void st_api_type_make(st_call *call, void *ctx)
{
    fleet_change *c = change_new(call, ctx, "type.create", 201);
    st_type_doc type = {0};
    st_err err = {0};
    int r = st_call_doc(call, &c->doc, &err);

    if (r == 0)
        r = read_name(c->doc, root_of(c->doc), c->target, &err);
    if (r == 0 && root_of(c->doc)->nchild == 0 && st_spec_known_type(c->target))
        type = *st_spec_known_type(c->target);
    else if (r == 0)
        r = st_spec_type(c->doc, root_of(c->doc), &type, &err);
    c->ev.event.kind = ST_EV_TYPE;
    c->ev.event.u.type.name = c->target;
    c->ev.event.u.type.vram_mib = type.vram_mib;
    c->ev.event.u.type.board = type.board;
    change_post(c, r, &err);
}

void st_api_pool_make(st_call *call, void *ctx)
{
    fleet_change *c = change_new(call, ctx, "pool.create", 201);
    st_pool_doc pool = ST_POOL_DOC_INIT;
    st_err err = {0};
    int r = st_call_doc(call, &c->doc, &err);

    if (r == 0)
        r = read_name(c->doc, root_of(c->doc), c->target, &err);
    if (r == 0)
        r = st_spec_pool(c->doc, root_of(c->doc), &pool, &err);
    c->ev.event.kind = ST_EV_POOL;
    c->ev.event.u.pool.name = c->target;
    c->ev.event.u.pool.levels = pool.levels;
    c->ev.event.u.pool.oversub_m = pool.oversub_m;
    c->ev.event.u.pool.rules = pool.rules;
    change_post(c, r, &err);
}

static int run_pool(st_tx *tx, st_cmd *cmd, st_err *err)
{
    fleet_change *c = (fleet_change *)cmd;
    const st_fleet *fleet = st_core_fleet(st_tx_core(tx));
    int p = st_fleet_pool(fleet, c->target), r;
    char q[ST_QUOTE_MAX];

    if (p < 0)
        return st_fail(err, ST_ENOENT, "there is no pool %s", st_quote(q, c->target));
    r = st_api_condition_of(tx, c->call, "pool", c->target, c->target, err);
    if (r == 0)
        r = st_api_pool_event(c->doc, &fleet->pools.v[p], &c->ev.event, err);
    return r < 0 ? r : c->resolve(tx, cmd, err);
}

void st_api_pool_patch(st_call *call, void *ctx)
{
    fleet_change *c;
    st_err err = {0};
    int r;

    if (st_call_query_bool(call, "dry_run", false)) {
        st_api_pool_try(ctx, call);
        return;
    }
    c = change_new(call, ctx, "pool.change", 200);
    r = st_call_doc(call, &c->doc, &err);

    strncpy(c->target, st_call_param(call, "name"), ST_NAME_MAX + 1);
    if (r == 0)
        r = st_doc_expect(c->doc, root_of(c->doc), ST_DOC_MAP, &err);
    c->ev.event.kind = ST_EV_POOL_CHANGE;
    c->ev.event.u.pool.name = c->target;
    c->ev.event.u.pool.force = st_call_query_bool(call, "force", false);
    c->resolve = c->ev.cmd.run;
    c->ev.cmd.run = run_pool;
    change_post(c, r, &err);
}

void st_api_node_make(st_call *call, void *ctx)
{
    st_api *api = ctx;
    fleet_change *c = change_new(call, api, "node.create", 201);
    const st_spec_names names = st_directory_names(api->dir);
    st_err err = {0};
    int r = st_call_doc(call, &c->doc, &err);

    c->ev.event.kind = ST_EV_NODE;
    if (r == 0)
        r = st_doc_expect(c->doc, root_of(c->doc), ST_DOC_MAP, &err);
    if (r == 0)
        r = st_spec_node(c->doc, root_of(c->doc), &names, &c->ev.event.u.node, &err);
    if (r == 0)
        strncpy(c->target, c->ev.event.u.node.name, ST_NAME_MAX);
    change_post(c, r, &err);
}

/* Which node that is, only the core knows. */
static int run_state(st_tx *tx, st_cmd *cmd, st_err *err)
{
    fleet_change *c = (fleet_change *)cmd;
    const st_fleet *fleet = st_core_fleet(st_tx_core(tx));
    char q[ST_QUOTE_MAX];
    int64_t id;
    int r;

    if (!st_map_get(fleet->node_ids, c->target, &id))
        return st_fail(err, ST_ENOENT, "there is no node %s", st_quote(q, c->target));
    r = st_api_condition_of(tx, c->call, "node", c->target, c->target, err);
    if (r < 0)
        return r;
    c->ev.event.u.node_state.node = (int32_t)id;
    c->ev.event.u.node_state.state = c->state;
    c->ev.event.u.node_state.force = st_call_query_bool(c->call, "force", false);
    return c->resolve(tx, cmd, err);
}

/* ---- the state of a node ----------------------------------------------------------------------- */

#define DRAIN_MAX_MS (INT64_C(366) * 86400 * 1000)

typedef struct state_fields {
    const char *by, *zone, *reason;
    int state, then, gpu;
    int64_t within_ms;
} state_fields;

static const char *const node_words[] = {"ready",   "draining", "failed",  "suspect",
                                         "testing", "repair",   "retired", NULL};
static const st_node_state node_states[] = {ST_NODE_READY,   ST_NODE_DRAINING, ST_NODE_FAILED,
                                            ST_NODE_SUSPECT, ST_NODE_TESTING,  ST_NODE_REPAIR,
                                            ST_NODE_RETIRED};
static const char *const then_words[] = {
#define X(id, name, about) name,
    ST_DRAIN_TABLE(X)
#undef X
        NULL};

#define OF(field) offsetof(state_fields, field)
static const st_field state_rows[] = {
    {.key = "state", .kind = ST_F_WORD, .offset = OF(state), .words = node_words, .required = true},
    {.key = "reason", .kind = ST_F_LINE, .offset = OF(reason)},
    {.key = "by", .kind = ST_F_LINE, .offset = OF(by)},
    {.key = "zone", .kind = ST_F_LINE, .offset = OF(zone)},
    {.key = "within", .kind = ST_F_DURATION, .offset = OF(within_ms)},
    {.key = "then", .kind = ST_F_WORD, .offset = OF(then), .words = then_words},
    {.key = "gpu", .kind = ST_F_INT, .offset = OF(gpu), .lo = 0, .hi = ST_DEVS_MAX - 1},
    {0},
};
#undef OF

/* By when, where that is said; 0: whenever. */
static int read_deadline(fleet_change *c, const state_fields *f, int64_t *ret_ms, st_err *err)
{
    int64_t now = c->api->options.clock(c->api->options.ctx);
    const st_tz *tz = NULL;
    int r;

    *ret_ms = 0;
    if (!f->by && f->within_ms == ST_UNSET)
        return f->then == (int)ST_UNSET
                   ? 0
                   : st_fail(err, ST_EINVAL, "`then` needs a time: say `by` or `within`");
    if (f->gpu >= 0)
        return st_fail(err, ST_EINVAL,
                       "a GPU alone drains without a time: its job stays until it "
                       "ends");
    if (f->state != ST_NODE_DRAINING)
        return st_fail(err, ST_EINVAL, "only a node that drains has a time: its state is %s",
                       node_words[f->state]);
    if (f->by && f->within_ms != ST_UNSET)
        return st_fail(err, ST_EINVAL, "say either `by` or `within`, not both");
    if (!f->by) {
        *ret_ms = now + f->within_ms;
    } else {
        r = st_zones_get(c->api->zones, f->zone, &tz, err);
        if (r == 0)
            r = st_when_parse(f->by, tz, now, ret_ms, err);
        if (r < 0)
            return r;
    }
    if (*ret_ms <= now)
        return st_fail(err, ST_ERANGE, "the time by which the node drains is over already");
    return *ret_ms - now > DRAIN_MAX_MS
               ? st_fail(err, ST_ERANGE, "a node drains within 366 days at most")
               : 0;
}

/* What the audit log says of it. */
static void write_detail(fleet_change *c, const char *state)
{
    const st_event *ev = &c->ev.event;

    st_strbuf_addc(&c->detail, '{');
    st_out_text(&c->detail, "state", state);
    if (ev->u.node_state.part > 0)
        st_out_int(&c->detail, "gpu", ev->u.node_state.part - 1);
    if (ev->u.node_state.by_ms > 0) {
        st_out_time(&c->detail, "by", ev->u.node_state.by_ms);
        st_out_text(&c->detail, "then", st_drain_name(ev->u.node_state.then));
    }
    st_strbuf_addc(&c->detail, '}');
    c->ev.detail = st_strbuf_str(&c->detail);
}

void st_api_node_patch(st_call *call, void *ctx)
{
    state_fields f = {.zone = "UTC", .within_ms = ST_UNSET, .then = (int)ST_UNSET, .gpu = -1};
    fleet_change *c = change_new(call, ctx, "node.state", 200);
    st_err err = {0};
    int r = st_call_doc(call, &c->doc, &err);

    if (r == 0)
        r = st_doc_expect(c->doc, root_of(c->doc), ST_DOC_MAP, &err);
    if (r == 0)
        r = st_fields_read(c->doc, root_of(c->doc), state_rows, &f, &err);
    strncpy(c->target, st_call_param(call, "name"), ST_NAME_MAX + 1);
    c->ev.reason = f.reason;
    c->state = node_states[f.state];
    c->ev.event.kind = ST_EV_NODE_STATE;
    c->ev.event.u.node_state.part = f.gpu + 1;
    if (r == 0)
        r = read_deadline(c, &f, &c->ev.event.u.node_state.by_ms, &err);
    if (c->ev.event.u.node_state.by_ms > 0)
        c->ev.event.u.node_state.then =
            f.then == (int)ST_UNSET ? ST_DRAIN_REQUEUE : (st_drain_then)f.then;
    if (r == 0)
        write_detail(c, node_words[f.state]);
    c->resolve = c->ev.cmd.run;
    c->ev.cmd.run = run_state;
    change_post(c, r, &err);
}
