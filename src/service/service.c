/*
 * What to do next with the replicas of a service (service/service.h).
 *
 * A replica is current where it has the template of today and a place that stays; the others are replaced. Those that
 * serve or will serve are kept at the number wanted: new ones start while there is room, old ones leave while enough
 * are ready.
 */
#include "service/service.h"

#include <stdlib.h>

#define X(id, word, about) word,
const char *const st_svc_state_words[] = {ST_SVC_STATE_TABLE(X) NULL};
const char *const st_svc_scale_words[] = {ST_SVC_SCALE_TABLE(X) NULL};
const char *const st_svc_health_words[] = {ST_SVC_HEALTH_TABLE(X) NULL};
#undef X

typedef struct counts {
    int staying; /* serve or will serve, whatever their template */
    int current; /* of these, with the template of today and a place that stays */
    int ready;   /* of all that stay */
    int coming;  /* of the current ones, not ready yet */
    bool moving; /* one of them must move */
} counts;

static void act(st_svc_actions *actions, st_svc_do what, int64_t serial)
{
    st_vec_push(actions, ((st_svc_action){.what = what, .serial = serial}));
}

void st_svc_failed(const st_svc_spec *spec, int64_t now_ms, st_svc_memory *memory)
{
    int64_t wait = spec->wait_ms;

    for (int i = 0; i < memory->fails && wait < spec->wait_max_ms; i++)
        wait *= 2;
    memory->fails++;
    memory->failed_ms = now_ms;
    memory->retry_ms = now_ms + ST_MIN(wait, spec->wait_max_ms);
}

/* ---- how many -------------------------------------------------------------------------------- */

static int64_t for_each(int64_t total, int64_t each)
{
    each = ST_MAX(each, 1);
    return total / each + (total % each > 0);
}

int st_svc_wanted(const st_svc_spec *spec, const st_svc_figures *figures, int ready)
{
    int64_t want = 0;

    switch (spec->scale) {
    case ST_SVC_SCALE_NONE:
        return 0;
    case ST_SVC_SCALE_REQUESTS:
        want = for_each(figures->requests, spec->target);
        break;
    case ST_SVC_SCALE_QUEUE:
        if (!figures->told)
            return 0;
        want = for_each(figures->queue, spec->target);
        break;
    case ST_SVC_SCALE_LATENCY:
        if (!figures->told || ready == 0)
            return 0;
        /* Twice as many at most: one slow moment says little. */
        want = for_each(ready * ST_MIN(figures->latency_ms, 2 * spec->target), spec->target);
        break;
    }
    return (int)ST_MIN(ST_MAX(want, spec->min), spec->max);
}

/* Up when more were asked for all the time, to what is asked for now; down to the most that was. */
static void scale(const st_svc_spec *spec, int wanted, int64_t now_ms, st_svc_memory *m)
{
    if (wanted == 0 || wanted == m->target) {
        m->above_ms = m->below_ms = 0;
    } else if (wanted > m->target) {
        m->below_ms = 0;
        if (m->above_ms == 0)
            m->above_ms = now_ms;
        if (now_ms - m->above_ms >= spec->up_ms) {
            m->target = wanted;
            m->above_ms = 0;
        }
    } else {
        m->above_ms = 0;
        if (m->below_ms == 0) {
            m->below_ms = now_ms;
            m->below_most = wanted;
        }
        m->below_most = ST_MAX(m->below_most, wanted);
        if (now_ms - m->below_ms >= spec->down_ms) {
            m->target = m->below_most;
            m->below_ms = 0;
        }
    }
}

static void set_target(const st_svc_spec *spec, const st_svc_figures *figures, int ready,
                       int64_t now_ms, st_svc_memory *m)
{
    /* Where none is ready nobody could have used it. */
    if (m->busy_ms == 0 || figures->requests > 0 || (ready == 0 && !m->ended))
        m->busy_ms = now_ms;
    m->busy_ms = ST_MAX(m->busy_ms, ST_MIN(figures->last_ms, now_ms));
    if (spec->idle_ms > 0 && now_ms - m->busy_ms >= spec->idle_ms)
        m->ended = true;
    if (spec->removed || m->ended) {
        m->target = 0;
        return;
    }
    if (spec->scale == ST_SVC_SCALE_NONE) {
        m->target = spec->replicas;
        return;
    }
    if (m->target == 0)
        m->target = spec->replicas;
    m->target = ST_MIN(ST_MAX(m->target, spec->min), spec->max);
    scale(spec, st_svc_wanted(spec, figures, ready), now_ms, m);
}

/* ---- which ----------------------------------------------------------------------------------- */

static bool stays(const st_svc_seen *s)
{
    return s->state == ST_SVC_WAITING || s->state == ST_SVC_STARTING || s->state == ST_SVC_READY;
}

static bool is_current(const st_svc_spec *spec, const st_svc_seen *s)
{
    return s->revision == spec->revision && !s->moving;
}

/* A replica that is failing: sick, or too long in coming. */
static bool has_failed(const st_svc_spec *spec, const st_svc_seen *s, int64_t now_ms)
{
    return s->state == ST_SVC_SICK ||
           (s->state == ST_SVC_STARTING && now_ms - s->since_ms >= spec->start_ms);
}

/* Who leaves first: whom nobody would miss. */
static int by_use(const void *a_, const void *b_)
{
    const st_svc_seen *a = *(const st_svc_seen *const *)a_, *b = *(const st_svc_seen *const *)b_;

    if (a->state != b->state)
        return a->state < b->state ? -1 : 1; /* WAITING, STARTING, READY */
    if (a->open != b->open)
        return a->open < b->open ? -1 : 1;
    return a->serial > b->serial ? -1 : a->serial < b->serial;
}

