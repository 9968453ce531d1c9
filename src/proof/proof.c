/* Hashes of one book: leaves, chain, tree and proofs about a range of leaves (proof/proof.h).
 *
 * A tree over n > 1 leaves splits at the largest power of two below n. st_proof_make and st_proof_root walk it the
 * same way, left before right: a subtree without a leaf of the range is one hash of the proof, a subtree
 * inside the range is made of its leaves, and any other is split. So size and range say how many hashes there are,
 * and each has one place only. */
#include "proof/proof.h"

#include <sodium.h>
#include <string.h>

enum { TAG_LEAF = 0x00, TAG_NODE = 0x01, TAG_CHAIN = 0x02 };

_Static_assert(ST_HASH == crypto_generichash_BYTES, "the hash has libsodium's usual size");

static void hash_two(unsigned char tag, const st_hash *a, const st_hash *b, st_hash *ret)
{
    unsigned char in[1 + 2 * ST_HASH];

    in[0] = tag;
    memcpy(in + 1, a->b, ST_HASH);
    memcpy(in + 1 + ST_HASH, b->b, ST_HASH);
    crypto_generichash(ret->b, ST_HASH, in, sizeof(in), NULL, 0);
}

void st_proof_node(const st_hash *left, const st_hash *right, st_hash *ret)
{
    hash_two(TAG_NODE, left, right, ret);
}

void st_proof_leaf(const char *bytes, size_t len, st_hash *ret)
{
    static const unsigned char tag = TAG_LEAF;
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, ST_HASH);
    crypto_generichash_update(&state, &tag, 1);
    crypto_generichash_update(&state, (const unsigned char *)bytes, len);
    crypto_generichash_final(&state, ret->b, ST_HASH);
}

void st_proof_chain(st_hash *head, const st_hash *leaf)
{
    hash_two(TAG_CHAIN, head, leaf, head);
}

/* ---- as far as it has grown ------------------------------------------------------------------ */

/* peak[k] is the root of a full subtree of 2^k leaves where bit k of the size is set. */
void st_peaks_add(st_peaks *p, const st_hash *leaf)
{
    st_hash h = *leaf;
    int k = 0;

    for (; (p->size >> k) & 1; k++)
        hash_two(TAG_NODE, &p->peak[k], &h, &h);
    p->peak[k] = h;
    p->size++;
}

void st_peaks_root(const st_peaks *p, st_hash *ret)
{
    bool any = false;

    crypto_generichash(ret->b, ST_HASH, NULL, 0, NULL, 0);
    for (int k = 0; k < 63; k++) {
        if (!((p->size >> k) & 1))
            continue;
        if (any)
            hash_two(TAG_NODE, &p->peak[k], ret, ret);
        else
            *ret = p->peak[k];
        any = true;
    }
}

/* ---- ranges ----------------------------------------------------------------------------------- */

static int64_t split(int64_t n)
{
    int64_t k = 1;

    while (k < n - k)
        k *= 2;
    return k;
}

/* The root of n leaves; n > 0. */
static void root_of(const st_hash *leaves, int64_t n, st_hash *ret)
{
    st_peaks p = {0};

    for (int64_t i = 0; i < n; i++)
        st_peaks_add(&p, &leaves[i]);
    st_peaks_root(&p, ret);
}

static bool range_fits(int64_t size, int64_t from, int64_t to)
{
    return from >= 0 && from <= to && to <= size && size < INT64_MAX / 2;
}

/* The subtree over leaves [lo, hi) of a proof about [from, to). */
typedef struct walk {
    int64_t from, to;
    const st_hash *leaves; /* all when a proof is made, those of the range when it is followed */
    const st_hash *more;
    size_t nmore, used;
    st_hashes *made;
} walk;

static void make_under(walk *w, int64_t lo, int64_t hi)
{
    int64_t mid;

    if (lo >= w->from && hi <= w->to)
        return;
    if (hi <= w->from || lo >= w->to) {
        st_hash h;

        root_of(w->leaves + lo, hi - lo, &h);
        st_vec_push(w->made, h);
        return;
    }
    mid = lo + split(hi - lo);
    make_under(w, lo, mid);
    make_under(w, mid, hi);
}

