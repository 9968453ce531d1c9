/*
 * A tape as a scenario: the same world, the same events at the same times, for
 * `stint sim run` (doc/reference/scenarios.md). The player checks the invariants itself, so the scenario
 * expects nothing: playing it shows what breaks.
 */
#include "worlds/worlds.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "share/divide.h"

typedef struct writer {
    const st_tape *tape;
    st_strbuf *out;
    const char *types[ST_TYPES_MAX];
    const char *pools[ST_POOLS_MAX];
    int ntypes, npools;
    const char *comma;
} writer;

/* One "key: value" of a flow map; the first has no comma in front. */
static void key(writer *w, const char *name)
{
    st_strbuf_addf(w->out, "%s%s: ", w->comma, name);
    w->comma = ", ";
}

static void milli(writer *w, const char *name, int64_t v)
{
    char buf[ST_FMT_MAX];
    key(w, name);
    st_strbuf_add(w->out, st_fmt_milli(buf, v));
}

static void mib(writer *w, const char *name, int64_t v)
{
    key(w, name);
    st_strbuf_addf(w->out, "%" PRId64 "Mi", v);
}

static void duration(writer *w, const char *name, int64_t ms)
{
    char buf[ST_FMT_MAX];
    key(w, name);
    st_strbuf_add(w->out, ms == ST_UNSET ? "none" : st_fmt_duration(buf, ms));
}

static void text(writer *w, const char *name, const char *value)
{
    key(w, name);
    st_strbuf_add(w->out, value);
}

/* The key of what has one row per entry of a kind; without rows it would be neither list nor map. */
static void open_rows(writer *w, const char *name, st_event_kind kind, const char *none)
{
    bool any = false;
    for (size_t i = 0; i < w->tape->list.n; i++)
        any |= w->tape->list.v[i].event.kind == kind && w->tape->list.v[i].setup;
    st_strbuf_addf(w->out, "%s:%s%s\n", name, any ? "" : " ", any ? "" : none);
}

/* ---- the head ----------------------------------------------------------------------- */

typedef enum policy_kind { DURATION, MILLI, COUNT, BOOL } policy_kind;

static void policy_value(writer *w, const char *name, policy_kind kind, int64_t v)
{
    if (kind == DURATION)
        duration(w, name, v);
    else if (kind == MILLI)
        milli(w, name, v);
    else if (kind == BOOL)
        text(w, name, v ? "true" : "false");
    else {
        key(w, name);
        st_strbuf_addf(w->out, "%" PRId64, v);
    }
}

static void write_policy(writer *w)
{
    static const char *const bases[] = {
#define X(id, name) [id] = name,
        ST_SHARE_BASIS_TABLE(X)
#undef X
    };
    static const char *const orders[] = {
#define X(id, name) [id] = name,
        ST_ORDER_TABLE(X)
#undef X
    };
    const st_policy *p = &w->tape->policy;
    st_strbuf_add(w->out, "policy: {");
    w->comma = "";
#define X(field, name, kind, def, lo, hi, what) policy_value(w, name, kind, p->field);
    ST_POLICY_TABLE(X)
#undef X
    text(w, "basis", bases[p->counts]);
    text(w, "order", orders[p->order]);
    st_strbuf_add(w->out, "}\n");
}

static void permissions(writer *w, const char *word, uint32_t bits)
{
    const char *comma = "";
    if (bits == 0)
        return;
    key(w, word);
    st_strbuf_addc(w->out, '[');
    for (int p = 0; p < ST_ALLOW_COUNT; p++) {
        if (!(bits >> p & 1))
            continue;
        st_strbuf_addf(w->out, "%s%s", comma, st_allow_name((st_allow)p));
        comma = ", ";
    }
    st_strbuf_addc(w->out, ']');
}

