/* What events do to bookings (book.h). Every handler checks first and changes afterwards. */
#include "core/book.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "model/labels.h"

#define HOLD_MAX_MS INT64_C(3600000)

/* ---- the list ---------------------------------------------------------------------------- */

static size_t position(const st_core *core, uint64_t id)
{
    size_t lo = 0, hi = core->bookings.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (core->bookings.v[mid]->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

st_booking *st_book_find(const st_core *core, uint64_t id)
{
    size_t at = position(core, id);
    return at < core->bookings.n && core->bookings.v[at]->id == id ? core->bookings.v[at] : NULL;
}

const st_booking *st_core_booking(const st_core *core, uint64_t id)
{
    return st_book_find(core, id);
}

size_t st_core_nbookings(const st_core *core)
{
    return core->bookings.n;
}

const st_booking *st_core_booking_at(const st_core *core, size_t i)
{
    ST_ASSERT(i < core->bookings.n);
    return core->bookings.v[i];
}

void st_book_tell(st_core *core, const st_booking *b, st_booking_state state, st_effects *fx)
{
    st_effect e = st_fx_of(core, ST_FX_BOOKING, NULL);
    static const st_grant none[1];
    bool lives = state < ST_BOOKING_ENDED;
    bool degraded = lives && st_booking_degraded(b);
    e.other = b->id;
    e.account = b->account;
    e.booking_state = (int64_t)state | (degraded ? ST_BOOKING_DEGRADED : 0);
    e.until_ms = state == ST_BOOKING_QUOTED      ? b->hold_ms
                 : state == ST_BOOKING_CONFIRMED ? b->close_ms
                 : state == ST_BOOKING_PREPARING ? b->from_ms
                                                 : b->to_ms;
    st_fx(core, fx, e, lives && !degraded ? b->plan : none, lives && !degraded ? b->tasks : 0);
}

void st_book_insert(st_core *core, st_booking *take)
{
    st_vec_insert(&core->bookings, position(core, take->id), take);
    st_book_add_slots(core, take);
}

static size_t opened_at(const st_core *core, uint64_t id)
{
    size_t at = 0;
    while (at < core->opened.n && core->opened.v[at]->id < id)
        at++;
    return at;
}

void st_book_open(st_core *core, st_booking *b)
{
    if (b->open)
        return;
    b->open = true;
    st_vec_insert(&core->opened, opened_at(core, b->id), b);
}

/* Jobs that were to run in it are jobs like others, or wait for the next of their slot. */
static void free_jobs(st_core *core, const st_booking *b)
{
    for (size_t i = 0; i < core->jobs.n; i++)
        if (core->jobs.v[i]->booking == b->id)
            st_window_next(core, core->jobs.v[i]);
}

void st_book_drop(st_core *core, st_booking *b, st_booking_state state, st_effects *fx)
{
    size_t at = position(core, b->id);
    bool open = b->open;
    ST_ASSERT(core->bookings.v[at] == b);
    if (state != ST_BOOKING_STATE_COUNT)
        st_book_tell(core, b, state, fx);
    st_book_remove_slots(core, b);
    st_vec_remove(&core->bookings, at);
    if (open)
        st_vec_remove(&core->opened, opened_at(core, b->id));
    free_jobs(core, b);
    if (open)
        st_book_fence(core, b);
    st_book_spare(core, b, fx);
    st_booking_free(b);
    /* Who stayed burstable for it need not. */
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM | ST_CHANGED_STANDING);
}

void st_book_rebuild(st_core *core)
{
    for (size_t i = 0; i < core->bookings.n; i++) {
        st_booking *b = core->bookings.v[i];
        const st_job *job = b->job ? st_core_find(core, b->job) : NULL;
        b->needs = job ? job->shape.needs : 0;
        b->nodes = job ? job->shape.nodes : 0;
        st_book_add_slots(core, b);
    }
    bool floors_dirty = core->floors_dirty, settled = core->settled, freed = core->freed;
    bool stirred = core->stirred;
    for (size_t i = 0; i < core->bookings.n; i++) {
        if (!core->bookings.v[i]->open)
            continue;
        st_vec_push(&core->opened, core->bookings.v[i]);
        st_book_fence(core, core->bookings.v[i]);
    }
    st_book_promises(core);
    st_book_set_due(core);
    core->floors_dirty = floors_dirty;
    core->settled = settled;
    core->freed = freed;
    core->stirred = stirred;
}

/* ---- what may be asked for --------------------------------------------------------------- */

static bool has_labels(const st_booking_spec *spec)
{
    return spec->require && spec->require[0];
}

/* Slices and shares are booked as the GPUs that have room for them: what is left of the last one is the booker's too. */
static int check_parts(const st_core *core, const st_booking_spec *spec, int32_t account,
                       const char *name, st_err *err)
{
    const st_parts *p = &spec->parts;
    const st_gpu_type *type = &core->fleet->types.v[spec->type];
    if (p->level == ST_LEVEL_WHOLE)
        return p->n == 0 ? 0
                         : st_fail(err, ST_EINVAL, "booking %s: whole GPUs have no parts", name);
    if (p->level >= ST_LEVEL_COUNT || p->profile >= ST_MIG_COUNT || p->n < 1 ||
        p->share_m > ST_WHOLE_M)
        return st_fail(err, ST_ERANGE, "booking %s: its slices or shares are out of range", name);
    if (st_parts_per_gpu(type->board, p) == 0)
        return st_fail(err, ST_EINVAL, "booking %s: %s GPUs have no such slices", name, type->name);
    if (spec->dedicated)
        return st_fail(err, ST_EINVAL,
                       "booking %s: dedicated nodes are booked whole, not in slices or shares",
                       name);
    if (spec->gpus != 1 || spec->tasks != st_parts_gpus(type->board, p))
        return st_fail(err, ST_EINVAL, "booking %s: %d slices or shares are on %d GPUs", name, p->n,
                       st_parts_gpus(type->board, p));
    if (p->level != ST_LEVEL_MIG && st_tree_untrusted(core->tree, account))
        return st_fail(err, ST_EINVAL,
                       "booking %s: account %s is untrusted and gets whole GPUs or MIG slices, not "
                       "%s",
                       name, spec->account, st_level_name(p->level));
    return 0;
}

/* What no node has, or could have, is no question of time. */
static int check_config(const st_core *core, const st_booking_spec *spec, const char *name,
                        st_err *err)
{
    bool labelled = false, whole = false, divided = false;
    int most = 0;
    if (has_labels(spec) && !st_labels_ok(spec->require))
        return st_fail(err, ST_EINVAL, "booking %s: the labels it requires are not well-formed",
                       name);
    if (spec->dedicated && (spec->cpu_m > 0 || spec->ram_mib > 0))
        return st_fail(err, ST_EINVAL,
                       "booking %s: dedicated nodes come with all their CPU and RAM; leave out cpu "
                       "and ram",
                       name);
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (node->state == ST_NODE_REMOVED || node->type != spec->type ||
            (spec->pool >= 0 && node->pool != spec->pool))
            continue;
        bool has = st_labels_meet(node->labels, spec->require);
        labelled |= has;
        divided |= core->fleet->pools.v[node->pool].levels >> spec->parts.level & 1;
        whole |= has && node->ndevs == spec->gpus;
        most = ST_MAX(most, node->ndevs);
    }
    if (has_labels(spec) && !labelled) {
        ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
        st_labels_say(spec->require, &said);
        return st_fail(err, ST_ENOENT,
                       "booking %s: no node with %s GPUs has the labels %.200s; stint node show "
                       "says what a node has",
                       name, core->fleet->types.v[spec->type].name, st_strbuf_str(&said));
    }
    if (!divided && spec->parts.level != ST_LEVEL_WHOLE)
        return st_fail(err, ST_ENOENT,
                       "booking %s: no pool that it may have gives out level %s of %s", name,
                       st_level_name(spec->parts.level), core->fleet->types.v[spec->type].name);
    if (spec->dedicated && !whole)
        return st_fail(err, ST_EINVAL,
                       "booking %s: dedicated nodes are booked whole, with all %d GPUs of each",
                       name, most);
    return 0;
}

