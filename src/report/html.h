/*
 * A run as one page of HTML that needs nothing but itself: key figures, allocation, queue, shares
 * by account, waiting times, stranded capacity, and a table of accounts. It opens from a file, in
 * light and dark, on a telephone and on paper; behind every plot is a table.
 *
 * Nothing in it is wall-clock time: the same run gives the same bytes. The page is well-formed XML.
 */
#ifndef ST_REPORT_HTML_H
#define ST_REPORT_HTML_H

#include "base/strbuf.h"
#include "trace/trace.h"

/* Appends the page. Always 0. */
int st_trace_html(const st_trace_run *run, st_strbuf *out);

#endif