static void write_types(writer *w)
{
    open_rows(w, "types", ST_EV_TYPE, "{}");
    for (size_t i = 0; i < w->tape->list.n; i++) {
        const st_event *ev = &w->tape->list.v[i].event;
        if (ev->kind != ST_EV_TYPE)
            continue;
        w->types[w->ntypes++] = ev->u.type.name;
        st_strbuf_addf(w->out, "  %s: {vram: %" PRId64 "Mi, mig: %s}\n", ev->u.type.name,
                       ev->u.type.vram_mib, st_board_name(ev->u.type.board));
    }
    open_rows(w, "pools", ST_EV_POOL, "{}");
    for (size_t i = 0; i < w->tape->list.n; i++) {
        const st_event *ev = &w->tape->list.v[i].event;
        if (ev->kind != ST_EV_POOL)
            continue;
        w->pools[w->npools++] = ev->u.pool.name;
        st_strbuf_addf(w->out, "  %s: {levels: [", ev->u.pool.name);
        w->comma = "";
        for (int l = 0; l < ST_LEVEL_COUNT; l++) {
            if (!(ev->u.pool.levels >> l & 1))
                continue;
            st_strbuf_addf(w->out, "%s%s", w->comma, st_level_name((st_level)l));
            w->comma = ", ";
        }
        st_strbuf_add(w->out, "]");
        permissions(w, "allow", ev->u.pool.rules.allow);
        milli(w, "oversubscribe", ev->u.pool.oversub_m);
        if (ev->u.pool.rules.book_horizon_ms)
            duration(w, "booking_horizon", ev->u.pool.rules.book_horizon_ms);
        if (ev->u.pool.rules.book_share_m)
            milli(w, "booking_share", ev->u.pool.rules.book_share_m);
        st_strbuf_add(w->out, "}\n");
    }
}

static void write_node(writer *w, const st_node_spec *node)
{
    st_strbuf_add(w->out, "  - {");
    w->comma = "";
    text(w, "name", node->name);
    text(w, "pool", w->pools[node->pool]);
    if (node->ndevs > 0) {
        text(w, "gpu", w->types[node->type]);
        key(w, "gpus");
        st_strbuf_addf(w->out, "%d", node->ndevs);
        if (node->nvlink_domain) {
            text(w, "nvlink_domain", node->nvlink_domain);
        } else if (node->nvlink_size > 0) {
            key(w, "nvlink");
            st_strbuf_addf(w->out, "%d", node->nvlink_size);
        }
    }
    milli(w, "cpu", node->cpu_m);
    mib(w, "ram", node->ram_mib);
    if (node->zone)
        text(w, "zone", node->zone);
    if (node->block)
        text(w, "block", node->block);
    if (node->rack)
        text(w, "rack", node->rack);
    st_strbuf_add(w->out, "}\n");
}

/* ---- accounts ----------------------------------------------------------------------- */

/* With `all`, what is not given is said to be none: a change leaves alone what it omits. */
static void amount(writer *w, const char *name, int64_t v, bool ram, bool all)
{
    if (v == ST_UNSET && all)
        text(w, name, "none");
    else if (v != ST_UNSET && ram)
        mib(w, name, v);
    else if (v != ST_UNSET)
        milli(w, name, v);
}

static void write_quota(writer *w, const char *name, const st_quota *q, bool all)
{
    key(w, name);
    st_strbuf_add(w->out, "{");
    w->comma = "";
    amount(w, "gpu", q->gpu_m, false, all);
    for (int t = 0; t < w->ntypes; t++)
        amount(w, w->types[t], q->type_m[t], false, all);
    amount(w, "cpu", q->cpu_m, false, all);
    amount(w, "ram", q->ram_mib, true, all);
    st_strbuf_add(w->out, "}");
    w->comma = ", ";
}

static void write_limits(writer *w, const char *name, const st_limits *l, bool all)
{
    key(w, name);
    st_strbuf_add(w->out, "{");
    w->comma = "";
    amount(w, "gpu", l->gpu_m, false, all);
    amount(w, "vram", l->vram_mib, true, all);
    amount(w, "share", l->share_m, false, all);
    if (l->run_ms != ST_UNSET || all)
        duration(w, "run", l->run_ms);
    st_strbuf_add(w->out, "}");
    w->comma = ", ";
}

