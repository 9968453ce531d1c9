/*
 * What a request must be before its handler is asked: well framed, not too
 * large, for a route that exists, with a query that the route knows, by
 * somebody who may, not too often, and with a body of the right type. The
 * order is from cheap to dear, and nothing about a route's data is told before
 * the caller is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "http/call.h"
#include "http/gzip.h"
#include "http/text.h"

/* The headers that matter here, gathered in one pass. */
typedef struct headers {
    const char *accept, *authorization, *length, *type, *encoding;
    int lengths, encodings, authorizations, hosts, odd_names;
    st_call *call;
} headers;

static void keep(st_call *call, st_keep which, const char *value)
{
    if (!call->kept[which])
        call->kept[which] = st_xstrdup(value);
}

/* A list may come in several headers. */
static void keep_list(st_call *call, st_keep which, const char *value)
{
    char *before = call->kept[which];
    st_strbuf all = {0};

    if (before)
        st_strbuf_addf(&all, "%s, ", before);
    st_strbuf_add(&all, value);
    call->kept[which] = st_strbuf_take(&all);
    free(before);
}

static bool is_header(const char *key, const char *name)
{
    return strcasecmp(key, name) == 0;
}

static enum MHD_Result see_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    headers *h = cls;

    (void)kind;
    h->odd_names += strpbrk(key, " \t") != NULL;
    if (!value)
        return MHD_YES;
    switch (key[0] | 0x20) {
    case 'a':
        if (is_header(key, "Accept")) {
            h->accept = value;
        } else if (is_header(key, "Authorization")) {
            h->authorization = value;
            h->authorizations++;
        } else if (is_header(key, "Accept-Encoding")) {
            h->call->takes_gzip = st_gzip_taken(value);
        }
        break;
    case 'c':
        if (is_header(key, "Content-Length")) {
            h->length = value;
            h->lengths++;
        } else if (is_header(key, "Content-Type")) {
            h->type = value;
        }
        break;
    case 'h':
        h->hosts += is_header(key, "Host");
        break;
    case 'i':
        if (is_header(key, "If-Match"))
            keep_list(h->call, ST_KEEP_IF_MATCH, value);
        else if (is_header(key, "If-None-Match"))
            keep_list(h->call, ST_KEEP_IF_NONE_MATCH, value);
        else if (is_header(key, "Idempotency-Key"))
            keep(h->call, ST_KEEP_IDEMPOTENCY, value);
        break;
    case 'l':
        if (is_header(key, "Last-Event-ID"))
            keep(h->call, ST_KEEP_LAST_EVENT, value);
        break;
    case 't':
        if (is_header(key, "Transfer-Encoding")) {
            h->encoding = value;
            h->encodings++;
        }
        break;
    default:
        break;
    }
    return MHD_YES;
}

