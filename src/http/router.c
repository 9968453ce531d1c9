/*
 * The tree of routes. A node is one segment of a path: its children are
 * literals, sorted by text, and at most one parameter. A literal wins against
 * a parameter, and the parameter is tried when the literal leads nowhere.
 *
 * Routes with a tail are few and stand in a list: what follows their pattern is not looked at.
 *
 * Invariants: segments are compared after decoding, so "%6Aobs" is "jobs" and
 * "a%2Fb" is one segment; a parameter is never empty; matching visits at most
 * two children per node and ST_ROUTER_DEPTH_MAX levels.
 */
#include "http/router.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "http/text.h"

typedef struct node node;

struct node {
    char *text; /* NULL for a parameter */
    ST_VEC(node *) literals;
    node *param;
    ST_VEC(const st_route *) routes; /* those that end here */
    char *allow;
};

struct st_router {
    const st_route *routes;
    int count;
    node *root;
    ST_VEC(const st_route *) tails; /* those with a tail: not in the tree */
};

static void node_free(node *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->literals.n; i++)
        node_free(n->literals.v[i]);
    node_free(n->param);
    st_vec_free(&n->literals);
    st_vec_free(&n->routes);
    free(n->text);
    free(n->allow);
    free(n);
}

void st_router_free(st_router *router)
{
    if (!router)
        return;
    node_free(router->root);
    st_vec_free(&router->tails);
    free(router);
}

/* The literal child, or NULL; *ret_at is where it is or would be. */
static node *find_literal(const node *n, const char *text, size_t *ret_at)
{
    size_t low = 0, high = n->literals.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(n->literals.v[middle]->text, text);

        if (order == 0) {
            *ret_at = middle;
            return n->literals.v[middle];
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_at = low;
    return NULL;
}

static node *child_for(node *n, const char *segment)
{
    node *child;
    size_t at;

    if (segment[0] == '{') {
        if (!n->param)
            n->param = st_xcalloc(1, sizeof(node));
        return n->param;
    }
    child = find_literal(n, segment, &at);
    if (!child) {
        child = st_xcalloc(1, sizeof(node));
        child->text = st_xstrdup(segment);
        st_vec_insert(&n->literals, at, child);
    }
    return child;
}

static int check_segment(const st_route *route, const char *segment, int *params, st_err *err)
{
    size_t n = strlen(segment);

    if (n == 0)
        return st_fail(err, ST_EINVAL, "route %s: empty segment in %s", route->id, route->pattern);
    if (segment[0] != '{' && !strpbrk(segment, "{}%?#"))
        return 0;
    if (segment[0] != '{' || segment[n - 1] != '}' || n < 3 || strpbrk(segment + 1, "{%?#") ||
        strchr(segment, '}') != segment + n - 1)
        return st_fail(err, ST_EINVAL, "route %s: a parameter in %s is not {name} alone between /",
                       route->id, route->pattern);
    if (++*params > ST_ROUTE_PARAMS_MAX)
        return st_fail(err, ST_EINVAL, "route %s: more than %d parameters in %s", route->id,
                       ST_ROUTE_PARAMS_MAX, route->pattern);
    return 0;
}

static int add_route(st_router *router, const st_route *route, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = NULL;
    node *n = router->root;
    int params = 0, depth = 0;

    if (!route->id || !route->handler)
        return st_fail(err, ST_EINVAL, "route %s %s: lacks an id or a handler", route->method,
                       route->pattern ? route->pattern : "?");
    if (!route->pattern || route->pattern[0] != '/')
        return st_fail(err, ST_EINVAL, "route %s: its pattern must begin with /", route->id);
    if (strcmp(route->method, "HEAD") == 0 || strcmp(route->method, "OPTIONS") == 0)
        return st_fail(err, ST_EINVAL, "route %s: %s is derived, not listed", route->id,
                       route->method);
    if (route->flags & ST_ROUTE_TAIL) {
        st_vec_push(&router->tails, route);
        return 0;
    }
    copy = st_xstrdup(route->pattern + 1);
    for (char *at = copy; at && (*at || depth > 0);) {
        char *segment = strsep(&at, "/");

        if (check_segment(route, segment, &params, err) < 0)
            return -err->code;
        if (++depth > ST_ROUTER_DEPTH_MAX)
            return st_fail(err, ST_EINVAL, "route %s: more than %d segments", route->id,
                           ST_ROUTER_DEPTH_MAX);
        n = child_for(n, segment);
    }
    for (size_t i = 0; i < n->routes.n; i++)
        if (strcmp(n->routes.v[i]->method, route->method) == 0)
            return st_fail(err, ST_EEXIST, "routes %s and %s are both %s %s", n->routes.v[i]->id,
                           route->id, route->method, route->pattern);
    st_vec_push(&n->routes, route);
    return 0;
}

static void write_allow(node *n)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf allow = {0};

    for (size_t i = 0; i < n->literals.n; i++)
        write_allow(n->literals.v[i]);
    if (n->param)
        write_allow(n->param);
    for (size_t i = 0; i < n->routes.n; i++) {
        const char *method = n->routes.v[i]->method;

        st_strbuf_addf(&allow, "%s, %s", method, strcmp(method, "GET") == 0 ? "HEAD, " : "");
    }
    st_strbuf_add(&allow, "OPTIONS");
    n->allow = st_strbuf_take(&allow);
}

