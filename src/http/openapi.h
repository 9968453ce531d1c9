/*
 * The OpenAPI 3.1 document, written from the same table of routes that the
 * server runs on, so that it is complete and true by construction.
 */
#ifndef ST_HTTP_OPENAPI_H
#define ST_HTTP_OPENAPI_H

#include "http/http.h"

/* A schema that routes name in `request` and `response`. A table of these ends with a row without
 * a name. Schemas refer to each other as "#/components/schemas/NAME". A response whose schema is
 * named "text/…" or "application/…" is content of that type without a schema. */
typedef struct st_schema {
    const char *name;
    const char *json; /* a JSON Schema, e.g. {"type":"object", …} */
} st_schema;

/* A name and what it stands for; a table of these ends with a row without a name. */
typedef struct st_openapi_word {
    const char *name;
    const char *about;
} st_openapi_word;

typedef struct st_openapi_info {
    const char *title;
    const char *version;
    const char *description; /* may be NULL */
    const char *license;     /* an SPDX identifier; may be NULL */
    /* The names of the roles' bits, lowest first, NULL at the end. */
    const char *const *roles;
    /* What the tags are about (the segment behind the version: "jobs"), in the order of the document, and what the
     * parts of paths stand for ("{name}", or "jobs/{id}" for one noun alone). Where a table is given, a tag or a part
     * that is not in it fails; NULL: nothing is told. */
    const st_openapi_word *tags;
    const st_openapi_word *parts;
} st_openapi_info;

/* Appends the document, with the schemas of all `tables`; NULL ends them. Fails on a schema that is no JSON object, is named twice, is named by a
 * route or another schema but is not there; and on a tag or part of a path that info's table lacks. "Problem" is defined here. */
int st_openapi_write(const st_openapi_info *info, const st_route *routes,
                     const st_schema *const *tables, st_strbuf *out, st_err *err);

#endif
