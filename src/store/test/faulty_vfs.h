/*
 * For tests: a SQLite VFS over the system's that fails when told to, and that remembers what each
 * file was when it was last synced, so that a power loss can be played.
 */
#ifndef ST_STORE_TEST_FAULTY_VFS_H
#define ST_STORE_TEST_FAULTY_VFS_H

#include <stdbool.h>

typedef struct faulty_vfs faulty_vfs;

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_WRITE_IO,    /* the write fails */
    FAULT_WRITE_SHORT, /* half of it is written, then the disk is full */
    FAULT_WRITE_FULL,  /* nothing is written, the disk is full */
    FAULT_SYNC,        /* the sync fails */
    FAULT_READ_ONLY,   /* every write fails from then on */
    FAULT_POWER_WRITE, /* the power goes at that write: nothing works any more */
    FAULT_POWER_SYNC,  /* the power goes at that sync, which has not happened */
} fault_kind;

/* What of the unsynced writes is on the disk after a power loss. */
typedef enum power_loss { LOSE_ALL, LOSE_SOME, LOSE_NONE } power_loss;

faulty_vfs *faulty_new(const char *name);
void faulty_free(faulty_vfs *v);

/* The nth write or sync (from 1) from now on fails; FAULT_NONE heals. */
void faulty_arm(faulty_vfs *v, fault_kind kind, int nth);
/* Whether the armed fault has happened. */
bool faulty_hit(const faulty_vfs *v);
/* After a power loss and the closing of the store: puts the files into the state a machine would
 * find them in, and heals. */
void faulty_power_on(faulty_vfs *v, power_loss how);
/* Takes all files as synced. */
void faulty_sync_all(faulty_vfs *v);

#endif
