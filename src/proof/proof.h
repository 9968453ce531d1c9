/* Proof: that books were not changed, and that a bill is what the books say.
 *
 * Of each account's book, with H BLAKE2b-256:
 *
 *     leaf(i)  = H(0x00 | bytes of entry i)
 *     node     = H(0x01 | left | right)          a Merkle tree over the leaves, split as in RFC 9162
 *     chain(i) = H(0x02 | chain(i-1) | leaf(i))  chain(0) = 32 zero bytes
 *
 * A checkpoint binds all books: a second tree, whose leaves are
 *
 *     head     = H(0x03 | salt of the account | name | size of its book | root | chain)
 *
 * in order of their own value, filled up with random-looking ones to a power of two that is at least 1024. Its
 * root, the time and the cluster's name are signed with Ed25519. So a tenant can check its own books with the public key
 * alone, and learns nothing of others: not their names, not how much they did, hardly how many there are.
 *
 * Pure; keys and the secret that salts are made of come in from outside. */
#ifndef ST_PROOF_PROOF_H
#define ST_PROOF_PROOF_H

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "model/types.h"

#define ST_HASH 32

typedef struct st_hash {
    unsigned char b[ST_HASH];
} st_hash;

typedef ST_VEC(st_hash) st_hashes;

void st_proof_leaf(const char *bytes, size_t len, st_hash *ret);
void st_proof_chain(st_hash *head, const st_hash *leaf); /* in place */
void st_proof_node(const st_hash *left, const st_hash *right, st_hash *ret);

/* The tree as far as it has grown: enough to add leaves and to give the root. */
typedef struct st_peaks {
    int64_t size;
    st_hash peak[64];
} st_peaks;

void st_peaks_add(st_peaks *p, const st_hash *leaf);
void st_peaks_root(const st_peaks *p, st_hash *ret); /* of an empty one: H of nothing */

/* Which hashes a verifier needs besides the leaves [from, to) to get the root of the first `size` leaves, in the
 * order in which it will want them. `leaves` are all of them. */
int st_proof_make(const st_hash *leaves, int64_t size, int64_t from, int64_t to, st_hashes *ret,
                  st_err *err);
/* The root that these leaves and hashes lead to; ST_ECORRUPT when that is not all there must be. */
int st_proof_root(int64_t size, int64_t from, int64_t to, const st_hash *leaves,
                  const st_hash *more, size_t nmore, st_hash *ret, st_err *err);

/* The tree of the first `from` leaves, out of a proof about leaves that begin there: its first hashes are just those.
 * False: there are too few. */
bool st_proof_peaks(int64_t from, const st_hash *more, size_t nmore, st_peaks *ret);
/* That a tree of `size` leaves goes on from one of `from`: `more` is what st_proof_make gives for from and to both `from`.
 * ST_ECORRUPT: it does not. */
int st_proof_goes_on(int64_t from, const st_hash *from_root, int64_t size, const st_hash *root,
                     const st_hash *more, size_t nmore, st_err *err);

/* ---- all books together --------------------------------------------------------------------- */

/* How far one book has come. */
typedef struct st_head {
    char account[ST_NAME_MAX + 1];
    int64_t size;
    st_hash root, chain;
    unsigned char salt[16];
} st_head;

void st_head_salt(st_head *h, const unsigned char secret[32]);
void st_head_leaf(const st_head *h, st_hash *ret);

typedef struct st_checkpoint {
    char cluster[64]; /* whose books */
    int64_t at_ms;
    int depth; /* of the tree over heads */
    st_hash root;
    unsigned char key[32], signature[64];
} st_checkpoint;

/* Over all heads; fills in root and depth. Signing is next. */
void st_checkpoint_make(st_checkpoint *c, const st_head *heads, size_t n,
                        const unsigned char secret[32]);
/* `depth` hashes that lead from heads[i] to the root, and the place of its leaf. */
void st_checkpoint_path(const st_checkpoint *c, const st_head *heads, size_t n, size_t i,
                        const unsigned char secret[32], st_hashes *ret, int64_t *ret_index);
/* Whether a head is under this root. */
bool st_checkpoint_has(const st_checkpoint *c, const st_head *h, int64_t index, const st_hash *path,
                       size_t n);
/* `key` is the 64-byte secret key of libsodium. */
void st_checkpoint_sign(st_checkpoint *c, const unsigned char key[64]);
bool st_checkpoint_valid(const st_checkpoint *c); /* its signature fits its key */
/* One line of JSON, all of it. Reading is strict. */
void st_checkpoint_write(const st_checkpoint *c, st_strbuf *out);
int st_checkpoint_read(const char *text, size_t len, st_checkpoint *ret, st_err *err);

/* ---- all checkpoints together ------------------------------------------------------------------ */

/* How far the log of checkpoints has come: a tree as of a book, whose entries are checkpoints as they are written, in
 * the order they were made. Signed like one; no other thing that the key signs begins with {"log":1. */
typedef struct st_log_head {
    char cluster[64];
    int64_t at_ms, size;
    st_hash root;
    unsigned char key[32], signature[64];
} st_log_head;

void st_log_head_sign(st_log_head *h, const unsigned char key[64]);
bool st_log_head_valid(const st_log_head *h);
void st_log_head_write(const st_log_head *h, st_strbuf *out);
int st_log_head_read(const char *text, size_t len, st_log_head *ret, st_err *err);

/* Somebody else says, with a key of their own, that they saw the log of that key (`log`) come so far, and that it went on from
 * all they had seen before. */
typedef struct st_cosign {
    unsigned char log[32];
    char cluster[64];
    int64_t at_ms, size; /* as the head said */
    st_hash root;
    unsigned char key[32], signature[64]; /* the witness's */
} st_cosign;

void st_cosign_sign(const st_log_head *h, const unsigned char key[64], st_cosign *ret);
bool st_cosign_valid(const st_cosign *c);                       /* its signature fits its key */
bool st_cosign_is_of(const st_cosign *c, const st_log_head *h); /* it is about just this head */
void st_cosign_write(const st_cosign *c, st_strbuf *out);
int st_cosign_read(const char *text, size_t len, st_cosign *ret, st_err *err);

#endif
