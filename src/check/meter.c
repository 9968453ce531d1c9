/*
 * The audit of the meter: its own books, and the meter's against them. See check_meter.h.
 *
 * Exact parts of crowded devices are kept in 65536ths of a milli-GPU x ms; nothing is rounded but that.
 */
#include "check/meter.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "check/inside.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define ONE      65536 /* a milli-GPU x ms */
/* From so many changes on, what was had before a moment is not known exactly (meter.h). */
#define EXACT_CHANGES 60
/* So many of its pieces a stay remembers: it cannot have ended, nor lost anything, before them (meter.h). */
#define KNOWN_PIECES 256

typedef struct piece {
    int64_t share, held, seen, busy, inside, inside_idle;
    int64_t from_ms, to_ms;
    bool lost;
} piece;

typedef struct point {
    int64_t at_ms;
    st_i128 had;
} point;

typedef struct track {
    st_audit_stay is;
    int32_t type;
    int64_t gpu_m, dev_m;
    int32_t account;
    int64_t inside_m; /* of gpu_m, what is inside floors until the next moment */
    st_i128 inside;   /* what that came to, in ONEths */
    st_grant *grants;
    ST_VEC(point) past; /* what it had, in ONEths, at each moment */
    bool crowded;       /* was, at some time */
    int changes;
    st_class class;  /* when the moment began */
    int64_t end_ms;  /* over: when it really ended */
    int64_t lost_ms; /* ... and what it lost, up to the moment when that was known */
    int64_t gone_ms; /* when its job ended for good; -1 */
    bool early;      /* ... before that was known */
    bool closed;     /* its last record has come */
    int64_t to_ms;   /* of the last record */
    ST_VEC(piece) pieces;
    struct track *told;         /* who has what telemetry told: the first since its tasks started */
    int64_t *seen_ms, seen_sum; /* that: by task, in all */
    int64_t seen;               /* what pieces say of it, over pauses */
} track;

typedef struct place {
    ST_VEC(size_t) who; /* tracks, once per task */
    int64_t held_m;
    int64_t planned_m; /* kept for jobs that wait */
    int32_t type;
    int64_t idle_m, unhealthy_m;
    bool gone; /* its node was removed */
} place;

typedef ST_VEC(int64_t) amounts;

struct st_audit {
    int64_t now;
    ST_VEC(track *) tracks;
    st_idmap *newest; /* by job, into `tracks` */
    ST_VEC(size_t) open;
    ST_VEC(place) places; /* by node and device */
    st_i128 idle[ST_TYPES_MAX], unhealthy[ST_TYPES_MAX], all[ST_TYPES_MAX];
    st_i128 told[ST_TYPES_MAX][5]; /* by FLEET records: total, granted, idle, unhealthy, overhead */
    st_i128 granted[ST_TYPES_MAX]; /* by GRANT and FIX records */
    int64_t lost_ms, lost_told; /* in this step: what jobs lost, by effects and by LOST records */
    bool forgets;               /* in this step: somebody left whose first pieces are forgotten */
    amounts floor_m, floor_want, floor_told;
};

st_audit *st_audit_new(int64_t now)
{
    st_audit *a = st_xcalloc(1, sizeof *a);
    a->now = now;
    a->newest = st_idmap_new();
    return a;
}

void st_audit_free(st_audit *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->tracks.n; i++) {
        track *t = a->tracks.v[i];
        free(t->grants);
        free(t->seen_ms);
        st_vec_free(&t->past);
        st_vec_free(&t->pieces);
        free(t);
    }
    for (size_t i = 0; i < a->places.n; i++)
        st_vec_free(&a->places.v[i].who);
    st_vec_free(&a->tracks);
    st_vec_free(&a->open);
    st_vec_free(&a->places);
    st_vec_free(&a->floor_m);
    st_vec_free(&a->floor_want);
    st_vec_free(&a->floor_told);
    st_idmap_free(a->newest);
    free(a);
}

size_t st_audit_nstays(const st_audit *a)
{
    return a->tracks.n;
}

