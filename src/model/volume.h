/*
 * Volumes as jobs name them, and what they are called on disks. A volume is a folder that an account owns; its folder's
 * name is an id that is never given again, and its files belong to the number of its account, so that nothing a tenant
 * writes chooses a path or an identity (doc/decisions/0043).
 */
#ifndef ST_MODEL_VOLUME_H
#define ST_MODEL_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ST_VOLUME_NAME_MAX 64
#define ST_VOLUME_PATH_MAX 256
#define ST_VOLUME_ID_MAX   17 /* 16 hex digits, NUL */
#define ST_VOLUMES_PER_JOB 16

/* The group of an account's files on all nodes: this and its number. */
#define ST_TENANT_ID_FIRST INT64_C(1048576)

/* How many files a volume may have: one for so many bytes of its size, and at least so many. */
#define ST_VOLUME_FILE_BYTES INT64_C(16384)
#define ST_VOLUME_FILES_MIN  INT64_C(10000)

/* What a job asks for: NAME:/PATH, NAME:/PATH:ro or NAME:/PATH:rw. */
typedef struct st_volume_ask {
    char name[ST_VOLUME_NAME_MAX + 1];
    char path[ST_VOLUME_PATH_MAX];
    bool ro;
} st_volume_ask;

int st_volume_ask_read(const char *text, st_volume_ask *ret, st_err *err);

/* Whether something may be mounted there in a task: a whole path, and nothing that the image or the walls need. */
int st_volume_path_ok(const char *path, st_err *err);
/* Whether one of the two lies in the other, or is it. */
bool st_volume_paths_meet(const char *a, const char *b);

bool st_volume_id_ok(const char *id);

#endif
