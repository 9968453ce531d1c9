/* Proofs: against vectors that another program made (tests/money/proof_vectors.py), and that nothing but the
 * truth passes. */
#include <sodium.h>

#include "base/mem.h"
#include "base/testing.h"
#include "proof/proof.h"
#include "proof/strict.h"

#define ROOTS   "755d26220f6dea5076dc9c524288ebf92642d8595cc11a0432c8ec5ca4390704"
#define CHAINS  "4642fe0aaedf4959c41e3ad6ad5704eabd038a72a9d0e5b97df17016bd6a318b"
#define PROOFS  "2eee6075104f652262e6216f877fdd17ca631e4b21de7f5c6ca7548defa35ce4"
#define NPROOFS 5916
#define LEAVES  130

static void make_leaves(st_hash *leaves, int n)
{
    for (int i = 0; i < n; i++) {
        char text[32];
        int len = snprintf(text, sizeof(text), "entry %d", i);

        st_proof_leaf(text, (size_t)len, &leaves[i]);
    }
}

static void assert_hash(const void *data, size_t len, const char *want)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf hex = {0};
    st_hash h;

    crypto_generichash(h.b, ST_HASH, data, len, NULL, 0);
    st_hex_write(h.b, ST_HASH, &hex);
    assert_string_equal(hex.s, want);
}

static void roots_and_chains(void **state)
{
    (void)state;
    st_hash leaves[LEAVES], roots[LEAVES + 1], chains[LEAVES + 1] = {0};
    st_peaks p = {0};

    make_leaves(leaves, LEAVES);
    st_peaks_root(&p, &roots[0]);
    for (int i = 0; i < LEAVES; i++) {
        st_peaks_add(&p, &leaves[i]);
        st_peaks_root(&p, &roots[i + 1]);
        chains[i + 1] = chains[i];
        st_proof_chain(&chains[i + 1], &leaves[i]);
    }
    assert_hash(roots, sizeof(roots), ROOTS);
    assert_hash(chains, sizeof(chains), CHAINS);
}

static void proofs(void **state)
{
    (void)state;
    st_hash leaves[LEAVES];
    st_hashes all = {0};
    st_err err = {0};

    make_leaves(leaves, LEAVES);
    for (int n = 0; n < 21; n++)
        for (int a = 0; a <= n; a++)
            for (int b = a; b <= n; b++)
                assert_ok(st_proof_make(leaves, n, a, b, &all, &err));
    assert_int_equal(all.n, NPROOFS);
    assert_hash(all.v, all.n * ST_HASH, PROOFS);
    st_vec_free(&all);
}

static bool leads_to(const st_hash *want, int64_t size, int64_t from, int64_t to,
                     const st_hash *leaves, const st_hashes *more)
{
    st_hash got;

    return st_proof_root(size, from, to, leaves, more->v, more->n, &got, NULL) == 0 &&
           memcmp(&got, want, sizeof(got)) == 0;
}

/* A proof in every way wrong: another bit, place, size, one more, one less. */
static void refuse_all(const st_hash *root, int64_t size, int64_t from, int64_t to, st_hash *leaves,
                       st_hashes *more)
{
    for (size_t i = 0; i < more->n; i++) {
        more->v[i].b[i % ST_HASH] ^= 4;
        assert_false(leads_to(root, size, from, to, leaves + from, more));
        more->v[i].b[i % ST_HASH] ^= 4;
    }
    for (int64_t i = from; i < to; i++) {
        leaves[i].b[31] ^= 1;
        assert_false(leads_to(root, size, from, to, leaves + from, more));
        leaves[i].b[31] ^= 1;
    }
    /* The leaves of this range, said to be others. */
    if (to < size && to > from)
        assert_false(leads_to(root, size, from + 1, to + 1, leaves + from, more));
    if (from > 0 && to > from)
        assert_false(leads_to(root, size, from - 1, to - 1, leaves + from, more));
    /* One leaf hidden at the end of the range. */
    if (to > from + 1)
        assert_false(leads_to(root, size, from, to - 1, leaves + from, more));
    st_vec_push(more, more->n > 0 ? more->v[0] : (st_hash){0});
    assert_false(leads_to(root, size, from, to, leaves + from, more));
    more->n--;
    if (more->n > 0) {
        more->n--;
        assert_false(leads_to(root, size, from, to, leaves + from, more));
        more->n++;
    }
}

