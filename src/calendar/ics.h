/*
 * iCalendar (RFC 5545), written. Every window is an event of its own in UTC: readers show it in their own zone, and what
 * was confirmed are the instants, not a rule that a reader would expand by itself.
 */
#ifndef ST_CALENDAR_ICS_H
#define ST_CALENDAR_ICS_H

#include <stdint.h>

#include "base/strbuf.h"

typedef enum st_ics_status { ST_ICS_TENTATIVE, ST_ICS_CONFIRMED, ST_ICS_CANCELLED } st_ics_status;

typedef struct st_ics_event {
    const char *uid; /* the same for the same window, whenever it is written */
    const char *summary;
    const char *description; /* NULL: none */
    const char *location;    /* NULL: none */
    int64_t from_ms, to_ms;
    int64_t stamp_ms; /* when it was last changed */
    st_ics_status status;
} st_ics_event;

void st_ics_begin(st_strbuf *out, const char *name);
void st_ics_event_add(st_strbuf *out, const st_ics_event *event);
void st_ics_end(st_strbuf *out);

#endif