int st_proof_make(const st_hash *leaves, int64_t size, int64_t from, int64_t to, st_hashes *ret,
                  st_err *err)
{
    walk w = {.from = from, .to = to, .leaves = leaves, .made = ret};

    if (!range_fits(size, from, to))
        return st_fail(err, ST_ERANGE, "entries %lld to %lld are not in a book of %lld",
                       (long long)from + 1, (long long)to, (long long)size);
    if (size > 0)
        make_under(&w, 0, size);
    return 0;
}

static bool root_under(walk *w, int64_t lo, int64_t hi, st_hash *ret)
{
    st_hash left, right;
    int64_t mid;

    if (lo >= w->from && hi <= w->to) {
        root_of(w->leaves + (lo - w->from), hi - lo, ret);
        return true;
    }
    if (hi <= w->from || lo >= w->to) {
        if (w->used == w->nmore)
            return false;
        *ret = w->more[w->used++];
        return true;
    }
    mid = lo + split(hi - lo);
    if (!root_under(w, lo, mid, &left) || !root_under(w, mid, hi, &right))
        return false;
    hash_two(TAG_NODE, &left, &right, ret);
    return true;
}

int st_proof_root(int64_t size, int64_t from, int64_t to, const st_hash *leaves,
                  const st_hash *more, size_t nmore, st_hash *ret, st_err *err)
{
    walk w = {.from = from, .to = to, .leaves = leaves, .more = more, .nmore = nmore};
    st_hash root;

    if (!range_fits(size, from, to))
        return st_fail(err, ST_ECORRUPT, "entries %lld to %lld are not in a book of %lld",
                       (long long)from, (long long)to, (long long)size);
    if (size == 0)
        st_peaks_root(&(st_peaks){0}, &root);
    else if (!root_under(&w, 0, size, &root))
        return st_fail(err, ST_ECORRUPT, "the proof has %zu hashes, which are too few", nmore);
    if (w.used != nmore)
        return st_fail(err, ST_ECORRUPT, "the proof has %zu hashes and needs %zu", nmore, w.used);
    *ret = root;
    return 0;
}

bool st_proof_peaks(int64_t from, const st_hash *more, size_t nmore, st_peaks *ret)
{
    st_peaks p = {.size = from};
    size_t used = 0;

    for (int k = 62; k >= 0; k--) { /* the largest is the leftmost */
        if (!((from >> k) & 1))
            continue;
        if (used == nmore)
            return false;
        p.peak[k] = more[used++];
    }
    *ret = p;
    return true;
}

int st_proof_goes_on(int64_t from, const st_hash *from_root, int64_t size, const st_hash *root,
                     const st_hash *more, size_t nmore, st_err *err)
{
    st_hash before, after;
    st_peaks p = {0};
    int r = 0;

    if (from == size) /* one hash would be all of it */
        return memcmp(from_root, root, sizeof *root) == 0 && nmore == 0
                   ? 0
                   : st_fail(err, ST_ECORRUPT, "two of the same size that differ");
    if (!range_fits(size, from, from) || (from > 0 && !st_proof_peaks(from, more, nmore, &p)))
        return st_fail(err, ST_ECORRUPT, "the proof has too few hashes");
    if (from == 0) /* everything goes on from nothing */
        return nmore == 0 ? 0
                          : st_fail(err, ST_ECORRUPT, "the proof has more hashes than it needs");
    r = st_proof_root(size, from, from, NULL, more, nmore, &after, err);
    if (r < 0)
        return r;
    st_peaks_root(&p, &before);
    if (memcmp(&before, from_root, sizeof before) != 0)
        return st_fail(err, ST_ECORRUPT, "what it goes on from is not what was kept");
    if (memcmp(&after, root, sizeof after) != 0)
        return st_fail(err, ST_ECORRUPT, "the proof does not lead to the new root");
    return 0;
}
