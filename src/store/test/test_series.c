/*
 * Figures over time in the store: a blob for each part of each bucket, replaced, read in order, removed by age.
 */
#include <string.h>

#include "base/strbuf.h"
#include "store/sql.h"
#include "store/test/scratch.h"

static int join(void *ctx, const st_series_blob *b, st_err *err)
{
    (void)err;
    st_strbuf_addf(ctx, "%lld:%.*s ", (long long)b->at_ms, (int)b->data.n, (const char *)b->data.p);
    return 0;
}

static void put(st_store *store, int64_t width, int64_t kind, int64_t part, int64_t at,
                const char *text)
{
    const st_series_blob blob = {width, kind, part, at, {text, strlen(text)}};
    st_err err;

    assert_ok(st_store_series_put(store, &blob, &err));
}

static void is(st_store *store, int64_t width, int64_t part, const char *want)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_err err;

    assert_ok(st_store_series_read(store,
                                   &(st_series_blob){.width_ms = width, .kind = 1, .part = part}, 0,
                                   1000, join, &text, &err));
    assert_string_equal(st_strbuf_str(&text), want);
}

static void buckets_are_kept_by_part(void **state)
{
    scratch place;
    st_store *store, *reader;
    const st_series_blob zero = {.width_ms = 60, .kind = 1}, none = {.width_ms = 60, .kind = 2};
    int64_t n, first, last;
    st_err err;

    (void)state;
    scratch_init(&place);
    assert_ok(st_store_open(place.path, LOOSE, &store, &err));
    put(store, 60, 1, 0, 120, "b");
    put(store, 60, 1, 0, 60, "a");
    put(store, 60, 1, 3, 60, "other");
    put(store, 600, 1, 0, 0, "wide");
    put(store, 60, 1, 0, 120, "B"); /* again: the newer one counts */
    is(store, 60, 0, "60:a 120:B ");
    is(store, 60, 3, "60:other ");
    is(store, 600, 0, "0:wide ");
    is(store, 60, 7, "");
    assert_ok(st_store_series_parts(store, 60, 1, &n, &err));
    assert_int_equal(n, 4);
    assert_ok(st_store_series_parts(store, 60, 2, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(st_store_series_span(store, &zero, &first, &last, &err));
    assert_int_equal(first, 60);
    assert_int_equal(last, 120);
    assert_ok(st_store_series_span(store, &none, &first, &last, &err));
    assert_int_equal(first, -1);
    assert_ok(st_store_series_next_width(store, 0, &n, &err));
    assert_int_equal(n, 60);
    assert_ok(st_store_series_next_width(store, 60, &n, &err));
    assert_int_equal(n, 600);
    assert_ok(st_store_series_next_width(store, 600, &n, &err));
    assert_int_equal(n, 0);
    /* What is removed is of one part, from before a moment. */
    assert_ok(st_store_series_prune(store, &zero, 120, &err));
    is(store, 60, 0, "120:B ");
    is(store, 60, 3, "60:other ");
    /* A reader sees what is committed. */
    assert_ok(st_store_open_reader(store, &reader, &err));
    is(reader, 60, 0, "120:B ");
    assert_true(st_store_series_put(reader, &zero, &err) < 0);
    st_store_close(reader);
    st_store_close(store);
    scratch_done(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(buckets_are_kept_by_part)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
