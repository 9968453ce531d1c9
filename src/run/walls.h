/*
 * What every mount of a container must have, whatever the runtime made of the list it was given: no devices and no setuid,
 * the root and the cgroups read-only. Some runtimes drop flags: runc those of a root that it makes read-only, crun 1.8 those of a
 * bind mount that can be written. In stint-init: a hook mends the mounts, and a trial looks at them from inside.
 */
#ifndef ST_RUN_WALLS_H
#define ST_RUN_WALLS_H

#include <stdbool.h>

/* Mends what is mounted at and below this folder; false: that failed, or nothing is mounted at it. */
bool st_walls_seal(const char *folder);

/* From inside: the first mount that lacks something is said on stderr, and the answer is false. */
bool st_walls_check(void);

#endif
