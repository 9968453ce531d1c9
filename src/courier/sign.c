/* Signatures of webhooks, in the form of the Standard Webhooks specification, so that receivers find a library for it. */
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "courier/courier.h"

#define PREFIX  "whsec_"
#define KEY_MIN 24 /* bytes, as the specification has it */
#define KEY_MAX 64

void st_courier_key(char ret[ST_COURIER_KEY_TEXT])
{
    unsigned char key[ST_COURIER_KEY];

    randombytes_buf(key, sizeof key);
    memcpy(ret, PREFIX, sizeof PREFIX);
    sodium_bin2base64(ret + strlen(PREFIX), ST_COURIER_KEY_TEXT - strlen(PREFIX), key, sizeof key,
                      sodium_base64_VARIANT_ORIGINAL);
    sodium_memzero(key, sizeof key);
}

bool st_courier_sign(const char *key, const char *id, int64_t seconds, const char *body,
                     st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf head = {0};
    crypto_auth_hmacsha256_state state;
    unsigned char bytes[KEY_MAX], mac[crypto_auth_hmacsha256_BYTES];
    char text[sodium_base64_ENCODED_LEN(sizeof mac, sodium_base64_VARIANT_ORIGINAL)];
    size_t n = 0;

    if (strncmp(key, PREFIX, strlen(PREFIX)) != 0)
        return false;
    key += strlen(PREFIX);
    if (sodium_base642bin(bytes, sizeof bytes, key, strlen(key), NULL, &n, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        n < KEY_MIN)
        return false;
    st_strbuf_addf(&head, "%s.%" PRId64 ".", id, seconds);
    crypto_auth_hmacsha256_init(&state, bytes, n);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)head.s, head.n);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, strlen(body));
    crypto_auth_hmacsha256_final(&state, mac);
    sodium_memzero(bytes, sizeof bytes);
    sodium_memzero(&state, sizeof state);
    st_strbuf_addf(
        out, "v1,%s",
        sodium_bin2base64(text, sizeof text, mac, sizeof mac, sodium_base64_VARIANT_ORIGINAL));
    return true;
}
