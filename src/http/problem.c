/*
 * Problem documents (RFC 9457). Members in this order: type, title, status,
 * detail, code, instance, then what the caller adds.
 */
#include "http/problem.h"

#include <microhttpd.h>
#include <string.h>

#include "http/http.h"

typedef struct row {
    const char *code;
    int status;
    const char *title;
} row;

static const row rows[] = {
#define ROW(name, code, status, title, remedy) [name] = {code, status, title},
    ST_PROBLEM_TABLE(ROW)
#undef ROW
};

/* Titles of what base/err.h has. */
static const row err_rows[] = {
    {"invalid", 400, "The request is not valid"},
    {"parse", 400, "The document cannot be parsed"},
    {"exists", 409, "It exists already"},
    {"quota", 403, "The quota does not allow this"},
    {"limit", 403, "A limit does not allow this"},
    {"range", 400, "A number is out of range"},
    {"state", 409, "Its state does not allow this"},
    {"io", 500, "Reading or writing failed"},
    {"full", 507, "The disk is full"},
    {"internal", 500, "Internal error"},
    {"corrupt", 500, "Stored data is damaged"},
    {"version", 412, "It has changed meanwhile"},
    {"unavailable", 503, "Temporarily unavailable"},
    {"refused", 403, "A rule of the site does not allow this"},
    {"service_quota", 429, "The service quota is used up"},
    {"overcommitted", 409, "The fleet cannot cover the guarantee"},
    {"budget", 402, "The spend cap does not allow this"},
};

const char *st_problem_code(st_problem_id id)
{
    return rows[id].code;
}

int st_problem_status(st_problem_id id)
{
    return rows[id].status;
}

const char *st_problem_title(const char *code, int status)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].code, code) == 0)
            return rows[i].title;
    for (size_t i = 0; i < ST_ARRAY_LEN(err_rows); i++)
        if (strcmp(err_rows[i].code, code) == 0)
            return err_rows[i].title;
    return MHD_get_reason_phrase_for((unsigned int)status);
}

/* Text from a request may have got into a sentence; JSON wants valid UTF-8. */
static json_t *safe_string(const char *s)
{
    json_t *value = json_string(s);

    return value ? value : json_string("(not valid UTF-8)");
}

void st_problem_write(const st_problem *problem, const char *instance, st_strbuf *out)
{
    json_t *body = json_object();
    const char *title =
        problem->title ? problem->title : st_problem_title(problem->code, problem->status);
    char *text;

    ST_ASSERT(problem->status >= 400 && problem->status <= 599);
    json_object_set_new(body, "type", json_sprintf("/problems/%s", problem->code));
    json_object_set_new(body, "title", safe_string(title));
    json_object_set_new(body, "status", json_integer(problem->status));
    if (problem->detail)
        json_object_set_new(body, "detail", safe_string(problem->detail));
    json_object_set_new(body, "code", json_string(problem->code));
    if (instance)
        json_object_set_new(body, "instance", json_string(instance));
    if (problem->extra) {
        json_object_update_missing(body, problem->extra);
        json_decref(problem->extra);
    }
    text = json_dumps(body, JSON_COMPACT);
    ST_ASSERT(text);
    st_strbuf_add(out, text);
    free(text);
    json_decref(body);
}
