/*
 * Comma-separated values with a heading: RFC 4180 as it is met. Fields may be quoted ("a, ""b"""),
 * lines end in LF or CRLF, empty lines are skipped, a byte-order mark is too. Every row has as many
 * fields as the heading. A complaint is FILE:LINE: and one sentence.
 *
 *     while ((r = st_csv_next(csv, err)) > 0)
 *         st_csv_i64(csv, column, 0, 100, &x, err);
 */
#ifndef ST_TRACE_CSV_H
#define ST_TRACE_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ST_CSV_BYTES_MAX  (256u << 20)
#define ST_CSV_FIELDS_MAX 256
#define ST_CSV_FIELD_MAX  4096

typedef struct st_csv st_csv;

/* Both read the heading; the text is copied. "-" is standard input. */
int st_csv_load(const char *path, st_csv **ret, st_err *err);
int st_csv_parse(const char *name, const char *text, size_t len, st_csv **ret, st_err *err);
void st_csv_free(st_csv *csv);
ST_DEFINE_FREEP(st_csv, st_csv_free)

/* The column of that heading, or -1. */
int st_csv_find(const st_csv *csv, const char *heading);

/* As st_csv_find, but a heading that is not there is an error. */
int st_csv_need(const st_csv *csv, const char *heading, int *ret, st_err *err);

/* Fails on the first heading that is not in the NULL-terminated list, suggesting the nearest. */
int st_csv_check(const st_csv *csv, const char *const *allowed, st_err *err);

/* Reads the next row: 1, 0 at the end, or a negative code. */
int st_csv_next(st_csv *csv, st_err *err);

/* Of the current row; the text is good until the next row. Column -1 is the empty text. */
const char *st_csv_text(const st_csv *csv, int column);
int st_csv_i64(const st_csv *csv, int column, int64_t lo, int64_t hi, int64_t *ret, st_err *err);

/* A complaint about the current row. */
int st_csv_fail(const st_csv *csv, st_err *err, int code, const char *fmt, ...) ST_PRINTF(4, 5);

#endif