int st_book_from_spec(const st_core *core, const st_booking_spec *spec, st_booking *ret,
                      st_err *err)
{
    const char *name = spec->name ? spec->name : "";
    int32_t account = spec->account ? st_tree_find(core->tree, spec->account) : -1;
    if (!st_name_ok(name))
        return st_fail(err, ST_EINVAL, "a booking needs a name of letters, digits and -_.");
    if (account < 0)
        return st_fail(err, ST_ENOENT, "booking %s: account %s does not exist", name,
                       spec->account ? spec->account : "(none)");
    if (account == ST_ROOT)
        return st_fail(err, ST_EINVAL, "booking %s: the cluster itself books nothing", name);
    if (spec->type < 0 || (size_t)spec->type >= core->fleet->types.n)
        return st_fail(err, ST_EINVAL, "booking %s: it needs one GPU type", name);
    if (spec->pool < -1 || spec->pool >= (int32_t)core->fleet->pools.n ||
        (spec->pool >= 0 && !st_pool_there(&core->fleet->pools.v[spec->pool])))
        return st_fail(err, ST_ENOENT, "booking %s: its pool does not exist", name);
    if (spec->tasks < 1 || spec->tasks > ST_TASKS_MAX || spec->gpus < 1 || spec->gpus > ST_DEVS_MAX)
        return st_fail(err, ST_ERANGE,
                       "booking %s: 1 to %d tasks with 1 to %d GPUs each can be booked", name,
                       ST_TASKS_MAX, ST_DEVS_MAX);
    if (spec->cpu_m < 0 || spec->cpu_m > ST_QTY_MAX || spec->ram_mib < 0 ||
        spec->ram_mib > ST_QTY_MAX || spec->no_show_ms < 0 ||
        (spec->no_show_ms > ST_LIMIT_MAX_MS && spec->no_show_ms != ST_TIME_NEVER) ||
        spec->topo >= ST_TOPO_COUNT)
        return st_fail(err, ST_ERANGE, "booking %s: CPU, RAM, topology or no-show is out of range",
                       name);
    if (core->policy.as_if_alone)
        return st_fail(err, ST_ESTATE,
                       "booking %s: with the policy as_if_alone nothing can be booked", name);
    int rc = check_parts(core, spec, account, name, err);
    if (rc == 0)
        rc = check_config(core, spec, name, err);
    if (rc < 0)
        return rc;
    *ret = (st_booking){.id = spec->id,
                        .series = spec->series,
                        .account = account,
                        .user = -1,
                        .pool = spec->pool,
                        .type = spec->type,
                        .tasks = spec->tasks,
                        .gpus = spec->gpus,
                        .topo = spec->topo,
                        .topo_required = spec->topo != ST_TOPO_NONE && spec->topo_required,
                        .cpu_m = spec->cpu_m,
                        .ram_mib = spec->ram_mib,
                        /* the spec's own, until somebody keeps the booking */
                        .require = (char *)(uintptr_t)(has_labels(spec) ? spec->require : NULL),
                        .dedicated = spec->dedicated,
                        .parts = spec->parts,
                        .no_show_ms = spec->no_show_ms,
                        .made_ms = core->now};
    return 0;
}

