/*
 * For tests: changing a store behind everybody's back.
 */
#ifndef ST_STORE_TEST_TAMPER_H
#define ST_STORE_TEST_TAMPER_H

#include "store/store.h"

/* Any SQL; fails the test if it fails. */
void tamper_exec(st_store *store, const char *sql);
/* The number in the first column of the first row; 0: none. */
int64_t tamper_number(st_store *store, const char *sql);

/* One column of the row n of a table: a number, or bytes. */
typedef struct tamper_cell {
    const char *table, *column;
    int64_t n;
    bool is_number, is_text;
    int64_t number;
    unsigned char *bytes; /* malloc'ed; NULL: there is no such row */
    size_t len;
} tamper_cell;

void tamper_get(st_store *store, tamper_cell *cell);
/* False: the database itself does not let it be (two rows in one place). */
bool tamper_put(st_store *store, const tamper_cell *cell);

#endif
