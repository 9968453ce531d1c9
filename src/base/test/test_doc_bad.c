/*
 * Documents that are refused: each with one sentence, its line, and nothing
 * leaked (the sanitizer build checks that).
 */
#include "base/doc.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/testing.h"

typedef struct bad_case {
    const char *name;
    const char *text;
    int code;
    const char *message;
} bad_case;

static const bad_case cases[] = {
    {"a.yaml", "", ST_EPARSE, "a.yaml:1: the document is empty"},
    {"a.yaml", "# nothing\n", ST_EPARSE, "the document is empty"},
    {"a.yaml", "x: 1\ny: 2\nx: 3\n", ST_EPARSE,
     "a.yaml:3: key \"x\" is given twice; the first is on line 1"},
    {"a.yaml", "x: &anchor 1\n", ST_EPARSE, "a.yaml:1: anchors are not supported: \"anchor\""},
    {"a.yaml", "x: 1\ny: *x\n", ST_EPARSE, "a.yaml:2: aliases"},
    {"a.yaml", "x: !!str 1\n", ST_EPARSE, "a.yaml:1: tags are not supported"},
    {"a.yaml", "x: !t {a: 1}\n", ST_EPARSE, "tags are not supported: \"!t\""},
    {"a.yaml", "x: !t [1]\n", ST_EPARSE, "tags are not supported: \"!t\""},
    {"a.yaml", "%TAG !a! !b\n--- 1\n", ST_EPARSE, "a.yaml:1: tags are not supported"},
    {"a.yaml", "a: 1\n...\n%TAG !a! !b\n--- 1\n", ST_EPARSE, "a.yaml:3: tags are not supported"},
    {"a.yaml", "a: 1\n---\nb: 2\n", ST_EPARSE, "a.yaml:2: a second document begins here"},
    {"a.yaml", "? [a]\n: 1\n", ST_EPARSE, "a.yaml:1: a key must be text"},
    {"a.yaml", "x: [1, 2\n", ST_EPARSE, "a.yaml:2:"},
    {"a.yaml", "a: 1\n b: 2\n", ST_EPARSE, "a.yaml:2:"},
    {"a.yaml", "a:\n\t- 1\n", ST_EPARSE, "a.yaml:2:"},
    {"a.yaml", "a: 1\nb: \xFF\n", ST_EPARSE, "a.yaml:2:"},
    {"a.yaml", "a: 1\nb: \x01\n", ST_EPARSE, "a.yaml:2:"},
    {"a.yaml", "a: \"\\0\"\n", ST_EPARSE, "a.yaml:1: a value contains a NUL character"},
    {"a.yaml", "a: \"open\n", ST_EPARSE, "a.yaml:2:"},
    {"a.json", " \n ", ST_EPARSE, "a.json:1: the document is empty"},
    {"a.json", "{\"a\": 1,\n\"a\": 2}", ST_EPARSE, "a.json:2: key \"a\" is given twice"},
    {"a.json", "{\"a\": 1", ST_EPARSE, "a.json:1: the text ends too early: expected a comma or }"},
    {"a.json", "[1\n2]", ST_EPARSE, "a.json:2: expected a comma or ], found \"2\""},
    {"a.json", "[1,]", ST_EPARSE, "expected a value, found \"]\""},
    {"a.json", "{,}", ST_EPARSE, "expected a key in double quotes, found \",\""},
    {"a.json", "{\"a\":1,}", ST_EPARSE, "expected a key in double quotes"},
    {"a.json", "{a: 1}", ST_EPARSE, "expected a key in double quotes, found \"a\""},
    {"a.json", "{\"a\" 1}", ST_EPARSE, "expected a colon after the key"},
    {"a.json", "[1}", ST_EPARSE, "expected a comma or ]"},
    {"a.json", "[", ST_EPARSE, "the text ends too early"},
    {"a.json", "]", ST_EPARSE, "expected a value"},
    {"a.json", "1 2", ST_EPARSE, "expected nothing more after the document"},
    {"a.json", "01", ST_EPARSE, "expected a value"},
    {"a.json", "[-]", ST_EPARSE, "expected a value"},
    {"a.json", "[1.]", ST_EPARSE, "expected a value"},
    {"a.json", "[1e]", ST_EPARSE, "expected a value"},
    {"a.json", "[+1]", ST_EPARSE, "expected a value"},
    {"a.json", "[truth]", ST_EPARSE, "expected a value"},
    {"a.json", "[nullx]", ST_EPARSE, "expected a comma or ]"},
    {"a.json", "['a']", ST_EPARSE, "expected a value"},
    {"a.json", "[\xC3\xA9]", ST_EPARSE, "found a character outside ASCII"},
    {"a.json", "\"a\nb\"", ST_EPARSE, "expected a closing quote or an escape, found \"\\n\""},
    {"a.json", "\"abc", ST_EPARSE, "the text ends too early: expected a closing quote"},
    {"a.json", "\"\\", ST_EPARSE, "after a backslash"},
    {"a.json", "\"\\x\"", ST_EPARSE, "after a backslash"},
    {"a.json", "\"\\u12\"", ST_EPARSE, "four hexadecimal digits"},
    {"a.json", "\"\\u12G4\"", ST_EPARSE, "four hexadecimal digits"},
    {"a.json", "\"\\ud83d\"", ST_EPARSE, "\\uD83D is half of a surrogate pair"},
    {"a.json", "\"\\ud83d\\u0041\"", ST_EPARSE, "\\uD83D is half of a surrogate pair"},
    {"a.json", "\"\\ude00\"", ST_EPARSE, "\\uDE00 is half of a surrogate pair"},
    {"a.json", "\"\\u0000\"", ST_EPARSE, "a value contains a NUL character"},
    {"a.json", "\n\"\xC0\x80\"", ST_EPARSE, "a.json:2: the text is not valid UTF-8"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(cases); i++) {
        const bad_case *c = &cases[i];
        st_doc *doc = NULL;
        st_err err = {0};

        assert_fails(st_doc_parse(c->name, c->text, strlen(c->text), &doc, &err), c->code,
                     c->message);
        assert_null(doc);
        assert_null(strchr(err.msg, '\n'));
    }
}

