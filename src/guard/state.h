/*
 * Where the guard's state is; everything else is in guard/guard.h.
 */
#ifndef GUARD_STATE_H
#define GUARD_STATE_H

#include "guard/guard.h"

/* libc's own, for the two jumps of lookup.c. */
extern void *guard_dlsym_real;
extern void *guard_dlvsym_real;

#endif
