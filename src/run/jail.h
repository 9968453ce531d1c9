/*
 * What touches a tenant's bytes has nothing: a process that is not root, sees one folder, has no network, starts
 * nobody, and is held to a time, a size and a list of system calls. Private to run.
 */
#ifndef ST_RUN_JAIL_H
#define ST_RUN_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Whose the unpacked files are: nobody's else. Agents give tenants ids above it. */
#define ST_RUN_IMAGE_UID 699999

typedef struct st_jail {
    int root; /* a descriptor of the folder that is all it sees */
    uid_t uid;
    gid_t gid;
    int64_t file_bytes; /* the largest file it may write */
    bool makes;      /* may make and remove files; otherwise it reads, and writes to what is open */
    const int *keep; /* descriptors it keeps */
    int nkeep;
} st_jail;

/* In a child, first of all: nothing of the parent's stays open but these. Who waits for the parent's locks must not
 * wait for a child that some file system holds. */
void st_jail_keep(const int *keep, int n);

/* In a child: from here on it has what the jail says. On failure the child must end. */
int st_jail_enter(const st_jail *jail, st_err *err);

/* What a jailed process says at its end: fixed in size, so that nobody has to parse it. */
typedef struct st_jail_word {
    int code; /* of an error, 0: none */
    char text[240];
} st_jail_word;

void st_jail_say(st_jail_word *word, const st_err *err);
/* Back into an error; what it says is cut and freed of what does not belong into a line. */
int st_jail_heard(const st_jail_word *word, st_err *err);

#endif