static void write_book_limits(writer *w, const st_book_limits *l, bool all)
{
    key(w, "booking");
    st_strbuf_add(w->out, "{");
    w->comma = "";
    amount(w, "gpu_hours", l->hours_m, false, all);
    if (l->concurrent != ST_UNSET || all) {
        key(w, "concurrent");
        if (l->concurrent == ST_UNSET)
            st_strbuf_add(w->out, "none");
        else
            st_strbuf_addf(w->out, "%lld", (long long)l->concurrent);
    }
    if (l->length_ms != ST_UNSET || all)
        duration(w, "length", l->length_ms);
    if (l->lead_ms != ST_UNSET || all)
        duration(w, "lead", l->lead_ms);
    st_strbuf_add(w->out, "}");
    w->comma = ", ";
}

static void write_account(writer *w, const st_account_spec *a, bool all)
{
    static const char *const trusts[] = {"inherit", "trusted", "untrusted"};
    st_strbuf_add(w->out, "{");
    w->comma = "";
    text(w, "name", a->name);
    if (a->parent)
        text(w, "parent", a->parent);
    write_quota(w, "guarantee", &a->guarantee, all);
    write_quota(w, "max", &a->max, all);
    milli(w, "weight", a->weight_m);
    key(w, "priority");
    st_strbuf_addf(w->out, "%d", a->priority);
    key(w, "limits");
    st_strbuf_add(w->out, "{");
    w->comma = "";
    write_limits(w, "job", &a->job_limits, all);
    write_limits(w, "user", &a->user_limits, all);
    write_book_limits(w, &a->book_limits, all);
    st_strbuf_add(w->out, "}");
    text(w, "trust", trusts[a->trust]);
    text(w, "trust_domain", a->own_domain ? "own" : "inherit");
    duration(w, "min_run", a->min_run_ms);
    st_strbuf_add(w->out, "}");
}

/* ---- the timeline ------------------------------------------------------------------- */

static void write_shape(writer *w, const st_job_spec *job)
{
    static const char *const profiles[] = {"1g", "1g+", "2g", "3g", "4g", "7g"};
    const st_shape *s = &job->shape;
    bool shares = s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME;
    key(w, "gpus");
    st_strbuf_addf(w->out, "%d", s->gpus);
    if (s->level != ST_LEVEL_WHOLE)
        text(w, "level", st_level_name(s->level));
    if (s->level == ST_LEVEL_MIG)
        text(w, "profile", profiles[s->profile]);
    if (shares)
        milli(w, "share", s->share_m);
    if (s->vram_mib > 0)
        mib(w, "vram", s->vram_mib);
    if (s->types && s->gpus > 0) {
        key(w, "type");
        const char *open = "[";
        for (int t = 0; t < w->ntypes; t++) {
            if (!(s->types >> t & 1))
                continue;
            st_strbuf_addf(w->out, "%s%s", open, w->types[t]);
            open = ", ";
        }
        st_strbuf_add(w->out, "]");
    }
    if (s->cpu_m > 0)
        milli(w, "cpu", s->cpu_m);
    if (s->ram_mib > 0)
        mib(w, "ram", s->ram_mib);
}

/* "driver=550", "disk!=nvme"; or the nodes it leaves out. */
static void write_pick(writer *w, const char *name, const char *pick, bool nodes)
{
    const char *comma = "[";
    key(w, name);
    for (const char *s = pick; *s; s = strchr(s, '\n') + 1) {
        int n = (int)strcspn(s, "\n"), eq = (int)strcspn(s, "=");
        if ((s[0] == '-') != nodes)
            continue;
        st_strbuf_add(w->out, comma);
        comma = ", ";
        if (nodes)
            st_strbuf_addf(w->out, "%.*s", n - 1, s + 1);
        else if (s[0] == '!')
            st_strbuf_addf(w->out, "\"%.*s!=%.*s\"", eq - 1, s + 1, n - eq - 1, s + eq + 1);
        else
            st_strbuf_addf(w->out, "\"%.*s\"", n, s);
    }
    st_strbuf_add(w->out, *comma == '[' ? "[]" : "]");
}

