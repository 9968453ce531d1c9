/*
 * Laying out a table (cli/table.h).
 *
 * Invariant: cell i belongs to column i mod ncolumns; width[c] is that of the
 * widest cell of column c so far.
 */
#include "cli/table.h"

#include <stdarg.h>

#include "base/mem.h"

/* Characters, not bytes; wide ones count as one, which is near enough for names. */
static int text_width(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void add_cell(st_table *t, char *text)
{
    int column = (int)(t->cells.n % (size_t)t->ncolumns);

    t->width[column] = ST_MAX(t->width[column], text_width(text));
    st_vec_push(&t->cells, text);
}

void st_table_column(st_table *t, const char *heading, bool right)
{
    ST_ASSERT(t->ncolumns < ST_TABLE_COLUMNS_MAX && t->cells.n == (size_t)t->ncolumns);
    t->right[t->ncolumns] = right;
    t->ncolumns++;
    add_cell(t, st_xstrdup(heading));
}

void st_table_cell(st_table *t, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    ST_ASSERT(t->ncolumns > 0);
    va_start(ap, fmt);
    n = vasprintf(&text, fmt, ap);
    va_end(ap);
    ST_ASSERT(n >= 0);
    add_cell(t, text);
}

void st_table_print(const st_table *t, FILE *out)
{
    ST_ASSERT(t->ncolumns > 0 && t->cells.n % (size_t)t->ncolumns == 0);
    for (size_t i = 0; i < t->cells.n; i++) {
        int column = (int)(i % (size_t)t->ncolumns);
        int pad = t->width[column] - text_width(t->cells.v[i]);
        bool last = column == t->ncolumns - 1;

        if (t->right[column])
            fprintf(out, "%*s%s", pad, "", t->cells.v[i]);
        else
            fprintf(out, "%s%*s", t->cells.v[i], last ? 0 : pad, "");
        fputs(last ? "\n" : "  ", out);
    }
}

void st_table_done(st_table *t)
{
    for (size_t i = 0; i < t->cells.n; i++)
        free(t->cells.v[i]);
    st_vec_free(&t->cells);
    *t = (st_table){0};
}
