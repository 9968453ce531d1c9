/*
 * Plots: scales, ticks, marks, and the HTML around them; see the head. The SVG's own coordinates
 * are WIDTH x HEIGHT whole units, y downwards, whatever size it is shown at.
 */
#include "report/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "report/html_text.h"

#define WIDTH           4000
#define HEIGHT          1000
#define MINUTE_MS       INT64_C(60000)
#define HOUR_MS         (60 * MINUTE_MS)
#define DAY_MS          (24 * HOUR_MS)
#define EPOCH_MONDAY_MS (4 * DAY_MS) /* 1970-01-05 */

void st_plot_init(st_plot *p, const char *title, const char *desc)
{
    *p = (st_plot){.title = title, .desc = desc, .unit = "", .height_px = 240, .x1 = 1, .y1 = 1};
}

/* ---- scales ------------------------------------------------------------------------- */

static double scale_x(const st_plot *p, double x)
{
    double part;

    if (p->log_x)
        part = (log(ST_MAX(x, p->x0)) - log(p->x0)) / (log(p->x1) - log(p->x0));
    else
        part = (x - p->x0) / (p->x1 - p->x0);
    return ST_MIN(ST_MAX(part, 0), 1);
}

static double scale_y(const st_plot *p, double y)
{
    return 1 - ST_MIN(ST_MAX(y / p->y1, 0), 1);
}

int st_plot_x_m(const st_plot *p, double x)
{
    return (int)lround(scale_x(p, x) * 1000);
}

/* ---- ticks -------------------------------------------------------------------------- */

/* A tick at a part of the width. Every second one gives way in a narrow window, and labels that
 * would stand over the edge lean inwards. */
static void x_tick(st_plot *p, double part, const char *text, int number)
{
    const char *edge = part < 0.03 ? " first" : part > 0.97 ? " last" : "";

    st_strbuf_addf(&p->grid, "<path class=\"grid\" d=\"M%ld 0V%d\"/>", lround(part * WIDTH),
                   HEIGHT);
    st_strbuf_addf(&p->x_ticks, "<span class=\"x%s%s\" style=\"left:%.2f%%\">",
                   number % 2 ? " odd" : "", edge, part * 100);
    st_quote_html(&p->x_ticks, text);
    st_strbuf_add(&p->x_ticks, "</span>");
}

void st_plot_time(st_plot *p, int64_t epoch_s, int64_t from_ms, int64_t to_ms)
{
    static const int64_t steps[] = {
        MINUTE_MS,   5 * MINUTE_MS, 15 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS,     2 * HOUR_MS,
        3 * HOUR_MS, 6 * HOUR_MS,   12 * HOUR_MS,   DAY_MS,         2 * DAY_MS,  3 * DAY_MS,
        7 * DAY_MS,  14 * DAY_MS,   28 * DAY_MS,    91 * DAY_MS,    364 * DAY_MS};
    int64_t shift = epoch_s * 1000, step = steps[0], at;
    int most = p->small ? 4 : 9, number = 0;
    char buf[ST_HTML_MAX];

    to_ms = ST_MAX(to_ms, from_ms + 1);
    p->epoch_s = epoch_s;
    p->x0 = (double)from_ms;
    p->x1 = (double)to_ms;
    for (size_t i = 0; i < ST_ARRAY_LEN(steps) && (to_ms - from_ms) / step > most; i++)
        step = steps[i];
    if (epoch_s != 0 && step >= 7 * DAY_MS)
        shift -= EPOCH_MONDAY_MS; /* weeks begin on Mondays */
    at = from_ms + (step - (from_ms + shift) % step) % step;
    for (; at <= to_ms; at += step)
        x_tick(p, scale_x(p, (double)at), st_html_tick(buf, epoch_s, at, step), number++);
}

void st_plot_log_time(st_plot *p, int64_t max_ms)
{
    static const struct {
        int64_t ms;
        const char *text;
    } ticks[] = {
        {1000, "1 s"},         {10000, "10 s"},       {MINUTE_MS, "1 m"}, {10 * MINUTE_MS, "10 m"},
        {HOUR_MS, "1 h"},      {6 * HOUR_MS, "6 h"},  {DAY_MS, "1 d"},    {7 * DAY_MS, "7 d"},
        {30 * DAY_MS, "30 d"}, {365 * DAY_MS, "1 y"},
    };

    p->log_x = true;
    p->x0 = 1000;
    p->x1 = (double)ST_MAX(max_ms, MINUTE_MS);
    for (size_t i = 0; i < ST_ARRAY_LEN(ticks) && (double)ticks[i].ms <= p->x1; i++)
        x_tick(p, scale_x(p, (double)ticks[i].ms), ticks[i].text, (int)i);
}

