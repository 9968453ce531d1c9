/* All books bound together: heads, the tree over them, the signature (proof/proof.h).
 */
#include "proof/proof.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "proof/signed.h"

enum { TAG_HEAD = 0x03, TAG_SALT = 0x04, TAG_FILL = 0x05 };

#define DEPTH_MIN 10 /* 1024 leaves */
#define DEPTH_MAX 40

static void put_i64(unsigned char ret[8], int64_t v)
{
    for (int i = 0; i < 8; i++)
        ret[i] = (unsigned char)((uint64_t)v >> (56 - 8 * i));
}

/* ---- heads ------------------------------------------------------------------------------------ */

void st_head_salt(st_head *h, const unsigned char secret[32])
{
    static const unsigned char tag = TAG_SALT;
    crypto_generichash_state state;

    crypto_generichash_init(&state, secret, 32, sizeof(h->salt));
    crypto_generichash_update(&state, &tag, 1);
    crypto_generichash_update(&state, (const unsigned char *)h->account, strlen(h->account));
    crypto_generichash_final(&state, h->salt, sizeof(h->salt));
}

void st_head_leaf(const st_head *h, st_hash *ret)
{
    static const unsigned char tag = TAG_HEAD;
    crypto_generichash_state state;
    unsigned char size[8];

    put_i64(size, h->size);
    crypto_generichash_init(&state, NULL, 0, ST_HASH);
    crypto_generichash_update(&state, &tag, 1);
    crypto_generichash_update(&state, h->salt, sizeof(h->salt));
    /* All but the name have a fixed length, so it needs none of its own. */
    crypto_generichash_update(&state, (const unsigned char *)h->account, strlen(h->account));
    crypto_generichash_update(&state, size, sizeof(size));
    crypto_generichash_update(&state, h->root.b, ST_HASH);
    crypto_generichash_update(&state, h->chain.b, ST_HASH);
    crypto_generichash_final(&state, ret->b, ST_HASH);
}

/* What fills the tree up: without the secret nobody can tell it from a head. */
static void fill_leaf(const unsigned char secret[32], int64_t i, st_hash *ret)
{
    unsigned char in[9] = {TAG_FILL};

    put_i64(in + 1, i);
    crypto_generichash(ret->b, ST_HASH, in, sizeof(in), secret, 32);
}

/* ---- the tree over them ------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    return memcmp(a, b, ST_HASH);
}

static int depth_for(size_t n)
{
    int depth = DEPTH_MIN;

    while (((size_t)1 << depth) < n)
        depth++;
    return depth;
}

/* All leaves in their order; the caller frees them. */
static st_hash *leaves_of(const st_head *heads, size_t n, int depth, const unsigned char secret[32])
{
    size_t all = (size_t)1 << depth;
    st_hash *leaves = st_xcalloc(all, sizeof(*leaves));

    for (size_t i = 0; i < n; i++)
        st_head_leaf(&heads[i], &leaves[i]);
    for (size_t i = n; i < all; i++)
        fill_leaf(secret, (int64_t)(i - n), &leaves[i]);
    qsort(leaves, all, sizeof(*leaves), by_value);
    return leaves;
}

/* One level up, in place. */
static void climb(st_hash *nodes, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        st_proof_node(&nodes[2 * i], &nodes[2 * i + 1], &nodes[i]);
}

void st_checkpoint_make(st_checkpoint *c, const st_head *heads, size_t n,
                        const unsigned char secret[32])
{
    ST_CLEANUP(st_freep) st_hash *nodes = NULL;

    c->depth = depth_for(n);
    nodes = leaves_of(heads, n, c->depth, secret);
    for (int level = c->depth; level > 0; level--)
        climb(nodes, (size_t)1 << level);
    c->root = nodes[0];
}

void st_checkpoint_path(const st_checkpoint *c, const st_head *heads, size_t n, size_t i,
                        const unsigned char secret[32], st_hashes *ret, int64_t *ret_index)
{
    ST_CLEANUP(st_freep) st_hash *nodes = leaves_of(heads, n, c->depth, secret);
    const st_hash *found;
    st_hash leaf;
    size_t at;

    ST_ASSERT(i < n && c->depth == depth_for(n));
    st_head_leaf(&heads[i], &leaf);
    found = bsearch(&leaf, nodes, (size_t)1 << c->depth, sizeof(*nodes), by_value);
    ST_ASSERT(found);
    at = (size_t)(found - nodes);
    *ret_index = (int64_t)at;
    for (int level = c->depth; level > 0; level--) {
        st_vec_push(ret, nodes[at ^ 1]);
        climb(nodes, (size_t)1 << level);
        at /= 2;
    }
}

bool st_checkpoint_has(const st_checkpoint *c, const st_head *h, int64_t index, const st_hash *path,
                       size_t n)
{
    st_hash at;

    if (c->depth < 0 || c->depth > DEPTH_MAX || n != (size_t)c->depth || index < 0 ||
        index >> c->depth != 0)
        return false;
    st_head_leaf(h, &at);
    for (size_t i = 0; i < n; i++) {
        if ((index >> i) & 1)
            st_proof_node(&path[i], &at, &at);
        else
            st_proof_node(&at, &path[i], &at);
    }
    return memcmp(at.b, c->root.b, ST_HASH) == 0;
}

/* ---- as a line ---------------------------------------------------------------------------------- */

static void body(const void *what, st_strbuf *out)
{
    const st_checkpoint *c = what;

    st_strbuf_add(out, "{\"checkpoint\":1,\"cluster\":");
    st_quote_json(out, c->cluster);
    st_strbuf_addf(out, ",\"at\":%lld,\"depth\":%d,\"root\":\"", (long long)c->at_ms, c->depth);
    st_hex_write(c->root.b, ST_HASH, out);
    st_strbuf_addc(out, '"');
}

void st_checkpoint_sign(st_checkpoint *c, const unsigned char key[64])
{
    st_signed_sign(body, c, key, c->key, c->signature);
}

bool st_checkpoint_valid(const st_checkpoint *c)
{
    return st_signed_valid(body, c, c->key, c->signature);
}

void st_checkpoint_write(const st_checkpoint *c, st_strbuf *out)
{
    st_signed_write(body, c, c->key, c->signature, out);
}

int st_checkpoint_read(const char *text, size_t len, st_checkpoint *ret, st_err *err)
{
    st_strict s = {.at = text, .end = text + len};
    st_checkpoint c = {0};
    int64_t depth;

    st_strict_text(&s, "{\"checkpoint\":1,\"cluster\":");
    st_strict_str(&s, c.cluster, sizeof(c.cluster));
    st_strict_text(&s, ",\"at\":");
    c.at_ms = st_strict_i64(&s);
    st_strict_text(&s, ",\"depth\":");
    depth = st_strict_count(&s);
    st_strict_text(&s, ",\"root\":\"");
    st_strict_hex(&s, c.root.b, ST_HASH);
    st_strict_text(&s, "\"");
    st_signed_read(&s, c.key, c.signature);
    if (!st_strict_done(&s) || depth > DEPTH_MAX)
        return st_fail(err, ST_ECORRUPT, "not a checkpoint, or not as stint writes them");
    c.depth = (int)depth;
    *ret = c;
    return 0;
}
