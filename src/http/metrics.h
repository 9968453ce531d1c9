/*
 * Writes metrics in the Prometheus text format (version 0.0.4): families with
 * their HELP and TYPE once, then samples. Samples of one family stay together.
 *
 *     st_metrics m = {.out = &buf};
 *     st_metrics_family(&m, "stint_jobs", ST_METRIC_GAUGE, "Jobs by state.");
 *     st_metrics_label(&m, "state", "running");
 *     st_metrics_int(&m, 12);
 */
#ifndef ST_HTTP_METRICS_H
#define ST_HTTP_METRICS_H

#include <stdint.h>

#include "base/strbuf.h"

#define ST_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

typedef enum { ST_METRIC_COUNTER, ST_METRIC_GAUGE, ST_METRIC_HISTOGRAM } st_metric_type;

typedef struct st_metrics {
    st_strbuf *out;
    const char *family; /* the one begun last */
    st_metric_type type;
    st_strbuf labels; /* of the sample to come, without braces */
} st_metrics;

/* Begins a family. Names are [a-zA-Z_:][a-zA-Z0-9_:]*, which is asserted. */
void st_metrics_family(st_metrics *m, const char *name, st_metric_type type, const char *help);

/* A label of the sample to come; any value, escaped as needed. */
void st_metrics_label(st_metrics *m, const char *name, const char *value);

/* One sample of a counter or gauge; its labels are used up. Milli and micro write decimals: 1500 milli are
 * 1.5. */
void st_metrics_int(st_metrics *m, int64_t value);
void st_metrics_milli(st_metrics *m, int64_t milli);
void st_metrics_micro(st_metrics *m, int64_t micro);

/* One histogram: n upper bounds in microseconds with the counts in each (not added up), the count
 * above the last one, and the sum in microseconds. Written in seconds, with le="+Inf" behind. */
void st_metrics_histogram_us(st_metrics *m, const int64_t *bounds_us, const uint64_t *counts, int n,
                             uint64_t above, uint64_t sum_us);

/* Frees the labels; the text is the caller's. */
void st_metrics_done(st_metrics *m);

#endif
