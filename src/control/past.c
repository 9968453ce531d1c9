/*
 * Playing the log up to a past moment (control/past.h).
 */
#include "control/past.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "log/log.h"

#define ROWS_BETWEEN 16  /* looks at the clock */
#define MARK_MS      500 /* of playing, between two marks */
#define JOBS_MAX     400000

typedef struct mark {
    int64_t seq, at_ms;
    bool exact;
    st_strbuf data;
} mark;

struct st_past {
    /* Where the player stands: behind this row. */
    st_core *core; /* NULL: nowhere */
    int64_t seq, at_ms;
    bool exact, owed;
    /* What was decided since. */
    int64_t since_ms; /* it has played everything from there on, */
    int64_t told_ms;  /* and has what was decided from there on; later where that was too much */
    int64_t upto_seq, upto_ms; /* the last row whose decisions it has; it may stand before that */
    ST_VEC(st_past_move) moves;
    ST_VEC(st_past_job) jobs;
    st_idmap *which; /* id of a job -> its place in `jobs` */

    mark marks[ST_PAST_MARKS];

    /* While it plays. */
    int64_t slice_ms, goal_ms, stop_ms, marked_ms;
    int rows;
    bool late, due;
    st_effects fx;
    st_notes notes;
    st_arena *arena;
};

static int64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what is told --------------------------------------------------------------------------- */

static void forget(st_past *p)
{
    for (size_t i = 0; i < p->jobs.n; i++)
        free(p->jobs.v[i].name);
    st_vec_free(&p->jobs);
    st_vec_free(&p->moves);
    st_idmap_free(ST_TAKE(p->which));
}

static int64_t know(st_past *p, const st_job *job)
{
    int64_t at;

    if (st_idmap_get(p->which, job->id, &at))
        return at;
    at = (int64_t)p->jobs.n;
    st_vec_push(&p->jobs, ((st_past_job){job->id, job->account, job->user, st_job_gpu_m(job),
                                         st_xstrdup(job->name ? job->name : "")}));
    st_idmap_put(p->which, job->id, at);
    return at;
}

/* From here on. */
static void tell_anew(st_past *p, int64_t told_ms)
{
    forget(p);
    p->told_ms = told_ms;
    p->upto_seq = p->seq;
    p->upto_ms = p->at_ms;
    p->which = st_idmap_new();
    for (size_t i = 0; i < st_core_njobs(p->core); i++)
        know(p, st_core_job_at(p->core, i));
}

static int64_t known(const st_past *p, uint64_t id)
{
    int64_t at;

    return id > 0 && st_idmap_get(p->which, id, &at) ? at : -1;
}

static void tell(st_past *p)
{
    if (p->seq <= p->upto_seq)
        return;
    p->upto_seq = p->seq;
    p->upto_ms = p->at_ms;
    for (size_t i = 0; i < p->fx.list.n; i++) {
        const st_effect *e = &p->fx.list.v[i];
        const st_job *job = e->job ? st_core_job(p->core, e->job) : NULL;
        bool booking = e->kind == ST_FX_BOOKING; /* its `other` is no job */

        if (job)
            know(p, job);
        st_vec_push(&p->moves, ((st_past_move){.at_ms = e->at_ms,
                                               .seq = p->seq,
                                               .kind = e->kind,
                                               .job = known(p, e->job),
                                               .other = booking ? -1 : known(p, e->other),
                                               .node = e->node,
                                               .state = e->state,
                                               .value = e->value}));
    }
    if (p->moves.n > ST_PAST_MOVES || p->jobs.n > JOBS_MAX)
        tell_anew(p, p->at_ms + 1);
}

/* ---- marks ---------------------------------------------------------------------------------- */

static void mark_drop(mark *m)
{
    st_strbuf_done(&m->data);
    *m = (mark){0};
}

/* The next mark before, or behind, a row; -1: there is none. */
static int64_t mark_beside(const st_past *p, int64_t seq, bool before)
{
    int64_t best = -1;

    for (int i = 0; i < ST_PAST_MARKS; i++) {
        int64_t at = p->marks[i].seq;

        if (p->marks[i].data.n > 0 && (before ? at < seq : at > seq) &&
            (best < 0 || (before ? at > best : at < best)))
            best = at;
    }
    return best;
}

/* How little one is missed: the gap it would leave against how far from here it is. So marks are close together where
 * somebody looks, and become rarer away from there. */
static int64_t mark_worth(const st_past *p, const mark *m)
{
    int64_t before = ST_MAX(mark_beside(p, m->seq, true), 0);
    int64_t behind = mark_beside(p, m->seq, false);
    int64_t gap = (behind < 0 ? ST_MAX(p->seq, m->seq) : behind) - before;
    int64_t away = m->seq < p->seq ? p->seq - m->seq : m->seq - p->seq;

    return gap * 1024 / (away + 1);
}

