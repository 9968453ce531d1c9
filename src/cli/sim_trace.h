/*
 * The parts of `stint sim trace`: what was asked for, and the tables for people.
 */
#ifndef ST_CLI_SIM_TRACE_H
#define ST_CLI_SIM_TRACE_H

#include "cli/cli.h"
#include "trace/private.h"
#include "trace/stats.h"

/* Prints the figures, the accounts and, where refs is not NULL, the references. */
void st_cli_print_run(FILE *out, const st_trace_run *run, const st_run_stats *stats,
                      const st_private *refs);

#endif
