/*
 * stintd --check-store: the store's own integrity, and the core against the tables beside it.
 */
#ifndef ST_STINTD_CHECK_H
#define ST_STINTD_CHECK_H

/* `key` is the file of the billing key, NULL: beside the store. Prints findings; 0: all is well, 1: not. */
int st_check_store(const char *path, const char *key);

#endif
