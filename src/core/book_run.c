/* Jobs inside bookings, and what bookings leave idle (book.h). */
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/book.h"
#include "core/turn.h"

#define KEY_LENT 78 /* tells the memory of what is lent from that of places */
#define CHOICE   4  /* times the GPUs of a job are enough to choose from */

/* ---- views ------------------------------------------------------------------------------- */

const st_view *st_book_seen(void *ctx, const st_node *node)
{
    st_core *core = ctx;
    bool seen = core->whatif.stamp[node->id] == core->whatif.gen;
    return seen ? st_whatif_view(core, node) : &core->whatif.none;
}

/* The node as it is behind the fence, with no more than some devices. */
static void see(st_core *core, st_node *node, uint16_t devs, st_when when)
{
    st_view view;
    node->ajar = true;
    st_view_build(core->fleet, core->tree, node, when, &view);
    node->ajar = false;
    for (int d = 0; d < node->ndevs; d++)
        if (!(devs >> d & 1))
            view.dev[d].mode = ST_DEV_WHOLE;
    st_view_seal(node, &view);
    st_whatif_set(core, node, &view, NULL);
}

/* Place a job on the nodes that were seen. */
static bool place(st_core *core, const st_job *job, int32_t type, st_grant *ret)
{
    st_ask ask = {.job = job, .type = type, .view = st_book_seen, .ctx = core};
    if (job->state != ST_JOB_PAUSED) {
        ask.rooms = st_rooms_blank(core->placer, job, type);
        for (size_t i = 0; i < core->whatif.touched.n; i++) {
            const st_node *node = core->fleet->nodes.v[core->whatif.touched.v[i]];
            if (node->state != ST_NODE_READY || !st_place_allowed(core->placer, node, job, type))
                continue;
            int room = st_place_room(core->placer, node, job, st_book_seen(core, node),
                                     (uint16_t)((1u << node->ndevs) - 1));
            st_rooms_put(core->placer, ask.rooms, node, room);
        }
    }
    return st_place_gang(core->placer, &ask, ret);
}

/* The devices of a booking on a node. */
static uint16_t devs_of(const st_booking *b, int32_t node)
{
    uint16_t devs = 0;
    for (int t = 0; t < b->tasks; t++)
        if (b->plan[t].node == node)
            devs |= b->plan[t].devs;
    return devs;
}

static void see_booking(st_core *core, const st_booking *b, st_when when)
{
    st_whatif_begin(core, when);
    for (int t = 0; t < b->tasks; t++) {
        int32_t id = b->plan[t].node;
        if (id >= 0 && core->whatif.stamp[id] != core->whatif.gen)
            see(core, core->fleet->nodes.v[id], devs_of(b, id), when);
    }
}

void st_book_ajar(const st_core *core, const st_job *job, const st_grant *grants, bool on)
{
    for (int t = 0; t < job->tasks; t++)
        core->fleet->nodes.v[grants[t].node]->ajar = on;
}

/* ---- inside ------------------------------------------------------------------------------ */

static bool takes(const st_booking *b)
{
    return b->state == ST_BOOKING_ACTIVE && !b->told && !b->over;
}

static bool is_lent(const st_booking *b, const st_job *job)
{
    if (job->state != ST_JOB_RUNNING || job->class != ST_CLASS_BURSTABLE)
        return false;
    for (int t = 0; t < job->tasks; t++)
        if (devs_of(b, job->grants[t].node) & job->grants[t].devs)
            return true;
    return false;
}

static int by_id(const void *pa, const void *pb)
{
    const st_job *a = *(st_job *const *)pa, *b = *(st_job *const *)pb;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Those who have borrowed of the booking, by number. */
static void list_lent(const st_core *core, const st_booking *b, st_job_vec *ret)
{
    size_t kept = 0;
    for (int t = 0; t < b->tasks; t++) {
        const st_node *node = b->plan[t].node < 0 ? NULL : core->fleet->nodes.v[b->plan[t].node];
        for (size_t i = 0; node && i < node->residents.n; i++)
            if (is_lent(b, node->residents.v[i].job))
                st_vec_push(ret, node->residents.v[i].job);
    }
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_id);
    for (size_t i = 0; i < ret->n; i++)
        if (i == 0 || ret->v[i] != ret->v[i - 1])
            ret->v[kept++] = ret->v[i];
    ret->n = kept;
}