/* Every prefix of a good document parses or fails with a line; none crashes. */
static void test_truncated(void **state)
{
    static const char yaml[] = "a: {b: [1, \"two\", 'three'], c: |\n  text\n}\nd:\n  - e: f\n";
    static const char json[] = "{\"a\": [1, -2.5e3, true, null, \"\\ud83d\\ude00\"], \"b\": {}}";

    (void)state;
    for (size_t n = 0; n < sizeof(yaml); n++) {
        ST_CLEANUP(st_freep) char *cut = st_xmalloc(n);
        st_doc *doc = NULL;
        st_err err = {0};

        memcpy(cut, yaml, n);
        if (st_doc_parse("cut.yaml", cut, n, &doc, &err) < 0)
            assert_memory_equal(err.msg, "cut.yaml:", 9);
        st_doc_free(doc);
    }
    for (size_t n = 0; n < sizeof(json) - 1; n++) {
        ST_CLEANUP(st_freep) char *cut = st_xmalloc(n);
        st_doc *doc = NULL;
        st_err err = {0};

        memcpy(cut, json, n);
        assert_int_equal(st_doc_parse("cut.json", cut, n, &doc, &err), -ST_EPARSE);
        assert_memory_equal(err.msg, "cut.json:", 9);
    }
}

static void test_deep(void **state)
{
    static const char *const names[] = {"deep.yaml", "deep.json"};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0}, block = {0};
    st_doc *doc = NULL;
    st_err err = {0};

    (void)state;
    for (int i = 0; i < 10000; i++)
        st_strbuf_add(&text, "[");
    for (size_t i = 0; i < ST_ARRAY_LEN(names); i++) {
        assert_fails(st_doc_parse(names[i], text.s, text.n, &doc, &err), ST_ELIMIT,
                     ":1: lists and maps are nested more than 64 deep");
        /* 64 deep is still good. */
        st_strbuf_clear(&block);
        for (int k = 0; k < 64; k++)
            st_strbuf_add(&block, "[");
        for (int k = 0; k < 64; k++)
            st_strbuf_add(&block, "]");
        assert_ok(st_doc_parse(names[i], block.s, block.n, &doc, &err));
        st_doc_freep(&doc);
    }
    st_strbuf_clear(&block);
    for (int i = 0; i < 500; i++)
        st_strbuf_addf(&block, "%*sk:\n", i, "");
    assert_fails(st_doc_parse("block.yaml", block.s, block.n, &doc, &err), ST_ELIMIT,
                 "block.yaml:65: lists and maps are nested");
}

