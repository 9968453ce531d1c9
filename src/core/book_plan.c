/* Where bookings will be: plans, the slots they are kept in, and fences (book.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/book.h"
#include "model/labels.h"

#define CHOICE    2 /* times the tasks of a booking is enough to choose from */
#define MOVES_MAX 8 /* plans that make way for one job */

/* ---- slots and fences -------------------------------------------------------------------- */

static int64_t part_of(const st_booking *b, int64_t all, const st_node *node, const st_grant *g)
{
    return b->dedicated ? all : all / node->ndevs * __builtin_popcount(g->devs);
}

int64_t st_book_cpu_m(const st_core *core, const st_booking *b, const st_grant *g)
{
    const st_node *node = core->fleet->nodes.v[g->node];
    return b->cpu_m > 0 ? b->cpu_m : part_of(b, node->cpu_m, node, g);
}

int64_t st_book_ram_mib(const st_core *core, const st_booking *b, const st_grant *g)
{
    const st_node *node = core->fleet->nodes.v[g->node];
    return b->ram_mib > 0 ? b->ram_mib : part_of(b, node->ram_mib, node, g);
}

void st_book_add_up(const st_core *core, st_booking *b)
{
    b->all_cpu_m = b->all_ram_mib = 0;
    for (int t = 0; t < b->tasks; t++) {
        if (b->plan[t].node < 0)
            continue;
        b->all_cpu_m += st_book_cpu_m(core, b, &b->plan[t]);
        b->all_ram_mib += st_book_ram_mib(core, b, &b->plan[t]);
    }
}

void st_book_add_slots(st_core *core, st_booking *b)
{
    st_book_add_up(core, b);
    for (int t = 0; t < b->tasks; t++) {
        const st_grant *g = &b->plan[t];
        if (g->node < 0)
            continue;
        st_slots_add(core->slots, g->node,
                     (st_slot){.booking = b->id,
                               .close_ms = b->close_ms,
                               .from_ms = b->from_ms,
                               .clear_ms = b->clear_ms,
                               .cpu_m = st_book_cpu_m(core, b, g),
                               .ram_mib = st_book_ram_mib(core, b, g),
                               .devs = g->devs});
    }
}

void st_book_remove_slots(st_core *core, const st_booking *b)
{
    for (int t = 0; t < b->tasks; t++)
        if (b->plan[t].node >= 0)
            st_slots_remove(core->slots, b->plan[t].node, b->id);
}

void st_book_fence_node(st_core *core, int32_t id)
{
    st_node *node = core->fleet->nodes.v[id];
    const st_slot_vec *v = st_slots_of(core->slots, id);
    uint16_t fence = 0;
    int64_t cpu_m = 0, ram_mib = 0;
    for (size_t i = 0; v && i < v->n; i++) {
        if (!st_book_find(core, v->v[i].booking)->open)
            continue;
        fence |= v->v[i].devs;
        cpu_m += v->v[i].cpu_m;
        ram_mib += v->v[i].ram_mib;
    }
    cpu_m = ST_MIN(cpu_m, node->cpu_m);
    ram_mib = ST_MIN(ram_mib, node->ram_mib);
    if (node->fence == fence && node->fence_cpu_m == cpu_m && node->fence_ram_mib == ram_mib)
        return;
    node->fence = fence;
    node->fence_cpu_m = cpu_m;
    node->fence_ram_mib = ram_mib;
    st_node_refresh(core->fleet, core->tree, node);
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM | ST_CHANGED_WAITING);
    st_core_retime_all(core);
}

void st_book_fence(st_core *core, const st_booking *b)
{
    for (int t = 0; t < b->tasks; t++)
        if (b->plan[t].node >= 0 && (t == 0 || b->plan[t].node != b->plan[t - 1].node))
            st_book_fence_node(core, b->plan[t].node);
}

