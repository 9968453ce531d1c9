/*
 * Sealed text: XChaCha20-Poly1305 with a random nonce. What is authenticated beside the bytes is the place they
 * belong to, each part with its length, so that no two places read the same.
 *
 *   "v2" "." KEY-ID "." BASE64URL(nonce || bytes and tag)
 *
 * "v1" is the earlier form, in which an account was meant by its name.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "vault/state.h"

#define NONCE    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG      crypto_aead_xchacha20poly1305_ietf_ABYTES
#define HEAD     "v2."
#define NAMED    "v1."
#define HEAD_LEN (sizeof HEAD - 1)
#define ID_LEN   ((size_t)ST_VAULT_KEY_ID - 1)
#define BASE64   sodium_base64_VARIANT_URLSAFE_NO_PADDING

void st_wipe(st_strbuf *b)
{
    if (b->s)
        sodium_memzero(b->s, b->cap);
    st_strbuf_done(b);
}

static void add_part(st_strbuf *out, const char *text)
{
    uint64_t n = htole64((uint64_t)strlen(text));

    st_strbuf_addn(out, (const char *)&n, sizeof n);
    st_strbuf_add(out, text);
}

static void place_bytes(const st_vault_place *p, st_strbuf *out)
{
    uint64_t owner = htole64((uint64_t)p->owner), version = htole64((uint64_t)p->version);

    st_strbuf_add(out, HEAD);
    add_part(out, p->kind);
    st_strbuf_addn(out, (const char *)&owner, sizeof owner);
    add_part(out, p->name);
    st_strbuf_addn(out, (const char *)&version, sizeof version);
}

static void named_bytes(const char *owner, const st_vault_place *p, st_strbuf *out)
{
    uint64_t version = htole64((uint64_t)p->version);

    add_part(out, p->kind);
    add_part(out, owner);
    add_part(out, p->name);
    st_strbuf_addn(out, (const char *)&version, sizeof version);
}

void st_vault_seal(st_vault *v, const st_vault_place *place, const void *bytes, size_t n,
                   st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf aad = {0};
    size_t room = NONCE + n + TAG, text = sodium_base64_encoded_len(room, BASE64);
    ST_CLEANUP(st_freep) unsigned char *box = st_xmalloc(room);
    ST_CLEANUP(st_freep) char *base64 = st_xmalloc(text);
    unsigned long long made = 0;
    vault_key k;

    ST_ASSERT(st_vault_key_copy(v, NULL, &k));
    place_bytes(place, &aad);
    randombytes_buf(box, NONCE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(
        box + NONCE, &made, bytes, n, (const unsigned char *)aad.s, aad.n, NULL, box, k.bytes);
    ST_ASSERT(made == n + TAG);
    st_strbuf_addf(out, HEAD "%s.", k.id);
    sodium_memzero(&k, sizeof k);
    st_strbuf_add(out, sodium_bin2base64(base64, text, box, room, BASE64));
}

static int no_good(st_err *err, const char *why)
{
    return st_fail(err, ST_ECORRUPT, "what is sealed here cannot be opened: %s", why);
}

/* The id of the key; NULL: this is no sealed text. */
static const char *key_of(const char *text, const char *head, char ret[ST_VAULT_KEY_ID])
{
    if (strncmp(text, head, HEAD_LEN) != 0 ||
        strspn(text + HEAD_LEN, "0123456789abcdef") != ID_LEN || text[HEAD_LEN + ID_LEN] != '.')
        return NULL;
    memcpy(ret, text + HEAD_LEN, ID_LEN);
    ret[ID_LEN] = '\0';
    return text + HEAD_LEN + ID_LEN + 1;
}

bool st_vault_fresh(st_vault *v, const char *text)
{
    char id[ST_VAULT_KEY_ID], newest[ST_VAULT_KEY_ID];

    st_vault_key(v, newest);
    return key_of(text, HEAD, id) && strcmp(id, newest) == 0;
}

bool st_vault_named(const char *text)
{
    char id[ST_VAULT_KEY_ID];

    return key_of(text, NAMED, id);
}

static int unseal(st_vault *v, const char *head, const st_strbuf *aad, const char *text,
                  st_strbuf *out, st_err *err)
{
    char id[ST_VAULT_KEY_ID];
    const char *base64 = key_of(text, head, id);
    size_t len = base64 ? strlen(base64) : 0, n = 0;
    ST_CLEANUP(st_freep) unsigned char *box = st_xmalloc(len + 1), *plain = NULL;
    unsigned long long made = 0;
    vault_key k;
    int bad;

    if (!base64 || sodium_base642bin(box, len, base64, len, NULL, &n, NULL, BASE64) != 0 ||
        n < NONCE + TAG)
        return no_good(err, "it is damaged");
    if (!st_vault_key_copy(v, id, &k))
        return st_fail(err, ST_ECORRUPT,
                       "what is sealed here cannot be opened: its key %s is not in the site's file "
                       "of keys",
                       id);
    plain = st_xmalloc(n - NONCE - TAG + 1);
    bad = crypto_aead_xchacha20poly1305_ietf_decrypt(plain, &made, NULL, box + NONCE, n - NONCE,
                                                     (const unsigned char *)aad->s, aad->n, box,
                                                     k.bytes);
    sodium_memzero(&k, sizeof k);
    if (bad == 0)
        st_strbuf_addn(out, (const char *)plain, (size_t)made);
    sodium_memzero(plain, n - NONCE - TAG);
    return bad == 0 ? 0 : no_good(err, "it was changed, or belongs elsewhere");
}

int st_vault_unseal(st_vault *v, const st_vault_place *place, const char *text, st_strbuf *out,
                    st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf aad = {0};

    place_bytes(place, &aad);
    return unseal(v, HEAD, &aad, text, out, err);
}

int st_vault_unseal_named(st_vault *v, const char *owner, const st_vault_place *place,
                          const char *text, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf aad = {0};

    named_bytes(owner, place, &aad);
    return unseal(v, NAMED, &aad, text, out, err);
}
