/*
 * Buckets: sums are kept whatever the grouping, what is below a unit is carried on, and blobs read back as they were.
 */
#include "base/rng.h"
#include "base/testing.h"
#include "series/series.h"

static st_err err;

static int64_t some(st_rng *rng, int64_t below)
{
    return (int64_t)st_rng_below(rng, (uint64_t)below);
}

/* Rows with gaps between their ids, columns that some have and some have not. */
static void random_set(st_rng *rng, st_series_kind kind, size_t n, st_series_set *ret)
{
    uint64_t id = st_rng_below(rng, 40);

    for (size_t i = 0; i < n; i++, id += 1 + st_rng_below(rng, 3)) {
        st_series_row gathered = {.id = id}, row;

        for (int c = 0; c < ST_SERIES_COLUMNS; c++)
            if (some(rng, 3) > 0)
                st_series_put(&gathered, (st_series_column)c, some(rng, 60000000));
        st_series_carry(kind, &gathered, &row);
        st_vec_push(&ret->rows, row);
    }
}

static void same(const st_series_set *a, const st_series_set *b)
{
    assert_int_equal(a->rows.n, b->rows.n);
    for (size_t i = 0; i < a->rows.n; i++) {
        assert_int_equal(a->rows.v[i].id, b->rows.v[i].id);
        assert_int_equal(a->rows.v[i].has, b->rows.v[i].has);
        assert_memory_equal(a->rows.v[i].v, b->rows.v[i].v, sizeof a->rows.v[i].v);
    }
}

static void blobs_read_back(void **state)
{
    st_rng rng;

    (void)state;
    st_rng_seed(&rng, 1);
    for (int round = 0; round < 200; round++) {
        st_series_kind kind = (st_series_kind)(round % ST_SERIES_KINDS);
        ST_CLEANUP(st_series_set_done) st_series_set set = {0}, back = {0};
        ST_CLEANUP(st_strbuf_done) st_strbuf blob = {0};

        random_set(&rng, kind, (size_t)some(&rng, 70), &set);
        st_series_encode(kind, &set, &blob);
        assert_ok(st_series_decode(kind, blob.s, blob.n, &back, &err));
        same(&set, &back);
    }
}

static void other_bytes_are_refused_or_a_set(void **state)
{
    st_rng rng;
    int refused = 0;

    (void)state;
    st_rng_seed(&rng, 2);
    for (int round = 0; round < 2000; round++) {
        ST_CLEANUP(st_series_set_done) st_series_set set = {0}, back = {0};
        ST_CLEANUP(st_strbuf_done) st_strbuf blob = {0};
        int r;

        random_set(&rng, ST_SERIES_GPU, 1 + (size_t)some(&rng, 20), &set);
        st_series_encode(ST_SERIES_GPU, &set, &blob);
        if (round % 3 == 0)
            blob.n = (size_t)some(&rng, (int64_t)blob.n);
        else
            blob.s[some(&rng, (int64_t)blob.n)] ^= (char)(1 << some(&rng, 8));
        r = st_series_decode(ST_SERIES_GPU, blob.s, blob.n, &back, &err);
        assert_true(r == 0 || r == -ST_ECORRUPT);
        refused += r < 0;
        for (size_t i = 1; i < back.rows.n; i++)
            assert_true(back.rows.v[i].id > back.rows.v[i - 1].id);
    }
    assert_true(refused > 700); /* at least those that were cut short */
    assert_fails(
        st_series_decode(ST_SERIES_JOB, "P\xff\xff\xff\xff\x7f", 6, &(st_series_set){0}, &err),
        ST_ECORRUPT, "damaged");
    /* One row, and twice the same column. */
    assert_fails(
        st_series_decode(ST_SERIES_JOB, "P\1\1\1\0\2\1\0\2\0", 10, &(st_series_set){0}, &err),
        ST_ECORRUPT, "damaged");
    assert_fails(st_series_decode(ST_SERIES_JOB, "", 0, &(st_series_set){0}, &err), ST_ECORRUPT,
                 "damaged");
}