static mark *mark_room(st_past *p, int64_t bytes)
{
    for (;;) {
        int64_t sum = bytes;
        mark *least = NULL, *empty = NULL;

        for (int i = 0; i < ST_PAST_MARKS; i++) {
            mark *m = &p->marks[i];

            sum += (int64_t)m->data.n;
            if (m->data.n == 0)
                empty = m;
            else if (!least || mark_worth(p, m) < mark_worth(p, least))
                least = m;
        }
        if ((empty && sum <= ST_PAST_MARK_BYTES) || !least)
            return sum <= ST_PAST_MARK_BYTES ? empty : NULL;
        mark_drop(least);
    }
}

static void mark_make(st_past *p)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    mark *m;

    if (p->owed) /* a saved core does not know what it has heard since its last pass */
        return;
    p->marked_ms = clock_ms();
    for (int i = 0; i < ST_PAST_MARKS; i++)
        if (p->marks[i].data.n > 0 && p->marks[i].seq == p->seq)
            return;
    st_core_save(p->core, &data);
    m = mark_room(p, (int64_t)data.n);
    if (!m)
        return;
    *m = (mark){p->seq, p->at_ms, p->exact, data};
    data = (st_strbuf){0};
}

/* ---- playing -------------------------------------------------------------------------------- */

static int play_events(st_past *p, const st_log_row *row, size_t *ret_at, bool *ret_events,
                       st_err *err)
{
    size_t at = 0;
    int r = 0;

    while (r == 0 && at < row->data.n && !st_notes_here(row->data.p, row->data.n, at)) {
        st_event event;
        st_err refused;

        r = st_event_decode(row->data.p, row->data.n, &at, p->arena, &event, err);
        if (r < 0)
            break;
        *ret_events = true;
        if (st_core_apply(p->core, &event, row->at_ms, &p->fx, &refused) < 0)
            p->exact = false;
        else if (event.kind == ST_EV_SUBMIT && st_core_job(p->core, event.u.job.id))
            know(p, st_core_job(p->core, event.u.job.id)); /* it may be over when the row is */
    }
    *ret_at = at;
    return r;
}

static int play_row(void *ctx, const st_log_row *row, st_err *err)
{
    st_past *p = ctx;
    bool events = false;
    size_t at = 0;
    int r;

    if (row->at_ms > p->goal_ms)
        return 1;
    if (row->seq != p->seq + 1)
        return st_fail(err, ST_ERANGE, "the log was shortened meanwhile; ask again");
    st_arena_reset(p->arena);
    st_effects_clear(&p->fx);
    st_vec_clear(&p->notes);
    r = play_events(p, row, &at, &events, err);
    if (r == 0 && at < row->data.n)
        r = st_notes_read(row->data.p, row->data.n, at, &p->notes, err);
    if (r < 0)
        return r;
    if (st_notes_pass(&p->notes, events)) {
        st_core_settle(p->core, row->at_ms, &p->fx);
        p->owed = false;
    } else {
        p->owed |= events;
    }
    p->seq = row->seq;
    p->at_ms = row->at_ms;
    p->exact &= st_core_hash(p->core) == row->hash;
    tell(p);
    if (++p->rows % ROWS_BETWEEN == 0 || p->due) {
        int64_t now = clock_ms();

        p->due = p->owed && now - p->marked_ms > MARK_MS; /* behind the next pass, then */
        if (now - p->marked_ms > MARK_MS)
            mark_make(p);
        p->late = now > p->stop_ms;
    }
    return p->late ? 1 : 0;
}

/* ---- where to begin ------------------------------------------------------------------------- */

int st_past_first(st_store *reader, int64_t *ret_ms, bool *ret_whole, st_err *err)
{
    st_store_reach reach;
    int r = st_store_log_reach(reader, INT64_MAX, &reach, err);

    if (r < 0)
        return r;
    if (reach.first_ms < 0)
        return st_fail(err, ST_ENOENT, "stintd has decided nothing yet");
    *ret_ms = reach.first_ms;
    *ret_whole = reach.whole;
    return 0;
}

/* Whether what was told so far goes up to a state of that moment, and on from there. */
static bool told_at(const st_past *p, int64_t at_ms)
{
    return p->core && p->told_ms <= at_ms && at_ms <= p->upto_ms;
}

static void stand(st_past *p, st_core *core, int64_t seq, int64_t at_ms, bool exact,
                  int64_t told_ms)
{
    bool told = told_at(p, at_ms) && seq <= p->upto_seq;

    st_core_free(p->core);
    p->core = core;
    p->seq = seq;
    p->at_ms = at_ms;
    p->exact = exact;
    p->owed = false;
    if (!told) {
        p->since_ms = told_ms;
        tell_anew(p, told_ms);
    }
}