void st_book_promises(st_core *core)
{
    st_booked_vec open = {0};
    st_vec_clear(&core->tree->promised);
    for (size_t i = 0; i < core->opened.n; i++)
        st_vec_push(&open, st_book_row(core->opened.v[i]));
    if (open.n > 0) {
        st_vec_reserve(&core->tree->promised, core->tree->accounts.n);
        core->tree->promised.n = core->tree->accounts.n;
        st_promises_left(core->tree, (int)core->fleet->types.n, &open, core->tree->promised.v);
    }
    st_vec_free(&open);
}

/* ---- finding a place --------------------------------------------------------------------- */

/* Whether it is there for good, or may be let stay. */
static bool may_stay(const st_job *job)
{
    return job->state == ST_JOB_RUNNING || job->state == ST_JOB_NOTIFIED || job->held;
}

/* Whether a job is still on its devices when the booking needs them, whatever it is told. */
static bool is_stuck(const st_core *core, const st_booking *b, const st_job *job)
{
    if (job->class == ST_CLASS_BOOKED)
        return false; /* slots tell */
    if (may_stay(job) && job->class == ST_CLASS_GUARANTEED && !ST_BROKEN(BOOK_CLEAR))
        return st_job_end_ms(job, core->now) > b->close_ms;
    bool soon = b->from_ms - st_core_book_lead_ms(core) < core->now && !b->open;
    return soon && st_job_on_devices(job) && st_core_release_ms(core, job) > b->from_ms;
}

typedef struct left {
    uint16_t devs;
    int64_t cpu_m, ram_mib;
} left;

static void take(left *l, uint16_t devs, int64_t cpu_m, int64_t ram_mib)
{
    l->devs &= (uint16_t)~devs;
    l->cpu_m -= cpu_m;
    l->ram_mib -= ram_mib;
}

/* What a node has left for the booking in its window. */
static left left_of(const st_core *core, const st_booking *b, const st_book_also *also,
                    const uint8_t *only, const st_node *node)
{
    left l = {(uint16_t)((1u << node->ndevs) - 1), node->cpu_m, node->ram_mib};
    l.devs &= (uint16_t)~node->out;
    st_slots_use use = st_slots_in(core->slots, node->id, b->from_ms, b->clear_ms, b->id);
    take(&l, use.devs, use.cpu_m, use.ram_mib);
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_resident *r = &node->residents.v[i];
        if (also && r->job == also->job)
            continue;
        if (is_stuck(core, b, r->job))
            take(&l, r->job->grants[r->task].devs, r->job->shape.cpu_m, r->job->shape.ram_mib);
    }
    for (int t = 0; also && t < also->job->tasks; t++)
        if (also->grants[t].node == node->id)
            take(&l, also->grants[t].devs, also->job->shape.cpu_m, also->job->shape.ram_mib);
    for (int t = 0; only && t < b->tasks; t++)
        if (!only[t] && b->plan[t].node == node->id)
            take(&l, b->plan[t].devs, st_book_cpu_m(core, b, &b->plan[t]),
                 st_book_ram_mib(core, b, &b->plan[t]));
    return l;
}

static int room_of(const st_booking *b, const st_node *node, const left *l)
{
    int64_t cpu_m = b->cpu_m > 0 ? b->cpu_m : node->cpu_m / node->ndevs * b->gpus;
    int64_t ram_mib = b->ram_mib > 0 ? b->ram_mib : node->ram_mib / node->ndevs * b->gpus;
    if (b->dedicated && (l->cpu_m < node->cpu_m || l->ram_mib < node->ram_mib))
        return 0;
    int64_t n = __builtin_popcount(l->devs) / b->gpus;
    if (cpu_m > 0)
        n = ST_MIN(n, l->cpu_m / cpu_m);
    if (ram_mib > 0)
        n = ST_MIN(n, l->ram_mib / ram_mib);
    return (int)ST_MAX(n, 0);
}

