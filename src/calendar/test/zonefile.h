/*
 * For unit tests of src/calendar: zones as the distribution has them.
 */
#ifndef ST_CALENDAR_TEST_ZONEFILE_H
#define ST_CALENDAR_TEST_ZONEFILE_H

#include "calendar/tz.h"

#define ZONE_DIR "/usr/share/zoneinfo"

/* The zone of that name; the test fails where there is none. */
st_tz *zonefile(const char *name);

/* Names of all zones, sorted; the caller frees each and the list, which ends with NULL. */
char **zonefile_names(size_t *ret_n);

/* Seconds since 1970 that a clock shows on that day at that time. */
int64_t wall(int year, int month, int day, int hour, int minute);

#endif
