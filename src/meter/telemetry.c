/* What was seen of a stay: from sums per task to amounts per piece.
 *
 * Tasks say how much they have seen since the stay began. What is new since the last piece was handed
 * out belongs to the piece that ends now; where that is more than its devices x time, the rest was seen
 * before it began and fills what the pieces before it lack, the newest first, those from before a pause
 * too. What fits nowhere is dropped: a clock ran fast. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/mutant.h"
#include "meter/state.h"

static int64_t devs_ms(const stay *s, const piece *p)
{
    return times(s->ndevs, p->to_ms - p->from_ms);
}

/* What device x time is in shares of the piece. */
static int64_t scaled(const stay *s, const piece *p, int64_t dev_ms)
{
    int64_t all = devs_ms(s, p);
    return all > 0 ? part(p->share, ST_MIN(dev_ms, all), all) : 0;
}

/* Of what was seen unused, the part inside floors. What nobody measured was not unused. */
static int64_t idle_inside(const stay *s, const piece *p)
{
    bool known = (s->knows & KNOWS_SEEN) && (s->knows & KNOWS_BUSY);
    return known && p->share > 0 ? part(p->seen - p->busy, p->inside, p->share) : 0;
}

static void tell_idle_inside(const stay *s, piece *p, st_record *rec)
{
    int64_t idle = idle_inside(s, p);
    rec->inside_idle = idle - p->inside_idle;
    p->inside_idle = idle;
}

/* Puts of `left` what has room into the piece and fills in the deltas of a record. */
static void fill(const stay *s, piece *p, sums *left, bool last, st_record *rec)
{
    int64_t room = ST_MAX(devs_ms(s, p) - p->dev_seen, 0);
    int64_t seen = ST_MIN(left->seen, room);
    int64_t busy = left->busy, energy = left->energy;
    if (!last && seen < left->seen) {
        busy = part(busy, seen, left->seen);
        energy = part(energy, seen, left->seen);
    }
    busy = ST_MIN(busy, p->dev_seen + seen - p->dev_busy);
    busy = ST_MAX(busy, 0);
    left->seen -= seen;
    left->busy -= busy;
    left->energy -= energy;
    p->dev_seen += seen;
    p->dev_busy += busy;
    int64_t told_seen = ST_MAX(scaled(s, p, p->dev_seen), p->seen);
    int64_t told_busy = ST_MIN(ST_MAX(scaled(s, p, p->dev_busy), p->busy), told_seen);
    rec->seen = told_seen - p->seen;
    rec->busy = told_busy - p->busy;
    rec->energy_mj = energy;
    p->seen = told_seen;
    p->busy = told_busy;
    p->energy = plus(p->energy, energy);
    tell_idle_inside(s, p, rec);
}

/* What came in and is in no piece yet. */
static sums fresh(const stay *s)
{
    return (sums){ST_MAX(s->total.seen - s->given.seen, 0),
                  ST_MAX(s->total.busy - s->given.busy, 0),
                  ST_MAX(s->total.energy - s->given.energy, 0)};
}

static void blank_unknown(const stay *s, st_record *rec)
{
    if (!(s->knows & KNOWS_SEEN))
        rec->seen = ST_UNKNOWN;
    if (!(s->knows & KNOWS_BUSY))
        rec->busy = ST_UNKNOWN;
    if (!(s->knows & KNOWS_ENERGY))
        rec->energy_mj = ST_UNKNOWN;
}

static bool any(const st_record *r)
{
    return r->seen != 0 || r->busy != 0 || r->energy_mj != 0;
}

/* The stay of the same tasks before a pause, as long as it is known. */
static stay *before_pause(const stay *s)
{
    return s->resumed && s->older && s->older->start == s->start ? s->older : NULL;
}

/* Whether a piece before this one could take more. */
static bool room_before(const stay *s, size_t i)
{
    for (; s; s = before_pause(s), i = s ? s->pieces.n : 0)
        while (i-- > 0)
            if (devs_ms(s, &s->pieces.v[i]) > s->pieces.v[i].dev_seen)
                return true;
    return false;
}

/* Gives pieces of one stay their part of what is left; to the newest, which becomes `rec`, in any case. */
static void allot_to(stay *s, sums *left, bool newest, st_record *rec, st_records *out)
{
    for (size_t i = s->pieces.n; i-- > 0; newest = false) {
        piece *p = &s->pieces.v[i];
        if (!newest && left->seen == 0)
            return;
        st_record fix = meter_head(s, ST_REC_FIX, s->first + (int)i, p);
        fill(s, p, left, !room_before(s, i), newest && rec ? rec : &fix);
        if ((!newest || !rec) && any(&fix))
            st_vec_push(out, fix);
    }
}

void meter_allot(stay *s, st_record *rec, st_records *out)
{
    sums left = fresh(s);
    s->given.seen += left.seen;
    s->given.busy += left.busy;
    s->given.energy += left.energy;
    bool newest = true;
    for (stay *at = s; at; at = before_pause(at)) {
        allot_to(at, &left, newest, rec, out);
        newest &= at->pieces.n == 0;
    }
    if (rec)
        blank_unknown(s, rec);
}

