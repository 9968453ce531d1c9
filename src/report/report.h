/*
 * Telling what became of everybody in a run, for programs: one JSON document with all figures, and
 * CSV with a line per job or per sample. doc/reference/traces.md describes the fields; times are in seconds.
 */
#ifndef ST_REPORT_REPORT_H
#define ST_REPORT_REPORT_H

#include <jansson.h>

#include "base/strbuf.h"
#include "trace/private.h"
#include "trace/stats.h"

/* `refs` are the ST_PRIVATE_COUNT references the run is compared with, or NULL. */

/* The caller gives it back with json_decref. */
json_t *st_run_json(const st_trace_run *run, const st_run_stats *stats, const st_private *refs);

void st_run_csv_jobs(const st_trace_run *run, const st_private *refs, st_strbuf *out);
void st_run_csv_samples(const st_trace_run *run, st_strbuf *out);

#endif