int st_router_new(const st_route *routes, st_router **ret, st_err *err)
{
    ST_CLEANUP(st_router_freep) st_router *router = st_xcalloc(1, sizeof(*router));
    st_err local;

    err = err ? err : &local;
    router->routes = routes;
    router->root = st_xcalloc(1, sizeof(node));
    for (const st_route *route = routes; route->method; route++) {
        if (add_route(router, route, err) < 0)
            return -err->code;
        for (const st_route *other = routes; other < route; other++)
            if (strcmp(other->id, route->id) == 0)
                return st_fail(err, ST_EEXIST, "two routes have the id %s", route->id);
        router->count++;
    }
    write_allow(router->root);
    *ret = ST_TAKE(router);
    return 0;
}

int st_router_count(const st_router *router)
{
    return router->count;
}

typedef struct walk {
    char *segment[ST_ROUTER_DEPTH_MAX];
    int nsegment;
    const char *param[ST_ROUTE_PARAMS_MAX];
    int nparam;
} walk;

/* The node of the path's segments from `at` on, one that routes end at. */
static const node *descend(const node *n, walk *w, int at)
{
    const node *found;
    size_t index;

    if (at == w->nsegment)
        return n->routes.n > 0 ? n : NULL;
    found = find_literal(n, w->segment[at], &index);
    if (found && (found = descend(found, w, at + 1)))
        return found;
    if (!n->param || w->nparam == ST_ROUTE_PARAMS_MAX)
        return NULL;
    w->param[w->nparam++] = w->segment[at];
    found = descend(n->param, w, at + 1);
    if (!found)
        w->nparam--;
    return found;
}

/* Splits before decoding, so that an escaped slash stays inside its segment. */
static st_match_result split(char *path, walk *w)
{
    if (*path++ != '/')
        return ST_MATCH_BAD;
    for (char *at = path; at && (*at || w->nsegment > 0);) {
        char *segment = strsep(&at, "/");

        if (!st_text_decode(segment, false))
            return ST_MATCH_BAD;
        if (!*segment || w->nsegment == ST_ROUTER_DEPTH_MAX)
            return ST_MATCH_NO_PATH;
        w->segment[w->nsegment++] = segment;
    }
    return ST_MATCH_FOUND;
}

/* Whether the path begins with the pattern. Parameters are not cut off yet: *param has where they begin, *len how long they are. */
static bool begins_with(const char *pattern, const char *path, walk *w, size_t *len,
                        size_t *ret_end)
{
    const char *at = path;

    while (*pattern) {
        size_t n = strcspn(pattern + 1, "/"), m = *at == '/' ? strcspn(at + 1, "/") : 0;

        if (m == 0)
            return false;
        if (pattern[1] == '{') {
            len[w->nparam] = m;
            w->param[w->nparam++] = at + 1;
        } else if (n != m || memcmp(pattern + 1, at + 1, n) != 0) {
            return false;
        }
        pattern += n + 1;
        at += m + 1;
    }
    *ret_end = (size_t)(at - path);
    return true;
}

static const char tail_allow[] = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/* Cuts the parameters off in place, and decodes them. */
static st_match_result take_tail(const st_router *router, const st_route *route, char *path,
                                 const walk *w, const size_t *len, size_t end, st_match *ret)
{
    *ret = (st_match){
        .route = route, .index = (int)(route - router->routes), .nparam = w->nparam, .tail = end};
    for (int i = 0; i < w->nparam; i++) {
        char *param = path + (w->param[i] - path);

        param[len[i]] = '\0';
        if (!st_text_decode(param, false))
            return ST_MATCH_BAD;
        ret->param[i] = param;
    }
    return ST_MATCH_FOUND;
}

/* NO_PATH: it is for none with a tail. */
static st_match_result find_tail(const st_router *router, const char *method, char *path,
                                 st_match *ret)
{
    st_match_result result = ST_MATCH_NO_PATH;

    for (size_t i = 0; i < router->tails.n; i++) {
        const st_route *route = router->tails.v[i];
        size_t len[ST_ROUTER_DEPTH_MAX], end;
        walk w = {.nsegment = 0};

        if (!begins_with(route->pattern, path, &w, len, &end))
            continue;
        if (strcmp(route->method, strcmp(method, "HEAD") == 0 ? "GET" : method) == 0)
            return take_tail(router, route, path, &w, len, end, ret);
        ret->allow = tail_allow;
        result = strcmp(method, "OPTIONS") == 0 ? ST_MATCH_OPTIONS : ST_MATCH_NO_METHOD;
    }
    return result;
}

st_match_result st_router_find(const st_router *router, const char *method, char *path,
                               st_match *ret)
{
    walk w = {.nsegment = 0};
    st_match_result result;
    const node *n;

    *ret = (st_match){.index = -1};
    result = find_tail(router, method, path, ret);
    if (result != ST_MATCH_NO_PATH)
        return result;
    result = split(path, &w);
    if (result != ST_MATCH_FOUND)
        return result;
    n = descend(router->root, &w, 0);
    if (!n)
        return ST_MATCH_NO_PATH;
    ret->allow = n->allow;
    if (strcmp(method, "OPTIONS") == 0)
        return ST_MATCH_OPTIONS;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t i = 0; i < n->routes.n; i++) {
        if (strcmp(n->routes.v[i]->method, method) != 0)
            continue;
        ret->route = n->routes.v[i];
        ret->index = (int)(ret->route - router->routes);
        ret->nparam = w.nparam;
        memcpy(ret->param, w.param, sizeof(w.param));
        return ST_MATCH_FOUND;
    }
    return ST_MATCH_NO_METHOD;
}

int st_router_param(const st_route *route, const char *name)
{
    size_t n = strlen(name);
    int index = 0;

    for (const char *at = route->pattern; (at = strchr(at, '{')); at++, index++)
        if (strncmp(at + 1, name, n) == 0 && at[1 + n] == '}')
            return index;
    return -1;
}
