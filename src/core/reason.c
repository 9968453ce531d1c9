/* Reasons in words, for a reader who stands at an account: what is outside it has no name and no
 * number. */
#include <inttypes.h>

#include "base/num.h"
#include "core/state.h"
#include "model/pick.h"

const char *st_reason_name(st_why code)
{
    static const char *const names[] = {
#define X(id, name, blocks, means, remedy) [id] = name,
        ST_REASON_TABLE(X)
#undef X
    };
    ST_ASSERT(code < ST_WHY_COUNT);
    return names[code];
}

bool st_reason_blocks(st_why code)
{
    static const bool blocks[] = {
#define X(id, name, b, means, remedy) [id] = b,
        ST_REASON_TABLE(X)
#undef X
    };
    ST_ASSERT(code < ST_WHY_COUNT);
    return blocks[code];
}

typedef struct telling {
    const st_core *core;
    const st_reason *r;
    int32_t reader;
} telling;

/* Whether the reason is about an account the reader may know all about. */
static bool known(const telling *t)
{
    return t->r->account >= 0 && st_tree_within(t->core->tree, t->r->account, t->reader);
}

static const char *account(const telling *t)
{
    if (t->r->account < 0)
        return "?";
    if (known(t))
        return st_tree_account(t->core->tree, t->r->account)->name;
    return st_tree_within(t->core->tree, t->reader, t->r->account) ? "above yours" : "of others";
}

static const char *type_name(const st_core *core, const st_reason *r)
{
    return r->type >= 0 ? core->fleet->types.v[r->type].name : "GPU";
}

/* What a job of this type needs, as one says it of several. */
static const char *gpus_name(const st_core *core, const st_reason *r)
{
    return r->type >= 0 ? core->fleet->types.v[r->type].name : "GPUs";
}

static const char *job_name(const telling *t)
{
    const st_job *job = st_core_find(t->core, t->r->other);
    if (!job)
        return "a job that has ended";
    return st_tree_within(t->core->tree, job->account, t->reader) ? job->name
                                                                  : "a job of another account";
}

/* An amount in the unit its kind is spoken of in. */
static void amount(char buf[32], int64_t v, bool mib, bool ms)
{
    if (ms)
        st_fmt_duration(buf, v);
    else if (mib)
        st_fmt_mib(buf, v);
    else
        st_fmt_milli(buf, v);
}

static void text_bound(const telling *t, st_strbuf *out)
{
    const st_reason *r = t->r;
    bool limit = r->code == ST_WHY_USER_LIMIT;
    bool mib = limit ? r->dim == ST_LIMIT_VRAM : r->dim == ST_RAM;
    bool ms = limit && r->dim == ST_LIMIT_RUN;
    char used[32], asked[32], bound[32];
    amount(used, r->used, mib, ms);
    amount(asked, r->asked, mib, ms);
    amount(bound, r->bound, mib, ms);
    const char *what = limit          ? st_limit_name((st_limit_kind)r->dim)
                       : r->type >= 0 ? type_name(t->core, r)
                                      : st_dim_name((st_dim)r->dim);
    if (!known(t)) {
        st_strbuf_addf(out, "an account %s would exceed its %s of %s", account(t),
                       limit ? "limit per user" : "max", what);
        return;
    }
    st_strbuf_addf(out, "account %s holds %s %s%s; %s more would exceed its %s of %s", account(t),
                   used, what, limit ? " for this user" : "", asked,
                   limit ? "limit per user" : "max", bound);
}

/* In the job's own words. */
static void text_pick(const st_core *core, const st_reason *r, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf said = {0};
    const char *pick = st_fleet_picked_text(core->fleet, (uint64_t)r->bound);
    st_pick_say(pick ? pick : "", &said);
    if (r->used > 0)
        st_strbuf_addf(out, "%" PRId64 " of %" PRId64 " tasks fit on nodes with %s", r->used,
                       r->asked, st_strbuf_str(&said));
    else if (r->dim > 0)
        st_strbuf_addf(out, "no node with %s has %d free %s%s", st_strbuf_str(&said), r->dim,
                       r->type >= 0 ? core->fleet->types.v[r->type].name : "GPU",
                       r->dim == 1 || r->type >= 0 ? "" : "s");
    else
        st_strbuf_addf(out, "no node with %s has room", st_strbuf_str(&said));
}