st_audit_stay st_audit_stay_at(const st_audit *a, size_t i)
{
    return a->tracks.v[i]->is;
}

static track *find(const st_audit *a, uint64_t job, int number)
{
    int64_t at;
    if (!st_idmap_get(a->newest, job, &at))
        return NULL;
    while (at >= 0 && (a->tracks.v[at]->is.job != job || a->tracks.v[at]->is.number != number))
        at--;
    return at >= 0 ? a->tracks.v[at] : NULL;
}

static track *newest(const st_audit *a, uint64_t job)
{
    int64_t at;
    return st_idmap_get(a->newest, job, &at) ? a->tracks.v[at] : NULL;
}

/* ---- time passes -------------------------------------------------------------------------- */

static void pass_place(st_audit *a, const place *p, int64_t ms)
{
    a->all[p->type] += p->gone ? 0 : (st_i128)ST_WHOLE_M * ms;
    a->idle[p->type] += (st_i128)p->idle_m * ms;
    a->unhealthy[p->type] += (st_i128)p->unhealthy_m * ms;
    for (size_t i = 0; i < p->who.n; i++) {
        track *t = a->tracks.v[p->who.v[i]];
        st_i128 part = (st_i128)t->dev_m * ms * ONE;
        if (p->held_m > ST_WHOLE_M)
            part = part * ST_WHOLE_M / p->held_m;
        t->past.v[t->past.n - 1].had += part;
        t->inside += part * t->inside_m / t->gpu_m;
    }
}

void st_audit_pass(st_audit *a, int64_t now)
{
    int64_t ms = now - a->now;
    if (ms <= 0)
        return;
    for (size_t i = 0; i < a->open.n; i++) {
        track *t = a->tracks.v[a->open.v[i]];
        st_vec_push(&t->past, (point){now, t->past.v[t->past.n - 1].had});
    }
    for (size_t i = 0; i < a->places.n; i++)
        pass_place(a, &a->places.v[i], ms);
    for (size_t i = 0; i < a->floor_m.n; i++)
        a->floor_want.v[i] += a->floor_m.v[i] * ms;
    a->now = now;
}

/* ---- stays begin and end ------------------------------------------------------------------ */

static void on_start(st_audit *a, const st_core *core, const st_effects *fx, const st_effect *e)
{
    const st_job *job = st_core_job(core, e->job);
    if (!job)
        return;
    const track *last = newest(a, e->job);
    if (last && last->gone_ms >= 0 && a->now - last->gone_ms > ST_METER_LATE_MS)
        last = NULL; /* another job with an id that was used long ago */
    track *t = st_xcalloc(1, sizeof *t);
    bool resumed = e->kind == ST_FX_RESUME && last && last->is.start == e->stay;
    t->told = resumed ? last->told : t;
    t->is = (st_audit_stay){.job = e->job,
                            .number = last ? ST_MAX(e->times, last->is.number + 1) : e->times,
                            .start = e->stay,
                            .tasks = job->tasks,
                            .ndevs = job->tasks * job->shape.gpus,
                            .start_ms = a->now};
    t->type = job->shape.gpus > 0 ? (int32_t)e->type : -1;
    t->gpu_m = st_job_gpu_m(job);
    t->account = job->account;
    t->dev_m = job->shape.gpus > 0 ? st_shape_gpu_m(&job->shape) / job->shape.gpus : 0;
    t->class = e->class;
    t->gone_ms = -1;
    t->to_ms = a->now;
    t->grants = st_xcalloc((size_t)job->tasks, sizeof *t->grants);
    for (int i = 0; i < job->tasks; i++)
        t->grants[i] = fx->grants.v[e->grants_at + (size_t)i];
    st_vec_push(&t->past, (point){a->now, 0});
    st_idmap_put(a->newest, e->job, (int64_t)a->tracks.n);
    st_vec_push(&a->open, a->tracks.n);
    st_vec_push(&a->tracks, t);
}

/* What the stay lost if it ended then: after its end there was no work. */
static int64_t lost_until(const st_audit *a, const track *t, int64_t end_ms)
{
    return ST_MAX(t->lost_ms - (a->now - end_ms), 0);
}

