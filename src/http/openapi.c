/*
 * The OpenAPI 3.1 document. Everything in it comes from a row of a table: an
 * operation from a route, a parameter from its pattern or query rows, a schema
 * from the table of schemas.
 */
#include "http/openapi.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "http/problem.h"

#define SCHEMAS_AT "#/components/schemas/"

static void json_drop(json_t **value)
{
    json_decref(*value);
}

static json_t *ref_to(const char *where, const char *name)
{
    return json_pack("{s:o}", "$ref", json_sprintf("%s%s", where, name));
}

static json_t *schema_of_type(const st_query_row *row)
{
    json_t *schema;

    switch (row->type) {
    case ST_QUERY_INT:
        return json_pack("{s:s,s:s}", "type", "integer", "format", "int64");
    case ST_QUERY_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case ST_QUERY_WORD: {
        ST_CLEANUP(st_freep) char *words = st_xstrdup(row->words);
        json_t *list = json_array();
        char *rest = NULL;

        for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
            json_array_append_new(list, json_string(word));
        schema = json_pack("{s:s,s:o}", "type", "string", "enum", list);
        return schema;
    }
    case ST_QUERY_TEXT:
        break;
    }
    return json_pack("{s:s}", "type", "string");
}

static void add_query(json_t *list, const st_query_row *row)
{
    json_t *schema = schema_of_type(row);
    json_t *parameter;

    if (row->many)
        schema = json_pack("{s:s,s:o}", "type", "array", "items", schema);
    parameter = json_pack("{s:s,s:s,s:b,s:o}", "name", row->name, "in", "query", "required", 0,
                          "schema", schema);
    if (row->about)
        json_object_set_new(parameter, "description", json_string(row->about));
    json_array_append_new(list, parameter);
}

static void add_header(json_t *list, const char *name, const char *about, bool required)
{
    json_array_append_new(list, json_pack("{s:s,s:s,s:b,s:s,s:{s:s}}", "name", name, "in", "header",
                                          "required", required, "description", about, "schema",
                                          "type", "string"));
}

static bool is_read(const st_route *route)
{
    return strcmp(route->method, "GET") == 0 && !(route->flags & ST_ROUTE_STREAM);
}

/* What an operation is about: the segment behind the version, "jobs". */
static json_t *tag_of(const st_route *route)
{
    const char *at = strncmp(route->pattern, "/v1/", 4) == 0 ? route->pattern + 4 : NULL;

    return at ? json_stringn(at, strcspn(at, "/.")) : json_string("service");
}

static const char *about_of(const st_openapi_word *words, const char *name)
{
    for (; words && words->name; words++)
        if (strcmp(words->name, name) == 0)
            return words->about;
    return NULL;
}

/* What {name} stands for in this path: what is said for its noun, or else for all. */
static const char *about_part(const st_openapi_info *info, const st_route *route, const char *name)
{
    ST_CLEANUP(json_drop) json_t *tag = tag_of(route);
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    const char *about;

    st_strbuf_addf(&key, "%s/{%s}", json_string_value(tag), name);
    about = about_of(info->parts, st_strbuf_str(&key));
    return about ? about : about_of(info->parts, strchr(st_strbuf_str(&key), '{'));
}

static void add_part(json_t *list, const st_openapi_info *info, const st_route *route,
                     const char *name)
{
    const char *about = about_part(info, route, name);
    json_t *parameter = json_pack("{s:s,s:s,s:b,s:{s:s}}", "name", name, "in", "path", "required",
                                  1, "schema", "type", "string");

    if (about)
        json_object_set_new(parameter, "description", json_string(about));
    json_array_append_new(list, parameter);
}

static json_t *parameters_of(const st_openapi_info *info, const st_route *route)
{
    json_t *list = json_array();

    for (const char *at = route->pattern; (at = strchr(at, '{')); at++) {
        ST_CLEANUP(st_freep) char *name = st_xstrndup(at + 1, strcspn(at + 1, "}"));

        add_part(list, info, route, name);
    }
    for (const st_query_row *row = route->query; row && row->name; row++)
        add_query(list, row);
    if (route->flags & (ST_ROUTE_IF_MATCH | ST_ROUTE_CONDITION))
        add_header(list, "If-Match", "The ETag of what is to be changed, several of them, or *.",
                   (route->flags & ST_ROUTE_IF_MATCH) != 0);
    if (strcmp(route->method, "PUT") == 0 && (route->flags & ST_ROUTE_CONDITION))
        add_header(list, "If-None-Match", "*: only if there is none yet.", false);
    if (is_read(route))
        add_header(list, "If-None-Match", "ETags you have: 304 if the answer is one of them.",
                   false);
    if (strcmp(route->method, "POST") == 0 &&
        !(route->flags & (ST_ROUTE_UNCHANGED | ST_ROUTE_NO_AUTH | ST_ROUTE_NO_KEY)))
        add_header(
            list, "Idempotency-Key",
            "The caller's own name for this request, 1 to 200 bytes: sent again with the same "
            "key it is done once, and answered as before.",
            false);
    if (route->flags & ST_ROUTE_STREAM)
        add_header(list, "Last-Event-ID", "The last event seen; the stream goes on behind it.",
                   false);
    return list;
}

