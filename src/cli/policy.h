/*
 * A policy on the command line: --policy order=shortest,swap=true,notice=0.
 */
#ifndef ST_CLI_POLICY_H
#define ST_CLI_POLICY_H

#include "base/err.h"
#include "model/policy.h"

/* Changes what the text names; keys are those of model/policy.h, `order` and `basis`. */
int st_cli_policy(const char *text, st_policy *policy, st_err *err);

#endif
