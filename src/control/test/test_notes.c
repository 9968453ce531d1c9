/*
 * What is kept as bytes: notes in the log and heads of books come back the same, damaged ones are refused or at least
 * harmless; and the file with the key.
 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/rng.h"
#include "billing/billing.h"
#include "control/control.h"
#include "store/test/scratch.h"

static void notes_come_back(void **state)
{
    const st_sums sums = {.seen_gpu_ms = INT64_MAX, .busy_gpu_ms = ST_UNKNOWN, .energy_mj = 0};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_notes notes = {0}, back = {0};
    st_sums again;
    st_err err = {0};
    (void)state;

    st_notes_write(&notes, &out);
    assert_int_equal(out.n, 0); /* a row without any is as it always was */
    st_strbuf_add(&out, "events");
    st_vec_push(&notes, st_note_used(UINT64_C(1) << 40, 3, 16000, &sums));
    st_vec_push(&notes, (st_note){.kind = ST_NOTE_ENDED, .v = {7, 1790812800000}});
    st_vec_push(&notes, (st_note){.kind = ST_NOTE_ENDED, .v = {8, INT64_MIN}});
    st_vec_push(&notes, (st_note){.kind = ST_NOTE_AGREE, .v = {0, ST_UNSET}});
    st_vec_push(&notes, (st_note){.kind = ST_NOTE_BEGIN});
    st_vec_push(&notes, (st_note){.kind = ST_NOTE_CUT});
    assert_true(st_notes_pass(&notes, true));
    assert_false(st_notes_pass(&notes, false));
    st_vec_push(&notes, (st_note){.kind = ST_NOTE_LATER});
    assert_false(st_notes_pass(&notes, true));
    st_vec_push(&notes, (st_note){.kind = ST_NOTE_PASS});
    assert_true(st_notes_pass(&notes, false));
    st_notes_write(&notes, &out);
    assert_false(st_notes_here(out.s, out.n, 0));
    assert_true(st_notes_here(out.s, out.n, 6));
    assert_ok(st_notes_read(out.s, out.n, 6, &back, &err));
    assert_int_equal(back.n, notes.n);
    for (size_t i = 0; i < notes.n; i++) {
        assert_int_equal(back.v[i].kind, notes.v[i].kind);
        assert_memory_equal(back.v[i].v, notes.v[i].v, sizeof notes.v[i].v);
    }
    st_note_sums(&back.v[0], &again);
    assert_memory_equal(&again, &sums, sizeof sums);
    assert_int_equal(st_notes_find(&back, ST_NOTE_ENDED, 8)->v[1], INT64_MIN);
    assert_null(st_notes_find(&back, ST_NOTE_ENDED, 9));
    /* Cut short anywhere, it is refused or ends between two notes. */
    for (size_t n = 7; n < out.n; n++) {
        st_vec_clear(&back);
        if (st_notes_read(out.s, n, 6, &back, &err) == 0)
            assert_true(back.n < notes.n);
        else
            assert_int_equal(err.code, ST_ECORRUPT);
    }
    st_vec_free(&notes);
    st_vec_free(&back);
}

static void random_bytes_are_no_notes(void **state)
{
    st_rng rng;
    (void)state;

    st_rng_seed(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        st_notes back = {0};
        char data[24];
        size_t n = 1 + st_rng_below(&rng, sizeof data - 1);
        st_err err = {0};

        for (size_t k = 0; k < n; k++)
            data[k] = (char)st_rng_u64(&rng);
        st_notes_read(data, n, 0, &back, &err);
        for (size_t k = 0; k < back.n; k++)
            assert_true(back.v[k].kind < ST_NOTE_COUNT);
        st_vec_free(&back);
    }
}

static void books_come_back(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf once = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf twice = {0};
    st_books books, back;
    st_hash chain;
    st_err err = {0};
    (void)state;

    assert_true(sodium_init() >= 0);
    st_books_init(&books);
    for (int i = 0; i < 100; i++) {
        char name[24];

        snprintf(name, sizeof name, "team%d", i * i % 7);
        st_books_add(&books, i % 5 ? name : "", 1000 + i, name, strlen(name), &chain);
    }
    st_books_save(&books, &once);
    assert_ok(st_books_load(once.s, once.n, &back, &err));
    assert_int_equal(back.n, 100);
    assert_int_equal(back.last_ms, 1099);
    st_books_save(&back, &twice);
    assert_int_equal(once.n, twice.n);
    assert_memory_equal(once.s, twice.s, once.n);
    st_books_done(&back);
    for (size_t n = 0; n < once.n; n++)
        assert_fails(st_books_load(once.s, n, &back, &err), ST_ECORRUPT, "damaged");
    st_books_done(&books);
}

static void a_damaged_key_is_refused(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    scratch place;
    st_keys keys, again;
    struct stat st;
    st_err err = {0};
    FILE *f;
    (void)state;

    scratch_init(&place);
    st_store_beside_of(place.path, "billing.key", &path);
    assert_fails(st_keys_read(st_strbuf_str(&path), &keys, &err), ST_ENOENT, "billing.key");
    assert_ok(st_keys_open(st_strbuf_str(&path), &keys, &err));
    assert_ok(st_keys_open(st_strbuf_str(&path), &again, &err));
    assert_memory_equal(&keys, &again, sizeof keys);
    assert_int_equal(stat(st_strbuf_str(&path), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    f = fopen(st_strbuf_str(&path), "r+");
    assert_non_null(f);
    fputc('x', f);
    fclose(f);
    assert_fails(st_keys_open(st_strbuf_str(&path), &again, &err), ST_ECORRUPT,
                 "is not a billing key");
    scratch_done(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_come_back),
        cmocka_unit_test(random_bytes_are_no_notes),
        cmocka_unit_test(books_come_back),
        cmocka_unit_test(a_damaged_key_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
