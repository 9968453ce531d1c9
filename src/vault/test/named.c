/*
 * Sealed text of the earlier form (test/named.h).
 */
#include <endian.h>
#include <string.h>

#include "base/testing.h"
#include "vault/state.h"
#include "vault/test/named.h"

static void part(st_strbuf *out, const char *text)
{
    uint64_t n = htole64((uint64_t)strlen(text));

    st_strbuf_addn(out, (const char *)&n, sizeof n);
    st_strbuf_add(out, text);
}

void seal_named(st_vault *v, const char *owner, const st_vault_place *p, const char *text,
                st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf aad = {0};
    uint64_t version = htole64((uint64_t)p->version);
    unsigned char box[1024];
    char base64[2048];
    unsigned long long made;
    vault_key k;

    assert_true(st_vault_key_copy(v, NULL, &k));
    part(&aad, p->kind);
    part(&aad, owner);
    part(&aad, p->name);
    st_strbuf_addn(&aad, (const char *)&version, sizeof version);
    memset(box, 3, 24);
    crypto_aead_xchacha20poly1305_ietf_encrypt(box + 24, &made, (const unsigned char *)text,
                                               strlen(text), (const unsigned char *)aad.s, aad.n,
                                               NULL, box, k.bytes);
    sodium_bin2base64(base64, sizeof base64, box, 24 + (size_t)made,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    st_strbuf_addf(out, "v1.%s.%s", k.id, base64);
}
