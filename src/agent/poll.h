/*
 * One place where a thread waits: descriptors, each with whom to call, and a way for other threads to
 * wake it.
 */
#ifndef ST_AGENT_POLL_H
#define ST_AGENT_POLL_H

#include <stdint.h>

#include "base/macros.h"

/* It stays the caller's and must stay where it is. */
typedef struct st_agent_watch {
    int fd;
    void (*ready)(void *ctx, uint32_t events);
    void *ctx;
} st_agent_watch;

typedef struct st_poll st_poll;

st_poll *st_poll_new(void);
void st_poll_free(st_poll *p);
ST_DEFINE_FREEP(st_poll, st_poll_free)

/* A watch that is there already gets other events. */
void st_poll_add(st_poll *p, st_agent_watch *watch, uint32_t events);
void st_poll_remove(st_poll *p, const st_agent_watch *watch);

/* Waits for something to happen, timeout_ms at most, and calls whom it concerns. */
void st_poll_wait(st_poll *p, int timeout_ms);

/* From any thread: the wait ends, now or the next time. */
void st_poll_wake(st_poll *p);

#endif
