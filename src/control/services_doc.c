/*
 * A service as it is written: the table of its keys, with defaults and ranges (control/services.h).
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"
#include "control/services.h"
#include "spec/fields.h"

#define DOC_NAME "service.json"
#define DAY_MS   INT64_C(86400000)

#define TEXT(k, m)                                                           \
    {                                                                        \
        .key = k, .kind = ST_F_LINE, .offset = offsetof(st_service_said, m), \
    }
#define NUMBER(k, m, low, high)                                                          \
    {                                                                                    \
        .key = k, .kind = ST_F_INT, .offset = offsetof(st_service_said, m), .lo = (low), \
        .hi = (high),                                                                    \
    }
#define TIME(k, m)                                                               \
    {                                                                            \
        .key = k, .kind = ST_F_DURATION, .offset = offsetof(st_service_said, m), \
    }
#define WORD(k, m, list)                                                                    \
    {                                                                                       \
        .key = k, .kind = ST_F_WORD, .offset = offsetof(st_service_said, m), .words = list, \
    }

static const st_field fields[] = {
    TEXT("name", name),
    TEXT("account", account),
    TEXT("about", about),
    {.key = "job", .kind = ST_F_NODE, .offset = offsetof(st_service_said, job)},
    NUMBER("replicas", replicas, 1, ST_SVC_REPLICAS_MAX),
    NUMBER("min", min, 1, ST_SVC_REPLICAS_MAX),
    NUMBER("max", max, 1, ST_SVC_REPLICAS_MAX),
    NUMBER("port", port, 1, 65535),
    WORD("health", health, st_svc_health_words),
    TEXT("path", path),
    TIME("interval", interval_ms),
    TIME("timeout", timeout_ms),
    NUMBER("failures", failures, 1, 100),
    TIME("start", start_ms),
    NUMBER("surge", surge, 0, ST_SVC_REPLICAS_MAX),
    NUMBER("unavailable", unavailable, 0, ST_SVC_REPLICAS_MAX),
    TIME("wait", wait_ms),
    TIME("wait_max", wait_max_ms),
    TIME("drain", drain_ms),
    WORD("scale", scale, st_svc_scale_words),
    {.key = "target",
     .kind = ST_F_I64,
     .offset = offsetof(st_service_said, target),
     .lo = 1,
     .hi = 1000000},
    TIME("up", up_ms),
    TIME("down", down_ms),
    TIME("idle", idle_ms),
    {0},
};

/* A path that can stand in a request line as it is. */
static bool path_ok(const char *path)
{
    if (path[0] != '/' || strlen(path) > ST_SERVICE_PATH_MAX)
        return false;
    for (const unsigned char *c = (const unsigned char *)path; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '#')
            return false;
    return true;
}

static int check_time(const st_doc *doc, const st_doc_node *map, const char *key, int64_t ms,
                      int64_t lo, int64_t hi, const char *range, st_err *err)
{
    if (ms >= lo && ms <= hi)
        return 0;
    return st_doc_fail(doc, st_doc_get(map, key), err, ST_ERANGE, "%s is %s", key, range);
}

static int check_times(const st_doc *doc, const st_doc_node *map, const st_service_said *s,
                       st_err *err)
{
    int r = check_time(doc, map, "interval", s->interval_ms, 1000, DAY_MS, "1s to 1d", err);

    if (r == 0)
        r = check_time(doc, map, "timeout", s->timeout_ms, 100, 60000, "100ms to 60s", err);
    if (r == 0)
        r = check_time(doc, map, "start", s->start_ms, 1000, DAY_MS, "1s to 1d", err);
    if (r == 0)
        r = check_time(doc, map, "wait", s->wait_ms, 1000, DAY_MS, "1s to 1d", err);
    if (r == 0)
        r = check_time(doc, map, "wait_max", s->wait_max_ms, s->wait_ms, DAY_MS,
                       "from wait up to 1d", err);
    if (r == 0)
        r = check_time(doc, map, "drain", s->drain_ms, 0, DAY_MS, "0s to 1d", err);
    if (r == 0)
        r = check_time(doc, map, "up", s->up_ms, 0, DAY_MS, "0s to 1d", err);
    if (r == 0)
        r = check_time(doc, map, "down", s->down_ms, 0, DAY_MS, "0s to 1d", err);
    if (r == 0 && s->idle_ms != 0)
        r = check_time(doc, map, "idle", s->idle_ms, 1000, 30 * DAY_MS,
                       "1s to 30d, or 0s: it never ends for being idle", err);
    return r;
}

