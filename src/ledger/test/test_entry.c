/* Entries as bytes: one way to write each, and nothing else is read. */
#include "base/rng.h"
#include "base/testing.h"
#include "ledger/test/books.h"

static char *text_of(const st_entry *e)
{
    st_strbuf out = {0};
    st_entry_write(e, &out);
    return st_strbuf_take(&out);
}

static int read_text(const char *text, st_arena *arena, st_entry *ret, st_err *err)
{
    return st_entry_read(text, strlen(text), arena, ret, err);
}

/* Every kind, with everything it can have. */
static st_entry full(st_entry_kind kind)
{
    static const st_entry_grant grants[] = {{"n \"7\"", 0xff, -1, 3}, {"ünit", 1, 4, 1}};
    st_entry e = books_usage("ml", "4711", "h100", 4000, ST_BASIS_BURST, OCT_1, OCT_1 + HOUR);
    e.kind = kind;
    e.seq = 12;
    e.child = "team";
    e.chargeback = 1;
    e.discount_bp = 250;
    e.period = "2026-10";
    e.zone = "Europe/Berlin";
    e.workload = "train";
    e.level = ST_LEVEL_MIG;
    e.profile = "3g.40gb";
    e.topo = ST_TOPO_NVLINK;
    e.tasks = 4;
    e.cut = ST_CUT_FAULT;
    e.cpu = 1;
    e.ram = INT64_MAX;
    e.seen = 0;
    e.busy = 0;
    e.energy_mj = 7;
    e.pieces = 3;
    e.grants = grants;
    e.ngrants = 2;
    e.total = 10;
    e.granted = 4;
    e.idle = 3;
    e.unhealthy = 2;
    e.overhead = 1;
    e.amount = 5;
    e.fixes = 3;
    e.reason = "line\nbreak \\ \"quoted\" \x7f \xe2\x82\xac";
    e.by = "root";
    e.booking = "b7";
    e.agreed_ms = OCT_1;
    e.keep_bp = 9000;
    e.short_m = e.missing = e.removed = e.fee_bp = 1;
    e.lines[0] = (st_line){ST_PAY_BURST, -5, 6, 7, 8, -9, 10};
    e.lines[1] = (st_line){ST_PAY_CAP, INT64_MIN, INT64_MAX, 0, 0, 0, 0};
    e.nlines = 2;
    e.contra = true;
    e.doc = kind == ST_ENTRY_PRICES
                ? "{\"name\":\"b\",\"from_ms\":1,\"rates\":[[\"*\",[1,2,3,4,5],[1,2,3,4]]],"
                  "\"cpu\":0,\"ram\":0,\"energy\":0,\"topo_bp\":[0,0,0,0,0,0],\"idle_bp\":0,"
                  "\"lost_bp\":0,\"fault_bp\":0,\"units\":[[\"render\",\"frames\",9]]}"
                : "{\"account\":\"ml\",\"from_ms\":1,\"chargeback\":true,\"discount_bp\":5,"
                  "\"burst_m\":-1,\"cap\":-1,\"warn_bp\":[1,2],\"budget\":7}";
    return e;
}

static void every_kind_is_read_as_written(void **state)
{
    (void)state;
    for (int k = 0; k < ST_ENTRY_COUNT; k++) {
        ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
        st_entry e = full((st_entry_kind)k), again;
        st_err err = {0};
        char *text = text_of(&e), *twice;
        assert_ok(read_text(text, arena, &again, &err));
        twice = text_of(&again);
        assert_string_equal(text, twice);
        assert_int_equal(again.kind, k);
        free(text);
        free(twice);
    }
}

static void bytes_are_these(void **state)
{
    (void)state;
    st_entry e = books_reserve("ml", "h100", 500, 1000, 3000);
    e.seq = 7;
    e.lines[e.nlines++] = (st_line){ST_PAY_RESERVED, 1000000, 2000000, 10000, 0, 555, 5};
    char *text = text_of(&e);
    assert_string_equal(
        text, "{\"seq\":7,\"at\":3000,\"kind\":\"reserve\",\"account\":\"ml\",\"from\":1000,"
              "\"to\":3000,\"gpu\":\"h100\",\"gpu_m\":500,\"share\":1000000,"
              "\"lines\":[[\"reserved\",1000000,2000000,10000,0,555,5]]}");
    free(text);
}

/* The other side of every posting is in the entry, and can be no other; books of before have none. */
static void the_other_side_is_written(void **state)
{
    static const char before[] =
        "{\"seq\":7,\"at\":3000,\"kind\":\"credit\",\"account\":\"ml\",\"amount\":5,"
        "\"reason\":\"r\",\"by\":\"o\",\"lines\":[[\"adjust\",-5,1,10000,0,-5,0]]";
    static const char *const bad[] = {
        ",\"contra\":[\"#burst\"]}", ",\"contra\":[\"adjust\"]}",
        ",\"contra\":[]}",           ",\"contra\":[\"#adjust\",\"#adjust\"]}",
        ",\"contra\":[\"#adjust\"",  ",\"contra\":[\"#adju",
    };
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad) + 2; i++) {
        ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
        char text[300];
        st_entry e;
        st_err err = {0};
        snprintf(text, sizeof text, "%s%s", before,
                 i == 0   ? "}"
                 : i == 1 ? ",\"contra\":[\"#adjust\"]}"
                          : bad[i - 2]);
        if (i > 1) {
            assert_int_equal(read_text(text, arena, &e, &err), -ST_EPARSE);
            continue;
        }
        assert_ok(read_text(text, arena, &e, &err));
        assert_int_equal(e.contra, i == 1);
    }
}