static int32_t reader_of(const st_core *core, const char *reader)
{
    return reader ? st_tree_find(core->tree, reader) : ST_ROOT;
}

static int fail_clash(const st_core *core, const char *name, const st_book_quote *q, int at,
                      int32_t reader, st_err *err)
{
    char need[ST_FMT_MAX], have[ST_FMT_MAX], over[ST_BOOK_OVER_TEXT];
    switch (q->why) {
    case ST_BOOK_QUOTA:
        return st_fail(err, ST_ELIMIT, "booking %s: window %d: %s", name, at + 1,
                       st_core_book_over_text(core, &q->over, reader, over));
    case ST_BOOK_PAST:
        return st_fail(err, ST_EINVAL, "booking %s: window %d begins in the past", name, at + 1);
    case ST_BOOK_LENGTH:
        return st_fail(err, ST_ERANGE,
                       "booking %s: window %d ends before it begins, or is longer than the policy "
                       "booking_length",
                       name, at + 1);
    case ST_BOOK_HORIZON:
        return st_fail(err, ST_ERANGE,
                       "booking %s: window %d begins further ahead than the policy booking_horizon",
                       name, at + 1);
    case ST_BOOK_PLACE:
        return st_fail(err, ST_EOVER,
                       "booking %s: window %d: no place of this shape is free for all of it", name,
                       at + 1);
    default:
        st_fmt_milli(need, q->need_m);
        st_fmt_milli(have, q->have_m);
        return st_fail(err, ST_EOVER,
                       "booking %s: window %d does not fit (%s): too little is left beside what is "
                       "guaranteed and booked",
                       name, at + 1, st_book_why_name(q->why));
    }
}

