/* A line of JSON with the key that signed it and the signature at its end: what is before the signature is signed.
 *
 * Each kind begins with another word ({"checkpoint":1, {"log":1, {"cosigned":1), so that a signature of one is none of
 * another. */
#ifndef ST_PROOF_SIGNED_H
#define ST_PROOF_SIGNED_H

#include "base/strbuf.h"
#include "proof/strict.h"

/* Writes a thing from its first brace to before its key. */
typedef void (*st_signed_fn)(const void *what, st_strbuf *out);

/* `secret` is the 64-byte key of libsodium; fills in both others. */
void st_signed_sign(st_signed_fn body, const void *what, const unsigned char secret[64],
                    unsigned char key[32], unsigned char signature[64]);
bool st_signed_valid(st_signed_fn body, const void *what, const unsigned char key[32],
                     const unsigned char signature[64]);
void st_signed_write(st_signed_fn body, const void *what, const unsigned char key[32],
                     const unsigned char signature[64], st_strbuf *out);
/* The same end of a line, read. */
void st_signed_read(st_strict *s, unsigned char key[32], unsigned char signature[64]);

#endif
