/*
 * Calls that wait for something: a change of a node's orders, more of a log. One list, one thread
 * that looks at the clock, no work while nothing happens. Private to src/api.
 */
#ifndef ST_API_PARK_H
#define ST_API_PARK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct st_park st_park;

/* Embedded in what the waiting call needs. */
typedef struct st_parked {
    uint64_t key;
    int64_t wait_ms; /* at most */
    bool often;      /* nobody wakes it: look a few times a second */
    /* Answers if there is something to say, or if it is `late` and must, and returns whether it
     * has; it is freed then, with free(). Never runs twice at the same time. */
    bool (*look)(struct st_parked *p, bool late);

    /* The park's. */
    int64_t until_ms;
    bool busy, again, late;
    struct st_parked *prev, *next, *same; /* in the list; under the same key */
} st_parked;

st_park *st_park_new(void);
/* Answers all that wait; what comes later is looked at once, late. */
void st_park_close(st_park *park);
void st_park_free(st_park *park);

/* Looks at it, and keeps it while there is nothing to say. */
void st_park_add(st_park *park, st_parked *p);
/* Something has happened to this key; `late`: and nothing more will. */
void st_park_wake(st_park *park, uint64_t key, bool late);

#define ST_PARK_NODE(node) ((uint64_t)(node) << 1)
#define ST_PARK_JOB(job)   ((uint64_t)(job) << 1 | 1)

#endif
