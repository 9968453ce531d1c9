/*
 * Tapes: events with their text, and how they read.
 */
#include "worlds/worlds.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "model/labels.h"
#include "model/pick.h"

void st_tape_init(st_tape *tape, uint64_t seed)
{
    *tape = (st_tape){.seed = seed,
                      .lens = st_lens_close(seed),
                      .policy = st_policy_default(),
                      .arena = st_arena_new()};
}

void st_tape_done(st_tape *tape)
{
    st_vec_free(&tape->list);
    st_arena_free(tape->arena);
    *tape = (st_tape){0};
}

const char *st_tape_text(st_tape *tape, const char *fmt, ...)
{
    char buf[ST_NAME_MAX * 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(buf, sizeof buf, fmt, args);
    va_end(args);
    return st_arena_strdup(tape->arena, buf);
}

static void tell_job(const st_job_spec *job, st_strbuf *out)
{
    const st_shape *s = &job->shape;
    st_strbuf_addf(out, " %" PRIu64 " of %s/%s: %d x", job->id, job->account ? job->account : "-",
                   job->user ? job->user : "-", job->tasks);
    if (s->gpus > 0 && s->level < ST_LEVEL_COUNT)
        st_strbuf_addf(out, " %d %s", s->gpus, st_level_name(s->level));
    if (s->level == ST_LEVEL_MIG)
        st_strbuf_addf(out, " profile %d", (int)s->profile);
    if (s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME)
        st_strbuf_addf(out, " %" PRId64 "m", s->share_m);
    st_strbuf_addf(out, " cpu %" PRId64 "m ram %" PRId64 "Mi types %#x", s->cpu_m, s->ram_mib,
                   s->types);
    if (job->topo != ST_TOPO_NONE && job->topo < ST_TOPO_COUNT)
        st_strbuf_addf(out, " %s %s", job->topo_required ? "one" : "near", st_topo_name(job->topo));
    if (job->limit_ms != ST_TIME_NEVER)
        st_strbuf_addf(out, " limit %" PRId64 "ms", job->limit_ms);
    if (job->series)
        st_strbuf_addf(out, " slot %" PRIu64, job->series);
    if (job->begin_ms)
        st_strbuf_addf(out, " from %" PRId64 "ms", job->begin_ms);
    if (job->by_ms)
        st_strbuf_addf(out, " %s %" PRId64 "ms", job->hard ? "promised by" : "due by", job->by_ms);
    for (int i = 0; i < job->nafters; i++)
        st_strbuf_addf(out, " after-%s %s%" PRIu64, st_after_name(job->afters[i].how),
                       job->afters[i].array ? "array " : "", job->afters[i].id);
    if (job->held_by)
        st_strbuf_addf(out, " on hold by %d", job->held_by);
    if (job->array)
        st_strbuf_addf(out, " of array %" PRIu64 " throttle %d", job->array, job->throttle);
    if (job->retry.times)
        st_strbuf_addf(out, " %d retries", job->retry.times);
    if (job->nodes) {
        st_strbuf_add(out, " on ");
        st_pick_say(job->nodes, out);
    }
    if (job->end_by_ms)
        st_strbuf_addf(out, " by %" PRId64 "ms", job->end_by_ms);
}

void st_tape_tell(const st_tape_entry *entry, st_strbuf *out)
{
    const st_event *ev = &entry->event;
    st_strbuf_addf(out, "%" PRId64 "ms %s", entry->at_ms, st_event_name(ev->kind));
    switch (ev->kind) {
    case ST_EV_TYPE:
        st_strbuf_addf(out, " %s", ev->u.type.name);
        break;
    case ST_EV_POOL:
    case ST_EV_POOL_CHANGE:
        st_strbuf_addf(out, " %s levels %#x factor %" PRId64 " allow %#x", ev->u.pool.name,
                       ev->u.pool.levels, ev->u.pool.oversub_m, ev->u.pool.rules.allow);
        break;
    case ST_EV_ACCOUNT_REMOVE:
        st_strbuf_addf(out, " %s", ev->u.account.name);
        break;
    case ST_EV_NODE:
        st_strbuf_addf(out, " %s: %d GPUs of type %d, cpu %" PRId64 "m, ram %" PRId64 "Mi",
                       ev->u.node.name, ev->u.node.ndevs, ev->u.node.type, ev->u.node.cpu_m,
                       ev->u.node.ram_mib);
        break;
    case ST_EV_NODE_STATE:
        st_strbuf_addf(out, " %s %s", entry->node,
                       ev->u.node_state.state < ST_NODE_STATE_COUNT
                           ? st_node_state_name(ev->u.node_state.state)
                           : "?");
        if (ev->u.node_state.how == ST_HOW_FAULT)
            st_strbuf_addf(out, " fault %s", st_fault_name(ev->u.node_state.finding.kind));
        else if (ev->u.node_state.how == ST_HOW_HEALED)
            st_strbuf_add(out, " healed");
        if (ev->u.node_state.part > 0)
            st_strbuf_addf(out, " GPU %d alone", ev->u.node_state.part - 1);
        if (ev->u.node_state.by_ms > 0)
            st_strbuf_addf(out, " by %" PRId64 "ms then %s", ev->u.node_state.by_ms,
                           st_drain_name(ev->u.node_state.then));
        break;
    case ST_EV_AGENT:
        st_strbuf_addf(out, " %s", entry->node);
        break;
    case ST_EV_LABELS:
        st_strbuf_addf(out, " %s:%s ", entry->node, ev->u.labels.force ? " forced" : "");
        st_labels_say(ev->u.labels.text, out);
        break;
    case ST_EV_GONE:
        st_strbuf_addf(out, " %" PRIu64 "%s", ev->u.gone.id, ev->u.gone.done ? " done" : "");
        break;
    case ST_EV_ACCOUNT:
        st_strbuf_addf(out, " %s below %s", ev->u.account.name,
                       ev->u.account.parent ? ev->u.account.parent : "cluster");
        break;
    case ST_EV_SUBMIT:
        tell_job(&ev->u.job, out);
        break;
    case ST_EV_FINISH:
    case ST_EV_LATE:
        st_strbuf_addf(out, " %" PRIu64 "%s", ev->u.finish.id,
                       ev->u.finish.failed ? " failed" : "");
        break;
    case ST_EV_CANCEL:
    case ST_EV_CHECKPOINTED:
    case ST_EV_UNSTARTED:
        st_strbuf_addf(out, " %" PRIu64, ev->u.id);
        break;
    case ST_EV_PRIORITY:
        st_strbuf_addf(out, " %" PRIu64 " to %d", ev->u.priority.id, ev->u.priority.priority);
        break;
    case ST_EV_LIMIT:
        st_strbuf_addf(out, " %" PRIu64 " to %" PRId64 "ms", ev->u.limit.id, ev->u.limit.limit_ms);
        break;
    case ST_EV_BAR:
        st_strbuf_addf(out, " %" PRIu64 " %s, notice %" PRId64 "ms", ev->u.bar.id,
                       ev->u.bar.on ? "on" : "off", ev->u.bar.notice_ms);
        break;
    case ST_EV_HOLD:
        st_strbuf_addf(out, " %" PRIu64 " %s by %d", ev->u.hold.id, ev->u.hold.on ? "on" : "off",
                       ev->u.hold.by);
        break;
    case ST_EV_ARRAY:
        st_strbuf_addf(out, " %" PRIu64 " throttle %d", ev->u.array.id, ev->u.array.throttle);
        break;
    case ST_EV_BOOK:
        st_strbuf_addf(out, " %" PRIu64 " %s %dx%d type %d x%d from %" PRId64 " to %" PRId64 "%s",
                       ev->u.book.spec.id, ev->u.book.spec.account, ev->u.book.spec.tasks,
                       ev->u.book.spec.gpus, ev->u.book.spec.type, ev->u.book.nwindows,
                       ev->u.book.windows[0].from_ms, ev->u.book.windows[0].to_ms,
                       ev->u.book.confirm ? "" : " quoted");
        break;
    case ST_EV_BOOK_CONFIRM:
    case ST_EV_BOOK_CANCEL:
        st_strbuf_addf(out, " %" PRIu64 "%s", ev->u.booking.id,
                       ev->u.booking.series ? " series" : "");
        break;
    case ST_EV_BOOK_CHANGE:
        st_strbuf_addf(out, " %" PRIu64 " from %" PRId64 " to %" PRId64 " x%d", ev->u.rebook.id,
                       ev->u.rebook.from_ms, ev->u.rebook.to_ms, ev->u.rebook.tasks);
        break;
    case ST_EV_TOLD:
        st_strbuf_addf(out, " %" PRIu64 " for %" PRId64 "ms", ev->u.told.id, ev->u.told.start_ms);
        break;
    default:
        break;
    }
}
