/* Who is on a device, what part of it each has, and where the rest of it is. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/mutant.h"
#include "meter/state.h"

bool meter_crowded(const dev *d)
{
    return d->held_m > ST_WHOLE_M;
}

static bool before(const resident *r, const stay *s, int task)
{
    return r->stay->job != s->job ? r->stay->job < s->job : r->task < task;
}

/* Where the task is, or would be. */
static size_t find(const dev *d, const stay *s, int task)
{
    size_t i = 0;
    while (i < d->list.n && before(&d->list.v[i], s, task))
        i++;
    return i;
}

resident *meter_resident(dev *d, const stay *s, int task)
{
    size_t i = find(d, s, task);
    ST_ASSERT(i < d->list.n && d->list.v[i].stay == s && d->list.v[i].task == task);
    return &d->list.v[i];
}

int64_t meter_pending(const dev *d, const resident *r, int64_t now)
{
    int64_t there = times(ST_WHOLE_M, now - d->since_ms);
    if (ST_BROKEN(METER_REST))
        return part(there, r->stay->dev_m, d->held_m);
    return part(there, r->before_m + r->stay->dev_m, d->held_m) -
           part(there, r->before_m, d->held_m);
}

void meter_deal_out(st_meter *m, dev *d)
{
    if (!meter_crowded(d) || d->since_ms == m->now)
        return;
    for (size_t i = 0; i < d->list.n; i++) {
        resident *r = &d->list.v[i];
        int64_t share = meter_pending(d, r, m->now);
        r->stay->acc = plus(r->stay->acc, share);
        meter_span(r->past, m->now, share);
    }
    d->since_ms = m->now;
}

/* ---- where the rest is -------------------------------------------------------------------- */

/* Whether slices are left on a carved GPU that no profile fits. The smallest one may begin wherever
 * any other may. */
static bool carved_up(const dev *d)
{
    uint8_t mask = 0;
    int compute = 0;
    for (size_t i = 0; i < d->list.n; i++) {
        const stay *s = d->list.v[i].stay;
        if (s->level != ST_LEVEL_MIG)
            return false;
        mask |= st_mig_mask((st_mig)s->profile, s->grants[d->list.v[i].task].mig_start);
        compute += st_mig_compute((st_mig)s->profile);
    }
    return d->list.n > 0 && st_mig_room(mask, ST_MIN(compute, ST_MIG_COMPUTE), ST_MIG_1G) == 0;
}

/* Whichever keeps it out more. */
static st_node_state state_of(const host *nd, const dev *d)
{
    bool open = nd->state == ST_NODE_READY || nd->state == ST_NODE_DRAINING;
    return open && d->state != ST_NODE_READY ? d->state : nd->state;
}

void meter_place(st_meter *m, dev *d)
{
    const host *nd = &m->nodes.v[d->node];
    st_node_state state = state_of(nd, d);
    int at[NPLACES] = {[GRANTED] = ST_MIN(d->held_m, ST_WHOLE_M)};
    int rest = nd->state == ST_NODE_REMOVED ? 0 : ST_WHOLE_M - at[GRANTED];
    if (state != ST_NODE_READY && state != ST_NODE_DRAINING)
        at[UNHEALTHY] = rest;
    else if (state == ST_NODE_DRAINING || (rest > 0 && carved_up(d)))
        at[OVERHEAD] = rest;
    else
        at[OVERHEAD] = (int)ST_MIN(rest, d->planned_m);
    at[IDLE] = rest - at[UNHEALTHY] - at[OVERHEAD];
    st_where why = state == ST_NODE_DRAINING  ? ST_WHERE_DRAINING
                   : rest > 0 && carved_up(d) ? ST_WHERE_LEFTOVER
                                              : ST_WHERE_KEPT;
    meter_part_move(m, d, at, why);
    d->why = why;
    for (int p = 0; p < NPLACES; p++) {
        m->types[nd->type].rate_m[p] += at[p] - d->at_m[p];
        d->at_m[p] = at[p];
    }
}

/* ---- coming and going --------------------------------------------------------------------- */

static void number(dev *d)
{
    int32_t sum = 0;
    for (size_t i = 0; i < d->list.n; i++) {
        d->list.v[i].before_m = sum;
        sum += (int32_t)d->list.v[i].stay->dev_m;
    }
    d->held_m = sum;
}

/* From its own rate into what is dealt out: what it had until now is what it held. */
static void crowd(st_meter *m, resident *r)
{
    stay *s = r->stay;
    meter_fold(m, s);
    s->rate_m -= s->dev_m;
    if (!r->past)
        r->past = st_xcalloc(1, sizeof *r->past);
    int64_t from = meter_known_to(r->past, s->start_ms);
    meter_span(r->past, m->now, times(s->dev_m, m->now - from));
}

static void uncrowd(st_meter *m, resident *r)
{
    meter_fold(m, r->stay);
    r->stay->rate_m += r->stay->dev_m;
}

/* Everybody on the device goes from one way of counting to the other, but for `not`. */
static void turn(st_meter *m, dev *d, const resident * not, void (*how)(st_meter *, resident *))
{
    for (size_t i = 0; i < d->list.n; i++)
        if (&d->list.v[i] != not )
            how(m, &d->list.v[i]);
}

void meter_insert(st_meter *m, stay *s, int task, int32_t node, int at)
{
    dev *d = meter_dev(m, node, at);
    st_vec_insert(&d->list, find(d, s, task), (resident){.stay = s, .task = task});
    number(d);
}

void meter_add(st_meter *m, stay *s, int task, int32_t node, int at)
{
    dev *d = meter_dev(m, node, at);
    bool was = meter_crowded(d);
    meter_deal_out(m, d);
    size_t i = find(d, s, task);
    st_vec_insert(&d->list, i, (resident){.stay = s, .task = task});
    number(d);
    if (!meter_crowded(d)) {
        meter_fold(m, s);
        s->rate_m += s->dev_m;
    } else {
        if (!was)
            turn(m, d, &d->list.v[i], crowd);
        d->list.v[i].past = st_xcalloc(1, sizeof(past));
        d->since_ms = m->now;
    }
    meter_place(m, d);
}

void meter_remove(st_meter *m, stay *s, int task, int32_t node, int at)
{
    dev *d = meter_dev(m, node, at);
    bool was = meter_crowded(d);
    meter_deal_out(m, d);
    resident *r = meter_resident(d, s, task);
    if (!was) {
        meter_fold(m, s);
        s->rate_m -= s->dev_m;
    }
    if (r->past)
        st_vec_free(&r->past->list);
    free(r->past);
    st_vec_remove(&d->list, (size_t)(r - d->list.v));
    number(d);
    if (was && !meter_crowded(d))
        turn(m, d, NULL, uncrowd);
    meter_place(m, d);
}
