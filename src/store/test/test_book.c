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
    assert_ok(st_store_open(w->place.path, LOOSE, &w->store, &err));
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

/* ---- a book that is longer than a page ------------------------------------------------------- */

#define LONG 2600

static void fill_long(st_store *store)
{
    st_err err;

    assert_ok(st_store_begin(store, &err));
    for (int64_t n = 1; n <= LONG; n++) {
        st_book_row row = entry(n, n % 2 ? "a" : "b", (n + 1) / 2, "");
        assert_ok(st_store_book_append(store, &row, &err));
    }
    assert_ok(st_store_commit(store, &err));
}

typedef struct counted {
    int64_t n, sum, stop_at;
} counted;

static int count_row(void *ctx, const st_book_row *row, st_err *err)
{
    counted *c = ctx;

    (void)err;
    c->n++;
    c->sum += row->n;
    return c->n == c->stop_at ? 1 : 0;
}

static void pages_are_as_one(void **state)
{
    world *w = *state;
    counted c = {0};
    st_err err;

    fill_long(w->store);
    assert_ok(st_store_book_read(w->store, 1, INT64_MAX, count_row, &c, &err));
    assert_int_equal(c.n, LONG);
    assert_int_equal(c.sum, (int64_t)LONG * (LONG + 1) / 2);
    c = (counted){0};
    assert_ok(st_store_book_of(w->store, "a", 1, INT64_MAX, count_row, &c, &err));
    assert_int_equal(c.n, LONG / 2);
    c = (counted){0};
    assert_ok(st_store_book_read(w->store, 1, 2000, count_row, &c, &err)); /* two pages exactly */
    assert_int_equal(c.n, 2000);
    c = (counted){.stop_at = 1000}; /* with the last row of a page */
    assert_ok(st_store_book_read(w->store, 1, INT64_MAX, count_row, &c, &err));
    assert_int_equal(c.n, 1000);
    /* A gap where a page ends. */
    st_book_row late = entry(LONG + 402, "a", LONG / 2 + 202, "");
    assert_ok(st_store_book_append(w->store, &late, &err));
    assert_fails(st_store_book_read(w->store, 1, INT64_MAX, count_row, &c, &err), ST_ECORRUPT,
                 "entry 3002 where 2601");
    assert_fails(st_store_book_read(w->store, 1601, INT64_MAX, count_row, &c, &err), ST_ECORRUPT,
                 "entry 3002 where 2601");
}

typedef struct beside {
    st_store *store;
    int64_t n, largest;
} beside;

/* While somebody reads, others write. */
static int write_beside(void *ctx, const st_book_row *row, st_err *err)
{
    beside *b = ctx;
    char key[32], value[9000];

    (void)row;
    memset(value, 'a' + (int)(b->n % 26), sizeof value - 1); /* the same again is not written */
    value[sizeof value - 1] = '\0';
    snprintf(key, sizeof key, "k%lld", (long long)(b->n++ % 64));
    if (st_store_meta_put(b->store, key, value, err) < 0)
        return -err->code;
    b->largest = ST_MAX(b->largest, st_store_bytes(b->store));
    return 0;
}

/* How large the store becomes meanwhile. */
static int64_t read_beside(st_store *store, bool in_one)
{
    beside b = {.store = store};
    st_store *reader;
    st_err err;

    fill_long(store);
    assert_ok(st_store_open_reader(store, &reader, &err));
    if (in_one)
        assert_ok(st_store_begin(reader, &err));
    assert_ok(st_store_book_read(reader, 1, INT64_MAX, write_beside, &b, &err));
    if (in_one)
        assert_ok(st_store_commit(reader, &err));
    st_store_close(reader);
    return b.largest;
}

/* One long read transaction keeps everything that is written meanwhile in the log; pages do not. */
static void a_reader_does_not_hold_the_log(void **state)
{
    world *w = *state;
    int64_t paged = read_beside(w->store, false), whole;
    st_store *second;
    st_err err;

    assert_ok(st_store_open(w->place.second, LOOSE, &second, &err));
    whole = read_beside(second, true);
    st_store_close(second);
    assert_true(3 * paged < 2 * whole);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(entries_come_in_order), TEST(nothing_is_there_twice),
        TEST(gaps_are_found),        TEST(checkpoints),
        TEST(pages_are_as_one),      TEST(a_reader_does_not_hold_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