/* ---- making ------------------------------------------------------------------------------ */

static void set_state(st_core *core, st_booking *b, st_booking_state state, st_effects *fx)
{
    b->state = state;
    st_book_tell(core, b, state, fx);
}

void st_book_open_soon(st_core *core, st_booking *b)
{
    if (b->close_ms > core->now)
        return;
    st_book_open(core, b);
    st_book_fence(core, b);
}

int st_core_book(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    const st_booking_spec *spec = &ev->u.book.spec;
    int n = ev->u.book.nwindows;
    st_booking like;
    int rc = st_book_from_spec(core, spec, &like, err);
    if (rc < 0)
        return rc;
    if (n < 1 || n > ST_WINDOWS_MAX)
        return st_fail(err, ST_ERANGE, "booking %s: 1 to %d windows can be booked at once, not %d",
                       spec->name, ST_WINDOWS_MAX, n);
    if (spec->id == 0 || spec->id >= ST_BOOKING_BIT || (n > 1 && spec->series == 0))
        return st_fail(err, ST_EINVAL, "booking %s: its number is out of range", spec->name);
    if (ev->u.book.hold_ms < 0 || ev->u.book.hold_ms > HOLD_MAX_MS)
        return st_fail(err, ST_ERANGE, "booking %s: a quote is held for at most an hour",
                       spec->name);
    for (int i = 0; i < n; i++)
        if (st_book_find(core, spec->id + (uint64_t)i))
            return st_fail(err, ST_EEXIST, "booking %" PRIu64 " exists already",
                           spec->id + (uint64_t)i);
    ST_VEC(st_booking *) made = {0};
    for (int i = 0; rc == 0 && i < n; i++) {
        st_book_quote q;
        st_booking *b = st_xmalloc(sizeof *b);
        *b = like;
        b->id += (uint64_t)i;
        b->name = st_xstrdup(spec->name);
        b->require = like.require ? st_xstrdup(like.require) : NULL;
        if (st_book_fit(core, b, ev->u.book.windows[i], NULL, &q) == ST_BOOK_OK) {
            st_book_insert(core, b);
            st_vec_push(&made, b);
        } else {
            rc = fail_clash(core, spec->name, &q, i, reader_of(core, spec->reader), err);
            st_booking_free(b);
        }
    }
    for (size_t i = made.n; rc < 0 && i-- > 0;) {
        st_book_remove_slots(core, made.v[i]);
        st_vec_remove(&core->bookings, position(core, made.v[i]->id));
        st_booking_free(made.v[i]);
    }
    int32_t user = rc == 0 && spec->user ? st_tree_user(core->tree, spec->user) : -1;
    int64_t hold_ms = core->now + ev->u.book.hold_ms;
    for (size_t i = 0; i < made.n && rc == 0; i++)
        hold_ms = ST_MIN(hold_ms, made.v[i]->close_ms > core->now ? made.v[i]->close_ms
                                                                  : made.v[i]->from_ms);
    for (size_t i = 0; rc == 0 && i < made.n; i++) {
        st_booking *b = made.v[i];
        b->user = user;
        b->hold_ms = hold_ms; /* a series lapses whole */
        st_book_open_soon(core, b);
        set_state(core, b, ev->u.book.confirm ? ST_BOOKING_CONFIRMED : ST_BOOKING_QUOTED, fx);
    }
    st_vec_free(&made);
    if (rc == 0)
        st_book_set_due(core);
    return rc;
}

