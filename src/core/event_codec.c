/* Events to bytes and back (core.h). What an event says is checked when it is applied; here only
 * that it is well-formed. */
#include "core/core.h"
#include "model/codec.h"
#include "model/pick.h"

#define TEXT_MAX     (4 * ST_NAME_MAX)
#define FORMAT_SHIFT 6 /* the kind stands below, the format it was written in above */

/* A text that may be NULL; what is read lives in the arena. */
static void io_upto(codec *c, st_arena *arena, const char **s, size_t max)
{
    bool there = *s != NULL;
    IO_BOOL(c, there);
    if (!there) {
        *s = NULL;
        return;
    }
    size_t n = io_count(c, c->out ? strlen(*s) : 0, max);
    if (c->out) {
        st_strbuf_addn(c->out, *s, n);
        return;
    }
    if (c->bad || c->n - c->at < n || memchr(c->in + c->at, '\0', n)) {
        c->bad = true;
        return;
    }
    *s = st_arena_strndup(arena, c->in + c->at, n);
    c->at += n;
}

static void io_text(codec *c, st_arena *arena, const char **s)
{
    io_upto(c, arena, s, TEXT_MAX);
}

static void io_node_spec(codec *c, st_arena *arena, st_node_spec *n)
{
    io_text(c, arena, &n->name);
    IO_IN(c, n->pool, INT32_MIN, INT32_MAX);
    IO_IN(c, n->type, INT32_MIN, INT32_MAX);
    IO_IN(c, n->ndevs, INT32_MIN, INT32_MAX);
    IO_IN(c, n->nvlink_size, INT32_MIN, INT32_MAX);
    io_text(c, arena, &n->nvlink_domain);
    io_i64(c, &n->cpu_m);
    io_i64(c, &n->ram_mib);
    io_text(c, arena, &n->zone);
    io_text(c, arena, &n->block);
    io_text(c, arena, &n->rack);
}

static void io_account_spec(codec *c, st_arena *arena, st_account_spec *a)
{
    io_text(c, arena, &a->name);
    io_text(c, arena, &a->parent);
    io_quota(c, &a->guarantee);
    io_quota(c, &a->max);
    io_i64(c, &a->weight_m);
    IO_IN(c, a->priority, INT32_MIN, INT32_MAX);
    io_limits(c, &a->job_limits);
    io_limits(c, &a->user_limits);
    io_book_limits(c, &a->book_limits);
    IO_IN(c, a->trust, 0, ST_TRUST_UNTRUSTED);
    IO_BOOL(c, a->own_domain);
    io_i64(c, &a->min_run_ms);
    a->named = c->format < 3;
}

/* What keeps it from running besides room, and whether it is tried again. */
static void io_flow(codec *c, st_arena *arena, st_job_spec *j)
{
    size_t n = io_count(c, (size_t)ST_MAX(j->nafters, 0), ST_AFTER_MAX);
    st_await *afters = NULL;
    if (!c->out && n > 0 && !c->bad) {
        afters = st_arena_alloc(arena, n * sizeof *afters);
        j->afters = afters;
        j->nafters = (int)n;
    }
    for (size_t i = 0; i < n && !c->bad; i++) {
        st_await a = c->out ? j->afters[i] : (st_await){0};
        io_u64(c, &a.id);
        IO_IN(c, a.how, 0, ST_AFTER_COUNT - 1);
        IO_BOOL(c, a.array);
        if (!c->out)
            afters[i] = a;
    }
    IO_BOOL(c, j->keeps);
    IO_IN(c, j->held_by, INT32_MIN, INT32_MAX);
    io_u64(c, &j->array);
    IO_IN(c, j->throttle, INT32_MIN, INT32_MAX);
    IO_IN(c, j->retry.times, INT32_MIN, INT32_MAX);
    io_i64(c, &j->retry.wait_ms);
    io_i64(c, &j->retry.most_ms);
    IO_BOOL(c, j->retry.timeout);
}

