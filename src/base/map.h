/*
 * Hash maps: st_map from strings (copied) and st_idmap from 64-bit ids, both
 * to an int64_t, which also holds an index or a pointer cast by way of
 * intptr_t. There is no iteration on purpose: hash order must never decide
 * anything, so keep the things themselves in an ordered array.
 */
#ifndef ST_BASE_MAP_H
#define ST_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

typedef struct st_map st_map;

st_map *st_map_new(void);
void st_map_free(st_map *m);
ST_DEFINE_FREEP(st_map, st_map_free)

/* ret may be NULL to ask only whether the key is there. */
bool st_map_get(const st_map *m, const char *key, int64_t *ret);
void st_map_put(st_map *m, const char *key, int64_t val); /* replaces an older value */
bool st_map_del(st_map *m, const char *key);              /* false: was not there */
size_t st_map_count(const st_map *m);

typedef struct st_idmap st_idmap;

st_idmap *st_idmap_new(void);
void st_idmap_free(st_idmap *m);
ST_DEFINE_FREEP(st_idmap, st_idmap_free)

bool st_idmap_get(const st_idmap *m, uint64_t key, int64_t *ret);
void st_idmap_put(st_idmap *m, uint64_t key, int64_t val);
bool st_idmap_del(st_idmap *m, uint64_t key);
size_t st_idmap_count(const st_idmap *m);

#endif