/* ---- one that is there ------------------------------------------------------------------- */

static bool is_named(const st_event *ev, const st_booking *b)
{
    return ev->u.booking.series ? b->series == ev->u.booking.id : b->id == ev->u.booking.id;
}

static int fail_unknown(uint64_t id, st_err *err)
{
    return st_fail(err, ST_ENOENT, "booking %" PRIu64 " does not exist, or is over", id);
}

int st_core_book_confirm(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    bool any = false, found = false;
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        found |= is_named(ev, b);
        any |= is_named(ev, b) && b->state == ST_BOOKING_QUOTED && b->hold_ms > core->now;
    }
    if (!found)
        return fail_unknown(ev->u.booking.id, err);
    if (!any)
        return st_fail(err, ST_ESTATE, "booking %" PRIu64 " was confirmed before",
                       ev->u.booking.id);
    for (size_t i = 0; i < core->bookings.n; i++) {
        st_booking *b = core->bookings.v[i];
        if (is_named(ev, b) && b->state == ST_BOOKING_QUOTED)
            set_state(core, b, ST_BOOKING_CONFIRMED, fx);
    }
    st_book_set_due(core);
    return 0;
}

static int fail_kept(const st_booking *b, st_err *err)
{
    return st_fail(err, ST_ESTATE,
                   "booking %s is kept for the deadline of a job and goes with it; cancel the job",
                   b->name);
}

/* Those inside leave as at its end. */
static bool end_now(st_core *core, st_booking *b)
{
    for (size_t i = 0; i < core->placed.n; i++)
        if (core->placed.v[i]->class == ST_CLASS_BOOKED && core->placed.v[i]->booking == b->id)
            return false;
    for (size_t i = 0; i < core->jobs.n; i++)
        if (core->jobs.v[i]->held && core->jobs.v[i]->booking == b->id)
            return false;
    return true;
}

/* Who was promised a place in it is not any more. */
static void unhold_inside(st_core *core, const st_booking *b, st_effects *fx)
{
    for (size_t i = 0; i < core->jobs.n; i++)
        if (core->jobs.v[i]->held && core->jobs.v[i]->booking == b->id)
            st_core_unhold(core, core->jobs.v[i], fx);
}

int st_core_book_cancel(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    bool found = false;
    for (size_t i = 0; i < core->bookings.n; i++)
        found |= is_named(ev, core->bookings.v[i]) && !core->bookings.v[i]->over;
    if (!found)
        return fail_unknown(ev->u.booking.id, err);
    const st_booking *one = ev->u.booking.series ? NULL : st_book_find(core, ev->u.booking.id);
    if (one && one->job)
        return fail_kept(one, err);
    for (size_t i = core->bookings.n; i-- > 0;) {
        st_booking *b = core->bookings.v[i];
        if (!is_named(ev, b) || b->over)
            continue;
        if (b->from_ms > core->now) /* nobody is inside yet */
            unhold_inside(core, b, fx);
        if (b->from_ms > core->now || end_now(core, b)) {
            st_book_drop(core, b, ST_BOOKING_CANCELLED, fx);
            continue;
        }
        /* Somebody is inside: it ends after their notice. */
        int64_t end_ms = core->now + core->policy.notice_ms;
        if (b->to_ms > end_ms) {
            st_book_remove_slots(core, b);
            b->to_ms = end_ms;
            b->clear_ms = end_ms + st_core_book_tail_ms(core);
            st_book_add_slots(core, b);
            st_book_tell(core, b, b->state, fx);
        }
    }
    st_book_set_due(core);
    return 0;
}

