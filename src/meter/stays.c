/* A job's time on devices: it begins, goes on in pieces, and ends. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/mutant.h"
#include "meter/state.h"

void meter_stay_free(stay *s)
{
    if (!s)
        return;
    st_vec_free(&s->pieces);
    free(s->by_task);
    free(s->grants);
    free(s);
}

int64_t meter_nominal_m(const st_shape *shape)
{
    return shape->gpus > 0 ? st_shape_gpu_m(shape) / shape->gpus : 0;
}

/* ---- the lists ---------------------------------------------------------------------------- */

stay *meter_find(const st_meter *m, uint64_t job)
{
    int64_t p;
    return st_idmap_get(m->by_job, job, &p) ? (stay *)(intptr_t)p : NULL;
}

static stay *find_open(const st_meter *m, uint64_t job)
{
    stay *s = meter_find(m, job);
    return s && !s->over ? s : NULL;
}

static void each_dev(st_meter *m, stay *s, void (*fn)(st_meter *, stay *, int, int32_t, int))
{
    for (int t = 0; t < s->tasks; t++)
        for (unsigned devs = s->grants[t].devs; devs; devs &= devs - 1)
            fn(m, s, t, s->grants[t].node, __builtin_ctz(devs));
}

/* The newest of its job. */
static void chain(st_meter *m, stay *s)
{
    s->older = meter_find(m, s->job);
    if (s->older)
        s->older->newer = s;
    st_idmap_put(m->by_job, s->job, (int64_t)(intptr_t)s);
}

static void list_open(st_meter *m, stay *s)
{
    s->slot = m->open.n;
    st_vec_push(&m->open, s);
}

static void list_away(st_meter *m, stay *s)
{
    s->over = s->away = true;
    s->slot = m->away.n;
    st_vec_push(&m->away, s);
}

/* To the end of the line of those that are forgotten in time. */
static void line_up(st_meter *m, stay *s)
{
    s->away = false;
    s->next = NULL;
    if (m->last_over)
        m->last_over->next = s;
    else
        m->first_over = s;
    m->last_over = s;
    m->nover++;
}

/* From the open ones to those that may come back. */
static void bury(st_meter *m, stay *s)
{
    m->open.v[s->slot] = m->open.v[m->open.n - 1];
    m->open.v[s->slot]->slot = s->slot;
    m->open.n--;
    s->over_ms = m->now;
    st_vec_trim(&s->pieces); /* there may be very many, and most have one */
    list_away(m, s);
}

void meter_enter(st_meter *m, stay *s)
{
    chain(m, s);
    if (s->away) {
        list_away(m, s);
    } else if (s->over) {
        line_up(m, s);
    } else {
        list_open(m, s);
        each_dev(m, s, meter_insert);
    }
}

/* It is no longer the stay its job will count on from. */
static void not_away(st_meter *m, stay *s)
{
    if (!s || !s->away)
        return;
    m->away.v[s->slot] = m->away.v[m->away.n - 1];
    m->away.v[s->slot]->slot = s->slot;
    m->away.n--;
    s->over_ms = m->now;
    line_up(m, s);
}

void meter_purge(st_meter *m)
{
    while (m->first_over &&
           (m->nover > ST_METER_LATE_STAYS || m->now - m->first_over->over_ms > ST_METER_LATE_MS)) {
        stay *s = m->first_over;
        m->first_over = s->next;
        m->nover--;
        if (!m->first_over)
            m->last_over = NULL;
        if (s->older)
            s->older->newer = s->newer;
        if (s->newer)
            s->newer->older = s->older;
        else if (s->older)
            st_idmap_put(m->by_job, s->job, (int64_t)(intptr_t)s->older);
        else
            st_idmap_del(m->by_job, s->job);
        meter_stay_free(s);
    }
}

/* ---- records ------------------------------------------------------------------------------ */

st_record meter_head(const stay *s, st_record_kind kind, int number, const piece *p)
{
    return (st_record){
        .kind = kind,
        .from_ms = p->from_ms,
        .to_ms = p->to_ms,
        .account = s->account,
        .type = s->type,
        .job = s->job,
        .stay = s->number,
        .piece = number,
        .user = s->user,
        .level = s->level,
        .profile = s->profile,
        .basis = p->basis,
        .topo = s->topo,
        .tasks = s->tasks,
        .cut = ST_CUT_GOES_ON,
        .gpu_m = s->gpu_m,
        .fixes = kind == ST_REC_GRANT ? 0 : number,
        .grants = kind == ST_REC_GRANT ? s->grants : NULL,
    };
}

