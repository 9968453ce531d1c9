/*
 * Reading a whole file, for the programs: the only part of base with I/O.
 */
#ifndef ST_BASE_FILE_H
#define ST_BASE_FILE_H

#include "base/err.h"
#include "base/strbuf.h"

/* Appends the file at `path` to *text; "-" is standard input. It stops at `limit` bytes with an
 * error, so a device or a pipe without an end does no harm. */
int st_file_read(const char *path, size_t limit, st_strbuf *text, st_err *err);

/* What a message calls the file: its path, or "stdin". */
const char *st_file_name(const char *path);

#endif
