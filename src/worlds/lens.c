/*
 * How closely a world is looked at (fuzz.h).
 *
 * One world in 64 is looked at as closely as can be, one in 192 is saved and loaded after every step, and the
 * others are looked at now and then, with a twin, a meter or a ledger beside some. A breach that lasts is
 * noticed a few steps later; one that passes is noticed in one world in a few.
 */
#include "worlds/worlds.h"

#define TWIN_CHANCE 60

st_lens st_lens_close(uint64_t seed)
{
    return (st_lens){.idle = 1,
                     .check = 1,
                     .wait = 1,
                     .again = 1,
                     .audit = 3,
                     .effort = 1,
                     .twin = TWIN_CHANCE,
                     .metered = true,
                     .billed = seed % 2 == 0 || seed % 16 == 5}; /* with bookings, too */
}

st_lens st_lens_of(uint64_t seed)
{
    st_rng rng;
    st_rng_seed(&rng, seed ^ 0x6c656e73u);
    if (st_rng_chance(&rng, 1, 64))
        return st_lens_close(seed);
    st_lens lens = {.idle = 16, .check = 8, .wait = 48, .again = 16, .audit = 60, .effort = 16};
    if (st_rng_chance(&rng, 1, 12))
        lens.twin = st_rng_chance(&rng, 1, 16) ? 1 : TWIN_CHANCE;
    lens.metered = st_rng_chance(&rng, 1, 16);
    lens.billed = lens.metered && st_rng_chance(&rng, 1, 2);
    return lens;
}
