/*
 * Money for Prometheus. Private to src/api.
 */
#ifndef ST_API_MONEY_METRICS_H
#define ST_API_MONEY_METRICS_H

#include "api/ask.h"
#include "http/metrics.h"

/* Costs, GPU time and budgets of the caller's subtree, this month so far. In the loop. */
int st_money_metrics(const st_question *q, const st_core *core, st_metrics *m, st_err *err);

#endif
