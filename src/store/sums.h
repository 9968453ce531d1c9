/*
 * A checksum on every page of a SQLite database file. SQLite itself notices damage only where it
 * breaks the structure; a flipped bit in a name or a number is read as if it were true.
 *
 * An st_page_sums is a SQLite VFS that goes through another one: the last 8 bytes of each page, which
 * SQLite leaves alone (st_sums_reserve), hold the hash of the rest and of the page's number. The
 * write-ahead log has sums of its own.
 */
#ifndef ST_STORE_SUMS_H
#define ST_STORE_SUMS_H

#include <sqlite3.h>

#include "base/err.h"

#define ST_SUMS_PAGE    4096
#define ST_SUMS_RESERVE 8

typedef struct st_page_sums st_page_sums;

/* On top of the VFS of that name, NULL for the system's. It must outlive its connections. */
int st_sums_new(const char *base, st_page_sums **ret, st_err *err);
void st_sums_free(st_page_sums *s);
const char *st_sums_name(const st_page_sums *s);

/* Right after opening and before the first statement: a new file gets room for the sums. */
int st_sums_reserve(sqlite3 *db);

#endif