/* What follows from the length of an interval alone. */
static void add_lengths(const stay *s, st_record *r, int sign)
{
    int64_t ms = sign * (r->to_ms - r->from_ms);
    r->held = times(s->gpu_m, ms);
    r->cpu = times(s->cpu_m, ms);
    r->ram = times(s->ram_mib, ms);
}

void meter_fold(st_meter *m, stay *s)
{
    s->acc = plus(s->acc, times(s->rate_m, m->now - s->fold_ms));
    s->fold_ms = m->now;
}

/* None of its devices is crowded. */
static bool undisturbed(const stay *s)
{
    return s->rate_m == s->ndevs * s->dev_m;
}

int64_t meter_open_share(const st_meter *m, const stay *s, int64_t now)
{
    int64_t sum = plus(s->acc, times(s->rate_m, now - s->fold_ms));
    if (undisturbed(s))
        return sum;
    for (int t = 0; t < s->tasks; t++) {
        for (unsigned devs = s->grants[t].devs; devs; devs &= devs - 1) {
            dev *d = meter_dev(m, s->grants[t].node, __builtin_ctz(devs));
            if (meter_crowded(d))
                sum = plus(sum, meter_pending(d, meter_resident(d, s, t), now));
        }
    }
    return sum;
}

st_record meter_open_record(const st_meter *m, const stay *s, int64_t now)
{
    piece open = {.from_ms = s->from_ms, .to_ms = now, .basis = s->basis};
    st_record r = meter_head(s, ST_REC_GRANT, s->first + (int)s->pieces.n, &open);
    add_lengths(s, &r, 1);
    r.share = meter_open_share(m, s, now);
    r.inside = meter_inside_open(s, r.share);
    meter_guess(s, &r);
    return r;
}

/* ---- pieces ------------------------------------------------------------------------------- */

static void deal_out_one(st_meter *m, stay *s, int task, int32_t node, int at)
{
    (void)s, (void)task;
    meter_deal_out(m, meter_dev(m, node, at));
}

void meter_deal_out_stay(st_meter *m, stay *s)
{
    if (!undisturbed(s))
        each_dev(m, s, deal_out_one);
    meter_fold(m, s);
    s->in_acc = meter_inside_open(s, s->acc);
    s->in_mark = s->acc;
}

/* A part of the open piece, which is dealt out, goes: of what was inside as much. */
static void drop(stay *s, int64_t share)
{
    if (s->acc > 0)
        s->in_acc -= part(s->in_acc, ST_MIN(share, s->acc), s->acc);
    s->acc -= share;
    s->in_mark = s->acc;
}

/* Hands the open piece out, which is dealt out, as [from_ms, to_ms). */
static void hand_out(stay *s, int64_t to_ms, st_cut why, st_records *out)
{
    if (s->pieces.n == PIECES_MAX) {
        st_vec_remove(&s->pieces, 0);
        s->first++;
    }
    piece p = {.from_ms = s->from_ms,
               .to_ms = to_ms,
               .share = s->acc,
               .inside = s->in_acc,
               .basis = s->basis};
    st_record r = meter_head(s, ST_REC_GRANT, s->first + (int)s->pieces.n, &p);
    st_vec_push(&s->pieces, p);
    add_lengths(s, &r, 1);
    r.share = p.share;
    r.inside = p.inside;
    r.cut = why;
    size_t at = out->n;
    st_vec_push(out, r);
    meter_allot(s, &r, out);
    out->v[at] = r;
    s->acc = s->in_acc = s->in_mark = 0;
    s->from_ms = to_ms;
}

void meter_next_piece(st_meter *m, stay *s, st_basis basis, st_records *out)
{
    if (m->now > s->from_ms) {
        meter_deal_out_stay(m, s);
        int64_t acc = s->acc;
        hand_out(s, m->now, ST_CUT_GOES_ON, out);
        if (ST_BROKEN(METER_OVERLAP) && basis != s->basis)
            s->acc = acc;
    }
    if (basis == s->basis)
        return;
    meter_burst(m, s, -1);
    s->basis = basis;
    meter_burst(m, s, 1);
}

/* ---- begin -------------------------------------------------------------------------------- */