static void io_job_spec(codec *c, st_arena *arena, st_job_spec *j)
{
    io_u64(c, &j->id);
    io_text(c, arena, &j->name);
    io_text(c, arena, &j->account);
    io_text(c, arena, &j->user);
    IO_IN(c, j->pool, INT32_MIN, INT32_MAX);
    IO_IN(c, j->tasks, INT32_MIN, INT32_MAX);
    io_shape(c, &j->shape);
    IO_IN(c, j->topo, 0, ST_TOPO_COUNT - 1);
    IO_BOOL(c, j->topo_required);
    IO_BOOL(c, j->latency_critical);
    IO_IN(c, j->priority, INT32_MIN, INT32_MAX);
    io_i64(c, &j->limit_ms);
    IO_IN(c, j->yield, 0, ST_YIELD_COUNT - 1);
    if (c->format >= 14)
        io_u64(c, &j->booking);
    if (c->format >= 15) {
        io_u64(c, &j->series);
        io_text(c, arena, &j->slot);
        io_i64(c, &j->begin_ms);
        io_i64(c, &j->end_by_ms);
    }
    if (c->format >= 16) {
        io_i64(c, &j->by_ms);
        IO_BOOL(c, j->hard);
        io_u64(c, &j->hold);
    }
    if (c->format >= 18)
        IO_BOOL(c, j->meek);
    if (c->format >= 21)
        IO_BOOL(c, j->fails);
    if (c->format >= 24)
        io_flow(c, arena, j);
    if (c->format >= 23)
        io_upto(c, arena, &j->nodes, ST_PICK_TEXT_MAX);
    if (c->format >= 25)
        io_i64(c, &j->grace_ms);
}

static void io_book(codec *c, st_arena *arena, st_event *ev)
{
    st_booking_spec *b = &ev->u.book.spec;
    io_u64(c, &b->id);
    io_u64(c, &b->series);
    io_text(c, arena, &b->name);
    io_text(c, arena, &b->account);
    io_text(c, arena, &b->user);
    IO_IN(c, b->pool, INT32_MIN, INT32_MAX);
    IO_IN(c, b->type, INT32_MIN, INT32_MAX);
    IO_IN(c, b->tasks, INT32_MIN, INT32_MAX);
    IO_IN(c, b->gpus, INT32_MIN, INT32_MAX);
    IO_IN(c, b->topo, 0, ST_TOPO_COUNT - 1);
    IO_BOOL(c, b->topo_required);
    io_i64(c, &b->cpu_m);
    io_i64(c, &b->ram_mib);
    io_i64(c, &b->no_show_ms);
    if (c->format >= 20) {
        io_upto(c, arena, &b->require, ST_LABELS_TEXT_MAX);
        IO_BOOL(c, b->dedicated);
    }
    if (c->format >= 25)
        io_book_parts(c, &b->parts);
    io_i64(c, &ev->u.book.hold_ms);
    IO_BOOL(c, ev->u.book.confirm);
    size_t n = io_count(c, (size_t)ST_MAX(ev->u.book.nwindows, 0), ST_WINDOWS_MAX);
    st_window *windows = NULL;
    if (!c->out && n > 0 && !c->bad) {
        windows = st_arena_alloc(arena, n * sizeof *windows);
        ev->u.book.windows = windows;
        ev->u.book.nwindows = (int)n;
    }
    for (size_t i = 0; i < n && !c->bad; i++) {
        st_window w = c->out ? ev->u.book.windows[i] : (st_window){0};
        io_i64(c, &w.from_ms);
        io_i64(c, &w.to_ms);
        if (!c->out)
            windows[i] = w;
    }
}

static void io_rebook(codec *c, st_event *ev)
{
    io_u64(c, &ev->u.rebook.id);
    io_i64(c, &ev->u.rebook.from_ms);
    io_i64(c, &ev->u.rebook.to_ms);
    IO_IN(c, ev->u.rebook.tasks, INT32_MIN, INT32_MAX);
    if (c->format >= 25)
        IO_IN(c, ev->u.rebook.parts, INT32_MIN, INT32_MAX);
}

