/*
 * The inside of the vault. Private to src/vault.
 */
#ifndef ST_VAULT_STATE_H
#define ST_VAULT_STATE_H

#include <pthread.h>
#include <sodium.h>

#include "base/map.h"
#include "base/vec.h"
#include "vault/vault.h"

#define KEY_BYTES crypto_aead_xchacha20poly1305_ietf_KEYBYTES
#define KEYS_MAX  16 /* in the file and in memory */

typedef struct vault_key {
    unsigned char bytes[KEY_BYTES];
    char id[ST_VAULT_KEY_ID];
} vault_key;

struct st_vault {
    pthread_rwlock_t lock;
    char *path;              /* NULL: a fleeting one */
    vault_key key[KEYS_MAX]; /* the newest first */
    size_t n;                /* how many can open */
    size_t filed;            /* how many of them are in the file */
    ST_VEC(st_secret *) all; /* by account and name */
};

/* A copy of the key, which the caller wipes; id NULL: the newest. */
bool st_vault_key_copy(st_vault *v, const char *id, vault_key *ret);

#endif
