/*
 * Proofs of nodes (model/proof.h). Pure.
 */
#include "model/proof.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#define PREFIX "node1."
#define N_MAX  20 /* digits */

static void add_hex(st_strbuf *out, const void *bytes, size_t n)
{
    char two[3];

    for (size_t i = 0; i < n; i++) {
        sodium_bin2hex(two, sizeof two, (const unsigned char *)bytes + i, 1);
        st_strbuf_add(out, two);
    }
}

/* All of `text` as bytes, lower case alone, so that a thing has one name; how many, -1: it is none. */
static int unhex(const char *text, size_t len, unsigned char *ret, size_t max)
{
    size_t n;

    for (size_t i = 0; i < len; i++)
        if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
            return -1;
    if (len % 2 != 0 || sodium_hex2bin(ret, max, text, len, NULL, &n, NULL) != 0)
        return -1;
    return (int)n;
}

void st_proof_digest(const char *method, const char *target, const void *body, size_t len,
                     unsigned char ret[ST_DIGEST_BYTES])
{
    crypto_generichash_state h;

    crypto_generichash_init(&h, NULL, 0, ST_DIGEST_BYTES);
    crypto_generichash_update(&h, (const unsigned char *)method, strlen(method));
    crypto_generichash_update(&h, (const unsigned char *)"\n", 1);
    crypto_generichash_update(&h, (const unsigned char *)target, strlen(target));
    crypto_generichash_update(&h, (const unsigned char *)"\n", 1);
    if (len > 0)
        crypto_generichash_update(&h, body, len);
    crypto_generichash_final(&h, ret, ST_DIGEST_BYTES);
}

void st_proof_sign(const st_proof *p, const unsigned char secret[ST_SECRET_BYTES], st_strbuf *out)
{
    unsigned char sig[crypto_sign_BYTES];
    size_t from = out->n;

    st_strbuf_add(out, PREFIX);
    add_hex(out, p->node, strlen(p->node));
    st_strbuf_addf(out, ".%s.%s.%" PRIu64 ".", p->boot, p->session, p->n);
    add_hex(out, p->digest, sizeof p->digest);
    crypto_sign_detached(sig, NULL, (const unsigned char *)out->s + from, out->n - from, secret);
    st_strbuf_addc(out, '.');
    add_hex(out, sig, sizeof sig);
}

bool st_proof_is(const char *text)
{
    return strncmp(text, PREFIX, sizeof PREFIX - 1) == 0;
}

/* The next part, up to a dot or the end; moves on. */
static const char *part(const char **at, size_t *ret_len)
{
    const char *from = *at;

    *ret_len = strcspn(from, ".");
    *at = from + *ret_len + (from[*ret_len] == '.');
    return from;
}

/* A part that is `lo` to `hi` bytes in hexadecimal, kept as text. */
static bool take_hex(const char **at, size_t lo, size_t hi, char *ret)
{
    unsigned char bytes[ST_NAME_MAX];
    size_t len;
    const char *from = part(at, &len);

    if (len < 2 * lo || len > 2 * hi || unhex(from, len, bytes, sizeof bytes) < 0)
        return false;
    memcpy(ret, from, len);
    ret[len] = '\0';
    return true;
}

static bool take_count(const char **at, uint64_t *ret)
{
    size_t len;
    const char *from = part(at, &len);
    uint64_t n = 0;

    if (len == 0 || len > N_MAX || (len > 1 && from[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (from[i] < '0' || from[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(from[i] - '0'), &n))
            return false;
    *ret = n;
    return true;
}

bool st_proof_parse(const char *text, st_proof *ret)
{
    char name[2 * ST_NAME_MAX + 1], digest[2 * ST_DIGEST_BYTES + 1];
    char sig[2 * crypto_sign_BYTES + 1];
    const char *at = text + sizeof PREFIX - 1;
    st_proof p = {0};

    if (!st_proof_is(text) || !take_hex(&at, 1, ST_NAME_MAX, name) ||
        !take_hex(&at, ST_BOOT_BYTES, ST_BOOT_BYTES, p.boot) ||
        !take_hex(&at, 8, ST_SESSION_MAX, p.session) || !take_count(&at, &p.n) ||
        !take_hex(&at, ST_DIGEST_BYTES, ST_DIGEST_BYTES, digest) ||
        !take_hex(&at, crypto_sign_BYTES, crypto_sign_BYTES, sig) || *at)
        return false;
    unhex(digest, strlen(digest), p.digest, sizeof p.digest);
    unhex(name, strlen(name), (unsigned char *)p.node, ST_NAME_MAX);
    if (strlen(p.node) != strlen(name) / 2)
        return false; /* a NUL inside */
    *ret = p;
    return true;
}

bool st_proof_good(const char *text, const unsigned char key[ST_KEY_BYTES])
{
    unsigned char sig[crypto_sign_BYTES];
    const char *dot = strrchr(text, '.');

    return dot && unhex(dot + 1, strlen(dot + 1), sig, sizeof sig) == (int)sizeof sig &&
           crypto_sign_verify_detached(sig, (const unsigned char *)text, (size_t)(dot - text),
                                       key) == 0;
}

bool st_key_parse(const char *text, unsigned char ret[ST_KEY_BYTES])
{
    return unhex(text, strlen(text), ret, ST_KEY_BYTES) == ST_KEY_BYTES;
}
