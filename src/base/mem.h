/*
 * Allocation that does not fail: out of memory ends the process with one line,
 * because no caller could do better. Sizes are checked for overflow.
 */
#ifndef ST_BASE_MEM_H
#define ST_BASE_MEM_H

#include "base/macros.h"

void *st_xmalloc(size_t size) __attribute__((malloc));
void *st_xcalloc(size_t n, size_t size) __attribute__((malloc));
void *st_xrealloc(void *p, size_t size);
void *st_xreallocarray(void *p, size_t n, size_t size);
char *st_xstrdup(const char *s) __attribute__((malloc));

/* Copies at most n bytes of s, stopping at its NUL, and terminates the copy. */
char *st_xstrndup(const char *s, size_t n) __attribute__((malloc));

/* A limit of core files by which there are none. With 0 there is still one for the program that core_pattern may name: the
 * kernel starts it as root, outside of every limit of whoever has crashed. */
#define ST_NO_CORE 1

/* From here on this process's memory, which has secrets, becomes no core file; nor that of what it starts. 0, or -1 with
 * errno. */
int st_mem_no_core(void);

/* For ST_CLEANUP(st_freep) on any pointer from malloc; p points at that pointer. */
void st_freep(void *p);

#endif
