/*
 * Which floor would have cost least (api/fleet_floors.h): each whole GPU less saves its part of what the floor cost; what was in
 * use above it would have been borrowed, at the burst price of what was used.
 */
#include "api/fleet_floors.h"

#include <stdlib.h>

#define TRIES_MAX 512

void st_floor_use_add(st_floor_use *u, const st_entry *e, int64_t burst)
{
    bool guaranteed = e->basis == ST_BASIS_GUARANTEED;
    int64_t share = guaranteed ? e->share : e->inside, gpu_m = e->gpu_m;

    if (!guaranteed && e->share > 0)
        gpu_m = (int64_t)((st_i128)gpu_m * share / e->share);
    if (e->to_ms <= e->from_ms || gpu_m <= 0)
        return;
    st_vec_push(&u->steps, ((st_floor_step){e->from_ms, gpu_m}));
    st_vec_push(&u->steps, ((st_floor_step){e->to_ms, -gpu_m}));
    u->share += share;
    u->value += (st_i128)share * burst;
}

static int by_time(const void *a, const void *b)
{
    const st_floor_step *x = a, *y = b;

    return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

/* milli-GPU x ms in use above a floor. */
static st_i128 above(const st_floor_use *u, int64_t floor_m)
{
    st_i128 sum = 0;
    int64_t use = 0;

    for (size_t i = 0; i < u->steps.n; i++) {
        use += u->steps.v[i].gpu_m;
        if (i + 1 < u->steps.n && use > floor_m)
            sum += (st_i128)(use - floor_m) * (u->steps.v[i + 1].at_ms - u->steps.v[i].at_ms);
    }
    return sum;
}

void st_floor_advise(st_floor_use *u, int64_t reserved, int64_t cost, int64_t from_ms,
                     int64_t to_ms, st_floor_advice *ret)
{
    const int64_t per = st_component_per(ST_PAY_BURST);
    st_i128 rate = u->share > 0 ? u->value / u->share : 0;

    *ret = (st_floor_advice){.floor_m = to_ms > from_ms ? reserved / (to_ms - from_ms) : 0};
    ret->better_m = ret->floor_m;
    if (u->steps.n > 0)
        qsort(u->steps.v, u->steps.n, sizeof *u->steps.v, by_time);
    int64_t step = ST_MAX(1000, (ret->floor_m / TRIES_MAX + 999) / 1000 * 1000);
    for (int64_t f = 0; f < ret->floor_m; f += step) {
        st_i128 less = (st_i128)cost * (ret->floor_m - f) / ret->floor_m;
        st_i128 more = above(u, f) - above(u, ret->floor_m);
        st_i128 saved = less - more * rate / per;

        if (saved > ret->saved) {
            ret->saved = (int64_t)saved;
            ret->better_m = f;
        }
    }
}

void st_floor_use_done(st_floor_use *u)
{
    st_vec_free(&u->steps);
}
