/*
 * Frames: whole ones, halves of them, and what is none.
 */
#include <string.h>

#include "base/strbuf.h"
#include "base/testing.h"
#include "tunnel/frame.h"

static void test_there_and_back(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    size_t used = 0;
    st_frame f;

    (void)state;
    st_frame_add(&out, ST_FRAME_IN, "hello", 5);
    st_frame_add(&out, ST_FRAME_IN_END, NULL, 0);
    for (size_t n = 0; n < ST_FRAME_HEAD + 5; n++)
        assert_int_equal(st_frame_read(out.s, n, false, &f, &used), 0);
    assert_int_equal(st_frame_read(out.s, out.n, false, &f, &used), 1);
    assert_int_equal(f.kind, ST_FRAME_IN);
    assert_int_equal(f.n, 5);
    assert_memory_equal(f.bytes, "hello", 5);
    assert_int_equal(used, ST_FRAME_HEAD + 5);
    assert_int_equal(st_frame_read(out.s + used, out.n - used, false, &f, &used), 1);
    assert_int_equal(f.kind, ST_FRAME_IN_END);
    assert_int_equal(f.n, 0);
}

/* What a hostile side may send: other kinds, the other direction, lengths that none has. */
static void test_refused(void **state)
{
    static const struct {
        const char *bytes;
        bool from_command;
    } rows[] = {
        {"\0\0\0\0\0", false},           {"\x05\0\0\0\1x", false},  {"\xff\0\0\0\1x", true},
        {"\x11\0\0\0\1x", false},        {"\x01\0\0\0\1x", true},   {"\x01\0\0\x80\1x", false},
        {"\x01\xff\xff\xff\xff", false}, {"\x01\0\0\0\0", false},   {"\x02\0\0\0\1x", false},
        {"\x03\0\0\0\3xxx", false},      {"\x04\0\0\0\2xx", false}, {"\x13\0\0\0\1x", true},
        {"\x14\0\0\2\1x", true},
    };
    size_t used;
    st_frame f;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (st_frame_read(rows[i].bytes, ST_FRAME_HEAD, rows[i].from_command, &f, &used) != -1)
            fail_msg("row %zu is taken", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
