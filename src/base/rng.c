/*
 * xoshiro256** (Blackman and Vigna), seeded by splitmix64, which never gives
 * the one forbidden state of four zeros.
 */
#include "base/rng.h"

#include "base/macros.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void st_rng_seed(st_rng *r, uint64_t seed)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(r->s); i++)
        r->s[i] = splitmix64(&seed);
}

uint64_t st_rng_u64(st_rng *r)
{
    uint64_t result = rotl(r->s[1] * 5, 7) * 9;
    uint64_t t = r->s[1] << 17;

    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rotl(r->s[3], 45);
    return result;
}

uint64_t st_rng_below(st_rng *r, uint64_t n)
{
    uint64_t reject, x;

    ST_ASSERT(n > 0);
    /* 2^64 mod n values at the bottom would make small results likelier: draw again. */
    reject = (0 - n) % n;
    do {
        x = st_rng_u64(r);
    } while (x < reject);
    return x % n;
}

int64_t st_rng_range(st_rng *r, int64_t lo, int64_t hi)
{
    uint64_t span;

    ST_ASSERT(lo <= hi);
    span = (uint64_t)hi - (uint64_t)lo + 1;
    if (span == 0) /* the whole of int64_t */
        return (int64_t)st_rng_u64(r);
    return (int64_t)((uint64_t)lo + st_rng_below(r, span));
}

bool st_rng_chance(st_rng *r, uint64_t num, uint64_t den)
{
    ST_ASSERT(den > 0);
    return st_rng_below(r, den) < num;
}

double st_rng_unit(st_rng *r)
{
    return (double)(st_rng_u64(r) >> 11) * 0x1.0p-53;
}
