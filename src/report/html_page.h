/*
 * Inside the page of a run only (report/html.h): what its sections share.
 *
 *     trace_html.c         the frame: head, key figures, the order of sections, accounts
 *     trace_html_plots.c   the plots over time
 *     trace_html_wait.c    how long jobs waited, by size
 *     trace_html_style.c   style and script
 *     plot.c, html_text.c  what a plot and a text is
 */
#ifndef ST_REPORT_HTML_PAGE_H
#define ST_REPORT_HTML_PAGE_H

#include "report/html.h"
#include "report/html_text.h"
#include "report/plot.h"
#include "trace/stats.h"

#define ST_PAGE_TOP      8 /* accounts with a colour of their own */
#define ST_PAGE_ROWS_MAX 24

typedef struct st_page {
    const st_trace_run *run;
    const st_trace *trace;
    st_run_stats stats;
    st_strbuf *out;
    int64_t to_ms;  /* where plots over time end */
    size_t n;       /* samples up to then */
    double *x;      /* their times */
    int32_t *order; /* accounts that have jobs, who held most first */
    size_t naccounts;
} st_page;

/* The style in parts, NULL behind the last; and the script. */
extern const char *const st_page_style[];
extern const char st_page_script[];

/* A section with its heading and one sentence that says how to read it. */
void st_page_open(st_page *g, const char *heading, const char *how);
void st_page_close(st_page *g);

/* A table that is folded away: the values of some series at moments in even distances. */
typedef struct st_page_column {
    const char *heading;
    const double *y;
} st_page_column;
void st_page_time_table(st_page *g, const st_page_column *columns, size_t n);
void st_page_table_open(st_page *g);
void st_page_table_close(st_page *g);

void st_page_allocation(st_page *g);
void st_page_queue(st_page *g);
void st_page_shares(st_page *g);
void st_page_stranded(st_page *g);
void st_page_waiting(st_page *g);

/* How long job i waited for its first start; ST_UNSET: it never started. */
int64_t st_page_wait_ms(const st_page *g, size_t i);

#endif
