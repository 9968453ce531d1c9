/*
 * Workload types: what `workload: inference` and the others stand for.
 */
#ifndef ST_RULES_WORKLOAD_H
#define ST_RULES_WORKLOAD_H

#include "rules/frames.h"
#include "rules/rules.h"

/* Fills in what the workload stands for, unless the document says otherwise; an estimate leaves
 * its arithmetic in the key `estimate`. */
int st_workload_apply(const st_rules_options *options, const st_rules_who *who, json_t *job,
                      st_err *err);

/* What a job with a model needs on the GPUs of one task, whatever it asks for; false: it has none, or nobody can say. */
bool st_workload_memory(const st_rules_options *options, const json_t *job, int64_t *ret_mib);

/* Whether a document has a key that only a workload gives a meaning. */
bool st_workload_key(const char *key);

/* Cuts the document into its pieces (array.c); one that is no array is a piece by itself. */
int st_array_apply(json_t *job, st_rules_jobs *ret, st_err *err);

#endif