void meter_guess(const stay *s, st_record *rec)
{
    piece p = {
        .from_ms = rec->from_ms, .to_ms = rec->to_ms, .share = rec->share, .inside = rec->inside};
    sums left = fresh(s);
    fill(s, &p, &left, true, rec);
    blank_unknown(s, rec);
}

/* By what was told alone, so that a meter that recalls it gives the same. */
void meter_shorten(stay *s, piece *p, st_record *fix)
{
    int64_t seen = ST_MIN(p->seen, p->share), busy = ST_MIN(p->busy, seen);
    p->dev_seen = ST_MIN(p->dev_seen, devs_ms(s, p));
    p->dev_busy = ST_MIN(p->dev_busy, p->dev_seen);
    fix->seen = seen - p->seen;
    fix->busy = busy - p->busy;
    p->seen = seen;
    p->busy = busy;
    tell_idle_inside(s, p, fix);
}

/* ---- what comes in ------------------------------------------------------------------------ */

/* The newest of the job that belongs to a start. */
static stay *find_start(const st_meter *m, uint64_t job, int start)
{
    stay *s = meter_find(m, job);
    while (s && s->start != start)
        s = s->older;
    return s;
}

static stay *find(const st_meter *m, uint64_t job, int number)
{
    stay *s = meter_find(m, job);
    while (s && s->number != number)
        s = s->older;
    return s;
}

/* Who has the sums of its tasks: the last of those that paused and went on. */
static stay *teller(stay *s)
{
    while (s->newer && s->newer->resumed && s->newer->start == s->start)
        s = s->newer;
    return s;
}

/* The larger of the two counts; the sum over tasks follows. */
static void raise(int64_t *task, int64_t *total, int64_t to)
{
    if (to <= *task && !(ST_BROKEN(METER_TWICE) && to > 0))
        return;
    if (ST_BROKEN(METER_TWICE))
        *task = 0;
    *total = plus(*total, to - *task);
    *task = to;
}

void st_meter_used(st_meter *m, uint64_t job, int start, int task, const st_sums *in,
                   st_records *out)
{
    stay *s = find_start(m, job, start);
    if (!s || task < 0 || task >= s->tasks)
        return;
    if (!s->by_task)
        s->by_task = st_xcalloc((size_t)s->tasks, sizeof *s->by_task);
    sums *t = &s->by_task[task];
    if (in->seen_gpu_ms >= 0)
        s->knows |= KNOWS_SEEN;
    if (in->busy_gpu_ms >= 0)
        s->knows |= KNOWS_BUSY;
    if (in->energy_mj >= 0)
        s->knows |= KNOWS_ENERGY;
    raise(&t->seen, &s->total.seen, in->seen_gpu_ms);
    raise(&t->busy, &s->total.busy, in->busy_gpu_ms);
    raise(&t->energy, &s->total.energy, in->energy_mj);
    if (s->over)
        meter_allot(s, NULL, out);
}

bool st_meter_watches(const st_meter *m, uint64_t job, int start)
{
    const stay *s = find_start(m, job, start);
    return s && !s->over;
}

/* The least device x time that is so much in shares of the piece. */
static int64_t unscaled(const stay *s, const piece *p, int64_t share)
{
    int64_t all = devs_ms(s, p);
    if (p->share <= 0 || all <= 0 || share <= 0)
        return 0;
    return ST_MIN(clip(((st_i128)share * all + p->share - 1) / p->share), all);
}

/* One amount of a piece as a stored record has it: a GRANT says what it is, a FIX by how much it was
 * changed. Notes whether anybody measured it. */
static int64_t recalled(bool grant, int64_t is, int64_t stored, unsigned bit, unsigned *knows)
{
    if (grant ? stored != ST_UNKNOWN : stored != 0)
        *knows |= bit;
    return ST_MAX(grant ? stored : plus(is, stored), 0);
}

void st_meter_recall(st_meter *m, const st_record *r)
{
    bool grant = r->kind == ST_REC_GRANT;
    stay *s = grant || r->kind == ST_REC_FIX ? find(m, r->job, r->stay) : NULL;
    int64_t at = s ? (int64_t)r->piece - s->first : -1;
    /* A FIX that takes held time away is the meter's own and has been counted. */
    if (at < 0 || (size_t)at >= s->pieces.n || (!grant && r->held != 0))
        return;
    piece *p = &s->pieces.v[at];
    const piece was = *p;
    stay *has = teller(s);
    p->seen = ST_MIN(recalled(grant, p->seen, r->seen, KNOWS_SEEN, &has->knows), p->share);
    p->busy = ST_MIN(recalled(grant, p->busy, r->busy, KNOWS_BUSY, &has->knows), p->seen);
    p->energy = recalled(grant, p->energy, r->energy_mj, KNOWS_ENERGY, &has->knows);
    p->dev_seen = unscaled(s, p, p->seen);
    p->dev_busy = ST_MIN(unscaled(s, p, p->busy), p->dev_seen);
    p->inside_idle =
        ST_MIN(ST_MAX(grant ? r->inside_idle : p->inside_idle + r->inside_idle, 0), p->share);
    has->given.seen = plus(has->given.seen, p->dev_seen - was.dev_seen);
    has->given.busy = plus(has->given.busy, p->dev_busy - was.dev_busy);
    has->given.energy = plus(has->given.energy, p->energy - was.energy);
}