/* Whether pieces of the stay, or of one before it whose work it goes on with, are forgotten once this moment
 * has added its own, of which there are a few at most. */
static bool forgets(const st_audit *a, const track *t)
{
    for (; t; t = find(a, t->is.job, t->is.number - 1))
        if (t->pieces.n + 6 > KNOWN_PIECES)
            return true;
    return false;
}

static void on_leave(st_audit *a, const st_effect *e, const st_metering_hint *hint)
{
    track *t = newest(a, e->job);
    /* Who leaves by order of its own account loses nothing to others. */
    int64_t lost = e->kind == ST_FX_PAUSE || e->ordered ? 0 : e->unsaved_ms;
    if (t && e->kind == ST_FX_END)
        t->gone_ms = a->now;
    if (!t)
        return;
    a->forgets |= forgets(a, t);
    if (t->is.over) {
        a->lost_ms += lost;
        return;
    }
    /* What is paused had not ended. */
    int64_t end = hint && e->kind != ST_FX_PAUSE ? hint->ended_ms(hint->ctx, e->job) : ST_UNSET;
    if (end == ST_UNSET || end > a->now)
        end = a->now;
    t->end_ms = ST_MAX(end, t->is.start_ms);
    t->early = t->end_ms < a->now;
    t->lost_ms = lost;
    a->lost_ms += lost_until(a, t, t->end_ms);
    t->is.over = true;
    for (size_t i = 0; i < a->open.n; i++)
        if (a->tracks.v[a->open.v[i]] == t)
            st_vec_remove(&a->open, i);
}

void st_audit_step(st_audit *a, const st_core *core, const st_effects *fx,
                   const st_metering_hint *hint)
{
    for (size_t i = 0; i < fx->list.n; i++) {
        const st_effect *e = &fx->list.v[i];
        if (e->kind == ST_FX_START || e->kind == ST_FX_RESUME)
            on_start(a, core, fx, e);
        else if (e->kind == ST_FX_PAUSE || e->kind == ST_FX_REQUEUE || e->kind == ST_FX_RETRY ||
                 e->kind == ST_FX_END)
            on_leave(a, e, hint);
    }
}

/* ---- records ------------------------------------------------------------------------------ */

/* What the stay had by a moment, in ONEths. */
static st_i128 had_by(const track *t, int64_t at_ms)
{
    size_t i = 0;
    while (i + 1 < t->past.n && t->past.v[i + 1].at_ms <= at_ms)
        i++;
    const point *p = &t->past.v[i];
    if (i + 1 == t->past.n || at_ms <= p->at_ms)
        return p->had;
    return p->had + (p[1].had - p->had) * (at_ms - p->at_ms) / (p[1].at_ms - p->at_ms);
}

/* What floors had paid of the stay, unless it turned out that it had ended before: then it is a proportion. */
static int check_inside(const track *t, st_err *err)
{
    st_i128 inside = 0, slack = (st_i128)(t->is.ndevs + 2) * (t->changes + 2) * ONE;
    for (size_t i = 0; i < t->pieces.n; i++)
        inside += t->pieces.v[i].inside;
    st_i128 off = inside * ONE - t->inside;
    if (t->early || (off <= slack && -off <= slack))
        return 0;
    return BAD("meter: job %" PRIu64 " stay %d has %" PRId64
               " inside floors, which is %+.3f off after %d changes",
               t->is.job, t->is.number, (int64_t)inside, (double)off / ONE, t->changes);
}