static void test_large(void **state)
{
    static const char *const names[] = {"big.yaml", "big.json"};
    static const st_doc_limits small = {.bytes = 100, .nodes = 10, .scalar = 20, .depth = 3};
    const size_t n = 10u << 20;
    ST_CLEANUP(st_freep) char *line = st_xmalloc(n);
    st_doc *doc = NULL;
    st_err err = {0};

    (void)state;
    memset(line, 'x', n);
    line[0] = line[n - 1] = '"';
    for (size_t i = 0; i < ST_ARRAY_LEN(names); i++)
        assert_fails(st_doc_parse(names[i], line, n, &doc, &err), ST_ELIMIT,
                     ":1: a value of 10485758 bytes is too long");
    line[0] = line[n - 1] = 'x';
    assert_fails(st_doc_parse("big.yaml", line, n, &doc, &err), ST_ELIMIT, "is too long");
    assert_fails(st_doc_parse("big.json", line, n, &doc, &err), ST_EPARSE, "expected a value");

    assert_fails(st_doc_parse_limited("s", line, 101, &small, &doc, &err), ST_ELIMIT,
                 "s: 101 bytes are too many (at most 100)");
    assert_fails(st_doc_parse_limited("s", "[1,2,3,4,5,6,7,8,9,10]", 22, &small, &doc, &err),
                 ST_ELIMIT, "s:1: the document has more than 10 values");
    assert_fails(st_doc_parse_limited("s", "012345678901234567890: 1", 24, &small, &doc, &err),
                 ST_ELIMIT, "s:1: a value of 21 bytes is too long (at most 20)");
    assert_fails(st_doc_parse_limited("s", "[[[[]]]]", 8, &small, &doc, &err), ST_ELIMIT,
                 "more than 3 deep");
    assert_ok(st_doc_parse_limited("s", "[[[]]]", 6, &small, &doc, &err));
    st_doc_free(doc);
}

/* Past a handful of keys duplicates are found through an index; both ways must agree, and a map
 * with very many keys must not take quadratic time. */
static void test_many_keys(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_doc *doc = NULL;
    st_err err = {0};

    (void)state;
    for (int i = 1; i <= 200000; i++)
        st_strbuf_addf(&text, "k%d: %d\n", i, i);
    assert_ok(st_doc_parse("many.yaml", text.s, text.n, &doc, &err));
    assert_int_equal(st_doc_root(doc)->nchild, 200000);
    st_doc_freep(&doc);
    st_strbuf_add(&text, "k150000: 1\n");
    assert_fails(st_doc_parse("many.yaml", text.s, text.n, &doc, &err), ST_EPARSE,
                 "many.yaml:200001: key \"k150000\" is given twice; the first is on line 150000");
    for (int n = 1; n < 40; n++) {
        st_strbuf_clear(&text);
        for (int i = 1; i <= n; i++)
            st_strbuf_addf(&text, "k%d: {}\n", i);
        st_strbuf_add(&text, "k1: 1\n");
        assert_fails(st_doc_parse("many.yaml", text.s, text.n, &doc, &err), ST_EPARSE,
                     "is given twice; the first is on line 1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases), cmocka_unit_test(test_truncated), cmocka_unit_test(test_deep),
        cmocka_unit_test(test_large), cmocka_unit_test(test_many_keys),
    };

    return cmocka_run_group_tests_name("doc_bad", tests, NULL, NULL);
}
