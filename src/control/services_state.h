/*
 * What changes the services there are; in the loop. Private to src/control.
 */
#ifndef ST_CONTROL_SERVICES_STATE_H
#define ST_CONTROL_SERVICES_STATE_H

#include "control/services.h"

/* As it was committed. */
int st_services_take(st_services *s, const char *kept, const char *doc, int64_t version,
                     st_err *err);
void st_services_drop(st_services *s, const char *kept);

#endif
