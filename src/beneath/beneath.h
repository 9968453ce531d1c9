/*
 * Files of tenants, by programs that tenants do not trust themselves to: folders whose content somebody else chooses, opened
 * beneath a root by descriptor. Used by stintd for volumes and folders of jobs.
 *
 * Invariants:
 *  1 A path is opened with openat2 beneath its root: no "..", no symbolic link, no other file system, wherever a tenant
 *    puts them and whenever.
 *  2 Nothing but regular files and folders is opened. A FIFO or a device is refused, and never waited for.
 *  3 What is made belongs to the group of its account, by an access list that everything below inherits; so tasks and
 *    stintd share it without either being root.
 */
#ifndef ST_BENEATH_BENEATH_H
#define ST_BENEATH_BENEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

#define ST_BENEATH_PATH_MAX 1024
#define ST_BENEATH_NAME_MAX 256

/* What a tenant says as a path that is used: without / in front, "//", "." and ".."; "." is the root. No control
 * characters, and it is UTF-8. */
int st_beneath_path(const char *said, char ret[ST_BENEATH_PATH_MAX], st_err *err);

/* A folder of the site's, as a root. */
int st_beneath_root(const char *dir, int *ret_fd, st_err *err);
/* Makes a folder in a root, for the account's group and for who calls; -ST_EEXIST where it is. ST_ESTATE: the file system
 * has no access lists. */
int st_beneath_make(int root, const char *name, int64_t gid, st_err *err);
/* An access list that lets the owner and two friends do everything, and nobody else anything (acl.c). */
#define ST_ACL_BYTES (4 + 6 * 8)
typedef struct st_acl_friend {
    bool group; /* or a user */
    uint32_t id;
} st_acl_friend;
void st_acl_write(const st_acl_friend friends[2], unsigned char ret[ST_ACL_BYTES]);
/* The attributes it is kept in: of the thing itself; and, of a folder, of what is made in it. */
extern const char *const st_acl_names[2];

/* Gives what was made elsewhere to the account's group. */
int st_beneath_share(int fd, bool folder, int64_t gid, st_err *err);

/* A file or folder that is there, to be read. *ret says what it is. */
int st_beneath_open(int root, const char *path, int *ret_fd, struct stat *ret, st_err *err);
/* A file to be written, made if it is not there; with the folders above it. */
int st_beneath_create(int root, const char *path, int *ret_fd, struct stat *ret, st_err *err);
/* Folders down to the path. */
int st_beneath_folders(int root, const char *path, st_err *err);
/* Takes the place of whatever file is at `to`. */
int st_beneath_rename(int root, const char *from, const char *to, st_err *err);
/* A file, a link, or a folder with nothing in it. */
int st_beneath_unlink(int root, const char *path, st_err *err);
/* A folder and all that is in it. What it may not remove stays, and is an error. */
int st_beneath_remove(int root, const char *name, st_err *err);

/* Names of a folder in order, behind `after`, at most `max`: fn for each. *ret_more: there are others. */
typedef struct st_beneath_entry {
    const char *name;
    char kind; /* 'f' a file, 'd' a folder, 'l' a link, 'o' another thing */
    int64_t bytes, changed_ms;
    bool run; /* it may be executed */
} st_beneath_entry;

int st_beneath_list(int fd, const char *after, size_t max,
                    void (*fn)(void *ctx, const st_beneath_entry *e), void *ctx, bool *ret_more,
                    st_err *err);

/* What is below a folder, on its disk; a file with several names counts once. What cannot be looked into is counted in
 * `unread`. Fails beyond `max` files. */
typedef struct st_beneath_use {
    int64_t bytes, files, unread;
} st_beneath_use;

int st_beneath_count(int root, int64_t max, st_beneath_use *ret, st_err *err);

#endif
