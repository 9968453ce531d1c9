/*
 * The plots over time: allocation, queue, shares by account, stranded capacity.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "report/html_page.h"

#define LABEL_GAP_PX 17
#define HEADROOM     1.04

static const char *const colours[ST_PAGE_TOP + 1] = {"c1", "c2", "c3", "c4",  "c5",
                                                     "c6", "c7", "c8", "rest"};

/* One number of every sample, milli-GPU as GPUs. */
#define COLUMN(g, ret, expression)                            \
    do {                                                      \
        (ret) = st_xcalloc((g)->n + 1, sizeof(*(ret)));       \
        for (size_t i = 0; i < (g)->n; i++) {                 \
            const st_run_sample *s = &(g)->run->samples.v[i]; \
            (ret)[i] = (double)(expression);                  \
        }                                                     \
    } while (0)

static double largest(const double *y, size_t n)
{
    double max = 0;

    for (size_t i = 0; i < n; i++)
        max = ST_MAX(max, y[i]);
    return max;
}

static void begin(st_page *g, st_plot *p, const char *title, const char *desc, double max,
                  const char *unit, int height_px, bool small)
{
    st_plot_init(p, title, desc);
    p->height_px = height_px;
    p->small = small;
    st_plot_time(p, g->trace->epoch_s, 0, g->to_ms);
    st_plot_values(p, max * HEADROOM, unit);
}

void st_page_allocation(st_page *g)
{
    ST_CLEANUP(st_freep) double *capacity, *allocated, *stranded, *unusable;
    char label[96], n[ST_HTML_MAX];
    st_plot p;

    COLUMN(g, capacity, s->capacity_m / 1000.0);
    COLUMN(g, allocated, s->allocated_m / 1000.0);
    COLUMN(g, stranded, s->stranded_m / 1000.0);
    COLUMN(g, unusable, ST_MIN(s->allocated_m + s->stranded_m, s->capacity_m) / 1000.0);
    st_page_open(g, "Allocation",
                 "GPUs that are given out, below what is there. Stranded is free, but in pieces no "
                 "typical job could use.");
    begin(g, &p, "Allocation over time",
          "GPUs allocated and stranded at each moment, below the capacity of the fleet",
          ST_MAX(largest(capacity, g->n), largest(allocated, g->n)) * 1.08, "GPUs", 260, false);
    st_plot_legend(&p, "c1", "allocated");
    st_plot_legend(&p, "c2", "stranded");
    st_plot_legend(&p, "ink", "capacity");
    st_plot_band(&p, "c1", g->x, NULL, allocated, g->n);
    st_plot_band(&p, "c2 flat", g->x, allocated, unusable, g->n);
    st_plot_line(&p, "ink", g->x, capacity, g->n);
    if (g->n > 0) {
        snprintf(label, sizeof(label), "capacity %s GPUs", st_html_count(n, (int64_t)capacity[0]));
        st_plot_label(&p, capacity[0], label);
    }
    if (g->trace->jobs.n > 0 && g->n > 1)
        st_plot_moment(&p, (double)g->trace->jobs.v[g->trace->jobs.n - 1].submit_ms,
                       "last job came");
    st_plot_hover(&p, "ink", "capacity", capacity, g->n);
    st_plot_hover(&p, "c1", "allocated", allocated, g->n);
    st_plot_hover(&p, "c2", "stranded", stranded, g->n);
    st_plot_print(&p, g->out);
    st_page_time_table(g,
                       (const st_page_column[]){{"Capacity", capacity},
                                                {"Allocated", allocated},
                                                {"Stranded", stranded}},
                       3);
    st_page_close(g);
}

static void queue_plot(st_page *g, const char *title, const char *desc, const char *class,
                       const char *unit, const double *y)
{
    st_plot p;

    st_strbuf_addf(g->out, "<div><h3>%s</h3>\n", title);
    begin(g, &p, title, desc, largest(y, g->n), unit, 170, true);
    st_plot_band(&p, class, g->x, NULL, y, g->n);
    st_plot_hover(&p, class, "waiting", y, g->n);
    st_plot_print(&p, g->out);
    st_strbuf_add(g->out, "</div>\n");
}

