/*
 * Reading what dcgmi says (agent/dcgm.h). It comes from a program of others, so nothing in it is trusted: names are tamed,
 * numbers of GPUs are those the node has, and all is bounded.
 */
#include "agent/dcgm.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/said.h"

#define TESTS_MAX   256
#define RESULTS_MAX 4096

typedef struct reader {
    st_dcgm *ret;
    int gpus, tests, results;
} reader;

static const char *text_of(const json_t *map, const char *key)
{
    const char *s = json_string_value(json_object_get(map, key));

    return s ? s : "";
}

static bool failed(const json_t *result)
{
    return strcasecmp(text_of(result, "status"), "fail") == 0;
}

static bool made(const json_t *result)
{
    const char *status = text_of(result, "status");

    return failed(result) || strcasecmp(status, "pass") == 0 || strcasecmp(status, "warn") == 0;
}

/* Deployment is how the node is set up: a driver's settings, libraries, permissions. It fails on every GPU for one missing
 * setting, and is no fault of theirs. */
static bool of_setting(const char *category)
{
    return strcasecmp(category, "deployment") == 0;
}

static void note_gpu(reader *r, int64_t gpu, const json_t *result, const char *test)
{
    st_dcgm *d = r->ret;

    if (gpu < 0 || gpu >= r->gpus)
        return;
    d->made[gpu] += made(result);
    if (failed(result) && d->failed[gpu]++ == 0)
        st_said_text(test, d->first[gpu], sizeof d->first[gpu]);
}

static void note_setting(reader *r, const json_t *result, const char *test)
{
    const json_t *warnings = json_object_get(result, "warnings");
    const json_t *one = json_is_array(warnings) ? json_array_get(warnings, 0) : NULL;
    const char *why = json_is_string(one) ? json_string_value(one) : text_of(one, "warning");
    char name[48], words[72];

    if (!failed(result) || r->ret->setting[0])
        return;
    st_said_text(test, name, sizeof name);
    st_said_text(why, words, sizeof words);
    snprintf(r->ret->setting, sizeof r->ret->setting, "%s%s%.60s", name, words[0] ? ": " : "",
             words);
}

/* "0,1,2" or a number. */
static void each_gpu(reader *r, const json_t *ids, const json_t *result, const char *test)
{
    const char *at = json_string_value(ids);

    if (json_is_integer(ids))
        note_gpu(r, json_integer_value(ids), result, test);
    for (int n = 0; at && *at && n < ST_DEVS_MAX; n++) {
        char *end;
        long id = strtol(at, &end, 10);

        if (end == at)
            return;
        note_gpu(r, id, result, test);
        at = *end == ',' ? end + 1 : "";
    }
}

static void read_result(reader *r, const json_t *result, const char *category, const char *test)
{
    const json_t *ids = json_object_get(result, "gpu_ids"),
                 *one = json_object_get(result, "gpu_id");
    const char *group = text_of(result, "entity_group");

    if (!json_is_object(result) || r->results++ >= RESULTS_MAX)
        return;
    if (of_setting(category))
        note_setting(r, result, test);
    else if (ids || one)
        each_gpu(r, ids ? ids : one, result, test);
    else if (strcasecmp(group, "gpu") == 0)
        each_gpu(r, json_object_get(result, "entity_id"), result, test);
    else
        note_setting(r, result, test); /* a CPU, a switch, or all of it */
}

static void read_tests(reader *r, const json_t *tests, const char *category)
{
    const json_t *test, *result;
    size_t i, k;

    json_array_foreach(tests, i, test)
    {
        if (r->tests++ >= TESTS_MAX)
            return;
        json_array_foreach(json_object_get(test, "results"), k, result)
            read_result(r, result, category, text_of(test, "name"));
    }
}

static void read_all(reader *r, const json_t *root)
{
    const json_t *category;
    size_t i;

    json_array_foreach(json_object_get(root, "test_categories"), i, category)
    {
        if (i >= TESTS_MAX)
            break;
        read_tests(r, json_object_get(category, "tests"), text_of(category, "category"));
    }
    read_tests(r, json_object_get(root, "tests"), "");
}

/* What stands before and behind the object is a warning of somebody. */
static json_t *parse(const char *text, size_t n)
{
    const char *begin = n > 0 ? memchr(text, '{', n) : NULL;

    return begin ? json_loadb(begin, (size_t)(text + n - begin), JSON_DISABLE_EOF_CHECK, NULL)
                 : NULL;
}

int st_dcgm_read(const char *text, size_t n, int gpus, st_dcgm *ret, st_err *err)
{
    st_dcgm got = {0};
    reader r = {.ret = &got, .gpus = ST_MIN(gpus, ST_DEVS_MAX)};
    json_t *doc = n <= ST_DCGM_MAX ? parse(text, n) : NULL;
    const json_t *root = json_object_get(doc, "DCGM Diagnostic");
    char why[80];
    int all = 0;

    root = root ? root : json_object_get(doc, "DCGM GPU Diagnostic");
    st_said_text(text_of(root, "runtime_error"), why, sizeof why);
    read_all(&r, root);
    st_said_text(text_of(json_object_get(doc, "metadata"), "version"), got.version,
                 sizeof got.version);
    json_decref(doc);
    for (int d = 0; d < r.gpus; d++)
        all += got.made[d];
    if (why[0])
        return st_fail(err, ST_EDOWN, "dcgmi could not test: %s", why);
    if (all == 0 && got.setting[0])
        return st_fail(err, ST_EDOWN, "dcgmi could not test: %s", got.setting);
    if (all == 0)
        return st_fail(err, ST_EDOWN, "%s",
                       n > ST_DCGM_MAX ? "dcgmi said more than can be read"
                                       : "dcgmi said nothing of a test of a GPU");
    *ret = got;
    return 0;
}
