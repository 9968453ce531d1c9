/*
 * Hash maps against a plain array that holds the truth, and the hash itself.
 */
#include "base/hash.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/testing.h"

#define KEYS 500

static void test_map(void **state)
{
    ST_CLEANUP(st_map_freep) st_map *m = st_map_new();
    bool there[KEYS] = {false};
    int64_t value[KEYS] = {0};
    size_t count = 0;
    st_rng rng;

    (void)state;
    st_rng_seed(&rng, 1);
    assert_false(st_map_get(m, "x", NULL));
    assert_false(st_map_del(m, "x"));
    for (int64_t step = 0; step < 50000; step++) {
        size_t k = (size_t)st_rng_below(&rng, KEYS);
        int64_t got = -1;
        char key[16];

        snprintf(key, sizeof(key), "key-%zu", k);
        if (st_rng_chance(&rng, 1, 2)) {
            st_map_put(m, key, step);
            count += !there[k];
            there[k] = true;
            value[k] = step;
        } else {
            assert_int_equal(st_map_del(m, key), there[k]);
            count -= there[k];
            there[k] = false;
        }
        assert_int_equal(st_map_count(m), count);
        k = (k + 1) % KEYS;
        snprintf(key, sizeof(key), "key-%zu", k);
        assert_int_equal(st_map_get(m, key, &got), there[k]);
        assert_int_equal(got, there[k] ? value[k] : -1);
    }
    st_map_free(NULL);
}

static void test_idmap(void **state)
{
    ST_CLEANUP(st_idmap_freep) st_idmap *m = st_idmap_new();
    int64_t got = 0;

    (void)state;
    assert_false(st_idmap_get(m, 0, &got));
    for (uint64_t i = 0; i < 10000; i++)
        st_idmap_put(m, i << 32, (int64_t)i);
    st_idmap_put(m, UINT64_MAX, INT64_MIN);
    assert_int_equal(st_idmap_count(m), 10001);
    for (uint64_t i = 0; i < 10000; i += 2)
        assert_true(st_idmap_del(m, i << 32));
    assert_false(st_idmap_del(m, 0));
    for (uint64_t i = 0; i < 10000; i++) {
        assert_int_equal(st_idmap_get(m, i << 32, &got), i % 2);
        if (i % 2)
            assert_int_equal(got, i);
    }
    assert_true(st_idmap_get(m, UINT64_MAX, &got));
    assert_true(got == INT64_MIN);
    st_idmap_put(m, UINT64_MAX, 5);
    assert_int_equal(st_idmap_count(m), 5001);
}

static void test_empty_and_prefix_keys(void **state)
{
    ST_CLEANUP(st_map_freep) st_map *m = st_map_new();
    int64_t got = 0;

    (void)state;
    st_map_put(m, "", 1);
    st_map_put(m, "a", 2);
    st_map_put(m, "aa", 3);
    assert_true(st_map_get(m, "", &got));
    assert_int_equal(got, 1);
    assert_true(st_map_get(m, "aa", &got));
    assert_int_equal(got, 3);
    assert_false(st_map_get(m, "aaa", &got));
}

/* Flipping any one input bit changes about half of the result's bits. */
static void test_hash_avalanche(void **state)
{
    unsigned char text[40];
    st_rng rng;
    long flipped = 0, trials = 0;

    (void)state;
    st_rng_seed(&rng, 2);
    for (int round = 0; round < 50; round++) {
        uint64_t h;

        for (size_t i = 0; i < sizeof(text); i++)
            text[i] = (unsigned char)st_rng_u64(&rng);
        h = st_hash_bytes(text, sizeof(text), 0);
        for (size_t bit = 0; bit < sizeof(text) * 8; bit++) {
            int changed;

            text[bit / 8] ^= (unsigned char)(1u << bit % 8);
            changed = __builtin_popcountll(h ^ st_hash_bytes(text, sizeof(text), 0));
            text[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_in_range(changed, 8, 56);
            flipped += changed;
            trials++;
        }
    }
    assert_in_range(flipped * 100 / trials, 3150, 3250);
}

static void test_hash_values(void **state)
{
    const char zeros[32] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(zeros); i++)
        for (size_t j = 0; j < i; j++)
            assert_true(st_hash_bytes(zeros, i, 0) != st_hash_bytes(zeros, j, 0));
    assert_true(st_hash_bytes("a", 1, 0) != st_hash_bytes("a", 1, 1));
    assert_true(st_hash_u64(1, 2) != st_hash_u64(2, 1));
    assert_true(st_hash_str(st_hash_str(0, "ab"), "c") != st_hash_str(st_hash_str(0, "a"), "bc"));
    assert_true(st_hash_str(7, "x") == st_hash_str(7, "x"));
    /* Written into digests: these values are part of the format. */
    assert_true(st_hash_bytes("stint", 5, 0) == UINT64_C(0xA9F9483E8D66FABF));
    assert_true(st_hash_u64(0, 0) == UINT64_C(0x01199719BDC2F07B));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_idmap),
        cmocka_unit_test(test_empty_and_prefix_keys),
        cmocka_unit_test(test_hash_avalanche),
        cmocka_unit_test(test_hash_values),
    };

    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