static void only_the_truth(void **state)
{
    (void)state;
    st_hash leaves[LEAVES];
    st_peaks p = {0};
    st_hashes more = {0};
    st_err err = {0};

    make_leaves(leaves, LEAVES);
    for (int n = 1; n <= 40; n++) {
        st_hash root;

        st_peaks_add(&p, &leaves[n - 1]);
        st_peaks_root(&p, &root);
        for (int a = 0; a <= n; a++) {
            for (int b = a; b <= n; b++) {
                st_vec_clear(&more);
                assert_ok(st_proof_make(leaves, n, a, b, &more, &err));
                assert_true(leads_to(&root, n, a, b, leaves + a, &more));
                refuse_all(&root, n, a, b, leaves, &more);
            }
        }
    }
    assert_fails(st_proof_make(leaves, 4, 3, 2, &more, &err), ST_ERANGE, "not in a book of 4");
    assert_fails(st_proof_make(leaves, 4, 3, 5, &more, &err), ST_ERANGE, "not in a book of 4");
    assert_fails(st_proof_root(4, -1, 2, leaves, NULL, 0, &leaves[0], &err), ST_ECORRUPT, "not in");
    assert_fails(st_proof_root(INT64_MAX, 0, 1, leaves, NULL, 0, &leaves[0], &err), ST_ECORRUPT,
                 "not in");
    assert_fails(st_proof_root(INT64_MAX / 4, 0, 1, leaves, NULL, 0, &leaves[0], &err), ST_ECORRUPT,
                 "too few");
    st_vec_free(&more);
}

/* ---- checkpoints ---------------------------------------------------------------------------- */

typedef struct world {
    st_head *heads;
    size_t n;
    unsigned char secret[32], public[32], key[64];
} world;

static void make_world(world *w, size_t n)
{
    st_hash leaves[100], chain = {0};
    st_peaks p = {0};

    *w = (world){.heads = st_xcalloc(n + 1, sizeof(*w->heads)), .n = n};
    for (int i = 0; i < 32; i++)
        w->secret[i] = (unsigned char)i;
    crypto_sign_seed_keypair(w->public, w->key, w->secret);
    make_leaves(leaves, 100);
    for (size_t i = 0; i < n; i++) {
        st_head *h = &w->heads[i];

        snprintf(h->account, sizeof(h->account), "team%zu", i);
        h->size = (int64_t)i;
        h->chain = chain;
        st_peaks_root(&p, &h->root);
        st_head_salt(h, w->secret);
        if (i < 100) {
            st_peaks_add(&p, &leaves[i]);
            st_proof_chain(&chain, &leaves[i]);
        }
    }
}

static void same_roots(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        const char *root;
    } rows[] = {
        {0, "58f1a0fc5f73f19373eecccbc4720dc0c3358cd2d409a6f3c305cbbd17f022a2"},
        {1, "9935eeafe768af563944f2c24b1091000067a47dca20e6aca0f51d98a5ee6b85"},
        {100, "00cb9efedac677eabbe1138a521c639cfc0be979d784f3c09bfc95374b8354d6"},
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf hex = {0};
        st_checkpoint c = {0};
        world w;

        make_world(&w, rows[i].n);
        st_checkpoint_make(&c, w.heads, w.n, w.secret);
        st_hex_write(c.root.b, ST_HASH, &hex);
        assert_string_equal(hex.s, rows[i].root);
        assert_int_equal(c.depth, 10);
        free(w.heads);
    }
}

