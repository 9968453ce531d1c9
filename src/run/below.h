/*
 * Mounts below a folder of the node. A bind mount of the folder alone would show what lies under
 * them; a recursive one would show them writable on runtimes that know no recursive "ro", and would
 * show the kernel's own file systems. So each is bound by itself.
 */
#ifndef ST_RUN_BELOW_H
#define ST_RUN_BELOW_H

#include "base/vec.h"

#define ST_BELOW_MAX 512 /* mounts of one folder */

typedef ST_VEC(char *) st_below;

/* Appends the mount points below `dir` in the text of a mountinfo (proc(5)), each once, those above
 * before those below them. File systems that are windows into the kernel are left out. Pure. */
void st_below_parse(const char *mountinfo, const char *dir, st_below *ret);

/* Those of this process that can be reached. */
void st_below_find(const char *dir, st_below *ret);

void st_below_done(st_below *below);

#endif
