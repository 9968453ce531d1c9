/*
 * The columns of each noun, once: st_row_shape says where in the C struct each column is, and from that
 * come the column lists of statements (@cols, @names, @vals), the parameters and the way back.
 */
#ifndef ST_STORE_SHAPE_H
#define ST_STORE_SHAPE_H

#include "base/strbuf.h"
#include "store/driver.h"

typedef enum st_column_kind {
    ST_FIELD_I64,
    ST_FIELD_U64, /* as the BIGINT with the same bits */
    ST_FIELD_TEXT,
    ST_FIELD_BLOB,
} st_column_kind;

typedef struct st_column {
    const char *name;
    st_column_kind kind;
    size_t at;
    const char *read; /* what is selected for it, where that is more than the column; else NULL */
} st_column;

typedef struct st_row_shape {
    const char *table;
    const st_column *fields;
    size_t n;
} st_row_shape;

extern const st_row_shape st_shape_log, st_shape_snap, st_shape_job, st_shape_token, st_shape_audit,
    st_shape_idem, st_shape_document, st_shape_book, st_shape_checkpoint, st_shape_series;

/* The SQL with @cols (as they are read), @names (of the columns) and @vals replaced by the shape's (which may be NULL), @blob and @key by the
 * driver's words (which may be NULL where there are none). */
void st_shape_expand(const st_driver *driver, const st_row_shape *shape, const char *sql,
                     st_strbuf *out);

/* The struct's fields as parameters; vals has room for shape->n. */
void st_shape_params(const st_row_shape *shape, const void *row, st_val *vals);

/* The columns as a struct that points into them. A column of another kind than the shape says, or
 * text with a NUL inside, is ST_ECORRUPT. */
int st_shape_read(const st_row_shape *shape, const st_val *cols, size_t n, void *ret, st_err *err);

/* Copies what the struct points to. */
void st_shape_keep(const st_row_shape *shape, void *row, st_arena *a);

#endif
