/* Effects: how the core speaks, and the hash over all it ever said. */
#include <stdlib.h>

#include "base/hash.h"
#include "core/state.h"

const char *st_effect_name(st_effect_kind kind)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_EFFECT_TABLE(X)
#undef X
    };
    ST_ASSERT(kind < ST_FX_COUNT);
    return names[kind];
}

const char *st_event_name(st_event_kind kind)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        ST_EVENT_TABLE(X)
#undef X
    };
    ST_ASSERT(kind < ST_EV_COUNT);
    return names[kind];
}

void st_effects_clear(st_effects *fx)
{
    st_vec_clear(&fx->list);
    st_vec_clear(&fx->grants);
}

void st_effects_done(st_effects *fx)
{
    st_vec_free(&fx->list);
    st_vec_free(&fx->grants);
}

st_effect st_fx_of(const st_core *core, st_effect_kind kind, const st_job *job)
{
    return (st_effect){.kind = kind,
                       .at_ms = core->now,
                       .job = job ? job->id : 0,
                       .account = job ? job->account : -1,
                       .node = -1,
                       .state = job ? job->state : ST_JOB_PENDING,
                       .stay = job ? job->stay : 0,
                       .times = job ? job->times : 0,
                       .class = job ? job->class : ST_CLASS_NONE};
}

void st_fx(st_core *core, st_effects *fx, st_effect effect, const st_grant *grants, int n)
{
    effect.grants_at = fx->grants.n;
    effect.ngrants = n;
    uint64_t h = st_hash_u64(core->hash, (uint64_t)effect.kind);
    const uint64_t words[] = {
        (uint64_t)effect.at_ms, effect.job,
        effect.other,           (uint64_t)effect.account,
        (uint64_t)effect.node,  (uint64_t)effect.state,
        (uint64_t)effect.class, (uint64_t)effect.until_ms,
        (uint64_t)effect.value,
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        h = st_hash_u64(h, words[i]);
    for (int i = 0; i < n; i++) {
        st_vec_push(&fx->grants, grants[i]);
        h = st_hash_u64(h, (uint64_t)(uint32_t)grants[i].node << 32 |
                               (uint64_t)grants[i].devs << 8 | (uint8_t)grants[i].mig_start);
    }
    st_vec_push(&fx->list, effect);
    core->hash = h;
}
