/*
 * Prices of GPU types: how much a milli-GPU of a type is worth to those who can use no other.
 *
 * The demand learned so far is scaled to what is free now, each group of arrivals that allows the
 * same types spreads over them (more to the cheap and the large), and a type that attracts more
 * than it has becomes dearer, a few rounds at a time. The prices left over from last time are where
 * it starts, so they follow the fleet as it fills. Without arrivals that insist on a type, all
 * prices are equal and say nothing.
 */
#include "place/frag_state.h"

#include <string.h>

#define ROUNDS     6
#define GROUPS_MAX 64
#define STEP_MAX   1.0
#define PRICE_MAX  8.0

typedef struct group {
    uint64_t types;
    double demand;
} group;

/* Demand by set of allowed types; sets beyond GROUPS_MAX, which are rare ones, are left out. */
static int gather(const st_frag *f, group *groups)
{
    uint64_t known = f->ntypes < 64 ? (UINT64_C(1) << f->ntypes) - 1 : ~UINT64_C(0);
    int n = 0;

    for (int32_t i = 0; i < f->target.n; i++) {
        const frag_typical *c = &f->target.typical[i];
        uint64_t types = c->ask.types & known;
        int at = 0;

        while (at < n && groups[at].types != types)
            at++;
        if (types == 0 || at == GROUPS_MAX)
            continue;
        if (at == n)
            groups[n++] = (group){types, 0};
        groups[at].demand += (double)c->weight * c->ask.gpus * c->ask.gpu_m;
    }
    return n;
}

/* About e^-price: how willing arrivals are to pay it. */
static double appeal(double price)
{
    return 1 / (1 + price + price * price / 2 + price * price * price / 6);
}

static void spread(const st_frag *f, const group *groups, int n, double scale, double *load)
{
    memset(load, 0, ST_FRAG_TYPES_MAX * sizeof(*load));
    for (int g = 0; g < n; g++) {
        double sum = 0;

        for (int32_t t = 0; t < f->ntypes; t++)
            if (groups[g].types >> t & 1)
                sum += (double)f->type_free_m[t] * appeal(f->price[t]);
        if (sum <= 0)
            continue;
        for (int32_t t = 0; t < f->ntypes; t++)
            if (groups[g].types >> t & 1)
                load[t] += groups[g].demand * scale * appeal(f->price[t]) / sum;
    }
}

void st_frag_price_derive(st_frag *f)
{
    double load[ST_FRAG_TYPES_MAX], free_m = 0, demand = 0, least;
    group groups[GROUPS_MAX];
    int n = gather(f, groups);

    for (int32_t t = 0; t < f->ntypes; t++)
        free_m += (double)f->type_free_m[t];
    for (int g = 0; g < n; g++)
        demand += groups[g].demand;
    if (demand <= 0 || free_m <= 0)
        return;
    for (int round = 0; round < ROUNDS; round++) {
        spread(f, groups, n, free_m / demand, load);
        least = PRICE_MAX;
        for (int32_t t = 0; t < f->ntypes; t++) {
            f->price[t] += ST_MIN((load[t] - 1) / 2, STEP_MAX);
            least = ST_MIN(least, f->price[t]);
        }
        /* Only differences matter; the cheapest type costs nothing. */
        for (int32_t t = 0; t < f->ntypes; t++)
            f->price[t] = ST_MIN(f->price[t] - least, PRICE_MAX);
    }
}

int32_t st_frag_price(const st_frag *f, const st_frag_ask *ask, int32_t type)
{
    return (int32_t)(f->price[type] * ask->gpus * ask->gpu_m / ST_FRAG_STEP_M + 0.5);
}
