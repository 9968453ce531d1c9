/* The names of the enums in usage records. */
#include "model/record.h"

#include "base/macros.h"

static const char *const bases[] = {
#define X(id, name) [id] = name,
    ST_BASIS_TABLE(X)
#undef X
};

static const char *const cuts[] = {
#define X(id, name, blameless) [id] = name,
    ST_CUT_TABLE(X)
#undef X
};

static const char *const kinds[] = {
#define X(id, name) [id] = name,
    ST_RECORD_TABLE(X)
#undef X
};

const char *st_basis_name(st_basis basis)
{
    ST_ASSERT(basis < ST_BASIS_COUNT);
    return bases[basis];
}

const char *st_cut_name(st_cut cut)
{
    ST_ASSERT(cut < ST_CUT_COUNT);
    return cuts[cut];
}

const char *st_record_name(st_record_kind kind)
{
    ST_ASSERT(kind < ST_REC_COUNT);
    return kinds[kind];
}

bool st_cut_blameless(st_cut cut)
{
    static const bool of[] = {
#define X(id, name, blameless) [id] = blameless,
        ST_CUT_TABLE(X)
#undef X
    };
    ST_ASSERT(cut < ST_CUT_COUNT);
    return of[cut];
}

static bool same_grants(const st_record *a, const st_record *b)
{
    if (!a->grants || !b->grants)
        return a->grants == b->grants;
    for (int t = 0; t < a->tasks; t++)
        if (a->grants[t].node != b->grants[t].node || a->grants[t].devs != b->grants[t].devs ||
            a->grants[t].mig_start != b->grants[t].mig_start)
            return false;
    return true;
}

bool st_record_same(const st_record *a, const st_record *b)
{
    bool head = a->kind == b->kind && a->from_ms == b->from_ms && a->to_ms == b->to_ms &&
                a->account == b->account && a->type == b->type;
    bool job = a->job == b->job && a->stay == b->stay && a->piece == b->piece &&
               a->user == b->user && a->level == b->level && a->profile == b->profile &&
               a->basis == b->basis && a->topo == b->topo && a->tasks == b->tasks &&
               a->cut == b->cut && a->fixes == b->fixes;
    bool amounts = a->gpu_m == b->gpu_m && a->share == b->share && a->held == b->held &&
                   a->inside == b->inside && a->inside_idle == b->inside_idle && a->cpu == b->cpu &&
                   a->ram == b->ram && a->seen == b->seen && a->busy == b->busy &&
                   a->energy_mj == b->energy_mj && a->lost == b->lost;
    bool fleet = a->total == b->total && a->granted == b->granted && a->idle == b->idle &&
                 a->unhealthy == b->unhealthy && a->overhead == b->overhead;
    return head && job && amounts && fleet && same_grants(a, b);
}
