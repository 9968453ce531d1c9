/* Slots by node; see slots.h. */
#include "calendar/slots.h"

#include <stdlib.h>

#include "base/macros.h"
#include "base/mem.h"

struct st_slots {
    ST_VEC(st_slot_vec) nodes;
};

st_slots *st_slots_new(void)
{
    return st_xcalloc(1, sizeof(st_slots));
}

void st_slots_free(st_slots *slots)
{
    if (!slots)
        return;
    for (size_t i = 0; i < slots->nodes.n; i++)
        st_vec_free(&slots->nodes.v[i]);
    st_vec_free(&slots->nodes);
    free(slots);
}

void st_slots_add(st_slots *slots, int32_t node, st_slot slot)
{
    while (slots->nodes.n <= (size_t)node)
        st_vec_push(&slots->nodes, (st_slot_vec){0});
    st_slot_vec *v = &slots->nodes.v[node];
    size_t at = v->n;
    while (at > 0 &&
           (v->v[at - 1].from_ms > slot.from_ms ||
            (v->v[at - 1].from_ms == slot.from_ms && v->v[at - 1].booking > slot.booking)))
        at--;
    st_vec_insert(v, at, slot);
}

void st_slots_remove(st_slots *slots, int32_t node, uint64_t booking)
{
    if ((size_t)node >= slots->nodes.n)
        return;
    st_slot_vec *v = &slots->nodes.v[node];
    size_t kept = 0;
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i].booking != booking)
            v->v[kept++] = v->v[i];
    v->n = kept;
}

const st_slot_vec *st_slots_of(const st_slots *slots, int32_t node)
{
    if ((size_t)node >= slots->nodes.n || slots->nodes.v[node].n == 0)
        return NULL;
    return &slots->nodes.v[node];
}

/* What there is of CPU and RAM at one moment. */
static void at_moment(const st_slot_vec *v, int64_t at_ms, uint64_t but, st_slots_use *use)
{
    int64_t cpu_m = 0, ram_mib = 0;
    for (size_t i = 0; i < v->n && v->v[i].from_ms <= at_ms; i++) {
        if (v->v[i].clear_ms <= at_ms || v->v[i].booking == but)
            continue;
        cpu_m += v->v[i].cpu_m;
        ram_mib += v->v[i].ram_mib;
    }
    use->cpu_m = ST_MAX(use->cpu_m, cpu_m);
    use->ram_mib = ST_MAX(use->ram_mib, ram_mib);
}

st_slots_use st_slots_in(const st_slots *slots, int32_t node, int64_t from_ms, int64_t to_ms,
                         uint64_t but)
{
    st_slots_use use = {0};
    const st_slot_vec *v = st_slots_of(slots, node);
    if (!v)
        return use;
    for (size_t i = 0; i < v->n && v->v[i].from_ms < to_ms; i++) {
        const st_slot *s = &v->v[i];
        if (s->clear_ms <= from_ms || s->booking == but)
            continue;
        use.devs |= s->devs;
        /* Their sum is largest when one begins. */
        at_moment(v, ST_MAX(s->from_ms, from_ms), but, &use);
    }
    return use;
}