static bool touches(const st_job *job, const st_grant *grants, const st_job *other)
{
    for (int t = 0; t < job->tasks; t++)
        for (int u = 0; u < other->tasks; u++)
            if (grants[t].node == other->grants[u].node && (grants[t].devs & other->grants[u].devs))
                return true;
    return false;
}

static bool shares_node(const st_job *job, const st_grant *grants, const st_job *other)
{
    for (int t = 0; t < job->tasks; t++)
        for (int u = 0; u < other->tasks; u++)
            if (grants[t].node == other->grants[u].node)
                return true;
    return false;
}

/* Whether the job fits there once those in `out` have left. */
static bool fits(const st_core *core, const st_job *job, const st_grant *grants)
{
    for (int t = 0; t < job->tasks; t++) {
        st_node *node = core->fleet->nodes.v[grants[t].node];
        st_view view;
        node->ajar = true;
        st_view_build(core->fleet, core->tree, node, ST_WHEN_NEXT, &view);
        node->ajar = false;
        for (int u = 0; u < job->tasks; u++)
            if (grants[u].node == node->id &&
                st_view_add(core->fleet, core->tree, node, job, &grants[u], &view) < 0)
                return false;
    }
    return true;
}

static void set_out(const st_job_vec *lent, st_out out)
{
    for (size_t i = 0; i < lent->n; i++)
        lent->v[i]->out = out;
}

/* Those in the way yield, and its place is held. */
static void claim(st_core *core, st_job *job, const st_booking *b, const st_job_vec *lent,
                  st_grant *take_grants, st_effects *fx)
{
    st_job_vec victims = {0};
    for (size_t i = 0; i < lent->n; i++)
        if (touches(job, take_grants, lent->v[i]))
            st_vec_push(&victims, lent->v[i]);
    set_out(&victims, ST_OUT_YIELDED);
    bool enough = fits(core, job, take_grants);
    set_out(&victims, ST_OUT_NOT);
    for (size_t i = 0; !enough && i < lent->n; i++)
        if (!touches(job, take_grants, lent->v[i]) && shares_node(job, take_grants, lent->v[i]))
            st_vec_push(&victims, lent->v[i]);
    job->booking = b->id;
    st_core_hold(core, job, b->type, ST_CLASS_BOOKED, take_grants, fx);
    for (size_t i = 0; i < victims.n; i++)
        st_core_notify(core, victims.v[i], job, NULL, fx);
    st_vec_free(&victims);
}

/* Paused jobs keep the memory of the booking's nodes: they start elsewhere. */
static bool free_memory(st_core *core, const st_booking *b, st_effects *fx)
{
    for (int t = 0; t < b->tasks; t++) {
        if (b->plan[t].node < 0)
            continue;
        const st_node *node = core->fleet->nodes.v[b->plan[t].node];
        for (size_t i = 0; i < node->residents.n; i++) {
            st_job *job = node->residents.v[i].job;
            if (job->state != ST_JOB_PAUSED || job->held || job->stopping || job->booking == b->id)
                continue;
            st_core_requeue(core, job, fx);
            return true;
        }
    }
    return false;
}

static bool suits(const st_booking *b, const st_job *job)
{
    return job->shape.gpus > 0 && (job->shape.types >> b->type & 1) &&
           (job->state != ST_JOB_PAUSED || job->type == b->type);
}