static void write_submit(writer *w, const st_tape_entry *e)
{
    const st_job_spec *job = &e->event.u.job;
    st_strbuf_add(w->out, "submit: {");
    w->comma = "";
    text(w, "job", job->name);
    text(w, "account", job->account);
    text(w, "user", job->user);
    key(w, "tasks");
    st_strbuf_addf(w->out, "%d", job->tasks);
    write_shape(w, job);
    if (job->topo != ST_TOPO_NONE) {
        key(w, "topology");
        st_strbuf_addf(w->out, "{%s: %s}", job->topo_required ? "require" : "prefer",
                       st_topo_name(job->topo));
    }
    permissions(w, "needs", job->shape.needs);
    if (job->nodes) {
        write_pick(w, "node_labels", job->nodes, false);
        write_pick(w, "exclude_nodes", job->nodes, true);
    }
    if (job->begin_ms)
        duration(w, "begin", job->begin_ms);
    if (job->end_by_ms)
        duration(w, "end_by", job->end_by_ms);
    if (job->by_ms)
        duration(w, "by", job->by_ms);
    if (job->hard)
        text(w, "hard", "true");
    if (job->latency_critical)
        text(w, "latency_critical", "true");
    if (job->priority != 0) {
        key(w, "priority");
        st_strbuf_addf(w->out, "%d", job->priority);
    }
    if (job->pool >= 0)
        text(w, "pool", w->pools[job->pool]);
    if (job->limit_ms != ST_TIME_NEVER)
        duration(w, "limit", job->limit_ms);
    if (e->run_ms != ST_TIME_NEVER)
        duration(w, "run", e->run_ms);
    text(w, "on_preempt", st_yield_name(job->yield));
    if (job->fails)
        text(w, "on_fault", "fail");
    if (job->grace_ms > 0)
        duration(w, "grace", job->grace_ms);
    duration(w, "checkpoint_time", e->save_ms);
    duration(w, "stop_time", e->gone_ms);
    st_strbuf_add(w->out, "}");
}

static bool sensible(const writer *w, const st_job_spec *job)
{
    if (job->id == 0 || job->tasks < 1 || job->tasks > ST_TASKS_MAX || !st_name_ok(job->name) ||
        job->shape.level >= ST_LEVEL_COUNT || job->shape.cpu_m < 0 ||
        job->shape.cpu_m > ST_QTY_MAX || job->shape.types >> w->ntypes || job->pool >= w->npools ||
        job->limit_ms < 1)
        return false;
    for (size_t i = 0; i < w->tape->list.n; i++) {
        const st_event *ev = &w->tape->list.v[i].event;
        if (ev->kind == ST_EV_ACCOUNT && strcmp(ev->u.account.name, job->account) == 0)
            return true;
    }
    return false;
}

/* Whether the format can say it; it has no words for nodes that nobody has, nor for jobs that
 * nobody has submitted yet. */
