/*
 * The end of a trace and of its run (sim/trace.h).
 */
#include "sim/trace.h"

#include <stdlib.h>

void st_trace_free(st_trace *trace)
{
    if (!trace)
        return;
    st_vec_free(&trace->types);
    st_vec_free(&trace->nodes);
    st_vec_free(&trace->accounts);
    st_vec_free(&trace->jobs);
    st_arena_free(trace->arena);
    free(trace);
}

void st_run_free(st_run *run)
{
    if (!run)
        return;
    st_vec_free(&run->jobs);
    st_vec_free(&run->samples);
    st_vec_free(&run->held_m);
    st_vec_free(&run->entitled_m);
    st_vec_free(&run->accounts);
    free(run);
}
