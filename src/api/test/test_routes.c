/*
 * The table of routes agrees with itself: the router takes it, names are one operation's, bodies and answers have
 * schemas, and whoever changes something is somebody.
 */
#include <string.h>

#include "api/state.h"
#include "base/testing.h"
#include "http/router.h"

static bool has_schema(const char *name, size_t n)
{
    for (const st_schema *const *table = st_api_schemas(); *table; table++)
        for (const st_schema *s = *table; s->name; s++)
            if (strlen(s->name) == n && strncmp(s->name, name, n) == 0)
                return true;
    return false;
}

static void need_schemas(const st_route *r, const char *names)
{
    for (const char *at = names, *end; at; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, '|');
        bool is_type = memchr(at, '/', (size_t)(end - at)) != NULL; /* text/plain */
        if (!is_type && !has_schema(at, (size_t)(end - at)))
            fail_msg("%s: there is no schema %.*s", r->id, (int)(end - at), at);
    }
}

static void every_row_is_whole(void **state)
{
    const st_route *routes = st_api_routes();

    (void)state;
    for (const st_route *r = routes; r->method; r++) {
        bool open = (r->flags & ST_ROUTE_NO_AUTH) != 0;

        if (!r->id || !r->handler || !r->summary || !r->summary[0])
            fail_msg("%s %s lacks an id, a handler or a summary", r->method, r->pattern);
        if (!open && r->roles == 0)
            fail_msg("%s: nobody may call it", r->id);
        for (const st_route *s = routes; s < r; s++)
            if (strcmp(r->id, s->id) == 0)
                fail_msg("two operations are called %s", r->id);
        if (r->request)
            need_schemas(r, r->request);
        if (r->response && !(r->flags & ST_ROUTE_PAGE))
            need_schemas(r, r->response);
        if (r->request && strcmp(r->method, "GET") == 0)
            fail_msg("%s: a GET with a body", r->id);
        if ((r->flags & ST_ROUTE_IF_MATCH) && strcmp(r->method, "GET") == 0)
            fail_msg("%s: a GET that must match", r->id);
    }
}

static void each_is_found(void **state)
{
    ST_CLEANUP(st_router_freep) st_router *router = NULL;
    const st_route *routes = st_api_routes();
    st_err err;

    (void)state;
    assert_ok(st_router_new(routes, &router, &err));
    for (const st_route *r = routes; r->method; r++) {
        char path[256];
        size_t n = 0;
        st_match m;

        /* A value for each parameter. */
        for (const char *p = r->pattern; *p; p++) {
            if (*p == '{') {
                path[n++] = 'x';
                p = strchr(p, '}');
            } else {
                path[n++] = *p;
            }
        }
        path[n] = '\0';
        assert_int_equal(st_router_find(router, r->method, path, &m), ST_MATCH_FOUND);
        if (m.route != r)
            fail_msg("%s is found where %s is meant", m.route->id, r->id);
    }
}

static void the_document_is_made(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err;

    (void)state;
    assert_ok(st_api_openapi(&out, &err));
    for (const st_route *r = st_api_routes(); r->method; r++)
        if (!(r->flags & ST_ROUTE_PAGE) && !strstr(st_strbuf_str(&out), r->id))
            fail_msg("%s is not in the document", r->id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_whole),
        cmocka_unit_test(each_is_found),
        cmocka_unit_test(the_document_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
