/* What a stay had after a moment that is past: for jobs whose real end becomes known late.
 *
 * A resident that never shared a crowded device had what it holds, so nothing is written down. The
 * others keep spans, one for each time their device was dealt out; the oldest are joined once there are
 * many, and a moment inside a span takes its part of it by time. */
#include "meter/state.h"

int64_t meter_known_to(const past *p, int64_t start)
{
    return p && p->list.n > 0 ? p->list.v[p->list.n - 1].to_ms : start;
}

void meter_span(past *p, int64_t to_ms, int64_t share)
{
    if (p->list.n > 0 && p->list.v[p->list.n - 1].to_ms == to_ms) {
        p->list.v[p->list.n - 1].share = plus(p->list.v[p->list.n - 1].share, share);
        return;
    }
    st_vec_push(&p->list, (span){to_ms, share});
    if (p->list.n <= SPANS_MAX)
        return;
    p->list.v[1].share = plus(p->list.v[0].share, p->list.v[1].share);
    st_vec_remove(&p->list, 0);
}

static int64_t after(const st_meter *m, const dev *d, const resident *r, int64_t from_ms)
{
    int64_t known = meter_known_to(r->past, r->stay->start_ms), sum = 0;
    if (!meter_crowded(d))
        sum = times(r->stay->dev_m, m->now - ST_MAX(from_ms, known));
    for (size_t i = r->past ? r->past->list.n : 0; i-- > 0;) {
        const span *s = &r->past->list.v[i];
        int64_t begin = i > 0 ? r->past->list.v[i - 1].to_ms : r->stay->start_ms;
        if (s->to_ms <= from_ms)
            break;
        if (begin >= from_ms)
            sum = plus(sum, s->share);
        else
            sum = plus(sum, s->share - part(s->share, from_ms - begin, s->to_ms - begin));
    }
    return sum;
}

int64_t meter_after(const st_meter *m, const stay *s, int64_t from_ms)
{
    int64_t sum = 0;
    for (int t = 0; t < s->tasks; t++) {
        for (unsigned devs = s->grants[t].devs; devs; devs &= devs - 1) {
            dev *d = meter_dev(m, s->grants[t].node, __builtin_ctz(devs));
            sum = plus(sum, after(m, d, meter_resident(d, s, t), from_ms));
        }
    }
    return sum;
}