static void heads_are_in(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 1024, 1025};

    for (size_t k = 0; k < ST_ARRAY_LEN(sizes); k++) {
        st_checkpoint c = {0};
        world w;

        make_world(&w, sizes[k]);
        st_checkpoint_make(&c, w.heads, w.n, w.secret);
        assert_int_equal(c.depth, sizes[k] > 1024 ? 11 : 10);
        for (size_t i = 0; i < w.n; i += 1 + w.n / 7) {
            st_hashes path = {0};
            st_head other = w.heads[i];
            int64_t index = -1;

            st_checkpoint_path(&c, w.heads, w.n, i, w.secret, &path, &index);
            assert_true(st_checkpoint_has(&c, &w.heads[i], index, path.v, path.n));
            assert_false(st_checkpoint_has(&c, &w.heads[i], index ^ 1, path.v, path.n));
            assert_false(st_checkpoint_has(&c, &w.heads[i], -1, path.v, path.n));
            assert_false(st_checkpoint_has(&c, &w.heads[i], index | (INT64_C(1) << c.depth), path.v,
                                           path.n));
            assert_false(st_checkpoint_has(&c, &w.heads[i], index, path.v, path.n - 1));
            other.size++;
            assert_false(st_checkpoint_has(&c, &other, index, path.v, path.n));
            other = w.heads[i];
            other.account[0] = 'T';
            assert_false(st_checkpoint_has(&c, &other, index, path.v, path.n));
            other = w.heads[i];
            other.chain.b[0] ^= 1;
            assert_false(st_checkpoint_has(&c, &other, index, path.v, path.n));
            for (size_t j = 0; j < path.n; j++) {
                path.v[j].b[7] ^= 1;
                assert_false(st_checkpoint_has(&c, &w.heads[i], index, path.v, path.n));
                path.v[j].b[7] ^= 1;
            }
            st_vec_free(&path);
        }
        free(w.heads);
    }
}

static void signed_and_read_back(void **state)
{
    (void)state;
    ST_CLEANUP(st_strbuf_done) st_strbuf line = {0}, again = {0};
    st_checkpoint c = {.cluster = "k\"\xC3\xB6ln", .at_ms = 1790000000123}, back = {0};
    st_err err = {0};
    world w;

    make_world(&w, 3);
    st_checkpoint_make(&c, w.heads, w.n, w.secret);
    st_checkpoint_sign(&c, w.key);
    assert_memory_equal(c.key, w.public, 32);
    assert_true(st_checkpoint_valid(&c));
    st_checkpoint_write(&c, &line);
    assert_ok(st_checkpoint_read(line.s, line.n, &back, &err));
    assert_true(st_checkpoint_valid(&back));
    st_checkpoint_write(&back, &again);
    assert_string_equal(line.s, again.s);

    /* Any byte changed is another checkpoint or none; it never holds. */
    for (size_t i = 0; i < line.n; i++) {
        char was = line.s[i];

        for (int bit = 0; bit < 8; bit++) {
            line.s[i] = (char)(was ^ (1 << bit));
            if (st_checkpoint_read(line.s, line.n, &back, &err) == 0)
                assert_false(st_checkpoint_valid(&back));
        }
        line.s[i] = was;
    }
    for (size_t n = 0; n < line.n; n++)
        assert_fails(st_checkpoint_read(line.s, n, &back, &err), ST_ECORRUPT, "not a checkpoint");
    free(w.heads);
}

static void strict_reading(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } numbers[] = {
        {"0", true, 0},
        {"-1", true, -1},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"00", false, 0},
        {"-0", false, 0},
        {"-", false, 0},
        {"", false, 0},
        {"+1", false, 0},
        {"1 ", false, 0},
    };
    static const char *const bad[] = {"\"a",      "\"\\n\"",    "\"\\u0041\"",   "\"\\u0000\"",
                                      "\"\n\"",   "\"\xff\"",   "\"123456789\"", "\"\\",
                                      "\"\\u001", "\"\\u001F\""};
    char text[9];

    for (size_t i = 0; i < ST_ARRAY_LEN(numbers); i++) {
        st_strict s = {.at = numbers[i].text, .end = numbers[i].text + strlen(numbers[i].text)};
        int64_t v = st_strict_i64(&s);

        assert_int_equal(st_strict_done(&s), numbers[i].good);
        if (numbers[i].good)
            assert_int_equal(v, numbers[i].value);
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        st_strict s = {.at = bad[i], .end = bad[i] + strlen(bad[i])};

        st_strict_str(&s, text, sizeof(text));
        assert_false(st_strict_done(&s));
    }
    st_strict s = {.at = "\"a\\\"\\u001f\\\\\"", .end = NULL};
    s.end = s.at + strlen(s.at);
    st_strict_str(&s, text, sizeof(text));
    assert_true(st_strict_done(&s));
    assert_string_equal(text, "a\"\x1f\\");
}

