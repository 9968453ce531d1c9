/*
 * The files of a SQLite store, for sqlite.c: PATH, its log PATH-wal and PATH-shm, the lock PATH.lock, and what stands beside
 * them.
 */
#ifndef ST_STORE_FILES_H
#define ST_STORE_FILES_H

#include "base/strbuf.h"
#include "store/store.h"

/* Takes PATH.lock; another holder is ST_ESTATE. */
int st_lock_take(const char *path, int *ret_fd, st_err *err);

int64_t st_files_bytes(const char *path);
void st_files_beside(const char *path, const char *name, st_strbuf *out);
bool st_files_same(const char *path, const char *file);
bool st_files_written(const char *path);
int st_files_stage(const char *path, const char *backup, st_strbuf *ret_staged, st_err *err);
int st_files_replace(const char *path, const char *staged, const char *aside, st_err *err);
void st_files_unstage(const char *staged);
/* So that a new name in it is on the disk as well. */
int st_files_sync_folder(const char *path, st_err *err);

#endif
