/*
 * Copies an image out of its layout into one private file, checked on the way: what was hashed is what is unpacked,
 * and nobody can change it in between. Runs inside a jail (run/jail.h), on folders that belong to a tenant.
 * Private to run.
 */
#ifndef ST_RUN_FETCH_H
#define ST_RUN_FETCH_H

#include "run/layout.h"

typedef struct st_fetch {
    int root;           /* the folder beneath which everything is opened */
    const char *path;   /* of the layout, beneath it; "." is itself */
    const char *digest; /* "sha256:…" of the manifest; "": the one index.json names */
    int64_t max_bytes;  /* of all layers */
} st_fetch;

/* A regular file or folder, opened without following a link, crossing "..", or waiting for anybody. */
int st_fetch_open(int dir, const char *path, bool folder, int *ret, st_err *err);

/* The manifest, checked; its digest is left in ret_hex. */
int st_fetch_manifest(const st_fetch *f, st_manifest *ret, char ret_hex[ST_DIGEST_HEX + 1],
                      int *ret_layout, st_err *err);

/* Appends every layer to `to`, in order, each as long as the manifest says. */
int st_fetch_layers(int layout, const st_manifest *m, int to, st_err *err);

#endif
