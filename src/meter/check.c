/* What the meter counts, counted again from who is where. */
#include <inttypes.h>
#include <stdlib.h>

#include "meter/state.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static int check_dev(const st_meter *m, const dev *d, int at, int64_t rate_m[ST_TYPES_MAX][NPLACES],
                     st_err *err)
{
    int64_t held = 0, sum = 0;
    for (size_t i = 0; i < d->list.n; i++) {
        const resident *r = &d->list.v[i];
        if (r->before_m != held)
            return BAD("meter: node %d device %d: resident %zu stands at %d, not %" PRId64, d->node,
                       at, i, r->before_m, held);
        if (meter_crowded(d) &&
            (!r->past || meter_known_to(r->past, r->stay->start_ms) != d->since_ms))
            return BAD("meter: node %d device %d: the past of job %" PRIu64 " ends elsewhere",
                       d->node, at, r->stay->job);
        held += r->stay->dev_m;
    }
    for (int p = 0; p < NPLACES; p++) {
        if (d->at_m[p] < 0)
            return BAD("meter: node %d device %d: less than nothing", d->node, at);
        sum += d->at_m[p];
        rate_m[m->nodes.v[d->node].type][p] += d->at_m[p];
    }
    /* Of a node that was removed nothing is left but what is still granted. */
    int64_t all = m->nodes.v[d->node].state == ST_NODE_REMOVED ? d->at_m[GRANTED] : ST_WHOLE_M;
    if (sum != all || d->held_m != held || d->at_m[GRANTED] != ST_MIN(held, ST_WHOLE_M))
        return BAD("meter: node %d device %d: %" PRId64 " of 1000 are somewhere, %" PRId64
                   " are held, %d counted",
                   d->node, at, sum, held, d->held_m);
    return 0;
}

/* A stay's rate is what it holds of devices that are not crowded. */
static int check_stay(const st_meter *m, const stay *s, st_err *err)
{
    int64_t rate = 0;
    for (int t = 0; t < s->tasks; t++) {
        for (unsigned devs = s->grants[t].devs; devs; devs &= devs - 1) {
            dev *d = meter_dev(m, s->grants[t].node, __builtin_ctz(devs));
            const resident *r = NULL;
            for (size_t i = 0; i < d->list.n; i++)
                if (d->list.v[i].stay == s && d->list.v[i].task == t)
                    r = &d->list.v[i];
            if (!r)
                return BAD("meter: job %" PRIu64 " task %d is not on its device", s->job, t);
            rate += meter_crowded(d) ? 0 : s->dev_m;
        }
    }
    if (rate != s->rate_m || s->over || meter_find(m, s->job) != s || m->open.v[s->slot] != s)
        return BAD("meter: job %" PRIu64 " counts at %" PRId64 ", not %" PRId64, s->job, s->rate_m,
                   rate);
    if (s->from_ms > m->now || s->fold_ms > m->now || s->start_ms > s->from_ms)
        return BAD("meter: job %" PRIu64 " is ahead of its time", s->job);
    return 0;
}

int st_meter_check(const st_meter *m, st_err *err)
{
    int64_t rate_m[ST_TYPES_MAX][NPLACES] = {0};
    size_t residents = 0, granted = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->devs.n; i++) {
        const dev *d = &m->devs.v[i];
        rc = check_dev(m, d, (int)(i - m->nodes.v[d->node].devs_at), rate_m, err);
        residents += d->list.n;
    }
    for (size_t i = 0; rc == 0 && i < m->open.n; i++) {
        rc = check_stay(m, m->open.v[i], err);
        granted += (size_t)m->open.v[i]->ndevs;
    }
    if (rc == 0 && residents != granted)
        return BAD("meter: %zu are on devices, %zu should be", residents, granted);
    for (int t = 0; rc == 0 && t < ST_TYPES_MAX; t++)
        for (int p = 0; p < NPLACES; p++)
            if (rate_m[t][p] != m->types[t].rate_m[p])
                return BAD("meter: type %d counts at %" PRId64 ", not %" PRId64, t,
                           m->types[t].rate_m[p], rate_m[t][p]);
    return rc < 0 ? rc : meter_parts_check(m, err);
}
