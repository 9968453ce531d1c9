/*
 * The books: entries in order, by account and by job; none twice, gaps are found; checkpoints.
 */
#include <string.h>

#include "base/strbuf.h"
#include "store/sql.h"
#include "store/test/scratch.h"

typedef struct world {
    scratch place;
    st_store *store;
} world;

static int setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    st_err err;

    scratch_init(&w->place);
    assert_ok(st_store_open(w->place.path, NULL, &w->store, &err));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;

    st_store_close(w->store);
    scratch_done(&w->place);
    free(w);
    return 0;
}

static st_book_row entry(int64_t n, const char *account, int64_t seq, const char *job)
{
    return (st_book_row){.n = n,
                         .account = account,
                         .seq = seq,
                         .at_ms = n * 10,
                         .period = "2026-10",
                         .job = job,
                         .data = "{}",
                         .chain = {"0123", 4}};
}

static int join(void *ctx, const st_book_row *row, st_err *err)
{
    (void)err;
    st_strbuf_addf(ctx, "%lld:%s/%lld ", (long long)row->n, row->account, (long long)row->seq);
    return 0;
}

static void fill(world *w)
{
    const st_book_row rows[] = {entry(1, "a", 1, ""), entry(2, "b", 1, "jx"),
                                entry(3, "a", 2, "jx"), entry(4, "a", 3, "jy"),
                                entry(5, "", 1, "")};
    st_err err;

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_ok(st_store_book_append(w->store, &rows[i], &err));
}

static void entries_come_in_order(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    int64_t last = -1;
    st_err err;

    assert_ok(st_store_book_last(w->store, &last, &err));
    assert_int_equal(last, 0);
    fill(w);
    assert_ok(st_store_book_last(w->store, &last, &err));
    assert_int_equal(last, 5);
    assert_ok(st_store_book_read(w->store, 2, 4, join, &out, &err));
    assert_string_equal(st_strbuf_str(&out), "2:b/1 3:a/2 4:a/3 ");
    st_strbuf_clear(&out);
    assert_ok(st_store_book_of(w->store, "a", 2, INT64_MAX, join, &out, &err));
    assert_string_equal(st_strbuf_str(&out), "3:a/2 4:a/3 ");
    st_strbuf_clear(&out);
    assert_ok(st_store_book_of_job(w->store, "jx", join, &out, &err));
    assert_string_equal(st_strbuf_str(&out), "2:b/1 3:a/2 ");
    st_strbuf_clear(&out);
    assert_ok(st_store_book_of_job(w->store, "", join, &out, &err));
    assert_string_equal(st_strbuf_str(&out), "");
}

static void nothing_is_there_twice(void **state)
{
    world *w = *state;
    st_book_row same_n = entry(5, "c", 1, ""), same_seq = entry(6, "a", 3, "");
    st_err err;

    fill(w);
    assert_fails(st_store_book_append(w->store, &same_n, &err), ST_ESTATE, "there already");
    assert_fails(st_store_book_append(w->store, &same_seq, &err), ST_ESTATE,
                 "number 3 in the book of account \"a\"");
}

static void say_nothing(void *ctx, const char *sentence)
{
    st_strbuf_addf(ctx, "%s\n", sentence);
}

static void gaps_are_found(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_book_row late = entry(7, "a", 5, "");
    int64_t n = 0;
    st_err err;

    fill(w);
    assert_ok(st_store_check(w->store, NULL, 0, say_nothing, &out, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(st_store_book_append(w->store, &late, &err));
    assert_fails(st_store_book_read(w->store, 1, INT64_MAX, join, &out, &err), ST_ECORRUPT,
                 "entry 7 where 6");
    assert_fails(st_store_book_read(w->store, 6, INT64_MAX, join, &out, &err), ST_ECORRUPT,
                 "entry 7 where 6");
    assert_fails(st_store_book_of(w->store, "a", 1, INT64_MAX, join, &out, &err), ST_ECORRUPT,
                 "of account a has entry 5 where 4");
    st_strbuf_clear(&out);
    assert_ok(st_store_check(w->store, NULL, 0, say_nothing, &out, &n, &err));
    assert_int_equal(n, 1);
    assert_non_null(strstr(st_strbuf_str(&out), "entry 7 where 6"));
}

static int join_points(void *ctx, const st_checkpoint_row *row, st_err *err)
{
    (void)err;
    st_strbuf_addf(ctx, "%lld@%lld=%s ", (long long)row->n, (long long)row->at_ms, row->data);
    return 0;
}

static void checkpoints(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_checkpoint_row row = {.n = 3, .at_ms = 30, .data = "x"};
    st_err err;

    assert_fails(st_store_checkpoint_last(w->store, arena, &row, &err), ST_ENOENT, "signed");
    assert_ok(st_store_checkpoint_put(w->store, &row, &err));
    row = (st_checkpoint_row){.n = 5, .at_ms = 50, .data = "y"};
    assert_ok(st_store_checkpoint_put(w->store, &row, &err));
    row.data = "z";
    assert_ok(st_store_checkpoint_put(w->store, &row, &err));
    assert_ok(st_store_checkpoints(w->store, 1, join_points, &out, &err));
    assert_string_equal(st_strbuf_str(&out), "3@30=x 5@50=z ");
    assert_ok(st_store_checkpoint_last(w->store, arena, &row, &err));
    assert_string_equal(row.data, "z");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(entries_come_in_order),
        TEST(nothing_is_there_twice),
        TEST(gaps_are_found),
        TEST(checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
