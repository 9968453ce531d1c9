/*
 * Unpacked images on this node, named by the digest of their manifest:
 *
 *   IMAGES/site/HEX/         of the catalogue, for all who may use it
 *   IMAGES/of-TENANT/HEX/    of one tenant's own storage, and never anybody else's
 *     root/, meta.json       the tree; how large it is
 *   HEX.use                  flock: shared by every task that runs from it; its time is the last use
 *   HEX.lock, lock           flock: who unpacks (one of an image of the site, one of all of a tenant)
 *
 * A tree gets its name when it is whole and on the disk. Who needs room takes it from the scope that has most, what
 * was used longest ago first, and never what is in use. Private to run.
 */
#ifndef ST_RUN_CACHE_H
#define ST_RUN_CACHE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The folder of a scope, made if need be; tenant "" is the site. */
int st_cache_scope(const char *images, const char *tenant, char ret[PATH_MAX], st_err *err);

/* Holds an image for a task: *ret_use keeps it as long as it is open. False: it is not there. */
bool st_cache_use(const char *scope, const char *hex, int *ret_use);

/* An empty folder for a tree that is being made; what an earlier try left is removed. */
int st_cache_part(const char *scope, const char *hex, char ret[PATH_MAX], st_err *err);

/* The part becomes the image. */
int st_cache_keep(const char *scope, const char *hex, const char *part, int64_t bytes, st_err *err);

/* Removes what earlier versions kept in `images`: layers named by their digest, without a scope. */
int st_cache_tidy(const char *images, st_err *err);

/* Takes away what nobody uses until `need` more bytes for this scope fit: into the whole, and into a tenant's half of
 * it. ST_EFULL when what is in use leaves no room. */
int st_cache_room(const char *images, const char *scope, int64_t need, int64_t max_bytes,
                  st_err *err);

#endif
