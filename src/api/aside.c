/*
 * Lists that are read from the store: they may go through very many rows, so they are not made by the threads that
 * serve connections. Private to src/api.
 */
#include <stdlib.h>

#include "api/state.h"
#include "api/work.h"
#include "base/mem.h"

typedef struct aside {
    st_api *api;
    st_call *call;
    st_handler *fn;
} aside;

static void run(void *arg)
{
    aside *a = arg;

    a->fn(a->call, a->api);
    free(a);
}

void st_api_aside(st_api *api, st_call *call, st_handler *fn)
{
    aside *a = st_xcalloc(1, sizeof *a);
    st_err err;

    *a = (aside){api, call, fn};
    st_call_defer(call);
    if (st_work_run(api->lists, run, a))
        return;
    st_fail(&err, ST_EDOWN, "many lists are being made just now; try again in a moment");
    st_call_fail(call, &err);
    free(a);
}
