/*
 * A seedable random generator (xoshiro256** seeded by splitmix64) for the
 * simulator, generated tests and fuzzing: one seed gives one sequence, on every
 * machine, for good. Nothing that schedules uses it, and it is not for secrets.
 */
#ifndef ST_BASE_RNG_H
#define ST_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct st_rng {
    uint64_t s[4];
} st_rng;

void st_rng_seed(st_rng *r, uint64_t seed);
uint64_t st_rng_u64(st_rng *r);

uint64_t st_rng_below(st_rng *r, uint64_t n);              /* 0 .. n-1, unbiased; n > 0 */
int64_t st_rng_range(st_rng *r, int64_t lo, int64_t hi);   /* lo .. hi, both included */
bool st_rng_chance(st_rng *r, uint64_t num, uint64_t den); /* true num times in den */
double st_rng_unit(st_rng *r);                             /* 0 <= x < 1 */

#endif
