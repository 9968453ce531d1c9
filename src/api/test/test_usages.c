/*
 * Sums that are kept: they are what adding everything up gives, at any moment, by any thing, whatever was asked before and
 * whatever had to be forgotten.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/usages.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/testing.h"

#define ENTRIES 3000

typedef struct world {
    char folder[64], path[96];
    st_store *store;
    int64_t n;
} world;

static void append(world *w, st_rng *rng)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    char job[16], user[16];
    st_err err;
    st_entry e = {.seq = ++w->n,
                  .at_ms = w->n,
                  .kind = ST_ENTRY_USAGE,
                  .account = "a",
                  .job = job,
                  .user = user,
                  .stay = 1,
                  .piece = 1 + (int)st_rng_below(rng, 2),
                  .tasks = 1,
                  .seen = st_rng_below(rng, 2) ? ST_UNKNOWN : 5,
                  .busy = 3,
                  .energy_mj = ST_UNKNOWN,
                  .share = (int64_t)st_rng_below(rng, 1000),
                  .nlines = 1,
                  .lines = {{.what = ST_PAY_BURST, .amount = (int64_t)st_rng_below(rng, 99)}}};
    const st_book_row row = {.n = w->n,
                             .account = "a",
                             .seq = w->n,
                             .at_ms = w->n,
                             .period = w->n % 7 ? "2026-10" : "2026-09",
                             .job = job,
                             .chain = {"x", 1}};
    st_book_row kept = row;

    snprintf(job, sizeof job, "j%d", (int)st_rng_below(rng, 400));
    snprintf(user, sizeof user, "u%d", (int)st_rng_below(rng, 5));
    if (e.seen == ST_UNKNOWN)
        e.busy = ST_UNKNOWN;
    st_entry_write(&e, &data);
    kept.data = st_strbuf_str(&data);
    assert_ok(st_store_book_append(w->store, &kept, &err));
}

static int setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    st_err err;

    snprintf(w->folder, sizeof w->folder, "/tmp/stint-usages-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/store.db", w->folder);
    assert_ok(st_store_open(w->path, &(st_store_options){.loose = true}, &w->store, &err));
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    char name[120];

    st_store_close(w->store);
    for (int i = 0; i < 4; i++) {
        static const char *const ends[] = {"", "-wal", "-shm", ".lock"};

        snprintf(name, sizeof name, "%s%s", w->path, ends[i]);
        unlink(name);
    }
    rmdir(w->folder);
    free(w);
    return 0;
}

/* "key:entries/share/amount/jobs" of all rows that are there, in order of key. */
static int by_key(const void *a, const void *b)
{
    return strcmp(((const st_sums_row *)a)->key, ((const st_sums_row *)b)->key);
}

static void tell(st_sums_by *u, st_strbuf *out)
{
    qsort(u->rows.v, u->rows.n, sizeof *u->rows.v, by_key);
    for (size_t i = 0; i < u->rows.n; i++) {
        const st_sums_row *r = &u->rows.v[i];

        if (r->entries != 0)
            st_strbuf_addf(out, "%s:%lld/%lld/%lld/%lld/%lld ", r->key, (long long)r->entries,
                           (long long)r->share, (long long)r->amount, (long long)r->jobs,
                           (long long)r->busy);
    }
}

static void ask_for(st_usages *k, world *w, const st_usages_ask *ask, st_strbuf *out)
{
    st_sums_by all, ahead;
    st_usages_book *book;
    st_err err;

    st_sums_init(&all);
    st_sums_init(&ahead);
    assert_ok(st_usages_lend(k, w->store, ask, &ahead, &book, &err));
    for (size_t i = 0; i < st_usages_sums(book)->rows.n; i++) {
        const st_sums_row *row = &st_usages_sums(book)->rows.v[i];
        st_sums_row_add(st_sums_row_of(&all, row->key), row);
    }
    st_usages_unlock(book);
    for (size_t i = 0; i < ahead.rows.n; i++)
        st_sums_row_add(st_sums_row_of(&all, ahead.rows.v[i].key), &ahead.rows.v[i]);
    st_usages_back(k, book);
    tell(&all, out);
    st_sums_done(&all);
    st_sums_done(&ahead);
}

/* Questions about random moments, backwards and forwards, against one that remembers nothing. */
static void ask_at_random(void **state, size_t rows_max)
{
    static const char *const things[] = {"user", "job", "gpu", "account"};
    world *w = *state;
    st_rng rng;
    st_usages *k = st_usages_new(rows_max);

    st_rng_seed(&rng, 7);
    for (int i = 0; i < 20; i++)
        append(w, &rng);
    for (int i = 0; i < 150; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf got = {0}, want = {0};
        st_usages *none = st_usages_new(0);
        st_usages_ask ask = {.by = things[st_rng_below(&rng, 4)],
                             .period = st_rng_below(&rng, 3) ? "2026-10" : "2026-09",
                             .book = "a",
                             .from = 1};

        for (uint64_t more = st_rng_below(&rng, 40); w->n < ENTRIES && more > 0; more--)
            append(w, &rng);
        ask.to = w->n - (int64_t)st_rng_below(&rng, 20);
        ask_for(k, w, &ask, &got);
        ask_for(none, w, &ask, &want);
        assert_string_equal(st_strbuf_str(&got), st_strbuf_str(&want));
        assert_true(want.n > 0);
        st_usages_free(none);
    }
    st_usages_free(k);
}

static void kept_is_added_up(void **state)
{
    ask_at_random(state, 1u << 20);
}

static void forgotten_is_added_up_again(void **state)
{
    ask_at_random(state, 300); /* less than by job, more than by user */
}

/* What is kept is not read again: the store may be gone. */
static void nothing_is_read_twice(void **state)
{
    world *w = *state;
    st_rng rng;
    ST_CLEANUP(st_strbuf_done) st_strbuf first = {0}, again = {0};
    st_usages *k = st_usages_new(1u << 20), *small = st_usages_new(10);
    st_usages_ask ask = {.by = "job", .period = "2026-10", .book = "a", .from = 1, .to = 500};
    st_sums_by ahead;
    st_usages_book *book;
    st_err err;

    st_rng_seed(&rng, 8);
    for (int i = 0; i < 500; i++)
        append(w, &rng);
    ask_for(k, w, &ask, &first);
    ask_for(small, w, &ask, &again);
    assert_string_equal(st_strbuf_str(&first), st_strbuf_str(&again));
    st_strbuf_clear(&again);
    st_sums_init(&ahead);
    assert_ok(st_usages_lend(k, NULL, &ask, &ahead, &book, &err));
    assert_int_equal(ahead.rows.n, 0);
    st_usages_unlock(book);
    st_usages_back(k, book);
    st_sums_done(&ahead);
    st_usages_free(k);
    st_usages_free(small);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(kept_is_added_up),
        TEST(forgotten_is_added_up_again),
        TEST(nothing_is_read_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
