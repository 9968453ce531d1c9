/* A trace as the two files that `stint sim trace` reads: world.yaml and jobs.csv. */
#ifndef ST_CLI_TRACE_FILES_H
#define ST_CLI_TRACE_FILES_H

#include <stdio.h>

#include "trace/trace.h"

/* Makes the folder where it is missing, writes both, and says so; `world` writes the first. */
int st_trace_files_write(const char *dir, const st_trace *trace,
                         void (*world)(const st_trace *, FILE *), FILE *said, st_err *err);

#endif