static stay *new_stay(const st_job *job, int32_t type, const st_grant *grants, int64_t now)
{
    stay *s = st_xcalloc(1, sizeof *s);
    bool gpus = job->shape.gpus > 0;
    *s = (stay){
        .job = job->id,
        .number = ST_MAX(job->times, 1),
        .account = job->account,
        .user = job->user,
        .type = gpus ? type : -1,
        .level = gpus ? job->shape.level : ST_LEVEL_WHOLE,
        .profile = gpus && job->shape.level == ST_LEVEL_MIG ? (int)job->shape.profile : -1,
        .topo = job->topo_required ? job->topo : ST_TOPO_NONE,
        .tasks = job->tasks,
        .ndevs = job->tasks * job->shape.gpus,
        .dev_m = meter_nominal_m(&job->shape),
        .gpu_m = st_job_gpu_m(job),
        .cpu_m = st_job_cpu_m(job),
        .ram_mib = st_job_ram_mib(job),
        .start_ms = now,
        .from_ms = now,
        .fold_ms = now,
        .first = 1,
        .class = job->class,
    };
    s->grants = st_xcalloc((size_t)ST_MAX(job->tasks, 1), sizeof *s->grants);
    memcpy(s->grants, grants, (size_t)job->tasks * sizeof *s->grants);
    return s;
}

static void check_grants(const st_meter *m, const stay *s)
{
    int n = 0;
    for (int t = 0; t < s->tasks; t++) {
        const st_grant *g = &s->grants[t];
        ST_ASSERT(g->node >= 0 && (size_t)g->node < m->nodes.n);
        const host *nd = &m->nodes.v[g->node];
        ST_ASSERT(g->devs >> nd->ndevs == 0 && (g->devs == 0 || nd->type == s->type));
        n += __builtin_popcount(g->devs);
    }
    ST_ASSERT(n == s->ndevs);
}

/* The tasks are those of the stay before: what they say goes on from there. */
static void go_on(stay *s, stay *last)
{
    s->resumed = true;
    s->by_task = ST_TAKE(last->by_task);
    s->total = last->total;
    s->given = last->given;
    s->knows = last->knows;
    last->total = last->given = (sums){0};
}

static void begin(st_meter *m, const st_tree *tree, const st_job *job, int32_t type,
                  const st_grant *grants, bool resumed, int64_t now, st_records *out)
{
    st_meter_advance(m, now);
    meter_learn_tree(m, tree);
    st_meter_hold(m, job->id, NULL, 0, NULL, now);
    if (find_open(m, job->id))
        st_meter_stop(m, job->id, now, ST_UNSET, ST_CUT_PREEMPTED, 0, out);
    stay *last = meter_find(m, job->id);
    stay *s = new_stay(job, type, grants, m->now);
    if (last)
        s->number = ST_MAX(s->number, last->number + 1);
    s->start = job->stay > 0 ? job->stay : s->number;
    if (resumed && last && last->start == s->start && last->tasks == s->tasks)
        go_on(s, last);
    check_grants(m, s);
    if (last && !last->kept)
        not_away(m, last);
    chain(m, s);
    list_open(m, s);
    each_dev(m, s, meter_add);
    meter_inside_enter(m, s);
    s->basis = meter_basis(m, s, job->class);
    meter_burst(m, s, 1);
}

void st_meter_start(st_meter *m, const st_tree *tree, const st_job *job, int32_t type,
                    const st_grant *grants, int64_t now, st_records *out)
{
    begin(m, tree, job, type, grants, false, now, out);
}

void st_meter_resume(st_meter *m, const st_tree *tree, const st_job *job, int32_t type,
                     const st_grant *grants, int64_t now, st_records *out)
{
    begin(m, tree, job, type, grants, true, now, out);
}

int st_meter_times(const st_meter *m, uint64_t job)
{
    const stay *s = meter_find(m, job);
    return s ? s->number : 0;
}

void st_meter_class(st_meter *m, const st_tree *tree, uint64_t job, st_class class, int64_t now,
                    st_records *out)
{
    st_meter_advance(m, now);
    meter_learn_tree(m, tree);
    stay *s = find_open(m, job);
    if (!s || class == ST_CLASS_NONE || class == s->class)
        return;
    meter_inside_leave(m, s);
    s->class = class;
    meter_inside_enter(m, s);
    st_basis basis = meter_basis(m, s, class);
    meter_next_piece(m, s, basis, out);
}

void st_meter_booked(st_meter *m, uint64_t job, int64_t now, st_records *out)
{
    st_meter_advance(m, now);
    stay *s = meter_find(m, job);
    if (s && !s->over && s->class == ST_CLASS_BOOKED && s->basis != ST_BASIS_BOOKED)
        meter_next_piece(m, s, ST_BASIS_BOOKED, out);
}

void st_meter_split(st_meter *m, uint64_t job, int64_t now, st_records *out)
{
    st_meter_advance(m, now);
    stay *s = find_open(m, job);
    if (s)
        meter_next_piece(m, s, s->basis, out);
}

