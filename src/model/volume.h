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
/* Whether a name is of the form of a job's id, which no volume's may be: stint cp takes both. */
bool st_volume_like_job(const char *name);

/* ---- folders that come with jobs ------------------------------------------------------------- */

/* Two folders of an account that are no volumes, beside them: what submits have brought, as chunks and lists of files, and a
 * folder for each job that came with one. No volume's id begins with an f. */
typedef enum st_space {
    ST_SPACE_BROUGHT,
    ST_SPACE_JOBS,
} st_space;

void st_space_id(st_space space, int64_t owner, char ret[ST_VOLUME_ID_MAX]);

#define ST_FOLDER_CHUNK     ((int64_t)512 << 10) /* bytes of a chunk; the last of a file has less */
#define ST_FOLDER_BYTES_MAX ((int64_t)1 << 30)
#define ST_FOLDER_FILES_MAX 20000
#define ST_FOLDER_LIST_MAX  ((int64_t)8 << 20)   /* bytes of a list of files */
#define ST_FOLDER_DIGEST    65                   /* SHA-256 in hex, NUL */
#define ST_FOLDER_CHUNK_AT  70                   /* "c/ab/" and the digest, NUL */
#define ST_FOLDER_PATH      "/work"              /* where a job finds it */
#define ST_SPACE_MIB        (INT64_C(100) << 10) /* what all folders of an account's jobs may hold */
#define ST_BROUGHT_MIB      (INT64_C(20) << 10)  /* and what was brought for them */

bool st_folder_digest_ok(const char *text);
/* Where a chunk lies, beneath what was brought. */
void st_folder_chunk_at(const char *digest, char ret[ST_FOLDER_CHUNK_AT]);

#endif