/* A tree goes on from every smaller one, and from nothing else. */
static void goes_on(void **state)
{
    enum { MOST = 40 };
    st_hash leaves[MOST], roots[MOST + 1], other;
    st_peaks p = {0};
    st_err err = {0};

    (void)state;
    for (int i = 0; i < MOST; i++) {
        st_peaks_root(&p, &roots[i]);
        st_proof_leaf((const char *)&i, sizeof i, &leaves[i]);
        st_peaks_add(&p, &leaves[i]);
    }
    st_peaks_root(&p, &roots[MOST]);
    for (int n = 0; n <= MOST; n++)
        for (int m = 0; m <= n; m++) {
            st_hashes more = {0};

            if (m > 0 && m < n)
                assert_ok(st_proof_make(leaves, n, m, m, &more, &err));
            assert_ok(st_proof_goes_on(m, &roots[m], n, &roots[n], more.v, more.n, &err));
            for (size_t i = 0; i < more.n; i++) { /* each hash counts */
                more.v[i].b[7] ^= 1;
                assert_int_equal(st_proof_goes_on(m, &roots[m], n, &roots[n], more.v, more.n, &err),
                                 -ST_ECORRUPT);
                more.v[i].b[7] ^= 1;
            }
            if (m > 0) {
                other = roots[m];
                other.b[0] ^= 0x80;
                assert_int_equal(st_proof_goes_on(m, &other, n, &roots[n], more.v, more.n, &err),
                                 -ST_ECORRUPT);
                other = roots[n];
                other.b[31] ^= 1;
                assert_int_equal(st_proof_goes_on(m, &roots[m], n, &other, more.v, more.n, &err),
                                 -ST_ECORRUPT);
            }
            if (more.n > 0)
                assert_int_equal(
                    st_proof_goes_on(m, &roots[m], n, &roots[n], more.v, more.n - 1, &err),
                    -ST_ECORRUPT);
            st_vec_free(&more);
        }
    assert_int_equal(st_proof_goes_on(5, &roots[5], 4, &roots[4], NULL, 0, &err), -ST_ECORRUPT);
    assert_int_equal(st_proof_goes_on(-1, &roots[1], 4, &roots[4], NULL, 0, &err), -ST_ECORRUPT);
}

static void heads_of_the_log(void **state)
{
    st_log_head h = {.cluster = "a \"cluster\"", .at_ms = 1790812800000, .size = 41}, again;
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    unsigned char public[32], key[64];
    st_err err = {0};

    (void)state;
    crypto_sign_keypair(public, key);
    st_log_head_sign(&h, key);
    st_log_head_write(&h, &text);
    assert_ok(st_log_head_read(text.s, text.n, &again, &err));
    assert_true(st_log_head_valid(&again));
    assert_memory_equal(again.key, public, sizeof public);
    again.size++;
    assert_false(st_log_head_valid(&again));
    for (size_t i = 0; i < text.n; i++) { /* no byte of it can be another */
        text.s[i] ^= 1;
        assert_false(st_log_head_read(text.s, text.n, &again, &err) == 0 &&
                     st_log_head_valid(&again));
        text.s[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots_and_chains), cmocka_unit_test(proofs),
        cmocka_unit_test(only_the_truth),   cmocka_unit_test(same_roots),
        cmocka_unit_test(heads_are_in),     cmocka_unit_test(signed_and_read_back),
        cmocka_unit_test(strict_reading),   cmocka_unit_test(goes_on),
        cmocka_unit_test(heads_of_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