static bool is_able(const st_core *core, const st_booking *b, const st_node *node)
{
    bool labelled = b->over || st_labels_meet(node->labels, b->require) || ST_BROKEN(BOOK_LABELS);
    st_level level = ST_BROKEN(BOOK_PARTS) ? ST_LEVEL_WHOLE : b->parts.level;
    return node->state == ST_NODE_READY && node->type == b->type && node->ndevs >= b->gpus &&
           (!b->dedicated || node->ndevs == b->gpus) && labelled &&
           (b->pool < 0 || node->pool == b->pool) &&
           (b->needs & ~st_pool_gives(&core->fleet->pools.v[node->pool].rules)) == 0 &&
           st_fleet_picks(core->fleet, b->nodes, node) &&
           (core->fleet->pools.v[node->pool].levels >> level & 1);
}

/* Whether a task may keep its place. */
static bool may_keep(const st_core *core, const st_booking *b, const st_grant *g)
{
    const st_node *node = core->fleet->nodes.v[g->node];
    return is_able(core, b, node) && (!(node->out & g->devs) || b->over);
}

/* The first devices, as many as there is CPU and RAM for: who places counts GPUs alone. */
static void keep_first(left *l, int n)
{
    uint16_t devs = 0;
    for (; n > 0 && l->devs; n--) {
        devs |= l->devs & (uint16_t)-l->devs;
        l->devs &= (uint16_t)(l->devs - 1);
    }
    l->devs = devs;
}

static void outline(const st_node *node, const left *l, st_view *ret)
{
    for (int d = 0; d < ST_DEVS_MAX; d++)
        ret->dev[d] = (st_dev){.mode = l->devs >> d & 1 ? ST_DEV_FREE : ST_DEV_WHOLE,
                               .owner = ST_OWNER_NONE,
                               .domain = ST_OWNER_NONE};
    ret->cpu_free_m = ST_MAX(l->cpu_m, 0);
    ret->ram_free_mib = ST_MAX(l->ram_mib, 0);
    st_view_seal(node, ret);
}

/* Pools that the booking would be too much for. */
static uint64_t full_pools(const st_core *core, const st_booking *b)
{
    uint64_t full = 0;
    st_book_over over;
    _Static_assert(ST_POOLS_MAX <= 64, "a bit for each pool");
    for (int32_t p = 0; p < (int32_t)core->fleet->pools.n; p++)
        if (st_pool_there(&core->fleet->pools.v[p]) && st_book_over_pool(core, b, p, &over))
            full |= UINT64_C(1) << p;
    return full;
}

bool st_book_find_plan(st_core *core, const st_booking *b, const st_book_also *also,
                       const uint8_t *only, bool anywhere, st_grant *ret)
{
    uint64_t full = anywhere ? 0 : full_pools(core, b);
    st_job like = {.account = b->account,
                   .pool = b->pool,
                   .tasks = b->tasks,
                   .shape = {.types = 1u << b->type, .level = ST_LEVEL_WHOLE, .gpus = b->gpus},
                   .topo = b->topo,
                   .topo_required = b->topo_required,
                   .type = -1};
    for (int t = 0; only && t < b->tasks; t++)
        like.tasks -= !only[t];
    st_rooms *rooms = st_rooms_blank(core->placer, &like, b->type);
    /* Jobs fill the first nodes first, so bookings begin with the last; and where any place will do, a few to choose from
     * are enough. */
    int64_t total = 0, enough = like.topo == ST_TOPO_NONE ? CHOICE * like.tasks : INT64_MAX;
    st_whatif_begin(core, ST_WHEN_EITHER);
    for (size_t i = core->fleet->nodes.n; i-- > 0 && total < enough;) {
        const st_node *node = core->fleet->nodes.v[i];
        if (!is_able(core, b, node) || full >> node->pool & 1)
            continue;
        left l = left_of(core, b, also, only, node);
        int room = room_of(b, node, &l);
        if (room == 0)
            continue;
        st_view view;
        keep_first(&l, room * b->gpus);
        outline(node, &l, &view);
        st_whatif_set(core, node, &view, NULL);
        st_rooms_put(core->placer, rooms, node, ST_MIN(room, like.tasks));
        total += room;
    }
    st_ask ask = {.job = &like,
                  .type = b->type,
                  .plain = true,
                  .rooms = rooms,
                  .view = st_book_seen,
                  .ctx = core};
    return total >= like.tasks && st_place_gang(core->placer, &ask, ret);
}