/* The stay is over and all its records are there: it had its part. */
static int check_total(const track *t, st_err *err)
{
    int64_t share = 0, held = 0;
    for (size_t i = 0; i < t->pieces.n; i++) {
        share += t->pieces.v[i].share;
        held += t->pieces.v[i].held;
    }
    if (held != t->gpu_m * (t->end_ms - t->is.start_ms))
        return BAD("meter: job %" PRIu64 " stay %d held %" PRId64 " in %" PRId64 " ms", t->is.job,
                   t->is.number, held, t->end_ms - t->is.start_ms);
    int rc = check_inside(t, err);
    if (rc < 0 || (t->crowded && t->end_ms < t->to_ms && t->changes > EXACT_CHANGES))
        return rc;
    st_i128 off = (st_i128)share * ONE - had_by(t, t->end_ms);
    int64_t slack = t->crowded ? (int64_t)t->is.ndevs * (t->changes + 2) * ONE : 0;
    if (off > slack || off < -slack)
        return BAD("meter: job %" PRIu64 " stay %d has a share of %" PRId64
                   ", which is %+.3f off after %d changes",
                   t->is.job, t->is.number, share, (double)off / ONE, t->changes);
    return 0;
}

void st_audit_used(st_audit *a, size_t i, int task, const st_sums *sums)
{
    /* An id may be another job's by now, and what comes for it is that one's. */
    const track *named = a->tracks.v[i];
    track *t = newest(a, named->is.job);
    while (t && t->is.start != named->is.start)
        t = find(a, t->is.job, t->is.number - 1);
    if (!t || task < 0 || task >= t->is.tasks)
        return;
    t = t->told;
    if (!t->seen_ms)
        t->seen_ms = st_xcalloc((size_t)t->is.tasks, sizeof *t->seen_ms);
    int64_t more = ST_MAX(sums->seen_gpu_ms - t->seen_ms[task], 0);
    t->seen_ms[task] += more;
    t->seen_sum += more;
}

static int check_piece(const track *t, size_t i, st_err *err)
{
    if (t->told->seen > t->told->seen_sum * t->dev_m)
        return BAD("meter: job %" PRIu64 " stay %d: %" PRId64 " seen, %" PRId64 " GPU-ms told of",
                   t->is.job, t->is.number, t->told->seen, t->told->seen_sum);
    const piece *p = &t->pieces.v[i];
    int64_t slack = t->crowded ? (int64_t)t->is.ndevs * (t->changes + 2) : 0; /* of fractions */
    if (p->busy < 0 || p->busy > p->seen || p->seen > p->share || p->share > p->held + slack)
        return BAD("meter: job %" PRIu64 " stay %d piece %zu: busy %" PRId64 ", seen %" PRId64
                   ", share %" PRId64 ", held %" PRId64,
                   t->is.job, t->is.number, i + 1, p->busy, p->seen, p->share, p->held);
    if (p->inside < 0 || p->inside > p->share || p->inside_idle < 0 ||
        p->inside_idle > ST_MIN(p->seen - p->busy, p->inside))
        return BAD("meter: job %" PRIu64 " stay %d piece %zu: %" PRId64 " of %" PRId64
                   " inside floors, unused %" PRId64 " of %" PRId64,
                   t->is.job, t->is.number, i + 1, p->inside, p->share, p->inside_idle,
                   p->seen - p->busy);
    return 0;
}

/* The last record is here: the stay did not end before the pieces that are remembered. */
static void not_before_known(st_audit *a, track *t)
{
    if (t->pieces.n <= KNOWN_PIECES)
        return;
    int64_t end_ms = ST_MAX(t->end_ms, t->pieces.v[t->pieces.n - KNOWN_PIECES].from_ms);
    a->lost_ms += lost_until(a, t, end_ms) - lost_until(a, t, t->end_ms);
    t->end_ms = end_ms;
}