/* Longer where it is, if that is free: nobody inside moves. */
static bool fits_in_place(const st_core *core, const st_booking *b, const st_window w)
{
    int64_t clear_ms = w.to_ms + st_core_book_tail_ms(core);
    for (int t = 0; t < b->tasks; t++) {
        if (b->plan[t].node < 0)
            return false;
        st_slots_use use = st_slots_in(core->slots, b->plan[t].node, b->from_ms, clear_ms, b->id);
        if (use.devs & b->plan[t].devs)
            return false;
    }
    return true;
}

static int change_open(st_core *core, st_booking *b, st_window w, int tasks, int32_t reader,
                       st_effects *fx, st_err *err)
{
    st_book_quote q = {.why = ST_BOOK_QUOTA};
    if (w.from_ms != b->from_ms || tasks != b->tasks)
        return st_fail(err, ST_ESTATE, "booking %s is %s: only its end can be changed", b->name,
                       st_booking_state_name(b->state));
    if (w.to_ms <= ST_MAX(core->now, w.from_ms) ||
        w.to_ms - w.from_ms > core->policy.booking_length_ms)
        return st_fail(
            err, ST_ERANGE,
            "booking %s: its end must be ahead and behind its beginning, and within the policy "
            "booking_length",
            b->name);
    if (w.to_ms > b->to_ms && st_book_over_limit(core, b, w, NULL, &q.over))
        return fail_clash(core, b->name, &q, 0, reader, err);
    if (w.to_ms > b->to_ms) {
        st_booked_vec rows = {0};
        st_carrier c;
        st_book_carrier(core, &c);
        st_book_list(core, b->id, b->clear_ms, w.to_ms + st_core_book_tail_ms(core), &rows);
        st_booked row = st_book_row(b);
        row.to_ms = w.to_ms + st_core_book_tail_ms(core);
        st_vec_push(&rows, row);
        st_tight tight = st_promises_check(&c, &rows, b->clear_ms, row.to_ms);
        st_vec_free(&rows);
        if (tight.why != ST_TIGHT_NOT || !fits_in_place(core, b, w))
            return st_fail(err, ST_EOVER,
                           "booking %s cannot be extended: its GPUs are booked or guaranteed to "
                           "others behind it",
                           b->name);
    }
    st_book_remove_slots(core, b);
    b->to_ms = w.to_ms;
    b->clear_ms = w.to_ms + st_core_book_tail_ms(core);
    b->told = false;
    st_book_add_slots(core, b);
    st_book_spare(core, b, fx); /* those inside who were told that it ends */
    st_book_tell(core, b, b->state, fx);
    return 0;
}

/* Another of the series may come first now. */
static void order_slot(st_core *core, uint64_t series)
{
    for (size_t i = 0; series && i < core->jobs.n; i++)
        if (core->jobs.v[i]->series == series && core->jobs.v[i]->class == ST_CLASS_NONE)
            st_window_next(core, core->jobs.v[i]);
}

/* So many slices or shares as the tasks have room for. */
static int resize(const st_core *core, const st_booking *b, int n, int tasks, st_parts *parts,
                  st_err *err)
{
    if (n == 0 && (b->parts.level == ST_LEVEL_WHOLE || tasks == b->tasks))
        return 0;
    parts->n = n;
    if (b->parts.level == ST_LEVEL_WHOLE || n < 1 ||
        tasks != st_parts_gpus(core->fleet->types.v[b->type].board, parts))
        return st_fail(err, ST_EINVAL,
                       "booking %s: the number of its GPUs is not that of its slices or shares",
                       b->name);
    return 0;
}

