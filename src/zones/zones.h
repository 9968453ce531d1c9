/*
 * Time zones by name, read from the system's database (the package tzdata) and kept. For the programs; what a zone means
 * is src/calendar's.
 *
 * A name never leads out of the database's folder: it is checked first, and opened beneath the folder by descriptor.
 */
#ifndef ST_ZONES_ZONES_H
#define ST_ZONES_ZONES_H

#include "calendar/tz.h"

#define ST_ZONES_DIR         "/usr/share/zoneinfo"
#define ST_ZONES_VERSION_MAX 32

typedef struct st_zones st_zones;

/* From the folder; no zone is read yet. */
st_zones *st_zones_new(const char *dir);
void st_zones_free(st_zones *zones);
ST_DEFINE_FREEP(st_zones, st_zones_free)

/* The zone, which is there for as long as `zones` is. From any thread. UTC needs no database. */
int st_zones_get(st_zones *zones, const char *name, const st_tz **ret, st_err *err);

/* Where there is another release now, zones are read anew from here on. Those that were handed out stay as they are. */
void st_zones_refresh(st_zones *zones);

/* The folder of this process: TZDIR of its environment, or ST_ZONES_DIR. */
const char *st_zones_dir(void);

/* Which release of the database there is, "2025b"; "unknown" where it does not say. */
void st_zones_version(const st_zones *zones, char ret[ST_ZONES_VERSION_MAX]);

#endif
