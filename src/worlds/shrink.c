/*
 * Shrinking: the shortest tape that still breaks the same invariant.
 *
 * Entries are dropped in halves, quarters and so on down to single ones, again and again until
 * nothing more can go. Whatever a dropped entry leaves dangling (a job of an account that is
 * not there) is refused by the core, and goes next.
 */
#include "worlds/worlds.h"

#include <string.h>

#include "base/mem.h"

typedef struct shrink {
    st_tape *tape;
    uint8_t *keep;
    char what[64]; /* the invariant's name: the sentence up to its colon */
    int tries;
    st_err err;
} shrink;

static void invariant(const st_err *err, char *ret, size_t size)
{
    size_t n = strcspn(err->msg, ":(");
    if (n >= size)
        n = size - 1;
    memcpy(ret, err->msg, n);
    ret[n] = '\0';
}

/* A scenario has a node and an account, so a tape that is to become one keeps them. */
static bool has_world(const shrink *s)
{
    bool node = false, account = false;
    for (size_t i = 0; i < s->tape->list.n; i++) {
        const st_tape_entry *e = &s->tape->list.v[i];
        node |= s->keep[i] && e->event.kind == ST_EV_NODE;
        account |= s->keep[i] && e->event.kind == ST_EV_ACCOUNT && e->setup;
    }
    return node && account;
}

static bool still_fails(shrink *s)
{
    st_err err = {0};
    char what[sizeof s->what];
    if (s->tries <= 0 || !has_world(s))
        return false;
    s->tries--;
    if (st_fuzz_replay(s->tape, s->keep, NULL, NULL, &err) == 0)
        return false;
    invariant(&err, what, sizeof what);
    if (strcmp(what, s->what) != 0)
        return false;
    s->err = err;
    return true;
}

/* Types and pools are meant by their numbers, so they stay; but for the last of them (drop_numbered). */
static bool may_go(const st_tape_entry *entry)
{
    return entry->event.kind != ST_EV_TYPE && entry->event.kind != ST_EV_POOL;
}

/* The last type or pool, while nobody needs it. */
static void drop_numbered(shrink *s, st_event_kind kind)
{
    size_t i = s->tape->list.n;
    while (i-- > 0) {
        if (!s->keep[i] || s->tape->list.v[i].event.kind != kind)
            continue;
        s->keep[i] = 0;
        if (!still_fails(s)) {
            s->keep[i] = 1;
            return;
        }
    }
}

/* Drop the n-th, n+1-th ... entry that is still there; false when none of them could go. */
static bool drop_run(shrink *s, size_t from, size_t n)
{
    size_t total = s->tape->list.n, seen = 0, dropped = 0;
    uint8_t *before = st_xmalloc(total + 1);
    memcpy(before, s->keep, total);
    for (size_t i = 0; i < total; i++) {
        if (!s->keep[i] || !may_go(&s->tape->list.v[i]))
            continue;
        if (seen >= from && seen < from + n) {
            s->keep[i] = 0;
            dropped++;
        }
        seen++;
    }
    bool ok = dropped > 0 && still_fails(s);
    if (!ok)
        memcpy(s->keep, before, total);
    free(before);
    return ok;
}

static size_t count(const shrink *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->tape->list.n; i++)
        n += s->keep[i] && may_go(&s->tape->list.v[i]);
    return n;
}

static void drop_refused(shrink *s)
{
    size_t total = s->tape->list.n;
    ST_CLEANUP(st_freep) uint8_t *refused = st_xcalloc(total + 1, 1);
    ST_CLEANUP(st_freep) uint8_t *before = st_xmalloc(total + 1);
    memcpy(before, s->keep, total);
    st_fuzz_replay(s->tape, s->keep, NULL, refused, NULL);
    for (size_t i = 0; i < total; i++)
        if (refused[i] && may_go(&s->tape->list.v[i]))
            s->keep[i] = 0;
    if (!still_fails(s))
        memcpy(s->keep, before, total);
}

static void drop_all(shrink *s)
{
    bool progress = true;
    while (progress && s->tries > 0) {
        progress = false;
        for (size_t n = count(s) / 2; n > 0 && s->tries > 0; n /= 2) {
            size_t from = 0;
            while (from < count(s) && s->tries > 0) {
                if (drop_run(s, from, n))
                    progress = true;
                else
                    from += n;
            }
        }
    }
}

/* Try a simpler value; keep it if the tape still fails. */
static void simpler(shrink *s, void *field, const void *value, size_t size)
{
    char old[sizeof(st_quota)];
    ST_ASSERT(size <= sizeof old);
    if (memcmp(field, value, size) == 0)
        return;
    memcpy(old, field, size);
    memcpy(field, value, size);
    if (!still_fails(s))
        memcpy(field, old, size);
}

#define SIMPLER(s, field, value)                        \
    do {                                                \
        __typeof__(field) value_ = (value);             \
        simpler((s), &(field), &value_, sizeof value_); \
    } while (0)

