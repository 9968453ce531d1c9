/*
 * How a node proves that a message is its own: a signature (Ed25519) with the key that was made on it, over what
 * is asked and by which voice of the node (doc/decisions/0021). Agents make proofs, stintd checks them.
 *
 *     node1.NAME.BOOT.SESSION.N.DIGEST.SIGNATURE
 *
 * BOOT is drawn at each start of the agent, with the kernel's boot id behind it; SESSION was given by stintd; N
 * counts the messages of the session; DIGEST is of method, target and body. All but N are hexadecimal.
 */
#ifndef ST_MODEL_PROOF_H
#define ST_MODEL_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "model/types.h"

#define ST_KEY_BYTES    32
#define ST_SECRET_BYTES 64
#define ST_DIGEST_BYTES 32
#define ST_KEY_TEXT     (2 * ST_KEY_BYTES + 1)
#define ST_BOOT_BYTES   32 /* half of them the kernel's */
#define ST_BOOT_TEXT    (2 * ST_BOOT_BYTES + 1)
#define ST_SESSION_MAX  32 /* bytes */
#define ST_SESSION_TEXT (2 * ST_SESSION_MAX + 1)

typedef struct st_proof {
    char node[ST_NAME_MAX + 1];
    char boot[ST_BOOT_TEXT];
    char session[ST_SESSION_TEXT]; /* given by stintd; of n 0: a challenge */
    uint64_t n;
    unsigned char digest[ST_DIGEST_BYTES];
} st_proof;

/* `target` is the path with its query; of no body len is 0. */
void st_proof_digest(const char *method, const char *target, const void *body, size_t len,
                     unsigned char ret[ST_DIGEST_BYTES]);
void st_proof_sign(const st_proof *proof, const unsigned char secret[ST_SECRET_BYTES],
                   st_strbuf *out);

/* Whether the text is meant as a proof, whatever it is worth. */
bool st_proof_is(const char *text);
/* Takes it apart; false: it is none. Nothing is believed yet. */
bool st_proof_parse(const char *text, st_proof *ret);
/* Whether the owner of the key has made it. */
bool st_proof_good(const char *text, const unsigned char key[ST_KEY_BYTES]);

/* A public key from its text; false: it is none. */
bool st_key_parse(const char *text, unsigned char ret[ST_KEY_BYTES]);

#endif
