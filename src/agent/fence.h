/*
 * The end of a lease, kept by something that outlives the agent: a small process per node folder
 * that watches the file with the lease and, when that has run out, kills the node's tasks. The
 * living agent is a second faster; this is for one that is dead while its tasks run on.
 */
#ifndef ST_AGENT_FENCE_H
#define ST_AGENT_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ST_FENCE_REASON "the lease of its node ended"

/* A lease as it is in DIR/lease: of this boot, or it is none. */
typedef struct st_lease {
    int64_t end_ms; /* boot clock; 0: there is none */
    bool keep;
} st_lease;

void st_lease_save(const char *dir, const st_lease *lease);
st_lease st_lease_load(const char *dir);
/* Of what the file says, in the boot with this id. Pure. */
st_lease st_lease_read(const char *text, const char *boot_id);

/* Starts the process for a folder unless it is there. */
int st_fence_ensure(const char *dir, st_err *err);

/* That process; returns its exit status when there is nothing left to watch. */
int st_fence_main(const char *dir);

#endif