void st_page_queue(st_page *g)
{
    ST_CLEANUP(st_freep) double *jobs, *gpus, *running;

    COLUMN(g, jobs, s->waiting);
    COLUMN(g, gpus, s->waiting_m / 1000.0);
    COLUMN(g, running, s->running);
    st_page_open(g, "Queue", "Jobs that wait, and the GPUs they ask for together.");
    st_strbuf_add(g->out, "<div class=\"two\">\n");
    queue_plot(g, "Jobs waiting", "Number of jobs in the queue over time", "c4", "jobs", jobs);
    queue_plot(g, "GPUs asked for by waiting jobs", "GPUs all waiting jobs ask for, over time",
               "c6", "GPUs", gpus);
    st_strbuf_add(g->out, "</div>\n");
    st_page_time_table(g,
                       (const st_page_column[]){{"Jobs waiting", jobs},
                                                {"GPUs asked for", gpus},
                                                {"Jobs running", running}},
                       3);
    st_page_close(g);
}

void st_page_stranded(st_page *g)
{
    ST_CLEANUP(st_freep) double *part;
    st_plot p;

    COLUMN(g, part, s->capacity_m > 0 ? s->stranded_m * 100.0 / s->capacity_m : 0);
    st_page_open(g, "Fragmentation", "Stranded GPUs in per cent of the capacity.");
    begin(g, &p, "Stranded capacity over time",
          "Per cent of the capacity that is free but of no use to a typical job",
          largest(part, g->n), "%", 150, false);
    st_plot_band(&p, "c2", g->x, NULL, part, g->n);
    st_plot_hover(&p, "c2", "stranded", part, g->n);
    st_plot_print(&p, g->out);
    st_page_time_table(g, (const st_page_column[]){{"Stranded, % of capacity", part}}, 1);
    st_page_close(g);
}

/* ---- shares ------------------------------------------------------------------------- */

/* Held and entitled of the largest accounts, and of all others together in the last place. */
typedef struct shares {
    size_t n; /* accounts, the others among them where there are any */
    const char *names[ST_PAGE_TOP + 1];
    const char *classes[ST_PAGE_TOP + 1];
    double *held[ST_PAGE_TOP + 1], *entitled[ST_PAGE_TOP + 1];
    double *sum[ST_PAGE_TOP + 2]; /* sum[i]: what the first i hold together */
    char others[48];
} shares;

static void shares_done(shares *s)
{
    for (size_t i = 0; i < ST_PAGE_TOP + 1; i++) {
        free(s->held[i]);
        free(s->entitled[i]);
    }
    for (size_t i = 0; i < ST_PAGE_TOP + 2; i++)
        free(s->sum[i]);
}

static void add_account(const st_page *g, shares *s, size_t into, int32_t account)
{
    size_t width = g->trace->accounts.n;

    for (size_t i = 0; i < g->n; i++) {
        size_t at = i * width + (size_t)account;

        s->held[into][i] += at < g->run->held_m.n ? g->run->held_m.v[at] / 1000.0 : 0;
        s->entitled[into][i] += at < g->run->entitled_m.n ? g->run->entitled_m.v[at] / 1000.0 : 0;
    }
}

static void shares_init(const st_page *g, shares *s)
{
    *s = (shares){0};
    s->n = ST_MIN(g->naccounts, ST_PAGE_TOP + 1);
    for (size_t i = 0; i < s->n; i++) {
        s->held[i] = st_xcalloc(g->n + 1, sizeof(double));
        s->entitled[i] = st_xcalloc(g->n + 1, sizeof(double));
        s->names[i] = g->trace->accounts.v[g->order[i]].name;
        s->classes[i] = colours[i];
    }
    if (g->naccounts > ST_PAGE_TOP + 1) {
        snprintf(s->others, sizeof(s->others), "%zu others", g->naccounts - ST_PAGE_TOP);
        s->names[ST_PAGE_TOP] = s->others;
    }
    for (size_t i = 0; i < g->naccounts; i++)
        add_account(g, s, ST_MIN(i, ST_PAGE_TOP), g->order[i]);
    for (size_t k = 0; k <= s->n; k++) {
        s->sum[k] = st_xcalloc(g->n + 1, sizeof(double));
        for (size_t i = 0; k > 0 && i < g->n; i++)
            s->sum[k][i] = s->sum[k - 1][i] + s->held[k - 1][i];
    }
}