static bool sayable(const writer *w, const st_tape_entry *e)
{
    const st_event *ev = &e->event;
    uint64_t id = ev->kind == ST_EV_FINISH     ? ev->u.finish.id
                  : ev->kind == ST_EV_PRIORITY ? ev->u.priority.id
                  : ev->kind == ST_EV_LIMIT    ? ev->u.limit.id
                                               : ev->u.id;
    if (ev->kind == ST_EV_SUBMIT)
        return sensible(w, &ev->u.job);
    if (ev->kind == ST_EV_ACCOUNT)
        return st_name_ok(ev->u.account.name);
    if ((ev->kind == ST_EV_PRIORITY && ev->u.priority.priority > ST_PRIO_MAX) ||
        ev->kind == ST_EV_TOLD || ev->kind == ST_EV_POOL_CHANGE || ev->kind == ST_EV_UNSTARTED ||
        ev->kind == ST_EV_GONE || ev->kind == ST_EV_POLICY || ev->kind == ST_EV_LATE ||
        ev->kind == ST_EV_BAR || (ev->kind >= ST_EV_BOOK && ev->kind <= ST_EV_BOOK_CHANGE) ||
        ev->kind == ST_EV_LABELS || ev->kind == ST_EV_POOL_REMOVE ||
        ev->kind == ST_EV_ACCOUNT_REMOVE)
        return false;
    for (size_t i = 0; &w->tape->list.v[i] != e; i++) {
        const st_event *other = &w->tape->list.v[i].event;
        if (e->node ? other->kind == ST_EV_NODE && strcmp(other->u.node.name, e->node) == 0
                    : other->kind == ST_EV_SUBMIT && other->u.job.id == id &&
                          sensible(w, &other->u.job))
            return true;
    }
    return false;
}

static void write_state(writer *w, const st_tape_entry *e, const char *verb)
{
    const st_event *ev = &e->event;
    st_strbuf_addf(w->out, "node: {%s: %s", verb, e->node);
    if (ev->u.node_state.part > 0)
        st_strbuf_addf(w->out, ", gpu: %d", ev->u.node_state.part - 1);
    if (ev->u.node_state.by_ms > 0)
        st_strbuf_addf(w->out, ", within: %" PRId64 "ms, then: %s",
                       ST_MAX(ev->u.node_state.by_ms - e->at_ms, 1),
                       st_drain_name(ev->u.node_state.then));
    st_strbuf_add(w->out, "}");
}

static void write_action(writer *w, const st_tape_entry *e)
{
    static const char *const states[] = {
        [ST_NODE_READY] = "return",   [ST_NODE_DRAINING] = "drain",  [ST_NODE_FAILED] = "fail",
        [ST_NODE_REMOVED] = "remove", [ST_NODE_SUSPECT] = "suspect", [ST_NODE_TESTING] = "test",
        [ST_NODE_REPAIR] = "repair",  [ST_NODE_RETIRED] = "retire"};
    const st_event *ev = &e->event;
    st_strbuf_add(w->out, "      - ");
    switch (ev->kind) {
    case ST_EV_SUBMIT:
        write_submit(w, e);
        break;
    case ST_EV_FINISH:
        st_strbuf_addf(w->out, "%s: j%" PRIu64, ev->u.finish.failed ? "fail" : "finish",
                       ev->u.finish.id);
        break;
    case ST_EV_CANCEL:
        st_strbuf_addf(w->out, "cancel: j%" PRIu64, ev->u.id);
        break;
    case ST_EV_CHECKPOINTED:
        st_strbuf_addf(w->out, "checkpointed: j%" PRIu64, ev->u.id);
        break;
    case ST_EV_PRIORITY:
        st_strbuf_addf(w->out, "priority: {job: j%" PRIu64 ", to: %d}", ev->u.priority.id,
                       ev->u.priority.priority);
        break;
    case ST_EV_LIMIT:
        st_strbuf_addf(w->out, "limit: {job: j%" PRIu64 ", to: ", ev->u.limit.id);
        if (ev->u.limit.limit_ms == ST_TIME_NEVER)
            st_strbuf_add(w->out, "none");
        else
            st_strbuf_addf(w->out, "%" PRId64 "ms", ev->u.limit.limit_ms);
        st_strbuf_add(w->out, "}");
        break;
    case ST_EV_NODE_STATE:
        if (ev->u.node_state.how == ST_HOW_FAULT)
            st_strbuf_addf(w->out, "fault: {node: %s, kind: %s, gpu: %d%s%s}", e->node,
                           st_fault_name(ev->u.node_state.finding.kind),
                           ev->u.node_state.part > 0 ? ev->u.node_state.part - 1
                                                     : ev->u.node_state.finding.gpu,
                           ev->u.node_state.part > 0 ? ", alone: true" : "",
                           ev->u.node_state.state == ST_NODE_DRAINING ? ", hold: true" : "");
        else if (ev->u.node_state.how == ST_HOW_HEALED && ev->u.node_state.part > 0)
            st_strbuf_addf(w->out, "healed: {node: %s, gpu: %d, alone: true}", e->node,
                           ev->u.node_state.part - 1);
        else if (ev->u.node_state.how == ST_HOW_HEALED)
            st_strbuf_addf(w->out, "healed: %s", e->node);
        else
            write_state(w, e, states[ev->u.node_state.state]);
        break;
    case ST_EV_AGENT:
        st_strbuf_addf(w->out, "%s: %s", ev->u.node_state.tests ? "tester" : "agent", e->node);
        break;
    case ST_EV_ACCOUNT:
        st_strbuf_add(w->out, "account: ");
        write_account(w, &ev->u.account, true);
        break;
    default:
        break;
    }
    st_strbuf_add(w->out, "\n");
}