static int from_mark(st_past *p, mark *m, st_err *err)
{
    st_core *core = NULL;
    int r = st_core_load(st_strbuf_str(&m->data), m->data.n, &core, err);

    if (r < 0)
        return r;
    stand(p, core, m->seq, m->at_ms, m->exact, m->at_ms + 1);
    return 0;
}

static int from_snapshot(st_past *p, st_store *reader, int64_t seq, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_core *core = NULL;
    st_snapshot s;
    st_snap_row snap;
    int r = st_store_snap_get(reader, seq, arena, &snap, err);

    if (r == 0)
        r = st_snapshot_open(snap.data.p, snap.data.n, &s, err);
    if (r == 0)
        r = st_core_load(s.data[ST_SNAP_CORE], s.len[ST_SNAP_CORE], &core, err);
    if (r < 0)
        return r;
    stand(p, core, snap.seq, snap.at_ms, true, snap.at_ms + 1);
    return 0;
}

/* The latest state that is not later than `told_ms` before the moment, or the first one there is. */
static int begin(st_past *p, st_store *reader, int64_t at_ms, int64_t told_ms, st_err *err)
{
    const st_policy policy = st_policy_default();
    st_store_reach reach;
    mark *best = NULL;
    int64_t from_ms = at_ms - told_ms;
    int r = st_store_log_reach(reader, from_ms, &reach, err);

    if (r == 0 && (reach.first_ms < 0 || reach.first_ms > at_ms))
        r = st_fail(err, ST_ERANGE, "the log does not reach back so far; ask for a later time");
    if (r == 0 && !reach.whole && from_ms <= reach.first_ms) { /* less is told, then */
        from_ms = reach.first_ms + 1;
        r = st_store_log_reach(reader, from_ms, &reach, err);
    }
    /* What was told already need not be played for that again. */
    if (r == 0 && p->core && p->since_ms <= from_ms && from_ms <= p->upto_ms) {
        st_store_reach late;

        r = st_store_log_reach(reader, ST_MIN(at_ms, p->upto_ms), &late, err);
        from_ms = ST_MIN(at_ms, p->upto_ms);
        reach.snap_seq = ST_MAX(reach.snap_seq, late.snap_seq);
    }
    if (r < 0)
        return r;
    for (int i = 0; i < ST_PAST_MARKS; i++) {
        mark *m = &p->marks[i];

        if (m->data.n > 0 && m->at_ms <= from_ms && (!best || m->seq > best->seq))
            best = m;
    }
    /* Forward from where it stands, if that is no detour. */
    if (p->core && p->at_ms <= at_ms && p->since_ms <= from_ms &&
        p->seq >= ST_MAX(best ? best->seq : 0, reach.snap_seq))
        return 0;
    if (best && best->seq >= reach.snap_seq)
        return from_mark(p, best, err);
    if (reach.snap_seq > 0)
        return from_snapshot(p, reader, reach.snap_seq, err);
    if (!reach.whole)
        return st_fail(err, ST_ERANGE, "the log was shortened meanwhile; ask again");
    stand(p, st_core_new(&policy), 0, reach.first_ms, true, INT64_MIN);
    return 0;
}

int st_past_at(st_past *p, st_store *reader, int64_t at_ms, int64_t told_ms, st_past_view *ret,
               st_err *err)
{
    int64_t now = clock_ms();
    size_t n;
    int r;

    r = begin(p, reader, at_ms, told_ms, err);
    if (r < 0)
        return r;
    p->goal_ms = at_ms;
    p->stop_ms = now + p->slice_ms;
    p->marked_ms = now;
    p->late = p->due = false;
    p->rows = 0;
    r = st_store_log_read(reader, p->seq + 1, play_row, p, err);
    if (r < 0) { /* what stands between two rows is nothing to go on from */
        st_core_free(ST_TAKE(p->core));
        return r;
    }
    if (p->late) {
        mark_make(p);
        return st_fail(err, ST_EDOWN,
                       "stintd is playing its log up to that moment; ask again in a moment");
    }
    n = p->moves.n;
    while (n > 0 && p->moves.v[n - 1].seq > p->seq)
        n--;
    *ret = (st_past_view){.core = p->core,
                          .told_ms = ST_MAX(p->told_ms, at_ms - told_ms),
                          .exact = p->exact,
                          .moves = p->moves.v,
                          .nmoves = n,
                          .jobs = p->jobs.v};
    return 0;
}

/* ---- the player ----------------------------------------------------------------------------- */

st_past *st_past_new(int64_t slice_ms)
{
    st_past *p = st_xcalloc(1, sizeof *p);

    p->slice_ms = slice_ms;
    p->arena = st_arena_new();
    return p;
}

void st_past_free(st_past *p)
{
    if (!p)
        return;
    forget(p);
    for (int i = 0; i < ST_PAST_MARKS; i++)
        mark_drop(&p->marks[i]);
    st_effects_done(&p->fx);
    st_vec_free(&p->notes);
    st_arena_free(p->arena);
    st_core_free(p->core);
    free(p);
}
