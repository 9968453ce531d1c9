/*
 * Text for pages: everything that comes from outside is escaped, numbers and moments are written
 * as people read them. Inside sim only.
 *
 * Pages are well-formed XML as well as HTML, so that any XML parser can check them.
 */
#ifndef ST_REPORT_HTML_TEXT_H
#define ST_REPORT_HTML_TEXT_H

#include <stdint.h>

#include "base/strbuf.h"

#define ST_HTML_MAX 48

/* A JSON string, quotes included; still to be escaped where it goes into an attribute. */
void st_json_text(st_strbuf *out, const char *s);

/* Each fills buf and returns it. Blanks inside are no place to break a line. */
const char *st_html_count(char buf[ST_HTML_MAX], int64_t n);      /* 12,345 */
const char *st_html_short(char buf[ST_HTML_MAX], double x);       /* 950, 1.2k, 35k, 4.1M */
const char *st_html_duration(char buf[ST_HTML_MAX], int64_t ms);  /* 12 s, 3 m 20 s, 2 d 04:10 */
const char *st_html_per_cent(char buf[ST_HTML_MAX], double part); /* 0.934 -> 93.4 % */

/* A moment `ms` after the epoch: 2026-01-05 08:00 UTC; or, where epoch_s is 0, 3d 08:00. */
const char *st_html_moment(char buf[ST_HTML_MAX], int64_t epoch_s, int64_t ms);

/* The same in few characters, for an axis with ticks every step_ms. */
const char *st_html_tick(char buf[ST_HTML_MAX], int64_t epoch_s, int64_t ms, int64_t step_ms);

#endif
