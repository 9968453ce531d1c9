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
    for (int i = 0; i < 1000; i++) { /* small pieces, in place */
        char *to = st_strbuf_room(&b, 3);

        memcpy(to, "xyz", 3);
        st_strbuf_grew(&b, (size_t)(i % 4));
        assert_true(b.n < b.cap);
        assert_int_equal(strlen(st_strbuf_str(&b)), b.n);
    }
    assert_int_equal(b.n, 1500);
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

static const char *csv(st_strbuf *b, const char *s)
{
    st_strbuf_clear(b);
    st_quote_csv(b, s);
    return st_strbuf_str(b);
}

static void test_csv(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};

    (void)state;
    assert_string_equal(csv(&b, "plain"), "plain");
    assert_string_equal(csv(&b, ""), "\"\"");
    assert_string_equal(csv(&b, "a,\"b\""), "\"a,\"\"b\"\"\"");
    assert_string_equal(csv(&b, "=1+1"), "\"'=1+1\"");
    assert_string_equal(csv(&b, "@SUM(A1)"), "\"'@SUM(A1)\"");
    assert_string_equal(csv(&b, "+cmd|' /C calc'!A0"), "\"'+cmd|' /C calc'!A0\"");
    assert_string_equal(csv(&b, "-2+3"), "\"'-2+3\"");
    assert_string_equal(csv(&b, "\tx"), "\"'\tx\"");
    assert_string_equal(csv(&b, "\rx"), "\"'\rx\"");
    assert_string_equal(csv(&b, "-12.50"), "-12.50");
    assert_string_equal(csv(&b, "+7"), "+7");
    assert_string_equal(csv(&b, "-"), "-");
    assert_string_equal(csv(&b, "--"), "\"'--\"");
}

static void test_deceivers(void **state)
{
    static const char *const bad[] = {
        "a\u202Eb", "a\u2066b", "a\u200Eb", "a\u061Cb", "a\u200Bb",  "\uFEFFa", "a\u2028b",
        "a\u00ADb", "a\nb",     "a\x7f",    "a\x1b[2J", "a\xC2\x85", "a\xff",
    };
    char text[64], q[ST_QUOTE_MAX];
    ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        if (st_text_honest(bad[i]))
            fail_msg("text %zu passes", i);
        strcpy(text, bad[i]);
        st_text_tame(text);
        assert_non_null(strchr(text, '?'));
        assert_true(st_text_honest(text));
    }
    assert_true(st_text_honest("Größe/ß-1_2.3 数据 \U0001F600"));
    strcpy(text, "a\u202Eb\u2066\xff c");
    st_text_tame(text);
    assert_string_equal(text, "a?b?? c");
    assert_string_equal(st_quote(q, "x\u202Egpj"), "\"x\\u{202E}gpj\"");
    st_quote_html(&b, "x\u202Ey<é");
    assert_string_equal(b.s, "x\uFFFDy&lt;é");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strbuf), cmocka_unit_test(test_quote),
        cmocka_unit_test(test_utf8),   cmocka_unit_test(test_suggest),
        cmocka_unit_test(test_csv),    cmocka_unit_test(test_deceivers),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
