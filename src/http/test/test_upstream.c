/*
 * Answers of servers that nobody trusts: what is well framed is read the same however it comes in pieces, and what two
 * readers could take for two things is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/testing.h"
#include "http/upstream.h"

typedef struct result {
    int code, status;
    st_strbuf body;
    size_t rest; /* bytes behind it */
} result;

/* In pieces of so many bytes. */
static result play(const char *text, size_t n, size_t piece, bool head_only)
{
    st_upstream u = {.head_only = head_only};
    result ret = {0};
    size_t at = 0, used = 0;
    st_err err = {0};
    int r = 0;

    while (r == 0 && at < n && u.state != ST_UPSTREAM_DONE) {
        r = st_upstream_feed(&u, text + at, ST_MIN(piece, n - at), &used, &ret.body, &err);
        at += used;
    }
    if (r == 0)
        r = st_upstream_end(&u, &err);
    ret.code = r;
    ret.status = u.status;
    ret.rest = n - at;
    st_upstream_done(&u);
    return ret;
}

static void reads(const char *text, int status, const char *body, size_t rest)
{
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        result r = play(text, strlen(text), piece, false);

        assert_int_equal(r.code, 0);
        assert_int_equal(r.status, status);
        assert_string_equal(st_strbuf_str(&r.body), body);
        assert_int_equal(r.rest, rest);
        st_strbuf_done(&r.body);
    }
}

static void refuses_n(const char *text, size_t n)
{
    for (size_t piece = 1; piece <= n; piece += piece < 40 ? 1 : 997) {
        result r = play(text, n, piece, false);

        if (r.code != -ST_EPARSE)
            fail_msg("taken: %.80s", text);
        st_strbuf_done(&r.body);
    }
}

static void refuses(const char *text)
{
    refuses_n(text, strlen(text));
}

static void test_reads(void **state)
{
    (void)state;
    reads("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", 0);
    reads("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", 200, "hi", 0);
    reads("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, "", 0);
    reads("HTTP/1.0 404 No\r\n\r\nuntil the end", 404, "until the end", 0);
    reads("HTTP/1.1 204 No\r\n\r\n", 204, "", 0);
    reads("HTTP/1.1 304 No\r\nContent-Length: 10\r\n\r\n", 304, "", 0);
    reads("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n "
          "world\r\n0\r\n\r\n",
          200, "hello world", 0);
    reads(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
        200, "x", 0);
    reads("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 "
          "Made\r\nContent-Length: "
          "1\r\n\r\n!",
          201, "!", 0);
    /* What stands behind an answer is no second one. */
    reads("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n\r\n", 200, "hi", 19);
}

static void test_heads(void **state)
{
    const char *text = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\nX-One:  two words \t\r\n\r\n";
    st_upstream u = {.head_only = true};
    st_strbuf body = {0};
    size_t used;
    st_err err;

    (void)state;
    assert_int_equal(st_upstream_feed(&u, text, strlen(text), &used, &body, &err), 0);
    assert_int_equal(u.state, ST_UPSTREAM_DONE);
    assert_string_equal(st_upstream_header_of(&u, "x-one"), "two words");
    assert_int_equal(u.length, 500);
    assert_null(st_upstream_header_of(&u, "x-two"));
    st_upstream_done(&u);
    st_strbuf_done(&body);
}

static void test_switches_only_if_asked(void **state)
{
    const char *text = "HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\n\r\nbytes";
    st_upstream u = {.may_switch = true};
    st_strbuf body = {0};
    size_t used;
    st_err err;

    (void)state;
    refuses(text);
    assert_int_equal(st_upstream_feed(&u, text, strlen(text), &used, &body, &err), 0);
    assert_int_equal(u.state, ST_UPSTREAM_OTHER);
    assert_string_equal(text + used, "bytes");
    st_upstream_done(&u);
    st_strbuf_done(&body);
}

static void test_refuses(void **state)
{
    static const char nul[] = "HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 0\r\n\r\n";
    st_strbuf big = {0};

    (void)state;
    refuses("");
    refuses("SSH-2.0-x\r\n\r\n");
    refuses("HTTP/2 200 OK\r\n\r\n");
    refuses("HTTP/1.1 20 OK\r\n\r\n");
    refuses("HTTP/1.1 2000 OK\r\n\r\n");
    refuses("HTTP/1.1 999 OK\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello");
    refuses("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
            "chunked\r\n\r\n0\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n");
    refuses("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello");
    refuses("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello");
    refuses("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello");
    refuses("HTTP/1.1 200 OK\r\n folded: 5\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nno colon\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\n: x\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nA: b\rB: c\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort");
    refuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n");
    refuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n");
    refuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    refuses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    refuses_n(nul, sizeof nul - 1);
    st_strbuf_add(&big, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i <= ST_UPSTREAM_HEADERS_MAX; i++)
        st_strbuf_add(&big, "A: b\r\n");
    st_strbuf_add(&big, "\r\n");
    refuses_n(big.s, big.n);
    st_strbuf_clear(&big);
    st_strbuf_add(&big, "HTTP/1.1 200 OK\r\nA: ");
    for (int i = 0; i < ST_UPSTREAM_HEAD_MAX; i++)
        st_strbuf_addc(&big, 'x');
    refuses_n(big.s, big.n);
    st_strbuf_clear(&big);
    for (int i = 0; i < 20; i++)
        st_strbuf_add(&big, "HTTP/1.1 100 Go\r\n\r\n");
    refuses_n(big.s, big.n);
    st_strbuf_done(&big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_switches_only_if_asked),
        cmocka_unit_test(test_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
