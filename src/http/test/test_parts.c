/*
 * The parts of the server that need no socket: router, query, text, problems,
 * metrics, limits, JSON bodies.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/testing.h"
#include "http/gzip.h"
#include "http/http.h"
#include "http/limits.h"
#include "http/metrics.h"
#include "http/problem.h"
#include "http/query.h"
#include "http/router.h"
#include "http/server.h"
#include "http/text.h"

static void nothing(st_call *call, void *ctx)
{
    (void)call, (void)ctx;
}

#define ROUTE(m, p, name)                                         \
    {                                                             \
        .method = m, .pattern = p, .handler = nothing, .id = name \
    }

static const st_route routes[] = {
    ROUTE("GET", "/", "root"),
    ROUTE("GET", "/v1/jobs", "listJobs"),
    ROUTE("POST", "/v1/jobs", "submitJob"),
    ROUTE("GET", "/v1/jobs/{id}", "getJob"),
    ROUTE("POST", "/v1/jobs/{id}/cancel", "cancelJob"),
    ROUTE("GET", "/v1/jobs/mine", "myJobs"),
    ROUTE("GET", "/v1/{kind}/all/{name}", "all"),
    {0},
};

static st_match_result find(const st_router *router, const char *method, const char *path,
                            char copy[128], st_match *ret)
{
    snprintf(copy, 128, "%s", path);
    return st_router_find(router, method, copy, ret);
}

static void test_router(void **state)
{
    static const struct {
        const char *method, *path;
        st_match_result want;
        const char *id, *param;
    } rows[] = {
        {"GET", "/", ST_MATCH_FOUND, "root", NULL},
        {"GET", "/v1/jobs", ST_MATCH_FOUND, "listJobs", NULL},
        {"HEAD", "/v1/jobs", ST_MATCH_FOUND, "listJobs", NULL},
        {"POST", "/v1/jobs", ST_MATCH_FOUND, "submitJob", NULL},
        {"GET", "/v1/%6Aobs/a%2Fb", ST_MATCH_FOUND, "getJob", "a/b"},
        {"GET", "/v1/jobs/mine", ST_MATCH_FOUND, "myJobs", NULL},
        {"POST", "/v1/jobs/mine/cancel", ST_MATCH_FOUND, "cancelJob", "mine"},
        {"GET", "/v1/jobs/all/x", ST_MATCH_FOUND, "all", "jobs"},
        {"DELETE", "/v1/jobs", ST_MATCH_NO_METHOD, NULL, NULL},
        {"OPTIONS", "/v1/jobs", ST_MATCH_OPTIONS, NULL, NULL},
        {"GET", "/v1/jobs/", ST_MATCH_NO_PATH, NULL, NULL},
        {"GET", "//v1", ST_MATCH_NO_PATH, NULL, NULL},
        {"GET", "/v1", ST_MATCH_NO_PATH, NULL, NULL},
        {"GET", "/v1/jobs/%", ST_MATCH_BAD, NULL, NULL},
        {"GET", "/v1/jobs/%00", ST_MATCH_BAD, NULL, NULL},
        {"GET", "/v1/jobs/%ff", ST_MATCH_BAD, NULL, NULL},
        {"GET", "/v1/jobs/%0a", ST_MATCH_BAD, NULL, NULL},
        {"GET", "v1/jobs", ST_MATCH_BAD, NULL, NULL},
        {"GET", "", ST_MATCH_BAD, NULL, NULL},
        {"GET", "/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7", ST_MATCH_NO_PATH, NULL, NULL},
    };
    ST_CLEANUP(st_router_freep) st_router *router = NULL;
    st_match match;
    char copy[128];
    st_err err;

    (void)state;
    assert_ok(st_router_new(routes, &router, &err));
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        assert_int_equal(find(router, rows[i].method, rows[i].path, copy, &match), rows[i].want);
        if (rows[i].id)
            assert_string_equal(match.route->id, rows[i].id);
        if (rows[i].param)
            assert_string_equal(match.param[0], rows[i].param);
    }
    find(router, "PUT", "/v1/jobs", copy, &match);
    assert_string_equal(match.allow, "GET, HEAD, POST, OPTIONS");
    assert_int_equal(st_router_param(&routes[6], "name"), 1);
    assert_int_equal(st_router_param(&routes[6], "nam"), -1);
}

static void test_router_refuses(void **state)
{
    static const struct {
        st_route pair[3];
        const char *text;
    } rows[] = {
        {{ROUTE("GET", "/a/{x}", "one"), ROUTE("GET", "/a/{y}", "two")}, "are both GET"},
        {{ROUTE("GET", "/a", "one"), ROUTE("GET", "/b", "one")}, "two routes have the id one"},
        {{ROUTE("GET", "a", "one")}, "must begin with /"},
        {{ROUTE("GET", "/a//b", "one")}, "empty segment"},
        {{ROUTE("GET", "/a/x{y}", "one")}, "is not {name} alone"},
        {{ROUTE("HEAD", "/a", "one")}, "derived"},
        {{{.method = "GET", .pattern = "/a", .id = "one"}}, "lacks an id or a handler"},
    };
    st_router *router = NULL;
    st_err err;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        assert_true(st_router_new(rows[i].pair, &router, &err) < 0);
        assert_non_null(strstr(err.msg, rows[i].text));
        assert_null(router);
    }
}

static const st_query_row query_rows[] = {
    {.name = "limit", .type = ST_QUERY_INT},
    {.name = "state", .type = ST_QUERY_WORD, .words = "running waiting ended", .many = true},
    {.name = "deep", .type = ST_QUERY_BOOL},
    {.name = "name", .type = ST_QUERY_TEXT},
    {0},
};

static int parse_query(const char *text, st_query *ret, st_err *err)
{
    static char copy[512];

    snprintf(copy, sizeof(copy), "%s", text);
    return st_query_parse(query_rows, copy, ret, err);
}

static void test_query(void **state)
{
    st_query query;
    st_err err;

    (void)state;
    assert_ok(parse_query("limit=5&state=running&state=ended&deep&&name=a+b%26c", &query, &err));
    assert_string_equal(st_query_get(&query, "limit", 0), "5");
    assert_string_equal(st_query_get(&query, "state", 1), "ended");
    assert_null(st_query_get(&query, "state", 2));
    assert_string_equal(st_query_get(&query, "deep", 0), "true");
    assert_string_equal(st_query_get(&query, "name", 0), "a b&c");
    assert_fails(parse_query("limt=5", &query, &err), ST_EINVAL, "did you mean limit?");
    assert_fails(parse_query("zzzzzz=5", &query, &err), ST_EINVAL, "no parameter \"zzzzzz\"");
    assert_fails(parse_query("limit=x", &query, &err), ST_EPARSE, "limit");
    assert_fails(parse_query("limit", &query, &err), ST_EINVAL, "no value");
    assert_fails(parse_query("limit=1&limit=2", &query, &err), ST_EINVAL, "twice");
    assert_fails(parse_query("state=run", &query, &err), ST_EINVAL, "none of: running");
    assert_fails(parse_query("deep=yes", &query, &err), ST_EINVAL, "neither true nor false");
    assert_fails(parse_query("name=%00", &query, &err), ST_EINVAL, "escape");
    assert_fails(parse_query("name=%c3%28", &query, &err), ST_EINVAL, "escape");
    assert_fails(st_query_parse(NULL, (char[]){"a=1"}, &query, &err), ST_EINVAL, "no query");
}

static void test_text(void **state)
{
    (void)state;
    assert_true(st_text_is_json("application/json; charset=utf-8"));
    assert_true(st_text_is_json("application/merge-patch+json"));
    assert_false(st_text_is_json("application/jsonx"));
    assert_false(st_text_is_json("text/plain"));
    assert_true(st_text_accepts("text/html, */*;q=0.8", "application/json"));
    assert_true(st_text_accepts("application/*", "application/json"));
    assert_true(st_text_accepts("Application/JSON", "application/json"));
    assert_false(st_text_accepts("application/json;q=0", "application/json"));
    assert_false(st_text_accepts("text/html", "application/json"));
    assert_false(st_text_accepts("", "application/json"));
    assert_string_equal(st_text_bearer("bearer  abc"), "abc");
    assert_null(st_text_bearer("Basic abc"));
    assert_null(st_text_bearer("Bearer "));
}

