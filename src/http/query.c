/*
 * Reading a query: name=value pairs parted by &, each name a row of the
 * route's table. What is not in the table is an error, because a filter that
 * was mistyped and silently ignored returns too much.
 */
#include "http/query.h"

#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "http/text.h"

#define ROWS_MAX 64

static int fail_unknown(const st_query_row *rows, const char *name, st_err *err)
{
    const char *names[ROWS_MAX + 1] = {NULL};
    char quoted[ST_QUOTE_MAX];
    const char *near;
    int n = 0;

    for (const st_query_row *row = rows; row && row->name && n < ROWS_MAX; row++)
        names[n++] = row->name;
    near = st_suggest(name, names);
    st_quote(quoted, name);
    if (near)
        return st_fail(err, ST_EINVAL, "the query has no parameter %s here; did you mean %s?",
                       quoted, near);
    if (n == 0)
        return st_fail(err, ST_EINVAL, "no query is taken here, but there is a parameter %s",
                       quoted);
    return st_fail(err, ST_EINVAL, "the query has no parameter %s here", quoted);
}

static bool is_word(const char *words, const char *value)
{
    size_t n = strlen(value);

    if (n == 0 || strchr(value, ' '))
        return false;
    for (const char *at = words; (at = strstr(at, value)); at++)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static int check_value(const st_query_row *row, const char **value, st_err *err)
{
    char quoted[ST_QUOTE_MAX];
    int64_t number;

    switch (row->type) {
    case ST_QUERY_TEXT:
        return 0;
    case ST_QUERY_INT:
        if (st_parse_i64(*value ? *value : "", INT64_MIN, INT64_MAX, &number, err) < 0)
            return st_fail_prefix(err, "query parameter %s: ", row->name);
        return 0;
    case ST_QUERY_BOOL:
        if (!*value)
            *value = "true";
        if (strcmp(*value, "true") == 0 || strcmp(*value, "false") == 0)
            return 0;
        return st_fail(err, ST_EINVAL, "query parameter %s: %s is neither true nor false",
                       row->name, st_quote(quoted, *value));
    case ST_QUERY_WORD:
        if (*value && is_word(row->words, *value))
            return 0;
        return st_fail(err, ST_EINVAL, "query parameter %s: %s is none of: %s", row->name,
                       st_quote(quoted, *value ? *value : ""), row->words);
    }
    return st_fail(err, ST_EINTERNAL, "query parameter %s is of no known type", row->name);
}

static int add_pair(const st_query_row *rows, char *pair, st_query *query, st_err *err)
{
    const st_query_row *row = rows;
    char *equals = strchr(pair, '=');
    const char *value = NULL;
    char quoted[ST_QUOTE_MAX];

    if (equals) {
        *equals = '\0';
        value = equals + 1;
    }
    if (!st_text_decode(pair, true) || (equals && !st_text_decode(equals + 1, true)))
        return st_fail(err, ST_EINVAL,
                       "the query has an escape or a character that no parameter can have");
    while (row && row->name && strcmp(row->name, pair) != 0)
        row++;
    if (!row || !row->name)
        return fail_unknown(rows, pair, err);
    if (!row->many && st_query_get(query, row->name, 0))
        return st_fail(err, ST_EINVAL, "query parameter %s is given twice", row->name);
    if (query->n == ST_QUERY_MAX)
        return st_fail(err, ST_EINVAL, "the query has more than %d parameters", ST_QUERY_MAX);
    if (!value && row->type != ST_QUERY_BOOL)
        return st_fail(err, ST_EINVAL, "query parameter %s has no value; write %s=...", row->name,
                       st_quote(quoted, row->name));
    if (check_value(row, &value, err) < 0)
        return -err->code;
    query->item[query->n].row = row;
    query->item[query->n++].value = value;
    return 0;
}

int st_query_parse(const st_query_row *rows, char *text, st_query *ret, st_err *err)
{
    st_err local;

    err = err ? err : &local;
    ret->n = 0;
    for (char *at = text; at && *at;) {
        char *pair = strsep(&at, "&");

        if (*pair && add_pair(rows, pair, ret, err) < 0)
            return -err->code;
    }
    return 0;
}

const char *st_query_get(const st_query *query, const char *name, int nth)
{
    for (int i = 0; i < query->n; i++)
        if (strcmp(query->item[i].row->name, name) == 0 && nth-- == 0)
            return query->item[i].value;
    return NULL;
}