/* The smallest of 1, 2, 2.5 and 5 times a power of ten that fits at most so often into max. */
static double round_step(double max, int parts)
{
    static const double heads[] = {1, 2, 2.5, 5};
    double power = pow(10, floor(log10(max / (parts + 1))));

    for (size_t i = 0; i < ST_ARRAY_LEN(heads); i++)
        if (max < heads[i] * power * (parts + 1))
            return heads[i] * power;
    return 10 * power;
}

void st_plot_values(st_plot *p, double max, const char *unit)
{
    double step;
    char buf[ST_HTML_MAX];

    p->unit = unit;
    p->y1 = max > 0 ? max : 1;
    step = round_step(p->y1, p->small ? 3 : 5);
    for (int i = 0; step * i <= p->y1 * 1.000001; i++) {
        double part = scale_y(p, step * i);

        st_strbuf_addf(&p->grid, "<path class=\"%s\" d=\"M0 %ldH%d\"/>", i == 0 ? "base" : "grid",
                       lround(part * HEIGHT), WIDTH);
        st_strbuf_addf(&p->y_ticks, "<span class=\"y\" style=\"top:%.2f%%\">%s%s</span>",
                       part * 100, st_html_short(buf, step * i),
                       strcmp(unit, "%") ? "" : "\u2009%");
    }
}

/* ---- marks -------------------------------------------------------------------------- */

typedef struct kept {
    size_t *at;
    size_t n;
} kept;

static void keep(kept *k, size_t i)
{
    if (k->n == 0 || k->at[k->n - 1] < i)
        k->at[k->n++] = i;
}

/* Which points are drawn: all, or of every stretch the smallest and the largest; always the first
 * and the last. */
static kept thin(const double *y, size_t n)
{
    kept k = {.at = st_xcalloc(ST_MAX(n, 1), sizeof(*k.at))};
    size_t stretches = ST_PLOT_POINTS_MAX / 2 - 1;

    if (n <= ST_PLOT_POINTS_MAX) {
        for (size_t i = 0; i < n; i++)
            keep(&k, i);
        return k;
    }
    keep(&k, 0);
    for (size_t b = 0; b < stretches; b++) {
        size_t from = n * b / stretches, to = n * (b + 1) / stretches, lo = from, hi = from;

        for (size_t i = from; i < to; i++) {
            lo = y[i] < y[lo] ? i : lo;
            hi = y[i] > y[hi] ? i : hi;
        }
        keep(&k, ST_MIN(lo, hi));
        keep(&k, ST_MAX(lo, hi));
    }
    keep(&k, n - 1);
    return k;
}

static void point(st_plot *p, char command, double x, double y)
{
    st_strbuf_addf(&p->marks, "%c%ld %ld", command, lround(scale_x(p, x) * WIDTH),
                   lround(scale_y(p, y) * HEIGHT));
}

void st_plot_line(st_plot *p, const char *class, const double *x, const double *y, size_t n)
{
    kept k = thin(y, n);

    if (k.n > 0) {
        st_strbuf_addf(&p->marks, "<path class=\"line %s\" d=\"", class);
        for (size_t i = 0; i < k.n; i++)
            point(p, i == 0 ? 'M' : 'L', x[k.at[i]], y[k.at[i]]);
        if (k.n == 1) /* one sample holds for the whole width */
            st_strbuf_addf(&p->marks, "M0 %ldH%d", lround(scale_y(p, y[0]) * HEIGHT), WIDTH);
        st_strbuf_add(&p->marks, "\"/>\n");
    }
    free(k.at);
}

void st_plot_band(st_plot *p, const char *class, const double *x, const double *lo,
                  const double *hi, size_t n)
{
    kept k = thin(hi, n);

    if (k.n > 0) {
        st_strbuf_addf(&p->marks, "<path class=\"area %s\" d=\"", class);
        if (k.n == 1) {
            st_strbuf_addf(&p->marks, "M0 %ldH%dV%ldH0", lround(scale_y(p, hi[0]) * HEIGHT), WIDTH,
                           lround(scale_y(p, lo ? lo[0] : 0) * HEIGHT));
        } else {
            for (size_t i = 0; i < k.n; i++)
                point(p, i == 0 ? 'M' : 'L', x[k.at[i]], hi[k.at[i]]);
            for (size_t i = k.n; i-- > 0;)
                point(p, 'L', x[k.at[i]], lo ? lo[k.at[i]] : 0);
        }
        st_strbuf_add(&p->marks, "Z\"/>\n");
    }
    free(k.at);
}

/* ---- words -------------------------------------------------------------------------- */

void st_plot_label(st_plot *p, double y, const char *text)
{
    st_strbuf_addf(&p->labels, "<span class=\"label\" style=\"top:%.2f%%\">", scale_y(p, y) * 100);
    st_quote_html(&p->labels, text);
    st_strbuf_add(&p->labels, "</span>");
}

