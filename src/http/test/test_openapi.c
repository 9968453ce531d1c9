/*
 * The OpenAPI document and the table of routes say the same, read both ways.
 */
#include <stdlib.h>
#include <strings.h>

#include "base/testing.h"
#include "http/openapi.h"

static void nothing(st_call *call, void *ctx)
{
    (void)call, (void)ctx;
}

static const st_query_row list_query[] = {
    {.name = "limit", .type = ST_QUERY_INT, .about = "At most so many."},
    {.name = "state", .type = ST_QUERY_WORD, .words = "running ended", .many = true},
    {0},
};

static const st_route routes[] = {
    {"GET", "/v1/jobs", 7, 0, nothing, "listJobs", "List jobs", list_query, NULL, "Jobs", 0},
    {"POST", "/v1/jobs", 3, ST_ROUTE_YAML, nothing, "submit", "Submit", NULL, "Job", "Job", 201},
    {"PATCH", "/v1/a/{x}/b/{y}", 1, ST_ROUTE_IF_MATCH, nothing, "edit", "Edit", NULL, "Job", NULL,
     0},
    {"GET", "/v1/events", 7, ST_ROUTE_STREAM, nothing, "events", "Events", NULL, NULL, NULL, 0},
    {"GET", "/metrics", 0, ST_ROUTE_NO_AUTH, nothing, "metrics", "Metrics", NULL, NULL,
     "text/plain", 0},
    {0},
};
#define TABLES(one) ((const st_schema *const[]){(one), NULL})

static const st_schema schemas[] = {
    {"Job", "{\"type\":\"object\"}"},
    {"Jobs", "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Job\"}}"},
    {0},
};
static const char *const roles[] = {"owner", "admin", "viewer", NULL};
static const st_openapi_word tags[] = {
    {"jobs", "Jobs."}, {"a", "A."}, {"events", "What happens."}, {"service", "The rest."}, {0}};
static const st_openapi_word parts[] = {{"{x}", "any x"}, {"a/{y}", "y of an a"}, {0}};
static const st_openapi_info info = {
    .title = "Test",
    .version = "1",
    .description = "About it.",
    .license = "MIT",
    .roles = roles,
    .tags = tags,
    .parts = parts,
};

static json_t *document(void)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    json_t *value = NULL;
    st_err err;

    assert_ok(st_openapi_write(&info, routes, TABLES(schemas), &out, &err));
    assert_ok(st_json_parse("openapi", out.s, out.n, &value, &err));
    return value;
}

static json_t *operation(json_t *doc, const st_route *route)
{
    char method[8] = "";

    for (size_t i = 0; route->method[i]; i++)
        method[i] = (char)(route->method[i] | 0x20);
    return json_object_get(json_object_get(json_object_get(doc, "paths"), route->pattern), method);
}

static bool has_parameter(json_t *op, const char *name, const char *in)
{
    json_t *parameter;
    size_t i;

    json_array_foreach(
        json_object_get(op, "parameters"), i,
        parameter) if (strcmp(json_string_value(json_object_get(parameter, "name")), name) ==
                       0) return strcmp(json_string_value(json_object_get(parameter, "in")), in) ==
        0;
    return false;
}

static void test_complete(void **state)
{
    json_t *doc = document();

    (void)state;
    for (const st_route *route = routes; route->method; route++) {
        json_t *op = operation(doc, route);
        size_t nroles = (size_t)__builtin_popcount(route->roles);
        char status[16];

        assert_non_null(op);
        assert_string_equal(json_string_value(json_object_get(op, "operationId")), route->id);
        for (const st_query_row *row = route->query; row && row->name; row++)
            assert_true(has_parameter(op, row->name, "query"));
        assert_int_equal(json_object_get(op, "requestBody") != NULL, route->request != NULL);
        assert_int_equal(json_array_size(json_object_get(op, "x-stint-roles")), nroles);
        assert_int_equal(json_array_size(json_object_get(op, "security")),
                         !(route->flags & ST_ROUTE_NO_AUTH));
        snprintf(status, sizeof(status), "%d",
                 route->status                                         ? route->status
                 : route->response || (route->flags & ST_ROUTE_STREAM) ? 200
                                                                       : 204);
        assert_non_null(json_object_get(json_object_get(op, "responses"), status));
        assert_non_null(json_object_get(json_object_get(op, "responses"), "default"));
    }
    assert_true(has_parameter(operation(doc, &routes[2]), "x", "path"));
    assert_true(has_parameter(operation(doc, &routes[2]), "y", "path"));
    assert_true(has_parameter(operation(doc, &routes[2]), "If-Match", "header"));
    json_decref(doc);
}

static void test_true(void **state)
{
    json_t *doc = document();
    const char *path, *method;
    json_t *methods, *op;
    int operations = 0;

    (void)state;
    json_object_foreach(json_object_get(doc, "paths"), path, methods)
        json_object_foreach(methods, method, op)
    {
        const st_route *route = routes;

        while (route->method &&
               (strcmp(route->pattern, path) != 0 || strcasecmp(route->method, method) != 0))
            route++;
        assert_non_null(route->method);
        operations++;
    }
    assert_int_equal(operations, ST_ARRAY_LEN(routes) - 1);
    assert_int_equal(
        json_object_size(json_object_get(json_object_get(doc, "components"), "schemas")),
        ST_ARRAY_LEN(schemas)); /* with Problem */
    json_decref(doc);
}

static void test_refuses(void **state)
{
    static const st_schema missing[] = {{"Job", "{}"}, {0}};
    static const st_schema twice[] = {{"Job", "{}"}, {"Job", "{}"}, {"Jobs", "{}"}, {0}};
    static const st_schema no_object[] = {{"Job", "[]"}, {"Jobs", "{}"}, {0}};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err;

    (void)state;
    assert_fails(st_openapi_write(&info, routes, TABLES(missing), &out, &err), ST_ENOENT,
                 "no schema Jobs");
    assert_fails(st_openapi_write(&info, routes, TABLES(twice), &out, &err), ST_EEXIST,
                 "two schemas");
    assert_fails(st_openapi_write(&info, routes, TABLES(no_object), &out, &err), ST_EINVAL,
                 "no JSON object");
}

static const char *text_at(json_t *value, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(value, i), key));
}

static void test_words(void **state)
{
    static const st_openapi_word few[] = {{"jobs", "Jobs."}, {"service", "The rest."}, {0}};
    static const st_openapi_word one[] = {{"{x}", "any x"}, {"b/{y}", "y of a b"}, {0}};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_openapi_info lacks = info;
    json_t *doc = document(), *list = json_object_get(doc, "tags");
    st_err err;

    (void)state;
    assert_int_equal(json_array_size(list), ST_ARRAY_LEN(tags) - 1);
    assert_string_equal(text_at(list, 1, "name"), "a");
    assert_string_equal(text_at(list, 1, "description"), "A.");
    list = json_object_get(operation(doc, &routes[2]), "parameters");
    assert_string_equal(text_at(list, 0, "description"), "any x");
    assert_string_equal(text_at(list, 1, "description"), "y of an a");
    json_decref(doc);

    lacks.tags = few;
    assert_fails(st_openapi_write(&lacks, routes, TABLES(schemas), &out, &err), ST_ENOENT,
                 "what the tag a is about");
    lacks = info;
    lacks.parts = one;
    assert_fails(st_openapi_write(&lacks, routes, TABLES(schemas), &out, &err), ST_ENOENT,
                 "what {y} stands for");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_true),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
