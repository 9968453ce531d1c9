/*
 * A run as one page of HTML.
 */
#ifndef ST_SIM_TRACE_HTML_H
#define ST_SIM_TRACE_HTML_H

#include "base/strbuf.h"
#include "sim/trace.h"

int st_trace_html(const st_run *run, st_strbuf *out);

#endif