/* ---- who may be there -------------------------------------------------------------------- */

/* CPU and RAM on the node of those who stay, and of the job with what it is to have there. */
static left staying(const st_core *core, const st_node *node, const st_slot *s, const st_job *job,
                    const st_grant *grants)
{
    left l = {0};
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_job *other = node->residents.v[i].job;
        if (other != job && may_stay(other) && other->class == ST_CLASS_GUARANTEED &&
            st_job_end_ms(other, core->now) > s->close_ms) {
            l.cpu_m += other->shape.cpu_m;
            l.ram_mib += other->shape.ram_mib;
        }
    }
    for (int t = 0; t < job->tasks; t++) {
        if (grants[t].node == node->id) {
            l.cpu_m += job->shape.cpu_m;
            l.ram_mib += job->shape.ram_mib;
        }
    }
    return l;
}

/* Whether a slot is in the way of the job's task. */
static bool in_the_way(const st_core *core, const st_slot *s, const st_job *job,
                       const st_grant *grants, int t, int64_t end_ms)
{
    const st_node *node = core->fleet->nodes.v[grants[t].node];
    if (s->close_ms >= end_ms || s->clear_ms <= core->now || s->booking == job->booking)
        return false;
    if (s->devs & grants[t].devs)
        return true;
    st_slots_use use = st_slots_in(core->slots, node->id, s->from_ms, s->from_ms + 1, job->booking);
    left l = staying(core, node, s, job, grants);
    return l.cpu_m + use.cpu_m > node->cpu_m || l.ram_mib + use.ram_mib > node->ram_mib;
}

/* ---- moving ------------------------------------------------------------------------------ */

typedef struct move {
    st_booking *b;
    st_grant *old;
} move;

typedef ST_VEC(move) moves;

static bool has_move(const moves *m, const st_booking *b)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].b == b)
            return true;
    return false;
}

/* Takes the plan away, to be put back or replaced. */
static void begin_move(st_core *core, moves *m, st_booking *b)
{
    size_t size = (size_t)b->tasks * sizeof *b->plan;
    st_grant *old = st_xmalloc(size);
    memcpy(old, b->plan, size);
    st_vec_push(m, (move){b, old});
    st_book_remove_slots(core, b);
}

static void put_back(st_core *core, moves *m)
{
    for (size_t i = m->n; i-- > 0;) {
        st_book_remove_slots(core, m->v[i].b);
        memcpy(m->v[i].b->plan, m->v[i].old, (size_t)m->v[i].b->tasks * sizeof(st_grant));
        free(m->v[i].old);
    }
    for (size_t i = 0; i < m->n; i++)
        st_book_add_slots(core, m->v[i].b);
    st_vec_free(m);
}

/* The new plans hold: fences follow, and who is there now is told. */
static void finish(st_core *core, moves *m, st_effects *fx)
{
    for (size_t i = 0; i < m->n; i++) {
        st_booking *b = m->v[i].b;
        for (int t = 0; t < b->tasks; t++)
            if (m->v[i].old[t].node >= 0)
                st_book_fence_node(core, m->v[i].old[t].node);
        free(m->v[i].old);
        st_book_tell(core, b, b->state, fx);
        if (!b->open)
            continue;
        b->moved = true;
        st_book_fence(core, b);
        st_book_clear_out(core, b, fx);
    }
    st_vec_free(m);
}

