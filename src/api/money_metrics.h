/*
 * Money for Prometheus. Private to src/api.
 */
#ifndef ST_API_MONEY_METRICS_H
#define ST_API_MONEY_METRICS_H

#include "api/ask.h"
#include "http/metrics.h"

/* What was written lately, by account: sums go through everything that runs. */
typedef struct st_money_pages st_money_pages;
st_money_pages *st_money_pages_new(void);
void st_money_pages_free(st_money_pages *pages);

/* Costs, GPU time and budgets of the caller's subtree, this month so far: of the state that is asked, with what runs up to a
 * moment that is at most a second ago. */
int st_money_metrics(const st_question *q, const st_core *core, st_metrics *m, st_err *err);

#endif