static int check(const st_doc *doc, const st_doc_node *map, st_service_said *s, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (!s->name || !st_plain_name(s->name, ST_SERVICE_NAME_MAX))
        return st_doc_fail(
            doc, st_doc_get(map, "name"), err, ST_EINVAL,
            "%s cannot be the name of a service: 1 to %d letters, digits, ., - and _",
            s->name ? st_quote(q, s->name) : "nothing", ST_SERVICE_NAME_MAX);
    if (s->port == 0)
        return st_doc_fail(
            doc, map, err, ST_EINVAL,
            "a service needs a port: the one its program listens on in the container");
    if (!path_ok(s->path))
        return st_doc_fail(
            doc, st_doc_get(map, "path"), err, ST_EINVAL,
            "%s cannot be a path: it begins with / and has at most %d bytes of ASCII "
            "without blanks or #",
            st_quote(q, s->path), ST_SERVICE_PATH_MAX);
    if (s->surge == 0 && s->unavailable == 0)
        return st_doc_fail(
            doc, st_doc_get(map, "surge"), err, ST_EINVAL,
            "surge and unavailable are both 0, so no replica could ever be replaced: "
            "make one of them 1");
    if (s->scale == ST_SVC_SCALE_NONE && (s->min > 0 || s->max > 0))
        return st_doc_fail(doc, st_doc_get(map, s->min > 0 ? "min" : "max"), err, ST_EINVAL,
                           "min and max are for a service that scales: say by what "
                           "(scale: requests, queue or latency)");
    if (s->scale != ST_SVC_SCALE_NONE && s->target == 0)
        return st_doc_fail(doc, st_doc_get(map, "scale"), err, ST_EINVAL,
                           "a service that scales by %s needs a target: %s",
                           st_svc_scale_words[s->scale],
                           s->scale == ST_SVC_SCALE_LATENCY ? "milliseconds"
                                                            : "requests or queue for each replica");
    s->min = s->min > 0 ? s->min : 1;
    s->max = s->max > 0 ? s->max : ST_MAX(s->replicas, s->min);
    if (s->min > s->max)
        return st_doc_fail(doc, st_doc_get(map, "min"), err, ST_ERANGE, "min is %d and max is %d",
                           s->min, s->max);
    return check_times(doc, map, s, err);
}

int st_service_read(const st_doc *doc, const st_doc_node *map, st_service_said *ret, st_err *err)
{
    st_service_said s = {.path = "/",
                         .replicas = 1,
                         .health = ST_SVC_HEALTH_TCP,
                         .failures = 3,
                         .surge = 1,
                         .interval_ms = 10000,
                         .timeout_ms = 5000,
                         .start_ms = 600000,
                         .wait_ms = 5000,
                         .wait_max_ms = 300000,
                         .drain_ms = 30000,
                         .up_ms = 30000,
                         .down_ms = 300000};
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r == 0)
        r = st_fields_read(doc, map, fields, &s, err);
    if (r == 0)
        r = check(doc, map, &s, err);
    if (r == 0)
        *ret = s;
    return r;
}

int st_service_read_json(const json_t *wanted, st_doc **ret_doc, st_service_said *ret, st_err *err)
{
    ST_CLEANUP(st_freep) char *text = json_dumps(wanted, JSON_COMPACT);
    st_doc *doc = NULL;
    int r = text ? st_doc_parse(DOC_NAME, text, strlen(text), &doc, err)
                 : st_fail(err, ST_EPARSE, "a service is described by an object");

    if (r == 0)
        r = st_service_read(doc, st_doc_root(doc), ret, err);
    if (r < 0)
        st_doc_free(doc);
    else
        *ret_doc = doc;
    return r;
}

void st_service_spec(const st_service_said *s, st_svc_spec *ret)
{
    *ret = (st_svc_spec){.replicas = s->replicas,
                         .min = s->min,
                         .max = s->max,
                         .surge = s->surge,
                         .unavailable = s->unavailable,
                         .wait_ms = s->wait_ms,
                         .wait_max_ms = s->wait_max_ms,
                         .start_ms = s->start_ms,
                         .drain_ms = s->drain_ms,
                         .scale = (st_svc_scale)s->scale,
                         .target = s->target,
                         .up_ms = s->up_ms,
                         .down_ms = s->down_ms,
                         .idle_ms = s->idle_ms};
}
