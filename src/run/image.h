/*
 * Root file systems from OCI image layouts. Whoever wrote the layout may be hostile, so nothing of it is read by
 * the caller, which is root: one process without rights copies the layers into a private file and checks them
 * (run/fetch.h), another unpacks that very file (run/unpack.h), and the caller only starts them, waits no longer than
 * it wants, and gives the result its name (run/cache.h). Called by the supervisor of a task. Private to run.
 */
#ifndef ST_RUN_IMAGE_H
#define ST_RUN_IMAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct st_image_ask {
    const char *images; /* the cache's folder */
    const char *tenant; /* whose storage it lies in; "": the site's */
    const char *root;   /* a folder of the node */
    const char *path;   /* of the layout, beneath it; "." is itself */
    const char *digest; /* "sha256:…" that the manifest must have; "": any */
    int64_t max_bytes;  /* of all unpacked images here */
    int64_t timeout_ms;
    bool (*stop)(const void *ctx); /* asked now and then: nobody wants it any more */
    const void *ctx;
} st_image_ask;

/* The folder of the unpacked image; *ret_use keeps it there as long as it is open. */
int st_image_ready(const st_image_ask *ask, char ret[PATH_MAX], int *ret_use, st_err *err);

#endif
