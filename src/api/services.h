/*
 * Services of tenants, as the API has them: the controller's thread, and what of it others use. Private to src/api.
 */
#ifndef ST_API_SERVICES_H
#define ST_API_SERVICES_H

#include "api/state.h"
#include "control/services.h"

/* ---- services_run.c: the controller ------------------------------------------------------------- */

typedef struct st_services_run st_services_run;
st_services_run *st_services_run_new(st_api *api);
int st_services_run_start(st_services_run *run, st_err *err);
/* Ends the thread; the control loop must still run. */
void st_services_run_free(st_services_run *run);

/* A template, open, as the job it becomes: one, by this person's rights. x->arena is the caller's; *ret_doc has the texts
 * and may be set although it fails. */
int st_service_expand(st_api *api, const st_identity *who, const char *text, st_expansion *x,
                      st_doc **ret_doc, st_err *err);

/* ---- services.c ------------------------------------------------------------------------------------ */

/* The service that the caller means by NAME or ACCOUNT/NAME, with the lock held; NULL: *err says so. */
st_service *st_api_service_of(st_api *api, const st_identity *who, const char *text, st_err *err);

#endif
