/*
 * The shapes of requests and answers, for /openapi.json. Requests are read by src/spec; a test
 * sends every field named here and compares every answer with its schema.
 */
#include "api/schemas.h"

const st_schema *const *st_api_schemas(void)
{
    static const st_schema *const tables[] = {
        st_schemas_accounts, st_schemas_calendar, st_schemas_jobs,     st_schemas_fleet,
        st_schemas_invoices, st_schemas_money,    st_schemas_services, NULL};

    return tables;
}
