/*
 * stintd --restore: a copy of a store in the place of the store, marked so that the next start waits for an owner.
 */
#ifndef ST_STINTD_RESTORE_H
#define ST_STINTD_RESTORE_H

#include "base/err.h"

/* `backup` may be the store itself: then it is only marked. What was in its place stays beside it under another name. `key` as
 * for st_check_store. Tells people what it has done. */
int st_restore_store(const char *store, const char *backup, const char *key, st_err *err);

#endif
