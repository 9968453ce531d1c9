/*
 * Plots as HTML with SVG inside, drawn by us, without anything from elsewhere. Inside sim only.
 *
 * The marks are an SVG that is stretched to whatever width there is; ticks, labels and legends are
 * HTML beside it, placed in per cent, so that text keeps its size on a telephone and on paper.
 * Colours are classes (c1 .. c8, rest, ink, warn) that the page defines for light and dark.
 *
 *     st_plot p;
 *     st_plot_init(&p, "Queue", "Jobs that wait, over time");
 *     st_plot_time(&p, epoch_s, 0, end_ms);
 *     st_plot_values(&p, max, "jobs");
 *     st_plot_line(&p, "c1", x, y, n);
 *     st_plot_print(&p, out);   // and frees it
 */
#ifndef ST_REPORT_PLOT_H
#define ST_REPORT_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#define ST_PLOT_POINTS_MAX 500 /* of one series; peaks are kept */
#define ST_PLOT_HOVER_MAX  240 /* read-outs */

typedef struct st_plot {
    const char *title, *desc, *unit;
    int height_px;
    int64_t epoch_s;
    double x0, x1, y1; /* y begins at 0 */
    bool log_x;
    bool small;            /* fewer ticks, less margin */
    st_strbuf grid, marks; /* SVG */
    st_strbuf labels;      /* HTML over or beside the marks */
    st_strbuf x_ticks, y_ticks;
    st_strbuf legend;
    st_strbuf hover;   /* JSON: the series of the read-out */
    st_strbuf hover_x; /* JSON: their places and names, where they are not the page's */
} st_plot;

/* Both texts must outlive the plot. */
void st_plot_init(st_plot *p, const char *title, const char *desc);

/* The axes; before any mark. */
void st_plot_time(st_plot *p, int64_t epoch_s, int64_t from_ms, int64_t to_ms);
void st_plot_log_time(st_plot *p, int64_t max_ms); /* from one second */
/* From 0 to max, with ticks at round numbers. `unit` is told with values: "GPUs", "%". */
void st_plot_values(st_plot *p, double max, const char *unit);

/* Marks, from the first to the last drawn over it. More than ST_PLOT_POINTS_MAX points are
 * thinned so that the smallest and the largest of every stretch stay. `lo` NULL is 0. */
void st_plot_line(st_plot *p, const char *class, const double *x, const double *y, size_t n);
void st_plot_band(st_plot *p, const char *class, const double *x, const double *lo,
                  const double *hi, size_t n);

/* A label at a height of the value axis: inside the plot, at the left, or in the margin at the
 * right, which only wide windows have. */
void st_plot_label(st_plot *p, double y, const char *text);
void st_plot_label_right(st_plot *p, double y, const char *class, const char *text);

/* A line across at a moment, with words beside its upper end. */
void st_plot_moment(st_plot *p, double x, const char *text);

/* A legend entry, and a series of the read-out with a value for each of its places. */
void st_plot_legend(st_plot *p, const char *class, const char *text);
void st_plot_hover(st_plot *p, const char *class, const char *name, const double *y, size_t n);

/* The places of a read-out are those of the page (st_plot_hover_at) unless given here. */
void st_plot_hover_places(st_plot *p, const double *x, const int64_t *durations_ms, size_t n);

/* Of n samples, the index of the i-th read-out; how many read-outs there are. */
size_t st_plot_hover_at(size_t n, size_t i);
size_t st_plot_hover_count(size_t n);

/* Writes the plot and frees what it has. */
void st_plot_print(st_plot *p, st_strbuf *out);

/* The place of x in thousandths of the width. */
int st_plot_x_m(const st_plot *p, double x);

#endif
