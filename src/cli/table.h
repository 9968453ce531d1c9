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
    bool right[ST_TABLE_COLUMNS_MAX];
    int width[ST_TABLE_COLUMNS_MAX];
    ST_VEC(char *) cells; /* the headings, then the rows */
} st_table;

/* All columns come before the first cell. */
void st_table_column(st_table *t, const char *heading, bool right);
void st_table_cell(st_table *t, const char *fmt, ...) ST_PRINTF(2, 3);

/* The last row must be complete. */
void st_table_print(const st_table *t, FILE *out);
void st_table_done(st_table *t);

#endif