static void unknown_is_absent_and_comes_back(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_entry e = books_usage("ml", "1", NULL, 0, ST_BASIS_BURST, 0, 5), again;
    st_err err = {0};
    (void)state;
    e.seq = 1;
    char *text = text_of(&e);
    assert_null(strstr(text, "seen"));
    assert_null(strstr(text, "gpu\""));
    assert_ok(read_text(text, arena, &again, &err));
    assert_int_equal(again.seen, ST_UNKNOWN);
    assert_int_equal(again.energy_mj, ST_UNKNOWN);
    assert_int_equal(again.lost, 0);
    assert_null(again.gpu);
    free(text);
    /* In a correction -1 is a number like any other. */
    e.kind = ST_ENTRY_FIX;
    e.fixes = 1;
    text = text_of(&e);
    assert_non_null(strstr(text, "\"seen\":-1,"));
    assert_ok(read_text(text, arena, &again, &err));
    assert_int_equal(again.seen, -1);
    free(text);
}

static void other_ways_to_write_it_are_refused(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    static const char *const bad[] = {
        "",
        "{}",
        "{\"seq\":1}",
        /* blanks, order, a number in another way, another escape */
        "{\"seq\": 1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\"}",
        "{\"at\":5,\"seq\":1,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\"}",
        "{\"seq\":01,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\"}",
        "{\"seq\":-0,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\"}",
        "{\"seq\":1.0,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\"}",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"\\u0031\"}",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"\\/\"}",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"\\u001F\"}",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"\x01\"}",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"\xff\"}",
        /* too much, too little, another kind's */
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\"} ",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\"",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\"}",
        "{\"seq\":1,\"at\":5,\"kind\":\"release\",\"account\":\"ml\",\"job\":\"1\",\"amount\":5}",
        "{\"seq\":1,\"at\":5,\"kind\":\"releases\",\"account\":\"ml\",\"job\":\"1\"}",
        "{\"seq\":9223372036854775808,\"at\":5,\"kind\":\"release\",\"account\":\"ml\","
        "\"job\":\"1\"}",
        /* what is left out when it says nothing */
        "{\"seq\":2,\"at\":5,\"kind\":\"credit\",\"account\":\"ml\",\"fixes\":0,\"amount\":5,"
        "\"reason\":\"r\",\"by\":\"b\",\"lines\":[]}",
        /* a document that is not canonical */
        "{\"seq\":1,\"at\":5,\"kind\":\"plan\",\"account\":\"ml\",\"doc\":{\"account\":\"ml\"}}",
        "{\"seq\":1,\"at\":5,\"kind\":\"plan\",\"account\":\"ml\",\"doc\":5}",
    };
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        st_entry e;
        st_err err = {0};
        assert_fails(read_text(bad[i], arena, &e, &err), ST_EPARSE, "no entry of a book");
    }
}

/* Whatever single byte changes, it is no entry, or one that is written as it now stands. */
static void a_changed_byte_never_passes_for_the_same(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_rng rng;
    (void)state;
    st_rng_seed(&rng, 3);
    for (int k = 0; k < ST_ENTRY_COUNT; k++) {
        st_entry e = full((st_entry_kind)k);
        char *text = text_of(&e);
        size_t n = strlen(text);
        for (int i = 0; i < 400; i++) {
            size_t at = st_rng_below(&rng, n);
            char was = text[at];
            text[at] = (char)st_rng_below(&rng, 256);
            st_entry again;
            if (st_entry_read(text, n, arena, &again, NULL) == 0) {
                char *twice = text_of(&again);
                assert_memory_equal(text, twice, n);
                free(twice);
            }
            text[at] = was;
        }
        st_arena_reset(arena);
        free(text);
    }
}

static void messages_say_where(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_entry e;
    st_err err = {0};
    (void)state;
    assert_fails(read_text("{\"seq\":1,\"at\":x", arena, &e, &err), ST_EPARSE,
                 "wrong at byte 14, at or behind \"at\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read_as_written),
        cmocka_unit_test(bytes_are_these),
        cmocka_unit_test(the_other_side_is_written),
        cmocka_unit_test(unknown_is_absent_and_comes_back),
        cmocka_unit_test(other_ways_to_write_it_are_refused),
        cmocka_unit_test(a_changed_byte_never_passes_for_the_same),
        cmocka_unit_test(messages_say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