/* ---- end ---------------------------------------------------------------------------------- */

/* So much of the type was not granted after all but overhead: `before` the last cut, when that was
 * told, or after it. */
static void not_granted(st_meter *m, const stay *s, int64_t share, st_where why)
{
    int32_t type = s->type;
    if (type < 0)
        return;
    meter_part_ended(m, s, share, why);
    m->types[type].acc[GRANTED] -= share;
    m->types[type].acc[OVERHEAD] += share;
}

static void not_granted_then(st_meter *m, const stay *s, int64_t from_ms, int64_t to_ms,
                             int64_t share, st_records *out)
{
    int32_t type = s->type;
    if (type < 0 || share == 0)
        return;
    meter_part_ended(m, s, share, ST_WHERE_ENDED);
    m->types[type].total[GRANTED] -= share;
    m->types[type].total[OVERHEAD] += share;
    st_vec_push(out, (st_record){.kind = ST_REC_FLEET,
                                 .from_ms = from_ms,
                                 .to_ms = to_ms,
                                 .account = -1,
                                 .type = type,
                                 .granted = -share,
                                 .overhead = share});
}

/* What it had between two moments beyond what it held, which nobody has: where a device has been dealt out too often since,
 * an old moment is known by its time only (history.c). */
static int64_t beyond(const stay *s, int64_t share, int64_t from_ms, int64_t to_ms)
{
    return ST_MAX(share - times(s->gpu_m, to_ms - from_ms), 0);
}

/* The stay ended before or inside a piece that was handed out. */
static void shorten(st_meter *m, stay *s, size_t i, int64_t ended_ms, st_records *out)
{
    piece *p = &s->pieces.v[i];
    int64_t from = ST_MAX(ended_ms, p->from_ms), to = p->to_ms;
    int64_t share = meter_after(m, s, from) - meter_after(m, s, to);
    share = ST_MIN(ST_MAX(share, beyond(s, p->share, p->from_ms, from)), p->share);
    if (from == p->from_ms)
        share = p->share;
    st_record fix = meter_head(s, ST_REC_FIX, s->first + (int)i, p);
    fix.from_ms = from;
    fix.to_ms = to;
    add_lengths(s, &fix, -1);
    fix.share = -share;
    if (p->share > 0)
        fix.inside = -part(p->inside, share, p->share);
    p->share -= share;
    p->inside += fix.inside;
    p->to_ms = from;
    meter_shorten(s, p, &fix);
    if (to <= m->cut_ms)
        not_granted_then(m, s, from, to, share, out);
    else
        not_granted(m, s, share, ST_WHERE_ENDED);
    st_vec_push(out, fix);
}

/* The stay's last piece, up to when it really ended. */
static void finish(st_meter *m, stay *s, int64_t ended_ms, st_cut why, st_records *out)
{
    meter_deal_out_stay(m, s);
    for (size_t i = 0; i < s->pieces.n; i++)
        if (s->pieces.v[i].to_ms > ended_ms)
            shorten(m, s, i, ended_ms, out);
    int64_t to = ST_MAX(ended_ms, s->from_ms);
    if (to < m->now && !ST_BROKEN(METER_LATE)) {
        int64_t over = to == s->from_ms ? s->acc : meter_after(m, s, to);
        over = ST_MIN(ST_MAX(over, beyond(s, s->acc, s->from_ms, to)), s->acc);
        not_granted(m, s, over, ST_WHERE_ENDED);
        drop(s, over);
    }
    hand_out(s, to, why, out);
}

void st_meter_began(st_meter *m, uint64_t job, int64_t began_ms, int64_t now)
{
    st_meter_advance(m, now);
    stay *s = find_open(m, job);
    if (!s || s->resumed || s->pieces.n > 0 || s->first != 1 || s->from_ms != s->start_ms)
        return;
    began_ms = ST_MIN(ST_MIN(began_ms, s->start_ms + ST_METER_READY_MS), m->now);
    if (began_ms <= s->start_ms)
        return;
    meter_deal_out_stay(m, s);
    int64_t before = s->acc - ST_MIN(meter_after(m, s, began_ms), s->acc);
    not_granted(m, s, before, ST_WHERE_STARTING);
    drop(s, before);
    s->from_ms = began_ms;
}

/* ---- work that is lost ---------------------------------------------------------------------- */

/* What the stay, whose devices are dealt out, had of a piece from a moment inside it on. */
static int64_t had_since(const st_meter *m, const stay *s, const piece *p, int64_t from_ms)
{
    if (from_ms <= p->from_ms)
        return p->share;
    int64_t share = meter_after(m, s, from_ms) - meter_after(m, s, p->to_ms);
    return ST_MIN(ST_MAX(share, 0), p->share);
}

