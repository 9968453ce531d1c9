/*
 * Reading a tar stream that somebody hostile may have written: ustar, pax and GNU long names. It says what is
 * there and makes nothing; run/unpack.h does. No memory grows with the stream. Private to run.
 *
 * Invariants:
 *  1 A name is relative, has no ".." and no empty parts, and none of its parts is longer than a file system takes.
 *  2 Sizes are never negative; what a header says is there is read, or the stream is refused as cut short.
 *  3 Sparse files are refused: a few bytes of them can stand for any number.
 */
#ifndef ST_RUN_TAR_H
#define ST_RUN_TAR_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ST_TAR_BLOCK    512
#define ST_TAR_PART_MAX 255       /* bytes between two slashes */
#define ST_TAR_PAX_MAX  (1 << 20) /* bytes of one extended header */

/* Fills buf; *ret is less than n only at the end of the stream. */
typedef int (*st_tar_pull)(void *ctx, unsigned char *buf, size_t n, size_t *ret, st_err *err);

typedef enum {
    ST_TAR_FILE,
    ST_TAR_FOLDER,
    ST_TAR_SYMLINK,
    ST_TAR_HARDLINK,
    ST_TAR_OTHER, /* a device, a FIFO, something newer */
} st_tar_kind;

typedef struct st_tar_entry {
    st_tar_kind kind;
    char name[PATH_MAX]; /* "" is the root itself */
    char link[PATH_MAX]; /* of a hard link: a name as above; of a symbolic one: as it stands */
    unsigned mode;
    int depth; /* parts of the name */
    int64_t size;
    int64_t mtime_s;
} st_tar_entry;

typedef struct st_tar {
    st_tar_pull pull;
    void *ctx;
    int64_t left; /* of the body of the last entry */
    int pad;      /* after it */
    /* From extended headers, for the next entry; "" and -1: not said. */
    char name[PATH_MAX], link[PATH_MAX];
    int64_t size, mtime_s;
} st_tar;

void st_tar_init(st_tar *tar, st_tar_pull pull, void *ctx);

/* 1: an entry; 0: the end. What was not read of the body before is passed over. */
int st_tar_next(st_tar *tar, st_tar_entry *ret, st_err *err);

/* The next bytes of a file; *ret 0 at its end. */
int st_tar_body(st_tar *tar, unsigned char *buf, size_t n, size_t *ret, st_err *err);

/* A name as invariant 1 wants it; *ret_depth counts its parts. */
int st_tar_name(const char *said, char ret[PATH_MAX], int *ret_depth, st_err *err);

#endif
