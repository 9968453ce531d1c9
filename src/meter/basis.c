/* By what right a stay has its devices, and which burst is on demand.
 *
 * Each account counts the burst of itself and all below it; a stay is burst if it fits what was agreed
 * for every account above it, otherwise on demand, and then it counts for nobody. */
#include <stdlib.h>

#include "meter/state.h"

static void know(st_meter *m, int32_t id)
{
    while (m->accounts.n <= (size_t)id)
        st_vec_push(&m->accounts, (account){.parent = -1, .agreed_m = ST_UNSET});
}

/* Parents never change; new accounts come at the end. */
void meter_learn_tree(st_meter *m, const st_tree *tree)
{
    if (m->accounts.n >= tree->accounts.n && m->known_accounts == tree->accounts.n)
        return;
    know(m, (int32_t)tree->accounts.n - 1);
    for (size_t i = m->known_accounts; i < tree->accounts.n; i++)
        m->accounts.v[i].parent = tree->accounts.v[i]->parent;
    m->known_accounts = tree->accounts.n;
}

void st_meter_agree(st_meter *m, int32_t id, int64_t gpu_m)
{
    ST_ASSERT(id >= 0 && id < ST_ACCOUNTS_MAX);
    know(m, id);
    m->accounts.v[id].agreed_m = gpu_m < 0 ? ST_UNSET : gpu_m;
}

/* Of a stay, what is borrowed. */
static int64_t outside_m(const stay *s)
{
    return s->gpu_m - s->inside_m;
}

static bool fits(const st_meter *m, const stay *s)
{
    for (int32_t a = s->account; a >= 0; a = m->accounts.v[a].parent) {
        const account *acc = &m->accounts.v[a];
        if (acc->agreed_m != ST_UNSET && acc->burst_m + outside_m(s) > acc->agreed_m)
            return false;
    }
    return true;
}

st_basis st_meter_borrows_as(const st_meter *m, int32_t id, int64_t gpu_m)
{
    const stay s = {.account = id, .gpu_m = gpu_m};
    bool known = id >= 0 && (size_t)id < m->accounts.n;
    return !known || fits(m, &s) ? ST_BASIS_BURST : ST_BASIS_ON_DEMAND;
}

static void count(st_meter *m, const stay *s, int sign)
{
    for (int32_t a = s->account; a >= 0; a = m->accounts.v[a].parent)
        m->accounts.v[a].burst_m += sign * outside_m(s);
}

void meter_burst(st_meter *m, const stay *s, int sign)
{
    if (s->basis == ST_BASIS_BURST)
        count(m, s, sign);
}

st_basis meter_basis(const st_meter *m, const stay *s, st_class class)
{
    if (class == ST_CLASS_GUARANTEED || class == ST_CLASS_BOOKED)
        return ST_BASIS_GUARANTEED;
    return fits(m, s) ? ST_BASIS_BURST : ST_BASIS_ON_DEMAND;
}

void meter_decide(st_meter *m, stay *const *list, size_t n, st_basis *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = list[i]->basis;
        meter_burst(m, list[i], -1);
    }
    for (int turn = 0; turn < 2; turn++) {
        st_basis whose = turn == 0 ? ST_BASIS_BURST : ST_BASIS_ON_DEMAND;
        for (size_t i = 0; i < n; i++) {
            if (list[i]->basis != whose)
                continue;
            ret[i] = meter_basis(m, list[i], ST_CLASS_BURSTABLE);
            if (ret[i] == ST_BASIS_BURST)
                count(m, list[i], 1);
        }
    }
    /* As they were: the stays change theirs one by one. */
    for (size_t i = 0; i < n; i++) {
        if (ret[i] == ST_BASIS_BURST)
            count(m, list[i], -1);
        meter_burst(m, list[i], 1);
    }
}
