/*
 * The documents of an OCI image layout: index.json, manifests. What they say is only read here; run/fetch.h
 * opens the blobs they name and compares them with it. Private to run.
 */
#ifndef ST_RUN_LAYOUT_H
#define ST_RUN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ST_LAYERS_MAX     128
#define ST_LAYOUT_DOC_MAX ((size_t)4 << 20) /* bytes of one document */
#define ST_DIGEST_HEX     64
#define ST_DIGEST_TEXT    (7 + ST_DIGEST_HEX + 1) /* "sha256:", hex, NUL */

/* One blob: what it hashes to and how long it is. */
typedef struct st_blob {
    char hex[ST_DIGEST_HEX + 1];
    int64_t size; /* -1: not said */
} st_blob;

typedef struct st_manifest {
    int n;
    st_blob layer[ST_LAYERS_MAX];
    int64_t bytes; /* of all layers */
} st_manifest;

/* "sha256:" and 64 small hex digits. */
bool st_digest_ok(const char *text);

/* The manifest for this kind of machine, of those an index names; *ret_index: it is an index again. */
int st_layout_index(const char *text, size_t n, st_blob *ret, bool *ret_index, st_err *err);

/* The layers of a manifest, lowest first. */
int st_layout_manifest(const char *text, size_t n, st_manifest *ret, st_err *err);

#endif