static int on_grant(st_audit *a, track *t, const st_record *r, st_err *err)
{
    bool last = r->cut != ST_CUT_GOES_ON;
    if (last && t->is.over && !t->closed)
        not_before_known(a, t);
    if (t->closed || r->from_ms != t->to_ms || r->piece != (int)t->pieces.n + 1 ||
        r->to_ms < r->from_ms || (!last && r->to_ms == r->from_ms))
        return BAD("meter: job %" PRIu64 " stay %d piece %d is [%" PRId64 ", %" PRId64
                   ") after %zu pieces up to %" PRId64,
                   r->job, r->stay, r->piece, r->from_ms, r->to_ms, t->pieces.n, t->to_ms);
    if (last && (!t->is.over || r->to_ms != ST_MAX(t->end_ms, r->from_ms)))
        return BAD("meter: job %" PRIu64 " stay %d ends at %" PRId64 ", it really did at %" PRId64,
                   r->job, r->stay, r->to_ms, t->end_ms);
    bool guaranteed = t->class == ST_CLASS_GUARANTEED || t->class == ST_CLASS_BOOKED;
    if (r->to_ms > r->from_ms && guaranteed != (r->basis == ST_BASIS_GUARANTEED))
        return BAD("meter: job %" PRIu64 " stay %d piece %d is %s, the job %s", r->job, r->stay,
                   r->piece, st_basis_name(r->basis), st_class_name(t->class));
    t->to_ms = r->to_ms;
    t->closed = last;
    t->changes++;
    st_vec_push(&t->pieces, ((piece){r->share, r->held, ST_MAX(r->seen, 0), ST_MAX(r->busy, 0),
                                     r->inside, r->inside_idle, r->from_ms, r->to_ms, false}));
    t->told->seen += ST_MAX(r->seen, 0);
    if (t->type >= 0)
        a->granted[t->type] += r->share;
    int rc = check_piece(t, t->pieces.n - 1, err);
    return rc == 0 && last ? check_total(t, err) : rc;
}

static int on_fix(st_audit *a, track *t, const st_record *r, st_err *err)
{
    if (r->fixes < 1 || r->fixes > (int)t->pieces.n || r->piece != r->fixes || r->share > 0 ||
        r->held > 0 || (r->held < 0 && t->closed))
        return BAD("meter: job %" PRIu64 " stay %d: a correction of piece %d by %" PRId64
                   ", of %zu pieces",
                   r->job, r->stay, r->fixes, r->share, t->pieces.n);
    piece *p = &t->pieces.v[r->fixes - 1];
    p->share += r->share;
    p->held += r->held;
    if (r->held < 0 || r->share < 0 || r->cpu < 0 || r->ram < 0)
        p->to_ms = r->from_ms;
    p->seen += r->seen;
    p->busy += r->busy;
    p->inside += r->inside;
    p->inside_idle += r->inside_idle;
    t->told->seen += r->seen;
    if (t->type >= 0)
        a->granted[t->type] += r->share;
    return check_piece(t, (size_t)r->fixes - 1, err);
}

/* What is lost was had, then, and is lost once. */
static int on_lost(st_audit *a, track *t, const st_record *r, st_err *err)
{
    piece *p = r->fixes >= 1 && r->fixes <= (int)t->pieces.n ? &t->pieces.v[r->fixes - 1] : NULL;
    if (!p || p->lost || r->piece != r->fixes || r->from_ms < p->from_ms || r->to_ms != p->to_ms ||
        r->to_ms <= r->from_ms || r->lost < 0 || r->lost > p->share || !st_cut_blameless(r->cut))
        return BAD("meter: job %" PRIu64 " stay %d: [%" PRId64 ", %" PRId64 ") of piece %d is lost",
                   r->job, r->stay, r->from_ms, r->to_ms, r->fixes);
    p->lost = true;
    a->lost_told += r->to_ms - r->from_ms;
    if (r->from_ms == p->from_ms ? r->lost == p->share : t->changes > EXACT_CHANGES)
        return 0;
    st_i128 off = (st_i128)r->lost * ONE - (had_by(t, r->to_ms) - had_by(t, r->from_ms));
    int64_t slack = t->crowded ? (int64_t)t->is.ndevs * (t->changes + 2) * ONE : 0;
    if (off > slack || off < -slack)
        return BAD("meter: job %" PRIu64 " stay %d loses %" PRId64 ", which is %+.3f off", r->job,
                   r->stay, r->lost, (double)off / ONE);
    return 0;
}

static int on_fleet(st_audit *a, const st_record *r, st_err *err)
{
    if (r->granted + r->idle + r->unhealthy + r->overhead != r->total ||
        (r->total == 0 && r->granted + r->overhead != 0))
        return BAD("meter: type %d: %" PRId64 " of %" PRId64 " are somewhere", r->type,
                   r->granted + r->idle + r->unhealthy + r->overhead, r->total);
    const int64_t parts[] = {r->total, r->granted, r->idle, r->unhealthy, r->overhead};
    for (int i = 0; i < 5; i++)
        a->told[r->type][i] += parts[i];
    return 0;
}

