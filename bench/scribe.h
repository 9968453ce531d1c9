/* Writes the rows of books into a store, in a thread of its own: what one core makes, the other writes.
 *
 * A thousand rows are a transaction, and every commit is on the disk before the next begins. */
#ifndef ST_BENCH_SCRIBE_H
#define ST_BENCH_SCRIBE_H

#include "store/store.h"

typedef struct scribe scribe;

scribe *scribe_new(const char *path);
/* Copies. */
void scribe_row(scribe *s, const st_book_row *row);
void scribe_point(scribe *s, const st_checkpoint_row *row);
/* Until all is written: the store is the caller's from then on. */
st_store *scribe_end(scribe *s);

#endif