/* Start the job inside, or have lent devices given back for it. */
static bool enter(st_core *core, st_booking *b, st_job *job, st_effects *fx)
{
    if (!takes(b) || !suits(b, job) || ST_BROKEN(BOOK_ENTER))
        return false;
    st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
    see_booking(core, b, ST_WHEN_EITHER);
    if (place(core, job, b->type, grants)) {
        b->used = true;
        job->booking = b->id;
        st_core_start(core, job, b->type, ST_CLASS_BOOKED, grants, fx);
        return true;
    }
    st_job_vec lent = {0};
    list_lent(core, b, &lent);
    set_out(&lent, ST_OUT_YIELDED);
    see_booking(core, b, ST_WHEN_NEXT);
    bool ok = place(core, job, b->type, grants);
    set_out(&lent, ST_OUT_NOT);
    if (ok) {
        b->used = true;
        claim(core, job, b, &lent, grants, fx);
    } else {
        free(grants);
    }
    st_vec_free(&lent);
    return ok;
}

static bool could_enter(st_core *core, const st_booking *b, const st_job *job)
{
    if (!takes(b) || !suits(b, job) || ST_BROKEN(BOOK_ENTER))
        return false;
    ST_CLEANUP(st_freep) st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
    st_job_vec lent = {0};
    see_booking(core, b, ST_WHEN_EITHER);
    bool ok = place(core, job, b->type, grants);
    if (!ok) {
        list_lent(core, b, &lent);
        set_out(&lent, ST_OUT_YIELDED);
        see_booking(core, b, ST_WHEN_NEXT);
        ok = place(core, job, b->type, grants);
        set_out(&lent, ST_OUT_NOT);
    }
    st_vec_free(&lent);
    return ok;
}

static bool waits(const st_job *job)
{
    return (job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED) && !job->held &&
           !job->stopping && !job->barred;
}

static int by_turn(const void *pa, const void *pb)
{
    const st_job *a = *(st_job *const *)pa, *b = *(st_job *const *)pb;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->queued_ms != b->queued_ms)
        return a->queued_ms < b->queued_ms ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

bool st_book_run(st_core *core, st_effects *fx)
{
    if (core->nopen == 0)
        return false;
    bool any = false;
    while (st_deadline_run(core, fx))
        any = true;
    for (size_t i = 0; i < core->opened.n; i++) /* no others, not even asleep */
        if (core->opened.v[i]->dedicated && takes(core->opened.v[i]))
            any |= free_memory(core, core->opened.v[i], fx);
    st_job_vec list = {0};
    for (size_t i = 0; i < core->off.n; i++)
        if (core->off.v[i]->booking && waits(core->off.v[i]))
            st_vec_push(&list, core->off.v[i]);
    if (list.n > 1)
        qsort(list.v, list.n, sizeof *list.v, by_turn);
    for (size_t i = 0; i < list.n; i++) {
        st_booking *b = st_book_find(core, list.v[i]->booking);
        if (enter(core, b, list.v[i], fx))
            any = true;
        else if (takes(b) && suits(b, list.v[i]))
            any |= free_memory(core, b, fx);
    }
    st_vec_free(&list);
    return any;
}

/* ---- lent -------------------------------------------------------------------------------- */

/* Devices of active bookings on a node that no other is about to have. */
static uint16_t lent_devs(const st_core *core, int32_t node)
{
    uint16_t may = 0, not = 0;
    const st_slot_vec *v = st_slots_of(core->slots, node);
    for (size_t i = 0; v && i < v->n; i++) {
        const st_booking *b = st_book_find(core, v->v[i].booking);
        bool alone = b->dedicated && !ST_BROKEN(BOOK_ALONE);
        if (b->open && b->state == ST_BOOKING_ACTIVE && !b->over && !alone)
            may |= v->v[i].devs;
        else if (b->open)
            not |= v->v[i].devs;
    }
    return may & (uint16_t) ~not ;
}

/* Devices that whole jobs have. */
static uint16_t taken_devs(const st_node *node)
{
    uint16_t devs = 0;
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_job *job = node->residents.v[i].job;
        if (job->shape.level == ST_LEVEL_WHOLE && st_job_on_devices(job))
            devs |= job->grants[node->residents.v[i].task].devs;
    }
    return devs;
}