static void io_relabel(codec *c, st_arena *arena, st_event *ev)
{
    IO_IN(c, ev->u.labels.node, INT32_MIN, INT32_MAX);
    io_upto(c, arena, &ev->u.labels.text, ST_LABELS_TEXT_MAX);
    IO_BOOL(c, ev->u.labels.force);
}

/* Without its words. */
static void io_finding(codec *c, st_finding *f)
{
    if (c->format < 21) {
        *f = (st_finding){.gpu = -1};
        return;
    }
    IO_IN(c, f->kind, 0, ST_FAULT_COUNT - 1);
    IO_IN(c, f->gpu, -1, ST_DEVS_MAX - 1);
    io_i64(c, &f->code);
}

static void io_node_state(codec *c, st_arena *arena, st_event *ev)
{
    IO_IN(c, ev->u.node_state.node, INT32_MIN, INT32_MAX);
    IO_IN(c, ev->u.node_state.state, 0, ST_NODE_STATE_COUNT - 1);
    if (c->format >= 14)
        IO_BOOL(c, ev->u.node_state.force);
    if (c->format >= 19) {
        IO_IN(c, ev->u.node_state.how, 0, ST_HOW_COUNT - 1);
        io_text(c, arena, &ev->u.node_state.by);
        io_text(c, arena, &ev->u.node_state.reason);
        io_i64(c, &ev->u.node_state.since_ms);
        IO_BOOL(c, ev->u.node_state.tests);
    }
    io_finding(c, &ev->u.node_state.finding);
    if (c->format >= 22) {
        io_i64(c, &ev->u.node_state.by_ms);
        IO_IN(c, ev->u.node_state.then, 0, ST_DRAIN_COUNT - 1);
    }
    if (c->format >= 26)
        IO_IN(c, ev->u.node_state.part, 0, ST_DEVS_MAX);
}

static void io_held(codec *c, st_event *ev)
{
    if (ev->kind == ST_EV_ARRAY) {
        io_u64(c, &ev->u.array.id);
        IO_IN(c, ev->u.array.throttle, INT32_MIN, INT32_MAX);
        return;
    }
    io_u64(c, &ev->u.hold.id);
    IO_BOOL(c, ev->u.hold.on);
    IO_IN(c, ev->u.hold.by, INT32_MIN, INT32_MAX);
}

static void io_finish(codec *c, st_event *ev)
{
    io_u64(c, &ev->u.finish.id);
    IO_BOOL(c, ev->u.finish.failed);
    if (c->format >= 24)
        IO_BOOL(c, ev->u.finish.final);
}