static void write_timeline(writer *w)
{
    int64_t last = 0;
    bool open = false, acts = false; /* a moment was begun; its first action was written */
    st_strbuf_add(w->out, "timeline:\n");
    for (size_t i = 0; i < w->tape->list.n; i++) {
        const st_tape_entry *e = &w->tape->list.v[i];
        char buf[ST_FMT_MAX];
        if (e->setup)
            continue;
        if (!open || !e->together || e->at_ms != last) {
            st_strbuf_addf(w->out, "  - at: %s\n", st_fmt_duration(buf, e->at_ms));
            acts = false;
        }
        if (e->event.kind != ST_EV_TIMER && sayable(w, e)) {
            st_strbuf_add(w->out, acts ? "" : "    do:\n");
            write_action(w, e);
            acts = true;
        }
        open = true;
        last = e->at_ms;
    }
    /* At the end everything comes back, and what has an end must reach it. */
    char at[ST_FMT_MAX], until[ST_FMT_MAX];
    st_strbuf_addf(w->out, "  - at: %s\n    do: [", st_fmt_duration(at, last + 1));
    w->comma = "";
    for (size_t i = 0; i < w->tape->list.n; i++) {
        if (w->tape->list.v[i].event.kind != ST_EV_NODE)
            continue;
        st_strbuf_addf(w->out, "%s{node: {return: %s}}", w->comma,
                       w->tape->list.v[i].event.u.node.name);
        w->comma = ", ";
    }
    st_strbuf_add(w->out, "]\n");
    st_strbuf_addf(w->out, "until: %s\n", st_fmt_duration(until, last + 86400000));
}

void st_fuzz_yaml(const st_tape *tape, const char *why, st_strbuf *out)
{
    writer w = {.tape = tape, .out = out, .comma = ""};
    st_strbuf_addf(out, "# Found by `stint sim fuzz`, seed %" PRIu64 ":\n# %s\n", tape->seed, why);
    st_strbuf_addf(out, "name: seed %" PRIu64 "\n", tape->seed);
    write_policy(&w);
    write_types(&w);
    open_rows(&w, "fleet", ST_EV_NODE, "[]");
    for (size_t i = 0; i < tape->list.n; i++)
        if (tape->list.v[i].event.kind == ST_EV_NODE)
            write_node(&w, &tape->list.v[i].event.u.node);
    open_rows(&w, "accounts", ST_EV_ACCOUNT, "[]");
    for (size_t i = 0; i < tape->list.n; i++) {
        const st_tape_entry *e = &tape->list.v[i];
        if (e->event.kind != ST_EV_ACCOUNT || !e->setup)
            continue;
        st_strbuf_add(out, "  - ");
        write_account(&w, &e->event.u.account, false);
        st_strbuf_add(out, "\n");
    }
    write_timeline(&w);
}
