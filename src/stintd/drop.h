/*
 * What stintd gives up before it opens anything: every capability, for good; with a user in the
 * configuration, root as well. It needs none: it listens above port 1024, owns its files and starts no
 * program. Whoever gets it to run code of theirs has a plain user's rights.
 */
#ifndef ST_STINTD_DROP_H
#define ST_STINTD_DROP_H

#include "base/err.h"

/* `user` may be NULL: stays who it is. `dir`, if not NULL, is given to the user when it belongs to root
 * and is empty; what is in it otherwise must be the user's already. */
int st_drop(const char *user, const char *dir, st_err *err);

#endif
