/*
 * Makes a root file system from the layers of an image, one over the other, in an empty folder. Runs inside a jail
 * that sees nothing but this folder (run/jail.h). Private to run, but for a fuzzer of layers.
 *
 * Invariants:
 *  1 It makes folders, plain files, symbolic links and second names of files; no devices, no FIFOs.
 *  2 Nothing is setuid or setgid, has capabilities or other attributes, or belongs to anybody but the caller.
 *  3 Every name is opened beneath the folder, and its last part is never followed.
 *  4 Bytes, entries and depth are bounded, and so is how much a packed byte may stand for.
 */
#ifndef ST_RUN_UNPACK_H
#define ST_RUN_UNPACK_H

#include "run/layout.h"
#include "run/tar.h"

#define ST_UNPACK_ENTRIES_MAX 500000
#define ST_UNPACK_DEPTH_MAX   128
#define ST_UNPACK_RATIO_MAX   128                  /* bytes for a packed one... */
#define ST_UNPACK_RATIO_FREE  (INT64_C(256) << 20) /* ...beyond these */

typedef struct st_unpack st_unpack;

typedef struct st_unpacked {
    int64_t bytes, entries;
    int64_t left_out; /* devices and the like */
} st_unpacked;

/* `root` is the empty folder, borrowed. */
st_unpack *st_unpack_new(int root, int64_t max_bytes);
void st_unpack_free(st_unpack *u);
ST_DEFINE_FREEP(st_unpack, st_unpack_free)

/* A layer's stream over what is there. */
int st_unpack_layer(st_unpack *u, st_tar *tar, st_err *err);
void st_unpack_sum(const st_unpack *u, st_unpacked *ret);

/* One layer of a file, as the stream it was packed from; st_layer_pull is an st_tar_pull. */
typedef struct st_layer st_layer;
int st_layer_open(int fd, int64_t at, int64_t size, st_layer **ret, st_err *err);
int st_layer_pull(void *layer, unsigned char *buf, size_t n, size_t *ret, st_err *err);
void st_layer_free(st_layer *l);
ST_DEFINE_FREEP(st_layer, st_layer_free)

/* The layers as they lie in one file, one after the other. */
int st_unpack_image(st_unpack *u, int blobs, const st_manifest *m, st_err *err);

#endif