/* Nodes with something to lend, until there are `enough` GPUs; whether that was before the last of them. */
static bool see_lent(st_core *core, int64_t enough)
{
    st_whatif_begin(core, ST_WHEN_EITHER);
    for (size_t i = 0; i < core->opened.n; i++) {
        const st_booking *b = core->opened.v[i];
        for (int t = 0; takes(b) && t < b->tasks; t++) {
            int32_t id = b->plan[t].node;
            if (id < 0 || core->whatif.stamp[id] == core->whatif.gen)
                continue;
            uint16_t devs = lent_devs(core, id);
            int n = __builtin_popcount(devs & (uint16_t)~taken_devs(core->fleet->nodes.v[id]));
            if (n > 0 && enough <= 0)
                return true;
            enough -= n;
            if (n > 0)
                see(core, core->fleet->nodes.v[id], devs, ST_WHEN_EITHER);
        }
    }
    return false;
}

/* Where any place will do a few nodes are enough; and all of them, where those have no room. */
static bool place_lent(st_core *core, const st_job *job, int32_t type, st_grant *ret)
{
    bool any = job->topo == ST_TOPO_NONE && job->shape.level == ST_LEVEL_WHOLE;
    bool more = see_lent(core, any ? (int64_t)CHOICE * job->tasks * job->shape.gpus : INT64_MAX);
    if (place(core, job, type, ret))
        return true;
    if (more)
        see_lent(core, INT64_MAX);
    return more && place(core, job, type, ret);
}

static bool may_lend(st_core *core, const st_job *job, int32_t type, uint64_t *ret_key)
{
    if (job->state == ST_JOB_PAUSED || ST_BROKEN(BOOK_LEND) || job->shape.gpus == 0)
        return false;
    if (core->freed)
        st_core_forget_misfits(core);
    *ret_key = st_hash_u64(st_core_shape_key(job, type), KEY_LENT);
    return !st_idmap_get(core->misfits, *ret_key, NULL);
}

/* ---- a turn ------------------------------------------------------------------------------ */

static st_booking *own_booking(const st_core *core, const st_job *job, size_t *at)
{
    for (; *at < core->opened.n; ++*at) {
        st_booking *b = core->opened.v[*at];
        if (takes(b) && b->job == 0 && st_tree_within(core->tree, job->account, b->account)) {
            ++*at;
            return b;
        }
    }
    return NULL;
}

bool st_book_enter_own(st_core *core, st_job *job, st_effects *fx)
{
    st_booking *b;
    for (size_t at = 0; core->nopen > 0 && (b = own_booking(core, job, &at));)
        if (enter(core, b, job, fx))
            return true;
    return false;
}

bool st_book_lend(st_core *core, st_job *job, int32_t type, st_effects *fx)
{
    uint64_t key;
    if (core->nopen == 0 || !may_lend(core, job, type, &key))
        return false;
    st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
    if (place_lent(core, job, type, grants)) {
        st_core_start(core, job, type, ST_CLASS_BURSTABLE, grants, fx);
        return true;
    }
    st_idmap_put(core->misfits, key, 1);
    free(grants);
    return false;
}

bool st_book_could_enter(st_core *core, const st_job *job)
{
    const st_booking *b;
    for (size_t at = 0; core->nopen > 0 && (b = own_booking(core, job, &at));)
        if (could_enter(core, b, job))
            return true;
    return false;
}

bool st_book_could_lend(st_core *core, const st_job *job, int32_t type)
{
    uint64_t key;
    if (core->nopen == 0 || !may_lend(core, job, type, &key))
        return false;
    ST_CLEANUP(st_freep) st_grant *grants = st_xcalloc((size_t)job->tasks, sizeof *grants);
    bool ok = place_lent(core, job, type, grants);
    if (!ok)
        st_idmap_put(core->misfits, key, 1);
    return ok;
}
