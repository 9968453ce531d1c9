/*
 * A run as one page of HTML (sim/trace_html.h).
 */
#include "sim/trace_html.h"

int st_trace_html(const st_run *run, st_strbuf *out)
{
    st_strbuf_addf(out, "<!doctype html><title>%s</title>\n", run->trace->name);
    return 0;
}