/* Line and framing. Two parties that frame a request differently are the way to smuggle one. */
static bool check_frame(st_call *call, const headers *h, const char *version)
{
    const st_http_options *opt = &call->server->opt;
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(call->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *problem = NULL;

    if (call->target_too_long) {
        st_call_refuse(call, ST_P_TARGET, ST_REJECT_SIZE, "path and query have at most %d bytes",
                       opt->target_bytes);
        return false;
    }
    if (size && size->header_size > (size_t)opt->header_bytes) {
        st_call_refuse(call, ST_P_HEADERS, ST_REJECT_SIZE,
                       "request line and headers have at most %d bytes, these have %zu",
                       opt->header_bytes, size->header_size);
        return false;
    }
    if (call->target_end + 1 != version)
        problem = "there is a NUL byte in the request line, or no version";
    else if (strchr(call->target, ' '))
        problem = "there is a space in the path or query: send it as %20";
    else if (h->hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        problem = "there is no Host, which HTTP/1.1 wants";
    else if (h->odd_names > 0)
        problem = "there is a blank in the name of a header";
    else if (h->encoding && strcasecmp(h->encoding, "chunked") != 0)
        problem = "the only Transfer-Encoding is chunked";
    else if (h->lengths + h->encodings > 1)
        problem = "there is more than one Content-Length or Transfer-Encoding";
    else if (h->authorizations > 1 || h->hosts > 1)
        problem = "there is more than one Authorization or Host";
    if (!problem)
        return true;
    st_call_refuse(call, ST_P_BAD_REQUEST, ST_REJECT_MALFORMED, "%s", problem);
    return false;
}

static bool find_route(st_call *call)
{
    char quoted[ST_QUOTE_MAX];
    char *query = strchr(call->target, '?');

    if (query)
        *query++ = '\0';
    switch (st_router_find(call->server->router, call->method, call->target, &call->match)) {
    case ST_MATCH_FOUND:
        break;
    case ST_MATCH_OPTIONS:
        st_call_set_header(call, "Allow", call->match.allow);
        st_call_reply_empty(call, 204);
        return false;
    case ST_MATCH_NO_METHOD:
        st_call_set_header(call, "Allow", call->match.allow);
        st_call_refuse(call, ST_P_METHOD, ST_REJECT_COUNT, "%s takes %s, not %s",
                       st_quote(quoted, call->path), call->match.allow, call->method);
        return false;
    case ST_MATCH_NO_PATH:
        st_call_refuse(call, ST_P_NOT_FOUND, ST_REJECT_COUNT, "there is nothing at %s",
                       st_quote(quoted, call->path));
        return false;
    case ST_MATCH_BAD:
        st_call_refuse(call, ST_P_BAD_REQUEST, ST_REJECT_MALFORMED,
                       "%s is no path: it must begin with / and be UTF-8 without control "
                       "characters, escaped as %%XX",
                       st_quote(quoted, call->path));
        return false;
    }
    if (query && (call->match.route->flags & ST_ROUTE_TAIL)) {
        call->raw_query = st_xstrdup(query);
    } else if (query) {
        st_err err;

        if (st_query_parse(call->match.route->query, query, &call->query, &err) < 0) {
            st_call_fail(call, &err);
            return false;
        }
    }
    return true;
}

static bool pass_limits(st_call *call, uint64_t key, int rate_per_s, int running_max)
{
    int64_t wait_ms = 0;
    char text[32];

    switch (st_limits_enter(call->server->limits, key, rate_per_s, running_max, st_now_ms(),
                            &wait_ms)) {
    case ST_LIMIT_PASS:
        call->entered = true;
        call->limit_key = key;
        return true;
    case ST_LIMIT_RATE:
        snprintf(text, sizeof(text), "%lld", (long long)(wait_ms + 999) / 1000);
        st_call_set_header(call, "Retry-After", text);
        st_call_refuse(call, ST_P_RATE, ST_REJECT_RATE,
                       "more than %d requests per second; try again in %s s", rate_per_s, text);
        return false;
    case ST_LIMIT_RUNNING:
        st_call_set_header(call, "Retry-After", "1");
        st_call_refuse(call, ST_P_RUNNING, ST_REJECT_RUNNING,
                       "%d requests of this caller are running already", running_max);
        return false;
    }
    return false;
}

static bool admitted(st_call *call)
{
    const st_http_options *opt = &call->server->opt;
    int64_t wait_ms = 0;
    st_err err = {0};
    char text[32];

    if (!opt->admit || opt->admit(opt->ctx, call, &wait_ms, &err) == 0)
        return true;
    snprintf(text, sizeof(text), "%lld", (long long)ST_MAX(1, (wait_ms + 999) / 1000));
    st_call_set_header(call, "Retry-After", text);
    st_stats_reject(call->server->stats, ST_REJECT_QUOTA);
    st_call_fail(call, &err);
    return false;
}

/* What an operation does, in words: createAccount is "create accounts". */
static void in_words(const char *id, st_strbuf *out)
{
    static const char *const things[] = {"create", "change", "remove",   "set",   "revoke",
                                         "cancel", "check",  "register", "submit"};
    size_t verb = strcspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), n = strlen(id);
    bool many = false;

    if (verb == 3 && strncmp(id, "get", 3) == 0)
        st_strbuf_add(out, "read");
    else if (verb == 3 && strncmp(id, "put", 3) == 0)
        st_strbuf_add(out, "set");
    else
        st_strbuf_addf(out, "%.*s", (int)verb, id);
    for (size_t i = 0; i < ST_ARRAY_LEN(things); i++)
        many |= strcmp(st_strbuf_str(out), things[i]) == 0;
    for (size_t i = verb; i < n; i++) {
        bool upper = id[i] >= 'A' && id[i] <= 'Z';

        if (upper)
            st_strbuf_addc(out, ' ');
        st_strbuf_addc(out, (char)(upper ? id[i] - 'A' + 'a' : id[i]));
    }
    if (many && verb < n && id[n - 1] != 's')
        st_strbuf_addc(out, 's');
}

static void refuse_role(st_call *call)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf what = {0};
    const st_route *route = call->match.route;
    const char *role = call->principal.role;

    in_words(route->id, &what);
    st_call_refuse(call, ST_P_FORBIDDEN, ST_REJECT_ROLE, "your role%s%s%s cannot %s (%s %s)",
                   role ? " (" : "", role ? role : "", role ? ")" : "", st_strbuf_str(&what),
                   route->method, route->pattern);
}

/* Who calls, whether the role may, and how often. */
static bool authorise(st_call *call, const headers *h)
{
    const st_http_options *opt = &call->server->opt;
    const st_route *route = call->match.route;
    const char *bearer = h->authorization ? st_text_bearer(h->authorization) : NULL;
    int rate = opt->rate_per_s, running = opt->running_per_principal;
    st_err err = {0};

    if (route->flags & ST_ROUTE_NO_RATE)
        rate = running = -1;
    if (route->flags & ST_ROUTE_NO_AUTH)
        return pass_limits(call, call->conn->key, opt->stranger_rate_per_s, running);
    ST_ASSERT(opt->authenticate);
    if (opt->authenticate(opt->ctx, call, bearer, &call->principal, &err) < 0) {
        /* Guessing is counted by address. */
        if (!pass_limits(call, call->conn->key, opt->stranger_rate_per_s, -1))
            return false;
        st_call_set_header(call, "WWW-Authenticate", "Bearer");
        st_call_refuse(call, ST_P_UNAUTHENTICATED, ST_REJECT_AUTH, "%s", err.msg);
        return false;
    }
    call->has_principal = true;
    if (!st_conn_claim(call->conn, call))
        return false;
    if (call->principal.rate_per_s != 0 && rate >= 0)
        rate = call->principal.rate_per_s;
    if (!pass_limits(call, call->principal.key ? call->principal.key : call->conn->key, rate,
                     running))
        return false;
    if (route->roles & call->principal.roles)
        return (route->flags & ST_ROUTE_NO_RATE) || admitted(call);
    refuse_role(call);
    return false;
}

