/*
 * The few files an agent keeps: read whole, replaced whole, so that a crash leaves the old one or
 * the new one.
 */
#ifndef ST_AGENT_FILES_H
#define ST_AGENT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/* Makes a folder and those above it, for its owner alone. */
int st_dir_make(const char *path, st_err *err);

/* Both users may do everything in a folder of one of them, and with what either makes in it from now
 * on, as far as it is not made private (mode 0600). */
int st_dir_share(const char *path, int64_t a, int64_t b, st_err *err);

/* `sync`: it is on the disk when this returns. Mode 0600. */
int st_file_replace(const char *dir, const char *name, const char *text, size_t n, bool sync,
                    st_err *err);

/* Writes behind the first `at` bytes of a file, and cuts off what was there; it is made if need be. On
 * failure those bytes are as they were. */
int st_file_append(const char *dir, const char *name, int64_t at, const char *text, size_t n,
                   bool sync, st_err *err);

/* Appends the file to *ret, byte for byte; -ST_ENOENT when there is none. */
int st_file_whole(const char *dir, const char *name, st_strbuf *ret, st_err *err);
/* Appends the file to *ret, without blanks at its end; -ST_ENOENT when there is none. */
int st_file_load(const char *dir, const char *name, st_strbuf *ret, st_err *err);

/* Milliseconds: UTC, and on a clock that does not jump and goes on while the machine sleeps. */
int64_t st_wall_ms(void);
int64_t st_boot_ms(void);
/* What tells this boot from all others; "" where it cannot be read. */
void st_boot_id(char ret[64]);

#endif