void st_plot_moment(st_plot *p, double x, const char *text)
{
    double part = scale_x(p, x);

    st_strbuf_addf(&p->marks, "<path class=\"moment\" d=\"M%ld 0V%d\"/>\n", lround(part * WIDTH),
                   HEIGHT);
    st_strbuf_addf(&p->labels, "<span class=\"at%s\" style=\"left:%.2f%%\">",
                   part > 0.7 ? " before" : "", part * 100);
    st_quote_html(&p->labels, text);
    st_strbuf_add(&p->labels, "</span>");
}

void st_plot_label_right(st_plot *p, double y, const char *class, const char *text)
{
    st_strbuf_addf(&p->labels, "<span class=\"right %s\" style=\"top:%.2f%%\">", class,
                   scale_y(p, y) * 100);
    st_quote_html(&p->labels, text);
    st_strbuf_add(&p->labels, "</span>");
}

void st_plot_legend(st_plot *p, const char *class, const char *text)
{
    st_strbuf_addf(&p->legend, "<li><i class=\"%s\"></i>", class);
    st_quote_html(&p->legend, text);
    st_strbuf_add(&p->legend, "</li>");
}

size_t st_plot_hover_count(size_t n)
{
    return ST_MIN(n, ST_PLOT_HOVER_MAX);
}

size_t st_plot_hover_at(size_t n, size_t i)
{
    size_t count = st_plot_hover_count(n);

    return count > 1 ? i * (n - 1) / (count - 1) : 0;
}

void st_plot_hover(st_plot *p, const char *class, const char *name, const double *y, size_t n)
{
    st_strbuf_add(&p->hover, p->hover.n > 0 ? ",{\"n\":" : "{\"n\":");
    st_json_text(&p->hover, name);
    st_strbuf_addf(&p->hover, ",\"c\":\"%s\",\"v\":[", class);
    for (size_t i = 0; i < st_plot_hover_count(n); i++) {
        double v = y[st_plot_hover_at(n, i)];

        st_strbuf_addf(&p->hover, v >= 100 || v == floor(v) ? "%s%.0f" : "%s%.1f", i > 0 ? "," : "",
                       v);
    }
    st_strbuf_add(&p->hover, "]}");
}

void st_plot_hover_places(st_plot *p, const double *x, const int64_t *durations_ms, size_t n)
{
    char buf[ST_HTML_MAX];

    st_strbuf_add(&p->hover_x, ",\"x\":[");
    for (size_t i = 0; i < n; i++)
        st_strbuf_addf(&p->hover_x, "%s%d", i > 0 ? "," : "", st_plot_x_m(p, x[i]));
    st_strbuf_add(&p->hover_x, "],\"l\":[");
    for (size_t i = 0; i < n; i++) {
        st_strbuf_add(&p->hover_x, i > 0 ? "," : "");
        st_json_text(&p->hover_x, st_html_duration(buf, durations_ms[i]));
    }
    st_strbuf_add(&p->hover_x, "]");
}

/* ---- the whole ---------------------------------------------------------------------- */

static void print_hover(const st_plot *p, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf json = {0};

    if (p->hover.n == 0)
        return;
    st_strbuf_add(&json, "{\"u\":");
    st_json_text(&json, p->unit);
    st_strbuf_add(&json, st_strbuf_str(&p->hover_x));
    st_strbuf_addf(&json, ",\"s\":[%s]}", st_strbuf_str(&p->hover));
    st_strbuf_add(out, " data-hover=\"");
    st_quote_html(out, st_strbuf_str(&json));
    st_strbuf_add(out, "\"");
}

void st_plot_print(st_plot *p, st_strbuf *out)
{
    st_strbuf *parts[] = {&p->grid,    &p->marks,  &p->labels, &p->x_ticks,
                          &p->y_ticks, &p->legend, &p->hover,  &p->hover_x};

    if (p->legend.n > 0)
        st_strbuf_addf(out, "<ul class=\"legend\">%s</ul>\n", st_strbuf_str(&p->legend));
    st_strbuf_addf(out, "<div class=\"plot%s\" style=\"height:%dpx\"", p->small ? " small" : "",
                   p->height_px);
    print_hover(p, out);
    st_strbuf_addf(out,
                   ">\n<svg role=\"img\" viewBox=\"0 0 %d %d\" "
                   "preserveAspectRatio=\"none\"><title>",
                   WIDTH, HEIGHT);
    st_quote_html(out, p->title);
    st_strbuf_add(out, "</title><desc>");
    st_quote_html(out, p->desc);
    st_strbuf_add(out, "</desc>\n");
    st_strbuf_add(out, st_strbuf_str(&p->grid));
    st_strbuf_add(out, "\n");
    st_strbuf_add(out, st_strbuf_str(&p->marks));
    st_strbuf_addf(out, "</svg>\n<div class=\"text\">%s%s%s</div>\n</div>\n",
                   st_strbuf_str(&p->y_ticks), st_strbuf_str(&p->x_ticks),
                   st_strbuf_str(&p->labels));
    for (size_t i = 0; i < ST_ARRAY_LEN(parts); i++)
        st_strbuf_done(parts[i]);
}
