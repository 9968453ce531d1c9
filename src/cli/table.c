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
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/utf8.h"

#define NARROW       12 /* columns give way up to here; then the last ones are left out */
#define COLUMNS_KEPT 4  /* but not these; they give way up to there */
#define NARROWEST    6

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

void st_put_text(FILE *out, const char *s, int chars)
{
    ST_CLEANUP(st_freep) char *tame = st_xstrdup(s);

    st_text_tame(tame);
    s = tame;
    for (int n = 0; *s; s++) {
        if (((unsigned char)*s & 0xC0) != 0x80 && n++ == chars)
            return;
        fputc(*s, out);
    }
}

/* At most `width` characters of s; the last is "~" when something is left out. */
static void print_cut(FILE *out, const char *s, int width)
{
    bool cut = text_width(s) > width;

    st_put_text(out, s, cut ? width - 1 : width);
    if (cut)
        fputc('~', out);
}

void st_table_print(const st_table *t, FILE *out)
{
    int shown = t->shown > 0 ? t->shown : t->ncolumns;

    ST_ASSERT(t->ncolumns > 0 && t->cells.n % (size_t)t->ncolumns == 0);
    for (size_t i = 0; i < t->cells.n; i++) {
        int column = (int)(i % (size_t)t->ncolumns), width = t->width[column];
        int pad = ST_MAX(width - text_width(t->cells.v[i]), 0);
        bool last = column == shown - 1;

        if (column >= shown)
            continue;
        if (t->right[column])
            fprintf(out, "%*s", pad, "");
        print_cut(out, t->cells.v[i], width);
        if (!t->right[column])
            fprintf(out, "%*s", last ? 0 : pad, "");
        fputs(last ? "\n" : "  ", out);
    }
}

static int total_width(const st_table *t)
{
    int total = 0;

    for (int c = 0; c < t->shown; c++)
        total += t->width[c] + (c > 0 ? 2 : 0);
    return total;
}

/* The widest column of text gives way, again and again, until all fit or none is wider than that.
 * The first one says which row it is and stays whole. */
static void narrow(st_table *t, int columns, int narrowest)
{
    int widest = 0;

    while (total_width(t) > columns && widest >= 0) {
        widest = -1;
        for (int c = 1; c < t->shown; c++)
            if (!t->right[c] && t->width[c] > narrowest &&
                (widest < 0 || t->width[c] > t->width[widest]))
                widest = c;
        if (widest >= 0)
            t->width[widest]--;
    }
}

void st_table_print_fitted(st_table *t, FILE *out, int columns)
{
    t->shown = t->ncolumns;
    if (columns > 0) {
        narrow(t, columns, NARROW);
        while (t->shown > COLUMNS_KEPT && total_width(t) > columns)
            t->shown--;
        narrow(t, columns, NARROWEST);
    }
    st_table_print(t, out);
}

void st_table_csv(const st_table *t, FILE *out)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf cell = {0};
        const char *s = t->cells.v[i];

        if (*s)
            st_quote_csv(&cell, s);
        for (size_t k = 0; i < (size_t)t->ncolumns && k < cell.n; k++) /* a heading */
            cell.s[k] = (char)tolower((unsigned char)cell.s[k]);
        fputs(st_strbuf_str(&cell), out);
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
