/* What is kept of a bill file that was verified, to compare it with another. Private to this folder. */
#ifndef ST_BILL_FILE_KEPT_H
#define ST_BILL_FILE_KEPT_H

#include "bill/file.h"

/* One range of a book: the leaves of its entries, and the hashes around them. */
typedef struct st_billkept {
    st_head head;
    int64_t from, to;
    st_hashes leaves, proof;
} st_billkept;

typedef struct st_billkept_list {
    ST_VEC(st_billkept) list;
    st_checkpoint checkpoint;
} st_billkept_list;

/* Verifies; of a good file *kept has everything. `kept` may be NULL. */
void st_billfile_read(const char *data, size_t len, const unsigned char key[32], st_verdict *ret,
                      st_billkept_list *kept);
void st_billkept_done(st_billkept_list *kept);

#endif
