/*
 * Numbers that go outside. A counter tells whoever sees two of its values how much others did in
 * between, so it is put through a keyed permutation first: a Feistel network over SipHash, the key
 * of which is in the store. Not a secret worth stealing, only nobody's business.
 */
#include <sodium.h>
#include <string.h>

#include "state/state.h"

#define ROUNDS    6
#define ID_BITS   40 /* a million jobs a day for three thousand years */
#define HALF      (ID_BITS / 2)
#define HALF_MASK ((1u << HALF) - 1)

/* Crockford's alphabet in small letters: no i, l, o or u to be misread. */
static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* Each kind is permuted in its own way: equal texts of a job and an event would tell that both
 * counters have been at the same number. */
static uint32_t mix(const st_control *ctl, char kind, uint32_t half, int round)
{
    unsigned char in[6], out[crypto_shorthash_BYTES];
    uint32_t word;

    memcpy(in, &half, 4);
    in[4] = (unsigned char)round;
    in[5] = (unsigned char)kind;
    crypto_shorthash(out, in, sizeof in, ctl->veil_key);
    memcpy(&word, out, 4);
    return word & HALF_MASK;
}

static uint64_t permute(const st_control *ctl, char kind, uint64_t n, bool back)
{
    uint32_t l = (uint32_t)(n >> HALF & HALF_MASK), r = (uint32_t)(n & HALF_MASK);

    for (int i = 0; i < ROUNDS; i++) {
        uint32_t next;

        if (back) {
            next = r ^ mix(ctl, kind, l, ROUNDS - 1 - i);
            r = l;
            l = next;
        } else {
            next = l ^ mix(ctl, kind, r, i);
            l = r;
            r = next;
        }
    }
    return (uint64_t)l << HALF | r;
}

void st_control_name(const st_control *ctl, char kind, uint64_t id, char ret[ST_ID_TEXT])
{
    uint64_t n = permute(ctl, kind, id, false);

    ST_ASSERT(id >> ID_BITS == 0);
    ret[0] = kind;
    for (int i = 8; i >= 1; i--, n >>= 5)
        ret[i] = digits[n & 31];
    ret[9] = '\0';
}

bool st_control_named(const st_control *ctl, char kind, const char *text, uint64_t *ret)
{
    uint64_t n = 0;

    if (text[0] != kind || strlen(text) != 9)
        return false;
    for (int i = 1; i <= 8; i++) {
        const char *at = strchr(digits, text[i]);

        if (!at)
            return false;
        n = n << 5 | (uint64_t)(at - digits);
    }
    *ret = permute(ctl, kind, n, true);
    return true;
}

void st_control_id_text(const st_control *ctl, uint64_t id, char ret[ST_ID_TEXT])
{
    st_control_name(ctl, 'j', id, ret);
}

bool st_control_id_parse(const st_control *ctl, const char *text, uint64_t *ret)
{
    return st_control_named(ctl, 'j', text, ret);
}

/* ---- positions ------------------------------------------------------------------------------- */

#define WIDE       32 /* bits of half a position's text */
#define NOISE_BITS 24 /* the same position looks different each time: nobody sees the log grow */
#define WIDE_CHARS 13

static uint64_t permute_wide(const st_control *ctl, uint64_t n, bool back)
{
    uint32_t half[2] = {(uint32_t)(n >> WIDE), (uint32_t)n};

    for (int i = 0; i < ROUNDS; i++) {
        unsigned char in[6], out[crypto_shorthash_BYTES];
        uint32_t word, from = half[!back];

        memcpy(in, &from, 4);
        in[4] = (unsigned char)(back ? ROUNDS - 1 - i : i);
        in[5] = 'p';
        crypto_shorthash(out, in, sizeof in, ctl->veil_key);
        memcpy(&word, out, 4);
        word ^= half[back];
        half[back] = from;
        half[!back] = word;
    }
    return (uint64_t)half[0] << WIDE | half[1];
}

void st_control_position_text(const st_control *ctl, int64_t position, char ret[ST_POSITION_TEXT])
{
    uint64_t noise = randombytes_random() & ((1u << NOISE_BITS) - 1);
    uint64_t n = permute_wide(ctl, (uint64_t)position << NOISE_BITS | noise, false);

    ret[0] = 'p';
    for (int i = WIDE_CHARS; i >= 1; i--, n >>= 5)
        ret[i] = digits[n & 31];
    ret[WIDE_CHARS + 1] = '\0';
}

bool st_control_position_parse(const st_control *ctl, const char *text, int64_t *ret)
{
    uint64_t n = 0;

    if (text[0] != 'p' || strlen(text) != WIDE_CHARS + 1)
        return false;
    for (int i = 1; i <= WIDE_CHARS; i++) {
        const char *at = strchr(digits, text[i]);

        if (!at)
            return false;
        n = n << 5 | (uint64_t)(at - digits);
    }
    *ret = (int64_t)(permute_wide(ctl, n, true) >> NOISE_BITS);
    return true;
}
