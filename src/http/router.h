/*
 * Finds the route of a method and path. Compiled once from the table into a
 * tree of segments; afterwards it is only read, from any thread.
 */
#ifndef ST_HTTP_ROUTER_H
#define ST_HTTP_ROUTER_H

#include "http/http.h"

typedef struct st_router st_router;

#define ST_ROUTER_DEPTH_MAX 16

typedef enum {
    ST_MATCH_FOUND,
    ST_MATCH_NO_PATH,   /* 404 */
    ST_MATCH_NO_METHOD, /* 405; allow is set */
    ST_MATCH_OPTIONS,   /* the path is known and OPTIONS was asked; allow is set */
    ST_MATCH_BAD,       /* 400: not a path, or not decodable */
} st_match_result;

typedef struct st_match {
    const st_route *route;
    int index; /* of the route in the table */
    int nparam;
    size_t tail; /* of a route with a tail: where that begins in the path as it was sent */
    const char *param[ST_ROUTE_PARAMS_MAX]; /* decoded, in the path's memory */
    const char *allow;
} st_match;

int st_router_new(const st_route *routes, st_router **ret, st_err *err);
void st_router_free(st_router *router);
ST_DEFINE_FREEP(st_router, st_router_free)

int st_router_count(const st_router *router);

/* The path, without the query, is taken apart and decoded in place. HEAD finds what GET has. */
st_match_result st_router_find(const st_router *router, const char *method, char *path,
                               st_match *ret);

/* Which parameter of the route's pattern has the name; -1: none. */
int st_router_param(const st_route *route, const char *name);

#endif
