/* Floors: what an account is promised is its own to pay for, less what it has promised on. */
#include <stdlib.h>

#include "meter/state.h"

/* What an account has for itself of its floor, in all and by type. */
typedef struct own {
    int64_t all_m, type_m[ST_TYPES_MAX];
} own;

static own own_floor(const st_tree *tree, const st_account *a)
{
    own o = {.all_m = st_quota_gpu_m(&a->floor)};
    for (int t = 0; t < ST_TYPES_MAX; t++)
        o.type_m[t] = ST_MAX(a->floor.type_m[t], 0);
    for (size_t i = 0; i < a->children.n; i++) {
        const st_quota *child = &tree->accounts.v[a->children.v[i]]->floor;
        o.all_m -= st_quota_gpu_m(child);
        for (int t = 0; t < ST_TYPES_MAX; t++)
            o.type_m[t] -= ST_MAX(child->type_m[t], 0);
    }
    o.all_m = ST_MAX(o.all_m, 0);
    return o;
}

st_record meter_floor_record(const floor_of *f, int64_t now)
{
    return (st_record){.kind = ST_REC_RESERVE,
                       .from_ms = f->since_ms,
                       .to_ms = now,
                       .account = f->account,
                       .type = f->type,
                       .profile = -1,
                       .gpu_m = f->gpu_m,
                       .share = times(f->gpu_m, now - f->since_ms)};
}

static void tell(st_meter *m, floor_of *f, st_records *out)
{
    if (m->now > f->since_ms)
        st_vec_push(out, meter_floor_record(f, m->now));
    f->since_ms = m->now;
}

void meter_cut_floors(st_meter *m, st_records *out)
{
    for (size_t i = 0; i < m->floors.n; i++)
        tell(m, &m->floors.v[i], out);
}

static int order(const floor_of *a, const floor_of *b)
{
    if (a->account != b->account)
        return a->account < b->account ? -1 : 1;
    return a->type < b->type ? -1 : a->type > b->type;
}

typedef ST_VEC(floor_of) floor_list;

static void list_floors(const st_meter *m, const st_tree *tree, floor_list *ret)
{
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        if (st_quota_gpu_m(&a->floor) <= 0)
            continue;
        own o = own_floor(tree, a);
        int64_t typed[ST_TYPES_MAX], left = o.all_m;
        for (int t = 0; t < ST_TYPES_MAX; t++) {
            typed[t] = ST_MIN(ST_MAX(o.type_m[t], 0), left);
            left -= typed[t];
        }
        for (int t = -1; t < ST_TYPES_MAX; t++) {
            int64_t gpu_m = t < 0 ? left : typed[t];
            if (gpu_m > 0)
                st_vec_push(ret, (floor_of){a->id, t, gpu_m, m->now});
        }
    }
}

void st_meter_floors(st_meter *m, const st_tree *tree, int64_t now, st_records *out)
{
    st_meter_advance(m, now);
    meter_learn_tree(m, tree);
    floor_list next = {0};
    list_floors(m, tree, &next);
    /* Both are in order: what is the same goes on, the rest ends. */
    size_t k = 0;
    for (size_t i = 0; i < m->floors.n; i++) {
        floor_of *was = &m->floors.v[i];
        while (k < next.n && order(&next.v[k], was) < 0)
            k++;
        bool same = k < next.n && order(&next.v[k], was) == 0 && next.v[k].gpu_m == was->gpu_m;
        if (same)
            next.v[k].since_ms = was->since_ms;
        else
            tell(m, was, out);
    }
    st_vec_free(&m->floors);
    m->floors.v = next.v;
    m->floors.n = next.n;
    m->floors.cap = next.cap;
    meter_inside_floors(m, tree);
}
