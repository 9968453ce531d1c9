/*
 * Words are folded in with a 64x64 -> 128 bit multiplication whose halves are
 * xored: one multiplication spreads every input bit over the whole result.
 * Each word is xored with a constant first, so that zero words still count.
 */
#include "base/hash.h"

#include <endian.h>
#include <string.h>

#include "base/macros.h"

/* Odd, about half the bits set; digits of pi, e and the golden ratio. */
#define HASH_K0 0x243F6A8885A308D3u
#define HASH_K1 0xB7E151628AED2A6Bu
#define HASH_K2 0x9E3779B97F4A7C15u

static uint64_t fold_mul(uint64_t a, uint64_t b)
{
    st_u128 product = (st_u128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t st_hash_u64(uint64_t h, uint64_t v)
{
    /* Adding h back keeps a zero factor from erasing what was hashed so far. */
    return fold_mul(h ^ HASH_K0, v ^ HASH_K1) + (h ^ (h >> 29)) * HASH_K2 + v;
}

uint64_t st_hash_bytes(const void *data, size_t len, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ HASH_K2;
    size_t left = len;
    uint64_t word;

    for (; left >= 8; p += 8, left -= 8) {
        memcpy(&word, p, 8);
        h = st_hash_u64(h, le64toh(word));
    }
    if (left > 0) {
        word = 0;
        memcpy(&word, p, left);
        h = st_hash_u64(h, le64toh(word));
    }
    h = st_hash_u64(h, (uint64_t)len);

    /* Final avalanche, so that the low bits alone can index a table. */
    h ^= h >> 32;
    h = fold_mul(h ^ HASH_K1, HASH_K2);
    return h ^ (h >> 29);
}

uint64_t st_hash_str(uint64_t h, const char *s)
{
    return st_hash_u64(h, st_hash_bytes(s, strlen(s), h));
}
