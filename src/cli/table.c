/*
 * Laying out a table (cli/table.h).
 *
 * Invariant: cell i belongs to column i mod ncolumns; width[c] is that of the
 * widest cell of column c so far.
 */
#include "cli/table.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"

#define NARROWEST 6 /* a column that gives way keeps this much */

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

/* Prints at most `width` characters of s; the last is "~" when something is left out. Returns
 * how many were printed. */
static int print_cut(FILE *out, const char *s, int width)
{
    int n = 0, all = text_width(s), keep = all > width ? width - 1 : all;

    for (; *s; s++) {
        bool begins = ((unsigned char)*s & 0xC0) != 0x80;

        if (begins && n == keep)
            break;
        n += begins;
        /* What came over the network must not steer the terminal. */
        fputc(iscntrl((unsigned char)*s) ? '?' : *s, out);
    }
    if (all > width)
        fputc('~', out);
    return ST_MIN(all, width);
}

void st_table_print(const st_table *t, FILE *out)
{
    ST_ASSERT(t->ncolumns > 0 && t->cells.n % (size_t)t->ncolumns == 0);
    for (size_t i = 0; i < t->cells.n; i++) {
        int column = (int)(i % (size_t)t->ncolumns), width = t->width[column];
        int pad = ST_MAX(width - text_width(t->cells.v[i]), 0);
        bool last = column == t->ncolumns - 1;

        if (t->right[column])
            fprintf(out, "%*s", pad, "");
        print_cut(out, t->cells.v[i], width);
        if (!t->right[column])
            fprintf(out, "%*s", last ? 0 : pad, "");
        fputs(last ? "\n" : "  ", out);
    }
}

void st_table_print_fitted(st_table *t, FILE *out, int columns)
{
    int total = 2 * (t->ncolumns - 1);

    for (int c = 0; c < t->ncolumns; c++)
        total += t->width[c];
    while (columns > 0 && total > columns) {
        int widest = -1;

        for (int c = 0; c < t->ncolumns; c++)
            if (!t->right[c] && t->width[c] > NARROWEST &&
                (widest < 0 || t->width[c] > t->width[widest]))
                widest = c;
        if (widest < 0)
            break;
        t->width[widest]--;
        total--;
    }
    st_table_print(t, out);
}

void st_table_csv(const st_table *t, FILE *out)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        const char *s = t->cells.v[i];
        bool heading = i < (size_t)t->ncolumns, quote = strpbrk(s, ",\"\r\n") != NULL;

        if (quote)
            fputc('"', out);
        for (; *s; s++) {
            if (*s == '"')
                fputc('"', out);
            fputc(heading ? tolower((unsigned char)*s) : *s, out);
        }
        if (quote)
            fputc('"', out);
        fputc((i + 1) % (size_t)t->ncolumns == 0 ? '\n' : ',', out);
    }
}

int st_table_terminal_width(FILE *out)
{
    struct winsize size;
    int fd = fileno(out);

    if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) < 0)
        return 0;
    return size.ws_col;
}

void st_table_done(st_table *t)
{
    for (size_t i = 0; i < t->cells.n; i++)
        free(t->cells.v[i]);
    st_vec_free(&t->cells);
    *t = (st_table){0};
}
