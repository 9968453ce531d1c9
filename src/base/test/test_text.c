/*
 * Growing strings, quoting, UTF-8 and did-you-mean.
 */
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "base/testing.h"
#include "base/utf8.h"

static void test_strbuf(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};
    char *taken;

    (void)state;
    assert_string_equal(st_strbuf_str(&b), "");
    st_strbuf_add(&b, "ab");
    st_strbuf_addc(&b, 'c');
    st_strbuf_addn(&b, "defg", 2);
    st_strbuf_addf(&b, "-%d-%s", 12, "x");
    assert_string_equal(b.s, "abcde-12-x");
    assert_int_equal(b.n, 10);
    for (int i = 0; i < 1000; i++)
        st_strbuf_addf(&b, "%d,", i);
    assert_int_equal(b.n, strlen(b.s));
    st_strbuf_clear(&b);
    assert_string_equal(st_strbuf_str(&b), "");
    st_strbuf_add(&b, "kept");
    taken = st_strbuf_take(&b);
    assert_string_equal(taken, "kept");
    assert_null(b.s);
    free(taken);
    taken = st_strbuf_take(&b);
    assert_string_equal(taken, "");
    free(taken);
}

static void test_quote(void **state)
{
    char buf[ST_QUOTE_MAX], text[300];

    (void)state;
    assert_string_equal(st_quote(buf, ""), "\"\"");
    assert_string_equal(st_quote(buf, "a\"b\\\n\t\x01\x7f"), "\"a\\\"b\\\\\\n\\t\\x01\\x7F\"");
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    st_quote(buf, text);
    assert_int_equal(strlen(buf), ST_QUOTE_MAX - 1);
    assert_string_equal(buf + ST_QUOTE_MAX - 5, "...\"");

    /* Cut between characters at every alignment. */
    for (size_t shift = 0; shift < 4; shift++) {
        size_t len;

        memset(text, 'x', sizeof(text) - 1);
        for (size_t i = shift; i + 4 < sizeof(text); i += 4)
            memcpy(text + i, "\xF0\x9F\x98\x80", 4);
        st_quote(buf, text);
        len = strlen(buf);
        assert_int_equal(st_utf8_valid(buf, len), len);
        assert_string_equal(buf + len - 4, "...\"");
    }
}

static void test_utf8(void **state)
{
    static const struct {
        const char *text;
        size_t valid;
    } cases[] = {
        {"plain", 5},
        {"\xC3\xA9", 2},
        {"\xE2\x82\xAC", 3},
        {"\xF0\x9F\x98\x80", 4},
        {"\xF4\x8F\xBF\xBF", 4},
        {"a\xC3", 1},            /* cut short */
        {"a\x80", 1},            /* continuation without a start */
        {"\xC0\xAF", 0},         /* overlong */
        {"\xE0\x80\xAF", 0},     /* overlong */
        {"\xED\xA0\x80", 0},     /* surrogate */
        {"\xF4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"\xFF", 0},
    };
    static const uint32_t codes[] = {0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(cases); i++)
        assert_int_equal(st_utf8_valid(cases[i].text, strlen(cases[i].text)), cases[i].valid);
    for (size_t i = 0; i < ST_ARRAY_LEN(codes); i++) {
        char out[4];
        size_t n = st_utf8_put(out, codes[i]);

        assert_int_equal(n, i / 2 + 1);
        assert_int_equal(st_utf8_valid(out, n), n);
    }
}

static void test_suggest(void **state)
{
    static const char *const keys[] = {"weight", "guarantee", "max", "memory", "gpus", NULL};
    static const char *const none[] = {NULL};
    char endless[200];

    (void)state;
    assert_string_equal(st_suggest("wieght", keys), "weight");
    assert_string_equal(st_suggest("garantee", keys), "guarantee");
    assert_string_equal(st_suggest("GPU", keys), "gpus");
    assert_string_equal(st_suggest("mem", keys), "memory");
    assert_string_equal(st_suggest("mx", keys), "max");
    assert_null(st_suggest("colour", keys));
    assert_null(st_suggest("", keys));
    assert_null(st_suggest("x", keys));
    assert_null(st_suggest("weight", none));
    memset(endless, 'w', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    assert_null(st_suggest(endless, keys));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strbuf),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_suggest),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
