/*
 * Volumes inside the API: which one a call is about, who may touch what is in it, and how full it is. Private to src/api.
 */
#ifndef ST_API_VOLUMES_H
#define ST_API_VOLUMES_H

#include "api/state.h"
#include "beneath/beneath.h"
#include "state/volumes.h"

/* How full volumes are: counted now and then, in a thread that may wait for a disk. */
typedef struct st_fills st_fills;

st_fills *st_fills_new(void);
void st_fills_free(st_fills *f);
/* What is in the folder, counted anew where the last count is old; and what was written since counts at once. */
int st_fills_get(st_fills *f, const char *id, int root, int64_t now_ms, st_beneath_use *ret,
                 st_err *err);
void st_fills_add(st_fills *f, const char *id, int64_t bytes, int64_t files);

int64_t st_volume_files_max(int64_t size_mib);

/* Makes one of an account's own folders, where it is not there yet (model/volume.h). */
int st_api_space_make(st_api *api, const char *id, int64_t owner, st_err *err);

/* A call about files: in a thread that may wait, with the folder open. `fn` answers, or fails and is answered for. */
typedef struct st_visit {
    st_api *api;
    st_call *call;
    st_volume volume; /* of a folder of the account's own the id alone */
    int64_t owner;    /* whose own folder it is; 0: it is a volume */
    int (*fn)(struct st_visit *v, int root, st_err *err);
    char path[ST_BENEATH_PATH_MAX];
    size_t shown; /* where in it begins what the caller sees */
    int64_t token;
} st_visit;

void st_api_visit(const st_visit *visit);
/* Whether the caller may read and write what the account has; otherwise the call is answered. */
bool st_api_may_touch(st_call *call, const char *account);

/* Removes what is older than it is kept: folders of jobs that are over, and what was brought for none. Now and then, from the
 * tick. */
void st_api_folders_tidy(st_api *api, int64_t now_ms);

/* What its routes take. */
extern const st_query_row st_volume_query[], st_files_query[], st_file_query[], st_bytes_query[],
    st_put_bytes_query[], st_job_files_query[];

/* The volume of the path, if the caller may see it; otherwise the call is answered. */
bool st_api_volume_find(st_api *api, st_call *call, st_volume *ret);
/* Its folder, as a root. In a thread that may wait. */
int st_api_volume_root(st_api *api, const char *id, int *ret_fd, st_err *err);

#endif