static json_t *content_of(const char *type, const char *schema)
{
    if (!schema)
        return json_pack("{s:{}}", type);
    return json_pack("{s:{s:o}}", type, "schema", ref_to(SCHEMAS_AT, schema));
}

/* An answer of that schema, which may be the first part of "A|B". */
static json_t *answer_of(const char *schema)
{
    ST_CLEANUP(st_freep) char *name = st_xstrndup(schema, strcspn(schema, "|"));

    return json_pack("{s:s,s:o}", "description", name, "content",
                     content_of("application/json", name));
}

static json_t *success_of(const st_route *route)
{
    if (route->flags & ST_ROUTE_STREAM)
        return json_pack("{s:s,s:o}", "description", "A stream of events.", "content",
                         content_of("text/event-stream", NULL));
    if (!route->response)
        return json_pack("{s:s}", "description", "Done.");
    if (strchr(route->response, '/'))
        return json_pack("{s:s,s:o}", "description", "The content.", "content",
                         content_of(route->response, NULL));
    return answer_of(route->response);
}

static json_t *responses_of(const st_route *route)
{
    json_t *responses = json_object();
    bool has_answer = route->response || (route->flags & ST_ROUTE_STREAM);
    char status[16];
    const struct {
        const char *status;
        bool possible;
    } problems[] = {
        {"400", true},
        {"401", !(route->flags & ST_ROUTE_NO_AUTH)},
        {"403", !(route->flags & ST_ROUTE_NO_AUTH)},
        {"404", strchr(route->pattern, '{') != NULL},
        {"412", (route->flags & (ST_ROUTE_IF_MATCH | ST_ROUTE_CONDITION)) != 0},
        {"413", route->request != NULL},
        {"415", route->request != NULL && !(route->flags & ST_ROUTE_ANY_BODY)},
        {"428", (route->flags & ST_ROUTE_IF_MATCH) != 0},
        {"429", !(route->flags & ST_ROUTE_NO_RATE)},
        {"default", true},
    };

    snprintf(status, sizeof(status), "%d", route->status ? route->status : has_answer ? 200 : 204);
    json_object_set_new(responses, status, success_of(route));
    if (route->response && strchr(route->response, '|'))
        json_object_set_new(responses, "200", answer_of(strchr(route->response, '|') + 1));
    if (is_read(route))
        json_object_set_new(responses, "304",
                            json_pack("{s:s}", "description", "The caller has it."));
    for (size_t i = 0; i < ST_ARRAY_LEN(problems); i++)
        if (problems[i].possible)
            json_object_set_new(responses, problems[i].status,
                                ref_to("#/components/responses/", "Problem"));
    return responses;
}

static json_t *request_of(const st_route *route)
{
    json_t *content;

    if (route->flags & ST_ROUTE_ANY_BODY)
        content = strchr(route->request, '/') ? content_of(route->request, NULL)
                                              : content_of("*/*", route->request);
    else
        content = content_of("application/json", route->request);
    if (route->flags & ST_ROUTE_YAML)
        json_object_set_new(content, "application/yaml",
                            json_pack("{s:o}", "schema", ref_to(SCHEMAS_AT, route->request)));
    return json_pack("{s:b,s:o}", "required", 1, "content", content);
}

static json_t *roles_of(const st_openapi_info *info, const st_route *route)
{
    json_t *list = json_array();

    for (int bit = 0; info->roles && info->roles[bit]; bit++)
        if (route->roles & (UINT32_C(1) << bit))
            json_array_append_new(list, json_string(info->roles[bit]));
    return list;
}