static void text_room(const st_core *core, const st_reason *r, st_strbuf *out)
{
    char gpu[32];
    st_fmt_milli(gpu, r->bound);
    switch (r->code) {
    case ST_WHY_NODES:
        text_pick(core, r, out);
        break;
    case ST_WHY_GPUS_BUSY:
        if (r->asked == 1)
            st_strbuf_addf(out, "too few %s are free", gpus_name(core, r));
        else
            st_strbuf_addf(out, "%" PRId64 " of %" PRId64 " tasks fit on the free %s", r->used,
                           r->asked, gpus_name(core, r));
        break;
    case ST_WHY_FRAGMENTED:
        st_strbuf_addf(out, "%s %s are free, but scattered: %" PRId64 " of %" PRId64 " tasks fit",
                       gpu, gpus_name(core, r), r->used, r->asked);
        break;
    case ST_WHY_TOPOLOGY:
        st_strbuf_addf(
            out, "only %" PRId64 " of %" PRId64 " tasks fit inside one %s (%" PRId64 " fit in all)",
            r->used, r->asked, st_topo_name((st_topo)r->dim), r->bound);
        break;
    case ST_WHY_CPU:
    case ST_WHY_RAM:
        st_strbuf_addf(
            out, "%s is short: %" PRId64 " of %" PRId64 " tasks fit (%" PRId64 " with more %s)",
            r->code == ST_WHY_CPU ? "CPU" : "RAM", r->used, r->asked, r->bound,
            r->code == ST_WHY_CPU ? "CPU" : "RAM");
        break;
    default:
        st_strbuf_addf(out,
                       "nodes are down or draining: %" PRId64 " of %" PRId64
                       " tasks would fit on the ready ones",
                       r->used, r->asked);
        break;
    }
}

static bool has_nodes(const st_core *core, int32_t type, int32_t pool)
{
    for (size_t i = 0; i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (node->type == type && (pool < 0 || node->pool == pool))
            return true;
    }
    return false;
}

/* Where it can never run, although it may. */
static void text_nodes(const st_core *core, const st_reason *r, st_strbuf *out)
{
    int32_t pool = r->dim - 1;
    const char *where = pool >= 0 ? core->fleet->pools.v[pool].name : NULL;
    if (!has_nodes(core, r->type, pool) && where)
        st_strbuf_addf(out, "pool %s has no %s", where, type_name(core, r));
    else if (!has_nodes(core, r->type, pool))
        st_strbuf_addf(out, "no node has %s", type_name(core, r));
    else if (r->bound == 0)
        st_strbuf_addf(out, "no %s node%s%s has room for one of its tasks, even empty",
                       type_name(core, r), where ? " of pool " : "", where ? where : "");
    else
        st_strbuf_addf(out, "%" PRId64 " of %" PRId64 " tasks fit on all %s nodes%s%s, even empty",
                       r->bound, r->asked, type_name(core, r), where ? " of pool " : "",
                       where ? where : "");
}

static void text_reclaim(const telling *t, st_strbuf *out)
{
    const st_reason *r = t->r;
    char used[32], asked[32], bound[32], in[32];
    st_fmt_milli(used, r->used);
    st_fmt_milli(asked, r->asked);
    st_fmt_milli(bound, r->bound);
    if (r->until_ms != ST_TIME_NEVER)
        st_fmt_duration(in, ST_MAX(r->until_ms - t->core->now, 0));
    if (r->code == ST_WHY_RECLAIM_PROTECTED)
        st_strbuf_addf(out, "borrowers could be preempted but are protected, the first for %s more",
                       in);
    else if (r->code == ST_WHY_RECLAIM_BOUND && t->reader != ST_ROOT)
        st_strbuf_add(out, "would preempt more GPUs than `reclaim_bound` allows");
    else if (r->code == ST_WHY_RECLAIM_BOUND)
        st_strbuf_addf(out, "would preempt %s GPUs for %s; `reclaim_bound` allows %s", used, asked,
                       bound);
    else if (r->code == ST_WHY_RECLAIM_RESERVED)
        st_strbuf_addf(out, "what borrowers would free is reserved for %s", job_name(t));
    else
        st_strbuf_add(out, "preempting every job it is allowed to preempt would still not free "
                           "enough GPUs");
}

