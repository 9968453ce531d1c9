/*
 * Lists, newest first, of rows that belong to accounts: conditions are gathered with their
 * parameters, never pasted into the text.
 */
#ifndef ST_STORE_LIST_H
#define ST_STORE_LIST_H

#include "store/sql.h"

typedef struct st_list {
    const st_row_shape *shape;
    const char *key; /* the column that orders; also the cursor */
    st_within within;
    bool as_written;       /* columns as they are, nothing looked up for them */
    int64_t before, limit; /* 0: from the newest, without limit */
    int64_t scan;          /* rows looked at at most; 0: all */
    bool narrow;           /* a condition has an index of its own, for fewer rows */
    const char *range;     /* a condition that an index has, with AND in front; "" none */
    st_strbuf where;       /* further conditions, each with AND in front */
    st_val params[ST_STORE_PARAMS_MAX];
    size_t nparams;
} st_list;

void st_list_init(st_list *l, const st_row_shape *shape, const char *key);
void st_list_done(st_list *l);

/* AND column op value; op with its blanks. */
void st_list_where(st_list *l, const char *column, const char *op, st_val value);
/* AND column IN (…); for n of 0 nothing. */
int st_list_where_in(st_list *l, const char *column, const char *const *values, size_t n,
                     st_err *err);
/* AND the column's text has this part. */
void st_list_where_has(st_list *l, const st_store *store, const char *column, const char *part);

int st_list_rows(st_list *l, st_store *store, st_row_fn fn, void *ctx, st_err *err);
int st_list_count(st_list *l, st_store *store, int64_t *ret, st_err *err);
/* The key of the last row that a list with `scan` looks at; 0: there are fewer. */
int st_list_reach(st_list *l, st_store *store, int64_t *ret, st_err *err);

#endif
