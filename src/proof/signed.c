/* See signed.h. */
#include "proof/signed.h"

#include <sodium.h>

static void write_unsigned(st_signed_fn body, const void *what, const unsigned char key[32],
                           st_strbuf *out)
{
    body(what, out);
    st_strbuf_add(out, ",\"key\":\"");
    st_hex_write(key, 32, out);
    st_strbuf_addc(out, '"');
}

void st_signed_sign(st_signed_fn body, const void *what, const unsigned char secret[64],
                    unsigned char key[32], unsigned char signature[64])
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    crypto_sign_ed25519_sk_to_pk(key, secret);
    write_unsigned(body, what, key, &text);
    crypto_sign_detached(signature, NULL, (const unsigned char *)text.s, text.n, secret);
}

bool st_signed_valid(st_signed_fn body, const void *what, const unsigned char key[32],
                     const unsigned char signature[64])
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    write_unsigned(body, what, key, &text);
    return crypto_sign_verify_detached(signature, (const unsigned char *)text.s, text.n, key) == 0;
}

void st_signed_write(st_signed_fn body, const void *what, const unsigned char key[32],
                     const unsigned char signature[64], st_strbuf *out)
{
    write_unsigned(body, what, key, out);
    st_strbuf_add(out, ",\"signature\":\"");
    st_hex_write(signature, 64, out);
    st_strbuf_add(out, "\"}");
}

void st_signed_read(st_strict *s, unsigned char key[32], unsigned char signature[64])
{
    st_strict_text(s, ",\"key\":\"");
    st_strict_hex(s, key, 32);
    st_strict_text(s, "\",\"signature\":\"");
    st_strict_hex(s, signature, 64);
    st_strict_text(s, "\"}");
}