static json_t *description_of(const st_openapi_info *info, const st_route *route)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *sep = "";

    st_strbuf_addf(&text, "%s.", route->summary ? route->summary : route->id);
    if (route->flags & ST_ROUTE_NO_AUTH) {
        st_strbuf_add(&text, " Anybody may ask.");
    } else {
        st_strbuf_add(&text, " Roles: ");
        for (int bit = 0; info->roles && info->roles[bit]; bit++)
            if (route->roles & (UINT32_C(1) << bit)) {
                st_strbuf_addf(&text, "%s%s", sep, info->roles[bit]);
                sep = ", ";
            }
        st_strbuf_addc(&text, '.');
    }
    return json_string(st_strbuf_str(&text));
}

static json_t *tags_of(const st_openapi_info *info)
{
    json_t *tags = json_array();

    for (const st_openapi_word *word = info->tags; word && word->name; word++)
        json_array_append_new(
            tags, json_pack("{s:s,s:s}", "name", word->name, "description", word->about));
    return tags;
}

/* Every tag and every part of a path is told of, where there is a table of them. */
static int check_words(const st_openapi_info *info, const st_route *route, st_err *err)
{
    ST_CLEANUP(json_drop) json_t *tag = tag_of(route);

    if (info->tags && !about_of(info->tags, json_string_value(tag)))
        return st_fail(err, ST_ENOENT, "%s: nothing says what the tag %s is about", route->id,
                       json_string_value(tag));
    for (const char *at = route->pattern; info->parts && (at = strchr(at, '{')); at++) {
        ST_CLEANUP(st_freep) char *name = st_xstrndup(at + 1, strcspn(at + 1, "}"));

        if (!about_part(info, route, name))
            return st_fail(err, ST_ENOENT, "%s: nothing says what {%s} stands for", route->id,
                           name);
    }
    return 0;
}

static json_t *operation_of(const st_openapi_info *info, const st_route *route)
{
    json_t *operation = json_pack("{s:s}", "operationId", route->id);

    if (route->summary)
        json_object_set_new(operation, "summary", json_string(route->summary));
    json_object_set_new(operation, "description", description_of(info, route));
    json_object_set_new(operation, "tags", json_pack("[o]", tag_of(route)));
    json_object_set_new(operation, "parameters", parameters_of(info, route));
    if (route->request)
        json_object_set_new(operation, "requestBody", request_of(route));
    json_object_set_new(operation, "responses", responses_of(route));
    if (route->flags & ST_ROUTE_NO_AUTH) {
        json_object_set_new(operation, "security", json_array());
    } else {
        json_object_set_new(operation, "security", json_pack("[{s:[]}]", "bearer"));
        json_object_set_new(operation, "x-stint-roles", roles_of(info, route));
    }
    if (strcmp(route->method, "GET") != 0)
        json_object_set_new(operation, "x-stint-changes",
                            json_boolean(!(route->flags & ST_ROUTE_UNCHANGED)));
    return operation;
}

static json_t *paths_of(const st_openapi_info *info, const st_route *routes)
{
    json_t *paths = json_object();

    for (const st_route *route = routes; route->method; route++) {
        if (route->flags & ST_ROUTE_PAGE)
            continue;
        json_t *path = json_object_get(paths, route->pattern);
        char method[16];
        size_t n = ST_MIN(strlen(route->method), sizeof(method) - 1);

        for (size_t i = 0; i < n; i++)
            method[i] = (char)(route->method[i] | 0x20);
        method[n] = '\0';
        if (!path) {
            path = json_object();
            json_object_set_new(paths, route->pattern, path);
        }
        json_object_set_new(path, method, operation_of(info, route));
    }
    return paths;
}

/* ---- schemas ----------------------------------------------------------------------------- */

static void add_code(json_t *list, const char *code, int status, const char *remedy)
{
    json_array_append_new(list,
                          json_pack("{s:s,s:i,s:s,s:s}", "code", code, "status", status, "title",
                                    st_problem_title(code, status), "remedy", remedy));
}

static bool has_code(const json_t *list, const char *code)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "code")), code) == 0)
            return true;
    }
    return false;
}

/* Every code there is, each once: those of base and those of HTTP itself. */
static json_t *problem_codes(void)
{
    json_t *list = json_array();

#define X(name, code, http, cli, remedy) add_code(list, code, http, remedy);
    ST_ERR_TABLE(X)
#undef X
#define X(name, code, status, title, remedy) \
    if (!has_code(list, code))               \
        add_code(list, code, status, remedy);
    ST_PROBLEM_TABLE(X)
#undef X
    return list;
}

