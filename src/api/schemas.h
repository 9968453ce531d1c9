/*
 * The tables that the schemas of the API are in, one for each group of nouns. Private to src/api.
 */
#ifndef ST_API_SCHEMAS_H
#define ST_API_SCHEMAS_H

#include "api/api.h"

extern const st_schema st_schemas_jobs[], st_schemas_accounts[], st_schemas_fleet[];
extern const st_schema st_schemas_calendar[];
extern const st_schema st_schemas_invoices[];
extern const st_schema st_schemas_money[];
extern const st_schema st_schemas_services[];

#endif
