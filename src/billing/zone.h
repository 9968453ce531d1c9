/*
 * Months as the billing zone has them. Private to src/billing.
 *
 * A month begins at the first instant of its first day there; where clocks skip that midnight, at the
 * instant they skip it. The edges are a table that is made at the start from the system's zone database, so
 * nothing later depends on the environment.
 */
#ifndef ST_BILLING_ZONE_H
#define ST_BILLING_ZONE_H

#include "ledger/ledger.h"

typedef struct st_zone st_zone;

/* `name` as in the IANA database; "UTC" needs none, and "test-3" has "months" of three seconds, for tests. */
int st_zone_new(const char *name, st_zone **ret, st_err *err);
void st_zone_free(st_zone *zone);
ST_DEFINE_FREEP(st_zone, st_zone_free)

const char *st_zone_name(const st_zone *zone);

/* The month that has this moment in it. */
void st_zone_month(const st_zone *zone, int64_t at_ms, st_period *ret);
/* The period that follows one that ended at from_ms: to the end of the month, or, when the zone was
 * changed and that is a matter of hours, of the next. */
void st_zone_after(const st_zone *zone, int64_t from_ms, st_period *ret);

/* The next midnight UTC after a moment. */
int64_t st_zone_midnight(int64_t after_ms);

#endif
