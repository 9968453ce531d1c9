/*
 * The one thing that a library loaded into somebody else's program cannot be handed: its state.
 */
#include "guard/state.h"

guard_state guard;
void *guard_dlsym_real;
void *guard_dlvsym_real;