static void simplify_job(shrink *s, st_tape_entry *e)
{
    st_job_spec *job = &e->event.u.job;
    SIMPLER(s, job->tasks, 1);
    SIMPLER(s, job->topo, ST_TOPO_NONE);
    SIMPLER(s, job->topo_required, false);
    SIMPLER(s, job->latency_critical, false);
    SIMPLER(s, job->pool, -1);
    SIMPLER(s, job->shape.needs, 0u);
    SIMPLER(s, job->nodes, NULL);
    SIMPLER(s, job->shape.types, 0u);
    SIMPLER(s, job->shape.cpu_m, 0);
    SIMPLER(s, job->shape.ram_mib, 0);
    SIMPLER(s, job->priority, 0);
    SIMPLER(s, job->meek, false);
    SIMPLER(s, job->fails, false);
    SIMPLER(s, job->grace_ms, 0);
    SIMPLER(s, job->limit_ms, ST_TIME_NEVER);
    SIMPLER(s, e->run_ms, ST_TIME_NEVER);
    SIMPLER(s, job->yield, ST_YIELD_REQUEUE);
    SIMPLER(s, job->shape.level, ST_LEVEL_WHOLE);
}

static void simplify_account(shrink *s, st_tape_entry *e)
{
    st_account_spec *a = &e->event.u.account, none;
    st_account_spec_init(&none);
    SIMPLER(s, a->guarantee, none.guarantee);
    SIMPLER(s, a->max, none.max);
    SIMPLER(s, a->job_limits, none.job_limits);
    SIMPLER(s, a->user_limits, none.user_limits);
    SIMPLER(s, a->book_limits, none.book_limits);
    SIMPLER(s, a->weight_m, none.weight_m);
    SIMPLER(s, a->priority, 0);
    SIMPLER(s, a->trust, ST_TRUST_INHERIT);
    SIMPLER(s, a->own_domain, false);
    SIMPLER(s, a->min_run_ms, ST_UNSET);
    SIMPLER(s, a->parent, NULL);
}

static void simplify_node(shrink *s, st_tape_entry *e)
{
    st_node_spec *node = &e->event.u.node;
    SIMPLER(s, node->zone, NULL);
    SIMPLER(s, node->block, NULL);
    SIMPLER(s, node->rack, NULL);
    SIMPLER(s, node->nvlink_domain, NULL);
    SIMPLER(s, node->nvlink_size, 0);
    SIMPLER(s, node->pool, 0);
    if (node->ndevs > 0)
        SIMPLER(s, node->type, 0);
    SIMPLER(s, node->ndevs, 1);
    SIMPLER(s, node->ndevs, 2);
    SIMPLER(s, node->cpu_m, 1000000);
    SIMPLER(s, node->ram_mib, 1048576);
}

static void simplify(shrink *s)
{
    for (size_t i = 0; i < s->tape->list.n && s->tries > 0; i++) {
        st_tape_entry *e = &s->tape->list.v[i];
        if (!s->keep[i])
            continue;
        SIMPLER(s, e->late, false);
        SIMPLER(s, e->together, false);
        if (e->event.kind == ST_EV_SUBMIT)
            simplify_job(s, e);
        else if (e->event.kind == ST_EV_ACCOUNT)
            simplify_account(s, e);
        else if (e->event.kind == ST_EV_NODE)
            simplify_node(s, e);
    }
}

/* Entries that go take steps with them, and with steps go looks. So all is looked at, after every step, and
 * the state is saved and loaded as often, if that shows the failure; or else as it was found. */
static bool look_closer(shrink *s)
{
    st_lens was = s->tape->lens;
    s->tape->lens = st_lens_close(s->tape->seed);
    s->tape->lens.billed = was.billed;
    s->tape->lens.metered = was.metered;
    s->tape->lens.twin = was.twin > 0;
    if (still_fails(s))
        return true;
    s->tape->lens.twin = was.twin;
    if (still_fails(s))
        return true;
    s->tape->lens = was;
    return still_fails(s);
}

void st_fuzz_shrink(st_tape *tape, int tries, st_err *err)
{
    shrink s = {.tape = tape, .tries = tries, .err = *err};
    s.keep = st_xmalloc(tape->list.n + 1);
    memset(s.keep, 1, tape->list.n);
    invariant(err, s.what, sizeof s.what);
    if (look_closer(&s)) {
        drop_refused(&s);
        drop_all(&s);
        simplify(&s);
        drop_all(&s);
        drop_numbered(&s, ST_EV_POOL);
        drop_numbered(&s, ST_EV_TYPE);
        drop_refused(&s);
    }
    size_t n = 0;
    for (size_t i = 0; i < tape->list.n; i++)
        if (s.keep[i])
            tape->list.v[n++] = tape->list.v[i];
    tape->list.n = n;
    *err = s.err;
    free(s.keep);
}
