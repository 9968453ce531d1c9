/*
 * Sizes, as the rest of this folder sees them; the public part is in rules/rules.h.
 */
#ifndef ST_RULES_SIZES_H
#define ST_RULES_SIZES_H

#include "rules/fit.h"

/* The options are the rules' and outlive the sizes. */
st_sizes *st_sizes_new(const st_rules_options *options);
void st_sizes_free(st_sizes *sizes);

/* Lays the size the job names, if it names one, under the keys it has. */
int st_sizes_apply(st_sizes *sizes, const st_rules_who *who, json_t *job, st_err *err);

#endif