static void io_event(codec *c, st_arena *arena, st_event *ev)
{
    int64_t head = ev->kind | (int64_t)c->format << FORMAT_SHIFT;
    IO_IN(c, head, 0, (int64_t)(ST_CODEC_FORMAT + 1) << FORMAT_SHIFT);
    c->format = (int)(head >> FORMAT_SHIFT);
    ev->kind = (st_event_kind)(head & ((1 << FORMAT_SHIFT) - 1));
    if (ev->kind >= ST_EV_COUNT || c->format > ST_CODEC_FORMAT) {
        c->bad = true;
        return;
    }
    switch (ev->kind) {
    case ST_EV_TYPE:
        io_text(c, arena, &ev->u.type.name);
        io_i64(c, &ev->u.type.vram_mib);
        IO_IN(c, ev->u.type.board, 0, ST_BOARD_COUNT - 1);
        break;
    case ST_EV_POOL:
    case ST_EV_POOL_CHANGE:
        io_text(c, arena, &ev->u.pool.name);
        IO_IN(c, ev->u.pool.levels, 0, UINT32_MAX);
        io_i64(c, &ev->u.pool.oversub_m);
        io_pool_rules(c, &ev->u.pool.rules);
        if (c->format >= 17)
            IO_BOOL(c, ev->u.pool.force);
        break;
    case ST_EV_POOL_REMOVE:
        io_text(c, arena, &ev->u.pool.name);
        break;
    case ST_EV_NODE:
        io_node_spec(c, arena, &ev->u.node);
        break;
    case ST_EV_NODE_STATE:
    case ST_EV_AGENT:
        io_node_state(c, arena, ev);
        break;
    case ST_EV_TEST:
    case ST_EV_TESTED:
        IO_IN(c, ev->u.tested.node, INT32_MIN, INT32_MAX);
        io_i64(c, &ev->u.tested.test);
        IO_BOOL(c, ev->u.tested.passed);
        io_text(c, arena, &ev->u.tested.reason);
        io_finding(c, &ev->u.tested.finding);
        if (c->format >= 26)
            IO_IN(c, ev->u.tested.without, 0, UINT16_MAX);
        break;
    case ST_EV_LABELS:
        io_relabel(c, arena, ev);
        break;
    case ST_EV_ACCOUNT:
        io_account_spec(c, arena, &ev->u.account);
        break;
    case ST_EV_ACCOUNT_REMOVE:
        io_text(c, arena, &ev->u.account.name);
        break;
    case ST_EV_SUBMIT:
        io_job_spec(c, arena, &ev->u.job);
        break;
    case ST_EV_FINISH:
    case ST_EV_LATE:
        io_finish(c, ev);
        break;
    case ST_EV_INCIDENT:
    case ST_EV_CANCEL:
    case ST_EV_CHECKPOINTED:
    case ST_EV_UNSTARTED:
    case ST_EV_ABSENT:
        io_u64(c, &ev->u.id);
        break;
    case ST_EV_GONE:
        io_u64(c, &ev->u.gone.id);
        IO_BOOL(c, ev->u.gone.done);
        break;
    case ST_EV_PRIORITY:
        io_u64(c, &ev->u.priority.id);
        IO_IN(c, ev->u.priority.priority, INT32_MIN, INT32_MAX);
        break;
    case ST_EV_LIMIT:
        io_u64(c, &ev->u.limit.id);
        io_i64(c, &ev->u.limit.limit_ms);
        break;
    case ST_EV_BAR:
        io_u64(c, &ev->u.bar.id);
        IO_BOOL(c, ev->u.bar.on);
        io_i64(c, &ev->u.bar.notice_ms);
        break;
    case ST_EV_HOLD:
    case ST_EV_ARRAY:
        io_held(c, ev);
        break;
    case ST_EV_POLICY:
        io_policy(c, &ev->u.policy);
        IO_IN(c, ev->u.policy.counts, 0, INT32_MAX);
        IO_IN(c, ev->u.policy.order, 0, ST_ORDER_COUNT - 1);
        break;
    case ST_EV_TOLD:
        io_u64(c, &ev->u.told.id);
        io_i64(c, &ev->u.told.start_ms);
        break;
    case ST_EV_BRANCH:
        io_u64(c, &ev->u.branch.job);
        IO_IN(c, ev->u.branch.stay, 0, ST_STAY_MAX);
        IO_IN(c, ev->u.branch.serial, 0, INT64_MAX);
        break;
    case ST_EV_BOOK:
        io_book(c, arena, ev);
        break;
    case ST_EV_BOOK_CONFIRM:
    case ST_EV_BOOK_CANCEL:
        io_u64(c, &ev->u.booking.id);
        IO_BOOL(c, ev->u.booking.series);
        break;
    case ST_EV_BOOK_CHANGE:
        io_rebook(c, ev);
        break;
    case ST_EV_TIMER:
    case ST_EV_COUNT:
        break;
    }
}

void st_event_encode(const st_event *event, st_strbuf *out)
{
    codec c = {.out = out, .format = ST_CODEC_FORMAT};
    st_event copy = *event;
    io_event(&c, NULL, &copy);
}

int st_event_decode(const char *data, size_t len, size_t *at, st_arena *arena, st_event *ret,
                    st_err *err)
{
    codec c = {.in = data, .n = len, .at = *at};
    st_event ev = {0};
    io_event(&c, arena, &ev);
    if (c.bad)
        return st_fail(err, ST_EPARSE, "the event at byte %zu is damaged", *at);
    *at = c.at;
    *ret = ev;
    return 0;
}