/* Those whose job is over, who fail, and who leave. */
static void settle(const st_svc_spec *spec, const st_svc_seen *s, int64_t now_ms, st_svc_memory *m,
                   st_svc_actions *actions, int64_t *next)
{
    if (s->state == ST_SVC_OVER) {
        if (!s->retired)
            st_svc_failed(spec, now_ms, m);
        act(actions, ST_SVC_FORGET, s->serial);
    } else if (s->state == ST_SVC_LEAVING) {
        if (s->open == 0 || now_ms - s->since_ms >= spec->drain_ms)
            act(actions, ST_SVC_END, s->serial);
        else
            *next = ST_MIN(*next, s->since_ms + spec->drain_ms);
    } else if (has_failed(spec, s, now_ms)) {
        st_svc_failed(spec, now_ms, m);
        act(actions, ST_SVC_RETIRE, s->serial);
    } else if (s->state == ST_SVC_STARTING) {
        *next = ST_MIN(*next, s->since_ms + spec->start_ms);
    } else if (s->state == ST_SVC_READY && m->fails > 0) {
        /* One that came since and has been well for as long as the longest wait: what failed is over. */
        if (s->since_ms > m->failed_ms && now_ms - s->since_ms >= spec->wait_max_ms)
            m->fails = 0;
        else if (s->since_ms > m->failed_ms)
            *next = ST_MIN(*next, s->since_ms + spec->wait_max_ms);
    }
}

static counts count(const st_svc_spec *spec, st_svc_seen **all, size_t n)
{
    counts c = {0};

    for (size_t i = 0; i < n; i++) {
        c.staying++;
        c.current += is_current(spec, all[i]);
        c.ready += all[i]->state == ST_SVC_READY;
        c.coming += is_current(spec, all[i]) && all[i]->state != ST_SVC_READY;
        c.moving = c.moving || all[i]->moving;
    }
    return c;
}

static void retire(st_svc_seen *s, counts *c, bool current, st_svc_actions *actions)
{
    act(actions, ST_SVC_RETIRE, s->serial);
    c->staying--;
    c->current -= current;
    c->ready -= s->state == ST_SVC_READY;
    c->coming -= current && s->state != ST_SVC_READY;
    s->state = ST_SVC_LEAVING;
}

/* More than are wanted leave; then those that are to be replaced, as far as enough others are ready. */
static void shrink(const st_svc_spec *spec, st_svc_seen **all, size_t n, const st_svc_memory *m,
                   counts *c, st_svc_actions *actions)
{
    int least = ST_MAX(m->target - spec->unavailable, 0);

    for (size_t i = 0; i < n; i++) {
        bool current = is_current(spec, all[i]);

        if (current ? c->current > m->target && (all[i]->state != ST_SVC_READY || c->ready > least)
                    : all[i]->state != ST_SVC_READY || c->ready > least)
            retire(all[i], c, current, actions);
    }
}

static void grow(const st_svc_spec *spec, int64_t now_ms, const st_svc_memory *m, const counts *c,
                 st_svc_actions *actions, int64_t *next)
{
    int surge = c->moving ? ST_MAX(spec->surge, 1) : spec->surge;
    int starts = ST_MIN(m->target - c->current, m->target + surge - c->staying);

    if (starts <= 0)
        return;
    if (now_ms < m->retry_ms) {
        *next = ST_MIN(*next, m->retry_ms);
        return;
    }
    /* After failures one at a time shows whether it is better now. */
    if (m->fails > 0)
        starts = c->coming == 0;
    for (int i = 0; i < starts; i++)
        act(actions, ST_SVC_START, 0);
}

static void look_again(const st_svc_spec *spec, const st_svc_memory *m, int64_t *next)
{
    if (m->above_ms > 0)
        *next = ST_MIN(*next, m->above_ms + spec->up_ms);
    if (m->below_ms > 0)
        *next = ST_MIN(*next, m->below_ms + spec->down_ms);
    if (spec->idle_ms > 0 && !m->ended)
        *next = ST_MIN(*next, m->busy_ms + spec->idle_ms);
}

void st_svc_decide(const st_svc_spec *spec, const st_svc_figures *figures, const st_svc_seen *seen,
                   size_t n, int64_t now_ms, st_svc_memory *memory, st_svc_actions *actions,
                   int64_t *ret_next_ms)
{
    ST_VEC(st_svc_seen *) staying = {0};
    ST_VEC(st_svc_seen) copies = {0};
    int64_t next = INT64_MAX;
    int ready = 0;
    counts c;

    for (size_t i = 0; i < n; i++)
        ready += seen[i].state == ST_SVC_READY;
    set_target(spec, figures, ready, now_ms, memory);
    for (size_t i = 0; i < n; i++) {
        settle(spec, &seen[i], now_ms, memory, actions, &next);
        if (stays(&seen[i]) && !has_failed(spec, &seen[i], now_ms))
            st_vec_push(&copies, seen[i]);
    }
    for (size_t i = 0; i < copies.n; i++)
        st_vec_push(&staying, &copies.v[i]);
    if (staying.n > 1)
        qsort(staying.v, staying.n, sizeof staying.v[0], by_use);
    c = count(spec, staying.v, staying.n);
    shrink(spec, staying.v, staying.n, memory, &c, actions);
    grow(spec, now_ms, memory, &c, actions, &next);
    look_again(spec, memory, &next);
    st_vec_free(&staying);
    st_vec_free(&copies);
    *ret_next_ms = next;
}