bool st_book_make_way(st_core *core, const st_job *job, const st_grant *grants, st_effects *fx)
{
    int64_t end_ms = st_job_end_ms(job, core->now);
    if (core->bookings.n == 0 || ST_BROKEN(BOOK_CLEAR))
        return true;
    moves m = {0};
    bool ok = true;
    for (int t = 0; t < job->tasks && ok; t++) {
        const st_slot_vec *v = st_slots_of(core->slots, grants[t].node);
        for (size_t i = 0; ok && v && i < v->n; i++) {
            if (!in_the_way(core, &v->v[i], job, grants, t, end_ms))
                continue;
            st_booking *b = st_book_find(core, v->v[i].booking);
            ok = !b->open && !has_move(&m, b) && m.n < MOVES_MAX;
            if (!ok)
                break;
            begin_move(core, &m, b);
            ok = st_book_find_plan(core, b, &(st_book_also){job, grants}, NULL, false, b->plan);
            if (ok)
                st_book_add_slots(core, b);
            v = st_slots_of(core->slots, grants[t].node);
            i = (size_t)-1; /* the list is another */
        }
    }
    if (ok)
        finish(core, &m, fx);
    else
        put_back(core, &m);
    return ok;
}

/* Devices of a node that are booked before then. */
static uint16_t booked_devs(const st_core *core, int32_t node, int64_t end_ms)
{
    const st_slot_vec *v = st_slots_of(core->slots, node);
    uint16_t devs = 0;
    for (size_t i = 0; v && i < v->n; i++)
        if (v->v[i].close_ms < end_ms && v->v[i].clear_ms > core->now)
            devs |= v->v[i].devs;
    return devs;
}

bool st_book_place_clear(st_core *core, const st_job *job, int32_t type, st_grant *ret)
{
    int64_t end_ms = st_job_end_ms(job, core->now);
    if (job->state == ST_JOB_PAUSED)
        return false;
    st_rooms *rooms = st_rooms_of(core->placer, job, type);
    st_whatif_begin(core, ST_WHEN_EITHER);
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        uint16_t devs = booked_devs(core, node->id, end_ms) & (node->view.free | node->view.shared);
        if (!devs)
            continue;
        st_view view = node->view;
        for (int d = 0; d < node->ndevs; d++)
            if (devs >> d & 1)
                view.dev[d].mode = ST_DEV_WHOLE;
        st_view_seal(node, &view);
        st_whatif_set(core, node, &view, rooms);
    }
    st_ask ask = {.job = job, .type = type, .rooms = rooms, .view = st_whatif_view, .ctx = core};
    bool ok = st_place_gang(core->placer, &ask, ret);
    for (size_t i = 0; i < core->whatif.touched.n; i++) {
        const st_node *node = core->fleet->nodes.v[core->whatif.touched.v[i]];
        st_rooms_set(core->placer, rooms, node, &node->view);
    }
    for (int t = 0; ok && t < job->tasks; t++) { /* CPU and RAM may be booked all the same */
        const st_slot_vec *v = st_slots_of(core->slots, ret[t].node);
        for (size_t i = 0; ok && v && i < v->n; i++)
            ok = !in_the_way(core, &v->v[i], job, ret, t, end_ms);
    }
    return ok && st_core_collides(core, job, end_ms, ret) < 0;
}

/* Which tasks have no place, or one that takes none of them; whether there are any. */
static bool homeless(const st_core *core, const st_booking *b, uint8_t *ret)
{
    bool any = false;
    for (int t = 0; t < b->tasks; t++) {
        ret[t] = b->plan[t].node < 0 || !may_keep(core, b, &b->plan[t]);
        any |= ret[t];
    }
    return any;
}

/* Another place for tasks that have none: all of it while nobody is inside, else the rest beside what it has,
 * unless it must be together. */