static json_t *problem_schema(void)
{
    return json_pack(
        "{s:s,s:s,s:[s,s,s,s],s:{s:{s:s},s:{s:s},s:{s:s},s:{s:s},s:{s:s,s:s},s:{s:s,s:s}}}", "type",
        "object", "description", "What went wrong, as RFC 9457 says.", "required", "type", "title",
        "status", "code", "properties", "type", "type", "string", "title", "type", "string",
        "status", "type", "integer", "detail", "type", "string", "code", "type", "string",
        "description", "Stable; programs decide by it.", "instance", "type", "string",
        "description", "The id of the request.");
}

static int read_schemas(const st_schema *schemas, json_t *ret, st_err *err)
{
    for (const st_schema *schema = schemas; schema->name; schema++) {
        json_t *value = NULL;

        if (json_object_get(ret, schema->name))
            return st_fail(err, ST_EEXIST, "two schemas are named %s", schema->name);
        if (st_json_parse(schema->name, schema->json, strlen(schema->json), &value, err) < 0)
            return -ST_EPARSE;
        json_object_set_new(ret, schema->name, value);
        if (!json_is_object(value))
            return st_fail(err, ST_EINVAL, "schema %s is no JSON object", schema->name);
    }
    return 0;
}

/* Every reference to a schema, at any depth, has its schema. */
static int check_refs(const json_t *value, const json_t *schemas, st_err *err)
{
    const char *name, *text;
    json_t *part;
    size_t i;

    if (json_is_array(value)) {
        json_array_foreach(value, i,
                           part) if (check_refs(part, schemas, err) < 0) return -ST_ENOENT;
        return 0;
    }
    if (!json_is_object(value))
        return 0;
    text = json_string_value(json_object_get(value, "$ref"));
    if (text && strncmp(text, SCHEMAS_AT, strlen(SCHEMAS_AT)) == 0 &&
        !json_object_get(schemas, text + strlen(SCHEMAS_AT)))
        return st_fail(err, ST_ENOENT, "there is no schema %s", text + strlen(SCHEMAS_AT));
    for (void *at = json_object_iter((json_t *)(uintptr_t)value); at;
         at = json_object_iter_next((json_t *)(uintptr_t)value, at)) {
        name = json_object_iter_key(at);
        if (check_refs(json_object_iter_value(at), schemas, err) < 0)
            return st_fail(err, ST_ENOENT, "%s: %s", name, err ? err->msg : "");
    }
    return 0;
}

int st_openapi_write(const st_openapi_info *info, const st_route *routes,
                     const st_schema *const *tables, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(json_drop) json_t *document = NULL;
    ST_CLEANUP(json_drop) json_t *defined = json_object();
    json_t *components;
    st_err local;
    char *text;

    err = err ? err : &local;
    json_object_set_new(defined, "Problem", problem_schema());
    for (; *tables; tables++)
        if (read_schemas(*tables, defined, err) < 0)
            return -err->code;
    for (const st_route *route = routes; route->method; route++)
        if (!(route->flags & ST_ROUTE_PAGE) && check_words(info, route, err) < 0)
            return -err->code;
    components = json_pack("{s:O,s:{s:{s:s,s:o}},s:{s:{s:s,s:s,s:s}}}", "schemas", defined,
                           "responses", "Problem", "description", "It did not work.", "content",
                           content_of("application/problem+json", "Problem"), "securitySchemes",
                           "bearer", "type", "http", "scheme", "bearer", "description",
                           "A token, as Authorization: Bearer TOKEN.");
    document = json_pack("{s:s,s:{s:s,s:s},s:o,s:o}", "openapi", "3.1.0", "info", "title",
                         info->title, "version", info->version, "paths", paths_of(info, routes),
                         "components", components);
    ST_ASSERT(document);
    json_object_set_new(
        document, "servers",
        json_pack("[{s:s,s:s}]", "url", "/", "description", "Where this document came from."));
    json_object_set_new(document, "tags", tags_of(info));
    json_object_set_new(document, "x-stint-codes", problem_codes());
    if (info->description)
        json_object_set_new(json_object_get(document, "info"), "description",
                            json_string(info->description));
    json_object_set_new(json_object_get(document, "info"), "contact",
                        json_pack("{s:s}", "name", "Whoever runs this service"));
    if (info->license)
        json_object_set_new(
            json_object_get(document, "info"), "license",
            json_pack("{s:s,s:s}", "name", info->license, "identifier", info->license));
    if (check_refs(document, defined, err) < 0)
        return -err->code;
    text = json_dumps(document, JSON_INDENT(1));
    ST_ASSERT(text);
    st_strbuf_add(out, text);
    free(text);
    return 0;
}
