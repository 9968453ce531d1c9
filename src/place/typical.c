/* Counting classes of tasks, and when their target changes (place/typical.h). */
#include "place/typical.h"

#include "base/macros.h"

static bool same(const st_kind *a, const st_kind *b)
{
    return a->types == b->types && a->level == b->level && a->gpus == b->gpus &&
           a->profile == b->profile && a->share_m == b->share_m && a->cpu_m == b->cpu_m &&
           a->ram_mib == b->ram_mib;
}

int64_t st_kind_gpu_m(const st_kind *k)
{
    st_shape shape = {
        .level = k->level, .gpus = k->gpus, .profile = k->profile, .share_m = k->share_m};
    return ST_MAX(st_shape_gpu_m(&shape), 1);
}

/* Fields that mean nothing at a level are 0. */
static st_kind kind_of(const st_job *job)
{
    const st_shape *s = &job->shape;
    bool shared = s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME;
    return (st_kind){.types = s->types,
                     .level = s->level,
                     .gpus = s->gpus,
                     .profile = s->level == ST_LEVEL_MIG ? s->profile : 0,
                     .share_m = shared ? s->share_m : 0,
                     .cpu_m = s->cpu_m,
                     .ram_mib = s->ram_mib};
}

static st_kind *find(st_typical *t, const st_kind *kind)
{
    st_kind *lightest = &t->seen[0];
    for (int i = 0; i < t->nseen; i++) {
        if (same(&t->seen[i], kind))
            return &t->seen[i];
        if (t->seen[i].weight < lightest->weight)
            lightest = &t->seen[i];
    }
    if (t->nseen < ST_TYPICAL_SEEN) {
        t->seen[t->nseen] = *kind;
        return &t->seen[t->nseen++];
    }
    int64_t inherited = lightest->weight;
    *lightest = *kind;
    lightest->weight = inherited;
    return lightest;
}

/* The heaviest, the older among equals; returns how many. */
static int heaviest(const st_typical *t, st_kind *ret)
{
    int n = 0;
    for (int i = 0; i < t->nseen; i++) {
        int at = n;
        for (; at > 0 && ret[at - 1].weight < t->seen[i].weight; at--)
            if (at < ST_TYPICAL_TARGET)
                ret[at] = ret[at - 1];
        if (at < ST_TYPICAL_TARGET && t->seen[i].weight > 0) {
            ret[at] = t->seen[i];
            n = ST_MIN(n + 1, ST_TYPICAL_TARGET);
        }
    }
    return n;
}

static int64_t sum(const st_kind *kinds, int n)
{
    int64_t s = 0;
    for (int i = 0; i < n; i++)
        s += kinds[i].weight;
    return ST_MAX(s, 1);
}

/* Of a thousand arrivals, how many would belong to another class. */
static int64_t distance(const st_kind *a, int na, const st_kind *b, int nb)
{
    int64_t sa = sum(a, na), sb = sum(b, nb), shared = 0;
    for (int i = 0; i < na; i++)
        for (int k = 0; k < nb; k++)
            if (same(&a[i], &b[k]))
                shared += ST_MIN(a[i].weight * 1000 / sa, b[k].weight * 1000 / sb);
    return 1000 - shared;
}

static bool look(st_typical *t)
{
    enum { CHANGE = 100 };
    st_kind now[ST_TYPICAL_TARGET];
    int n = heaviest(t, now);
    if (t->ntarget > 0 && distance(now, n, t->target, t->ntarget) < CHANGE)
        return false;
    for (int i = 0; i < n; i++)
        t->target[i] = now[i];
    t->ntarget = n;
    t->epoch++;
    return true;
}

bool st_typical_learn(st_typical *t, const st_job *job)
{
    st_kind kind = kind_of(job);
    find(t, &kind)->weight += 2 * ST_MAX(kind.gpus, 1);
    t->arrivals++;
    if (t->arrivals % ST_TYPICAL_HALVE == 0)
        for (int i = 0; i < t->nseen; i++)
            t->seen[i].weight /= 2;
    if (t->arrivals < ST_MAX(t->next, ST_TYPICAL_FIRST))
        return false;
    t->next = t->arrivals + ST_MIN(t->arrivals, ST_TYPICAL_HALVE / 4);
    return look(t);
}