static int on_reserve(st_audit *a, const st_record *r, st_err *err)
{
    if (r->account < 1 || (size_t)r->account >= a->floor_told.n || r->to_ms <= r->from_ms ||
        r->share != r->gpu_m * (r->to_ms - r->from_ms))
        return BAD("meter: the floor of account %d over [%" PRId64 ", %" PRId64 ") is %" PRId64,
                   r->account, r->from_ms, r->to_ms, r->share);
    a->floor_told.v[r->account] += r->share;
    return 0;
}

static int on_record(st_audit *a, const st_record *r, st_err *err)
{
    if (r->kind == ST_REC_FLEET)
        return on_fleet(a, r, err);
    if (r->kind == ST_REC_RESERVE)
        return on_reserve(a, r, err);
    track *t = find(a, r->job, r->stay);
    if (!t)
        return BAD("meter: a %s record of job %" PRIu64 " stay %d, which is not known",
                   st_record_name(r->kind), r->job, r->stay);
    return r->kind == ST_REC_GRANT  ? on_grant(a, t, r, err)
           : r->kind == ST_REC_LOST ? on_lost(a, t, r, err)
                                    : on_fix(a, t, r, err);
}

int st_audit_records(st_audit *a, const st_records *records, bool cut, st_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < records->n; i++)
        rc = on_record(a, &records->v[i], err);
    if (rc == 0 && a->lost_ms != a->lost_told && !(a->forgets && a->lost_told < a->lost_ms))
        return BAD("meter: %" PRId64 " ms of work are lost, records say %" PRId64, a->lost_ms,
                   a->lost_told);
    a->lost_ms = a->lost_told = 0;
    a->forgets = false;
    for (size_t i = 0; rc == 0 && cut && i < a->open.n; i++) {
        const track *t = a->tracks.v[a->open.v[i]];
        if (t->to_ms != a->now)
            return BAD("meter: job %" PRIu64 " stay %d was not cut at %" PRId64, t->is.job,
                       t->is.number, a->now);
    }
    return rc;
}

/* ---- after a step ------------------------------------------------------------------------- */

/* Whether any profile could be carved out of what is left. */
static bool carvable(const st_audit *a, const st_core *core, const place *p, unsigned dev_bit,
                     int32_t node)
{
    unsigned mask = 0;
    int compute = 0;
    for (size_t i = 0; i < p->who.n; i++) {
        const track *t = a->tracks.v[p->who.v[i]];
        const st_job *job = st_core_job(core, t->is.job);
        if (i > 0 && p->who.v[i] == p->who.v[i - 1])
            continue; /* all its tasks have been looked at */
        if (job->shape.level != ST_LEVEL_MIG)
            return true;
        for (int k = 0; k < t->is.tasks; k++) {
            if (t->grants[k].node != node || !(t->grants[k].devs & dev_bit))
                continue;
            mask |= st_mig_mask(job->shape.profile, t->grants[k].mig_start);
            compute += st_mig_compute(job->shape.profile);
        }
    }
    for (int profile = 0; profile < ST_MIG_COUNT; profile++)
        for (int s = 0; s < ST_MIG_MEMORY; s++)
            if (st_mig_start_legal((st_mig)profile, s) &&
                compute + st_mig_compute((st_mig)profile) <= ST_MIG_COMPUTE &&
                !(mask & st_mig_mask((st_mig)profile, s)))
                return true;
    return p->who.n == 0;
}

