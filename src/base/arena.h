/*
 * Arenas: memory that lives as long as one request, one document or one
 * scheduling pass, and goes away all at once. Nothing in an arena is freed
 * alone. Every allocation is zeroed and aligned to 16 bytes.
 */
#ifndef ST_BASE_ARENA_H
#define ST_BASE_ARENA_H

#include "base/macros.h"

typedef struct st_arena st_arena;

st_arena *st_arena_new(void);
void st_arena_free(st_arena *a);
ST_DEFINE_FREEP(st_arena, st_arena_free)

void *st_arena_alloc(st_arena *a, size_t size);
void *st_arena_calloc(st_arena *a, size_t n, size_t size);
char *st_arena_strdup(st_arena *a, const char *s);
char *st_arena_strndup(st_arena *a, const char *s, size_t n);

/* Forgets every allocation but keeps the blocks for the next round. */
void st_arena_reset(st_arena *a);

#endif
