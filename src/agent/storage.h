/*
 * How much of a node's disk the /data of one tenant may hold.
 *
 * Where the file system has project quotas in force (ext4 with prjquota, XFS with pquota) it holds everybody to it: each
 * tenant's folder is a project, whose number is the tenant's user id, and what is made in it belongs to it. A job
 * cannot leave its project: stint-init takes the calls for that off it (run/init.c).
 *
 * Elsewhere what is there is counted (agent/data.c): what is too much is seen after a while, not prevented.
 */
#ifndef ST_AGENT_STORAGE_H
#define ST_AGENT_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct st_storage {
    int64_t bytes, files;
} st_storage;

/* What a count found, and how long it took. */
typedef struct st_counted {
    st_storage use;
    int64_t took_ms;
} st_counted;

/* What the option says, or half of the disk that has `dir`; files in proportion. */
st_storage st_storage_limit(const char *dir, int64_t option_mib);

/* Whether the file system of `dir` holds projects to their limits. */
bool st_storage_enforced(const char *dir);

/* Makes a folder, with all that is in it, a project, and sets its limit; nothing to do if that is so. In a worker: it may
 * take long, and leaves the working directory. */
int st_storage_enforce(const char *path, int64_t project, const st_storage *limit, st_err *err);

/* What is below a folder, on its disk; a file with several names is counted once. In a worker, likewise. */
int st_storage_count(const char *path, st_storage *ret, st_err *err);

/* How long to leave a tenant alone after a count that took so long: a small part of the time is spent on it. One that
 * is refused (`over`) is looked at again soon, for half of the time at most; so is one with little room left (in bytes): before tasks
 * that write ST_STORAGE_RATE bytes a second have filled it. */
#define ST_STORAGE_RATE          (INT64_C(4) << 30)
#define ST_STORAGE_PAUSE_MIN_MS  5000
#define ST_STORAGE_PAUSE_OVER_MS 15000
#define ST_STORAGE_PAUSE_MAX_MS  600000
int64_t st_storage_pause(int64_t took_ms, bool over, int64_t room);

/* Why what `what` has is too much, for its owner; false: it is not. */
bool st_storage_over(const char *what, const st_storage *use, const st_storage *limit,
                     char ret[160]);

#endif