static void total(const st_series_set *set, int64_t ret[ST_SERIES_COLUMNS])
{
    for (size_t i = 0; i < set->rows.n; i++)
        for (int c = 0; c < ST_SERIES_SPENT; c++)
            ret[c] += set->rows.v[i].v[c];
}

/* Ten minutes at once, or one after the other, or in two groups: the same. */
static void sums_are_kept(void **state)
{
    st_rng rng;

    (void)state;
    st_rng_seed(&rng, 3);
    for (int round = 0; round < 50; round++) {
        ST_CLEANUP(st_series_set_done) st_series_set one = {0}, left = {0}, right = {0};
        int64_t before[ST_SERIES_COLUMNS] = {0}, after[ST_SERIES_COLUMNS] = {0};

        for (int minute = 0; minute < 10; minute++) {
            ST_CLEANUP(st_series_set_done) st_series_set set = {0};

            random_set(&rng, ST_SERIES_ACCOUNT, (size_t)some(&rng, 30), &set);
            total(&set, before);
            st_series_merge(&one, &set);
            st_series_merge(minute < 6 ? &left : &right, &set);
        }
        st_series_merge(&left, &right);
        same(&one, &left);
        total(&one, after);
        assert_memory_equal(before, after, sizeof before);
    }
}

static void what_is_below_a_unit_is_carried(void **state)
{
    st_rng rng;
    st_series_row gathered = {.id = 7}, all = {0};
    int64_t given = 0;

    (void)state;
    st_rng_seed(&rng, 4);
    for (int minute = 0; minute < 500; minute++) {
        int64_t busy = some(&rng, 60000);
        st_series_row row;

        st_series_put(&gathered, ST_SERIES_BUSY, busy);
        given += busy;
        st_series_carry(ST_SERIES_GPU, &gathered, &row);
        assert_int_equal(row.v[ST_SERIES_BUSY] % 100, 0);
        st_series_add(&all, &row);
        assert_int_equal(all.v[ST_SERIES_BUSY] + gathered.v[ST_SERIES_BUSY], given);
        assert_true(gathered.v[ST_SERIES_BUSY] < 100);
    }
    /* A bucket in which nobody measured says nothing, whatever was left. */
    st_series_row row;
    st_series_carry(ST_SERIES_GPU, &gathered, &row);
    assert_false(st_series_says(&row));
}

static void of_what_is_no_sum_the_newest_counts(void **state)
{
    st_series_row a = {.id = 1}, b = {.id = 1}, nothing = {.id = 1};

    (void)state;
    st_series_put(&a, ST_SERIES_SPENT, 500);
    st_series_put(&b, ST_SERIES_SPENT, -20);
    st_series_add(&a, &b);
    st_series_add(&a, &nothing);
    assert_int_equal(a.v[ST_SERIES_SPENT], -20);
}

static void rows_are_found(void **state)
{
    ST_CLEANUP(st_series_set_done) st_series_set set = {0};

    (void)state;
    for (uint64_t id = 3; id < 40; id += 3)
        st_vec_push(&set.rows, (st_series_row){.id = id});
    for (uint64_t id = 0; id < 45; id++) {
        const st_series_row *row = st_series_find(&set, id);

        assert_int_equal(row != NULL, id >= 3 && id < 40 && id % 3 == 0);
        assert_true(!row || row->id == id);
    }
    assert_int_equal(st_series_part(ST_SERIES_GPU, ST_SERIES_GPU_ID(64, 0)), 1);
    assert_int_equal(st_series_part(ST_SERIES_GPU, ST_SERIES_GPU_ID(63, 15)), 0);
    assert_int_equal(st_series_kind_parse("gpu"), ST_SERIES_GPU);
    assert_int_equal(st_series_kind_parse("cpu"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blobs_read_back),
        cmocka_unit_test(other_bytes_are_refused_or_a_set),
        cmocka_unit_test(sums_are_kept),
        cmocka_unit_test(what_is_below_a_unit_is_carried),
        cmocka_unit_test(of_what_is_no_sum_the_newest_counts),
        cmocka_unit_test(rows_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
