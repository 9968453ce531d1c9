/*
 * The query of a request, read and checked against its route's table.
 */
#ifndef ST_HTTP_QUERY_H
#define ST_HTTP_QUERY_H

#include "http/http.h"

#define ST_QUERY_MAX 32

typedef struct st_query {
    int n;
    struct {
        const st_query_row *row;
        const char *value; /* decoded, in the text's memory */
    } item[ST_QUERY_MAX];
} st_query;

/* `text` is what stands behind the "?", decoded in place; rows may be NULL. Unknown names, values
 * of a wrong type and names given too often are refused with a sentence. */
int st_query_parse(const st_query_row *rows, char *text, st_query *ret, st_err *err);

/* The nth value under the name, from 0; NULL when there are not so many. */
const char *st_query_get(const st_query *query, const char *name, int nth);

#endif