/* Names beside the layers they belong to, apart far enough to be read. */
static void label_layers(const st_page *g, const shares *s, st_plot *p)
{
    double gap = p->y1 * LABEL_GAP_PX / p->height_px, at[ST_PAGE_TOP + 1], over;
    size_t last = g->n - 1;

    for (size_t k = 0; k < s->n; k++) {
        at[k] = (s->sum[k][last] + s->sum[k + 1][last]) / 2;
        if (k > 0)
            at[k] = ST_MAX(at[k], at[k - 1] + gap);
    }
    over = at[s->n - 1] - p->y1;
    for (size_t k = s->n; k-- > 0 && over > 0;) {
        at[k] = ST_MIN(at[k], k + 1 < s->n ? at[k + 1] - gap : p->y1);
    }
    for (size_t k = 0; k < s->n; k++)
        st_plot_label_right(p, at[k], s->classes[k], s->names[k]);
}

static void stacked(st_page *g, const shares *s)
{
    st_plot p;

    begin(g, &p, "GPUs held by account over time",
          "The GPUs each of the largest accounts holds, stacked on each other",
          s->n > 0 ? largest(s->sum[s->n], g->n) : 0, "GPUs", 300, false);
    for (size_t k = 0; k < s->n; k++) {
        st_plot_legend(&p, s->classes[k], s->names[k]);
        st_plot_band(&p, s->classes[k], g->x, s->sum[k], s->sum[k + 1], g->n);
    }
    for (size_t k = s->n; k-- > 0;)
        st_plot_hover(&p, s->classes[k], s->names[k], s->held[k], g->n);
    if (s->n > 0 && g->n > 0)
        label_layers(g, s, &p);
    st_strbuf_add(g->out, "<div class=\"gutter\">\n");
    st_plot_print(&p, g->out);
    st_strbuf_add(g->out, "</div>\n");
}

static void multiples(st_page *g, const shares *s)
{
    st_strbuf_add(g->out,
                  "<h3>Held and entitled, by account</h3>\n<p class=\"how\">The line is what the "
                  "account was entitled to at that moment: what it asked for, at most its "
                  "guarantee and its part of the surplus. Each has its own scale.</p>\n"
                  "<div class=\"many\">\n");
    for (size_t k = 0; k < ST_MIN(s->n, ST_PAGE_TOP); k++) {
        double top = ST_MAX(largest(s->held[k], g->n), largest(s->entitled[k], g->n));
        st_plot p;

        st_strbuf_add(g->out, "<div><h4>");
        st_quote_html(g->out, s->names[k]);
        st_strbuf_add(g->out, "</h4>\n");
        begin(g, &p, s->names[k], "GPUs this account holds, and what it is entitled to, over time",
              top, "GPUs", 90, true);
        st_plot_band(&p, s->classes[k], g->x, NULL, s->held[k], g->n);
        st_plot_line(&p, "ink thin", g->x, s->entitled[k], g->n);
        st_plot_hover(&p, s->classes[k], "held", s->held[k], g->n);
        st_plot_hover(&p, "ink", "entitled", s->entitled[k], g->n);
        st_plot_print(&p, g->out);
        st_strbuf_add(g->out, "</div>\n");
    }
    st_strbuf_add(g->out, "</div>\n");
}

void st_page_shares(st_page *g)
{
    ST_CLEANUP(shares_done) shares s;
    st_page_column columns[ST_PAGE_TOP + 1];

    shares_init(g, &s);
    st_page_open(g, "Shares", "GPUs held by the accounts that held most, stacked.");
    stacked(g, &s);
    if (s.n > 0 && g->n > 0)
        multiples(g, &s);
    for (size_t k = 0; k < s.n; k++)
        columns[k] = (st_page_column){s.names[k], s.held[k]};
    st_page_time_table(g, columns, s.n);
    st_page_close(g);
}