static bool replan(st_core *core, st_booking *b, const uint8_t *only)
{
    ST_CLEANUP(st_freep) st_grant *got = st_xcalloc((size_t)b->tasks, sizeof *got);
    bool whole = false, some = false;
    for (int any = 0; any < 2 && !whole; any++) /* within the limits of pools, or wherever */
        whole = !b->open && st_book_find_plan(core, b, NULL, NULL, any, got);
    /* Beside what it has the rest might be in another domain: of what must be together, all goes elsewhere or it lacks some. */
    for (int any = 0; any < 2 && !whole && !some && !b->topo_required; any++)
        some = st_book_find_plan(core, b, NULL, only, any, got);
    if (whole)
        memcpy(b->plan, got, (size_t)b->tasks * sizeof *got);
    if (whole || !some)
        return whole;
    for (int t = 0, n = 0; t < b->tasks; t++)
        if (only[t])
            b->plan[t] = got[n++];
    return true;
}

static void lose(st_booking *b, const uint8_t *only)
{
    for (int t = 0; t < b->tasks; t++)
        if (only[t])
            b->plan[t] = (st_grant){.node = -1, .mig_start = -1};
}

typedef ST_VEC(uint64_t) ids;

/* Bookings whose place takes them no longer find another. `what` has changed; with `force` they may lose theirs. */
static int leave(st_core *core, const ids *list, const char *what, const char *name, bool force,
                 st_effects *fx, st_err *err)
{
    moves m = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        st_booking *b = st_book_find(core, list->v[i]);
        if (has_move(&m, b))
            continue;
        ST_CLEANUP(st_freep) uint8_t *only = st_xcalloc((size_t)b->tasks, 1);
        homeless(core, b, only);
        begin_move(core, &m, b);
        if (!replan(core, b, only)) {
            if (!force)
                rc = st_fail(err, ST_ESTATE,
                             "%s %s: booking %s of account %s would lose its place and there is "
                             "no other; force it, or cancel the booking",
                             what, name, b->name, st_tree_account(core->tree, b->account)->name);
            lose(b, only);
        }
        st_book_add_slots(core, b);
    }
    if (rc < 0)
        put_back(core, &m);
    else
        finish(core, &m, fx);
    return rc;
}

int st_book_leave_node(st_core *core, const st_node *node, bool force, st_effects *fx, st_err *err)
{
    const st_slot_vec *v = st_slots_of(core->slots, node->id);
    ids list = {0};
    for (size_t i = 0; v && i < v->n; i++) {
        const st_grant at = {.node = node->id, .devs = v->v[i].devs};
        if (!may_keep(core, st_book_find(core, v->v[i].booking), &at) &&
            (list.n == 0 || list.v[list.n - 1] != v->v[i].booking))
            st_vec_push(&list, v->v[i].booking);
    }
    int rc = leave(core, &list, "node", node->name, force, fx, err);
    st_vec_free(&list);
    return rc;
}

int st_book_leave_pool(st_core *core, int32_t pool, bool force, st_effects *fx, st_err *err)
{
    ids list = {0};
    for (size_t i = 0; i < core->bookings.n; i++) {
        const st_booking *b = core->bookings.v[i];
        bool there = false;
        for (int t = 0; t < b->tasks; t++) {
            const st_node *node =
                b->plan[t].node < 0 ? NULL : core->fleet->nodes.v[b->plan[t].node];
            there |= node && node->pool == pool && !is_able(core, b, node);
        }
        if (there)
            st_vec_push(&list, b->id);
    }
    int rc = leave(core, &list, "pool", core->fleet->pools.v[pool].name, force, fx, err);
    st_vec_free(&list);
    return rc;
}

bool st_book_mend(st_core *core, st_effects *fx)
{
    bool any = false;
    for (size_t i = 0; i < core->bookings.n; i++) {
        st_booking *b = core->bookings.v[i];
        if (!st_booking_degraded(b) || b->over)
            continue;
        ST_CLEANUP(st_freep) uint8_t *only = st_xcalloc((size_t)b->tasks, 1);
        homeless(core, b, only);
        moves m = {0};
        begin_move(core, &m, b);
        bool ok = replan(core, b, only);
        st_book_add_slots(core, b);
        if (ok) {
            finish(core, &m, fx);
            any = true;
            continue;
        }
        free(m.v[0].old);
        st_vec_free(&m);
    }
    if (any)
        st_book_set_due(core);
    return any;
}
