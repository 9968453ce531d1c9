/* Kept heads: what holds, and what is done to them. */
#include <sodium.h>
#include <string.h>

#include "base/macros.h"
#include "base/testing.h"
#include "proof/headfile.h"

#define LEAVES 40

typedef struct keys {
    unsigned char public[32], secret[64];
} keys;

typedef struct world {
    keys cluster, witness, other;
    st_hash leaves[LEAVES];
} world;

static void make_keys(keys *k, unsigned char seed)
{
    unsigned char bytes[crypto_sign_SEEDBYTES] = {seed};
    crypto_sign_seed_keypair(k->public, k->secret, bytes);
}

static int setup(void **state)
{
    static world w;
    make_keys(&w.cluster, 1);
    make_keys(&w.witness, 2);
    make_keys(&w.other, 3);
    for (int i = 0; i < LEAVES; i++)
        st_proof_leaf((const char *)&i, sizeof i, &w.leaves[i]);
    *state = &w;
    return 0;
}

/* The log of a key at a size; `twist`: another history from that leaf on. */
static st_log_head head_at(const world *w, const keys *k, int64_t size, int twist)
{
    st_log_head h = {.cluster = "stint", .at_ms = 1000 + size, .size = size};
    st_peaks peaks = {0};
    for (int i = 0; i < size; i++)
        st_peaks_add(&peaks, &w->leaves[i >= twist ? LEAVES - 1 - i : i]);
    st_peaks_root(&peaks, &h.root);
    st_log_head_sign(&h, k->secret);
    return h;
}

static void add_proof(const world *w, st_headfile *f, int64_t from)
{
    st_goes_on p = {.from = from};
    st_err err = {0};
    assert_ok(st_proof_make(w->leaves, f->head.size, from, from, &p.more, &err));
    st_vec_push(&f->proofs, p);
}

/* A head at 30 that the witness has signed at 13, with proofs from there and from 7. */
static st_headfile good(const world *w)
{
    st_headfile f = {.head = head_at(w, &w->cluster, 30, LEAVES)};
    st_log_head then = head_at(w, &w->cluster, 13, LEAVES);
    st_cosign c;
    st_cosign_sign(&then, w->witness.secret, &c);
    st_vec_push(&f.cosigns, c);
    add_proof(w, &f, 13);
    add_proof(w, &f, 7);
    return f;
}

static void written_and_read(void **state)
{
    const world *w = *state;
    st_headfile f = good(w), again;
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0}, twice = {0};
    st_log_head old = head_at(w, &w->cluster, 7, LEAVES);
    st_err err = {0};
    st_headfile_write(&f, &text);
    assert_true(st_headfile_is(text.s, text.n));
    assert_ok(st_headfile_read(text.s, text.n, &again, &err));
    st_headfile_write(&again, &twice);
    assert_string_equal(text.s, twice.s);
    assert_ok(st_headfile_verify(&again, w->cluster.public, w->witness.public, &old, &err));
    st_headfile_done(&again);
    /* Whatever byte is changed, it is refused. */
    for (size_t i = 0; i < text.n; i++) {
        char was = text.s[i];
        text.s[i] = was == '0' ? '1' : '0';
        int r = st_headfile_read(text.s, text.n, &again, &err);
        if (r == 0) {
            r = st_headfile_verify(&again, w->cluster.public, w->witness.public, &old, &err);
            st_headfile_done(&again);
        }
        if (r == 0)
            fail_msg("byte %zu", i);
        text.s[i] = was;
    }
    /* Cut off anywhere, it is refused or lacks what was asked for. */
    for (size_t n = 0; n + 1 < text.n; n++) {
        if (st_headfile_read(text.s, n, &again, &err) == 0) {
            assert_true(
                st_headfile_verify(&again, w->cluster.public, w->witness.public, &old, &err) < 0);
            st_headfile_done(&again);
        }
    }
    st_headfile_done(&f);
}

#define assert_wrong(f, key, witness, old, text)                                                  \
    do {                                                                                          \
        st_err st_e_ = {0};                                                                       \
        assert_int_equal(st_headfile_verify((f), (key), (witness), (old), &st_e_), -ST_ECORRUPT); \
        if (!strstr(st_e_.msg, (text)))                                                           \
            fail_msg("%s", st_e_.msg);                                                            \
    } while (0)

static void attacked(void **state)
{
    const world *w = *state;
    st_headfile f = good(w);
    st_log_head other = head_at(w, &w->other, 13, LEAVES), forked = head_at(w, &w->cluster, 13, 10);
    st_log_head later = head_at(w, &w->cluster, 35, LEAVES);
    st_log_head then = head_at(w, &w->cluster, 13, LEAVES);
    const st_cosign right = f.cosigns.v[0];

    assert_wrong(&f, w->other.public, NULL, NULL, "not the one you trust");
    assert_wrong(&f, NULL, w->other.public, NULL, "has not signed");
    assert_wrong(&f, NULL, NULL, &forked, "does not go on from the head that you kept");
    assert_wrong(&f, NULL, NULL, &later, "what was there is gone");
    assert_wrong(&f, NULL, NULL, &other, "another cluster");
    /* What the witness signed is of another history, of another log, of later, or not by it. */
    st_cosign_sign(&forked, w->witness.secret, &f.cosigns.v[0]);
    assert_true(st_cosign_is_of(&right, &then));
    assert_false(st_cosign_is_of(&f.cosigns.v[0], &then));
    assert_wrong(&f, NULL, w->witness.public, NULL, "does not go on from what a witness signed");
    st_cosign_sign(&other, w->witness.secret, &f.cosigns.v[0]);
    assert_wrong(&f, NULL, w->witness.public, NULL, "log of another cluster");
    st_cosign_sign(&later, w->witness.secret, &f.cosigns.v[0]);
    assert_wrong(&f, NULL, w->witness.public, NULL, "what was there is gone");
    f.cosigns.v[0] = right;
    memcpy(f.cosigns.v[0].key, w->other.public, 32);
    assert_wrong(&f, NULL, NULL, NULL, "does not fit its key");
    f.cosigns.v[0] = right;
    f.cosigns.v[0].size++;
    assert_wrong(&f, NULL, NULL, NULL, "does not fit its key");
    f.cosigns.v[0] = right;
    /* A signature of the cluster's key over a head is none of a witness over it. */
    memcpy(f.cosigns.v[0].key, w->cluster.public, 32);
    memcpy(f.cosigns.v[0].signature, f.head.signature, 64);
    assert_wrong(&f, NULL, NULL, NULL, "does not fit its key");
    st_headfile_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(attacked),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
