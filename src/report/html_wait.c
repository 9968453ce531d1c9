/*
 * How long jobs waited for their first start: the part of jobs that had started after so long, by
 * size. A job that never started counts as one that still waits, so a curve may end below 100 %.
 */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "report/html_page.h"

#define PLACES 200

typedef struct size_class {
    const char *name, *colour;
    int64_t up_to_m; /* milli-GPU of the whole job */
    int64_t *waits;
    size_t started, jobs;
} size_class;

int64_t st_page_wait_ms(const st_page *g, size_t i)
{
    const st_run_job *j = &g->run->jobs.v[i];

    if (j->start_ms == ST_UNSET)
        return ST_UNSET;
    return ST_MAX(j->start_ms - g->trace->jobs.v[i].submit_ms, 0);
}

static void collect(const st_page *g, size_class *classes, size_t n)
{
    for (size_t c = 0; c < n; c++)
        classes[c].waits = st_xcalloc(g->run->jobs.n + 1, sizeof(int64_t));
    for (size_t i = 0; i < g->run->jobs.n; i++) {
        int64_t gpu_m = st_trace_job_gpu_m(&g->trace->jobs.v[i]), wait = st_page_wait_ms(g, i);
        size_t own = 1;

        if (g->run->jobs.v[i].refused)
            continue;
        while (gpu_m > classes[own].up_to_m)
            own++;
        for (size_t c = 0; c < n; c++) {
            if (c != 0 && c != own)
                continue;
            classes[c].jobs++;
            if (wait != ST_UNSET)
                classes[c].waits[classes[c].started++] = wait;
        }
    }
}

/* Per cent of a class that had started after each of the times. */
static void distribution(const size_class *c, const int64_t *times, double *ret)
{
    size_t at = 0;

    for (size_t i = 0; i < PLACES; i++) {
        while (at < c->started && c->waits[at] <= times[i])
            at++;
        ret[i] = c->jobs > 0 ? 100.0 * (double)at / (double)c->jobs : 0;
    }
}

static void table_row(st_page *g, const size_class *c, const st_spread *s)
{
    const int64_t times[] = {llround(s->mean), s->p50, s->p90, s->p99, s->max};
    char buf[ST_HTML_MAX];

    st_strbuf_addf(g->out, "<tr><th scope=\"row\">%s</th><td>%s</td>", c->name,
                   st_html_count(buf, (int64_t)c->jobs));
    st_strbuf_addf(g->out, "<td>%s</td>", st_html_count(buf, (int64_t)(c->jobs - c->started)));
    for (size_t i = 0; i < ST_ARRAY_LEN(times); i++)
        st_strbuf_addf(g->out, "<td>%s</td>", s->n > 0 ? st_html_duration(buf, times[i]) : "–");
    st_strbuf_add(g->out, "</tr>\n");
}

void st_page_waiting(st_page *g)
{
    size_class classes[] = {
        {.name = "all jobs", .colour = "ink"},
        {.name = "1 GPU or less", .colour = "c5", .up_to_m = 1000},
        {.name = "2 to 8 GPUs", .colour = "c3", .up_to_m = 8000},
        {.name = "9 to 64 GPUs", .colour = "c2", .up_to_m = 64000},
        {.name = "more than 64 GPUs", .colour = "c6", .up_to_m = INT64_MAX},
    };
    st_spread spreads[ST_ARRAY_LEN(classes)];
    int64_t times[PLACES], max;
    double x[PLACES], y[PLACES];
    st_plot p;

    collect(g, classes, ST_ARRAY_LEN(classes));
    for (size_t c = 0; c < ST_ARRAY_LEN(classes); c++)
        st_spread_of(classes[c].waits, classes[c].started, &spreads[c]);
    max = ST_MAX(spreads[0].max, 60000);
    for (size_t i = 0; i < PLACES; i++) {
        x[i] = 1000 * pow((double)max / 1000, (double)i / (PLACES - 1));
        times[i] = i + 1 == PLACES ? max : llround(x[i]);
    }
    st_page_open(g, "Waiting",
                 "Jobs that had started after waiting so long, in per cent of all of their size; "
                 "the further up and to the left, the better.");
    st_plot_init(&p, "Waiting time",
                 "Distribution of the time jobs waited for their first start, "
                 "on a logarithmic axis, by number of GPUs");
    p.height_px = 280;
    st_plot_log_time(&p, max);
    st_plot_values(&p, 100, "%");
    st_plot_hover_places(&p, x, times, PLACES);
    for (size_t k = 1; k <= ST_ARRAY_LEN(classes); k++) {
        /* All jobs come last, over the others, but first in words. */
        const size_class *c = &classes[k % ST_ARRAY_LEN(classes)];

        if (c->jobs == 0)
            continue;
        distribution(c, times, y);
        st_plot_line(&p, c->colour, x, y, PLACES);
    }
    for (size_t k = 0; k < ST_ARRAY_LEN(classes); k++) {
        if (classes[k].jobs == 0)
            continue;
        distribution(&classes[k], times, y);
        st_plot_legend(&p, classes[k].colour, classes[k].name);
        st_plot_hover(&p, classes[k].colour, classes[k].name, y, PLACES);
    }
    st_plot_print(&p, g->out);
    st_page_table_open(g);
    st_strbuf_add(g->out,
                  "<thead><tr><th>Size</th><th>Jobs</th><th>Never started</th><th>Mean</th>"
                  "<th>p50</th><th>p90</th><th>p99</th><th>Longest</th></tr></thead>\n<tbody>");
    for (size_t c = 0; c < ST_ARRAY_LEN(classes); c++)
        table_row(g, &classes[c], &spreads[c]);
    st_page_table_close(g);
    st_page_close(g);
    for (size_t c = 0; c < ST_ARRAY_LEN(classes); c++)
        free(classes[c].waits);
}