static void text_stopping(const telling *t, st_strbuf *out)
{
    const char *by = "at the latest when the leases of these nodes are over";
    if (t->r->used == 1)
        st_strbuf_addf(out, "it was told to stop, and its nodes have not yet said that it has; %s",
                       by);
    else if (t->reader == ST_ROOT)
        st_strbuf_addf(out,
                       "%" PRId64 " jobs were told to stop, and their nodes have not yet said that "
                       "they have; %s",
                       t->r->asked, by);
    else
        st_strbuf_addf(out,
                       "others were told to stop for it, and their nodes have not yet said that "
                       "they have; %s",
                       by);
}

static void text_after(const telling *t, st_strbuf *out)
{
    static const char *const ends[] = {
        [ST_AFTER_ANY] = "to end", [ST_AFTER_OK] = "to be done", [ST_AFTER_FAIL] = "to fail"};
    const st_reason *r = t->r;
    const char *what = r->used ? "all jobs of an array" : job_name(t);
    if (r->code == ST_WHY_NEVER)
        st_strbuf_addf(out, "it waits for %s %s, and that can never be: it has ended otherwise",
                       r->used ? "an array" : "a job", ends[r->dim]);
    else
        st_strbuf_addf(out, "it waits for %s %s", what, ends[r->dim]);
    if (r->asked > 1)
        st_strbuf_addf(out, ", and for %" PRId64 " more", r->asked - 1);
}

static void text_idle(const telling *t, st_strbuf *out)
{
    const st_reason *r = t->r;
    char in[32];
    if (r->code == ST_WHY_ON_HOLD) {
        st_strbuf_addf(out, "it is on hold%s", r->used > 1 ? " by an admin" : "");
    } else if (r->code == ST_WHY_THROTTLE) {
        st_strbuf_addf(out, "%" PRId64 " of its array may run at a time, and they are before it",
                       r->bound);
    } else if (r->code == ST_WHY_RETRY) {
        st_fmt_duration(in, ST_MAX(r->until_ms - t->core->now, 0));
        st_strbuf_addf(out, "it failed; retry %" PRId64 " of %" PRId64 " begins in %s", r->used,
                       r->bound, in);
    } else {
        text_after(t, out);
    }
}