static void test_etag(void **state)
{
    (void)state;
    assert_true(st_etag_listed("\"a\", \"b\"", "b", ST_ETAG_VERSION));
    assert_true(st_etag_listed("*", "b", ST_ETAG_VERSION));
    assert_true(st_etag_listed("W/\"b\"", "b", ST_ETAG_CONTENT));
    assert_false(st_etag_listed("W/\"b\"", "b", ST_ETAG_VERSION));
    assert_false(st_etag_listed("\"ab\"", "b", ST_ETAG_VERSION));
    assert_false(st_etag_listed("b", "b", ST_ETAG_VERSION));
    assert_false(st_etag_listed("\"b", "b", ST_ETAG_VERSION));
    assert_false(st_etag_listed("", "b", ST_ETAG_VERSION));
    /* The content behind a version is for readers. */
    assert_true(st_etag_listed("\"b-12\"", "b", ST_ETAG_VERSION));
    assert_false(st_etag_listed("\"b-12\"", "b", ST_ETAG_CONTENT));
    assert_false(st_etag_listed("\"bc-12\"", "b", ST_ETAG_VERSION));
}

static void test_json(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf deep = {0};
    json_t *value = NULL;
    st_err err;

    (void)state;
    assert_ok(st_json_parse("body", "{\"a\":[1]}", 9, &value, &err));
    json_decref(value);
    assert_fails(st_json_parse("body", "", 0, &value, &err), ST_EPARSE, "empty");
    assert_fails(st_json_parse("body", "{\n\"a\":}", 7, &value, &err), ST_EPARSE,
                 "body:2: not JSON");
    assert_fails(st_json_parse("body", "\n\"\xff\"", 4, &value, &err), ST_EPARSE,
                 "body:2: not valid");
    assert_fails(st_json_parse("body", "{\"a\":1,\"a\":2}", 13, &value, &err), ST_EPARSE, "body:1");
    assert_fails(st_json_parse("body", "\"\\u0000\"", 8, &value, &err), ST_EPARSE, "body:1");
    assert_fails(st_json_parse("body", "[1]\0", 4, &value, &err), ST_EPARSE, "body:1");
    for (int i = 0; i < 100000; i++)
        st_strbuf_addc(&deep, '[');
    assert_fails(st_json_parse("body", deep.s, deep.n, &value, &err), ST_EPARSE, "deeper than 64");
}

