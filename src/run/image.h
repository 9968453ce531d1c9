/*
 * Root file systems. A directory is used as it is; an OCI image layout (a folder with index.json
 * and blobs/) is unpacked once, layer by layer, into a cache named by digests. Private to run.
 */
#ifndef ST_RUN_IMAGE_H
#define ST_RUN_IMAGE_H

#include <limits.h>

#include "base/err.h"

/* The folders of an overlay, topmost first, joined by ":". */
int st_image_lower(const char *cache, const char *image, char ret[PATH_MAX], st_err *err);

#endif