void st_reason_text(const st_core *core, const st_reason *r, int32_t reader, st_strbuf *out)
{
    const telling t = {core, r, reader};
    char a[32], b[32];
    int64_t in = r->until_ms == ST_TIME_NEVER ? 0 : ST_MAX(r->until_ms - core->now, 0);
    switch (r->code) {
    case ST_WHY_MAX:
    case ST_WHY_USER_LIMIT:
        text_bound(&t, out);
        break;
    case ST_WHY_WEIGHT_ZERO:
        st_strbuf_addf(out, "%s %s has weight 0 and borrows nothing",
                       known(&t) ? "account" : "an account", account(&t));
        break;
    case ST_WHY_OVER_FLOOR:
        st_fmt_milli(a, r->used);
        st_fmt_milli(b, r->bound);
        if (r->account == ST_ROOT)
            st_strbuf_addf(out, "no guarantee covers this job, so it must borrow %s",
                           gpus_name(core, r));
        else if (known(&t))
            st_strbuf_addf(out,
                           "%s uses %s of its %s guaranteed GPUs; this job needs more, so it must "
                           "borrow %s",
                           account(&t), a, b, gpus_name(core, r));
        else
            st_strbuf_addf(out,
                           "this job exceeds the guarantee of an account %s, so it must borrow %s",
                           account(&t), gpus_name(core, r));
        break;
    case ST_WHY_HELD:
        st_strbuf_addf(out, "the GPUs it needs are held for %s", job_name(&t));
        break;
    case ST_WHY_RESERVED:
        st_fmt_duration(a, in);
        st_strbuf_addf(out, "the GPUs it needs are reserved for %s, which should start in %s",
                       job_name(&t), a);
        break;
    case ST_WHY_LOOKAHEAD:
        if (reader == ST_ROOT)
            st_strbuf_addf(out, "%" PRId64 " blocked jobs are ahead of it (`lookahead`)", r->bound);
        else
            st_strbuf_add(out, "blocked jobs are ahead of it (`lookahead`)");
        break;
    case ST_WHY_UNSEEN:
        st_strbuf_add(out,
                      "the scheduler is still looking at jobs ahead of it and goes on at once");
        break;
    case ST_WHY_COOLDOWN:
        st_fmt_duration(a, in);
        st_strbuf_addf(out, "preempted twice within `cooldown`: it borrows nothing for %s more", a);
        break;
    case ST_WHY_PINNED:
        st_strbuf_add(out, "it is paused in the memory of its nodes, whose GPUs are busy");
        break;
    case ST_WHY_YIELDING:
        st_fmt_duration(a, in);
        if (reader == ST_ROOT)
            st_strbuf_addf(out, "%" PRId64 " jobs are being preempted for it, in %s at the latest",
                           r->asked, a);
        else
            st_strbuf_addf(out, "other jobs are being preempted for it, in %s at the latest", a);
        break;
    case ST_WHY_CAP:
        st_strbuf_add(out, "a spend cap of its account, or of one above, leaves no room for it");
        break;
    case ST_WHY_BOOKED:
        st_fmt_duration(a, ST_MAX(r->until_ms - core->now, 0));
        st_strbuf_addf(out, "GPUs it could use are not available for %s: they are booked", a);
        break;
    case ST_WHY_BOOKING:
        st_fmt_duration(a, ST_MAX(r->until_ms - core->now, 0));
        if (r->used) {
            st_strbuf_addf(out, "it waits for its booking, which begins in %s", a);
            break;
        }
        st_strbuf_addf(out,
                       "it runs inside booking %" PRIu64
                       ", which has no room for it now; that changes in %s at the latest",
                       r->other, a);
        break;
    case ST_WHY_WINDOW:
        st_fmt_duration(a, ST_MAX(in, 0));
        if (r->dim == ST_BAR_BEGIN)
            st_strbuf_addf(out, "it waits for its window, which begins in %s", a);
        else if (r->dim == ST_BAR_END)
            st_strbuf_addf(out, "its window ends in %s, and the job with it", a);
        else
            st_strbuf_add(out, "its slot has no window left");
        break;
    case ST_WHY_STOPPING:
        text_stopping(&t, out);
        break;
    case ST_WHY_MOVES:
        st_fmt_milli(a, r->bound);
        if (reader == ST_ROOT)
            st_strbuf_addf(out,
                           "moving %" PRId64
                           " running jobs with %s GPUs would make room for it, but the "
                           "policy `defrag` is off",
                           r->used, a);
        else
            st_strbuf_add(out, "moving running jobs would make room for it, but the policy "
                               "`defrag` is off");
        break;
    case ST_WHY_RECLAIM_PROTECTED:
    case ST_WHY_RECLAIM_BOUND:
    case ST_WHY_RECLAIM_RESERVED:
    case ST_WHY_RECLAIM_NONE:
        text_reclaim(&t, out);
        break;
    case ST_WHY_MEEK:
        st_strbuf_add(out, "its priority class has no right to preempt; with one it would take the "
                           "place of running jobs");
        break;
    case ST_WHY_NO_NODES:
        text_nodes(core, r, out);
        break;
    default:
        r->code >= ST_WHY_AFTER ? text_idle(&t, out) : text_room(core, r, out);
        break;
    }
}