static void test_problem(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    json_t *extra = json_pack("{s:i,s:s}", "free", 3, "code", "other");

    (void)state;
    st_problem_write(&(st_problem){403, "quota", NULL, "9 asked, 3 free", extra}, "id1", &out);
    assert_string_equal(out.s, "{\"type\":\"/problems/quota\",\"title\":\"The quota does not allow "
                               "this\",\"status\":403,\"detail\":\"9 asked, 3 free\",\"code\":"
                               "\"quota\",\"instance\":\"id1\",\"free\":3}");
    /* Every code of base has a title of its own, so that none falls back to the status. */
#define HAS_TITLE(name, code, http, cli, remedy) \
    assert_string_not_equal(st_problem_title(code, 418), st_problem_title("?", 418));
    ST_ERR_TABLE(HAS_TITLE)
#undef HAS_TITLE
}

static void test_metrics(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_metrics m = {.out = &out};

    (void)state;
    st_metrics_family(&m, "a_total", ST_METRIC_COUNTER, "One\nline \\ here.");
    st_metrics_label(&m, "x", "q\"\\\n");
    st_metrics_label(&m, "y", "");
    st_metrics_int(&m, -3);
    st_metrics_milli(&m, 1500);
    st_metrics_family(&m, "h", ST_METRIC_HISTOGRAM, "H.");
    st_metrics_label(&m, "r", "a");
    st_metrics_histogram_us(&m, (int64_t[]){1000, 2500000}, (uint64_t[]){2, 3}, 2, 1, 1500000);
    st_metrics_done(&m);
    assert_string_equal(out.s, "# HELP a_total One\\nline \\\\ here.\n"
                               "# TYPE a_total counter\n"
                               "a_total{x=\"q\\\"\\\\\\n\",y=\"\"} -3\n"
                               "a_total 1.5\n"
                               "# HELP h H.\n"
                               "# TYPE h histogram\n"
                               "h_bucket{r=\"a\",le=\"0.001\"} 2\n"
                               "h_bucket{r=\"a\",le=\"2.5\"} 5\n"
                               "h_bucket{r=\"a\",le=\"+Inf\"} 6\n"
                               "h_sum{r=\"a\"} 1.5\n"
                               "h_count{r=\"a\"} 6\n");
}