int st_core_book_change(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_booking *b = st_book_find(core, ev->u.rebook.id);
    st_window w = {ev->u.rebook.from_ms, ev->u.rebook.to_ms};
    int tasks = ev->u.rebook.tasks, rc = 0;
    if (!b || b->over)
        return fail_unknown(ev->u.rebook.id, err);
    if (b->job)
        return fail_kept(b, err);
    if (tasks < 1 || tasks > ST_TASKS_MAX)
        return st_fail(err, ST_ERANGE, "booking %s: 1 to %d tasks can be booked", b->name,
                       ST_TASKS_MAX);
    int32_t reader = reader_of(core, ev->u.rebook.reader);
    st_parts parts = b->parts;
    rc = resize(core, b, ev->u.rebook.parts, tasks, &parts, err);
    if (rc < 0)
        return rc;
    if (b->open) {
        rc = change_open(core, b, w, tasks, reader, fx, err);
        if (rc == 0)
            b->parts = parts; /* as many as its GPUs have room for */
    } else {
        /* The same booking, made anew beside all others. */
        st_booking other = *b;
        st_book_quote q;
        other.tasks = tasks;
        other.parts = parts;
        other.plan = NULL;
        st_book_remove_slots(core, b);
        if (st_book_fit(core, &other, w, NULL, &q) != ST_BOOK_OK) {
            st_book_add_slots(core, b);
            free(other.plan);
            return fail_clash(core, b->name, &q, 0, reader, err);
        }
        free(b->plan);
        *b = other;
        st_book_add_slots(core, b);
        st_book_open_soon(core, b);
        st_book_tell(core, b, b->state, fx);
    }
    if (rc == 0) {
        st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
        st_book_set_due(core);
        order_slot(core, b->series);
    }
    return rc;
}

/* ---- others' events ---------------------------------------------------------------------- */

int st_book_check_account(const st_core *core, const st_account_spec *spec, st_err *err)
{
    if (core->bookings.n == 0 || st_tree_check(core->tree, spec, NULL) < 0)
        return 0;
    st_booked_vec rows = {0};
    st_carrier c;
    st_book_carrier(core, &c);
    st_book_list(core, 0, core->now, ST_TIME_NEVER, &rows);
    st_tight before = st_promises_check(&c, &rows, core->now, ST_TIME_NEVER);
    c.spec = spec;
    st_tight after = st_promises_check(&c, &rows, core->now, ST_TIME_NEVER);
    st_vec_free(&rows);
    if (after.why == ST_TIGHT_NOT || before.why != ST_TIGHT_NOT)
        return 0;
    char need[ST_FMT_MAX], have[ST_FMT_MAX];
    st_fmt_milli(need, after.need);
    st_fmt_milli(have, after.have);
    return st_fail(err, ST_EOVER,
                   "account %s: with this guarantee bookings could not be delivered: %s would be "
                   "needed where there are %s; cancel bookings first, or guarantee less",
                   spec->name, need, have);
}

int st_book_check_submit(const st_core *core, const st_job_spec *spec, int32_t account, st_err *err)
{
    const st_booking *b = st_book_find(core, spec->booking);
    if (!b || b->over || b->job || !st_tree_within(core->tree, account, b->account))
        return st_fail(err, ST_ENOENT, "job %s: booking %" PRIu64 " does not exist, or is over",
                       spec->name, spec->booking);
    if (spec->shape.gpus == 0 || (spec->shape.types && !(spec->shape.types >> b->type & 1)))
        return st_fail(err, ST_EINVAL, "job %s: booking %s has GPUs of another type", spec->name,
                       b->name);
    const st_parts parts = {.level = spec->shape.level,
                            .profile = spec->shape.profile,
                            .share_m = spec->shape.share_m,
                            .n = spec->tasks};
    int64_t needs = (int64_t)spec->tasks * spec->shape.gpus;
    if (parts.level == ST_LEVEL_TIME) /* as far as the pool crowds its GPUs */
        needs = 1;
    else if (parts.level != ST_LEVEL_WHOLE)
        needs = st_parts_gpus(core->fleet->types.v[b->type].board, &parts);
    if (needs > (int64_t)b->tasks * b->gpus)
        return st_fail(err, ST_EQUOTA, "job %s: asks for more GPUs than booking %s has", spec->name,
                       b->name);
    return 0;
}