static int look_at_place(st_audit *a, const st_core *core, const st_meter *m, place *p,
                         const st_node *node, int d, st_err *err)
{
    int64_t all = node->state == ST_NODE_REMOVED ? 0 : ST_WHOLE_M;
    int64_t granted = ST_MIN(p->held_m, ST_WHOLE_M), rest = all - granted, kept = 0;
    st_node_state alone = st_gpu_state(node, d), state = node->state;
    bool open = state == ST_NODE_READY || state == ST_NODE_DRAINING;
    state = open && alone != ST_NODE_READY ? alone : state;
    if (state == ST_NODE_DRAINING || (rest > 0 && !carvable(a, core, p, 1u << d, node->id)))
        kept = rest;
    else if (rest > 0)
        kept = ST_MIN(rest, p->planned_m);
    bool failed = state == ST_NODE_FAILED || state >= ST_NODE_SUSPECT;
    p->type = node->type;
    p->gone = node->state == ST_NODE_REMOVED;
    p->unhealthy_m = failed ? rest : 0;
    p->idle_m = failed ? 0 : rest - kept;
    st_meter_dev is = st_meter_device(m, node->id, d);
    if (is.granted_m != granted || is.idle_m != p->idle_m || is.unhealthy_m != p->unhealthy_m ||
        is.granted_m + is.idle_m + is.unhealthy_m + is.overhead_m != all ||
        is.residents != (int)p->who.n)
        return BAD("meter: node %s device %d is %" PRId64 " granted, %" PRId64 " idle, %" PRId64
                   " unhealthy, %" PRId64 " overhead; %" PRId64 " are held",
                   node->name, d, is.granted_m, is.idle_m, is.unhealthy_m, is.overhead_m,
                   p->held_m);
    return 0;
}

static void enter_devices(st_audit *a, size_t which, const size_t *first)
{
    track *t = a->tracks.v[which];
    for (int k = 0; k < t->is.tasks; k++) {
        for (unsigned devs = t->grants[k].devs; devs; devs &= devs - 1) {
            place *p = &a->places.v[first[t->grants[k].node] + (size_t)__builtin_ctz(devs)];
            st_vec_push(&p->who, which);
            p->held_m += t->dev_m;
        }
    }
}

static void keep_free(st_audit *a, const st_job *job, const size_t *first)
{
    for (int t = 0; job->held && t < job->tasks; t++)
        for (unsigned devs = job->grants[t].devs; devs; devs &= devs - 1)
            a->places.v[first[job->grants[t].node] + (size_t)__builtin_ctz(devs)].planned_m +=
                st_shape_gpu_m(&job->shape) / job->shape.gpus;
}

/* Who is where now. */
static int look_around(st_audit *a, const st_core *core, const st_meter *m, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    ST_VEC(size_t) first = {0};
    size_t n = 0;
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        st_vec_push(&first, n);
        n += (size_t)fleet->nodes.v[i]->ndevs;
    }
    while (a->places.n < n)
        st_vec_push(&a->places, (place){.type = 0});
    for (size_t i = 0; i < n; i++) {
        st_vec_clear(&a->places.v[i].who);
        a->places.v[i].held_m = a->places.v[i].planned_m = 0;
    }
    for (size_t i = 0; i < st_core_njobs(core); i++)
        keep_free(a, st_core_job_at(core, i), first.v);
    for (size_t i = 0; i < a->open.n; i++)
        enter_devices(a, a->open.v[i], first.v);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < fleet->nodes.n; i++)
        for (int d = 0; rc == 0 && d < fleet->nodes.v[i]->ndevs; d++)
            rc = look_at_place(a, core, m, &a->places.v[first.v[i] + (size_t)d], fleet->nodes.v[i],
                               d, err);
    st_vec_free(&first);
    for (size_t i = 0; i < a->places.n; i++)
        for (size_t k = 0; k < a->places.v[i].who.n; k++)
            if (a->places.v[i].held_m > ST_WHOLE_M)
                a->tracks.v[a->places.v[i].who.v[k]]->crowded = true;
    for (size_t i = 0; i < a->open.n; i++) {
        track *t = a->tracks.v[a->open.v[i]];
        const st_job *job = st_core_job(core, t->is.job);
        t->changes++;
        if (job)
            t->class = job->class;
    }
    return rc;
}

