/*
 * Fuzzes what a request's target goes through: the first byte picks the method,
 * the rest is split at "?" into path and query. Whatever comes in, parameters
 * and values are UTF-8 without control characters, or there is one sentence.
 */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "http/http.h"
#include "http/query.h"
#include "http/router.h"

static void nothing(st_call *call, void *ctx)
{
    (void)call, (void)ctx;
}

static const st_query_row rows[] = {
    {.name = "limit", .type = ST_QUERY_INT},
    {.name = "state", .type = ST_QUERY_WORD, .words = "running waiting ended", .many = true},
    {.name = "deep", .type = ST_QUERY_BOOL},
    {.name = "name", .type = ST_QUERY_TEXT},
    {0},
};

#define ROUTE(m, p, name)                                                        \
    {                                                                            \
        .method = m, .pattern = p, .handler = nothing, .id = name, .query = rows \
    }

static const st_route routes[] = {
    ROUTE("GET", "/", "a"),
    ROUTE("GET", "/v1/jobs", "b"),
    ROUTE("POST", "/v1/jobs", "c"),
    ROUTE("GET", "/v1/jobs/{id}", "d"),
    ROUTE("POST", "/v1/jobs/{id}/cancel", "e"),
    ROUTE("GET", "/v1/jobs/mine", "f"),
    ROUTE("GET", "/v1/{kind}/all/{name}", "g"),
    ROUTE("GET", "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}", "h"),
    {0},
};

static void check_text(const char *s)
{
    ST_ASSERT(st_utf8_valid(s, strlen(s)) == strlen(s));
    for (; *s; s++)
        ST_ASSERT((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void check_query(const st_route *route, char *text)
{
    st_query query;
    st_err err = {0};

    if (st_query_parse(route->query, text, &query, &err) < 0) {
        ST_ASSERT(err.code > 0 && err.msg[0]);
        check_text(err.msg);
        return;
    }
    for (int i = 0; i < query.n; i++)
        check_text(query.item[i].value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "POST", "HEAD", "OPTIONS", "PATCH"};
    ST_CLEANUP(st_router_freep) st_router *router = NULL;
    ST_CLEANUP(st_freep) char *target = NULL;
    st_match match;
    char *query;

    if (size == 0)
        return 0;
    ST_ASSERT(st_router_new(routes, &router, NULL) == 0);
    target = st_xstrndup((const char *)data + 1, size - 1);
    query = strchr(target, '?');
    if (query)
        *query++ = '\0';
    if (st_router_find(router, methods[data[0] % ST_ARRAY_LEN(methods)], target, &match) !=
        ST_MATCH_FOUND)
        return 0;
    for (int i = 0; i < match.nparam; i++) {
        ST_ASSERT(match.param[i][0]);
        check_text(match.param[i]);
    }
    if (query)
        check_query(match.route, query);
    return 0;
}
