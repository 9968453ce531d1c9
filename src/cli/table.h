/*
 * Tables for people: columns as wide as their widest cell, text to the left,
 * numbers to the right.
 *
 *     ST_CLEANUP(st_table_done) st_table t = {0};
 *     st_table_column(&t, "NAME", false);
 *     st_table_column(&t, "GPUS", true);
 *     st_table_cell(&t, "%s", name);     // row by row
 *     st_table_cell(&t, "%d", gpus);
 *     st_table_print(&t, cli->out);
 */
#ifndef ST_CLI_TABLE_H
#define ST_CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/macros.h"
#include "base/vec.h"

#define ST_TABLE_COLUMNS_MAX 64

typedef struct st_table {
    int ncolumns;
    int shown; /* the first so many fit; 0: all */
    bool right[ST_TABLE_COLUMNS_MAX];
    int width[ST_TABLE_COLUMNS_MAX];
    ST_VEC(char *) cells; /* the headings, then the rows */
} st_table;

/* All columns come before the first cell. */
void st_table_column(st_table *t, const char *heading, bool right);
void st_table_cell(st_table *t, const char *fmt, ...) ST_PRINTF(2, 3);

/* The last row must be complete. */
void st_table_print(const st_table *t, FILE *out);
/* The same in at most `columns` characters a line, 0: as many as there are. Wide columns of text
 * give way, then the last columns are left out; the first one always stays whole. */
void st_table_print_fitted(st_table *t, FILE *out, int columns);
/* For programs (RFC 4180); headings in small letters. */
void st_table_csv(const st_table *t, FILE *out);
/* Writes at most so many characters of a text. What came over the network must not steer the
 * terminal: control characters become "?". */
void st_put_text(FILE *out, const char *s, int chars);
/* Of the terminal behind the stream; 0 where there is none. */
int st_table_terminal_width(FILE *out);
void st_table_done(st_table *t);

#endif