static void test_limits(void **state)
{
    ST_CLEANUP(st_limits_freep) st_http_limits *limits = st_limits_new();
    int64_t wait_ms = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(st_limits_enter(limits, 7, 10, 5, 1000, &wait_ms), ST_LIMIT_PASS);
        st_limits_leave(limits, 7);
    }
    assert_int_equal(st_limits_enter(limits, 7, 10, 5, 1000, &wait_ms), ST_LIMIT_RATE);
    assert_int_equal(wait_ms, 100);
    assert_int_equal(st_limits_enter(limits, 7, 10, 5, 1099, &wait_ms), ST_LIMIT_RATE);
    assert_int_equal(st_limits_enter(limits, 7, 10, 5, 1100, &wait_ms), ST_LIMIT_PASS);
    assert_int_equal(st_limits_enter(limits, 8, -1, 2, 1100, &wait_ms), ST_LIMIT_PASS);
    assert_int_equal(st_limits_enter(limits, 8, -1, 2, 1100, &wait_ms), ST_LIMIT_PASS);
    assert_int_equal(st_limits_enter(limits, 8, -1, 2, 1100, &wait_ms), ST_LIMIT_RUNNING);
    st_limits_leave(limits, 8);
    assert_int_equal(st_limits_enter(limits, 8, -1, 2, 1100, &wait_ms), ST_LIMIT_PASS);
    /* Who was first seen where rates do not count has a full bucket where they do. */
    assert_int_equal(st_limits_enter(limits, 9, -1, 9, 1100, &wait_ms), ST_LIMIT_PASS);
    assert_int_equal(st_limits_enter(limits, 9, 1, 9, 1100, &wait_ms), ST_LIMIT_PASS);
    assert_int_equal(st_limits_enter(limits, 9, 1, 9, 1100, &wait_ms), ST_LIMIT_PASS);
    assert_int_equal(st_limits_enter(limits, 9, 1, 9, 1100, &wait_ms), ST_LIMIT_RATE);
    for (int i = 0; i < 3; i++)
        st_limits_leave(limits, 9);
    st_limits_leave(limits, 7);
    /* Beside calls without a rate those with one have theirs, no less and no more. */
    assert_int_equal(st_limits_enter(limits, 10, -1, -1, 2000, &wait_ms), ST_LIMIT_PASS);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(st_limits_enter(limits, 10, 10, 50, 2000, &wait_ms), ST_LIMIT_PASS);
        st_limits_leave(limits, 10);
    }
    assert_int_equal(st_limits_enter(limits, 10, 10, 50, 2000, &wait_ms), ST_LIMIT_RATE);
    for (int64_t now = 2001; now < 2100; now++) {
        assert_int_equal(st_limits_enter(limits, 10, -1, -1, now, &wait_ms), ST_LIMIT_PASS);
        st_limits_leave(limits, 10);
        assert_int_equal(st_limits_enter(limits, 10, 10, 50, now, &wait_ms), ST_LIMIT_RATE);
    }
    assert_int_equal(st_limits_enter(limits, 10, 10, 50, 2100, &wait_ms), ST_LIMIT_PASS);
    st_limits_leave(limits, 10);
    st_limits_leave(limits, 10);
    st_limits_sweep(limits, 20000);
    /* 8 has calls that run, and was not forgotten. */
    st_limits_leave(limits, 8);
    st_limits_leave(limits, 8);
    st_limits_sweep(limits, 20000);
}

static void test_gzip(void **state)
{
    static const char *const yes[] = {
        "gzip", "GZIP", " gzip ", "br, gzip", "deflate,gzip;q=0.5", "gzip; q=1"};
    static const char *const no[] = {"",         "br",           "gzipped", "xgzip",
                                     "gzip;q=0", "gzip;q=0.000", ",,,",     ";q=1"};
    char text[4000];
    size_t n = 0;
    char *packed;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(yes); i++)
        assert_true(st_gzip_taken(yes[i]));
    for (size_t i = 0; i < ST_ARRAY_LEN(no); i++)
        assert_false(st_gzip_taken(no[i]));
    assert_false(st_gzip_taken(NULL));
    memset(text, 'a', sizeof text);
    packed = st_gzip(text, sizeof text, &n);
    assert_non_null(packed);
    assert_true(n < 100);
    assert_int_equal((unsigned char)packed[0], 0x1f);
    assert_int_equal((unsigned char)packed[1], 0x8b);
    free(packed);
    assert_null(st_gzip("abc", 3, &n)); /* it would be longer */
}

/* Who has one IPv6 address has the 2^64 beside it; an IPv4 address is one, also in IPv6's clothes. */
static void addresses_are_counted_by_64(void **state)
{
    static const struct {
        const char *address, *text, *counted_as;
    } cases[] = {
        {"2001:db8:1:2::1", "2001:db8:1:2::1", "2001:db8:1:2::"},
        {"2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"},
        {"2001:db8:1:3::1", "2001:db8:1:3::1", "2001:db8:1:3::"},
        {"::1", "::1", "::"},
        {"::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7"},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(cases); i++) {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        char text[80] = "", counted[80] = "";

        assert_int_equal(inet_pton(AF_INET6, cases[i].address, &in6.sin6_addr), 1);
        st_address_names((const struct sockaddr *)&in6, text, sizeof text, counted, sizeof counted);
        assert_string_equal(text, cases[i].text);
        assert_string_equal(counted, cases[i].counted_as);
    }
    struct sockaddr_in in = {.sin_family = AF_INET};
    char text[80] = "", counted[80] = "";

    assert_int_equal(inet_pton(AF_INET, "192.0.2.8", &in.sin_addr), 1);
    st_address_names((const struct sockaddr *)&in, text, sizeof text, counted, sizeof counted);
    assert_string_equal(text, "192.0.2.8");
    assert_string_equal(counted, "192.0.2.8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_counted_by_64),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_router),
        cmocka_unit_test(test_router_refuses),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_etag),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_problem),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