static void look_inside(st_audit *a, const st_tree *tree)
{
    ST_VEC(st_inside) rows = {0};
    for (size_t i = 0; i < a->open.n; i++) {
        const track *t = a->tracks.v[a->open.v[i]];
        const bool guaranteed = t->class == ST_CLASS_GUARANTEED;
        const int32_t type = t->class == ST_CLASS_BOOKED ? -1 : t->type; /* the booking's */
        st_vec_push(&rows, ((st_inside){t->is.job, t->account, type, t->gpu_m, guaranteed, 0}));
    }
    st_inside_reckon(tree, rows.v, rows.n);
    for (size_t i = 0; i < rows.n; i++)
        newest(a, rows.v[i].job)->inside_m = rows.v[i].inside_m;
    st_vec_free(&rows);
}

static void look_at_floors(st_audit *a, const st_tree *tree)
{
    while (a->floor_m.n < tree->accounts.n) {
        st_vec_push(&a->floor_m, 0);
        st_vec_push(&a->floor_want, 0);
        st_vec_push(&a->floor_told, 0);
    }
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_account *acc = tree->accounts.v[i];
        int64_t own = st_quota_gpu_m(&acc->floor);
        for (size_t k = 0; k < acc->children.n; k++)
            own -= st_quota_gpu_m(&tree->accounts.v[acc->children.v[k]]->floor);
        a->floor_m.v[i] = ST_MAX(own, 0);
    }
}

/* What is open, on top of what was told. */
typedef struct sum_open {
    st_i128 granted[ST_TYPES_MAX];
    st_i128 fleet[ST_TYPES_MAX];
    amounts floors;
} sum_open;

static int add_open(void *ctx, const st_record *r)
{
    sum_open *sum = ctx;
    if (r->kind == ST_REC_GRANT && r->type >= 0)
        sum->granted[r->type] += r->share;
    else if (r->kind == ST_REC_FLEET)
        sum->fleet[r->type] += r->total;
    else if (r->kind == ST_REC_RESERVE)
        sum->floors.v[r->account] += r->share;
    return 0;
}

static int check_sums(const st_audit *a, const st_meter *m, const sum_open *open, st_err *err)
{
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        st_record r;
        st_meter_totals(m, t, &r);
        if (r.total != a->all[t] || r.idle != a->idle[t] || r.unhealthy != a->unhealthy[t])
            return BAD("meter: type %d: %" PRId64 " in all, %" PRId64 " idle, %" PRId64
                       " unhealthy by %" PRId64 ", which is not so",
                       t, r.total, r.idle, r.unhealthy, a->now);
        if (r.granted != a->granted[t] + open->granted[t])
            return BAD("meter: type %d: %" PRId64 " were granted, stays have %" PRId64, t,
                       r.granted, (int64_t)(a->granted[t] + open->granted[t]));
        if (r.total != a->told[t][0] + open->fleet[t])
            return BAD("meter: type %d: records of the fleet tell of %" PRId64 ", not %" PRId64, t,
                       (int64_t)(a->told[t][0] + open->fleet[t]), r.total);
    }
    for (size_t i = 0; i < a->floor_m.n; i++)
        if (a->floor_want.v[i] != a->floor_told.v[i] + open->floors.v[i])
            return BAD("meter: the floor of account %zu came to %" PRId64 ", %" PRId64 " are told",
                       i, a->floor_want.v[i], a->floor_told.v[i] + open->floors.v[i]);
    return 0;
}

int st_audit_check(st_audit *a, const st_core *core, const st_meter *m, st_err *err)
{
    int rc = st_meter_check(m, err);
    if (rc == 0)
        rc = st_core_meter_check(core, m, err);
    if (rc == 0)
        rc = look_around(a, core, m, err);
    look_at_floors(a, st_core_tree(core));
    look_inside(a, st_core_tree(core));
    sum_open open = {0};
    for (size_t i = 0; i < a->floor_m.n; i++)
        st_vec_push(&open.floors, 0);
    if (rc == 0)
        rc = st_meter_open(m, a->now, add_open, &open);
    if (rc == 0)
        rc = check_sums(a, m, &open, err);
    st_vec_free(&open.floors);
    return rc;
}