static const char *produced_type(const st_route *route)
{
    if (route->flags & ST_ROUTE_STREAM)
        return "text/event-stream";
    if (route->response && strchr(route->response, '/'))
        return route->response;
    return route->response ? "application/json" : NULL;
}

static bool check_types(st_call *call, const headers *h, bool has_body)
{
    const st_route *route = call->match.route;
    const char *type = produced_type(route);
    char quoted[ST_QUOTE_MAX];

    if (h->accept && type && !st_text_accepts(h->accept, type)) {
        st_call_refuse(call, ST_P_ACCEPT, ST_REJECT_COUNT, "the answer is %s, Accept is %s", type,
                       st_quote(quoted, h->accept));
        return false;
    }
    if (!has_body || (route->flags & ST_ROUTE_ANY_BODY))
        return true;
    if (!route->request) {
        st_call_refuse(call, ST_P_BAD_REQUEST, ST_REJECT_MALFORMED, "no body is taken here");
        return false;
    }
    call->is_yaml =
        h->type && (route->flags & ST_ROUTE_YAML) &&
        (st_text_is_type(h->type, "application/yaml") ||
         st_text_is_type(h->type, "application/x-yaml") || st_text_is_type(h->type, "text/yaml"));
    if (call->is_yaml || (h->type && st_text_is_json(h->type)))
        return true;
    st_call_refuse(call, ST_P_TYPE, ST_REJECT_MALFORMED,
                   "the body must be application/json%s; Content-Type is %s",
                   route->flags & ST_ROUTE_YAML ? " or application/yaml" : "",
                   h->type ? st_quote(quoted, h->type) : "not given");
    return false;
}

static bool check_size(st_call *call, const headers *h)
{
    const st_http_options *opt = &call->server->opt;
    int64_t length = 0;

    if (call->match.route->flags & ST_ROUTE_FLOW) {
        call->body_length = -1;
        if (!h->length || st_parse_i64(h->length, 0, INT64_MAX, &call->body_length, NULL) == 0)
            return true;
        st_call_refuse(call, ST_P_BAD_REQUEST, ST_REJECT_MALFORMED, "Content-Length is no number");
        return false;
    }
    call->body_max =
        (size_t)(call->match.route->flags & ST_ROUTE_BIG ? opt->big_body_max : opt->body_max);
    if (h->length && (st_parse_i64(h->length, 0, INT64_MAX, &length, NULL) < 0 ||
                      (uint64_t)length > call->body_max)) {
        st_call_refuse(call, ST_P_TOO_LARGE, ST_REJECT_SIZE,
                       "the body has at most %zu bytes here, this one has %s", call->body_max,
                       h->length);
        return false;
    }
    return true;
}

/* A condition that nobody looks at would be taken for one that was met. "*" asks only that it is there. */
static bool check_condition(st_call *call)
{
    const char *must = call->kept[ST_KEEP_IF_MATCH];
    bool reads = strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;
    int flags = call->match.route->flags;

    if ((flags & ST_ROUTE_IF_MATCH) && !must) {
        st_call_refuse(call, ST_P_IF_MATCH, ST_REJECT_COUNT,
                       "send If-Match with the ETag of what you read, or * for whatever is there");
        return false;
    }
    if (reads || (flags & (ST_ROUTE_IF_MATCH | ST_ROUTE_CONDITION)) ||
        ((!must || strcmp(must, "*") == 0) && !call->kept[ST_KEEP_IF_NONE_MATCH]))
        return true;
    st_call_refuse(call, ST_P_BAD_REQUEST, ST_REJECT_COUNT,
                   "this operation has no condition: leave out If-Match and If-None-Match");
    return false;
}

bool st_request_check(st_call *call, const char *version, bool *ret_has_body)
{
    headers h = {.call = call};
    bool has_body;

    MHD_get_connection_values(call->mhd, MHD_HEADER_KIND, see_header, &h);
    has_body = h.encoding || (h.length && strcmp(h.length, "0") != 0);
    *ret_has_body = has_body;
    if (atomic_load_explicit(&call->server->stopping, memory_order_relaxed)) {
        st_call_refuse(call, ST_P_STOPPING, ST_REJECT_STOPPING, "this server takes no more calls");
        return false;
    }
    if (!check_frame(call, &h, version) || !find_route(call) || !authorise(call, &h) ||
        !check_types(call, &h, has_body) || !check_size(call, &h))
        return false;
    return check_condition(call);
}
