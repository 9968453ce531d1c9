/*
 * Guided by what runs meet: a tape that leads to something new is kept, and played again with something
 * changed.
 *
 * What a run meets is a map of bits (st_cover): each effect with the one before it in its step, its class and
 * the policy's switches; and each step as the kinds of events that came with the kinds of effects they had. Every
 * other turn is a fresh seed. The same turns in the same order give the same tapes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "worlds/run.h"

#define KEPT_MAX 2000

struct st_guide {
    st_cover met;
    ST_VEC(st_tape *) kept; /* never dropped: what is made of a tape shares its text */
};

st_guide *st_guide_new(void)
{
    return st_xcalloc(1, sizeof(st_guide));
}

void st_guide_free(st_guide *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->kept.n; i++) {
        st_tape_done(g->kept.v[i]);
        free(g->kept.v[i]);
    }
    st_vec_free(&g->kept);
    free(g);
}

size_t st_guide_kept(const st_guide *g)
{
    return g->kept.n;
}

size_t st_guide_met(const st_guide *g)
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof g->met.bits; i++)
        n += (size_t)__builtin_popcount(g->met.bits[i]);
    return n;
}

/* ---- what a run meets ------------------------------------------------------------------------- */

static void meet(st_cover *cover, uint64_t what)
{
    uint64_t bit = what % (8 * sizeof cover->bits);
    cover->bits[bit / 8] |= (uint8_t)(1u << bit % 8);
}

void st_cover_step(st_cover *cover, const st_core *core, const st_event *const *events,
                   size_t nevents, const st_effects *fx)
{
    const st_policy *p = st_core_policy(core);
    uint64_t ways = (uint64_t)(p->as_if_alone | p->swap << 1 | p->defrag << 2 | p->rebalance << 3 |
                               (p->lookahead > 0) << 4 | (int64_t)p->order << 5);
    uint64_t came = 0, gave = 0, before = ST_FX_COUNT;
    for (size_t i = 0; i < nevents; i++)
        came |= UINT64_C(1) << events[i]->kind;
    for (size_t i = 0; i < fx->list.n; i++) {
        const st_effect *e = &fx->list.v[i];
        uint64_t pair = before * ST_FX_COUNT + e->kind;
        gave |= UINT64_C(1) << e->kind;
        meet(cover, st_hash_u64(st_hash_u64(1, pair * 4 + e->class), ways));
        before = e->kind;
    }
    meet(cover, st_hash_u64(st_hash_u64(2, came), gave));
}

/* Whether there is anything in it that was not met before; then it is. */
static bool is_new(st_guide *g, const st_cover *cover)
{
    bool found = false;
    for (size_t i = 0; i < sizeof cover->bits; i++) {
        found |= cover->bits[i] & ~g->met.bits[i];
        g->met.bits[i] |= cover->bits[i];
    }
    return found;
}

/* ---- something else ---------------------------------------------------------------------------- */

static size_t first_event(const st_tape *tape)
{
    size_t i = 0;
    while (i < tape->list.n && tape->list.v[i].setup)
        i++;
    return i;
}

static void change_job(st_rng *rng, st_tape_entry *e)
{
    st_job_spec *job = &e->event.u.job;
    switch (st_rng_below(rng, 6)) {
    case 0:
        job->priority = (int)st_rng_range(rng, -2, 2);
        break;
    case 1:
        job->limit_ms = st_rng_range(rng, 1000, 3600000);
        break;
    case 2:
        job->yield = (st_yield)st_rng_below(rng, ST_YIELD_COUNT);
        break;
    case 3:
        job->tasks = (int)st_rng_range(rng, 1, 4);
        break;
    case 4:
        e->run_ms = st_rng_range(rng, 1000, 3600000);
        break;
    default:
        job->shape.cpu_m = 500 * st_rng_range(rng, 0, 16);
        break;
    }
}

/* From here on everything comes sooner, or later. */
static void stretch(st_rng *rng, st_tape *tape, size_t from)
{
    int64_t num = st_rng_range(rng, 0, 20), since = tape->list.v[from].at_ms;
    for (size_t i = from; i < tape->list.n; i++)
        tape->list.v[i].at_ms = since + (tape->list.v[i].at_ms - since) * num / 5;
}

static void drop(st_rng *rng, st_tape *tape, size_t from)
{
    size_t n = 1 + st_rng_below(rng, 8);
    while (n-- > 0 && from < tape->list.n)
        st_vec_remove(&tape->list, from);
}

static void change(st_rng *rng, st_tape *tape)
{
    size_t first = first_event(tape);
    if (first == tape->list.n)
        return;
    size_t at = first + st_rng_below(rng, tape->list.n - first);
    st_tape_entry e = tape->list.v[at];
    switch (st_rng_below(rng, 7)) {
    case 0:
        st_fuzz_policy(rng, &tape->policy);
        break;
    case 1:
        stretch(rng, tape, at);
        break;
    case 2:
        drop(rng, tape, at);
        break;
    case 3: /* once more, with what is there by now */
        e.at_ms = tape->list.v[tape->list.n - 1].at_ms + 1;
        st_vec_push(&tape->list, e);
        break;
    case 4:
        tape->list.v[at].late = !e.late;
        break;
    case 5: /* one moment with the one before */
        tape->list.v[at].at_ms = tape->list.v[at > first ? at - 1 : at].at_ms;
        tape->list.v[at].together = at > first;
        break;
    default:
        for (size_t i = at; i < tape->list.n; i++) {
            if (tape->list.v[i].event.kind != ST_EV_SUBMIT)
                continue;
            change_job(rng, &tape->list.v[i]);
            break;
        }
        break;
    }
}

static void copy_changed(const st_guide *g, uint64_t turn, st_tape *ret)
{
    st_rng rng;
    st_rng_seed(&rng, turn ^ 0x67756964u);
    const st_tape *from = g->kept.v[st_rng_below(&rng, g->kept.n)];
    st_tape_init(ret, turn);
    ret->policy = from->policy;
    for (size_t i = 0; i < from->list.n; i++)
        st_vec_push(&ret->list, from->list.v[i]);
    ret->lens = st_lens_of(turn);
    for (int64_t n = st_rng_range(&rng, 1, 6); n > 0; n--)
        change(&rng, ret);
}

int st_guide_play(st_guide *g, uint64_t turn, int steps, FILE *trace, st_tape *ret,
                  st_fuzz_counts *counts, st_err *err)
{
    st_cover *cover = st_xcalloc(1, sizeof *cover);
    int rc;
    if (g->kept.n == 0 || turn % 2 == 0) {
        rc = st_fuzz_seed_met(turn, steps, cover, trace, ret, counts, err);
    } else {
        copy_changed(g, turn, ret);
        ret->cover = cover;
        rc = st_fuzz_play(ret, trace, counts, err);
    }
    ret->cover = NULL;
    if (rc == 0 && g->kept.n < KEPT_MAX && is_new(g, cover)) {
        st_tape *kept = st_xcalloc(1, sizeof *kept);
        *kept = *ret;
        st_vec_push(&g->kept, kept);
        st_tape_init(ret, turn); /* the caller's, and empty */
    }
    free(cover);
    return rc;
}
