/*
 * The supervisor of one task, as the program stint-shim. Private to run.
 */
#ifndef ST_RUN_SHIM_H
#define ST_RUN_SHIM_H

/* The descriptors on which the starter hands over the folder's lock, and what no disk may hold (run/private.h). */
enum { ST_SHIM_LOCK_FD = 3, ST_SHIM_PRIVATE_FD = 4 };

/* Leaves its parent, supervises the task whose folder is `dir`, and returns an exit status. */
int st_shim_main(const char *dir);

#endif
