/*
 * Which events somebody asks for; for streams (events.c) and for the past (events_past.c). Private to src/api.
 */
#ifndef ST_API_EVENTS_H
#define ST_API_EVENTS_H

#include "api/events_log.h"
#include "api/state.h"

typedef struct st_event_filter {
    uint64_t job;  /* 0: all */
    char *account; /* NULL: all that the caller sees */
    char *node;    /* NULL: all */
    char *kinds;   /* " start end "; NULL: all */
} st_event_filter;

/* What the call asks for. False: it is answered. */
bool st_event_filter_read(st_api *api, st_call *call, st_event_filter *ret);
void st_event_filter_done(st_event_filter *f);
/* `account` is the one that it happened in, by the name it has now. */
bool st_event_passes(const st_api *api, const st_event_filter *f, uint64_t job, const char *kind,
                     const char *account, const char *node);

/* events.c: the past; NULL: it is not kept. */
const st_events_log *st_hub_log(const st_hub *hub);

#endif