/* The piece that is open at a moment; NULL: none is. */
static const piece *piece_at(const stay *s, int64_t ms)
{
    for (size_t i = 0; i < s->pieces.n; i++)
        if (s->pieces.v[i].from_ms < ms && ms < s->pieces.v[i].to_ms)
            return &s->pieces.v[i];
    return NULL;
}

/* All of a stay from a moment on; `first`: what it had since then of the piece that was open then. */
static void lose(const stay *s, int64_t from_ms, int64_t first, st_cut why, st_records *out)
{
    for (size_t i = 0; i < s->pieces.n; i++) {
        const piece *p = &s->pieces.v[i];
        if (p->to_ms <= from_ms || p->to_ms == p->from_ms)
            continue;
        st_record r = meter_head(s, ST_REC_LOST, s->first + (int)i, p);
        r.lost = p->from_ms >= from_ms ? p->share : first;
        r.from_ms = ST_MAX(p->from_ms, from_ms);
        r.cut = why;
        st_vec_push(out, r);
    }
}

/* What was kept in memory of a stay that is over and of those before it: so much of its end, oldest first. */
static void lose_kept(stay *s, int64_t lost_ms, st_cut why, st_records *out)
{
    if (!s || lost_ms <= 0 || !s->kept)
        return;
    int64_t own = ST_MIN(lost_ms, s->risk_ms);
    lose_kept(s->older, lost_ms - own, why, out);
    if (s->pieces.n == 0)
        return;
    int64_t from = s->pieces.v[s->pieces.n - 1].to_ms - own, first = s->risk_share;
    const piece *p = piece_at(s, from);
    if (p && own < s->risk_ms) /* a part of the part: by time */
        first = part(p->share, p->to_ms - from, p->to_ms - p->from_ms);
    lose(s, from, first, why, out);
}

/* The work of a stay and of those before it can no longer be lost: they may be forgotten, in order. */
static void not_kept(st_meter *m, stay *s)
{
    if (!s || !s->kept)
        return;
    not_kept(m, s->older);
    s->kept = false;
    s->risk_ms = s->risk_share = 0;
    if (s->newer)
        not_away(m, s);
}

static stay *off_devices(st_meter *m, uint64_t job, int64_t now)
{
    st_meter_advance(m, now);
    return meter_find(m, job);
}

/* It has nothing any more. */
static void leave(st_meter *m, stay *s)
{
    meter_inside_leave(m, s);
    meter_burst(m, s, -1);
    each_dev(m, s, meter_remove);
    bury(m, s);
}

void st_meter_stop(st_meter *m, uint64_t job, int64_t now, int64_t ended_ms, st_cut why,
                   int64_t lost_ms, st_records *out)
{
    stay *s = off_devices(m, job, now);
    if (s && s->over) {
        lose_kept(s, lost_ms, why, out);
        not_kept(m, s);
    }
    if (!s || s->over)
        return;
    if (ended_ms == ST_UNSET || ended_ms > m->now)
        ended_ms = m->now;
    ended_ms = ST_MAX(ended_ms, s->pieces.n > 0 ? s->pieces.v[0].from_ms : s->start_ms);
    finish(m, s, ended_ms, why, out);
    int64_t from = m->now - lost_ms;
    const piece *p = piece_at(s, from);
    if (lost_ms > 0) {
        lose_kept(s->older, lost_ms - (m->now - s->start_ms), why, out);
        lose(s, from, p ? had_since(m, s, p, from) : 0, why, out);
    }
    not_kept(m, s->older);
    leave(m, s);
}

void st_meter_pause(st_meter *m, uint64_t job, int64_t now, int64_t unsaved_ms, st_records *out)
{
    stay *s = off_devices(m, job, now);
    if (!s || s->over)
        return;
    finish(m, s, m->now, ST_CUT_PREEMPTED, out);
    s->kept = unsaved_ms > 0;
    s->risk_ms = ST_MIN(unsaved_ms, m->now - s->start_ms);
    const piece *p = piece_at(s, m->now - s->risk_ms);
    s->risk_share = p ? had_since(m, s, p, m->now - s->risk_ms) : 0;
    if (unsaved_ms <= m->now - s->start_ms) /* what came before was saved since */
        not_kept(m, s->older);
    leave(m, s);
}

void st_meter_forget(st_meter *m, uint64_t job)
{
    stay *s = meter_find(m, job);
    if (!s || !s->over)
        return;
    not_kept(m, s);
    not_away(m, s);
}
