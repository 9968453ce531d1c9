/*
 * Memory that a busy moment took and nothing needs any more goes back to the system.
 *
 * The allocator keeps freed memory that lies between blocks in use, for ever: a batch of a thousand jobs, or a page for
 * somebody slow, would be paid for until the next start. Giving back locks the allocator while it walks through its free
 * blocks (half a second where there are a million), so it is done when the process has grown since the last time, and once
 * an hour.
 */
#ifndef ST_STINTD_MEMORY_H
#define ST_STINTD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define ST_MEMORY_LOOK_S 60 /* between two looks */

typedef struct st_memory {
    int64_t left; /* what the process held behind the last time */
    int looks;    /* since then */
} st_memory;

/* Pages that are this process's own, bytes; 0 where the system does not say. */
int64_t st_memory_held(void);
/* Whether it gave back. */
bool st_memory_look(st_memory *memory);

#endif
